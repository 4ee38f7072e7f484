"""Edge cases of bytes, time and disks (18 to 29)."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from workbench import (
    findings,
    listed,
    plant,
    seal,
    settle,
)

from provstore.errors import (
    IncompleteSourceError,
    ProvError,
    SourceChangedError,
)
from provstore.ids import to_raw
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.verbs.checking import fsck
from provstore.verbs.comparing import verify_against
from provstore.verbs.listing import cat
from provstore.verbs.restoring import restore
from provstore.verbs.sealing import SealOptions, seal_paths
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
            for _ in range(40 if size < 64 << 20 else 6):
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
