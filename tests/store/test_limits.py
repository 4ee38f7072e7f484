"""No room: a full map, a full disk, limits of the process. The store stays as it was, the next seal works."""

import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from killing import Say, child, left_in, run, seal_into, sound, tree
from workbench import plant

from provstore.errors import StoreFullError
from provstore.ids import digests
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.profile import StoreProfile
from provstore.verbs.checking import fsck
from provstore.verbs.sealing import SealOptions, seal_paths

SMALL_MAP = StoreProfile(map_size_bytes=1 << 20, max_map_size_bytes=1 << 30)
SMALLEST = StoreProfile(map_size_bytes=1 << 20, max_map_size_bytes=1 << 20)


def fill(store: object, mark: str, count: int, size: int) -> None:
    """Commit objects that do not compress."""
    assert isinstance(store, LmdbStore)
    chance = random.Random(mark)
    with store.stage() as stage:
        for _ in range(count):
            data = chance.randbytes(size)
            stage.add_object(digests(data), data)
        stage.set_ref(mark, bytes(32))
        stage.commit()


def held(store: LmdbStore, mark: str, count: int, size: int) -> bool:
    chance = random.Random(mark)
    datas = [chance.randbytes(size) for _ in range(count)]
    return all(objects.read(store, digests(data).blake3) == data for data in datas)


def test_a_full_map_grows(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "store")
    with LmdbStore.create(path, profile=SMALL_MAP) as store:
        assert isinstance(store, LmdbStore)
        for turn in range(4):
            fill(store, f"turn{turn}", 60, 50_000)
        assert os.stat(tmp_path / "store" / "data.mdb").st_size > 8 << 20
        assert all(held(store, f"turn{turn}", 60, 50_000) for turn in range(4))


def test_a_map_grows_in_two_processes_at_once(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "store")
    LmdbStore.create(path, profile=SMALL_MAP).close()

    def writer(mark: str, say: Say) -> None:
        with LmdbStore.open(path, profile=SMALL_MAP) as store:
            for turn in range(6):
                fill(store, f"{mark}{turn}", 30, 50_000)
                assert held(store, f"{mark}{turn}", 30, 50_000)
        say("done")

    with child(lambda say: writer("a", say)) as (_, one), child(lambda say: writer("b", say)) as (_, two):
        assert (one().said, two().said) == (["done"], ["done"])
    with LmdbStore.open(path, writable=False, profile=SMALL_MAP) as store:
        assert all(held(store, f"{mark}{turn}", 30, 50_000) for mark in "ab" for turn in range(6))
        assert {damage.id for damage in fsck(store).damaged} <= {bytes(32).hex()}  # what the refs name


def test_a_reader_follows_a_map_that_another_process_grew(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "store")
    LmdbStore.create(path, profile=SMALL_MAP).close()
    with LmdbStore.open(path, writable=False, profile=SMALL_MAP) as reader:
        assert reader.refs() == []

        def writer(say: Say) -> None:
            with LmdbStore.open(path, profile=SMALL_MAP) as store:
                fill(store, "big", 200, 50_000)

        assert run(writer).signal == 0
        assert held(reader, "big", 200, 50_000)


def test_a_map_at_its_limit_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with LmdbStore.create(os.fspath(path), profile=SMALLEST) as store:
        assert isinstance(store, LmdbStore)
        fill(store, "fits", 4, 50_000)
        with pytest.raises(StoreFullError):
            fill(store, "does not", 60, 50_000)
        assert [name for name, _ in store.refs()] == ["fits"]
        assert held(store, "fits", 4, 50_000)
        fill(store, "fits too", 4, 50_000)
    assert left_in(path) == ([], [], [])
    with LmdbStore.open(os.fspath(path), profile=SMALL_MAP) as store:
        fill(store, "does not", 60, 50_000)


def seal_under(path: Path, source: Path, limit: int, size: int) -> list[str]:
    """Seal in a child under a limit of the process; return what came of it."""

    def work(say: Say) -> None:
        resource.setrlimit(limit, (size, size))
        try:
            say(f"sealed {seal_into(path, source, 'big')}")
        except StoreFullError as error:
            say(error.code)

    ended = run(work)
    assert ended.signal == 0, ended
    return ended.said


@pytest.mark.parametrize("mebibytes", [700, 1500])
def test_a_limited_address_space_is_enough(tmp_path: Path, mebibytes: int) -> None:
    path = tmp_path / "store"
    LmdbStore.create(os.fspath(path)).close()
    source = plant(tmp_path / "t", {f"{i}": os.urandom(40_000) for i in range(100)})
    # A process of its own: one forked from here would inherit the maps of other tests.
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({mebibytes << 20}, {mebibytes << 20}))\n"
        "import provstore\n"
        "store = provstore.open_store(sys.argv[1])\n"
        "print(provstore.seal(store, [sys.argv[2]], name='big').packet)\n"
    )
    command = [sys.executable, "-c", code, os.fspath(path), os.fspath(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sound(path, {"big": done.stdout.strip()})


@pytest.mark.parametrize("kibibytes", [100, 700, 1500, 3000])
@pytest.mark.parametrize("blob", [True, False], ids=["blob", "frames"])
def test_a_limited_file_size_fails_cleanly(tmp_path: Path, kibibytes: int, blob: bool) -> None:
    path = tmp_path / "store"
    LmdbStore.create(os.fspath(path)).close()
    packet = seal_into(path, tree(tmp_path / "a", "a"), "a")
    content: dict[str | bytes, str | bytes | None] = (
        {"big": os.urandom(6 << 20)} if blob else {f"{i}": os.urandom(19_000) for i in range(320)}
    )
    source = plant(tmp_path / "t", content)
    assert seal_under(path, source, resource.RLIMIT_FSIZE, kibibytes << 10) == ["store-full"]
    sound(path, {"a": packet})
    assert left_in(path) == ([], [], [])
    sealed = seal_into(path, source, "big")
    sound(path, {"a": packet, "big": sealed})


@contextmanager
def small_disk(place: Path, mebibytes: int) -> Iterator[Path]:
    """Mount a tmpfs; only root may, and the tests of a full disk need one."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def may_mount() -> bool:
    """Say whether this process may mount; where it may not, ``RLIMIT_FSIZE`` above stands in for the disk."""
    done = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    return done.returncode == 0


@pytest.mark.parametrize("blob", [True, False], ids=["blob", "frames"])
def test_a_full_disk_leaves_the_store_as_it_was(tmp_path: Path, blob: bool) -> None:
    if not may_mount():
        print("NOT RUN on a full tmpfs: this user may not mount; the file size limit was tested instead")
        return
    content: dict[str | bytes, str | bytes | None] = (
        {"big": os.urandom(6 << 20)} if blob else {f"{i}": os.urandom(19_000) for i in range(320)}
    )
    source = plant(tmp_path / "t", content)
    a = tree(tmp_path / "a", "a")
    with small_disk(tmp_path / "disk", 8) as disk:
        path = disk / "store"
        LmdbStore.create(os.fspath(path)).close()
        packet = seal_into(path, a, "a")
        ballast = disk / "ballast"
        for free_kib in (64, 400, 1000, 2500):
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            ballast.write_bytes(b"\0" * max(0, free - (free_kib << 10)))

            def work(say: Say) -> None:
                store = LmdbStore.open(os.fspath(path))
                with store:
                    try:
                        seal_paths(store, [source], name="big", options=SealOptions(workers=0))
                    except StoreFullError as error:
                        say(error.code)

            ended = run(work)
            assert ended == (0, ["store-full"]), (free_kib, ended)
            ballast.unlink()
            sound(path, {"a": packet})
            assert left_in(path) == ([], [], []), free_kib
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        sound(path, {"a": packet, "big": seal_into(path, source, "big")})
