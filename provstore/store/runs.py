"""Many objects at once: where they lie, and their bytes frame by frame."""

from typing import NamedTuple

from provstore.ids import RawId

Run = tuple[bytes, bytes]
"""A frame, and which of its objects are wanted, in a form that its store knows; fit for another process."""


class Laid(NamedTuple):
    """Where wanted objects lie, looked up once for all.

    Attributes:
        infos: SHA-256 and size, as the index has them, of each that lies in a frame with others.
        runs: those frames, in the order in which reading them is quickest.
    """

    infos: dict[RawId, tuple[bytes, int]]
    runs: list[Run]


class Piece(NamedTuple):
    """The bytes of one object out of a frame, unchecked, and what the index says of them."""

    id: RawId
    sha256: bytes
    size_bytes: int
    data: bytes
