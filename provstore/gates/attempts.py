"""Gates about permission: attempts in their order, evidence before its authorization."""

from datetime import datetime
from typing import Any, ClassVar

import msgspec

from provstore.evidence.jsonreader import Absent, Value, kind, resolve
from provstore.gates.evidence import Evidence, Found, Source, split, uses
from provstore.gates.extracts import JsonReading
from provstore.gates.findings import Findings, said
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement, UsedFact


def objects_at(
    evidence: Evidence, reference: str, out: Findings
) -> tuple[Source | None, list[dict[str, Value]]]:
    """Return the objects of an array that a reference names; says when there is none."""
    name, pointer = split(reference)
    source = evidence.one(name, out)
    if source is None:
        return None, []
    found: Value | Absent = None
    if isinstance(source.reading, JsonReading):
        found = resolve(source.reading.tree, "" if pointer == "/" else pointer)
    if not isinstance(found, list) or not found or not all(isinstance(item, dict) for item in found):
        out.unknown("rows-absent", f"{source.place} has no list of objects at {pointer}: {kind(found)}")
        return source, []
    return source, [item for item in found if isinstance(item, dict)]


def _stamp(value: Value | None) -> datetime | None:
    try:
        stamp = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return stamp if stamp is not None and stamp.tzinfo is not None else None


class AttemptNames(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the members of an attempt and of an authorization.

    Attributes:
        id: name of either.
        previous: id of the attempt before; null for the first.
        requests: number of requests that were sent.
        score: the score that was seen; null when none was.
        disposition: how the attempt ended.
        valid: the disposition of an attempt that counts.
        authorization: id of the authorization of an attempt.
        started: when an attempt began.
        created: when an authorization was given.
        cites: id of the earlier attempt that an authorization, or the attempt itself, cites.
        reason: why there is another one.
        suites: scored suites that an authorization permits; one where it does not say.
        line: what is tried for; a score that was seen counts in its line, or for all where none is stated.
        ineligible: codes that were noted when the attempt was let go on without a right to count.
    """

    id: str = "id"
    previous: str = "previous"
    requests: str = "requests"
    score: str = "score"
    disposition: str = "disposition"
    valid: str = "valid"
    authorization: str = "authorization"
    started: str = "started_at"
    created: str = "created_at"
    cites: str = "cites"
    reason: str = "reason"
    suites: str = "suites"
    line: str = "line"
    ineligible: str = "ineligible"


class Attempts(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="attempts"):
    """Attempts form an unbroken chain, and each was permitted before it began.

    An attempt that sent requests uses up its authorization, or one of the suites that it permits. One that
    follows a visible score must cite the earlier attempt and a reason, by itself or in its authorization. No
    more valid scores than suites. What an attempt broke and was noted for when it began makes it ineligible
    if it is the last one; an earlier one never counted.

    Attributes:
        attempts: the list, oldest first.
        authorizations: the list of authorizations.
        names: names of the members.
    """

    attempts: str
    authorizations: str
    names: AttemptNames = AttemptNames()

    FACTS: ClassVar[tuple[str, ...]] = ("attempts", "authorizations")
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "ledger"
kind = "ledger"
role = "ledger.jsonl"

[[gate]]
name = "attempts"
kind = "attempts"
attempts = "ledger:/attempts"
authorizations = "ledger:/authorizations"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Walk the chain."""
        source, attempts = objects_at(evidence, self.attempts, out)
        _, given = objects_at(evidence, self.authorizations, out)
        names = self.names
        permits = {str(item.get(names.id)): item for item in given if item.get(names.id) is not None}
        used: dict[str, list[dict[str, Value]]] = {}
        previous: Value = None
        visible: dict[str, Value] = {}
        scores = 0
        for place, attempt in enumerate(attempts):
            last = place == len(attempts) - 1
            label = f"attempt {place + 1} ({said_value(attempt.get(names.id))})"
            if attempt.get(names.previous) != previous or attempt.get(names.id) is None:
                out.fail(
                    "chain-broken",
                    f"{label} follows {said_value(attempt.get(names.previous))}",
                    expected=said_value(previous),
                    found=said_value(attempt.get(names.previous)),
                )
            line = str(attempt.get(names.line))
            permit = permits.get(str(attempt.get(names.authorization)))
            broken = Findings()
            self._permitted(label, attempt, permit, visible.get(line), broken)
            if attempt.get(names.requests):
                earlier = used.setdefault(str(attempt.get(names.authorization)), [])
                self._consumed(label, attempt, permit, earlier, broken)
                earlier.append(attempt)
            self._weigh(label, attempt, broken, out, last=last)
            previous = attempt.get(names.id)
            if attempt.get(names.score) is not None:
                scores += not last
                visible[line] = previous
        facts = (
            []
            if source is None
            else [
                UsedFact(
                    place=source.place,
                    key="attempts",
                    value=f"{len(attempts)} attempts",
                    object=source.object,
                )
            ]
        )
        return out.done(
            f"attempt {len(attempts)} of {len(attempts)}; {scores} earlier visible score(s)", facts
        )

    def _weigh(
        self, label: str, attempt: dict[str, Value], broken: Findings, out: Findings, *, last: bool
    ) -> None:
        """Say what an attempt broke; what was noted of it then keeps it from counting, and nothing more."""
        names = self.names
        listed = attempt.get(names.ineligible)
        noted = listed if isinstance(listed, list) else []
        if noted and attempt.get(names.disposition) != names.valid:
            if last:
                codes = ", ".join(map(str, noted))
                out.add("INELIGIBLE", str(noted[0]), f"{label} may not count: {codes}")
            broken = Findings()
        for judgement in broken.all:
            out.add(judgement.outcome, judgement.code, judgement.message,
                    expected=judgement.expected, found=judgement.found)  # fmt: skip

    def _permitted(
        self,
        label: str,
        attempt: dict[str, Value],
        permit: dict[str, Value] | None,
        visible: Value,
        out: Findings,
    ) -> None:
        names = self.names
        if permit is None:
            out.fail("unauthorized-start", f"{label} names no authorization that exists",
                     found=said_value(attempt.get(names.authorization)))  # fmt: skip
            return
        cited = any(by.get(names.cites) == visible and by.get(names.reason) for by in (permit, attempt))
        if visible is not None and not cited:
            out.fail(
                "unauthorized-start",
                f"{label} follows a visible score; its authorization must cite it and a reason",
                expected=said_value(visible),
                found=said_value(permit.get(names.cites)),
            )
        began, given = _stamp(attempt.get(names.started)), _stamp(permit.get(names.created))
        if began is None or given is None:
            out.unknown("time-absent", f"{label}: its start or its authorization states no time with a zone")
        elif given > began:
            out.fail("authorization-late", f"{label} began before it was permitted",
                     expected=f"before {began.isoformat()}", found=given.isoformat())  # fmt: skip

    def _consumed(
        self,
        label: str,
        attempt: dict[str, Value],
        permit: dict[str, Value] | None,
        earlier: list[dict[str, Value]],
        out: Findings,
    ) -> None:
        names = self.names
        stated = permit.get(names.suites) if permit is not None else None
        allowed = stated if type(stated) is int and stated > 0 else 1
        if len(earlier) < allowed:
            return
        both = [item for item in (*earlier, attempt) if item.get(names.disposition) == names.valid]
        if attempt.get(names.disposition) == names.valid and len(both) > allowed:
            out.fail("second-valid-score", f"{label} is a second valid score on one authorization")
        else:
            out.fail("unauthorized-start", f"{label}: an earlier attempt used up its authorization")


def said_value(value: Any) -> str:
    """Return a JSON scalar for a message."""
    return said(value) if isinstance(value, str | int | None) else kind(value)


class Authorized(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="authorized"):
    """Evidence is not older than its authorization; what is, is kept and may not be claimed.

    Attributes:
        results: facts with the time of each result, as text with a zone.
        authorization: fact with the time of the authorization.
    """

    results: tuple[str, ...]
    authorization: str

    FACTS: ClassVar[tuple[str, ...]] = ("results", "authorization")
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "tests"
kind = "json"
role = "tests.json"

[[extract]]
name = "permit"
kind = "json"
role = "authorization.json"

[[gate]]
name = "authorized first"
kind = "authorized"
results = ["tests:/finished_at"]
authorization = "permit:/created_at"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare each time."""
        permit = evidence.only(self.authorization, out)
        given = _stamp(_text(permit)) if permit else None
        if permit is not None and given is None:
            out.unknown("time-absent", f"{self.authorization} is no time with a zone", facts=(permit.used(),))
        seen: list[Found] = []
        for reference in self.results:
            for found in evidence.find(reference, out):
                seen.append(found)
                stamp = _stamp(_text(found))
                if stamp is None:
                    out.unknown("time-absent", f"{reference} is no time with a zone", facts=(found.used(),))
                elif given is not None and permit is not None and stamp < given:
                    out.add("INELIGIBLE", "pre-authorization", f"{reference} is older than its authorization",
                            expected=f"from {given.isoformat()}", found=stamp.isoformat(),
                            facts=(found.used(), permit.used()))  # fmt: skip
        return out.done(f"{len(seen)} results are younger than their authorization", uses(seen))

    def idle_reason(self) -> str:
        """Say whether nothing is compared."""
        return "" if self.results else "it names no result"


def _text(found: Found) -> str | None:
    return found.fact.value if isinstance(found.fact.value, str) else None
