"""What a directory looked like when it was last sealed, so that an unchanged file is not read again.

Of a directory: its tree, and the packed signature of each member; ``cache_blocks`` has the stored form. Of a
file that was named by its own path: signature and entry, a value each. A file's signature is kept only
when it is older than the clock's grain at the time of the walk (Git's racy-timestamp rule): a file that
could still change without its times changing is read again next time. ``verify`` never looks here.
"""

import time
from typing import Final, NamedTuple

from blake3 import blake3

from provstore import canon
from provstore.files.root import ROW
from provstore.ids import RawId
from provstore.records.tree import TreeEntry

_FILE_VERSION: Final = 129
_BLANK: Final = bytes(ROW.size)

_FINE_GRAIN_NS: Final = 50_000_000
_COARSE_GRAIN_NS: Final = 2_000_000_000
_SECOND_NS: Final = 1_000_000_000


class Remembered(NamedTuple):
    """A directory as it was.

    Attributes:
        tree: id of its tree record then.
        own: packed row of the directory itself; all zero where its listing must be made again.
        names: its member names, joined by ``/``.
        rows: packed rows in the order of names; all zero where the member must be read again.
        below: ids of the trees of its directories, joined, in the order of their names.
        directories: positions of its directories among the names.
        files: number of its own files.
        size_bytes: sum of their sizes.
        git: raw Git blob ids of 20 bytes in the order of names, where they were asked for; zero for what
            is no file.
        large: number of its members that are larger than what goes into frames.
    """

    tree: RawId
    own: bytes
    names: bytes
    rows: bytes
    below: bytes
    directories: tuple[int, ...]
    files: int
    size_bytes: int
    git: bytes = b""
    large: int = 0


def key(root: bytes, path: bytes, options: bytes) -> bytes:
    """Return the cache key of what lies at a path under one set of options that shape its tree."""
    hasher = blake3(options)
    hasher.update(len(root).to_bytes(8, "little") + root + b"\0" + path)
    return hasher.digest(16)


def encode_file(row: bytes, entry: TreeEntry) -> bytes:
    """Return the stored form of one file that was named by its own path."""
    return bytes((_FILE_VERSION,)) + row + canon.encode(entry)


def decode_file(value: bytes | None, row: bytes) -> TreeEntry | None:
    """Return the entry that was stored for a file if its signature is still ``row``, else None."""
    head = bytes((_FILE_VERSION,)) + row
    if value is None or not value.startswith(head):
        return None
    return canon.decode(value[len(head) :], TreeEntry, "stat cache")


def trusted_rows(rows: bytes, walked_ns: int) -> bytes:
    """Return packed rows, with those blanked that are too fresh to be trusted.

    Args:
        rows: packed rows as the walk saw them.
        walked_ns: wall clock when the walk began.
    """
    fine, coarse = walked_ns - _FINE_GRAIN_NS, walked_ns - _COARSE_GRAIN_NS
    racy = []
    for index, (_, _, _, mtime_ns, ctime_ns, _) in enumerate(ROW.iter_unpack(rows)):
        if mtime_ns < coarse and ctime_ns < coarse:
            continue
        whole_seconds = mtime_ns % _SECOND_NS == 0 and ctime_ns % _SECOND_NS == 0
        if whole_seconds or mtime_ns >= fine or ctime_ns >= fine:
            racy.append(index)
    if not racy:
        return rows
    kept = bytearray(rows)
    for index in racy:
        kept[index * ROW.size : (index + 1) * ROW.size] = _BLANK
    return bytes(kept)


def now_ns() -> int:
    """Return the wall clock in nanoseconds."""
    return time.time_ns()
