"""The one place that writes to the terminal: answers on stdout, everything else on stderr."""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple, NoReturn

from provstore.errors import InputOutputError, ProvError

Buffer = bytes | bytearray | memoryview
"""Bytes that can be written without a copy."""

_COLOURS: Final = {
    "PASS": "\x1b[32m",
    "FAIL": "\x1b[31m",
    "INELIGIBLE": "\x1b[31m",
    "INCOMPLETE": "\x1b[33m",
    "UNKNOWN": "\x1b[33m",
    "WARN": "\x1b[33m",
}
_BATCH: Final = 500
"""Lines or checks that are written at once."""

_RESET: Final = "\x1b[0m"

_CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)
} | {code: f"\\u{code:04x}" for code in (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""Reports show names escaped already; this holds for whatever else could reach a terminal."""


class Process:
    """What this process is.

    Attributes:
        alone: it was started for one command and has no other use, so it may go on in a child.
    """

    alone: ClassVar[bool] = False


class Console(NamedTuple):
    """What the options that every command has were set to.

    Attributes:
        store: value of ``--store``.
        json: print one JSON document on stdout and nothing else there.
        quiet: print neither summary nor progress on stderr.
    """

    store: str | None = None
    json: bool = False
    quiet: bool = False

    def with_options(self, store: str | None, json: bool, quiet: bool) -> "Console":
        """Return a console in which options given after the command are added to those before it."""
        return Console(store if store is not None else self.store, self.json or json, self.quiet or quiet)

    def note(self, text: str) -> None:
        """Write a line on stderr, unless told to be quiet."""
        if not self.quiet:
            _write_error(text + "\n")

    def answer(
        self, report: object, lines: Iterable[str], checks: Iterable[object] | None = None
    ) -> NoReturn:
        """Print a report as JSON or as text on stdout, then leave with the exit code it stands for.

        Checks that the report itself does not hold are written into its JSON one by one.
        """
        from typer import Exit

        from provstore.report.exits import exit_code

        code = exit_code(report)
        if self.json:
            write_document(report, checks)
        else:
            write_lines(lines)
        raise Exit(code)


def write_lines(lines: Iterable[str]) -> None:
    """Write text lines on stdout as they come; verdict words are coloured on a terminal."""
    paint = _is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")
    for text in _batches(lines):
        _write(_painted(text) if paint else text)


def _batches(lines: Iterable[str]) -> Iterator[str]:
    batch: list[str] = []
    for line in lines:
        batch.append(line.translate(_CONTROLS).replace("\n", "\\x0a") + "\n")
        if len(batch) >= _BATCH:
            yield "".join(batch)
            batch.clear()
    if batch:
        yield "".join(batch)


def _painted(text: str) -> str:
    words = "|".join(_COLOURS)
    return re.sub(rf"^({words})\b", lambda m: _COLOURS[m[1]] + m[1] + _RESET, text, flags=re.MULTILINE)


def write_document(document: object, checks: Iterable[object] | None = None) -> None:
    """Write one JSON document on stdout, indented, with non-ASCII characters as they are.

    With ``checks``, the document's own list of that name is empty and these are written in it as they come.
    """
    import msgspec

    whole = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    if checks is None:
        write_bytes(whole)
        return
    before, mark, after = whole.partition(b'"checks": []')
    parts = [before + mark[:-1]]
    comma = b""
    for check in checks:
        text = msgspec.json.format(msgspec.json.encode(check), indent=2)
        parts.append(comma + b"\n    " + text.replace(b"\n", b"\n    "))
        comma = b","
        if len(parts) >= _BATCH:
            if not write_bytes(b"".join(parts)):
                return
            parts.clear()
    write_bytes(b"".join(parts) + b"\n  ]" + after if comma else whole)


def write_bytes(data: Buffer) -> bool:
    """Write bytes on stdout; return False when nobody reads them any more.

    Raises:
        InputOutputError: they cannot be written, for example because a disk is full.
    """
    if sys.stdout is None:
        return False
    try:
        sys.stdout.flush()
        left = memoryview(data)
        while left:  # an unbuffered stream may take less than it is given
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _forget(sys.stdout.fileno())
        return False
    except OSError as error:
        _forget(sys.stdout.fileno())
        raise InputOutputError("standard output", error.errno or 0, error.strerror or str(error)) from error
    return True


def _write(text: str) -> bool:
    return write_bytes(text.encode("utf-8", "backslashreplace"))


def _write_error(text: str) -> None:
    put_error(text.translate(_CONTROLS).encode("utf-8", "backslashreplace").decode())


def put_error(text: str) -> None:
    """Write text on stderr as it is; a stderr that takes nothing more changes no answer and no exit code."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _forget(sys.stderr.fileno())


def _forget(descriptor: int) -> None:
    """Point a descriptor whose reader is gone at the void, so that no later flush fails on it."""
    void = os.open(os.devnull, os.O_WRONLY)
    os.dup2(void, descriptor)
    os.close(void)


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return isatty is not None and bool(isatty()) and os.environ.get("TERM") != "dumb"


def refuse(error: ProvError, *, json: bool) -> int:
    """Say what went wrong and what to do, and return the exit code of the error's class."""
    from provstore.report.failures import error_document, error_lines

    for line in error_lines(error):
        _write_error(line + "\n")
    if json:
        with suppress(InputOutputError):  # the exit code is that of the first error
            write_document(error_document(error))
    return error.exit_code
