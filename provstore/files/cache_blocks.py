"""How directories are stored in the stat cache: many to a value, in the order of a walk, packed closely.

A value a directory would cost a look-up each, and signatures of one directory alone do not pack: devices,
modes and the high bytes of times are the same all over a tree. So a tree is cut into blocks of about
:data:`BLOCK_BYTES`, whose numbers and first paths stand in a value of their own, the list. A seal reads the
blocks one after the other as its walk comes to them, and writes those in which something changed.
"""

import io
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from provstore.errors import FrameError
from provstore.files.root import ROW
from provstore.files.stat_cache import Remembered
from provstore.store import frame

BLOCK_BYTES: Final = 64 << 10
"""Plain bytes at which a block ends; one directory is never cut."""

MAX_BLOCK_BYTES: Final = 256 << 20
"""A directory that takes more is not remembered, and more is never unpacked."""

_BLOCK_VERSION: Final = 3
_LIST_VERSION: Final = 4
_LEVEL: Final = 1
_COUNT: Final = struct.Struct("<I")
_HEAD: Final = struct.Struct("<IIIIIIIQ32s")
_PLACE: Final = struct.Struct("<II")
_ID_BYTES: Final = 32


class Block(NamedTuple):
    """One block as the list states it: its number, and the path of its first directory."""

    number: int
    first: bytes


def order(path: bytes) -> bytes:
    r"""Return what paths are sorted by so that they come as a walk does: parents first, then by their names.

    Example:
        >>> sorted([b"a.b", b"a/c", b"a"], key=order)
        [b'a', b'a/c', b'a.b']
    """
    return path.replace(b"/", b"\0")


def encode_list(blocks: Iterable[Block]) -> bytes:
    """Return the stored form of the list of blocks."""
    parts = [_PLACE.pack(number, len(first)) + first for number, first in blocks]
    return _packed(_LIST_VERSION, b"".join(parts))


def decode_list(value: bytes | None) -> list[Block]:
    """Return the blocks in the order of their paths; none for nothing, another version or a damaged value."""
    plain = _plain(_LIST_VERSION, value)
    found = []
    at = 0
    while plain is not None and at + _PLACE.size <= len(plain):
        number, length = _PLACE.unpack_from(plain, at)
        at += _PLACE.size + length
        found.append(Block(number, plain[at - length : at]))
    if plain is None or at != len(plain):
        return []
    return sorted(found, key=lambda block: order(block.first))


def encode(directories: Mapping[bytes, Remembered]) -> bytes:
    """Return the stored form of a block.

    Args:
        directories: by their paths.
    """
    heads, listed = [], []
    for path, known in directories.items():
        places = known.directories
        heads.append(
            _HEAD.pack(
                len(path),
                len(known.names),
                len(known.rows) // ROW.size,
                len(places),
                len(known.git),
                known.files,
                known.large,
                known.size_bytes,
                known.tree,
            )
        )
        listed.append(struct.pack(f"<{len(places)}I", *places))
    values = directories.values()
    columns = _columns(b"".join([part for known in values for part in (known.own, known.rows)]))
    ids, git = [known.below for known in values], [known.git for known in values]
    names = [known.names for known in values]
    parts = (_COUNT.pack(len(heads)), *heads, *directories, *names, *listed, *ids, *git, *columns)
    return _packed(_BLOCK_VERSION, b"".join(parts))


def decode(value: bytes | None) -> dict[bytes, Remembered]:
    """Return the directories of a block by their paths; none for what is no block of ours."""
    plain = _plain(_BLOCK_VERSION, value)
    if plain is None or len(plain) < _COUNT.size:
        return {}
    (count,) = _COUNT.unpack_from(plain)
    at = _COUNT.size + count * _HEAD.size
    if at > len(plain):
        return {}
    heads = list(_HEAD.iter_unpack(plain[_COUNT.size : at]))
    sums = [sum(column) for column in zip(*[head[:5] for head in heads], strict=True)] or [0] * 5
    paths = at
    names = paths + sums[0]
    listed = names + sums[1]
    below = listed + 4 * sums[3]
    git = below + _ID_BYTES * sums[3]
    rows = git + sums[4]
    if len(plain) != rows + (count + sums[2]) * ROW.size:
        return {}
    members = _rows(plain[rows:])
    rows = 0
    found = {}
    for path, name, row, places, ids, files, large, size_bytes, tree in heads:
        own, end = rows + ROW.size, rows + ROW.size * (1 + row)
        joined = plain[names : names + name]
        of_trees = struct.unpack_from(f"<{places}I", plain, listed) if places else ()
        if joined.count(b"/") + (name > 0) != row or (places and max(of_trees) >= row):
            return {}
        found[plain[paths : paths + path]] = Remembered(
            tree,
            members[rows:own],
            joined,
            members[own:end],
            plain[below : below + _ID_BYTES * places],
            of_trees,
            files,
            size_bytes,
            plain[git : git + ids],
            large,
        )
        paths, names, listed, rows = paths + path, names + name, listed + 4 * places, end
        below, git = below + _ID_BYTES * places, git + ids
    return found


def cut(directories: Mapping[bytes, Remembered]) -> Iterator[dict[bytes, Remembered]]:
    """Yield directories in the order of a walk, as many together as belong into one block."""
    block: dict[bytes, Remembered] = {}
    size = 0
    for path in sorted(directories, key=order):
        known = directories[path]
        own = plain_bytes(path, known)
        if own > MAX_BLOCK_BYTES:
            continue
        if block and size + own > BLOCK_BYTES:
            yield block
            block, size = {}, 0
        block[path] = known
        size += own
    if block:
        yield block


def plain_bytes(path: bytes, known: Remembered) -> int:
    """Return how many bytes a directory takes in a block before it is packed."""
    places = len(known.directories)
    variable = len(path) + len(known.names) + len(known.git) + len(known.rows)
    return _HEAD.size + ROW.size + variable + (4 + _ID_BYTES) * places


def _columns(rows: bytes) -> list[bytes]:
    """Return the first byte of every row, then the second, and so on: alike bytes come together."""
    return [rows[column :: ROW.size] for column in range(ROW.size)]


def _rows(columns: bytes) -> bytes:
    """Undo :func:`_columns`."""
    count = len(columns) // ROW.size
    rows = bytearray(len(columns))
    for column in range(ROW.size):
        rows[column :: ROW.size] = columns[column * count : (column + 1) * count]
    return bytes(rows)


def _packed(version: int, plain: bytes) -> bytes:
    pieces = [plain[at : at + frame.MAX_PLAIN] for at in range(0, len(plain), frame.MAX_PLAIN)]
    return bytes((version,)) + b"".join([frame.pack([piece], _LEVEL) for piece in pieces])


def _plain(version: int, value: bytes | None) -> bytes | None:
    if not value or value[0] != version:
        return None
    pieces = []
    left = MAX_BLOCK_BYTES + frame.MAX_PLAIN
    try:
        for piece in frame.read_frames(io.BytesIO(value[1:]), where="stat cache"):
            pieces.append(piece)
            left -= len(piece)
            if left < 0:
                return None
    except FrameError:
        return None
    return b"".join(pieces)
