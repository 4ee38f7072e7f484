"""Entries of the ledger: who was allowed to start what, what was started, how far it came, how it ended."""

from typing import Annotated, Final, Literal

import msgspec

from provstore.records.tree import Count

State = Literal[
    "created", "preflight-passed", "service-up", "first-request", "suite-complete", "judged", "sealed"
]
"""How far an attempt came. ``service-up`` may be left out where there is no service; a run may be judged and
sealed in either order, and also when it ended before its suite was complete."""

STATES: Final[tuple[State, ...]] = (
    "created",
    "preflight-passed",
    "service-up",
    "first-request",
    "suite-complete",
    "judged",
    "sealed",
)

Ending = Literal[
    "preflight-abort",
    "construction-failure",
    "infrastructure-invalid",
    "diagnostic-rejected",
    "failed-stop",
    "valid",
]
"""How an attempt ended. ``valid`` alone counts."""

Ruling = Literal["refuse", "ineligible"]
"""``refuse``: it does not happen. ``ineligible``: it happens and is noted; the attempt can never be valid."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Position = Annotated[int, msgspec.Meta(ge=1, le=(1 << 53) - 1)]


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What follows when an attempt breaks a rule of permission.

    Attributes:
        unauthorized: it names no authorization, or one that was given for something else.
        uncited: a score was seen in its line, and neither it nor its authorization cites that attempt and a
            reason.
        used_up: its authorization has no scored suite left when the first request is due.
        early_evidence: evidence of it is older than its authorization.
    """

    unauthorized: Ruling = "refuse"
    uncited: Ruling = "refuse"
    used_up: Ruling = "refuse"
    early_evidence: Ruling = "ineligible"


class Authorization(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="authorization",
):
    """Permission for a number of scored suites of one candidate, given before the run.

    Attributes:
        line: what is tried for; a score that was seen counts for all attempts of its line.
        policy: hex id of the object with the policy's bytes.
        candidate: what identifies the candidate, each part with its name: digests, commits, settings.
        suites: scored suites that it permits.
        given_by: who gave it.
        rules: what follows when a rule of permission is broken.
        cites: hex id of an earlier attempt whose score was seen.
        reason: why there is to be another one.
        documents: role to the hex id of an object: a preregistration, the recipe, the suite.
    """

    line: Name
    policy: str
    candidate: dict[str, str]
    suites: Position
    given_by: Name
    rules: Rules = Rules()
    cites: str | None = None
    reason: str = ""
    documents: dict[str, str] = {}


class Attempt(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="attempt",
):
    """One start, noted before anything is started; its state is ``created``.

    Attributes:
        line: what is tried for.
        candidate: as in an authorization; it may say more than its authorization does, never something else.
        authorization: hex id of the ledger entry that permits it; absent when nothing does.
        cites: hex id of an earlier attempt whose score was seen.
        reason: why there is another one.
        ineligible: codes of the rules that it breaks; it can never be valid.
        documents: role to the hex id of an object: the recipe, the suite.
        process: who makes it, such as boot id, process id and start time.
    """

    line: Name
    candidate: dict[str, str]
    authorization: str | None = None
    cites: str | None = None
    reason: str = ""
    ineligible: tuple[str, ...] = ()
    documents: dict[str, str] = {}
    process: str = ""


class Step(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="step",
):
    """An attempt came this far; noted before what it announces is done.

    Attributes:
        attempt: hex id of the attempt's entry.
        state: what it came to.
        requests: requests that were sent so far; absent when nobody counted.
        score: the score that was seen, as its source text.
        convention: how the score is counted.
        packet: hex id of the packet that it was sealed as.
        verdict: hex id of the verdict record that judged it.
        ineligible: codes of rules that are broken by going on; the attempt can never be valid.
        note: anything else worth telling, in words.
    """

    attempt: str
    state: State
    requests: Count | None = None
    score: str | None = None
    convention: str = ""
    packet: str | None = None
    verdict: str | None = None
    ineligible: tuple[str, ...] = ()
    note: str = ""


class Disposition(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="disposition",
):
    """How an attempt ended; nothing follows in it.

    Attributes:
        attempt: hex id of the attempt's entry.
        disposition: how it ended.
        reason: why.
        evidence: role of each piece of evidence to its time, in nanoseconds since 1970-01-01T00:00:00Z, as
            text.
        ineligible: codes of the rules that the evidence breaks.
    """

    attempt: str
    disposition: Ending
    reason: str = ""
    evidence: dict[str, str] = {}
    ineligible: tuple[str, ...] = ()


About = Authorization | Attempt | Step | Disposition


class LedgerEntry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="format",
    tag="provstore/ledger-entry/v1",
):
    """One entry of a ledger; it names the one before it, so that none can be left out unseen.

    Attributes:
        sequence: position in the ledger, from 1.
        previous: hex id of the entry before; absent in the first.
        taken_ns: nanoseconds since 1970-01-01T00:00:00Z, by the clock of the store's host, as text; never
            less than in the entry before.
        tool: name and version of the program.
        about: what it notes.
    """

    sequence: Position
    taken_ns: str
    tool: str
    about: About
    previous: str | None = None
