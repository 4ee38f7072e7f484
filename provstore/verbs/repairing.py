"""Putting good bytes in the place of damaged ones, and making an index anew when only files are left."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from provstore import records
from provstore.errors import IntegrityError, MalformedError, NotFoundError, StoreDamagedError
from provstore.files.progress import Meter, Reporter
from provstore.ids import RawId, to_raw
from provstore.paths import check_role
from provstore.records.packet import Packet
from provstore.records.tree import TreeIndex, TreeLeaf
from provstore.reports import Damage, FsckReport, Repaired
from provstore.store import objects
from provstore.store.opening import AnyPath, rebuild_store
from provstore.store.protocol import Reader, Stage, Store, Unit
from provstore.verbs.checking import Findings, Reached, bytes_in
from provstore.verbs.closing import Closure
from provstore.verbs.refreshing import check_graph, drop_graph
from provstore.verbs.supplying import REFUSALS, Supply, supply
from provstore.verbs.unpacking import take

_FRAME_KEY_BYTES: Final = 8

LOST: Final = (
    "every object that was inside the index and not in a file of its own",
    "every record: packets, trees, facts, observations",
    "every ref and its history",
    "the places of external objects",
)
"""What an index that is rebuilt from files alone can no longer know."""


def repair(store: Store, sources: Sequence[AnyPath] = (), *, progress: Reporter | None = None) -> FsckReport:
    """Check a store and put good bytes in the place of what is damaged or absent.

    Bytes are taken from what is left of a damaged frame, from the places where an object was seen when it
    was sealed, and from the sources; they are hashed before they are taken. What nobody has stays as it is.
    After a rebuild of the index, packets that stores and packs among the sources have names for come back.

    Args:
        store: must be writable.
        sources: other stores, packs, directories and files, asked in this order.
        progress: is told how far it is.

    Raises:
        ReadOnlyError: the store was opened for reading.
        UsageError, InputOutputError, PackError: a source is the store itself, or cannot be opened.
        StoreFullError, StoreBusyError: see the protocol; what was repaired before stays repaired.
    """
    with supply(store, sources) as supplies:
        repaired, refused = _adopt(store, supplies)
        found = Findings(store, Meter(progress, bytes_total=bytes_in(store)))
        for unit in store.units():
            found.check(unit)
        tried: set[RawId] = set()
        while True:
            reached = Reached(store, found)
            mended = _mend(store, found, supplies, tried)
            if not mended:
                break
            repaired += mended
            _read_back(store, found, mended)
    graph: Literal["absent", "whole", "damaged", "removed"] = check_graph(store)
    if graph == "damaged":
        drop_graph(store)
        graph = "removed"
    return FsckReport(
        objects=found.objects,
        records=found.records,
        bytes=found.bytes,
        damaged=(*reached.damaged, *refused),
        unreferenced=reached.unreferenced,
        repaired=tuple(repaired),
        graph=graph,
    )


def _adopt(store: Store, supplies: Supply) -> tuple[list[Repaired], list[Damage]]:
    """Bring back packets that sources have names for, if the index was rebuilt since they were here."""
    adopted: list[Repaired] = []
    refused: list[Damage] = []
    if not store.rebuilt_ns():
        return adopted, refused
    for reader in supplies.readers:
        for name, packet in reader.refs():
            if store.ref(name) is not None or store.ref_log(name):
                continue
            try:
                with store.stage() as stage:
                    objects.packet(reader, packet)
                    for needed in Closure(objects.fetcher(reader)).packet(packet):
                        take(stage, reader, needed)
                    stage.set_ref(check_role(name, reader.where), packet, expected=None)
                    stage.commit()
            except REFUSALS as error:
                reason = f"it cannot come back from {reader.where}: {error.message}"
                refused.append(Damage(id=packet.hex(), role=name, packet=packet.hex(), reason=reason))
                continue
            adopted.append(Repaired(id=packet.hex(), kind="packet", source=reader.where))
    return adopted, refused


def _mend(store: Store, found: Findings, supplies: Supply, tried: set[RawId]) -> list[Repaired]:
    """Replace what can be replaced in one commit; nothing is tried twice."""
    bad = found.bad.keys() - tried
    tried |= bad
    if not bad:
        return []
    broken = list(_broken_frames(store, bad))
    beside = {id for unit in broken for id in (*unit.objects, *unit.records)}
    with store.stage(replacing=bad | beside) as stage:
        work = _Mending(store, stage, supplies)
        for id in sorted(bad & found.bad_records):
            work.record(id)
        for id in sorted(bad - found.bad_records):
            work.object(id)
        if work.mended:
            for unit in broken:
                work.move_healthy(unit, found)
            stage.commit()
    return work.mended


def _broken_frames(store: Store, bad: set[RawId]) -> Iterator[Unit]:
    for unit in store.units():
        if len(unit.key) == _FRAME_KEY_BYTES and not bad.isdisjoint((*unit.objects, *unit.records)):
            yield unit


class _Mending:
    """What goes into one commit of a repair.

    Attributes:
        mended: what has good bytes in the stage.
    """

    def __init__(self, store: Store, stage: Stage, supplies: Supply) -> None:
        self.mended: list[Repaired] = []
        self._store = store
        self._stage = stage
        self._supplies = supplies
        self._done: set[RawId] = set()

    def object(self, id: RawId) -> None:
        """Take an object from whoever has it."""
        if id in self._done:
            return
        source = self._supplies.object(self._stage, id)
        if source is not None:
            self._done.add(id)
            self.mended.append(Repaired(id=id.hex(), kind="object", source=source))

    def record(self, wanted: RawId) -> None:
        """Take a record, and those below it that are not here either."""
        todo = [wanted]
        while todo:
            id = todo.pop()
            if id in self._done:
                continue
            found = self._supplies.record(self._stage, id)
            if found is None:
                continue
            source, data = found
            self._done.add(id)
            self.mended.append(Repaired(id=id.hex(), kind="record", source=source))
            todo += [child for child in _below(data, id) if self._is_absent(child)]

    def _is_absent(self, record: RawId) -> bool:
        try:
            return self._store.record(record) is None
        except (IntegrityError, MalformedError, StoreDamagedError):
            return False  # damaged, and so on the list by itself

    def move_healthy(self, unit: Unit, found: Findings) -> None:
        """Take the whole members of a frame along, if one of its members was replaced."""
        if self._done.isdisjoint((*unit.objects, *unit.records)):
            return
        for id in (*unit.objects, *unit.records):
            if id in found.bad or id in self._done:
                continue
            with contextlib.suppress(NotFoundError):  # swept since it was listed
                if id in unit.records:
                    self._stage.add_record(id, objects.record(self._store, id))
                else:
                    _move_object(self._store, self._stage, id)


def _move_object(store: Reader, stage: Stage, id: RawId) -> None:
    parts: list[bytes] = []
    digests = objects.copy(store, id, lambda part: parts.append(bytes(part)))
    stage.add_object(digests, b"".join(parts))


def _below(data: bytes, id: RawId) -> list[RawId]:
    """Return the records that a record refers to."""
    found = records.decode(data, id.hex())
    if isinstance(found, TreeIndex):
        return [to_raw(child.tree) for child in found.children]
    if isinstance(found, TreeLeaf):
        return [to_raw(member.tree) for member in found.entries if member.tree is not None]
    if not isinstance(found, Packet):
        return []
    trees = [entry.tree for entry in found.entries if entry.tree is not None]
    facts = [fact for entry in found.entries for fact in entry.facts]
    return [to_raw(text) for text in (*trees, *facts)]


def _read_back(store: Store, found: Findings, mended: Sequence[Repaired]) -> None:
    """Take off the list what now reads well; what does not stays on it."""
    again = Findings(store, Meter(None))
    ids = {to_raw(item.id): item.kind for item in mended}
    for id, kind in ids.items():
        found.bad.pop(id, None)
        again.check(Unit(id, (), (id,)) if kind == "record" else Unit(id, (id,), ()))
    found.bad.update(again.bad)


def rebuild_index(path: AnyPath, *, progress: Reporter | None = None) -> FsckReport:
    """Make a new index for a store whose ``data.mdb`` is lost or damaged, from its blob files alone.

    Every file is hashed and held against its name. The old index stays in the store under a dated name.
    What only the index held is gone from the store; :func:`repair` with a pack or another store brings
    packets back, and ``gc`` spares the files for its grace period.

    Args:
        path: the store.
        progress: is told how far it is.

    Raises:
        NotAStoreError: there are no blob files.
        UsageError: the index can be read; then it is repaired, not rebuilt.
        StoreBusyError, StoreFullError, InputOutputError: the store is as it was.
    """
    meter = Meter(progress)
    made = rebuild_store(os.fspath(path), lambda size, id: meter.add(size, 1, id.hex().encode()))
    return FsckReport(
        objects=made.objects,
        records=0,
        bytes=made.size_bytes,
        damaged=tuple(Damage(id=id.hex(), role="", packet="", reason=reason) for id, reason in made.damaged),
        whole=False,
        unreferenced=made.objects,
        kept_as=made.kept_as,
        lost=LOST,
    )
