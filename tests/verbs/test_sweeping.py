"""Looking after a store: fsck names every damage, gc keeps whatever is needed."""

import os
import time
from pathlib import Path

import pytest
from workbench import STORES, open_store_of, packet_of, plant, seal, seal_text

from provstore import records
from provstore.errors import IntegrityError, SweptError
from provstore.ids import object_id, to_raw
from provstore.records.packet import Entry, Packet
from provstore.store.memory import MemoryStore
from provstore.store.protocol import Store
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import GRACE_S, gc
from provstore.verbs.verifying import verify

LATER = 10**12


def forget(store: Store, name: str) -> None:
    with store.stage() as stage:
        stage.set_ref(name, None)
        stage.commit()


@pytest.mark.parametrize("kind", STORES)
def test_gc_removes_only_what_nothing_needs(tmp_path: Path, kind: str) -> None:
    shared = os.urandom(5000)
    with open_store_of(kind, tmp_path) as store:
        kept = seal(store, plant(tmp_path / "a", {"s": shared, "x": "1", "big": os.urandom(5 << 20)}))
        gone = seal(store, plant(tmp_path / "b", {"s": shared, "x": "2", "other": os.urandom(6 << 20)}))
        forget(store, "b")
        told = gc(store, grace_s=0, now_ns=time.time_ns() + LATER)
        assert (told.deleted, told.objects) == (False, 2)
        assert verify(store, gone).outcome == "PASS"
        done = gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + LATER)
        assert (done.objects, done.size_bytes) == (2, (6 << 20) + 1)
        assert store.record(gone) is None
        assert store.info(object_id(b"2")) is None
        assert verify(store, kept).outcome == "PASS"
        report = fsck(store)
        assert (report.damaged, report.unreferenced) == ((), 0)
        assert gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + LATER).objects == 0


@pytest.mark.parametrize("kind", STORES)
def test_a_packet_that_just_lost_its_ref_stays_for_a_while(tmp_path: Path, kind: str) -> None:
    tree = plant(tmp_path / "t", {"f": "1"})
    with open_store_of(kind, tmp_path) as store:
        first = seal(store, tree)
        (tree / "f").write_text("2")
        second = seal(store, tree)
        forget(store, "t")
        assert gc(store, delete=True).objects == 0
        for packet in (first, second):
            assert verify(store, packet).outcome == "PASS"
        soon = time.time_ns() + (GRACE_S - 60) * 10**9
        assert gc(store, delete=True, now_ns=soon).objects == 0
        late = time.time_ns() + (GRACE_S + 60) * 10**9
        assert gc(store, delete=True, now_ns=late).objects == 2


def test_parents_facts_and_manifests_are_needed(tmp_path: Path) -> None:
    import hashlib

    plant(tmp_path, {"t/f": "x", "r.json": '{"a": 1}'})
    (tmp_path / "t.sum").write_text(f"{hashlib.sha256(b'x').hexdigest()}  f\n")
    store = MemoryStore()
    parent = seal(store, plant(tmp_path / "p", {"g": "parent"}))
    text = (
        f'parents = ["{parent.hex()}"]\nformat = "provstore/packet-spec/v1"\nname = "run"\n'
        '[[entry]]\nrole = "t"\nkind = "evidence"\npath = "t"\nmanifest = "t.sum"\n'
        '[[entry]]\nrole = "r"\nkind = "record"\npath = "r.json"\n'
    )
    (tmp_path / "s").mkdir()
    (tmp_path / "spec.toml").write_text(text)
    from provstore.verbs.sealing import seal_spec

    packet = to_raw(seal_spec(store, tmp_path / "spec.toml").packet)
    forget(store, "p")
    gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + LATER)
    assert verify(store, packet).outcome == "PASS"
    assert verify(store, parent).outcome == "PASS"


def test_a_parent_that_was_never_here_stops_nobody(tmp_path: Path) -> None:
    store = MemoryStore()
    plant(tmp_path / "t", {"f": "x"})
    text = (
        f'format = "provstore/packet-spec/v1"\nname = "run"\nparents = ["{"7" * 64}"]\n'
        '[[entry]]\nrole = "t"\nkind = "evidence"\npath = "t"\n'
    )
    packet = seal_text(store, tmp_path, text)
    assert gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + LATER).objects == 0
    assert verify(store, packet).outcome == "PASS"
    assert fsck(store).damaged == ()


def test_gc_removes_nothing_while_it_cannot_tell(tmp_path: Path) -> None:
    store = MemoryStore()
    packet = seal(store, plant(tmp_path / "t", {"f": "x"}))
    seal(store, plant(tmp_path / "u", {"g": "y"}))
    forget(store, "u")
    tree = to_raw(packet_of(store, packet).entries[0].tree or "")
    store._content.records[tree] = b"{}"
    before = list(store.objects())
    with pytest.raises(IntegrityError, match="fsck"):
        gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + LATER)
    assert list(store.objects()) == before
    named = fsck(store).damaged
    assert (named[0].id, named[0].packet) == (tree.hex(), packet.hex())


def test_fsck_names_role_path_and_packet_of_everything(tmp_path: Path) -> None:
    plant(tmp_path, {"one/f": "x", "two/g": "x", "two/h": "fine"})
    text = "".join(f'[[entry]]\nrole = "{r}"\nkind = "evidence"\npath = "{r}"\n' for r in ("one", "two"))
    store = MemoryStore()
    packet = seal_text(store, tmp_path, text)
    other = seal(store, tmp_path / "one")
    store._content.data[object_id(b"x")] = b"y"
    report = fsck(store)
    assert {(d.packet, d.role, d.path) for d in report.damaged} == {
        (packet.hex(), "one", "f"),
        (packet.hex(), "two", "g"),
        (other.hex(), "", "f"),
    }
    assert all(object_id(b"y").hex() in damage.reason for damage in report.damaged)
    assert (report.objects, report.bytes) == (2, 4)


def test_fsck_names_what_is_missing_and_what_nobody_needs(tmp_path: Path) -> None:
    store = MemoryStore()
    packet = seal(store, plant(tmp_path / "t", {"f": "x", "g": "y"}))
    seal(store, plant(tmp_path / "u", {"z": "z"}), name="u")
    del store._content.data[object_id(b"x")]
    del store._content.infos[object_id(b"x")]
    with store.stage() as stage:
        id, data = records.encode(Packet(entries=(Entry(role="a", kind="file", files=0),)))
        stage.add_record(id, data)
        stage.commit()
    report = fsck(store)
    assert [(d.path, d.packet) for d in report.damaged] == [("f", packet.hex())]
    assert report.unreferenced == 1


def test_an_empty_store_is_sound(tmp_path: Path) -> None:
    for kind in STORES:
        with open_store_of(kind, tmp_path) as store:
            assert fsck(store).damaged == ()
            assert gc(store, delete=True).objects == 0


def test_gc_waits_for_no_one_and_takes_nothing_of_a_seal_in_progress(tmp_path: Path) -> None:
    with open_store_of("lmdb", tmp_path) as store:
        tree = plant(tmp_path / "t", {"f": os.urandom(4000)})
        packet = seal(store, tree)
        forget(store, "t")
        with store.stage() as stage:
            for id, _ in store.objects():
                assert stage.has_object(id)
            for record in store.records():
                assert stage.has_record(record)
            gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + LATER)
            stage.set_ref("again", packet)
            with pytest.raises(SweptError):
                stage.commit()
        assert seal(store, tree) == packet
        assert verify(store, packet).outcome == "PASS"
