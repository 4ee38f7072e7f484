"""Verifying: every damage is named, nothing that was not looked at passes."""

import os
import shutil
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from workbench import (
    STORES,
    failures,
    file_node,
    findings,
    open_store_of,
    packet_of,
    plant,
    put_object,
    put_packet,
    seal,
    seal_text,
    settle,
)

from provstore import merkle, records
from provstore.errors import EmptyError, IntegrityError, NotFoundError
from provstore.ids import object_id, to_raw
from provstore.records.packet import Entry, Packet
from provstore.records.tree import TreeEntry
from provstore.store import objects as store_objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.pack import PackStore
from provstore.store.protocol import ObjectInfo, Reader
from provstore.store.runs import Laid
from provstore.verbs import checking, rehashing, verifying
from provstore.verbs.checking import fsck
from provstore.verbs.comparing import verify_against
from provstore.verbs.listing import cat
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack
from provstore.verbs.verifying import verify


def content(store: MemoryStore) -> Any:
    """Return what a store in memory holds, so that a test can damage it."""
    return store._content


@pytest.mark.parametrize("kind", STORES)
def test_a_pass_counts_what_it_rests_on(tmp_path: Path, kind: str) -> None:
    tree = plant(tmp_path / "t", {"a": "xy", "b": "xy", "c": "z", "l": "->a", "e": None})
    with open_store_of(kind, tmp_path) as store:
        report = verify(store, seal(store, tree))
        assert report.outcome == "PASS"
        assert (report.objects_checked, report.bytes_checked) == (2, 3)
        assert report.missing == ()
        assert {check.outcome for check in report.checks} == {"PASS"}


def test_every_damaged_object_is_named_at_every_place(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a": "same", "d/b": "same", "c": "other", "fine": "fine"})
    store = MemoryStore()
    packet = seal(store, tree)
    content(store).data[object_id(b"same")] = b"sane"
    del content(store).data[object_id(b"other")]
    del content(store).infos[object_id(b"other")]
    report = verify(store, packet)
    assert report.outcome == "FAIL"
    assert findings(report) == {"a": "damaged", "d/b": "damaged", "c": "missing-object"}
    assert all(check.expected for check in failures(report))
    assert {d.path for d in fsck(store).damaged} == {"a", "d/b", "c"}
    with pytest.raises(IntegrityError):
        list(cat(store, packet, "a"))


def test_a_wrong_sha256_or_size_in_the_index_is_damage(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a": "x"})
    for info in (ObjectInfo(1, bytes(32), "inline"), ObjectInfo(2, content_sha(b"x"), "inline")):
        store = MemoryStore()
        packet = seal(store, tree)
        content(store).infos[object_id(b"x")] = info
        assert verify(store, packet).outcome == "FAIL"


def content_sha(data: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(data).digest()


@pytest.mark.parametrize(
    "changes",
    [{"sha256": "0" * 64}, {"size_bytes": 2}, {"blake3": "0" * 64}],
)
def test_a_tree_that_states_other_digests_fails(changes: dict[str, Any]) -> None:
    store = MemoryStore()
    put_object(store, b"x")
    packet = put_packet(store, [(b"f", file_node(b"x", **changes))])
    assert verify(store, packet).outcome == "FAIL"


@pytest.mark.parametrize("changes", [{"files": 2}, {"files": 0}, {"size_bytes": 2}, {"size_bytes": 0}])
def test_totals_that_do_not_add_up_fail(changes: dict[str, int]) -> None:
    store = MemoryStore()
    put_object(store, b"x")
    report = verify(store, put_packet(store, [(b"f", file_node(b"x"))], **changes))
    assert "wrong-totals" in {check.code for check in failures(report)}


def test_a_directory_split_elsewhere_than_its_names_say_fails() -> None:
    store = MemoryStore()
    put_object(store, b"x")
    entries = [file_node(b"x", f"f{n:03}") for n in range(80)]
    halves = [merkle.build(entries[:40])[-1], merkle.build(entries[40:])[-1]]
    children = tuple(
        records.tree.TreeChild(tree=id.hex(), entries=40, last=last)
        for (id, _), last in zip(halves, ("f039", "f079"), strict=True)
    )
    root_id, root = records.encode(records.tree.TreeIndex(level=1, children=children))
    packet = Packet(entries=(Entry(role="", kind="evidence", tree=root_id.hex(), files=80, size_bytes=80),))
    id, data = records.encode(packet)
    with store.stage() as stage:
        for node_id, node in (*halves, (root_id, root), (id, data)):
            stage.add_record(node_id, node)
        stage.commit()
    assert verify(store, id).outcome == "FAIL"


def test_a_missing_tree_record_is_named_and_the_rest_still_checked(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"d/a": "1", "e/b": "2"})
    store = MemoryStore()
    packet = seal(store, tree)
    root = to_raw(packet_of(store, packet).entries[0].tree or "")
    node, _ = merkle.find(store._content.records.__getitem__, root, b"d")
    assert node is not None
    del content(store).records[to_raw(node.tree or "")]
    report = verify(store, packet)
    assert report.outcome == "FAIL"
    assert findings(report)["d"] == "missing-record"
    assert report.objects_checked == 1


def test_missing_or_altered_facts_fail(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"r.json": '{"a": 1}'})
    store = MemoryStore()
    packet = seal(store, tmp_path / "t/r.json", kind="record")
    (id,) = packet_of(store, packet).entries[0].facts
    data = content(store).records.pop(to_raw(id))
    assert verify(store, packet).outcome == "FAIL"
    content(store).records[to_raw(id)] = data.replace(b"1", b"2")
    assert verify(store, packet).outcome == "FAIL"


def test_a_missing_manifest_never_passes(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    (tmp_path / "t.sum").write_text(f"{content_sha(b'x').hex()}  f\n")
    store = MemoryStore()
    packet = seal_text(
        store, tmp_path, '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "t"\nmanifest = "t.sum"\n'
    )
    id = object_id((tmp_path / "t.sum").read_bytes())
    info = content(store).infos.pop(id)
    data = content(store).data.pop(id)
    assert verify(store, packet).outcome == "FAIL"
    content(store).infos[id] = info._replace(placement="external")
    assert verify(store, packet).outcome == "INCOMPLETE"
    content(store).infos[id] = info
    content(store).data[id] = data.replace(b"f", b"g")
    assert verify(store, packet).outcome == "FAIL"


def test_no_such_packet(tmp_path: Path) -> None:
    store = MemoryStore()
    packet = seal(store, plant(tmp_path / "t", {"f": "x"}))
    with pytest.raises(NotFoundError):
        verify(store, bytes(32))
    tree = to_raw(packet_of(store, packet).entries[0].tree or "")
    assert verify(store, tree).outcome == "FAIL"


@pytest.mark.parametrize(
    ("pattern", "checked"), [("a/*", 2), ("a", 2), ("a/f", 1), ("*/g", 1), ("*", 3), ("/a/", 2), ("b/", 1)]
)
def test_only_looks_at_a_part(tmp_path: Path, pattern: str, checked: int) -> None:
    tree = plant(tmp_path / "t", {"a/f": "1", "a/g": "2", "b/h": "3"})
    store = MemoryStore()
    packet = seal(store, tree)
    assert verify(store, packet, only=pattern).objects_checked == checked
    assert verify_against(store, packet, tree, only=pattern).outcome == "PASS"
    content(store).data[object_id(b"3")] = b"4"
    outcome = verify(store, packet, only=pattern).outcome
    assert outcome == ("FAIL" if pattern in ("*", "b/") else "PASS")


@pytest.mark.parametrize("pattern", ["c", "a/f/x", "", "[", "a/h", "*/x"])
def test_only_that_matches_nothing_is_no_success(tmp_path: Path, pattern: str) -> None:
    store = MemoryStore()
    packet = seal(store, plant(tmp_path / "t", {"a/f": "1"}))
    with pytest.raises(EmptyError):
        verify(store, packet, only=pattern)


def test_progress_adds_up(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a": "x" * 10, "b": os.urandom(5 << 20)})
    settle(tree)
    store = MemoryStore()
    seen: list[int] = []
    verify(store, seal(store, tree), progress=lambda state: seen.append(state.bytes_done))
    assert seen == sorted(seen)
    assert seen[-1] == 10 + (5 << 20)


def test_links_alone_are_evidence_of_their_own_text(tmp_path: Path) -> None:
    store = MemoryStore()
    packet = put_packet(store, [(b"l", TreeEntry(kind="symlink", name="l", target="x"))])
    assert verify(store, packet).outcome != "FAIL"


# In bulk, with helpers


MANY = 2100


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store directory with a packet ``many`` of so many small files that helpers are worth it."""
    place = tmp_path_factory.mktemp("many")
    files: dict[str | bytes, str | bytes | None] = {
        f"d{n % 30}/f{n}": f"{n % 2000} is what it says " * (n % 50 + 1) for n in range(MANY)
    }
    with LmdbStore.create(os.fspath(place / "store")) as store:
        seal(store, plant(place / "t", files), name="many")
    return place / "store"


def many_in(reader: Reader) -> bytes:
    packet = reader.ref("many")
    assert packet is not None
    return packet


def with_helpers(monkeypatch: pytest.MonkeyPatch, helpers: int) -> None:
    monkeypatch.setattr(rehashing, "spare_cores", lambda: helpers)


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_each_object_is_looked_up_once_and_hashed_once(
    many: Path, monkeypatch: pytest.MonkeyPatch, helpers: int
) -> None:
    with_helpers(monkeypatch, helpers)
    looked_up: list[bytes] = []
    with LmdbStore.open(os.fspath(many), writable=False) as store:
        lay = store.lay

        def counting(ids: Collection[bytes]) -> Laid:
            looked_up.extend(ids)
            return lay(ids)

        monkeypatch.setattr(store, "lay", counting)
        monkeypatch.setattr(store, "info", lambda id: pytest.fail(f"{id.hex()} is looked up by itself"))
        report = verify(store, many_in(store))
        plain = store.stats().plain_bytes
        objects = store.stats().objects
    assert report.outcome == "PASS"
    assert len(looked_up) == len(set(looked_up)) == report.objects_checked == objects
    assert report.bytes_checked == plain


@pytest.mark.parametrize("kind", ["damaged", "index"])
def test_reports_do_not_depend_on_who_did_the_work(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shutil.copytree(many, tmp_path / "store")
    with LmdbStore.open(os.fspath(tmp_path / "store")) as store:
        packet = many_in(store)
        spoil(store, kind)
        reports = []
        for helpers in (0, 1, 3):
            with_helpers(monkeypatch, helpers)
            reports.append(verify(store, packet))
    assert reports[0].outcome == "FAIL"
    assert reports[0] == reports[1] == reports[2]
    assert {check.code for check in failures(reports[0])} == {"damaged"}
    assert 0 < reports[0].objects_checked < MANY


def spoil(store: LmdbStore, kind: str) -> None:
    """Break one frame of objects, or what the index says of three of them."""
    env = store._env
    unit = next(unit for unit in store.units() if unit.objects and len(unit.key) == 8)
    if kind == "damaged":
        frame = env.get("frames", unit.key)
        assert frame is not None
        env.write(lambda txn: txn.put("frames", unit.key, frame[:-40] + bytes(40)))
        return
    for id in unit.objects[:3]:
        row = env.get("objects", id)
        assert row is not None
        altered = row[:1] + bytes(32) + row[33:]
        env.write(lambda txn: txn.put("objects", id, altered))  # noqa: B023


@pytest.mark.parametrize("kind", ["damaged", "index", "nothing"])
def test_fsck_finds_the_same_whoever_does_the_work(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shutil.copytree(many, tmp_path / "store")
    monkeypatch.setattr(checking, "WORTH_HELPERS_BYTES", 0)
    with LmdbStore.open(os.fspath(tmp_path / "store")) as store:
        if kind != "nothing":
            spoil(store, kind)
        reports = []
        for helpers in (0, 1, 3):
            monkeypatch.setattr(checking, "spare_cores", lambda: helpers)  # noqa: B023
            reports.append(fsck(store))
        stats = store.stats()
    assert reports[0] == reports[1] == reports[2]
    assert (reports[0].objects, reports[0].records) == (stats.objects, stats.records)
    assert bool(reports[0].damaged) == (kind != "nothing")
    assert (reports[0].bytes == stats.plain_bytes) == (kind == "nothing")


@pytest.mark.parametrize("fate", ["killed", "fails", "silent"])
def test_no_helper_can_make_a_pass_or_spoil_one(
    many: Path, monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    with_helpers(monkeypatch, 1)
    here = os.getpid()
    honest = store_objects.whole

    def work(reader: Any, runs: Any) -> bytes:
        if os.getpid() != here and runs:
            if fate == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if fate == "fails":
                raise MemoryError
            return b""
        return honest(reader, runs)

    monkeypatch.setattr(store_objects, "whole", work)
    with LmdbStore.open(os.fspath(many), writable=False) as store:
        report = verify(store, many_in(store))
        assert (report.outcome, report.objects_checked) == ("PASS", store.stats().objects)


def test_files_kept_outside_are_found_changed_by_whoever_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = rehashing.LARGE_BYTES
    plant(tmp_path, {f"t/f{n}": f"{n}" * (big if n < 3 else 9) for n in range(200)})
    settle(tmp_path / "t")
    spec = '[[entry]]\nrole = "w"\nkind = "model"\npath = "t"\nkeep = "external"\n'
    with LmdbStore.create(os.fspath(tmp_path / "store")) as store:
        packet = seal_text(store, tmp_path, spec)
        assert verify(store, packet).objects_checked == 200
        (tmp_path / "t/f1").write_text("1" * big + "!")
        (tmp_path / "t/f100").write_text("other")
        (tmp_path / "t/f7").unlink()
        reports = []
        for helpers in (0, 2):
            monkeypatch.setattr(verifying, "helpers_for", lambda entries: helpers)  # noqa: B023
            reports.append(verify(store, packet))
    assert reports[0] == reports[1]
    assert findings(reports[0]) == {
        "w/f1": "external-changed",
        "w/f100": "external-changed",
        "w/f7": "not-held",
    }
    assert [missing.path for missing in reports[0].missing] == ["f7"]
    assert reports[0].objects_checked == 197


def test_a_pack_is_verified_in_bulk_too(many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LmdbStore.open(os.fspath(many), writable=False) as store:
        packet = many_in(store)
        pack([("many", Located(store, packet, False))], tmp_path / "p.pack")
        counted = store.stats().objects
    with PackStore(os.fspath(tmp_path / "p.pack")) as reader:
        monkeypatch.setattr(reader, "info", lambda id: pytest.fail(f"{id.hex()} is looked up by itself"))
        report = verify(reader, packet)
        assert (report.outcome, report.objects_checked) == ("PASS", counted)
