"""One altered byte, anywhere: nothing that was altered is ever counted as verified, and fsck names it."""

import functools
import hashlib
import os
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import lmdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbench import plant, seal, seal_text

import provstore
from provstore.errors import FrameError, ProvError
from provstore.files import hashing
from provstore.ids import RawId
from provstore.reports import FsckReport
from provstore.store import frame, objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.profile import StoreProfile
from provstore.store.protocol import Reader
from provstore.verbs.listing import ls
from provstore.verbs.locating import Located, locate
from provstore.verbs.packing import pack
from provstore.verbs.proving import prove, verify_proof
from provstore.verbs.verifying import verify

PROFILE = StoreProfile(sync=False)
MASKS = (0x01, 0x08, 0x10, 0x20, 0x80, 0xFF)

OBSERVATION = "(observation)"
"""Where fsck puts what is said about a seal, which no verdict on its packet needs."""


class Specimen(NamedTuple):
    """A sealed store on disk, and what is right in it.

    Attributes:
        place: the store.
        packet: what was sealed.
        stored: of each database its keys and values.
        blobs: its blob files.
        members: content of each object.
    """

    place: Path
    packet: RawId
    stored: dict[str, dict[bytes, bytes]]
    blobs: list[Path]
    members: dict[RawId, bytes]


def stored(place: Path) -> dict[str, dict[bytes, bytes]]:
    """Read the index with LMDB alone."""
    found = {}
    with lmdb.open(os.fspath(place), max_dbs=32, readonly=True, lock=False) as env:
        for name in ("frames", "objects", "records"):
            database = env.open_db(name.encode(), create=False)
            with env.begin(db=database) as txn:
                found[name] = {bytes(key): bytes(value) for key, value in txn.cursor()}
    return found


@contextmanager
def flipped(path: Path, what: bytes, at: int, mask: int) -> Iterator[None]:
    """Alter one byte of something that lies somewhere in a file, as a bad disk does; undo it afterwards."""
    data = path.read_bytes()
    places = [found.start() + at for found in re.finditer(re.escape(what), data)]
    assert places
    try:
        with path.open("r+b") as file:
            for place in places:
                os.pwrite(file.fileno(), bytes((data[place] ^ mask,)), place)
        yield
    finally:
        with path.open("r+b") as file:
            for place in places:
                os.pwrite(file.fileno(), data[place : place + 1], place)


@pytest.fixture(scope="module")
def specimen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Specimen]:
    """Text that compresses, noise that does not, a split directory, facts, a manifest, both forms of blob."""
    place = tmp_path_factory.mktemp("damage")
    dice = random.Random(1)
    plant(place / "run", {f"f{n:03}": f"line {n}\n" * (n % 9) for n in range(90)})
    plant(
        place / "run",
        {"noise": dice.randbytes(700), "d/e/same": "f", "x": "+x#!/bin/sh\n", "l": "->x", "none": None},
    )
    plant(place / "big", {"noise.bin": dice.randbytes(9000), "text.log": "a line of a log\n" * 900})
    files = sorted(path for path in (place / "run").rglob("*") if path.is_file() and not path.is_symlink())
    (place / "record.json").write_text('{"tok_s": "102.97", "runs": [1, 2, 3]}')
    (place / "big.sha256").write_text(
        "".join(
            f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n"
            for p in sorted((place / "big").iterdir())
        )
    )
    store = LmdbStore.create(os.fspath(place / "store"), profile=PROFILE)
    patch = pytest.MonkeyPatch()
    patch.setattr(hashing, "SMALL_BYTES", 8000)
    packet = seal_text(
        store,
        place,
        '[[entry]]\nrole = "run"\nkind = "evidence"\npath = "run"\n'
        '[[entry]]\nrole = "big"\nkind = "evidence"\npath = "big"\nmanifest = "big.sha256"\n'
        '[[entry]]\nrole = "record"\nkind = "record"\npath = "record.json"\n',
    )
    patch.undo()
    assert verify(store, packet).outcome == "PASS"
    assert len(files) == 93
    members = {id: objects.read(store, id) for id, _ in store.objects()}
    store.close()
    blobs = sorted(path for path in (place / "store" / "blobs").rglob("*") if path.is_file())
    assert len(blobs) == 2
    yield Specimen(place / "store", packet, stored(place / "store"), blobs, members)
    shutil.rmtree(place)


def judged(specimen: Specimen) -> tuple[str, FsckReport]:
    """Return the verdict (``error`` for an exception of ours) and what fsck says; nothing else may happen."""
    store = LmdbStore.open(os.fspath(specimen.place), writable=False, profile=PROFILE)
    try:
        try:
            verdict: str = verify(store, specimen.packet).outcome
        except ProvError:
            verdict = "error"
        for id, data in specimen.members.items():
            try:
                assert objects.read(store, id) == data, "bytes that are not the object's were given out"
            except ProvError:
                continue
        return verdict, provstore.fsck(store)
    finally:
        store.close()


def caught(specimen: Specimen) -> None:
    """Check that what was altered is damage to everybody who looks."""
    verdict, report = judged(specimen)
    assert report.damaged, f"fsck finds nothing; verify says {verdict}"
    assert all(damage.reason for damage in report.damaged)
    ours = [damage for damage in report.damaged if damage.packet == specimen.packet.hex()]
    assert ours, "it is named without the packet that needs it"  # what hangs below a lost record may be
    assert (verdict == "PASS") == ({damage.path for damage in ours} == {OBSERVATION})


def harmless(data: bytes, at: int, mask: int) -> bool:
    """Say whether an altered frame still unpacks to what it held.

    A compressed frame has bits that mean nothing and more than one way to say the same; about one in a
    hundred. What comes out is what is checked, so there is nothing to find.
    """
    if data[0] != frame.ZSTD:
        return False
    try:
        return frame.unpack(altered(data, at, mask)) == frame.unpack(data)
    except FrameError:
        return False


def flips(data: bytes, count: int, seed: int) -> Iterator[tuple[int, int]]:
    """Yield positions and masks: every byte of the head, and some everywhere."""
    dice = random.Random(seed)
    for at in range(min(len(data), 24)):
        yield at, dice.choice(MASKS)
    for _ in range(count):
        yield dice.randrange(len(data)), dice.choice(MASKS)


def altered(data: bytes, at: int, mask: int) -> bytes:
    return data[:at] + bytes((data[at] ^ mask,)) + data[at + 1 :]


def test_any_byte_of_any_frame(specimen: Specimen) -> None:
    frames = specimen.stored["frames"].values()
    assert len(frames) >= 2
    spared = 0
    for number, data in enumerate(frames):
        for at, mask in flips(data, 30, number):
            if harmless(data, at, mask):
                spared += 1
                continue
            with flipped(specimen.place / "data.mdb", data, at, mask):
                try:
                    caught(specimen)
                except AssertionError as error:
                    raise AssertionError(f"frame {number}, byte {at}, mask {mask:#x}: {error}") from error
    assert judged(specimen)[0] == "PASS"
    assert spared <= 5 * len(frames)


def test_any_byte_of_any_blob_file(specimen: Specimen) -> None:
    framed = [path.name for path in specimen.blobs if path.stat().st_size < 5000]
    assert len(framed) == 1
    for number, path in enumerate(specimen.blobs):
        data = path.read_bytes()
        for at, mask in flips(data, 30, number):
            if path.name in framed and harmless(data, at, mask):
                continue
            with flipped(path, data, at, mask):
                try:
                    caught(specimen)
                    assert judged(specimen)[0] == "FAIL"
                except AssertionError as error:
                    raise AssertionError(f"{path.name}, byte {at}, mask {mask:#x}: {error}") from error
    assert judged(specimen)[0] == "PASS"


@pytest.mark.parametrize("change", ["cut", "longer", "empty", "gone"])
def test_blob_files_of_another_length(specimen: Specimen, change: str) -> None:
    for path in specimen.blobs:
        data = path.read_bytes()
        if change == "gone":
            path.unlink()
        else:
            path.write_bytes({"cut": data[:-1], "longer": data + b"\0", "empty": b""}[change])
        caught(specimen)
        assert judged(specimen)[0] == "FAIL"
        path.write_bytes(data)


@pytest.mark.parametrize("database", ["objects", "records"])
def test_any_byte_of_a_row_that_says_where_something_is(specimen: Specimen, database: str) -> None:
    """Rows are no evidence; but none may lead to other bytes than those of the id."""
    dice = random.Random(4)
    rows = specimen.stored[database]
    for key in dice.sample(sorted(rows), min(len(rows), 3)):
        for at in range(len(key) + len(rows[key])):
            mask = dice.choice(MASKS)
            with flipped(specimen.place / "data.mdb", key + rows[key], at, mask):
                try:
                    verdict, report = judged(specimen)
                    needed = [
                        damage for damage in report.damaged if damage.packet and damage.path != OBSERVATION
                    ]
                    assert bool(needed) == (verdict != "PASS"), (verdict, report.damaged)
                except AssertionError as error:
                    raise AssertionError(f"{database} {key.hex()}, byte {at}, {mask:#x}: {error}") from error
    assert judged(specimen)[0] == "PASS"


def in_memory(files: int) -> tuple[MemoryStore, RawId]:
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir("/")
        place = Path(os.path.join(os.environ.get("TMPDIR", "/tmp"), f"prov-damage-{os.getpid()}"))
        try:
            plant(place, {f"d/f{n:03}": f"content {n}" for n in range(files)})
            packet = seal(store, place, name="run")
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return store, packet


@functools.cache
def memory() -> tuple[MemoryStore, RawId]:
    return in_memory(80)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_byte_of_any_record_and_object_in_memory(draw: st.DataObject) -> None:
    store, packet = memory()
    shelf = draw.draw(st.sampled_from([store._content.records, store._content.data]))
    id = draw.draw(st.sampled_from(sorted(shelf)))
    data = shelf[id]
    at = draw.draw(st.integers(0, len(data) - 1))
    shelf[id] = altered(data, at, draw.draw(st.integers(1, 255)))
    try:
        report = provstore.fsck(store)
        assert id.hex() in {damage.id for damage in report.damaged}
        named = [damage for damage in report.damaged if damage.id == id.hex()]
        assert all(damage.packet for damage in named)
        observation = id in {step.observation for step in store.ref_log()}
        assert verify(store, packet).outcome == ("PASS" if observation else "FAIL")
    finally:
        shelf[id] = data


# Packs


@pytest.fixture(scope="module")
def small_pack(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RawId]:
    place = tmp_path_factory.mktemp("pack")
    store = MemoryStore()
    packet = seal(
        store, plant(place / "t", {"a.txt": "hello, world\n" * 9, "d/b.bin": bytes(range(200)), "e": ""})
    )
    pack([("run", Located(store, packet, False))], place / "p.pack")
    return place / "p.pack", packet


def test_any_byte_of_a_pack(small_pack: tuple[Path, RawId], tmp_path: Path) -> None:
    """Also of its index and its ends: it is refused, or it fails; fsck names it; nothing enters a store."""
    path, packet = small_pack
    data = path.read_bytes()
    other = tmp_path / "altered.pack"
    dice = random.Random(6)
    slipped = []
    for at in range(len(data)):
        other.write_bytes(altered(data, at, dice.choice(MASKS)))
        if passes(other, packet):
            slipped.append(at)
        with pytest.raises(ProvError):
            provstore.unpack(MemoryStore(), other)
    assert slipped == []


def passes(path: Path, packet: RawId) -> bool:
    try:
        with locate(os.fspath(path), None) as (reader, found, _):
            report = provstore.fsck(reader)
            return found == packet and verify(reader, found).outcome == "PASS" and not report.damaged
    except ProvError:
        return False


# Inclusion proofs


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, bytes, Reader, RawId]]:
    place = tmp_path_factory.mktemp("proofs")
    store = MemoryStore()
    plant(place / "t", {f"dir/file number {n:03}.txt": f"content {n}" for n in range(70)})
    plant(place / "t", {"x": "+x#!", "link to x": "->x", b"no\xfftext\n": "y"})
    packet = seal(store, place / "t")
    made: list[tuple[str, bytes, Reader, RawId]] = []
    for path in ("dir/file number 042.txt", "x", "link to x", r"no\xfftext\x0a"):
        output = place / f"{len(made)}.proof"
        prove(store, packet, path, output)
        made.append((path, output.read_bytes(), store, packet))
    return made


def verdict(data: bytes) -> str:
    try:
        return verify_proof(data, "proof").outcome
    except ProvError:
        return "error"


Proofs = Sequence[tuple[str, bytes, Reader, RawId]]


def test_any_byte_of_an_inclusion_proof(proofs: Proofs) -> None:
    for path, data, reader, packet in proofs:
        assert verdict(data) == "PASS"
        start = data.index(b'"path":') + 8
        end = data.index(b'"', start)
        dice = random.Random(len(data))
        for at in range(len(data)):
            for mask in {0x01, dice.randrange(1, 256)} if start <= at < end else {dice.choice(MASKS)}:
                other = altered(data, at, mask)
                if verdict(other) != "PASS":
                    continue
                # Only the path may lead elsewhere, and then the packet does say so of that member.
                assert start <= at < end, (path, at, mask)
                (check,) = verify_proof(other, "proof").checks
                member = {m.path: m for m in ls(reader, packet)}[check.path]
                assert check.path != path
                assert check.found == (member.blake3 or member.type)


def test_records_left_out_doubled_or_exchanged_prove_nothing(proofs: Proofs) -> None:
    (_, data, _, _), (_, other, _, _) = proofs[0], proofs[1]
    start = data.index(b'"records":[') + len(b'"records":[')
    parts = data[start:-2].split(b'",')
    records = [*(part + b'"' for part in parts[:-1]), parts[-1]]
    assert data[:start] + b",".join(records) + b"]}" == data
    strange = other[other.index(b'"records":[') + len(b'"records":[') : -2].split(b'",')[-1]
    assert len(records) >= 4
    choices = [records[:n] + records[n + 1 :] for n in range(len(records))]
    choices += [[*records, record] for record in records]
    choices += [[*records, strange + (b"" if strange.endswith(b'"') else b'"')], [], records[:1]]
    for chosen in choices:
        if chosen != records:
            assert verdict(data[:start] + b",".join(chosen) + b"]}") != "PASS"


def test_a_proof_holds_a_file_to_its_member(proofs: Proofs, tmp_path: Path) -> None:
    _, data, _, packet = proofs[0]
    file = tmp_path / "f"
    file.write_text("content 42")
    assert verify_proof(data, "proof", against=file).outcome == "PASS"
    for text in ("content 43", "", "content 42\n"):
        file.write_text(text)
        assert verify_proof(data, "proof", against=file).outcome == "FAIL"
    assert verify_proof(data, "proof").packet == packet.hex()
