"""Re-hashing the small objects of a packet in bulk, on all cores, while its trees are still being read.

Only what passes is decided here: both digests and the size are what the index says, and what the tree says
that named the object first. Everything else is left to whoever can say what is wrong with it.
"""

import os
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Self

from provstore.errors import FrameError, IntegrityError, NotFoundError, PackError
from provstore.files.crew import Crew, spare_cores
from provstore.files.hashing import hash_file
from provstore.files.progress import Meter
from provstore.files.threads import on_threads
from provstore.ids import Digests, RawId
from provstore.paths import show
from provstore.records.packet import Entry
from provstore.records.tree import TreeEntry
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.store.runs import Run
from provstore.verbs.members import Member

WORTH_HELPERS_FILES: Final = 2000
WORTH_HELPERS_BYTES: Final = 32 << 20
"""With fewer files and fewer bytes than these a packet is checked before a helper has begun."""

PIECE_FRAMES: Final = 4
"""Frames whose objects are checked in one go: some megabytes, about 10 ms."""

LOOKUP: Final = 1024
"""Objects that are looked up at a time: sorted, which is quicker, and soon enough to keep helpers busy."""

Stated = tuple[str | None, int | None]
"""SHA-256 and size as a tree entry states them."""

Indexed = tuple[str, int]
"""SHA-256 and size as the index has them."""

LARGE_BYTES: Final = 1 << 20
"""Objects from this size on are read on threads: hashing them gives the interpreter lock up."""

PIECE_ALONE: Final = 64
"""Small objects in files of their own that are looked at in one go."""

_Alone = tuple[RawId, bytes, bytes]
"""An object, the place of a member that it is in the packet, and its path below its entry."""


def helpers_for(entries: Iterable[Entry]) -> int:
    """Return how many processes are worth their start for the entries of a packet."""
    here = [entry for entry in entries if entry.custody != "declared"]
    files, size = sum(e.files for e in here), sum(e.size_bytes or 0 for e in here)
    return spare_cores() if files >= WORTH_HELPERS_FILES or size >= WORTH_HELPERS_BYTES else 0


class Seen(NamedTuple):
    """Outcome of one object, found once and reported wherever it is a member.

    Attributes:
        digests: of the bytes that are there.
        problem: outcome, code and message instead.
    """

    digests: Digests | None
    problem: tuple[str, str, str] | None


class Rehashing:
    """A queue of objects on their way through both hashes. Use it as a context manager.

    Attributes:
        whole: SHA-256 and size, as stated, of each object that passed, by hex id.
    """

    def __init__(self, reader: Reader, at: Sequence[bytes], helpers: int, meter: Meter) -> None:
        self.whole: dict[str, Indexed] = {}
        self._reader = reader
        self._at = at
        self._meter = meter
        self._stated: dict[str, Stated] = {}
        self._indexed: dict[RawId, tuple[bytes, int]] = {}
        self._fresh: list[str] = []
        self._crew = Crew(partial(_work, reader, at), helpers)

    def __enter__(self) -> Self:
        self._crew.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._crew.__exit__(None, None, None)

    def want(self, nodes: Iterable[TreeEntry]) -> None:
        """Have the contents of files re-hashed, each content once."""
        stated = self._stated
        for node in nodes:
            id = node.blake3
            if id is not None and id not in stated:
                stated[id] = node.sha256, node.size_bytes
                self._fresh.append(id)
        if len(self._fresh) >= LOOKUP:
            self._look_up()
            self._take(self._crew.ready())

    def finish(self) -> None:
        """Wait for everything that was wanted so far."""
        self._look_up()
        self._take(self._crew.results())

    def _look_up(self) -> None:
        fresh = [bytes.fromhex(id) for id in self._fresh]
        self._fresh.clear()
        laid = self._reader.lay(fresh) if fresh else None
        if laid is None:
            return
        self._indexed.update(laid.infos)
        for start in range(0, len(laid.runs), PIECE_FRAMES):
            self._crew.put((laid.runs[start : start + PIECE_FRAMES], []))

    def look(self, wanted: Sequence[tuple[RawId, Member]]) -> dict[RawId, Seen]:
        """Return what comes of objects that lie in files of their own, or of which something is wrong."""
        found: dict[RawId, Seen] = {}
        large: list[tuple[int, _Alone]] = []
        small: list[_Alone] = []
        for id, member in wanted:
            info = self._reader.info(id)
            one = id, member.place(), member.path
            if info is not None and info.size_bytes >= LARGE_BYTES:
                large.append((info.size_bytes, one))
            else:
                small.append(one)
        for start in range(0, len(small), PIECE_ALONE):
            self._crew.put(([], small[start : start + PIECE_ALONE]))
        for _, answers in self._crew.results():
            for id, digests, problem in answers:
                self._note(found, id, Seen(Digests(*digests) if digests is not None else None, problem))
        lock = threading.Lock()

        def look_at(job: tuple[int, _Alone]) -> None:
            seen = _look(self._reader, self._at, job[1])
            with lock:
                self._note(found, job[1][0], seen)

        on_threads(sorted(large, key=lambda job: -job[0]), look_at)
        return found

    def _note(self, found: dict[RawId, Seen], id: RawId, seen: Seen) -> None:
        found[id] = seen
        if seen.digests is not None:
            self._meter.add(seen.digests.size_bytes, 1, id.hex().encode())

    def _take(self, answers: Iterable[tuple[bytes, Any]]) -> None:
        for answer, _ in answers:
            size = 0
            ids = [answer[at : at + 32] for at in range(0, len(answer), 32)]
            for raw in ids:
                id, (sha256, length) = raw.hex(), self._indexed.pop(raw)
                if self._stated[id] == (sha256.hex(), length):
                    self.whole[id] = sha256.hex(), length
                size += length
            self._meter.add(size, len(ids), ids[-1].hex().encode() if ids else b"")


def _work(reader: Reader, at: Sequence[bytes], piece: tuple[list[Run], list[_Alone]]) -> tuple[bytes, Any]:
    """Do one piece; here and in helpers."""
    runs, alone = piece
    looked = [(one[0], _look(reader, at, one)) for one in alone]
    answers = [(id, seen.digests and tuple(seen.digests), seen.problem) for id, seen in looked]
    return objects.whole(reader, runs), answers


def _look(reader: Reader, at: Sequence[bytes], one: _Alone) -> Seen:
    id = one[0]
    info = reader.info(id)
    if info is None:
        return Seen(None, ("FAIL", "missing-object", "its bytes are not in the store"))
    if info.placement == "external":
        return _outside(reader, at, one)
    try:
        return Seen(objects.check(reader, id), None)
    except (IntegrityError, FrameError, PackError, NotFoundError) as error:
        return Seen(None, ("FAIL", "damaged", error.message))


def _outside(reader: Reader, at: Sequence[bytes], one: _Alone) -> Seen:
    """Re-read bytes that are kept outside, where they were seen or below ``at``."""
    id, place, path = one
    places = [location.path for location in reader.locations(id)]
    for base in at:
        places += [os.path.join(base, place), os.path.join(base, path)]
    changed = None
    for where in places:
        try:
            found = hash_file(where)
        except OSError:
            continue
        if found.blake3 == id:
            return Seen(found, None)
        changed = f"{show(where)} has other bytes now (blake3 {found.blake3.hex()})"
    if changed is not None:
        return Seen(None, ("FAIL", "external-changed", changed))
    return Seen(None, ("UNKNOWN", "not-held", "kept outside, and not at any place known here; give --at"))
