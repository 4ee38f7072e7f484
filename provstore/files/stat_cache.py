"""What a directory looked like when it was last sealed, so that an unchanged file is not read again.

One value a directory: its tree, and the packed signature of each member. One value a file that was named by
its own path: signature and entry. A file's signature is kept only
when it is older than the clock's grain at the time of the walk (Git's racy-timestamp rule): a file that
could still change without its times changing is read again next time. ``verify`` never looks here.
"""

import struct
import time
from typing import Final, NamedTuple

from blake3 import blake3

from provstore import canon
from provstore.files.root import ROW
from provstore.ids import RawId
from provstore.records.tree import TreeEntry

_HEAD: Final = struct.Struct("<BIIIIQ32s")
_VERSION: Final = 2
_FILE_VERSION: Final = 129
_BLANK: Final = bytes(ROW.size)
_ID_BYTES: Final = 32

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


def key(root: bytes, path: bytes, options: bytes) -> bytes:
    """Return the cache key of one directory under one set of options that shape its tree."""
    hasher = blake3(options)
    hasher.update(len(root).to_bytes(8, "little") + root + b"\0" + path)
    return hasher.digest(16)


def encode(remembered: Remembered) -> bytes:
    """Return the stored form."""
    places = remembered.directories
    head = _HEAD.pack(
        _VERSION,
        len(remembered.names),
        len(places),
        len(remembered.git),
        remembered.files,
        remembered.size_bytes,
        remembered.tree,
    )
    listed = struct.pack(f"<{len(places)}I", *places)
    parts = (
        head,
        remembered.own,
        listed,
        remembered.below,
        remembered.names,
        remembered.git,
        remembered.rows,
    )
    return b"".join(parts)


def decode(value: bytes | None) -> Remembered | None:
    """Return what was stored, or None for nothing, another version, or a wrong length."""
    if value is None or len(value) < _HEAD.size or value[0] != _VERSION:
        return None
    _, names, directories, git, files, size_bytes, tree = _HEAD.unpack_from(value)
    listed = _HEAD.size + ROW.size
    below = listed + 4 * directories
    first = below + _ID_BYTES * directories
    ids = first + names
    rows = ids + git
    if rows > len(value) or (len(value) - rows) % ROW.size:
        return None
    return Remembered(
        tree,
        value[_HEAD.size : listed],
        value[first:ids],
        value[rows:],
        value[below:first],
        struct.unpack_from(f"<{directories}I", value, listed),
        files,
        size_bytes,
        value[ids:rows],
    )


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
