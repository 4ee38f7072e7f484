"""Reading a store directory: the LMDB side of the Reader protocol."""

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Self

from provstore.errors import IntegrityError, NotFoundError, NotHeldError, StoreDamagedError
from provstore.ids import Algorithm, Buffer, RawId
from provstore.paths import show
from provstore.store import blobs, frame, lmdb_checks, lmdb_ledger, rows
from provstore.store.frame_cache import FrameCache
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_registry import release
from provstore.store.lmdb_txn import Txn
from provstore.store.moment import Moment, marks_of
from provstore.store.prefixes import bounds
from provstore.store.protocol import Location, ObjectInfo, RefChange, StoreStats, Unit
from provstore.store.runs import Laid, Piece, Run
from provstore.store.system import identity

BATCH: Final = 2048
"""Rows read in one transaction while iterating."""

MATCHES: Final = 100

GRAPH_DIRECTORY: Final = "graph"
"""Directory inside the store's with the index of the graph, which has an environment of its own."""


def _cached(key: bytes, stored: bytes | None) -> bytes | None:
    if stored is None:
        return None
    try:
        return rows.unchecked("stat_cache", key, stored)
    except StoreDamagedError:
        return None


class LmdbReader:
    """A store directory, read.

    Attributes:
        where: its path, as people see it.
        path: its path.
        writable: whether it may also be written.
    """

    def __init__(self, path: str, env: Env) -> None:
        self.path = path
        self.where = show(path)
        self.writable = False
        self._env = env
        self._closed = False
        self._cache = FrameCache()

    def directory_ids(self) -> frozenset[tuple[int, int]]:
        """Return device and inode of the store's directory: opening a file in it would drop locks."""
        places = (self.path, os.path.join(self.path, GRAPH_DIRECTORY))
        return frozenset(found for found in map(identity, places) if found is not None)

    def moment(self) -> Moment:
        """Return what the store is like now, in one reading."""
        names = (b"store_id", b"generation", b"sweeps", b"marks")
        found = self._env.read(lambda txn: [txn.get("settings", name) or b"" for name in names])
        generation = int.from_bytes(found[1], "big")
        return Moment(found[0], generation, int.from_bytes(found[2], "big"), marks_of(generation, found[3]))

    def graph_home(self) -> str | None:
        """Return the store's own directory."""
        return self.path

    def generation(self) -> int:
        """Return a number that grows with every commit that adds or removes anything."""
        return int.from_bytes(self._env.get("settings", b"generation") or b"", "big")

    def info(self, object_id: RawId) -> ObjectInfo | None:
        """Return what is known of an object, or None."""
        row = self._env.get("objects", object_id)
        return None if row is None else rows.object_info(row)

    def chunks(self, object_id: RawId) -> Iterator[Buffer]:
        """Yield the plain bytes of a held object; see the protocol."""
        row, packed = self._env.read(lambda txn: self._row_and_frame(txn, object_id))
        info = rows.object_info(row)
        if info.placement == "external":
            raise NotHeldError(object_id.hex(), "external")
        if info.placement == "inline":
            place = rows.object_place(row)
            yield self._slice(place, packed, object_id)
            return
        stored, framed = rows.blob_stored_bytes(row), row[0] == rows.BLOB_FRAMED
        try:
            yield from blobs.chunks(self.path, object_id, stored, framed)
        except FileNotFoundError:
            if self._env.get("objects", object_id) is None:
                raise NotFoundError(object_id.hex(), f"it was swept from {self.where} meanwhile") from None
            raise IntegrityError(object_id.hex(), "a blob file that is gone") from None

    def _row_and_frame(self, txn: Txn, object_id: RawId) -> tuple[bytes, bytes | None]:
        row = txn.get("objects", object_id)
        if row is None:
            raise NotFoundError(object_id.hex(), f"no such object in {self.where}")
        if row[0] != rows.INLINE:
            return row, None
        number = rows.object_place(row).frame
        if self._cache.get(number) is not None:
            return row, None
        return row, txn.get("frames", rows.number_key(number))

    def _plain(self, number: int, packed: bytes | None, wanted_by: RawId) -> bytes:
        plain = self._cache.get(number)
        if plain is None:
            if packed is None:
                raise IntegrityError(wanted_by.hex(), f"nothing: frame {number} is gone")
            plain = frame.unpack(packed, where=f"frame {number} of {self.where}")
            self._cache.add(number, plain)
        return plain

    def _slice(self, place: rows.Place, packed: bytes | None, wanted_by: RawId) -> bytes:
        plain = self._plain(place.frame, packed, wanted_by)
        return plain[place.offset_bytes : place.offset_bytes + place.size_bytes]

    def lay(self, object_ids: Collection[RawId]) -> Laid:
        """Look many objects up at once; see the protocol."""
        wanted = sorted(object_ids)
        found = self._env.read(lambda txn: txn.get_many("objects", wanted))
        return lmdb_checks.laid(found)

    def pieces(self, run: Run) -> Iterator[Piece]:
        """Yield the wanted objects of one frame; see the protocol."""
        key, wanted = run
        packed = self._env.get("frames", key)
        plain = self._plain(int.from_bytes(key, "big"), packed, wanted[:32])
        return lmdb_checks.pieces(wanted, plain)

    def units(self) -> Iterator[Unit]:
        """Yield everything that is held, in the order in which reading it all is quickest."""
        return lmdb_checks.units(self._env)

    def record(self, record_id: RawId) -> bytes | None:
        """Return the bytes of a record, unchecked, or None."""
        found = self._env.read(lambda txn: self._record(txn, record_id))
        if found is None:
            return None
        place, frames = found
        data = self._slice(place, frames[0], record_id)
        for more, packed in enumerate(frames[1:], place.frame + 1):
            data += self._plain(more, packed, record_id)
        if len(data) != place.size_bytes:
            raise IntegrityError(record_id.hex(), f"{len(data)} bytes; the index says {place.size_bytes}")
        return data

    def _record(self, txn: Txn, record_id: RawId) -> tuple[rows.Place, list[bytes | None]] | None:
        row = txn.get("records", record_id)
        if row is None:
            return None
        place = rows.record_place(row)
        numbers = range(place.frame, place.frame + place.frames())
        return place, [
            None if self._cache.get(number) is not None else txn.get("frames", rows.number_key(number))
            for number in numbers
        ]

    def objects(self) -> Iterator[tuple[RawId, ObjectInfo]]:
        """Yield every object in the order of ids."""
        for key, row in self._iterate("objects"):
            yield key, rows.object_info(row)

    def records(self) -> Iterator[RawId]:
        """Yield the id of every record in order."""
        for key, _ in self._iterate("records"):
            yield key

    def _iterate(self, database: str, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        while True:
            batch = self._env.read(lambda txn: _take(txn.scan(database, start), BATCH))  # noqa: B023
            yield from batch
            if len(batch) < BATCH:
                return
            start = batch[-1][0] + b"\0"

    def in_storage_order(self, object_ids: Iterable[RawId]) -> list[RawId]:
        """Return the ids in the order in which reading their bytes is cheapest; unknown ones come last."""

        def places(txn: Txn) -> dict[bytes, bytes]:
            return txn.get_many("objects", sorted(wanted))

        wanted = list(object_ids)
        found = self._env.read(places)

        def order(object_id: RawId) -> tuple[int, int, int, bytes]:
            row = found.get(object_id)
            if row is None or row[0] == rows.EXTERNAL:
                return 2, 0, 0, object_id
            if row[0] != rows.INLINE:
                return 1, 0, 0, object_id
            place = rows.object_place(row)
            return 0, place.frame, place.offset_bytes, object_id

        return sorted(wanted, key=order)

    def match(self, algorithm: Algorithm, prefix: str) -> list[RawId]:
        """Return the ids whose digest begins with ``prefix``; see the protocol."""
        limits = bounds(prefix)
        if limits is None:
            return []
        work = {"blake3": _match_ids, "sha256": _match_sha256, "git": _match_git}[algorithm]
        return sorted(self._env.read(lambda txn: work(txn, limits[0], prefix)))

    def ref(self, name: str) -> RawId | None:
        """Return the packet that a ref names, or None."""
        key = name.encode("utf-8", "surrogatepass")
        stored = self._env.get("refs", key) if 0 < len(key) <= rows.MAX_REF_BYTES else None
        return None if stored is None else rows.unchecked("refs", key, stored)

    def refs(self) -> list[tuple[str, RawId]]:
        """Return all refs, sorted by name."""
        found = ((key, rows.unchecked("refs", key, stored)) for key, stored in self._iterate("refs"))
        return sorted((key.decode("utf-8", "replace"), value) for key, value in found)

    def ref_log(self, name: str | None = None) -> list[RefChange]:
        """Return the history of one ref, or of all, oldest first."""
        changes = (rows.parse_change(key, value) for key, value in self._iterate("ref_log"))
        return [change for change in changes if name is None or change.name == name]

    def locations(self, object_id: RawId) -> list[Location]:
        """Return the places where an object was seen, sorted by path."""

        def work(txn: Txn) -> list[Location]:
            found = []
            for key, value in txn.scan("locations", object_id):
                if key[:32] != object_id:
                    break
                found.append(rows.parse_location(key, value))
            return found

        return sorted(self._env.read(work))

    def verdicts(self, packet_id: RawId) -> list[RawId]:
        """Return the ids of verdict records that were noted for a packet, oldest first."""
        stored = self._env.get("verdicts", packet_id)
        return rows.ids_of(rows.unchecked("verdicts", packet_id, stored)) if stored is not None else []

    def ledger(self) -> list[RawId]:
        """Return the ids of the ledger's entries, oldest first."""
        self._env.look_again()
        return self._env.read(lmdb_ledger.entries)

    def cached(self, key: bytes) -> bytes | None:
        """Return a value of the stat cache, or None; a damaged one counts as none."""
        return self.cached_many([key])[0]

    def cached_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return values of the stat cache in the order of their keys, as seen in one reading."""
        stored = self._env.read(lambda txn: [txn.get("stat_cache", key) for key in keys])
        return [_cached(key, value) for key, value in zip(keys, stored, strict=True)]

    def stats(self) -> StoreStats:
        """Return sizes; walks what has to be counted."""
        plain = stored = blob_files = objects = 0
        for _, row in self._iterate("objects"):
            info = rows.object_info(row)
            objects += 1
            plain += info.size_bytes if info.placement != "external" else 0
            if info.placement == "blob":
                blob_files += 1
                stored += rows.blob_stored_bytes(row)
        records, refs = self._env.read(lambda txn: (txn.entries("records"), txn.entries("refs")))
        stored += os.stat(os.path.join(self.path, "data.mdb")).st_size
        return StoreStats(
            objects=objects,
            records=records,
            refs=refs,
            plain_bytes=plain,
            stored_bytes=stored,
            blob_files=blob_files,
            readers=self._env.readers(),
            stale_readers=self._env.stale_readers,
        )

    def close(self) -> None:
        """Release everything; closing twice is fine."""
        if not self._closed:
            self._closed = True
            release(self._env)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _take(items: Iterator[tuple[bytes, bytes]], count: int) -> list[tuple[bytes, bytes]]:
    return list(itertools.islice(items, count))


def _match_ids(txn: Txn, low: bytes, prefix: str) -> list[RawId]:
    found: list[RawId] = []
    for database in ("objects", "records"):
        for key, _ in txn.scan(database, low):
            if len(found) == MATCHES or not key.hex().startswith(prefix):
                break
            found.append(key)
    return found


def _match_sha256(txn: Txn, low: bytes, prefix: str) -> list[RawId]:
    found: list[RawId] = []
    width = rows.SHA_PREFIX
    for value in txn.scan_duplicates("by_sha256", low[:width]):
        if len(found) >= MATCHES or not value[:width].hex().startswith(prefix[: 2 * width]):
            break
        for key, row in txn.scan("objects", value[width:]):
            if key[:width] != value[width:]:
                break
            if row[1:33].hex().startswith(prefix) and key not in found:
                found.append(key)
    return found[:MATCHES]


def _match_git(txn: Txn, low: bytes, prefix: str) -> list[RawId]:
    found: list[RawId] = []
    width = rows.GIT_BYTES
    for value in txn.scan_duplicates("by_git", low):
        if len(found) >= MATCHES or not value[:width].hex().startswith(prefix):
            break
        for key, _ in txn.scan("objects", value[width:]):
            if key[: rows.GIT_ID_PREFIX] != value[width:]:
                break
            if key not in found:
                found.append(key)
    return found[:MATCHES]
