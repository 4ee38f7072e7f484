"""Packing: packets as one portable file."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence

from provstore.errors import EmptyError, InputOutputError, TargetError
from provstore.ids import Buffer, RawId, to_raw
from provstore.paths import show
from provstore.reports import PackReport
from provstore.store import objects
from provstore.store.pack_writer import write_pack
from provstore.store.protocol import ObjectInfo, Reader
from provstore.store.steps import reached
from provstore.verbs.closing import Closure, Latest
from provstore.verbs.locating import Located
from provstore.verbs.members import Member, Only, members


class _Gathered:
    """The closure of some packets in a fixed order: records while it is walked, objects afterwards.

    Attributes:
        records: how many records were given.
        objects: reader and id of each object.
    """

    def __init__(self, located: Sequence[tuple[str, Located]]) -> None:
        self._located = located
        self.records = 0
        self.objects: list[tuple[Reader, RawId]] = []

    def walk(self) -> Iterator[tuple[RawId, bytes]]:
        """Yield id and checked bytes of each record, and note the objects."""
        seen_records: set[RawId] = set()
        seen_objects: set[RawId] = set()
        for _, (reader, packet, _owned) in self._located:
            latest = Latest(objects.fetcher(reader))
            for needed in Closure(latest.fetch).packet(packet):
                seen = seen_records if needed.record else seen_objects
                if needed.id in seen:
                    continue
                seen.add(needed.id)
                if needed.record:
                    self.records += 1
                    yield needed.id, latest.bytes_of(needed.id)
                else:
                    self.objects.append((reader, needed.id))


def _wanted(
    located: Sequence[tuple[str, Located]], only: Sequence[str], without: Sequence[str]
) -> set[RawId]:
    """Return the objects whose bytes go along: by kind, role or pattern over ``role/path``.

    Manifests that pin an entry always go along: they are small, and the pins are checked with them.
    """
    ins, outs = [Only(text) for text in only], [Only(text) for text in without]
    found: set[RawId] = set()
    for _, (reader, packet, _owned) in located:
        opened = objects.packet(reader, packet)
        found |= {
            to_raw(pin.value) for entry in opened.entries for pin in entry.pins if pin.kind == "manifest"
        }
        for member in members(objects.fetcher(reader), opened):
            inside = [picks for picks in ins if _hit(picks, member)]
            outside = [picks for picks in outs if _hit(picks, member)]
            if (inside or not ins) and not outside and member.node.blake3 is not None:
                found.add(to_raw(member.node.blake3))
    for picks in (*ins, *outs):
        if not picks.hits:
            raise EmptyError(f"{picks.pattern!r} names no kind, role or path of the packet")
    return found


def _hit(picks: Only, member: Member) -> bool:
    if picks(member.place()):
        return True
    picks.hits += member.entry.kind == picks.pattern
    return member.entry.kind == picks.pattern


def pack(
    located: Sequence[tuple[str, Located]],
    output: str | bytes | os.PathLike[str],
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
) -> PackReport:
    """Write packets and what they need into one pack file.

    Equal content gives equal bytes. What is left out, or is not held here, stays named in the manifest, so
    the pack verifies and says what it lacks.

    Args:
        located: a name and a packet each; the name becomes a ref of the pack (empty: none).
        output: the file to write; it must not exist.
        only: kinds, roles or patterns over ``role/path`` whose bytes go along; everything if empty.
        without: the same for bytes that stay behind.

    Raises:
        TargetError: the file exists or cannot be written.
        EmptyError: a choice matches nothing.
        IntegrityError: something to pack is damaged.
    """
    if not located:
        raise EmptyError("no packet to pack")
    ordered = sorted(located, key=lambda item: (item[1].packet, item[0]))
    wanted = _wanted(ordered, only, without) if only or without else None
    gathered = _Gathered(ordered)
    path = os.path.abspath(os.fsencode(output))
    if os.path.lexists(path):
        raise TargetError(show(path), "exists already")
    left_out = [0]
    roots = [(name, packet) for name, (_, packet, _) in ordered]
    _publish(path, roots, gathered.walk(), _objects(gathered.objects, wanted, left_out))
    return PackReport(
        path=show(path),
        packets=tuple(sorted({packet.hex() for _, packet in roots})),
        objects=len(gathered.objects) - left_out[0],
        records=gathered.records,
        size_bytes=os.path.getsize(path),
        left_out=left_out[0],
    )


def _objects(
    gathered: Sequence[tuple[Reader, RawId]], wanted: set[RawId] | None, left_out: list[int]
) -> Iterator[tuple[RawId, ObjectInfo, Iterable[Buffer] | None]]:
    for reader, id in gathered:
        info = reader.info(id)
        if info is None:
            objects.read(reader, id)
            continue
        if info.placement == "external" or (wanted is not None and id not in wanted):
            left_out[0] += 1
            yield id, info, None
        else:
            yield id, info, objects.stream(reader, id, info)


def _publish(
    path: bytes,
    roots: Sequence[tuple[str, RawId]],
    record_items: Iterable[tuple[RawId, bytes]],
    object_items: Iterable[tuple[RawId, ObjectInfo, Iterable[Buffer] | None]],
) -> None:
    """Write beside the target, wait for the disk, then give the file its name."""
    directory = os.path.dirname(path)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=os.fsdecode(directory), prefix=".pack-")
    except OSError as error:
        raise TargetError(show(path), error.strerror or str(error)) from error
    done = False
    try:
        with os.fdopen(descriptor, "wb") as out:
            write_pack(out, roots, record_items, object_items)
            out.flush()
            reached("pack-written")
            os.fsync(out.fileno())
        reached("pack-synced")
        os.chmod(temporary, 0o644)
        os.rename(temporary, path)
        done = True
        reached("pack-renamed")
    except OSError as error:
        raise InputOutputError(show(path), error.errno or 0, error.strerror or str(error)) from error
    finally:
        if not done:
            os.unlink(temporary)
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    reached("pack-directory-synced")
