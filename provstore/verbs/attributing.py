"""Attributing a difference: evidence that differs is read through the one door and compared by what it says.

Only members whose bytes differ are read, and of them only those that are evidence by kind, by name, or
because a policy in one of the packets reads them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from provstore.errors import (
    ProvError,
)
from provstore.evidence.bench import read_bench
from provstore.evidence.contrasting import Contrast, by_pointer, keyed, plain
from provstore.evidence.conventions import SHIPPED
from provstore.evidence.finding import Finding, ReaderResult
from provstore.evidence.metrics import Definition, MetricValue
from provstore.evidence.oracle import read_oracle
from provstore.evidence.outputs import contrast_bench, contrast_oracles, metric_change
from provstore.evidence.prometheus import PrometheusResult, read_prometheus
from provstore.evidence.recognising import Layer, Recognised, as_named, recognise
from provstore.evidence.serverlog import LinePattern, scan_log
from provstore.evidence.tallies import contrast_logs, contrast_scrapes
from provstore.files.inspect_text import text_facts
from provstore.gates.environment import Environment
from provstore.gates.extracts import READERS, Extract, Lines
from provstore.gates.policy import Policy, load_policy
from provstore.ids import to_raw
from provstore.paths import show
from provstore.reports import DiffReport, FactChange, MemberChange
from provstore.store import objects
from provstore.verbs import diffing, fetching
from provstore.verbs.diffing import Side
from provstore.verbs.layering import attributable, place_of, sentence, states, unknown_notes
from provstore.verbs.members import Member

MAX_MEMBERS: Final = 256
"""Members of each side that are read for one comparison."""

LOG_MARKS: Final = tuple(
    LinePattern(name=name, marker=marker)
    for name, marker in (("error", "ERROR"), ("warning", "WARNING"), ("traceback", "Traceback (most recent"))
)
"""What is counted in every log, whether or not a policy says what else to look for."""

_WHOLE: Final = ("bench", "oracle", "metrics", "log")
"""Readers that know more than the plain facts that an inspector took when the packet was sealed."""

_INSPECTED: Final = ("json/", "env.", "identity.")
_ORDER: Final = ("before", "after")
_CONTRADICTIONS: Final = (
    "bad-digest",
    "copy-differs",
    "deleted-mapping",
    "duplicate-pin",
    "duplicate-row",
    "mutable-reference",
    "relative-origin",
    "row-count",
    "row-inconsistent",
    "text-hash",
)
"""Errors that leave every value as it is stated, so that both sides still compare."""

_CUT: Final = " characters)"


class _Attributing:
    def __init__(self, a: Side, b: Side, report: DiffReport) -> None:
        self.sides = (a, b)
        self.report = report
        self.facts: dict[Layer, list[FactChange]] = {"identity": [], "environment": [], "result": []}
        self.found: list[Contrast] = []
        self.bare: dict[Layer, int] = {}
        self.others = 0
        self.read = 0
        self.done: set[str] = set()
        self.covered: set[str] = set()
        self.policies = [policy for side in self.sides for policy in _policies(side)]
        gates = [gate for policy in self.policies for gate in policy.gate if isinstance(gate, Environment)]
        self.private = {text: name for gate in gates for text, name in gate.folded.items()}
        metrics = [metric for policy in self.policies for metric in policy.metric]
        named = {metric.name: metric for metric in (*SHIPPED, *metrics)}
        self.claims = {claim.convention: claim.name for claim in reversed(a.packet.claims)}
        claimed = {claim.convention: None for claim in a.packet.claims if claim.convention in named}
        # What is claimed comes first, so that the sentence names the first claim that moved.
        self.definitions: tuple[Definition, ...] = tuple(named[name] for name in claimed | named)

    def run(self) -> DiffReport:
        for change in self.report.changed:
            self.member(change)
        for change, which in (
            *((change, "second") for change in self.report.removed),
            *((change, "first") for change in self.report.added),
        ):
            self.one_sided(change, which)
        self.stated_facts()
        claims = self.claimed()
        report = msgspec.structs.replace(
            self.report,
            identity=tuple(self.facts["identity"]),
            environment=tuple(self.facts["environment"]),
            result=tuple(self.facts["result"]),
            counts=self.report.sentence,
            kept_facts=tuple(f for f in self.report.kept_facts if not self.superseded(f.role, f.key)),
            tokens=tuple(token for one in self.found for token in one.tokens),
            metrics=(*(metric for one in self.found for metric in one.metrics), *claims.metrics),
            rows=tuple(row for one in self.found for row in one.rows),
            folded=tuple(fact for one in self.found for fact in one.folded),
            unknown=tuple(part for one in self.found for part in one.unknown),
        )
        notes = [*report.notes, *(note for one in self.found for note in one.notes), *claims.notes]
        notes += unknown_notes(report.unknown)
        if self.others:
            notes.append(
                f"{self.others} other members differ in bytes; nothing says what they are evidence of"
            )
        report = msgspec.structs.replace(
            report,
            notes=tuple(notes),
            layers=states(*self.sides, report, self.bare, {one.layer for one in self.found if one.reader}),
        )
        return msgspec.structs.replace(report, sentence=sentence(report))

    # Members

    def member(self, change: MemberChange) -> None:
        place = place_of(change)
        known = self.recognised(place)
        if known is None or not known.reader:
            self.count(known)
            return
        x, y = (fetching.find(side, place) for side in self.sides)
        if x is None or y is None:
            self.others += 1
            return
        if known.reader == "metrics":
            place = self.last_scrape(place)
            x, y = fetching.find(self.sides[0], place) or x, fetching.find(self.sides[1], place) or y
        if place in self.done:
            return
        self.done.add(place)
        out = Contrast(x.entry.role, show(x.path), known.layer, known.reader, self.private)
        self.found.append(out)
        if known.reader not in _WHOLE and self.inspected(x, y):
            return
        why = [fetching.absent(side, member) for side, member in zip(self.sides, (x, y), strict=True)]
        if any(why):
            both = why[0] == why[1]
            for text, which in zip(why[: 1 if both else 2], ("first", "second"), strict=False):
                if text:
                    out.cannot(f"{text} on {'both sides' if both else f'the {which} side'}")
            return
        if self.read >= MAX_MEMBERS:
            out.cannot(f"more than {MAX_MEMBERS} members differ; the rest was not read")
            return
        self.read += 1
        try:
            self.contrast(out, known.reader, place, (x, y))
        except fetching.UNREAD as error:
            out.cannot(error.message)
        else:
            self.covered.add(out.role)

    def one_sided(self, change: MemberChange, which: str) -> None:
        known = self.recognised(place_of(change))
        if known is None or not known.reader:
            self.count(known)
            return
        out = Contrast(change.role, change.path, known.layer, known.reader)
        out.cannot(f"absent on the {which} side")
        self.found.append(out)

    def count(self, known: Recognised | None) -> None:
        if known is None:
            self.others += 1
        else:
            self.bare[known.layer] = self.bare.get(known.layer, 0) + 1

    def recognised(self, place: str) -> Recognised | None:
        """Return what a member is: as a policy reads it, else by kind, else by name."""
        entries = [entry for side in self.sides for entry in side.packet.entries]
        kinds = [e.kind for e in entries if not e.role or f"{place}/".startswith(f"{e.role}/")]
        known = next((found for kind in kinds if (found := recognise(kind, place))), None)
        named = next(iter(self.extracts(place)), None)
        return known if named is None else as_named(named.kind, known)

    def extracts(self, place: str) -> list[Extract]:
        found = [extract for policy in self.policies for extract in policy.extract]
        return [e for e in found if not e.parent and e.kind != "entry" and e.fits(place)]

    def inspected(self, x: Member, y: Member) -> bool:
        """Say whether the plain facts of a member were taken when both sides were sealed."""
        if x.path or y.path or self.sides[0].plain != self.sides[1].plain:
            return False
        layers = (self.report.identity, self.report.environment, self.report.result, self.report.kept_facts)
        listed = [fact for facts in layers for fact in facts]
        return any(fact.role == x.entry.role and fact.key.startswith(_INSPECTED) for fact in listed)

    def last_scrape(self, place: str) -> str:
        """Return the later scrape of a pair that differs in the words before and after alone."""
        first, last = _ORDER
        later = place.replace(first, last)
        there = all(fetching.find(side, later) is not None for side in self.sides)
        return later if later != place and there else place

    # Readings

    def contrast(self, out: Contrast, reader: str, place: str, pair: tuple[Member, Member]) -> None:
        if reader == "log":
            logs = [self.log(side, member, place) for side, member in zip(self.sides, pair, strict=True)]
            _sound(out, logs)
            contrast_logs(out, *logs)
        elif reader == "metrics":
            first, second = (self.scrapes(out, n, place, member) for n, member in enumerate(pair))
            contrast_scrapes(out, first, second)
        else:
            data = [
                fetching.whole(side, member, place) for side, member in zip(self.sides, pair, strict=True)
            ]
            if reader == "bench":
                self.benches(out, data)
            elif reader == "oracle":
                oracles = [read_oracle(one) for one in data]
                _sound(out, oracles)
                contrast_oracles(out, *oracles)
            else:
                _documents(out, reader, place, data)

    def benches(self, out: Contrast, data: list[bytes]) -> None:
        benches = [read_bench(one) for one in data]
        unknown = [bench.shape == "unknown" for bench in benches]
        if all(unknown):
            out.reader = "json"
            _documents(out, "json", out.place, data)
            return
        _sound(out, benches)
        if any(unknown):
            out.cannot(f"no benchmark on the {('second', 'first')[unknown[0]]} side")
            return
        contrast_bench(out, benches[0], benches[1], self.definitions, self.claims)

    def log(self, side: Side, member: Member, place: str) -> ReaderResult:
        """Read one log once, for all that a policy looks for in it."""
        wanted = {e.name: e.line_pattern() for e in self.extracts(place) if isinstance(e, Lines)}
        marks = {mark.name: mark for mark in LOG_MARKS} | wanted
        return scan_log(map(bytes, fetching.stream(side, member, place)), list(marks.values()))

    def scrapes(
        self, out: Contrast, number: int, place: str, member: Member
    ) -> tuple[PrometheusResult | None, PrometheusResult]:
        side = self.sides[number]
        after = read_prometheus(fetching.whole(side, member, place))
        earlier = place.replace(_ORDER[1], _ORDER[0])
        first = fetching.find(side, earlier) if earlier != place else None
        before = None
        if first is not None and not fetching.absent(side, first):
            before = read_prometheus(fetching.whole(side, first, earlier))
        _sound(out, [after] if before is None else [before, after], side=number)
        return before, after

    # Facts that the packets state

    def stated_facts(self) -> None:
        """Fold the facts that were compared already, put each into its layer, drop what is said twice."""
        out = Contrast("", "", "identity", "", self.private)
        layers: tuple[tuple[Layer, tuple[FactChange, ...]], ...] = (
            ("identity", self.report.identity),
            ("environment", self.report.environment),
            ("result", self.report.result),
        )
        locks = {e.role for side in self.sides for e in side.packet.entries if e.kind == "runtime-lock"}
        for own, facts in layers:
            for fact in facts:
                if self.superseded(fact.role, fact.key):
                    continue
                host = fact.role in locks and fact.key.startswith("json/host/")
                layer: Layer = "environment" if host else own
                x, y = fact.from_, fact.to
                whole = x is not None and y is not None and not (x.endswith(_CUT) or y.endswith(_CUT))
                if whole and x is not None and y is not None and out.private(layer, fact.key, x, y):
                    out.folded.append(fact)
                else:
                    self.facts[layer].append(fact)
        for one in self.found:
            for layer, fact in one.changes:
                self.facts[layer].append(fact)
        self.found.append(out)

    def superseded(self, role: str, key: str) -> bool:
        return role in self.covered and key.startswith(_INSPECTED)

    def claimed(self) -> Contrast:
        """Compare claims of one name, where both state one convention and unit."""
        out = Contrast("", "", "result", "")
        later = {claim.name: claim for claim in self.sides[1].packet.claims}
        for x in self.sides[0].packet.claims:
            y = later.get(x.name)
            if y is None or (x.value, x.convention, x.unit) == (y.value, y.convention, y.unit):
                continue
            if (x.convention, x.unit) != (y.convention, y.unit):
                out.notes.append(f"claim {x.name}: {x.convention} and {y.convention} are not compared")
                continue
            try:
                values = [
                    MetricValue(convention=c.convention, unit=c.unit, value=float(c.value)) for c in (x, y)
                ]
            except ValueError:
                out.notes.append(f"claim {x.name}: a value that is no number is not compared")
                continue
            out.metrics.append(metric_change(out, "claim", x.name, values[0], values[1]))
        return out


def _documents(out: Contrast, reader: str, place: str, data: list[bytes]) -> None:
    """Compare two files of plain facts; documents by what is meant, where list items have names."""
    readings = [READERS.get(reader, READERS["json"])(one) for one in data]
    _sound(out, readings)
    if any(not reading.facts for reading in readings):
        if any(reading.facts for reading in readings):
            out.cannot("one side states nothing that could be read")
        return
    if reader in ("json", "lock", "loaded", "idle", "bench"):
        named = [text_facts("document", one, place) for one in data]
        sides = [keyed(f) for f in named] if all(named) else [by_pointer(r) for r in readings]
        out.facts(sides[0], sides[1], lambda key, _: _document_layer(out, key))
    else:
        out.facts(keyed(readings[0].facts), keyed(readings[1].facts))


def _document_layer(out: Contrast, key: str) -> Layer:
    path = key.removeprefix("json")
    if out.reader == "lock" and path.startswith("/host/"):
        return "environment"
    return "identity" if out.reader == "loaded" and path.startswith("/package_versions/") else out.layer


def _sound(out: Contrast, readings: Sequence[ReaderResult], side: int | None = None) -> None:
    """Say what a reader could not take as stated: it is neither equal nor different; note contradictions."""
    for number, reading in enumerate(readings):
        which = ("first", "second")[number if side is None else side]
        errors = [finding for finding in reading.findings if finding.severity == "error"]
        lost = next((finding for finding in errors if finding.code not in _CONTRADICTIONS), None)
        said = next((finding for finding in errors if finding.code in _CONTRADICTIONS), None)
        if lost is not None:
            out.cannot(f"malformed on the {which} side ({_named(lost)})")
        if said is not None:
            out.notes.append(f"{out.place}: the {which} side contradicts itself ({_named(said)})")


def _named(finding: Finding) -> str:
    return f"{finding.code} at {plain(finding.location)}" if finding.location else finding.code


def _policies(side: Side) -> Iterator[Policy]:
    for entry in side.packet.entries:
        if entry.kind == "policy" and entry.blake3 is not None and entry.custody == "held" and not side.plain:
            try:
                yield load_policy(objects.read(side.reader, to_raw(entry.blake3)), entry.role)
            except ProvError:
                # What a policy would have said is not needed to compare bytes; verifying names its faults.
                continue


def attribute(a: Side, b: Side, report: DiffReport) -> DiffReport:
    """Return a difference with what its evidence says of it.

    Args:
        a: the first side, from :func:`provstore.verbs.diffing.side`.
        b: the second side.
        report: what :func:`provstore.verbs.diffing.diff` found.

    Returns:
        The same lists of members; facts in three layers with private paths folded; tokens, metrics and rows;
        and a sentence that attributes. What could not be compared is unknown in it.
    """
    return _Attributing(a, b, report).run() if attributable(a, b, report) else report


def diff(a: Side, b: Side) -> DiffReport:
    """Compare two sides: members by their digests, evidence that differs by what it says.

    Args:
        a: the first side, from :func:`provstore.verbs.diffing.side`.
        b: the second side.

    Returns:
        What was added, removed and changed, what differs in identity, environment and result, what stayed,
        and what is unknown.
    """
    return attribute(a, b, diffing.diff(a, b))
