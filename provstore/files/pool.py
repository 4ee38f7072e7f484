"""Batches of small files, hashed here or in worker processes.

Threads do not help with small files: each costs a few system calls of microseconds, and each call hands
the interpreter lock over. Workers are plain child processes that read nothing but the files they are told
to; they hold no store. Between hashing and packing a worker asks which contents are wanted, so nothing is
compressed that the store has already.
"""

import fcntl
import gc
import itertools
import marshal
import os
import select
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, Final, NamedTuple

from provstore.files.hashing import Hashed, Job, Settings, frames_of, read_batch
from provstore.files.root import Root

WORTH_WORKERS: Final = 2000
"""Fewer files than this are hashed in this process: starting a worker costs as much as a thousand files."""

_PIPE_BYTES: Final = 1 << 20
"""Room in a pipe for a batch of jobs, or a frame, so that nobody waits in the middle of one."""

_LENGTH: Final = struct.Struct("<Q")

Wanted = Callable[[Sequence[Job], Sequence[Hashed]], list[int]]
"""Says which of a batch's contents are to be packed."""


class Packed(NamedTuple):
    """One finished batch: its jobs, their results in the same order, and frames with their members."""

    jobs: Sequence[Job]
    results: Sequence[Hashed]
    frames: list[tuple[bytes, list[int]]]


def default_workers(files: int) -> int:
    """Return how many worker processes are worth their start for so many small files."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if files >= WORTH_WORKERS and cores > 1 else 0


def run(
    root: Root, batches: Iterator[list[Job]], settings: Settings, wanted: Wanted, workers: int | None
) -> Iterator[Packed]:
    """Hash batches of small files, in any order.

    Args:
        root: directory that all paths are below.
        batches: jobs, a few hundred a batch.
        settings: how to read.
        wanted: asked for each batch after hashing, before packing.
        workers: number of processes; 0 does it all here, None decides by the first batches.
    """
    if workers is None:
        first: list[list[Job]] = []
        files = 0
        for jobs in batches:
            first.append(jobs)
            files += len(jobs)
            if files >= WORTH_WORKERS:
                break
        workers = default_workers(files)
        batches = itertools.chain(first, batches)
    if workers <= 0:
        for jobs in batches:
            yield _here(root, jobs, settings, wanted)
        return
    pool = [_Worker(root, settings) for _ in range(workers)]
    try:
        yield from _dispatch(pool, root, batches, settings, wanted)
    finally:
        for worker in pool:
            worker.stop()


def _here(root: Root, jobs: Sequence[Job], settings: Settings, wanted: Wanted) -> Packed:
    results, contents = read_batch(root, jobs, settings)
    indexes = wanted(jobs, results)
    return Packed(jobs, results, list(frames_of(contents, indexes)) if settings.keep else [])


def _dispatch(
    pool: "list[_Worker]", root: Root, batches: Iterator[list[Job]], settings: Settings, wanted: Wanted
) -> Iterator[Packed]:
    busy: dict[int, _Worker] = {}
    poller = select.poll()
    for worker in pool:
        jobs = next(batches, None)
        if jobs is not None:
            worker.give(jobs)
            busy[worker.descriptor] = worker
            poller.register(worker.descriptor, select.POLLIN | select.POLLHUP)
    while busy:
        for descriptor, _ in poller.poll():
            worker = busy[descriptor]
            done = worker.step(wanted)
            if done is None and worker.alive:
                continue
            lost = None if done is not None else worker.jobs
            jobs = next(batches, None) if worker.alive else None
            if jobs is None:
                del busy[descriptor]
                poller.unregister(descriptor)
            else:
                worker.give(jobs)
            if done is not None:
                yield done
            elif lost is not None:
                # The worker died; its files are read here instead, and it gets no more.
                yield _here(root, lost, settings, wanted)
    for jobs in batches:
        yield _here(root, jobs, settings, wanted)


class _Worker:
    """The parent's side of one child process."""

    def __init__(self, root: Root, settings: Settings) -> None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from provstore.files import pool; pool.serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise OSError("a worker process has no pipes")
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        self.descriptor = self._out.fileno()
        for pipe in (self._in, self._out):
            _widen(pipe.fileno())
        self.alive = True
        self.jobs: list[Job] = []
        self._results: list[Hashed] | None = None
        self._send((root.path, tuple(settings)))

    def _send(self, message: Any) -> None:
        try:
            send(self._in, message)
        except BrokenPipeError:
            self.alive = False

    def give(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self._results = None
        self._send(jobs)

    def step(self, wanted: Wanted) -> Packed | None:
        """Take the next message; returns the batch when it is finished."""
        message = receive(self._out)
        if message is None:
            self.alive = False
            return None
        if self._results is None:
            self._results = [tuple.__new__(Hashed, fields) for fields in message]
            self._send(wanted(self.jobs, self._results))
            return None
        return Packed(self.jobs, self._results, [(bytes(data), list(group)) for data, group in message])

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        # What a worker that died never took is still to be flushed.
        with suppress(BrokenPipeError):
            self._in.close()
        self._out.close()


def _widen(pipe: int) -> None:
    """Ask for more room in a pipe; a system without, or a user at its limit, goes on with less."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def send(file: IO[bytes], message: Any) -> None:
    """Write one message of plain values to a pipe."""
    data = marshal.dumps(message)
    file.write(_LENGTH.pack(len(data)))
    file.write(data)
    file.flush()


def receive(file: IO[bytes]) -> Any:
    """Read one message from a pipe of this program's own child or parent; None at its end."""
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = file.read(length)
    return marshal.loads(data) if len(data) == length else None


def serve() -> None:
    """Be a worker: read batches from standard input until it closes."""
    # Buffered whatever the environment says of standard output: a raw file may take less than it is given.
    with open(0, "rb", closefd=False) as source, open(1, "wb", closefd=False) as sink:
        _serve(source, sink)


def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    first = receive(source)
    if first is None:
        return
    gc.disable()  # nothing here is made in cycles, and looking for them takes a tenth of the time
    path, fields = first
    settings = Settings(*fields)
    with Root(path) as root:
        while (jobs := receive(source)) is not None:
            results, contents = read_batch(root, jobs, settings)
            send(sink, [tuple(result) for result in results])
            wanted = receive(source)
            if wanted is None:
                return
            send(sink, list(frames_of(contents, wanted)) if settings.keep else [])
