"""Edge cases of bytes, time and disks (18 to 29)."""

import hashlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from workbench import (
    as_nobody,
    findings,
    listed,
    open_to_all,
    packet_of,
    plant,
    seal,
    settle,
)

from provstore.errors import (
    IncompleteSourceError,
    ProvError,
    SourceChangedError,
    SourceUnreadableError,
)
from provstore.ids import to_raw
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.verbs.comparing import verify_against
from provstore.verbs.listing import cat
from provstore.verbs.restoring import restore
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.sweeping import fsck
from provstore.verbs.verifying import verify


def new_store(place: Path) -> LmdbStore:
    return LmdbStore.create(os.fspath(place / "store"))


# 18. A file changes while it is hashed


@contextmanager
def writing(path: Path, code: str) -> Iterator[None]:
    """Let another process write to a file all the while; it says when it has begun."""
    text = f"import os, sys\nf = os.open(sys.argv[1], os.O_RDWR)\nn = os.fstat(f).st_size\n{code}"
    child = subprocess.Popen([sys.executable, "-c", text, path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        assert child.stdout.read(1) == b"!"
        yield
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


REWRITE = """
g = 0
while True:
    g += 1
    os.pwrite(f, g.to_bytes(8, "little"), 0)
    os.pwrite(f, g.to_bytes(8, "little"), n - 8)
    if g == 100:
        os.write(1, b"!")
"""

APPEND = """
os.lseek(f, 0, 2)
for g in range(1 << 30):
    os.write(f, b"one more event of this run\\n")
    if g == 100:
        os.write(1, b"!")
"""


@pytest.mark.parametrize("size", [9000, 3 << 20, 64 << 20])
def test_18_a_torn_read_is_refused_and_nothing_of_it_stays(tmp_path: Path, size: int) -> None:
    tree = plant(tmp_path / "t", {"w.bin": bytes(size), "other": "x"})
    refused = 0
    with new_store(tmp_path) as store:
        with writing(tree / "w.bin", REWRITE):
            for _ in range(40):
                try:
                    packet = seal(store, tree)
                except SourceChangedError as error:
                    refused += error.path == "w.bin" and not {"mtime", "ctime"}.isdisjoint(error.changed)
                    continue
                data = b"".join(cat(store, packet, "w.bin"))
                first, last = (int.from_bytes(part, "little") for part in (data[:8], data[-8:]))
                assert last in (first, first - 1), "bytes of two states"
                assert size < 64 << 20
            assert refused or size < 64 << 20
        if size == 64 << 20:
            assert store.refs() == []
            assert list(store.objects()) == []
            assert [p for p in (tmp_path / "store").rglob("*") if p.is_file() and "mdb" not in p.name] == []
        packet = seal(store, tree)
        assert verify(store, packet).outcome == "PASS"
        assert verify_against(store, packet, tree).outcome == "PASS"


# 19. A growing log


def test_19_a_growing_log_is_refused_or_recorded_as_a_prefix(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"run.log": b"an event of this run\n" * 1_000_000, "f": "x"})
    store = MemoryStore()
    with writing(tree / "run.log", APPEND):
        with pytest.raises(SourceChangedError, match=r"run\.log"):
            seal(store, tree)
        assert store.refs() == []
        report = seal_paths(store, [tree], options=SealOptions(allow_growing=True))
    packet = to_raw(report.packet)
    member = listed(store, packet)["run.log"]
    assert member.state == "prefix"
    assert member.size is not None
    assert hashlib.sha256((tree / "run.log").read_bytes()[: member.size]).hexdigest() == member.sha256
    assert listed(store, packet)["f"].state is None
    assert any("run.log" in note for note in report.observations["notes"])
    verdict = verify(store, packet)
    assert findings(verdict)["run.log"] == "prefix"
    assert verify_against(store, packet, tree).outcome == "FAIL"
    whole = seal(store, tree)
    assert whole != packet
    assert listed(store, whole)["run.log"].state is None


# 21. Truncated while read


TRUNCATE = """
os.write(1, b"!")
while True:
    os.ftruncate(f, n // 2)
    os.ftruncate(f, n)
"""


def test_21_truncation_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    with (tree / "w.bin").open("wb") as file:
        file.truncate(200 << 20)
    with new_store(tmp_path) as store:
        with writing(tree / "w.bin", TRUNCATE), pytest.raises(SourceChangedError, match=r"w\.bin"):
            seal(store, tree)
        assert store.refs() == []
        assert verify(store, seal(store, tree)).outcome == "PASS"


# 22. The cache says "unchanged"


def test_22_a_timestamp_put_back_hides_nothing(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "AAAA\n", "g": "x"})
    settle(tree)
    with new_store(tmp_path) as store:
        packet = seal(store, tree)
        seen = (tree / "f").stat()
        (tree / "f").write_text("BBBB\n")
        os.utime(tree / "f", ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert findings(verify_against(store, packet, tree)) == {"f": "changed"}
        assert seal(store, tree) != packet


def test_22_a_file_written_within_the_grain_of_the_clock_is_read_again(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "0"})
    with new_store(tmp_path) as store:
        last = b""
        for round in range(20):
            (tree / "f").write_text(chr(65 + round))
            packet = seal(store, tree)
            assert packet != last
            assert verify_against(store, packet, tree).outcome == "PASS"
            last = packet


def test_22_a_replaced_inode_is_read_again(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "AAAA\n"})
    settle(tree)
    with new_store(tmp_path) as store:
        packet = seal(store, tree)
        seen = (tree / "f").stat()
        (tree / "new").write_text("BBBB\n")
        os.utime(tree / "new", ns=(seen.st_atime_ns, seen.st_mtime_ns))
        (tree / "new").rename(tree / "f")
        assert seal(store, tree) != packet


def test_22_verify_never_looks_at_the_cache(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x" * 100})
    settle(tree)
    store = MemoryStore()
    packet = seal(store, tree)
    assert seal_paths(store, [tree]).bytes_read == 0
    report = verify_against(store, packet, tree)
    assert (report.outcome, report.bytes_checked) == ("PASS", 100)


# 23 and 25. Mode bits and names prove nothing


def damage_a_blob(store: Path) -> Path:
    """Overwrite the beginning of a blob file, mode and size kept as they were."""
    blob = next(path for path in (store / "blobs").rglob("*") if path.is_file())
    blob.chmod(0o644)
    with blob.open("r+b") as file:
        file.seek(1000)
        file.write(b"evil")
    blob.chmod(0o444)
    return blob


def test_23_read_only_mode_is_no_proof(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"big": os.urandom(9 << 20), "small": "x"})
    with new_store(tmp_path) as store:
        packet = seal(store, tree)
    damage_a_blob(tmp_path / "store")
    with new_store(tmp_path) as store:
        report = verify(store, packet)
        assert report.outcome == "FAIL"
        assert findings(report) == {"big": "damaged"}
        (damage,) = fsck(store).damaged
        assert (damage.packet, damage.path) == (packet.hex(), "big")
        with pytest.raises(ProvError) as raised:
            restore(store, packet, tmp_path / "out")
        assert raised.value.exit_code in (2, 10)
        assert not (tmp_path / "out/big").exists()


def test_23_a_blob_that_is_gone_is_named(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"big": os.urandom(9 << 20), "small": "x"})
    with new_store(tmp_path) as store:
        packet = seal(store, tree)
    next(path for path in (tmp_path / "store/blobs").rglob("*") if path.is_file()).unlink()
    with new_store(tmp_path) as store:
        assert verify(store, packet).outcome == "FAIL"
        assert findings(verify(store, packet)).keys() == {"big"}
        assert [damage.path for damage in fsck(store).damaged] == ["big"]


def hub_cache(place: Path, content: bytes) -> tuple[Path, Path]:
    """Make a snapshot of one shard in the layout of a Hub cache; returns snapshot and blob."""
    blob = place / "c/blobs" / hashlib.sha256(content).hexdigest()
    plant(place, {f"c/blobs/{blob.name}": content, "c/snapshots/r/m.bin": f"->../../blobs/{blob.name}"})
    return place / "c/snapshots/r", blob


@pytest.mark.parametrize("whole", [False, True])
def test_25_a_blob_rewritten_through_its_link_is_refused(tmp_path: Path, whole: bool) -> None:
    snapshot, blob = hub_cache(tmp_path, b"good")
    target = tmp_path / "c" if whole else snapshot
    store = MemoryStore()
    assert seal(store, target, kind="model")
    (snapshot / "m.bin").write_bytes(b"rewritten")
    with pytest.raises((IncompleteSourceError, ProvError), match=blob.name) as raised:
        seal(MemoryStore(), target, kind="model")
    assert hashlib.sha256(b"rewritten").hexdigest() in raised.value.message


def test_25_restored_files_are_nobodys_hardlinks(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"big": os.urandom(9 << 20), "a": "x", "b": "x"})
    with new_store(tmp_path) as store:
        packet = seal(store, tree)
        restore(store, packet, tmp_path / "out")
        for path in (tmp_path / "out").iterdir():
            assert path.stat().st_nlink == 1
            path.write_bytes(b"edited")
        assert verify(store, packet).outcome == "PASS"


# 28. A full disk


def limited(store: Path, tree: Path, size: int) -> tuple[bool, str]:
    """Seal in a child whose files cannot grow over a size; returns what it said."""
    code = (
        "import resource, signal, sys\n"
        "from provstore.store.lmdb_store import LmdbStore\n"
        "from provstore.verbs.sealing import seal_paths\n"
        "from provstore.errors import ProvError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "store = LmdbStore.create(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)\n"
        "try:\n"
        "    print(seal_paths(store, [sys.argv[2]]).packet)\n"
        "except ProvError as error:\n"
        "    print(error.code)\n"
        "    sys.exit(error.exit_code)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, store, tree, str(size)], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in run.stderr, run.stderr
    return run.returncode == 0, run.stdout.strip()


def test_28_a_file_size_limit_leaves_a_clean_store(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"w": os.urandom(30 << 20), "small": "x"})
    good, said = limited(tmp_path / "store", tree, 20 << 20)
    assert not good
    assert said in ("store-full", "io")
    with new_store(tmp_path) as store:
        assert list(store.objects()) == []
        assert store.refs() == []
        assert fsck(store).damaged == ()
        packet = seal(store, tree)
        assert verify(store, packet).outcome == "PASS"
        assert fsck(store).damaged == ()
        assert fsck(store).leftovers == 0
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.parametrize("files", [1, 400])
def test_28_a_full_file_system(tmp_path: Path, files: int) -> None:
    size = (30 << 20) // files
    tree = plant(tmp_path / "t", {f"w{n}": os.urandom(size) for n in range(files)})
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", disk], check=True)
    try:
        with LmdbStore.create(os.fspath(disk / "store")) as store:
            with pytest.raises(ProvError) as raised:
                seal(store, tree)
            assert raised.value.code == "store-full"
            assert store.refs() == []
            assert fsck(store).damaged == ()
            small = plant(tmp_path / "s", {"f": "x"})
            assert verify(store, seal(store, small)).outcome == "PASS"
    finally:
        subprocess.run(["umount", disk], check=True)


# 29. Unreadable files


def test_29_permission_denied_is_not_skipped() -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y", "d/no": "z"})
        for path in ("t/no", "t/d/no"):
            (place / path).chmod(0o000)

        def work() -> tuple[tuple[tuple[str, str], ...], int, dict[str, str], str]:
            store = MemoryStore()
            failed: tuple[tuple[str, str], ...] = ()
            try:
                seal(store, place / "t")
            except SourceUnreadableError as error:
                failed = error.failures
            refs = len(store.refs())
            report = verify(store, seal(store, place / "t", allow_unreadable=True))
            return failed, refs, findings(report), report.outcome

        failed, refs, found, outcome = as_nobody(work)
    assert failed == (("d/no", "Permission denied"), ("no", "Permission denied"))
    assert refs == 0
    assert found == {"d/no": "unreadable", "no": "unreadable"}
    assert outcome == "INCOMPLETE"


def test_29_a_hole_does_not_switch_pins_off() -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y"})
        (place / "t/no").chmod(0o000)
        wrong = hashlib.sha256(b"another").hexdigest()
        (place / "t.sum").write_text(f"{wrong}  t/ok\n{hashlib.sha256(b'y').hexdigest()}  t/no\n")
        (place / "spec.toml").write_text(
            'format = "provstore/packet-spec/v1"\nname = "run"\n'
            '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "t"\nmanifest = "t.sum"\n'
        )

        def work() -> str:
            from provstore.verbs.sealing import seal_spec

            options = SealOptions(allow_unreadable=True)
            try:
                seal_spec(MemoryStore(), place / "spec.toml", options=options)
            except ProvError as error:
                return f"{error.code}: {error.message}"
            return "sealed"

        said = as_nobody(work)
    assert said.startswith("pin-mismatch")
    assert "e/ok: changed" in said
    assert "e/no" in said


def test_29_one_unreadable_file_by_its_own_path_is_named_once() -> None:
    with open_to_all() as place:
        plant(place, {"no": "y"})
        (place / "no").chmod(0o000)

        def work() -> tuple[tuple[str, str], ...]:
            try:
                seal(MemoryStore(), place / "no")
            except SourceUnreadableError as error:
                return error.failures
            return ()

        failed = as_nobody(work)
    assert failed == (("no", "Permission denied"),)


def test_29_a_file_that_vanishes_during_the_walk_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = plant(tmp_path / "t", {"a": "x", "b": "y", "d/c": "z"})
    from provstore.files import ingest as module

    def vanish(*arguments: object, **options: object) -> object:
        found = walk(*arguments, **options)  # type: ignore[arg-type]
        (tree / "b").unlink()
        (tree / "d/c").unlink()
        return found

    walk = module.walk
    monkeypatch.setattr(module, "walk", vanish)
    with pytest.raises(SourceUnreadableError) as raised:
        seal(MemoryStore(), tree)
    assert {path for path, _ in raised.value.failures} == {"b", "d/c"}


def test_29_holes_are_in_the_packets_identity() -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y"})
        store = MemoryStore()
        whole = seal(store, place / "t")
        (place / "t/no").chmod(0o000)

        def work() -> tuple[bytes, int, int]:
            inner = MemoryStore()
            packet = seal(inner, place / "t", allow_unreadable=True)
            (entry,) = packet_of(inner, packet).entries
            return packet, entry.files, entry.size_bytes or 0

        packet, files, size = as_nobody(work)
    assert packet != whole
    assert (files, size) == (1, 1)
