"""Gates about what the log proves: structure per rank, treatment per rank, attribution, selectors."""

from collections import Counter
from typing import Any, ClassVar

import msgspec

from provstore.gates.evidence import Evidence, Found, Source, fits, shown, split
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.facts import Fact
from provstore.records.verdict import Judgement, UsedFact

_EXTRACT = """
[[extract]]
name = "captured"
kind = "lines"
role = "run/server.log"
marker = "captured graph"
pattern = 'rank (?P<tp>\\d+)\\.(?P<ep>\\d+) .*graphs=(?P<graphs>\\d+), breaks=(?P<breaks>\\d+)'
integers = ["tp", "ep", "graphs", "breaks"]
"""


class Line:
    """One matching line: its place, and the values of its groups."""

    def __init__(self, source: Source, first: Fact) -> None:
        self.source = source
        self.location = first.location
        self.groups: dict[str, Fact] = {}

    def rank(self, names: tuple[str, ...]) -> tuple[object, ...]:
        """Return the values of the groups that make up a rank."""
        return tuple(self.groups[name].value if name in self.groups else None for name in names)

    def used(self, names: tuple[str, ...]) -> tuple[UsedFact, ...]:
        """Return mentions of some groups."""
        return tuple(Found(self.source, self.groups[name]).used() for name in names if name in self.groups)


def lines_of(source: Source) -> list[Line]:
    """Return the matching lines of a source, with their groups."""
    found: dict[str, Line] = {}
    for fact in source.facts:
        if fact.key == source.prefix:
            found[fact.location] = Line(source, fact)
        elif fact.location in found and fact.key.startswith(source.prefix + "."):
            found[fact.location].groups[fact.key.removeprefix(source.prefix + ".")] = fact
    return list(found.values())


class _Ranked(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of gates about lines of ranks.

    Attributes:
        lines: extractor of the lines.
        rank: groups of the pattern that make up a rank.
        ranks: every rank, each once: a list of integers, or lists of them.
        expect: values that groups must have on every line; text that names a fact stands for its value.
    """

    lines: str
    rank: tuple[str, ...]
    ranks: tuple[Any, ...]
    expect: dict[str, Any] = msgspec.field(default_factory=dict)

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"lines": ("lines",)}

    def wanted_ranks(self) -> set[tuple[object, ...]]:
        """Return the set of ranks."""
        return {tuple(rank) if isinstance(rank, list | tuple) else (rank,) for rank in self.ranks}

    def wanted(self, name: str, evidence: Evidence, out: Findings) -> object:
        """Return the value that a group must have; None when it is a fact that is absent."""
        value = self.expect[name]
        if not (isinstance(value, str) and split(value)[0] in evidence.sources and split(value)[1]):
            return value
        found = evidence.only(value, out)
        if found is None:
            return None
        stated = found.fact.value
        return int(stated) if isinstance(stated, str) and stated.isascii() and stated.isdigit() else stated

    def idle_reason(self) -> str:
        """Say whether the ranks are no set."""
        if not self.ranks:
            return "its rank set has no rank, so no line could be missing"
        if not self.rank:
            return "it names no group that makes up a rank"
        ranks = self.wanted_ranks()
        if len(ranks) != len(self.ranks) or any(len(rank) != len(self.rank) for rank in ranks):
            return "its ranks repeat, or are not one value for each group"
        return ""


class Topology(_Ranked, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="topology"):
    """Every rank logs its structure exactly once, all alike, and as declared.

    Attributes:
        lines: extractor of the lines.
        rank: groups of the pattern that make up a rank.
        ranks: every rank, each once.
        expect: values of groups that describe the structure; text that names a fact stands for its value.
    """

    EXAMPLE: ClassVar[str] = (
        _EXTRACT
        + """
[[gate]]
name = "captured"
kind = "topology"
lines = "captured"
rank = ["tp", "ep"]
ranks = [[0, 0], [1, 1], [2, 2], [3, 3]]
expect = { graphs = 146, breaks = 145 }
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare ranks as a set, then the structures."""
        source = evidence.one(self.lines, out)
        if source is None:
            return out.done("")
        lines = lines_of(source)
        facts = tuple(fact for line in lines for fact in line.used((*self.rank, *self.expect)))
        check_ranks(self, source, lines, out)
        names = tuple(self.expect)
        shapes = Counter(
            tuple(line.groups[n].value if n in line.groups else None for n in names) for line in lines
        )
        wanted = tuple(self.wanted(name, evidence, out) for name in names)
        if len(shapes) > 1:
            said = ", ".join(f"{number} x {_shape(names, shape)}" for shape, number in shapes.items())
            out.fail("topology-differs", f"ranks differ: {said}", expected=_shape(names, wanted), facts=facts)
        elif shapes and not out.decided:
            shape = next(iter(shapes))
            if shape != wanted or [type(v) for v in shape] != [type(v) for v in wanted]:
                out.fail("topology", f"every rank has {_shape(names, shape)}", expected=_shape(names, wanted),
                         found=_shape(names, shape), facts=facts)  # fmt: skip
        return out.done(f"{len(lines)} x ({_shape(names, wanted)}), one for each rank", facts)

    def idle_reason(self) -> str:
        """Say whether the ranks are no set."""
        return _Ranked.idle_reason(self)


def check_ranks(gate: _Ranked, source: Source, lines: list[Line], out: Findings) -> None:
    """Report ranks that are absent, foreign or twice, and lines that are too many."""
    wanted = gate.wanted_ranks()
    met = Counter(line.rank(gate.rank) for line in lines)
    facts = tuple(fact for line in lines for fact in line.used(gate.rank))
    said = ", ".join(f"{_rank(rank)} x {number}" for rank, number in sorted(met.items(), key=str)) or "none"
    more: dict[str, object] = {"expected": f"{len(wanted)} ranks, each once", "found": said, "facts": facts}
    for finding in source.findings:
        if finding.code in ("marker-without-match", "too-many-matches", "line-too-long"):
            out.readings(source.place, source.object, [finding])
    if set(met) != wanted:
        absent = ", ".join(_rank(rank) for rank in sorted(wanted - set(met), key=str)) or "none"
        foreign = ", ".join(_rank(rank) for rank in sorted(set(met) - wanted, key=str)) or "none"
        out.fail("rank-set", f"{len(lines)} lines; absent ranks: {absent}; foreign ranks: {foreign}", **more)
    elif len(lines) != len(wanted):
        out.fail("cardinality", f"{len(lines)} lines for {len(wanted)} ranks", **more)


def _rank(rank: tuple[object, ...]) -> str:
    return ".".join(map(str, rank))


def _shape(names: tuple[str, ...], values: tuple[object, ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


class Treatment(_Ranked, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="treatment"):
    """The change under test ran on every rank when its selector is on, and nowhere when it is off.

    Attributes:
        lines: extractor of the lines that only the changed code prints.
        rank: groups of the pattern that make up a rank.
        ranks: every rank, each once.
        expect: values of groups on every line; text that names a fact stands for its value.
        selector: fact that switches it; empty when it must always be on.
        on: value of the selector that means on.
        off: values that mean off.
    """

    selector: str = ""
    on: Any = "1"
    off: tuple[Any, ...] = ("0",)

    FACTS: ClassVar[tuple[str, ...]] = ("selector",)
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "environment"
kind = "environment"
role = "run/environment.txt"

[[extract]]
name = "treated"
kind = "lines"
role = "run/server.log"
marker = "prepared projections"
pattern = 'rank (?P<tp>\\d+) .*count=(?P<count>\\d+)'
integers = ["tp", "count"]

[[gate]]
name = "treatment"
kind = "treatment"
lines = "treated"
rank = ["tp"]
ranks = [0, 1, 2, 3]
expect = { count = 31 }
selector = "environment:ENGINE_FP8_DRAFT"
on = "1"
off = ["0"]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare the selector with the lines."""
        source = evidence.one(self.lines, out)
        switch = evidence.only(self.selector, out) if self.selector else None
        if source is None or (self.selector and switch is None):
            return out.done("")
        lines = lines_of(source)
        facts = tuple(fact for line in lines for fact in line.used((*self.rank, *self.expect)))
        said: tuple[UsedFact, ...] = (switch.used(),) if switch else ()
        on = switch is None or fits(switch.fact, self.on)
        wanted = len(self.ranks)
        if switch and not on and not any(fits(switch.fact, value) for value in self.off):
            out.unknown("selector-value", f"{self.selector} is neither on nor off", facts=said)
        elif not on:
            if lines:
                out.fail(
                    "treatment-leak",
                    f"{self.selector} is off and {len(lines)} lines show the treatment",
                    expected=0,
                    found=len(lines),
                    facts=said + facts,
                )
            return out.done("off, and no line shows it", said)
        elif not lines:
            out.fail(
                "treatment-absent",
                "switched on and no line shows the treatment",
                expected=wanted,
                found=0,
                facts=said,
            )
        elif len(lines) != wanted:
            out.fail("treatment-cardinality", f"{len(lines)} of {wanted}: one line for each rank is needed",
                     expected=wanted, found=len(lines), facts=facts)  # fmt: skip
        else:
            check_ranks(self, source, lines, out)
        self._values(lines, evidence, out)
        return out.done(f"{len(lines)} lines, one for each rank, {shown(self.expect)}", said + facts)

    def _values(self, lines: list[Line], evidence: Evidence, out: Findings) -> None:
        for name in self.expect:
            wanted = self.wanted(name, evidence, out)
            for line in lines:
                fact = line.groups.get(name)
                if wanted is not None and (fact is None or not fits(fact, wanted)):
                    found = Found(line.source, fact).used().value if fact else "nothing"
                    out.fail(
                        "treatment-value",
                        f"{line.location}: {name} is {found}",
                        expected=wanted,
                        found=found,
                        facts=line.used((name,)),
                    )

    def idle_reason(self) -> str:
        """Say whether the ranks are no set, or on and off are one."""
        if self.selector and self.on in self.off:
            return "its value for on is one for off too"
        return _Ranked.idle_reason(self)
