"""Writing a pack file: one pass, bounded memory, equal bytes for equal content."""

import heapq
import itertools
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import IO, BinaryIO, Final

from blake3 import blake3

from provstore.errors import PackError
from provstore.ids import Buffer, RawId
from provstore.store import frame
from provstore.store import pack_format as form
from provstore.store.ahead import Ahead
from provstore.store.protocol import ObjectInfo
from provstore.store.refs import check_ref_name
from provstore.store.rows import MAX_RECORD_BYTES

RUN_ROWS: Final = 200_000
"""Index rows that are sorted in memory; more are spooled to a temporary file in sorted runs."""

_WHERE: Final = "pack"

Item = tuple[RawId, ObjectInfo, Iterable[Buffer] | None]
"""An object to be packed: id, what is known of it, and its bytes, or None to leave them out."""


class _Rows:
    """Index rows, sorted at the end."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: list[bytes] = []
        self._runs: list[IO[bytes]] = []

    def add(self, row: bytes) -> None:
        self._rows.append(row)
        self.count += 1
        if len(self._rows) == RUN_ROWS:
            run = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
            self._runs.append(run)
            run.writelines(sorted(self._rows))
            self._rows = []

    def __iter__(self) -> Iterator[bytes]:
        last = b""
        for row in heapq.merge(*map(_rows_of, self._runs), sorted(self._rows)):
            if row[:32] == last:
                raise PackError(_WHERE, f"{last.hex()} was given twice")
            last = row[:32]
            yield row

    def close(self) -> None:
        for run in self._runs:
            run.close()


def _rows_of(run: IO[bytes]) -> Iterator[bytes]:
    run.seek(0)
    while row := run.read(form.ROW.size):
        yield row


class _Writer:
    """Frames, with the row of each member; compressed on threads, written in the order they were given."""

    def __init__(self, out: BinaryIO, rows: _Rows, level: int, frames: Ahead[bytes]) -> None:
        self._out = out
        self._rows = rows
        self._level = level
        self._frames = frames
        self._begun: deque[list[_Member]] = deque()
        self._hasher = blake3()
        self.position = 0
        self._members: list[_Member] = []
        self._parts: list[bytes] = []
        self._gathered = 0

    def put(self, data: bytes) -> None:
        self._out.write(data)
        self._hasher.update(data)
        self.position += len(data)

    def digest(self) -> bytes:
        return self._hasher.digest()

    def small(self, member: "_Member", data: bytes, limit_bytes: int) -> None:
        self._members.append((*member[:3], self._gathered, member[4]))
        self._parts.append(data)
        self._gathered += len(data)
        if self._gathered >= limit_bytes:
            self.close_group()

    def close_group(self) -> None:
        if self._members:
            self._begin(partial(frame.pack, self._parts, self._level), self._members)
        self._members, self._parts, self._gathered = [], [], 0

    def large(self, member: "_Member", pieces: Iterator[bytes]) -> None:
        self.close_group()
        first = [member]
        for piece in pieces:
            self._begin(partial(frame.pack_large, piece, self._level), first)
            first = []

    def absent(self, member: "_Member") -> None:
        self._add(member, 0)

    def _begin(self, work: Callable[[], bytes], members: list["_Member"]) -> None:
        self._begun.append(members)
        self._frames.ask(work)
        while len(self._begun) > self._frames.room:
            self._write_one()

    def _write_one(self) -> None:
        packed = self._frames.take()
        for member in self._begun.popleft():
            self._add(member, self.position)
        self.put(packed)

    def _add(self, member: "_Member", position: int) -> None:
        id, sha256, size_bytes, offset_bytes, kind = member
        self._rows.add(form.ROW.pack(id, sha256, size_bytes, position, offset_bytes, kind))

    def finish_frames(self) -> None:
        self.close_group()
        while self._begun:
            self._write_one()


_Member = tuple[RawId, bytes, int, int, int]
"""Id, SHA-256, size, offset inside its frame, kind: a row whose position is not known yet."""


def write_pack(
    out: BinaryIO,
    roots: Sequence[tuple[str, RawId]],
    records: Iterable[tuple[RawId, bytes]],
    objects: Iterable[Item],
    *,
    level: int = frame.LEVEL,
    threads: int | None = None,
) -> int:
    """Write a pack and return its length in bytes.

    Args:
        out: receives the bytes in order; it is neither flushed nor closed.
        roots: ref name (empty for none) and id of each packet that the pack is about.
        records: id and bytes of each record, each once. Records that are read together should be given
            together.
        objects: each object once; its bytes are read when its turn comes.
        level: of compression.
        threads: how many compress; by default one a core. The bytes do not depend on it.

    Raises:
        PackError: something was given twice, or an object gave more or fewer bytes than its size.
        UsageError: a root has a name that no ref can have.
        OSError: ``out`` or a temporary file refused.

    Example:
        >>> import io
        >>> out = io.BytesIO()
        >>> write_pack(out, [], [], []) == len(out.getvalue())
        True
    """
    rows = _Rows()
    frames = Ahead[bytes](threads)
    try:
        writer = _Writer(out, rows, level, frames)
        writer.put(form.header())
        for record_id, data in records:
            if len(data) > MAX_RECORD_BYTES:
                raise PackError(
                    _WHERE, f"record {record_id.hex()} has {len(data)} bytes, more than packs take"
                )
            member = (record_id, form.NO_SHA256, len(data), 0, form.RECORD)
            if len(data) > frame.FRAME_BYTES:
                writer.large(member, _pieces(record_id, len(data), [data]))
            else:
                writer.small(member, data, form.RECORD_FRAME_BYTES)
        writer.close_group()
        for object_id, info, chunks in objects:
            _put_object(writer, object_id, info, chunks)
        writer.finish_frames()
        return _finish(writer, rows, roots)
    finally:
        frames.close()
        rows.close()


def _put_object(writer: _Writer, object_id: RawId, info: ObjectInfo, chunks: Iterable[Buffer] | None) -> None:
    kind = form.ABSENT if chunks is None else form.OBJECT
    member = (object_id, info.sha256, info.size_bytes, 0, kind)
    if chunks is None:
        writer.absent(member)
    elif info.size_bytes > frame.FRAME_BYTES:
        writer.large(member, _pieces(object_id, info.size_bytes, chunks))
    else:
        writer.small(member, _whole(object_id, info.size_bytes, chunks), frame.FRAME_BYTES)


def _whole(id: RawId, size_bytes: int, chunks: Iterable[Buffer]) -> bytes:
    parts = []
    total = 0
    for chunk in chunks:
        parts.append(bytes(chunk))
        total += len(parts[-1])
        if total > size_bytes:
            break
    _check_size(id, size_bytes, total)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_size(id: RawId, size_bytes: int, total: int) -> None:
    if total != size_bytes:
        raise PackError(_WHERE, f"{id.hex()} gave {total} bytes or more, its size is {size_bytes}")


def _pieces(id: RawId, size_bytes: int, chunks: Iterable[Buffer]) -> Iterator[bytes]:
    """Cut chunks of any length into whole frames; the last piece may be shorter."""
    waiting = bytearray()
    total = 0
    for chunk in chunks:
        waiting += chunk
        total += memoryview(chunk).nbytes
        if total > size_bytes:
            break
        while len(waiting) >= form.LARGE_FRAME_BYTES:
            yield bytes(waiting[: form.LARGE_FRAME_BYTES])
            del waiting[: form.LARGE_FRAME_BYTES]
    _check_size(id, size_bytes, total)
    if waiting:
        yield bytes(waiting)


def _finish(writer: _Writer, rows: _Rows, roots: Sequence[tuple[str, RawId]]) -> int:
    index = writer.position
    iterator = iter(rows)
    while batch := b"".join(itertools.islice(iterator, 4096)):
        writer.put(batch)
    at = writer.position
    ordered = sorted(
        {(check_ref_name(name) if name else name, id) for name, id in roots},
        key=lambda root: (root[0].encode(), root[1]),
    )
    listed = form.roots_bytes(ordered)
    if len(listed) > form.MAX_ROOTS_BYTES:
        raise PackError(_WHERE, f"{len(ordered)} packets are more than one pack can name")
    writer.put(listed)
    writer.put(form.TRAILER.pack(index, rows.count, at, len(ordered)))
    writer.put(writer.digest())
    writer.put(form.END_MAGIC)
    return writer.position
