"""Questions about what documents and packets state: by convention, by dimensions, over time."""

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from provstore.errors import UsageError
from provstore.graph.places import equal, scalar
from provstore.graph.statements import Lineup, Measurement, Sample, Scalar, Statements

Stated = Iterable[tuple[str, Statements]]
"""What documents state, each with the hex id of its object, or of the packet that states it."""

_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,3})?")
_CONDITION: Final = re.compile(r"([^=<>!]+)(>=|<=|!=|=|>|<)(.+)", re.DOTALL)

OWN_NAMES: Final = ("metric", "value", "unit", "convention", "state", "kind", "subject")
"""Names that a condition can have beside the dimensions of the space."""


class Said(NamedTuple):
    """One number, or one place in the space without any, as it is stated.

    Attributes:
        kind: ``claim``, ``measurement``, or the kind of a lineup's node.
        key: key of its node.
        subject: node that the document is about, as text.
        stated_by: hex id of the document's object, or of the packet.
        location: where in there.
        selectors: its place in the space.
        metric, value, unit, convention, state: of the number; empty where there is none.
        point_x: source text of the place on the axis of a series.
        date: when, as the document says.
        workload: the source's words.
        told: why the convention is known, where not this document but another tells it.
    """

    kind: str
    key: str
    subject: str
    stated_by: str
    location: str
    selectors: dict[str, Scalar]
    metric: str = ""
    value: str = ""
    unit: str = ""
    convention: str = ""
    state: str = ""
    point_x: str | None = None
    date: str = ""
    workload: str = ""
    told: str = ""

    def node(self) -> str:
        """Return its node as text."""
        return f"{self.kind}:{self.key}"


def said(stated: Stated) -> Iterator[Said]:
    """Yield every number that is stated, in the order of documents.

    What one file states in several places, a packet and a collection of files, is one statement: it comes
    under the name that sorts first.
    """
    seen: set[tuple[str, str, int]] = set()
    for id, statements in stated:
        for measurement in statements.measurements:
            for at, sample in enumerate(measurement.samples):
                place = id, measurement.location, at
                if place not in seen:
                    seen.add(place)
                    yield _said(id, statements, measurement, sample)


def lineups(stated: Stated) -> Iterator[Said]:
    """Yield every place in the space that something is said to stand at."""
    seen: set[tuple[str, str, str]] = set()
    for id, statements in stated:
        for lineup in statements.lineups:
            place = id, lineup.kind, lineup.location
            if place not in seen and lineup.selectors:
                seen.add(place)
                yield _lineup(id, statements, lineup)


def _said(id: str, statements: Statements, measurement: Measurement, sample: Sample) -> Said:
    of_packet = statements.subject_kind == "packet"
    selectors = measurement.selectors
    if sample.point_x is not None and measurement.axis:
        selectors = {**selectors, measurement.axis: scalar(sample.point_x)}
    return Said(
        kind="claim" if of_packet else "measurement",
        key=measurement.key,
        subject=f"{statements.subject_kind}:{statements.subject}",
        stated_by=id,
        location=sample.location or measurement.location,
        selectors=selectors,
        metric=sample.metric,
        value=sample.value,
        unit=sample.unit,
        convention=measurement.convention,
        state=measurement.state,
        point_x=sample.point_x,
        date=statements.date,
        workload=measurement.workload,
    )


def _lineup(id: str, statements: Statements, lineup: Lineup) -> Said:
    return Said(
        kind=lineup.kind,
        key=lineup.key,
        subject=f"{statements.subject_kind}:{statements.subject}",
        stated_by=id,
        location=lineup.location,
        selectors=lineup.selectors,
        state=lineup.status,
        date=statements.date,
    )


Told = dict[tuple[str, str, str], tuple[str, str]]
"""Convention, and why it is known, of numbers whose own document states none: by key of the measurement,
location and source text."""


def with_told(rows: Iterable[Said], told: Told) -> Iterator[Said]:
    """Yield numbers, those without a convention of their own with the one that another document tells."""
    for row in rows:
        found = None if row.convention else told.get((row.key, row.location, row.value))
        yield row if found is None else row._replace(convention=found[0], told=found[1])


def by_convention(rows: Iterable[Said], convention: str) -> Iterator[Said]:
    """Yield the numbers that are counted in a convention, as far as a document or a packet says so."""
    return (row for row in rows if row.convention == convention)


Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_COMPARE: Final[dict[str, Callable[[Fraction, Fraction], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class Condition(NamedTuple):
    """What one dimension must be."""

    name: str
    operator: str
    value: Scalar

    def holds(self, found: Scalar | None) -> bool:
        """Say whether a value fulfils the condition; what is not stated never does.

        Example:
            >>> at_least_two = condition("cards>=2")
            >>> [at_least_two.holds(value) for value in (4, "1", "2.0", "many", None)]
            [True, False, True, False, False]
        """
        if found is None:
            return False
        if self.operator == "=":
            return equal(found, self.value)
        if self.operator == "!=":
            return not equal(found, self.value)
        one, other = number(found), number(self.value)
        return one is not None and other is not None and _COMPARE[self.operator](one, other)


def number(value: Scalar) -> Fraction | None:
    """Return the exact number that a value is the text of, or None.

    Example:
        >>> number("0.10"), number(True), number("bf16")
        (Fraction(1, 10), None, None)
    """
    if isinstance(value, bool) or not _NUMBER.fullmatch(str(value)):
        return None
    return Fraction(str(value))


def condition(text: str) -> Condition:
    """Return the condition that ``NAME=VALUE`` says, or with ``!=``, ``<``, ``<=``, ``>``, ``>=`` for ``=``.

    Raises:
        UsageError: it has no such form, or compares with something that is no number.

    Example:
        >>> condition("kv=bfloat16")
        Condition(name='kv', operator='=', value='bfloat16')
    """
    found = _CONDITION.fullmatch(text)
    if found is None or len(text) > 2000:
        raise UsageError(
            f"--where {text[:80]!r} needs the form NAME=VALUE, or !=, <, <=, >, >= in place of ="
        )
    name, operator, value = found[1].strip(), found[2], scalar(found[3].strip())
    if operator in _COMPARE and number(value) is None:
        raise UsageError(f"--where {text[:80]!r} compares with {str(value)[:40]!r}, which is no number")
    return Condition(name, operator, value)


def select(stated: Callable[[], Stated], conditions: Iterable[Condition]) -> Iterator[Said]:
    """Yield packets, then measurements, of which every condition holds."""
    wanted = list(conditions)
    yield from _chosen(lineups(stated()), wanted)
    yield from _chosen(said(stated()), wanted)


def _chosen(found: Iterable[Said], conditions: list[Condition]) -> Iterator[Said]:
    for one in found:
        if all(condition.holds(_value(one, condition.name)) for condition in conditions):
            yield one


def _value(one: Said, name: str) -> Scalar | None:
    if name in one.selectors:
        return one.selectors[name]
    if name in OWN_NAMES:
        return str(getattr(one, name)) or None
    return None


class Point(NamedTuple):
    """A number in time.

    Attributes:
        said: the number.
        when: its date; empty when nothing says one.
        best: it is the greatest of its day, and greater than every earlier one, of its metric, unit,
            convention, workload and place in the space; None for one without a date, or that is no rate.
    """

    said: Said
    when: str
    best: bool | None


def timeline(found: Iterable[Said], when: Callable[[Said], str]) -> list[Point]:
    """Return numbers by metric, unit and convention, each in the order of time; those without a date last.

    Values of two conventions are never held against each other, and one whose convention nobody states is
    held against none but its like.
    """
    groups: dict[tuple[str, str, str], list[tuple[str, Said]]] = {}
    for one in found:
        groups.setdefault((one.metric, one.unit, one.convention), []).append((when(one), one))
    points = []
    for group in sorted(groups):
        rows = sorted(groups[group], key=lambda row: (not row[0], row[0], row[1].node(), row[1].location))
        best = _best(rows) if group[1].endswith("/s") else {}
        points += [Point(one, date, best.get(at)) for at, (date, one) in enumerate(rows)]
    return points


def _best(rows: list[tuple[str, Said]]) -> dict[int, bool]:
    """Say of each dated row whether it is over every earlier one of its place, and best of its day."""
    tops: dict[tuple[object, ...], dict[str, Fraction]] = {}
    values: dict[int, tuple[tuple[object, ...], str, Fraction]] = {}
    for at, (date, one) in enumerate(rows):
        value = number(one.value)
        if date and value is not None:
            place: tuple[object, ...] = (
                one.workload,
                *sorted((name, str(v)) for name, v in one.selectors.items()),
            )
            days = tops.setdefault(place, {})
            days[date] = max(value, days.get(date, value))
            values[at] = place, date, value
    found = {}
    for at, (place, date, value) in values.items():
        earlier = [top for day, top in tops[place].items() if day < date]
        found[at] = value == tops[place][date] and all(value > top for top in earlier)
    return found
