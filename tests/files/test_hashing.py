"""Reading and hashing: right digests, each byte once, and no bytes that never lay together on the disk."""

import errno
import gc
import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from workbench import as_nobody, at_most, git, open_to_all, plant

from provstore.files import hashing
from provstore.files.hashing import (
    GIT_BUNDLE,
    LFS_POINTER,
    PLAIN,
    PREFIX,
    YOUNG_NS,
    Hashed,
    Job,
    Settings,
    frames_of,
    hash_file,
    hash_large,
    read_batch,
)
from provstore.files.root import ROW, Root, pack_row
from provstore.ids import Buffer
from provstore.store import frame

PLAINLY = Settings()
GROWING = Settings(allow_growing=True)


def job(place: Path, name: bytes | str) -> Job:
    """Return what a walk that looks at a file now would ask for."""
    raw = os.fsencode(name)
    return raw, pack_row(os.lstat(os.path.join(os.fsencode(place), raw)))


def small(place: Path, *jobs: Job, settings: Settings = PLAINLY) -> tuple[list[Hashed], list[bytes]]:
    with Root(os.fsencode(place)) as root, at_most(20):
        return read_batch(root, jobs, settings)


class Large:
    """One large file that was read, with what went to the store and what was told on the way."""

    def __init__(
        self,
        place: Path,
        of: Job,
        settings: Settings = PLAINLY,
        meanwhile: Callable[[], object] = lambda: None,
        after_bytes: int = 1,
    ) -> None:
        self.written = bytearray()
        self.told = 0
        self._meanwhile = meanwhile
        self._after_bytes = after_bytes
        with Root(os.fsencode(place)) as root, at_most(20):
            self.done = hash_large(root, of, settings, self._write, self._tell)

    def _write(self, data: Buffer) -> None:
        self.written += data

    def _tell(self, count: int) -> None:
        before = self.told
        self.told += count
        if before < self._after_bytes <= self.told:
            self._meanwhile()


def right(done: Hashed, data: bytes) -> None:
    """Check a result against the reference implementations over the bytes as they should be."""
    assert (done.changed, done.reason) == ((), "")
    assert done.sha256 == hashlib.sha256(data).digest()
    assert done.blake3 == blake3(data).digest()
    assert done.size_bytes == len(data)


def refused(done: Hashed) -> tuple[str, ...]:
    """Check that a result vouches for nothing, and return what changed."""
    assert (done.blake3, done.sha256, done.git, done.size_bytes) == (b"", b"", b"", 0)
    assert done.changed or done.reason
    return done.changed


# Right answers

SIZES = (0, 1, 63, 64, 65, 1023, 1024, 1025, 4096, 1 << 16, (1 << 20) - 1, 1 << 20, (1 << 20) + 1)


@pytest.mark.parametrize("size", SIZES)
def test_digests_are_those_of_the_bytes(tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    plant(tmp_path, {"f": data})
    (one,), (content,) = small(tmp_path, job(tmp_path, "f"))
    right(one, data)
    assert content == data
    assert one.row == job(tmp_path, "f")[1]
    large = Large(tmp_path, job(tmp_path, "f"))
    assert large.done == one
    assert bytes(large.written) == data
    assert large.told == size
    assert hash_file(tmp_path / "f") == one.digests()


def test_digests_are_those_that_other_programs_find(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(3_000_000)
    plant(tmp_path, {"f": data})
    done = Large(tmp_path, job(tmp_path, "f"), Settings(git=True)).done
    found = subprocess.run(["sha256sum", "f"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.split()[0] == done.sha256.hex()
    assert git(tmp_path, "hash-object", "f") == done.git.hex()


@pytest.mark.parametrize("size", [0, 1, 70_000, 5 << 20])
def test_git_ids_are_computed_only_where_asked_for(tmp_path: Path, size: int) -> None:
    plant(tmp_path, {"f": b"\r\n" * (size // 2)})
    of = job(tmp_path, "f")
    with_git, without = Settings(git=True), Settings()
    expected = git(tmp_path, "hash-object", "--no-filters", "f")
    assert small(tmp_path, of, settings=with_git)[0][0].git.hex() == expected
    assert Large(tmp_path, of, with_git).done.git.hex() == expected
    assert small(tmp_path, of, settings=without)[0][0].git == b""
    assert Large(tmp_path, of, without).done.git == b""


def test_results_come_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    contents: dict[str | bytes, str | bytes | None] = {f"f{n}": f"content {n}" * n for n in range(300)}
    plant(tmp_path, contents)
    names = list(contents)
    random.Random(5).shuffle(names)
    results, data = small(tmp_path, *(job(tmp_path, name) for name in names))
    for name, done, content in zip(names, results, data, strict=True):
        expected = str(contents[name]).encode()
        assert content == expected
        right(done, expected)


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Keep finalizers of what other tests left, which may remove folders, out of the count of calls."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_a_settled_file_takes_four_system_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"settled")
    of = job(tmp_path, "f")
    calls: list[str] = []
    for name in ("open", "pread", "read", "fstat", "stat", "close"):
        original = getattr(os, name)

        def counting(*args: Any, _name: str = name, _original: Any = original, **named: Any) -> Any:
            calls.append(_name)
            return _original(*args, **named)

        monkeypatch.setattr(os, name, counting)
    with Root(os.fsencode(tmp_path)) as root:
        monkeypatch.setitem(read_batch.__globals__, "YOUNG_NS", -1)
        settled, _ = read_batch(root, [of], PLAINLY)
        assert calls == ["open", "pread", "fstat", "close"]
        monkeypatch.setitem(read_batch.__globals__, "YOUNG_NS", YOUNG_NS)
        young, _ = read_batch(root, [of], PLAINLY)
        assert calls.count("read") == 1, "one that is young is read at length"
    assert settled == young
    right(settled[0], b"settled")


@pytest.mark.parametrize("change", ["longer", "shorter", "same", "mode", "gone", "directory", "link", "fifo"])
def test_what_is_not_as_the_walk_saw_it_is_looked_at_closely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"before")
    of = job(tmp_path, "f")
    time.sleep(0.02)
    if change in ("gone", "directory", "link", "fifo"):
        path.unlink()
    match change:
        case "longer" | "shorter" | "same":
            path.write_bytes({"longer": b"before and after", "shorter": b"aft", "same": b"after!"}[change])
        case "mode":
            path.chmod(0o755)
        case "directory":
            path.mkdir()
        case "link":
            path.symlink_to("/etc/passwd")
        case "fifo":
            os.mkfifo(path)
    monkeypatch.setitem(read_batch.__globals__, "YOUNG_NS", -(10**12))
    with Root(os.fsencode(tmp_path)) as root, at_most(20):
        assert hashing._settled(root, of, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, 2**62) is None
    (done,), contents = small(tmp_path, of)
    if path.is_file() and not path.is_symlink():
        right(done, path.read_bytes())
        assert done.row == pack_row(path.stat())
    else:
        assert done.reason
        assert contents == [b""]


def test_contents_are_kept_only_where_wanted(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "abc"})
    (done,), contents = small(tmp_path, job(tmp_path, "f"), settings=Settings(keep=False))
    right(done, b"abc")
    assert contents == [b""]


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"7" * 64 + b"\nsize 4900000000\n"


@pytest.mark.parametrize(
    ("head", "flags", "with_more"),
    [
        (POINTER, LFS_POINTER, PLAIN),
        (b" " + POINTER, PLAIN, PLAIN),
        (b"# v2 git bundle\n", GIT_BUNDLE, GIT_BUNDLE),
        (b"# v3 git bundle\n@object-format=sha1\n", GIT_BUNDLE, GIT_BUNDLE),
        (b"", PLAIN, PLAIN),
        (b"v", PLAIN, PLAIN),
    ],
)
def test_stand_ins_are_seen_in_bytes_that_are_read_anyway(
    tmp_path: Path, head: bytes, flags: int, with_more: int
) -> None:
    plant(tmp_path, {"f": head, "large": head + bytes(2 << 20)})
    assert small(tmp_path, job(tmp_path, "f"))[0][0].flags == flags
    assert Large(tmp_path, job(tmp_path, "large")).done.flags == with_more


def test_frames_hold_exactly_the_wanted_contents() -> None:
    contents = [random.Random(n).randbytes(100_000 + n) for n in range(40)]
    wanted = [n for n in range(40) if n % 3]
    frames = list(frames_of(contents, wanted))
    assert [index for _, group in frames for index in group] == wanted
    assert len(frames) == 3
    for data, group in frames:
        assert frame.unpack(data) == b"".join(contents[index] for index in group)
    assert list(frames_of(contents, [])) == []


# Before reading: what the walk saw is gone


def swapped_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def swapped_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def swapped_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


SWAPS = [swapped_fifo, swapped_link, swapped_directory, Path.unlink]


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("settings", [Settings(), GROWING])
def test_no_other_thing_in_the_place_of_a_file_is_taken_for_it(
    tmp_path: Path, swap: Callable[[Path], None], settings: Settings
) -> None:
    plant(tmp_path, {"f": "abc"})
    of = job(tmp_path, "f")
    swap(tmp_path / "f")
    results, contents = small(tmp_path, of, settings=settings)
    refused(results[0])
    assert contents == [b""]
    large = Large(tmp_path, of, settings)
    refused(large.done)
    assert large.written == b""


def test_an_empty_file_replaced_by_a_fifo_is_no_empty_file(tmp_path: Path) -> None:
    """A FIFO that nobody writes to reads as empty, like the file that was there."""
    plant(tmp_path, {"f": ""})
    of = job(tmp_path, "f")
    swapped_fifo(tmp_path / "f")
    refused(small(tmp_path, of)[0][0])
    refused(Large(tmp_path, of).done)


def test_a_fifo_with_a_writer_is_neither_waited_for_nor_read(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "abc"})
    of = job(tmp_path, "f")
    swapped_fifo(tmp_path / "f")
    both = os.open(tmp_path / "f", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(both, b"xyz")
        refused(small(tmp_path, of)[0][0])
        refused(Large(tmp_path, of).done)
        assert os.read(both, 10) == b"xyz"
    finally:
        os.close(both)


def test_a_device_is_not_read_although_links_are_followed(tmp_path: Path) -> None:
    plant(tmp_path, {"f": ""})
    of = job(tmp_path, "f")
    (tmp_path / "f").unlink()
    (tmp_path / "f").symlink_to("/dev/null")
    refused(small(tmp_path, of, settings=Settings(follow_symlinks=True))[0][0])
    refused(Large(tmp_path, of, Settings(follow_symlinks=True)).done)


def test_links_are_opened_only_where_they_are_followed(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "abc", "l": "->f"})
    of = b"l", pack_row(os.stat(tmp_path / "l"))
    assert os.strerror(errno.ELOOP) in small(tmp_path, of)[0][0].reason
    assert os.strerror(errno.ELOOP) in Large(tmp_path, of).done.reason
    right(small(tmp_path, of, settings=Settings(follow_symlinks=True))[0][0], b"abc")
    right(Large(tmp_path, of, Settings(follow_symlinks=True)).done, b"abc")


@pytest.mark.parametrize("settings", [Settings(), GROWING])
def test_a_link_in_the_place_of_a_directory_leads_nowhere(tmp_path: Path, settings: Settings) -> None:
    plant(tmp_path, {"t/d/f": "abc", "outside/f": "secret", "outside/longer": "secret"})
    place = tmp_path / "t"
    of = job(place, "d/f")
    (place / "d").rename(tmp_path / "away")
    (place / "d").symlink_to(tmp_path / "outside")
    results, contents = small(place, of, settings=settings)
    refused(results[0])
    assert contents == [b""]
    refused(Large(place, of, settings).done)


def test_what_cannot_be_read_is_named_with_its_reason(tmp_path: Path) -> None:
    with open_to_all() as place:
        plant(place, {"no": "secret", "shut/f": "x", "ok": "y"})
        jobs = [job(place, name) for name in ("no", "shut/f", "ok", "no")]
        (place / "no").chmod(0)
        (place / "shut").chmod(0)
        jobs[0] = jobs[3] = job(place, "no")
        results, contents = as_nobody(lambda: small(place, *jobs))
        large = as_nobody(lambda: Large(place, jobs[0]).done)
        (place / "shut").chmod(0o755)
    assert [done.reason for done in results] == ["Permission denied"] * 2 + ["", "Permission denied"]
    assert contents == [b"", b"", b"y", b""]
    right(results[2], b"y")
    assert large.reason == "Permission denied"
    refused(large)


def test_an_error_of_the_disk_is_no_end_of_the_file() -> None:
    """Reading another process's memory at address 0 fails with EIO, as a bad sector does."""
    row = ROW.pack(*ROW.unpack(pack_row(os.lstat("/proc/self/mem")))[:2], 100, 0, 0, 0o100600)
    with Root(b"/proc/self") as root:
        (done,), _ = read_batch(root, [(b"mem", row)], Settings())
        assert done.reason == os.strerror(errno.EIO)
        refused(done)


# Between the walk and the reading


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def truncate(path: Path) -> None:
    os.truncate(path, max(0, path.stat().st_size - 2))


def overwrite(path: Path) -> None:
    """Write other bytes of the same length in place."""
    with path.open("r+b") as file:
        file.write(b"XX")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(bytes(path.stat().st_size))
    other.rename(path)


def touch(path: Path) -> None:
    os.utime(path)


def rename(path: Path) -> None:
    path.rename(path.with_name("away"))


def chmod(path: Path) -> None:
    path.chmod(0o755)


ALTERATIONS = [append, truncate, overwrite, replace, touch, chmod]


@pytest.mark.parametrize("alter", ALTERATIONS)
def test_a_small_file_that_changed_but_holds_still_now_is_read_as_it_is(
    tmp_path: Path, alter: Callable[[Path], None]
) -> None:
    plant(tmp_path, {"f": "abcdefgh"})
    of = job(tmp_path, "f")
    alter(tmp_path / "f")
    (done,), (content,) = small(tmp_path, of)
    now = (tmp_path / "f").read_bytes()
    right(done, now)
    assert content == now
    assert done.row == job(tmp_path, "f")[1]
    assert done.flags == PLAIN


@pytest.mark.parametrize("alter", ALTERATIONS)
def test_a_large_file_that_changed_is_refused_before_its_first_byte(
    tmp_path: Path, alter: Callable[[Path], None]
) -> None:
    plant(tmp_path, {"f": b"abcd" * (2 << 20)})
    of = job(tmp_path, "f")
    alter(tmp_path / "f")
    large = Large(tmp_path, of)
    refused(large.done)
    assert large.told == 0


# During the reading


class Altering:
    """Changes a file after the first piece of it was read, a number of times."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, path: Path, alter: Callable[[Path], None], times: int
    ) -> None:
        self.times = times
        self._read = os.read
        self._path = path
        self._alter = alter
        monkeypatch.setattr("provstore.files.hashing.os.read", self)

    def __call__(self, descriptor: int, size: int) -> bytes:
        data = self._read(descriptor, size)
        named = os.readlink(f"/proc/self/fd/{descriptor}").startswith(os.fspath(self._path))
        if self.times and named:
            self.times -= 1
            self._alter(self._path)
        return data


@pytest.mark.parametrize("alter", ALTERATIONS)
def test_one_change_while_a_small_file_is_read_makes_it_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alter: Callable[[Path], None]
) -> None:
    plant(tmp_path, {"f": "abcdefgh"})
    of = job(tmp_path, "f")
    altering = Altering(monkeypatch, tmp_path / "f", alter, 1)
    (done,), (content,) = small(tmp_path, of)
    assert altering.times == 0
    right(done, (tmp_path / "f").read_bytes())
    assert content == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize(
    ("alter", "fields"),
    [
        (append, {"size", "mtime", "ctime"}),
        (truncate, {"size", "mtime", "ctime"}),
        (overwrite, {"mtime", "ctime"}),
        (replace, {"ctime"}),
        (touch, {"mtime", "ctime"}),
    ],
)
def test_a_small_file_that_never_holds_still_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alter: Callable[[Path], None], fields: set[str]
) -> None:
    plant(tmp_path, {"f": "abcdefgh" * 10})
    of = job(tmp_path, "f")
    Altering(monkeypatch, tmp_path / "f", alter, 100)
    results, contents = small(tmp_path, of)
    assert set(refused(results[0])) == fields
    assert contents == [b""]


def test_a_small_file_that_is_renamed_away_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, {"f": "abc"})
    of = job(tmp_path, "f")
    Altering(monkeypatch, tmp_path / "f", rename, 1)
    assert small(tmp_path, of)[0][0].reason == os.strerror(errno.ENOENT)


@pytest.mark.parametrize("after_bytes", [1, 3 << 20, 5 << 20])
@pytest.mark.parametrize(
    ("alter", "fields"),
    [
        (append, {"size", "mtime", "ctime"}),
        (truncate, {"size", "mtime", "ctime"}),
        (overwrite, {"mtime", "ctime"}),
        (replace, {"ctime"}),
        (rename, {"ctime"}),
        (Path.unlink, {"ctime"}),
        (touch, {"mtime", "ctime"}),
        (chmod, {"ctime"}),
    ],
)
def test_a_large_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, alter: Callable[[Path], None], fields: set[str], after_bytes: int
) -> None:
    plant(tmp_path, {"f": b"abcd" * (5 << 18)})
    path = tmp_path / "f"
    large = Large(tmp_path, job(tmp_path, "f"), meanwhile=lambda: alter(path), after_bytes=after_bytes)
    assert set(refused(large.done)) == fields
    assert large.told > 0


# Growing files


def test_of_a_growing_file_the_beginning_is_taken_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"event\n" * (1 << 20)
    plant(tmp_path, {"small": data[:600], "large": data})
    path = tmp_path / "large"
    large = Large(tmp_path, job(tmp_path, "large"), GROWING, meanwhile=lambda: append(path))
    right(large.done, data)
    assert large.done.flags == PREFIX
    assert bytes(large.written) == data
    of = job(tmp_path, "small")
    Altering(monkeypatch, tmp_path / "small", append, 100)
    (done,), (content,) = small(tmp_path, of, settings=GROWING)
    right(done, data[:600])
    assert done.flags == PREFIX
    assert content == data[:600]


def test_a_file_that_grew_before_it_was_read_is_marked_too(tmp_path: Path) -> None:
    plant(tmp_path, {"f": b"x" * 1000})
    of = job(tmp_path, "f")
    append(tmp_path / "f")
    for done in (small(tmp_path, of, settings=GROWING)[0][0], Large(tmp_path, of, GROWING).done):
        now = (tmp_path / "f").read_bytes()
        if done.flags == PREFIX:
            right(done, now[: done.size_bytes])
            assert done.size_bytes >= 1000
        else:
            right(done, now)


@pytest.mark.parametrize("alter", [truncate, overwrite, replace, touch])
def test_what_is_not_growth_is_refused_where_growth_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alter: Callable[[Path], None]
) -> None:
    """Bytes that were written over are no beginning of anything."""
    plant(tmp_path, {"small": b"abcdefgh" * 10, "large": b"abcd" * (2 << 20)})
    path = tmp_path / "large"
    of = job(tmp_path, "large")
    large = Large(tmp_path, of, GROWING, meanwhile=lambda: alter(path), after_bytes=3 << 20)
    refused(large.done)
    of = job(tmp_path, "small")
    Altering(monkeypatch, tmp_path / "small", alter, 100)
    refused(small(tmp_path, of, settings=GROWING)[0][0])


def test_a_quiet_file_is_whole_where_growth_is_allowed(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "abc"})
    assert small(tmp_path, job(tmp_path, "f"), settings=GROWING)[0][0].flags == PLAIN
    assert Large(tmp_path, job(tmp_path, "f"), GROWING).done.flags == PLAIN


# A real writer beside the reader

WRITER = """
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY)
size = int(sys.argv[2])
number = 0
while True:
    number = (number + 1) % 256
    for start in range(0, size, 4096):
        os.pwrite(file, bytes((number,)) * min(4096, size - start), start)
    time.sleep(0.06)
"""

LOGGER = """
import sys
file = open(sys.argv[1], "ab", 0)
number = 0
while True:
    number += 1
    file.write(b"%09d\\n" % number)
"""


def existed(data: bytes) -> bool:
    """Say whether the writer's file ever was like this: so far one version, the rest of the one before."""
    first, last = data[0], data[-1]
    at = data.rfind(first) + 1
    whole = data == bytes((first,)) * at + bytes((last,)) * (len(data) - at)
    return whole and (first == last or first == (last + 1) % 256)


@pytest.mark.parametrize("size", [64 << 10, 2 << 20])
def test_no_mixture_that_never_lay_on_the_disk_is_given_out(tmp_path: Path, size: int) -> None:
    plant(tmp_path, {"f": bytes(size)})
    tries = 0
    with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "f", str(size)]) as writer:
        try:
            while not any((tmp_path / "f").read_bytes()[:4096]):
                time.sleep(0.01)
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                of = job(tmp_path, "f")
                (done,), (content,) = small(tmp_path, of)
                large = Large(tmp_path, of)
                tries += 1
                assert not done.blake3 or existed(content), "torn"
                assert not large.done.blake3 or existed(bytes(large.written)), "torn"
        finally:
            writer.kill()
    assert tries > 3


def test_a_growing_prefix_is_what_the_file_begins_with_for_ever(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    taken: list[bytes] = []
    with subprocess.Popen([sys.executable, "-c", LOGGER, tmp_path / "log"]) as writer:
        try:
            while not (tmp_path / "log").stat().st_size:
                time.sleep(0.01)
            end = time.monotonic() + 20
            while len(taken) < 30 and time.monotonic() < end:
                of = job(tmp_path, "log")
                time.sleep(0.002)
                (done,), (content,) = small(tmp_path, of, settings=GROWING)
                large = Large(tmp_path, of, GROWING)
                taken += [content] if done.blake3 else []
                taken += [bytes(large.written)] if large.done.blake3 else []
        finally:
            writer.kill()
    final = (tmp_path / "log").read_bytes()
    assert len(taken) >= 30
    assert all(final.startswith(prefix) for prefix in taken)
    assert len(set(map(len, taken))) > 10


# Files by their own path


@pytest.mark.parametrize("kind", ["fifo", "directory", "device", "nothing"])
def test_only_regular_files_are_hashed_by_path(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    with at_most(5), pytest.raises(OSError):  # noqa: PT011
        hash_file(path)


def test_each_byte_is_read_once(tmp_path: Path) -> None:
    """Counted by the kernel: all bytes that this process asked for by read calls."""
    data = random.Random(2).randbytes(9_000_000)
    plant(tmp_path, {"large": data, **{f"f{n}": data[n * 1000 : n * 3000] for n in range(100)}})
    jobs = [job(tmp_path, f"f{n}") for n in range(100)]
    total = len(data) + sum(ROW.unpack(row)[2] for _, row in jobs)

    def asked() -> int:
        lines = Path("/proc/self/io").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("rchar")))

    time.sleep(YOUNG_NS / 1e9 + 0.1)  # a young file is read twice
    before = asked()
    small(tmp_path, *jobs, settings=Settings(git=True))
    Large(tmp_path, job(tmp_path, "large"), Settings(git=True))
    assert total <= asked() - before < total + 2000
