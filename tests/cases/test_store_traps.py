"""Edge cases of the store (31 to 41): maps, readers, locks, read-only media, foreign files, kills."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workbench import (
    as_nobody,
    at_most,
    findings,
    listed,
    open_to_all,
    plant,
    seal,
    settle,
)

from provstore.errors import EmptyError, NotAStoreError, ProvError, ReadOnlyError, UsageError
from provstore.store.lmdb_store import LmdbStore
from provstore.store.opening import open_pack, open_store
from provstore.store.profile import StoreProfile
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import gc
from provstore.verbs.locating import locate
from provstore.verbs.packing import pack
from provstore.verbs.sealing import seal_paths
from provstore.verbs.unpacking import unpack
from provstore.verbs.verifying import verify

SEAL = (
    "import sys\n"
    "from provstore.store.lmdb_store import LmdbStore\n"
    "from provstore.store.profile import StoreProfile\n"
    "from provstore.verbs.sealing import seal_paths\n"
    "profile = StoreProfile(map_size_bytes=int(sys.argv[3])) if sys.argv[3:] else StoreProfile()\n"
    "with LmdbStore.create(sys.argv[1], profile=profile) as store:\n"
    "    print(seal_paths(store, [sys.argv[2]]).packet)\n"
)


def child(code: str, *arguments: str | Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *(os.fspath(argument) for argument in arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# 31. The map runs out


def test_31_the_map_grows_for_this_and_for_other_processes(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {f"d{n % 40}/f{n}": str(n) * 50 for n in range(4000)})
    other = plant(tmp_path / "u", {f"f{n}": os.urandom(2000) for n in range(1500)})
    with LmdbStore.create(os.fspath(tmp_path / "s"), profile=StoreProfile(map_size_bytes=1 << 20)) as store:
        first = child(SEAL, tmp_path / "s", other, str(1 << 20))
        packet = seal(store, tree)
        out, err = first.communicate(timeout=120)
        assert first.returncode == 0, err
        assert verify(store, packet).outcome == "PASS"
        assert verify(store, bytes.fromhex(out.strip())).outcome == "PASS"
        assert fsck(store).damaged == ()


def test_31_a_map_that_may_not_grow_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    profile = StoreProfile(map_size_bytes=1 << 20, max_map_size_bytes=1 << 20)
    tree = plant(tmp_path / "t", {f"f{n}": os.urandom(3000) for n in range(1000)})
    small = plant(tmp_path / "s", {"f": "x"})
    with LmdbStore.create(os.fspath(tmp_path / "store"), profile=profile) as store:
        packet = seal(store, small)
        with pytest.raises(ProvError) as raised:
            seal(store, tree)
        assert raised.value.code == "store-full"
        assert [name for name, _ in store.refs()] == ["s"]
        assert verify(store, packet).outcome == "PASS"
        assert fsck(store).damaged == ()


# 32. Readers that were killed


def test_32_killed_readers_use_up_no_slots(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": os.urandom(100_000)})
    place = os.fspath(tmp_path / "s")
    profile = StoreProfile(max_readers=16)
    with LmdbStore.create(place, profile=profile) as store:
        packet = seal(store, tree)
    for _ in range(40):
        pid = os.fork()
        if pid == 0:
            with LmdbStore.open(place, writable=False, profile=profile) as mine:
                for _ in mine.objects():
                    os.kill(os.getpid(), signal.SIGKILL)
            os._exit(0)
        os.waitpid(pid, 0)
    with LmdbStore.open(place, profile=profile) as store:
        assert verify(store, packet).outcome == "PASS"
        assert seal(store, plant(tmp_path / "u", {"g": "y"}))
        assert fsck(store).damaged == ()


# 34. Opened twice


def test_34_two_stores_on_one_path_share_it(tmp_path: Path) -> None:
    a = LmdbStore.create(os.fspath(tmp_path / "s"))
    (tmp_path / "s2").symlink_to("s")
    b = open_store(tmp_path / "s2")
    tree = plant(tmp_path / "t", {"f": "x"})
    packet = seal(a, tree)
    assert verify(b, packet).outcome == "PASS"
    b.close()
    assert verify(a, packet).outcome == "PASS"
    assert seal(a, plant(tmp_path / "u", {"g": "y"}))
    assert fsck(a).damaged == ()
    a.close()


# 35. The tree contains the store


@pytest.mark.parametrize("follow", [False, True])
def test_35_the_store_in_the_tree_is_skipped_and_said(tmp_path: Path, follow: bool) -> None:
    tree = plant(tmp_path / "t", {"f": "x", "d/g": "y"})
    with LmdbStore.create(os.fspath(tree / "d/.prov")) as store:
        report = seal_paths(store, [tree], name="x")
        assert [(item.path, item.rule) for item in report.excluded] == [("d/.prov", "the store itself")]
        assert seal(store, tree, name="x").hex() == report.packet
        (tree / "l").symlink_to("d/.prov")
        if follow:
            again = seal_paths(store, [tree], name="x")
            assert listed(store, seal(store, tree, follow_symlinks=True)).keys() == {"f", "d/g"}
            assert again.packet != report.packet


def opened_by(place: Path) -> list[str]:
    """Return the store's own files that a seal opens, seen through the audit events of the interpreter."""
    seen: list[str] = []
    inside = os.fspath(place.resolve())

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if path.startswith(inside) and path.endswith(".mdb"):
                seen.append(path)

    sys.addaudithook(watch)
    return seen


def test_35_no_way_leads_into_the_store(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x"})
    place = tree / ".prov"
    with LmdbStore.create(os.fspath(place)) as store:
        packet = seal(store, tree)
        seen = opened_by(place)
        (tmp_path / "link").symlink_to(place / "data.mdb")
        (tmp_path / "via").symlink_to(place)
        (tmp_path / "u").mkdir()
        (tmp_path / "u/l").symlink_to(place / "data.mdb")
        for path, options in (
            (place, {}),
            (place / "blobs", {}),
            (place / "data.mdb", {}),
            (tmp_path / "via", {"follow_symlinks": True}),
            (tmp_path / "via/data.mdb", {}),
            (tmp_path / "link", {"follow_symlinks": True}),
        ):
            with pytest.raises(UsageError, match="store"):
                seal(store, path, **options)
        with pytest.raises(EmptyError):
            seal(store, tmp_path / "u", follow_symlinks=True)
        assert seen == []
        assert verify(store, packet).outcome == "PASS"


# 37. Read-only media


def test_37_a_read_only_store_is_verified_without_a_write() -> None:
    with open_to_all() as place:
        tree = plant(place / "t", {"f": "x", "big": os.urandom(5 << 20)})
        with LmdbStore.create(os.fspath(place / "s")) as store:
            packet = seal(store, tree)
        subprocess.run(["chmod", "-R", "a-w,a+rX", place / "s"], check=True)
        before = {path: path.stat().st_mtime_ns for path in (place / "s").rglob("*")}

        def work() -> tuple[str, int, int, str]:
            store = open_store(place / "s", writable=False)
            outcome = verify(store, packet).outcome
            damaged = len(fsck(store).damaged)
            out = place / "p.pack"
            pack([("t", locate("t", store))], out)
            refused = ""
            try:
                open_store(place / "s").stage()
            except ReadOnlyError as error:
                refused = error.code
            return outcome, damaged, out.stat().st_size, refused

        outcome, damaged, size, refused = as_nobody(work)
        assert (outcome, damaged, refused) == ("PASS", 0, "read-only")
        assert size > 5 << 20
        assert {path: path.stat().st_mtime_ns for path in (place / "s").rglob("*")} == before
        subprocess.run(["chmod", "-R", "u+w", place / "s"], check=True)


def test_37_a_read_only_mount_is_told_from_a_lack_of_rights(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x"})
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", place], check=True)
    try:
        with LmdbStore.create(os.fspath(place / "s")) as store:
            packet = seal(store, tree)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        reader = open_store(place / "s", writable=False)
        assert verify(reader, packet).outcome == "PASS"
        reader.close()
        with pytest.raises(ReadOnlyError) as raised:
            seal(open_store(place / "s"), tree)
        assert "medium" in raised.value.message or "Read-only" in raised.value.message
    finally:
        subprocess.run(["umount", place], check=True)


# 38. Files of strangers


@pytest.mark.parametrize("size", [0, 10, 4096, 65536])
def test_38_bytes_that_are_no_index_are_refused(tmp_path: Path, size: int) -> None:
    place = tmp_path / "s"
    place.mkdir()
    (place / "data.mdb").write_bytes(random.Random(size).randbytes(size))
    code = (
        "import sys\nfrom provstore.store.opening import open_store\nfrom provstore.errors import ProvError\n"
        "try:\n    open_store(sys.argv[1], writable=False)\nexcept ProvError as error:\n"
        "    print(error.code)\n"
    )
    run = child(code, place)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, (run.returncode, err)
    assert out.strip() in ("not-a-store", "store-damaged", "damaged-store", "io"), out


def test_38_an_index_is_no_pack(tmp_path: Path) -> None:
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        seal(store, plant(tmp_path / "t", {"f": "x"}))
    for name in ("data.mdb", "lock.mdb"):
        with pytest.raises(ProvError) as raised:
            open_pack(tmp_path / "s" / name)
        assert raised.value.code in ("bad-pack", "newer-format")
        with LmdbStore.create(os.fspath(tmp_path / "other")) as other:
            with pytest.raises(ProvError):
                unpack(other, tmp_path / "s" / name)
            assert list(other.objects()) == []


def test_38_a_directory_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(NotAStoreError):
        open_store(tmp_path)
    assert list(tmp_path.iterdir()) == []


# 40 and 41. Sweeps and kills


def test_40_what_a_seal_relied_on_is_not_swept_away_unseen(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": os.urandom(3000), "g": "y"})
    settle(tree)
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        packet = seal(store, tree)
        with store.stage() as stage:
            stage.set_ref("t", None)
            stage.commit()
        gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + 10**12)
        assert list(store.objects()) == []
        assert seal(store, tree) == packet
        assert verify(store, packet).outcome == "PASS"


def test_40_the_stat_cache_never_vouches_for_bytes_that_are_gone(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": os.urandom(3000), "d/g": "y"})
    settle(tree)
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        packet = seal(store, tree)
        pack([("t", locate("t", store))], tmp_path / "p.pack", without=["f", "d/*"])
        with store.stage() as stage:
            stage.set_ref("t", None)
            stage.commit()
        gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + 10**12)
        unpack(store, tmp_path / "p.pack")
        assert verify(store, packet).outcome == "INCOMPLETE"
        assert seal(store, tree) == packet
        report = verify(store, packet)
        assert (report.outcome, findings(report)) == ("PASS", {})


def test_41_a_kill_at_any_time_leaves_a_store_that_verifies(tmp_path: Path) -> None:
    files: dict[str | bytes, str | bytes | None] = {f"d{n % 9}/f{n}": os.urandom(900) for n in range(2500)}
    tree = plant(tmp_path / "t", files | {"big": os.urandom(30 << 20)})
    place = tmp_path / "s"
    LmdbStore.create(os.fspath(place)).close()
    chance = random.Random(7)
    for _ in range(12):
        run = child(SEAL, place, tree)
        time.sleep(0.1 + chance.random() * 0.7)
        run.kill()
        run.communicate()
        with LmdbStore.create(os.fspath(place)) as store:
            assert fsck(store).damaged == ()
            for _, packet in store.refs():
                assert verify(store, packet).outcome == "PASS"
    with LmdbStore.create(os.fspath(place)) as store:
        packet = seal(store, tree)
        assert verify(store, packet).outcome == "PASS"
        gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + 10**12)
        assert [path.name for path in (place / "tmp").iterdir()] == ["writer.lock"]
        assert fsck(store).leftovers == 0
        assert fsck(store).unreferenced == 0
        assert verify(store, packet).outcome == "PASS"
    assert sum(path.stat().st_size for path in (place / "blobs").rglob("*") if path.is_file()) < 32 << 20


def test_41_a_stage_that_is_left_open_holds_up_nobody(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x"})
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store, at_most(60):
        with store.stage():
            run = child(SEAL, tmp_path / "s", tree)
            out, err = run.communicate(timeout=50)
        assert run.returncode == 0, err
        assert verify(store, bytes.fromhex(out.strip())).outcome == "PASS"
    shutil.rmtree(tmp_path / "s")
