"""Forked helpers that share one job with this process: each takes pieces of work and returns small answers.

A fork costs a few milliseconds where a fresh interpreter costs a hundred, and it knows everything that this
process knew, so a piece of work is a few plain values. Whatever a helper does not answer, because it was
killed or because the work failed there, is done here again: a fault shows up as what it is, in this process,
and nothing is ever taken as done on the word of a helper that died.
"""

import marshal
import os
import select
import signal
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NoReturn, Self

_LENGTH: Final = struct.Struct("<Q")
_READ_BYTES: Final = 1 << 18

_IN_FLIGHT: Final = 2
"""Pieces that a helper has been given: the one it does and the next, so that it need not wait for us."""

Work = Callable[[Any], Any]
"""Does one piece of work; both sides plain values that :mod:`marshal` knows."""


def spare_cores() -> int:
    """Return how many helpers may be forked: one for each further core, none where forking is not safe.

    Locks that other threads hold would stay locked in a helper for ever; and outside of Linux system
    libraries may not survive a fork.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return 0
    return max(0, len(os.sched_getaffinity(0)) - 1)


class Crew:
    """This process and its helpers over one queue of work. Use it as a context manager.

    Args:
        work: does one piece; called here and in the helpers, which see the state of the moment of the fork.
        helpers: how many to fork; 0 does everything here.
    """

    def __init__(self, work: Work, helpers: int) -> None:
        self._work = work
        self._queue: deque[Any] = deque()
        self._helpers: dict[int, _Helper] = {}
        self._poller = select.poll()
        self._wanted = helpers

    def __enter__(self) -> Self:
        try:
            for _ in range(self._wanted):
                helper = _Helper(self._work, list(self._helpers.values()))
                self._helpers[helper.source] = helper
                self._poller.register(helper.source, select.POLLIN)
        except OSError:
            # No room for another process: the work is done with those there are.
            pass
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for helper in self._helpers.values():
            helper.stop()
        self._helpers.clear()

    def put(self, piece: Any) -> None:
        """Add a piece of work; helpers may begin with it at once."""
        self._queue.append(piece)
        if self._helpers:
            self._feed()

    def over(self, pieces: Iterable[Any]) -> Iterator[Any]:
        """Yield an answer for each of a long row of pieces, of which few are in memory at a time."""
        for piece in pieces:
            self.put(piece)
            while len(self._queue) > _IN_FLIGHT:
                yield self._work(self._queue.popleft())
                yield from self._collect(0)
        yield from self.results()

    def ready(self) -> Iterator[Any]:
        """Yield the answers that helpers have given so far, without waiting."""
        yield from self._collect(0)

    def results(self) -> Iterator[Any]:
        """Yield an answer for each piece, in any order, until none is left; more may be put meanwhile."""
        while self._queue or any(helper.given for helper in self._helpers.values()):
            self._feed()
            if self._queue:
                yield self._work(self._queue.popleft())
                yield from self._collect(0)
            else:
                yield from self._collect(None)

    def _feed(self) -> None:
        for helper in self._helpers.values():
            while self._queue and len(helper.given) < _IN_FLIGHT:
                helper.give(self._queue.popleft())
            helper.flush()

    def _collect(self, wait_ms: int | None) -> Iterator[Any]:
        if not self._helpers:
            return
        if wait_ms is None and any(helper.unsent for helper in self._helpers.values()):
            wait_ms = 1
        for source, _ in self._poller.poll(wait_ms):
            helper = self._helpers[source]
            answers = helper.take()
            if answers is None:
                self._poller.unregister(source)
                del self._helpers[source]
                helper.stop()
                self._queue.extendleft(reversed(helper.given))
            else:
                yield from answers
        self._feed()


class _Helper:
    """This side of one forked process.

    Attributes:
        source: descriptor that its answers come from.
        given: pieces that it has not answered.
        unsent: bytes that its pipe had no room for.
    """

    def __init__(self, work: Work, others: "list[_Helper]") -> None:
        self.given: deque[Any] = deque()
        self.unsent = bytearray()
        self._got = bytearray()
        child_in, self._sink = os.pipe()
        try:
            self.source, child_out = os.pipe()
        except OSError:
            os.close(child_in)
            os.close(self._sink)
            raise
        try:
            self._process = os.fork()
        except OSError:
            for descriptor in (child_in, self._sink, self.source, child_out):
                os.close(descriptor)
            raise
        if not self._process:
            _serve(work, child_in, child_out, [self, *others])
        os.close(child_in)
        os.close(child_out)
        os.set_blocking(self._sink, False)

    def descriptors(self) -> tuple[int, int]:
        """Return both descriptors of this side."""
        return self.source, self._sink

    def give(self, piece: Any) -> None:
        self.given.append(piece)
        data = marshal.dumps(piece)
        self.unsent += _LENGTH.pack(len(data)) + data

    def flush(self) -> None:
        """Send what the pipe has room for."""
        while self.unsent:
            try:
                del self.unsent[: os.write(self._sink, self.unsent)]
            except BlockingIOError:
                return
            except BrokenPipeError:
                self.unsent.clear()

    def take(self) -> list[Any] | None:
        """Return the answers that are whole by now; None once the helper is gone."""
        data = os.read(self.source, _READ_BYTES)
        if not data:
            return None
        self._got += data
        answers = []
        while (answer := self._next()) is not None:
            self.given.popleft()
            answers.append(answer[0])
        return answers

    def _next(self) -> tuple[Any] | None:
        if len(self._got) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._got)
        end = _LENGTH.size + length
        if len(self._got) < end:
            return None
        answer = marshal.loads(bytes(self._got[_LENGTH.size : end]))
        del self._got[:end]
        return (answer,)

    def stop(self) -> None:
        """End the process, whatever it is doing, and wait until it is gone."""
        os.close(self._sink)
        os.close(self.source)
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        with suppress(ChildProcessError):  # where the caller ignores SIGCHLD the system has waited already
            os.waitpid(self._process, 0)


def _serve(work: Work, source: int, sink: int, helpers: "list[_Helper]") -> NoReturn:
    """Be a helper: work until no more comes. Nothing that this process inherited is closed or written."""
    try:
        # The ends that belong to the parent: while a copy is open here, nobody would notice its death.
        for helper in helpers:
            for descriptor in helper.descriptors():
                os.close(descriptor)
        with open(source, "rb", closefd=False) as pieces, open(sink, "wb", closefd=False) as answers:
            while len(head := pieces.read(_LENGTH.size)) == _LENGTH.size:
                piece = marshal.loads(pieces.read(*_LENGTH.unpack(head)))
                data = marshal.dumps(work(piece))
                answers.write(_LENGTH.pack(len(data)) + data)
                answers.flush()
    finally:
        # Also on the way of an error: what the parent was about to do must not be done twice.
        os._exit(0)
