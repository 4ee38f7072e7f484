"""Gates about permission: attempts in their order, evidence before its authorization, frozen decisions."""

from datetime import datetime
from typing import Any, ClassVar

import msgspec

from provstore.evidence.aggregation import median
from provstore.evidence.jsonreader import Absent, Value, kind, resolve
from provstore.gates.evidence import Evidence, Found, Source, number, split, uses
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
        cites: id of the earlier attempt that an authorization cites.
        reason: why it permits another one.
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


class Attempts(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="attempts"):
    """Attempts form an unbroken chain, and each was permitted before it began.

    An attempt that sent requests uses up its authorization. One that follows a visible score needs an
    authorization that cites the earlier attempt and a reason. One valid score for each authorization.

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
kind = "json"
role = "ledger.json"

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
        visible: Value = None
        scores = 0
        for place, attempt in enumerate(attempts):
            label = f"attempt {place + 1} ({said_value(attempt.get(names.id))})"
            if attempt.get(names.previous) != previous or attempt.get(names.id) is None:
                out.fail(
                    "chain-broken",
                    f"{label} follows {said_value(attempt.get(names.previous))}",
                    expected=said_value(previous),
                    found=said_value(attempt.get(names.previous)),
                )
            permit = permits.get(str(attempt.get(names.authorization)))
            self._permitted(label, attempt, permit, visible, out)
            if attempt.get(names.requests):
                key = str(attempt.get(names.authorization))
                self._consumed(label, attempt, used.setdefault(key, []), out)
                used[key].append(attempt)
            previous = attempt.get(names.id)
            if attempt.get(names.score) is not None and place < len(attempts) - 1:
                scores += 1
            visible = previous if attempt.get(names.score) is not None else visible
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
        if visible is not None and (permit.get(names.cites) != visible or not permit.get(names.reason)):
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
        self, label: str, attempt: dict[str, Value], earlier: list[dict[str, Value]], out: Findings
    ) -> None:
        valid = self.names.valid
        if not earlier:
            return
        both = [item for item in (*earlier, attempt) if item.get(self.names.disposition) == valid]
        if attempt.get(self.names.disposition) == valid and len(both) > 1:
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


class Frozen(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="frozen"):
    """A comparison is decided by the rules that were frozen before it, and by nothing else.

    Wins and the paired median are recomputed from the two lists where both are stated; secondary gains are
    not looked at.

    Attributes:
        control: fact with the headline of the control arm.
        candidate: fact with the headline of the candidate arm.
        control_rows: fact with the list of row values of the control arm; empty when only sums are stated.
        candidate_rows: the same of the candidate arm.
        wins: fact with the number of rows that the candidate wins; when there are no lists.
        minimum_wins: fewest rows that it must win; 0 leaves the rule out.
        paired_median: fact with the median of the paired differences; when there are no lists.
        positive_median: the paired median must be above zero.
    """

    control: str
    candidate: str
    control_rows: str = ""
    candidate_rows: str = ""
    wins: str = ""
    minimum_wins: int = 0
    paired_median: str = ""
    positive_median: bool = True

    FACTS: ClassVar[tuple[str, ...]] = (
        "control",
        "candidate",
        "control_rows",
        "candidate_rows",
        "wins",
        "paired_median",
    )
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "crossover"
kind = "json"
role = "crossover.json"

[[gate]]
name = "frozen rules"
kind = "frozen"
control = "crossover:/control/median"
candidate = "crossover:/candidate/median"
control_rows = "crossover:/control/rows"
candidate_rows = "crossover:/candidate/rows"
minimum_wins = 9
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Apply the three rules."""
        seen: list[Found] = []
        headline = [
            self._number(reference, evidence, seen, out) for reference in (self.control, self.candidate)
        ]
        if headline[0] is not None and headline[1] is not None and headline[1] <= headline[0]:
            out.fail(
                "headline",
                f"{headline[0]!r} to {headline[1]!r}: the headline is not higher",
                expected=f"above {headline[0]!r}",
                found=repr(headline[1]),
                facts=uses(seen),
            )
        wins, middle = self._paired(evidence, seen, out)
        if self.minimum_wins and wins is not None and wins < self.minimum_wins:
            out.fail(
                "row-wins", f"{wins!r} rows won", expected=f"at least {self.minimum_wins}", found=repr(wins)
            )
        if self.positive_median and middle is not None and middle <= 0:
            out.fail(
                "paired-median", f"the paired median is {middle!r}", expected="above 0", found=repr(middle)
            )
        return out.done(f"higher headline, {wins} rows won, paired median {middle}", uses(seen))

    def _paired(
        self, evidence: Evidence, seen: list[Found], out: Findings
    ) -> tuple[float | None, float | None]:
        if self.control_rows:
            lists = [self._list(ref, evidence, seen, out) for ref in (self.control_rows, self.candidate_rows)]
            if not lists[0] or not lists[1]:
                return None, None
            if len(lists[0]) != len(lists[1]):
                out.fail("row-count", f"{len(lists[0])} rows beside {len(lists[1])}")
                return None, None
            pairs = [after - before for before, after in zip(*lists, strict=True)]
            return sum(difference > 0 for difference in pairs), median(pairs)
        wins = self._number(self.wins, evidence, seen, out) if self.minimum_wins else None
        middle = self._number(self.paired_median, evidence, seen, out) if self.positive_median else None
        return wins, middle

    def _number(self, reference: str, evidence: Evidence, seen: list[Found], out: Findings) -> float | None:
        found = evidence.only(reference, out)
        if found is None:
            return None
        seen.append(found)
        value = number(found.fact)
        if value is None:
            out.fail("type", f"{reference} is {found.used().value}, not a number", facts=(found.used(),))
        return value

    def _list(self, reference: str, evidence: Evidence, seen: list[Found], out: Findings) -> list[float]:
        found = evidence.only(reference, out)
        if found is None:
            return []
        seen.append(found)
        values = found.fact.value
        if isinstance(values, tuple) and (found.fact.decimal or all(type(item) is int for item in values)):
            return [float(item) for item in values]
        out.fail("type", f"{reference} is no list of numbers", facts=(found.used(),))
        return []

    def idle_reason(self) -> str:
        """Say whether a rule has no number to look at."""
        if self.control == self.candidate or bool(self.control_rows) != bool(self.candidate_rows):
            return "control and candidate must be two arms, and both have lists or none"
        if not self.control_rows and ((self.minimum_wins and not self.wins) or
                                      (self.positive_median and not self.paired_median)):  # fmt: skip
            return "a rule about rows needs lists, or facts that state wins and paired median"
        return ""
