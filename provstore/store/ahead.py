"""Work done on threads while the caller goes on, its results given back in the order of asking.

For work that lets the interpreter lock go for milliseconds, such as compressing a frame. Memory is bounded by
the caller: it takes the oldest result before it asks for more than :attr:`Ahead.room` things at once.
"""

import os
import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from provstore.errors import ProvError

MOST_THREADS: Final = 8
"""More threads than this do not feed one writer any faster."""

T = TypeVar("T")


class _Ticket(Generic[T]):
    """One piece of work and, later, what came of it."""

    __slots__ = ("_done", "_failure", "_value", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._value: list[T] = []
        self._failure: BaseException = RuntimeError("the thread ended before the work was done")
        self._done = threading.Lock()
        self._done.acquire()

    def run(self) -> None:
        try:
            if self._work is not None:
                self._value.append(self._work())
        except (ProvError, OSError, MemoryError) as error:
            self._failure = error
        finally:
            self._work = None
            self._done.release()

    def result(self) -> T:
        with self._done:
            if not self._value:
                raise self._failure
            return self._value[0]


class Ahead(Generic[T]):
    """A queue of work and its threads, which start when they are first needed.

    Args:
        threads: how many; by default one a core. With one core the work is done where it is asked for.

    Attributes:
        room: pieces of work, done or not, that should wait to be taken at the most.
        waiting: pieces of work that were asked for and not taken.

    Example:
        >>> with Ahead[int](2) as ahead:
        ...     for number in range(3):
        ...         ahead.ask(lambda number=number: number * number)
        ...     [ahead.take() for _ in range(3)]
        [0, 1, 4]
    """

    def __init__(self, threads: int | None = None) -> None:
        count = min(_cores(), MOST_THREADS) if threads is None else threads
        self._count = count if count > 1 else 0
        self.room = self._count + 2 if self._count else 0
        self._todo: queue.SimpleQueue[_Ticket[T] | None] = queue.SimpleQueue()
        self._asked: queue.SimpleQueue[_Ticket[T]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def waiting(self) -> int:
        """Return how many results were asked for and not taken."""
        return self._asked.qsize()

    def ask(self, work: Callable[[], T]) -> None:
        """Have something done; its failure is raised where its result is taken."""
        ticket = _Ticket(work)
        self._asked.put(ticket)
        if not self._count:
            ticket.run()
            return
        if len(self._threads) < self._count:
            self._threads.append(threading.Thread(target=self._serve, daemon=True))
            self._threads[-1].start()
        self._todo.put(ticket)

    def _serve(self) -> None:
        while (ticket := self._todo.get()) is not None:
            ticket.run()

    def take(self) -> T:
        """Return the oldest result that was not taken; waits for it.

        Raises:
            ProvError, OSError, MemoryError: what the work raised.
        """
        return self._asked.get_nowait().result()

    def close(self) -> None:
        """End the threads; what was not begun is left out."""
        while not self._todo.empty():
            try:
                self._todo.get_nowait()
            except queue.Empty:
                break
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
