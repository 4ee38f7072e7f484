"""What was loaded in a run minus what its packet pins."""

from collections.abc import Iterator
from typing import NamedTuple

from provstore.errors import FrameError, IntegrityError, MalformedError, NotFoundError, NotHeldError
from provstore.evidence.locks import Origin, read_lock, read_verification
from provstore.graph.deriving import reader_of
from provstore.ids import RawId
from provstore.paths import show
from provstore.reports.asked import LoadedRow, UnpinnedReport
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.members import Member, members

_NOT_HERE = (FrameError, IntegrityError, MalformedError, NotFoundError, NotHeldError)
_PINNING = ("native", "python-env")


class _Seen(NamedTuple):
    place: str
    origin: Origin


def unpinned(reader: Reader, packet: RawId) -> UnpinnedReport:
    """Return the files that a packet saw loaded and that nothing in it pins.

    A file counts as pinned if a runtime lock of the packet, or one of its native or Python members, has its
    path, its name, or the name of its module. That its bytes are the pinned ones is for a verdict to say.

    Args:
        reader: store or pack.
        packet: id of the packet.
    """
    found = objects.packet(reader, packet)
    names: set[str] = set()
    seen: list[_Seen] = []
    observations: list[str] = []
    absent: list[str] = []
    for member in members(objects.fetcher(reader), found):
        if member.node.kind not in ("file", "executable"):
            continue
        place = show(member.place())
        kind = reader_of(member.entry.kind, place)
        if member.entry.kind in _PINNING:
            names.add(place.rpartition("/")[2])
        elif kind == "lock":
            data = _bytes(reader, member)
            names.update(() if data is None else _pinned(data))
        elif kind == "loaded":
            data = _bytes(reader, member)
            (absent if data is None else observations).append(place)
            seen += [] if data is None else [_Seen(place, o) for o in read_verification(data).origins]
    rows = sorted(_rows(seen, names), key=lambda row: (row.name, row.path, row.place))
    loaded = sum(len(one.origin.paths) for one in seen)
    return UnpinnedReport(
        packet=packet.hex(),
        outcome="FAIL" if rows else ("PASS" if loaded and not absent else "INCOMPLETE"),
        loaded=loaded,
        pinned=len(names),
        observations=tuple(observations),
        absent=tuple(absent),
        rows=tuple(rows),
    )


def _bytes(reader: Reader, member: Member) -> bytes | None:
    node = member.node
    try:
        return objects.read_member(reader, node.blake3, node.sha256, member.entry.custody)
    except _NOT_HERE:
        return None


def _pinned(data: bytes) -> Iterator[str]:
    for pin in read_lock(data).pins:
        yield pin.name
        if pin.path is not None:
            yield pin.path
            yield pin.path.rpartition("/")[2]


def _rows(seen: list[_Seen], names: set[str]) -> Iterator[LoadedRow]:
    for place, origin in seen:
        for path in origin.paths:
            if not names & {origin.name, path, path.rpartition("/")[2]}:
                yield LoadedRow(name=origin.name, path=path, place=place, location=origin.location)
