"""Timing of whole processes in alternation, their memory, and the few statistics made of it.

Seconds of one machine say little, so most figures that are judged are ratios of two cases of the same round.
A case begins with ``sync``, outside of its time: what another case has written is not charged to one that
waits for the disk.
"""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

SAMPLING_S = 0.004
"""Pause between two looks at the memory of a process tree."""

SHORT_S = 0.3
"""Runs under this say nothing of what other programs did meanwhile."""


class Sample(NamedTuple):
    """One run of one case.

    Attributes:
        seconds: wall-clock time.
        cpu_seconds: processor time of the process and all that it waited for.
        foreign_cores: processor cores that other programs used meanwhile; None where that is unknown.
    """

    seconds: float
    cpu_seconds: float
    foreign_cores: float | None = None


class Spread(NamedTuple):
    """A median with the least and the greatest value."""

    median: float
    low: float
    high: float


class Command(NamedTuple):
    """A process to run.

    Attributes:
        argv: program and arguments.
        env: its whole environment.
        cwd: its working directory.
        output: file for its standard output; thrown away without one.
        codes: exit codes that are no failure.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path | None = None
    output: Path | None = None
    codes: tuple[int, ...] = (0,)


class Case(NamedTuple):
    """One way to do a job: its name, and what does it once in round ``number``."""

    name: str
    run: Callable[[int], Sample]


class CommandFailedError(Exception):
    """A measured program ended with an exit code that means no success."""


class Timings:
    """What an alternating run has measured: for each case one sample a round."""

    def __init__(self, names: Sequence[str]) -> None:
        self.samples: dict[str, list[Sample]] = {name: [] for name in names}

    def __contains__(self, name: str) -> bool:
        return bool(self.samples.get(name))

    def seconds(self, name: str) -> list[float]:
        """Return the seconds of one case, a value a round."""
        return [sample.seconds for sample in self.samples[name]]

    def time(self, name: str, factor: float = 1.0) -> Spread:
        """Return the spread of one case's seconds, times ``factor``."""
        return spread([value * factor for value in self.seconds(name)])

    def cpu_seconds(self, name: str) -> float:
        """Return the median of one case's processor seconds."""
        return statistics.median(sample.cpu_seconds for sample in self.samples[name])

    def ratio(self, name: str, *over: str) -> Spread:
        """Return the spread of the per-round ratios of a case to another, or to the sum of several."""
        sums = [sum(values) for values in zip(*(self.seconds(other) for other in over), strict=True)]
        return spread([a / b for a, b in zip(self.seconds(name), sums, strict=True)])

    def foreign_cores(self) -> float | None:
        """Return the median of what other programs used of the machine, or None where it is unknown."""
        known = [
            s.foreign_cores for case in self.samples.values() for s in case if s.foreign_cores is not None
        ]
        return statistics.median(known) if known else None


def spread(values: Sequence[float]) -> Spread:
    """Return median, least and greatest of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def alternate(cases: Sequence[Case], rounds: int, told: Callable[[str], None]) -> Timings:
    """Run each case once a round, in turn; the turn begins one case later in each round."""
    timings = Timings([case.name for case in cases])
    for number in range(rounds):
        first = number % len(cases)
        for case in (*cases[first:], *cases[:first]):
            sample = case.run(number)
            timings.samples[case.name].append(sample)
            told(f"round {number + 1}/{rounds}  {case.name}: {sample.seconds:.4g} s")
    return timings


def timed(command: Command) -> Sample:
    """Run a process to its end and time it from before its start.

    Raises:
        CommandFailedError: it ended with a code that is no success; its last words are in the message.
    """
    os.sync()
    with _streams(command) as (out, err):
        busy = _busy_seconds()
        begun = time.perf_counter()
        process = _start(command, out, err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        after = _busy_seconds()
        _check(command, process.returncode, err)
    own = usage.ru_utime + usage.ru_stime
    return Sample(seconds, own, _foreign(busy, after, own, seconds))


def call(work: Callable[[], object], times: int = 1) -> Sample:
    """Time a call inside this process; with ``times``, the mean of that many calls one after the other."""
    busy, own = _busy_seconds(), time.process_time()
    begun = time.perf_counter()
    for _ in range(times):
        work()
    seconds = time.perf_counter() - begun
    own, after = time.process_time() - own, _busy_seconds()
    return Sample(seconds / times, own / times, _foreign(busy, after, own, seconds))


def peak_memory(command: Command) -> int:
    """Run a process and return the peak of the memory of its whole tree, in bytes.

    What each process has for itself is summed over the process and all below it, every few milliseconds;
    what they share with others counts once. ``ru_maxrss`` would not do: it is the largest single process, and
    at least what the measuring program had at the fork.

    Raises:
        CommandFailedError: as :func:`timed`.
    """
    with _streams(command) as (out, err):
        process = _start(command, out, err)
        peak = 0
        while process.poll() is None:
            parts = [_memory_of(pid) for pid in _tree(process.pid)]
            peak = max(peak, sum(own for own, _ in parts) + max(shared for _, shared in parts))
            time.sleep(SAMPLING_S)
        _check(command, process.returncode, err)
    return peak


@contextmanager
def _streams(command: Command) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    with open(command.output or os.devnull, "wb") as out, tempfile.TemporaryFile() as err:
        yield out, err


def _start(command: Command, out: IO[bytes], err: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        list(command.argv),
        env=dict(command.env),
        cwd=command.cwd,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
    )


def _check(command: Command, code: int, err: IO[bytes]) -> None:
    if code not in command.codes:
        err.seek(0)
        words = err.read()[-2000:].decode("utf-8", "replace").strip()
        raise CommandFailedError(f"{' '.join(command.argv)[:300]} ended with {code}: {words}")


def _foreign(busy: float | None, after: float | None, own: float, seconds: float) -> float | None:
    """Return the cores that others used; unknown in a short time, since the kernel counts ticks of 10 ms."""
    if busy is None or after is None or seconds < SHORT_S:
        return None
    return max(0.0, (after - busy - own) / seconds)


def _busy_seconds() -> float | None:
    """Return the processor seconds that the whole machine has used, or None where the system does not say."""
    try:
        with open("/proc/stat", "rb") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _wait, irq, soft, _steal = fields
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def _tree(pid: int) -> Iterator[int]:
    todo = [str(pid)]
    while todo:
        here = todo.pop()
        yield int(here)
        try:
            for thread in os.listdir(f"/proc/{here}/task"):
                with open(f"/proc/{here}/task/{thread}/children", encoding="ascii") as file:
                    todo.extend(file.read().split())
        except OSError:
            continue


def _memory_of(pid: int) -> tuple[int, int]:
    """Return the bytes that one process has in memory: for itself, and shared; 0 when it is gone."""
    fields: dict[str, int] = {}
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if value.endswith("kB\n"):
                    fields[name] = int(value.split()[0]) * 1024
    except OSError:
        return 0, 0
    own = fields.get("Private_Clean", 0) + fields.get("Private_Dirty", 0)
    return own, fields.get("Rss", 0) - own
