"""Processes that are killed while they write a store, and what must hold afterwards."""

import os
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from workbench import plant

from provstore.files import hashing
from provstore.ids import to_raw
from provstore.store import blobs, gathering, lmdb_commit, rows, steps
from provstore.store.lmdb_store import LmdbStore
from provstore.store.pack import PackStore
from provstore.store.profile import StoreProfile
from provstore.store.writer_lock import NAME
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import gc
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.verifying import verify

PROFILE = StoreProfile(inline_limit_bytes=20_000, map_size_bytes=1 << 30, wait_s=30.0)

NOISE = random.Random(2026).randbytes(60_000)
"""Bytes that do not compress."""


def small_batches() -> None:
    """Make every stage spill its frames to ``tmp/`` and commit them ahead, as big ones do."""
    gathering.MEMORY_BYTES = 1_000  # type: ignore[misc]
    lmdb_commit.AHEAD_BYTES = 1_000  # type: ignore[misc]
    lmdb_commit.BATCH_BYTES = 9_000  # type: ignore[misc]


def tree(root: Path, mark: str) -> Path:
    """Make a tree with small files, two that become blob files, and a directory below."""
    return plant(
        root,
        {
            **{f"small/{i}": f"{mark} {i}\n".encode() + NOISE[i * 900 : i * 900 + 700] for i in range(20)},
            "raw.bin": mark.encode() + NOISE[:40_000],
            "log.txt": f"{mark} a line of a log\n" * 4000,
            "x/y/z": "->../../raw.bin",
        },
    )


class Ended(NamedTuple):
    """How a child ended: by which signal (0: none), and the lines that it said before."""

    signal: int
    said: list[str]


Say = Callable[[str], None]


@contextmanager
def memory_disk() -> Iterator[Path]:
    """Give a directory in memory where there is one: what a killed process wrote is there just as well."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="prov-", dir=shared) as place:
        yield Path(place)


@contextmanager
def child(work: Callable[[Say], None]) -> Iterator[tuple[int, Callable[[], Ended]]]:
    """Run ``work`` in a forked child; give its process id and a function that waits for its end.

    What the child says reaches the parent even when it is killed right after.
    """
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.close(out)
            work(lambda line: void(os.write(into, f"{line}\n".encode())))
            code = 0
        except BaseException as error:  # noqa: BLE001 (told to the parent, which fails)
            os.write(into, f"failed {type(error).__name__}: {error}\n".replace("\n", " ").encode() + b"\n")
        finally:
            os._exit(code)
    os.close(into)
    ended: list[Ended] = []

    def wait() -> Ended:
        if not ended:
            with os.fdopen(out, "rb") as source:
                said = source.read().decode().splitlines()
            _, status = os.waitpid(pid, 0)
            ended.append(Ended(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, said))
        return ended[0]

    try:
        yield pid, wait
    finally:
        if not ended:
            os.kill(pid, signal.SIGKILL)
            wait()


def void(_: object) -> None:
    return None


def run(work: Callable[[Say], None]) -> Ended:
    """Run ``work`` in a child to its end."""
    with child(work) as (_, wait):
        return wait()


def steps_of(work: Callable[[Say], None]) -> list[tuple[str, int]]:
    """Return the steps that ``work`` reaches, each with how often it was reached before."""

    def told(say: Say) -> None:
        steps.hook = lambda step: say(f"step {step}")
        work(say)

    ended = run(told)
    assert (ended.signal, [line for line in ended.said if line.startswith("failed")]) == (0, [])
    names = [line.removeprefix("step ") for line in ended.said if line.startswith("step ")]
    return [(name, names[:at].count(name)) for at, name in enumerate(names)]


def killed_at(step: str, nth: int, work: Callable[[Say], None]) -> Ended:
    """Run ``work`` in a child that dies of SIGKILL at a step."""

    def dying(say: Say) -> None:
        seen = [0]

        def hook(name: str) -> None:
            if name == step:
                seen[0] += 1
                if seen[0] > nth:
                    os.kill(os.getpid(), signal.SIGKILL)

        steps.hook = hook
        work(say)

    return run(dying)


class Left(NamedTuple):
    """What lies in a store that nothing refers to."""

    tmp: list[str]
    blobs: list[str]
    frames: list[int]

    def cells(self) -> list[str]:
        return [
            "files" if self.tmp else "–",
            "files" if self.blobs else "–",
            "frames" if self.frames else "–",
        ]


def left_in(path: Path) -> Left:
    """Return what lies in a store that nothing refers to."""
    store = LmdbStore.open(os.fspath(path), writable=False)
    used: set[int] = set()
    named: set[str] = set()
    for key, row in store._iterate("objects"):
        if row[0] == rows.INLINE:
            used.add(rows.object_place(row).frame)
        elif rows.is_blob(row):
            named.add(blobs.relative_path(key, row[0] == rows.BLOB_FRAMED))
    for _, row in store._iterate("records"):
        place = rows.record_place(row)
        used.update(range(place.frame, place.frame + place.frames()))
    frames = [int.from_bytes(key, "big") for key, _ in store._iterate("frames")]
    store.close()
    files = sorted(os.path.relpath(f, path) for f in path.joinpath("blobs").glob("*/*"))
    assert used <= set(frames), "a row names a frame that is gone"
    assert named <= set(files), "a row names a blob file that is gone"
    return Left(
        sorted(name for name in os.listdir(path / "tmp") if name != NAME),
        [name for name in files if name not in named],
        [number for number in frames if number not in used],
    )


def sound(path: Path, promised: dict[str, str], maybe: frozenset[str] = frozenset()) -> dict[str, str]:
    """Check that a store opens, holds what was promised, is whole, and shows nothing else.

    Args:
        path: the store.
        promised: packet by ref, as reported before the kill.
        maybe: refs that may or may not be there, but if, then whole.

    Returns:
        All refs and their packets.
    """
    store = LmdbStore.open(os.fspath(path), writable=True, profile=PROFILE)
    try:
        found = {name: id.hex() for name, id in store.refs()}
        assert {name: found.get(name) for name in promised if name not in maybe} == {
            name: id for name, id in promised.items() if name not in maybe
        }
        assert set(found) - set(promised) <= maybe
        for id in found.values():
            assert verify(store, to_raw(id)).outcome == "PASS"
        assert fsck(store).damaged == ()
    finally:
        store.close()
    return found


def seal_into(path: Path, source: Path, name: str) -> str:
    """Seal a tree and return the packet's id; files over the inline limit of the profile become blobs."""
    store = LmdbStore.open(os.fspath(path), profile=PROFILE)
    usual = hashing.SMALL_BYTES
    hashing.SMALL_BYTES = PROFILE.inline_limit_bytes  # type: ignore[misc]
    try:
        return seal_paths(store, [source], name=name, options=SealOptions(workers=0, use_cache=False)).packet
    finally:
        hashing.SMALL_BYTES = usual  # type: ignore[misc]
        store.close()


def collect(path: Path) -> None:
    """Run ``gc --delete`` without grace."""
    store = LmdbStore.open(os.fspath(path), profile=PROFILE)
    try:
        gc(store, delete=True, grace_s=0)
    finally:
        store.close()


def drop_ref(path: Path, name: str) -> None:
    """Remove a ref."""
    store = LmdbStore.open(os.fspath(path), profile=PROFILE)
    with store, store.stage() as stage:
        stage.set_ref(name, None)
        stage.commit()


def whole_pack(path: Path, packet: str) -> None:
    """Check that a pack file is whole and holds a packet."""
    with PackStore(os.fspath(path)) as pack:
        pack.check()
        assert verify(pack, to_raw(packet)).outcome == "PASS"


def copied(base: Path, target: Path) -> Path:
    """Return a fresh copy of a store that nobody has open."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(base, target, symlinks=True)
    return target
