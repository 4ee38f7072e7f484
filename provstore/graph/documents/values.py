"""Typed looks at values of documents: what has another type than the format says counts as not there."""

import re
from collections.abc import Iterator
from typing import Final

from provstore.canon import MAX_INTEGER
from provstore.evidence.jsonreader import ABSENT, Absent, Number, Value, child
from provstore.graph.statements import Scalar

HEX_40: Final = re.compile(r"[0-9a-f]{40}")
HEX_64: Final = re.compile(r"[0-9a-f]{64}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def text(item: dict[str, Value], name: str) -> str:
    """Return a member that is a text, or the empty text."""
    value = item.get(name)
    return value if isinstance(value, str) else ""


def part(item: dict[str, Value], name: str) -> dict[str, Value]:
    """Return a member that is an object, or an empty one."""
    value = item.get(name)
    return value if isinstance(value, dict) else {}


def parts(item: dict[str, Value], name: str, pointer: str = "") -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield pointer and value of each object in a member that is a list.

    Example:
        >>> list(parts({"rows": [{"n": 1}, 7]}, "rows"))
        [('/rows/0', {'n': 1})]
    """
    value = item.get(name)
    place = child(pointer, name)
    for index, found in enumerate(value if isinstance(value, list) else ()):
        if isinstance(found, dict):
            yield f"{place}/{index}", found


def texts(value: Value | Absent) -> list[str]:
    """Return a text as a list of one, the texts of a list, or nothing."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list):
        return [found for found in value if isinstance(found, str) and found]
    return []


def number(value: Value | Absent) -> str | None:
    """Return the source text of a number, or None.

    Example:
        >>> number(Number("1.10", 1.1)), number(7), number(True), number("7")
        ('1.10', '7', None, None)
    """
    if isinstance(value, Number):
        return value.text
    return str(value) if type(value) is int else None


def double(value: Value | Absent) -> float | None:
    """Return a number as the nearest double, or None when it is none or has none."""
    if isinstance(value, Number):
        return value.double
    if type(value) is not int or abs(value) > 1 << 1023:
        return None
    return float(value)


def scalar(value: Value | Absent) -> Scalar | None:
    """Return what can be a selector's value, or None; a number with a fraction is its source text.

    Example:
        >>> scalar(4), scalar(Number("0.8", 0.8)), scalar(False), scalar([1]), scalar(None)
        (4, '0.8', False, None, None)
    """
    if isinstance(value, str | bool):
        return value
    if type(value) is int:
        return value if -MAX_INTEGER <= value <= MAX_INTEGER else str(value)
    return value.text if isinstance(value, Number) else None


def scalars(value: Value | Absent) -> tuple[Scalar, ...]:
    """Return a scalar as a tuple of one, or the scalars of a list."""
    found = [scalar(item) for item in value] if isinstance(value, list) else [scalar(value)]
    return tuple(item for item in found if item is not None)


def selectors(item: dict[str, Value], *names: str) -> dict[str, Scalar]:
    """Return the scalar members with these names, or all scalar members; null is not stated."""
    found = {}
    for name in names or item:
        value = scalar(item.get(name, ABSENT))
        if value is not None:
            found[name] = value
    return found


def is_commit(value: Value | Absent) -> bool:
    """Say whether a value is a whole commit id."""
    return isinstance(value, str) and _COMMIT.fullmatch(value) is not None


def is_sha256(value: Value | Absent) -> bool:
    """Say whether a value is 64 lower-case hex digits."""
    return isinstance(value, str) and HEX_64.fullmatch(value) is not None
