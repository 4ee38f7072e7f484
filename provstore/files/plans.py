"""What of one directory has to be read, and what its remembered form vouches for."""

import stat
from collections.abc import Iterator

from provstore import merkle
from provstore.files import stat_cache
from provstore.files.hashing import Job
from provstore.files.walk import ROW, Listing
from provstore.ids import RawId
from provstore.merkle import Fetch
from provstore.paths import join
from provstore.records.tree import TreeEntry


class Before:
    """A remembered directory, its entries decoded only when they are needed."""

    def __init__(self, value: stat_cache.Remembered, fetch: Fetch) -> None:
        self.value = value
        self._fetch = fetch

    def entries(self) -> dict[bytes, TreeEntry]:
        """Return its entries by name."""
        return {e.raw_name(): e for e in merkle.entries_of(self._fetch, self.value.tree)}


class Plan:
    """One directory: what has to be read and what is reused."""

    def __init__(self, listing: Listing, before: Before | None) -> None:
        self.listing = listing
        self.before = before
        self.reused: dict[bytes, TreeEntry] = {}
        self._entries: dict[bytes, TreeEntry] | None = None
        names_same = before is not None and before.value.names == stat_cache.names_digest(listing.names)
        self.same = before is not None and names_same and self._files_same(before.value.rows)
        if before is not None and not self.same:
            self._reuse(before)

    def _files_same(self, rows: bytes) -> bool:
        if rows == self.listing.rows:
            return True
        if len(rows) != len(self.listing.rows):
            return False
        size = ROW.size
        for start in range(0, len(rows), size):
            a, b = rows[start : start + size], self.listing.rows[start : start + size]
            if a != b and not (stat.S_ISDIR(ROW.unpack(a)[5]) and stat.S_ISDIR(ROW.unpack(b)[5])):
                return False
        return True

    def _reuse(self, before: Before) -> None:
        entries = self._entries = before.entries()
        names = sorted(entries)
        old = {name: before.value.rows[i * ROW.size : (i + 1) * ROW.size] for i, name in enumerate(names)}
        for index, name in enumerate(self.listing.names):
            row = self.listing.rows[index * ROW.size : (index + 1) * ROW.size]
            entry = entries.get(name)
            if entry is not None and entry.blake3 is not None and old.get(name) == row:
                self.reused[name] = entry

    def jobs(self) -> Iterator[Job]:
        """Yield the files that have to be read."""
        if self.same:
            return
        size = ROW.size
        for index, name in enumerate(self.listing.names):
            row = self.listing.rows[index * size : (index + 1) * size]
            mode = ROW.unpack(row)[5]
            if stat.S_ISREG(mode) and name not in self.reused:
                yield join(self.listing.path, name), row

    def unchanged(self, trees: dict[bytes, RawId]) -> RawId | None:
        """Return the remembered tree if the directories below kept theirs as well."""
        if not self.same or self.before is None:
            return None
        below = {
            name: trees.get(join(self.listing.path, name))
            for name, row in self.listing.members()
            if stat.S_ISDIR(row.mode)
        }
        if below:
            if self._entries is None:
                self._entries = self.before.entries()
            for name, tree in below.items():
                entry = self._entries[name]
                if tree is None or entry.tree != tree.hex():
                    self.reused = {n: e for n, e in self._entries.items() if e.blake3 is not None}
                    return None
        return self.before.value.tree
