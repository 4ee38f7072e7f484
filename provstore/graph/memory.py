"""A graph index in memory: the reference; for packs, and stores that cannot be written."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from provstore.errors import NotFoundError
from provstore.graph.index import OWN, Edge, Statement, Unit
from provstore.graph.nodes import Node, NodeKind
from provstore.graph.relations import KINDS, Relation, RelationKind
from provstore.graph.statements import Statements

_RANK: Final = {kind: rank for rank, kind in enumerate(KINDS)}
_NOWHERE: Final = Statement("", "", "")

_Row = tuple[int, int, int]
"""Rank of the kind, node at the other end, statement: sorted as edges are."""


class MemoryIndex:
    """An index that lives as long as the process.

    Example:
        >>> index = MemoryIndex()
        >>> edge = Relation(Node("packet", "ab" * 32), "holds", Node("object", "cd" * 32), "ab" * 32, "log")
        >>> index.add([Unit("ab" * 32, [edge], {})])
        >>> number = index.number(Node("object", "cd" * 32))
        >>> [(edge.kind, index.node(edge.node).kind) for edge in index.into(number)]
        [('holds', 'packet')]
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._numbers: dict[Node, int] = {}
        self._keys: dict[NodeKind, list[str]] = {}
        self._out: dict[int, list[_Row]] = {}
        self._into: dict[int, list[_Row]] = {}
        self._statements: list[Statement] = [_NOWHERE]
        self._stated: dict[tuple[str, str, str], Statements] = {}
        self._units: set[str] = set()
        self._relations = 0
        self._note = b""

    def number(self, node: Node) -> int | None:
        """Return the number of a node, or None when nothing speaks of it."""
        return self._numbers.get(node)

    def node(self, number: int) -> Node:
        """Return the node with a number."""
        if not 0 < number <= len(self._nodes):
            raise NotFoundError(str(number), "no node of the graph has this number")
        return self._nodes[number - 1]

    def nodes_at(self, numbers: Iterable[int]) -> list[Node]:
        """Return the nodes with these numbers, in their order."""
        return [self.node(number) for number in numbers]

    def out(self, number: int, kinds: frozenset[RelationKind] | None = None) -> Iterator[Edge]:
        """Yield the edges that start from a node, sorted by kind and target."""
        return _edges(self._out.get(number, []), kinds)

    def into(self, number: int, kinds: frozenset[RelationKind] | None = None) -> Iterator[Edge]:
        """Yield the edges that lead to a node, sorted by kind and source."""
        return _edges(self._into.get(number, []), kinds)

    def edges(
        self, numbers: Sequence[int], *, back: bool = False, kinds: frozenset[RelationKind] | None = None
    ) -> Iterator[tuple[int, Edge]]:
        """Yield the edges of many nodes, with the node they were asked for."""
        table = self._into if back else self._out
        for number in sorted(numbers):
            for edge in _edges(table.get(number, []), kinds):
                yield number, edge

    def neighbours(self, numbers: Sequence[int], *, back: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the nodes at the other ends of the edges of many nodes, with the node they were asked for."""
        table = self._into if back else self._out
        return ((number, node) for number in sorted(numbers) for _, node, _ in table.get(number, ()))

    def degrees(self, numbers: Iterable[int], *, back: bool = False) -> list[int]:
        """Return how many edges each of these nodes has."""
        table = self._into if back else self._out
        return [len(table.get(number, ())) for number in numbers]

    def statement(self, number: int) -> Statement:
        """Return where a relation is stated."""
        if not 0 <= number < len(self._statements):
            raise NotFoundError(str(number), "no statement of the graph has this number")
        return self._statements[number]

    def nodes(self, kind: NodeKind, prefix: str = "") -> Iterator[tuple[int, Node]]:
        """Yield the nodes of a kind whose keys begin with a prefix, sorted by key."""
        keys = self._keys.get(kind, [])
        for key in keys[bisect_left(keys, prefix) :]:
            if not key.startswith(prefix):
                return
            node = Node(kind, key)
            yield self._numbers[node], node

    def stated(self) -> Iterator[tuple[str, Statements]]:
        """Yield what every document states, with the hex id of its object."""
        for id, kind, subject in sorted(self._stated):
            yield id, self._stated[id, kind, subject]

    def stated_by(self, object_hex: str) -> Statements | None:
        """Return what one document states."""
        return next((found for id, found in self.stated() if id == object_hex), None)

    def units(self) -> frozenset[str]:
        """Return the ids of everything that was taken in."""
        return frozenset(self._units)

    def knows(self, unit: str) -> bool:
        """Say whether a unit was taken in."""
        return unit in self._units

    def sizes(self) -> tuple[int, int]:
        """Return how many nodes and relations there are."""
        return len(self._nodes), self._relations

    def noted(self) -> bytes:
        """Return the latest note, empty if there is none."""
        return self._note

    def add(self, units: Iterable[Unit], note: bytes | None = None) -> None:
        """Take in more; a unit that is there already is left alone."""
        for unit in [Unit(unit.id, list(unit.relations), unit.statements) for unit in units]:
            if unit.id not in self._units:
                self._units.add(unit.id)
                self._take(unit)
        if note is not None:
            self._note = note

    def _take(self, unit: Unit) -> None:
        made: dict[Statement, int] = {}
        for relation in dict.fromkeys(unit.relations):
            source, target = self._number_of(relation.source), self._number_of(relation.target)
            statement = OWN if is_own(relation) else made.get(statement_of(relation))
            if statement is None:
                statement = made[statement_of(relation)] = len(self._statements)
                self._statements.append(statement_of(relation))
            rank = _RANK[relation.kind]
            insort(self._out.setdefault(source, []), (rank, target, statement))
            insort(self._into.setdefault(target, []), (rank, source, statement))
            self._relations += 1
        self._stated |= {(id, said.subject_kind, said.subject): said for id, said in unit.statements}

    def _number_of(self, node: Node) -> int:
        found = self._numbers.get(node)
        if found is None:
            self._nodes.append(node)
            found = self._numbers[node] = len(self._nodes)
            insort(self._keys.setdefault(node.kind, []), node.key)
        return found

    def close(self) -> None:
        """Do nothing: memory goes with its owner."""


def _edges(rows: list[_Row], kinds: frozenset[RelationKind] | None) -> Iterator[Edge]:
    for rank, node, statement in rows:
        kind: RelationKind = KINDS[rank]  # type: ignore[assignment]
        if kinds is None or kind in kinds:
            yield Edge(kind, node, statement)


def statement_of(relation: Relation) -> Statement:
    """Return where a relation is stated."""
    return Statement(relation.stated_by, relation.location, relation.reason)


def is_own(relation: Relation) -> bool:
    """Say whether the record that an edge starts from states it, as a whole: then nothing need be kept."""
    return relation.stated_by == relation.source.key and not relation.location and not relation.reason
