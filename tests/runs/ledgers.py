"""A ledger in memory, or a store of one's own, and short ways to write into it."""

from typing import Any, Final

from provstore.ids import digests
from provstore.records.ledger import Attempt, Authorization, Disposition, Ending, Rules, State, Step
from provstore.runs.ledger import DEFAULT_RULES, Noted, note
from provstore.store.protocol import Store

POLICY: Final = b"a policy\n"
POLICY_ID: Final = digests(POLICY).blake3.hex()
CANDIDATE: Final = {"engine": "a" * 40, "model": "b" * 40}

ALL: Final[tuple[State, ...]] = (
    "preflight-passed",
    "service-up",
    "first-request",
    "suite-complete",
    "judged",
    "sealed",
)


def permit(store: Store, **changes: Any) -> str:
    """Authorize one suite of the candidate; return the authorization's id."""
    given: dict[str, Any] = {
        "line": "decode",
        "policy": POLICY_ID,
        "candidate": CANDIDATE,
        "suites": 1,
        "given_by": "ann",
    }
    return note(store, Authorization(**(given | changes)), [POLICY]).id


def begin(store: Store, authorization: str | None, rules: Rules = DEFAULT_RULES, **changes: Any) -> str:
    """Open an attempt; return its id."""
    given = {"line": "decode", "candidate": CANDIDATE, "authorization": authorization}
    return note(store, Attempt(**(given | changes)), rules=rules).id


def go(store: Store, attempt: str, *states: State, **details: Any) -> None:
    """Take an attempt through states; details go to the last."""
    for state in states:
        more = details if state == states[-1] else {}
        note(store, Step(attempt=attempt, state=state, **more))


def end(store: Store, attempt: str, disposition: Ending, reason: str = "", **more: Any) -> Noted:
    """End an attempt."""
    given = "" if disposition == "valid" else reason or "it failed"
    return note(store, Disposition(attempt=attempt, disposition=disposition, reason=given, **more))


def valid(store: Store, authorization: str, score: str = "125.46", **changes: Any) -> str:
    """Make a whole attempt that counts."""
    attempt = begin(store, authorization, **changes)
    go(store, attempt, *ALL[:4], requests=13, score=score)
    go(store, attempt, *ALL[4:])
    end(store, attempt, "valid")
    return attempt
