"""gc: what stays, what goes in which batches, and sealing in another process at the same time."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from killing import PROFILE, Say, child, drop_ref, left_in, seal_into, tree
from workbench import STORES, open_store_of, plant, seal

from provstore.errors import IntegrityError, StoreDamagedError
from provstore.ids import to_raw
from provstore.store.lmdb_store import LmdbStore
from provstore.store.protocol import Store
from provstore.verbs import collecting
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import GRACE_S, gc
from provstore.verbs.verifying import verify

ROUNDS = 50


def forget(store: Store, name: str) -> None:
    with store.stage() as stage:
        stage.set_ref(name, None)
        stage.commit()


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("batch", [1, 7, 10**6])
def test_batches_of_any_size_remove_the_same(
    tmp_path: Path, kind: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "BATCH", batch)
    with open_store_of(kind, tmp_path) as store:
        kept = seal(store, plant(tmp_path / "a", {f"f{i}": f"a{i // 2}" for i in range(30)}))
        seal(store, plant(tmp_path / "b", {f"f{i}": f"{'ab'[i % 2]}{i}" for i in range(30)}))
        forget(store, "b")
        told = gc(store, grace_s=0)
        done = gc(store, delete=True, grace_s=0)
        assert (told.objects, told.records, told.size_bytes) == (done.objects, done.records, done.size_bytes)
        assert done.objects > 15
        assert verify(store, kept).outcome == "PASS"
        assert (fsck(store).damaged, fsck(store).unreferenced) == ((), 0)
        assert len(list(store.objects())) == done.kept_objects


@pytest.mark.parametrize("kind", STORES)
def test_a_report_changes_nothing(tmp_path: Path, kind: str) -> None:
    with open_store_of(kind, tmp_path) as store:
        seal(store, plant(tmp_path / "a", {"f": "1", "big": os.urandom(5 << 20)}))
        forget(store, "a")
        before = store.generation(), list(store.objects()), list(store.records())
        report = gc(store, grace_s=0)
        assert (report.deleted, report.objects, report.leftovers) == (False, 2, ())
        assert (store.generation(), list(store.objects()), list(store.records())) == before


@pytest.mark.parametrize("kind", STORES)
def test_what_the_log_remembers_and_an_earlier_gc_removed_is_no_damage(tmp_path: Path, kind: str) -> None:
    with open_store_of(kind, tmp_path) as store:
        seal(store, plant(tmp_path / "a", {"f": "1"}))
        forget(store, "a")
        assert gc(store, delete=True, grace_s=0).objects == 1
        assert gc(store, delete=True, grace_s=GRACE_S).objects == 0
        assert fsck(store).damaged == ()


def test_a_damaged_record_or_ref_stops_the_removal(tmp_path: Path) -> None:
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        packet = seal(store, plant(tmp_path / "a", {"f": "1"}))
        seal(store, plant(tmp_path / "b", {"f": "2"}))
        forget(store, "b")
        row = store._env.get("records", packet)
        assert row is not None
        store._env.write(lambda txn: txn.delete("records", packet))
        before = list(store.objects())
        with pytest.raises(IntegrityError):
            gc(store, delete=True, grace_s=0)
        store._env.write(lambda txn: txn.put("records", packet, row))
        ref = store._env.get("refs", b"a")
        assert ref is not None
        store._env.write(lambda txn: txn.put("refs", b"a", bytes(32) + ref[32:]))
        with pytest.raises(StoreDamagedError):
            gc(store, delete=True, grace_s=0)
        assert list(store.objects()) == before
        assert [(d.id, d.packet) for d in fsck(store).damaged] == [("", "")]
        store._env.write(lambda txn: txn.put("refs", b"a", ref))
        assert gc(store, delete=True, grace_s=0).objects == 1


def test_temporary_files_of_a_process_that_runs_are_left_alone(tmp_path: Path) -> None:
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        seal(store, plant(tmp_path / "a", {"f": "1"}))
        with child(lambda say: time.sleep(60)) as (pid, wait):
            living = tmp_path / "s" / "tmp" / f"{pid}-00.blob"
            making = tmp_path / "s" / "tmp" / f"{pid}-00.rebuild"
            living.write_bytes(b"on its way")
            making.mkdir()
            later = time.time_ns() + 10**12
            assert gc(store, delete=True, grace_s=0, now_ns=later).leftovers == ()
            assert living.exists()
            os.kill(pid, signal.SIGKILL)
            wait()
            removed = gc(store, delete=True, grace_s=0, now_ns=later).leftovers
            assert sorted(removed) == [f"tmp/{living.name}", f"tmp/{making.name}"]
        assert os.listdir(tmp_path / "s" / "tmp") == ["writer.lock"]


def test_collecting_while_another_process_seals(tmp_path: Path) -> None:
    """Each round drops a packet and seals it again in one process while another collects without grace."""
    path = tmp_path / "s"
    LmdbStore.create(os.fspath(path), profile=PROFILE).close()
    source = tree(tmp_path / "t", "t")
    packet = seal_into(path, source, "t")
    kept = seal_into(path, plant(tmp_path / "kept", {"x": "kept"}), "kept")

    def work(say: Say) -> None:
        for _ in range(ROUNDS):
            drop_ref(path, "t")
            sealed = seal_into(path, source, "t")
            with LmdbStore.open(os.fspath(path), profile=PROFILE) as store:
                say(f"{verify(store, to_raw(sealed)).outcome} {sealed}")

    removed = rounds = 0
    with child(work) as (pid, wait), LmdbStore.open(os.fspath(path), profile=PROFILE) as store:
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            removed += gc(store, delete=True, grace_s=0).objects
            rounds += 1
        assert wait().said == [f"PASS {packet}"] * ROUNDS
        assert rounds > 1
        assert removed > 0
        gc(store, delete=True, grace_s=0)
        report = fsck(store)
        assert (report.damaged, report.unreferenced) == ((), 0)
        for id in (packet, kept):
            assert verify(store, to_raw(id)).outcome == "PASS"
    assert left_in(path) == ([], [], [])


@pytest.mark.parametrize("kind", STORES)
def test_sealers_that_never_pause_wait_for_the_last_look(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit between each look and its sweep, as long as writers are let in."""
    store = open_store_of(kind, tmp_path)
    tree = plant(tmp_path / "t", {"f": "gone"})
    seal(store, tree, name="run")
    plant(tmp_path / "u", {"f": "kept"})
    seal(store, tmp_path / "u", name="run")
    sweep = store.sweep
    overtaken: list[bool] = []

    def overtaking(*arguments: Any) -> Any:
        if len(overtaken) < collecting.SWEEP_ATTEMPTS - 1:
            overtaken.append(True)
            with store.stage() as stage:
                stage.add_cached({b"busy": b"%d" % len(overtaken)})
                stage.commit()
        return sweep(*arguments)

    monkeypatch.setattr(store, "sweep", overtaking)
    report = gc(store, delete=True, grace_s=-1)
    assert len(overtaken) == collecting.SWEEP_ATTEMPTS - 1
    assert report.objects == 1
