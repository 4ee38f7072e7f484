"""The closure of packets: every record and object that they need, each once, in one fixed order."""

from collections.abc import Iterator
from typing import NamedTuple

from provstore import merkle, records
from provstore.errors import IntegrityError, MalformedError, NotFoundError
from provstore.ids import RawId, to_raw
from provstore.merkle import Fetch
from provstore.records.ledger import Attempt, Authorization, LedgerEntry, Step
from provstore.records.packet import Entry, Packet, check_packet
from provstore.records.tree import TreeIndex, TreeLeaf
from provstore.records.verdict import Verdict


class Needed(NamedTuple):
    """One thing that a packet needs.

    Attributes:
        id: of the record or object.
        record: it is a record.
        entry: entry of the packet that needs it; None for the packet record itself.
        path: place below the entry, for objects that are members.
    """

    id: RawId
    record: bool
    entry: Entry | None
    path: bytes = b""


class Latest:
    """Gives records, and the latest one again: a closure has just read what it yields."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._latest: tuple[RawId, bytes] = (b"", b"")

    def fetch(self, id: RawId) -> bytes:
        """Return the checked bytes of a record."""
        data = self._fetch(id)
        self._latest = (id, data)
        return data

    def bytes_of(self, id: RawId) -> bytes:
        """Return the checked bytes of a record that was, most likely, the latest one."""
        latest, data = self._latest
        return data if latest == id else self.fetch(id)


class Closure:
    """Walks packets; remembers what was yielded, so that shared parts come once.

    Args:
        fetch: gives checked record bytes.
        broken: receives what could not be read; without it, the first such thing raises.
    """

    def __init__(self, fetch: Fetch, broken: "list[tuple[Needed, str]] | None" = None) -> None:
        self._fetch = fetch
        self._broken = broken
        self.records: set[RawId] = set()
        self.objects: set[RawId] = set()

    def packet(self, id: RawId) -> Iterator[Needed]:
        """Yield what one packet needs: its record, trees from above, facts, objects; not its parents.

        A verdict needs its policy and its facts, an entry of the ledger its policy and documents.
        """
        if id in self.records:
            return
        self.records.add(id)
        here = Needed(id, True, None)
        found = self._record(here)
        if found is None:
            return
        yield here
        if isinstance(found, Packet):
            for entry in found.entries:
                yield from self._entry(entry)
        elif isinstance(found, Verdict):
            yield from self._verdict(found)
        elif isinstance(found, LedgerEntry):
            for object_id in noted_objects(found).values():
                yield from self._object(Needed(object_id, False, None, b"(ledger)"))

    def _verdict(self, verdict: Verdict) -> Iterator[Needed]:
        yield from self._object(Needed(to_raw(verdict.policy), False, None, b"(policy)"))
        for id in map(to_raw, verdict.facts):
            if id not in self.records:
                self.records.add(id)
                needed = Needed(id, True, None)
                if self._record(needed) is not None:
                    yield needed

    def _record(self, needed: Needed) -> records.Record | None:
        where = needed.id.hex()
        try:
            data = self._fetch(needed.id)
            if records.kind_of(data, where) in ("tree", "tree-index"):
                return merkle.open_node(data, f"tree {where}").node
            found = records.decode(data, where)
            return check_packet(found, f"packet {where}") if isinstance(found, Packet) else found
        except (IntegrityError, NotFoundError, MalformedError) as error:
            if self._broken is None:
                raise
            self._broken.append((needed, error.message))
            return None

    def _entry(self, entry: Entry) -> Iterator[Needed]:
        if entry.tree is not None:
            yield from self._tree(entry, to_raw(entry.tree))
        elif entry.blake3 is not None and entry.custody != "declared":
            yield from self._object(Needed(to_raw(entry.blake3), False, entry))
        for id in entry.facts:
            raw = to_raw(id)
            if raw not in self.records:
                self.records.add(raw)
                needed = Needed(raw, True, entry)
                if self._record(needed) is not None:
                    yield needed
        for pin in entry.pins:
            if pin.kind == "manifest":
                yield from self._object(Needed(to_raw(pin.value), False, entry))

    def _tree(self, entry: Entry, tree: RawId) -> Iterator[Needed]:
        todo = [(b"", tree)]
        while todo:
            path, id = todo.pop()
            if id in self.records:
                continue
            self.records.add(id)
            needed = Needed(id, True, entry, path)
            node = self._record(needed)
            if node is None:
                continue
            yield needed
            below: list[tuple[bytes, RawId]] = []
            if isinstance(node, TreeLeaf):
                for member in node.entries:
                    place = path + b"/" + member.raw_name() if path else member.raw_name()
                    if member.tree is not None:
                        below.append((place, to_raw(member.tree)))
                    elif member.blake3 is not None and entry.custody != "declared":
                        yield from self._object(Needed(to_raw(member.blake3), False, entry, place))
            elif isinstance(node, TreeIndex):
                below = [(path, to_raw(child.tree)) for child in node.children]
            todo.extend(reversed(below))

    def _object(self, needed: Needed) -> Iterator[Needed]:
        if needed.id not in self.objects:
            self.objects.add(needed.id)
            yield needed


def noted_objects(entry: LedgerEntry) -> dict[str, RawId]:
    """Return the objects that an entry of a ledger names, by what they are to it."""
    about = entry.about
    named: dict[str, str] = {}
    if isinstance(about, Authorization | Attempt):
        named |= about.documents
    if isinstance(about, Authorization):
        named["policy"] = about.policy
    return {role: to_raw(id) for role, id in named.items()}


def noted_records(record: records.Record) -> list[RawId]:
    """Return the packet and the verdict that an entry of a ledger names."""
    about = record.about if isinstance(record, LedgerEntry) else None
    return [to_raw(id) for id in (about.packet, about.verdict) if id] if isinstance(about, Step) else []
