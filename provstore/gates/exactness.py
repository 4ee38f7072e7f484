"""Gates about correct output: tokens and texts against an oracle, all or nothing, and typed zeros."""

from collections.abc import Callable
from typing import ClassVar, Final

from provstore.evidence.bench import BenchResult
from provstore.evidence.jsonreader import ABSENT, Absent, Number, Value, kind
from provstore.evidence.oracle import OracleResult, OracleRow
from provstore.evidence.rows import Row
from provstore.gates.evidence import Evidence, Source
from provstore.gates.findings import Findings, said
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement, UsedFact

_ORACLE_EXTRACTS: Final = """
[[extract]]
name = "bench"
kind = "bench"
role = "run/bench.json"

[[extract]]
name = "oracle"
kind = "oracle"
role = "oracle/tokens"
"""


class Pair:
    """One candidate row beside the oracle's row for the same place, and what differs."""

    def __init__(self, row: Row, wanted: OracleRow, source: Source, oracle: Source) -> None:
        self.row = row
        self.wanted = wanted
        self.source = source
        self.oracle = oracle

    def facts(self, name: str, oracle_name: str = "") -> tuple[UsedFact, UsedFact]:
        """Return mentions of a field on both sides."""
        there = self.row.get(name)
        here = getattr(self.wanted, _ORACLE_FIELD.get(name, name), None)
        return (
            UsedFact(place=self.source.place, key=name, value=_say(there), object=self.source.object,
                     location=self.row.where(name)),
            UsedFact(place=self.oracle.place, key=oracle_name or name, value=said(here),
                     object=self.oracle.object, location=f"{self.wanted.location}/{name}"),
        )  # fmt: skip

    def label(self) -> str:
        """Return what people call the row."""
        return f"prompt {self.wanted.prompt_index} ({self.wanted.prompt_id})"


_ORACLE_FIELD: Final = {"sha256": "text_sha256"}


def _say(value: Value | Absent) -> str:
    if isinstance(value, Number):
        return value.text
    if isinstance(value, list) and all(type(item) is int for item in value):
        return said(tuple(item for item in value if isinstance(item, int)))
    return said(value) if isinstance(value, str | int | None) else kind(value)


def pairs(evidence: Evidence, rows: str, oracle: str, out: Findings) -> list[Pair]:
    """Return candidate and oracle rows place by place; says when their numbers or identities differ."""
    bench, wanted = evidence.one(rows, out), evidence.one(oracle, out)
    if bench is None or wanted is None:
        return []
    candidates = bench.reading.rows if isinstance(bench.reading, BenchResult) else ()
    teachers = wanted.reading.rows if isinstance(wanted.reading, OracleResult) else ()
    if not candidates or not teachers:
        out.unknown("rows-absent", f"{len(candidates)} rows in {bench.place}, {len(teachers)} in the oracle")
        return []
    if len(candidates) != len(teachers):
        out.fail("row-count", f"{len(candidates)} rows, the oracle has {len(teachers)}",
                 expected=len(teachers), found=len(candidates))  # fmt: skip
    by_index = {row.prompt_index: row for row in teachers if row.prompt_index is not None}
    found: list[Pair] = []
    for row in candidates:
        index = row.get("prompt_index")
        teacher = by_index.pop(index, None) if type(index) is int else None
        if type(index) is not int:
            out.unknown("row-identity-absent", f"{row.where('prompt_index')} is {kind(index)}")
        elif teacher is None:
            out.fail("row-identity", f"{row.location}: the oracle has no further row for prompt {index}")
        else:
            found.append(Pair(row, teacher, bench, wanted))
    for index in sorted(by_index):
        out.fail("row-absent", f"no row for prompt {index} of the oracle", expected=index)
    return found


def check_identity(pair: Pair, out: Findings, *, hashes: bool) -> bool:
    """Say whether both rows speak of one prompt: equal id and, where asked, equal prompt digest."""
    names = ("prompt_id", "prompt_sha256") if hashes else ("prompt_id",)
    same = True
    for name in names:
        there, here = pair.row.get(name), getattr(pair.wanted, name)
        if not isinstance(there, str) or here is None:
            code = "prompt-hash-absent" if name == "prompt_sha256" else "row-identity-absent"
            out.unknown(code, f"{pair.label()}: {name} is not stated on both sides", facts=pair.facts(name))
            same = False
        elif there != here:
            out.fail("row-identity", f"{pair.label()}: {name} differs", expected=here, found=there,
                     facts=pair.facts(name))  # fmt: skip
            same = False
    return same


def tokens_equal(pair: Pair, out: Findings) -> bool:
    """Compare tokens; a difference is reported at its first index, a length at the shorter length."""
    found, wanted = pair.row.get("token_ids"), pair.wanted.token_ids
    if wanted is None or found is ABSENT or found is None or found == []:
        out.unknown("tokens-absent", f"{pair.label()}: token ids are not stated on both sides",
                    facts=pair.facts("token_ids"))  # fmt: skip
        return False
    if not isinstance(found, list) or any(type(item) is not int for item in found):
        out.fail("type", f"{pair.label()}: token ids must be integers", facts=pair.facts("token_ids"))
        return False
    ids = [item for item in found if isinstance(item, int)]
    at = next((i for i, (a, b) in enumerate(zip(wanted, ids, strict=False)) if a != b), None)
    if at is None and len(ids) == len(wanted):
        return True
    at = min(len(ids), len(wanted)) if at is None else at
    there = wanted[at] if at < len(wanted) else None
    here = ids[at] if at < len(ids) else None
    message = f"{pair.label()}: first difference at token {at}: expected {there}, found {here}"
    lengths = f" ({len(wanted)} and {len(ids)} tokens)" if len(ids) != len(wanted) else ""
    out.fail("token-diff", message + lengths, expected=there, found=here, facts=pair.facts("token_ids"))
    return False


def texts_equal(pair: Pair, out: Findings) -> bool:
    """Compare digests of texts."""
    found, wanted = pair.row.get("sha256"), pair.wanted.text_sha256
    if wanted is None or not isinstance(found, str):
        out.unknown(
            "text-absent", f"{pair.label()}: no text digest on both sides", facts=pair.facts("sha256")
        )
        return False
    if found != wanted:
        out.fail("text-diff", f"{pair.label()}: the text differs", expected=wanted, found=found,
                 facts=pair.facts("sha256"))  # fmt: skip
        return False
    return True


class Tokens(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="tokens"):
    """Token ids of every row equal the oracle's, element by element and in length.

    Rows are paired by prompt index and must agree in prompt id and prompt digest. Token ids that are absent
    on a side are ``UNKNOWN``: two absent lists are not equal.

    Attributes:
        rows: the benchmark.
        oracle: the oracle.
        prompt_hashes: both sides must state the prompt's digest.
    """

    rows: str
    oracle: str
    prompt_hashes: bool = True

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"rows": ("bench",), "oracle": ("oracle",)}
    EXAMPLE: ClassVar[str] = (
        _ORACLE_EXTRACTS
        + """
[[gate]]
name = "tokens"
kind = "tokens"
rows = "bench"
oracle = "oracle"
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare every row."""
        return _judge(self.rows, self.oracle, evidence, out, (self.prompt_hashes, tokens_equal, "tokens"))

    def idle_reason(self) -> str:
        """Say whether a thing is compared with itself."""
        return "" if self.rows != self.oracle else "it compares the rows with themselves"


class Texts(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="texts"):
    """The digest of every row's text equals the oracle's.

    Attributes:
        rows: the benchmark.
        oracle: the oracle.
    """

    rows: str
    oracle: str

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"rows": ("bench",), "oracle": ("oracle",)}
    EXAMPLE: ClassVar[str] = (
        _ORACLE_EXTRACTS
        + """
[[gate]]
name = "texts"
kind = "texts"
rows = "bench"
oracle = "oracle"
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare every row."""
        return _judge(self.rows, self.oracle, evidence, out, (False, texts_equal, "text"))

    def idle_reason(self) -> str:
        """Say whether a thing is compared with itself."""
        return "" if self.rows != self.oracle else "it compares the rows with themselves"


def _judge(
    rows: str,
    oracle: str,
    evidence: Evidence,
    out: Findings,
    how: tuple[bool, Callable[[Pair, Findings], bool], str],
) -> list[Judgement]:
    hashes, equal, what = how
    facts: list[UsedFact] = []
    found = pairs(evidence, rows, oracle, out)
    exact = 0
    for pair in found:
        same = check_identity(pair, out, hashes=hashes)
        exact += equal(pair, out) and same
        facts += pair.facts("token_ids" if what == "tokens" else "sha256")
    return out.done(f"{exact}/{len(found)} {what} equal the oracle's", facts)


class Exact(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="exact"):
    """A rate may be claimed only when every row is exact: all or nothing.

    A row is exact when its tokens (and, with a text oracle, its text) equal the oracle's. Anything less than
    all rows is ``INELIGIBLE``; there is no "mostly exact".

    Attributes:
        rows: the benchmark.
        oracle: token oracle.
        texts: text oracle; empty when only tokens count.
        stated: facts that state the count as text, such as ``13/13``.
        prompt_tokens: with ``stated_long``, rows of at least so many prompt tokens are counted apart.
        stated_long: facts that state the count of these rows.
    """

    rows: str
    oracle: str
    texts: str = ""
    stated: tuple[str, ...] = ()
    prompt_tokens: int = 0
    stated_long: tuple[str, ...] = ()

    FACTS: ClassVar[tuple[str, ...]] = ("stated", "stated_long")
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {
        "rows": ("bench",),
        "oracle": ("oracle",),
        "texts": ("oracle",),
    }
    EXAMPLE: ClassVar[str] = (
        _ORACLE_EXTRACTS
        + """
[[gate]]
name = "exact"
kind = "exact"
rows = "bench"
oracle = "oracle"
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Count exact rows."""
        quiet = Findings()
        found = pairs(evidence, self.rows, self.oracle, out)
        exact = {
            p.row.location for p in found if tokens_equal(p, quiet) and check_identity(p, quiet, hashes=False)
        }
        if self.texts:
            same = [
                p.row.location for p in pairs(evidence, self.rows, self.texts, out) if texts_equal(p, quiet)
            ]
            exact &= set(same)
        if any(judgement.outcome == "UNKNOWN" for judgement in quiet.all) and found:
            first = next(j for j in quiet.all if j.outcome == "UNKNOWN")
            out.unknown(first.code, first.message, facts=first.facts)
        elif found and len(exact) < len(found):
            out.add(
                "INELIGIBLE",
                "not-exact",
                f"{len(exact)}/{len(found)} rows are exact: no rate may be claimed",
                expected=f"{len(found)}/{len(found)}",
                found=f"{len(exact)}/{len(found)}",
            )
        elif not found and not out.decided:
            out.unknown("rows-absent", "no row to compare")
        long = [p for p in found if self.prompt_tokens and _at_least(p.row, self.prompt_tokens)]
        self._stated(self.stated, len(exact), len(found), evidence, out)
        self._stated(self.stated_long, sum(p.row.location in exact for p in long), len(long), evidence, out)
        return out.done(f"{len(exact)}/{len(found)} rows are exact")

    def _stated(
        self, references: tuple[str, ...], exact: int, rows: int, evidence: Evidence, out: Findings
    ) -> None:
        for reference in references:
            found = evidence.only(reference, out)
            if found is not None and found.fact.value != f"{exact}/{rows}":
                out.fail(
                    "stated-count",
                    f"{reference} states {found.used().value}, the rows give {exact}/{rows}",
                    expected=f"{exact}/{rows}",
                    found=found.used().value,
                    facts=(found.used(),),
                )

    def idle_reason(self) -> str:
        """Say whether a thing is compared with itself."""
        return "" if self.rows not in (self.oracle, self.texts) else "it compares the rows with themselves"


def _at_least(row: Row, tokens: int) -> bool:
    value = row.get("prompt_tokens")
    return type(value) is int and value >= tokens


class Zero(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="zero"):
    """A field of every row is the integer zero: not absent, not null, not ``false``, ``0.0`` or ``"0"``.

    Attributes:
        rows: the benchmark.
        field: the field.
        stated: facts that state the count of such rows as text, such as ``13/13``.
    """

    rows: str
    field: str = "cached_tokens"
    stated: tuple[str, ...] = ()

    FACTS: ClassVar[tuple[str, ...]] = ("stated",)
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"rows": ("bench",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "bench"
kind = "bench"
role = "run/bench.json"

[[gate]]
name = "nothing from a cache"
kind = "zero"
rows = "bench"
field = "cached_tokens"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look at the field of every row."""
        source = evidence.one(self.rows, out)
        rows = source.reading.rows if source and isinstance(source.reading, BenchResult) else ()
        if source and not rows:
            out.unknown("rows-absent", f"{source.place} has no rows")
        facts: list[UsedFact] = []
        zeros = 0
        for row in rows:
            value = row.get(self.field)
            fact = UsedFact(
                place=source.place if source else "",
                key=self.field,
                value=_say(value),
                object=source.object if source else "",
                location=row.where(self.field),
            )
            facts.append(fact)
            zeros += type(value) is int and value == 0
            if value is ABSENT or value is None:
                out.unknown("cache-state", f"{row.where(self.field)} is {kind(value)}", facts=(fact,))
            elif type(value) is not int:
                out.fail("type", f"{row.where(self.field)} is {_say(value)}, {kind(value)}, not an integer",
                         expected="0", found=_say(value), facts=(fact,))  # fmt: skip
            elif value != 0:
                out.fail("cache-reuse", f"{row.where(self.field)} is {value}", expected="0", found=value,
                         facts=(fact,))  # fmt: skip
        for reference in self.stated:
            found = evidence.only(reference, out)
            if found is not None and found.fact.value != f"{zeros}/{len(rows)}":
                out.fail(
                    "stated-count",
                    f"{reference} states {found.used().value}, not {zeros}/{len(rows)}",
                    expected=f"{zeros}/{len(rows)}",
                    found=found.used().value,
                    facts=(found.used(),),
                )
        return out.done(f"{self.field} is the integer 0 in {zeros}/{len(rows)} rows", facts)
