"""Bytes of the members of a side: out of a store, or from the directory that was read just now."""

import os
from collections.abc import Iterator
from typing import Final

from provstore.errors import (
    FrameError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    SourceChangedError,
    SourceUnreadableError,
)
from provstore.ids import Buffer, object_id, to_raw
from provstore.paths import unshow
from provstore.store import objects
from provstore.verbs.diffing import Side
from provstore.verbs.members import Member, find_member

UNREAD: Final = (
    FrameError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    SourceChangedError,
    SourceUnreadableError,
)
"""What :func:`whole` and :func:`stream` raise when bytes are not at hand, or are not what was sealed."""

_STATES: Final = {
    "pointer": "an LFS pointer stands in for the bytes",
    "prefix": "only the beginning of a growing file was sealed",
    "unreadable": "it could not be read when it was sealed",
}


def find(side: Side, place: str) -> Member | None:
    """Return the file at a shown path of a side, or None."""
    try:
        found = find_member(side.fetch, side.packet, place)[0]
    except NotFoundError:
        return None
    return found if found.node.kind in ("file", "executable") else None


def absent(side: Side, member: Member) -> str:
    """Return why the bytes of a member are not here, or nothing."""
    node = member.node
    if node.state is not None:
        return _STATES[node.state]
    if node.blake3 is None or member.entry.custody == "declared":
        return "only declared"
    if side.plain:
        return ""
    info = side.reader.info(to_raw(node.blake3))
    if info is None:
        return "not in the store"
    return "kept outside the store" if info.placement == "external" else ""


def whole(side: Side, member: Member, place: str) -> bytes:
    """Return the checked bytes of a member.

    Raises:
        IntegrityError, FrameError: they are not what was sealed.
        MalformedError: too large for one piece.
        NotFoundError, NotHeldError, SourceUnreadableError, SourceChangedError: they are not at hand.
    """
    id = to_raw(member.node.blake3 or "")
    if not side.plain:
        return objects.read(side.reader, id)
    path = os.path.join(os.fsencode(side.root), unshow(place))
    try:
        with open(path, "rb") as file:
            data = file.read(objects.WHOLE_LIMIT_BYTES + 1)
    except OSError as error:
        raise SourceUnreadableError([(place, str(error.strerror))]) from error
    if len(data) > objects.WHOLE_LIMIT_BYTES:
        raise MalformedError(place, f"more than {objects.WHOLE_LIMIT_BYTES} bytes in one piece")
    if object_id(data) != id:
        raise SourceChangedError(place, ["content"])
    return data


def stream(side: Side, member: Member, place: str) -> Iterator[Buffer]:
    """Yield the bytes of a member of any size; raises as :func:`whole` does."""
    if side.plain:
        yield whole(side, member, place)
    else:
        yield from objects.stream(side.reader, to_raw(member.node.blake3 or ""))
