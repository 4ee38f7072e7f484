"""A kill at every step of every writing verb, held against the crash table of ``stores/LAYOUT.md``."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from killing import (
    PROFILE,
    Say,
    collect,
    copied,
    drop_ref,
    killed_at,
    left_in,
    memory_disk,
    run,
    seal_into,
    small_batches,
    sound,
    steps_of,
    tree,
    whole_pack,
)
from runs.ledgers import ALL, begin, end, go, permit

from provstore.errors import NotAStoreError
from provstore.ids import to_raw
from provstore.runs.ledger import follow
from provstore.store import steps
from provstore.store.lmdb_store import LmdbStore
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import gc
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack
from provstore.verbs.unpacking import unpack

LAYOUT = Path(__file__).parents[2] / "stores" / "LAYOUT.md"


def crash_table() -> dict[str, list[str]]:
    """Return the rows of all tables in the chapter on kills by step."""
    chapter = LAYOUT.read_text().split("## What a kill leaves\n")[1].split("\n## ")[0]
    table: dict[str, list[str]] = {}
    for line in chapter.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for step in re.findall(r"`([a-z-]+)`", cells[0]) if line.startswith("| `") else []:
            assert step not in table
            table[step] = cells[1:]
    return table


TABLE = crash_table()


def test_the_table_has_a_row_for_every_step() -> None:
    assert sorted(TABLE) == sorted(steps.STEPS)


class Scene:
    """A store with packet ``a``, the sources of more, and a pack of ``c``."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.base = place / "base"
        self.store = place / "store"
        self.pack = place / "c.pack"
        LmdbStore.create(os.fspath(self.base), profile=PROFILE).close()
        for mark in "abc":
            tree(place / mark, mark)
        other = place / "other"
        LmdbStore.create(os.fspath(other), profile=PROFILE).close()
        self.packets = {"c": seal_into(other, place / "c", "c"), "b": seal_into(other, place / "b", "b")}
        write_pack(other, self.pack, "c", self.packets["c"])
        self.packets["a"] = seal_into(self.base, place / "a", "a")

    def fresh(self) -> Path:
        return copied(self.base, self.store)


def write_pack(path: Path, output: Path, name: str, packet: str) -> None:
    store = LmdbStore.open(os.fspath(path), writable=False)
    with store:
        pack([(name, Located(store, to_raw(packet), False))], output)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with memory_disk() as place:
        yield Scene(place)


def sealing(scene: Scene) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        small_batches()
        say(f"sealed {seal_into(scene.store, scene.place / 'b', 'b')}")

    return work


def unpacking(scene: Scene) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        small_batches()
        with LmdbStore.open(os.fspath(scene.store), profile=PROFILE) as store:
            assert isinstance(store, LmdbStore)
            say(f"unpacked {unpack(store, scene.pack).packets[0]}")

    return work


def visible(step: str) -> bool:
    assert TABLE[step][0] in ("whole", "not there")
    return TABLE[step][0] == "whole"


@pytest.mark.parametrize(("name", "make"), [("b", sealing), ("c", unpacking)], ids=["seal", "unpack"])
def test_a_kill_at_each_step_of_a_commit(
    scene: Scene, name: str, make: Callable[[Scene], Callable[[Say], None]]
) -> None:
    work = make(scene)
    scene.fresh()
    reached = steps_of(work)
    assert {step for step, _ in reached} == set(steps.COMMIT_STEPS)
    assert reached.count(("frames-committed", 0)) == 1
    assert ("frames-committed", 1) in reached
    before = {"a": scene.packets["a"]}
    after = before | {name: scene.packets[name]}
    for step, nth in reached:
        path = scene.fresh()
        ended = killed_at(step, nth, work)
        assert ended == (signal.SIGKILL, []), (step, nth)
        assert left_in(path).cells() == TABLE[step][1:], (step, nth)
        assert sound(path, after if visible(step) else before) == (after if visible(step) else before)
        collect(path)
        assert left_in(path) == ([], [], []), (step, nth)
        sound(path, after if visible(step) else before)
        assert run(work).said[-1].split()[-1] == scene.packets[name]
        sound(path, after)


@pytest.mark.parametrize("step", ["blobs-renamed", "frames-committed", "index-written"])
def test_sealing_again_right_after_a_kill_takes_up_what_was_left(scene: Scene, step: str) -> None:
    path = scene.fresh()
    killed_at(step, 0, sealing(scene))
    assert run(sealing(scene)).said == [f"sealed {scene.packets['b']}"]
    assert (left_in(path).blobs, left_in(path).frames) == ([], [])
    sound(path, {name: scene.packets[name] for name in "ab"})


def test_a_kill_at_each_step_of_an_attempt(scene: Scene) -> None:
    """Whatever was reported is in the ledger; what it holds beyond that is whole, and entries follow."""

    def work(say: Say) -> None:
        with LmdbStore.open(os.fspath(scene.store), profile=PROFILE) as store:
            given = permit(store)
            say(f"noted {given}")
            attempt = begin(store, given)
            say(f"noted {attempt}")
            for state in ALL:
                say(f"next {state}")
                go(store, attempt, state)
                say(f"noted {store.ledger()[-1].hex()}")
            say(f"noted {end(store, attempt, 'valid').id}")

    scene.fresh()
    reached = steps_of(work)
    assert {step for step, _ in reached} == set(steps.COMMIT_STEPS) - {"frames-committed"}
    assert len(reached) == 9 * (len(steps.COMMIT_STEPS) - 1)
    for step, nth in reached:
        path = scene.fresh()
        ended = killed_at(step, nth, work)
        assert ended.signal == signal.SIGKILL, (step, nth)
        noted = [line.split()[1] for line in ended.said if line.startswith("noted ")]
        assert len(noted) == nth, (step, nth)
        with LmdbStore.open(os.fspath(path), profile=PROFILE) as store:
            entries = [id.hex() for id in store.ledger()]
            assert entries[: len(noted)] == noted
            assert len(entries) == len(noted) + visible(step), (step, nth)
            book, wrong = follow(store)
            assert wrong == []
            assert fsck(store).damaged == ()
            gc(store, delete=True, grace_s=0)
            for life in book.lives.values():
                assert life.states == ["created", *ALL][: len(entries) - 1]
                if life.ending is None:
                    end(store, life.id, "infrastructure-invalid", "killed")
            permit(store, line="another")
            assert follow(store)[1] == []
        sound(path, {"a": scene.packets["a"]})


def test_a_kill_at_each_step_of_a_sweep(scene: Scene) -> None:
    base = copied(scene.base, scene.place / "two")
    seal_into(base, scene.place / "b", "b")
    drop_ref(base, "b")

    def work(say: Say) -> None:
        collect(scene.store)
        say("collected")

    copied(base, scene.store)
    reached = steps_of(work)
    assert [step for step, _ in reached] == list(steps.SWEEP_STEPS)
    for step, nth in reached:
        path = copied(base, scene.store)
        assert killed_at(step, nth, work) == (signal.SIGKILL, []), step
        with LmdbStore.open(os.fspath(path), writable=False) as store:
            swept = store.record(to_raw(scene.packets["b"])) is None
        assert swept == visible(step), step
        assert left_in(path).cells() == TABLE[step][1:], step
        sound(path, {"a": scene.packets["a"]})
        assert run(work).said == ["collected"]
        assert left_in(path) == ([], [], []), step
        sound(path, {"a": scene.packets["a"]})


def test_a_kill_at_each_step_of_init(tmp_path: Path) -> None:
    path = tmp_path / "new"

    def work(say: Say) -> None:
        LmdbStore.create(os.fspath(path), profile=PROFILE).close()
        say("made")

    for step, nth in steps_of(work):
        path = tmp_path / step
        assert killed_at(step, nth, work) == (signal.SIGKILL, []), step
        if visible(step):
            LmdbStore.open(os.fspath(path)).close()
        else:
            with pytest.raises(NotAStoreError):
                LmdbStore.open(os.fspath(path))
        assert run(work).said == ["made"]
        assert sound(path, {}) == {}
        assert left_in(path) == ([], [], [])


def test_a_kill_at_each_step_of_a_pack(scene: Scene, tmp_path: Path) -> None:
    folder = tmp_path / "out"

    def work(say: Say) -> None:
        write_pack(scene.base, folder / "a.pack", "a", scene.packets["a"])
        say("packed")

    folder.mkdir()
    reached = steps_of(work)
    assert [step for step, _ in reached] == list(steps.PACK_STEPS)
    for step, nth in reached:
        folder = tmp_path / step
        folder.mkdir()
        assert killed_at(step, nth, work) == (signal.SIGKILL, []), step
        beside = [name for name in os.listdir(folder) if name != "a.pack"]
        assert all(name.startswith(".pack-") for name in beside)
        assert TABLE[step][1] == ("a `.pack-…` file" if beside else "–")
        assert folder.joinpath("a.pack").exists() == visible(step)
        if not visible(step):
            assert run(work).said == ["packed"]
        whole_pack(folder / "a.pack", scene.packets["a"])
        sound(scene.base, {"a": scene.packets["a"]})
