"""Ledgers as files: one canonical entry a line, so that anybody can hash a line and follow the chain."""

from datetime import UTC, datetime
from typing import Final

from provstore import canon
from provstore.errors import MalformedError
from provstore.evidence.book import Book, Life, Permit
from provstore.evidence.documents import add_facts
from provstore.evidence.finding import Extraction, ReaderResult
from provstore.evidence.jsonreader import Value
from provstore.evidence.lines import text_lines
from provstore.ids import record_id
from provstore.records.ledger import LedgerEntry

PREFIX: Final = "ledger"


class LedgerReading(ReaderResult, frozen=True, kw_only=True):
    """A ledger, followed entry by entry.

    Attributes:
        tree: what it adds up to, as plain values.
    """

    tree: Value


def read_ledger(data: bytes) -> LedgerReading:
    r"""Follow a ledger from its first entry on; whatever breaks the chain or a rule is a finding.

    Example:
        >>> [(finding.code, finding.location) for finding in read_ledger(b"{}\n").findings]
        [('not-canonical', 'line 1')]
    """
    out = Extraction()
    book = Book()
    for number, line in text_lines(data, out):
        raw = line.encode()
        try:
            entry = canon.decode(raw, LedgerEntry, f"line {number}", bounded=True)
        except MalformedError as error:
            out.finding(error.code, f"line {number}", error.message)
            continue
        for objection in book.take(record_id("ledger-entry", raw).hex(), entry):
            out.finding(objection.code, f"line {number}", objection.message)
    tree = tree_of(book)
    add_facts(tree, PREFIX, "", out)
    return LedgerReading(facts=tuple(out.facts), findings=out.findings(), tree=tree)


def tree_of(book: Book) -> dict[str, Value]:
    """Return what a ledger adds up to, under the names that gates of permission look for."""
    attempts: list[Value] = []
    before: Value = None
    for life in book.lives.values():
        attempts.append(_attempt(life, before))
        before = life.id
    return {
        "entries": len(book.entries),
        "head": book.head,
        "authorizations": [_authorization(permit) for permit in book.permits.values()],
        "attempts": attempts,
    }


def _authorization(permit: Permit) -> dict[str, Value]:
    about = permit.about
    return {
        "id": permit.id,
        "created_at": stamp(permit.taken_ns),
        "line": about.line,
        "policy": about.policy,
        "suites": about.suites,
        "given_by": about.given_by,
        "candidate": {**about.candidate},
        "documents": {**about.documents},
        "cites": about.cites,
        "reason": about.reason or None,
    }


def _attempt(life: Life, before: Value) -> dict[str, Value]:
    about, ending = life.about, life.ending
    return {
        "id": life.id,
        "previous": before,
        "line": about.line,
        "authorization": about.authorization,
        "candidate": {**about.candidate},
        "cites": about.cites,
        "reason": about.reason or None,
        "started_at": stamp(life.taken_ns),
        "last_at": stamp(life.last_ns),
        "states": [*life.states],
        "reached": life.reached,
        "requests": life.sent,
        "score": life.score,
        "visible": life.visible,
        "disposition": ending.disposition if ending else None,
        "why": (ending.reason or None) if ending else None,
        "ineligible": [*life.ineligible],
        "packet": life.packet,
        "verdict": life.verdict,
    }


def stamp(taken_ns: int) -> str:
    """Return a time as text in UTC, to the microsecond.

    Example:
        >>> stamp(1785560400_123456789)
        '2026-08-01T05:00:00.123456Z'
    """
    seconds, rest = divmod(taken_ns, 1_000_000_000)
    whole = datetime.fromtimestamp(min(seconds, 253402300799), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{rest // 1000:06d}Z"
