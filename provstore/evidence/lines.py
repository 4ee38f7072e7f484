"""Lines of small text files, strictly: one newline ends a line, and nothing about a line is repaired."""

from collections.abc import Iterator
from typing import Final

from provstore.evidence.finding import Extraction, quoted

MAX_TEXT_BYTES: Final = 16 << 20
"""Largest text file that is read whole."""

MAX_LINES: Final = 200_000
"""Most lines of it."""


def text_lines(data: bytes, out: Extraction) -> Iterator[tuple[int, str]]:
    r"""Yield number and text of every line that is clean; add a finding for each other one.

    Not clean are: bytes that are not UTF-8, a NUL, a carriage return, an empty line. A missing newline at
    the end is a warning, a byte order mark an error that is left out of the text.

    Example:
        >>> out = Extraction()
        >>> list(text_lines(b"a=1\n\nb=2", out))
        [(1, 'a=1'), (3, 'b=2')]
        >>> [(f.code, f.location) for f in out.findings()]
        [('no-final-newline', 'line 3'), ('blank-line', 'line 2')]
    """
    if not data:
        out.finding("empty", "", "the file is empty", "unknown")
        return
    if len(data) > MAX_TEXT_BYTES or data.count(b"\n") > MAX_LINES:
        limit = f"limits are {MAX_TEXT_BYTES} bytes and {MAX_LINES} lines"
        out.finding("too-large", "", f"{len(data)} bytes in {data.count(10)} lines; {limit}")
        return
    if data.startswith(b"\xef\xbb\xbf"):
        out.finding("byte-order-mark", "line 1", "the file begins with a byte order mark")
        data = data[3:]
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    else:
        message = "the last line has no newline; the file may be cut short"
        out.finding("no-final-newline", f"line {len(lines)}", message, "warning")
    for number, line in enumerate(lines, 1):
        text = _clean(line, f"line {number}", out)
        if text is not None:
            yield number, text


def _clean(line: bytes, place: str, out: Extraction) -> str | None:
    if not line:
        out.finding("blank-line", place, "an empty line")
    elif b"\0" in line or b"\r" in line:
        code = "nul" if b"\0" in line else "carriage-return"
        out.finding(code, place, f"a control character in {quoted(line)}")
    else:
        try:
            return line.decode()
        except UnicodeDecodeError:
            out.finding("not-utf8", place, f"not valid UTF-8: {quoted(line)}")
    return None
