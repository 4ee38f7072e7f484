"""Questions about the graph of a store or a pack; each brings the index up to date first."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from provstore import records
from provstore.errors import FrameError, IntegrityError, MalformedError, NotFoundError
from provstore.graph.index import OWN, Index
from provstore.graph.nodes import Node
from provstore.graph.questions import resting, walking
from provstore.ids import to_raw
from provstore.records.verdict import Verdict
from provstore.reports.asked import (
    AskedStep,
    PinRow,
    PinsReport,
    SharedReport,
    SharedRow,
    StaleReport,
    StaleRow,
    UseRow,
    UsesReport,
    WhyReport,
)
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.asking import Asked, names_in_tree, node_of, number_of
from provstore.verbs.paging import Limit, page
from provstore.verbs.refreshing import refresh
from provstore.verbs.surveying import stated


@contextmanager
def asking(reader: Reader) -> Iterator[Asked]:
    """Open the graph of a store or a pack for several questions, up to date as of now."""
    found = refresh(reader)
    try:
        yield Asked(reader, found.graph)
    finally:
        found.graph.close()


def shown(reader: Reader, step: walking.Step) -> AskedStep:
    """Return a relation for a report; a member of a directory with its name."""
    location = step.location
    if step.kind == "contains" and not location:
        location = names_in_tree(reader, step.source.key, step.target)
    return AskedStep(
        source=str(step.source),
        relation=step.kind,
        target=str(step.target),
        stated_by=step.stated_by,
        location=location,
        reason=step.reason,
    )


def uses(
    asked: Asked, name: str, *, kind: str | None = None, limit: Limit = None, after: str | None = None
) -> UsesReport:
    """Return everything that refers to something, directly or through others.

    Args:
        asked: where to look.
        name: what is asked about; see :func:`provstore.verbs.asking.node_of`.
        kind: only nodes of this kind.
        limit: most rows.
        after: see :func:`page`.

    Raises:
        NotFoundError, AmbiguousError, UsageError: see there.
    """
    node = node_of(asked, name)
    found = walking.uses(asked.graph, number_of(asked, node))
    picked = (use for use in found if kind is None or use.node.kind == kind)
    rows, following = page(picked, lambda use: str(use.node), limit, after)
    whole = following is None and after is None
    return UsesReport(
        node=str(node),
        rows=tuple(
            UseRow(
                distance=use.distance,
                kind=use.node.kind,
                node=str(use.node),
                step=shown(asked.reader, use.step),
            )
            for use in rows
        ),
        kinds=dict(sorted(Counter(use.node.kind for use in rows).items())) if whole else None,
        next=following,
    )


def pins(asked: Asked, name: str, *, limit: Limit = None, after: str | None = None) -> PinsReport:
    """Return the packets that hold or pin a file, a directory, a commit or a revision.

    Raises:
        NotFoundError, AmbiguousError, UsageError: see :func:`uses`; a file that nothing pins is not found.
    """
    node = node_of(asked, name)
    start = number_of(asked, node)
    refs: dict[str, list[str]] = {}
    for ref, packet in asked.reader.refs():
        refs.setdefault(packet.hex(), []).append(ref)
    came: dict[Node, walking.Use] = {}
    found: list[tuple[walking.Use, walking.Use]] = []
    for use in walking.uses(asked.graph, start):
        first = use if use.distance == 1 else came[use.step.target]
        came[use.node] = first
        if use.node.kind == "packet":
            found.append((use, first))
    found.sort(key=lambda pair: (refs.get(pair[0].node.key, ["~"]), pair[0].node.key))
    rows, following = page(found, lambda pair: pair[0].node.key, limit, after)
    return PinsReport(
        node=str(node),
        rows=tuple(
            PinRow(
                packet=use.node.key,
                names=tuple(refs.get(use.node.key, ())),
                distance=use.distance,
                via=str(first.node),
                step=shown(asked.reader, first.step),
            )
            for use, first in rows
        ),
        next=following,
    )


def why(asked: Asked, a: str, b: str) -> WhyReport:
    """Return a shortest way between two things, each relation with what states it.

    One along the relations as they are stated is preferred, from the first to the second or back; where
    there is none, relations are walked both ways.

    Raises:
        NotFoundError, AmbiguousError: see :func:`uses`.
    """
    one, other = node_of(asked, a), node_of(asked, b)
    start, end = number_of(asked, one), number_of(asked, other)
    found = walking.connection(asked.graph, start, end)
    return WhyReport(
        a=str(one),
        b=str(other),
        connected=found is not None,
        direction=None if found is None else found[0],
        steps=() if found is None else tuple(shown(asked.reader, step) for step in found[1]),
    )


def shared(asked: Asked, a: str, b: str, *, limit: Limit = None, after: str | None = None) -> SharedReport:
    """Return what two packets, or two other things, are both made of or both require.

    Raises:
        NotFoundError, AmbiguousError, UsageError: see :func:`uses`.
    """
    one, other = node_of(asked, a), node_of(asked, b)
    found = walking.shared(asked.graph, number_of(asked, one), number_of(asked, other))
    rows, following = page(found, lambda row: str(row.node), limit, after)
    return SharedReport(
        a=str(one),
        b=str(other),
        rows=tuple(
            SharedRow(
                kind=row.node.kind,
                node=str(row.node),
                here=_place(asked.graph, row.here),
                there=_place(asked.graph, row.there),
            )
            for row in rows
        ),
        kinds=dict(sorted(Counter(row.node.kind for row in found).items())),
        next=following,
    )


def _place(graph: Index, statement: int) -> str:
    return "" if statement == OWN else graph.statement(statement).location


def stale(
    asked: Asked, *, kind: str | None = None, limit: Limit = None, after: str | None = None
) -> StaleReport:
    """Return everything that rests on something superseded, corrected, withdrawn, failed or never exact.

    Args:
        asked: where to look.
        kind: only nodes of this kind, such as ``claim``.
        limit: most rows.
        after: see :func:`page`.
    """
    fallen = resting.fallen(asked.graph, stated(asked))
    found = resting.resting(asked.graph, fallen)
    picked = (row for row in found if kind is None or row.node.kind == kind)
    rows, following = page(picked, _stale_name, limit, after)
    gates: dict[str, tuple[str, ...]] = {}
    return StaleReport(
        rows=tuple(
            StaleRow(
                node=str(row.node),
                on=str(row.on.node),
                why=row.on.why,
                reason=row.on.reason,
                by=None if row.on.by is None else shown(asked.reader, row.on.by),
                distance=row.distance,
                step=None if row.step is None else shown(asked.reader, row.step),
                gates=_gates(asked.reader, row.on, gates),
            )
            for row in rows
        ),
        next=following,
    )


def _stale_name(row: resting.Resting) -> str:
    by = row.on.by.stated_by[:12] if row.on.by is not None else ""
    return f"{row.on.node} {row.on.why} {by} {row.distance} {row.node}"


def _gates(reader: Reader, fallen: resting.Fallen, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the gates of a failed verdict that did not pass, with their codes."""
    if fallen.why != "failed" or fallen.by is None:
        return ()
    id = fallen.by.source.key
    if id not in known:
        try:
            record = records.decode(objects.record(reader, to_raw(id)), id)
        except (FrameError, IntegrityError, MalformedError, NotFoundError):
            record = None
        known[id] = _failing(record) if isinstance(record, Verdict) else ()
    return known[id]


def _failing(verdict: Verdict) -> tuple[str, ...]:
    found = []
    for gate in verdict.gates:
        if gate.required and gate.outcome in ("FAIL", "INELIGIBLE"):
            codes = dict.fromkeys(item.code for item in gate.judgements if item.outcome == gate.outcome)
            found.append(f"{gate.gate}: {', '.join(codes)}")
    return tuple(found)
