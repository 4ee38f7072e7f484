"""Taking out of a store directory what nobody refers to, and what killed writers left."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Final

from provstore.errors import FrameError
from provstore.ids import RawId
from provstore.paths import show
from provstore.store import blobs, frame, rows, writer_lock
from provstore.store.gathering import RECORD_LEVEL
from provstore.store.lmdb_checks import pass_on
from provstore.store.lmdb_commit import (
    generation,
    next_frame,
    next_generation,
    remove_unfinished,
    set_next_frame,
)
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_stage import Home
from provstore.store.lmdb_txn import Txn
from provstore.store.protocol import CommitCounts
from provstore.store.steps import reached
from provstore.store.system import refused

REBUILD_SUFFIX: Final = ".rebuild"
"""End of the name of a directory in ``tmp`` with an index that is being made."""

_BLOB_DIRECTORY_NAME: Final = 2
_PROCESSES: Final = 1 << 31

_Member = tuple[str, RawId, bytes]
"""Database, key and row of something inside a frame."""


def sweep(home: Home, objects: Sequence[RawId], records: Sequence[RawId], at: int) -> CommitCounts | None:
    """Remove objects and records; see the protocol.

    Args:
        home: the store.
        objects: what is to go.
        records: what is to go.
        at: generation of the store at which they were found unreachable.

    Returns:
        Counts of what was removed, where ``bytes_stored`` is what rewritten frames took; None if the store
        has moved on.
    """
    path, env, profile = home
    with writer_lock.held(os.path.join(path, "tmp"), show(path), profile.wait_s):
        if env.read(generation) != at:
            return None
        work = _Sweep(path, profile.zstd_level, set(objects), set(records))
        env.write(work.run)
        reached("sweep-committed")
        for name in work.files:
            blobs.remove_quietly(os.path.join(path, name))
        reached("sweep-blobs-removed")
        return CommitCounts(work.objects, work.records, work.stored_bytes, 1, int(profile.sync))


class _Sweep:
    """One sweep; :meth:`run` may run again when the map has grown."""

    def __init__(self, path: str, level: int, objects: set[RawId], records: set[RawId]) -> None:
        self._path = path
        self._level = level
        self._gone = {"objects": objects, "records": records}
        self._reset()

    def _reset(self) -> None:
        self.files: list[str] = []
        self.objects = 0
        self.records = 0
        self.stored_bytes = 0
        self._affected: dict[int, int] = {}

    def run(self, txn: Txn) -> None:
        """Do everything inside one transaction."""
        self._reset()
        remove_unfinished(txn)
        for object_id in sorted(self._gone["objects"]):
            self._remove_object(txn, object_id)
        for record_id in sorted(self._gone["records"]):
            row = txn.get("records", record_id)
            if row is not None:
                self._leave(rows.record_place(row))
                txn.delete("records", record_id)
                txn.delete("verdicts", record_id)
                self.records += 1
        self._forget_git(txn)
        # What it remembers was read when these objects were still here; it must not vouch for them.
        txn.clear("stat_cache")
        for number, survivors in self._survivors(txn).items():
            self._rewrite(txn, number, survivors)
        sweeps = int.from_bytes(txn.get("settings", b"sweeps") or b"", "big") + 1
        txn.put("settings", b"sweeps", rows.number_key(sweeps))
        next_generation(txn)
        reached("sweep-written")

    def _leave(self, place: rows.Place) -> None:
        self._affected[place.frame] = max(place.frames(), self._affected.get(place.frame, 1))

    def _remove_object(self, txn: Txn, object_id: RawId) -> None:
        row = txn.get("objects", object_id)
        if row is None:
            return
        self.objects += 1
        if row[0] == rows.INLINE:
            self._leave(rows.object_place(row))
        elif rows.is_blob(row):
            self.files.append(blobs.relative_path(object_id, row[0] == rows.BLOB_FRAMED))
            txn.delete("checked", object_id)
        txn.delete("objects", object_id)
        txn.delete("by_sha256", rows.DUPLICATES_KEY, rows.sha_row(row[1:33], object_id))
        places = []
        for key, _ in txn.scan("locations", object_id):
            if key[:32] != object_id:
                break
            places.append(key)
        for key in places:
            txn.delete("locations", key)

    def _forget_git(self, txn: Txn) -> None:
        gone = {object_id[: rows.GIT_ID_PREFIX] for object_id in self._gone["objects"]}
        found = [value for value in txn.scan_duplicates("by_git", b"\0") if value[rows.GIT_BYTES :] in gone]
        for value in found:
            txn.delete("by_git", rows.DUPLICATES_KEY, value)

    def _survivors(self, txn: Txn) -> dict[int, list[_Member]]:
        found: dict[int, list[_Member]] = {number: [] for number in self._affected}
        if not found:
            return found
        for key, row in txn.scan("objects"):
            if row[0] == rows.INLINE and rows.object_place(row).frame in found:
                found[rows.object_place(row).frame].append(("objects", key, row))
        for key, row in txn.scan("records"):
            if rows.record_place(row).frame in found:
                found[rows.record_place(row).frame].append(("records", key, row))
        return found

    def _rewrite(self, txn: Txn, number: int, survivors: list[_Member]) -> None:
        key = rows.number_key(number)
        packed = txn.get("frames", key)
        if survivors and packed is not None:
            try:
                plain = frame.unpack(packed)
            except FrameError:
                return  # whoever repairs it needs what is left of it
            pass_on(txn, key, self._move(txn, plain, survivors))
        txn.delete("checked", key)
        for last in range(number, number + self._affected[number]):
            txn.delete("frames", rows.number_key(last))

    def _move(self, txn: Txn, plain: bytes, survivors: list[_Member]) -> bytes:
        survivors.sort(key=lambda member: _place(member).offset_bytes)
        number = next_frame(txn)
        set_next_frame(txn, number + 1, self._path)
        parts = []
        offset = 0
        for database, key, row in survivors:
            old = _place((database, key, row))
            parts.append(plain[old.offset_bytes : old.offset_bytes + old.size_bytes])
            new = rows.Place(number, offset, old.size_bytes)
            offset += old.size_bytes
            moved = rows.record_row(new) if database == "records" else rows.inline_row(row[1:33], new)
            txn.put(database, key, moved)
        level = RECORD_LEVEL if survivors[0][0] == "records" else self._level
        packed = frame.vouched(frame.pack(parts, level))
        txn.put("frames", rows.number_key(number), packed)
        self.stored_bytes += len(packed)
        return rows.number_key(number)


def _place(member: _Member) -> rows.Place:
    return rows.record_place(member[2]) if member[0] == "records" else rows.object_place(member[2])


def remove_leftovers(home: Home, older_than_ns: int) -> list[str]:
    """Remove temporary and unindexed files left by killed writers; see the protocol."""
    path, env, profile = home
    with writer_lock.held(os.path.join(path, "tmp"), show(path), profile.wait_s):
        removed = []
        try:
            for name in _old_files(path, "tmp", older_than_ns):
                if name != os.path.join("tmp", writer_lock.NAME) and not _is_of_the_living(name):
                    os.unlink(os.path.join(path, name))
                    removed.append(name)
            for name in os.listdir(os.path.join(path, "tmp")):
                if name.endswith(REBUILD_SUFFIX) and not _is_of_the_living(name):
                    shutil.rmtree(os.path.join(path, "tmp", name))
                    removed.append(os.path.join("tmp", name))
            for name in _blob_files(path, older_than_ns):
                if not _is_indexed(env, name):
                    os.unlink(os.path.join(path, name))
                    removed.append(name)
        except OSError as error:
            raise refused(error, path) from error
        if env.get("settings", b"frames_ahead") is not None:
            count: list[int] = []
            env.write(lambda txn: count.append(remove_unfinished(txn)))
            removed.append(f"{count[-1]} frames")
        return removed


def _is_of_the_living(name: str) -> bool:
    """Say whether the process that a temporary file is named after runs, here and now."""
    number = os.path.basename(name).split("-")[0]
    if not number.isdecimal() or not 0 < int(number) < _PROCESSES:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _old_files(path: str, directory: str, older_than_ns: int) -> Iterator[str]:
    with os.scandir(os.path.join(path, directory)) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        with contextlib.suppress(FileNotFoundError):
            stat = entry.stat(follow_symlinks=False)
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and max(stat.st_mtime_ns, stat.st_ctime_ns) <= older_than_ns:
                yield os.path.join(directory, entry.name)


def _blob_files(path: str, older_than_ns: int) -> Iterator[str]:
    for name in sorted(os.listdir(os.path.join(path, "blobs"))):
        directory = os.path.join("blobs", name)
        if len(name) == _BLOB_DIRECTORY_NAME and os.path.isdir(os.path.join(path, directory)):
            yield from _old_files(path, directory, older_than_ns)


def _is_indexed(env: Env, name: str) -> bool:
    parsed = blobs.parse_path(name)
    if parsed is None:
        return True  # no file of ours, not ours to remove
    object_id, framed = parsed
    row = env.get("objects", object_id)
    return row is not None and row[0] == (rows.BLOB_FRAMED if framed else rows.BLOB_RAW)
