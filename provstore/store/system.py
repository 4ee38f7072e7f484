"""What the operating system refuses, in our words; and waiting for the disk."""

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from typing import Final

from provstore import libraries
from provstore.errors import InputOutputError, ProvError, StoreFullError

NO_ROOM: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
"""Errors that mean: no room for these bytes (disk, quota, size limit of the process)."""

FEW_FILES: Final = 16
"""Up to so many files are synced one by one; more with one ``syncfs``, which waits for everybody's data."""


def refused(error: OSError, path: str) -> ProvError:
    """Return our error for one of the operating system, for ``raise ... from``."""
    number = error.errno or errno.EIO
    reason = error.strerror or str(error)
    if number in NO_ROOM:
        return StoreFullError(path, reason)
    if number == errno.EROFS:
        reason = f"{reason} (the medium or mount cannot be written by anybody)"
    elif number in (errno.EACCES, errno.EPERM):
        reason = f"{reason} (this user may not)"
    return InputOutputError(path, number, reason)


def lay(path: str, size_bytes: int) -> None:
    """Make a file of zeros that has its room on disk, unless there is one.

    LMDB maps its lock file over a hole, and writing there when the disk is full ends the process by a signal.

    Raises:
        OSError: the system refused; nothing is left.
    """
    if os.path.lexists(path):
        return
    beside = f"{path}-{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(bytes(size_bytes))
        # Never over one that another process has made and maps; without hard links LMDB makes its own.
        with contextlib.suppress(OSError):
            os.link(beside, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(beside)


def _sync_path(path: str) -> None:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_paths(paths: Sequence[str], within: str) -> int:
    """Wait until files and directories are on disk; return how many calls waited.

    Args:
        paths: what was written or renamed.
        within: a directory of the file system they are on.

    Raises:
        OSError: the disk reported a failure; then nothing is known to be there.
    """
    syncfs = getattr(libraries.ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if len(paths) <= FEW_FILES or syncfs is None:
        for path in paths:
            _sync_path(path)
        return len(paths)
    number = os.open(within, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while syncfs(number):
            code = libraries.ctypes.get_errno()
            if code != errno.EINTR:
                raise OSError(code, os.strerror(code), within)
    finally:
        os.close(number)
    return 1


def identity(path: str) -> tuple[int, int] | None:
    """Return device and inode of a file or directory, or None when it is not there."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def is_directory(path: str) -> bool:
    """Say whether the path leads to a directory; unlike ``os.path.isdir`` other refusals are raised."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
