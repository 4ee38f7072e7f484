"""fsck --repair and --rebuild-index: good bytes from every kind of source, kills at every step."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import (
    PROFILE,
    Say,
    copied,
    killed_at,
    left_in,
    run,
    seal_into,
    small_batches,
    sound,
    steps_of,
    tree,
)
from prov_run import Prov
from workbench import plant, seal

from provstore.errors import (
    InputOutputError,
    NotAStoreError,
    PackError,
    ReadOnlyError,
    StoreDamagedError,
    UsageError,
)
from provstore.ids import RawId, digests, object_id, to_raw
from provstore.reports import FsckReport
from provstore.store import frame, rows, steps
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import gc
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack
from provstore.verbs.repairing import rebuild_index, repair
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.verifying import verify

LAYOUT = Path(__file__).parents[2] / "stores" / "LAYOUT.md"


def table_row(step: str) -> list[str]:
    """Return the cells of the crash table behind a step."""
    found = re.search(rf"^\| `{step}` \|(.*)\|$", LAYOUT.read_text(), re.MULTILINE)
    assert found is not None
    return [cell.strip() for cell in found[1].split("|")]


def open_store(path: Path, *, writable: bool = True) -> LmdbStore:
    return LmdbStore.open(os.fspath(path), writable=writable, profile=PROFILE)


class Scene:
    """A store with packet ``a``, and every kind of source that has its bytes.

    Attributes:
        source: the tree that was sealed.
        other: another store with the packet.
        pack: a pack of it.
        packet: its id.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.path = place / "store"
        self.source = tree(place / "a", "a")
        LmdbStore.create(os.fspath(self.path), profile=PROFILE).close()
        self.packet = seal_into(self.path, self.source, "a")
        self.other = copied(self.path, place / "other")
        self.pack = place / "a.pack"
        with open_store(self.other, writable=False) as store:
            pack([("a", Located(store, to_raw(self.packet), False))], self.pack)

    def from_(self, kind: str) -> list[Path]:
        return {
            "store": [self.other],
            "pack": [self.pack],
            "directory": [self.source],
            "nothing": [],
        }[kind]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def blob_file(path: Path, *, framed: bool) -> Path:
    return next(f for f in sorted(path.joinpath("blobs").glob("*/*")) if (f.suffix == ".frames") == framed)


def id_of(file: Path) -> str:
    return file.parent.name + file.name.removesuffix(".frames")


def flip(file: Path, at: float = 0.5) -> str:
    data = bytearray(file.read_bytes())
    data[int(len(data) * at)] ^= 0x10
    file.write_bytes(data)
    return id_of(file)


def cut(file: Path) -> str:
    file.write_bytes(file.read_bytes()[:-100])
    return id_of(file)


def lose(file: Path) -> str:
    file.unlink()
    return id_of(file)


def frames_of(path: Path, database: str) -> dict[int, list[RawId]]:
    """Return the members of each frame, in order."""
    with open_store(path, writable=False) as store:
        return {
            int.from_bytes(unit.key, "big"): list(unit.objects if database == "objects" else unit.records)
            for unit in store.units()
            if len(unit.key) == 8 and (unit.objects if database == "objects" else unit.records)
        }


def alter_frame(path: Path, number: int, change: Callable[[bytes], bytes]) -> None:
    with open_store(path) as store:
        packed = store._env.get("frames", rows.number_key(number))
        assert packed is not None
        store._env.write(lambda txn: txn.put("frames", rows.number_key(number), change(packed)))


def cut_frame(packed: bytes) -> bytes:
    return packed[:-40]


def flip_frame(packed: bytes) -> bytes:
    data = bytearray(packed)
    data[len(data) // 2] ^= 1
    return bytes(data)


def spoil_a_frame(path: Path, database: str) -> list[str]:
    """Make the first frame of a kind unreadable; return its members."""
    number, members = next(iter(frames_of(path, database).items()))
    alter_frame(path, number, lambda packed: packed[: frame.HEADER.size] + b"\xff" * 30)
    return [id.hex() for id in members]


DAMAGE: dict[str, Callable[[Path], list[str]]] = {
    "raw blob flipped": lambda path: [flip(blob_file(path, framed=False))],
    "raw blob cut": lambda path: [cut(blob_file(path, framed=False))],
    "raw blob gone": lambda path: [lose(blob_file(path, framed=False))],
    "framed blob flipped": lambda path: [flip(blob_file(path, framed=True))],
    "framed blob gone": lambda path: [lose(blob_file(path, framed=True))],
    "frame of objects": lambda path: spoil_a_frame(path, "objects"),
    "frame of records": lambda path: spoil_a_frame(path, "records"),
}


def whole(path: Path, packet: str) -> None:
    """Check that nothing is damaged, nothing is left over, and the packet verifies."""
    assert left_in(path) == ([], [], [])
    with open_store(path, writable=False) as store:
        report = fsck(store)
        assert (report.damaged, report.unreferenced) == ((), 0)
        assert verify(store, to_raw(packet)).outcome == "PASS"
        assert dict(store.refs())["a"] == to_raw(packet)


@pytest.mark.parametrize("source", ["store", "pack", "directory"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_good_bytes_come_from_every_kind_of_source(scene: Scene, damage: str, source: str) -> None:
    bad = DAMAGE[damage](scene.path)
    with open_store(scene.path) as store:
        assert {d.id for d in fsck(store).damaged} >= set(bad[:1])
        report = repair(store, scene.from_(source))
        if source == "directory" and damage == "frame of records":
            assert report.repaired == ()  # no file is a record
            assert set(bad) <= {d.id for d in report.damaged}
            return
        if source == "pack" and damage == "frame of records":
            (damaged,) = report.damaged  # what was observed when it was sealed does not travel in packs
            assert (damaged.packet, damaged.path) == (scene.packet, "(observation)")
            report = repair(store, [scene.other])
            bad = [damaged.id]
            source = "store"
        assert report.damaged == ()
        assert {item.id for item in report.repaired} == set(bad)
        assert {item.kind for item in report.repaired} == {"record" if "records" in damage else "object"}
        where = os.fspath(scene.from_(source)[0])
        assert all(item.source.startswith(where) for item in report.repaired)
        assert repair(store, scene.from_(source)).repaired == ()
    whole(scene.path, scene.packet)


def shape(store: LmdbStore) -> object:
    files = sorted(f.name for f in Path(store.path).rglob("*") if f.is_file())
    return files, list(store.units()), list(store.objects()), store.refs(), store.ref_log()


@pytest.mark.parametrize("damage", DAMAGE)
def test_without_a_source_damage_stays_and_nothing_gets_worse(scene: Scene, damage: str) -> None:
    bad = DAMAGE[damage](scene.path)
    with open_store(scene.path) as store:
        before = fsck(store)
        index = shape(store)
        report = repair(store)
        assert (report.damaged, report.repaired) == (before.damaged, ())
        assert {d.id for d in report.damaged} >= set(bad[:1])
        assert shape(store) == index
        assert repair(store, [scene.other]).damaged == ()
    whole(scene.path, scene.packet)


def test_a_file_that_was_sealed_where_it_lies_is_a_source_by_itself(tmp_path: Path) -> None:
    source = plant(tmp_path / "t", {"f": os.urandom(5 << 20), "g": "small"})
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        packet = seal_paths(store, [source], options=SealOptions(keep=False)).packet
        seal(store, source, name="held")
        bad = flip(blob_file(tmp_path / "s", framed=False))
        report = repair(store)
        assert [(item.id, item.source) for item in report.repaired] == [(bad, os.fspath(source / "f"))]
        assert report.damaged == ()
        assert verify(store, to_raw(packet)).outcome == "PASS"
        flip(blob_file(tmp_path / "s", framed=False))
        (source / "f").write_bytes(os.urandom(5 << 20))
        assert {d.id for d in repair(store).damaged} == {bad}


def test_sources_are_asked_in_turn_until_one_has_whole_bytes(scene: Scene) -> None:
    bad = flip(blob_file(scene.path, framed=False))
    flip(blob_file(scene.other, framed=False))
    wrong = plant(scene.place / "wrong", {"x": bytes(40_001), "y": b"a" + bytes(40_000)})
    with open_store(scene.path) as store:
        assert [d.id for d in repair(store, [scene.other, wrong]).damaged] == [bad]
        report = repair(store, [scene.other, wrong, scene.source / "raw.bin"])
        assert [(i.id, i.source) for i in report.repaired] == [(bad, os.fspath(scene.source / "raw.bin"))]
    whole(scene.path, scene.packet)


def test_whole_members_of_a_damaged_frame_survive(tmp_path: Path) -> None:
    """One frame, four members; the one in the middle is damaged in a way that unpacks."""
    contents = [os.urandom(3000) for _ in range(4)]
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        source = plant(tmp_path / "t", {f"f{i}": data for i, data in enumerate(contents)})
        packet = seal(store, source)
    numbers = frames_of(tmp_path / "s", "objects")
    (number, members) = next(iter(numbers.items()))
    assert len(members) == 4
    alter_frame(tmp_path / "s", number, lambda packed: packed[:4000] + b"\0" + packed[4001:])
    with open_store(tmp_path / "s") as store:
        (damage,) = fsck(store).damaged
        assert [d.id for d in repair(store).damaged] == [damage.id]
        assert frames_of(tmp_path / "s", "objects") == numbers  # nothing was gained, so nothing was moved
        report = repair(store, [source])
        assert [item.id for item in report.repaired] == [damage.id]
        assert number not in frames_of(tmp_path / "s", "objects")
        assert verify(store, packet).outcome == "PASS"
    assert left_in(tmp_path / "s") == ([], [], [])


def test_members_before_the_break_of_a_compressed_frame_are_rescued_from_it(tmp_path: Path) -> None:
    contents = [os.urandom(90_000).hex() for _ in range(5)]
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        packet = seal(store, plant(tmp_path / "t", {f"f{i}": data for i, data in enumerate(contents)}))
    number, members = next(iter(frames_of(tmp_path / "s", "objects").items()))
    assert len(members) == 5
    alter_frame(tmp_path / "s", number, lambda packed: packed[: int(len(packed) * 0.7)])
    with open_store(tmp_path / "s") as store:
        assert {d.id for d in fsck(store).damaged} == {id.hex() for id in members}
        report = repair(store)
        rescued = {item.id for item in report.repaired}
        assert {item.source for item in report.repaired} == {"what is left of its own frames"}
        assert rescued == {id.hex() for id in members[: len(rescued)]}
        assert 0 < len(rescued) < 5
        assert {d.id for d in report.damaged} == {id.hex() for id in members} - rescued
        assert number in frames_of(tmp_path / "s", "objects")  # it stays for those that are still in it
        last = repair(store, [tmp_path / "t"])
        assert {item.id for item in last.repaired} == {id.hex() for id in members} - rescued
        assert number not in frames_of(tmp_path / "s", "objects")
        assert verify(store, packet).outcome == "PASS"
    assert left_in(tmp_path / "s") == ([], [], [])


@pytest.mark.parametrize("where", ["records", "objects", "blob"])
def test_a_bit_that_changes_no_byte_is_damage_all_the_same_and_mended_without_a_source(
    scene: Scene, where: str
) -> None:
    """The unused bit of a Zstandard header: every object can be had, no stored byte is taken for good."""
    spot = frame.HEADER.size + 4
    text = plant(
        scene.place / "text", {f"{number}": f"a line of text {number}\n" * 40 for number in range(9)}
    )
    packet = seal_into(scene.path, text, "text")

    def turn(packed: bytes) -> bytes:
        assert packed[0] == frame.CHECKED
        return packed[:spot] + bytes((packed[spot] ^ 0x10,)) + packed[spot + 1 :]

    if where == "blob":
        file = blob_file(scene.path, framed=True)
        file.write_bytes(turn(file.read_bytes()))
        members = [to_raw(id_of(file))]
        packet = scene.packet
    else:
        number, members = list(frames_of(scene.path, where).items())[-1]
        alter_frame(scene.path, number, turn)
    with open_store(scene.path) as store:
        damaged = fsck(store).damaged
        assert {item.id for item in damaged if item.packet == packet} >= {
            id.hex() for id in members if where != "records"
        }
        assert {item.id for item in damaged} == {id.hex() for id in members}
        report = repair(store)
        assert report.damaged == ()
        assert {item.source for item in report.repaired} == {"what is left of its own frames"}
    sound(scene.path, {"a": scene.packet, "text": seal_into(scene.path, text, "text")})


def test_frames_without_a_check_are_read_as_they_always_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "vouched", lambda packed: packed)
    old = Scene(tmp_path)
    monkeypatch.undo()
    assert blob_file(old.path, framed=True).read_bytes()[0] == frame.ZSTD
    sound(old.path, {"a": old.packet})
    seal_into(old.path, plant(old.source, {"more": "text " * 99}), "b")
    with open_store(old.path) as store:
        assert fsck(store).damaged == ()


def test_a_rebuild_takes_a_file_whose_bytes_are_right_and_fsck_names_it(scene: Scene) -> None:
    file = blob_file(scene.path, framed=True)
    data = bytearray(file.read_bytes())
    data[frame.HEADER.size + 4] ^= 0x10
    file.write_bytes(data)
    scene.path.joinpath("data.mdb").unlink()
    assert rebuild_index(scene.path).damaged == ()
    with open_store(scene.path) as store:
        assert [item.id for item in fsck(store).damaged] == [id_of(file)]
        assert repair(store).damaged == ()


def test_an_index_entry_that_lies_about_whole_bytes_is_put_right(scene: Scene) -> None:
    file = blob_file(scene.path, framed=False)
    key = to_raw(id_of(file))
    with open_store(scene.path) as store:
        row = store._env.get("objects", key)
        assert row is not None
        lie = row[:1] + bytes(32) + row[33:]
        store._env.write(lambda txn: txn.put("objects", key, lie))
        assert {d.id for d in fsck(store).damaged} == {key.hex()}
        report = repair(store)
        assert [item.source for item in report.repaired] == [
            "its own bytes; what the index said of them was wrong"
        ]
        info = store.info(key)
        assert info is not None
        assert info.sha256 == digests((scene.source / "raw.bin").read_bytes()).sha256
        assert store.match("sha256", "00" * 6) == []
        assert store.match("sha256", info.sha256.hex()) == [key]
    whole(scene.path, scene.packet)


def test_rows_of_no_known_form_are_named_and_put_right(scene: Scene) -> None:
    with open_store(scene.path) as store:
        held = [id for id, _ in store.objects()]
        packet = to_raw(scene.packet)
        node = next(id for id in store.records() if id != packet)
        store._env.write(lambda txn: txn.put("objects", held[0], b"\x09" * 44))
        store._env.write(lambda txn: txn.put("objects", held[1], b"\x01"))
        store._env.write(lambda txn: txn.put("records", node, b"\x09" * 12))
        bad = {held[0].hex(), held[1].hex(), node.hex()}
        assert {d.id for d in fsck(store).damaged} >= bad
        assert {d.id for d in fsck(store, fraction=1.0).damaged} >= bad
        report = repair(store, [scene.other])
        assert report.damaged == ()
        assert {item.id for item in report.repaired} == bad
        assert verify(store, packet).outcome == "PASS"


def test_rows_that_are_gone_are_brought_back_with_what_is_below_them(scene: Scene) -> None:
    with open_store(scene.path) as store:
        packet = to_raw(scene.packet)
        doomed = [packet, *(id for id in store.records() if id != packet)]
        store._env.write(lambda txn: [txn.delete("records", id) for id in doomed])
        gone = next(id for id, info in store.objects() if info.placement == "blob")
        store._env.write(lambda txn: txn.delete("objects", gone))
        observed = store.ref_log()[0].observation
        assert observed is not None
        assert {d.id for d in fsck(store).damaged} == {scene.packet, observed.hex()}
        report = repair(store, [scene.pack])
        assert [d.id for d in report.damaged] == [observed.hex()]  # packs hold none
        assert repair(store, [scene.other]).damaged == ()
        kinds = {(item.id, item.kind) for item in report.repaired}
        assert (gone.hex(), "object") in kinds
        assert (scene.packet, "record") in kinds
        assert verify(store, packet).outcome == "PASS"


def test_a_directory_source_may_hold_anything(scene: Scene) -> None:
    bad = flip(blob_file(scene.path, framed=False))
    mess = plant(scene.place / "mess", {"sub/deep/file": (scene.source / "raw.bin").read_bytes(), "l": "->."})
    os.mkfifo(mess / "fifo")
    (mess / "dangling").symlink_to("nowhere")
    with open_store(scene.path) as store:
        report = repair(store, [scene.path.parent / "mess"])
        assert [(item.id, item.source) for item in report.repaired] == [
            (bad, os.fspath(mess / "sub/deep/file"))
        ]
    whole(scene.path, scene.packet)


def test_a_directory_with_the_store_in_it_is_searched_but_the_store_is_not(scene: Scene) -> None:
    inner = scene.source / ".prov"
    os.rename(scene.path, inner)
    flip(blob_file(inner, framed=False))
    with open_store(inner) as store:
        assert repair(store, [scene.source]).damaged == ()
        seal(store, plant(scene.place / "more", {"x": "its locks are still held"}))
        assert fsck(store).damaged == ()


def test_sources_that_cannot_be_one_are_refused(scene: Scene) -> None:
    with open_store(scene.path) as store:
        with pytest.raises(UsageError):
            repair(store, [scene.path])
        with pytest.raises(InputOutputError):
            repair(store, [scene.place / "nowhere"])
        torn = scene.place / "torn.pack"
        torn.write_bytes(scene.pack.read_bytes()[:-10])
        with pytest.raises(PackError):
            repair(store, [torn])
    flip(blob_file(scene.path, framed=False))
    with open_store(scene.path, writable=False) as store, pytest.raises(ReadOnlyError):
        repair(store, [scene.pack])


def test_a_store_in_memory_is_repaired_alike(scene: Scene) -> None:
    store = MemoryStore()
    packet = seal(store, scene.source, name="a")
    bad = object_id((scene.source / "raw.bin").read_bytes())
    store._content.data[bad] = b"rot"
    observed = store.ref_log()[0].observation
    record = next(id for id in store.records() if id not in (packet, observed))
    good = store._content.records[record]
    store._content.records[record] = good[:-1]
    assert {d.id for d in fsck(store).damaged} == {bad.hex(), record.hex()}
    report = repair(store, [scene.other])
    assert {(item.id, item.kind) for item in report.repaired} == {
        (bad.hex(), "object"),
        (record.hex(), "record"),
    }
    assert report.damaged == ()
    assert verify(store, packet).outcome == "PASS"


# Kills


def spoil_everything(path: Path) -> set[str]:
    bad = [flip(blob_file(path, framed=False)), cut(blob_file(path, framed=True))]
    return {*bad, *spoil_a_frame(path, "objects"), *spoil_a_frame(path, "records")}


def test_a_kill_at_each_step_of_a_repair_makes_nothing_worse(scene: Scene) -> None:
    base = copied(scene.path, scene.place / "damaged")
    bad = spoil_everything(base)

    def work(say: Say) -> None:
        small_batches()
        with open_store(scene.path) as store:
            report = repair(store, [scene.other])
            assert report.damaged == ()
            say("repaired")

    copied(base, scene.path)
    reached = steps_of(work)
    names = [step for step, _ in reached]
    assert set(names) == {*steps.COMMIT_STEPS, *steps.REPLACE_STEPS}
    for step, nth in reached:
        path = copied(base, scene.path)
        ended = killed_at(step, nth, work)
        assert (ended.signal, ended.said) == (signal.SIGKILL, []), (step, nth)
        if step in steps.REPLACE_STEPS:
            visible, *cells = table_row(step)
            assert visible == "whole"
            assert left_in(path).cells() == cells
        with open_store(path) as store:
            left = {d.id for d in fsck(store).damaged}
            assert left <= bad, (step, nth)
            assert (left == set()) == (step in ("index-committed", "commit-finished", "replaced-removed"))
            assert dict(store.refs()) == {"a": to_raw(scene.packet)}
        assert run(work).said == ["repaired"]
        with open_store(path) as store:
            gc(store, delete=True, grace_s=0)
        whole(path, scene.packet)


def test_a_kill_at_each_step_of_a_rebuild(scene: Scene) -> None:
    base = copied(scene.path, scene.place / "wrecked")
    base.joinpath("data.mdb").write_bytes(b"\0" * 8192)

    def work(say: Say) -> None:
        report = rebuild_index(scene.path)
        say(f"rebuilt {report.objects}")

    copied(base, scene.path)
    reached = steps_of(work)
    inner = {"frames-committed", *steps.INIT_STEPS}
    assert [step for step, _ in reached if step not in inner] == list(steps.REBUILD_STEPS)
    for step, nth in reached:
        path = copied(base, scene.path)
        assert killed_at(step, nth, work).signal == signal.SIGKILL, step
        visible, in_tmp, beside = table_row(step)
        kept = list(path.glob("data.mdb-*"))
        assert [f.read_bytes() for f in kept] == ([b"\0" * 8192] if beside != "–" else [])
        assert any(name.endswith(".rebuild") for name in os.listdir(path / "tmp")) == (in_tmp != "–")
        if visible == "whole":
            with pytest.raises(UsageError):
                rebuild_index(path)
        else:
            with pytest.raises(NotAStoreError):
                open_store(path)
            assert run(work).said == ["rebuilt 2"]
        with open_store(path) as store:
            assert fsck(store).objects == 2
            assert repair(store, [scene.pack]).damaged == ()
            gc(store, delete=True, grace_s=0)
        whole(path, scene.packet)


# Rebuilding


def wreck(path: Path, how: str) -> None:
    index = path / "data.mdb"
    if how == "gone":
        index.unlink()
        path.joinpath("lock.mdb").unlink()
    elif how == "empty":
        index.write_bytes(b"")
    elif how == "garbage":
        index.write_bytes(os.urandom(20_000))
    else:
        index.write_bytes(index.read_bytes()[: 3 * 4096])


def rebuilt(path: Path, how: str) -> FsckReport:
    wreck(path, how)
    with pytest.raises((NotAStoreError, StoreDamagedError)):
        LmdbStore.create(os.fspath(path))
    return rebuild_index(path)


@pytest.mark.parametrize("how", ["gone", "empty", "garbage", "cut"])
def test_an_index_is_made_anew_from_files_and_packets_come_back(scene: Scene, how: str) -> None:
    with open_store(scene.path) as store:
        large = {id: info for id, info in store.objects() if info.placement == "blob"}
    report = rebuilt(scene.path, how)
    assert (report.objects, report.records, report.damaged) == (len(large), 0, ())
    assert report.lost
    assert (report.kept_as is None) == (how == "gone")
    if report.kept_as is not None:
        assert scene.path.joinpath(report.kept_as).is_file()
    with open_store(scene.path) as store:
        assert dict(store.objects()) == large
        assert [store.match("sha256", info.sha256.hex()) for info in large.values()] == [[id] for id in large]
        assert store.refs() == []
        files = {f: f.stat().st_ino for f in scene.path.joinpath("blobs").glob("*/*")}
        assert gc(store, delete=True).objects == 0  # nothing has a ref yet, and none of it is garbage
        back = repair(store, [scene.pack])
        assert [(item.id, item.kind) for item in back.repaired] == [(scene.packet, "packet")]
        assert (back.damaged, back.unreferenced) == ((), 0)
        assert {f: f.stat().st_ino for f in scene.path.joinpath("blobs").glob("*/*")} == files
    whole(scene.path, scene.packet)


def test_a_packet_that_was_dropped_after_a_rebuild_does_not_come_back_by_itself(scene: Scene) -> None:
    rebuilt(scene.path, "gone")
    with open_store(scene.path) as store:
        assert [item.kind for item in repair(store, [scene.other]).repaired] == ["packet"]
        with store.stage() as stage:
            stage.set_ref("a", None)
            stage.commit()
        assert repair(store, [scene.other]).repaired == ()
        assert store.refs() == []


def test_a_store_that_was_never_rebuilt_takes_no_packets_in(scene: Scene) -> None:
    with LmdbStore.create(os.fspath(scene.place / "new")) as store:
        assert repair(store, [scene.pack, scene.other]).repaired == ()
        assert store.refs() == []


def test_files_that_are_not_what_their_names_say_are_named_and_left_out(scene: Scene) -> None:
    bad = flip(blob_file(scene.path, framed=False))
    torn = cut(blob_file(scene.path, framed=True))
    report = rebuilt(scene.path, "gone")
    assert report.objects == 0
    assert {d.id for d in report.damaged} == {bad, torn}
    with open_store(scene.path) as store:
        assert repair(store, [scene.pack]).damaged == ()
    sound(scene.path, {"a": scene.packet})


def test_an_index_that_can_be_read_is_not_thrown_away(scene: Scene, tmp_path: Path) -> None:
    before = scene.path.joinpath("data.mdb").read_bytes()
    with pytest.raises(UsageError):
        rebuild_index(scene.path)
    assert scene.path.joinpath("data.mdb").read_bytes() == before
    with pytest.raises(NotAStoreError):
        rebuild_index(tmp_path / "nowhere")


# The command


def test_the_command(prov: Prov, place: Path) -> None:
    source = plant(place / "t", {"big": os.urandom(5 << 20), "small": "x"})
    packet = prov("seal", source).id()
    assert prov("pack", "t", "-o", "t.pack").code == 0
    budget = prov("fsck", "--budget", "1m", "--json").json()
    assert (budget["cycle"], budget["remaining"], budget["damaged"]) == (1, 0, [])
    assert budget["oldest_check"].endswith("Z")
    assert prov("fsck", "--fraction", "50%").code == 0
    bad = flip(blob_file(place / ".prov", framed=False))
    broken = prov("fsck")
    assert broken.code == 1
    assert bad in broken.text()
    assert prov("fsck", "--budget", "1m").code == 1
    assert prov("fsck", "--repair").code == 1
    mended = prov("fsck", "--repair", "--from", "t.pack")
    assert mended.code == 0
    assert f"repaired object {bad}" in mended.text()
    assert prov("verify", packet).code == 0
    (place / ".prov" / "data.mdb").unlink()
    assert prov("init").code != 0
    made = prov("fsck", "--rebuild-index")
    assert made.code == 0
    assert "lost: every ref" in made.text()
    assert prov("fsck", "--repair", "--from", "t.pack").code == 0
    assert prov("verify", "t").code == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ["--from", "t.pack"],
        ["--repair", "--budget", "1m"],
        ["--sample", "3", "--fraction", "5%"],
        ["--rebuild-index", "--repair"],
        ["--budget", "soon"],
        ["--fraction", "all"],
        ["--rebuild-index"],
    ],
)
def test_options_that_do_not_go_together(prov: Prov, wrong: list[str]) -> None:
    assert prov("fsck", *wrong).code == 2
