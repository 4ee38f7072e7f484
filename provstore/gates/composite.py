"""Gates about documents that gather others: parts that must have ended, states, references that resolve."""

from typing import Any, ClassVar

from provstore.gates.attempts import objects_at, said_value
from provstore.gates.evidence import Evidence, Found, fits, number, shown, uses
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement, UsedFact


class Parts(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="parts"):
    """A result that is composed of several runs: every run ended, and its state says no more than that.

    A part that did not end, or rows that differ from the oracle, allow the screened states at most.

    Attributes:
        parts: the list of parts.
        status: member of a part with its status.
        terminal: statuses of a part that ended.
        strict: a part that did not end fails; otherwise it warns.
        state: fact with the state that is claimed; empty when none is.
        screened: states that are allowed for less than exact and whole evidence.
        equal: fact with the number of rows that equal the oracle.
        total: fact with the number of rows that were compared.
        apart: facts with numbers of rows that equal the oracle and do not belong to the claim.
        sealed: facts that call the parts sealed when they are true or the text ``sealed``.
    """

    parts: str
    status: str
    terminal: tuple[str, ...]
    strict: bool = False
    state: str = ""
    screened: tuple[str, ...] = ()
    equal: str = ""
    total: str = ""
    apart: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()

    FACTS: ClassVar[tuple[str, ...]] = ("parts", "state", "equal", "total", "apart", "sealed")
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "composed"
kind = "json"
role = "composed.json"

[[gate]]
name = "parts"
kind = "parts"
parts = "composed:/artifacts"
status = "bench_status"
terminal = ["PASS"]
state = "composed:/state"
screened = ["lab-screened"]
equal = "composed:/rows_equal"
total = "composed:/rows"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look at each part, then at what is said of the whole."""
        source, parts = objects_at(evidence, self.parts, out)
        open_parts = 0
        for place, part in enumerate(parts):
            status = part.get(self.status)
            if isinstance(status, str) and status in self.terminal:
                continue
            open_parts += 1
            fact = UsedFact(place=source.place if source else "", key=self.status, value=said_value(status),
                            object=source.object if source else "",
                            location=f"{self.parts.partition(':')[2]}/{place}/{self.status}")  # fmt: skip
            word = out.fail if self.strict else out.warn
            word("part-not-terminal", f"part {place} has status {said_value(status)}",
                 expected=", ".join(self.terminal), found=said_value(status), facts=(fact,))  # fmt: skip
        counts = self._exact(evidence, out)
        whole = parts and not open_parts and (counts is None or counts[0] == counts[1])
        self._state(bool(whole), counts, open_parts, evidence, out)
        self._sealed(open_parts, evidence, out)
        rows = f"; {counts[0]} of {counts[1]} rows equal the oracle" if counts else ""
        return out.done(f"{len(parts)} parts, {open_parts} not ended{rows}")

    def _exact(self, evidence: Evidence, out: Findings) -> tuple[int, int] | None:
        if not self.equal:
            return None
        found = [evidence.only(reference, out) for reference in (self.equal, self.total, *self.apart)]
        values = [None if item is None else number(item.fact) for item in found]
        whole = [int(value) for value in values if value is not None and value == int(value)]
        if len(whole) != len(values):
            return None
        apart = sum(whole[2:])
        equal, total = whole[0] - apart, whole[1] - apart
        facts = uses([item for item in found if item is not None])
        if equal < total:
            out.add("WARN", "not-exact", f"{equal} of {total} rows equal the oracle: screened, not exact",
                    expected=f"{total}/{total}", found=f"{equal}/{total}", facts=facts)  # fmt: skip
        return equal, total

    def _state(
        self, whole: bool, counts: tuple[int, int] | None, open_parts: int, evidence: Evidence, out: Findings
    ) -> None:
        found = evidence.only(self.state, out) if self.state else None
        if found is None or whole or found.fact.value in self.screened:
            return
        rows = f", {counts[0]} of {counts[1]} rows exact" if counts else ""
        out.fail(
            "state-exceeds-evidence",
            f"state {found.used().value}: {open_parts} parts not ended{rows}",
            expected=", ".join(self.screened),
            found=found.used().value,
            facts=(found.used(),),
        )

    def _sealed(self, open_parts: int, evidence: Evidence, out: Findings) -> None:
        for reference in self.sealed:
            found = evidence.only(reference, out)
            if found is not None and open_parts and (fits(found.fact, True) or fits(found.fact, "sealed")):
                out.fail("contradicted", f"{reference} says sealed; {open_parts} parts did not end",
                         found=found.used().value, facts=(found.used(),))  # fmt: skip

    def idle_reason(self) -> str:
        """Say whether nothing of it could fail."""
        if not self.terminal:
            return "it names no status of an ended part"
        if bool(self.equal) != bool(self.total):
            return "equal and total go together"
        if self.state and not self.screened:
            return "it allows no state for less than whole evidence"
        if not self.needed or self.strict or self.state or self.sealed:
            return ""
        return "it only warns, so it cannot be required"


class Resolves(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="resolves"):
    """Every value that refers to something is among the values that name it.

    Attributes:
        references: facts that refer.
        targets: facts that name.
    """

    references: tuple[str, ...]
    targets: tuple[str, ...]

    FACTS: ClassVar[tuple[str, ...]] = ("references", "targets")
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "family"
kind = "json"
role = "family.json"

[[gate]]
name = "drafts exist"
kind = "resolves"
references = ["family:packets.draft_revision"]
targets = ["family:auxiliary_artifacts.id"]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look up each value."""
        quiet = Findings()
        named = {str(found.fact.value) for ref in self.targets for found in evidence.find(ref, quiet)}
        for judgement in quiet.all:
            if judgement.code == "evidence-absent":
                out.unknown(judgement.code, judgement.message)
        seen: list[Found] = []
        for reference in self.references:
            for found in evidence.find(reference, out):
                seen.append(found)
                if str(found.fact.value) not in named:
                    out.fail(
                        "unresolved-reference",
                        f"{reference} is {found.used().value}, which nothing names",
                        found=found.used().value,
                        facts=(found.used(),),
                    )
        return out.done(f"{len(seen)} references resolve", uses(seen))

    def idle_reason(self) -> str:
        """Say whether nothing refers, or to itself."""
        if set(self.references) & set(self.targets):
            return "a reference is compared with itself"
        return "" if self.references and self.targets else "it needs references and targets"


class Eligible(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="eligible"):
    """Something may be claimed only when facts have certain values; otherwise it is not eligible.

    The evidence can be fine all the same; it is the claim that is not allowed.

    Attributes:
        subject: what would be claimed, for people.
        values: fact and value that it needs.
        code: code of what is not eligible.
    """

    subject: str
    values: dict[str, Any]
    code: str = "not-eligible"

    FACTS: ClassVar[tuple[str, ...]] = ("values",)
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "identity"
kind = "identity"
role = "run/identity.txt"

[[gate]]
name = "current leg schema"
kind = "eligible"
required = false
subject = "a run under the current leg"
values = { "identity:schema" = "leg-v2" }
code = "schema-v1"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare each fact."""
        seen: list[Found] = []
        for reference, wanted in self.values.items():
            found = evidence.only(reference, out)
            if found is None:
                continue
            seen.append(found)
            if not fits(found.fact, wanted):
                out.add("INELIGIBLE", self.code, f"{self.subject}: {reference} is {found.used().value}",
                        expected=shown(wanted), found=found.used().value, facts=(found.used(),))  # fmt: skip
        return out.done(f"{self.subject} is eligible", uses(seen))

    def idle_reason(self) -> str:
        """Say whether nothing is asked."""
        return "" if self.values else "it needs no value"
