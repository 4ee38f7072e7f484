"""Which frames and files are whole, found in bulk; what is wrong with the others is not asked here."""

from contextlib import suppress
from typing import Any, Final

from provstore.errors import (
    InputOutputError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    StoreDamagedError,
)
from provstore.records import decode
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.store.runs import NOTHING

ID_BYTES: Final = 32

PIECE_UNITS: Final = 4
"""Frames or files that are checked in one go."""

DAMAGE: Final = (IntegrityError, MalformedError, NotHeldError, StoreDamagedError, InputOutputError)
"""What reading a damaged thing raises; the last one where the disk itself refuses to read."""


Piece = tuple[int, list[tuple[object, ...]]]
"""A number, and units as plain tuples."""


def passing(reader: Reader, piece: Any) -> tuple[int, bytes, int]:
    """Return the number of a piece, the ids, joined, of what is whole in it, and their size as objects.

    An id that is not among them has proved nothing.
    """
    number, units = piece
    passed: list[bytes] = []
    size = 0
    for _, ids, record_ids in units:
        laid = NOTHING
        with suppress(*DAMAGE):
            laid = reader.lay(ids) if ids else NOTHING
            whole = objects.whole(reader, laid.runs)
            passed.append(whole)
            size += sum(laid.infos[whole[at : at + ID_BYTES]][1] for at in range(0, len(whole), ID_BYTES))
        for id in ids:
            if id not in laid.infos:
                with suppress(*DAMAGE, NotFoundError):
                    size += objects.check(reader, id).size_bytes
                    passed.append(id)
        for id in record_ids:
            with suppress(*DAMAGE, NotFoundError):
                decode(objects.record(reader, id), id.hex())
                passed.append(id)
    return number, b"".join(passed), size
