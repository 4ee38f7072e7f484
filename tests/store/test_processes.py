"""Several processes on one store: writers one after the other, readers at any time, forks, kills."""

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from crowding import crowd
from killing import PROFILE, Say, child, run, seal_into, sound, tree

from provstore.errors import StoreBusyError
from provstore.ids import digests
from provstore.store import objects, steps
from provstore.store.lmdb_store import LmdbStore
from provstore.store.profile import StoreProfile

KILLS = 200


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with LmdbStore.create(os.fspath(path)) as store:
        put(store, b"first")
    return path


def put(store: object, data: bytes, ref: str | None = None) -> None:
    assert isinstance(store, LmdbStore)
    with store.stage() as stage:
        stage.add_object(digests(data), data)
        if ref is not None:
            stage.set_ref(ref, digests(data).blake3)
        stage.commit()


def get(store: LmdbStore, data: bytes) -> bytes:
    return objects.read(store, digests(data).blake3)


def test_a_crowd_on_one_store_loses_nothing(tmp_path: Path) -> None:
    found = crowd(tmp_path, 8.0, sealers=2, readers=3)
    done = {kind: found.turns.get(kind, 0) for kind in ("sealer", "reader", "fsck", "gc", "pack")}
    assert min(done.values()) >= 2, found.turns
    assert max(found.index_bytes) < 64 << 20


def test_readers_see_each_commit_whole_and_the_latest(path: Path) -> None:
    """Each commit sets two refs at once; a reader in one look sees both or none, and never goes back."""

    def reader(say: Say) -> None:
        last = -1
        until = time.monotonic() + 2.0
        with LmdbStore.open(os.fspath(path), writable=False) as store:
            while time.monotonic() < until:
                refs = dict(store.refs())
                left, right = refs.get("left"), refs.get("right")
                assert left == right, "a torn read"
                number = -1 if left is None else int.from_bytes(left, "big")
                assert number >= last, "a stale read"
                last = number
        say(str(last))

    with child(reader) as (_, first), child(reader) as (_, second):
        with LmdbStore.open(os.fspath(path), profile=StoreProfile(sync=False)) as store:
            assert isinstance(store, LmdbStore)
            for number in range(200):
                with store.stage() as stage:
                    stage.set_ref("left", number.to_bytes(32, "big"))
                    stage.set_ref("right", number.to_bytes(32, "big"))
                    stage.commit()
        assert [first().said, second().said] == [["199"], ["199"]]


def hold_lock(path: Path, seconds: float) -> None:
    """Commit, and stay inside the commit for a while."""
    steps.hook = lambda step: time.sleep(seconds) if step == "index-written" else None
    with LmdbStore.open(os.fspath(path)) as store:
        put(store, b"slow")


def wait_for_holder(path: Path) -> None:
    lock = path / "tmp" / "writer.lock"
    deadline = time.monotonic() + 20
    while not lock.exists() or not lock.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.1)


def test_a_writer_waits_for_another_and_names_it_when_it_takes_too_long(path: Path) -> None:
    path.joinpath("tmp", "writer.lock").unlink()
    with child(lambda say: hold_lock(path, 3.0)) as (pid, wait):
        wait_for_holder(path)
        store = LmdbStore.open(os.fspath(path), writable=False)
        store.close()
        # Opening for writing waits for the index transaction; a reader's environment is asked instead.
        with LmdbStore.open(os.fspath(path), writable=False) as reader:
            assert get(reader, b"first") == b"first"
        began = time.monotonic()
        quick = run(lambda say: impatient(path, say))
        assert time.monotonic() - began < 15
        assert quick.said == [f"busy process {pid}"]
        assert wait().signal == 0
    with LmdbStore.open(os.fspath(path)) as again:
        put(again, b"after")
        assert get(again, b"slow") == b"slow"


def impatient(path: Path, say: Say) -> None:
    store = LmdbStore.open(os.fspath(path), writable=False, profile=StoreProfile(wait_s=0.3))
    store.writable = True
    try:
        put(store, b"quick")
    except StoreBusyError as error:
        say(f"busy {' '.join(error.holder.split()[:2])}")


def test_a_patient_writer_gets_its_turn(path: Path) -> None:
    path.joinpath("tmp", "writer.lock").unlink()
    with child(lambda say: hold_lock(path, 0.7)) as (_, wait):
        wait_for_holder(path)
        with LmdbStore.open(os.fspath(path), profile=StoreProfile(wait_s=20.0)) as store:
            put(store, b"quick")
            assert get(store, b"slow") == b"slow"
        assert wait().signal == 0


def test_the_lock_of_a_killed_writer_is_free(path: Path) -> None:
    path.joinpath("tmp", "writer.lock").unlink()
    with child(lambda say: hold_lock(path, 30.0)) as (pid, wait):
        wait_for_holder(path)
        os.kill(pid, signal.SIGKILL)
        wait()
    with LmdbStore.open(os.fspath(path), profile=StoreProfile(wait_s=5.0)) as store:
        put(store, b"quick")
        assert store.info(digests(b"slow").blake3) is None


def test_killed_readers_leave_room_for_others(path: Path) -> None:
    """With 30 slots and 200 killed readers, a store that did not clear them would be full.

    A bystander keeps the store open: when nobody does, LMDB begins its table of readers anew.
    """
    profile = StoreProfile(max_readers=30)
    path.joinpath("lock.mdb").unlink()
    with LmdbStore.open(os.fspath(path), profile=profile) as store:
        put(store, b"x")

    def read(say: Say) -> None:
        with LmdbStore.open(os.fspath(path), writable=False, profile=profile) as store:
            store._env.read(lambda txn: time.sleep(60) if txn.get("settings", b"format") else None)

    def bystander(say: Say) -> None:
        with LmdbStore.open(os.fspath(path), writable=False, profile=profile):
            time.sleep(120)

    cleared = 0
    with child(bystander):
        time.sleep(0.3)
        for start in range(0, KILLS, 10):
            readers = [child(read) for _ in range(10)]
            entered = [reader.__enter__() for reader in readers]
            time.sleep(0.2)
            for (pid, _), reader in zip(entered, readers, strict=True):
                os.kill(pid, signal.SIGKILL)
                reader.__exit__(None, None, None)
            with LmdbStore.open(os.fspath(path), profile=profile) as store:
                cleared += store.stats().stale_readers
                put(store, b"after %d" % start)
                assert store.stats().readers <= 3
    assert cleared > KILLS / 2
    with LmdbStore.open(os.fspath(path), writable=False, profile=profile) as store:
        assert get(store, b"x") == b"x"


def test_a_fork_amid_reading_and_writing_goes_on_in_both(path: Path) -> None:
    with LmdbStore.open(os.fspath(path)) as store:
        assert isinstance(store, LmdbStore)
        put(store, b"before")

        def work(say: Say) -> None:
            assert get(store, b"before") == b"before"
            put(store, b"in the child")
            say(str(len(list(store.objects()))))

        ended = run(work)
        assert ended == (0, ["3"])
        put(store, b"in the parent")
        assert get(store, b"in the child") == b"in the child"
        assert len(list(store.objects())) == 4


def test_a_fork_while_threads_read_and_write(path: Path) -> None:
    stop = threading.Event()
    with LmdbStore.open(os.fspath(path), profile=StoreProfile(sync=False)) as store:
        assert isinstance(store, LmdbStore)

        def busy(number: int) -> None:
            turn = 0
            while not stop.is_set():
                turn += 1
                if number:
                    assert get(store, b"first") == b"first"
                else:
                    put(store, b"turn %d" % turn)

        threads = [threading.Thread(target=busy, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):
                ended = run(lambda say: say(get(store, b"first").decode()))
                assert ended == (0, ["first"])
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def spawned(path: str, data: bytes) -> None:
    with LmdbStore.open(path) as store:
        put(store, data)


def test_spawned_processes_write_in_turn(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=spawned, args=(os.fspath(path), b"%d" % n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    with LmdbStore.open(os.fspath(path), writable=False) as store:
        assert [get(store, b"%d" % n) for n in range(3)] == [b"0", b"1", b"2"]


def test_two_sealers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "both"
    LmdbStore.create(os.fspath(path), profile=PROFILE).close()

    def sealer(mark: str, say: Say) -> None:
        for number in range(8):
            source = tree(tmp_path / f"{mark}{number}", f"{mark}{number}")
            say(f"{mark}{number} {seal_into(path, source, f'{mark}{number}')}")

    with child(lambda say: sealer("a", say)) as (_, one), child(lambda say: sealer("b", say)) as (_, two):
        said = one().said + two().said
    promised = {line.split()[0]: line.split()[1] for line in said}
    assert len(promised) == 16
    assert sound(path, promised) == promised
