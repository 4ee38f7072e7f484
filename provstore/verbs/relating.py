"""Taking what is new in a store into an index of its graph: packets, trees, facts, verdicts, documents."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from provstore import merkle, records
from provstore.errors import (
    FrameError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    StoreDamagedError,
)
from provstore.graph import deriving
from provstore.graph.index import Index, Unit
from provstore.graph.nodes import Node
from provstore.graph.relations import Relation
from provstore.graph.statements import Statements, Understood
from provstore.ids import RawId, to_raw
from provstore.paths import join, show, unshow
from provstore.records.facts import Facts
from provstore.records.packet import Entry, Packet, check_packet
from provstore.records.tree import TreeLeaf
from provstore.records.verdict import Verdict
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.keeping import is_here

BATCH: Final = 100_000
"""Relations that are taken in with one commit, at least; a packet comes whole, after its trees.

Many, since digests come in no order: each commit writes nearly as many pages as it brings nodes.
"""

_UNREADABLE: Final = (
    FrameError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    StoreDamagedError,
)


Understand = Callable[[bytes, str, str, str], Understood | None]
"""Reads a document, as :func:`provstore.graph.documents.reading.understand` does."""


class Work(NamedTuple):
    """What one refresh did; tests hold refreshes to these numbers.

    Attributes:
        rebuilt: why the index was made anew; empty if it was not.
        in_memory: why it is not on disk; empty if it is.
        packets, verdicts, trees, facts, documents: records and objects that were read.
        unread: hex id and reason of what could not be read; what it states is not in the index.
    """

    rebuilt: str = ""
    in_memory: str = ""
    packets: int = 0
    verdicts: int = 0
    trees: int = 0
    facts: int = 0
    documents: int = 0
    unread: tuple[tuple[str, str], ...] = ()

    def anything(self) -> bool:
        """Say whether anything was read."""
        return bool(self.packets + self.verdicts + self.trees + self.facts + self.documents)


class Relating:
    """One refresh of an index: finds what is new, derives its relations, takes them in."""

    def __init__(self, reader: Reader, index: Index, understand: Understand) -> None:
        self._reader = reader
        self._index = index
        self._understand = understand
        self._waiting: list[Unit] = []
        self._relations = 0
        self._known = set(index.units())
        self._work = Work()
        self._unread: list[tuple[str, str]] = []

    def run(self, note: bytes) -> Work:
        """Take in everything that is new, and leave a note with the last of it."""
        todo = list(self._roots())
        seen = set(todo)
        while todo:
            id = todo.pop()
            for more in self._take_root(id):
                if more not in seen:
                    seen.add(more)
                    todo.append(more)
        self._index.add(self._waiting, note)
        return self._work._replace(unread=tuple(self._unread))

    def _roots(self) -> Iterator[RawId]:
        """Yield packets that refs name or named, and verdicts that were noted for them."""
        packets = dict.fromkeys(id for _, id in self._reader.refs())
        for step in self._reader.ref_log():
            packets |= dict.fromkeys(id for id in (step.id, step.previous) if id is not None)
        roots = getattr(self._reader, "roots", None)
        if roots is not None:
            packets |= dict.fromkeys(id for _, id in roots())
        # A packet that others continue may have come after them, with no ref of its own.
        named = (to_raw(node.key) for _, node in self._index.nodes("packet") if node.key not in self._known)
        yield from packets | dict.fromkeys(named)

    def _take_root(self, id: RawId) -> list[RawId]:
        """Take in a packet or verdict that is new; return what else it leads to."""
        verdicts = self._reader.verdicts(id)
        if id.hex() in self._known:
            return verdicts
        if not is_here(self._reader, id):
            return []
        found = self._record(id)
        if isinstance(found, Packet):
            self._packet(id.hex(), found)
            return [*verdicts, *map(to_raw, found.parents)]
        if isinstance(found, Verdict):
            self._work = self._work._replace(verdicts=self._work.verdicts + 1)
            self._put(id.hex(), deriving.verdict_relations(id.hex(), found, self._sha256))
        return []

    # -- one thing each ----------------------------------------------------------------------------

    def _packet(self, id: str, packet: Packet) -> None:
        self._work = self._work._replace(packets=self._work.packets + 1)
        relations = list(deriving.packet_relations(id, packet, self._sha256))
        statements: list[tuple[str, Statements]] = []
        own = deriving.packet_statements(id, packet)
        if own is not None:
            statements.append((id, own))
        for entry in packet.entries:
            if entry.tree is not None:
                self._tree(entry, to_raw(entry.tree))
            elif entry.blake3 is not None and entry.custody == "held" and entry.state is None:
                relations += self._file(packet, entry, statements)
            self._facts(entry)
            for pin in entry.pins:
                if pin.kind == "manifest":
                    self._evidence(pin.value, deriving.manifest_relations)
        relations += deriving.claim_relations(id, packet, partial(node_at, self._reader, packet))
        relations += _needs(id, packet, self._facts_of)
        self._put(id, relations, statements)

    def _file(self, packet: Packet, entry: Entry, statements: list[tuple[str, Statements]]) -> list[Relation]:
        """Return what a document says at its place in this packet; take in what it says at any."""
        blake3 = entry.blake3 or ""
        if entry.kind in deriving.DOCUMENT_KINDS:
            data = self._bytes(blake3)
            if data is None:
                return []
            self._work = self._work._replace(documents=self._work.documents + 1)
            repository = deriving.repository_of(packet, entry) or ""
            understood = self._understand(data, repository, entry.role, blake3)
            if understood is not None:
                statements.append((blake3, understood.statements))
                return list(understood.relations)
        reader = deriving.reader_of(entry.kind, entry.role)
        if reader is not None:
            self._evidence(blake3, _Reading(reader))
        return []

    def _evidence(self, blake3: str, derive: "Callable[[bytes, str, str], list[Relation]]") -> None:
        if blake3 in self._known:
            return
        sha256, data = self._sha256(blake3), self._bytes(blake3)
        if sha256 is not None and data is not None:
            self._work = self._work._replace(documents=self._work.documents + 1)
            self._put(blake3, derive(data, sha256, blake3))

    def _tree(self, entry: Entry, tree: RawId) -> None:
        todo = [(b"", tree)]
        named = entry.custody == "held" and entry.kind not in deriving.OPAQUE
        while todo:
            path, id = todo.pop()
            if id.hex() in self._known:
                continue
            found = self._node(id)
            if found is None:
                continue
            self._work = self._work._replace(trees=self._work.trees + 1)
            self._put(id.hex(), deriving.tree_relations(id.hex(), found.node))
            if not isinstance(found.node, TreeLeaf):
                todo += [(path, to_raw(child.tree)) for child in found.node.children]
                continue
            for name, member in zip(found.names, found.node.entries, strict=True):
                if member.tree is not None:
                    todo.append((join(path, name), to_raw(member.tree)))
                elif named and member.blake3 is not None and member.state is None:
                    reader = deriving.reader_of(entry.kind, show(join(path, name)))
                    if reader is not None:
                        self._evidence(member.blake3, _Reading(reader))

    def _facts(self, entry: Entry) -> None:
        for id in entry.facts:
            if id in self._known:
                continue
            found = self._facts_of(id)
            member = deriving.member_node(entry)
            if found is not None and member is not None:
                needed = any(fact.key == "elf.needed" and fact.path for fact in found.facts)
                members = self._members(entry) if needed else {}
                self._work = self._work._replace(facts=self._work.facts + 1)
                self._put(id, deriving.facts_relations(id, found, member, members))

    def _facts_of(self, id: str) -> Facts | None:
        found = self._record(to_raw(id))
        return found if isinstance(found, Facts) else None

    def _members(self, entry: Entry) -> dict[str, Node]:
        if entry.tree is None:
            return {}
        try:
            return {
                show(path): node
                for path, member in merkle.walk(objects.fetcher(self._reader), to_raw(entry.tree))
                if member.tree is None and (node := deriving.member_node(member)) is not None
            }
        except _UNREADABLE as error:
            self._unread.append((entry.tree, error.message))
            return {}

    # -- reading and putting -----------------------------------------------------------------------

    def _put(
        self, id: str, relations: Iterable[Relation], statements: Sequence[tuple[str, Statements]] = ()
    ) -> None:
        taken = list(relations)
        self._known.add(id)
        self._waiting.append(Unit(id, taken, statements))
        self._relations += len(taken)
        if self._relations >= BATCH:
            # Without a note: if it ends here, the next refresh looks whether all of it is in the store.
            self._index.add(self._waiting, b"")
            self._waiting, self._relations = [], 0

    def _record(self, id: RawId) -> records.Record | None:
        try:
            found = records.decode(objects.record(self._reader, id), id.hex())
            return check_packet(found, f"packet {id.hex()}") if isinstance(found, Packet) else found
        except _UNREADABLE as error:
            self._unread.append((id.hex(), error.message))
            return None

    def _node(self, id: RawId) -> merkle.Opened | None:
        try:
            return merkle.open_node(objects.record(self._reader, id), f"tree {id.hex()}")
        except _UNREADABLE as error:
            self._unread.append((id.hex(), error.message))
            return None

    def _bytes(self, blake3: str) -> bytes | None:
        try:
            return objects.read(self._reader, to_raw(blake3))
        except NotHeldError:
            return None
        except _UNREADABLE as error:
            self._unread.append((blake3, error.message))
            return None

    def _sha256(self, blake3: str) -> str | None:
        try:
            info = self._reader.info(to_raw(blake3))
        except StoreDamagedError:
            return None
        return None if info is None else info.sha256.hex()


class _Reading:
    """One evidence reader as a function from bytes to relations."""

    def __init__(self, reader: str) -> None:
        self._reader = reader

    def __call__(self, data: bytes, sha256: str, stated_by: str) -> list[Relation]:
        return deriving.evidence_relations(self._reader, data, sha256, stated_by)


def node_at(reader: Reader, packet: Packet, place: str) -> Node | None:
    """Return the node at ``role/path`` of a packet, of a directory as well as of a file, or None."""
    for entry in packet.entries:
        if place == entry.role:
            return deriving.member_node(entry)
        if entry.tree is not None and (not entry.role or place.startswith(entry.role + "/")):
            below = unshow(place[len(entry.role) + 1 :] if entry.role else place)
            try:
                member, _ = merkle.find(objects.fetcher(reader), to_raw(entry.tree), below)
            except _UNREADABLE:
                return None
            return None if member is None else deriving.member_node(member)
    return None


def _needs(id: str, packet: Packet, facts_of: Callable[[str], Facts | None]) -> Iterator[Relation]:
    """Yield which files of a packet load which, where each is an entry of its own."""
    alone = [entry for entry in packet.entries if entry.tree is None and entry.kind == "native"]
    by_name = {entry.role.rpartition("/")[2]: deriving.member_node(entry) for entry in alone}
    for entry in alone:
        source = deriving.member_node(entry)
        for facts_id in entry.facts:
            found = facts_of(facts_id)
            for fact in found.facts if found is not None else ():
                names = fact.value if fact.key == "elf.needed" and isinstance(fact.value, tuple) else ()
                for name in names:
                    target = by_name.get(str(name))
                    if source is not None and target is not None and target != source:
                        yield Relation(source, "needs", target, id, entry.role)
