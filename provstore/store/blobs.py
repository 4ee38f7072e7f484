"""Objects in files of their own: names, writing under temporary names, reading.

A raw blob file holds exactly the object's bytes, so ``b3sum`` of it shows its name; a framed one holds
frames (see :mod:`provstore.store.frame`) and has the suffix ``.frames``.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO, Final

from provstore.errors import IntegrityError
from provstore.ids import Buffer, Digests, RawId
from provstore.store import frame
from provstore.store.system import refused

FRAMED_SUFFIX: Final = ".frames"
CHUNK_BYTES: Final = 1 << 20


def relative_path(object_id: RawId, framed: bool) -> str:
    """Return the path of a blob file inside the store.

    Example:
        >>> relative_path(bytes(32), framed=True)[:10]
        'blobs/00/0'
    """
    digits = object_id.hex()
    return os.path.join("blobs", digits[:2], digits[2:] + (FRAMED_SUFFIX if framed else ""))


def parse_path(relative: str) -> tuple[RawId, bool] | None:
    """Return id and form of a path below ``blobs``, or None when it is none of ours.

    Example:
        >>> parse_path(relative_path(bytes(32), framed=False)) == (bytes(32), False)
        True
    """
    name = relative.removeprefix("blobs/").replace("/", "", 1)
    framed = name.endswith(FRAMED_SUFFIX)
    digits = name.removesuffix(FRAMED_SUFFIX)
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        return None
    object_id = bytes.fromhex(digits)
    return (object_id, framed) if relative_path(object_id, framed) == relative else None


def temporary_path(directory: str, suffix: str) -> str:
    """Return a new name in the store's ``tmp``."""
    return os.path.join(directory, "tmp", f"{os.getpid()}-{os.urandom(8).hex()}{suffix}")


def is_whole(directory: str, object_id: RawId, stored_bytes: int, framed: bool) -> bool:
    """Say whether the blob file is there with the length that the index states."""
    try:
        return os.stat(os.path.join(directory, relative_path(object_id, framed))).st_size == stored_bytes
    except OSError:
        return False


def remove_quietly(path: str) -> None:
    """Remove a temporary file if it is there; what stays is found by ``remove_leftovers``."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def chunks(
    directory: str, object_id: RawId, stored_bytes: int, framed: bool, *, salvaging: bool = False
) -> Iterator[Buffer]:
    """Yield the plain bytes of a blob file; ``salvaging`` gives what can be had of damaged frames, unchecked.

    Raises:
        FileNotFoundError: there is no such file; the caller knows whether there should be.
        IntegrityError: it has another length than the index says.
        FrameError: it is framed, and a frame is malformed.
        InputOutputError: the system refused.
    """
    path = os.path.join(directory, relative_path(object_id, framed))
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != stored_bytes:
                raise IntegrityError(object_id.hex(), f"a blob file of {found} bytes, not {stored_bytes}")
            if framed:
                yield from frame.read_frames(file, where=f"blob {object_id.hex()}", salvaging=salvaging)
            else:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
    except FileNotFoundError:
        raise
    except OSError as error:
        raise refused(error, path) from error


class BlobFile:
    """One object on its way into a file of its own; a ``BlobWriter`` of the protocol.

    The first :data:`provstore.store.frame.SAMPLE_BYTES` decide whether it is compressed.

    Attributes:
        path: temporary name, until the commit renames it.
        framed: whether it is compressed.
        size_bytes: plain bytes written.
        stored_bytes: length of the file; right after :meth:`close`.
    """

    def __init__(self, directory: str, level: int) -> None:
        self.path = temporary_path(directory, ".blob")
        self.framed = False
        self.size_bytes = 0
        self.stored_bytes = 0
        self._level = level
        self._sample = bytearray()
        self._frames: frame.FrameWriter | None = None
        self._file: BinaryIO | None = None
        self._decided = False

    def write(self, data: Buffer) -> None:
        """Append bytes.

        Raises:
            StoreFullError, InputOutputError: the system refused.
        """
        self.size_bytes += memoryview(data).nbytes
        if self._decided:
            self._put(data)
            return
        self._sample += data
        if len(self._sample) >= frame.SAMPLE_BYTES:
            self._decide()

    def _decide(self) -> None:
        self._decided = True
        sample = bytes(self._sample)
        self._sample.clear()
        try:
            self._file = open(self.path, "xb")  # noqa: SIM115 (closed by close and remove)
        except OSError as error:
            raise refused(error, self.path) from error
        self.framed = frame.is_compressible(sample[: frame.SAMPLE_BYTES])
        if self.framed:
            self._frames = frame.FrameWriter(self._file, self._level)
        self._put(sample)

    def _put(self, data: Buffer) -> None:
        try:
            if self._frames is not None:
                self._frames.write(data)
            elif self._file is not None:
                self._file.write(data)
        except OSError as error:
            raise refused(error, self.path) from error

    def close(self, digests: Digests) -> None:
        """Write what is gathered and close the file.

        Raises:
            IntegrityError: the digests are of another number of bytes.
            StoreFullError, InputOutputError: the system refused.
        """
        if not self._decided:
            self._decide()
        if digests.size_bytes != self.size_bytes:
            raise IntegrityError(
                digests.blake3.hex(), f"{self.size_bytes} written bytes for {digests.size_bytes} hashed ones"
            )
        try:
            if self._frames is not None:
                self._frames.finish()
            if self._file is not None:
                self._file.close()
            self.stored_bytes = os.stat(self.path).st_size
        except OSError as error:
            raise refused(error, self.path) from error

    def remove(self) -> None:
        """Close and remove the temporary file."""
        self._decided = True
        self._frames = None
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        remove_quietly(self.path)
