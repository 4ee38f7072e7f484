"""What every store can do, in the smallest synchronous form; nothing here knows a file format.

A reader gives back what is stored, unchecked: only :mod:`provstore.store.objects` may call ``chunks``,
``pieces`` and ``record``, because it is the door that checks every id. A writer gathers a whole seal in a
:class:`Stage` and makes it visible in one commit.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, NamedTuple, Protocol, Self

from provstore.ids import Algorithm, Buffer, Digests, RawId
from provstore.store.chained import HasLedger, TakesEntries
from provstore.store.moment import Moment
from provstore.store.runs import InBulk

Placement = Literal["inline", "blob", "external"]
"""``inline``: in a frame inside the index. ``blob``: a file beside it. ``external``: only its digests and
the places where it was seen are known here."""


class ObjectInfo(NamedTuple):
    """What the index says about one object.

    Attributes:
        size_bytes: length of the plain bytes.
        sha256: raw SHA-256 of the plain bytes.
        placement: where they are.
    """

    size_bytes: int
    sha256: bytes
    placement: Placement


class StatSignature(NamedTuple):
    """What the file system says about a file's bytes without reading them; times in nanoseconds."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int


class Location(NamedTuple):
    """A place where an object's bytes were seen: absolute path as bytes, and its signature then."""

    path: bytes
    signature: StatSignature


class RefChange(NamedTuple):
    """One step in the history of a ref.

    Attributes:
        sequence: position in the log of all refs, from 1.
        name: the ref.
        id: packet that it names from now on; None when the ref was removed.
        previous: packet that it named before; None for a new ref.
        taken_ns: nanoseconds since the epoch by the store's clock, never less than the step before.
        observation: record of the circumstances, if there is one.
    """

    sequence: int
    name: str
    id: RawId | None
    previous: RawId | None
    taken_ns: int
    observation: RawId | None


class StoreStats(NamedTuple):
    """Sizes of a store.

    Attributes:
        objects: number of objects, external ones included.
        records: number of records.
        refs: number of refs.
        plain_bytes: sum of the sizes of the held objects.
        stored_bytes: bytes that the store occupies on disk or in memory.
        blob_files: number of files beside the index.
        readers: processes that read now, as far as known.
        stale_readers: reader slots of dead processes that were found and cleared on opening.
    """

    objects: int
    records: int
    refs: int
    plain_bytes: int
    stored_bytes: int
    blob_files: int
    readers: int = 0
    stale_readers: int = 0


class CommitCounts(NamedTuple):
    """Work that one commit did; tests hold seals to these numbers.

    Attributes:
        objects, records: what was new to the store.
        bytes_stored: bytes written for them, as stored.
        transactions: index transactions that were committed.
        syncs: calls that waited for the disk (``fsync``, ``syncfs``, the index's own).
    """

    objects: int
    records: int
    bytes_stored: int
    transactions: int
    syncs: int


class Unit(NamedTuple):
    """What is read in one piece: a frame or a file, with the objects and records that begin in it.

    Attributes:
        key: what the store knows it by; 8 bytes for a frame, the object's id for a file of its own.
        objects: ids, in the order of their bytes.
        records: ids, in the order of their bytes.
    """

    key: bytes
    objects: tuple[RawId, ...]
    records: tuple[RawId, ...]


class Mark(NamedTuple):
    """When a unit was last re-read.

    Attributes:
        cycle: number of the round of checks, from 1.
        taken_ns: nanoseconds since the epoch.
        damaged: something in it was damaged then.
    """

    cycle: int
    taken_ns: int
    damaged: bool


class Checks(NamedTuple):
    """How far a store is with re-reading itself piece by piece.

    Attributes:
        cycle: number of the latest round, 0 before the first.
        finished: everything was re-read in it.
        marks: of every unit that was ever re-read, by its key.
    """

    cycle: int
    finished: bool
    marks: dict[bytes, Mark]


class AnyRef:
    """Marker: a ref may be moved whatever it names now."""


ANY_REF = AnyRef()


class Reader(InBulk, HasLedger, Protocol):
    """A store that can be read: a directory, a pack file, memory."""

    where: str
    """What people call it in messages: a path, or ``memory``."""

    writable: bool

    def info(self, object_id: RawId) -> ObjectInfo | None:
        """Return what is known of an object, or None."""

    def chunks(self, object_id: RawId) -> Iterator[Buffer]:
        """Yield the plain bytes of a held object in order, unchecked; at most 4 MiB at a time.

        Raises:
            NotFoundError: the index does not know it.
            NotHeldError: it is external.
            FrameError: a stored frame is malformed.
            IntegrityError: a blob file is gone or has another length.
        """

    def in_storage_order(self, object_ids: Iterable[RawId]) -> list[RawId]:
        """Return the ids in the order in which reading them all is quickest; unknown ones come last."""

    def units(self) -> Iterator[Unit]:
        """Yield everything that is held, in the order in which reading it all is quickest."""

    def record(self, record_id: RawId) -> bytes | None:
        """Return the bytes of a record, unchecked, or None."""

    def objects(self) -> Iterator[tuple[RawId, ObjectInfo]]:
        """Yield every object in the order of ids."""

    def records(self) -> Iterator[RawId]:
        """Yield the id of every record in order."""

    def match(self, algorithm: Algorithm, prefix: str) -> list[RawId]:
        """Return ids, sorted, whose digest under ``algorithm`` begins with the hex digits ``prefix``.

        For ``blake3`` these are objects and records; for the others objects. At most 100.
        """

    def ref(self, name: str) -> RawId | None:
        """Return the packet that a ref names, or None."""

    def refs(self) -> list[tuple[str, RawId]]:
        """Return all refs, sorted by name."""

    def ref_log(self, name: str | None = None) -> list[RefChange]:
        """Return the history of one ref, or of all, oldest first."""

    def verdicts(self, packet_id: RawId) -> list[RawId]:
        """Return the ids of verdict records that were noted for a packet, oldest first."""

    def locations(self, object_id: RawId) -> list[Location]:
        """Return the places where an object was seen, sorted by path."""

    def cached(self, key: bytes) -> bytes | None:
        """Return a value of the stat cache, or None. Its content is the business of ``files``."""

    def cached_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return values of the stat cache in the order of their keys, as seen in one reading."""

    def directory_ids(self) -> frozenset[tuple[int, int]]:
        """Return device and inode of the directories that a walk must not enter: the store's own."""

    def generation(self) -> int:
        """Return a number that grows with every commit that adds or removes anything."""

    def moment(self) -> Moment:
        """Return what the store is like now, in one reading."""

    def graph_home(self) -> str | None:
        """Return the directory beside whose files an index of the graph can be kept, or None for nowhere."""

    def stats(self) -> StoreStats:
        """Return sizes; walks what has to be counted."""

    def close(self) -> None:
        """Release everything; closing twice is fine."""


class BlobWriter(Protocol):
    """Receives the bytes of one large object."""

    def write(self, data: Buffer) -> None:
        """Append bytes."""

    def finish(self, digests: Digests) -> None:
        """Say that these were all bytes and what they hash to; the caller has hashed them."""

    def discard(self) -> None:
        """Forget the bytes: the object was already there, or its source changed."""


class Stage(TakesEntries, Protocol):
    """Everything of one seal, gathered without disturbing readers, made visible by :meth:`commit`.

    Leaving the ``with`` block without a commit leaves the store as it was.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def has_object(self, object_id: RawId) -> bool:
        """Say whether the object is held by the store or the stage (external ones are not held)."""

    def has_record(self, record_id: RawId) -> bool:
        """Say whether the record is in the store or the stage."""

    def add_object(self, digests: Digests, data: Buffer) -> None:
        """Add a small object; those that are held already are left alone."""

    def frame_limit(self) -> int:
        """Return the size in bytes over which an object gets a file of its own, so that no frame holds it."""

    def add_frame(self, frame: bytes, members: Sequence[Digests]) -> None:
        """Add a frame (see ``store.frame``) whose plain bytes are the members' bytes in this order."""

    def blob(self) -> BlobWriter:
        """Return a writer for one object over the inline limit."""

    def add_external(self, digests: Digests, location: Location) -> None:
        """Note an object whose bytes stay where they are; a held copy stays held."""

    def add_absent(self, object_id: RawId, info: ObjectInfo) -> None:
        """Note an object whose bytes are nowhere here, only its SHA-256 and size; held copies stay held."""

    def add_location(self, object_id: RawId, location: Location) -> None:
        """Note a place where an object was seen; another signature of one path replaces the earlier."""

    def add_git(self, git_id: bytes, object_id: RawId) -> None:
        """Note the Git blob id of an object, for look-ups."""

    def add_record(self, record_id: RawId, data: bytes) -> None:
        """Add a record; one that is there already is left alone."""

    def add_verdict(self, packet_id: RawId, verdict_id: RawId) -> None:
        """Note a verdict record for a packet, after those noted before; a noted one stays where it is."""

    def add_cached(self, values: Mapping[bytes, bytes | None]) -> None:
        """Set values of the stat cache; None removes one."""

    def set_ref(
        self,
        name: str,
        packet_id: RawId | None,
        *,
        expected: RawId | AnyRef | None = ANY_REF,
        observation: RawId | None = None,
    ) -> None:
        """Move a ref at commit, if it still names ``expected`` then; None as target removes it."""

    def commit(self) -> CommitCounts:
        """Make everything durable and visible, all or nothing. A stage commits once.

        Raises:
            StoreFullError: no room; the store is unchanged.
            StoreBusyError: another writer did not finish in time.
            RefConflictError, LedgerMovedError: another commit came first; the store is unchanged.
        """


class Store(Reader, Protocol):
    """A store that can be written."""

    def stage(self, replacing: Collection[RawId] = ()) -> Stage:
        """Begin to gather a seal.

        Args:
            replacing: objects and records that count as absent until the stage adds them; what it adds
                takes the place of what is there, and frames and files that lose their last member go.

        Raises:
            ReadOnlyError: the store was opened for reading.
        """

    def sweep(
        self, objects: Sequence[RawId], records: Sequence[RawId], generation: int
    ) -> CommitCounts | None:
        """Remove objects and records that the caller found unreachable, in one commit.

        Returns None, and removes nothing, if the store is no longer at ``generation``: something may have
        become reachable since the caller looked. Frames that lose members are written anew without them;
        blob files go after the commit.
        """

    def writing(self) -> AbstractContextManager[object]:
        """Keep other writers out while the block runs; commits and sweeps of this thread go on.

        Raises:
            StoreBusyError: another writer did not finish in time.
        """

    def remove_leftovers(self, older_than_ns: int) -> list[str]:
        """Remove temporary and unindexed files left by killed writers; return their names.

        Files touched after ``older_than_ns`` stay, since their writer may live.
        """

    def remains(self, id: RawId) -> Iterator[Buffer]:
        """Yield what can be had of an object or a record whose frames are damaged.

        Unchecked: the caller holds it against the id. Nothing where it is in no frame.

        Raises:
            StoreDamagedError, FrameError, InputOutputError: nothing can be had.
        """

    def checks(self) -> Checks:
        """Return what is remembered of re-reading the store piece by piece."""

    def note_checks(self, cycle: int, marks: Mapping[bytes, Mark], *, finished: bool) -> None:
        """Remember, durably, that units were re-read; those that are gone by now are left out.

        Raises:
            ReadOnlyError: the store was opened for reading.
        """

    def rebuilt_ns(self) -> int:
        """Return when the index was rebuilt from files alone, in ns since the epoch; 0 if it never was."""
