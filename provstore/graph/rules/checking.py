"""Running rules over documents."""

from collections.abc import Sequence
from typing import Final

from provstore.evidence.finding import Finding, quoted
from provstore.evidence.jsonreader import DEFAULT_LIMITS, Limits, read
from provstore.graph.documents.page import is_page, page_values, parse_page
from provstore.graph.rules.formats import PAGE, format_of
from provstore.graph.rules.rule import Context, Document, Files, Rule, Violation
from provstore.graph.rules.table import RULES
from provstore.reports.base import Outcome, Verdict
from provstore.reports.checked import CheckedDocument, CheckFinding, CheckReport, FindingSeverity

READABLE: Final = "readable"
"""Rule of the findings that the reader of JSON makes, such as a key that is stated twice."""

MAX_FINDINGS: Final = 400
"""Findings of one rule in one document that are listed; one more is only counted."""

_OUTCOMES: Final[dict[FindingSeverity, Outcome]] = {"error": "FAIL", "warn": "WARN", "unknown": "UNKNOWN"}
_OF_READER: Final[dict[str, FindingSeverity]] = {"error": "error", "unknown": "unknown", "warning": "warn"}


def document_of(path: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> Document:
    """Return a document as rules see it; whatever is wrong with its bytes is among its findings.

    The page of a recipe is read back into the members of the recipe, with the table of speeds below
    ``/speed_sweeps``.

    Example:
        >>> document_of("a.json", b'{"format": "b70-model-package-v1", "format": 1}').findings[0].code
        'duplicate-key'
    """
    if is_page(data):
        recipe, sweeps = page_values(parse_page(data[: limits.bytes]))
        return Document(path, PAGE, {**recipe, "speed_sweeps": [*sweeps]})
    found = read(data, limits)
    return Document(path, format_of(found.value), found.value, found.findings)


def check(
    documents: Sequence[Document],
    files: Files,
    trusted: Sequence[str] = (),
    rules: Sequence[Rule] = RULES,
) -> CheckReport:
    """Hold documents to the rules of their formats.

    Args:
        documents: what to check; they also see each other.
        files: other files of the repository.
        trusted: see :class:`~provstore.graph.rules.rule.Context`.
        rules: which rules.

    Returns:
        Every finding, the same for the same documents.
    """
    context = Context({document.path: document for document in documents}, files, trusted)
    checked: list[CheckedDocument] = []
    findings: list[CheckFinding] = []
    left_out = 0
    for document in documents:
        mine = [_of_reader(finding, document) for finding in document.findings]
        applied = [one for one in rules if one.applies(document.format)]
        for one in applied:
            kept: dict[CheckFinding, None] = {}
            for violation in one.check(document, context):
                finding = _of_rule(violation, one, document)
                if len(kept) < MAX_FINDINGS:
                    kept[finding] = None
                elif finding not in kept:
                    left_out += 1
            mine += kept
        checked.append(_counted(document, mine, sum(document.format in one.formats for one in applied)))
        findings += mine
    return CheckReport(
        outcome=_verdict(checked, findings),
        documents=tuple(checked),
        findings=tuple(findings),
        left_out=left_out,
    )


def _verdict(checked: Sequence[CheckedDocument], findings: Sequence[CheckFinding]) -> Verdict:
    severities = {finding.severity for finding in findings}
    if "error" in severities:
        return "FAIL"
    looked = checked and all(document.rules for document in checked)
    return "PASS" if looked and "unknown" not in severities else "INCOMPLETE"


def _counted(document: Document, findings: Sequence[CheckFinding], rules: int) -> CheckedDocument:
    severities = [finding.severity for finding in findings]
    return CheckedDocument(
        path=document.path,
        format=document.format,
        rules=rules,
        errors=severities.count("error"),
        warnings=severities.count("warn"),
        unknowns=severities.count("unknown"),
    )


def _of_rule(violation: Violation, rule: Rule, document: Document) -> CheckFinding:
    severity = violation.severity or rule.severity
    return CheckFinding(
        code=violation.code or rule.code,
        severity=severity,
        outcome="INELIGIBLE" if violation.claim else _OUTCOMES[severity],
        rule=rule.code,
        document=document.path,
        location=quoted(violation.pointer, 1000)[1:-1],
        message=quoted(violation.message, 1000)[1:-1],
        expected=quoted(violation.expected, 400)[1:-1],
        found=quoted(violation.found, 400)[1:-1],
    )


def _of_reader(finding: Finding, document: Document) -> CheckFinding:
    severity = _OF_READER[finding.severity]
    return CheckFinding(
        code=finding.code,
        severity=severity,
        outcome=_OUTCOMES[severity],
        rule=READABLE,
        document=document.path,
        location=quoted(finding.location, 1000)[1:-1],
        message=finding.message,
    )
