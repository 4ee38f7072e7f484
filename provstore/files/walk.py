"""Walking a directory: what is there, without reading any file.

Links are never followed unless asked. Exclusion comes before every look at a type. The store's own
directory is recognised by device and inode and never entered, since closing a descriptor of its index
would drop this process's locks on it. Paths may be deeper than PATH_MAX: the walk goes on from directory
descriptors where a path would be too long.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from provstore.errors import SourceUnreadableError, SpecialFileError, UsageError
from provstore.files.excluding import Excluder
from provstore.files.root import DIRECTORY, ROW, UNREADABLE, Root, Row, pack_row, type_name
from provstore.paths import show


class Listing(NamedTuple):
    """One directory.

    Attributes:
        path: relative to the root, empty for the root.
        names: sorted by bytes.
        rows: packed :data:`ROW` of each name, in the same order.
        known: names, and which of them are directories, are those that were remembered.
    """

    path: bytes
    names: list[bytes]
    rows: bytes
    known: bool = False

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


_Identity = tuple[int, int]
"""Device and inode of a directory."""

_TYPE: Final = 0o170000
"""The bits of a mode that say what it is of."""

_UNSEEN: Final = ROW.pack(0, 0, 0, 0, 0, UNREADABLE)


class Known(Protocol):
    """What is remembered of a directory, for a walk that need not list it again."""

    @property
    def own(self) -> bytes:
        """Its packed row then."""

    @property
    def names(self) -> bytes:
        """Its member names, joined by ``/``."""

    @property
    def rows(self) -> bytes:
        """Packed rows of the members then."""

    @property
    def directories(self) -> tuple[int, ...]:
        """Positions of its directories among the names."""


Remember = Callable[[bytes], Known | None]
"""Gives what is remembered of the directory at a path; asked for parents before children, in order."""


class _Todo(NamedTuple):
    """A directory that is still to be listed."""

    path: bytes
    row: bytes
    above: tuple[_Identity, ...]


class Walker:
    """A walk in progress: gives directories one by one, parents before children.

    Attributes:
        excluded: path and rule of what was left out so far.
        unreadable: path and reason of what could not be looked at so far.
        special: shown path and type of FIFOs, sockets and devices so far.
        partly: paths of directories of which something was left out.
    """

    def __init__(
        self,
        root: Root,
        exclude: Sequence[str] = (),
        skip: frozenset[tuple[int, int]] = frozenset(),
        *,
        follow_symlinks: bool = False,
        remember: Remember | None = None,
    ) -> None:
        self.root = root
        self.excluded: list[tuple[bytes, str]] = []
        self.unreadable: list[tuple[bytes, str]] = []
        self.special: list[tuple[str, str]] = []
        self.partly: set[bytes] = set()
        self._excluder = Excluder(exclude)
        self._skip = skip
        self._follow = follow_symlinks
        self._remember = remember

    def listings(self) -> Iterator[tuple[bytes, bytes, Listing | None]]:
        """Yield path, own packed row and listing of each directory; None for one that cannot be listed.

        Raises:
            SpecialFileError: at the end, if there were FIFOs, sockets or devices.
        """
        todo = self._first()
        while todo:
            here = todo.pop()
            found = self._again(here) or self._list(here)
            if found is None:
                yield here.path, here.row, None
                continue
            listing, below = found
            yield here.path, here.row, listing
            entered, looped = self._enter(here, below)
            todo.extend(reversed(entered))
            for path in looped:
                yield path, b"", None
        if self.special:
            raise SpecialFileError(sorted(self.special))

    def listing(self, path: bytes, row: bytes) -> Listing | None:
        """Return one directory without entering any; None for one that cannot be listed.

        For whoever decides on the order himself. Links are not followed.

        Args:
            path: relative to the root.
            row: its packed row, as it was seen from above.
        """
        found = self._list(_Todo(path, row, ()))
        return None if found is None else found[0]

    def _first(self) -> list[_Todo]:
        try:
            row = pack_row(self.root.lstat(b"") if not self._follow else os.stat(self.root.path))
        except OSError as error:
            raise SourceUnreadableError([(show(self.root.path), error.strerror or str(error))]) from error
        return [_Todo(b"", row, ())]

    def _enter(self, here: _Todo, below: list[tuple[bytes, bytes]]) -> tuple[list[_Todo], list[bytes]]:
        """Return the directories to list below one, and those that a link leads back to."""
        base = here.path + b"/" if here.path else b""
        if not self._follow:
            return [_Todo(base + name, row, ()) for name, row in below], []
        entered, looped = [], []
        for name, row in below:
            path = base + name
            identity = _identity(row)
            if identity in here.above:
                self.unreadable.append((path, "a symlink leads back to a directory above it"))
                looped.append(path)
            else:
                entered.append(_Todo(path, row, (*here.above, identity)))
        return entered, looped

    def _again(self, here: _Todo) -> tuple[Listing, list[tuple[bytes, bytes]]] | None:
        """Look at the members that a directory is known to have, if it did not change since."""
        known = self._remember(here.path) if self._remember is not None else None
        if known is None or known.own != here.row or self._follow:
            return None
        names = known.names.split(b"/") if known.names else []
        name, anchor = self.root.at(here.path)
        if anchor is not None:
            return None
        base, pack, lstat = name.rstrip(b"/") + b"/", ROW.pack, os.lstat
        try:
            rows = b"".join(
                [
                    pack(st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_mode)
                    for st in [lstat(base + member) for member in names]
                ]
            )
        except OSError:
            return None
        if rows == known.rows:
            rows = known.rows
        elif not self._ordinary(rows, known.directories):
            return None
        size = ROW.size
        below = [(names[i], rows[i * size : (i + 1) * size]) for i in known.directories]
        return Listing(here.path, names, rows, known=True), below

    def _ordinary(self, rows: bytes, directories: tuple[int, ...]) -> bool:
        """Say whether the same members are directories as before, and all others files and links."""
        expected = set(directories)
        for index, fields in enumerate(ROW.iter_unpack(rows)):
            kind = stat.S_IFMT(fields[5])
            if (kind == stat.S_IFDIR) != (index in expected):
                return False
            if kind not in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
                return False
            if kind == stat.S_IFDIR and fields[:2] in self._skip:
                return False
        return True

    def _list(self, here: _Todo) -> tuple[Listing, list[tuple[bytes, bytes]]] | None:
        """Return a directory and what to enter below it; None for one that cannot be listed whole."""
        rows: list[tuple[bytes, bytes]] = []
        below = []
        left_out = len(self.excluded)
        base = here.path + b"/" if here.path else b""
        try:
            for entry in self._scan(here):
                name = os.fsencode(entry.name)
                rule = self._excluder.rule(here.path, name)
                if rule is not None:
                    self.excluded.append((base + name, rule))
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as error:
                    self.unreadable.append((base + name, error.strerror or str(error)))
                    rows.append((name, _UNSEEN))
                    continue
                if status.st_mode & _TYPE == stat.S_IFREG:
                    rows.append((name, pack_row(status)))
                    continue
                row, is_directory = self._look(base + name, entry, status)
                if row is not None:
                    rows.append((name, row))
                    if is_directory:
                        below.append((name, row))
        except OSError as error:
            self.unreadable.append((here.path, error.strerror or str(error)))
            return None
        if left_out < len(self.excluded):
            self.partly.add(here.path)
        rows.sort()
        below.sort()
        return Listing(here.path, [name for name, _ in rows], b"".join([row for _, row in rows])), below

    def _scan(self, here: _Todo) -> Iterator["os.DirEntry[str]"]:
        """Yield the entries of a directory, if it still is the one that was looked at."""
        descriptor = self.root.open(here.path, DIRECTORY)
        try:
            status = os.fstat(descriptor)
            if _identity(here.row) != (status.st_dev, status.st_ino):
                raise OSError(errno.ESTALE, "was replaced during the walk")
            with os.scandir(descriptor) as entries:
                yield from entries
        finally:
            os.close(descriptor)

    def _look(
        self, path: bytes, entry: "os.DirEntry[str]", status: os.stat_result
    ) -> tuple[bytes | None, bool]:
        """Return the row of an entry, and whether it is a directory to enter."""
        if self._follow and stat.S_ISLNK(status.st_mode):
            try:
                status = entry.stat(follow_symlinks=True)
            except OSError as error:
                self.unreadable.append((path, error.strerror or str(error)))
                return _UNSEEN, False
            if _inside(os.path.join(self.root.path, path), self._skip):
                self.excluded.append((path, "the store itself"))
                return None, False
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG or kind == stat.S_IFLNK:
            return pack_row(status), False
        if kind == stat.S_IFDIR:
            if (status.st_dev, status.st_ino) in self._skip:
                self.excluded.append((path, "the store itself"))
                return None, False
            return pack_row(status), True
        self.special.append((show(path), type_name(status.st_mode)))
        return None, False


def _identity(row: bytes) -> _Identity:
    device, inode, *_ = ROW.unpack(row)
    return device, inode


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
    walker = Walker(root, exclude, skip, follow_symlinks=follow_symlinks)
    listings = [listing for _, _, listing in walker.listings() if listing is not None]
    for path, reason in walker.unreadable:
        if not path:
            raise SourceUnreadableError([(show(root.path), reason)])
    return Found(listings, sorted(walker.excluded), sorted(walker.unreadable))
