"""What each byte of an index is for: found by reading the file alone, apart from the code under test.

Live bytes are followed by LMDB or belong to a value; all others are read by nobody.
"""

import struct
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = 4096

META = "meta page"
"""Bytes of the two meta pages that mean something."""

STRUCTURE = "structure"
"""Headers, pointers and branches; the databases of names and of free pages."""

ROW = "row"
"""Keys and values of objects, records, refs, their log, locations and verdicts."""

LOOKUP = "look-up"
"""Rows of the look-ups by other digests; the row of the object decides."""

SETTING = "setting"
"""Settings and marks of checks."""

FRAME = "stored frame"
"""Bytes of a frame."""

CACHE = "stat cache"
"""Bytes of a value of the stat cache: what is damaged there counts as not remembered."""

IDLE = "spare bytes of a node or header"
"""Padding, and fields that LMDB writes and never reads."""

FREE = "free page"
GAP = "unused space of a page"

DEAD: Final = frozenset({IDLE, FREE, GAP})
"""Kinds of bytes that belong to no object, record, ref or place of any."""

_KINDS: Final = (FREE, GAP, IDLE, META, STRUCTURE, ROW, LOOKUP, SETTING, FRAME, CACHE)
_KIND_OF: Final = {
    b"frames": FRAME,
    b"stat_cache": CACHE,
    b"by_sha256": LOOKUP,
    b"by_git": LOOKUP,
    b"settings": SETTING,
    b"checked": SETTING,
}
_HEADER: Final = struct.Struct("=QHHHH")
_NO_PAGE: Final = (1 << 64) - 1


class _Tree(NamedTuple):
    root: int
    kind: str
    names_trees: bool


class Regions:
    """A map of one index file.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        self._map = bytearray(len(self._data))  # all of it free, until found to be something else
        newest = max((0, 1), key=lambda page: struct.unpack_from("=Q", self._data, page * PAGE + 144)[0])
        for page in (0, 1):
            self._mark(page * PAGE, PAGE, GAP)
            self._mark(page * PAGE, 152, META)
        at = newest * PAGE + 40
        roots = [struct.unpack_from("=Q", self._data, at + 48 * tree + 40)[0] for tree in (0, 1)]
        todo = [_Tree(roots[0], STRUCTURE, False), _Tree(roots[1], STRUCTURE, True)]
        while todo:
            todo += self._walk(todo.pop())

    def kind(self, at: int) -> str:
        """Return what a byte is for."""
        return _KINDS[self._map[at]]

    def _mark(self, start: int, length: int, kind: str) -> None:
        end = min(start + length, len(self._map))
        self._map[start:end] = bytes((_KINDS.index(kind),)) * (end - start)

    def _walk(self, tree: _Tree) -> list[_Tree]:
        found: list[_Tree] = []
        pages = [] if tree.root == _NO_PAGE else [tree.root]
        while pages:
            start = pages.pop() * PAGE
            _, _, flags, lower, _ = _HEADER.unpack_from(self._data, start)
            self._mark(start, PAGE, GAP)
            self._mark(start, lower, STRUCTURE)
            if flags & 0x20:  # values of one width, one after the other
                width = struct.unpack_from("=H", self._data, start + 8)[0]
                self._mark(start + 16, (lower - 16) // 2 * width, tree.kind)
                continue
            self._mark(start + 8, 2, IDLE)
            for at in range(16, lower, 2):
                node = start + int.from_bytes(self._data[start + at : start + at + 2], "little")
                if flags & 0x01:
                    pages.append(self._branch(node))
                else:
                    self._leaf(node, tree, found)
        return found

    def _branch(self, node: int) -> int:
        low, high, top, key_bytes = struct.unpack_from("=HHHH", self._data, node)
        self._mark(node, 8 + key_bytes, STRUCTURE)
        return int(low | high << 16 | top << 32)

    def _leaf(self, node: int, tree: _Tree, found: list[_Tree]) -> None:
        low, high, flags, key_bytes = struct.unpack_from("=HHHH", self._data, node)
        length = low | high << 16
        value = node + 8 + key_bytes
        self._mark(node, 8, STRUCTURE)
        self._mark(node + 8, key_bytes, tree.kind)
        if flags & 0x01:
            self._mark(value, 8, STRUCTURE)
            first = int.from_bytes(self._data[value : value + 8], "little") * PAGE
            self._mark(first, -(-(16 + length) // PAGE) * PAGE, GAP)
            self._mark(first, 16, STRUCTURE)
            self._mark(first + 8, 2, IDLE)
            self._mark(first + 16, length, tree.kind)
            return
        self._mark(value, length, tree.kind)
        if flags & 0x02:
            name = self._data[node + 8 : value] if tree.names_trees else b""
            kind = _KIND_OF.get(name, ROW) if name else tree.kind
            self._mark(value, 48, STRUCTURE)
            self._mark(value + 6, 26, IDLE)  # depth and numbers of pages
            root = struct.unpack_from("=Q", self._data, value + 40)[0]
            found.append(_Tree(root, kind, False))
