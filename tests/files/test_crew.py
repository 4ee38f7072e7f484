"""A crew answers each piece once, whatever happens to its helpers."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from workbench import at_most

from provstore.files.crew import Crew, spare_cores


def answers(work: Callable[[Any], Any], pieces: list[Any], helpers: int) -> list[Any]:
    with at_most(30), Crew(work, helpers) as crew:
        for piece in pieces:
            crew.put(piece)
        return list(crew.results())


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_each_piece_is_answered_once(helpers: int) -> None:
    found = answers(lambda n: (n, n * n, os.getpid()), list(range(500)), helpers)
    assert sorted(n for n, _, _ in found) == list(range(500))
    assert all(square == n * n for n, square, _ in found)
    assert len({process for _, _, process in found}) <= helpers + 1
    assert (os.getpid() in {process for _, _, process in found}) or helpers


def test_helpers_work_while_more_is_put() -> None:
    with at_most(30), Crew(lambda n: os.getpid(), 1) as crew:
        crew.put(0)
        early: list[int] = []
        while not early:
            early += crew.ready()
        assert early[0] != os.getpid()
        assert not list(crew.results())


def test_answers_may_ask_for_more() -> None:
    with at_most(30), Crew(lambda n: n, 2) as crew:
        crew.put(5)
        seen = []
        for n in crew.results():
            seen.append(n)
            for _ in range(2 if n else 0):
                crew.put(n - 1)
    assert len(seen) == 2**6 - 1


@pytest.mark.parametrize("helpers", [0, 2])
def test_a_long_row_of_pieces_is_never_in_memory_at_once(helpers: int) -> None:
    given = answered = most = 0

    def pieces() -> Iterator[int]:
        nonlocal given, most
        for n in range(1000):
            given += 1
            most = max(most, given - answered)
            yield n

    with at_most(30), Crew(lambda n: n, helpers) as crew:
        for _ in crew.over(pieces()):
            answered += 1
    assert answered == 1000
    assert most < 20


@pytest.mark.parametrize("helpers", [1, 2])
def test_pieces_and_answers_larger_than_any_pipe_do_not_lock_up(helpers: int) -> None:
    pieces = [bytes([n]) * 3_000_000 for n in range(12)]
    found = answers(lambda piece: piece * 2, pieces, helpers)
    assert sorted(found) == [piece * 2 for piece in pieces]


@pytest.mark.parametrize("helpers", [1, 2])
def test_what_a_killed_helper_leaves_is_done_here(helpers: int) -> None:
    here = os.getpid()

    def deadly(n: int) -> tuple[int, int]:
        if os.getpid() != here and n % 7 == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return n, os.getpid()

    found = answers(deadly, list(range(200)), helpers)
    assert sorted(n for n, _ in found) == list(range(200))


def test_a_failure_is_raised_here_and_helpers_are_gone_afterwards() -> None:
    before, children = set(os.listdir("/proc/self/fd")), processes()

    def failing(n: int) -> int:
        if n == 50:
            raise ArithmeticError("fifty")
        return n

    with pytest.raises(ArithmeticError, match="fifty"):
        answers(failing, list(range(100)), 2)
    assert set(os.listdir("/proc/self/fd")) <= before
    assert processes() <= children


def processes() -> set[str]:
    """Return the children of this process; other tests may have some."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_nothing_is_forked_beside_threads() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert spare_cores() == 0
    finally:
        done.set()
        thread.join()
