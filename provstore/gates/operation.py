"""Gates about the host around the run: idle devices, idle intervals, cleanup, status."""

from datetime import datetime
from typing import ClassVar

from provstore.evidence.idle import IdleResult
from provstore.gates.evidence import Evidence, Found, Source
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.facts import Fact
from provstore.records.verdict import Judgement, UsedFact


class Idle(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="idle"):
    """Snapshots show an idle host, derived anew from the raw tool output that each embeds.

    The stated status and the stated devices are claims; the output's size, digest and rows decide.

    Attributes:
        snapshots: the snapshots.
        devices: device numbers that each must show.
        count: exact number of snapshots; 0 for at least one.
        minimum_seconds: shortest time from the first to the last one, by their own clock; 0 for any.
        tool_sha256: digest of the tool; empty for any.
    """

    snapshots: str
    devices: tuple[int, ...]
    count: int = 0
    minimum_seconds: int = 0
    tool_sha256: str = ""

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"snapshots": ("idle",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "before"
kind = "idle"
role = "run/idle/prestart-*.json"

[[gate]]
name = "idle before the start"
kind = "idle"
snapshots = "before"
devices = [0, 1, 2, 3]
count = 13
minimum_seconds = 60
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Judge each snapshot, then their number and span."""
        sources = evidence.here(self.snapshots, out)
        met = len(evidence.sources.get(self.snapshots, ()))
        facts: list[UsedFact] = []
        for source in sources:
            facts += self._snapshot(source, out)
        if met and len(sources) == met and self.count and met != self.count:
            out.fail("idle-count", f"{met} snapshots", expected=self.count, found=met)
        stamps = [stamp for stamp in (self._stamp(source, out) for source in sources) if stamp is not None]
        span = (max(stamps) - min(stamps)).total_seconds() if stamps else 0.0
        if len(set(stamps)) < len(stamps):
            out.fail("idle-repeated", "two snapshots have one time, so one may be a copy")
        if met and self.minimum_seconds and len(stamps) == met and span < self.minimum_seconds:
            out.fail("idle-too-short", f"{span!r} s from the first to the last snapshot",
                     expected=f"at least {self.minimum_seconds}", found=repr(span))  # fmt: skip
        return out.done(f"{len(sources)} snapshots, {span!r} s, nothing but the observer", facts)

    def _snapshot(self, source: Source, out: Findings) -> list[UsedFact]:
        reading = source.reading
        out.readings(source.place, source.object, source.findings)
        if not isinstance(reading, IdleResult):
            return []
        decided = {finding.code for finding in source.findings}
        if reading.idle is None and not decided:
            out.unknown("raw-absent", f"{source.place}: the raw output cannot be judged")
        stated = [Found(source, fact).used() for fact in source.facts if fact.key.startswith("idle#raw.")]
        if reading.devices is not None and reading.devices != tuple(sorted(self.devices)):
            out.fail("device-set", f"{source.place}: the raw output has devices {list(reading.devices)}",
                     expected=sorted(self.devices), found=list(reading.devices), facts=stated)  # fmt: skip
        status = source.select("/status")
        if not status or status[0].value != "passed":
            found = Found(source, status[0]).used().value if status else "absent"
            word = out.fail if status else out.unknown
            word("idle-status", f"{source.place}: status is {found}", expected="passed", found=found)
        if self.tool_sha256:
            tool = source.select("/xpu_smi/sha256") or source.select("/tool/sha256")
            if not tool:
                out.unknown("tool-absent", f"{source.place}: the tool's digest is not stated")
            elif tool[0].value != self.tool_sha256:
                used = Found(source, tool[0]).used()
                out.fail("tool-differs", f"{source.place}: another tool", expected=self.tool_sha256,
                         found=used.value, facts=(used,))  # fmt: skip
        return stated

    def _stamp(self, source: Source, out: Findings) -> datetime | None:
        found = source.select("/observed_utc")
        text = str(found[0].value) if found else ""
        try:
            stamp = datetime.fromisoformat(text)
        except ValueError:
            stamp = None
        if stamp is None or stamp.tzinfo is None:
            if self.minimum_seconds:
                out.unknown("time-absent", f"{source.place}: no time with a zone", found=text[:80])
            return None
        return stamp

    def idle_reason(self) -> str:
        """Say whether no device is asked for."""
        if min(self.count, self.minimum_seconds) < 0 or len(set(self.devices)) != len(self.devices):
            return "a count is below zero, or a device is named twice"
        return "" if self.devices else "it asks for no device"


class IdleSummary(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="idle-summary"):
    """A summary states each phase once, long enough and with its number of snapshots.

    Attributes:
        summary: the summary.
        phases: phases, each exactly once and no other.
        snapshots: number of snapshots of each.
        minimum_seconds: shortest phase.
    """

    summary: str
    phases: tuple[str, ...]
    snapshots: int
    minimum_seconds: int

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"summary": ("idle-summary",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "summary"
kind = "idle-summary"
role = "run/idle/summary.txt"

[[gate]]
name = "idle summary"
kind = "idle-summary"
summary = "summary"
phases = ["prestart", "poststop"]
snapshots = 13
minimum_seconds = 60
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Judge every line."""
        source = evidence.one(self.summary, out)
        if source is None:
            return out.done("")
        out.readings(source.place, source.object, source.findings)
        phases = [str(fact.value) for fact in source.select("phase")]
        if sorted(phases) != sorted(self.phases):
            out.fail("idle-phase", f"phases are {', '.join(phases) or 'none'}"[:300],
                     expected=", ".join(self.phases), found=", ".join(phases)[:300])  # fmt: skip
        facts = [Found(source, fact).used() for fact in source.facts if "#" not in fact.key]
        for place, phase in [(fact.location, str(fact.value)) for fact in source.select("phase")]:
            values = {fact.key: fact for fact in source.facts if fact.location == place}
            self._line(source, phase, values, out)
        return out.done(f"{len(phases)} phases with {self.snapshots} snapshots each", facts)

    def _line(self, source: Source, phase: str, values: dict[str, Fact], out: Findings) -> None:
        rules = (("elapsed_seconds", "idle-too-short"), ("snapshots", "idle-count"))
        for name, code in rules:
            found = [f for f in source.select(name) if values.get(f"idle_summary.{name}") is f]
            if not found:
                out.fail("idle-phase", f"{phase} does not state {name}")
                continue
            value = found[0].value
            used = Found(source, found[0]).used()
            short = name == "elapsed_seconds" and not (type(value) is int and value >= self.minimum_seconds)
            if short or (name == "snapshots" and value != self.snapshots):
                wanted = self.minimum_seconds if short else self.snapshots
                out.fail(code, f"{phase}: {name} is {used.value}", expected=wanted, found=used.value,
                         facts=(used,))  # fmt: skip

    def idle_reason(self) -> str:
        """Say whether nothing is asked."""
        if not self.phases or len(set(self.phases)) != len(self.phases):
            return "it needs phases, each once"
        return "" if self.snapshots > 0 and self.minimum_seconds > 0 else "it asks for no snapshot or no time"


class Cleanup(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cleanup"):
    """Every exit code of the end of a run is stated, and zero.

    Attributes:
        codes: the file of exit codes.
        names: names that it must state, each once and no other.
    """

    codes: str
    names: tuple[str, ...]

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"codes": ("cleanup",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "cleanup"
kind = "cleanup"
role = "run/cleanup-status.txt"

[[gate]]
name = "cleanup"
kind = "cleanup"
codes = "cleanup"
names = ["stop_status", "idle_status"]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look at each code."""
        source = evidence.one(self.codes, out)
        if source is None:
            return out.done("")
        for finding in source.findings:
            if finding.severity == "error":
                out.readings(source.place, source.object, [finding])
        stated = {fact.key.partition(".")[2]: fact for fact in source.facts if "#" not in fact.key}
        absent = [name for name in self.names if name not in stated]
        extra = [name for name in stated if name not in self.names]
        if absent:
            out.fail("cleanup-incomplete", f"not stated: {', '.join(absent)}", expected=", ".join(self.names))
        if extra:
            out.fail(
                "cleanup-extra", f"states more: {', '.join(extra)}"[:300], expected=", ".join(self.names)
            )
        facts = [Found(source, fact).used() for fact in stated.values()]
        for name, fact in stated.items():
            if fact.value != 0:
                used = Found(source, fact).used()
                out.fail("cleanup", f"{name} is {used.value}", expected=0, found=used.value, facts=(used,))
        return out.done(f"{len(stated)} exit codes, all 0", facts)

    def idle_reason(self) -> str:
        """Say whether no code is asked for."""
        return "" if self.names else "it names no exit code"


class Status(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="status"):
    """A status file is exactly one line with the word of success.

    Attributes:
        status: the file.
        word: the word.
    """

    status: str
    word: str = "PASS"

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"status": ("status",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "status"
kind = "status"
role = "run/status.txt"

[[gate]]
name = "status"
kind = "status"
status = "status"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look at the one line."""
        source = evidence.one(self.status, out)
        if source is None:
            return out.done("")
        out.readings(source.place, source.object, source.findings)
        facts = [Found(source, fact).used() for fact in source.facts]
        lines, words = source.select("#lines"), source.select("status")
        if not words or not lines or lines[0].value != 1:
            out.fail("status-incomplete", "must be one line, status=WORD", facts=facts)
        elif words[0].value != self.word:
            out.fail(
                "status", f"status is {facts[0].value}", expected=self.word, found=facts[0].value, facts=facts
            )
        return out.done(f"status is {self.word}", facts)

    def idle_reason(self) -> str:
        """Say whether no word is asked for."""
        return "" if self.word else "it names no word"
