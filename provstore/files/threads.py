"""One thread a core over large files, whose hashing gives the interpreter lock up."""

import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from provstore.errors import ProvError

_T = TypeVar("_T")


def on_threads(jobs: Sequence[_T], work: Callable[[_T], None]) -> None:
    """Call ``work`` for each job, in their order, on as many threads as there are cores.

    Raises:
        ProvError, OSError: the first failure; jobs that were not begun are left out then.
    """
    todo: queue.SimpleQueue[_T] = queue.SimpleQueue()
    for job in jobs:
        todo.put(job)
    failures: list[ProvError | OSError] = []

    def run() -> None:
        while not failures:
            try:
                job = todo.get_nowait()
            except queue.Empty:
                return
            try:
                work(job)
            except (ProvError, OSError) as error:
                failures.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(min(len(jobs), os.cpu_count() or 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
