"""What a graph index can do; a store keeps one beside itself, memory holds one where nothing is written."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from provstore.graph.nodes import Node, NodeKind
from provstore.graph.relations import Relation, RelationKind
from provstore.graph.statements import Statements


class Edge(NamedTuple):
    """One step as a walk meets it.

    Attributes:
        kind: what the relation says.
        node: number of the node at the other end.
        statement: number of where it is stated; see :meth:`Index.statement`.
    """

    kind: RelationKind
    node: int
    statement: int


OWN: Final = 0
"""Number of a statement that is made by the record which the edge starts from, as a whole."""


class Statement(NamedTuple):
    """Where a relation is stated; see :class:`~provstore.graph.relations.Relation`.

    Everything is empty for :data:`OWN`: there ``stated_by`` is the key of the node that the edge starts from.
    """

    stated_by: str
    location: str
    reason: str


class Unit(NamedTuple):
    """What was taken into the index in one piece: all relations that one packet, verdict or document gives.

    Attributes:
        id: hex id of the record that it is of (packet, verdict, tree, facts), or of the object.
        relations: its edges.
        statements: what its documents state, each with the hex id (BLAKE3) of the document's object; the same
            bytes at two places are two statements. Of a packet itself, with the packet's id.
    """

    id: str
    relations: Iterable[Relation]
    statements: Sequence[tuple[str, Statements]] = ()


class Index(Protocol):
    """Relations in both directions, nodes by number, and what documents state."""

    def number(self, node: Node) -> int | None:
        """Return the number of a node, or None when nothing speaks of it."""

    def node(self, number: int) -> Node:
        """Return the node with a number.

        Raises:
            NotFoundError: there is none.
        """

    def out(self, number: int, kinds: frozenset[RelationKind] | None = None) -> Iterator[Edge]:
        """Yield the edges that start from a node, sorted by kind and target; of some kinds only, if given."""

    def into(self, number: int, kinds: frozenset[RelationKind] | None = None) -> Iterator[Edge]:
        """Yield the edges that lead to a node, sorted by kind and source; of some kinds only, if given."""

    def statement(self, number: int) -> Statement:
        """Return where a relation is stated."""

    def nodes(self, kind: NodeKind, prefix: str = "") -> Iterator[tuple[int, Node]]:
        """Yield the nodes of a kind whose keys begin with a prefix, sorted by key."""

    def stated(self) -> Iterator[tuple[str, Statements]]:
        """Yield what every document states, with the hex id of its object, sorted by that id and subject."""

    def stated_by(self, object_hex: str) -> Statements | None:
        """Return what one document states, at the first of its places by subject."""

    def edges(
        self, numbers: Sequence[int], *, back: bool = False, kinds: frozenset[RelationKind] | None = None
    ) -> Iterator[tuple[int, Edge]]:
        """Yield the edges of many nodes, with the node they were asked for; quicker than one by one.

        Args:
            numbers: the nodes, each once.
            back: edges that lead to them, instead of those that start from them.
            kinds: only of these kinds.
        """

    def neighbours(self, numbers: Sequence[int], *, back: bool = False) -> Iterator[tuple[int, int]]:
        """Yield what :meth:`edges` yields as two numbers, the node asked for and the other; quicker still."""

    def degrees(self, numbers: Iterable[int], *, back: bool = False) -> list[int]:
        """Return how many edges :meth:`edges` would yield for each of these nodes, without reading them."""

    def nodes_at(self, numbers: Iterable[int]) -> list[Node]:
        """Return the nodes with these numbers, in their order; raises as :meth:`node` does."""

    def units(self) -> frozenset[str]:
        """Return the ids of everything that was taken in."""

    def knows(self, unit: str) -> bool:
        """Say whether a unit was taken in."""

    def sizes(self) -> tuple[int, int]:
        """Return how many nodes and relations there are."""

    def add(self, units: Iterable[Unit], note: bytes | None = None) -> None:
        """Take in more, all or nothing; a unit that is there already is left alone.

        Args:
            units: what is new.
            note: is kept in the same step, for :meth:`noted`.
        """

    def noted(self) -> bytes:
        """Return the latest note, empty if there is none."""

    def close(self) -> None:
        """Release everything; closing twice is fine."""
