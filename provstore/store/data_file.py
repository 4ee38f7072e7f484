"""Is ``data.mdb`` an index file that can be mapped? Asked before LMDB sees it, by reading alone.

LMDB maps the file and trusts it: a page beyond its end is a SIGBUS. So the two meta pages are read first
(layout: ``mdb.c`` of LMDB 0.9, structures MDB_page, MDB_meta and MDB_db, 64-bit), and the file must be as
long as they say. A file that is shorter is walked: pages that are free may lie beyond the end.
"""

import os
import struct
import sys
import time
from typing import Final, NamedTuple

from provstore.errors import NotAStoreError, StoreDamagedError
from provstore.paths import show
from provstore.store.system import refused

_PAGE: Final = struct.Struct("=QHHHH")
_META: Final = struct.Struct("=IIQQ")
_DB: Final = struct.Struct("=IHHQQQQQ")
_TAIL: Final = struct.Struct("=QQ")
_NODE: Final = struct.Struct("=HHHH")
_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_META_PAGE: Final = 0x08
_LEAF2: Final = 0x20
_BIG: Final = 0x01
_SUBTREE: Final = 0x02
_NO_PAGE: Final = (1 << 64) - 1
_SIZES: Final = frozenset(1 << bits for bits in range(9, 16))


class _Meta(NamedTuple):
    page_bytes: int
    roots: tuple[int, int]
    last_page: int
    transaction: int


def _meta(page: bytes, path: str) -> _Meta:
    if len(page) < _PAGE.size + _META.size + 2 * _DB.size + _TAIL.size:
        raise StoreDamagedError(path, "data.mdb is cut short")
    flags = _PAGE.unpack_from(page)[2]
    magic, version, _, _ = _META.unpack_from(page, _PAGE.size)
    if magic != _MAGIC or not flags & _META_PAGE:
        raise NotAStoreError(path, "data.mdb is no LMDB file")
    if version != _VERSION:
        raise NotAStoreError(path, f"data.mdb has LMDB data format {version}, known is {_VERSION}")
    at = _PAGE.size + _META.size
    free = _DB.unpack_from(page, at)
    main = _DB.unpack_from(page, at + _DB.size)
    last_page, transaction = _TAIL.unpack_from(page, at + 2 * _DB.size)
    if free[0] not in _SIZES:
        raise StoreDamagedError(path, f"data.mdb states a page size of {free[0]} bytes")
    return _Meta(free[0], (free[7], main[7]), last_page, transaction)


def _newest(number: int, path: str) -> _Meta:
    first = _meta(os.pread(number, 512, 0), path)
    second = _meta(os.pread(number, 512, first.page_bytes), path)
    if second.page_bytes != first.page_bytes:
        raise StoreDamagedError(path, "the two meta pages of data.mdb state different page sizes")
    return max(first, second, key=lambda meta: meta.transaction)


def check(directory: str, attempts: int = 3) -> None:
    """Check that the index of a store can be opened. Never call it while this process has it open.

    Args:
        directory: the store.
        attempts: looks at a file that is too short, since a writer may be making it longer just now.

    Raises:
        NotAStoreError: no data.mdb, or it is another kind of file.
        StoreDamagedError: cut short, or its meta pages are not sound.
        InputOutputError: the system refused to read it.
    """
    shown = show(directory)
    try:
        number = os.open(os.path.join(directory, "data.mdb"), os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise NotAStoreError(shown, "there is no data.mdb in it") from None
    except OSError as error:
        raise refused(error, shown) from error
    try:
        for attempt in range(attempts):
            meta = _newest(number, shown)
            length = os.fstat(number).st_size
            if length >= (meta.last_page + 1) * meta.page_bytes:
                return
            if attempt + 1 < attempts:
                time.sleep(0.05)
        _Walk(number, meta.page_bytes, length // meta.page_bytes, shown).walk(meta.roots)
    except OSError as error:
        raise refused(error, shown) from error
    finally:
        os.close(number)


class _Walk:
    """Visits every page in use and refuses one that is not wholly inside the file."""

    def __init__(self, number: int, page_bytes: int, pages: int, path: str) -> None:
        self._number = number
        self._page_bytes = page_bytes
        self._pages = pages
        self._path = path
        self._seen: set[int] = set()

    def walk(self, roots: tuple[int, int]) -> None:
        todo = [root for root in roots if root != _NO_PAGE]
        while todo:
            page = self._page(todo.pop())
            try:
                todo += self._children(page)
            except struct.error:
                raise StoreDamagedError(self._path, "a page of data.mdb has nodes beyond its end") from None

    def _page(self, page: int) -> bytes:
        if page in self._seen:
            raise StoreDamagedError(self._path, f"page {page} of data.mdb is in use twice")
        self._inside(page)
        self._seen.add(page)
        return os.pread(self._number, self._page_bytes, page * self._page_bytes)

    def _children(self, page: bytes) -> list[int]:
        _, _, flags, lower, _ = _PAGE.unpack_from(page)
        if flags & _LEAF2:
            return []
        found: list[int] = []
        for at in range(_PAGE.size, min(lower, len(page) - 1), 2):
            position = int.from_bytes(page[at : at + 2], sys.byteorder)
            low, high, node_flags, key_bytes = _NODE.unpack_from(page, position)
            data = position + _NODE.size + key_bytes
            if flags & _BRANCH:
                found.append(low | high << 16 | node_flags << 32)
            elif flags & _LEAF and node_flags & _BIG:
                self._overflow(int.from_bytes(page[data : data + 8], sys.byteorder), low, high)
            elif flags & _LEAF and node_flags & _SUBTREE:
                found.append(_DB.unpack_from(page, data)[7])
        return [page for page in found if page != _NO_PAGE]

    def _overflow(self, first: int, low: int, high: int) -> None:
        size = low | high << 16
        last = first + (_PAGE.size + size + self._page_bytes - 1) // self._page_bytes - 1
        self._inside(last)

    def _inside(self, page: int) -> None:
        if page >= self._pages:
            raise StoreDamagedError(
                self._path, f"data.mdb is cut short: page {page} is in use, the file has {self._pages}"
            )
