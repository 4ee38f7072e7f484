"""What all reports share: the base of their structs, and the words for outcomes."""

from typing import Literal

import msgspec

Outcome = Literal["PASS", "FAIL", "UNKNOWN", "NOT-APPLICABLE", "INELIGIBLE", "WARN"]
"""Of one check. ``UNKNOWN`` means not checked: evidence absent or out of reach; it is never a pass."""

Verdict = Literal["PASS", "FAIL", "INCOMPLETE"]
"""Of a whole report: never better than its worst required check."""


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all reports."""


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Example:
        >>> count(1, "file"), count(2000, "file"), count(0, "entry", "entries")
        ('1 file', '2,000 files', '0 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
