"""From a report to the exit code of the command; the only place where a verdict becomes a number."""

from typing import Final

from provstore.reports import DiffReport, FsckReport, RestoreReport, Verdict
from provstore.reports.asked import WhyReport

LOOKED: Final = 0
"""Everything required holds, or the command did what it was asked."""

NO: Final = 1
"""Looked, and the answer is no: verdict FAIL, sides differ, store damaged."""

UNDECIDED: Final = 3
"""Could not decide: something required was absent or out of reach."""

_OF_VERDICT: Final[dict[Verdict, int]] = {"PASS": LOOKED, "FAIL": NO, "INCOMPLETE": UNDECIDED}


def exit_code(report: object) -> int:
    """Return the exit code that a report stands for; a report without a verdict stands for 0.

    Example:
        >>> from provstore.reports import FsckReport, VerifyReport
        >>> exit_code(VerifyReport(packet="", outcome="INCOMPLETE", checks=()))
        3
        >>> exit_code(FsckReport(objects=1, records=1, bytes=9, damaged=()))
        0
    """
    verdict: Verdict | None = getattr(report, "outcome", None)
    if verdict is not None:
        return _OF_VERDICT[verdict]
    if isinstance(report, tuple):
        return _of_answers({getattr(item, "answer", "") for item in report})
    if isinstance(report, WhyReport):
        return LOOKED if report.connected else NO
    if isinstance(report, DiffReport):
        return LOOKED if report.same else NO
    if isinstance(report, FsckReport):
        return NO if report.damaged else LOOKED
    if isinstance(report, RestoreReport):
        return UNDECIDED if report.missing else LOOKED
    return LOOKED


def _of_answers(answers: set[str]) -> int:
    """Return the code of several answers of a scope question: one no is a no."""
    if "does-not-transfer" in answers:
        return NO
    return UNDECIDED if "unknown" in answers else LOOKED
