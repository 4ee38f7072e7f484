"""A store directory: an LMDB index with small payloads in it, and files for large ones beside it."""

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Self

from provstore.errors import NewerFormatError, NotAStoreError, ReadOnlyError, StoreDamagedError
from provstore.ids import Buffer, RawId
from provstore.paths import show
from provstore.store import blobs, frame, lmdb_checks, lmdb_sweep, rows, writer_lock
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_reader import GRAPH_DIRECTORY, LmdbReader
from provstore.store.lmdb_registry import acquire, release
from provstore.store.lmdb_stage import Home, LmdbStage
from provstore.store.lmdb_txn import LEDGER, Txn
from provstore.store.profile import DEFAULT, StoreProfile
from provstore.store.protocol import Checks, CommitCounts, Mark, Stage
from provstore.store.steps import reached
from provstore.store.system import refused, sync_paths

_DIRECTORIES: Final = ("blobs", "tmp")
_PLAIN: Final = str(rows.FORMAT).encode()
_WITH_LEDGER: Final = str(rows.LEDGER_FORMAT).encode()


class LmdbStore(LmdbReader):
    """A store directory, read and, where it may be, written. Made by :meth:`open` and :meth:`create`."""

    def __init__(self, path: str, env: Env, profile: StoreProfile, writable: bool) -> None:
        super().__init__(path, env)
        self.writable = writable
        self.profile = profile

    @classmethod
    def open(
        cls, path: str, *, writable: bool = True, profile: StoreProfile = DEFAULT, thorough: bool = False
    ) -> Self:
        """Open a store. Nothing is written.

        Args:
            path: the directory with ``data.mdb``.
            writable: whether stages and sweeps will be asked for.
            profile: sizes, limits and waiting.
            thorough: look at every page of the index first, however large it is; small ones always are.

        Raises:
            NotAStoreError: there is no store.
            NewerFormatError: it was made by a newer release.
            StoreDamagedError: its index cannot be read.
            ReadOnlyError: ``writable``, and it cannot be written.
            InputOutputError: the system refused.
        """
        env = acquire(path, profile, writable, thorough=thorough)
        try:
            _check_whole(env, show(path))
        except BaseException:
            release(env)
            raise
        return cls(path, env, profile, writable)

    @classmethod
    def create(cls, path: str, *, profile: StoreProfile = DEFAULT) -> Self:
        """Make a store and open it; one that is there already is opened.

        Raises:
            NotAStoreError: the directory holds something else.
            StoreFullError, InputOutputError: the system refused.
        """
        try:
            _make_directories(path)
            reached("init-directories")
            env = acquire(path, profile, writable=True, create=True)
            try:
                reached("init-index")
                if env.get("settings", b"format") is None:
                    env.write(lambda txn: initialise(txn, show(path)))
                _check_whole(env, show(path))
                if profile.sync:
                    sync_paths([path, os.path.dirname(os.path.abspath(path))], path)
                reached("init-settings")
            except BaseException:
                release(env)
                raise
        except OSError as error:
            raise refused(error, show(path)) from error
        return cls(path, env, profile, writable=True)

    def _home(self) -> Home:
        return Home(self.path, self._env, self.profile)

    def _require_writable(self) -> None:
        if not self.writable:
            raise ReadOnlyError(self.where, "it was opened for reading")

    def stage(self, replacing: Collection[RawId] = ()) -> Stage:
        """Begin to gather a seal; see the protocol for what replaces what."""
        self._require_writable()
        return LmdbStage(self._home(), replacing)

    def sweep(
        self, objects: Sequence[RawId], records: Sequence[RawId], generation: int
    ) -> CommitCounts | None:
        """Remove objects and records that the caller found unreachable, in one commit."""
        self._require_writable()
        return lmdb_sweep.sweep(self._home(), objects, records, generation)

    def writing(self) -> AbstractContextManager[object]:
        """Keep other writers out while the block runs; see the protocol."""
        return writer_lock.held(os.path.join(self.path, "tmp"), self.where, self.profile.wait_s)

    def remove_leftovers(self, older_than_ns: int) -> list[str]:
        """Remove temporary and unindexed files left by killed writers; return their names."""
        self._require_writable()
        return lmdb_sweep.remove_leftovers(self._home(), older_than_ns)

    def remains(self, id: RawId) -> Iterator[Buffer]:
        """Yield what can be had of something whose frames are damaged; see the protocol."""
        row = self._env.get("objects", id)
        if row is not None and row[:1] == bytes((rows.BLOB_FRAMED,)):
            stored = rows.blob_stored_bytes(row)
            with contextlib.suppress(FileNotFoundError):
                yield from blobs.chunks(self.path, id, stored, framed=True, salvaging=True)
            return

        def work(txn: Txn) -> tuple[rows.Place, bytes] | None:
            row = txn.get("objects", id)
            place = rows.object_place(row) if row is not None and row[:1] == bytes((rows.INLINE,)) else None
            if row is None and (row := txn.get("records", id)) is not None:
                place = rows.record_place(row)
            packed = None if place is None else txn.get("frames", rows.number_key(place.frame))
            return None if place is None or packed is None else (place, packed)

        found = self._env.read(work)
        if found is not None:
            place, packed = found
            yield frame.salvage(packed)[place.offset_bytes : place.offset_bytes + place.size_bytes]

    def checks(self) -> Checks:
        """Return what is remembered of re-reading the store piece by piece."""
        return lmdb_checks.checks(self._env)

    def note_checks(self, cycle: int, marks: Mapping[bytes, Mark], *, finished: bool) -> None:
        """Remember, durably, that units were re-read; those that are gone by now are left out."""
        self._require_writable()
        lmdb_checks.note_checks(self._env, cycle, marks, finished)

    def rebuilt_ns(self) -> int:
        """Return when the index was rebuilt from files alone, in ns since the epoch; 0 if it never was."""
        return int.from_bytes(self._env.get("settings", b"rebuilt_ns") or b"", "big")


def _make_directories(path: str) -> None:
    os.makedirs(path, exist_ok=True)
    if not os.path.lexists(os.path.join(path, "data.mdb")):
        if _has_blobs(path):
            raise StoreDamagedError(show(path), "data.mdb is gone, but there are blob files")
        strange = set(os.listdir(path)) - {*_DIRECTORIES, GRAPH_DIRECTORY, "lock.mdb", ".gitignore"}
        if strange:
            raise NotAStoreError(show(path), f"it holds other things ({show(min(strange))}, ...)")
    elif os.stat(os.path.join(path, "data.mdb")).st_size == 0 and _has_blobs(path):
        raise StoreDamagedError(show(path), "data.mdb is empty, but there are blob files")
    for name in _DIRECTORIES:
        os.makedirs(os.path.join(path, name), exist_ok=True)


def _has_blobs(path: str) -> bool:
    blobs = os.path.join(path, "blobs")
    return os.path.isdir(blobs) and bool(os.listdir(blobs))


def initialise(txn: Txn, where: str) -> None:
    """Write the settings of a new store, unless they are there."""
    if txn.get("settings", b"format") is not None:
        return
    if txn.entries("objects") or txn.entries("refs"):
        raise StoreDamagedError(where, "its settings are missing")
    txn.put("settings", b"created_ns", rows.number_key(time.time_ns()))
    txn.put("settings", b"format", str(rows.FORMAT).encode())
    txn.put("settings", b"store_id", os.urandom(16))


def _check_whole(env: Env, where: str) -> None:
    value = env.get("settings", b"format")
    if value is None:
        raise NotAStoreError(
            where, "its index has no settings of ours; `prov init` finishes a half-made store"
        )
    if value not in (_PLAIN, _WITH_LEDGER):
        raise NewerFormatError(where, f"provstore store {value[:20].decode('ascii', 'replace')}")
    env.check_whole(frozenset((LEDGER,)) if value == _PLAIN else frozenset())
