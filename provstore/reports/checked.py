"""Result of checking documents by rules: every finding, and what could not be looked at."""

from typing import Literal

from provstore.reports.base import Outcome, Report, Verdict

FindingSeverity = Literal["error", "warn", "unknown"]
"""``error``: a rule does not hold; ``warn``: worth a look; ``unknown``: a rule could not look."""


class CheckFinding(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One place where a rule does not hold, or could not look.

    Attributes:
        code: what is wrong: the code of its rule; ``evidence-absent`` where the rule could not look; or
            one of the reader's codes such as ``duplicate-key``.
        severity: see :data:`FindingSeverity`.
        outcome: the same in the words of verdicts; ``INELIGIBLE`` where nothing is wrong with what was said
            and it may not be a headline all the same.
        rule: code of the rule.
        document: path of the document.
        location: JSON pointer (RFC 6901); empty for the whole document.
        expected: what the rule asks for.
        found: what is there.
        message: one sentence.
    """

    code: str
    severity: FindingSeverity
    outcome: Outcome
    rule: str
    document: str
    location: str
    message: str
    expected: str = ""
    found: str = ""


class CheckedDocument(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One document that was checked.

    Attributes:
        path: its path below the root.
        format: what it was recognised as; empty when no rule applies to it.
        rules: how many rules looked at it.
        errors, warnings, unknowns: how many findings of each severity.
    """

    path: str
    format: str
    rules: int
    errors: int
    warnings: int
    unknowns: int


class CheckReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What rules say about documents; nothing was written.

    Attributes:
        outcome: ``FAIL`` with an error, ``INCOMPLETE`` when some rule could not look, or nothing was
            looked at, else ``PASS``.
        documents: in the order they were given.
        findings: of all documents, in the order of the rules.
        not_checked: files that no rule is for; they were found below a directory.
        left_out: findings beyond those that are listed.
    """

    outcome: Verdict
    documents: tuple[CheckedDocument, ...]
    findings: tuple[CheckFinding, ...]
    not_checked: tuple[str, ...] = ()
    left_out: int = 0
