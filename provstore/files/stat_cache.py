"""What a directory looked like when it was last sealed, so that an unchanged file is not read again.

One value a directory: its tree, and the packed signature of each member. One value a file that was named by
its own path: signature and entry. A file's signature is kept only
when it is older than the clock's grain at the time of the walk (Git's racy-timestamp rule): a file that
could still change without its times changing is read again next time. ``verify`` never looks here.
"""

import struct
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from blake3 import blake3

from provstore import canon
from provstore.files.walk import ROW, Listing
from provstore.ids import RawId
from provstore.records.tree import TreeEntry

_HEAD: Final = struct.Struct("<B16s32s")
_VERSION: Final = 1
_FILE_VERSION: Final = 129
_BLANK: Final = bytes(ROW.size)

_FINE_GRAIN_NS: Final = 50_000_000
_COARSE_GRAIN_NS: Final = 2_000_000_000


class Remembered(NamedTuple):
    """A directory as it was.

    Attributes:
        names: digest of its member names.
        tree: id of its tree record then.
        rows: packed rows in the order of names; all zero where the member must be read again.
    """

    names: bytes
    tree: RawId
    rows: bytes


def key(root: bytes, path: bytes, options: bytes) -> bytes:
    """Return the cache key of one directory under one set of options that shape its tree."""
    hasher = blake3(options)
    hasher.update(len(root).to_bytes(8, "little") + root + b"\0" + path)
    return hasher.digest(16)


def names_digest(names: Sequence[bytes]) -> bytes:
    """Return a digest of the names of a directory; a name cannot hold ``/``, so it separates them."""
    return blake3(b"/".join(names)).digest(16)


def encode(remembered: Remembered) -> bytes:
    """Return the stored form."""
    return _HEAD.pack(_VERSION, remembered.names, remembered.tree) + remembered.rows


def decode(value: bytes | None) -> Remembered | None:
    """Return what was stored, or None for nothing, another version, or a wrong length."""
    if value is None or len(value) < _HEAD.size or (len(value) - _HEAD.size) % ROW.size:
        return None
    version, names, tree = _HEAD.unpack_from(value)
    return Remembered(names, tree, value[_HEAD.size :]) if version == _VERSION else None


def encode_file(row: bytes, entry: TreeEntry) -> bytes:
    """Return the stored form of one file that was named by its own path."""
    return bytes((_FILE_VERSION,)) + row + canon.encode(entry)


def decode_file(value: bytes | None, row: bytes) -> TreeEntry | None:
    """Return the entry that was stored for a file if its signature is still ``row``, else None."""
    head = bytes((_FILE_VERSION,)) + row
    if value is None or not value.startswith(head):
        return None
    return canon.decode(value[len(head) :], TreeEntry, "stat cache")


def trusted_rows(listing: Listing, walked_ns: int) -> bytes:
    """Return the rows of a listing, with those blanked that are too fresh to be trusted.

    Args:
        listing: as the walk saw it.
        walked_ns: wall clock when the walk began.
    """
    parts = []
    size = ROW.size
    for start in range(0, len(listing.rows), size):
        _, _, _, mtime_ns, ctime_ns, _ = ROW.unpack_from(listing.rows, start)
        coarse = mtime_ns % 1_000_000_000 == 0 and ctime_ns % 1_000_000_000 == 0
        edge = walked_ns - (_COARSE_GRAIN_NS if coarse else _FINE_GRAIN_NS)
        parts.append(listing.rows[start : start + size] if max(mtime_ns, ctime_ns) < edge else _BLANK)
    return b"".join(parts)


def now_ns() -> int:
    """Return the wall clock in nanoseconds."""
    return time.time_ns()
