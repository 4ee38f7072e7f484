"""Places in the space of configurations: what a context says, and how near two places are.

A place is a set of dimensions with values. What a place does not state is unknown there, never equal.
"""

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from provstore.errors import UsageError
from provstore.graph.statements import Closure, Measurement, Scalar

_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")
_NUMBER: Final = re.compile(r"-?[0-9]{1,17}(?:\.[0-9]{1,17})?(?:[eE][-+]?[0-9]{1,3})?")

MAX_VALUE_CHARACTERS: Final = 2000
"""Longest value of a dimension."""


class Known(NamedTuple):
    """One dimension of a place.

    Attributes:
        value: what is stated.
        stated_by: hex id (BLAKE3) of the object or record that states it; empty for what was asked.
        location: where in there.
        others: other values that documents state for it; then nothing says which of them holds.
    """

    value: Scalar
    stated_by: str = ""
    location: str = ""
    others: tuple[Scalar, ...] = ()

    def values(self) -> tuple[Scalar, ...]:
        """Return every value that is stated."""
        return (self.value, *self.others)


Place = dict[str, Known]
"""Dimensions by name."""


class Gap(NamedTuple):
    """One dimension in which two places are not known to agree.

    Attributes:
        dimension: its name.
        here: value at the one place, None where that place does not state it.
        there: the same for the other.
    """

    dimension: str
    here: Scalar | None
    there: Scalar | None

    @property
    def differs(self) -> bool:
        """True if both places state it; else nothing is known of the difference."""
        return self.here is not None and self.there is not None


def scalar(text: str) -> Scalar:
    """Return the value that a person means by ``text``: a boolean, an integer, or the text itself.

    Example:
        >>> scalar("4"), scalar("true"), scalar("bfloat16"), scalar("0.80"), scalar("007")
        (4, True, 'bfloat16', '0.80', '007')
    """
    if text in ("true", "false"):
        return text == "true"
    return int(text) if _INTEGER.fullmatch(text) else text


def context(pairs: Iterable[str]) -> dict[str, Scalar]:
    """Return the dimensions that ``NAME=VALUE`` texts ask about.

    Raises:
        UsageError: no ``=``, an empty name or value, one name with two values, or a value that is too long.

    Example:
        >>> context(["cards=2", "kv=fp8"])
        {'cards': 2, 'kv': 'fp8'}
    """
    found: dict[str, Scalar] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals and value) or len(value) > MAX_VALUE_CHARACTERS:
            raise UsageError(f"--where {pair[:80]!r} needs the form NAME=VALUE")
        if found.setdefault(name, scalar(value)) != scalar(value):
            raise UsageError(f"--where {name} is given two values")
    return found


def equal(a: Scalar, b: Scalar) -> bool:
    """Say whether two values are the same; 1 is not true, and texts of one number are one value.

    Example:
        >>> equal(4, "4"), equal("0.80", "0.8"), equal(1, True), equal("bf16", "BF16")
        (True, True, False, False)
        >>> equal("12345678901234567", "12345678901234568"), equal("1e400", "2e400")
        (False, False)
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    if a == b:
        return True
    one, other = str(a), str(b)
    if one == other:
        return True
    return bool(_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)) and Decimal(one) == Decimal(other)


def gaps(here: Mapping[str, Known], there: Mapping[str, Known], names: Iterable[str]) -> tuple[Gap, ...]:
    """Return the dimensions among ``names`` in which two places are not known to agree, sorted by name.

    Example:
        >>> disputed = {"kv": Known("bf16", others=("fp8",))}
        >>> gaps(disputed, {"kv": Known("fp8")}, ["kv"])
        (Gap(dimension='kv', here=None, there='fp8'),)
        >>> gaps(disputed, {"kv": Known("int8")}, ["kv"])
        (Gap(dimension='kv', here='bf16', there='int8'),)
    """
    found = []
    for name in sorted(set(names)):
        a, b = here.get(name), there.get(name)
        if a is None or b is None:
            found.append(Gap(name, None if a is None else a.value, None if b is None else b.value))
        elif not any(equal(one, other) for one in a.values() for other in b.values()):
            found.append(Gap(name, a.value, b.value))
        elif a.others or b.others:
            found.append(Gap(name, None if a.others else a.value, None if b.others else b.value))
    return tuple(found)


def moved(here: Mapping[str, Known], asked: Mapping[str, Scalar]) -> Place:
    """Return the place that is like ``here`` but for what was asked."""
    return {**here, **{name: Known(value) for name, value in asked.items()}}


def covers(closure: Closure, place: Mapping[str, Known]) -> bool:
    """Say whether a place lies in the region of a closure: every selector is stated there and matches."""
    return bool(closure.selectors) and all(
        name in place and any(equal(place[name].value, value) for value in values)
        for name, values in closure.selectors.items()
    )


class Near(NamedTuple):
    """A measured point, with what keeps it from being the place that was asked about.

    Attributes:
        measurement: the point.
        point_x: source text of the place on its axis, for a series.
        differing: dimensions that differ.
        unstated: dimensions of the asked place that the point does not state.
    """

    measurement: Measurement
    point_x: str | None
    differing: tuple[Gap, ...]
    unstated: tuple[str, ...]


def nearest(
    place: Mapping[str, Known], measurements: Iterable[Measurement], asked: Iterable[str]
) -> Near | None:
    """Return the measured point that is nearest to a place; None when nothing was measured.

    Nearest is: fewest of the asked dimensions differing, where one that is not stated counts twice, then
    fewest of all dimensions differing, then the smallest ratio between the numbers of those that differ, then
    fewest unstated, then the key.
    """
    asked = set(asked)
    best: tuple[tuple[float, ...], str, Near] | None = None
    for measurement in measurements:
        for point_x, there in _points(measurement):
            found = gaps(place, there, place)
            differing = tuple(gap for gap in found if gap.differs)
            unstated = tuple(gap.dimension for gap in found if not gap.differs)
            missed = sum(1 if gap.differs else 2 for gap in found if gap.dimension in asked)
            far = sum(_distance(gap) for gap in differing)
            order = (float(missed), float(len(differing)), far, float(len(unstated)))
            near = Near(measurement, point_x, differing, unstated)
            if best is None or (order, measurement.key) < (best[0], best[1]):
                best = (order, measurement.key, near)
    return None if best is None else best[2]


def place_of(measurement: Measurement, stated_by: str = "") -> Place:
    """Return where a measurement was taken, without the place on its axis."""
    return {
        name: Known(value, stated_by, measurement.location) for name, value in measurement.selectors.items()
    }


def _points(measurement: Measurement) -> Iterable[tuple[str | None, Place]]:
    base = place_of(measurement)
    xs = dict.fromkeys(sample.point_x for sample in measurement.samples)
    if not measurement.axis or not any(x is not None for x in xs):
        return [(None, base)]
    return [(x, {**base, measurement.axis: Known(scalar(x))}) for x in xs if x is not None]


def _distance(gap: Gap) -> float:
    """Return how far two values are apart: by their ratio for positive numbers, else by 10."""
    here, there = str(gap.here), str(gap.there)
    if _NUMBER.fullmatch(here) and _NUMBER.fullmatch(there):
        a, b = float(here), float(there)
        if 0 < a < math.inf and 0 < b < math.inf:
            return abs(math.log2(a / b))
    return 10.0
