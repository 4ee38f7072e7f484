"""fsck in full, as a sample and by time budget: what it reads, what it remembers, and kills in between."""

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from killing import PROFILE, Say, child, drop_ref, seal_into, tree
from workbench import STORES, open_store_of, plant, seal

from provstore.cli.upkeep import parse_duration, parse_fraction
from provstore.errors import ReadOnlyError, UsageError
from provstore.files.progress import Meter, Progress
from provstore.ids import RawId
from provstore.store import frame, objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.protocol import Reader, Store, Unit
from provstore.verbs import checking
from provstore.verbs.checking import fsck, fsck_for
from provstore.verbs.collecting import gc
from provstore.verbs.repairing import repair

NOTHING_S = 1e-9
"""A budget in which exactly one unit is read: what was begun is finished."""


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "FRAME_BYTES", 2000)


@pytest.fixture
def path(tmp_path: Path, small_frames: None) -> Path:
    """A store of many units: frames, records, raw and framed blob files."""
    place = tmp_path / "store"
    LmdbStore.create(os.fspath(place), profile=PROFILE).close()
    for mark in "ab":
        seal_into(place, tree(tmp_path / mark, mark), mark)
    return place


def open_store(path: Path, *, writable: bool = True) -> LmdbStore:
    return LmdbStore.open(os.fspath(path), writable=writable, profile=PROFILE)


def ids_of(store: Store) -> list[str]:
    return sorted(id.hex() for unit in store.units() for id in (*unit.objects, *unit.records))


def files_of(path: Path) -> dict[str, bytes]:
    return {f.relative_to(path).as_posix(): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def spoil_blob(path: Path) -> str:
    """Flip a bit of a raw blob file; return the object's id."""
    file = max((f for f in path.joinpath("blobs").glob("*/*") if not f.suffix), key=lambda f: f.name)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    return file.parent.name + file.name


class Seen:
    """A reporter that counts how often each id was read."""

    def __init__(self) -> None:
        self.ids: Counter[str] = Counter()

    def __call__(self, state: Progress) -> None:
        self.ids[state.path.decode()] += 1


def test_a_full_check_of_a_read_only_store_reads_everything_once_and_writes_nothing(path: Path) -> None:
    before = files_of(path)
    seen = Seen()
    with open_store(path, writable=False) as store:
        report = fsck(store, progress=seen)
        assert sorted(seen.ids.elements()) == ids_of(store)
        assert report.objects + report.records == len(seen.ids)
        assert (report.damaged, report.whole, report.unreferenced, report.cycle) == ((), True, 0, None)
        with pytest.raises(ReadOnlyError):
            fsck_for(store, 60)
    after = files_of(path)
    assert {name for name in before if before[name] != after[name]} <= {"lock.mdb"}
    assert set(after) == set(before)


@pytest.mark.parametrize("kind", STORES)
def test_units_are_everything_that_is_held_each_once(tmp_path: Path, kind: str) -> None:
    with open_store_of(kind, tmp_path) as store:
        seal(store, plant(tmp_path / "t", {"a": "1", "b": "2", "big": os.urandom(5 << 20)}))
        units = list(store.units())
        held = [id for id, info in store.objects() if info.placement != "external"]
        assert sorted(id for unit in units for id in unit.objects) == held
        assert sorted(id for unit in units for id in unit.records) == list(store.records())
        assert len({unit.key for unit in units}) == len(units)


def test_a_sample_reads_as_much_as_it_says(path: Path) -> None:
    with open_store(path, writable=False) as store:
        total = len(ids_of(store))
        for count in (1, 7, total, total + 5):
            seen = Seen()
            report = fsck(store, sample=count, progress=seen)
            assert report.objects + report.records == sum(seen.ids.values()) == min(count, total)
            assert set(seen.ids.values()) == {1}
            assert (report.whole, report.unreferenced) == (False, None)
        half = fsck(store, fraction=0.5)
        assert half.objects + half.records == round(total / 2)
        least = fsck(store, fraction=1e-9)
        assert least.objects + least.records == 1


def test_samples_differ(path: Path) -> None:
    with open_store(path, writable=False) as store:
        found = set()
        for _ in range(8):
            seen = Seen()
            fsck(store, sample=5, progress=seen)
            found.add(frozenset(seen.ids))
    assert len(found) > 1


def test_a_sample_names_damage_like_a_full_check(path: Path) -> None:
    bad = spoil_blob(path)
    with open_store(path, writable=False) as store:
        full = fsck(store)
        sampled = fsck(store, fraction=1.0)
        assert {(d.id, d.path) for d in full.damaged} == {(bad, "raw.bin")}
        assert sampled.damaged == full.damaged
        assert not sampled.whole


@pytest.mark.parametrize(
    "options", [{"sample": 0}, {"fraction": 0.0}, {"fraction": 1.5}, {"sample": 1, "fraction": 0.5}]
)
def test_a_sample_of_nothing_or_of_too_much_is_refused(tmp_path: Path, options: dict[str, float]) -> None:
    with open_store_of("memory", tmp_path) as store:
        with pytest.raises(UsageError):
            fsck(store, **options)  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            fsck_for(store, 0)


@pytest.mark.parametrize("kind", STORES)
def test_runs_of_any_length_read_everything_once_a_round(
    tmp_path: Path, kind: str, small_frames: None
) -> None:
    with open_store_of(kind, tmp_path) as store:
        seal(store, tree(tmp_path / "t", "t"))
        everything = ids_of(store)
        for cycle in (1, 2):
            seen = Seen()
            left = len(everything)
            while left:
                report = fsck_for(store, NOTHING_S, progress=seen)
                assert report.cycle == cycle
                assert report.remaining is not None
                assert report.remaining < left
                assert report.objects + report.records == left - report.remaining
                left = report.remaining
                assert (report.oldest_check is None) == (cycle == 1 and left > 0)
            assert sorted(seen.ids.elements()) == everything
        long = fsck_for(store, 60.0)
        assert (long.cycle, long.remaining, long.objects + long.records) == (3, 0, len(everything))


def marked(path: Path, cycle: int) -> set[str]:
    """Return what is known, durably, to have been read in a round."""
    with open_store(path, writable=False) as store:
        marks = store.checks().marks
        return {
            id.hex()
            for unit in store.units()
            if unit.key in marks and marks[unit.key].cycle == cycle
            for id in (*unit.objects, *unit.records)
        }


def test_a_round_goes_on_after_kills_and_reads_nothing_again_that_was_noted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "NOTE_EVERY_S", 0.0)
    with open_store(path, writable=False) as store:
        everything = set(ids_of(store))
    chance = random.Random(5)
    noted: set[str] = set()
    kills = 0
    while noted != everything:
        die_after = chance.randrange(1, 40)

        def work(say: Say, die_after: int = die_after) -> None:
            said = [0]

            def told(state: Progress) -> None:
                say(state.path.decode())
                said[0] += 1
                if said[0] == die_after:
                    os.kill(os.getpid(), signal.SIGKILL)

            with open_store(path) as store:
                report = fsck_for(store, 600, progress=told)
                say(f"ended {report.cycle} {report.remaining}")

        with child(work) as (_, wait):
            ended = wait()
        read = [line for line in ended.said if not line.startswith("ended")]
        assert len(set(read)) == len(read)
        assert noted.isdisjoint(read), "what was noted was read again"
        now = marked(path, 1)
        assert noted <= now <= noted | set(read)
        with open_store(path, writable=False) as store:
            unit_of = {id.hex(): unit for unit in store.units() for id in (*unit.objects, *unit.records)}
        # Only the unit at hand may have been read without having been noted.
        assert len({unit_of[id].key for id in read if id not in now}) <= 1
        noted = now
        kills += ended.signal == signal.SIGKILL
    assert kills > 1
    with open_store(path) as store:
        assert store.checks().finished
        again = fsck_for(store, 600)
        assert (again.cycle, again.remaining, again.objects + again.records) == (2, 0, len(everything))


def test_damage_found_before_a_kill_is_reported_by_every_later_run_of_the_round(path: Path) -> None:
    bad = spoil_blob(path)

    def work(say: Say) -> None:
        with open_store(path) as store:
            while fsck_for(store, NOTHING_S).remaining:
                if bad in marked(path, 1):
                    os.kill(os.getpid(), signal.SIGKILL)

    with child(work) as (_, wait):
        assert wait().signal in (0, signal.SIGKILL)
    with open_store(path) as store:
        if store.checks().finished:
            fsck_for(store, 600)
        first = fsck_for(store, NOTHING_S)
        while bad not in {damage.id for damage in first.damaged}:
            first = fsck_for(store, NOTHING_S)
        later = fsck_for(store, NOTHING_S)
        if later.cycle == first.cycle:
            assert [(d.id, d.path) for d in later.damaged] == [(bad, "raw.bin")]


def test_what_was_repaired_since_is_no_longer_reported(path: Path) -> None:
    with open_store(path) as store:
        file = max((f for f in path.joinpath("blobs").glob("*/*") if not f.suffix), key=lambda f: f.name)
        whole = file.read_bytes()
        bad = spoil_blob(path)
        while bad not in {damage.id for damage in fsck_for(store, NOTHING_S).damaged}:
            assert not store.checks().finished
        seal(store, plant(path.parent / "more", {"x": "more"}))
        assert {damage.id for damage in fsck_for(store, NOTHING_S).damaged} == {bad}
        seal(store, plant(path.parent / "yet", {"x": "yet more"}))
        file.write_bytes(whole)
        assert fsck_for(store, NOTHING_S).damaged == ()
        assert not any(mark.damaged for mark in store.checks().marks.values())


def test_what_is_new_comes_first_and_then_what_was_read_longest_ago(path: Path) -> None:
    with open_store(path) as store:
        order: list[str] = []
        first = fsck_for(store, 600, progress=lambda state: order.append(state.path.decode()))
        assert first.remaining == 0
        old = set(ids_of(store))
        seal(store, plant(path.parent / "new", {"x": "new", "y": "newer"}))
        again: list[str] = []
        second = fsck_for(store, 600, progress=lambda state: again.append(state.path.decode()))
        assert (second.cycle, second.remaining) == (2, 0)
        new = set(ids_of(store)) - old
        assert set(again[: len(new)]) == new
        assert again[len(new) :] == order


def test_a_sweep_in_the_middle_of_a_round_makes_nothing_be_read_twice(path: Path) -> None:
    with open_store(path) as store:
        seen = Seen()
        with store.stage() as stage:
            stage.set_ref("b", None)
            stage.commit()
        doomed = set(ids_of(store))
        for _ in range(6):
            fsck_for(store, NOTHING_S, progress=seen)
        assert gc(store, delete=True, grace_s=0).objects > 0
        left = set(ids_of(store))
        doomed -= left
        while fsck_for(store, NOTHING_S, progress=seen).remaining:
            pass
        assert set(seen.ids.values()) == {1}
        assert left <= set(seen.ids) <= left | doomed
        units = {unit.key for unit in store.units()}
        assert set(store.checks().marks) == units


def test_a_damaged_mark_counts_as_none(path: Path) -> None:
    with open_store(path) as store:
        fsck_for(store, 600)
        key = next(iter(store.checks().marks))
        store._env.write(lambda txn: txn.put("checked", key, b"x" * 17))
        assert key not in store.checks().marks
        assert fsck_for(store, 600).remaining == 0
        assert key in store.checks().marks


def lose_record(store: LmdbStore, id: bytes) -> None:
    assert store._env.write(lambda txn: txn.delete("records", id))


def test_a_lost_observation_is_named_with_the_packet_that_it_belongs_to(path: Path) -> None:
    with open_store(path) as store:
        step = next(step for step in store.ref_log() if step.name == "a")
        assert step.observation is not None
        assert step.id is not None
        lose_record(store, step.observation)
        damaged = fsck(store).damaged
        assert [(d.id, d.packet, d.role, d.path, d.reason) for d in damaged] == [
            (step.observation.hex(), step.id.hex(), "a", "(observation)", "is not in the store")
        ]
        assert repair(store).damaged == damaged  # nobody has it


def test_observations_that_were_swept_with_their_packet_are_not_missed(path: Path, tmp_path: Path) -> None:
    with open_store(path) as store:
        packet = store.ref("a")
        assert packet is not None
        with store.stage() as stage:
            stage.set_ref("a", None)
            stage.commit()
        gc(store, delete=True, grace_s=0)
        assert seal_into(path, tmp_path / "a", "a") == packet.hex()
        assert [step.observation is not None for step in store.ref_log("a")] == [True, False, True]
        assert fsck(store).damaged == ()
        newest = store.ref_log("a")[-1].observation
        assert newest is not None
        lose_record(store, newest)
        assert [damage.id for damage in fsck(store).damaged] == [newest.hex()]


def test_an_observation_stays_due_while_another_ref_names_its_packet(path: Path) -> None:
    with open_store(path) as store:
        packet = store.ref("a")
        step = next(step for step in store.ref_log() if step.name == "a")
        assert packet is not None
        assert step.observation is not None
        with store.stage() as stage:
            stage.set_ref("second", packet)
            stage.set_ref("a", None)
            stage.commit()
        gc(store, delete=True, grace_s=0)
        assert fsck(store).damaged == ()
        lose_record(store, step.observation)
        assert [damage.id for damage in fsck(store).damaged] == [step.observation.hex()]


def test_a_lost_verdict_is_named_with_its_packet(path: Path) -> None:
    with open_store(path) as store:
        packet = store.ref("a")
        assert packet is not None
        with store.stage() as stage:
            stage.add_verdict(packet, b"v" * 32)
            stage.commit()
        damaged = fsck(store).damaged
        assert [(d.id, d.packet, d.role, d.path) for d in damaged] == [
            ((b"v" * 32).hex(), packet.hex(), "a", "(verdict)")
        ]


def test_what_is_swept_while_it_is_checked_is_no_damage(path: Path) -> None:
    with open_store(path) as store:
        found = checking.Findings(store, Meter(None))
        units = list(store.units())
        with store.stage() as stage:
            stage.set_ref("b", None)
            stage.commit()
        gc(store, delete=True, grace_s=0)
        assert not any(found.check(unit) for unit in units)
        assert found.bad == {}
        lost = checking.Findings(store, Meter(None))
        assert lost.check(Unit(bytes(8), (bytes(32),), ()))  # no commit since: it is not swept, it is lost


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("100%", 1.0), ("0.25", 0.25), ("1", 1.0)])
def test_parts(text: str, value: float) -> None:
    assert parse_fraction(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("20m", 1200), ("1h30m", 5400), ("90", 90), ("1.5s", 1.5), ("2h5s", 7205)]
)
def test_times(text: str, value: float) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize("text", ["", "0", "5 %", "101%", "-1", "nan", "1e3", "five", "%"])
def test_no_parts(text: str) -> None:
    with pytest.raises(UsageError):
        parse_fraction(text)


@pytest.mark.parametrize("text", ["", "0", "0m", "-5m", "5d", "m", "1m1h", "inf", "5 m"])
def test_no_times(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


@pytest.mark.parametrize("moment", range(1, 9))
def test_a_packet_that_is_swept_amid_the_look_is_neither_damage_nor_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    reads = 0
    original = objects.record

    def sweeping(reader: Reader, id: RawId) -> bytes:
        nonlocal reads
        if id == swept:
            reads += 1
        if reads == moment and (reads, "swept") not in done:
            done.append((reads, "swept"))
            drop_ref(path, "a")
            with open_store(path) as other:
                assert gc(other, delete=True, grace_s=0).records > 0
        return original(reader, id)

    done: list[tuple[int, str]] = []
    with open_store(path, writable=False) as store:
        named = store.ref("a")
        assert named is not None
        swept = named
        monkeypatch.setattr("provstore.verbs.collecting.objects.record", sweeping)
        report = fsck(store)
    assert report.damaged == ()
    monkeypatch.undo()
    with open_store(path, writable=False) as store:
        assert fsck(store).damaged == ()
