"""The one door for bytes: whatever leaves a store through here hashes to the id that was asked for.

No flag turns the check off. Large objects are either checked before their first byte is given out
(:func:`stream`), or given to a writer that the caller publishes only when :func:`copy` returned.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Final, Self

from blake3 import blake3

from provstore import libraries, records
from provstore.errors import (
    FrameError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    PackError,
)
from provstore.ids import RECORD_KINDS, Buffer, Digests, RawId, TwinHasher, digests, object_id, record_id
from provstore.merkle import LEAF_END, Fetch
from provstore.records.packet import Packet, check_packet
from provstore.store.protocol import ObjectInfo, Reader, Store
from provstore.store.runs import Run

WHOLE_LIMIT_BYTES: Final = 64 << 20
"""Largest object that :func:`read` returns in one piece."""


def read(
    reader: Reader, id: RawId, limit_bytes: int = WHOLE_LIMIT_BYTES, info: ObjectInfo | None = None
) -> bytes:
    """Return the bytes of an object.

    Args:
        reader: what holds it.
        id: of the object.
        limit_bytes: a larger one is refused.
        info: what the reader says of it, if the caller has asked already.

    Raises:
        IntegrityError: the stored bytes do not hash to ``id``.
        NotFoundError, NotHeldError: it is unknown, or its bytes are elsewhere.
        MalformedError: it is larger than ``limit_bytes``.
    """
    info = info or reader.info(id)
    if info is None:
        raise NotFoundError(id.hex(), f"no such object in {reader.where}")
    if info.size_bytes > limit_bytes:
        raise MalformedError(id.hex(), f"{info.size_bytes} bytes is more than {limit_bytes} in one piece")
    data = b"".join(reader.chunks(id))
    found = object_id(data)
    if found != id:
        raise IntegrityError(id.hex(), found.hex())
    return data


def copy(reader: Reader, id: RawId, write: Callable[[Buffer], object]) -> Digests:
    """Give the bytes of an object to ``write``, hashing both digests on the way.

    The bytes must not be published before this returns: the check comes after the last byte.

    Raises:
        IntegrityError: the bytes do not hash to ``id``, or the index states another SHA-256 or size.
        NotFoundError, NotHeldError: it is unknown, or its bytes are elsewhere.
    """
    info = reader.info(id)
    if info is None:
        raise NotFoundError(id.hex(), f"no such object in {reader.where}")
    if info.placement == "external":
        raise NotHeldError(id.hex(), "external")
    found = recount(reader, id, write)
    if found.sha256 != info.sha256 or found.size_bytes != info.size_bytes:
        raise IntegrityError(
            id.hex(), f"an index entry with another SHA-256 or size ({found.size_bytes} bytes)"
        )
    return found


def recount(reader: Reader, id: RawId, write: Callable[[Buffer], object]) -> Digests:
    """Do as :func:`copy` does, but take SHA-256 and size from the bytes, whatever the index states.

    For repairs: an index entry may be wrong where the bytes are not.

    Raises:
        IntegrityError: the bytes do not hash to ``id``.
        NotFoundError, NotHeldError: it is unknown, or its bytes are elsewhere.
    """
    return _hashed(reader.chunks(id), id, write)


def _hashed(chunks: Iterable[Buffer], id: RawId, write: Callable[[Buffer], object]) -> Digests:
    twin = TwinHasher()
    for chunk in chunks:
        twin.update(chunk)
        write(chunk)
    found = twin.digests()
    if found.blake3 != id:
        raise IntegrityError(id.hex(), found.blake3.hex())
    return found


def salvaged_record(store: Store, id: RawId) -> bytes | None:
    """Return the bytes of a record in a damaged frame, if they hash right."""
    data = b"".join(store.remains(id))
    return data if any(record_id(kind, data) == id for kind in RECORD_KINDS) else None


def salvage(store: Store, id: RawId, write: Callable[[Buffer], object]) -> Digests:
    """Do as :func:`recount` does with what damaged frames still give.

    Raises:
        IntegrityError: it does not hash to ``id``.
    """
    return _hashed(store.remains(id), id, write)


def check(reader: Reader, id: RawId) -> Digests:
    """Re-hash an object and return its digests; raises as :func:`copy` does."""
    return copy(reader, id, _ignore)


def _ignore(chunk: Buffer) -> None:
    return None


def whole(reader: Reader, runs: Sequence[Run]) -> bytes:
    """Re-hash objects frame by frame; return the ids, joined, of those that are all that the index says.

    Both digests and the size are held against the index. An id that is not among the returned ones has
    proved nothing: :func:`check` says what is wrong.
    """
    found: list[RawId] = []
    for run in runs:
        try:
            for id, sha256, size, data in reader.pieces(run):
                same = blake3(data).digest() == id and libraries.sha256(data).digest() == sha256
                if same and len(data) == size:
                    found.append(id)
        except (IntegrityError, FrameError, PackError):
            continue
    return b"".join(found)


def stream(reader: Reader, id: RawId, info: ObjectInfo | None = None) -> Iterator[Buffer]:
    """Yield the bytes of an object of any size; they are checked as a whole before the first is given.

    Args:
        reader: what holds it.
        id: of the object.
        info: what the reader says of it, if the caller has asked already.

    Raises:
        IntegrityError: the bytes do not hash to ``id``, or changed between the check and the reading.
        NotFoundError, NotHeldError: it is unknown, or its bytes are elsewhere.
    """
    info = info or reader.info(id)
    if info is not None and info.size_bytes <= WHOLE_LIMIT_BYTES:
        yield read(reader, id, info=info)
        return
    check(reader, id)
    twin = TwinHasher()
    for chunk in reader.chunks(id):
        twin.update(chunk)
        yield chunk
    if twin.digests().blake3 != id:
        raise IntegrityError(id.hex(), twin.digests().blake3.hex())


def record(reader: Reader, id: RawId) -> bytes:
    """Return the checked bytes of a record.

    Raises:
        IntegrityError: the bytes are not the record of this id under the domain their format names.
        NotFoundError: there is no such record.
    """
    data = reader.record(id)
    if data is None:
        raise NotFoundError(id.hex(), f"no such record in {reader.where}")
    # What ends like this names no other format, unless it is no record at all.
    if data.endswith(LEAF_END) and record_id("tree", data) == id:
        return data
    try:
        kind = records.kind_of(data, id.hex())
    except MalformedError as error:
        if any(record_id(kind, data) == id for kind in RECORD_KINDS):
            raise
        raise IntegrityError(id.hex(), "bytes that are no record") from error
    found = record_id(kind, data)
    if found != id:
        raise IntegrityError(id.hex(), found.hex())
    return data


def fetcher(reader: Reader) -> Fetch:
    """Return a function that gives the checked bytes of records of ``reader``."""

    def fetch(id: RawId) -> bytes:
        return record(reader, id)

    return fetch


class Records:
    """Records of the store and of the stage, through the one door, for reading while a seal is unfinished."""

    def __init__(self, reader: Reader) -> None:
        self._fetch = fetcher(reader)
        self.new: dict[RawId, bytes] = {}
        self._shelf: IO[bytes] | None = None
        self._shelved: dict[RawId, tuple[int, int]] = {}

    def shelve(self, id: RawId, data: bytes) -> None:
        """Keep a record of the stage on disk: one of very many that hardly anybody reads again."""
        if self._shelf is None:
            self._shelf = libraries.tempfile.TemporaryFile()
        self._shelved[id] = (self._shelf.seek(0, os.SEEK_END), len(data))
        self._shelf.write(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shelf is not None:
            self._shelf.close()

    def _from_shelf(self, id: RawId) -> bytes | None:
        at = self._shelved.get(id)
        if at is None or self._shelf is None:
            return None
        self._shelf.seek(at[0])
        data = self._shelf.read(at[1])
        if not any(record_id(kind, data) == id for kind in RECORD_KINDS):
            raise IntegrityError(id.hex(), "other bytes in a temporary file")
        return data

    def fetch(self, id: RawId) -> bytes:
        """Return the checked bytes of a record."""
        found = self.new.get(id)
        if found is None and self._shelved:
            found = self._from_shelf(id)
        return found if found is not None else self._fetch(id)


def packet(reader: Reader, id: RawId) -> Packet:
    """Return a packet.

    Raises:
        IntegrityError, NotFoundError: see :func:`record`.
        MalformedError: the record is canonical but no packet.
    """
    found = records.decode(record(reader, id), f"packet {id.hex()}")
    if not isinstance(found, Packet):
        raise MalformedError(id.hex(), "is a record but no packet")
    return check_packet(found, f"packet {id.hex()}")


def read_member(reader: Reader, blake3: str | None, sha256: str | None, custody: str) -> bytes:
    """Return the bytes of a member by the digests that a record states.

    Raises:
        NotHeldError: the record states no BLAKE3, so nobody here has seen the bytes.
    """
    if blake3 is None:
        raise NotHeldError(sha256 or "unknown", custody)
    data = read(reader, bytes.fromhex(blake3))
    if sha256 is not None and digests(data).sha256.hex() != sha256:
        raise IntegrityError(blake3, f"a record that states sha256 {sha256}")
    return data
