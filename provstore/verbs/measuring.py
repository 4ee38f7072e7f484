"""Measuring: a number recomputed from one file under a named convention."""

from typing import Final

from provstore.errors import MalformedError
from provstore.evidence import conventions
from provstore.evidence.bench import read_bench
from provstore.evidence.finding import Finding
from provstore.evidence.metrics import Definition, recompute
from provstore.evidence.rows import Row, from_log
from provstore.paths import show
from provstore.reports import MetricsReport, RowShown

MAX_FILE_BYTES: Final = 64 << 20
"""Largest file that is read."""


def measure(data: bytes, where: str, definition: Definition) -> MetricsReport:
    """Recompute a number from a benchmark, or from a raw log with one timestamp in seconds a line.

    Args:
        data: the file.
        where: what it is called.
        definition: what to compute.

    Raises:
        MalformedError: the file is neither, or too large.
    """
    if len(data) > MAX_FILE_BYTES:
        raise MalformedError(where, f"{len(data)} bytes; at most {MAX_FILE_BYTES} are read")
    rows, findings = _rows(data, where, definition)
    value = recompute(definition, rows)
    found = (*findings, *value.failures)
    undecided = all(finding.severity == "unknown" for finding in found)
    return MetricsReport(
        path=show(where),
        convention=definition.name,
        unit=definition.unit,
        value=value.text or None,
        formula=definition.formula(),
        outcome="PASS" if value.value is not None else "INCOMPLETE" if undecided else "FAIL",
        rows=tuple(
            RowShown(location=row.location, value=None if row.value is None else repr(row.value))
            for row in value.rows
        ),
        findings=tuple(_said(finding) for finding in (*found, *value.notes)),
    )


def _rows(data: bytes, where: str, definition: Definition) -> tuple[tuple[Row, ...], tuple[Finding, ...]]:
    """Return the rows of a benchmark or of a raw log, and what kept them from being rows."""
    if data.lstrip()[:1] in (b"{", b"["):
        read = read_bench(data)
        if read.rows:
            return read.rows, ()
        return (), tuple(f for f in read.findings if f.severity != "warning")
    if not definition.timing:
        reason = (
            f"convention {definition.name} needs rows with {', '.join(definition.numerator)}; this is no JSON"
        )
        raise MalformedError(where, reason)
    log = from_log(data, definition.timing)
    if log.findings and not log.rows:
        first = log.findings[0]
        raise MalformedError(where, f"{first.location or 'the file'}: {first.message}")
    return log.rows, log.findings


def _said(finding: Finding) -> str:
    at = f" at {finding.location}" if finding.location else ""
    return f"{finding.code}{at}: {finding.message}"


def convention(name: str) -> Definition:
    """Return a shipped definition.

    Raises:
        NotFoundError: there is none of this name; the message lists those that there are.
    """
    return conventions.find(name)
