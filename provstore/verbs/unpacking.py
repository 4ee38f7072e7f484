"""Unpacking: the packets of a pack file brought into a store."""

import os

from provstore import records
from provstore.errors import EmptyError, RefConflictError
from provstore.files.hashing import SMALL_BYTES
from provstore.ids import Buffer, RawId
from provstore.paths import check_role
from provstore.reports import UnpackReport
from provstore.store import frame, objects
from provstore.store.frame_workers import FrameWorkers
from provstore.store.opening import open_pack
from provstore.store.pack import PackStore
from provstore.store.pack_format import WholeFrame
from provstore.store.protocol import Reader, Stage, Store
from provstore.verbs.closing import Closure, Latest, Needed


def unpack(store: Store, path: str | bytes | os.PathLike[str], *, refs: bool = True) -> UnpackReport:
    """Bring the packets of a pack into a store; everything is checked before anything is visible.

    Args:
        store: receives records, objects and refs.
        path: the pack file.
        refs: take over the pack's names as refs; without them its packets go by their ids, and ``gc``
            removes them after its grace period unless something refers to them.

    Raises:
        PackError, IntegrityError: the pack is cut, altered or lies; the store is unchanged.
        RefConflictError: a ref of the pack names another packet here; the store is unchanged.
    """
    name = os.fsdecode(path)
    pack = open_pack(name)
    try:
        pack.check()
        with store.stage() as stage:
            roots = pack.roots()
            if not roots:
                raise EmptyError(f"{pack.where}: names no packet")
            frames = _lacking(stage, pack)
            with FrameWorkers(name, frames) as workers:
                needed = _records(stage, pack, [packet for _, packet in roots])
                taken = _frames(stage, pack, frames, workers, {one.id for one in needed})
            for one in needed:
                if one.id not in taken:
                    take(stage, pack, one)
            names = _refs(store, stage, roots if refs else [], pack.where)
            counts = stage.commit()
    finally:
        pack.close()
    return UnpackReport(
        packets=tuple(sorted({packet.hex() for _, packet in roots})),
        names=tuple(sorted(names)),
        objects=counts.objects,
        records=counts.records,
        bytes_stored=counts.bytes_stored,
    )


def _lacking(stage: Stage, pack: PackStore) -> list[WholeFrame]:
    """Return the whole frames of small objects of which the store lacks any."""
    limit = min(stage.frame_limit(), frame.FRAME_BYTES)
    return [
        one
        for one in pack.whole_frames()
        if all(member.size_bytes <= limit for member in one.members)
        and not all(stage.has_object(member.blake3) for member in one.members)
    ]


def _records(stage: Stage, pack: PackStore, packets: list[RawId]) -> list[Needed]:
    """Take the records of packets, each of which the closure has decoded; return the objects they need."""
    latest = Latest(objects.fetcher(pack))
    closure = Closure(latest.fetch)
    needed: list[Needed] = []
    for packet in packets:
        objects.packet(pack, packet)
        for one in closure.packet(packet):
            if not one.record:
                needed.append(one)
            else:
                stage.add_record(one.id, latest.bytes_of(one.id))
    return needed


def _frames(
    stage: Stage, pack: PackStore, frames: list[WholeFrame], workers: FrameWorkers, needed: set[RawId]
) -> set[RawId]:
    """Take frames as they are, where every object in them is needed; return the objects taken."""
    taken: set[RawId] = set()
    for one in frames:
        packed = pack.packed_frame(one.position)
        good = workers.next(packed, one)
        ids = [member.blake3 for member in one.members]
        if good and needed.issuperset(ids):
            stage.add_frame(packed, one.members)
            taken.update(ids)
    return taken


def _refs(store: Store, stage: Stage, roots: list[tuple[str, RawId]], where: str) -> list[str]:
    """Set the refs that a pack names and return their names."""
    names = []
    for name, packet in roots:
        if not name:
            continue
        here = store.ref(check_role(name, where))
        if here is not None and here != packet:
            raise RefConflictError(name, f"{packet.hex()} or none", here.hex())
        names.append(name)
        if here is None:
            stage.set_ref(name, packet, expected=None)
    return names


def take(stage: Stage, reader: Reader, needed: Needed) -> None:
    """Move one record or object into a stage, through the door that checks it."""
    if needed.record:
        if not stage.has_record(needed.id):
            data = objects.record(reader, needed.id)
            records.decode(data, needed.id.hex())
            stage.add_record(needed.id, data)
        return
    info = reader.info(needed.id)
    if info is None:
        objects.read(reader, needed.id)
        return
    if stage.has_object(needed.id):
        return
    if info.placement == "external":
        stage.add_absent(needed.id, info)
    elif info.size_bytes <= SMALL_BYTES:
        parts: list[Buffer] = []
        found = objects.copy(reader, needed.id, lambda part: parts.append(bytes(part)))
        stage.add_object(found, b"".join(parts))
    else:
        writer = stage.blob()
        finished = False
        try:
            writer.finish(objects.copy(reader, needed.id, writer.write))
            finished = True
        finally:
            if not finished:
                writer.discard()
