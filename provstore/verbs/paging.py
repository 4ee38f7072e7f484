"""One page of an answer that may be long."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from provstore.errors import UsageError

_T = TypeVar("_T")

Limit = int | None
"""Most rows of a page; None for all."""


def page(
    rows: Iterable[_T], name: Callable[[_T], str], limit: Limit, after: str | None
) -> tuple[list[_T], str | None]:
    """Return one page of rows that come in a fixed order, and the name of its last row if there are more.

    Args:
        rows: all rows.
        name: tells rows apart.
        limit: most rows of the page; None for all.
        after: name of the row behind which it begins.

    Raises:
        UsageError: no row has the name ``after``, or the limit is no number of rows.
    """
    if limit is not None and limit < 1:
        raise UsageError("a page has at least one row")
    left = iter(rows)
    if after is not None and not any(name(row) == after for row in left):
        raise UsageError(f"--after {after[:80]!r}: this answer has no such row (any more)")
    taken = list(islice(left, limit))
    more = limit is not None and next(left, None) is not None
    return taken, name(taken[-1]) if more else None
