"""Gates about what something is: fixed values, equal statements, digests, versions, references."""

import re
from typing import Any, ClassVar, Final, Literal

import msgspec

from provstore.errors import MalformedError
from provstore.evidence import expressions
from provstore.evidence.finding import quoted
from provstore.evidence.serverlog import takes_exponential_time
from provstore.gates.evidence import Evidence, Found, alike, fits, number, shown, uses
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement

TOLERANCE: Final = re.compile(r"0|[0-9]{1,6}(?:\.[0-9]{1,30})?(?:[eE]-?[0-9]{1,2})?")
"""A tolerance as a policy writes it."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ABBREVIATED: Final = re.compile(r"[0-9a-f]{7,39}")
_BY_DIGEST: Final = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


class Equal(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="equal"):
    """Facts have exactly the values that the policy states, in type and value.

    A fact that is not stated is ``UNKNOWN``, another value ``FAIL``; keys under ``absent`` must not be
    stated at all.

    Attributes:
        values: fact and value; text, integer, boolean, decimal or a list of text or integers.
        absent: facts that must not exist.
        code: code of a failure.
    """

    values: dict[str, Any] = msgspec.field(default_factory=dict)
    absent: tuple[str, ...] = ()
    code: str = "value-differs"

    FACTS: ClassVar[tuple[str, ...]] = ("values", "absent")
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "identity"
kind = "identity"
role = "run/identity.txt"

[[gate]]
name = "identity"
kind = "equal"
values = { "identity:schema" = "leg-v2", "identity:treatment" = "candidate" }
absent = ["identity:diagnostic_mode"]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare each fact with its value."""
        seen: list[Found] = []
        for reference, wanted in self.values.items():
            found = evidence.only(reference, out)
            if found is None:
                continue
            seen.append(found)
            if not fits(found.fact, wanted):
                said = found.used()
                out.fail(self.code, f"{reference} is {said.value}, the policy says {shown(wanted)}",
                         expected=shown(wanted), found=said.value, facts=(said,))  # fmt: skip
        for reference in self.absent:
            name, _, selector = reference.partition(":")
            for source in evidence.here(name, out):
                for fact in source.select(selector):
                    said = Found(source, fact).used()
                    out.fail("present", f"{reference} must not be stated, is {said.value}", facts=(said,))
        return out.done(f"{len(seen)} facts have their values", uses(seen))

    def idle_reason(self) -> str:
        """Say whether nothing is compared."""
        return "" if self.values or self.absent else "it states no value"


class Consistent(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="consistent"):
    """Facts that speak of one thing agree, whatever document states them.

    Types must agree as well. Decimals agree when their doubles are equal, or lie no further apart than
    ``tolerance``; the difference is always printed.

    Attributes:
        groups: lists of facts that must agree; each of them must be stated.
        tolerance: largest difference of two numbers, as text; ``0`` means equal doubles.
        outcome: what a contradiction means.
        code: code of a contradiction.
        text: compare as text, so that ``12`` in one format and ``"12"`` in another agree.
    """

    groups: tuple[tuple[str, ...], ...]
    tolerance: str = "0"
    outcome: Literal["FAIL", "WARN", "INELIGIBLE"] = "FAIL"
    code: str = "contradiction"
    text: bool = False

    FACTS: ClassVar[tuple[str, ...]] = ("groups",)
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "identity"
kind = "identity"
role = "run/identity.txt"

[[extract]]
name = "record"
kind = "json"
role = "record"

[[gate]]
name = "one commit"
kind = "consistent"
groups = [["identity:engine_commit", "record:/source/engine_commit"]]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare the facts of each group."""
        seen: list[Found] = []
        for group in self.groups:
            stated = [(reference, evidence.only(reference, out)) for reference in group]
            found = [(reference, item) for reference, item in stated if item is not None]
            seen += [item for _, item in found]
            for reference, item in found[1:]:
                self._compare(found[0], (reference, item), out)
        return out.done(f"{len(self.groups)} groups of {len(seen)} facts agree", uses(seen))

    def _compare(self, left: tuple[str, Found], right: tuple[str, Found], out: Findings) -> None:
        first, second = left[1], right[1]
        values = first.used().value, second.used().value
        more: dict[str, object] = {"expected": values[0], "found": values[1],
                                   "facts": (first.used(), second.used())}  # fmt: skip
        message = f"{left[0]} is {values[0]}, {right[0]} is {values[1]}"
        if alike(first.fact, second.fact):
            return
        if self.text and str(first.fact.value) == str(second.fact.value):
            return
        numbers = number(first.fact), number(second.fact)
        if numbers[0] is not None and numbers[1] is not None and first.fact.decimal | second.fact.decimal:
            off = abs(numbers[1] - numbers[0])
            if off <= float(self.tolerance):
                return
            code = "not-bit-equal" if self.code == "contradiction" and self.tolerance == "0" else self.code
            out.add(self.outcome, code, f"{message}: {off!r} apart, allowed {self.tolerance}", **more)
            return
        out.add(self.outcome, self.code, message, **more)

    def idle_reason(self) -> str:
        """Say whether nothing is compared with anything else."""
        if not TOLERANCE.fullmatch(self.tolerance):
            return f"its tolerance {self.tolerance!r} is no number from 0"
        if not self.groups or any(len(set(group)) < 2 for group in self.groups):
            return "a group needs two different facts"
        return "" if self.outcome != "WARN" or not self.needed else "it only warns, so it cannot be required"


class Digests(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="digests"):
    """Digests that documents state are those of the packet's own members.

    Attributes:
        values: fact that states a SHA-256, and the place (``role/path``) of the member it speaks of.
    """

    values: dict[str, str]

    FACTS: ClassVar[tuple[str, ...]] = ("values",)
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "record"
kind = "json"
role = "record"

[[gate]]
name = "sealed files of the record"
kind = "digests"
values = { "record:/sha256/bench" = "run/bench.json" }
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare each stated digest with the member's."""
        members = {member.place: member for member in evidence.members}
        seen: list[Found] = []
        for reference, place in self.values.items():
            member = members.get(place)
            if member is None or member.sha256 is None:
                what = "no member of the packet" if member is None else "a member whose SHA-256 nobody knows"
                out.unknown("evidence-absent", f"{place} is {what}", expected=place)
            found = evidence.only(reference, out)
            if found is None or member is None or member.sha256 is None:
                continue
            seen.append(found)
            if not fits(found.fact, member.sha256):
                out.fail("digest-differs", f"{reference} states another SHA-256 than {place} has",
                         expected=found.used().value, found=member.sha256, facts=(found.used(),))  # fmt: skip
        return out.done(f"{len(seen)} stated digests are those of the members", uses(seen))

    def idle_reason(self) -> str:
        """Say whether nothing is compared."""
        return "" if self.values else "it states no digest"


class Version(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="version"):
    """A version text that names a commit names the source that was run.

    A program's banner comes from package metadata, which goes stale; so a contradiction is a warning, unless
    the policy calls the banner authoritative.

    Attributes:
        text: facts with the version text.
        pattern: expression with a group ``commit`` of 7 to 40 hex digits.
        commit: fact with the full commit of the source.
        authoritative: a contradiction fails.
    """

    text: tuple[str, ...]
    pattern: str
    commit: str
    authoritative: bool = False

    FACTS: ClassVar[tuple[str, ...]] = ("text", "commit")
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "identity"
kind = "identity"
role = "run/identity.txt"

[[extract]]
name = "banner"
kind = "lines"
role = "run/server.log"
marker = "engine version"
pattern = 'version (?P<version>\\S+)'

[[gate]]
name = "version of the engine"
kind = "version"
required = false
text = ["banner:version"]
pattern = '\\+g(?P<commit>[0-9a-f]{7,40})'
commit = "identity:engine_commit"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look for the commit in each text."""
        source = evidence.only(self.commit, out)
        seen: list[Found] = [] if source is None else [source]
        for reference in self.text:
            for found in evidence.find(reference, out):
                seen.append(found)
                match = expressions.search(self.pattern, str(found.fact.value)[:1000], "pattern")
                if match is None:
                    out.unknown("no-commit-named", f"{reference} names no commit: {found.used().value}",
                                facts=(found.used(),))  # fmt: skip
                elif source is not None and not str(source.fact.value).startswith(match["commit"]):
                    out.add(
                        "FAIL" if self.authoritative else "WARN",
                        "version-string-contradicts-source",
                        f"{reference} names {match['commit']}, the source is {source.used().value}",
                        expected=source.used().value,
                        found=found.used().value,
                        facts=(found.used(), source.used()),
                    )
        return out.done("every version text names the commit of the source", uses(seen))

    def idle_reason(self) -> str:
        """Say whether the pattern cannot name a commit, or nothing is looked at."""
        try:
            groups = expressions.compiled(self.pattern, "pattern").groupindex
        except MalformedError as error:
            return f"its pattern is {error.reason}"
        if takes_exponential_time(self.pattern):
            return "a repeated group of its pattern must not hold another repetition or a choice"
        if "commit" not in groups or not self.text:
            return "it needs a text and a pattern with a group named commit"
        return "" if self.authoritative or not self.needed else "it only warns unless it is authoritative"


class References(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="references"):
    """What is named by an address cannot change: full commits, images by digest.

    An abbreviated commit is a warning, since it may still name one object; a branch, a tag or anything else
    that can move fails.

    Attributes:
        commits: facts with a commit or Hub revision.
        images: facts with a container image.
    """

    commits: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    FACTS: ClassVar[tuple[str, ...]] = ("commits", "images")
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "record"
kind = "json"
role = "record"

[[gate]]
name = "nothing that moves"
kind = "references"
commits = ["record:/source/engine_commit", "record:/source/model_revision"]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look at the form of each reference."""
        seen: list[Found] = []
        for form, references in (("commit", self.commits), ("image", self.images)):
            for reference in references:
                for found in evidence.find(reference, out):
                    seen.append(found)
                    value = found.fact.value
                    code = reference_code(value if isinstance(value, str) else "", form)
                    message = f"{reference} is {quoted(str(value))}"
                    if code == "abbreviated-reference":
                        out.warn(code, f"{message}, an abbreviated commit", facts=(found.used(),))
                    elif code:
                        out.fail(code, f"{message}, which can move", facts=(found.used(),))
        return out.done(f"{len(seen)} references cannot move", uses(seen))

    def idle_reason(self) -> str:
        """Say whether nothing is looked at."""
        return "" if self.commits or self.images else "it names no reference"


def reference_code(text: str, form: str) -> str:
    """Return what is wrong with a reference, or nothing.

    Example:
        >>> [reference_code(text, "commit") for text in ("c8942a8e4", "main", "ab" * 20)]
        ['abbreviated-reference', 'mutable-reference', '']
        >>> [reference_code(text, "image") for text in ("repo/name:tag", "repo/name@sha256:" + "0" * 64)]
        ['mutable-reference', '']
    """
    if form == "image":
        return "" if _BY_DIGEST.fullmatch(text) else "mutable-reference"
    if _COMMIT.fullmatch(text):
        return ""
    return "abbreviated-reference" if _ABBREVIATED.fullmatch(text) else "mutable-reference"
