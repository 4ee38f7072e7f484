"""Metrics as data, recomputed from rows.

A definition says which events of which field bound the window, whether events or intervals are counted, how
rows are aggregated, and how far a stated value may lie off. Arithmetic is IEEE double, in the order that the
definition's :meth:`Definition.formula` shows, on doubles read from the source text; so equal input gives
equal bits. One row that fails leaves the metric without a value: a median over the other rows would be
another metric.
"""

import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from provstore.errors import MalformedError
from provstore.evidence.aggregation import Method, mean, median, percentile
from provstore.evidence.finding import Extraction, Finding
from provstore.evidence.jsonreader import ABSENT, Number, kind
from provstore.evidence.rows import Row

Aggregation = Literal["median", "mean", "class-balanced-median", "percentile", "single"]
"""How row values become one value.

``median``, ``mean``, ``percentile``: the functions of :mod:`provstore.evidence.aggregation`.
``class-balanced-median``: median of the medians of the classes. ``single``: the value of the only row.
"""

MAX_INDEX: Final = 10_000_000
"""Largest event index of a window."""

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_AMOUNT: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?")


class Window(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """First and last event of a window, counted from 0, both inside it."""

    first: int
    last: int

    @property
    def events(self) -> int:
        """How many events it holds: one more than intervals."""
        return self.last - self.first + 1


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a number means.

    Attributes:
        name: the convention; values of two names are never compared.
        unit: unit of the value, such as ``tok/s``.
        numerator: ``events`` or ``intervals`` of the window, or row fields that are summed.
        timing: row field with the timestamps of the events, in seconds; only with a window.
        window: the events that bound the span; None when ``per`` divides or nothing does.
        per: row field that divides.
        scale: factor of each row value, for units.
        aggregation: see :data:`Aggregation`.
        class_field: row field that names the class of a row.
        percentile: from 0 to 100 as decimal text, only for ``percentile``.
        method: how a percentile falls between two values.
        tolerance: largest absolute difference of a stated value, as decimal text; ``0`` means equal bits.
        minimum_rows: fewer rows give no value.

    Raises:
        MalformedError: members that do not fit together.
    """

    name: str
    unit: str
    numerator: Literal["events", "intervals"] | tuple[str, ...]
    timing: str = ""
    window: Window | None = None
    per: str = ""
    scale: int = 1
    aggregation: Aggregation = "median"
    class_field: str = "prompt_class"
    percentile: str = ""
    method: Method = "linear"
    tolerance: str = "0"
    minimum_rows: int = 1

    def __post_init__(self) -> None:
        for reason, wrong in _contradictions(self):
            if wrong:
                raise MalformedError(f"metric {self.name[:80]!r}", reason)

    def formula(self) -> str:
        """Return what is computed, for people.

        Example:
            >>> window = Window(first=0, last=99)
            >>> Definition(name="x", unit="tok/s", numerator="intervals", timing="t", window=window).formula()
            'median over rows of 99 / (t[99] - t[0])'
        """
        if self.window is not None:
            count = self.window.events - (self.numerator == "intervals")
            row = f"{count} / ({self.timing}[{self.window.last}] - {self.timing}[{self.window.first}])"
        else:
            row = " + ".join(self.numerator)
            if self.per:
                row = f"({row}) / {self.per}" if len(self.numerator) > 1 else f"{row} / {self.per}"
        row = row if self.scale == 1 else f"{row} * {self.scale}"
        name = f"{self.percentile}th percentile ({self.method})" if self.percentile else self.aggregation
        return f"{name} over rows of {row}"


class RowValue(msgspec.Struct, frozen=True, kw_only=True):
    """Value of one row; None when it has none, and then there is a finding at ``location``."""

    location: str
    value: float | None
    group: str = ""


class MetricValue(msgspec.Struct, frozen=True, kw_only=True):
    """A recomputed value with everything it came from.

    Attributes:
        convention: name of the definition.
        unit: its unit.
        value: the value, or None when there is a failure; never a value over the rows that were left.
        rows: the value of each row.
        classes: class and median of each class, by name, when classes are balanced.
        failures: why there is no value, one finding for each cause.
        notes: warnings that do not stop the value.
        derived_from: convention of the value that this one was converted from; empty when recomputed.
    """

    convention: str
    unit: str
    value: float | None
    rows: tuple[RowValue, ...] = ()
    classes: tuple[tuple[str, float], ...] = ()
    failures: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    derived_from: str = ""

    @property
    def text(self) -> str:
        """Shortest decimal text that reads back as the same double; empty when there is no value."""
        return "" if self.value is None else repr(self.value)


def definition_from(table: Mapping[str, Any], where: str) -> Definition:
    """Make a definition of a decoded TOML or JSON table.

    Raises:
        MalformedError: an unknown member, a wrong type, or members that do not fit together.

    Example:
        >>> definition_from({"name": "wall", "unit": "tok/s", "numerator": ["n"], "per": "s"}, "x").formula()
        'median over rows of n / s'
    """
    try:
        return msgspec.convert(table, Definition)
    except msgspec.ValidationError as error:
        raise MalformedError(where, str(error)) from error


def recompute(definition: Definition, rows: Sequence[Row]) -> MetricValue:
    """Compute a metric from rows.

    Args:
        definition: what to compute.
        rows: every row of the sample set, in any order.

    Returns:
        The value, or the failures that keep it from having one.

    Example:
        >>> definition = Definition(name="wall", unit="tok/s", numerator=("n",), per="s")
        >>> recompute(definition, [Row(location="/rows/0", fields={"n": 3, "s": 2})]).text
        '1.5'
        >>> recompute(definition, [Row(location="/rows/0", fields={"n": 3})]).failures[0].code
        'absent'
    """
    out = Extraction()
    notes = Extraction()
    values = tuple(_row_value(definition, row, out, notes) for row in rows)
    if len(rows) < definition.minimum_rows:
        out.finding("too-few-rows", "", f"{len(rows)} rows; at least {definition.minimum_rows} are needed")
    elif definition.aggregation == "single" and len(rows) != 1:
        out.finding("not-single", "", f"{len(rows)} rows; the definition is about exactly one")
    failures = out.findings()
    value, classes = (None, ()) if failures else _aggregate(definition, values)
    return MetricValue(
        convention=definition.name,
        unit=definition.unit,
        value=value,
        rows=values,
        classes=classes,
        failures=failures,
        notes=notes.findings(),
    )


def _row_value(definition: Definition, row: Row, out: Extraction, notes: Extraction) -> RowValue:
    group = ""
    if definition.aggregation == "class-balanced-median":
        label = row.get(definition.class_field)
        if isinstance(label, str) and label:
            group = label
        else:
            place = row.where(definition.class_field)
            out.finding("class-absent", place, f"the class of the row is {kind(label)}", "unknown")
    value = _rate(definition, row, out, notes)
    if value is not None:
        value = value * definition.scale if definition.scale != 1 else value
        if not math.isfinite(value):
            out.finding("non-finite", row.location, "the row gives no finite value")
            value = None
    return RowValue(location=row.location, value=value, group=group)


def _rate(definition: Definition, row: Row, out: Extraction, notes: Extraction) -> float | None:
    if definition.window is not None:
        span = _span(definition.timing, definition.window, row, out, notes)
        count = definition.window.events - (definition.numerator == "intervals")
        return None if span is None else count / span
    fields = [_number(row, name, out) for name in definition.numerator]
    total: int | float = 0
    for number in fields:
        if number is None:
            return None
        total += number
    if not definition.per:
        return _as_float(total)
    below = _number(row, definition.per, out)
    if below is None:
        return None
    if below <= 0:
        out.finding("nonpositive-span", row.where(definition.per), f"divides by {below!r}")
        return None
    try:
        return total / below
    except OverflowError:
        return math.inf


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _number(row: Row, name: str, out: Extraction) -> int | float | None:
    """Return a field that must be a number of at least zero; add the finding that says why it is none."""
    found = row.get(name)
    if type(found) is int or isinstance(found, Number):
        number = found.double if isinstance(found, Number) else found
        if number >= 0:
            return number
        out.finding("negative", row.where(name), f"{number!r} cannot be counted or timed")
    elif found is ABSENT or found is None:
        out.finding("absent", row.where(name), f"needed for the metric, is {kind(found)}", "unknown")
    else:
        out.finding("wrong-type", row.where(name), f"must be a number, is {kind(found)}")
    return None


def _span(timing: str, window: Window, row: Row, out: Extraction, notes: Extraction) -> float | None:
    """Return the seconds between the first and the last event of the window."""
    found = row.get(timing)
    place = row.where(timing)
    if found is ABSENT or found is None:
        out.finding("absent", place, f"no timestamps for the window, is {kind(found)}", "unknown")
        return None
    if not isinstance(found, list):
        out.finding("wrong-type", place, f"timestamps must be an array, not {kind(found)}")
        return None
    if len(found) <= window.last:
        out.finding("window-too-short", place, f"{len(found)} events; the window ends at index {window.last}")
        return None
    stamps: list[float] = []
    for index in range(window.first, window.last + 1):
        item = found[index]
        if isinstance(item, Number):
            stamps.append(item.double)
        elif type(item) is int and abs(item) < 1 << 53:
            stamps.append(float(item))
        else:
            out.finding("wrong-type", f"{place}/{index}", f"a timestamp must be a number, not {kind(item)}")
            return None
    span = stamps[-1] - stamps[0]
    if not span > 0.0:
        out.finding("nonpositive-span", place, f"the window spans {span!r} s")
        return None
    if any(map(operator.gt, stamps, stamps[1:])):
        notes.finding(
            "timestamps-decrease", place, "an event is stamped before the one it follows", "warning"
        )
    return span


def _aggregate(
    definition: Definition, rows: Sequence[RowValue]
) -> tuple[float | None, tuple[tuple[str, float], ...]]:
    values = [row.value for row in rows if row.value is not None]
    if definition.aggregation == "class-balanced-median":
        groups: dict[str, list[float]] = {}
        for row in rows:
            if row.value is not None:
                groups.setdefault(row.group, []).append(row.value)
        classes = tuple((name, median(members)) for name, members in sorted(groups.items()))
        return median([value for _, value in classes]), classes
    if definition.aggregation == "mean":
        return mean(values), ()
    if definition.aggregation == "percentile":
        return percentile(values, definition.percentile, definition.method), ()
    return (values[0] if definition.aggregation == "single" else median(values)), ()


def _contradictions(definition: Definition) -> list[tuple[str, bool]]:
    """Return each reason to refuse a definition, and whether it applies."""
    window = definition.window
    counted = isinstance(definition.numerator, str)
    percent = definition.percentile
    by_percentile = definition.aggregation == "percentile"
    return [
        ("its name must be lower-case words joined by -", not _NAME.fullmatch(definition.name)),
        ("it needs a unit", not definition.unit),
        ("events and intervals are counted in a window of a timing field, fields are not",
         counted != (window is not None) or counted != bool(definition.timing)),
        ("a window divides by its span, so `per` must be empty", window is not None and bool(definition.per)),
        (f"a window runs from 0 or later to a later index, at most {MAX_INDEX}",
         window is not None and not 0 <= window.first < window.last <= MAX_INDEX),
        ("its numerator names no field", not counted and not all(definition.numerator or ("",))),
        ("`percentile` goes with the aggregation of that name", by_percentile != bool(percent)),
        ("`percentile` must be a decimal from 0 to 100",
         bool(percent) and not (_AMOUNT.fullmatch(percent) and float(percent) <= 100.0)),
        ("`tolerance` must be a decimal of at least 0", not _AMOUNT.fullmatch(definition.tolerance)),
        ("`scale` and `minimum_rows` must be at least 1", min(definition.scale, definition.minimum_rows) < 1),
    ]  # fmt: skip
