"""What of one directory has to be read, what its remembered form vouches for, when its tree can be built."""

import stat
from collections.abc import Callable, Iterator

from provstore import canon, merkle
from provstore.errors import IntegrityError, NotFoundError
from provstore.files.encoding import whole_files
from provstore.files.hashing import SMALL_BYTES, Hashed
from provstore.files.root import ROW
from provstore.files.stat_cache import Remembered
from provstore.files.walk import Listing
from provstore.ids import RawId
from provstore.merkle import Fetch
from provstore.records.tree import TreeEntry


class Plan:
    """One directory between its listing and its tree.

    Args:
        listing: as the walk saw it.
        own: packed row of the directory itself.
        before: what is remembered of it, if anything.
        fetch: gives tree records, for entries that are reused.
        held: says whether an object of this hex id is still where a seal would need it.

    Attributes:
        same: nothing but its directories can have changed.
        results: files that were read, by their position among the names.
        trees: ids of its directories, by position; None for one that could not be listed.
        waiting: files and directories that are not finished.
    """

    def __init__(
        self,
        listing: Listing,
        own: bytes,
        before: Remembered | None,
        fetch: Fetch,
        held: Callable[[str], bool],
    ) -> None:
        self.listing = listing
        self.own = own
        self.before = before
        self.results: dict[int, Hashed] = {}
        self.trees: dict[int, RawId | None] = {}
        self.waiting = 0
        self._fetch = fetch
        self._entries: dict[bytes, bytes] | None = None
        self._decoded = False
        self._git: dict[bytes, bytes] | None = None
        self._held = held
        self._modes: list[int] | None = None
        self.same = before is not None and self._is_same(before) and self._large_are_held()
        if self.same and before is not None:
            self.directories: tuple[int, ...] = before.directories
        else:
            modes = enumerate(self.modes())
            self.directories = tuple([index for index, mode in modes if stat.S_ISDIR(mode)])
        self.waiting = len(self.directories)

    def _is_same(self, before: Remembered) -> bool:
        listing = self.listing
        rows, here = before.rows, listing.rows
        if rows is here and listing.known:
            return True
        if not listing.known and before.names != b"/".join(listing.names):
            return False
        if len(rows) != len(here):
            return False
        if rows == here:
            return True
        size = ROW.size
        skipped = 0
        for index in before.directories:
            start = index * size
            if rows[skipped:start] != here[skipped:start]:
                return False
            if not stat.S_ISDIR(ROW.unpack_from(here, start)[5]):
                return False
            skipped = start + size
        return rows[skipped:] == here[skipped:]

    def _large_are_held(self) -> bool:
        """Say whether the large files, which lie in files of their own beside the index, are all there."""
        if self.before is not None and not self.before.large:
            return True
        large = [n for n, row in enumerate(ROW.iter_unpack(self.listing.rows)) if row[2] > SMALL_BYTES]
        names = self.listing.names
        rows = self.listing.rows
        files = [n for n in large if stat.S_ISREG(ROW.unpack_from(rows, n * ROW.size)[5])]
        return all(self.reused(names[index]) is not None for index in files)

    def modes(self) -> list[int]:
        """Return the mode of each member."""
        if self._modes is None:
            self._modes = [row[5] for row in ROW.iter_unpack(self.listing.rows)]
        return self._modes

    def jobs(self) -> Iterator[tuple[int, bytes]]:
        """Yield position and packed row of the files that have to be read."""
        if self.same:
            return
        size = ROW.size
        here, names, old = self.listing.rows, self.listing.names, self._old_rows()
        for index, mode in enumerate(self.modes()):
            if stat.S_ISREG(mode):
                row = here[index * size : (index + 1) * size]
                if not old or old.get(names[index]) != row or self.reused(names[index]) is None:
                    yield index, row

    def _old_rows(self) -> dict[bytes, bytes]:
        before = self.before
        if before is None:
            return {}
        size = ROW.size
        names = before.names.split(b"/") if before.names else []
        return {name: before.rows[i * size : (i + 1) * size] for i, name in enumerate(names)}

    def reused(self, name: bytes) -> bytes | None:
        """Return the remembered entry of a file that has one, as canonical bytes.

        Ask only for files that did not change.
        """
        if self._entries is None:
            self._entries = self._remembered(_plain_entries)
        entry = self._entries.get(name)
        if entry is None and not self._decoded:
            self._decoded = True
            self._entries |= self._remembered(_all_entries)
            entry = self._entries.get(name)
        if entry is not None and self.before is not None and self.before.large:
            large = canon.decode(entry, TreeEntry, "tree entry", bounded=True)
            if (large.size_bytes or 0) > SMALL_BYTES and not self._held(large.blake3 or ""):
                return None
        return entry

    def _remembered(self, read: Callable[[Fetch, RawId], dict[bytes, bytes]]) -> dict[bytes, bytes]:
        if self.before is None:
            return {}
        try:
            return read(self._fetch, self.before.tree)
        except (NotFoundError, IntegrityError):
            return {}

    def git_id(self, name: bytes) -> bytes:
        """Return the remembered Git blob id of a member that was not read again, or zeros."""
        if self._git is None:
            before = self.before
            names = before.names.split(b"/") if before is not None and before.git else []
            ids = before.git if before is not None else b""
            self._git = {member: ids[i * 20 : i * 20 + 20] for i, member in enumerate(names)}
        return self._git.get(name, bytes(20))

    def unchanged(self) -> RawId | None:
        """Return the remembered tree, if nothing in the directory or below changed."""
        if not self.same or self.before is None:
            return None
        below = [self.trees.get(index) for index in self.directories]
        if None in below or b"".join([tree or b"" for tree in below]) != self.before.below:
            return None
        return self.before.tree


def _plain_entries(fetch: Fetch, tree: RawId) -> dict[bytes, bytes]:
    """Return most of the whole files of a directory without decoding any."""
    found: dict[bytes, bytes] = {}
    for leaf in merkle.leaves_of(fetch, tree):
        found |= whole_files(leaf)
    return found


def _all_entries(fetch: Fetch, tree: RawId) -> dict[bytes, bytes]:
    """Return all whole files of a directory."""
    entries = merkle.entries_of(fetch, tree)
    whole = [entry for entry in entries if entry.blake3 is not None and entry.state is None]
    return {entry.raw_name(): canon.encode(entry, bounded=True) for entry in whole}
