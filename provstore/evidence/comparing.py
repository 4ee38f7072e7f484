"""Comparing, ranking and converting metric values: only within one convention, or as a new derived value."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from provstore.errors import IncomparableError, MalformedError
from provstore.evidence.metrics import Definition, MetricValue, recompute
from provstore.evidence.rows import Row

_DECIMAL: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A stated value beside a recomputed one.

    Attributes:
        outcome: ``equal`` (within the tolerance), ``differs``, or ``unknown``: nothing to compare with.
        code: ``bit-equal``, ``within-tolerance``, ``not-bit-equal``, ``beyond-tolerance``, ``no-value``.
        stated: source text of the statement.
        recomputed: text of the recomputed value.
        difference: stated minus recomputed, in doubles; empty when unknown.
        tolerance: the tolerance that was applied.
    """

    outcome: Literal["equal", "differs", "unknown"]
    code: str
    stated: str
    recomputed: str
    difference: str
    tolerance: str


def compare(stated: str, convention: str, value: MetricValue, tolerance: str = "0") -> Comparison:
    """Compare a stated value with a recomputed one of the same convention.

    Args:
        stated: source text of the stated number.
        convention: convention that the statement names.
        value: what was recomputed.
        tolerance: largest absolute difference, as decimal text; ``0`` means equal bits.

    Raises:
        IncomparableError: the conventions differ.
        MalformedError: the statement or tolerance is no finite decimal number.

    Example:
        >>> value = MetricValue(convention="wall", unit="tok/s", value=0.1 + 0.2)
        >>> compare("0.3", "wall", value).code
        'not-bit-equal'
        >>> compare("0.3", "wall", value, "1e-12").code
        'within-tolerance'
    """
    if convention != value.convention:
        raise IncomparableError(
            convention, value.convention, "a statement in one is no statement in the other"
        )
    allowed = _double(tolerance, "tolerance")
    said = _double(stated, "stated value")
    if value.value is None:
        return _comparison("unknown", "no-value", stated, value, "", tolerance)
    off = said - value.value
    if off == 0.0:
        return _comparison("equal", "bit-equal", stated, value, "0", tolerance)
    if abs(off) <= allowed:
        return _comparison("equal", "within-tolerance", stated, value, repr(off), tolerance)
    code = "beyond-tolerance" if allowed else "not-bit-equal"
    return _comparison("differs", code, stated, value, repr(off), tolerance)


def conventions_giving(
    stated: str, rows: Sequence[Row], definitions: Iterable[Definition]
) -> tuple[str, ...]:
    """Return the conventions under which the rows give exactly the stated number.

    It tells a right number under a wrong name from a wrong number.
    """
    found = ((definition.name, recompute(definition, rows)) for definition in definitions)
    return tuple(name for name, value in found if value.value == _double(stated, "stated value"))


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How far a second value lies from a first one: absolute, and in percent of the first (None at zero)."""

    delta: float
    percent: float | None


def difference(first: MetricValue, second: MetricValue) -> Difference:
    """Return how the second value differs from the first.

    Raises:
        IncomparableError: other conventions or units, or one has no value.
    """
    before, after = _comparable(first, second)
    delta = after - before
    return Difference(delta=delta, percent=delta / before * 100.0 if before else None)


def rank(values: Sequence[MetricValue]) -> list[MetricValue]:
    """Return values from the highest to the lowest.

    Raises:
        IncomparableError: other conventions or units, or one has no value.
    """
    for other in values[1:]:
        _comparable(values[0], other)
    if values:
        _comparable(values[0], values[0])
    return sorted(values, key=lambda value: -(value.value or 0.0))


def convert(value: MetricValue, source: Definition, target: Definition) -> MetricValue:
    """Derive the value that the target convention gives for the same rows, by the ratio of their counts.

    It is a new value that names what it was derived from; its last bits can differ from a recomputed one.

    Raises:
        IncomparableError: the definitions differ in more than counting events or intervals, or no value.
    """
    name = (value.convention, target.name)
    if value.convention != source.name or value.value is None:
        raise IncomparableError(*name, "no value of the source convention")
    if source.window is None or target.window is None or not _count_apart_equal(source, target):
        raise IncomparableError(*name, "they differ in more than how the events of one window are counted")
    counts = [source.window.events - (each.numerator == "intervals") for each in (source, target)]
    factor = counts[1] / counts[0]
    return MetricValue(
        convention=target.name, unit=target.unit, value=value.value * factor, derived_from=source.name
    )


def _count_apart_equal(source: Definition, target: Definition) -> bool:
    """Say whether two windowed definitions differ in nothing but name, tolerance and what is counted."""
    renamed = msgspec.structs.replace(
        source, name=target.name, numerator=target.numerator, tolerance=target.tolerance
    )
    return renamed == target


def _comparable(first: MetricValue, second: MetricValue) -> tuple[float, float]:
    names = (first.convention, second.convention)
    if first.convention != second.convention or first.unit != second.unit:
        raise IncomparableError(*names, f"values in {first.unit} and {second.unit} under two conventions")
    if first.value is None or second.value is None:
        raise IncomparableError(*names, "one of them has no value")
    return first.value, second.value


def _comparison(
    outcome: Literal["equal", "differs", "unknown"],
    code: str,
    stated: str,
    value: MetricValue,
    off: str,
    tolerance: str,
) -> Comparison:
    return Comparison(
        outcome=outcome,
        code=code,
        stated=stated,
        recomputed=value.text,
        difference=off,
        tolerance=tolerance,
    )


def _double(text: str, where: str) -> float:
    if len(text) > 400 or not _DECIMAL.fullmatch(text) or math.isinf(float(text)):
        raise MalformedError(where, f"{text[:80]!r} is no finite decimal number")
    return float(text)
