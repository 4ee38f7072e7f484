"""What a store directory is made of, unit by unit, and when each unit was last re-read."""

import struct
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from provstore.errors import StoreDamagedError
from provstore.ids import RawId
from provstore.store import rows
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_txn import Txn
from provstore.store.protocol import Checks, Mark, Unit
from provstore.store.runs import Laid, Piece

_CYCLE_KEY: Final = b"cycle"
_CYCLE: Final = struct.Struct("<IB")
_MARK: Final = struct.Struct("<IqB")

_PLACE: Final = struct.Struct(">IIB")
"""Frame, offset, and 1 for a record; an id follows. One string sorts like these and takes little room."""

_WANTED: Final = struct.Struct("<32sB32sIHBI")
"""An id and the row of an inline object: form, SHA-256, and its place as size, offset and frame."""

_ROW_BYTES: Final = _WANTED.size - rows.ID_BYTES
_ROW_PLACE: Final = 32
_ROW_FRAME: Final = _ROW_BYTES - 4

_NO_FRAME: Final = (1 << 32) - 1
_KEY_BYTES: Final = 8


def units(env: Env) -> Iterator[Unit]:
    """Yield everything that is held: frames by number, then blob files by id.

    The list is of one moment. It takes about 90 bytes of memory for each object and record.
    """
    places = env.read(_places)
    for number, members in groupby(places, lambda place: place[:4]):
        if number == b"\xff\xff\xff\xff":
            for member in members:
                yield Unit(member[_PLACE.size :], (member[_PLACE.size :],), ())
            continue
        objects: list[RawId] = []
        records: list[RawId] = []
        for member in members:
            (records if member[_PLACE.size - 1] else objects).append(member[_PLACE.size :])
        yield Unit(bytes(4) + number, tuple(objects), tuple(records))


def _places(txn: Txn) -> list[bytes]:
    places = [_object_place(key, row) for key, row in txn.scan("objects") if not _is_external(row)]
    for key, row in txn.scan("records"):
        places.append(_record_place(key, row))
    places.sort()
    return places


def _is_external(row: bytes) -> bool:
    return row[:1] == _EXTERNAL and len(row) == rows.EXTERNAL_BYTES


_EXTERNAL: Final = bytes((rows.EXTERNAL,))
_INLINE: Final = bytes((rows.INLINE,))


def _object_place(key: RawId, row: bytes) -> bytes:
    # A row of no known form counts as a file: whoever reads the object says what is wrong.
    try:
        place = rows.object_place(row) if row[:1] == _INLINE else None
    except StoreDamagedError:
        place = None
    if place is None:
        return _PLACE.pack(_NO_FRAME, 0, 0) + key
    return _PLACE.pack(place.frame & _NO_FRAME, place.offset_bytes, 0) + key


def _record_place(key: RawId, row: bytes) -> bytes:
    try:
        place = rows.record_place(row)
    except StoreDamagedError:
        return _PLACE.pack(0, 0, 1) + key
    return _PLACE.pack(place.frame, place.offset_bytes, 1) + key


def laid(found: Mapping[RawId, bytes]) -> Laid:
    """Return where objects lie, from their rows; rows of another form are left out."""
    inline = [(row, id) for id, row in found.items() if row[0] == rows.INLINE and len(row) == _ROW_BYTES]
    # Read from its end, the place of an object sorts by frame, then by offset.
    inline.sort(key=lambda item: item[0][:_ROW_PLACE:-1])
    from_bytes = int.from_bytes
    infos = {id: (row[1:33], from_bytes(row[33:37], "little")) for row, id in inline}
    runs = [
        (bytes(4) + number[::-1], b"".join([id + row for row, id in members]))
        for number, members in groupby(inline, lambda item: item[0][_ROW_FRAME:])
    ]
    return Laid(infos, runs)


def pieces(wanted: bytes, plain: bytes) -> Iterator[Piece]:
    """Yield objects out of the plain bytes of their frame."""
    for id, _, sha256, size, low, high, _ in _WANTED.iter_unpack(wanted):
        offset = low | high << 16
        yield Piece(id, sha256, size, plain[offset : offset + size])


def checks(env: Env) -> Checks:
    """Return what is remembered; a damaged mark counts as none."""

    def work(txn: Txn) -> Checks:
        cycle, finished = 0, False
        marks: dict[bytes, Mark] = {}
        for key, stored in txn.scan("checked"):
            try:
                value = rows.unchecked("checked", key, stored)
            except StoreDamagedError:
                continue
            if key == _CYCLE_KEY:
                cycle, finished = _CYCLE.unpack(value)
            else:
                number, taken_ns, damaged = _MARK.unpack(value)
                marks[key] = Mark(number, taken_ns, bool(damaged))
        return Checks(cycle, bool(finished), marks)

    return env.read(work)


def note_checks(env: Env, cycle: int, marks: Mapping[bytes, Mark], finished: bool) -> None:
    """Remember that units were re-read; see the protocol."""

    def work(txn: Txn) -> None:
        for key in sorted(marks):
            database = "frames" if len(key) == _KEY_BYTES else "objects"
            if txn.get(database, key) is not None:
                mark = marks[key]
                value = _MARK.pack(mark.cycle, mark.taken_ns, mark.damaged)
                txn.put("checked", key, rows.checked(key, value))
        txn.put("checked", _CYCLE_KEY, rows.checked(_CYCLE_KEY, _CYCLE.pack(cycle, finished)))

    env.write(work)


def pass_on(txn: Txn, old: bytes, new: bytes) -> None:
    """Give a frame the mark of the one whose members it takes over."""
    stored = txn.get("checked", old)
    if stored is not None:
        try:
            value = rows.unchecked("checked", old, stored)
        except StoreDamagedError:
            return
        txn.put("checked", new, rows.checked(new, value))
