"""Whole frames of a pack, checked here or by worker processes: the same answers, no worker believed alone."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from provstore.errors import FrameError, IntegrityError
from provstore.ids import Digests, digests
from provstore.store import frame, frame_workers
from provstore.store.frame_check import check_frame
from provstore.store.frame_workers import FrameWorkers
from provstore.store.pack import PackStore
from provstore.store.pack_writer import write_pack
from provstore.store.protocol import ObjectInfo

Change = Callable[[int, Digests], Digests]


def make_pack(path: Path, change: Change = lambda _, found: found) -> Path:
    """Write a pack of three frames of small objects and one object of its own; an index may lie."""
    datas = [bytes([number]) * 1000 + os.urandom(200_000) for number in range(14)] + [os.urandom(3 << 20)]
    rows = []
    for number, data in enumerate(datas):
        found = change(number, digests(data))
        rows.append((found.blake3, ObjectInfo(found.size_bytes, found.sha256, "inline"), [data]))
    out = io.BytesIO()
    write_pack(out, [], [], rows)
    path.write_bytes(out.getvalue())
    return path


def answers(path: Path, workers: int) -> list[bool]:
    with PackStore(os.fspath(path)) as pack:
        frames = list(pack.whole_frames())
        assert len(frames) == 4
        with FrameWorkers(os.fspath(path), frames, workers) as pool:
            return [pool.next(pack.packed_frame(one.position), one) for one in frames]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_good_frames_are_good(tmp_path: Path, workers: int) -> None:
    assert answers(make_pack(tmp_path / "x.pack"), workers) == [True] * 4


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("field", ["blake3", "sha256"])
def test_a_frame_whose_index_lies_is_bad_and_the_others_are_not(
    tmp_path: Path, workers: int, field: str
) -> None:
    def lie(number: int, found: Digests) -> Digests:
        if number != 7:
            return found
        return found._replace(blake3=bytes(32)) if field == "blake3" else found._replace(sha256=bytes(32))

    assert answers(make_pack(tmp_path / "x.pack", lie), workers) == [True, False, True, True]


def test_no_byte_is_hashed_here_when_a_worker_has_done_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("checked a second time")

    monkeypatch.setattr(frame_workers, "check_frame", refuse)
    assert answers(make_pack(tmp_path / "x.pack"), 2) == [True] * 4


def test_a_file_that_changes_behind_the_worker_is_not_taken_on_its_word(tmp_path: Path) -> None:
    path = make_pack(tmp_path / "x.pack")
    with PackStore(os.fspath(path)) as pack:
        frames = list(pack.whole_frames())
        with FrameWorkers(os.fspath(path), frames, 1) as pool:
            first, second = frames[:2]
            other = pack.packed_frame(second.position)
            assert not pool.next(other, first), "other bytes than the worker has seen"
            lying = second._replace(members=second.members[::-1])
            assert not pool.next(other, lying), "other digests than the worker has seen"
            assert pool.next(pack.packed_frame(frames[2].position), frames[2])


def test_frames_of_a_worker_that_dies_are_checked_here(tmp_path: Path) -> None:
    path = make_pack(tmp_path / "x.pack", lambda n, d: d._replace(sha256=bytes(32)) if n == 0 else d)
    with PackStore(os.fspath(path)) as pack:
        frames = list(pack.whole_frames())
        with FrameWorkers(os.fspath(tmp_path / "not there"), frames, 2) as pool:
            found = [pool.next(pack.packed_frame(one.position), one) for one in frames]
    assert found == [False, True, True, True]


def test_a_frame_with_a_hole_or_more_than_its_members_is_refused() -> None:
    packed = frame.pack([b"one", b"two"])
    check_frame(packed, [digests(b"one"), digests(b"two")])
    with pytest.raises(FrameError):
        check_frame(packed, [digests(b"one")])
    with pytest.raises(IntegrityError):
        check_frame(packed, [digests(b"two"), digests(b"one")])
    with pytest.raises(FrameError):
        check_frame(packed[:-1], [digests(b"one"), digests(b"two")])
