"""What two runs counted: Prometheus counters by how much they grew, logs by the facts in their lines."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from provstore.evidence.contrasting import Contrast, cut, plain, text_of
from provstore.evidence.finding import ReaderResult
from provstore.evidence.folding import passing
from provstore.evidence.prometheus import PrometheusResult, Sample
from provstore.records.facts import Fact
from provstore.reports import FactChange

_OWN_PROCESS: Final = ("process_", "python_")
"""Counters of a server about itself, which say nothing about its work."""


def contrast_scrapes(
    out: Contrast,
    a: tuple[PrometheusResult | None, PrometheusResult],
    b: tuple[PrometheusResult | None, PrometheusResult],
) -> None:
    """Compare counters: how much each grew between two scrapes, or its value where there is one scrape.

    Gauges and timings are states and spans of one moment, and counters of a server about itself say nothing
    about its work; none of them is compared.

    Args:
        out: receives what differs.
        a: scrapes before and after on the first side; None when the first side has no earlier one.
        b: the same of the second side.
    """
    grown = a[0] is not None and b[0] is not None
    sides = [_counters(*side) if grown else _counters(None, side[1]) for side in (a, b)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        x, y = sides[0].get(name), sides[1].get(name)
        if x != y:
            out.change(f"{'delta' if grown else 'value'}.{name}", x, y)


def _counters(before: PrometheusResult | None, after: PrometheusResult) -> dict[str, str]:
    earlier = None if before is None else {sample.series: sample.value for sample in before.samples}
    return {
        sample.series: _amount(sample, earlier)
        for sample in after.samples
        if _is_counter(sample) and math.isfinite(sample.value)
    }


def _is_counter(sample: Sample) -> bool:
    """Say whether a sample counts work; a scrape without types is judged by its names."""
    named = not sample.type and sample.name.endswith("_total")
    return (sample.type == "counter" or named) and not sample.name.startswith(_OWN_PROCESS)


def _amount(sample: Sample, earlier: Mapping[str, float] | None) -> str:
    """Return how much a counter grew, or its value; a counter that was reset or is new has no growth."""
    if earlier is None:
        return _number(sample.value)
    before = earlier.get(sample.series)
    if before is None:
        return f"{_number(sample.value)} with no earlier value"
    if sample.value < before:
        return f"{_number(sample.value)} after a reset"
    return _number(sample.value - before)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def contrast_logs(out: Contrast, a: ReaderResult, b: ReaderResult) -> None:
    """Compare logs by facts: counts of lines, and the values that a pattern finds, however often each."""
    sides = [_counted(side.facts) for side in (a, b)]
    for key in dict.fromkeys((*sides[0], *sides[1])):
        x, y = sides[0].get(key), sides[1].get(key)
        if x == y:
            continue
        texts = [None if found is None else _tally(found) for found in (x, y)]
        if x and y and all(passing(key, str(p), str(q)) for p, q in zip(x, y, strict=False)):
            out.folded.append(
                FactChange(
                    role=out.role, path=out.path, key=plain(key), from_=cut(texts[0]), to=cut(texts[1])
                )
            )
        else:
            out.change(key, texts[0], texts[1])


def _counted(facts: Iterable[Fact]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for fact in facts:
        # A matched text holds what its groups do not say, such as times; the groups are the facts.
        if fact.key.count(".") + fact.key.count("#") > 1 or "#lines" in fact.key:
            found.setdefault(fact.key, Counter())[text_of(fact)] += 1
    return found


def _tally(found: Counter[str]) -> str:
    return ", ".join(
        value if number == 1 else f"{number} x {value}" for value, number in sorted(found.items())
    )
