"""A store in memory: the reference for what every store does, and the place for throw-away seals."""

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Self

from provstore.errors import LedgerMovedError, NotFoundError, NotHeldError, SweptError
from provstore.ids import Algorithm, Buffer, RawId
from provstore.store.memory_stage import Content, MemoryStage
from provstore.store.moment import Moment
from provstore.store.protocol import (
    Checks,
    CommitCounts,
    Location,
    Mark,
    ObjectInfo,
    RefChange,
    Stage,
    StoreStats,
    Unit,
)
from provstore.store.refs import RefMove, change_of, check_moves
from provstore.store.runs import Laid, Piece, Run

MATCHES: Final = 100
CHUNK_BYTES: Final = 4 << 20


class MemoryStore:
    """A store that lives as long as the process.

    Example:
        >>> from provstore.ids import digests
        >>> store = MemoryStore()
        >>> with store.stage() as stage:
        ...     stage.add_object(digests(b"x"), b"x")
        ...     counts = stage.commit()
        >>> counts.objects, b"".join(store.chunks(digests(b"x").blake3))
        (1, b'x')
    """

    def __init__(self) -> None:
        self.where = "memory"
        self.writable = True
        self._content = Content()
        self._refs: dict[str, RawId] = {}
        self._log: list[RefChange] = []
        self._ledger: list[RawId] = []
        self._generation = 0
        self._sweeps = 0
        self._checks = Checks(0, False, {})
        self._lock = threading.RLock()

    def directory_ids(self) -> frozenset[tuple[int, int]]:
        """Return nothing: no walk can enter it."""
        return frozenset()

    def generation(self) -> int:
        """Return a number that grows with every commit that adds or removes anything."""
        return self._generation

    def moment(self) -> Moment:
        """Return what the store is like now."""
        return Moment(b"", self._generation, self._sweeps)

    def graph_home(self) -> str | None:
        """Return None: nothing lies beside it."""
        return None

    def info(self, object_id: RawId) -> ObjectInfo | None:
        """Return what is known of an object, or None."""
        return self._content.infos.get(object_id)

    def chunks(self, object_id: RawId) -> Iterator[Buffer]:
        """Yield the plain bytes of a held object in order, unchecked."""
        with self._lock:
            info = self._content.infos.get(object_id)
            data = self._content.data.get(object_id)
        if info is None:
            raise NotFoundError(object_id.hex(), "no such object in memory")
        if data is None:
            raise NotHeldError(object_id.hex(), "external")
        view = memoryview(data)
        for start in range(0, max(len(data), 1), CHUNK_BYTES):
            yield view[start : start + CHUNK_BYTES]

    def record(self, record_id: RawId) -> bytes | None:
        """Return the bytes of a record, unchecked, or None."""
        return self._content.records.get(record_id)

    def objects(self) -> Iterator[tuple[RawId, ObjectInfo]]:
        """Yield every object in the order of ids."""
        with self._lock:
            found = sorted(self._content.infos.items())
        yield from found

    def records(self) -> Iterator[RawId]:
        """Yield the id of every record in order."""
        with self._lock:
            found = sorted(self._content.records)
        yield from found

    def in_storage_order(self, object_ids: Iterable[RawId]) -> list[RawId]:
        """Return the ids in the order in which reading their bytes is cheapest; any is, here."""
        return sorted(object_ids)

    def lay(self, object_ids: Collection[RawId]) -> Laid:
        """Return nothing: there are no frames here."""
        return Laid({}, [])

    def pieces(self, run: Run) -> Iterator[Piece]:
        """Yield nothing, for there is no frame."""
        yield from ()

    def match(self, algorithm: Algorithm, prefix: str) -> list[RawId]:
        """Return the ids whose digest begins with ``prefix``; see the protocol."""
        with self._lock:
            content = self._content
            if algorithm == "blake3":
                pairs = [(id, id) for id in sorted(content.infos)] + [
                    (id, id) for id in sorted(content.records)
                ]
            elif algorithm == "sha256":
                pairs = sorted((info.sha256, id) for id, info in content.infos.items())
            else:
                pairs = sorted(pair for pair in content.git if pair[1] in content.infos)
        found = dict.fromkeys(id for digest, id in pairs if digest.hex().startswith(prefix))
        return sorted(list(found)[:MATCHES])

    def ref(self, name: str) -> RawId | None:
        """Return the packet that a ref names, or None."""
        return self._refs.get(name)

    def refs(self) -> list[tuple[str, RawId]]:
        """Return all refs, sorted by name."""
        with self._lock:
            return sorted(self._refs.items())

    def ref_log(self, name: str | None = None) -> list[RefChange]:
        """Return the history of one ref, or of all, oldest first."""
        with self._lock:
            return [change for change in self._log if name is None or change.name == name]

    def locations(self, object_id: RawId) -> list[Location]:
        """Return the places where an object was seen, sorted by path."""
        with self._lock:
            return sorted(self._content.locations.get(object_id, {}).values())

    def verdicts(self, packet_id: RawId) -> list[RawId]:
        """Return the ids of verdict records that were noted for a packet, oldest first."""
        return list(self._content.verdicts.get(packet_id, ()))

    def ledger(self) -> list[RawId]:
        """Return the ids of the ledger's entries, oldest first."""
        with self._lock:
            return list(self._ledger)

    def cached(self, key: bytes) -> bytes | None:
        """Return a value of the stat cache, or None."""
        return self._content.cached.get(key)

    def cached_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return values of the stat cache in the order of their keys."""
        return [self.cached(key) for key in keys]

    def stats(self) -> StoreStats:
        """Return sizes."""
        with self._lock:
            content = self._content
            plain = sum(map(len, content.data.values()))
            return StoreStats(
                objects=len(content.infos),
                records=len(content.records),
                refs=len(self._refs),
                plain_bytes=plain,
                stored_bytes=plain + sum(map(len, content.records.values())),
                blob_files=0,
            )

    def close(self) -> None:
        """Do nothing: what is in memory stays as long as the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stage(self, replacing: Collection[RawId] = ()) -> Stage:
        """Begin to gather a seal; see the protocol for what replaces what."""
        return MemoryStage(self, replacing)

    def sweep(
        self, objects: Sequence[RawId], records: Sequence[RawId], generation: int
    ) -> CommitCounts | None:
        """Remove objects and records that the caller found unreachable."""
        with self._lock:
            if generation != self._generation:
                return None
            content = self._content
            gone = [id for id in dict.fromkeys(objects) if content.infos.pop(id, None) is not None]
            for object_id in gone:
                content.data.pop(object_id, None)
                content.locations.pop(object_id, None)
            content.git = {pair for pair in content.git if pair[1] not in set(gone)}
            dropped = [id for id in dict.fromkeys(records) if content.records.pop(id, None) is not None]
            for record_id in dropped:
                content.verdicts.pop(record_id, None)
            content.cached.clear()
            self._generation += 1
            self._sweeps += 1
            return CommitCounts(len(gone), len(dropped), 0, 1, 0)

    def writing(self) -> AbstractContextManager[object]:
        """Keep other writers out while the block runs; see the protocol."""
        return self._lock

    def remove_leftovers(self, older_than_ns: int) -> list[str]:
        """Return nothing: a process that ends leaves nothing here."""
        return []

    def units(self) -> Iterator[Unit]:
        """Yield everything that is held; here each object and record is read by itself."""
        with self._lock:
            objects, records = sorted(self._content.data), sorted(self._content.records)
        yield from (Unit(id, (id,), ()) for id in objects)
        yield from (Unit(id, (), (id,)) for id in records)

    def remains(self, id: RawId) -> Iterator[Buffer]:
        """Yield nothing: nothing is in frames here."""
        return iter(())

    def checks(self) -> Checks:
        """Return what is remembered of re-reading the store piece by piece."""
        with self._lock:
            return self._checks._replace(marks=dict(self._checks.marks))

    def note_checks(self, cycle: int, marks: Mapping[bytes, Mark], *, finished: bool) -> None:
        """Remember that units were re-read."""
        with self._lock:
            here = self._content.data.keys() | self._content.records.keys()
            kept = {**self._checks.marks, **marks}
            kept = {key: mark for key, mark in kept.items() if key in here}
            self._checks = Checks(cycle, finished, kept)

    def rebuilt_ns(self) -> int:
        """Return 0: there is no index to rebuild."""
        return 0

    # -- for its stages ----------------------------------------------------------------------------

    def holds(self, object_id: RawId) -> bool:
        """Say whether the bytes of an object are here."""
        return object_id in self._content.data

    def sweeps(self) -> int:
        """Return how many sweeps there were."""
        return self._sweeps

    def take(
        self, added: Content, moves: list[RefMove], relied: tuple[set[RawId], set[RawId]], sweeps: int
    ) -> CommitCounts:
        """Make a stage visible."""
        with self._lock:
            check_moves(moves, self._refs.get)
            newest = self._ledger[-1] if self._ledger else None
            if added.entry is not None and added.entry.after != newest:
                raise LedgerMovedError(
                    *(id.hex() if id else "no entry" for id in (added.entry.after, newest))
                )
            if sweeps != self._sweeps:
                missing = [id for id in sorted(relied[0]) if not self.holds(id)]
                missing += [id for id in sorted(relied[1]) if self.record(id) is None]
                if missing:
                    raise SweptError(missing[0].hex())
            counts = self._merge(added)
            for move in moves:
                self._move(move)
            if added.entry is not None:
                self._ledger.append(added.entry.id)
            self._generation += 1
            return counts

    def _merge(self, added: Content) -> CommitCounts:
        content = self._content
        objects = records = stored = 0
        for object_id, info in added.infos.items():
            data = added.data.get(object_id)
            again = object_id in added.replacing or not self.holds(object_id)
            if object_id not in content.infos or (data is not None and again):
                content.infos[object_id] = info
                objects += 1
                if data is not None:
                    content.data[object_id] = data
                    stored += len(data)
        for record_id in added.replacing & added.records.keys():
            content.records.pop(record_id, None)
        for record_id, data in added.records.items():
            if content.records.setdefault(record_id, data) is data:
                records += 1
                stored += len(data)
        content.git |= added.git
        for object_id, places in added.locations.items():
            content.locations.setdefault(object_id, {}).update(places)
        for packet_id, noted in added.verdicts.items():
            here = content.verdicts.setdefault(packet_id, [])
            here += [id for id in noted if id not in here]
        for key, value in added.cached.items():
            if value is None:
                content.cached.pop(key, None)
            else:
                content.cached[key] = value
        return CommitCounts(objects, records, stored, 1, 0)

    def _move(self, move: RefMove) -> None:
        change = change_of(move, self._refs.get(move.name), self._log[-1] if self._log else None)
        if change is None:
            return
        self._log.append(change)
        if move.id is None:
            del self._refs[move.name]
        else:
            self._refs[move.name] = move.id
