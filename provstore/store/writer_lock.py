"""The lock that one writer holds during a commit or a sweep: ``flock`` on ``tmp/writer.lock``.

It covers what the index's own write lock does not: renaming blob files in and removing them.
"""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from typing import Final

from provstore.errors import StoreBusyError
from provstore.store.system import refused

NAME: Final = "writer.lock"
_FIRST_PAUSE_S: Final = 0.002
_LONGEST_PAUSE_S: Final = 0.1

_held: set[int] = set()
_mine: set[tuple[str, int]] = set()


def _close_inherited() -> None:
    # A forked child shares the open file and would keep the lock after its parent let go.
    for number in _held:
        os.close(number)
    _held.clear()
    _mine.clear()


os.register_at_fork(after_in_child=_close_inherited)


def _holder(number: int) -> str:
    words = os.pread(number, 200, 0).decode("ascii", "replace").split()
    if len(words) != 2 or not words[1].isdigit():
        return "another process"
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(int(words[1])))
    return f"process {words[0]} since {since}"


def _acquire(number: int, store: str, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    pause = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0:
                raise StoreBusyError(store, _holder(number)) from None
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        else:
            return


@contextlib.contextmanager
def held(tmp: str, store: str, wait_s: float) -> Iterator[None]:
    """Hold the lock of a store while the block runs; a thread that holds it already goes on.

    Args:
        tmp: the ``tmp`` directory of the store.
        store: the store's path, for messages.
        wait_s: seconds to wait for another writer.

    Raises:
        StoreBusyError: the other writer did not finish in time; it is named.
        InputOutputError: the file system has no such locks, or refused.
    """
    me = os.path.realpath(tmp), threading.get_ident()
    if me in _mine:
        yield
        return
    path = os.path.join(tmp, NAME)
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise refused(error, path) from error
    _held.add(number)
    try:
        try:
            _acquire(number, store, wait_s)
        except OSError as error:
            raise refused(error, path) from error
        with contextlib.suppress(OSError):  # a note for people; a full disk must not keep a sweep out
            os.ftruncate(number, 0)
            os.pwrite(number, f"{os.getpid()} {int(time.time())}\n".encode(), 0)
        _mine.add(me)
        yield
    finally:
        _mine.discard(me)
        if number in _held:
            _held.discard(number)
            os.close(number)
