"""Authorizing, and looking at the ledger: list, check, export, end what was left open."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from provstore.errors import AmbiguousError, EmptyError, NotFoundError, UsageError
from provstore.evidence.book import Book, Life, Permit, difference
from provstore.evidence.ledger import read_ledger, stamp
from provstore.gates.policy import load_policy
from provstore.ids import RawId, digests, is_prefix
from provstore.paths import show
from provstore.records.ledger import Attempt, Authorization, Disposition, Ending
from provstore.reports.attempted import (
    AuthorizeReport,
    CandidateChange,
    LedgerCheckReport,
    LedgerCloseReport,
    LedgerPacket,
    LedgerReport,
    ShownAttempt,
    ShownAuthorization,
)
from provstore.reports.verified import Check
from provstore.runs.ledger import follow, note
from provstore.store import objects
from provstore.store.protocol import Reader, Store


def authorize(
    store: Store,
    policy: bytes,
    where: str,
    about: Mapping[str, object],
    documents: Mapping[str, bytes],
    *,
    tool: str = "provstore",
) -> AuthorizeReport:
    """Give an authorization; it is durable when this returns.

    Args:
        store: the store whose ledger it goes into.
        policy: bytes of the policy that the candidate is to be judged by; its rules of permission bind.
        where: what to call the policy in errors.
        about: fields of :class:`~provstore.records.ledger.Authorization` beside policy, rules and documents;
            ``line`` is the policy's name if it is not given, ``cites`` may be a prefix.
        documents: role to the bytes of what else it rests on.
        tool: name and version of the program.

    Raises:
        PolicyError: nothing can be judged by the policy.
        NotPermittedError: it cites what is no attempt, gives no reason, or names no candidate.
    """
    found = load_policy(policy, where)
    fields = {"line": found.name, **{key: value for key, value in about.items() if value is not None}}
    cites = fields.get("cites")
    if isinstance(cites, str):
        fields["cites"] = attempt_named(follow(store)[0], cites).id
    given = Authorization(
        **fields,  # type: ignore[arg-type]
        policy=digests(policy).blake3.hex(),
        rules=found.permission,
        documents={role: digests(data).blake3.hex() for role, data in documents.items()},
    )
    noted = note(store, given, (policy, *documents.values()), tool=tool)
    return AuthorizeReport(
        authorization=_authorization(noted.book, noted.book.permits[noted.id]), sequence=noted.entry.sequence
    )


def attempt_named(book: Book, name: str) -> Life:
    """Return the attempt of an id, an unambiguous prefix of 8 or more digits, or ``#N`` for the Nth.

    Raises:
        NotFoundError, AmbiguousError: none, or several.
    """
    if name.startswith("#") and name[1:].isdecimal():
        found = [life for life in book.lives.values() if str(life.number) == name[1:]]
    else:
        found = [life for id, life in book.lives.items() if is_prefix(name) and id.startswith(name)]
    if not found:
        raise NotFoundError(show(name), f"none of the {len(book.lives)} attempts of the ledger")
    if len(found) > 1:
        raise AmbiguousError(show(name), [life.id for life in found])
    return found[0]


def list_ledger(reader: Reader, line: str | None = None) -> LedgerReport:
    """Return everything that was permitted and tried; of one line if it is named.

    Raises:
        NotFoundError: nothing is of that line.
        StoreDamagedError, IntegrityError: the ledger is damaged.
    """
    book, _ = follow(reader)
    permits = [p for p in book.permits.values() if line in (None, p.about.line)]
    lives = [life for life in book.lives.values() if line in (None, life.about.line)]
    if line is not None and not (permits or lives):
        known = sorted({p.about.line for p in book.permits.values()})
        raise NotFoundError(
            show(line), f"no line of the ledger; there are {', '.join(map(show, known)) or 'none'}"
        )
    return LedgerReport(
        store=reader.where,
        head=book.head,
        entries=len(book.entries),
        authorizations=tuple(_authorization(book, permit) for permit in permits),
        attempts=tuple(_attempt(book, life) for life in lives),
    )


class Headed(NamedTuple):
    """A packet by the name that it was asked for, and the entry of the ledger that it names."""

    name: str
    id: RawId
    head: str | None


def headed(name: str, reader: Reader, packet: RawId) -> Headed:
    """Return which entry of a ledger a packet names.

    Raises:
        NotFoundError, IntegrityError, MalformedError: it is no packet here.
    """
    return Headed(name, packet, objects.packet(reader, packet).ledger)


def check_ledger(reader: Reader, packets: Sequence[Headed] | None = None) -> LedgerCheckReport:
    """Follow a ledger from its first entry, and find in it the entry that each packet names.

    Args:
        reader: the store.
        packets: packets to find; all that refs name if not given.

    Raises:
        StoreDamagedError, IntegrityError: the ledger cannot be read.
    """
    book, wrong = follow(reader)
    checks = [
        Check(check="ledger", outcome="FAIL", code=one.objection.code, role="ledger", path=one.id,
              location=f"entry {one.sequence}", message=one.objection.message)
        for one in wrong
    ]  # fmt: skip
    if book.entries and not wrong:
        message = f"{len(book.entries)} entries, unbroken"
        checks.append(Check(check="ledger", outcome="PASS", code="ok", role="ledger", message=message))
    if not book.entries:
        message = "the ledger is empty: nothing was looked at"
        checks.append(Check(check="ledger", outcome="UNKNOWN", code="empty", role="ledger", message=message))
    named = [headed(name, reader, id) for name, id in reader.refs()] if packets is None else packets
    found = list(_packets(book, named))
    checks += [_packet_check(one) for one in found]
    checks += [
        Check(check="packet", outcome="UNKNOWN", code="no-head", path=name or id.hex(),
              message="names no entry of a ledger")
        for name, id, head in named
        if head is None and packets is not None
    ]  # fmt: skip
    outcomes = {check.outcome for check in checks}
    return LedgerCheckReport(
        outcome="FAIL" if "FAIL" in outcomes else "INCOMPLETE" if "UNKNOWN" in outcomes else "PASS",
        head=book.head,
        entries=len(book.entries),
        checks=tuple(checks),
        packets=tuple(found),
    )


def _packets(book: Book, named: Sequence[Headed]) -> Iterator[LedgerPacket]:
    places = {id: number for number, id in enumerate(book.entries, 1)}
    once = {one.id: one for one in reversed(named)}.values()
    known = sorted((places.get(head, 0), name, id, head) for name, id, head in once if head is not None)
    before = 0
    for place, name, id, head in known:
        between = [life for life in book.lives if before < places[life] <= place]
        yield LedgerPacket(
            packet=id.hex(), name=name, head=head, sequence=place or None, between=tuple(between)
        )
        before = max(before, place)


def _packet_check(one: LedgerPacket) -> Check:
    if one.sequence is None:
        message = "names an entry that this ledger has not: entries were dropped, or it is of another ledger"
        return Check(check="packet", outcome="FAIL", code="head-unknown", path=one.name or one.packet,
                     found=one.head, message=message)  # fmt: skip
    message = f"names entry {one.sequence}; {len(one.between)} attempt(s) since the packet before"
    return Check(check="packet", outcome="PASS", code="ok", path=one.name or one.packet, message=message)


def check_file(data: bytes, where: str) -> LedgerCheckReport:
    """Follow a ledger that was exported."""
    found = read_ledger(data)
    tree = found.tree if isinstance(found.tree, dict) else {}
    head, entries = tree.get("head"), tree.get("entries")
    checks = [
        Check(check="ledger", outcome="UNKNOWN" if one.severity == "unknown" else "FAIL", code=one.code,
              role="ledger", path=show(where), location=one.location, message=one.message)
        for one in found.findings
    ]  # fmt: skip
    if not checks:
        message = f"{entries} entries, unbroken"
        checks = [Check(check="ledger", outcome="PASS", code="ok", path=show(where), message=message)]
    outcomes = {check.outcome for check in checks}
    return LedgerCheckReport(
        outcome="FAIL" if "FAIL" in outcomes else "INCOMPLETE" if "UNKNOWN" in outcomes else "PASS",
        head=head if isinstance(head, str) else None,
        entries=entries if isinstance(entries, int) else 0,
        checks=tuple(checks),
    )


def export_ledger(reader: Reader) -> bytes:
    """Return a whole ledger, one canonical entry a line.

    Raises:
        EmptyError: it has no entries.
        StoreDamagedError, IntegrityError: it is damaged.
    """
    lines = [objects.record(reader, id) + b"\n" for id in reader.ledger()]
    if not lines:
        raise EmptyError(f"ledger of {reader.where}")
    return b"".join(lines)


def close_attempt(
    store: Store, name: str, ending: Ending, reason: str, *, tool: str = "provstore"
) -> LedgerCloseReport:
    """End an attempt that nobody ended, as after a kill; never as valid.

    Raises:
        NotFoundError, AmbiguousError: it is none.
        NotPermittedError: it ended already, or cannot have ended so.
    """
    if ending == "valid":
        raise UsageError("an attempt is valid by its run, never by hand")
    life = attempt_named(follow(store)[0], name)
    noted = note(store, Disposition(attempt=life.id, disposition=ending, reason=reason), tool=tool)
    return LedgerCloseReport(attempt=_attempt(noted.book, noted.book.lives[life.id]))


def _changes(book: Book, about: Authorization | Attempt, cites: str | None) -> tuple[CandidateChange, ...]:
    earlier = book.lives.get(cites or "")
    if earlier is None:
        return ()
    found = difference(earlier.about.candidate, about.candidate)
    return tuple(
        CandidateChange(part=part, before=before or None, after=after or None)
        for part, (before, after) in found.items()
    )


def _authorization(book: Book, permit: Permit) -> ShownAuthorization:
    about = permit.about
    return ShownAuthorization(
        id=permit.id,
        time=stamp(permit.taken_ns),
        line=about.line,
        policy=about.policy,
        candidate=about.candidate,
        suites=about.suites,
        used=len(permit.spent),
        valid=len(permit.valid),
        given_by=about.given_by,
        cites=about.cites,
        reason=about.reason,
        documents=about.documents,
        changes=_changes(book, about, about.cites),
    )


def _attempt(book: Book, life: Life) -> ShownAttempt:
    about, ending = life.about, life.ending
    permit = book.permits.get(about.authorization or "")
    cites = about.cites or (permit.about.cites if permit else None)
    return ShownAttempt(
        id=life.id,
        number=life.number,
        line=about.line,
        authorization=about.authorization,
        candidate=about.candidate,
        started=stamp(life.taken_ns),
        last=stamp(life.last_ns),
        states=tuple(life.states),
        requests=life.sent,
        score=life.score,
        convention=life.convention,
        visible=life.visible,
        disposition=ending.disposition if ending else None,
        why=ending.reason if ending else "",
        ineligible=tuple(life.ineligible),
        cites=cites,
        reason=about.reason or (permit.about.reason if permit else ""),
        packet=life.packet,
        verdict=life.verdict,
        changes=_changes(book, about, cites),
    )
