"""Reading files: each byte once if it has settled, both digests from one buffer, changes underneath noticed.

This is the only place where bytes of source files are hashed. Small files are read whole, in batches, so
that one call serves many; large ones stream through one buffer. A file's signature after reading must be
what the walk saw, or what a fresh look just before the reading saw.

A system stamps a file when a write begins and not when it ends, so a write that was still going on when the
file was opened leaves no mark. A file whose stamp is young is therefore read a second time, a moment later.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from blake3 import blake3

from provstore import libraries
from provstore.errors import InputOutputError
from provstore.files.root import ROW, Root, Row, differing, grew, pack_row
from provstore.files.standins import ANNEX_MAX_BYTES, annex_pointer, lfs_pointer
from provstore.gitids import BlobHasher
from provstore.ids import Buffer, Digests, TwinHasher
from provstore.paths import show
from provstore.store import frame

SMALL_BYTES: Final = 4 << 20
"""Files up to this size are read whole and go into group frames."""

BATCH_FILES: Final = 512
BATCH_BYTES: Final = 4 << 20

_CHUNK_BYTES: Final = 1 << 20

YOUNG_NS: Final = 1_000_000_000
"""A file whose status changed less than this ago may still be within the write that changed it."""

SETTLING_NS: Final = 20_000_000
"""Age of the stamp at which the second reading of such a file begins, at the earliest."""

HEAD_BYTES: Final = ANNEX_MAX_BYTES
"""Longest stand-in for another file."""

PLAIN: Final = 0
LFS_POINTER: Final = 1
GIT_BUNDLE: Final = 2
PREFIX: Final = 4
"""Flags of a file, seen in the bytes that were read anyway; ``PREFIX``: it was growing and cut there."""

Job = tuple[bytes, bytes]
"""Path below the root, and the packed row that the walk saw."""


class Settings(NamedTuple):
    """How files are read; sent to worker processes as it is.

    Attributes:
        follow_symlinks: open links as what they point to.
        allow_growing: take the beginning of a file that grows meanwhile.
        git: compute Git blob ids (SHA-1) as well.
        keep: contents are wanted, not only digests.
    """

    follow_symlinks: bool = False
    allow_growing: bool = False
    git: bool = False
    keep: bool = True


class Hashed(NamedTuple):
    """One file that was read, or why it could not be.

    Attributes:
        blake3, sha256: raw digests; empty when it failed.
        size_bytes: bytes that were read and hashed.
        git: raw Git blob id, or empty.
        flags: what its bytes look like.
        row: packed row that held before and after reading.
        changed: names of the stat fields that changed while it was read.
        reason: why it could not be read.
    """

    blake3: bytes
    sha256: bytes
    size_bytes: int
    git: bytes
    flags: int
    row: bytes
    changed: tuple[str, ...] = ()
    reason: str = ""

    def digests(self) -> Digests:
        """Return both digests and the size."""
        return Digests(self.blake3, self.sha256, self.size_bytes)


_MARKS: Final = frozenset((b"v", b"/", b"\\", b"#"))
"""First bytes of what :func:`flags_of` knows."""


def flags_of(head: bytes) -> int:
    r"""Return the flags that the first bytes of a file give.

    Args:
        head: the file if it is no longer than :data:`HEAD_BYTES`, else so much of it and one byte more.

    Example:
        >>> flags_of(b"# v2 git bundle\n") == GIT_BUNDLE
        True
    """
    if head[:1] == b"v" and lfs_pointer(head) is not None:
        return LFS_POINTER
    if head[:1] in (b"/", b"\\") and len(head) <= HEAD_BYTES and annex_pointer(head) is not None:
        return LFS_POINTER
    if head.startswith((b"# v2 git bundle\n", b"# v3 git bundle\n")):
        return GIT_BUNDLE
    return PLAIN


def _failed(row: bytes, *, changed: Sequence[str] = (), reason: str = "") -> Hashed:
    return Hashed(b"", b"", 0, b"", PLAIN, row, tuple(changed), reason)


def _open(root: Root, path: bytes, settings: Settings) -> int:
    link = 0 if settings.follow_symlinks else os.O_NOFOLLOW
    return root.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | link)


def _regular(descriptor: int) -> bytes:
    """Return the row of an open file; raises OSError for anything that only looked like one."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is no regular file any more")
    return pack_row(status)


def _second(descriptor: int, size: int) -> bytes | None:
    """Return the BLAKE3 of the first bytes of a file as they are a moment later, or None if it has settled.

    The stamp is the kernel's own, which no tool sets; one that lies in the future counts as young.
    """
    age = time.time_ns() - os.fstat(descriptor).st_ctime_ns
    if age > YOUNG_NS:
        return None
    if 0 <= age < SETTLING_NS:
        time.sleep((SETTLING_NS - age) / 1e9)
    hasher = blake3()
    at = 0
    while at < size and (part := os.pread(descriptor, min(size - at, _CHUNK_BYTES), at)):
        hasher.update(part)
        at += len(part)
    return hasher.digest()


def _check_parents(root: Root, path: bytes) -> None:
    """Refuse a file that is reached through a link which took the place of a directory."""
    at = path.find(b"/")
    while at >= 0:
        if not stat.S_ISDIR(root.lstat(path[:at]).st_mode):
            raise OSError(errno.ENOTDIR, "lies behind something that is no directory any more")
        at = path.find(b"/", at + 1)


def _read_small(root: Root, path: bytes, row: bytes, settings: Settings) -> tuple[bytes, bytes, int]:
    """Return bytes, row and flags of a small file; raises OSError, or _Changed when it never holds still."""
    for _ in range(2):
        descriptor = _open(root, path, settings)
        try:
            before = opened = _regular(descriptor)
            if opened != row:
                if not settings.follow_symlinks:
                    _check_parents(root, path)
                if settings.allow_growing and grew(row, opened):
                    before = row
            size = ROW.unpack(before)[2]
            data = os.read(descriptor, size + 1)
            while len(data) < size:
                more = os.read(descriptor, size + 1 - len(data))
                if not more:
                    break
                data += more
            second = _second(descriptor, size)
            held = len(data) >= size and (second is None or second == blake3(data[:size]).digest())
            after = pack_row(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        if held and before == after and len(data) == size:
            return data, after, flags_of(data[: HEAD_BYTES + 1])
        if held and settings.allow_growing and grew(before, after):
            return data[:size], before, flags_of(data[: HEAD_BYTES + 1]) | PREFIX
    raise _Changed(differing(before, after) or ["content" if len(data) == size else "size"])


class _Changed(OSError):
    def __init__(self, fields: list[str]) -> None:
        super().__init__("changed")
        self.fields = fields


def _settled(root: Root, job: Job, flags: int, young_ns: int) -> bytes | None:
    """Return the bytes of a small file that is still what the walk saw, in four system calls.

    None for one that is not, that is young, or that cannot be read: it gets a closer look.
    """
    path, row = job
    device, inode, size, mtime_ns, ctime_ns, mode = ROW.unpack(row)
    if ctime_ns > young_ns:
        return None
    name, anchor = root.at(path)
    try:
        descriptor = os.open(name, flags, dir_fd=anchor)
    except OSError:
        return None
    try:
        # At a position: what is no file and took the place of one refuses that, or loses nothing by it.
        data = os.pread(descriptor, size + 1, 0)
        status = os.fstat(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    same = (
        len(data) == size == status.st_size
        and status.st_mtime_ns == mtime_ns
        and status.st_ctime_ns == ctime_ns
        and status.st_ino == inode
        and status.st_dev == device
        and status.st_mode == mode
    )
    return data if same else None


def read_batch(root: Root, jobs: Sequence[Job], settings: Settings) -> tuple[list[Hashed], list[bytes]]:
    """Read and hash small files.

    Returns:
        One result a job, and the contents in the same order (empty ones where ``keep`` is off).
    """
    results: list[Hashed] = []
    contents: list[bytes] = []
    link = 0 if settings.follow_symlinks else os.O_NOFOLLOW
    how = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | link
    young_ns = time.time_ns() - YOUNG_NS
    sha256, keep = libraries.sha256, settings.keep
    for job in jobs:
        data = _settled(root, job, how, young_ns)
        held, flags = job[1], PLAIN
        if data is None:
            try:
                data, held, flags = _read_small(root, *job, settings)
            except _Changed as error:
                results.append(_failed(job[1], changed=error.fields))
                contents.append(b"")
                continue
            except OSError as error:
                results.append(_failed(job[1], reason=error.strerror or str(error)))
                contents.append(b"")
                continue
        elif data[:1] in _MARKS:
            flags = flags_of(data[: HEAD_BYTES + 1])
        git = b""
        if settings.git:
            blob = BlobHasher(len(data))
            blob.update(data)
            git = blob.digest()
        found = (blake3(data).digest(), sha256(data).digest(), len(data), git, flags, held, (), "")
        results.append(tuple.__new__(Hashed, found))
        contents.append(data if keep else b"")
    return results, contents


def frames_of(contents: Sequence[bytes], wanted: Sequence[int]) -> Iterator[tuple[bytes, list[int]]]:
    """Pack the wanted contents into group frames; yields each frame and the indexes of its members."""
    group: list[int] = []
    size = 0
    for index in wanted:
        group.append(index)
        size += len(contents[index])
        if size >= frame.FRAME_BYTES:
            yield frame.pack([contents[i] for i in group]), group
            group, size = [], 0
    if group:
        yield frame.pack([contents[i] for i in group]), group


def hash_large(
    root: Root,
    job: Job,
    settings: Settings,
    write: Callable[[Buffer], object] | None,
    told: Callable[[int], object],
) -> Hashed:
    """Read and hash one large file through one buffer.

    Args:
        root: directory that the path is below.
        job: path and row.
        settings: see :class:`Settings`.
        write: receives the bytes as well, if given.
        told: is told the size of each part that was read.
    """
    path, row = job
    try:
        descriptor = _open(root, path, settings)
    except OSError as error:
        return _failed(row, reason=error.strerror or str(error))
    try:
        return _stream(descriptor, row, settings, write, told)
    except OSError as error:
        return _failed(row, reason=error.strerror or str(error))
    finally:
        os.close(descriptor)


def _stream(
    descriptor: int,
    row: bytes,
    settings: Settings,
    write: Callable[[Buffer], object] | None,
    told: Callable[[int], object],
) -> Hashed:
    opened = _regular(descriptor)
    changed = differing(row, opened)
    if changed and not (settings.allow_growing and grew(row, opened)):
        return _failed(row, changed=changed)
    left = Row._make(ROW.unpack(opened)).size_bytes
    twin = TwinHasher()
    blob = BlobHasher(left) if settings.git else None
    # A buffer that does not start at the start of a page reads faster from the page cache.
    buffer = memoryview(bytearray(_CHUNK_BYTES + 4096))[2048 : 2048 + _CHUNK_BYTES]
    flags = PLAIN
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        while left:
            count = file.readinto(buffer[: min(left, _CHUNK_BYTES)])
            if not count:
                break
            part = buffer[:count]
            if twin.size_bytes == 0:
                flags = flags_of(bytes(part[: HEAD_BYTES + 1]))
            twin.update(part)
            if blob is not None:
                blob.update(part)
            if write is not None:
                write(part)
            left -= count
            told(count)
    found = twin.digests()
    held = _second(descriptor, found.size_bytes) in (None, found.blake3)
    after = pack_row(os.fstat(descriptor))
    if after != opened or left or not held:
        if left or not held or not (settings.allow_growing and grew(opened, after)):
            return _failed(row, changed=differing(opened, after) or ["size" if left else "content"])
        flags |= PREFIX
    git = blob.digest() if blob is not None else b""
    return Hashed(found.blake3, found.sha256, found.size_bytes, git, flags, opened)


def open_regular(path: str | bytes | os.PathLike[str]) -> int:
    """Open a file for reading; a FIFO, which would keep us waiting for ever, or a device is refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file", os.fsdecode(path))
    return descriptor


def read_file(path: str | bytes | os.PathLike[str], limit_bytes: int) -> bytes:
    """Return the bytes of a document that describes others: a spec, a checksum file.

    Args:
        path: the file.
        limit_bytes: at most one byte more than this is returned, so that the caller can tell.

    Raises:
        InputOutputError: it cannot be read, or is no regular file.
    """
    try:
        with open(open_regular(path), "rb") as file:
            return file.read(limit_bytes + 1)
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else errno.EINVAL
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputOutputError(show(os.fsencode(path)), number or 0, reason or str(error)) from error


def hash_file(path: str | bytes | os.PathLike[str]) -> Digests:
    """Return both digests of one file, streamed; for verifying files outside a store.

    Raises:
        OSError: it cannot be read, or is no regular file (a FIFO would keep us waiting for ever).
    """
    twin = TwinHasher()
    buffer = memoryview(bytearray(_CHUNK_BYTES + 4096))[2048 : 2048 + _CHUNK_BYTES]
    with open(open_regular(path), "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            twin.update(buffer[:count])
    return twin.digests()
