"""Progress on stderr for whatever takes longer than a second."""

import os
import shutil
import sys
import time
from types import TracebackType
from typing import Final, Self

from provstore.cli.console import put_error
from provstore.files.progress import Progress, Reporter
from provstore.paths import show
from provstore.report.text import amount

FIRST_AFTER_S: Final = 1.0
REDRAW_EVERY_S: Final = 0.1
LINE_EVERY_S: Final = 10.0


class ProgressMeter:
    """Shows bytes, rate, remaining time and file: in place on a terminal, else a line now and then.

    Args:
        doing: what is going on, such as ``seal``.
        quiet: show nothing.
    """

    def __init__(self, doing: str, *, quiet: bool) -> None:
        self._doing = doing
        self._quiet = quiet or sys.stderr is None
        self._in_place = not self._quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._next = self._began + (FIRST_AFTER_S if self._in_place else LINE_EVERY_S)
        self._drawn = False

    @property
    def reporter(self) -> Reporter | None:
        """What a verb calls; None when nothing is to be shown."""
        return None if self._quiet else self._report

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            put_error("\r\x1b[K")

    def _report(self, state: Progress) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        text = self._text(state, now - self._began)
        if self._in_place:
            width = max(shutil.get_terminal_size().columns - 1, 20)
            put_error("\r\x1b[K" + text[:width])
            self._next = now + REDRAW_EVERY_S
            self._drawn = True
        else:
            put_error(text + "\n")
            self._next = now + LINE_EVERY_S

    def _text(self, state: Progress, elapsed_s: float) -> str:
        return progress_text(self._doing, state, elapsed_s)


def progress_text(doing: str, state: Progress, elapsed_s: float) -> str:
    """Return one line about a job.

    Example:
        >>> print(progress_text("seal", Progress(500, 1000, 1, 2, b"a.log"), 1.0))
        seal: 500 B of 1.0 kB, 1 of 2 files, 500 B/s, 0:01 left, a.log
    """
    rate = state.bytes_done / elapsed_s if elapsed_s > 0 else 0.0
    parts = [f"{doing}: {amount(state.bytes_done)}"]
    if state.bytes_total is not None:
        parts[0] += f" of {amount(state.bytes_total)}"
    files = f"{state.files_done:,}"
    parts.append(f"{files} files" if state.files_total is None else f"{files} of {state.files_total:,} files")
    parts.append(f"{amount(int(rate))}/s")
    if state.bytes_total is not None and rate > 0:
        left_s = round(max(state.bytes_total - state.bytes_done, 0) / rate)
        parts.append(f"{left_s // 60}:{left_s % 60:02d} left")
    return ", ".join([*parts, show(state.path)])
