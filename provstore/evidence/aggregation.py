"""How the values of rows become one; every function states its rule and gives equal bits for equal values."""

import math
from collections.abc import Sequence
from typing import Literal

Method = Literal["linear", "nearest-rank"]
"""How a percentile falls between two values; see :func:`percentile`."""


def median(values: Sequence[float]) -> float:
    """Return the middle value, or half the sum of the two middle ones.

    Args:
        values: at least one, finite, in any order.

    Example:
        >>> median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 3.0])
        (2.0, 2.5)
    """
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def mean(values: Sequence[float]) -> float:
    """Return the exactly rounded sum divided by the count, so that the order of the values has no effect.

    Example:
        >>> mean([0.1] * 10)
        0.1
    """
    return math.fsum(values) / len(values)


def percentile(values: Sequence[float], percent: str, method: Method) -> float:
    """Return a percentile under a named rule.

    Args:
        values: at least one, finite, in any order.
        percent: from 0 to 100, as decimal text.
        method: ``linear``: ``v[i] * (1 - f) + v[i+1] * f`` with ``i`` the whole part and ``f`` the rest of
            ``(n - 1) * (percent / 100)`` (Hyndman and Fan 1996, type 7; in this order of operations).
            ``nearest-rank``: the smallest value with at least ``percent`` of the values at or below it.

    Example:
        >>> percentile([1.0, 2.0, 3.0, 4.0], "50", "linear")
        2.5
        >>> percentile([1.0, 2.0, 3.0, 4.0], "50", "nearest-rank")
        2.0
    """
    ordered = sorted(values)
    share = float(percent) / 100.0
    if method == "nearest-rank":
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
    height = (len(ordered) - 1) * share
    low = min(int(height), len(ordered) - 1)
    high = min(low + 1, len(ordered) - 1)
    part = height - low
    return ordered[low] * (1 - part) + ordered[high] * part
