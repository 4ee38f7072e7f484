"""Results of authorizing, and of looking at the ledger."""

from provstore.reports.base import Report, Verdict
from provstore.reports.verified import Check


class CandidateChange(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part in which two candidates differ; null where one of them does not name it."""

    part: str
    before: str | None
    after: str | None


class ShownAuthorization(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One authorization.

    Attributes:
        id: hex id of its entry.
        time: when it was given, in UTC.
        line: what is tried for.
        policy: hex id of the policy's bytes.
        candidate: what identifies the candidate.
        suites: scored suites that it permits.
        used: attempts that sent a request under it.
        valid: attempts under it that count.
        given_by: who gave it.
        cites: hex id of an earlier attempt.
        reason: why there is to be another one.
        documents: role to the hex id of an object.
        changes: how the candidate differs from that of the attempt that it cites.
    """

    id: str
    time: str
    line: str
    policy: str
    candidate: dict[str, str]
    suites: int
    used: int
    valid: int
    given_by: str
    cites: str | None
    reason: str
    documents: dict[str, str]
    changes: tuple[CandidateChange, ...] = ()


class ShownAttempt(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attempt, as far as it came.

    Attributes:
        id: hex id of its entry.
        number: its number among all attempts, from 1.
        line: what was tried for.
        authorization: hex id of what permitted it; null when nothing did.
        candidate: what identifies the candidate.
        started: when it was noted, in UTC.
        last: when the latest entry about it was made, in UTC.
        states: what it came to, in order.
        requests: requests that it sent at least.
        score: the score that was seen, as its source printed it; null when none was written down.
        convention: how the score is counted.
        visible: its score was seen, or all that it takes to compute one.
        disposition: how it ended; null while nobody said, as after a kill.
        why: the reason of its ending.
        ineligible: rules that it broke.
        cites: hex id of an earlier attempt.
        reason: why there was another one.
        packet: hex id of the packet that it was sealed as.
        verdict: hex id of the verdict that judged it.
        changes: how the candidate differs from that of the attempt that is cited.
    """

    id: str
    number: int
    line: str
    authorization: str | None
    candidate: dict[str, str]
    started: str
    last: str
    states: tuple[str, ...]
    requests: int
    score: str | None
    convention: str
    visible: bool
    disposition: str | None
    why: str
    ineligible: tuple[str, ...]
    cites: str | None
    reason: str
    packet: str | None
    verdict: str | None
    changes: tuple[CandidateChange, ...] = ()


class LedgerReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ledger: everything that was permitted and everything that was tried.

    Attributes:
        store: where it is.
        head: hex id of the newest entry; null for an empty ledger.
        entries: how many there are.
        authorizations: oldest first.
        attempts: oldest first.
    """

    store: str
    head: str | None
    entries: int
    authorizations: tuple[ShownAuthorization, ...]
    attempts: tuple[ShownAttempt, ...]


class AuthorizeReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new authorization.

    Attributes:
        authorization: what was given; its id is what an attempt names.
        sequence: position of its entry in the ledger.
    """

    authorization: ShownAuthorization
    sequence: int


class LedgerPacket(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A packet that names an entry of the ledger.

    Attributes:
        packet: hex id.
        name: a ref of it, or what it was called; empty for none.
        head: hex id of the entry that it names.
        sequence: position of that entry; null when it is none of this ledger.
        between: hex ids of the attempts that were opened after the packet before and up to this one.
    """

    packet: str
    name: str
    head: str
    sequence: int | None
    between: tuple[str, ...]


class LedgerCheckReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a ledger is whole, keeps its rules, and has every entry that packets name.

    Attributes:
        outcome: ``INCOMPLETE`` for an empty ledger: nothing was looked at.
        head: hex id of the newest entry.
        entries: how many were followed.
        checks: everything that was looked at.
        packets: packets that name an entry, in the order of those entries.
    """

    outcome: Verdict
    head: str | None
    entries: int
    checks: tuple[Check, ...]
    packets: tuple[LedgerPacket, ...] = ()


class LedgerExportReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ledger that was written to a file.

    Attributes:
        path: the file.
        head: hex id of the newest entry.
        entries: lines of the file.
        blake3: hex digest of the file.
    """

    path: str
    head: str | None
    entries: int
    blake3: str


class LedgerCloseReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attempt that was ended by hand, as it stands now."""

    attempt: ShownAttempt
