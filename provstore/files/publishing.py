"""Small results as new files: whole, or not there."""

import contextlib
import os

from provstore.errors import InputOutputError, TargetError
from provstore.paths import show


def write_new(path: bytes, data: bytes) -> None:
    """Write a file that must not exist yet; if that fails, nothing of it stays.

    Raises:
        TargetError: it exists.
        InputOutputError: it cannot be made or written, for example because the disk is full.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError as error:
        raise TargetError(show(path), "exists") from error
    except OSError as error:
        raise InputOutputError(show(path), error.errno or 0, error.strerror or str(error)) from error
    whole = False
    try:
        with open(descriptor, "wb", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
            os.fsync(descriptor)
        whole = True
    except OSError as error:
        raise InputOutputError(show(path), error.errno or 0, error.strerror or str(error)) from error
    finally:
        if not whole:
            with contextlib.suppress(OSError):
                os.unlink(path)
