"""A directory held to a sealed tree, directory by directory, on all cores.

Whoever lists a directory also opens its sealed tree, reads its files and compares; only what differs is
carried further. No tree is built of what is there.
"""

import stat
import threading
from collections.abc import Iterator
from typing import Final, NamedTuple

from provstore import canon, merkle
from provstore.errors import SourceUnreadableError, SpecialFileError
from provstore.files import hashing
from provstore.files.crew import Crew, spare_cores
from provstore.files.encoding import encoded_directory, encoded_file, encoded_hole, encoded_symlink
from provstore.files.hashing import SMALL_BYTES, Hashed, Settings
from provstore.files.progress import Meter
from provstore.files.root import ROW, Root, pack_row
from provstore.files.threads import on_threads
from provstore.files.walk import Walker, refuse_inside
from provstore.ids import RawId
from provstore.merkle import Fetch
from provstore.paths import show
from provstore.records.packet import Entry
from provstore.records.tree import TreeEntry, TreeLeaf
from provstore.treediff import Change

WORTH_HELPERS_FILES: Final = 2000
"""An entry of fewer files is held to its tree before a helper has begun."""

PIECE_FILES: Final = 256
"""Files after which a piece of work ends and gives back the directories that it has not come to."""

PIECE_DIRECTORIES: Final = 8

_STATED: Final = hashing.LFS_POINTER | hashing.PREFIX
"""Flags that make a member be sealed as less than it seems."""

_SETTINGS: Final = Settings(keep=False)

_Directory = tuple[bytes, bytes, RawId, bytes]
"""Path, packed row, sealed tree (empty for none), and the sealed entry if that is of another kind."""

_Large = tuple[bytes, bytes, bytes]
"""Path and packed row of a large file, and its sealed entry or nothing."""

_Difference = tuple[bytes, bytes, bytes]
"""Path, sealed entry, entry of what is there; canonical bytes, empty where one side has nothing."""


class Held(NamedTuple):
    """What came of it.

    Attributes:
        changes: what differs, in the order of paths; what a directory that is gone held is not in it.
        unreadable: path and reason of what could not be read.
        changed: path and stat fields of files that did not hold still.
        files: files that were read.
        bytes_read: number of their bytes.
    """

    changes: list[Change]
    unreadable: list[tuple[bytes, str]]
    changed: list[tuple[bytes, tuple[str, ...]]]
    files: int
    bytes_read: int


class _Found(NamedTuple):
    """What one piece of work comes to; as a plain tuple it goes from process to process."""

    todo: list[_Directory]
    large: list[_Large]
    differences: list[_Difference]
    unreadable: list[tuple[bytes, str]]
    changed: list[tuple[bytes, tuple[str, ...]]]
    special: list[tuple[str, str]]
    counts: list[int]

    @classmethod
    def nothing(cls) -> "_Found":
        return cls([], [], [], [], [], [], [0, 0])


def hold(
    fetch: Fetch, entry: Entry, tree: RawId, place: bytes, skip: frozenset[tuple[int, int]], meter: Meter
) -> Held:
    """Hold a directory to a sealed tree. Links are not followed.

    Args:
        fetch: gives checked record bytes.
        entry: says what is left out, and how many files to expect.
        tree: id of its tree.
        place: the directory.
        skip: device and inode of directories that are never entered.
        meter: is told of progress.

    Raises:
        SpecialFileError: FIFOs, sockets or devices, all of them named.
        SourceUnreadableError: the directory itself cannot be listed.
        UsageError: it lies in a store.
        IntegrityError, NotFoundError, MalformedError: a record of the tree is damaged or gone.
    """
    refuse_inside(place, skip)
    helpers = spare_cores() if entry.files >= WORTH_HELPERS_FILES else 0
    found = _Found.nothing()
    with Root(place) as root:
        holding = _Holding(root, fetch, Walker(root, entry.exclude, skip))
        with Crew(holding.work, helpers) as crew:
            crew.put([(b"", _own_row(root), tree, b"")])
            for answer in crew.results():
                todo = answer[0]
                for start in range(0, len(todo), PIECE_DIRECTORIES):
                    crew.put(todo[start : start + PIECE_DIRECTORIES])
                for mine, theirs in zip(found[1:-1], answer[1:-1], strict=True):
                    mine += theirs
                for index, count in enumerate(answer[-1]):
                    found.counts[index] += count
                meter.add(answer[-1][1], answer[-1][0], todo[-1][0] if todo else b"")
        if found.special:
            raise SpecialFileError(sorted(found.special))
        holding.large(found, meter)
    for path, reason in found.unreadable:
        if not path:
            raise SourceUnreadableError([(show(root.path), reason)])
    changes = [(path, _entry(a), _entry(b)) for path, a, b in found.differences]
    changes.sort(key=lambda change: change[0].split(b"/"))
    files, bytes_read = found.counts
    return Held(changes, sorted(found.unreadable), sorted(found.changed), files, bytes_read)


def _own_row(root: Root) -> bytes:
    try:
        return pack_row(root.lstat(b""))
    except OSError as error:
        raise SourceUnreadableError([(show(root.path), error.strerror or str(error))]) from error


def _entry(data: bytes) -> TreeEntry | None:
    return canon.decode(data, TreeEntry, "tree entry", bounded=True) if data else None


def _encoded(entry: TreeEntry | None) -> bytes:
    return canon.encode(entry, bounded=True) if entry is not None else b""


class _Holding:
    """The work on one directory tree; helpers have a copy of it."""

    def __init__(self, root: Root, fetch: Fetch, walker: Walker) -> None:
        self._root = root
        self._fetch = fetch
        self._walker = walker

    def work(self, todo: list[_Directory]) -> tuple[object, ...]:
        """Compare directories and what is below them, until it is enough for once."""
        found = _Found.nothing()
        todo = todo[::-1]
        while todo and found.counts[0] < PIECE_FILES:
            todo += reversed(self._directory(todo.pop(), found))
        found.todo.extend(reversed(todo))
        found.unreadable.extend(self._walker.unreadable)
        found.special.extend(self._walker.special)
        self._walker.unreadable.clear()
        self._walker.special.clear()
        return tuple(found)

    def _directory(self, here: _Directory, found: _Found) -> list[_Directory]:
        """Compare one directory; returns those in it."""
        path, row, tree, instead = here
        name = path.rpartition(b"/")[2]
        listing = self._walker.listing(path, row)
        if listing is None:
            if path:
                sealed = instead or (encoded_directory(name, tree) if tree else b"")
                found.differences.append((path, sealed, encoded_hole(name)))
            return []
        if not tree:
            found.differences.append((path, instead, encoded_directory(name, bytes(32))))
        sealed_here = dict(self._sealed(tree)) if tree else {}
        below: list[_Directory] = []
        jobs: list[tuple[bytes, bytes]] = []
        expected: list[TreeEntry | None] = []
        base = path + b"/" if path else b""
        size = ROW.size
        for index, member in enumerate(listing.names):
            its_row = listing.rows[index * size : (index + 1) * size]
            _, _, length, _, _, mode = ROW.unpack(its_row)
            entry = sealed_here.pop(member, None)
            if stat.S_ISREG(mode):
                if length > SMALL_BYTES:
                    found.large.append((base + member, its_row, _encoded(entry)))
                else:
                    jobs.append((base + member, its_row))
                    expected.append(entry)
            elif stat.S_ISDIR(mode):
                if entry is not None and entry.tree is not None:
                    below.append((base + member, its_row, bytes.fromhex(entry.tree), b""))
                else:
                    below.append((base + member, its_row, b"", _encoded(entry)))
            else:
                self._other(base + member, member, mode, entry, found)
        found.differences.extend((base + member, _encoded(gone), b"") for member, gone in sealed_here.items())
        results, _ = hashing.read_batch(self._root, jobs, _SETTINGS)
        for (file, _), entry, done in zip(jobs, expected, results, strict=True):
            _compare(file, entry, done, found)
        return below

    def _sealed(self, tree: RawId) -> Iterator[tuple[bytes, TreeEntry]]:
        opened = merkle.open_node(self._fetch(tree), f"tree {tree.hex()}")
        if isinstance(opened.node, TreeLeaf):
            return zip(opened.names, opened.node.entries, strict=True)
        return ((entry.raw_name(), entry) for entry in merkle.entries_of(self._fetch, tree))

    def _other(self, path: bytes, name: bytes, mode: int, sealed: TreeEntry | None, found: _Found) -> None:
        """Compare a symlink, or what could not be looked at."""
        here = encoded_hole(name)
        if stat.S_ISLNK(mode):
            try:
                here = encoded_symlink(name, self._root.readlink(path))
            except OSError as error:
                found.unreadable.append((path, error.strerror or str(error)))
        _note(path, sealed, here, found)

    def large(self, found: _Found, meter: Meter) -> None:
        """Read the large files that came up, the largest first, on threads."""
        lock = threading.Lock()

        def told(size_bytes: int) -> None:
            with lock:
                meter.add(size_bytes, 0, b"")

        def read(job: _Large) -> None:
            path, row, sealed = job
            done = hashing.hash_large(self._root, (path, row), _SETTINGS, None, told)
            with lock:
                _compare(path, _entry(sealed), done, found)
                meter.add(0, 1, path)

        on_threads(sorted(found.large, key=lambda job: -ROW.unpack(job[1])[2]), read)


def _compare(path: bytes, sealed: TreeEntry | None, done: Hashed, found: _Found) -> None:
    """Hold what was read of a file to its sealed entry."""
    name = path.rpartition(b"/")[2]
    if not done.blake3:
        if done.changed:
            found.changed.append((path, done.changed))
        else:
            found.unreadable.append((path, done.reason))
        _note(path, sealed, encoded_hole(name), found)
        return
    found.counts[0] += 1
    found.counts[1] += done.size_bytes
    if sealed is not None and sealed.state is None and not done.flags & _STATED:
        kind = "executable" if ROW.unpack(done.row)[5] & stat.S_IXUSR else "file"
        here = done.blake3.hex(), done.sha256.hex(), done.size_bytes, kind
        if here == (sealed.blake3, sealed.sha256, sealed.size_bytes, sealed.kind):
            return
    _note(path, sealed, encoded_file(name, done), found)


def _note(path: bytes, sealed: TreeEntry | None, here: bytes, found: _Found) -> None:
    before = _encoded(sealed)
    if before != here:
        found.differences.append((path, before, here))
