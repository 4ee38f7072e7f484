"""Whole frames of a pack, checked by other processes while this one walks the pack's records.

Hashing many small objects keeps the interpreter's lock, so threads would not help. A worker opens the pack
itself and answers for each frame with a hash of the stored bytes and the digests that it found in order;
whoever takes the frame reads it again and compares, so nothing is taken that no check has seen.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final, Self

from blake3 import blake3

from provstore.errors import ProvError
from provstore.store.frame_check import check_frame
from provstore.store.pack import PackStore
from provstore.store.pack_format import WholeFrame

WORTH_BYTES: Final = 16 << 20
"""Fewer plain bytes than this are checked in this process: a worker takes as long to start."""

MOST_WORKERS: Final = 4

_POSITION: Final = struct.Struct("<Q")
_ANSWER: Final = struct.Struct("<Q32s")
_BAD: Final = bytes(32)


class FrameWorkers:
    """Processes that check frames of one pack, in the order of the frames given.

    Args:
        path: the pack.
        frames: what to check, as :meth:`PackStore.whole_frames` gives them.
        workers: how many processes; by default one for each further core, if that is worth it.
    """

    def __init__(self, path: str, frames: Sequence[WholeFrame], workers: int | None = None) -> None:
        if workers is None:
            plain = sum(member.size_bytes for one in frames for member in one.members)
            workers = min(_cores() - 1, MOST_WORKERS) if plain >= WORTH_BYTES else 0
        self._workers = [_start(path, frames[number::workers]) for number in range(workers)]
        self._taken = 0

    def next(self, packed: bytes, frame: WholeFrame) -> bool:
        """Say whether the next frame's stored bytes are good; checks them here if no worker did."""
        if self._workers:
            answer = _answer(self._workers[self._taken % len(self._workers)])
            self._taken += 1
            if answer == (frame.position, _word(packed, frame)):
                return True
        return _is_good(packed, frame)

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.kill()
            worker.wait()
            if worker.stdout is not None:
                worker.stdout.close()
        self._workers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _word(packed: bytes, frame: WholeFrame) -> bytes:
    """Return a hash of all that a check of a frame was about: its bytes, and what they were held against."""
    hasher = blake3(packed)
    for member in frame.members:
        hasher.update(member.blake3 + member.sha256 + member.size_bytes.to_bytes(8, "little"))
    return hasher.digest()


def _is_good(packed: bytes, frame: WholeFrame) -> bool:
    try:
        check_frame(packed, frame.members)
    except ProvError:
        return False
    return True


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(path: str, frames: Sequence[WholeFrame]) -> "subprocess.Popen[bytes]":
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from provstore.store import frame_workers; frame_workers.serve({path!r})"
    )
    worker = subprocess.Popen(
        [sys.executable, "-S", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    if worker.stdin is not None:
        # A worker that died at once leaves its frames to whoever asks for them.
        with suppress(BrokenPipeError):
            worker.stdin.write(b"".join(_POSITION.pack(frame.position) for frame in frames))
        with suppress(BrokenPipeError):
            worker.stdin.close()
    return worker


def _answer(worker: "subprocess.Popen[bytes]") -> tuple[int, bytes] | None:
    data = worker.stdout.read(_ANSWER.size) if worker.stdout is not None else b""
    if len(data) < _ANSWER.size:
        return None
    position, digest = _ANSWER.unpack(data)
    return position, digest


def serve(path: str) -> None:
    """Be a worker: read positions from standard input to its end, then answer for each in turn."""
    with open(0, "rb", closefd=False) as source, open(1, "wb", buffering=0, closefd=False) as sink:
        wanted = [position for (position,) in _POSITION.iter_unpack(source.read())]
        with suppress(BrokenPipeError):
            _serve(path, wanted, sink)


def _serve(path: str, wanted: Sequence[int], sink: IO[bytes]) -> None:
    mine = set(wanted)
    with PackStore(path) as pack:
        frames = {frame.position: frame for frame in pack.whole_frames() if frame.position in mine}
        for position in wanted:
            digest = _BAD
            with suppress(ProvError, KeyError):
                packed = pack.packed_frame(position)
                if _is_good(packed, frames[position]):
                    digest = _word(packed, frames[position])
            sink.write(_ANSWER.pack(position, digest))
