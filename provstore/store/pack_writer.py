"""Writing a pack file: one pass, bounded memory, equal bytes for equal content."""

import heapq
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, BinaryIO, Final

from blake3 import blake3

from provstore.errors import PackError
from provstore.ids import Buffer, RawId
from provstore.store import frame
from provstore.store import pack_format as form
from provstore.store.pack_format import PackRow
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

    def add(self, row: PackRow) -> None:
        self._rows.append(form.ROW.pack(*row))
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
    """Frames, with the row of each member."""

    def __init__(self, out: BinaryIO, rows: _Rows, level: int) -> None:
        self._out = out
        self._rows = rows
        self._level = level
        self._hasher = blake3()
        self.position = 0
        self._members: list[PackRow] = []
        self._parts: list[bytes] = []
        self._gathered = 0

    def put(self, data: bytes) -> None:
        self._out.write(data)
        self._hasher.update(data)
        self.position += len(data)

    def digest(self) -> bytes:
        return self._hasher.digest()

    def small(self, row: PackRow, data: bytes, limit_bytes: int) -> None:
        self._members.append(row._replace(offset_bytes=self._gathered))
        self._parts.append(data)
        self._gathered += len(data)
        if self._gathered >= limit_bytes:
            self.close_group()

    def close_group(self) -> None:
        if self._members:
            position = self.position
            self.put(frame.pack(self._parts, self._level))
            for member in self._members:
                self._rows.add(member._replace(position=position))
        self._members, self._parts, self._gathered = [], [], 0

    def large(self, row: PackRow, pieces: Iterator[bytes]) -> None:
        self.close_group()
        self._rows.add(row._replace(position=self.position))
        for piece in pieces:
            self.put(frame.pack_large(piece, self._level))

    def absent(self, row: PackRow) -> None:
        self._rows.add(row)


def write_pack(
    out: BinaryIO,
    roots: Sequence[tuple[str, RawId]],
    records: Iterable[tuple[RawId, bytes]],
    objects: Iterable[Item],
    *,
    level: int = frame.LEVEL,
) -> int:
    """Write a pack and return its length in bytes.

    Args:
        out: receives the bytes in order; it is neither flushed nor closed.
        roots: ref name (empty for none) and id of each packet that the pack is about.
        records: id and bytes of each record, each once. Records that are read together should be given
            together.
        objects: each object once; its bytes are read when its turn comes.
        level: of compression.

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
    try:
        writer = _Writer(out, rows, level)
        writer.put(form.header())
        for record_id, data in records:
            if len(data) > MAX_RECORD_BYTES:
                raise PackError(
                    _WHERE, f"record {record_id.hex()} has {len(data)} bytes, more than packs take"
                )
            row = PackRow(record_id, form.NO_SHA256, len(data), 0, 0, form.RECORD)
            if len(data) > frame.FRAME_BYTES:
                writer.large(row, _pieces(record_id, len(data), [data]))
            else:
                writer.small(row, data, form.RECORD_FRAME_BYTES)
        writer.close_group()
        for object_id, info, chunks in objects:
            _put_object(writer, object_id, info, chunks)
        writer.close_group()
        return _finish(writer, rows, roots)
    finally:
        rows.close()


def _put_object(writer: _Writer, object_id: RawId, info: ObjectInfo, chunks: Iterable[Buffer] | None) -> None:
    kind = form.ABSENT if chunks is None else form.OBJECT
    row = PackRow(object_id, info.sha256, info.size_bytes, 0, 0, kind)
    if chunks is None:
        writer.absent(row)
        return
    pieces = _pieces(object_id, info.size_bytes, chunks)
    if info.size_bytes > frame.FRAME_BYTES:
        writer.large(row, pieces)
    else:
        writer.small(row, b"".join(pieces), frame.FRAME_BYTES)


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
    if total != size_bytes:
        raise PackError(_WHERE, f"{id.hex()} gave {total} bytes or more, its size is {size_bytes}")
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
