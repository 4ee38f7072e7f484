"""Ten thousand flipped bits in a store and its packs: none is given out or verified as good."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from flipping import (
    HARMLESS,
    REPORTED,
    Flip,
    Specimen,
    flipped,
    flips_of,
    pack_outcome,
    structure_flips,
    survey,
    truth_of,
)
from killing import seal_into, whole_pack
from regions import FRAME, FREE, GAP, PAGE, ROW
from workbench import listed, plant

from provstore.errors import FrameError
from provstore.ids import object_id, to_raw
from provstore.store import frame
from provstore.store.lmdb_store import LmdbStore
from provstore.verbs.checking import fsck
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack

INDEX_FLIPS = 1_000
STRUCTURE_FLIPS = 1_200
BLOB_FLIPS = 400
PACK_FLIPS = 2_000
FRAME_FLIPS = 5_000
"""Together ten thousand."""


@pytest.fixture
def specimen(tmp_path: Path) -> Specimen:
    return Specimen(tmp_path)


def refused(outcomes: Counter[str]) -> int:
    return sum(count for outcome, count in outcomes.items() if outcome.startswith("refused "))


def test_the_map_of_an_index_knows_what_is_whose(specimen: Specimen) -> None:
    """Bytes of frames and rows are found in the file by this map alone; dead ones can be written over."""
    data = bytearray(specimen.index.read_bytes())
    kinds = Counter(map(specimen.regions.kind, range(len(data))))
    with specimen.open() as store:
        frames = sum(len(value) for _, value in store._iterate("frames"))
        keys = sum(len(key) for key, _ in store._iterate("frames"))
        written = sum(
            len(key) + len(value)
            for name in ("objects", "records", "refs", "ref_log", "locations", "verdicts", "ledger")
            for key, value in store._iterate(name)
        )
    assert kinds[FRAME] == frames + keys
    assert kinds[ROW] == written
    spare = {FREE, GAP}
    for at in range(2 * PAGE, len(data)):
        if specimen.regions.kind(at) in spare:
            data[at] ^= 0xFF
    specimen.index.write_bytes(data)
    assert specimen.outcome() == HARMLESS


def test_the_quick_judge_says_what_the_other_says(specimen: Specimen) -> None:
    for file in (specimen.index, *specimen.files):
        chosen = flips_of(file, 60, random.Random())
        for flip in chosen:
            answers = {
                answer
                for ask in (specimen.outcome, specimen.quick)
                for _, answer in flipped([flip], lambda ask=ask, flip=flip: ask(flip))  # type: ignore[misc]
            }
            assert len(answers) == 1, (flip, answers)


def test_the_judge_finds_an_untouched_store_harmless(specimen: Specimen) -> None:
    assert specimen.outcome() == HARMLESS


def test_bits_of_the_index(specimen: Specimen) -> None:
    found = survey(flips_of(specimen.index, INDEX_FLIPS, random.Random()), specimen.outcome, specimen.kind)
    assert found.faults == []
    assert sum(found.outcomes.values()) == INDEX_FLIPS
    assert found.outcomes[REPORTED] > INDEX_FLIPS / 20
    assert specimen.outcome() == HARMLESS


def test_bits_that_lmdb_follows(specimen: Specimen) -> None:
    found = survey(
        structure_flips(specimen.index, STRUCTURE_FLIPS, random.Random()), specimen.outcome, specimen.kind
    )
    assert found.faults == []
    assert found.outcomes[REPORTED] > STRUCTURE_FLIPS / 10
    assert refused(found.outcomes) > STRUCTURE_FLIPS / 20
    assert specimen.outcome() == HARMLESS


@pytest.mark.parametrize("number", [0, 1], ids=["raw", "framed"])
def test_bits_of_blob_files(specimen: Specimen, number: int) -> None:
    path = sorted(specimen.files, key=lambda file: file.suffix)[number]
    assert path.suffix == ("", ".frames")[number]
    found = survey(flips_of(path, BLOB_FLIPS, random.Random()), specimen.outcome, specimen.kind)
    assert found.faults == []
    assert found.outcomes == {REPORTED: BLOB_FLIPS}


def test_bits_of_frames(specimen: Specimen) -> None:
    """What unpacks at all has another id."""
    chance = random.Random()
    plains = [data for data in (*specimen.truth.objects.values(), *specimen.truth.records.values()) if data]
    for _ in range(FRAME_FLIPS):
        plain = chance.choice(plains)
        packed = bytearray(frame.vouched(frame.pack([plain])))
        packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
        try:
            assert object_id(frame.unpack(bytes(packed))) != object_id(plain)
        except FrameError:
            continue


def test_bits_of_a_pack(specimen: Specimen, tmp_path: Path) -> None:
    plant(tmp_path / "small", {f"d{i % 3}/{i}": f"{i}\n" * i for i in range(9)})
    path = tmp_path / "run.pack"
    seal_into(specimen.path, tmp_path / "small", "small")
    with specimen.open() as store:
        packet = dict(store.refs())["small"]
        truth = truth_of(store)
        pack([("small", Located(store, packet, False))], path)
    whole_pack(path, packet.hex())
    found = survey(flips_of(path, PACK_FLIPS, random.Random()), lambda _: pack_outcome(path, packet, truth))
    assert found.faults == []
    assert sum(found.outcomes.values()) == PACK_FLIPS
    assert found.outcomes[HARMLESS] == 0  # the hash at the end covers every byte
    whole_pack(path, packet.hex())


def test_fsck_names_object_role_and_packets(specimen: Specimen) -> None:
    path = next(file for file in specimen.files if not file.suffix)
    with open(path, "r+b") as file:
        file.write(b"rotten")
    with specimen.open() as store:
        damaged = fsck(store).damaged
        member = listed(store, dict(store.refs())["run-a"])["raw.bin"]
        packets = {id.hex() for _, id in store.refs()}
    assert {damage.id for damage in damaged} == {member.blake3} == {path.parent.name + path.name}
    assert {damage.packet for damage in damaged} == packets
    assert {damage.path for damage in damaged} == {"raw.bin"}


def test_a_lost_meta_page_is_not_taken_for_an_older_store(specimen: Specimen) -> None:
    """Without a check the other meta page would show the store as it was one commit ago."""
    faults = []
    for place in (0, 1):
        for at in range(144, 152):
            flips = [Flip(specimen.index, place * 4096 + at, bit) for bit in range(8)]
            faults += survey(flips, specimen.outcome).faults
    assert faults == []


def test_frame_numbers_are_not_used_twice_when_the_counter_is_lost(specimen: Specimen) -> None:
    with LmdbStore.open(os.fspath(specimen.path)) as store:
        store._env.write(lambda txn: txn.put("settings", b"next_frame", bytes(8)))
        assert isinstance(store, LmdbStore)
        with store.stage() as stage:
            stage.add_record(to_raw("00" * 32), b"anything")
            stage.commit()
        for id, data in specimen.truth.records.items():
            assert store.record(id) == data
