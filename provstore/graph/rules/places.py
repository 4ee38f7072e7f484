"""Places in a JSON document: a value with its pointer, and the questions that rules ask about values."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final, NamedTuple, TypeGuard

from provstore.evidence.finding import quoted
from provstore.evidence.jsonreader import ABSENT, Absent, Number, Spoiled, Value, child, kind

MAX_SHOWN: Final = 160
"""Characters of a value that a finding shows."""

SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
SELECTOR: Final = re.compile(r"[a-z][a-z0-9_]*")
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
SHA256: Final = re.compile(r"[0-9a-f]{64}")
DATE: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")


class Place(NamedTuple):
    """A value and where it lies.

    Attributes:
        pointer: JSON pointer (RFC 6901).
        value: what is there.

    Example:
        >>> Place("", {"rows": [{"id": "a"}]}).at("rows").objects()[0].at("id")
        Place(pointer='/rows/0/id', value='a')
    """

    pointer: str
    value: Value | Absent

    def at(self, *names: str) -> "Place":
        """Return the member below, through members that are objects; absent when there is none."""
        pointer, value = self
        for name in names:
            pointer = child(pointer, name)
            value = value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
        return Place(pointer, value)

    def elements(self) -> "list[Place]":
        """Return the elements of an array; none of anything else."""
        if not isinstance(self.value, list):
            return []
        return [Place(child(self.pointer, at), item) for at, item in enumerate(self.value)]

    def objects(self) -> "list[Place]":
        """Return the elements of an array that are objects."""
        return [item for item in self.elements() if isinstance(item.value, dict)]

    def members(self) -> "list[tuple[str, Place]]":
        """Return names and members of an object; none of anything else."""
        if not isinstance(self.value, dict):
            return []
        return [(name, Place(child(self.pointer, name), item)) for name, item in self.value.items()]

    @property
    def given(self) -> bool:
        """True if something other than null is there."""
        return self.value is not ABSENT and self.value is not None

    @property
    def text(self) -> str:
        """The string that is there; empty for anything else."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def said(self) -> bool:
        """True for a string with something else than blanks in it."""
        return bool(self.text.strip())


def walk(place: Place) -> Iterator[tuple[str, Place]]:
    """Yield every member below a place with its name; elements of an array have the name of the array.

    Example:
        >>> [name for name, _ in walk(Place("", {"a": [{"b": 1}], "c": 2}))]
        ['a', 'a', 'b', 'c']
    """
    todo = [("", place)]
    while todo:
        name, here = todo.pop()
        if here is not place:
            yield name, here
        below = [*here.members(), *((name, item) for item in here.elements())]
        todo += reversed(below)


def decimal(value: Value | Absent) -> Decimal | None:
    """Return a number exactly as it is written; None for anything that is no number.

    Example:
        >>> decimal(Number("1.50", 1.5)) == decimal(Number("1.5", 1.5)), decimal(True)
        (True, None)
    """
    if isinstance(value, Number):
        return Decimal(value.text)
    return Decimal(value) if type(value) is int else None


def double(value: Value | Absent) -> float | None:
    """Return a number as a double; None for no number, and for an integer that no double holds."""
    if isinstance(value, Number):
        return value.double
    if type(value) is not int or abs(value) > 10**300:
        return None
    return float(value)


def is_number(value: Value | Absent) -> bool:
    """Say whether a value is a number; a boolean is none."""
    return isinstance(value, Number) or type(value) is int


def is_count(value: Value | Absent, least: int = 1) -> bool:
    """Say whether a value is an integer of at least ``least``."""
    return type(value) is int and value >= least


def is_scalar(value: Value | Absent) -> TypeGuard[str | int | bool | Number]:
    """Say whether a value can be a selector: a non-empty string, a boolean or a number."""
    return isinstance(value, bool) or is_number(value) or (isinstance(value, str) and bool(value))


def same(one: Value | Absent, other: Value | Absent) -> bool:
    """Say whether two values are equal; numbers by value, and never equal to a boolean or a string.

    Example:
        >>> same(4, Number("4.0", 4.0)), same(1, True), same(ABSENT, ABSENT)
        (True, False, False)
    """
    if isinstance(one, Absent | Spoiled) or isinstance(other, Absent | Spoiled):
        return False
    if type(one) is int and type(other) is int:
        return one == other
    if is_number(one) and is_number(other):
        nearest = double(one), double(other)
        return decimal(one) == decimal(other) or (nearest[0] is not None and nearest[0] == nearest[1])
    return type(one) is type(other) and one == other


def sameness(value: Value | Absent) -> tuple[str, object]:
    """Return a key that plain values share exactly if they are the same; see :func:`same`.

    Example:
        >>> sameness(4) == sameness(Number("4.0", 4.0)), sameness(1) == sameness(True)
        (True, False)
    """
    if is_number(value):
        nearest = double(value)
        return "number", decimal(value) if nearest is None else nearest
    plain = isinstance(value, bool | str) or value is None
    return type(value).__name__, value if plain else id(value)


def shown(value: Value | Absent) -> str:
    """Return a value as a finding shows it: short, and safe for a terminal.

    Example:
        >>> shown(Number("1.10", 1.1)), shown("a"), shown(None), shown(ABSENT), shown([1, 2])
        ('1.10', 'a', 'null', 'absent', 'array of 2')
    """
    if isinstance(value, str):
        text = quoted(value, MAX_SHOWN)[1:-1]
        return text or "an empty string"
    if isinstance(value, list):
        return f"array of {len(value)}"
    if isinstance(value, dict):
        return f"object of {len(value)}"
    if isinstance(value, Number):
        return value.text if len(value.text) <= MAX_SHOWN else value.text[:MAX_SHOWN] + "…"
    if value is None or isinstance(value, Absent):
        return "null" if value is None else "absent"
    if isinstance(value, Spoiled):
        return f"no value ({value.code})"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def key_of(value: Value | Absent) -> str:
    """Return how a scalar is written in the key of a cell.

    Example:
        >>> key_of(4096), key_of(Number("0.50", 0.5)), key_of("Q8_0")
        ('4096', '0.5', 'Q8_0')
    """
    if isinstance(value, Number):
        return repr(value.double)
    return value if isinstance(value, str) else str(value)


def what(value: Value | Absent) -> str:
    """Return the kind of a value, with its article, for messages.

    Example:
        >>> what([]), what(ABSENT), what(3)
        ('an array', 'absent', 'an integer')
    """
    name = kind(value)
    if name in ("absent", "null", "spoiled"):
        return name
    return f"{'an' if name[0] in 'aio' else 'a'} {name}"
