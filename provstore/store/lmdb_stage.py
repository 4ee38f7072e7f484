"""One seal on its way into a store directory: gathered here, made visible by one index transaction.

The order of steps, and what a kill after each leaves, is the crash table of ``stores/LAYOUT.md``.
"""

from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from provstore.errors import FrameError, IntegrityError, UsageError
from provstore.ids import Buffer, Digests, RawId
from provstore.store import frame, rows
from provstore.store.blobs import BlobFile
from provstore.store.chained import Append, require_single
from provstore.store.gathering import FrameSpool, Group, RecordGroup
from provstore.store.lmdb_commit import Staged, commit, is_usable
from provstore.store.lmdb_env import Env
from provstore.store.profile import StoreProfile
from provstore.store.protocol import ANY_REF, AnyRef, BlobWriter, CommitCounts, Location, ObjectInfo
from provstore.store.refs import RefMove, check_ref_name


class Home(NamedTuple):
    """What a stage needs to know of its store."""

    path: str
    env: Env
    profile: StoreProfile


class LmdbStage:
    """Everything of one seal; see the protocol."""

    def __init__(self, home: Home, replacing: Collection[RawId] = ()) -> None:
        self._home = home
        self._spool = FrameSpool(home.path)
        self._contents = Group(self._spool, home.profile.zstd_level)
        self._nodes = RecordGroup(self._spool)
        self._waiting: dict[RawId, Digests] = {}
        self._waiting_records: set[RawId] = set()
        self._open_blobs: set[BlobFile] = set()
        sweeps, empty, blank = home.env.read(
            lambda txn: (
                txn.get("settings", b"sweeps") or b"",
                not txn.entries("objects"),
                not txn.entries("records"),
            )
        )
        self._staged = Staged(home.path, self._spool, sweeps, frozenset(replacing))
        self._was_empty = empty
        self._had_no_records = blank
        self._done = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def _clear(self) -> None:
        self._done = True
        self._spool.close()
        for blob in (*self._open_blobs, *(blob for blob, _ in self._staged.blobs.values())):
            blob.remove()
        self._open_blobs.clear()

    # -- objects -----------------------------------------------------------------------------------

    def has_object(self, object_id: RawId) -> bool:
        """Say whether the object is held by the store or the stage."""
        if object_id in self._waiting or object_id in self._staged.rows or object_id in self._staged.blobs:
            return True
        if object_id in self._staged.replacing:
            return False
        if self._was_empty or object_id in self._staged.relied:
            return object_id in self._staged.relied
        row = self._home.env.get("objects", object_id)
        if row is None or not is_usable(self._home.path, object_id, row):
            return False
        self._staged.relied.add(object_id)
        return True

    def has_record(self, record_id: RawId) -> bool:
        """Say whether the record is in the store or the stage."""
        staged = self._staged
        if record_id in staged.records or record_id in self._waiting_records:
            return True
        if record_id in staged.replacing or self._had_no_records:
            return False
        if record_id not in staged.relied_records:
            if self._home.env.get("records", record_id) is None:
                return False
            staged.relied_records.add(record_id)
        return True

    def add_object(self, digests: Digests, data: Buffer) -> None:
        """Add a small object; those that are held already are left alone."""
        size = memoryview(data).nbytes
        if size != digests.size_bytes:
            raise IntegrityError(digests.blake3.hex(), f"{size} bytes for {digests.size_bytes} hashed ones")
        if self.has_object(digests.blake3):
            return
        if size > self._home.profile.inline_limit_bytes:
            writer = self.blob()
            writer.write(data)
            writer.finish(digests)
            return
        self._waiting[digests.blake3] = digests
        self._contents.add(digests.blake3, data)
        if self._contents.plain_bytes >= frame.FRAME_BYTES:
            self._close_contents()

    def _close_contents(self) -> None:
        for object_id, place in self._contents.close():
            digests = self._waiting.pop(object_id)
            self._staged.rows[object_id] = rows.inline_row(digests.sha256, place)

    def frame_limit(self) -> int:
        """Return the size over which an object gets a file of its own."""
        return self._home.profile.inline_limit_bytes

    def add_frame(self, packed: bytes, members: Sequence[Digests]) -> None:
        """Add a frame whose plain bytes are the members' bytes in this order."""
        total = sum(member.size_bytes for member in members)
        if frame.plain_size(packed) != total:
            raise FrameError("frame", f"holds {frame.plain_size(packed)} bytes, its members {total}")
        offset = 0
        number: int | None = None
        row, staged, has = rows.inline_row, self._staged.rows, self.has_object
        for id, sha256, size_bytes in members:
            if not has(id):
                if number is None:
                    number = self._spool.add(packed)
                staged[id] = row(sha256, rows.Place(number, offset, size_bytes))
            offset += size_bytes

    def blob(self) -> BlobWriter:
        """Return a writer for one object over the inline limit."""
        blob = BlobFile(self._home.path, self._home.profile.zstd_level)
        self._open_blobs.add(blob)
        return _StagedBlob(self, blob)

    def take_blob(self, blob: BlobFile, digests: Digests) -> None:
        """Accept a written blob file."""
        blob.close(digests)
        if self.has_object(digests.blake3):
            self.drop_blob(blob)
            return
        self._open_blobs.discard(blob)
        self._staged.blobs[digests.blake3] = blob, digests

    def drop_blob(self, blob: BlobFile) -> None:
        """Remove a blob file that nobody wants."""
        self._open_blobs.discard(blob)
        blob.remove()

    def add_external(self, digests: Digests, location: Location) -> None:
        """Note an object whose bytes stay where they are; a held copy stays held."""
        self._staged.externals[digests.blake3] = rows.external_row(digests.sha256, digests.size_bytes)
        self.add_location(digests.blake3, location)

    def add_absent(self, object_id: RawId, info: ObjectInfo) -> None:
        """Note an object whose bytes are nowhere here; held copies stay held."""
        self._staged.externals[object_id] = rows.external_row(info.sha256, info.size_bytes)

    def add_location(self, object_id: RawId, location: Location) -> None:
        """Note a place where an object was seen; another signature of one path replaces the earlier."""
        key = rows.location_key(object_id, location.path)
        self._staged.locations[key] = rows.location_value(key, location)

    def add_git(self, git_id: bytes, object_id: RawId) -> None:
        """Note the Git blob id of an object, for look-ups."""
        if len(git_id) != rows.GIT_BYTES:
            raise UsageError(f"a Git id has {rows.GIT_BYTES} bytes, not {len(git_id)}")
        self._staged.git.add(rows.git_row(git_id, object_id))

    # -- records, cache, refs ----------------------------------------------------------------------

    def add_record(self, record_id: RawId, data: bytes) -> None:
        """Add a record; one that is there already is left alone."""
        if self.has_record(record_id):
            return
        if len(data) > rows.MAX_RECORD_BYTES:
            raise UsageError(f"record {record_id.hex()} has {len(data)} bytes, more than a store takes")
        if len(data) > frame.FRAME_BYTES:
            self._set_places([self._nodes.add_long(record_id, data)])
            return
        self._waiting_records.add(record_id)
        self._nodes.add(record_id, data)
        while self._nodes.is_due():
            self._set_places(self._nodes.close_due())

    def _set_places(self, places: list[tuple[RawId, rows.Place]]) -> None:
        for record_id, place in places:
            self._waiting_records.discard(record_id)
            self._staged.records[record_id] = rows.record_row(place)

    def add_verdict(self, packet_id: RawId, verdict_id: RawId) -> None:
        """Note a verdict record for a packet, after those noted before."""
        self._staged.verdicts.append((packet_id, verdict_id))

    def add_cached(self, values: Mapping[bytes, bytes | None]) -> None:
        """Set values of the stat cache; None removes one."""
        self._staged.cached.update(values)

    def set_ref(
        self,
        name: str,
        packet_id: RawId | None,
        *,
        expected: RawId | AnyRef | None = ANY_REF,
        observation: RawId | None = None,
    ) -> None:
        """Move a ref at commit, if it still names ``expected`` then; None as target removes it."""
        self._staged.refs.append(RefMove(check_ref_name(name), packet_id, expected, observation))

    def append_ledger(self, entry_id: RawId, after: RawId | None) -> None:
        """Make a record the newest entry of the ledger at commit, if ``after`` is the newest then."""
        require_single(self._staged.entry)
        self._staged.entry = Append(entry_id, after)

    def commit(self) -> CommitCounts:
        """Make everything durable and visible, all or nothing; see the protocol."""
        if self._done:
            raise UsageError("a stage commits once, inside its with block")
        self._done = True
        self._close_contents()
        while self._nodes.is_due():
            self._set_places(self._nodes.close_due())
        self._set_places(self._nodes.close())
        try:
            return commit(self._home.env, self._home.profile, self._staged)
        finally:
            self._clear()


class _StagedBlob:
    """A ``BlobWriter`` of a stage."""

    def __init__(self, stage: LmdbStage, blob: BlobFile) -> None:
        self._stage = stage
        self._blob = blob

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        self._blob.write(data)

    def finish(self, digests: Digests) -> None:
        """Say that these were all bytes and what they hash to."""
        self._stage.take_blob(self._blob, digests)

    def discard(self) -> None:
        """Forget the bytes."""
        self._stage.drop_blob(self._blob)
