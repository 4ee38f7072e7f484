"""One LMDB environment per index file and process: opening, map growth, forks, errors. Knows nothing of rows.

Transactions live only inside :meth:`Env.read` and :meth:`Env.write`, never across a ``yield`` of ours, so
that the map can be resized and the process can fork between them.
"""

import contextlib
import errno
import itertools
import os
import resource
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import lmdb

from provstore.errors import (
    InputOutputError,
    ProvError,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
)
from provstore.paths import show
from provstore.store.gate import Gate
from provstore.store.lmdb_txn import STORE_FORM, Databases, Form, Txn
from provstore.store.profile import StoreProfile
from provstore.store.system import NO_ROOM, refused

_T = TypeVar("_T")

LAST_COMMIT: Final = b"transaction"
"""Setting with the number of the transaction that wrote it: a snapshot that is not the newest shows by it."""

MAX_DBS: Final = 32
_SMALLEST_MAP: Final = 1 << 20
_MAP_STEP: Final = 1 << 16
_SPARE_BYTES: Final = 64 << 20
_TRIES: Final = 100
_INTERRUPTIONS: Final = 20

_DAMAGE: Final = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.IncompatibleError,
    lmdb.BadTxnError,  # what came before was damage that it does not name
    lmdb.CursorFullError,  # a tree deeper than any
)


_NO_ROOM_BYTES: Final = 1 << 20
"""A write that failed with less room than this on the disk failed for lack of room."""


class _Handle(NamedTuple):
    env: lmdb.Environment
    databases: Databases
    writable: bool
    locked: bool


class Env:
    """The environment of one index in this process, shared by everybody who opened it.

    Attributes:
        directory: where its files are, as given by who opened it first.
        form: its databases.
        stale_readers: reader slots of dead processes that were cleared at opening.
    """

    def __init__(
        self, directory: str, profile: StoreProfile, writable: bool, form: Form = STORE_FORM
    ) -> None:
        self.directory = directory
        self.form = form
        self.stale_readers = 0
        self.users = 0
        self.key: tuple[int, int] | None = None
        self.gate = Gate()
        self._shown = show(directory)
        self._profile = profile
        self._map_bytes = profile.map_size_bytes
        self._stale = False
        self._torn = False
        self._handle = self._open(writable)

    # -- opening -----------------------------------------------------------------------------------

    def _open(self, writable: bool) -> _Handle:
        lock_path = os.path.join(self.directory, "lock.mdb")
        locked = writable or os.access(lock_path, os.W_OK)
        env = self._map(writable, locked)
        for attempt in range(_TRIES):
            try:
                if writable:
                    self.stale_readers += env.reader_check()
                return _Handle(env, _open_databases(env, self.form, writable), writable, locked)
            except lmdb.MapResizedError:
                # Another process made the map grow since it was opened here; nothing is open in it yet.
                env.set_mapsize(0)
            except lmdb.Error as error:
                if not _interrupted(error, attempt):
                    env.close()
                    raise self.translated(error) from error
        env.close()
        raise StoreBusyError(self._shown, "writers that make it grow again and again")

    def _map(self, writable: bool, locked: bool) -> lmdb.Environment:
        path = os.path.join(self.directory, "data.mdb")
        try:
            used = os.stat(path).st_size if os.path.lexists(path) else 0
        except OSError as error:
            raise refused(error, self._shown) from error
        size = self._affordable(self._map_bytes, used)
        for attempt in range(_TRIES):
            try:
                env = lmdb.open(
                    os.fsencode(self.directory),
                    map_size=size,
                    readonly=not writable,
                    create=False,
                    sync=self._profile.sync,
                    max_readers=self._profile.max_readers,
                    max_dbs=MAX_DBS,
                    max_spare_txns=0,
                    lock=locked,
                )
            except lmdb.MemoryError as error:
                if size <= max(used, _SMALLEST_MAP) + _MAP_STEP:
                    raise self.translated(error) from error
                size = _rounded(max(size // 4, used + _MAP_STEP, _SMALLEST_MAP))
            except lmdb.Error as error:
                # Its meta pages were sound just now: LMDB takes a short read for a file of another kind.
                misread = attempt == 0 and isinstance(error, lmdb.InvalidError)
                if not misread and not _interrupted(error, attempt):
                    raise self.translated(error) from error
            else:
                return env
        raise InputOutputError(self._shown, errno.ENOMEM, "no map of any size is to be had")

    def _affordable(self, wanted: int, used: int) -> int:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            wanted = min(wanted, max(limit // 4, used + _SPARE_BYTES))
        return _rounded(max(wanted, used))

    def _enter(self, writable: bool = False) -> _Handle:
        while True:
            self.gate.enter()
            handle = self._handle
            if not self._stale and (handle.writable or not writable):
                return handle
            self.gate.leave()
            self._reopen(writable)

    def _reopen(self, writable: bool) -> None:
        with self.gate.alone():
            handle = self._handle
            if self._torn:
                raise StoreBusyError(self._shown, "the process this one was forked from, amid a transaction")
            if self._stale or (writable and not handle.writable):
                # Closing after a fork touches nothing that the parent uses: no transaction was open then,
                # and its locks belong to its process.
                handle.env.close()
                self._stale = True
                self._handle = self._open(writable or handle.writable)
                self._stale = False

    def require_writable(self) -> None:
        """Make the environment writable, if it was opened for reading only so far."""
        self._enter(writable=True)
        self.gate.leave()

    def close(self) -> None:
        """Close for good; nobody uses it any more."""
        with self.gate.alone():
            if not self._torn:
                self._handle.env.close()

    # -- transactions ------------------------------------------------------------------------------

    def get(self, database: str, key: bytes) -> bytes | None:
        """Return one value; the short form of :meth:`read`."""
        return self.read(lambda txn: txn.get(database, key))

    def read(self, work: Callable[[Txn], _T]) -> _T:
        """Return what ``work`` returns in a read transaction of its own; it may be run again.

        Raises:
            StoreDamagedError, StoreBusyError, InputOutputError: LMDB refused.
        """
        for _ in range(_TRIES):
            handle = self._enter()
            try:
                txn = handle.env.begin()
                try:
                    result = work(Txn(txn, handle.databases))
                    if handle.locked or not _overtaken(handle, txn):
                        return result
                except (ProvError, lmdb.Error):
                    if handle.locked or not _overtaken(handle, txn):
                        raise
                finally:
                    txn.abort()
                continue
            except lmdb.MapResizedError:
                pass
            except lmdb.PanicError:
                self._stale = True
                continue
            except lmdb.Error as error:
                raise self.translated(error) from error
            finally:
                self.gate.leave()
            self._resize(0)
        raise StoreBusyError(self._shown, "writers that overtake every reading")

    def write(self, work: Callable[[Txn], _T]) -> _T:
        """Run ``work`` in a write transaction and commit it; run it again after the map has grown.

        Raises:
            StoreFullError: no room on the disk or in the largest map; nothing is changed.
            StoreDamagedError, InputOutputError: LMDB refused; nothing is changed.
        """
        for attempt in itertools.count():
            handle = self._enter(writable=True)
            size = 0
            try:
                self._create_missing(handle)
                txn = handle.env.begin(write=True)
                try:
                    inside = Txn(txn, handle.databases)
                    result = work(inside)
                    inside.put("settings", LAST_COMMIT, inside.id().to_bytes(8, "big"))
                except BaseException:
                    txn.abort()
                    raise
                txn.commit()
                self._fill_tail(handle)
                return result
            except lmdb.MapFullError as error:
                size = handle.env.info()["map_size"] * 2
                if size // 2 >= self._profile.max_map_size_bytes:
                    raise self.translated(error) from error
            except lmdb.MapResizedError:
                pass
            except lmdb.Error as error:
                self._stale = self._stale or isinstance(error, lmdb.PanicError)
                if not _interrupted(error, attempt):
                    raise self.translated(error) from error
                continue  # a signal stopped it before its meta page was written
            finally:
                self.gate.leave()
            self._resize(size)
        raise StoreBusyError(self._shown, "writers that come first every time")

    def _create_missing(self, handle: _Handle) -> None:
        wanted = self.form.databases
        missing = {name: flags for name, flags in wanted.items() if name not in handle.databases}
        if missing:
            with handle.env.begin(write=True) as txn:
                found = {
                    name: handle.env.open_db(name.encode(), txn=txn, dupsort=sorted_, dupfixed=sorted_)
                    for name, sorted_ in missing.items()
                }
            handle.databases.update(found)

    def _fill_tail(self, handle: _Handle) -> None:
        # Pages that one transaction took and gave back are never written; if they are the last ones the
        # file is shorter than its meta page says, which is also the mark of a cut file.
        path = os.path.join(self.directory, "data.mdb")
        length = (handle.env.info()["last_pgno"] + 1) * handle.env.stat()["psize"]
        with contextlib.suppress(OSError):
            if os.stat(path).st_size < length:
                os.truncate(path, length)

    def _resize(self, size: int) -> None:
        with self.gate.alone():
            size = min(_rounded(size), self._profile.max_map_size_bytes)
            try:
                self._handle.env.set_mapsize(size)
            except lmdb.Error as error:
                self._stale = True
                raise StoreFullError(self._shown, f"the index map cannot grow: {error}") from error
            self._map_bytes = max(size, self._map_bytes)

    def check_whole(self, optional: frozenset[str] = frozenset()) -> None:
        """Check that no database is missing, and that the snapshot LMDB takes for the newest is the newest.

        Both happen when a bit flips in a meta page or in a name.

        Args:
            optional: databases that may be missing.

        Raises:
            StoreDamagedError: one is missing, or it is an earlier snapshot.
        """
        missing = sorted(self.form.databases.keys() - self._handle.databases.keys() - optional)
        if missing:
            raise StoreDamagedError(self._shown, f"it has no database {missing[0]!r}")
        found = self.read(lambda txn: (txn.get("settings", LAST_COMMIT), txn.id()))
        if found[0] is not None and int.from_bytes(found[0], "big") != found[1]:
            raise StoreDamagedError(self._shown, "its meta pages name a snapshot that is not the newest")

    def look_again(self) -> None:
        """Open databases that another process has made since the environment was opened here."""
        handle = self._enter()
        try:
            if self.form.databases.keys() - handle.databases.keys():
                handle.databases.update(_open_databases(handle.env, self.form, handle.writable))
        except lmdb.Error as error:
            raise self.translated(error) from error
        finally:
            self.gate.leave()

    # -- facts ----------------------------------------------------------------------------------------

    def readers(self) -> int:
        """Return how many reader slots are in use, by whomever."""
        handle = self._enter()
        try:
            if not handle.locked:
                return 0
            return sum(line.split()[0].isdigit() for line in handle.env.readers().splitlines()[1:] if line)
        except lmdb.Error as error:
            raise self.translated(error) from error
        finally:
            self.gate.leave()

    def translated(self, error: lmdb.Error) -> ProvError:
        """Return our error for one of LMDB."""
        code = getattr(error, "code", 0)
        if isinstance(error, lmdb.MapFullError):
            return StoreFullError(self._shown, "the index has reached its largest map size")
        if isinstance(error, lmdb.DiskError) or code in NO_ROOM or self._is_full(code):
            return StoreFullError(self._shown, str(error))
        if isinstance(error, lmdb.ReadersFullError):
            return StoreBusyError(self._shown, "as many readers as its lock file has room for")
        if isinstance(error, _DAMAGE):
            return StoreDamagedError(self._shown, str(error))
        if code > 0:
            return refused(OSError(code, os.strerror(code)), self._shown)
        return InputOutputError(self._shown, errno.EIO, str(error))

    def _is_full(self, code: int) -> bool:
        """Say whether an I/O error is a lack of room: LMDB calls a write that was cut short an I/O error."""
        with contextlib.suppress(OSError):
            disk = os.statvfs(self.directory)
            room = disk.f_bavail * disk.f_frsize
            limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
            if limit != resource.RLIM_INFINITY:
                size = os.stat(os.path.join(self.directory, "data.mdb")).st_size
                room = min(room, limit - size)
            return code == errno.EIO and room < _NO_ROOM_BYTES
        return False

    def forked(self, quiet: bool) -> None:
        """Note, in a forked child, that the handle belongs to the parent."""
        self._stale = True
        self._torn = self._torn or not quiet
        self.gate = Gate()  # a thread that no longer exists may have held a lock of the old one


def _open_databases(env: lmdb.Environment, form: Form, writable: bool) -> Databases:
    """Open the databases that exist.

    The binding forgets handles that were opened in a read transaction of the caller. In a writable
    environment one write transaction opens them all: it changes nothing, so it writes nothing, but it waits
    for a commit that another process is just doing.
    """
    databases: Databases = {}
    if writable:
        with env.begin(write=True) as txn:
            for name in form.databases:
                with contextlib.suppress(lmdb.NotFoundError):
                    databases[name] = env.open_db(name.encode(), txn=txn, create=False)
        return databases
    for name in form.databases:
        with contextlib.suppress(lmdb.NotFoundError):
            databases[name] = env.open_db(name.encode(), create=False)
    return databases


def _interrupted(error: lmdb.Error, attempt: int) -> bool:
    """Say whether a signal stopped LMDB, which does not try again by itself everywhere."""
    return getattr(error, "code", 0) == errno.EINTR and attempt < _INTERRUPTIONS


def _rounded(size: int) -> int:
    return (size + _MAP_STEP - 1) // _MAP_STEP * _MAP_STEP


def _overtaken(handle: _Handle, txn: lmdb.Transaction) -> bool:
    """Say whether writers may have reused pages of an unregistered reader's snapshot."""
    return handle.env.info()["last_txnid"] > txn.id() + 1
