"""Small pieces of text: amounts, counts, short digests, columns."""

from collections.abc import Iterable, Sequence
from typing import Final

from provstore.reports.base import count as count

SHORT_HEX: Final = 12
"""Digits of a digest that people are shown where the whole one is not needed to act."""

NOT_STATED: Final = "-"
"""Stands for a value that nobody stated; never for zero or an empty text."""


def amount(size_bytes: int | None) -> str:
    """Return a number of bytes for people, in decimal units.

    Example:
        >>> amount(999), amount(1_234_567), amount(None)
        ('999 B', '1.2 MB', '-')
    """
    if size_bytes is None:
        return NOT_STATED
    if size_bytes < 1000:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} PB"


def short(digest: str | None) -> str:
    """Return the first digits of a digest.

    Example:
        >>> short("ab" * 32), short(None)
        ('abababababab', '-')
    """
    return NOT_STATED if digest is None else digest[:SHORT_HEX]


def columns(rows: Iterable[Sequence[str]], right: Iterable[int] = (), gap: str = "  ") -> list[str]:
    """Return rows as lines whose cells begin below each other.

    Args:
        rows: cells; all rows have as many.
        right: indexes of the columns that end below each other instead.
        gap: what stands between two columns.

    Example:
        >>> columns([("a", "10"), ("bcd", "9")], right=[1])
        ['a    10', 'bcd   9']
    """
    table = [tuple(row) for row in rows]
    if not table:
        return []
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    ends = set(right)
    lines = []
    for row in table:
        cells = [
            c.rjust(w) if at in ends else c.ljust(w)
            for at, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(gap.join(cells).rstrip())
    return lines


def indented(lines: Iterable[str], by: int = 2) -> list[str]:
    """Return lines with blanks before each.

    Example:
        >>> indented(["a"])
        ['  a']
    """
    return [" " * by + line for line in lines]
