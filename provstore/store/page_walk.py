"""Every page of an index that LMDB would follow, checked by reading alone.

LMDB trusts what it maps: a node that points outside its page, or to a page behind the end of the file, is
read all the same, and the process dies of a signal. This walk refuses such a file first. Layout: ``mdb.c``
of LMDB 0.9, 64-bit (MDB_page, MDB_db, MDB_node).
"""

import os
import struct
import sys
from typing import Final, NamedTuple

from provstore.errors import StoreDamagedError

PAGE_HEADER: Final = struct.Struct("=QHHHH")
DB: Final = struct.Struct("=IHHQQQQQ")
_OVERFLOW_HEADER: Final = struct.Struct("=QHHI")
NO_PAGE: Final = (1 << 64) - 1

_NODE: Final = struct.Struct("=HHHH")
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_OVERFLOW: Final = 0x04
_LEAF2: Final = 0x20
_SUBPAGE: Final = 0x40
_DIRTY: Final = 0x10
_BIG: Final = 0x01
_SUBTREE: Final = 0x02
_DUPLICATES: Final = 0x04
_MOST_KEY_BYTES: Final = 511
_DEEPEST: Final = 31


def read_at(number: int, size: int, position: int) -> bytes:
    """Return ``size`` bytes of an open file, fewer only at its end."""
    data = b""
    while len(data) < size:
        more = os.pread(number, size - len(data), position + len(data))
        if not more:
            break
        data = data + more if data else more
    return data


class Tree(NamedTuple):
    """A tree of pages, as its parent or a meta page describes it (MDB_db)."""

    pad: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class Shape(NamedTuple):
    """Of the file: who walks it needs these.

    Attributes:
        number: descriptor, open for reading.
        page_bytes: size of a page.
        pages: whole pages in the file.
        last_page: last page that the newest meta page admits.
    """

    number: int
    page_bytes: int
    pages: int
    last_page: int


class Walk:
    """Visits every page in use, and refuses the file at the first one that LMDB must not see.

    Inside, ``inner`` receives the trees that a tree names; None says that it is the list of free pages.
    """

    def __init__(self, shape: Shape, path: str) -> None:
        self._shape = shape
        self._path = path
        self._seen: set[int] = set()
        self._long: list[tuple[int, int]] = []
        self._free: list[int] = []

    def refuse(self, page: int, what: str) -> StoreDamagedError:
        """Return the error for a page."""
        return StoreDamagedError(self._path, f"page {page} of data.mdb {what}")

    def cost(self, main: Tree) -> int:
        """Return how many pages a walk from the main tree has to read.

        Raises:
            StoreDamagedError: the main tree itself is damaged.
        """
        trees: list[Tree] = []
        self._tree(main, trees)
        self._seen.clear()
        self._long.clear()
        return sum(tree.branch_pages + tree.leaf_pages for tree in trees)

    def walk(self, free: Tree, main: Tree) -> None:
        """Check everything.

        Raises:
            StoreDamagedError: says which page, and what is wrong with it.
            OSError: the file cannot be read.
        """
        self._tree(free, None)
        todo = [main]
        while todo:
            inner: list[Tree] = []
            self._tree(todo.pop(), inner)
            todo += inner
        self._check_free()

    # -- trees -------------------------------------------------------------------------------------

    def _tree(self, tree: Tree, inner: list[Tree] | None) -> None:
        if tree.root == NO_PAGE:
            if tree.entries:
                raise StoreDamagedError(
                    self._path, f"an empty tree of data.mdb states {tree.entries} entries"
                )
            return
        counted = [0, 0]  # nodes, and those among them that hold duplicates
        level = [tree.root]
        for _ in range(_DEEPEST):
            level = [child for page in level for child in self._visit(page, tree, inner, counted)]
            if not level:
                break
        else:
            raise self.refuse(tree.root, "is the root of a tree that is too deep")
        # Pages are not counted, nor duplicates: LMDB itself is not exact about them.
        if not counted[1] and not tree.pad and counted[0] != tree.entries:
            raise self.refuse(tree.root, f"is the root of {counted[0]} entries, not {tree.entries}")

    def _visit(self, page: int, tree: Tree, inner: list[Tree] | None, counted: list[int]) -> list[int]:
        data = self._page(page)
        number, pad, flags, lower, upper = PAGE_HEADER.unpack_from(data)
        flags &= ~_DIRTY
        if number != page:
            raise self.refuse(page, f"says that it is page {number}")
        if not 16 <= lower <= upper <= len(data) or lower % 2:
            raise self.refuse(page, f"states its bounds as {lower} and {upper}")
        if flags == _BRANCH:
            return self._branch(page, data, lower, upper)
        if flags == _LEAF | _LEAF2:
            keys = (lower - 16) // 2
            if pad != tree.pad or not pad or 16 + keys * pad > len(data):
                raise self.refuse(page, f"states {keys} values of {pad} bytes")
            counted[0] += keys
        elif flags == _LEAF:
            self._leaf(page, data, (lower, upper), inner, counted)
        else:
            raise self.refuse(page, f"has flags {flags:#x}")
        return []

    def _branch(self, page: int, data: bytes, lower: int, upper: int) -> list[int]:
        found = []
        size = len(data)
        for at in _positions(data, lower):
            if not upper <= at <= size - 8:
                raise self.refuse(page, f"has a node at byte {at}")
            low, high, top, key_bytes = _NODE.unpack_from(data, at)
            if at + 8 + key_bytes > size or key_bytes > _MOST_KEY_BYTES:
                raise self.refuse(page, f"has a key of {key_bytes} bytes at byte {at}")
            found.append(low | high << 16 | top << 32)
        if len(found) < 2:
            raise self.refuse(page, "is a branch without branches")
        return found

    def _leaf(
        self,
        page: int,
        data: bytes,
        bounds: tuple[int, int],
        inner: list[Tree] | None,
        counted: list[int],
    ) -> None:
        size = len(data)
        unpack = _NODE.unpack_from
        upper = bounds[1]
        for at in _positions(data, bounds[0]):
            if not upper <= at <= size - 8:
                raise self.refuse(page, f"has a node at byte {at}")
            low, high, flags, key_bytes = unpack(data, at)
            start = at + 8 + key_bytes
            length = low | high << 16
            if start + (8 if flags & _BIG else length) > size or not 0 < key_bytes <= _MOST_KEY_BYTES:
                raise self.refuse(page, f"has a node of {key_bytes} and {length} bytes at byte {at}")
            counted[0] += 1
            if flags:
                self._special(page, data[start : start + length], (flags, length), inner, counted)
            if inner is None:
                self._note_free(page, data, start, length, flags)
        if bounds[0] == 16:
            raise self.refuse(page, "is a leaf without nodes")

    def _special(
        self, page: int, data: bytes, node: tuple[int, int], inner: list[Tree] | None, counted: list[int]
    ) -> None:
        flags, length = node
        if flags == _BIG:
            self._overflow(page, int.from_bytes(data[:8], sys.byteorder), length)
        elif flags & _SUBTREE and not flags & ~(_SUBTREE | _DUPLICATES) and inner is not None:
            if length != DB.size:
                raise self.refuse(page, f"describes a tree in {length} bytes")
            tree = Tree(*DB.unpack(data))
            inner.append(tree)
            counted[1] += bool(flags & _DUPLICATES)
        elif flags == _DUPLICATES:
            counted[1] += 1
            self._subpage(page, data)
        else:
            raise self.refuse(page, f"has a node with flags {flags:#x}")

    def _subpage(self, page: int, data: bytes) -> None:
        if len(data) < 16:
            raise self.refuse(page, "holds a page that is cut short")
        _, pad, flags, lower, upper = PAGE_HEADER.unpack_from(data)
        keys = (lower - 16) // 2
        sound = 16 <= lower <= upper <= len(data) and not lower % 2
        if (
            not sound
            or flags & ~_DIRTY != _LEAF | _LEAF2 | _SUBPAGE
            or not pad
            or 16 + keys * pad > len(data)
        ):
            raise self.refuse(page, "holds a page with values beyond its end")

    # -- pages -------------------------------------------------------------------------------------

    def _page(self, page: int) -> bytes:
        if page in self._seen:
            raise self.refuse(page, "is in use twice")
        self._inside(page)
        self._seen.add(page)
        size = self._shape.page_bytes
        data = read_at(self._shape.number, size, page * size)
        if len(data) != size:
            raise self.refuse(page, "is cut short")
        return data

    def _inside(self, page: int) -> None:
        if page >= self._shape.pages:
            raise StoreDamagedError(
                self._path, f"data.mdb is cut short: page {page} is in use, the file has {self._shape.pages}"
            )
        if not 2 <= page <= self._shape.last_page:
            raise self.refuse(page, f"is in use, the last one is {self._shape.last_page}")

    def _overflow(self, page: int, first: int, size: int) -> None:
        pages = (PAGE_HEADER.size + size + self._shape.page_bytes - 1) // self._shape.page_bytes
        self._inside(first)
        self._inside(first + pages - 1)
        header = read_at(self._shape.number, 16, first * self._shape.page_bytes)
        number, _, flags = struct.unpack_from("=QHH", header)
        if (
            number != first
            or flags & ~_DIRTY != _OVERFLOW
            or struct.unpack_from("=I", header, 12)[0] != pages
        ):
            raise self.refuse(first, f"is no beginning of {pages} pages, which page {page} names")
        self._long.append((first, first + pages))

    # -- the list of free pages --------------------------------------------------------------------

    def _note_free(self, page: int, data: bytes, start: int, length: int, flags: int) -> None:
        if flags & _BIG:
            first = int.from_bytes(data[start : start + 8], sys.byteorder)
            value = read_at(self._shape.number, length, first * self._shape.page_bytes + 16)
        else:
            value = data[start : start + length]
        numbers = struct.unpack(f"={len(value) // 8}Q", value[: len(value) // 8 * 8])
        if not numbers or numbers[0] != len(numbers) - 1 or len(value) % 8:
            raise self.refuse(page, "holds a list of free pages that is cut short")
        self._free += numbers[1:]

    def _check_free(self) -> None:
        used = set(self._seen)
        for first, end in self._long:
            used.update(range(first, end))
        if len(used) != len(self._seen) + sum(end - first for first, end in self._long):
            raise StoreDamagedError(self._path, "pages of data.mdb are in use twice")
        wrong = used.intersection(self._free)
        wrong.update(page for page in self._free if not 2 <= page <= self._shape.last_page)
        if wrong:
            raise self.refuse(min(wrong), "is listed as free, but is in use or does not exist")


def _positions(data: bytes, lower: int) -> tuple[int, ...]:
    return struct.unpack_from(f"={(lower - 16) // 2}H", data, 16)
