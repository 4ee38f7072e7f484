"""What all reports share: the base of their structs, and the words for outcomes."""

from typing import Literal

import msgspec

Outcome = Literal["PASS", "FAIL", "UNKNOWN", "NOT-APPLICABLE", "INELIGIBLE", "WARN"]
"""Of one check. ``UNKNOWN`` means not checked: evidence absent or out of reach; it is never a pass."""

Verdict = Literal["PASS", "FAIL", "INCOMPLETE"]
"""Of a whole report: never better than its worst required check."""


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all reports."""
