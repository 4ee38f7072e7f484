"""One seal on its way into a store in memory."""

from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from provstore.errors import FrameError, IntegrityError, UsageError
from provstore.ids import Buffer, Digests, RawId
from provstore.store import frame
from provstore.store.chained import Append, require_single
from provstore.store.protocol import (
    ANY_REF,
    AnyRef,
    BlobWriter,
    CommitCounts,
    Location,
    ObjectInfo,
)
from provstore.store.refs import RefMove, check_ref_name
from provstore.store.rows import GIT_BYTES


class Content:
    """What a store in memory holds, or a stage adds to it."""

    def __init__(self) -> None:
        self.infos: dict[RawId, ObjectInfo] = {}
        self.data: dict[RawId, bytes] = {}
        self.records: dict[RawId, bytes] = {}
        self.git: set[tuple[bytes, RawId]] = set()
        self.locations: dict[RawId, dict[bytes, Location]] = {}
        self.cached: dict[bytes, bytes | None] = {}
        self.verdicts: dict[RawId, list[RawId]] = {}
        self.replacing: frozenset[RawId] = frozenset()
        self.entry: Append | None = None

    def is_empty(self) -> bool:
        """Say whether there is nothing."""
        content = self.infos or self.records or self.git or self.locations or self.cached or self.verdicts
        return not (content or self.entry)


class Home(Protocol):
    """What a stage needs of its store."""

    def holds(self, object_id: RawId) -> bool:
        """Say whether the bytes of an object are here."""

    def record(self, record_id: RawId) -> bytes | None:
        """Return the bytes of a record, or None."""

    def sweeps(self) -> int:
        """Return how many sweeps there were."""

    def take(
        self, added: Content, moves: list[RefMove], relied: tuple[set[RawId], set[RawId]], sweeps: int
    ) -> CommitCounts:
        """Make a stage visible."""


class MemoryStage:
    """Everything of one seal; see the protocol."""

    def __init__(self, store: Home, replacing: Collection[RawId] = ()) -> None:
        self._store = store
        self._added = Content()
        self._added.replacing = frozenset(replacing)
        self._moves: list[RefMove] = []
        self._relied: tuple[set[RawId], set[RawId]] = (set(), set())
        self._sweeps = store.sweeps()
        self._done = False

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
        held = object_id not in self._added.replacing and self._store.holds(object_id)
        if held:
            self._relied[0].add(object_id)
        return held

    def has_record(self, record_id: RawId) -> bool:
        """Say whether the record is in the store or the stage."""
        if record_id in self._added.records:
            return True
        held = record_id not in self._added.replacing and self._store.record(record_id) is not None
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
            self._added.infos[digests.blake3] = ObjectInfo(digests.size_bytes, digests.sha256, "inline")
            self._added.data[digests.blake3] = bytes(data)

    def frame_limit(self) -> int:
        """Return a size that no frame reaches: memory has no files."""
        return frame.MAX_PLAIN

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
        self._added.infos.setdefault(object_id, info._replace(placement="external"))

    def add_location(self, object_id: RawId, location: Location) -> None:
        """Note a place where an object was seen; another signature of one path replaces the earlier."""
        self._added.locations.setdefault(object_id, {})[location.path] = location

    def add_git(self, git_id: bytes, object_id: RawId) -> None:
        """Note the Git blob id of an object, for look-ups."""
        if len(git_id) != GIT_BYTES:
            raise UsageError(f"a Git id has {GIT_BYTES} bytes, not {len(git_id)}")
        self._added.git.add((git_id, object_id))

    def add_record(self, record_id: RawId, data: bytes) -> None:
        """Add a record; one that is there already is left alone."""
        if not self.has_record(record_id):
            self._added.records[record_id] = data

    def add_verdict(self, packet_id: RawId, verdict_id: RawId) -> None:
        """Note a verdict record for a packet, after those noted before."""
        self._added.verdicts.setdefault(packet_id, []).append(verdict_id)

    def add_cached(self, values: Mapping[bytes, bytes | None]) -> None:
        """Set values of the stat cache; None removes one."""
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
        self._moves.append(RefMove(check_ref_name(name), packet_id, expected, observation))

    def append_ledger(self, entry_id: RawId, after: RawId | None) -> None:
        """Make a record the newest entry of the ledger at commit, if ``after`` is the newest then."""
        require_single(self._added.entry)
        self._added.entry = Append(entry_id, after)

    def commit(self) -> CommitCounts:
        """Make everything visible, all or nothing."""
        if self._done:
            raise UsageError("a stage commits once, inside its with block")
        self._done = True
        if self._added.is_empty() and not self._moves:
            return CommitCounts(0, 0, 0, 0, 0)
        return self._store.take(self._added, self._moves, self._relied, self._sweeps)


class _MemoryBlob:
    """A ``BlobWriter`` of a stage in memory."""

    def __init__(self, stage: MemoryStage) -> None:
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
