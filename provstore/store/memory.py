"""A store in memory: the reference for what every store does, and the place for throw-away seals."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from provstore.errors import FrameError, IntegrityError, NotFoundError, NotHeldError, SweptError, UsageError
from provstore.ids import Algorithm, Buffer, Digests, RawId
from provstore.store import frame
from provstore.store.protocol import (
    ANY_REF,
    AnyRef,
    BlobWriter,
    CommitCounts,
    Location,
    ObjectInfo,
    RefChange,
    Stage,
    StoreStats,
)
from provstore.store.refs import RefMove, change_of, check_moves, check_ref_name
from provstore.store.rows import GIT_BYTES

MATCHES = 100
CHUNK_BYTES = 4 << 20


class _Content:
    """What a store holds, or a stage adds."""

    def __init__(self) -> None:
        self.infos: dict[RawId, ObjectInfo] = {}
        self.data: dict[RawId, bytes] = {}
        self.records: dict[RawId, bytes] = {}
        self.git: set[tuple[bytes, RawId]] = set()
        self.locations: dict[RawId, dict[bytes, Location]] = {}
        self.cached: dict[bytes, bytes | None] = {}


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
        self._content = _Content()
        self._refs: dict[str, RawId] = {}
        self._log: list[RefChange] = []
        self._generation = 0
        self._sweeps = 0
        self._lock = threading.RLock()

    def directory_ids(self) -> frozenset[tuple[int, int]]:
        """Return nothing: no walk can enter it."""
        return frozenset()

    def generation(self) -> int:
        """Return a number that grows with every commit that adds or removes anything."""
        return self._generation

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

    def cached(self, key: bytes) -> bytes | None:
        """Return a value of the stat cache, or None."""
        return self._content.cached.get(key)

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

    def stage(self) -> Stage:
        """Begin to gather a seal."""
        return _MemoryStage(self)

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
            self._generation += 1
            self._sweeps += 1
            return CommitCounts(len(gone), len(dropped), 0, 1, 0)

    def remove_leftovers(self, older_than_ns: int) -> list[str]:
        """Return nothing: a process that ends leaves nothing here."""
        return []

    # -- for its stages ----------------------------------------------------------------------------

    def holds(self, object_id: RawId) -> bool:
        """Say whether the bytes of an object are here."""
        return object_id in self._content.data

    def sweeps(self) -> int:
        """Return how many sweeps there were."""
        return self._sweeps

    def take(
        self, added: _Content, moves: list[RefMove], relied: tuple[set[RawId], set[RawId]], sweeps: int
    ) -> CommitCounts:
        """Make a stage visible."""
        with self._lock:
            check_moves(moves, self._refs.get)
            if sweeps != self._sweeps:
                missing = [id for id in sorted(relied[0]) if not self.holds(id)]
                missing += [id for id in sorted(relied[1]) if self.record(id) is None]
                if missing:
                    raise SweptError(missing[0].hex())
            counts = self._merge(added)
            for move in moves:
                self._move(move)
            self._generation += 1
            return counts

    def _merge(self, added: _Content) -> CommitCounts:
        content = self._content
        objects = records = stored = 0
        for object_id, info in added.infos.items():
            data = added.data.get(object_id)
            if object_id not in content.infos or (data is not None and not self.holds(object_id)):
                content.infos[object_id] = info
                objects += 1
                if data is not None:
                    content.data[object_id] = data
                    stored += len(data)
        for record_id, data in added.records.items():
            if content.records.setdefault(record_id, data) is data:
                records += 1
                stored += len(data)
        content.git |= added.git
        for object_id, places in added.locations.items():
            content.locations.setdefault(object_id, {}).update(places)
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


class _MemoryStage:
    """Everything of one seal; see the protocol."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._added = _Content()
        self._moves: list[RefMove] = []
        self._relied: tuple[set[RawId], set[RawId]] = (set(), set())
        self._sweeps = store.sweeps()
        self._done = False
        self._any = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done = True

    def has_object(self, object_id: RawId) -> bool:
        """Say whether the object is held by the store or the stage."""
        if object_id in self._added.data:
            return True
        held = self._store.holds(object_id)
        if held:
            self._relied[0].add(object_id)
        return held

    def has_record(self, record_id: RawId) -> bool:
        """Say whether the record is in the store or the stage."""
        if record_id in self._added.records:
            return True
        held = self._store.record(record_id) is not None
        if held:
            self._relied[1].add(record_id)
        return held

    def add_object(self, digests: Digests, data: Buffer) -> None:
        """Add a small object; those that are held already are left alone."""
        size = memoryview(data).nbytes
        if size != digests.size_bytes:
            raise IntegrityError(digests.blake3.hex(), f"{size} bytes for {digests.size_bytes} hashed ones")
        self.take_object(digests, data)

    def take_object(self, digests: Digests, data: Buffer) -> None:
        """Add an object of any size."""
        if not self.has_object(digests.blake3):
            self._any = True
            self._added.infos[digests.blake3] = ObjectInfo(digests.size_bytes, digests.sha256, "inline")
            self._added.data[digests.blake3] = bytes(data)

    def add_frame(self, packed: bytes, members: Sequence[Digests]) -> None:
        """Add a frame whose plain bytes are the members' bytes in this order."""
        plain = frame.unpack(packed)
        total = sum(member.size_bytes for member in members)
        if len(plain) != total:
            raise FrameError("frame", f"holds {len(plain)} bytes, its members {total}")
        offset = 0
        for member in members:
            self.take_object(member, plain[offset : offset + member.size_bytes])
            offset += member.size_bytes

    def blob(self) -> BlobWriter:
        """Return a writer for one object over the inline limit."""
        return _MemoryBlob(self)

    def add_external(self, digests: Digests, location: Location) -> None:
        """Note an object whose bytes stay where they are; a held copy stays held."""
        self.add_absent(digests.blake3, ObjectInfo(digests.size_bytes, digests.sha256, "external"))
        self.add_location(digests.blake3, location)

    def add_absent(self, object_id: RawId, info: ObjectInfo) -> None:
        """Note an object whose bytes are nowhere here; held copies stay held."""
        self._any = True
        self._added.infos.setdefault(object_id, info._replace(placement="external"))

    def add_location(self, object_id: RawId, location: Location) -> None:
        """Note a place where an object was seen; another signature of one path replaces the earlier."""
        self._any = True
        self._added.locations.setdefault(object_id, {})[location.path] = location

    def add_git(self, git_id: bytes, object_id: RawId) -> None:
        """Note the Git blob id of an object, for look-ups."""
        if len(git_id) != GIT_BYTES:
            raise UsageError(f"a Git id has {GIT_BYTES} bytes, not {len(git_id)}")
        self._any = True
        self._added.git.add((git_id, object_id))

    def add_record(self, record_id: RawId, data: bytes) -> None:
        """Add a record; one that is there already is left alone."""
        if not self.has_record(record_id):
            self._any = True
            self._added.records[record_id] = data

    def add_cached(self, values: Mapping[bytes, bytes | None]) -> None:
        """Set values of the stat cache; None removes one."""
        self._any = self._any or bool(values)
        self._added.cached.update(values)

    def set_ref(
        self,
        name: str,
        packet_id: RawId | None,
        *,
        expected: RawId | AnyRef | None = ANY_REF,
        observation: RawId | None = None,
    ) -> None:
        """Move a ref at commit, if it still names ``expected`` then; None as target removes it."""
        self._any = True
        self._moves.append(RefMove(check_ref_name(name), packet_id, expected, observation))

    def commit(self) -> CommitCounts:
        """Make everything visible, all or nothing."""
        if self._done:
            raise UsageError("a stage commits once, inside its with block")
        self._done = True
        if not self._any:
            return CommitCounts(0, 0, 0, 0, 0)
        return self._store.take(self._added, self._moves, self._relied, self._sweeps)


class _MemoryBlob:
    """A ``BlobWriter`` of a stage in memory."""

    def __init__(self, stage: _MemoryStage) -> None:
        self._stage = stage
        self._data = bytearray()

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        self._data += data

    def finish(self, digests: Digests) -> None:
        """Say that these were all bytes and what they hash to."""
        if digests.size_bytes != len(self._data):
            raise IntegrityError(
                digests.blake3.hex(), f"{len(self._data)} written bytes for {digests.size_bytes} hashed ones"
            )
        self._stage.take_object(digests, self._data)

    def discard(self) -> None:
        """Forget the bytes."""
        self._data.clear()
