"""A damaged index that ends a process by a signal: a parent that waits turns that into an error.

LMDB trusts what it maps. A small index is walked before it is mapped; for a large one that would take longer
than most commands do, so the command goes on in a child, and its parent only waits. If the child dies of
reading, the parent walks the index at leisure and says which page is damaged. Decision 0010 has the figures.
"""

import os
import signal
import sys
from collections.abc import Iterator
from typing import ClassVar, Final

from provstore.cli.console import Process
from provstore.errors import StoreDamagedError
from provstore.paths import show
from provstore.store.opening import check_index, index_bytes

LARGE_BYTES: Final = 2 << 20
"""An index file up to this has at most as many pages as are walked at every opening."""

_DEADLY: Final = frozenset({signal.SIGBUS, signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE})
"""What reading mapped bytes can end in: pages behind the end, nonsense, a disk that refuses to read."""

_PASSED_ON: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_PR_SET_PDEATHSIG: Final = 1
_MOST_PATHS_BYTES: Final = 1 << 16


class _Child:
    """In the child, where the parent hears of the stores that are opened."""

    told: ClassVar[int | None] = None


def watch(path: str) -> None:
    """Go on in a child if the store at ``path`` has an index that is not walked at opening.

    The parent does not come back from here but with an error: it ends as the child does.

    Raises:
        StoreDamagedError: in the parent, when the child died of reading.
    """
    if not Process.alone or index_bytes(path) <= LARGE_BYTES:
        return
    if _Child.told is None:
        _split()
    if _Child.told is not None:
        os.write(_Child.told, os.fsencode(os.path.abspath(path)) + b"\0")


def _split() -> None:
    if not hasattr(signal, "sigwaitinfo"):
        return  # a system without it takes the signal as it comes
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    heard, told = os.pipe()
    os.set_blocking(heard, False)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored ones would leave nothing to wait for
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(heard)
        _die_with(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _Child.told = told
        return
    os.close(told)
    status = _wait(pid)
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    if number not in _DEADLY:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before - {number})
        os.kill(parent, number)
        os._exit(128 + number)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    Process.alone = False
    raise _found(list(_paths(heard)), signal.Signals(number).name)


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent is killed, as one process would be."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def _wait(pid: int) -> int:
    """Wait for the child; hand on what somebody sends to this process alone. A terminal sends to both."""
    while True:
        info = signal.sigwaitinfo({*_PASSED_ON, signal.SIGCHLD})
        if info.si_signo != signal.SIGCHLD:
            if info.si_code <= 0:  # from a process, not from the kernel
                os.kill(pid, info.si_signo)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status


def _paths(heard: int) -> Iterator[str]:
    try:
        data = os.read(heard, _MOST_PATHS_BYTES)
    except BlockingIOError:
        data = b""
    yield from map(os.fsdecode, data.split(b"\0")[:-1])


def _found(paths: list[str], name: str) -> StoreDamagedError:
    """Walk the indexes that the child had open; the first damaged page is what it died of."""
    for path in paths:
        try:
            check_index(path)
        except StoreDamagedError as error:
            return error
    shown = ", ".join(map(show, paths)) or "the store"
    return StoreDamagedError(shown, f"reading it ended in {name}, although the pages of data.mdb look sound")
