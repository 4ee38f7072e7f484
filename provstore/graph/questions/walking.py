"""Walks over relations: who refers to something, what it leads to, how two things are connected."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from provstore.graph.index import OWN, Edge, Index
from provstore.graph.nodes import Node
from provstore.graph.relations import RelationKind

HOLDING: Final[frozenset[RelationKind]] = frozenset(
    ("holds", "pins", "contains", "sealed-by", "restores-from", "built-from")
)
"""Relations from a packet to what it is made of, what it requires to be so, and where that comes from."""


class Step(NamedTuple):
    """One relation, as an answer shows it.

    Attributes:
        source: node that it starts from.
        kind: what it says.
        target: node that it leads to.
        stated_by: hex id of the object or record that states it.
        location: where in there.
        reason: the statement's words, if it has some.
    """

    source: Node
    kind: RelationKind
    target: Node
    stated_by: str
    location: str = ""
    reason: str = ""


def step(index: Index, source: Node, edge: Edge, target: Node) -> Step:
    """Return an edge with both its ends and its source."""
    if edge.statement == OWN:
        return Step(source, edge.kind, target, source.key)
    return Step(source, edge.kind, target, *index.statement(edge.statement))


class Use(NamedTuple):
    """A node that refers to another, directly or through others.

    Attributes:
        distance: number of relations between the two.
        node: what refers.
        step: its relation to the next node on the way.
    """

    distance: int
    node: Node
    step: Step


def uses(index: Index, start: int, kinds: frozenset[RelationKind] | None = None) -> Iterator[Use]:
    """Yield everything that refers to a node, each once: nearest first, then by kind and key."""
    seen = {start}
    level = {start: index.node(start)}
    distance = 0
    while level:
        distance += 1
        found: dict[int, tuple[int, Edge]] = {}
        for at, edge in index.edges(list(level), back=True, kinds=kinds):
            if edge.node not in seen and edge.node not in found:
                found[edge.node] = at, edge
        numbers = list(found)
        nodes = dict(zip(numbers, index.nodes_at(numbers), strict=True))
        seen.update(numbers)
        for number in sorted(numbers, key=nodes.__getitem__):
            at, edge = found[number]
            yield Use(distance, nodes[number], step(index, nodes[number], edge, level[at]))
        level = nodes


def reach(index: Index, start: int, kinds: frozenset[RelationKind] | None = None) -> dict[int, int]:
    """Return every node that a node leads to, itself included, with the number of the statement at its root.

    That statement is the one of the first relation on the way, so that its location names a role.
    """
    found = {start: OWN}
    level = [start]
    while level:
        following: list[int] = []
        for at, edge in index.edges(level, kinds=kinds):
            if edge.node not in found:
                found[edge.node] = edge.statement if at == start else found[at]
                following.append(edge.node)
        level = following
    return found


_PORTION: Final = 2000
"""Relations that are looked at before both sides are held against each other."""


class _Side:
    """One side of a search from both ends."""

    def __init__(self, index: Index, start: int, *, back: bool, both: bool) -> None:
        self.came: dict[int, tuple[int, bool] | None] = {start: None}
        self.level = [start]
        self._known: list[int] | None = None
        self._index = index
        self._ways = (False, True) if both else (back,)

    def cost(self) -> int:
        """Return how many relations the next step would look at, at most."""
        return sum(self._degrees())

    def _degrees(self) -> list[int]:
        """Return how many relations of each node of the level would be looked at; asked once a level."""
        if self._known is None:
            found = [self._index.degrees(self.level, back=back) for back in self._ways]
            self._known = [sum(counts) for counts in zip(*found, strict=True)]
        return self._known

    def grow(self, other: "_Side") -> int | None:
        """Go one relation further, or as far as to where both sides meet; return where that is, or None.

        Nodes with few relations come first: what everybody has to do with is looked at only where nothing
        else connects both. Of several meetings in one portion the first by kind and key counts.
        """
        level: list[int] = []
        ordered = sorted(zip(self._degrees(), self.level, strict=True))
        begin = 0
        while begin < len(ordered):
            end, cost = begin, 0
            while end < len(ordered) and (end == begin or cost + ordered[end][0] <= _PORTION):
                cost += ordered[end][0]
                end += 1
            found = self._next([number for _, number in ordered[begin:end]])
            level += found
            meetings = found.keys() & other.came.keys()
            if meetings:
                return min(meetings, key=self._index.node)
            begin = end
        self.level, self._known = level, None
        return None

    def _next(self, numbers: list[int]) -> dict[int, tuple[int, bool]]:
        came = self.came
        found: dict[int, tuple[int, bool]] = {}
        for back in self._ways:
            for at, number in self._index.neighbours(numbers, back=back):
                if number not in came and number not in found:
                    found[number] = at, back
        came.update(found)
        return found

    def trail(self, number: int) -> list[tuple[int, int, bool]]:
        """Return the way from the start to a node: numbers of both ends, and if it was walked back."""
        steps = []
        while (before := self.came[number]) is not None:
            at, back = before
            steps.append((at, number, back))
            number = at
        return steps[::-1]


def path(index: Index, start: int, end: int, *, both: bool = False) -> list[Step] | None:
    """Return a shortest way between two nodes along their relations, or None.

    Args:
        index: the graph.
        start: number of the node at one end.
        end: number of the node at the other.
        both: also walk relations from their target to their source.

    Returns:
        The relations, in order, each as it is stated.
    """
    if start == end:
        return []
    ahead = _Side(index, start, back=False, both=both)
    behind = _Side(index, end, back=True, both=both)
    while ahead.level and behind.level:
        # The side that is cheaper to grow: one file that everybody has costs as much as all the others.
        small, large = (ahead, behind) if len(ahead.level) <= len(behind.level) else (behind, ahead)
        first = small.cost() <= len(large.level) or small.cost() <= large.cost()
        one, other = (small, large) if first else (large, small)
        meeting = one.grow(other)
        if meeting is not None:
            return list(_steps(index, [*ahead.trail(meeting), *reversed(behind.trail(meeting))]))
    return None


def _steps(index: Index, trail: Iterable[tuple[int, int, bool]]) -> Iterator[Step]:
    for at, number, back in trail:
        source, target = (number, at) if back else (at, number)
        here, there = index.nodes_at((source, target))
        yield step(index, here, _between(index, source, target), there)


def _between(index: Index, source: int, target: int) -> Edge:
    """Return the first relation from one node to another, looked up from the end that has fewer."""
    if index.degrees((source,)) <= index.degrees((target,), back=True):
        return min(edge for _, edge in index.edges((source,)) if edge.node == target)
    found = min(edge for _, edge in index.edges((target,), back=True) if edge.node == source)
    return found._replace(node=target)


Direction = Literal["forward", "backward", "mixed"]
"""How a way goes: along its relations as they are stated, against all of them, or both."""


def connection(index: Index, start: int, end: int) -> tuple[Direction, list[Step]] | None:
    """Return a shortest way between two nodes, or None: along the relations, else against them, else both."""
    ahead = path(index, start, end)
    if ahead is not None:
        return "forward", ahead
    back = path(index, end, start)
    if back is not None:
        return "backward", back[::-1]
    mixed = path(index, start, end, both=True)
    return None if mixed is None else ("mixed", mixed)


class Shared(NamedTuple):
    """A node that two others lead to.

    Attributes:
        node: what they share.
        here: statement of the first relation from the one.
        there: the same from the other.
    """

    node: Node
    here: int
    there: int


def shared(index: Index, a: int, b: int) -> list[Shared]:
    """Return what two nodes are both made of, sorted; of a directory that they share, not its members."""
    one, other = reach(index, a, HOLDING), reach(index, b, HOLDING)
    common = [number for number in one if number in other and number not in (a, b)]
    nodes = dict(zip(common, index.nodes_at(common), strict=True))
    trees = [number for number in common if nodes[number].kind == "tree"]
    inside = {edge.node for _, edge in index.edges(trees, kinds=frozenset(("contains",)))}
    found = [Shared(nodes[n], one[n], other[n]) for n in common if n not in inside]
    return sorted(found, key=lambda item: item.node)
