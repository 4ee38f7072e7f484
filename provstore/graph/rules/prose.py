"""Numbers that prose repeats: each must be a number of the data that the prose is about."""

import re
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Final, NamedTuple

from provstore.graph.rules.places import Place, decimal, walk

_NUMBER: Final = re.compile(
    r"(?<![\w.,/-])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<unit>\s?%|\s?tok/s|\s?ms\b|\s?GB\b|\s?GiB\b)?(?![\w])(?!\.\d)"
)

_LARGEST: Final = Decimal(10) ** 8
_DIGITS: Final = 17
"""Bounds within which every rounding stays inside the precision of a decimal."""

_LABEL: Final = re.compile(
    r"(?<!\w)(?P<prefix>[A-Z]{1,2})(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?!\w)"
)


class Said(NamedTuple):
    """A number in prose.

    Attributes:
        text: as it is written, with its unit.
        value: the number.
        digits: how many of them follow the point.
        percent: it is a part of a hundred.
    """

    text: str
    value: Decimal
    digits: int
    percent: bool


def numbers_said(text: str) -> list[Said]:
    """Return the numbers of a text that can only be data: with a unit, or long ones.

    Names of versions and counts are left alone.

    Example:
        >>> [said.text for said in numbers_said("Model 2.1 INT4: 125.46 tok/s, 11.36% of 18 rows, 64.012")]
        ['125.46 tok/s', '11.36%', '64.012']
    """
    found = []
    for match in _NUMBER.finditer(text[:20_000]):
        number, unit = match["number"], (match["unit"] or "").strip()
        digits = len(number.partition(".")[2])
        if digits < 3 and (unit not in ("%", "tok/s", "ms") or (digits == 0 and unit == "%")):
            continue
        value = Decimal(number.replace(",", ""))
        if value <= _LARGEST and digits <= _DIGITS:
            found.append(Said(match[0].strip(), value, digits, unit == "%"))
    return found


def label_numbers(text: str) -> list[tuple[str, Said]]:
    """Return the numbers of a label with the letters in front of them.

    Example:
        >>> [(prefix, said.text) for prefix, said in label_numbers("D96.548 · T69.937 · no stored lane")]
        [('D', 'D96.548'), ('T', 'T69.937')]
    """
    found = []
    for match in _LABEL.finditer(text[:2000]):
        number = match["number"]
        digits = len(number.partition(".")[2])
        found.append((match["prefix"], Said(match[0], Decimal(number.replace(",", "")), digits, False)))
    return found


def fits(said: Said, number: Decimal) -> bool:
    """Say whether a number, rounded as the prose rounds, is the one of the prose.

    A percentage may be a ratio in data.

    Example:
        >>> said = numbers_said("11.36%")[0]
        >>> fits(said, Decimal("0.11363636363636363")), fits(said, Decimal("0.1146"))
        (True, False)

    One digit says too little to be a rounding of anything, so it must be the number itself.
    """
    whole = len(said.value.as_tuple().digits) < 2
    if abs(number) > _LARGEST or said.digits > _DIGITS:
        return False
    return said.value in _readings(number, said.digits, said.percent, whole)


def _readings(number: Decimal, digits: int, percent: bool, whole: bool) -> list[Decimal]:
    """Return what prose may make of a number: itself, or rounded to some digits; as a percentage too."""
    readings = (number, number * 100) if percent else (number,)
    if whole:
        return list(readings)
    step = Decimal(1).scaleb(-digits)
    return [reading.quantize(step, way) for reading in readings for way in (ROUND_HALF_EVEN, ROUND_HALF_UP)]


class Known:
    """Numbers in which those of prose are looked up, however many there are.

    Args:
        numbers: all of them.
    """

    def __init__(self, numbers: Iterable[Decimal]) -> None:
        self.numbers = [number for number in numbers if abs(number) <= _LARGEST]
        self._rounded: dict[tuple[int, bool, bool], set[Decimal]] = {}

    def fit(self, said: Said) -> bool:
        """Say whether one of the numbers is the one of the prose; see :func:`fits`."""
        if said.digits > _DIGITS:
            return False
        key = (said.digits, said.percent, len(said.value.as_tuple().digits) < 2)
        if key not in self._rounded:
            self._rounded[key] = {value for number in self.numbers for value in _readings(number, *key)}
        return said.value in self._rounded[key]


def numbers_below(places: Iterable[Place]) -> list[Decimal]:
    """Return every number below some places, and the mean of every list of several numbers."""
    found: list[Decimal] = []
    for root in places:
        own = decimal(root.value)
        found += [] if own is None else [own]
        for _, place in walk(root):
            number = decimal(place.value)
            if number is not None:
                found.append(number)
            found += _means(place)
    return found


def _means(place: Place) -> Iterator[Decimal]:
    """Yield the mean of a list of numbers, and of each member of a list of objects."""
    columns: dict[str, list[Decimal]] = {}
    for item in place.elements():
        for name, member in [("", item), *item.members()]:
            number = decimal(member.value)
            if number is not None and abs(number) < _LARGEST:
                columns.setdefault(name, []).append(number)
    for numbers in columns.values():
        if len(numbers) > 1:
            yield sum(numbers, Decimal(0)) / len(numbers)
