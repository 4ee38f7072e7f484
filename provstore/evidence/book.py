"""What the entries of a ledger add up to, and what the next entry may not say; pure.

The same rules are asked before an entry is written and whenever a ledger is read: a rule of permission that
the policy lets pass must stand in the entry as a reason why its attempt can never be valid.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from provstore.errors import DigestError
from provstore.ids import to_raw
from provstore.records.ledger import (
    STATES,
    Attempt,
    Authorization,
    Disposition,
    Ending,
    LedgerEntry,
    Rules,
    State,
    Step,
)

RULE_OF: Final = {
    "unauthorized-start": "unauthorized",
    "uncited-start": "uncited",
    "authorization-used-up": "used_up",
    "pre-authorization": "early_evidence",
}
"""Codes of the rules of permission, and the member of :class:`Rules` that says what follows."""

MAX_NS_DIGITS: Final = 19

_ANY_TIME: Final[tuple[State, ...]] = ("judged", "sealed")
_IN_ORDER: Final = tuple(state for state in STATES if state not in _ANY_TIME)


class Objection(NamedTuple):
    """Something that keeps an entry from being what it says.

    Attributes:
        code: stable name; one of :data:`RULE_OF` where a policy decides what follows.
        message: one sentence.
    """

    code: str
    message: str


class Permit:
    """An authorization and what became of it.

    Attributes:
        id: hex id of its entry.
        about: what it permits.
        taken_ns: when it was given.
        spent: attempts that sent a request under it.
        valid: attempts under it that count.
    """

    def __init__(self, id: str, about: Authorization, taken_ns: int) -> None:
        self.id = id
        self.about = about
        self.taken_ns = taken_ns
        self.spent: list[str] = []
        self.valid: list[str] = []


class Life:
    """One attempt, as far as it came.

    Attributes:
        id: hex id of its entry.
        number: its number among all attempts, from 1.
        about: what was noted before it began.
        taken_ns: when.
        states: what it came to, in the order in which it did.
        requests: requests that were sent; None when none is known of.
        score: the score that was seen last.
        ending: how it ended; None while nobody said.
        ineligible: codes of the rules that it broke.
        packet: hex id of the packet that it was sealed as.
        verdict: hex id of the verdict that judged it.
        last_ns: when the latest entry about it was made.
    """

    def __init__(self, id: str, number: int, about: Attempt, taken_ns: int) -> None:
        self.id = id
        self.number = number
        self.about = about
        self.taken_ns = self.last_ns = taken_ns
        self.states: list[State] = ["created"]
        self.requests: int | None = None
        self.score: str | None = None
        self.convention = ""
        self.ending: Disposition | None = None
        self.ineligible: list[str] = list(about.ineligible)
        self.packet: str | None = None
        self.verdict: str | None = None

    @property
    def reached(self) -> State:
        """The furthest state, judging and sealing left out."""
        return next(state for state in reversed(self.states) if state in _IN_ORDER)

    @property
    def visible(self) -> bool:
        """True when its score was seen, or all that it takes to compute one."""
        return self.score is not None or "suite-complete" in self.states

    @property
    def sent(self) -> int:
        """Requests that it sent at least."""
        return max(self.requests or 0, int("first-request" in self.states))


class Book:
    """A ledger, read entry by entry.

    Attributes:
        entries: hex ids, oldest first.
        sequence: position that the newest entry states.
        permits: authorizations by hex id.
        lives: attempts by hex id, oldest first.
        last_ns: when the newest entry was made.
    """

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.sequence = 0
        self.permits: dict[str, Permit] = {}
        self.lives: dict[str, Life] = {}
        self.last_ns = 0

    @property
    def head(self) -> str | None:
        """Hex id of the newest entry."""
        return self.entries[-1] if self.entries else None

    def take(self, id: str, entry: LedgerEntry) -> list[Objection]:
        """Add an entry; return what is wrong with it. Wrong ones are taken as far as they make sense."""
        found = list(self._place(entry))
        objections = self.objections(entry.about)
        if isinstance(entry.about, Disposition):
            found += _bad_times(entry.about)
        allowed = set(getattr(entry.about, "ineligible", ()))
        rules = self.rules_for(entry.about)
        for objection in objections:
            rule = RULE_OF.get(objection.code)
            if rule is None or objection.code not in allowed or getattr(rules, rule, "") == "refuse":
                found.append(objection)
        self.entries.append(id)
        self.sequence = entry.sequence
        self.last_ns = max(self.last_ns, _ns(entry.taken_ns))
        self._note(id, entry)
        return found

    def _place(self, entry: LedgerEntry) -> Iterator[Objection]:
        if entry.sequence != self.sequence + 1 or entry.previous != self.head:
            yield Objection(
                "chain-broken",
                f"entry {entry.sequence} follows {entry.previous or 'nothing'}; "
                f"the one before is entry {self.sequence}, {self.head or 'nothing'}",
            )
        if _ns(entry.taken_ns) < max(self.last_ns, 1):
            yield Objection("time-backwards", f"entry {entry.sequence} states a time before the last one's")

    def rules_for(self, about: object) -> Rules | None:
        """Return the rules that bind an entry: those of its authorization, if there is one."""
        if isinstance(about, Step | Disposition):
            life = self.lives.get(about.attempt)
            about = life.about if life else None
        if isinstance(about, Attempt) and about.authorization in self.permits:
            return self.permits[about.authorization].about.rules
        return None

    def objections(self, about: object) -> list[Objection]:
        """Return what speaks against noting something next; nothing is changed."""
        if isinstance(about, Authorization):
            return list(self._against_authorization(about))
        if isinstance(about, Attempt):
            return list(self._against_attempt(about))
        if isinstance(about, Step):
            return list(self._against_step(about))
        return list(self._against_ending(about)) if isinstance(about, Disposition) else []

    def _against_authorization(self, about: Authorization) -> Iterator[Objection]:
        yield from _bad_digests([about.policy, *about.documents.values()])
        if not about.candidate:
            yield Objection("no-candidate", "an authorization says nothing that identifies the candidate")
        if about.cites is not None:
            if about.cites not in self.lives:
                yield Objection("unknown-attempt", f"it cites {about.cites}, which is no attempt here")
            if not about.reason:
                yield Objection("no-reason", "it cites an earlier attempt and gives no reason for another")

    def _against_attempt(self, about: Attempt) -> Iterator[Objection]:
        yield from _bad_digests(about.documents.values())
        permit = self.permits.get(about.authorization or "")
        if about.cites is not None and about.cites not in self.lives:
            yield Objection("unknown-attempt", f"it cites {about.cites}, which is no attempt here")
        if permit is None:
            named = about.authorization
            said = f"it names {named}, which is no authorization here" if named else "it names none"
            yield Objection("unauthorized-start", f"an attempt needs an authorization; {said}")
        else:
            if (other := _other(permit.about, about)) is not None:
                yield Objection("unauthorized-start", f"its authorization is for another {other}")
            if len(permit.spent) >= permit.about.suites:
                yield Objection("authorization-used-up", _used_up(permit))
        seen = self.last_visible(about.line)
        if seen is not None and not any(
            by is not None and by.cites == seen.id and by.reason
            for by in (about, permit.about if permit else None)
        ):
            yield Objection(
                "uncited-start",
                f"attempt {seen.number} of this line ({seen.id}) has a visible score; cite it and a reason",
            )

    def last_visible(self, line: str) -> Life | None:
        """Return the latest attempt of a line whose score was seen."""
        seen = [life for life in self.lives.values() if life.about.line == line and life.visible]
        return seen[-1] if seen else None

    def _against_step(self, about: Step) -> Iterator[Objection]:
        life = self.lives.get(about.attempt)
        yield from _bad_digests(id for id in (about.packet, about.verdict) if id is not None)
        if life is None:
            yield Objection("unknown-attempt", f"{about.attempt} is no attempt here")
            return
        if life.ending is not None:
            yield Objection("ended", f"the attempt ended as {life.ending.disposition}")
        if not may_follow(life.states, about.state):
            yield Objection("out-of-order", f"{about.state} cannot follow {', '.join(life.states)}")
        if about.requests is not None and life.requests is not None and about.requests < life.requests:
            yield Objection("out-of-order", f"{about.requests} requests after {life.requests}")
        permit = self.permits.get(life.about.authorization or "")
        if about.state == "first-request" and permit and len(permit.spent) >= permit.about.suites:
            yield Objection("authorization-used-up", _used_up(permit))

    def _against_ending(self, about: Disposition) -> Iterator[Objection]:
        life = self.lives.get(about.attempt)
        if life is None:
            yield Objection("unknown-attempt", f"{about.attempt} is no attempt here")
            return
        if life.ending is not None:
            yield Objection("ended", f"the attempt ended as {life.ending.disposition}")
        permit = self.permits.get(life.about.authorization or "")
        early = sorted(
            role for role, text in about.evidence.items() if permit and _ns(text) < permit.taken_ns
        )
        if early:
            message = f"{', '.join(early[:5])}: older than the authorization of the attempt"
            yield Objection("pre-authorization", message)
        if (reason := why_not(life, about.disposition)) is not None:
            yield Objection("wrong-ending", reason)
        if about.disposition != "valid":
            if not about.reason:
                yield Objection("no-reason", f"{about.disposition} needs a reason")
            return
        broken = [*life.ineligible, *about.ineligible]
        if broken:
            yield Objection("not-eligible", f"an attempt that broke {', '.join(broken)} cannot be valid")
        if permit is None and "unauthorized-start" not in broken:
            yield Objection("not-eligible", "an attempt without an authorization cannot be valid")
        if permit is not None and len(permit.valid) >= permit.about.suites:
            yield Objection("second-valid-score", f"authorization {permit.id} has its valid score already")

    def _note(self, id: str, entry: LedgerEntry) -> None:
        about, when = entry.about, _ns(entry.taken_ns)
        if isinstance(about, Authorization):
            self.permits[id] = Permit(id, about, when)
            return
        if isinstance(about, Attempt):
            self.lives[id] = Life(id, len(self.lives) + 1, about, when)
            return
        life = self.lives.get(about.attempt)
        if life is None:
            return
        life.last_ns = max(life.last_ns, when)
        life.ineligible += [code for code in about.ineligible if code not in life.ineligible]
        permit = self.permits.get(life.about.authorization or "")
        if isinstance(about, Disposition):
            life.ending = life.ending or about
            if about.disposition == "valid" and permit is not None:
                permit.valid.append(life.id)
            return
        life.states.append(about.state)
        life.requests = about.requests if about.requests is not None else life.requests
        life.score = about.score if about.score is not None else life.score
        life.convention = about.convention or life.convention
        life.packet = about.packet or life.packet
        life.verdict = about.verdict or life.verdict
        if about.state == "first-request" and permit is not None:
            permit.spent.append(life.id)


def may_follow(states: list[State], state: State) -> bool:
    """Say whether an attempt that came to ``states`` may come to ``state``.

    Example:
        >>> may_follow(["created", "preflight-passed"], "first-request")
        True
        >>> may_follow(["created"], "first-request"), may_follow(["created", "sealed"], "sealed")
        (False, False)
    """
    if state in states:
        return False
    if state in _ANY_TIME:
        return True
    if any(done in states for done in _ANY_TIME):
        return False
    here = max(_IN_ORDER.index(done) for done in states if done in _IN_ORDER)
    step = _IN_ORDER.index(state) - here
    return step == 1 or (step == 2 and _IN_ORDER[here + 1] == "service-up")


def why_not(life: Life, ending: Ending) -> str | None:
    """Return why an attempt that came so far cannot have ended in this way, or None."""
    states = set(life.states)
    if ending == "preflight-abort" and "preflight-passed" in states:
        return "its preflight passed"
    if ending == "construction-failure" and not (
        "preflight-passed" in states and "first-request" not in states
    ):
        return f"it came to {life.reached}"
    if ending in ("diagnostic-rejected", "failed-stop") and "first-request" not in states:
        return "it sent no request"
    absent = [state for state in ("suite-complete", "judged", "sealed") if state not in states]
    if ending == "valid" and absent:
        return f"it was never {', '.join(absent)}"
    return None


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return what differs between two candidates: part to its value before and after, empty for none.

    Example:
        >>> difference({"engine": "a1", "model": "m"}, {"engine": "b2", "model": "m"})
        {'engine': ('a1', 'b2')}
    """
    return {
        name: (before.get(name, ""), after.get(name, ""))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def _other(permit: Authorization, about: Attempt) -> str | None:
    if permit.line != about.line:
        return "line"
    different = [name for name, value in permit.candidate.items() if about.candidate.get(name) != value]
    return f"candidate: {', '.join(sorted(different)[:5])}" if different else None


def _used_up(permit: Permit) -> str:
    allowed, used = permit.about.suites, len(permit.spent)
    return f"authorization {permit.id} is for {allowed} scored suite(s), and was used {used} time(s)"


def _bad_digests(ids: Iterable[str]) -> Iterator[Objection]:
    for id in ids:
        try:
            to_raw(id)
        except DigestError as error:
            yield Objection("bad-digest", error.message)


def _bad_times(about: Disposition) -> Iterator[Objection]:
    bad = sorted(role for role, text in about.evidence.items() if _ns(text) == 0)
    if bad:
        yield Objection("bad-time", f"{', '.join(bad[:5])}: the time is no number of nanoseconds")


def _ns(text: str) -> int:
    """Return a time, or 0 for what is none."""
    fine = text.isascii() and text.isdigit() and len(text) <= MAX_NS_DIGITS
    return int(text) if fine else 0
