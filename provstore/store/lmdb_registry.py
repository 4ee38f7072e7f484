"""Which environments this process has open: one per index file, shared, and safe across forks.

LMDB's locks belong to a process and a file: a second environment of the same file, or merely closing any
other descriptor of it, would drop them. So nobody opens an index but through :func:`acquire`.
"""

import os
import threading
from typing import Final

from provstore.errors import ReadOnlyError
from provstore.paths import show
from provstore.store import data_file
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_txn import STORE_FORM, Form
from provstore.store.profile import StoreProfile
from provstore.store.system import identity, lay, refused

_FORK_WAIT_S: Final = 30.0

_LOCK_HEAD_BYTES: Final = 128
_READER_BYTES: Final = 64
"""Sizes inside a lock file of LMDB, which takes a file of zeros as it is; a larger one has more slots."""


def check_writable(directory: str, form: Form = STORE_FORM) -> None:
    """Raise ReadOnlyError, with the reason, unless the index and what belongs to it can be written."""
    for path in (directory, *(os.path.join(directory, name) for name in (*form.folders, "data.mdb"))):
        if not os.access(path, os.W_OK):
            flags = os.statvfs(directory).f_flag
            reason = "its medium or mount is read-only" if flags & os.ST_RDONLY else "this user may not write"
            raise ReadOnlyError(show(directory), f"{show(path)}: {reason}")


_registry: Final[dict[tuple[int, int], Env]] = {}
_registry_lock: Final = threading.RLock()
_quiet: Final[list[bool]] = []


def acquire(
    directory: str,
    profile: StoreProfile,
    writable: bool,
    create: bool = False,
    thorough: bool = False,
    form: Form = STORE_FORM,
) -> Env:
    """Return the environment of a store, opening it if this process has not yet.

    Args:
        directory: the store; other paths to the same files give the same environment.
        profile: what counts is the one of who opens first.
        writable: whether it must be writable.
        create: make the files if they are not there.
        thorough: before it is mapped, look at every page of the index, however large it is.
        form: its databases; all who open one index name the same.

    Raises:
        NotAStoreError, StoreDamagedError: the index is no index of ours, or is damaged.
        ReadOnlyError: ``writable`` and the files are not.
        InputOutputError: the system refused.
    """
    path = os.path.join(directory, "data.mdb")
    with _registry_lock:
        try:
            key = identity(path)
        except OSError as error:
            raise refused(error, show(directory)) from error
        env = _registry.get(key) if key is not None else None
        if env is None:
            if not create or not _is_empty(path):
                data_file.check(directory, thorough)
                if writable:
                    check_writable(directory, form)
            if writable:
                _lay_lock_file(directory, profile)
            env = Env(directory, profile, writable, form)
            env.key = identity(path)
            if env.key is not None:
                _registry[env.key] = env
        elif writable:
            check_writable(directory, form)
            env.require_writable()
        env.users += 1
        return env


def _lay_lock_file(directory: str, profile: StoreProfile) -> None:
    try:
        lay(os.path.join(directory, "lock.mdb"), _LOCK_HEAD_BYTES + profile.max_readers * _READER_BYTES)
    except OSError as error:
        raise refused(error, show(directory)) from error


def _is_empty(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0
    except FileNotFoundError:
        return True


def release(env: Env) -> None:
    """Give an environment back; the last one closes it."""
    with _registry_lock:
        env.users -= 1
        if env.users == 0:
            if env.key is not None:
                _registry.pop(env.key, None)
            env.close()


def _before_fork() -> None:
    _registry_lock.acquire()
    for env in _registry.values():
        _quiet.append(env.gate.shut(_FORK_WAIT_S))


def _after_fork_in_parent() -> None:
    for env in _registry.values():
        env.gate.open()
    _quiet.clear()
    _registry_lock.release()


def _after_fork_in_child() -> None:
    for env, quiet in zip(_registry.values(), _quiet, strict=True):
        env.forked(quiet)
    _quiet.clear()
    _registry_lock.release()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
