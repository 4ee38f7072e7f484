"""Many objects at once: where they lie, and their bytes frame by frame."""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple, Protocol

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


NOTHING: Final = Laid({}, [])


class Piece(NamedTuple):
    """The bytes of one object out of a frame, unchecked, and what the index says of them."""

    id: RawId
    sha256: bytes
    size_bytes: int
    data: bytes


class InBulk(Protocol):
    """The part of a reader that gives many small objects at once."""

    def lay(self, object_ids: Collection[RawId]) -> Laid:
        """Look many objects up at once; those that do not lie in frames with others are left out."""

    def pieces(self, run: Run) -> Iterator[Piece]:
        """Yield the wanted objects of one frame; the frame is read and unpacked once.

        Raises:
            IntegrityError, FrameError, PackError: nothing can be had of the frame.
        """
