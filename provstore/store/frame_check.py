"""Whole frames of objects: whether the plain bytes of one are its members' bytes, one after the other.

Kept small, since worker processes import it.
"""

from collections.abc import Sequence

from provstore.errors import FrameError, IntegrityError
from provstore.ids import Buffer, Digests, digests
from provstore.store import frame


def check_frame(packed: Buffer, members: Sequence[Digests], where: str = "frame") -> None:
    """Check that a frame holds the bytes of its members in this order, and nothing else.

    Args:
        packed: the frame as stored.
        members: both digests and the size of each.
        where: what to name in an error.

    Raises:
        FrameError: it is no whole frame, or not as long as its members together.
        IntegrityError: a member's bytes do not hash to its id, or not to its SHA-256.

    Example:
        >>> check_frame(frame.pack([b"ab", b"c"]), [digests(b"ab"), digests(b"c")])
    """
    total = sum(member.size_bytes for member in members)
    if frame.plain_size(packed, where) != total:
        raise FrameError(where, f"does not hold the {total} bytes of its members")
    plain = memoryview(frame.unpack(packed, where=where))
    start = 0
    for member in members:
        found = digests(plain[start : start + member.size_bytes])
        if found.blake3 != member.blake3:
            raise IntegrityError(member.blake3.hex(), found.blake3.hex())
        if found.sha256 != member.sha256:
            raise IntegrityError(member.blake3.hex(), "an index entry with another SHA-256")
        start += member.size_bytes
