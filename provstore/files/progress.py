"""How far a long job is, for whoever wants to show it."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """State of a job.

    Attributes:
        bytes_done: bytes that were read or written so far.
        bytes_total: bytes there are in all, or None while that is not known.
        files_done: files that are finished.
        files_total: files there are in all, or None while that is not known.
        path: the file at hand, as bytes.
    """

    bytes_done: int
    bytes_total: int | None
    files_done: int
    files_total: int | None
    path: bytes


Reporter = Callable[[Progress], None]
"""Called often; must be quick."""


class Meter:
    """Adds up work and passes it on.

    Args:
        reporter: who is told, or None.
        bytes_total: bytes there are in all, if known.
        files_total: files there are in all, if known.
    """

    def __init__(
        self, reporter: Reporter | None, bytes_total: int | None = None, files_total: int | None = None
    ) -> None:
        self._reporter = reporter
        self.bytes_total = bytes_total
        self.files_total = files_total
        self.bytes_done = 0
        self.files_done = 0

    def add(self, size_bytes: int, files: int, path: bytes) -> None:
        """Count finished work and report it."""
        self.bytes_done += size_bytes
        self.files_done += files
        if self._reporter is not None:
            self._reporter(
                Progress(self.bytes_done, self.bytes_total, self.files_done, self.files_total, path)
            )
