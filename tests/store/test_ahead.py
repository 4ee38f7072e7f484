"""Work on threads: in order, bounded by who asks, and a failure is raised where its result is taken."""

import threading
from functools import partial

import pytest

from provstore.errors import FrameError
from provstore.store.ahead import Ahead


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_asking(threads: int) -> None:
    last_is_done = threading.Event()

    def work(number: int) -> int:
        if threads > 1 and number == 0:
            assert last_is_done.wait(30)
        if number == 1:
            last_is_done.set()
        return number

    with Ahead[int](threads) as ahead:
        for number in range(20):
            ahead.ask(partial(work, number))
        assert [ahead.take() for _ in range(20)] == list(range(20))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_is_raised_where_its_result_is_taken(threads: int) -> None:
    def fail() -> int:
        raise FrameError("frame", "too much")

    with Ahead[int](threads) as ahead:
        ahead.ask(lambda: 1)
        ahead.ask(fail)
        ahead.ask(lambda: 3)
        assert ahead.take() == 1
        with pytest.raises(FrameError, match="too much"):
            ahead.take()
        assert ahead.take() == 3


def test_one_core_needs_no_thread_and_no_room() -> None:
    with Ahead[int](1) as ahead:
        ahead.ask(threading.get_ident)
        assert ahead.take() == threading.get_ident()
        assert ahead.room == 0


def test_closing_ends_the_threads_and_leaves_out_what_was_not_begun() -> None:
    before = threading.active_count()
    begun = threading.Event()
    let_go = threading.Event()
    done: list[int] = []

    def note(number: int) -> int:
        done.append(number)
        return number

    def slow() -> int:
        begun.set()
        assert let_go.wait(30)
        return 0

    ahead = Ahead[int](2)
    ahead.ask(slow)
    ahead.ask(slow)
    assert begun.wait(30)
    for number in range(50):
        ahead.ask(partial(note, number))
    threading.Timer(0.05, let_go.set).start()
    ahead.close()
    assert len(done) < 50
    assert threading.active_count() <= before + 1
