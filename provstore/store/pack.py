"""Reading a pack file in place: positions are checked against the file before they are followed."""

import errno
import itertools
import os
import stat
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Self

from blake3 import blake3

from provstore.errors import NotFoundError, NotHeldError, PackError
from provstore.ids import Algorithm, Buffer, RawId
from provstore.paths import show
from provstore.store import frame
from provstore.store import pack_format as form
from provstore.store.frame_cache import FrameCache
from provstore.store.moment import Moment
from provstore.store.pack_format import PackRow, WholeFrame
from provstore.store.protocol import Location, ObjectInfo, RefChange, StoreStats, Unit
from provstore.store.rows import MAX_RECORD_BYTES
from provstore.store.runs import Laid, Piece, Run
from provstore.store.system import refused

MATCHES: Final = 100
_WINDOW_ROWS: Final = 64
_BATCH_ROWS: Final = 4096
_GUESSES: Final = 4
_READ_BYTES: Final = 1 << 20

INDEX_BYTES: Final = 64 << 20
"""Largest index that is kept in memory once many rows were looked up: some 760,000 rows."""

MANY_LOOKUPS: Final = 64
"""Look-ups after which reading the whole index costs less than looking further."""


class PackStore:
    """A pack file, read. Whether the whole file is as it was written is :meth:`check`'s question.

    Attributes:
        where: its path, as people see it.
        writable: never.
    """

    def __init__(self, path: str) -> None:
        self.where = show(path)
        self.writable = False
        self._descriptor = -1
        try:
            # A FIFO without a writer would keep a blocking open waiting for ever.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            status = os.fstat(self._descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "is no regular file")
            self._size = status.st_size
        except OSError as error:
            self.close()
            raise refused(error, self.where) from error
        try:
            form.check_header(self._read(0, min(form.HEADER.size, self._size)), self.where)
            start = max(form.HEADER.size, self._size - form.TRAILER_BYTES)
            trailer = self._read(start, max(0, self._size - start))
            self._layout = form.check_layout(trailer, self._size, self.where)
            end = self._size - form.TRAILER_BYTES
            roots = self._read(self._layout.roots_position, end - self._layout.roots_position)
            self._roots = form.parse_roots(roots, self._layout.roots_count, self.where)
        except BaseException:
            self.close()
            raise
        self._cache = FrameCache()
        self._lookups = 0
        self._index: bytes | None = None

    def _read(self, position: int, length: int) -> bytes:
        parts = []
        try:
            while length:
                data = os.pread(self._descriptor, min(length, 64 << 20), position)
                if not data:
                    raise PackError(self.where, f"it is cut short at byte {position}")
                parts.append(data)
                position += len(data)
                length -= len(data)
        except OSError as error:
            raise refused(error, self.where) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # -- index -------------------------------------------------------------------------------------

    def _rows(self, start: int, count: int) -> bytes:
        return self._read(self._layout.index_position + start * form.ROW.size, count * form.ROW.size)

    def _row_batches(self, first: int = 0) -> Iterator[bytes]:
        for start in range(first, self._layout.rows, _BATCH_ROWS):
            yield self._rows(start, min(_BATCH_ROWS, self._layout.rows - start))

    def _all_rows(self, first: int = 0) -> Iterator[PackRow]:
        for data in self._row_batches(first):
            for fields in form.ROW.iter_unpack(data):
                yield PackRow(*fields)

    def _lower_bound(self, wanted: bytes) -> int:
        """Return the number of the first row whose id is not below ``wanted``."""
        low, high = 0, self._layout.rows
        guesses = _GUESSES
        first, last = 0, 1 << 64
        number = int.from_bytes(wanted[:8], "big")
        while low < high:
            if guesses and high - low > _WINDOW_ROWS and first <= number < last:
                guesses -= 1
                middle = low + (number - first) * (high - low) // (last - first)
            else:
                middle = (low + high) // 2
            start = max(low, min(middle - _WINDOW_ROWS // 2, high - _WINDOW_ROWS))
            count = min(_WINDOW_ROWS, high - start)
            ids = [fields[0] for fields in form.ROW.iter_unpack(self._rows(start, count))]
            if ids[0] >= wanted:
                high, last = start, int.from_bytes(ids[0][:8], "big") + 1
            elif ids[-1] < wanted:
                low, first = start + count, int.from_bytes(ids[-1][:8], "big")
            else:
                return start + next(i for i, id in enumerate(ids) if id >= wanted)
        return low

    def _find(self, id: RawId) -> PackRow | None:
        index = self._index
        if index is None:
            self._lookups += 1
            if self._lookups < MANY_LOOKUPS or self._layout.rows * form.ROW.size > INDEX_BYTES:
                at = self._lower_bound(id)
                row = PackRow(*form.ROW.unpack(self._rows(at, 1))) if at < self._layout.rows else None
                return row if row is not None and row.id == id else None
            index = self._index = self._rows(0, self._layout.rows)
        width = form.ROW.size
        at = bisect_left(range(self._layout.rows), id, key=lambda row: index[row * width : row * width + 32])
        if at == self._layout.rows or index[at * width : at * width + 32] != id:
            return None
        return PackRow(*form.ROW.unpack_from(index, at * width))

    # -- frames ------------------------------------------------------------------------------------

    def _frame_span(self, position: int) -> tuple[int, int]:
        """Return where the frame at a position begins and ends, by its header."""
        limit = self._layout.index_position
        if not form.HEADER.size <= position <= limit - frame.HEADER.size:
            raise PackError(self.where, f"its index names byte {position}, where no frame can be")
        where = f"{self.where}: frame at byte {position}"
        _, _, stored = frame.check_header(self._read(position, frame.HEADER.size), where=where)
        after = position + frame.HEADER.size + stored
        if after > limit:
            raise PackError(where, f"it would end at byte {after}, behind the frames")
        return position, after

    def _frame(self, position: int) -> tuple[bytes, int]:
        """Return the plain bytes of the frame at a position, and where the next one begins."""
        start, after = self._frame_span(position)
        plain = self._cache.get(position)
        if plain is None:
            where = f"{self.where}: frame at byte {position}"
            plain = frame.unpack(self._read(start, after - start), where=where)
            self._cache.add(position, plain)
        return plain, after

    def _pieces(self, row: PackRow) -> Iterator[bytes]:
        end = row.offset_bytes + row.size_bytes
        cached = self._cache.get(row.position)
        if cached is not None and end <= len(cached):
            yield cached[row.offset_bytes : end]
            return
        plain, position = self._frame(row.position)
        piece = plain[row.offset_bytes : row.offset_bytes + row.size_bytes]
        left = row.size_bytes - len(piece)
        yield piece
        while left:
            plain, position = self._frame(position)
            if not plain:
                raise PackError(self.where, f"an empty frame before byte {position}, inside {row.id.hex()}")
            yield plain[:left]
            left -= min(left, len(plain))

    # -- the Reader protocol -----------------------------------------------------------------------

    def info(self, object_id: RawId) -> ObjectInfo | None:
        """Return what is known of an object, or None."""
        row = self._find(object_id)
        return None if row is None or row.kind == form.RECORD else _info(row)

    def chunks(self, object_id: RawId) -> Iterator[Buffer]:
        """Yield the plain bytes of an object in the pack, unchecked; see the protocol.

        Raises:
            PackError: an altered index leads nowhere.
        """
        row = self._find(object_id)
        if row is None or row.kind == form.RECORD:
            raise NotFoundError(object_id.hex(), f"no such object in {self.where}")
        if row.kind != form.OBJECT:
            raise NotHeldError(object_id.hex(), "left out of the pack")
        yield from self._pieces(row)

    def record(self, record_id: RawId) -> bytes | None:
        """Return the bytes of a record, unchecked, or None."""
        row = self._find(record_id)
        if row is None or row.kind != form.RECORD:
            return None
        if row.size_bytes > MAX_RECORD_BYTES:
            raise PackError(self.where, f"its index states {row.size_bytes} bytes for {record_id.hex()}")
        return b"".join(self._pieces(row))

    def objects(self) -> Iterator[tuple[RawId, ObjectInfo]]:
        """Yield every object in the order of ids."""
        return ((row.id, _info(row)) for row in self._all_rows() if row.kind != form.RECORD)

    def records(self) -> Iterator[RawId]:
        """Yield the id of every record in order."""
        return (row.id for row in self._all_rows() if row.kind == form.RECORD)

    def in_storage_order(self, object_ids: Iterable[RawId]) -> list[RawId]:
        """Return the ids in the order in which reading their bytes is cheapest; unknown ones come last."""
        found = [(self._find(id), id) for id in object_ids]

        def order(item: tuple[PackRow | None, RawId]) -> tuple[int, int, bytes]:
            row, id = item
            return (1 << 64, 0, id) if row is None else (row.position, row.offset_bytes, id)

        return [id for _, id in sorted(found, key=order)]

    def lay(self, object_ids: Collection[RawId]) -> Laid:
        """Look many objects up at once; see the protocol."""
        found = map(self._find, sorted(object_ids))
        return form.laid(row for row in found if row is not None)

    def pieces(self, run: Run) -> Iterator[Piece]:
        """Yield the wanted objects of one frame; see the protocol."""
        key, wanted = run
        return form.pieces(wanted, self._frame(int.from_bytes(key, "big"))[0])

    def units(self) -> Iterator[Unit]:
        """Yield everything that the pack holds, frame by frame."""
        return itertools.starmap(Unit, form.by_frame(self._all_rows()))

    def whole_frames(self) -> Iterator[WholeFrame]:
        """Yield, in the order of the file, each frame that holds nothing but whole objects, by the index.

        What the index states is unchecked, the frames too.
        """
        rows = (fields for data in self._row_batches() for fields in form.ROW.iter_unpack(data))
        return form.whole_frames(PackRow(*fields) for fields in rows)

    def packed_frame(self, position: int) -> bytes:
        """Return the frame at a position as it is stored, unchecked.

        Raises:
            PackError, FrameError: there can be none.
        """
        start, end = self._frame_span(position)
        return self._read(start, end - start)

    def match(self, algorithm: Algorithm, prefix: str) -> list[RawId]:
        """Return the ids whose digest begins with ``prefix``; a pack knows no Git ids."""
        found: list[RawId] = []
        if algorithm == "blake3":
            for row in self._all_rows(self._lower_bound(bytes.fromhex(prefix.ljust(64, "0")))):
                if len(found) == MATCHES or not row.id.hex().startswith(prefix):
                    break
                found.append(row.id)
        elif algorithm == "sha256":
            pairs = ((row.sha256, row.id) for row in self._all_rows() if row.kind != form.RECORD)
            fitting = sorted(pair for pair in pairs if pair[0].hex().startswith(prefix))
            found = sorted(id for _, id in fitting[:MATCHES])
        return found

    def roots(self) -> list[tuple[str, RawId]]:
        """Return ref name (empty for none) and id of each packet that the pack is about."""
        return list(self._roots)

    def ref(self, name: str) -> RawId | None:
        """Return the packet that a root names, or None."""
        return next((id for root, id in self._roots if root and root == name), None)

    def refs(self) -> list[tuple[str, RawId]]:
        """Return all named roots, sorted by name."""
        return sorted((name, id) for name, id in self._roots if name)

    def ref_log(self, name: str | None = None) -> list[RefChange]:
        """Return nothing: a pack has no history."""
        return []

    def locations(self, object_id: RawId) -> list[Location]:
        """Return nothing: places of one host do not travel."""
        return []

    def verdicts(self, packet_id: RawId) -> list[RawId]:
        """Return nothing: a pack holds packets, not what somebody thought of them."""
        return []

    def ledger(self) -> list[RawId]:
        """Return nothing: a ledger stays where its runs were made; a packet has a copy as a member."""
        return []

    def cached(self, key: bytes) -> bytes | None:
        """Return None: a pack has no stat cache."""
        return None

    def cached_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return values of the stat cache in the order of their keys."""
        return [self.cached(key) for key in keys]

    def directory_ids(self) -> frozenset[tuple[int, int]]:
        """Return nothing: a pack is a file that may be read like any other."""
        return frozenset()

    def generation(self) -> int:
        """Return 0: a pack never changes."""
        return 0

    def moment(self) -> Moment:
        """Return what never changes."""
        return Moment(b"", 0, 0)

    def graph_home(self) -> str | None:
        """Return None: nothing is written beside a pack."""
        return None

    def stats(self) -> StoreStats:
        """Return sizes."""
        objects = records = plain = 0
        for row in self._all_rows():
            records += row.kind == form.RECORD
            objects += row.kind != form.RECORD
            plain += row.size_bytes if row.kind == form.OBJECT else 0
        return StoreStats(objects, records, len(self.refs()), plain, self._size, 0)

    def check(self) -> None:
        """Check that the whole file is as it was written, and that its index is in order.

        Raises:
            PackError: it was altered, or its index breaks its own rules.
        """
        hasher = blake3()
        end = self._size - form.HASH_BYTES - len(form.END_MAGIC)
        for position in range(0, end, _READ_BYTES):
            hasher.update(self._read(position, min(_READ_BYTES, end - position)))
        if hasher.digest() != self._read(end, form.HASH_BYTES):
            raise PackError(self.where, f"it was altered: the hash of its first {end} bytes differs")
        last = b""
        for number, row in enumerate(self._all_rows()):
            if row.id <= last:
                raise PackError(self.where, f"row {number} of its index is out of order")
            if row.kind not in (form.RECORD, form.OBJECT, form.ABSENT):
                raise PackError(self.where, f"row {number} of its index has kind {row.kind}")
            last = row.id

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _info(row: PackRow) -> ObjectInfo:
    return ObjectInfo(row.size_bytes, row.sha256, "external" if row.kind == form.ABSENT else "inline")
