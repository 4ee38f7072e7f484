"""Files that change while they are sealed, and changes that leave few traces: refused, or a real state."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from workbench import at_most, listed, seal, settle, snapshot

import provstore
from provstore.errors import ProvError
from provstore.ids import RawId, digests
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore

SECONDS = 2.0
"""For so long each writer writes at 100 Hz while seals follow each other."""

REFUSALS = frozenset({"source-changed", "source-unreadable"})

LINE = b"%011d\n"

SIZES = {"small": 20_000, "large": 500_000}
"""Lines of a file that is read whole, and of one that is streamed: 240 kB and 6 MB."""

WRITER = r"""
import os, sys, time
kind, path, lines, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
body = lambda g: b"%011d\n" % g * lines
end, g = time.monotonic() + seconds, 0

def step():
    if kind == "append":
        os.write(number, b"".join(b"%011d\n" % i for i in range(g * 50, g * 50 + 50)))
    elif kind == "replace":
        with open(path + ".new", "wb") as file:
            file.write(body(g))
        os.rename(path + ".new", path)
    elif kind == "overwrite":
        os.pwrite(number, body(g), 0)
    elif kind == "truncate":
        os.ftruncate(number, 12 * (lines >> g % 4))
        os.pwrite(number, body(g)[: 12 * (lines >> g % 4)], 0)
    elif kind == "rename":
        os.rename(path, path + ".away")
        os.rename(path + ".away", path)
    elif kind == "type":
        state = g % 5
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)
        if state == 0:
            with open(path, "wb") as file:
                file.write(b"plain")
        elif state == 1:
            os.symlink("../outside/secret", path)
        elif state == 2:
            os.mkdir(path)
        elif state == 3:
            os.mkfifo(path)
    elif kind == "directory":
        os.rename(path, path + ".away")
        os.symlink("../outside", path)
        os.unlink(path)
        os.rename(path + ".away", path)

if kind in ("append", "overwrite", "truncate"):
    number = os.open(path, os.O_WRONLY | (os.O_APPEND if kind == "append" else 0))
print("ready", flush=True)
while time.monotonic() < end:
    g += 1
    step()
    time.sleep(0.01)
"""


def body(generation: int, lines: int) -> bytes:
    return LINE % generation * lines


@contextmanager
def writing(kind: str, path: Path, lines: int = 0, seconds: float = SECONDS) -> Iterator[Callable[[], bool]]:
    """Let another process change a file; gives a function that says whether it still does."""
    arguments = [sys.executable, "-c", WRITER, kind, os.fspath(path), str(lines), str(seconds)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        yield lambda: writer.poll() is None
        assert writer.wait() == 0


def seals_while(
    writes: Callable[[], bool], tree: Path, **options: bool
) -> tuple[list[RawId], set[str], MemoryStore]:
    """Seal a directory again and again; return the packets, the codes of refusals, and the store."""
    store = MemoryStore()
    packets, codes = [], set()
    while writes():
        try:
            packets.append(seal(store, tree, **options))
        except ProvError as error:
            codes.add(error.code)
    return packets, codes, store


def content(store: MemoryStore, packet: RawId, name: str) -> bytes:
    with provstore.locate(packet.hex(), store):
        return b"".join(provstore.cat(store, packet, name))


def is_one_state(kind: str, data: bytes, lines: int) -> bool:
    """Say whether a file ever was like this."""
    found = [int(line) for line in data.split(b"\n")[:-1]]
    if not data.endswith(b"\n") and data:
        return False
    if kind == "append":
        return found == list(range(found[0], found[0] + len(found)))
    if kind == "truncate":
        # Cut first, written then: what is longer than before ends in zeros until it is written.
        return len(set(found)) <= 1 and len(found) in [lines >> n for n in range(4)]
    return len(set(found)) == 1 and len(found) == lines


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["append", "replace", "overwrite", "rename"])
def test_a_seal_is_refused_or_holds_a_state_that_existed(kind: str, size: str, tmp_path: Path) -> None:
    lines = SIZES[size]
    tree = tmp_path / "tree"
    tree.mkdir()
    path = tree / "file"
    start = b"".join(LINE % n for n in range(50 - lines, 50)) if kind == "append" else body(0, lines)
    path.write_bytes(start)
    with at_most(60), writing(kind, path, lines) as writes:
        packets, codes, store = seals_while(writes, tree)
    assert codes <= REFUSALS
    torn = []
    for packet in dict.fromkeys(packets):
        members = listed(store, packet)
        if "file" in members:
            data = content(store, packet, "file")
            assert digests(data).blake3.hex() == members["file"].blake3
            torn += [] if is_one_state(kind, data, lines) else [packet.hex()]
    assert torn == []
    last = seal(store, tree)
    frozen = tmp_path / "frozen"
    frozen.mkdir()
    (frozen / "file").write_bytes(path.read_bytes())
    assert provstore.verify_against(store, last, frozen).outcome == "PASS"
    assert provstore.verify(store, last).outcome == "PASS"


def test_a_file_that_is_cut_and_written_again_is_never_read_half(tmp_path: Path) -> None:
    """Cutting and writing are two steps, so the state between them exists: zeros behind the end."""
    lines = SIZES["small"]
    tree = tmp_path / "tree"
    tree.mkdir()
    path = tree / "file"
    path.write_bytes(body(0, lines))
    with at_most(60), writing("truncate", path, lines) as writes:
        packets, codes, store = seals_while(writes, tree)
    assert codes <= REFUSALS
    for packet in dict.fromkeys(packets):
        data = content(store, packet, "file")
        assert len(data) // 12 in [lines >> n for n in range(4)]
        written = {line for line in data.rstrip(b"\0").split(b"\n") if line}
        assert len(written) == 1, "lines of two generations in one seal"


def test_growing_files_give_a_whole_prefix_when_that_is_asked_for(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    path = tree / "run.log"
    path.write_bytes(b"".join(LINE % n for n in range(50)))
    with at_most(60), writing("append", path) as writes:
        packets, codes, store = seals_while(writes, tree, allow_growing=True)
    assert codes <= {"source-changed"}
    assert packets
    end = path.read_bytes()
    for packet in dict.fromkeys(packets):
        assert end.startswith(content(store, packet, "run.log"))


def test_a_name_that_changes_its_type_never_leads_outside(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"not part of the tree")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "other").write_bytes(b"other")
    with at_most(60), writing("type", tree / "name") as writes:
        packets, codes, store = seals_while(writes, tree)
    assert codes <= REFUSALS | {"special-file"}
    assert packets
    states = set()
    for packet in dict.fromkeys(packets):
        member = listed(store, packet).get("name")
        states.add(None if member is None else member.type)
    assert states <= {None, "file", "symlink", "directory"}
    assert all(object_is_inside(store, id) for id, _ in store.objects())


def object_is_inside(store: MemoryStore, id: RawId) -> bool:
    return objects.read(store, id) in (b"", b"plain", b"other", b"inside")


def test_a_directory_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"not part of the tree")
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "below" / "file").write_bytes(b"inside")
    with at_most(60), writing("directory", tree / "below") as writes:
        packets, codes, store = seals_while(writes, tree)
    assert codes <= REFUSALS
    assert packets
    assert all(object_is_inside(store, id) for id, _ in store.objects())


# Changes between two seals that leave few traces. The stat cache is that of a real store.


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[LmdbStore, Path, Path]]:
    """A store, a tree with one file of 9 bytes, and that file."""
    store = LmdbStore.create(os.fspath(tmp_path / "store"))
    tree = tmp_path / "tree"
    tree.mkdir()
    path = tree / "file"
    path.write_bytes(b"old bytes")
    yield store, tree, path
    store.close()


def sealed_bytes(store: LmdbStore, tree: Path, name: str = "file") -> bytes:
    return b"".join(provstore.cat(store, seal(store, tree), name))


@pytest.mark.parametrize("mtime_ns", [0, 1, 10**9, 4 * 10**18, time.time_ns() // 10**9 * 10**9, -(10**18)])
def test_any_time_of_change_that_a_clock_or_a_tool_may_set(
    place: tuple[LmdbStore, Path, Path], mtime_ns: int
) -> None:
    """Clocks that were set back or forward, and same size and same time with other bytes."""
    store, tree, path = place
    os.utime(path, ns=(mtime_ns, mtime_ns))
    settle(tree)
    assert sealed_bytes(store, tree) == b"old bytes"
    assert sealed_bytes(store, tree) == b"old bytes"
    for new in (b"new bytes", b"odd bytes"):
        path.write_bytes(new)
        os.utime(path, ns=(mtime_ns, mtime_ns))
        assert sealed_bytes(store, tree) == new
    assert os.stat(path).st_mtime_ns == mtime_ns


def test_changes_within_one_tick_of_the_clock(place: tuple[LmdbStore, Path, Path]) -> None:
    """Written, sealed, written again at once with the same size and the same time of change."""
    store, tree, path = place
    before = os.stat(path)
    for number in range(60):
        new = b"%09d" % number
        with path.open("r+b") as file:
            file.write(new)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert sealed_bytes(store, tree) == new


def test_a_file_that_takes_the_place_of_another(place: tuple[LmdbStore, Path, Path]) -> None:
    """Same name, size and time; only the inode and its own time of change differ."""
    store, tree, path = place
    settle(tree)
    sealed_bytes(store, tree)
    status = os.stat(path)
    other = tree.parent / "other"
    other.write_bytes(b"new bytes")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.rename(other, path)
    assert sealed_bytes(store, tree) == b"new bytes"


def test_a_file_that_is_written_through_another_name(place: tuple[LmdbStore, Path, Path]) -> None:
    store, tree, path = place
    os.link(path, tree / "second")
    outside = tree.parent / "outside"
    os.link(path, outside)
    settle(tree)
    packet = seal(store, tree)
    assert set(listed(store, packet)) == {"file", "second"}
    status = os.stat(path)
    with outside.open("r+b") as file:
        file.write(b"new bytes")
    os.utime(outside, ns=(status.st_atime_ns, status.st_mtime_ns))
    changed = seal(store, tree)
    assert changed != packet
    for name in ("file", "second"):
        assert b"".join(provstore.cat(store, changed, name)) == b"new bytes"


def test_holes_that_are_filled_and_bytes_that_become_holes(place: tuple[LmdbStore, Path, Path]) -> None:
    store, tree, path = place
    size = 8 << 20
    with path.open("wb") as file:
        file.seek(size - 5)
        file.write(b"bytes")
    settle(tree)
    empty = seal(store, tree)
    assert b"".join(provstore.cat(store, empty, "file")) == bytes(size - 5) + b"bytes"
    status = os.stat(path)
    with path.open("r+b") as file:
        file.seek(4 << 20)
        file.write(b"x" * 4096)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    filled = seal(store, tree)
    assert filled != empty
    other = tree.parent / "whole" / "tree"
    other.mkdir(parents=True)
    (other / "file").write_bytes(path.read_bytes())
    assert seal(store, other) == filled, "a hole and written zeros are the same bytes"
    with path.open("r+b") as file:
        file.seek(4 << 20)
        file.write(bytes(4096))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert seal(store, tree) == empty


def test_what_is_restored_is_what_was_there_when_it_was_sealed(place: tuple[LmdbStore, Path, Path]) -> None:
    store, tree, path = place
    packet = seal(store, tree)
    frozen = snapshot(tree)
    path.write_bytes(b"changed afterwards")
    (tree / "more").write_bytes(b"more")
    target = tree.parent / "restored"
    provstore.restore(store, packet, target)
    assert snapshot(target) == frozen
    assert provstore.verify_against(store, packet, tree).outcome == "FAIL"
