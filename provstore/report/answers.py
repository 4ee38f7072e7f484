"""Text of answers to questions about the graph: tables, one line a row, with what states it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from provstore.report.scoped import claim_lines, coverage_lines
from provstore.report.text import NOT_STATED, amount, columns, count, indented, short
from provstore.reports.asked import (
    AskedStep,
    ClosureReport,
    PinsReport,
    RoleNeed,
    SaidReport,
    SharedReport,
    StaleReport,
    TimelineReport,
    UnpinnedReport,
    UsesReport,
    WhyReport,
)
from provstore.reports.scoped import ClaimLife, CoverageReport

_DIGESTS: Final = ("object", "tree", "packet", "verdict", "commit")


def node_text(node: str) -> str:
    """Return a node for people: digests are cut.

    Example:
        >>> node_text("packet:" + "ab" * 32), node_text("claim:" + "ab" * 32 + "/decode")
        ('packet abababababab', 'claim abababababab/decode')
    """
    kind, _, key = node.partition(":")
    if kind in _DIGESTS and not key.startswith("blake3:"):
        return f"{kind} {key[:12]}"
    head, slash, tail = key.partition("/")
    return f"{kind} {head[:12] if len(head) == 64 else head}{slash}{tail}"


def _source(step: AskedStep) -> str:
    place = f" {step.location}" if step.location else ""
    reason = f" ({step.reason})" if step.reason else ""
    return f"{short(step.stated_by)}{place}{reason}"


def _more(report: Any) -> Iterator[str]:
    if report.next is not None:
        yield f"... more: --after '{report.next}'"


def uses_lines(report: UsesReport) -> Iterator[str]:
    """Yield who refers to a node, nearest first."""
    yield node_text(report.node)
    if not report.rows:
        yield "  nothing refers to it"
    yield from indented(
        columns(
            (
                str(row.distance),
                node_text(row.node),
                f"{row.step.relation} {node_text(row.step.target)}",
                _source(row.step),
            )
            for row in report.rows
        )
    )
    if report.kinds is not None and report.rows:
        yield "  " + ", ".join(f"{number} {kind}" for kind, number in report.kinds.items())
    yield from _more(report)


def pins_lines(report: PinsReport) -> Iterator[str]:
    """Yield the packets that hold or pin a file, and through what."""
    held = "no packet holds or pins it" if not report.rows else count(len(report.rows), "packet")
    yield f"{node_text(report.node)}: {held}"
    for row in report.rows:
        yield f"  {short(row.packet)}  {', '.join(row.names) or NOT_STATED}"
        yield f"    {node_text(row.via)} {row.step.relation} it: {_source(row.step)}"
    yield from _more(report)


def why_lines(report: WhyReport) -> Iterator[str]:
    """Yield the way between two nodes, one relation a line."""
    if not report.connected:
        yield f"nothing connects {node_text(report.a)} and {node_text(report.b)}"
        return
    yield f"{node_text(report.a)} to {node_text(report.b)}: {count(len(report.steps), 'relation')}"
    yield from indented(
        columns(
            (node_text(step.source), step.relation, node_text(step.target), _source(step))
            for step in report.steps
        )
    )


def shared_lines(report: SharedReport) -> Iterator[str]:
    """Yield what two nodes have in common."""
    kinds = ", ".join(f"{number} {kind}" for kind, number in report.kinds.items()) or "nothing"
    yield f"{node_text(report.a)} and {node_text(report.b)} share {kinds}"
    yield from indented(
        columns(
            (node_text(row.node), row.here if row.here == row.there else f"{row.here} | {row.there}")
            for row in report.rows
        )
    )
    yield from _more(report)


def stale_lines(report: StaleReport) -> Iterator[str]:
    """Yield what fell and, below it, what rests on it."""
    if not report.rows:
        yield "nothing rests on anything that no longer stands"
    shown = None
    for row in report.rows:
        head = (row.on, row.why, row.reason, row.by)
        if head != shown:
            shown = head
            yield f"{row.why}: {node_text(row.on)}" + (f": {row.reason}" if row.reason else "")
            if row.by is not None:
                yield f"  said by {node_text(row.by.source)}: {_source(row.by)}"
            yield from (f"  {gate}" for gate in row.gates)
        if row.step is not None:
            yield f"  {node_text(row.node)}  {row.step.relation} {node_text(_far(row.node, row.step))}"
    yield from _more(report)


def _far(node: str, step: AskedStep) -> str:
    return step.target if step.source == node else step.source


def said_lines(report: SaidReport) -> Iterator[str]:
    """Yield numbers and places, one a line."""
    if not report.rows:
        yield "nothing that is stated fits"
    lines = columns(
        (
            node_text(row.node),
            f"{row.metric} {row.value} {row.unit}".strip() if row.value else row.state or NOT_STATED,
            row.convention or NOT_STATED,
            f"{short(row.stated_by)} {row.location}".strip(),
        )
        for row in report.rows
    )
    for line, row in zip(lines, report.rows, strict=True):
        yield line
        if row.told:
            yield f"  told: {row.told}"
    yield from _more(report)


def timeline_lines(report: TimelineReport) -> Iterator[str]:
    """Yield numbers over time, a block for each metric, unit and convention."""
    group = None
    for row in report.rows:
        here = (row.metric, row.unit, row.convention)
        if here != group:
            group = here
            unit = f" in {row.unit}" if row.unit else ""
            yield f"{row.metric}{unit}, {row.convention or 'convention not stated'}"
        mark = {True: "best", False: "", None: ""}[row.best]
        yield f"  {row.when or NOT_STATED:<20}  {row.value:>20}  {mark:<4}  {node_text(row.node)}"
    yield from _more(report)


def closure_lines(report: ClosureReport) -> Iterator[str]:
    """Yield what each kind of replay lacks, then what of each role is here."""
    yield f"packet {short(report.packet)}"
    for level in report.levels:
        if level.outcome == "PASS":
            yield f"  {level.level}: everything is here"
            continue
        lacks = [count(len(level.missing), "role")] if level.missing else []
        lacks += [f"to fetch {amount(level.fetch_bytes)}"] if level.fetch_bytes else []
        lacks += [count(level.unsized, "file") + " of unknown size"] if level.unsized else []
        lacks += [f"not in the packet: {', '.join(level.absent)}"] if level.absent else []
        lacks += [f"without origin: {len(level.without_origin)}"] if level.without_origin else []
        yield f"  {level.level}: lacks {'; '.join(lacks)}"
    yield from indented(columns(map(_role, report.roles)))
    yield from (f"  unreadable: {text}" for text in report.records)


def _role(role: RoleNeed) -> tuple[str, ...]:
    if not role.missing:
        return role.role, f"{role.held} held", amount(role.held_bytes), "", ""
    size = amount(role.fetch_bytes) if role.fetch_bytes or not role.unsized else "size unknown"
    where = ", ".join((*role.origins, *role.places)) or "no origin"
    return role.role, f"{role.missing} of {role.files or '?'} missing", size, where, ",".join(role.levels)


def unpinned_lines(report: UnpinnedReport) -> Iterator[str]:
    """Yield what was loaded and is not pinned."""
    seen = f"{count(report.loaded, 'file')} seen loaded, {count(report.pinned, 'name')} pinned"
    yield f"{report.outcome}  packet {short(report.packet)}: {seen}"
    if not report.observations:
        yield "  the packet holds no observation of what was loaded"
    yield from (f"  {place}: its bytes are not here" for place in report.absent)
    yield from indented(columns((row.name, row.path, f"{row.place} {row.location}") for row in report.rows))


LINES: Final[dict[type, Callable[[Any], Iterable[str]]]] = {
    ClaimLife: claim_lines,
    ClosureReport: closure_lines,
    CoverageReport: coverage_lines,
    PinsReport: pins_lines,
    SaidReport: said_lines,
    SharedReport: shared_lines,
    StaleReport: stale_lines,
    TimelineReport: timeline_lines,
    UnpinnedReport: unpinned_lines,
    UsesReport: uses_lines,
    WhyReport: why_lines,
}
"""How each answer is shown."""


def answer_lines(report: object) -> Iterable[str]:
    """Return an answer as text."""
    if isinstance(report, tuple):
        return (line for part in report for line in LINES[type(part)](part))
    return LINES[type(report)](report)
