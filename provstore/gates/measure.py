"""Gates about numbers: recomputed metrics, floors, and a curve that is too good to be true."""

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from provstore.errors import MalformedError, NotFoundError
from provstore.evidence import conventions
from provstore.evidence.bench import BenchResult
from provstore.evidence.comparing import Comparison, compare, conventions_giving
from provstore.evidence.metrics import Definition, MetricValue, recompute
from provstore.evidence.prometheus import PrometheusResult, by_label
from provstore.evidence.rows import Row
from provstore.gates.evidence import Evidence, Found, Source, number
from provstore.gates.findings import Findings
from provstore.gates.identity import TOLERANCE
from provstore.gates.kinds import Gate
from provstore.gates.workload import BENCH_EXTRACT
from provstore.records.verdict import Judgement, MetricOutcome, UsedFact

_DECIMAL: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,30})?")


def definition_of(name: str, evidence: Evidence) -> Definition:
    """Return a definition of the policy, or a shipped one.

    Raises:
        NotFoundError: there is none.
    """
    return conventions.find(name, (*evidence.definitions, *conventions.SHIPPED))


def rows_of(source: Source) -> tuple[Row, ...]:
    """Return the rows of a benchmark."""
    return source.reading.rows if isinstance(source.reading, BenchResult) else ()


def outcome_of(name: str, definition: Definition, value: MetricValue) -> MetricOutcome:
    """Return a recomputed number as a verdict keeps it."""
    return MetricOutcome(
        name=name,
        convention=value.convention,
        unit=value.unit,
        value=value.text,
        formula=definition.formula(),
        rows=len(value.rows),
    )


def say_failures(source: Source, value: MetricValue, out: Findings) -> None:
    """Report why rows give no value."""
    out.readings(source.place, source.object, value.failures)


class Metric(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="metric"):
    """A number is recomputed from rows; what documents state of it agrees.

    One row without a value leaves the metric without one. Stated values are compared with the recomputed one
    within the tolerance of the policy (else of the definition), and the difference is printed.

    Attributes:
        rows: the benchmark.
        convention: name of the definition.
        stated: facts that state the value.
        row_field: row field that states the row's own value; empty when rows state none.
        required_statement: an absent statement fails; otherwise it warns.
        missing_code: code of an absent statement.
        tolerance: largest absolute difference, as text; empty for the definition's.
    """

    rows: str
    convention: str
    stated: tuple[str, ...] = ()
    row_field: str = ""
    required_statement: bool = True
    missing_code: str = "stated-value-missing"
    tolerance: str = ""

    FACTS: ClassVar[tuple[str, ...]] = ("stated",)
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"rows": ("bench",)}
    EXAMPLE: ClassVar[str] = (
        BENCH_EXTRACT
        + """
[[gate]]
name = "decode rate"
kind = "metric"
rows = "bench"
convention = "legacy-inclusive-events"
stated = ["bench:/summary/tok_s_1_100_after_ttft/median"]
tolerance = "1e-12"
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Recompute, then compare."""
        source = evidence.one(self.rows, out)
        definition = definition_of(self.convention, evidence)
        tolerance = self.tolerance or definition.tolerance
        if source is None:
            return out.done("")
        value = recompute(definition, rows_of(source))
        out.metrics.append(outcome_of(self.name, definition, value))
        say_failures(source, value, out)
        facts: list[UsedFact] = []
        for reference in self.stated:
            quiet = Findings()
            found = evidence.only(reference, quiet)
            if found is None:
                self._absent(reference, quiet, out)
                continue
            facts.append(found.used())
            compare_stated(found, reference, (value, tolerance), out)
        if self.row_field:
            self._rows(source, value, (definition, tolerance), out)
        return out.done(f"{value.text} {value.unit} ({value.convention}) from {len(value.rows)} rows", facts)

    def _absent(self, reference: str, quiet: Findings, out: Findings) -> None:
        gone = [judgement for judgement in quiet.all if judgement.code == "evidence-absent"]
        ambiguous = [judgement for judgement in quiet.all if judgement.outcome == "FAIL"]
        for judgement in gone + ambiguous:
            out.add(judgement.outcome, judgement.code, judgement.message, facts=judgement.facts)
        if not gone and not ambiguous:
            word = out.fail if self.required_statement else out.warn
            word(self.missing_code, f"{reference} is not stated", expected=reference)

    def _rows(self, source: Source, value: MetricValue, how: tuple[Definition, str], out: Findings) -> None:
        definition, tolerance = how
        absent = 0
        for row, own in zip(rows_of(source), value.rows, strict=True):
            stated = source.select(row.where(self.row_field))
            if not stated or number(stated[0]) is None:
                absent += 1
            elif own.value is not None:
                alone = MetricValue(convention=definition.name, unit=definition.unit, value=own.value)
                used = Found(source, stated[0]).used()
                comparison = compare(str(stated[0].value), definition.name, alone, tolerance)
                say_comparison(comparison, f"{row.where(self.row_field)} states", used, out)
        if absent:
            word = out.fail if self.required_statement else out.warn
            word(self.missing_code, f"{absent} rows do not state {self.row_field}", expected=self.row_field)

    def idle_reason(self) -> str:
        """Say whether the tolerance is no number."""
        bad = self.tolerance and not TOLERANCE.fullmatch(self.tolerance)
        return f"its tolerance {self.tolerance!r} is no number from 0" if bad else ""


def compare_stated(found: Found, reference: str, wanted: tuple[MetricValue, str], out: Findings) -> None:
    """Hold a fact that states a number against the recomputed one, within a tolerance."""
    value, tolerance = wanted
    if number(found.fact) is None:
        out.fail("type", f"{reference} is {found.used().value}, not a number", facts=(found.used(),))
        return
    comparison = compare(str(found.fact.value), value.convention, value, tolerance)
    say_comparison(comparison, f"{reference} states", found.used(), out)


def say_comparison(comparison: Comparison, words: str, fact: UsedFact, out: Findings) -> None:
    """Report a stated number that is not the recomputed one."""
    if comparison.outcome == "equal":
        return
    if comparison.outcome == "unknown":
        out.unknown("no-value", f"{words} {comparison.stated}; nothing was recomputed", facts=(fact,))
        return
    message = (
        f"{words} {comparison.stated}, recomputed {comparison.recomputed}: "
        f"{comparison.difference} apart, allowed {comparison.tolerance}"
    )
    out.fail(comparison.code, message, expected=comparison.recomputed, found=comparison.stated, facts=(fact,))


def other_conventions(stated: str, rows: Sequence[Row], evidence: Evidence) -> tuple[str, ...]:
    """Return the conventions under which rows give exactly a stated number."""
    try:
        return conventions_giving(stated, rows, (*evidence.definitions, *conventions.SHIPPED))
    except MalformedError:
        return ()


class Floor(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="floor"):
    """A recomputed number is no lower than a share of a reference in the same convention.

    A run below the floor can be correct; it does not reproduce the speed.

    Attributes:
        rows: the benchmark.
        convention: name of the definition of both numbers.
        reference: the reference value, as text.
        ratio: the share, as text; the floor is the product of both doubles.
    """

    rows: str
    convention: str
    reference: str
    ratio: str = "1"

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"rows": ("bench",)}
    EXAMPLE: ClassVar[str] = (
        BENCH_EXTRACT
        + """
[[gate]]
name = "floor"
kind = "floor"
rows = "bench"
convention = "conventional-intervals"
reference = "101.94172124017027"
ratio = "0.95"
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Recompute and compare."""
        source = evidence.one(self.rows, out)
        definition = definition_of(self.convention, evidence)
        if source is None:
            return out.done("")
        value = recompute(definition, rows_of(source))
        out.metrics.append(outcome_of(self.name, definition, value))
        say_failures(source, value, out)
        floor = float(self.reference) * float(self.ratio)
        if value.value is not None and value.value < floor:
            out.fail(
                "below-floor",
                f"{value.text} {value.unit} is below the floor: the speed is not reproduced",
                expected=f"at least {floor!r}",
                found=value.text,
            )
        return out.done(f"{value.text} {value.unit}, floor {floor!r} ({value.convention})")

    def idle_reason(self) -> str:
        """Say whether no number could be below the floor."""
        if not _DECIMAL.fullmatch(self.reference) or not _DECIMAL.fullmatch(self.ratio):
            return "its reference and ratio must be plain decimals"
        return "" if float(self.reference) * float(self.ratio) > 0 else "its floor is zero"


class Flat(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="acceptance-flat"):
    """Accepted draft tokens decay over positions; a curve that stays flat is an anomaly, and a warning.

    Attributes:
        counters: the later scrape.
        counter: counter of accepted tokens for each position.
        label: label of the position.
        ratio: largest share that the last position may keep of the first, as text.
        minimum: fewest accepted tokens at the first position for a judgement.
    """

    counters: str
    counter: str
    label: str = "position"
    ratio: str = "0.8"
    minimum: int = 100

    ADVISORY: ClassVar[bool] = True
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"counters": ("metrics",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "after"
kind = "metrics"
role = "run/metrics-after.prom"

[[gate]]
name = "acceptance decays"
kind = "acceptance-flat"
counters = "after"
counter = "engine:accepted_tokens_per_pos_total"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare the last position with the first."""
        source = evidence.one(self.counters, out)
        if source is None or not isinstance(source.reading, PrometheusResult):
            return out.done("")
        totals = by_label(source.reading.samples, self.counter, self.label)
        numbered = {
            int(name): total.value for name, total in totals.items() if name.isascii() and name.isdigit()
        }
        curve = [value for _, value in sorted(numbered.items()) if value is not None]
        facts = [
            Found(source, fact).used()
            for fact in source.facts
            if fact.key.startswith(f"prometheus.{self.counter}{{")
        ]
        if len(curve) < 2 or len(curve) != len(numbered):
            out.unknown("fact-absent", f"{source.place} has no whole curve of {self.counter}", facts=facts)
        elif curve[0] < self.minimum:
            out.unknown(
                "too-few", f"{curve[0]} accepted at the first position", expected=self.minimum, facts=facts
            )
        elif curve[-1] / curve[0] > float(self.ratio):
            out.warn(
                "acceptance-flat",
                f"{curve[0]} at the first position, {curve[-1]} at the last: nearly flat",
                expected=f"at most {self.ratio} of the first",
                found=repr(curve[-1] / curve[0]),
                facts=facts,
            )
        return out.done(f"accepted tokens by position: {', '.join(map(str, curve))}", facts)

    def idle_reason(self) -> str:
        """Say whether the ratio is no share."""
        good = _DECIMAL.fullmatch(self.ratio) and 0 < float(self.ratio) < 1
        return "" if good else "its ratio must lie between 0 and 1"


def check_convention(name: str, definitions: tuple[Definition, ...]) -> str:
    """Return why a policy cannot use this convention, or nothing."""
    try:
        conventions.find(name, (*definitions, *conventions.SHIPPED))
    except NotFoundError as error:
        return error.message
    return ""
