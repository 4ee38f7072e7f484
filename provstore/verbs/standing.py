"""Where packets and documented runs stand in the space of configurations, and what undoes them."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from provstore.graph.index import Index
from provstore.graph.nodes import Node, NodeKind, node_named, parse_node
from provstore.graph.places import Known, Place, equal
from provstore.graph.relations import UNDOING, RelationKind
from provstore.graph.scope import Rule, Standing
from provstore.graph.statements import Statements
from provstore.ids import RawId, to_raw
from provstore.records.packet import Packet
from provstore.records.verdict import Verdict
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.store.resolving import resolve_packet
from provstore.verbs.keeping import verdicts

_BACK: Final[frozenset[RelationKind]] = frozenset({"is-file", "evidenced-by", "described-by"})
_RESTS_ON: Final[frozenset[RelationKind]] = frozenset(
    {"evidenced-by", "based-on", "derived-from", "described-by", "measured-by", "is-file", "states"}
)
_NAMED: Final[frozenset[NodeKind]] = frozenset(
    {"family-packet", "measurement", "package", "recipe", "record"}
)
_DOCUMENTS: Final = frozenset({"document", "record", "receipt"})

MAX_STEPS: Final = 10_000
"""Nodes that are visited below one claim."""


class Stand(NamedTuple):
    """Where a packet, or something that a document describes, stands.

    Attributes:
        node: what it is.
        place: its dimensions.
        rules: its own rules.
        claims: name and convention of its claims, with what to call them.
        described: nodes that describe the same thing in documents.
        families: statements of the families that these belong to, with the hex id of the document.
        undone: relations that undo it.
        shaken: relations that undo what it or one of its claims rests on.
        notes: contradictions that were met.
    """

    node: Node
    place: Place
    rules: tuple[Rule, ...]
    claims: tuple[tuple[str, str, str], ...]
    described: tuple[Node, ...]
    families: tuple[tuple[str, Statements], ...]
    undone: tuple[Standing, ...]
    shaken: tuple[Standing, ...]
    notes: tuple[str, ...]


def subject(reader: Reader, name: str) -> Node:
    """Return what a name stands for: a packet by ref, id or prefix, or a node written as ``KIND:KEY``.

    Raises:
        NotFoundError, AmbiguousError: nothing fits, or too much.
    """
    return node_named(name) or Node("packet", resolve_packet(reader, name).hex())


def stand(reader: Reader, index: Index, node: Node) -> Stand:
    """Return where a node stands: a packet by its record, and by what documents say of it; another by these.

    Args:
        reader: the store or pack.
        index: its graph.
        node: a packet, or a ``family-packet``, ``measurement``, ``package``, ``recipe`` or ``record``.

    Raises:
        NotFoundError, IntegrityError: the packet is not here, or damaged.
    """
    packet = objects.packet(reader, to_raw(node.key)) if node.kind == "packet" else None
    place: Place = {}
    rules: list[Rule] = []
    if packet is not None and packet.scope is not None:
        for name, value in packet.scope.at.items():
            place[name] = Known(value, node.key, f"scope.at.{name}")
        for number, rule in enumerate(packet.scope.rules, 1):
            name = f"scope-rule {number}"
            rules.append(
                Rule(name, rule.claim, rule.preserve, rule.statement, node.key, f"scope.rule.{number}")
            )
    described = tuple(_described(index, node, packet))
    documents = Documents(reader, index)
    notes: list[str] = []
    own = frozenset(place)
    for about in (node, *described):
        for known in _places(documents.about(about), about):
            _merge(place, known, own, notes)
    names = dict.fromkeys(_family(about) for about in (node, *described))
    families = tuple(found for name in names if name for found in documents.about(Node("family", name)))
    claims = tuple(
        (claim.name, claim.convention, f"{claim.name}: {claim.value} {claim.unit} ({claim.convention})")
        for claim in (packet.claims if packet is not None else ())
    )
    undone = [standing for about in (node, *described) for standing in undoing(index, about)]
    failed = tuple(_failed(reader, node))
    undone += [one for one in failed if one.relation == "failed"]
    stated = [Node("claim", f"{node.key}/{name}") for name, _, _ in claims]
    shaken = (
        *(one for one in failed if one.relation != "failed"),
        *below(index, [node, *described, *stated]),
    )
    return Stand(node, place, tuple(rules), claims, described, families, tuple(undone), shaken, tuple(notes))


class Documents:
    """What documents state about nodes; of a document that was imported again, only the newest version."""

    def __init__(self, reader: Reader, index: Index) -> None:
        self._reader = reader
        self._index = index
        self._current: dict[str, bool] = {}

    def about(self, node: Node) -> list[tuple[str, Statements]]:
        """Return what documents state that speak of a node, with their hex ids, sorted by these."""
        number = self._index.number(node)
        if number is None:
            return []
        edges = [*self._index.into(number, frozenset({"states"}))]
        edges += self._index.out(number, frozenset({"belongs-to"}))
        ids = {self._index.statement(edge.statement).stated_by for edge in edges}
        found = [(id, self._index.stated_by(id)) for id in sorted(ids) if id and self.is_current(id)]
        return [(id, statements) for id, statements in found if statements is not None]

    def is_current(self, id: str) -> bool:
        """Say whether some packet that nothing supersedes holds a document."""
        if id not in self._current:
            self._current[id] = self._look(id)
        return self._current[id]

    def _look(self, id: str) -> bool:
        info = self._reader.info(to_raw(id))
        number = None if info is None else self._index.number(Node("object", info.sha256.hex()))
        if number is None:
            return True
        holders = [edge.node for edge in self._index.into(number, frozenset({"holds"}))]
        over = frozenset[RelationKind]({"supersedes"})
        return not holders or any(not any(self._index.into(holder, over)) for holder in holders)


def _family(about: Node) -> str:
    """Return the family that a node is a part of, or nothing."""
    return about.key.partition("/")[0] if about.kind in ("family-packet", "measurement") else ""


def _merge(place: Place, known: Mapping[str, Known], own: frozenset[str], notes: list[str]) -> None:
    """Add what a document states; a packet's own word stands, between two documents nothing decides."""
    for name, value in known.items():
        before = place.setdefault(name, value)
        if not equal(before.value, value.value):
            where = f"{value.stated_by[:12]} {value.location}".rstrip()
            first = f"{before.stated_by[:12]} {before.location}".rstrip()
            note = f"{name} is {before.value} by {first} and {value.value} by {where}"
            if note not in notes:
                notes.append(note)
            if name not in own and not any(equal(value.value, other) for other in before.others):
                place[name] = before._replace(others=(*before.others, value.value))


def _described(index: Index, node: Node, packet: Packet | None) -> Iterator[Node]:
    """Yield the nodes by which documents know a packet: named by it, or resting on one of its documents."""
    found: dict[Node, None] = {}
    if packet is not None and packet.scope is not None:
        for text in packet.scope.described_as:
            found[parse_node(text)] = None
    if packet is not None:
        for entry in packet.entries:
            if entry.tree is None and entry.sha256 is not None and entry.kind in _DOCUMENTS:
                for about in _citing(index, Node("object", entry.sha256)):
                    found.setdefault(about)
    found.pop(node, None)
    yield from found


def _citing(index: Index, node: Node) -> Iterator[Node]:
    """Yield measurements and packets of families whose evidence or description is this object."""
    number = index.number(node)
    if number is None:
        return
    for at in index.into(number, frozenset({"is-file"})):
        for edge in index.into(at.node, _BACK):
            about = index.node(edge.node)
            if about.kind in _NAMED:
                yield about


def _places(stated: Iterable[tuple[str, Statements]], about: Node) -> Iterator[Place]:
    for id, statements in stated:
        for lineup in statements.lineups:
            if (lineup.kind, lineup.key) == about:
                yield {name: Known(value, id, lineup.location) for name, value in lineup.selectors.items()}
        for measurement in statements.measurements:
            if about == ("measurement", measurement.key):
                yield {
                    n: Known(value, id, measurement.location) for n, value in measurement.selectors.items()
                }


def undoing(index: Index, node: Node) -> Iterator[Standing]:
    """Yield what says that a node no longer stands as it was."""
    number = index.number(node)
    for edge in index.into(number, UNDOING) if number is not None else ():
        by = index.node(edge.node)
        yield Standing(edge.kind, str(by), index.statement(edge.statement).reason)


def below(index: Index, nodes: Iterable[Node]) -> Iterator[Standing]:
    """Yield what undoes something that nodes rest on, at any distance; of a file also what it states."""
    starts = {number for number in map(index.number, nodes) if number is not None}
    todo, seen = deque(sorted(starts)), set(starts)
    while todo and len(seen) < MAX_STEPS:
        here = todo.popleft()
        node = index.node(here)
        if here not in starts:
            yield from undoing(index, node)
        for edge in index.out(here, _RESTS_ON):
            # What a packet states are its claims, and it does not rest on these.
            if edge.node not in seen and (edge.kind != "states" or node.kind == "path"):
                seen.add(edge.node)
                todo.append(edge.node)


def newest_verdicts(reader: Reader, packet: RawId) -> Iterator[tuple[str, Verdict]]:
    """Yield the newest verdict of each policy; one that was edited is another, whatever it calls itself."""
    newest: dict[str, tuple[str, Verdict]] = {}
    for id, found in verdicts(reader, packet):
        newest[found.policy] = (id.hex(), found)
    yield from newest.values()


def _failed(reader: Reader, node: Node) -> Iterator[Standing]:
    """Yield policies that fail claims of a packet (``failed``), or something else of it (``fails``)."""
    if node.kind != "packet":
        return
    for id, verdict in newest_verdicts(reader, to_raw(node.key)):
        failing = [gate.gate for gate in verdict.gates if gate.kind == "claim" and gate.outcome == "FAIL"]
        if failing:
            yield Standing("failed", f"verdict:{id}", f"policy {verdict.policy_name}: {', '.join(failing)}")
        elif verdict.outcome == "FAIL":
            gates = [gate.gate for gate in verdict.gates if gate.required and gate.outcome == "FAIL"]
            yield Standing("fails", f"verdict:{id}", f"policy {verdict.policy_name}: {', '.join(gates)}")
