"""An open directory, and the signatures of what lies below it.

Paths may be deeper than PATH_MAX: where one would be too long for a system call, the way goes on from a
directory descriptor on the way down.
"""

import os
import stat
import struct
from types import TracebackType
from typing import Final, NamedTuple, Self

from provstore.paths import join
from provstore.store.protocol import StatSignature

ROW: Final = struct.Struct("<QQQqqI")
"""Packed signature of a member: device, inode, size, mtime_ns, ctime_ns, mode."""

UNREADABLE: Final = 0
"""Mode of a member that could not be looked at."""


_FIELDS: Final = ("device", "inode", "size", "mtime", "ctime")

_LONGEST_RELATIVE: Final = 3000
"""Longest path given to the system at once; PATH_MAX is 4096."""

_TYPES: Final = {
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "block device",
    stat.S_IFCHR: "character device",
}


class Row(NamedTuple):
    """Unpacked :data:`ROW`."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    mode: int

    def signature(self) -> StatSignature:
        """Return the fields that tell whether bytes may have changed."""
        return StatSignature(self.device, self.inode, self.size_bytes, self.mtime_ns, self.ctime_ns)


def type_name(mode: int) -> str:
    """Return what people call a file that is neither regular, link nor directory.

    Example:
        >>> type_name(0o010644)
        'FIFO'
    """
    return _TYPES.get(stat.S_IFMT(mode), "special file")


def pack_row(status: os.stat_result) -> bytes:
    """Return the packed signature of a file."""
    return ROW.pack(
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )


def differing(before: bytes, after: bytes) -> list[str]:
    """Return the names of the fields of a signature that differ between two packed rows."""
    pairs = zip(_FIELDS, ROW.unpack(before), ROW.unpack(after), strict=False)
    return [field for field, a, b in pairs if a != b]


def grew(before: bytes, after: bytes) -> bool:
    """Say whether only an append can explain the difference between two packed rows."""
    a, b = Row._make(ROW.unpack(before)), Row._make(ROW.unpack(after))
    return (a.device, a.inode, a.mode) == (b.device, b.inode, b.mode) and b.size_bytes > a.size_bytes


class Root:
    """An open directory; turns relative paths of any depth into what system calls accept.

    Use it as a context manager. Thread-safe for :meth:`at` once the walk is over.
    """

    def __init__(self, path: bytes) -> None:
        self.path = os.path.abspath(path)
        self._inside = self.path.rstrip(b"/") + b"/"
        self._anchors: dict[bytes, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._anchors.values():
            os.close(descriptor)
        self._anchors.clear()

    def at(self, path: bytes) -> tuple[bytes, int | None]:
        """Return a path and the descriptor it is relative to (None: it is absolute)."""
        whole = self._inside + path if path else self.path
        if len(whole) <= _LONGEST_RELATIVE:
            return whole, None
        return self._deep(path)

    def _deep(self, path: bytes) -> tuple[bytes, int]:
        """Open every so often a directory on the way down and keep it for its whole subtree."""
        parts = path.split(b"/")
        base, descriptor = b"", self._anchors.get(b"")
        if descriptor is None:
            descriptor = self._anchors[b""] = os.open(self.path, DIRECTORY)
        rest: list[bytes] = []
        length = 0
        for part in parts:
            if length + len(part) + 1 > _LONGEST_RELATIVE:
                base = join(base, *rest)
                known = self._anchors.get(base)
                if known is None:
                    known = os.open(b"/".join(rest), DIRECTORY, dir_fd=descriptor)
                    self._anchors[base] = known
                descriptor, rest, length = known, [], 0
            rest.append(part)
            length += len(part) + 1
        return b"/".join(rest), descriptor

    def open(self, path: bytes, flags: int) -> int:
        """Open a path below the root; links in its last part are refused by the flags."""
        name, anchor = self.at(path)
        return os.open(name, flags, dir_fd=anchor)

    def readlink(self, path: bytes) -> bytes:
        """Return the text of a symlink below the root."""
        name, anchor = self.at(path)
        return os.readlink(name, dir_fd=anchor)

    def lstat(self, path: bytes) -> os.stat_result:
        """Return the status of a path below the root, not following links."""
        name, anchor = self.at(path)
        return os.stat(name, dir_fd=anchor, follow_symlinks=False)


DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
