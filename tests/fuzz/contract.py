"""What every decoder promises for any bytes: an answer or an error of ours, soon, and in little memory."""

import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from provstore.errors import ProvError

MAX_MESSAGE_CHARS: Final = 20_000
"""Longest message of an error: an input does not come back whole as its own error."""

MAX_INPUT_SECONDS: Final = 2.0
"""Processor time that one input may take, on any machine that runs the tests."""

MAX_MEMORY_BYTES: Final = 256 << 20
"""Address space that all inputs of a target together may take beyond what was there before the first."""


class Target(NamedTuple):
    """One decoder under test.

    Attributes:
        run: gives it bytes; returns, or raises an error of ours. Broken promises are failed assertions.
        seeds: small inputs that lead deep into it.
        max_bytes: longest input that is tried.
    """

    run: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    max_bytes: int = 4096


class TooSlowError(Exception):
    """One input took longer than it may."""


def hold(target: Target, data: bytes) -> ProvError | None:
    """Run one input; whatever is raised here is a finding. Return the error that refused it, if one did."""
    try:
        target.run(data)
    except ProvError as error:
        assert error.exit_code != 70, f"an error without a class of its own: {error!r}"
        assert len(error.message) <= MAX_MESSAGE_CHARS, f"a message of {len(error.message)} characters"
        return error
    return None


def place_of(error: BaseException) -> str:
    """Return a name for a finding, the same for the same line of the same module."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/fuzz/contract" not in f.filename and "/fuzz/run" not in f.filename]
    last = (ours or frames)[-1]
    inner = next((f for f in reversed(ours) if "/provstore/" in f.filename), last)
    return f"{type(error).__name__}-{Path(inner.filename).stem}-{inner.lineno}-{last.lineno}"


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooSlowError when the block takes more processor time than this."""

    def stop(*_: object) -> None:
        raise TooSlowError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(more_bytes: int = MAX_MEMORY_BYTES) -> None:
    """Let this process have only so much address space beyond what it has now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def seconds_of(work: Callable[[], object]) -> float:
    """Return the processor time that something takes."""
    start = time.process_time()
    work()
    return time.process_time() - start
