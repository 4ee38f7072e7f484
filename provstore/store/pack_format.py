"""The bytes of a pack file: header, index rows, roots, trailer. ``stores/LAYOUT.md`` has it in prose.

All integers are little-endian. Everything here is pure.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from provstore.errors import NewerFormatError, PackError
from provstore.ids import Digests, RawId
from provstore.store.runs import Laid, Piece

FORMAT: Final = 1
MAGIC: Final = b"provpack"
END_MAGIC: Final = b"kcapvorp"
HEADER: Final = struct.Struct("<8sII")
ROW: Final = struct.Struct("<32s32sQQIB3x")
ROOT: Final = struct.Struct("<32sH")
TRAILER: Final = struct.Struct("<QQQQ")
HASH_BYTES: Final = 32
TRAILER_BYTES: Final = TRAILER.size + HASH_BYTES + len(END_MAGIC)
NO_SHA256: Final = bytes(32)

RECORD: Final = 1
OBJECT: Final = 2
ABSENT: Final = 3

LARGE_FRAME_BYTES: Final = 4 << 20
"""Plain bytes of each frame of an object that has frames of its own."""

RECORD_FRAME_BYTES: Final = 128 << 10
"""Plain bytes after which a group of records is closed."""

MAX_NAME_BYTES: Final = 480

MAX_ROOTS_BYTES: Final = 16 << 20
"""Most bytes of all roots: they are read at once. Without names, some 490,000 packets."""


class PackRow(NamedTuple):
    """One record or object of a pack.

    Attributes:
        id: of the record or object.
        sha256: of an object; zeros for a record.
        size_bytes: plain length.
        position: of the first frame in the file; 0 if the bytes are not in the pack.
        offset_bytes: position inside the frame's plain bytes.
        kind: RECORD, OBJECT or ABSENT.
    """

    id: RawId
    sha256: bytes
    size_bytes: int
    position: int
    offset_bytes: int
    kind: int


class WholeFrame(NamedTuple):
    """A frame whose plain bytes are whole objects, one after the other.

    Attributes:
        position: of the frame in the file.
        members: what the index states of each object, in the order of their bytes.
    """

    position: int
    members: tuple[Digests, ...]


class Layout(NamedTuple):
    """Where the parts of a pack are, from its trailer; positions in bytes from the beginning."""

    index_position: int
    rows: int
    roots_position: int
    roots_count: int


def header() -> bytes:
    """Return the first bytes of a pack."""
    return HEADER.pack(MAGIC, FORMAT, 0)


def check_header(data: bytes, where: str) -> None:
    """Check the first bytes of a pack.

    Raises:
        PackError: it is no pack.
        NewerFormatError: a format or flag that this release does not know.
    """
    if len(data) < HEADER.size or data[: len(MAGIC)] != MAGIC:
        raise PackError(where, "it does not begin like a pack")
    _, number, flags = HEADER.unpack(data)
    if number != FORMAT or flags:
        raise NewerFormatError(
            where, f"provstore pack {number}" + (f" with flags {flags:#x}" if flags else "")
        )


def check_layout(trailer: bytes, size_bytes: int, where: str) -> Layout:
    """Return the layout that a trailer states, every number checked against the file's size.

    Raises:
        PackError: cut short, or positions that cannot be.
    """
    if len(trailer) != TRAILER_BYTES or trailer[-len(END_MAGIC) :] != END_MAGIC:
        raise PackError(where, f"it is cut short: no trailer at byte {max(0, size_bytes - TRAILER_BYTES)}")
    layout = Layout(*TRAILER.unpack_from(trailer))
    end = size_bytes - TRAILER_BYTES
    if layout.index_position < HEADER.size or layout.rows > end // ROW.size:
        raise PackError(
            where, f"its trailer states {layout.rows} rows at byte {layout.index_position} of {size_bytes}"
        )
    if layout.index_position + layout.rows * ROW.size != layout.roots_position or layout.roots_position > end:
        raise PackError(
            where, f"its index does not end at byte {layout.roots_position}, where its roots begin"
        )
    if end - layout.roots_position > MAX_ROOTS_BYTES:
        raise PackError(where, f"its trailer leaves {end - layout.roots_position} bytes for roots")
    if layout.roots_count > (end - layout.roots_position) // ROOT.size:
        raise PackError(where, f"its trailer states {layout.roots_count} roots, more than it has room for")
    return layout


def parse_roots(data: bytes, count: int, where: str) -> list[tuple[str, RawId]]:
    """Return name (empty for none) and packet of each root.

    Raises:
        PackError: cut short, not in order, or a name that is no UTF-8.
    """
    roots: list[tuple[str, RawId]] = []
    at = 0
    for _ in range(count):
        if at + ROOT.size > len(data):
            raise PackError(where, "its roots are cut short")
        id, length = ROOT.unpack_from(data, at)
        at += ROOT.size
        raw = data[at : at + length]
        at += length
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            raise PackError(where, "the name of a root is no UTF-8") from None
        if len(raw) != length or length > MAX_NAME_BYTES:
            raise PackError(where, "the name of a root is cut short or too long")
        roots.append((name, id))
    if at != len(data):
        raise PackError(where, f"{len(data) - at} bytes follow its roots")
    if roots != sorted(set(roots), key=lambda root: (root[0].encode(), root[1])):
        raise PackError(where, "its roots are not in order")
    return roots


def roots_bytes(roots: list[tuple[str, RawId]]) -> bytes:
    """Return the bytes of roots, which must be in order."""
    parts = []
    for name, id in roots:
        raw = name.encode()
        parts += [ROOT.pack(id, len(raw)), raw]
    return b"".join(parts)


def by_frame(rows: Iterable[PackRow]) -> Iterator[tuple[bytes, tuple[RawId, ...], tuple[RawId, ...]]]:
    """Yield the position of each frame as a key, and the objects and the records that begin in it."""
    order = struct.Struct(">QIB")
    places = [
        order.pack(row.position, row.offset_bytes, row.kind == RECORD) + row.id
        for row in rows
        if row.kind != ABSENT
    ]
    places.sort()
    for position, members in groupby(places, lambda place: place[:8]):
        found: tuple[list[RawId], list[RawId]] = ([], [])
        for member in members:
            found[member[order.size - 1]].append(member[order.size :])
        yield position, tuple(found[0]), tuple(found[1])


def laid(rows: Iterable[PackRow]) -> Laid:
    """Return where objects lie; those with frames of their own, or none, are left out."""
    small = [row for row in rows if row.kind == OBJECT and row.size_bytes < LARGE_FRAME_BYTES]
    small.sort(key=lambda row: (row.position, row.offset_bytes))
    runs = [
        (position.to_bytes(8, "big"), b"".join([ROW.pack(*row) for row in members]))
        for position, members in groupby(small, lambda row: row.position)
    ]
    return Laid({row.id: (row.sha256, row.size_bytes) for row in small}, runs)


def pieces(wanted: bytes, plain: bytes) -> Iterator[Piece]:
    """Yield objects out of the plain bytes of their frame."""
    for id, sha256, size, _, offset, _ in ROW.iter_unpack(wanted):
        yield Piece(id, sha256, size, plain[offset : offset + size])


_PLACE: Final = struct.Struct(">QIQ")


def whole_frames(rows: Iterable[PackRow]) -> Iterator[WholeFrame]:
    """Yield, in the order of the file, each frame that holds nothing but whole objects, by the index."""
    places = [
        _PLACE.pack(position, offset, size) + id + sha256
        for id, sha256, size, position, offset, kind in rows
        if kind == OBJECT
    ]
    places.sort()
    for key, members in groupby(places, lambda place: place[:8]):
        end = 0
        found = []
        for member in members:
            _, offset, size = _PLACE.unpack_from(member)
            if offset != end:
                break
            end += size
            ids = member[_PLACE.size :]
            found.append(Digests(ids[:32], ids[32:], size))
        else:
            yield WholeFrame(int.from_bytes(key, "big"), tuple(found))
