"""Text of what rules say about documents."""

from collections.abc import Iterator
from typing import Final

from provstore.report.text import count
from provstore.reports.checked import CheckedDocument, CheckFinding, CheckReport

_WORDS: Final = {"error": "FAIL", "warn": "WARN", "unknown": "UNKNOWN"}


def check_lines(report: CheckReport) -> Iterator[str]:
    """Yield every finding by document, then one line for each document, then the outcome."""
    by_document: dict[str, list[CheckFinding]] = {}
    for finding in report.findings:
        by_document.setdefault(finding.document, []).append(finding)
    for document in report.documents:
        for finding in by_document.get(document.path, ()):
            yield from _finding(finding)
    for document in report.documents:
        yield _document(document)
    if report.not_checked:
        yield f"{count(len(report.not_checked), 'file')} that no rule is for"
    if report.left_out:
        yield f"{count(report.left_out, 'finding')} more; those of one rule are the same kind"
    errors, warnings, unknowns = (
        sum(finding.severity == severity for finding in report.findings) for severity in _WORDS
    )
    said = f"{count(errors, 'error')}, {count(warnings, 'warning')}, {unknowns} undecided"
    yield f"{report.outcome}: {count(len(report.documents), 'document')}, {said}"


def _finding(finding: CheckFinding) -> Iterator[str]:
    by = "" if finding.code == finding.rule else f" by {finding.rule}"
    place = finding.location if finding.location.startswith("/") else f" {finding.location}".rstrip()
    yield f"{finding.outcome} {finding.code}{by} {finding.document}{'#' if place else ''}{place}"
    yield f"  {finding.message}"
    if finding.code != "evidence-absent":
        yield f"  expected {finding.expected or 'nothing'}; found {finding.found or 'nothing'}"


def _document(document: CheckedDocument) -> str:
    if not document.rules:
        return f"{document.path}: no rule is for this document"
    rules = count(document.rules, "rule")
    told = f"{count(document.errors, 'error')}, {count(document.warnings, 'warning')}"
    return f"{document.path}: {document.format}, {rules}: {told}, {document.unknowns} undecided"
