"""Which packets, roles and paths a damaged object or record touches."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from provstore import merkle
from provstore.errors import IntegrityError, MalformedError, NotFoundError, StoreDamagedError
from provstore.ids import RawId, to_raw
from provstore.paths import join, show
from provstore.records import decode
from provstore.records.ledger import LedgerEntry
from provstore.records.packet import Entry, Packet
from provstore.records.tree import TreeLeaf
from provstore.records.verdict import Verdict
from provstore.reports import Damage
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.closing import noted_objects
from provstore.verbs.collecting import LEDGER, Lost

MOST_PLACES: Final = 1 << 18
"""Damaged places of one entry that are looked at: few records can unfold to any number of paths."""


class _Below(NamedTuple):
    """What a tree record refers to: name and id each; names are empty below an index."""

    trees: list[tuple[bytes, RawId]]
    objects: list[tuple[bytes, RawId]]


_NOTHING = _Below([], [])


class _Touched:
    """Finds out, once for each tree record, whether anything bad lies below it."""

    def __init__(self, reader: Reader, bad: dict[RawId, str]) -> None:
        self.reader = reader
        self.bad = bad
        self._known: dict[RawId, bool] = {}

    def below(self, id: RawId) -> _Below:
        """Return what a tree record refers to; nothing if it cannot be read, which is noted."""
        try:
            node = merkle.open_node(objects.record(self.reader, id), f"tree {id.hex()}").node
        except (IntegrityError, MalformedError, NotFoundError, StoreDamagedError) as error:
            self.bad.setdefault(id, error.message)
            return _NOTHING
        if isinstance(node, TreeLeaf):
            return _Below(
                [(member.raw_name(), to_raw(member.tree)) for member in node.entries if member.tree],
                [(member.raw_name(), to_raw(member.blake3)) for member in node.entries if member.blake3],
            )
        return _Below([(b"", to_raw(child.tree)) for child in node.children], [])

    def tree(self, root: RawId) -> bool:
        """Say whether a tree holds anything bad."""
        todo = [root]
        waiting: dict[RawId, list[RawId]] = {}
        while todo:
            id = todo[-1]
            if id in self._known:
                todo.pop()
            elif id in waiting:
                self._known[id] = any(self._known.get(child, False) for child in waiting.pop(id))
                todo.pop()
            else:
                found = self.below(id)
                children = [child for _, child in found.trees]
                if id in self.bad or any(object_id in self.bad for _, object_id in found.objects):
                    self._known[id] = True
                else:
                    waiting[id] = children
                    todo += [child for child in children if child not in self._known]
        return self._known[root]


class _Naming:
    def __init__(self, reader: Reader, bad: dict[RawId, str], observed: Mapping[RawId, RawId]) -> None:
        self.bad = bad
        self.reader = reader
        self.observed = observed
        self.touched = _Touched(reader, bad)
        self.damaged: list[Damage] = []
        self.named: set[RawId] = set()

    def name(self, id: RawId, packet: RawId, role: str, path: bytes = b"") -> None:
        if id in self.bad:
            self.named.add(id)
            self.damaged.append(
                Damage(id=id.hex(), role=role, packet=packet.hex(), reason=self.bad[id], path=show(path))
            )

    def packet(self, id: RawId, name: str) -> None:
        if id in self.observed:
            self.name(id, self.observed[id], name, b"(observation)")
            return
        try:
            found = objects.packet(self.reader, id) if id not in self.bad else None
        except (IntegrityError, NotFoundError, StoreDamagedError) as error:
            self.bad.setdefault(id, error.message)
            found = None
        except MalformedError:
            self.verdict(id)
            return
        if found is None and name == LEDGER:
            self.damaged += self._of_ledger(id, "(entry)")
            return
        if found is None:
            self.name(id, id, name)
            return
        self.entries(id, found)

    def verdict(self, id: RawId) -> None:
        """Name what a verdict or an entry of the ledger refers to; other records refer to nothing."""
        found = decode(objects.record(self.reader, id), id.hex())
        if isinstance(found, LedgerEntry):
            for role, object_id in noted_objects(found).items():
                self.damaged += self._of_ledger(object_id, role)
        if isinstance(found, Verdict):
            packet = to_raw(found.packet)
            self.name(to_raw(found.policy), packet, "verdict", b"(policy)")
            for facts in found.facts:
                self.name(to_raw(facts), packet, "verdict", b"(facts)")

    def _of_ledger(self, id: RawId, path: str) -> list[Damage]:
        if id not in self.bad:
            return []
        self.named.add(id)
        return [Damage(id=id.hex(), role=LEDGER, packet="", reason=self.bad[id], path=show(path))]

    def entries(self, id: RawId, packet: Packet) -> None:
        for entry in packet.entries:
            for pin in entry.pins:
                if pin.kind == "manifest":
                    self.name(to_raw(pin.value), id, entry.role, b"(manifest)")
            for facts in entry.facts:
                self.name(to_raw(facts), id, entry.role, b"(facts)")
            if entry.tree is not None:
                self.members(id, entry, to_raw(entry.tree))
            elif entry.blake3 is not None and entry.custody != "declared":
                self.name(to_raw(entry.blake3), id, entry.role)

    def members(self, packet: RawId, entry: Entry, tree: RawId) -> None:
        """Name every place of a tree where something bad is; one object may be in many."""
        todo = [(b"", tree)]
        for _ in range(MOST_PLACES):
            if not todo:
                break
            path, id = todo.pop()
            if not self.touched.tree(id):
                continue
            self.name(id, packet, entry.role, path)
            found = self.touched.below(id)
            if entry.custody != "declared":
                for name, object_id in found.objects:
                    self.name(object_id, packet, entry.role, join(path, name))
            todo += [(join(path, name), child) for name, child in reversed(found.trees)]


def name_all(
    reader: Reader,
    packets: Mapping[RawId, str],
    walked: Iterable[RawId],
    bad: dict[RawId, str],
    gone: Iterable[Lost] = (),
) -> list[Damage]:
    """Return one line for every place where something bad is needed; and one for what nobody needs.

    Args:
        reader: the store.
        packets: a ref name for each root.
        walked: packets to look at.
        bad: reason by id; receives records that turn out unreadable only now.
        gone: records that belong to packets without being reached from them, and are not there.
    """
    if not bad:
        return []
    steps = reader.ref_log()
    observed = {step.observation: step.id for step in steps if step.observation and step.id}
    naming = _Naming(reader, bad, observed)
    for packet in sorted(walked):
        naming.packet(packet, packets.get(packet, ""))
    for item in gone:
        naming.name(item.id, item.packet, item.name, item.path)
    return naming.damaged + [
        Damage(id=id.hex(), role="", packet="", reason=reason)
        for id, reason in sorted(bad.items())
        if id not in naming.named
    ]
