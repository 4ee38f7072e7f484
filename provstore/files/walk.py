"""Walking a directory: what is there, without reading any file.

Links are never followed unless asked. Exclusion comes before every look at a type. The store's own
directory is recognised by device and inode and never entered, since closing a descriptor of its index
would drop this process's locks on it. Paths may be deeper than PATH_MAX: the walk goes on from directory
descriptors where a path would be too long.
"""

import errno
import fnmatch
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from provstore.errors import SourceUnreadableError, SpecialFileError, UsageError
from provstore.paths import join, show
from provstore.store.protocol import StatSignature

ROW: Final = struct.Struct("<QQQqqI")
"""Packed signature of a member: device, inode, size, mtime_ns, ctime_ns, mode."""

_LONGEST_RELATIVE: Final = 3000
"""Longest path given to the system at once; PATH_MAX is 4096."""

_TYPES: Final = {
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "block device",
    stat.S_IFCHR: "character device",
}

UNREADABLE: Final = 0
"""Mode of a member that could not be looked at."""


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


class Listing(NamedTuple):
    """One directory.

    Attributes:
        path: relative to the root, empty for the root.
        names: sorted by bytes.
        rows: packed :data:`ROW` of each name, in the same order.
    """

    path: bytes
    names: list[bytes]
    rows: bytes

    def row(self, index: int) -> Row:
        """Return the row of one name."""
        return Row._make(ROW.unpack_from(self.rows, index * ROW.size))

    def members(self) -> Iterator[tuple[bytes, Row]]:
        """Yield name and row of each member."""
        for name, fields in zip(self.names, ROW.iter_unpack(self.rows), strict=True):
            yield name, Row._make(fields)


class Found(NamedTuple):
    """All of a walk.

    Attributes:
        listings: parents before children, siblings in the order of names.
        excluded: path and rule of what was left out.
        unreadable: path and reason of what could not be looked at.
    """

    listings: list[Listing]
    excluded: list[tuple[bytes, str]]
    unreadable: list[tuple[bytes, str]]


def refuse_inside(path: bytes, skip: frozenset[tuple[int, int]]) -> None:
    """Check that a path does not lie in a directory that must not be entered, or is one.

    Args:
        path: absolute; links in it are followed.
        skip: device and inode of such directories.

    Raises:
        UsageError: it does; nothing was opened.
    """
    if _inside(path, skip):
        raise UsageError(f"{show(path)} lies in the store itself, whose files are never evidence")


def _inside(path: bytes, skip: frozenset[tuple[int, int]]) -> bool:
    place = os.path.realpath(path)
    while skip:
        try:
            status = os.stat(place)
        except OSError:
            status = None
        if status is not None and (status.st_dev, status.st_ino) in skip:
            return True
        if place == os.path.dirname(place):
            return False
        place = os.path.dirname(place)
    return False


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


class Excluder:
    """Decides which paths are left out.

    A pattern without ``/`` is held against each name, one with ``/`` against the whole relative path;
    ``*`` also matches ``/``. Everything below an excluded directory is out as well.

    Example:
        >>> Excluder(["*.tmp", "a/b"]).rule(b"x", b"c.tmp")
        '*.tmp'
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names: list[tuple[str, re.Pattern[bytes]]] = []
        self._paths: list[tuple[str, re.Pattern[bytes]]] = []
        for pattern in patterns:
            stripped = os.fsencode(pattern.strip("/"))
            compiled = re.compile(fnmatch.translate(stripped.decode("latin-1")).encode("latin-1"))
            (self._paths if b"/" in stripped else self._names).append((pattern, compiled))

    def rule(self, directory: bytes, name: bytes) -> str | None:
        """Return the pattern that leaves ``name`` in ``directory`` out, or None."""
        for pattern, compiled in self._names:
            if compiled.match(name):
                return pattern
        if self._paths:
            path = join(directory, name)
            for pattern, compiled in self._paths:
                if compiled.match(path):
                    return pattern
        return None


class Root:
    """An open directory; turns relative paths of any depth into what system calls accept.

    Use it as a context manager. Thread-safe for :meth:`at` once the walk is over.
    """

    def __init__(self, path: bytes) -> None:
        self.path = os.path.abspath(path)
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
        whole = os.path.join(self.path, path) if path else self.path
        if len(whole) <= _LONGEST_RELATIVE:
            return whole, None
        return self._deep(path)

    def _deep(self, path: bytes) -> tuple[bytes, int]:
        """Open every so often a directory on the way down and keep it for its whole subtree."""
        parts = path.split(b"/")
        base, descriptor = b"", self._anchors.get(b"")
        if descriptor is None:
            descriptor = self._anchors[b""] = os.open(self.path, _DIRECTORY)
        rest: list[bytes] = []
        length = 0
        for part in parts:
            if length + len(part) + 1 > _LONGEST_RELATIVE:
                base = join(base, *rest)
                known = self._anchors.get(base)
                if known is None:
                    known = os.open(b"/".join(rest), _DIRECTORY, dir_fd=descriptor)
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


_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_Identity = tuple[int, int]
"""Device and inode of a directory."""


class _Walk:
    def __init__(
        self, root: Root, excluder: Excluder, skip: frozenset[tuple[int, int]], *, follow_symlinks: bool
    ) -> None:
        self.root = root
        self.excluder = excluder
        self.skip = skip
        self.follow = follow_symlinks
        self.found = Found([], [], [])
        self.special: list[tuple[str, str]] = []

    def run(self) -> Found:
        todo: list[tuple[bytes, _Identity | None, tuple[_Identity, ...]]] = [(b"", None, ())]
        while todo:
            path, expected, above = todo.pop()
            listing, below = self._list(path, expected)
            if listing is None:
                continue
            self.found.listings.append(listing)
            for name, identity in reversed(below):
                child = join(path, name)
                if self.follow and identity in above:
                    self.found.unreadable.append((child, "a symlink leads back to a directory above it"))
                else:
                    todo.append((child, identity, (*above, identity) if self.follow else ()))
        if self.special:
            raise SpecialFileError(sorted(self.special))
        self.found.excluded.sort()
        self.found.unreadable.sort()
        return self.found

    def _list(
        self, path: bytes, expected: _Identity | None
    ) -> tuple[Listing | None, list[tuple[bytes, _Identity]]]:
        """Return a directory and what to enter below it; None for one that cannot be listed whole."""
        rows: list[tuple[bytes, bytes]] = []
        below = []
        try:
            for name, entry in self._scan(path, expected):
                rule = self.excluder.rule(path, name)
                if rule is not None:
                    self.found.excluded.append((join(path, name), rule))
                    continue
                row, directory = self._look(join(path, name), entry)
                if row is not None:
                    rows.append((name, row))
                if directory is not None:
                    below.append((name, directory))
        except OSError as error:
            self.found.unreadable.append((path, error.strerror or str(error)))
            return None, []
        rows.sort()
        below.sort()
        return Listing(path, [name for name, _ in rows], b"".join(row for _, row in rows)), below

    def _scan(self, path: bytes, expected: _Identity | None) -> Iterator[tuple[bytes, "os.DirEntry[str]"]]:
        """Yield name and entry of a directory, if it still is the one that was looked at."""
        descriptor = self.root.open(path, _DIRECTORY)
        try:
            status = os.fstat(descriptor)
            if expected not in (None, (status.st_dev, status.st_ino)):
                raise OSError(errno.ESTALE, "was replaced during the walk")
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    yield os.fsencode(entry.name), entry
        finally:
            os.close(descriptor)

    def _look(self, path: bytes, entry: "os.DirEntry[str]") -> tuple[bytes | None, _Identity | None]:
        """Return the row of an entry, and its identity if it is a directory to enter."""
        try:
            status = entry.stat(follow_symlinks=False)
            if self.follow and stat.S_ISLNK(status.st_mode):
                status = entry.stat(follow_symlinks=True)
                if _inside(os.path.join(self.root.path, path), self.skip):
                    self.found.excluded.append((path, "the store itself"))
                    return None, None
        except OSError as error:
            self.found.unreadable.append((path, error.strerror or str(error)))
            return ROW.pack(0, 0, 0, 0, 0, UNREADABLE), None
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG or kind == stat.S_IFLNK:
            return pack_row(status), None
        if kind == stat.S_IFDIR:
            identity = (status.st_dev, status.st_ino)
            if identity in self.skip:
                self.found.excluded.append((path, "the store itself"))
                return None, None
            return pack_row(status), identity
        self.special.append((show(path), type_name(status.st_mode)))
        return None, None


def walk(
    root: Root,
    exclude: Sequence[str] = (),
    skip: frozenset[tuple[int, int]] = frozenset(),
    *,
    follow_symlinks: bool = False,
) -> Found:
    """List everything below a directory.

    Args:
        root: where to begin.
        exclude: patterns, see :class:`Excluder`.
        skip: device and inode of directories that are never entered.
        follow_symlinks: take links for what they point to.

    Raises:
        SpecialFileError: FIFOs, sockets or devices, all of them named.
        SourceUnreadableError: the root itself cannot be listed.
    """
    found = _Walk(root, Excluder(exclude), skip, follow_symlinks=follow_symlinks).run()
    for path, reason in found.unreadable:
        if not path:
            raise SourceUnreadableError([(show(root.path), reason)])
    return found
