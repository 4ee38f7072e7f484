"""The gate that holds server counters against client rows: no warm-up, no retry, no cache."""

from typing import ClassVar, Final

import msgspec

from provstore.evidence.bench import BenchResult
from provstore.evidence.jsonreader import kind
from provstore.evidence.prometheus import by_label, total
from provstore.evidence.rows import Row
from provstore.gates.counters import Book
from provstore.gates.evidence import Evidence
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement


class SumRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a counter grew by is the sum of a row field; an empty field counts the rows.

    Attributes:
        counter: name of the counter.
        field: row field that is summed.
        labels: labels that its series must have.
        code: code of a difference.
    """

    counter: str
    field: str = ""
    labels: dict[str, str] = {}
    code: str = "counter-sum"


class ProductRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a counter grew by is a whole multiple of what another one did.

    Attributes:
        counter: the larger counter.
        of: the smaller one.
        times: the factor.
        code: code of a difference.
    """

    counter: str
    of: str
    times: int
    code: str = "counter-product"


class PartsRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The series of a counter, one for each value of a label, add up to another counter.

    Attributes:
        counter: the counter with parts.
        label: label that tells the parts apart.
        whole: the counter of the whole.
        parts: number of parts; 0 for any.
        code: code of a difference.
    """

    counter: str
    label: str
    whole: str
    parts: int = 0
    code: str = "counter-parts"


class ZeroRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A counter did not grow at all.

    Attributes:
        counter: name of the counter.
        labels: labels that its series must have.
        code: code of a growth.
    """

    counter: str
    labels: dict[str, str] = {}
    code: str = "counter-not-zero"


_PROCESS: Final = "process_start_time_seconds"


class Conservation(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="conservation"):
    """Server counters and client rows tell the same story: every token and request is accounted for.

    Both scrapes come from one process; counters that are summed were zero before the suite, so there was no
    warm-up; they grew by exactly what the rows state, so there was no retry and no other client.

    Attributes:
        before: scrape before the suite.
        after: scrape after it.
        rows: the benchmark.
        sums: counters that grow by the sum of a row field.
        products: counters that are multiples of others.
        parts: counters whose series add up.
        zeros: counters that must not grow.
        fresh: summed counters must be zero before.
        process: gauge that tells one process from another; empty to leave that out.
    """

    before: str
    after: str
    rows: str
    sums: tuple[SumRule, ...] = ()
    products: tuple[ProductRule, ...] = ()
    parts: tuple[PartsRule, ...] = ()
    zeros: tuple[ZeroRule, ...] = ()
    fresh: bool = True
    process: str = _PROCESS

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {
        "before": ("metrics",),
        "after": ("metrics",),
        "rows": ("bench",),
    }
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "before"
kind = "metrics"
role = "run/metrics-before.prom"

[[extract]]
name = "after"
kind = "metrics"
role = "run/metrics-after.prom"

[[extract]]
name = "bench"
kind = "bench"
role = "run/bench.json"

[[gate]]
name = "counters"
kind = "conservation"
before = "before"
after = "after"
rows = "bench"
sums = [
  { counter = "engine:prompt_tokens_total", field = "prompt_tokens", code = "extra-prompt" },
  { counter = "engine:request_success_total", code = "request-count" },
]
products = [{ counter = "engine:draft_tokens_total", of = "engine:drafts_total", times = 11 }]
parts = [{ counter = "engine:accepted_per_pos_total", label = "position", whole = "engine:accepted_total" }]
zeros = [{ counter = "engine:prefix_cache_hits_total", code = "cache-reuse" }]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Check every rule."""
        first, last = evidence.one(self.before, out), evidence.one(self.after, out)
        bench = evidence.one(self.rows, out)
        if first is None or last is None or bench is None:
            return out.done("")
        rows = bench.reading.rows if isinstance(bench.reading, BenchResult) else ()
        if not rows:
            out.unknown("rows-absent", f"{bench.place} has no rows")
        book = Book(first, last)
        for source in (first, last):
            out.readings(source.place, source.object, source.findings)
        self._process(book, out)
        said = [f"{rule.counter} = {self._sum(rule, book, rows, out)}" for rule in self.sums]
        said += [f"{rule.counter} = {self._product(rule, book, out)}" for rule in self.products]
        said += [f"{rule.whole} = {self._parts(rule, book, out)}" for rule in self.parts]
        for rule in self.zeros:
            grown = book.grown(rule.counter, rule.labels, out)
            if grown:
                out.fail(rule.code, f"{rule.counter} grew by {grown}", expected=0, found=grown,
                         facts=book.facts(rule.counter, rule.labels))  # fmt: skip
        said += [f"{rule.counter} = 0" for rule in self.zeros]
        counters = [rule.counter for rule in self.sums] + [rule.counter for rule in self.products]
        counters += [rule.counter for rule in self.zeros]
        facts = [fact for counter in dict.fromkeys(counters) for fact in book.facts(counter, {})]
        return out.done("; ".join(said), facts)

    def _process(self, book: Book, out: Findings) -> None:
        if not self.process:
            return
        times = [{s.text for s in side if s.name == self.process} for side in (book.before, book.after)]
        if not times[0] or not times[1]:
            out.unknown("process-absent", f"{self.process} is not in both scrapes", expected=self.process)
        elif times[0] != times[1]:
            out.fail(
                "process-changed",
                "the scrapes come from two processes",
                expected=", ".join(sorted(times[0])),
                found=", ".join(sorted(times[1])),
            )

    def _sum(self, rule: SumRule, book: Book, rows: tuple[Row, ...], out: Findings) -> int | None:
        grown = book.grown(rule.counter, rule.labels, out)
        wanted = len(rows)
        if rule.field:
            wanted = 0
            for row in rows:
                value = row.get(rule.field)
                if type(value) is not int:
                    out.unknown("field-absent", f"{row.where(rule.field)} is {kind(value)}, not an integer")
                    return grown
                wanted += value
        what = f"the rows' {rule.field}" if rule.field else "the rows"
        facts = book.facts(rule.counter, rule.labels)
        if grown is not None and grown != wanted:
            out.fail(rule.code, f"{rule.counter} grew by {grown}, {what} give {wanted}", expected=wanted,
                     found=grown, facts=facts)  # fmt: skip
        start = total(book.before, rule.counter, rule.labels).value
        if self.fresh and start:
            out.fail("not-fresh", f"{rule.counter} was {start} before the suite", expected=0, found=start,
                     facts=facts)  # fmt: skip
        return grown

    def _product(self, rule: ProductRule, book: Book, out: Findings) -> int | None:
        grown, base = book.grown(rule.counter, {}, out), book.grown(rule.of, {}, out)
        if grown is not None and base is not None and grown != base * rule.times:
            facts = (*book.facts(rule.counter, {}), *book.facts(rule.of, {}))
            out.fail(
                rule.code,
                f"{rule.counter} grew by {grown}, {rule.of} by {base}: not {rule.times} times",
                expected=base * rule.times,
                found=grown,
                facts=facts,
            )
        return grown

    def _parts(self, rule: PartsRule, book: Book, out: Findings) -> int | None:
        whole = book.grown(rule.whole, {}, out)
        found = by_label(book.after, rule.counter, rule.label)
        grown = [book.grown(rule.counter, {rule.label: part}, out) for part in found]
        facts = (*book.facts(rule.counter, {}), *book.facts(rule.whole, {}))
        if not found:
            out.unknown("fact-absent", f"no series of {rule.counter} by {rule.label}")
        elif rule.parts and len(found) != rule.parts:
            out.fail(
                rule.code,
                f"{len(found)} series of {rule.counter}",
                expected=rule.parts,
                found=len(found),
                facts=facts,
            )
        values = [value for value in grown if value is not None]
        if found and len(values) == len(grown) and whole is not None and sum(values) != whole:
            out.fail(
                rule.code,
                f"the parts of {rule.counter} give {sum(values)}, {rule.whole} grew by {whole}",
                expected=whole,
                found=sum(values),
                facts=facts,
            )
        return whole

    def idle_reason(self) -> str:
        """Say whether no rule could be broken."""
        if self.before == self.after:
            return "before and after are one scrape"
        if any(rule.times < 1 for rule in self.products):
            return "a factor is below one"
        if any(rule.counter == rule.of for rule in self.products):
            return "a counter is compared with itself"
        return "" if self.sums or self.products or self.parts or self.zeros else "it has no rule"
