"""The stat cache of one ingest: what is known of directories before, and what is noted of them after."""

from bisect import bisect_right
from collections.abc import Container, Mapping
from typing import Final

from blake3 import blake3

from provstore.files import cache_blocks, stat_cache
from provstore.files.cache_blocks import Block, order
from provstore.files.hashing import SMALL_BYTES
from provstore.files.outcome import Options
from provstore.files.plans import Plan
from provstore.files.root import ROW, Root
from provstore.files.stat_cache import Remembered
from provstore.ids import RawId
from provstore.paths import join
from provstore.store.protocol import Reader

KEPT_BLOCKS: Final = 64
"""Blocks of about 64 KiB that stay decoded until the walk ends, for changes in them."""


class Memory:
    """Recalls directories for a walk and notes what the seal made of them.

    Args:
        reader: the store behind the stage.
        options: those that shape a tree are part of every key.

    Attributes:
        walked_ns: wall clock before the walk began.
        values_read: values of the stat cache that were read so far.
    """

    def __init__(self, reader: Reader, options: Options) -> None:
        self.walked_ns = stat_cache.now_ns()
        self.values_read = 0
        self._reader = reader
        self._git = options.settings.git
        self._options = repr((options.exclude, options.keep, tuple(options.settings))).encode()
        self._list = b""
        self._blocks: list[Block] = []
        self._at = -1
        self._open: dict[bytes, Remembered] = {}
        self._kept: dict[int, dict[bytes, Remembered]] = {}
        self._gone: dict[int, set[bytes]] = {}
        self._noted: dict[bytes, Remembered] = {}
        self._recalled: Remembered | None = None
        self._root = b""
        self._partly: Container[bytes] = ()

    def begin(self, root: Root, partly: Container[bytes]) -> None:
        """Say where the walk begins, and which set will hold directories of which something is left out."""
        self._root = root.path
        self._partly = partly
        self._list = self.key(root.path, b"")

    def key(self, root: bytes, path: bytes) -> bytes:
        """Return the key of what is remembered of a path under these options."""
        return stat_cache.key(root, path, self._options)

    def recall(self, path: bytes) -> Remembered | None:
        """Return what is remembered of a directory; the walk asks in its own order, for each one once."""
        if self._at < 0:
            self._blocks = cache_blocks.decode_list(self._read(self._list))
            self._at = 0
            self._load()
        while self._at + 1 < len(self._blocks) and order(self._blocks[self._at + 1].first) <= order(path):
            self._next()
        self._recalled = self._open.pop(path, None)
        return self._recalled

    def take(self) -> Remembered | None:
        """Return what was recalled last."""
        return self._recalled

    def _read(self, key: bytes) -> bytes | None:
        self.values_read += 1
        return self._reader.cached(key)

    def _block_key(self, number: int) -> bytes:
        return blake3(self._list + number.to_bytes(4, "little")).digest(16)

    def _load(self) -> None:
        self._open = {}
        if self._at < len(self._blocks):
            number = self._blocks[self._at].number
            self._open = cache_blocks.decode(self._read(self._block_key(number)))
            if len(self._kept) < KEPT_BLOCKS:
                self._kept[number] = self._open.copy()

    def _next(self) -> None:
        """Go on to the next block; directories that the walk did not come by are there no more."""
        if self._open:
            self._gone[self._at] = set(self._open)
        self._at += 1
        self._load()

    def _block(self, number: int | None) -> dict[bytes, Remembered]:
        """Return all of a block as it was, from what the walk decoded if that is still here."""
        if number is None:
            return {}
        kept = self._kept.pop(number, None)
        return cache_blocks.decode(self._read(self._block_key(number))) if kept is None else kept

    def changes(self) -> dict[bytes, bytes | None]:
        """Return the values of the stat cache to set or remove after the walk."""
        while 0 <= self._at < len(self._blocks):
            self._next()
        starts = [order(block.first) for block in self._blocks]
        noted: dict[int, dict[bytes, Remembered]] = {at: {} for at in self._gone}
        for path, known in self._noted.items():
            noted.setdefault(max(0, bisect_right(starts, order(path)) - 1), {})[path] = known
        values: dict[bytes, bytes | None] = {}
        listed: list[Block] = []
        number = max((block.number for block in self._blocks), default=-1)
        for at in range(max(1, len(self._blocks))):
            if at not in noted:
                listed += self._blocks[at : at + 1]
                continue
            old = self._blocks[at].number if self._blocks else None
            kept = self._block(old)
            for path in self._gone.get(at, ()):
                kept.pop(path, None)
            for block in cache_blocks.cut(kept | noted[at]):
                if old is None:
                    number += 1
                listed.append(Block(number if old is None else old, next(iter(block))))
                values[self._block_key(listed[-1].number)] = cache_blocks.encode(block)
                old = None
            if old is not None:
                values[self._block_key(old)] = None
        if listed != self._blocks:
            values[self._list] = cache_blocks.encode_list(listed)
        return values

    def note(
        self, plan: Plan, tree: RawId, own_files: tuple[int, int], git_ids: Mapping[bytes, bytes]
    ) -> None:
        """Remember a directory.

        Args:
            plan: as it was read.
            tree: its tree.
            own_files: number and size of its own files.
            git_ids: Git blob ids by path, where they were asked for.
        """
        path, names = plan.listing.path, plan.listing.names
        ids = [git_ids.get(join(path, name)) or bytes(20) for name in names] if self._git else []
        remembered = Remembered(
            tree,
            self._own(plan),
            b"/".join(names),
            self._rows(plan),
            b"".join([plan.trees.get(index) or bytes(32) for index in plan.directories]),
            plan.directories,
            *own_files,
            b"".join(ids),
            sum(row[2] > SMALL_BYTES for row in ROW.iter_unpack(plan.listing.rows)),
        )
        if remembered != plan.before:
            self._noted[path] = remembered

    def _own(self, plan: Plan) -> bytes:
        """Return the row that vouches for a listing: none, where what is left out must be told each time."""
        if plan.listing.path in self._partly:
            return bytes(ROW.size)
        return stat_cache.trusted_rows(plan.own, self.walked_ns)

    def _rows(self, plan: Plan) -> bytes:
        """Return the rows to remember: blank for what must be read again next time."""
        rows = stat_cache.trusted_rows(plan.listing.rows, self.walked_ns)
        size = ROW.size
        fresh = [
            index
            for index, done in plan.results.items()
            if done.flags
            or not done.blake3
            or done.row != plan.listing.rows[index * size : (index + 1) * size]
        ]
        if not fresh:
            return rows
        kept = bytearray(rows)
        for index in fresh:
            kept[index * size : (index + 1) * size] = bytes(size)
        return bytes(kept)
