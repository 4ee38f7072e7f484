"""Text of the ledger: what was permitted, what was tried, how far each attempt came."""

from collections.abc import Iterator

from provstore.paths import show
from provstore.report.text import NOT_STATED, columns, count, short
from provstore.reports.attempted import (
    AuthorizeReport,
    CandidateChange,
    LedgerCheckReport,
    LedgerCloseReport,
    LedgerExportReport,
    LedgerReport,
    ShownAttempt,
    ShownAuthorization,
)


def ledger_lines(report: LedgerReport) -> Iterator[str]:
    """Yield the ledger: authorizations, then attempts, each with what a reader must know.

    Example:
        >>> empty = LedgerReport(store="s", head=None, entries=0, authorizations=(), attempts=())
        >>> print(*ledger_lines(empty))
        s: the ledger is empty
    """
    if not report.entries:
        yield f"{report.store}: the ledger is empty"
        return
    yield f"{report.store}: {count(report.entries, 'entry', 'entries')}, head {report.head}"
    for permit in report.authorizations:
        yield ""
        yield from _authorization(permit)
    for attempt in report.attempts:
        yield ""
        yield from _attempt(attempt)


def _authorization(permit: ShownAuthorization) -> Iterator[str]:
    used = f"{permit.used} of {permit.suites} used, {permit.valid} valid"
    yield f"authorization {short(permit.id)}  {permit.time}  {show(permit.line)}  {used}"
    yield f"  by {show(permit.given_by)}, policy {short(permit.policy)}"
    yield from columns([(f"  {show(part)}", show(value)) for part, value in sorted(permit.candidate.items())])
    if permit.cites:
        yield f"  after attempt {short(permit.cites)}: {show(permit.reason)}"
    yield from _changes(permit.changes)


def _attempt(attempt: ShownAttempt) -> Iterator[str]:
    ended = attempt.disposition or f"not ended, came to {attempt.states[-1]}"
    yield f"attempt #{attempt.number} {short(attempt.id)}  {attempt.started}  {show(attempt.line)}  {ended}"
    score = NOT_STATED if attempt.score is None else show(attempt.score)
    seen = f"score {score}" if attempt.visible else "no score seen"
    yield f"  {', '.join(attempt.states)}; {count(attempt.requests, 'request')}; {seen}"
    permitted = f"authorization {short(attempt.authorization)}" if attempt.authorization else "not authorized"
    yield f"  {permitted}" + (f", packet {short(attempt.packet)}" if attempt.packet else "")
    if attempt.why:
        yield f"  because {show(attempt.why)}"
    if attempt.ineligible:
        yield f"  may not count: {', '.join(map(show, attempt.ineligible))}"
    if attempt.cites:
        yield f"  after attempt {short(attempt.cites)}: {show(attempt.reason)}"
    yield from _changes(attempt.changes)


def _changes(changes: tuple[CandidateChange, ...]) -> Iterator[str]:
    for change in changes:
        sides = [NOT_STATED if side is None else show(side) for side in (change.before, change.after)]
        yield f"  changed since: {show(change.part)} {sides[0]} -> {sides[1]}"


def authorize_lines(report: AuthorizeReport) -> Iterator[str]:
    """Yield the id of a new authorization, and nothing else."""
    yield report.authorization.id


def authorize_summary(report: AuthorizeReport) -> str:
    """Return what was authorized, as one note."""
    return "\n".join([f"entry {report.sequence}", *_authorization(report.authorization)])


def check_lines(report: LedgerCheckReport) -> Iterator[str]:
    """Yield one line for each thing that was looked at, then the outcome."""
    for check in report.checks:
        place = " ".join(part for part in (check.path, check.location) if part)
        code = "" if check.code == "ok" else f" [{check.code}]"
        yield f"{check.outcome}  {check.check}{f' {place}' if place else ''}: {check.message}{code}"
    for packet in report.packets:
        for attempt in packet.between:
            yield f"  before {packet.name or short(packet.packet)}: attempt {short(attempt)}"
    yield f"{report.outcome}  {count(report.entries, 'entry', 'entries')}, head {report.head or 'none'}"


def export_lines(report: LedgerExportReport) -> Iterator[str]:
    """Yield what was written."""
    yield f"{report.path}: {count(report.entries, 'entry', 'entries')}, head {report.head or 'none'}"


def close_lines(report: LedgerCloseReport) -> Iterator[str]:
    """Yield the attempt as it stands now."""
    yield from _attempt(report.attempt)
