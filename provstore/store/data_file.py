"""Is ``data.mdb`` an index file that can be mapped? Asked before LMDB sees it, by reading alone.

LMDB maps the file and trusts it: a page beyond its end is a SIGBUS. So the two meta pages are read first
(layout: ``mdb.c`` of LMDB 0.9, structures MDB_page, MDB_meta and MDB_db, 64-bit), and the file must be as
long as they say. The pages of a small index are all walked (:mod:`provstore.store.page_walk`), those of a
large one when that is asked for, and those of a file that is too short: free pages may lie beyond the end.
"""

import os
import struct
import time
from typing import Final, NamedTuple

from provstore.errors import NotAStoreError, StoreDamagedError
from provstore.paths import show
from provstore.store.page_walk import DB, PAGE_HEADER, Shape, Tree, Walk, read_at
from provstore.store.system import refused

SMALL_PAGES: Final = 512
"""Up to so many pages of keys and values an index is walked at every opening; that takes about 10 ms."""

_META: Final = struct.Struct("=IIQQ")
_TAIL: Final = struct.Struct("=QQ")
_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_META_PAGE: Final = 0x08
_SIZES: Final = frozenset(1 << bits for bits in range(9, 16))


class _Meta(NamedTuple):
    page_bytes: int
    free: Tree
    main: Tree
    last_page: int
    transaction: int


def _meta(page: bytes, path: str) -> _Meta:
    if len(page) < PAGE_HEADER.size + _META.size + 2 * DB.size + _TAIL.size:
        raise StoreDamagedError(path, "data.mdb is cut short")
    flags = PAGE_HEADER.unpack_from(page)[2]
    magic, version, _, _ = _META.unpack_from(page, PAGE_HEADER.size)
    if magic != _MAGIC or not flags & _META_PAGE:
        raise NotAStoreError(path, "data.mdb is no LMDB file")
    if version != _VERSION:
        raise NotAStoreError(path, f"data.mdb has LMDB data format {version}, known is {_VERSION}")
    at = PAGE_HEADER.size + _META.size
    free = Tree(*DB.unpack_from(page, at))
    main = Tree(*DB.unpack_from(page, at + DB.size))
    last_page, transaction = _TAIL.unpack_from(page, at + 2 * DB.size)
    if free.pad not in _SIZES:
        raise StoreDamagedError(path, f"data.mdb states a page size of {free.pad} bytes")
    return _Meta(free.pad, free, main, last_page, transaction)


def _newest(number: int, path: str) -> _Meta:
    first = _meta(read_at(number, 512, 0), path)
    second = _meta(read_at(number, 512, first.page_bytes), path)
    if second.page_bytes != first.page_bytes:
        raise StoreDamagedError(path, "the two meta pages of data.mdb state different page sizes")
    for place, meta in enumerate((first, second)):
        if meta.transaction % 2 != place and meta.transaction:
            raise StoreDamagedError(
                path, f"meta page {place} of data.mdb is of transaction {meta.transaction}"
            )
    if abs(first.transaction - second.transaction) > 1:
        raise StoreDamagedError(path, "the two meta pages of data.mdb do not follow each other")
    return max(first, second, key=lambda meta: meta.transaction)


def check(directory: str, thorough: bool = False, attempts: int = 3) -> None:
    """Check that the index of a store can be opened. Never call it while this process has it open.

    Args:
        directory: the store.
        thorough: walk all pages, however many there are.
        attempts: looks at a file that is too short, since a writer may be making it longer just now.

    Raises:
        NotAStoreError: no data.mdb, or it is another kind of file.
        StoreDamagedError: cut short, or pages that LMDB must not follow.
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
        while True:
            meta = _newest(number, shown)
            try:
                return _look(number, meta, shown, thorough)
            except StoreDamagedError:
                attempts -= 1
                short = os.fstat(number).st_size < (meta.last_page + 1) * meta.page_bytes
                # A snapshot that is no longer the newest may be written over while it is walked.
                moved = _newest(number, shown).transaction != meta.transaction
                if not moved and not (short and attempts):
                    raise
            time.sleep(0.05)
    except OSError as error:
        raise refused(error, shown) from error
    finally:
        os.close(number)


def _look(number: int, meta: _Meta, path: str, thorough: bool) -> None:
    pages = os.fstat(number).st_size // meta.page_bytes
    shape = Shape(number, meta.page_bytes, pages, meta.last_page)
    if thorough or pages <= meta.last_page or Walk(shape, path).cost(meta.main) <= SMALL_PAGES:
        Walk(shape, path).walk(meta.free, meta.main)
