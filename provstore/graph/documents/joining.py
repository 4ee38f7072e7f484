"""Conventions that one document tells of another's number, because both speak of the same run or file.

A number without a convention gets one only from a measurement that has one, has the same value, and is tied
to the same leaderboard run, or stands in the file that the number cites as its evidence. A value that is
shown with fewer digits is the same when it is the other rounded to them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from provstore.evidence import conventions
from provstore.graph.documents.naming import CONVENTIONAL, LEGACY, printed
from provstore.graph.statements import Measurement, Sample, Understood

RATE: Final = "decode_tok_s"
"""The metric that conventions differ in."""

_WINDOW: Final = conventions.find(CONVENTIONAL).window
_SPAN: Final = (
    Fraction(1)
    if _WINDOW is None
    else Fraction(_WINDOW.last - _WINDOW.first, _WINDOW.last - _WINDOW.first + 1)
)
"""Intervals over events of the window that the shipped conventions share."""


class Joined(NamedTuple):
    """A number whose convention is known by a join; see ``provstore.reports.imported.KnownConvention``."""

    measurement: str
    value: str
    location: str
    convention: str
    conventional: str
    source: str
    reason: str


class _Anchored(NamedTuple):
    """A measurement, and what it is tied to: nodes, written as text."""

    measurement: Measurement
    runs: frozenset[str]
    stands_in: str


class Conventions:
    """Collects measurements of documents and joins those that have a convention with those that have none."""

    def __init__(self) -> None:
        self._with: list[_Anchored] = []
        self._without: list[_Anchored] = []

    def add(self, understood: Understood) -> None:
        """Take in one document."""
        runs: dict[str, set[str]] = {}
        place = ""
        for edge in understood.relations:
            if edge.source.kind == "measurement" and edge.target.kind == "leaderboard-run":
                runs.setdefault(edge.source.key, set()).add(edge.target.key)
            elif edge.kind == "states":
                place = edge.source.key
        observed = {key: frozenset(found) for key, found in runs.items()}
        self.take(understood.statements.measurements, observed, place)

    def take(
        self, measurements: Iterable[Measurement], runs: Mapping[str, frozenset[str]], place: str
    ) -> None:
        """Take in the measurements of one document.

        Args:
            measurements: what it states.
            runs: leaderboard runs by key of the measurement that was observed there.
            place: key of the path node of the document.
        """
        for item in measurements:
            anchored = _Anchored(item, runs.get(item.key, frozenset()), place)
            (self._with if item.convention else self._without).append(anchored)

    def joined(self) -> Iterator[Joined]:
        """Yield every number that a join tells the convention of, in the order of the documents."""
        by_run: dict[str, list[_Anchored]] = {}
        by_file: dict[str, list[_Anchored]] = {}
        for anchored in self._with:
            for run in anchored.runs:
                by_run.setdefault(run, []).append(anchored)
            by_file.setdefault(anchored.stands_in, []).append(anchored)
        for item in self._without:
            for sample in item.measurement.samples:
                if sample.unit == "tok/s":
                    yield from _first(_matches(item, sample, by_run, by_file))


def _first(found: Iterable[Joined]) -> Iterator[Joined]:
    for one in found:
        yield one
        return


def _matches(
    item: _Anchored,
    sample: Sample,
    by_run: dict[str, list[_Anchored]],
    by_file: dict[str, list[_Anchored]],
) -> Iterator[Joined]:
    ties = [(f"leaderboard run {run}", by_run.get(run, ())) for run in sorted(item.runs)]
    ties += [(f"evidence {key}", by_file.get(key, ())) for key in item.measurement.evidence]
    for tie, candidates in ties:
        for other in candidates:
            told = _same(sample, other.measurement)
            if told:
                yield Joined(
                    measurement=item.measurement.key,
                    value=sample.value,
                    location=sample.location,
                    convention=other.measurement.convention,
                    conventional=_conventional(other.measurement, told),
                    source=other.measurement.key,
                    reason=_reason(tie, sample, other.measurement, told),
                )


def _reason(tie: str, sample: Sample, other: Measurement, told: Sample) -> str:
    how = "the same number" if told.value == sample.value else f"{told.value} with fewer digits"
    return f"both speak of {tie}; {how} stands at {told.location} of {other.key.rpartition('/')[0]}"


def _same(sample: Sample, other: Measurement) -> Sample | None:
    """Return the sample of another measurement that has the same value, printed alike or with more digits."""
    return next(
        (found for found in other.samples if found.metric == RATE and is_same(sample.value, found.value)),
        None,
    )


def is_same(short: str, long: str) -> bool:
    """Say whether a printed number is another one, or that rounded to as many digits.

    Example:
        >>> [is_same(short, "94.92003934159611") for short in ("94.9", "94.90", "95")]
        [True, False, False]
    """
    first, second = printed(short), printed(long)
    if first is None or second is None:
        return False
    if first == second:
        return True
    digits = len(short.partition(".")[2])
    if not digits or "e" in short.lower():
        return False
    scaled = second * 10**digits
    return first * 10**digits in (round(scaled), math.floor(scaled + Fraction(1, 2)))


def _conventional(measurement: Measurement, sample: Sample) -> str:
    """Return the value with intervals counted; the exact quotient, rounded to the nearest double."""
    value = printed(sample.value)
    if measurement.convention == CONVENTIONAL:
        return sample.value
    if measurement.convention != LEGACY or value is None:
        return ""
    return repr(float(value * _SPAN))
