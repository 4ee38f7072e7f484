"""A preflight as text: one table of what does not hold."""

from collections.abc import Iterator

from provstore.report.text import columns, count, indented
from provstore.reports.prepared import PreflightReport


def preflight_lines(report: PreflightReport) -> Iterator[str]:
    """Yield the outcome, then every blocker with what to do about it.

    Example:
        >>> report = PreflightReport(recipe="r", sha256="", host="/", outcome="PASS", checked=3, blockers=(),
        ...     variables={})
        >>> print(*preflight_lines(report))
        PASS  r on /: 3 things checked, 0 blockers
    """
    blocked = count(len(report.blockers), "blocker")
    checked = count(report.checked, "thing")
    yield f"{report.outcome}  {report.recipe} on {report.host}: {checked} checked, {blocked}"
    if not report.blockers:
        return
    rows = [("role", "expected", "found", "where", "remedy")]
    rows += [
        (one.role, _cut(one.expected), _cut(one.found), one.where, one.remedy) for one in report.blockers
    ]
    yield from indented(columns(rows))


def _cut(text: str, most: int = 64) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
