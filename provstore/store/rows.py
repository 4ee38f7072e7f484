"""Keys and values of the index as bytes: the code side of ``stores/LAYOUT.md``. No I/O.

Integers are little-endian inside values and big-endian in keys, so that keys sort by number.
"""

import struct
from typing import Final, NamedTuple

from blake3 import blake3

from provstore.errors import StoreDamagedError
from provstore.ids import RawId
from provstore.paths import show
from provstore.store.frame import MAX_PLAIN
from provstore.store.protocol import Location, ObjectInfo, Placement, RefChange, StatSignature

FORMAT: Final = 1
"""Format number of a new index, in ``settings``."""

LEDGER_FORMAT: Final = 2
"""Format number from the first entry of a ledger on: a release that knows no ledger would sweep it."""

INLINE: Final = 1
BLOB_RAW: Final = 2
BLOB_FRAMED: Final = 3
EXTERNAL: Final = 4

_PLACEMENTS: Final[dict[int, Placement]] = {
    INLINE: "inline",
    BLOB_RAW: "blob",
    BLOB_FRAMED: "blob",
    EXTERNAL: "external",
}

_ROW_BYTES: Final = {INLINE: 44, BLOB_RAW: 49, BLOB_FRAMED: 49, EXTERNAL: 41}

MAX_FRAME_NUMBER: Final = (1 << 32) - 1
MAX_OFFSET: Final = (1 << 24) - 1
MAX_RECORD_BYTES: Final = 64 << 20
"""Longest record; trees are split long before, and a record is always read in one piece."""

MAX_REF_BYTES: Final = 480
"""Longest name of a ref in UTF-8; LMDB keys end at 511 bytes."""

DUPLICATES_KEY: Final = b"*"
"""The only key of the look-up databases; their rows are its sorted duplicates of one width."""

ID_BYTES: Final = 32

CHECK_BYTES: Final = 4
"""Length of the check at the end of values whose bytes no id vouches for."""

SHA_PREFIX: Final = 6
GIT_BYTES: Final = 20
GIT_ID_PREFIX: Final = 12

_BLOB: Final = struct.Struct("<B32sQQ")
_EXTERNAL: Final = struct.Struct("<B32sQ")
EXTERNAL_BYTES: Final = _EXTERNAL.size
_SIGNATURE: Final = struct.Struct("<QQQqq")
_CHANGE: Final = struct.Struct("<qB")


class Place(NamedTuple):
    """Where the plain bytes of an inline object or a record begin.

    Attributes:
        frame: number of the (first) frame.
        offset_bytes: position inside its plain bytes.
        size_bytes: plain length; more than the frame holds means that the next frames go on.
    """

    frame: int
    offset_bytes: int
    size_bytes: int

    def frames(self) -> int:
        """Return over how many frames the bytes go: one, unless they are longer than a frame can be."""
        return max(1, -(-(self.offset_bytes + self.size_bytes) // MAX_PLAIN))


def _pack_place(place: Place) -> bytes:
    return (place.size_bytes | place.offset_bytes << 32 | place.frame << 56).to_bytes(11, "little")


def _unpack_place(value: bytes) -> Place:
    number = int.from_bytes(value, "little")
    return Place(number >> 56, number >> 32 & MAX_OFFSET, number & 0xFFFFFFFF)


def inline_row(sha256: bytes, place: Place) -> bytes:
    """Return the row of an object inside a frame.

    Example:
        >>> row = inline_row(bytes(32), Place(7, 100, 5))
        >>> len(row), object_info(row).size_bytes, object_place(row)
        (44, 5, Place(frame=7, offset_bytes=100, size_bytes=5))
    """
    return bytes((INLINE,)) + sha256 + _pack_place(place)


def blob_row(sha256: bytes, size_bytes: int, stored_bytes: int, framed: bool) -> bytes:
    """Return the row of an object in a file of its own."""
    return _BLOB.pack(BLOB_FRAMED if framed else BLOB_RAW, sha256, size_bytes, stored_bytes)


def external_row(sha256: bytes, size_bytes: int) -> bytes:
    """Return the row of an object whose bytes are elsewhere."""
    return _EXTERNAL.pack(EXTERNAL, sha256, size_bytes)


def object_info(row: bytes) -> ObjectInfo:
    """Return what a row of ``objects`` says.

    Raises:
        StoreDamagedError: no row of ours.
    """
    placement = _PLACEMENTS.get(row[0]) if row else None
    if placement is None or len(row) != _ROW_BYTES[row[0]]:
        raise StoreDamagedError("objects", f"row {row[:64].hex()} has an unknown form")
    size = int.from_bytes(row[33:37] if placement == "inline" else row[33:41], "little")
    return ObjectInfo(size, row[1:33], placement)


def object_place(row: bytes) -> Place:
    """Return where an inline object is, from its row.

    Raises:
        StoreDamagedError: no row of an inline object.
    """
    if len(row) != _ROW_BYTES[INLINE]:
        raise StoreDamagedError("objects", f"row {row[:64].hex()} has an unknown form")
    return _unpack_place(row[33:])


def blob_stored_bytes(row: bytes) -> int:
    """Return the length of the blob file, from the row of a blob."""
    return int.from_bytes(row[41:49], "little")


def is_blob(row: bytes) -> bool:
    """Say whether a row of ``objects`` is of a blob file."""
    return row[0] in (BLOB_RAW, BLOB_FRAMED)


def record_row(place: Place) -> bytes:
    """Return the row of a record: the form (1) and its place."""
    return bytes((INLINE,)) + _pack_place(place)


def record_place(row: bytes) -> Place:
    """Return where a record is, from its row.

    Raises:
        StoreDamagedError: no row of ours.
    """
    if len(row) != 12 or row[0] != INLINE:
        raise StoreDamagedError("records", f"row {row[:64].hex()} has an unknown form")
    return _unpack_place(row[1:])


def moved(row: bytes, frames: int) -> bytes:
    """Return a row of an inline object or a record with its frame number raised by ``frames``."""
    return row[:-4] + (int.from_bytes(row[-4:], "little") + frames).to_bytes(4, "little")


def checked(key: bytes, value: bytes) -> bytes:
    """Return a value that nothing else vouches for with a short check of key and value at its end.

    Example:
        >>> unchecked("refs", b"run", checked(b"run", b"packet"))
        b'packet'
    """
    return value + blake3(key + value).digest(CHECK_BYTES)


def unchecked(database: str, key: bytes, stored: bytes) -> bytes:
    """Return the value inside what :func:`checked` made.

    Raises:
        StoreDamagedError: key or value were altered.
    """
    value = stored[:-CHECK_BYTES]
    if len(stored) < CHECK_BYTES or checked(key, value) != stored:
        raise StoreDamagedError(database, f"the value of {show(key[:80])} is not the one that was written")
    return value


def ids_of(joined: bytes) -> list[RawId]:
    """Return the ids that a value holds one after the other."""
    return [joined[at : at + ID_BYTES] for at in range(0, len(joined), ID_BYTES)]


def number_key(number: int) -> bytes:
    """Return the key of a frame or of a step of the ref log."""
    return number.to_bytes(8, "big")


def sha_row(sha256: bytes, object_id: RawId) -> bytes:
    """Return the row of ``by_sha256``: a prefix of each digest; the row in ``objects`` decides."""
    return sha256[:SHA_PREFIX] + object_id[:SHA_PREFIX]


def git_row(git_id: bytes, object_id: RawId) -> bytes:
    """Return the row of ``by_git``: the whole Git id and a prefix of the object's."""
    return git_id + object_id[:GIT_ID_PREFIX]


def location_key(object_id: RawId, path: bytes) -> bytes:
    """Return the key of a location: the object, and a short hash of the path."""
    return object_id + blake3(path).digest(8)


def location_value(key: bytes, location: Location) -> bytes:
    """Return the value of a location."""
    return checked(key, _SIGNATURE.pack(*location.signature) + location.path)


def parse_location(key: bytes, stored: bytes) -> Location:
    """Return a location from its value.

    Raises:
        StoreDamagedError: no value of ours.
    """
    value = unchecked("locations", key, stored)
    if len(value) < _SIGNATURE.size:
        raise StoreDamagedError("locations", f"value {value.hex()} is cut short")
    return Location(value[_SIGNATURE.size :], StatSignature(*_SIGNATURE.unpack_from(value)))


def change_value(change: RefChange) -> bytes:
    """Return the value of a step of the ref log; its sequence is the key."""
    ids = (change.id, change.previous, change.observation)
    flags = sum(1 << bit for bit, id in enumerate(ids) if id is not None)
    value = _CHANGE.pack(change.taken_ns, flags) + b"".join(id or b"" for id in ids) + change.name.encode()
    return checked(number_key(change.sequence), value)


def parse_change(key: bytes, stored: bytes) -> RefChange:
    """Return a step of the ref log.

    Raises:
        StoreDamagedError: no value of ours.
    """
    value = unchecked("ref_log", key, stored)
    if len(key) != 8 or len(value) < _CHANGE.size:
        raise StoreDamagedError("ref_log", f"step {key.hex()} is cut short")
    taken_ns, flags = _CHANGE.unpack_from(value)
    position = _CHANGE.size
    ids: list[RawId | None] = []
    for bit in range(3):
        given = bool(flags >> bit & 1)
        ids.append(value[position : position + 32] if given else None)
        position += 32 * given
    name = value[position:].decode("utf-8", "replace")
    return RefChange(int.from_bytes(key, "big"), name, ids[0], ids[1], taken_ns, ids[2])
