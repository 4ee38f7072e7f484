"""The gate about the order of events, with stated clocks and tolerance."""

import re
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import ClassVar, Final, Literal

import msgspec

from provstore.gates.evidence import Evidence, Found, number
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.facts import Fact
from provstore.records.verdict import Judgement, UsedFact

_ZONE: Final = re.compile(r"[+-](?:0[0-9]|1[0-4]):[0-5][0-9]|Z")
_LOCAL: Final = re.compile(r"(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(\.\d{1,6})?")


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event, and the clock it is told by.

    Attributes:
        name: what people call it.
        fact: facts with its time; of several the earliest or latest counts, as ``pick`` says.
        clock: ``iso``: text with a zone. ``epoch``: seconds since 1970 in UTC. ``log``: month, day and time
            of day without year and zone, as logs print them.
        pick: which of several times.
        year: year of a ``log`` time.
        zone: zone of a ``log`` time, such as ``-04:00``.
        seconds: added to the time, for a duration that another fact does not state.
    """

    name: str
    fact: str
    clock: Literal["iso", "epoch", "log"] = "iso"
    pick: Literal["first", "last"] = "first"
    year: int = 0
    zone: str = ""
    seconds: int = 0


class Timeline(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="timeline"):
    """Events happened in the order of the policy, within a tolerance for clocks that differ.

    Attributes:
        events: the events, in their order.
        tolerance_seconds: how much earlier than the one before an event may be stamped.
    """

    events: tuple[Event, ...]
    tolerance_seconds: int = 0

    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "bench"
kind = "bench"
role = "run/bench.json"

[[extract]]
name = "before"
kind = "idle"
role = "run/idle/prestart-*.json"

[[gate]]
name = "order"
kind = "timeline"
tolerance_seconds = 2
events = [
  { name = "idle before", fact = "before:observed_utc", pick = "last" },
  { name = "first request", fact = "bench:rows.request_started_epoch_s", clock = "epoch" },
]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Read every time, then compare neighbours."""
        times: list[tuple[Event, datetime, UsedFact]] = []
        for event in self.events:
            stamps = []
            for found in evidence.find(event.fact, out):
                stamp = read_time(found.fact, event)
                if stamp is None:
                    out.unknown(
                        "time-malformed",
                        f"{event.name}: {found.used().value} is no {event.clock} time",
                        facts=(found.used(),),
                    )
                else:
                    stamps.append((stamp, found))
            if stamps:
                chosen = (min if event.pick == "first" else max)(stamps, key=_time)
                times.append((event, chosen[0] + timedelta(seconds=event.seconds), chosen[1].used()))
        for (early, first, a), (late, second, b) in pairwise(times):
            behind = (first - second).total_seconds()
            if behind > self.tolerance_seconds:
                out.fail(
                    "timeline-order",
                    f"{late.name} is {behind!r} s before {early.name}",
                    expected=f"at most {self.tolerance_seconds} s",
                    found=repr(behind),
                    facts=(a, b),
                )
        said = " <= ".join(f"{event.name} {time.isoformat()}" for event, time, _ in times)
        return out.done(said, [fact for _, _, fact in times])

    def idle_reason(self) -> str:
        """Say whether nothing is ordered."""
        if len(self.events) < 2:
            return "an order needs two events"
        if self.tolerance_seconds < 0:
            return "its tolerance is below zero"
        for event in self.events:
            if event.clock == "log" and not (event.year and _ZONE.fullmatch(event.zone)):
                return f"event {event.name!r} needs year and zone, which logs do not state"
        return ""


def _time(stamped: tuple[datetime, Found]) -> datetime:
    return stamped[0]


def read_time(fact: Fact, event: Event) -> datetime | None:
    """Return the time that a fact states, in UTC; None when it states none.

    Example:
        >>> log = Event(name="e", fact="x:y", clock="log", year=2026, zone="-04:00")
        >>> read_time(Fact(key="k", value="07-26 17:45:09"), log).isoformat()
        '2026-07-26T21:45:09+00:00'
    """
    utc = timezone.utc  # noqa: UP017
    try:
        if event.clock == "epoch":
            seconds = number(fact)
            return None if seconds is None else datetime.fromtimestamp(seconds, utc)
        text = fact.value if isinstance(fact.value, str) else ""
        if event.clock == "iso":
            stamp = datetime.fromisoformat(text)
            return stamp.astimezone(utc) if stamp.tzinfo else None
        match = _LOCAL.search(text)
        if match is None:
            return None
        month, day, hour, minute, second = (int(part) for part in match.groups()[:5])
        zone = datetime.fromisoformat(f"2000-01-01T00:00:00{event.zone}").tzinfo
        return datetime(event.year, month, day, hour, minute, second, tzinfo=zone).astimezone(utc)
    except (ValueError, OverflowError, OSError):
        return None
