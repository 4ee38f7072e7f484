"""Server counters between two scrapes, and the numbers that come from them alone."""

from typing import ClassVar

from provstore.evidence.metrics import recompute
from provstore.evidence.prometheus import PrometheusResult, Sample, Total, delta
from provstore.evidence.rows import Row
from provstore.gates.evidence import Evidence, Source
from provstore.gates.findings import Findings
from provstore.gates.identity import TOLERANCE
from provstore.gates.kinds import Gate
from provstore.gates.measure import compare_stated, definition_of, outcome_of, say_failures
from provstore.records.verdict import Judgement, UsedFact


class Book:
    """Two scrapes of one server."""

    def __init__(self, first: Source, last: Source) -> None:
        self._sources = (first, last)
        self.before: tuple[Sample, ...] = ()
        self.after: tuple[Sample, ...] = ()
        if isinstance(first.reading, PrometheusResult) and isinstance(last.reading, PrometheusResult):
            self.before, self.after = first.reading.samples, last.reading.samples

    def grown(self, counter: str, labels: dict[str, str], out: Findings) -> int | None:
        """Return how much a counter grew; says why there is no number."""
        found: Total = delta(self.before, self.after, counter, labels)
        last = self._sources[1]
        out.readings(last.place, last.object, found.findings)
        return found.value

    def facts(self, counter: str, labels: dict[str, str]) -> tuple[UsedFact, ...]:
        """Return mentions of the series of a counter in both scrapes."""
        found: list[UsedFact] = []
        for source, samples in zip(self._sources, (self.before, self.after), strict=True):
            for sample in samples:
                if sample.name == counter and all(sample.label(name) == labels[name] for name in labels):
                    found.append(
                        UsedFact(
                            place=source.place,
                            key=sample.series,
                            value=sample.text,
                            object=source.object,
                            location=sample.location,
                        )
                    )
        return tuple(found)


class CounterMetric(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="counter-metric"):
    """A number is recomputed from what counters grew by, such as the share of accepted draft tokens.

    Attributes:
        before: scrape before the suite.
        after: scrape after it.
        convention: name of the definition.
        fields: field of the definition, and the counter that gives it.
        stated: facts that state the value.
        tolerance: largest absolute difference, as text; empty for the definition's.
    """

    before: str
    after: str
    convention: str
    fields: dict[str, str]
    stated: tuple[str, ...] = ()
    tolerance: str = ""

    FACTS: ClassVar[tuple[str, ...]] = ("stated",)
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"before": ("metrics",), "after": ("metrics",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "before"
kind = "metrics"
role = "run/metrics-before.prom"

[[extract]]
name = "after"
kind = "metrics"
role = "run/metrics-after.prom"

[[gate]]
name = "acceptance"
kind = "counter-metric"
before = "before"
after = "after"
convention = "draft-acceptance"
fields = { accepted_tokens = "engine:accepted_total", draft_tokens = "engine:draft_tokens_total" }
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Recompute, then compare."""
        first, last = evidence.one(self.before, out), evidence.one(self.after, out)
        definition = definition_of(self.convention, evidence)
        if first is None or last is None:
            return out.done("")
        book = Book(first, last)
        grown = {field: book.grown(counter, {}, out) for field, counter in self.fields.items()}
        facts = [fact for counter in self.fields.values() for fact in book.facts(counter, {})]
        row = Row(location="", fields={field: value for field, value in grown.items() if value is not None})
        value = recompute(definition, [row])
        out.metrics.append(outcome_of(self.name, definition, value))
        say_failures(last, value, out)
        for reference in self.stated:
            found = evidence.only(reference, out)
            if found is not None:
                facts.append(found.used())
                compare_stated(found, reference, (value, self.tolerance or definition.tolerance), out)
        return out.done(f"{value.text} {value.unit} ({value.convention})", facts)

    def idle_reason(self) -> str:
        """Say whether it has nothing to compute from."""
        if self.tolerance and not TOLERANCE.fullmatch(self.tolerance):
            return f"its tolerance {self.tolerance!r} is no number from 0"
        return "" if self.fields and self.before != self.after else "it needs two scrapes and their counters"
