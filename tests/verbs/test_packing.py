"""Packing: one file, the same bytes for the same content, verified in place, whole or not at all."""

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from workbench import STORES, findings, listed, open_store_of, plant, seal, seal_text, snapshot

from provstore import canon
from provstore.errors import EmptyError, IntegrityError, ProvError, RefConflictError, TargetError
from provstore.ids import Buffer, digests, object_id
from provstore.store import frame, objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.opening import open_pack
from provstore.store.pack_writer import write_pack
from provstore.store.protocol import ObjectInfo, Reader
from provstore.verbs.checking import fsck
from provstore.verbs.listing import cat
from provstore.verbs.locating import locate
from provstore.verbs.packing import pack
from provstore.verbs.restoring import restore
from provstore.verbs.unpacking import unpack
from provstore.verbs.verifying import verify


def pack_of(store: Reader, name: str, path: Path, **options: list[str]) -> bytes:
    pack([(name, locate(name, store))], path, **options)
    return path.read_bytes()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files: dict[str | bytes, str | bytes | None] = {f"d{n % 4}/f{n}": os.urandom(500 + n) for n in range(120)}
    return plant(tmp_path / "t", {**files, "l": "->d0/f0", "e": None, "big": os.urandom(6 << 20)})


def test_equal_content_gives_equal_bytes(tmp_path: Path, tree: Path) -> None:
    made = []
    for kind in STORES:
        (tmp_path / kind).mkdir()
        with open_store_of(kind, tmp_path / kind) as store:
            if kind == "lmdb":
                seal(store, plant(tmp_path / "u", {"other": "x", "f": (tree / "d0/f0").read_bytes()}))
            seal(store, tree, workers=2 if kind == "lmdb" else 0)
            made.append(pack_of(store, "t", tmp_path / f"{kind}.pack"))
    with LmdbStore.create(os.fspath(tmp_path / "third")) as store:
        unpack(store, tmp_path / "memory.pack")
        made.append(pack_of(store, "t", tmp_path / "third.pack"))
    assert len(set(made)) == 1


def test_a_pack_stands_alone(tmp_path: Path, tree: Path) -> None:
    store = MemoryStore()
    packet = seal(store, tree)
    pack_of(store, "t", tmp_path / "t.pack")
    before = snapshot(tree)
    shutil.rmtree(tree)
    with locate(os.fspath(tmp_path / "t.pack"), None) as located:
        assert located.packet == packet
        report = verify(located.reader, packet)
        assert report.outcome == "PASS"
        assert report.objects_checked == 121
        assert b"".join(cat(located.reader, packet, "d1/f1")) == before[b"d1/f1"][1]
        assert len(listed(located.reader, packet)) == 123
        restore(located.reader, packet, tmp_path / "out")
        assert fsck(located.reader).damaged == ()
    assert snapshot(tmp_path / "out") == before


def test_unpacking_brings_everything_and_a_second_time_nothing(tmp_path: Path, tree: Path) -> None:
    store = MemoryStore()
    packet = seal(store, tree)
    pack_of(store, "t", tmp_path / "t.pack")
    with LmdbStore.create(os.fspath(tmp_path / "s")) as other:
        first = unpack(other, tmp_path / "t.pack")
        assert (first.names, first.packets) == (("t",), (packet.hex(),))
        assert other.ref("t") == packet
        assert verify(other, packet).outcome == "PASS"
        again = unpack(other, tmp_path / "t.pack")
        assert (again.objects, again.records, again.bytes_stored) == (0, 0, 0)


def test_unpacking_takes_frames_as_they_are_and_walks_the_records_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    small: dict[str | bytes, str | bytes | None] = {
        f"d{n}/f{n}": random.Random(n).randbytes(9_000) for n in range(300)
    }
    seal(store, plant(tmp_path / "t", small))
    pack_of(store, "t", tmp_path / "t.pack")
    packed: list[int] = []
    decoded: list[bytes] = []
    compress, take_apart = frame.pack, canon.decode

    def count_packed(parts: Sequence[Buffer], level: int = frame.LEVEL) -> bytes:
        packed.append(sum(map(len, parts)))
        return compress(parts, level)

    def count_decoded(data: bytes, *rest: Any, **named: Any) -> Any:
        decoded.append(data)
        return take_apart(data, *rest, **named)

    monkeypatch.setattr(frame, "pack", count_packed)
    monkeypatch.setattr(canon, "decode", count_decoded)
    with LmdbStore.create(os.fspath(tmp_path / "s")) as other:
        report = unpack(other, tmp_path / "t.pack")
        assert report.objects == 300
        assert sum(packed) < 300 * 9_000 / 10, "objects were compressed again"
        assert len(decoded) == report.records + 1, "each record once, the packet once more"


def test_unpacking_takes_no_more_than_its_packets_need(tmp_path: Path) -> None:
    """A frame with one stranger in it is not taken whole."""
    store = MemoryStore()
    packet = seal(store, plant(tmp_path / "t", {"a": "one", "b": "two"}))
    found = [(id, info, [objects.read(store, id)]) for id, info in store.objects()]
    stranger = digests(b"stranger")
    found.append((stranger.blake3, ObjectInfo(8, stranger.sha256, "inline"), [b"stranger"]))
    with open(tmp_path / "t.pack", "wb") as out:
        write_pack(out, [("t", packet)], [(id, objects.record(store, id)) for id in store.records()], found)
    with LmdbStore.create(os.fspath(tmp_path / "s")) as other:
        assert unpack(other, tmp_path / "t.pack").objects == 2
        assert other.info(stranger.blake3) is None
        assert verify(other, packet).outcome == "PASS"


def test_every_flipped_byte_is_refused_or_named(tmp_path: Path) -> None:
    store = MemoryStore()
    files: dict[str | bytes, str | bytes | None] = {f"f{n}": os.urandom(300) for n in range(6)}
    packet = seal(store, plant(tmp_path / "t", files | {"text": "a line of a log\n" * 50}))
    whole = pack_of(store, "t", tmp_path / "t.pack")
    chance = random.Random(1)
    places = {*range(0, 200, 7), *range(len(whole) - 200, len(whole), 7)}
    places |= set(chance.sample(range(len(whole)), 250))
    survived = []
    for place in sorted(places):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << chance.randrange(8)
        path = tmp_path / "bad.pack"
        path.write_bytes(damaged)
        target = MemoryStore()
        try:
            unpack(target, path)
        except ProvError:
            assert list(target.objects()) == []
            assert target.refs() == []
        else:
            survived.append(place)
            assert verify(target, packet).outcome == "PASS"
        try:
            with locate(os.fspath(path), None) as located:
                report = verify(located.reader, located.packet)
        except ProvError:
            continue
        if report.outcome == "PASS":
            assert located.packet == packet
            survived.append(place)
    assert survived == []


def test_only_and_without_leave_bytes_out_and_say_so(tmp_path: Path) -> None:
    plant(tmp_path, {"e/log": "log", "w/a": "aaaa", "w/b": "bb"})
    (tmp_path / "w.sum").write_text("".join(f"{h}  {n}\n" for n, h in sums(tmp_path / "w")))
    text = (
        '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "e"\n'
        '[[entry]]\nrole = "w"\nkind = "model"\npath = "w"\nmanifest = "w.sum"\n'
    )
    store = MemoryStore()
    packet = seal_text(store, tmp_path, text)
    whole = pack_of(store, "run", tmp_path / "whole.pack")
    for name, options in (
        ("kind", {"only": ["evidence"]}),
        ("role", {"only": ["e"]}),
        ("path", {"only": ["e/log"]}),
        ("without", {"without": ["model"]}),
        ("both", {"only": ["e", "w"], "without": ["w/*"]}),
    ):
        data = pack_of(store, "run", tmp_path / f"{name}.pack", **options)
        assert len(data) < len(whole) or len(whole) < 4096
        with locate(os.fspath(tmp_path / f"{name}.pack"), None) as located:
            assert located.packet == packet
            report = verify(located.reader, packet)
            assert report.outcome == "INCOMPLETE"
            assert findings(report) == {"w/a": "not-held", "w/b": "not-held"}
            assert {m.path for m in report.missing} == {"a", "b"}
            assert verify(located.reader, packet, only="e").outcome == "PASS"
        other = MemoryStore()
        unpack(other, tmp_path / f"{name}.pack")
        assert verify(other, packet).outcome == "INCOMPLETE"
        unpack(other, tmp_path / "whole.pack")
        assert verify(other, packet).outcome == "PASS"


def sums(folder: Path) -> list[tuple[str, str]]:
    import hashlib

    return [(p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in sorted(folder.iterdir())]


def test_several_packets_share_what_they_share(tmp_path: Path) -> None:
    store = MemoryStore()
    shared = os.urandom(200_000)
    first = seal(store, plant(tmp_path / "a", {"s": shared, "x": "1"}))
    second = seal(store, plant(tmp_path / "b", {"s": shared, "x": "2"}))
    both = [(name, locate(name, store)) for name in ("a", "b")]
    report = pack(both, tmp_path / "both.pack")
    assert set(report.packets) == {first.hex(), second.hex()}
    assert report.objects == 3
    pack(both[::-1], tmp_path / "turned.pack")
    assert (tmp_path / "turned.pack").read_bytes() == (tmp_path / "both.pack").read_bytes()
    with pytest.raises(ProvError):
        locate(os.fspath(tmp_path / "both.pack"), None)
    with locate(f"{tmp_path / 'both.pack'}:b", None) as located:
        assert located.packet == second
        assert verify(located.reader, second).outcome == "PASS"


def test_a_target_that_is_there_stays(tmp_path: Path, tree: Path) -> None:
    store = MemoryStore()
    seal(store, tree)
    (tmp_path / "t.pack").write_text("mine")
    (tmp_path / "link").symlink_to("gone")
    for name in ("t.pack", "link", "t", "no/such/place.pack"):
        with pytest.raises(TargetError):
            pack([("t", locate("t", store))], tmp_path / name)
    assert (tmp_path / "t.pack").read_text() == "mine"
    assert not (tmp_path / "gone").exists()


def test_damage_is_not_packed_and_leaves_no_file(tmp_path: Path, tree: Path) -> None:
    store = MemoryStore()
    seal(store, tree)
    data = (tree / "big").read_bytes()
    store._content.data[object_id(data)] = data[:-1] + b"?"
    with pytest.raises(IntegrityError):
        pack([("t", locate("t", store))], tmp_path / "t.pack")
    assert [path.name for path in tmp_path.iterdir() if "pack" in path.name] == []


def test_a_ref_of_another_packet_is_not_taken_over(tmp_path: Path) -> None:
    store, other = MemoryStore(), MemoryStore()
    seal(store, plant(tmp_path / "a", {"f": "1"}), name="run")
    mine = seal(other, plant(tmp_path / "b", {"f": "2"}), name="run")
    pack_of(store, "run", tmp_path / "t.pack")
    with pytest.raises(RefConflictError):
        unpack(other, tmp_path / "t.pack")
    assert other.ref("run") == mine
    assert other.info(object_id(b"1")) is None


def test_external_bytes_are_named_in_the_pack(tmp_path: Path) -> None:
    plant(tmp_path, {"w/a": "aaaa"})
    store = MemoryStore()
    packet = seal_text(
        store, tmp_path, '[[entry]]\nrole = "w"\nkind = "file"\npath = "w/a"\nkeep = "external"\n'
    )
    report = pack([("run", locate("run", store))], tmp_path / "t.pack")
    assert (report.objects, report.left_out) == (0, 1)
    with open_pack(tmp_path / "t.pack") as reader:
        away = verify(reader, packet)
        assert away.outcome == "INCOMPLETE"
        assert [m.sha256 is not None for m in away.missing] == [True]
        assert verify(reader, packet, at=[tmp_path / "w"]).outcome != "FAIL"


def test_nothing_to_pack(tmp_path: Path) -> None:
    with pytest.raises(EmptyError):
        pack([], tmp_path / "x.pack")
