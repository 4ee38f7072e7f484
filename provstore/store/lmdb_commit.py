"""Committing a stage: blob files first, then frames and rows and refs in the index.

All or nothing: until the last transaction commits, nothing that was written is referred to.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Final

from provstore.errors import ProvError, StoreFullError, SweptError
from provstore.ids import Digests, RawId
from provstore.paths import show
from provstore.store import blobs, lmdb_ledger, lmdb_replace, moment, rows, writer_lock
from provstore.store.blobs import BlobFile, relative_path, remove_quietly
from provstore.store.chained import Append
from provstore.store.gathering import FrameSpool
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_txn import Txn
from provstore.store.profile import StoreProfile
from provstore.store.protocol import CommitCounts
from provstore.store.refs import RefMove, change_of, check_moves
from provstore.store.steps import reached
from provstore.store.system import refused, sync_paths

AHEAD_BYTES: Final = 24 << 20
"""Frames that are more than this go into transactions of their own before the last one, each of up to
:data:`BATCH_BYTES`, since LMDB keeps all pages of a transaction in memory until it commits."""

BATCH_BYTES: Final = 12 << 20


class Staged:
    """What a stage has gathered.

    Attributes:
        path: the store.
        spool: frames, numbered from 0 within the stage.
        sweeps: the store's sweep counter when the stage began.
        rows: inline objects; frame numbers count within the stage.
        records: the same for records.
        blobs: written blob files and their digests.
        externals: rows of external objects.
        entry: what is added to the ledger.
        relied: objects that the store held when asked.
        relied_records: records that the store had when asked.
        replacing: objects and records that are put anew although the store has them.
    """

    def __init__(
        self, path: str, spool: FrameSpool, sweeps: bytes, replacing: frozenset[RawId] = frozenset()
    ) -> None:
        self.replacing = replacing
        self.path = path
        self.spool = spool
        self.sweeps = sweeps
        self.rows: dict[RawId, bytes] = {}
        self.records: dict[RawId, bytes] = {}
        self.blobs: dict[RawId, tuple[BlobFile, Digests]] = {}
        self.externals: dict[RawId, bytes] = {}
        self.locations: dict[bytes, bytes] = {}
        self.git: set[bytes] = set()
        self.cached: dict[bytes, bytes | None] = {}
        self.verdicts: list[tuple[RawId, RawId]] = []
        self.refs: list[RefMove] = []
        self.entry: Append | None = None
        self.relied: set[RawId] = set()
        self.relied_records: set[RawId] = set()

    def is_empty(self) -> bool:
        """Say whether there is nothing to commit."""
        return not (
            self.rows
            or self.records
            or self.blobs
            or self.externals
            or self.locations
            or self.git
            or self.cached
            or self.verdicts
            or self.refs
            or self.entry
        )


def commit(env: Env, profile: StoreProfile, staged: Staged) -> CommitCounts:
    """Make a stage durable and visible.

    Raises:
        StoreFullError, StoreBusyError, RefConflictError, SweptError: see the protocol.
        InputOutputError: the system refused; nothing is visible.
    """
    reached("stage-spooled")
    if staged.is_empty():
        return CommitCounts(0, 0, 0, 0, 0)
    with writer_lock.held(os.path.join(staged.path, "tmp"), show(staged.path), profile.wait_s):
        env.read(lambda txn: _check(txn, staged))
        work = _Commit(env, staged, profile.sync)
        try:
            work.blobs()
            work.frames()
            work.index()
        except ProvError:
            work.undo()
            raise
        work.remove_replaced()
        reached("commit-finished")
        return work.counts()


def _check(txn: Txn, staged: Staged) -> None:
    check_moves(staged.refs, lambda name: current_ref(txn, name.encode()))
    if staged.entry is not None:
        lmdb_ledger.check(txn, staged.entry)
    if (txn.get("settings", b"sweeps") or b"") == staged.sweeps:
        return
    for database, relied in (("objects", staged.relied), ("records", staged.relied_records)):
        found = txn.get_many(database, sorted(relied))
        for wanted in sorted(relied):
            row = found.get(wanted)
            if row is None or (database == "objects" and row[0] == rows.EXTERNAL):
                raise SweptError(wanted.hex())


def next_frame(txn: Txn) -> int:
    """Return the number of the next frame; numbers are never used again, whatever the counter says."""
    counted = int.from_bytes(txn.get("settings", b"next_frame") or b"", "big")
    last = txn.last_key("frames")
    return counted if last is None else max(counted, int.from_bytes(last, "big") + 1)


def set_next_frame(txn: Txn, number: int, path: str) -> None:
    """Set the number of the next frame.

    Raises:
        StoreFullError: all numbers are used up.
    """
    if number > rows.MAX_FRAME_NUMBER:
        raise StoreFullError(path, "all frame numbers are used up")
    txn.put("settings", b"next_frame", rows.number_key(number))


def generation(txn: Txn) -> int:
    """Return the number of commits and sweeps so far."""
    return int.from_bytes(txn.get("settings", b"generation") or b"", "big")


def next_generation(txn: Txn) -> None:
    """Count a commit or sweep, and mark it."""
    number = generation(txn) + 1
    txn.put("settings", b"generation", rows.number_key(number))
    marks = moment.with_mark(number, txn.get("settings", b"marks") or b"", os.urandom(moment.MARK_BYTES))
    txn.put("settings", b"marks", marks)


def remove_unfinished(txn: Txn) -> int:
    """Remove frames that a killed writer committed ahead of its index; return how many."""
    span = txn.get("settings", b"frames_ahead")
    if span is None:
        return 0
    first, end = int.from_bytes(span[:8], "big"), int.from_bytes(span[8:], "big")
    removed = sum(txn.delete("frames", rows.number_key(number)) for number in range(first, end))
    txn.delete("settings", b"frames_ahead")
    return removed


def is_usable(path: str, object_id: RawId, row: bytes) -> bool:
    """Say whether a row's object is held: not external, and its blob file there with its length."""
    if rows.is_blob(row):
        return blobs.is_whole(path, object_id, rows.blob_stored_bytes(row), row[0] == rows.BLOB_FRAMED)
    return row[0] != rows.EXTERNAL


class _Commit:
    """The steps of one commit, in order."""

    def __init__(self, env: Env, staged: Staged, sync: bool) -> None:
        self._env = env
        self._staged = staged
        self._sync = sync
        self._first_frame = -1
        self._blob_rows: dict[RawId, bytes] = {}
        self._new_files: dict[RawId, str] = {}
        self._objects = 0
        self._records = 0
        self._bytes = staged.spool.stored_bytes
        self._transactions = 0
        self._syncs = 0
        self._replaced: list[lmdb_replace.Old] = []
        self._old_files: list[str] = []

    def counts(self) -> CommitCounts:
        return CommitCounts(self._objects, self._records, self._bytes, self._transactions, self._syncs)

    def undo(self) -> None:
        """Give back the room of what nothing refers to; what cannot be removed now is found later."""
        with contextlib.suppress(ProvError):
            # Asked again, because a commit that reports a failure may still have reached the disk.
            known = self._env.read(lambda txn: txn.get_many("objects", sorted(self._new_files)))
            for object_id, path in self._new_files.items():
                if object_id not in known:
                    remove_quietly(path)
            if self._transactions:
                self._env.write(remove_unfinished)

    def _wait(self, paths: list[str]) -> None:
        if self._sync and paths:
            self._syncs += sync_paths(paths, self._staged.path)

    # -- blob files --------------------------------------------------------------------------------

    def blobs(self) -> None:
        staged = self._staged
        held = self._env.read(lambda txn: txn.get_many("objects", sorted(staged.blobs)))
        wanted = {
            object_id: found
            for object_id, found in staged.blobs.items()
            if object_id not in held
            or object_id in staged.replacing
            or not is_usable(staged.path, object_id, held[object_id])
        }
        reached("blobs-written")
        try:
            self._wait([blob.path for blob, _ in wanted.values()])
            reached("blobs-synced")
            changed: dict[str, None] = {}
            for object_id, (blob, digests) in wanted.items():
                renamed = self._rename(object_id, blob, changed)
                if object_id not in held:
                    self._new_files[object_id] = renamed
                self._blob_rows[object_id] = rows.blob_row(
                    digests.sha256, digests.size_bytes, blob.stored_bytes, blob.framed
                )
                self._bytes += blob.stored_bytes
            reached("blobs-renamed")
            self._wait(list(changed))
        except OSError as error:
            raise refused(error, staged.path) from error
        reached("blob-directories-synced")

    def _rename(self, object_id: RawId, blob: BlobFile, changed: dict[str, None]) -> str:
        target = os.path.join(self._staged.path, relative_path(object_id, blob.framed))
        directory = os.path.dirname(target)
        try:
            os.mkdir(directory)
            changed[os.path.dirname(directory)] = None
        except FileExistsError:
            pass
        os.rename(blob.path, target)
        changed[directory] = None
        return target

    # -- frames ------------------------------------------------------------------------------------

    def _write(self, work: Callable[[Txn], None]) -> None:
        self._env.write(work)
        self._transactions += 1
        self._syncs += self._sync

    def frames(self) -> None:
        spool = self._staged.spool
        if spool.stored_bytes > AHEAD_BYTES:
            for batch in _batches(iter(spool)):
                self._write(lambda txn: self._frames_ahead(txn, batch))  # noqa: B023
                reached("frames-committed")

    def _frames_ahead(self, txn: Txn, batch: list[tuple[int, bytes]]) -> None:
        if batch[0][0] == 0:
            remove_unfinished(txn)
            self._number_frames(txn)
            span = rows.number_key(self._first_frame) + rows.number_key(
                self._first_frame + self._staged.spool.count
            )
            txn.put("settings", b"frames_ahead", span)
        self._put_frames(txn, batch)

    def _number_frames(self, txn: Txn) -> None:
        self._first_frame = next_frame(txn)
        set_next_frame(txn, self._first_frame + self._staged.spool.count, self._staged.path)

    def _put_frames(self, txn: Txn, frames: list[tuple[int, bytes]]) -> None:
        txn.put_sorted(
            "frames", [(rows.number_key(self._first_frame + number), packed) for number, packed in frames]
        )

    # -- index -------------------------------------------------------------------------------------

    def index(self) -> None:
        ahead = self._first_frame >= 0
        self._write(lambda txn: self._index(txn, ahead))
        reached("index-committed")

    def remove_replaced(self) -> None:
        """Remove blob files whose objects now have another form."""
        for name in self._old_files:
            remove_quietly(os.path.join(self._staged.path, name))
        if self._staged.replacing:
            reached("replaced-removed")

    def _index(self, txn: Txn, ahead: bool) -> None:
        staged = self._staged
        self._replaced = []
        _check(txn, staged)
        if ahead:
            txn.delete("settings", b"frames_ahead")
        else:
            remove_unfinished(txn)
            self._number_frames(txn)
            self._put_frames(txn, list(enumerate(staged.spool)))
        self._put_objects(txn)
        self._put_records(txn)
        self._old_files = lmdb_replace.retire(txn, self._replaced)
        txn.put_duplicates("by_git", sorted(staged.git))
        txn.put_sorted("locations", sorted(staged.locations.items()))
        for key, value in sorted(staged.cached.items()):
            if value is None:
                txn.delete("stat_cache", key)
        kept = [(k, rows.checked(k, v)) for k, v in sorted(staged.cached.items()) if v is not None]
        txn.put_sorted("stat_cache", kept)
        for packet_id, verdict_id in staged.verdicts:
            stored = txn.get("verdicts", packet_id)
            noted = rows.unchecked("verdicts", packet_id, stored) if stored is not None else b""
            if verdict_id not in rows.ids_of(noted):
                txn.put("verdicts", packet_id, rows.checked(packet_id, noted + verdict_id))
        for move in staged.refs:
            move_ref(txn, move)
        if staged.entry is not None:
            lmdb_ledger.append(txn, staged.entry)
        next_generation(txn)
        reached("index-written")

    def _put_objects(self, txn: Txn) -> None:
        staged = self._staged
        new = dict(staged.externals)
        new.update({key: rows.moved(row, self._first_frame) for key, row in staged.rows.items()})
        new.update(self._blob_rows)
        keys = sorted(new)
        there = txn.get_many("objects", keys) if txn.entries("objects") else {}
        put = []
        self._objects = 0
        for key in keys:
            old = there.get(key)
            again = key in staged.replacing and new[key][0] != rows.EXTERNAL
            if old is not None and again:
                self._replaced.append(("objects", key, old, new[key]))
            if again or old is None or self._heals(key, new[key], old):
                put.append((key, new[key]))
                self._objects += again or old is None or old[0] == rows.EXTERNAL
        txn.put_sorted("objects", put)
        txn.put_duplicates("by_sha256", sorted(rows.sha_row(row[1:33], key) for key, row in put))

    def _heals(self, key: RawId, new: bytes, old: bytes) -> bool:
        return new[0] != rows.EXTERNAL and not is_usable(self._staged.path, key, old)

    def _put_records(self, txn: Txn) -> None:
        keys = sorted(self._staged.records)
        there = txn.get_many("records", keys) if txn.entries("records") else {}
        put = [
            (key, rows.moved(self._staged.records[key], self._first_frame))
            for key in keys
            if key not in there or key in self._staged.replacing
        ]
        self._replaced += [("records", key, there[key], row) for key, row in put if key in there]
        txn.put_sorted("records", put)
        self._records = len(put)


def current_ref(txn: Txn, key: bytes) -> RawId | None:
    """Return the packet that a ref names now."""
    stored = txn.get("refs", key)
    return None if stored is None else rows.unchecked("refs", key, stored)


def move_ref(txn: Txn, move: RefMove) -> None:
    """Move a ref and add the step to the log."""
    key = move.name.encode()
    last = next((rows.parse_change(at, value) for at, value in txn.scan_back("ref_log")), None)
    change = change_of(move, current_ref(txn, key), last)
    if change is None:
        return
    txn.put("ref_log", rows.number_key(change.sequence), rows.change_value(change))
    if move.id is None:
        txn.delete("refs", key)
    else:
        txn.put("refs", key, rows.checked(key, move.id))


def _batches(frames: Iterator[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    size = 0
    for number, packed in enumerate(frames):
        batch.append((number, packed))
        size += len(packed)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
