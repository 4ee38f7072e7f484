"""Worker processes give exactly what this process would give, whatever happens to them."""

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from workbench import at_most, plant

from provstore.files import pool
from provstore.files.hashing import Hashed, Job, Settings
from provstore.files.pool import Packed, default_workers
from provstore.files.root import Root, pack_row
from provstore.ids import digests
from provstore.store import frame

PLAINLY = Settings()
FILES = 3000
BATCH = 250


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 files: a third distinct, the others copies; empty ones, and names that are no text."""
    root = tmp_path_factory.mktemp("many")
    dice = random.Random(7)
    distinct = [dice.randbytes(dice.choice((0, 1, 50, 900, 5000))) for _ in range(FILES // 3)]
    files: dict[str | bytes, str | bytes | None] = {}
    for number in range(FILES):
        name = b"d%d/f%d" % (number % 7, number) + (b"\xff" if number % 11 == 0 else b"")
        files[name] = distinct[number % len(distinct)]
    return plant(root, files)


@pytest.fixture(scope="module")
def jobs(place: Path) -> list[Job]:
    base = os.fsencode(place)
    found = []
    for directory, _, names in os.walk(base):
        for name in names:
            path = os.path.join(directory, name)
            found.append((os.path.relpath(path, base), pack_row(os.lstat(path))))
    assert len(found) == FILES
    return sorted(found)


def batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    return (list(jobs[start : start + BATCH]) for start in range(0, len(jobs), BATCH))


def everything(jobs: Sequence[Job], results: Sequence[Hashed]) -> list[int]:
    return [index for index, done in enumerate(results) if done.blake3]


def run(
    place: Path,
    jobs: Sequence[Job],
    workers: int,
    settings: Settings = PLAINLY,
    wanted: pool.Wanted = everything,
) -> list[Packed]:
    with Root(os.fsencode(place)) as root, at_most(60):
        return list(pool.run(root, batches(jobs), settings, wanted, workers))


def by_path(packed: Sequence[Packed]) -> dict[bytes, Hashed]:
    found: dict[bytes, Hashed] = {}
    for batch in packed:
        for (path, _), done in zip(batch.jobs, batch.results, strict=True):
            assert path not in found, "a file was read for twice"
            found[path] = done
    return found


def contents(packed: Sequence[Packed]) -> dict[bytes, bytes]:
    """Return what the frames hold by path, each checked against the digests that stand beside it."""
    found = {}
    for batch in packed:
        for data, group in batch.frames:
            plain, offset = frame.unpack(data), 0
            for index in group:
                done = batch.results[index]
                piece = plain[offset : offset + done.size_bytes]
                assert digests(piece) == done.digests()
                found[batch.jobs[index][0]] = piece
                offset += done.size_bytes
            assert offset == len(plain)
    return found


def state(pid: int) -> tuple[str, int]:
    """Return the state letter of a process and its parent; ``X`` for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    return fields[0], int(fields[1])


def alive(pid: int) -> bool:
    return state(pid)[0] not in "XZ"


def children() -> list[int]:
    """Return the processes that this one started and that still run."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return sorted(pid for pid in pids if state(pid)[1] == os.getpid() and alive(pid))


@pytest.fixture(scope="module")
def inline(place: Path, jobs: list[Job]) -> list[Packed]:
    return run(place, jobs, 0)


def test_this_process_reads_every_file_as_it_is(place: Path, jobs: list[Job], inline: list[Packed]) -> None:
    found = by_path(inline)
    assert found.keys() == {path for path, _ in jobs}
    for path, content in contents(inline).items():
        assert content == Path(os.fsdecode(os.path.join(os.fsencode(place), path))).read_bytes()
    assert len(contents(inline)) == FILES


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_give_exactly_the_inline_results(
    place: Path, jobs: list[Job], inline: list[Packed], workers: int
) -> None:
    before = children()
    packed = run(place, jobs, workers)
    assert by_path(packed) == by_path(inline)
    assert contents(packed) == contents(inline)
    assert sorted(data for batch in packed for data, _ in batch.frames) == sorted(
        data for batch in inline for data, _ in batch.frames
    )
    assert children() == before


def test_settings_reach_the_workers(place: Path, jobs: list[Job]) -> None:
    settings = Settings(git=True, keep=False, follow_symlinks=True, allow_growing=True)
    here, there = run(place, jobs[:600], 0, settings), run(place, jobs[:600], 2, settings)
    assert by_path(here) == by_path(there)
    assert all(done.git for done in by_path(there).values())
    assert [batch.frames for batch in there] == [[]] * len(there)


def test_what_fails_fails_alike(tmp_path: Path) -> None:
    plant(tmp_path, {"gone": "x", "ok": "y", "link": "->ok", "pipe": "z"})
    jobs = [(os.fsencode(n), pack_row(os.stat(tmp_path / n))) for n in ("gone", "ok", "link", "pipe")]
    (tmp_path / "gone").unlink()
    (tmp_path / "pipe").unlink()
    os.mkfifo(tmp_path / "pipe")
    here, there = by_path(run(tmp_path, jobs, 0)), by_path(run(tmp_path, jobs, 1))
    assert here == there
    assert {name for name, done in here.items() if done.reason} == {b"gone", b"link", b"pipe"}


@pytest.mark.parametrize("workers", [0, 2])
def test_only_wanted_contents_are_packed(place: Path, jobs: list[Job], workers: int) -> None:
    seen: set[bytes] = set()

    def new(batch: Sequence[Job], results: Sequence[Hashed]) -> list[int]:
        picked = []
        for index, done in enumerate(results):
            if done.blake3 not in seen:
                seen.add(done.blake3)
                picked.append(index)
        return picked

    packed = run(place, jobs, workers, wanted=new)
    held = list(contents(packed).values())
    assert len(held) == len(set(held)) == len(seen)
    assert set(held) == set(contents(run(place, jobs, 0)).values())
    assert by_path(packed).keys() == {path for path, _ in jobs}


@pytest.mark.parametrize("workers", [0, 2])
def test_nothing_wanted_is_nothing_packed(place: Path, jobs: list[Job], workers: int) -> None:
    packed = run(place, jobs[:700], workers, wanted=lambda batch, results: [])
    assert [data for batch in packed for data, _ in batch.frames] == []
    assert len(by_path(packed)) == 700


# Death


def kill(pids: Sequence[int]) -> None:
    """Kill and wait until the system has closed their pipes."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("at_call", [1, 2, 5])
@pytest.mark.parametrize("everybody", [False, True])
def test_the_batch_of_a_killed_worker_is_done_here(
    place: Path, jobs: list[Job], inline: list[Packed], workers: int, at_call: int, everybody: bool
) -> None:
    """Killed between its results and its frames, while another may be amid its files."""
    before = children()
    calls = 0

    def killing(batch: Sequence[Job], results: Sequence[Hashed]) -> list[int]:
        nonlocal calls
        calls += 1
        if calls == at_call:
            mine = [pid for pid in children() if pid not in before]
            assert len(mine) <= workers
            kill(mine if everybody else mine[:1])
        return everything(batch, results)

    packed = run(place, jobs, workers, wanted=killing)
    assert calls >= at_call
    assert by_path(packed) == by_path(inline)
    assert contents(packed) == contents(inline)
    assert children() == before


def test_a_worker_that_is_dead_from_the_start_costs_nothing_but_time(
    place: Path, jobs: list[Job], inline: list[Packed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("provstore.files.pool.sys.executable", "/bin/false")
    packed = run(place, jobs, 2)
    assert by_path(packed) == by_path(inline)
    assert contents(packed) == contents(inline)


def test_no_worker_outlives_an_unfinished_reading(place: Path, jobs: list[Job]) -> None:
    before = children()
    with Root(os.fsencode(place)) as root:
        going = pool.run(root, batches(jobs), Settings(), everything, 2)
        next(going)
        assert len(children()) == len(before) + 2
        going.close()  # type: ignore[attr-defined]
    assert children() == before


def test_no_worker_outlives_a_failure(place: Path, jobs: list[Job]) -> None:
    before = children()

    def broken(batch: Sequence[Job], results: Sequence[Hashed]) -> list[int]:
        raise KeyError("a defect")

    with pytest.raises(KeyError):
        run(place, jobs, 2, wanted=broken)
    assert children() == before


def test_no_worker_outlives_its_parent(place: Path, jobs: list[Job]) -> None:
    """Workers read until their input closes, so a parent that is killed takes them along."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        with Root(os.fsencode(place)) as root:
            going = pool.run(root, batches(jobs), Settings(), everything, 2)
            next(going)
            os.write(into, b" ".join(b"%d" % pid for pid in children()))
            os.close(into)
            signal.pause()
    os.close(into)
    with os.fdopen(out, "rb") as source:
        pids = [int(pid) for pid in source.read().split()]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(pids) == 2
    end = time.monotonic() + 10
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_workers_are_started_only_where_they_pay() -> None:
    assert default_workers(0) == default_workers(pool.WORTH_WORKERS - 1) == 0
    cores = len(os.sched_getaffinity(0))
    assert default_workers(100_000) == (cores if cores > 1 else 0)


def test_a_worker_answers_over_its_pipes_alone(
    place: Path, jobs: list[Job], capfd: pytest.CaptureFixture[str]
) -> None:
    run(place, jobs[:600], 2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("seed", range(6))
def test_workers_killed_at_any_moment(place: Path, jobs: list[Job], inline: list[Packed], seed: int) -> None:
    """Nobody waits for their pipes to close, so that writing to them fails now and then."""
    before = children()
    left = random.Random(seed).randrange(1, 12)

    def sometimes(batch: Sequence[Job], results: Sequence[Hashed]) -> list[int]:
        nonlocal left
        left -= 1
        if left == 0:
            for pid in children():
                if pid not in before:
                    os.kill(pid, signal.SIGKILL)
        return everything(batch, results)

    assert by_path(run(place, jobs, 2, wanted=sometimes)) == by_path(inline)


def test_workers_that_are_stopped_amid_a_write_lose_nothing(
    place: Path, jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With unbuffered standard output a write that a signal cuts short would lose its end."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")

    def paused(batch: Sequence[Job], results: Sequence[Hashed]) -> list[int]:
        for pid in children():
            os.kill(pid, signal.SIGSTOP)
            os.kill(pid, signal.SIGCONT)
        return everything(batch, results)

    with at_most(60):
        assert by_path(run(place, jobs, 2, wanted=paused)) == by_path(run(place, jobs, 0))
