"""What rests on something that no longer stands: superseded, corrected, withdrawn, failed, never exact."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from provstore.graph.index import Edge, Index
from provstore.graph.nodes import KINDS, Node, NodeKind
from provstore.graph.questions.walking import Step, step
from provstore.graph.relations import UNDOING, RelationKind
from provstore.graph.statements import Statements

Why = Literal["superseded", "corrected", "withdrawn", "quarantined", "failed", "not-exact"]

_WHY: Final[dict[str, Why]] = {
    "supersedes": "superseded",
    "corrects": "corrected",
    "withdraws": "withdrawn",
    "quarantines": "quarantined",
}

RESTING: Final[frozenset[RelationKind]] = frozenset(
    ("evidenced-by", "based-on", "cites", "plots", "derived-from", "measured-by", "seals", "described-by")
)
"""Relations whose source falls with its target."""

_STATING: Final = frozenset[RelationKind](("states",))
_OF_FILE: Final = frozenset[RelationKind](("is-file",))
_NO_DOCUMENT: Final = frozenset(("packet", "claim", "object", "tree", "path"))
_JUDGING: Final = frozenset[RelationKind](("judges",))
_NEVER_UNDOES: Final = frozenset(("object", "tree", "path", "commit", "hub-revision", "url", "host", "claim"))
_SCREENED: Final = "lab-screened"


class Fallen(NamedTuple):
    """Something that no longer stands.

    Attributes:
        node: what.
        why: in one word.
        by: relation that says so; None where a state does.
        reason: in the source's words.
    """

    node: Node
    why: Why
    by: Step | None
    reason: str


class Resting(NamedTuple):
    """Something that rests on what has fallen.

    Attributes:
        node: what rests; the fallen thing itself at distance 0.
        on: what fell.
        distance: number of relations between them.
        step: the relation from ``node`` to the next thing on the way; None at distance 0.
    """

    node: Node
    on: Fallen
    distance: int
    step: Step | None


def fallen(index: Index, stated: Iterable[tuple[str, Statements]]) -> Iterator[Fallen]:
    """Yield everything that no longer stands, with what says so."""
    for kind in KINDS:
        if kind not in _NEVER_UNDOES:
            yield from _undone(index, kind)  # type: ignore[arg-type]
    yield from _failed(index)
    for id, statements in stated:
        for measurement in statements.measurements:
            if measurement.state == _SCREENED:
                node = Node("measurement", measurement.key)
                by = Step(Node(_subject_kind(statements), statements.subject), "states", node, id)
                reason = f"its source calls it {_SCREENED}"
                yield Fallen(node, "not-exact", by._replace(location=measurement.location), reason)


def _subject_kind(statements: Statements) -> NodeKind:
    kind: NodeKind = statements.subject_kind  # type: ignore[assignment]
    return kind


def _undone(index: Index, kind: NodeKind) -> Iterator[Fallen]:
    nodes = dict(index.nodes(kind))
    for at, edge in index.edges(list(nodes), kinds=UNDOING):
        target = index.node(edge.node)
        by = step(index, nodes[at], edge, target)
        yield Fallen(target, _WHY[edge.kind], by, by.reason)


def _failed(index: Index) -> Iterator[Fallen]:
    """Yield packets of which a verdict says FAIL and none, under the same policy, says PASS."""
    packets = dict(index.nodes("packet"))
    judged: dict[tuple[int, str], list[tuple[int, Edge, str]]] = {}
    for at, edge in index.edges(list(packets), back=True, kinds=_JUDGING):
        statement = index.statement(edge.statement)
        judged.setdefault((at, statement.location), []).append((edge.node, edge, statement.reason))
    for (at, policy), found in judged.items():
        words = {reason for _, _, reason in found}
        if "FAIL" in words and "PASS" not in words:
            number, edge = next((n, e) for n, e, reason in found if reason == "FAIL")
            by = step(index, index.node(number), edge, packets[at])
            yield Fallen(packets[at], "failed", by, f"FAIL under {policy}")


def _files(index: Index, level: Mapping[int, Node]) -> Iterator[tuple[int, Edge]]:
    """Yield the paths of files that fall with their bytes, or with what they state."""
    about = [number for number, node in level.items() if node.kind not in _NO_DOCUMENT]
    stating = list(index.edges(about, back=True, kinds=_STATING))
    sources = index.nodes_at([edge.node for _, edge in stating])
    yield from (pair for pair, source in zip(stating, sources, strict=True) if source.kind == "path")
    objects = [number for number, node in level.items() if node.kind == "object"]
    yield from index.edges(objects, back=True, kinds=_OF_FILE)


def resting(index: Index, found: Iterable[Fallen]) -> Iterator[Resting]:
    """Yield what has fallen and everything that rests on it, each node once for each fallen one.

    A packet takes its claims along.
    """
    for one in sorted(set(found), key=lambda item: (item.node, item.why, item.by or (), item.reason)):
        yield Resting(one.node, one, 0, None)
        start = index.number(one.node)
        if start is None:
            continue
        seen = {start}
        level = {start: one.node}
        distance = 0
        while level:
            distance += 1
            steps: dict[int, tuple[int, Edge, bool]] = {}
            for at, edge in index.edges(list(level), back=True, kinds=RESTING):
                steps.setdefault(edge.node, (at, edge, True))
            packets = [number for number, node in level.items() if node.kind == "packet"]
            for at, edge in index.edges(packets, kinds=_STATING):
                steps.setdefault(edge.node, (at, edge, False))
            for at, edge in _files(index, level):
                steps.setdefault(edge.node, (at, edge, True))
            numbers = [number for number in steps if number not in seen]
            nodes = dict(zip(numbers, index.nodes_at(numbers), strict=True))
            for number in sorted(numbers, key=nodes.__getitem__):
                at, edge, back = steps[number]
                ends = (nodes[number], level[at]) if back else (level[at], nodes[number])
                yield Resting(nodes[number], one, distance, step(index, ends[0], edge, ends[1]))
            seen.update(numbers)
            level = nodes
