"""What the name of a field says by itself: the unit of its number, and how its events were counted.

Only the name and numbers beside it are used, never prose. A convention that is named is believed only when
the numbers agree: values of two conventions of one window differ by the ratio of events to intervals.
"""

import re
from fractions import Fraction
from typing import Final

from provstore.errors import NotFoundError
from provstore.evidence import conventions
from provstore.evidence.jsonreader import Absent, Number, Value

LEGACY: Final = "legacy-inclusive-events"
CONVENTIONAL: Final = "conventional-intervals"

_EVENTS: Final = re.compile(r"(?:^|_)(\d+)_events?(?:_|$)")
_INTERVALS: Final = re.compile(r"(?:^|_)(\d+)_intervals?(?:_|$)")

_UNITS: Final = (
    (re.compile(r"tok_s(_|$)|(^|_)tps(_|$)"), "tok/s"),
    (re.compile(r"(^|_)ms(_|$)"), "ms"),
    (re.compile(r"_(percent|pct)$"), "%"),
    (re.compile(r"_rate(_|$)"), "ratio"),
    (re.compile(r"ttft_s(_|$)|_seconds$"), "s"),
    (re.compile(r"_bytes$"), "bytes"),
    (re.compile(r"_gb$"), "GB"),
)

DIGITS: Final = 12
"""Decimal digits to which two values have to agree after their counts are taken out: doubles have 15."""


def unit(name: str) -> str:
    """Return the unit that the name of a field ends in or holds, or the empty text.

    Example:
        >>> unit("conventional_p10_tok_s"), unit("ttft_median_ms"), unit("draft_cycles")
        ('tok/s', 'ms', '')
    """
    return next((found for pattern, found in _UNITS if pattern.search(name)), "")


def counted(name: str) -> tuple[str, int] | None:
    """Return convention and count that the name of a field states.

    Example:
        >>> counted("historical_100_event_metric_tok_s"), counted("decode_tok_s_99_interval_median")
        (('legacy-inclusive-events', 100), ('conventional-intervals', 99))
    """
    for pattern, convention in ((_EVENTS, LEGACY), (_INTERVALS, CONVENTIONAL)):
        match = pattern.search(name)
        if match and len(match[1]) < 10:
            return convention, int(match[1])
    return None


def shipped(name: str) -> str:
    """Return the full name of a shipped convention, or the empty text."""
    try:
        return conventions.find(name).name
    except NotFoundError:
        return ""


def exact(value: Value | Absent) -> Fraction | None:
    """Return the number that a source prints, exactly; None when it is none, or out of all proportion."""
    if type(value) is int:
        return Fraction(value)
    if isinstance(value, Number):
        return printed(value.text)
    return None


def printed(text: str) -> Fraction | None:
    """Return the number that a decimal text states, or None.

    Example:
        >>> printed("94.9"), printed("1e999999"), printed("x")
        (Fraction(949, 10), None, None)
    """
    match = _DECIMAL.fullmatch(text)
    if match is None or len(text) > 100 or abs(int(match[1] or 0)) > 400:
        return None
    return Fraction(text)


_DECIMAL: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE]([+-]?[0-9]{1,6}))?")


def close(left: Fraction, right: Fraction) -> bool:
    """Say whether two numbers are one double apart at most: they agree to :data:`DIGITS` digits.

    Example:
        >>> close(Fraction("101.94172124017027") * 100 / 99, Fraction("102.97143559613157"))
        True
    """
    return abs(left - right) * 10**DIGITS <= max(abs(left), abs(right))


def by_ratio(legacy: Fraction, conventional: Fraction, events: int, intervals: int) -> bool:
    """Say whether two values are one measurement under two conventions of the same window."""
    return 0 < intervals < events and close(legacy * intervals, conventional * events)
