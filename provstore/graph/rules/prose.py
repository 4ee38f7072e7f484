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
        found.append(Said(match[0].strip(), Decimal(number.replace(",", "")), digits, unit == "%"))
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
    if abs(number) > Decimal(10) ** 25 or said.digits > 30:
        return False
    if len(said.value.as_tuple().digits) < 2:
        return said.value in ((number, number * 100) if said.percent else (number,))
    step = Decimal(1).scaleb(-said.digits)
    readings = (number, number * 100) if said.percent else (number,)
    ways = (ROUND_HALF_EVEN, ROUND_HALF_UP)
    return any(said.value == reading.quantize(step, way) for reading in readings for way in ways)


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
            if number is not None and abs(number) < Decimal(10) ** 25:
                columns.setdefault(name, []).append(number)
    for numbers in columns.values():
        if len(numbers) > 1:
            yield sum(numbers, Decimal(0)) / len(numbers)
