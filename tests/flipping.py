"""Bits that flip in a store at rest: what is given out, verified and reported then."""

import os
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from killing import PROFILE, Say, child, seal_into, tree
from regions import DEAD, FRAME, ROW, Regions
from workbench import plant

from provstore.errors import ProvError
from provstore.files.progress import Meter
from provstore.ids import digests
from provstore.records.ledger import Authorization
from provstore.runs.ledger import note
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.pack import PackStore
from provstore.store.protocol import Reader, RefChange, Unit
from provstore.verbs.checking import Findings, fsck
from provstore.verbs.verifying import verify

PAGE: Final = 4096

_BESIDE: Final = (b'"format":"provstore/observation/', b'"format":"provstore/ledger-entry/')
"""Circumstances of a seal, and what was attempted: no packet needs them."""

HARMLESS: Final = "harmless"
"""Everything that can be asked for came out as it was: the bit was in bytes that nobody reads."""

REPORTED: Final = "reported"
"""``fsck`` named what is damaged, and nothing damaged was given out."""

REFUSED: Final = "refused"
"""Opening or reading the index was refused."""


BLOB: Final = "blob file"

OWN: Final = frozenset({FRAME, ROW, BLOB})
"""Kinds of bytes in which no flip goes unnoticed."""

FULL_EVERY: Final = 10

CHECKED: Final = (
    "live bytes of an index: store opened anew, every object and record read and compared, refs and log "
    "compared, fsck in full; dead bytes of an index: store opened anew, refs and log compared, fsck in full; "
    "blob file: its object read, its unit re-read as fsck does, in a store that stays open; pack: opened "
    "anew, every object and record read and compared, verified, its hash checked; every tenth flip of an "
    "index or blob file as of live bytes"
)
"""What is done for each flip of :meth:`Specimen.quick`, as it stands in the results."""


class Truth(NamedTuple):
    """All that a store can be asked for."""

    refs: list[tuple[str, bytes]]
    log: list[RefChange]
    ledger: list[bytes]
    objects: dict[bytes, bytes]
    records: dict[bytes, bytes]


class Silent(Exception):
    """Damage was given out, or nobody said a word about it."""


def truth_of(reader: Reader) -> Truth:
    """Read everything that there is."""
    return Truth(
        reader.refs(),
        reader.ref_log(),
        reader.ledger(),
        {id: objects.read(reader, id) for id, _ in reader.objects()},
        {id: objects.record(reader, id) for id in reader.records()},
    )


def judge(reader: Reader, truth: Truth) -> str:
    """Ask a damaged store for everything; return what came of it.

    Raises:
        Silent: it gave out something else than the truth, or lacks something and ``fsck`` did not say so.
    """
    whole = True
    for id, data in truth.objects.items():
        whole &= _same(lambda id=id: objects.read(reader, id), data)  # type: ignore[misc]
    needed = whole
    for id, data in truth.records.items():
        same = _same(lambda id=id: objects.record(reader, id), data)  # type: ignore[misc]
        whole &= same
        needed &= same or any(kind in data for kind in _BESIDE)
    if reader.refs() != truth.refs or reader.ref_log() != truth.log:
        raise Silent("refs or their log are not what they were")
    if reader.ledger() != truth.ledger:
        raise Silent("the ledger is not what it was")
    report = fsck(reader)
    if whole:
        return HARMLESS if not report.damaged else REPORTED
    if not report.damaged:
        raise Silent("something is gone or damaged, and fsck is content")
    if not needed and not any(damage.packet and damage.id for damage in report.damaged):
        raise Silent("fsck names no packet")
    return REPORTED


def _same(read: Callable[[], bytes], data: bytes) -> bool:
    try:
        found = read()
    except ProvError:
        return False
    if found != data:
        raise Silent("other bytes were given out")
    return True


def pack_outcome(path: Path, packet: bytes, truth: Truth) -> str:
    """Open a damaged pack, read and verify all of it, and check it as a file.

    Raises:
        Silent: it gave out other bytes, or was found good as a whole.
    """
    try:
        with PackStore(os.fspath(path)) as pack:
            for id, _ in pack.objects():
                _same(lambda id=id: objects.read(pack, id), truth.objects.get(id, b""))  # type: ignore[misc]
            for id in pack.records():
                _same(lambda id=id: objects.record(pack, id), truth.records.get(id, b""))  # type: ignore[misc]
            if verify(pack, packet).outcome == "PASS":
                pack.check()
                raise Silent("it passed")
            return REPORTED
    except ProvError as error:
        return f"{REFUSED} {error.code}"


class Specimen:
    """A small store at rest, and what is in it."""

    def __init__(self, place: Path) -> None:
        self.path = place / "store"
        LmdbStore.create(os.fspath(self.path), profile=PROFILE).close()
        tree(place / "a", "a")
        seal_into(self.path, place / "a", "run-a")
        plant(place / "a", {f"many/{i}": f"file {i}\n" for i in range(60)})
        seal_into(self.path, place / "a", "run-b")
        with LmdbStore.open(os.fspath(self.path), profile=PROFILE) as store:
            policy = b"file 0\n"  # an object of the packet, so that whatever is damaged has one
            about = {"line": "decode", "candidate": {"engine": "a"}, "suites": 1, "given_by": "ann"}
            note(store, Authorization(policy=digests(policy).blake3.hex(), **about))  # type: ignore[arg-type]
        with self.open() as store:
            self.truth = truth_of(store)
        self.index = self.path / "data.mdb"
        self.files = sorted(f for f in self.path.joinpath("blobs").glob("*/*"))
        self.regions = Regions(self.index)
        self._asked = 0
        self._reader: LmdbStore | None = None

    def open(self) -> LmdbStore:
        return LmdbStore.open(os.fspath(self.path), writable=False, profile=PROFILE)

    def outcome(self, flip: "Flip | None" = None) -> str:
        """Open the store and judge it by everything that can be asked for."""
        try:
            with self.open() as store:
                return judge(store, self.truth)
        except ProvError as error:
            return f"{REFUSED} {error.code}"

    def quick(self, flip: "Flip") -> str:
        """Judge by what a flip can reach, and every tenth flip by everything; see :data:`CHECKED`."""
        self._asked += 1
        if self._asked % FULL_EVERY == 0:
            return self.outcome()
        if flip.path != self.index:
            return self._blob(flip.path)
        if self.regions.kind(flip.at) not in DEAD:
            return self.outcome()
        try:
            with self.open() as store:
                if store.refs() != self.truth.refs or store.ref_log() != self.truth.log:
                    raise Silent("refs or their log are not what they were")
                if store.ledger() != self.truth.ledger:
                    raise Silent("the ledger is not what it was")
                return REPORTED if fsck(store).damaged else HARMLESS
        except ProvError as error:
            return f"{REFUSED} {error.code}"

    def _blob(self, path: Path) -> str:
        """Read one object, and let ``fsck`` re-read the unit that it is."""
        if self._reader is None:
            self._reader = self.open()  # the index does not change; the file is opened whenever it is read
        id = bytes.fromhex(path.parent.name + path.name.removesuffix(".frames"))
        reader = self._reader
        whole = _same(lambda: objects.read(reader, id), self.truth.objects[id])
        found = Findings(reader, Meter(None)).check(Unit(id, (id,), ()))
        if whole == found:
            raise Silent("what is read and what fsck says do not go together")
        return REPORTED if found else HARMLESS

    def kind(self, flip: "Flip") -> str:
        """Return what a flipped byte is for."""
        return self.regions.kind(flip.at) if flip.path == self.index else BLOB


def key_pages(path: Path) -> int:
    """Return how many pages of keys the index of a store has, those that LMDB no longer uses included."""
    data = (path / "data.mdb").read_bytes()
    found = 0
    for start in range(2 * PAGE, len(data), PAGE):
        number, _, flags = struct.unpack_from("=QHH", data, start)
        found += number == start // PAGE and flags in (0x01, 0x02, 0x22)
    return found


class Flip(NamedTuple):
    """One bit of one file."""

    path: Path
    at: int
    bit: int


def flips_of(path: Path, count: int, chance: random.Random) -> list[Flip]:
    """Choose bits of a file, half of them in its first 64 KiB."""
    size = path.stat().st_size
    spots = [chance.randrange(min(size, 1 << 16) if i % 2 else size) for i in range(count)]
    return [Flip(path, at, chance.randrange(8)) for at in spots]


def structure_flips(path: Path, count: int, chance: random.Random, node_bytes: int = 80) -> list[Flip]:
    """Choose bits of an index that LMDB follows: meta pages, page headers, beginnings of nodes."""
    data = path.read_bytes()
    spots: list[int] = []
    for start in range(0, len(data), PAGE):
        number, _, flags, lower = struct.unpack_from("=QHHH", data, start)
        if flags & 0x08 and start < 2 * PAGE:
            spots += range(start, start + 152)
        elif number == start // PAGE and flags in (0x01, 0x02, 0x22):
            spots += range(start, start + min(lower, PAGE))
            for at in range(16, min(lower, PAGE), 2):
                node = start + int.from_bytes(data[start + at : start + at + 2], "little")
                spots += range(node, min(node + node_bytes, len(data)))
    return [Flip(path, chance.choice(spots), chance.randrange(8)) for _ in range(count)]


def flipped(flips: Iterable[Flip], ask: Callable[[], str]) -> Iterator[tuple[Flip, str]]:
    """Flip each bit in turn, ask, and put the byte back."""
    for flip in flips:
        with open(flip.path, "r+b") as file:
            file.seek(flip.at)
            byte = file.read(1)
            file.seek(flip.at)
            file.write(bytes((byte[0] ^ 1 << flip.bit,)))
            file.flush()
        try:
            yield flip, ask()
        finally:
            with open(flip.path, "r+b") as file:
                file.seek(flip.at)
                file.write(byte)


class Found(NamedTuple):
    """What came of many flips: how often each outcome, and what must never be."""

    outcomes: Counter[str]
    faults: list[str]


def survey(
    flips: list[Flip], ask: Callable[[Flip], str], kind: Callable[[Flip], str] = lambda flip: ""
) -> Found:
    """Judge every flip, in children, so that a signal costs one flip and not the survey.

    Args:
        flips: the bits, each flipped and put back.
        ask: judges one.
        kind: says what a byte is for; a harmless flip of an object's or record's own bytes is a fault.
    """
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    done = 0
    while done < len(flips):

        def work(say: Say, rest: list[Flip] = flips[done:]) -> None:
            now = iter(rest)
            for _, answer in flipped(rest, lambda: _told(ask, next(now))):
                say(answer)

        before = {flip.path: flip.path.read_bytes() for flip in flips[done : done + 1]}
        with child(work) as (_, wait):
            ended = wait()
        for flip, answer in zip(flips[done:], ended.said, strict=False):
            outcome, _, rest = answer.partition(": ")
            what = kind(flip) if outcome == HARMLESS else ""
            if what in OWN:
                outcome, rest = "fault", f"nobody noticed it in a {what}"
            outcomes[f"{outcome}: {what}" if what and outcome == HARMLESS else outcome] += 1
            if outcome == "fault":
                faults.append(f"{flip.path.name} byte {flip.at} bit {flip.bit}: {rest}")
        done += len(ended.said)
        if done < len(flips):
            flip = flips[done]
            outcomes["signal"] += 1
            faults.append(f"{flip.path.name} byte {flip.at} bit {flip.bit}: signal {ended.signal}")
            for path, data in before.items():
                path.write_bytes(data)
            done += 1
    return Found(outcomes, faults)


def _told(ask: Callable[[Flip], str], flip: Flip) -> str:
    try:
        return ask(flip)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a fault to be told)
        return f"fault: {type(error).__name__} {error}".replace("\n", " ")
