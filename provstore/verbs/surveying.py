"""Questions about the numbers that documents and packets state: by convention, by dimensions, over time."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from provstore.errors import NotFoundError
from provstore.graph.joined import joined_conventions
from provstore.graph.nodes import Node
from provstore.graph.questions import stating
from provstore.graph.questions.stating import Said
from provstore.graph.statements import Statements
from provstore.ids import to_raw
from provstore.paths import show
from provstore.reports.asked import SaidReport, SaidRow, TimelineReport, TimelineRow
from provstore.store.protocol import Reader
from provstore.verbs.asking import Asked
from provstore.verbs.paging import Limit, page


def stated(asked: Asked, *, superseded: bool = False) -> Iterator[tuple[str, Statements]]:
    """Yield what documents and packets state; not what a later import of a document took back.

    Args:
        asked: where to look.
        superseded: also that.
    """
    old = frozenset() if superseded else _superseded(asked)
    for id, statements in asked.graph.stated():
        if not old or (id not in old and _sha256(asked.reader, id) not in old):
            yield id, statements


def _superseded(asked: Asked) -> frozenset[str]:
    """Return ids of packets that an import superseded, and SHA-256 of what only they hold."""
    packets = dict(asked.graph.nodes("packet"))
    old = {edge.node for _, edge in asked.graph.edges(list(packets), kinds=frozenset(("supersedes",)))}
    if not old:
        return frozenset()
    held: dict[bool, set[int]] = {True: set(), False: set()}
    for at, edge in asked.graph.edges(list(packets), kinds=frozenset(("holds",))):
        held[at in old].add(edge.node)
    only = asked.graph.nodes_at(held[True] - held[False])
    return frozenset(packets[number].key for number in old) | frozenset(node.key for node in only)


def _sha256(reader: Reader, id: str) -> str:
    info = reader.info(to_raw(id))
    return "" if info is None else info.sha256.hex()


def convention(asked: Asked, name: str, *, limit: Limit = None, after: str | None = None) -> SaidReport:
    """Return the numbers that are counted in a convention, as far as a claim or a document says so.

    Where a number's own document states none, another may tell it: one that states the same number of the
    same run, or of a file that both rest on, with its count of events and intervals.

    Raises:
        UsageError: see :func:`page`.
    """
    return _said(stating.by_convention(_numbers(asked), name), limit, after)


def _numbers(asked: Asked) -> Iterator[Said]:
    told = {
        (found.measurement, found.location, found.value): (found.convention, found.reason)
        for found in joined_conventions(asked.graph)
    }
    return stating.with_told(stating.said(stated(asked)), told)


def select(
    asked: Asked, where: Sequence[str], *, limit: Limit = None, after: str | None = None
) -> SaidReport:
    """Return packets and measurements whose dimensions fulfil every condition.

    Raises:
        UsageError: a condition is malformed; see :func:`provstore.graph.questions.stating.condition`.
    """
    conditions = [stating.condition(text) for text in where]
    return _said(stating.select(lambda: stated(asked), conditions), limit, after)


def _said(found: Iterable[Said], limit: Limit, after: str | None) -> SaidReport:
    rows, following = page(found, _name, limit, after)
    return SaidReport(rows=tuple(SaidRow(**_fields(row)) for row in rows), next=following)


def _name(row: Said) -> str:
    return f"{row.stated_by[:12]} {row.node()} {row.location}"


def _fields(row: Said) -> dict[str, Any]:
    return {
        "node": row.node(),
        "subject": row.subject,
        "metric": row.metric,
        "value": row.value,
        "unit": row.unit,
        "convention": row.convention,
        "state": row.state,
        "selectors": row.selectors,
        "stated_by": row.stated_by,
        "location": row.location,
        "date": row.date,
        "told": row.told,
    }


def timeline(asked: Asked, name: str, *, limit: Limit = None, after: str | None = None) -> TimelineReport:
    """Return the numbers of a metric, or of everything whose name begins so, over time.

    A number of a document has the document's date. A claim has that of a document in its packet, or the
    time at which a ref first named the packet.

    Args:
        asked: where to look.
        name: a metric, or the beginning of a ref, or of a part of the name of what a document is about.
        limit: most rows.
        after: see :func:`page`.

    Raises:
        NotFoundError: no number has this metric, and nothing is called so.
    """
    firsts: dict[str, int] = {}
    named: set[str] = set()
    for change in asked.reader.ref_log():
        if change.id is not None:
            firsts.setdefault(change.id.hex(), change.taken_ns)
            if change.name.startswith(name):
                named.add(change.id.hex())
    dates = _dates(asked)

    def fits(row: Said) -> bool:
        subject = row.subject.partition(":")[2]
        parts = (subject, *re.split("[:/]", subject))
        return row.metric == name or subject in named or any(part.startswith(name) for part in parts)

    def when(row: Said) -> str:
        if row.kind != "claim":
            return row.date
        seal = firsts.get(row.stated_by)
        return dates.get(row.stated_by, "" if seal is None else _utc(seal))

    points = stating.timeline((row for row in _numbers(asked) if fits(row)), when)
    if not points:
        raise NotFoundError(show(name), "no number has this metric, and nothing that states one is called so")
    rows, following = page(points, lambda point: _name(point.said), limit, after)
    return TimelineReport(
        name=name,
        rows=tuple(TimelineRow(**_fields(p.said), when=p.when, best=p.best) for p in rows),
        next=following,
    )


def _dates(asked: Asked) -> dict[str, str]:
    """Return the date of the first dated document that each packet holds."""
    dates: dict[str, str] = {}
    for id, statements in stated(asked):
        info = asked.reader.info(to_raw(id)) if statements.date else None
        number = None if info is None else asked.graph.number(Node("object", info.sha256.hex()))
        for edge in () if number is None else asked.graph.into(number, frozenset(("holds",))):
            packet = asked.graph.node(edge.node).key
            dates[packet] = min(dates.get(packet, statements.date), statements.date)
    return dates


def _utc(ns: int) -> str:
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
