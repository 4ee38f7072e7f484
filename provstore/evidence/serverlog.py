"""Server logs, streamed: lines that hold a marker become facts, in memory that does not grow with the log.

What to look for is data of the caller: a marker, which is found by a plain byte search over whole chunks, and
a regular expression with named groups that is applied only to the lines that hold the marker.
"""

import re
import time
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from provstore.errors import MalformedError
from provstore.evidence import expressions
from provstore.evidence.finding import Extraction, ReaderResult, quoted

MAX_LINE_BYTES: Final = 1 << 20
"""Longest line that is kept whole while its end is looked for."""

MAX_MATCHED_BYTES: Final = 32 << 10
"""Longest line that a pattern is applied to."""

MAX_APPLIED: Final = 10_000
"""Lines that one pattern is applied to; after them only lines with its marker are counted."""

MAX_CHUNK: Final = 4 << 20
"""Most bytes that are searched at once."""

MAX_WORK: Final = 4_000_000_000
"""Sum of the squared lengths of the lines that one pattern is applied to; it bounds the time of a pattern
that looks from every place of a line to its end."""

MAX_TEXT: Final = 400
"""Characters of the matched text that a fact keeps."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,15}")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_REPEATED: Final = re.compile(r"[*+]|\{[0-9]*,?[0-9]*\}")
_CHOICE: Final = re.compile(r"[*+?|]|\{[0-9]*,[0-9]*\}")


class LinePattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to look for in a log.

    Attributes:
        name: second part of the keys of its facts.
        marker: text that a line must hold; compared byte by byte.
        pattern: regular expression that is searched in such a line; empty when the marker is enough.
        integers: named groups whose text is an integer.

    Raises:
        MalformedError: an empty marker, a bad expression, or one that can take exponential time.
    """

    name: str
    marker: str
    pattern: str = ""
    integers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"line pattern {self.name[:80]!r}"
        if not _NAME.fullmatch(self.name):
            raise MalformedError(where, "its name must be lower-case letters, digits, _ or -")
        if not self.marker or "\n" in self.marker:
            raise MalformedError(where, "its marker must be text within one line")
        groups = self.compiled().groupindex if self.pattern else ()
        missing = set(self.integers) - set(groups)
        if missing:
            raise MalformedError(where, f"no group is named {', '.join(sorted(missing))}")
        if takes_exponential_time(self.pattern):
            raise MalformedError(where, "a repeated group must not hold another repetition or a choice")

    def compiled(self) -> Any:
        """Return the compiled expression, whose search takes a timeout."""
        where = f"line pattern {self.name!r}"
        try:
            text = (self.pattern or re.escape(self.marker)).encode()
        except UnicodeEncodeError as error:
            raise MalformedError(where, f"no regular expression: {error}") from error
        return expressions.compiled(text, where)


class _Counts:
    """Numbers of one pattern: lines with its marker, and matches."""

    __slots__ = ("closed", "compiled", "left_s", "lines", "marker", "matches", "pattern", "work")

    def __init__(self, pattern: LinePattern) -> None:
        self.pattern = pattern
        self.marker = pattern.marker.encode()
        self.compiled = pattern.compiled()
        self.lines = 0
        self.matches = 0
        self.work = 0
        self.left_s = expressions.SEARCH_S
        self.closed = ""


class LogScanner:
    r"""Scans a log chunk by chunk.

    Facts of every match: ``log.NAME`` (the matched text) and ``log.NAME.GROUP`` for each named group that
    took part, all with the line's location. Facts of the whole log: ``log#lines``, ``log#bytes``, and for
    each pattern ``log.NAME#lines`` (lines that hold the marker) and ``log.NAME#matches``, which is absent
    when there were too many to look at.

    Args:
        patterns: what to look for; names must differ.

    Example:
        >>> rank = r"rank (?P<rank>\d+)"
        >>> scanner = LogScanner(
        ...     [LinePattern(name="ready", marker="ready:", pattern=rank, integers=("rank",))]
        ... )
        >>> scanner.feed(b"ready: rank 1\nother\nrea"); scanner.feed(b"dy: rank 0\n")
        >>> [(f.key, f.value, f.location) for f in scanner.finish().facts if f.key == "log.ready.rank"]
        [('log.ready.rank', 1, 'line 1'), ('log.ready.rank', 0, 'line 3')]
    """

    def __init__(self, patterns: Iterable[LinePattern]) -> None:
        self._all = [_Counts(pattern) for pattern in patterns]
        names = [counts.pattern.name for counts in self._all]
        if len(set(names)) != len(names):
            raise MalformedError("line patterns", "two of them have one name")
        self._out = Extraction()
        self._rest = b""
        self._skipping = False
        self._bytes = 0
        self._lines = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk, of any size; 256 KiB to 4 MiB are fast."""
        for at in range(0, len(chunk), MAX_CHUNK):
            self._feed(chunk if len(chunk) <= MAX_CHUNK else chunk[at : at + MAX_CHUNK])

    def _feed(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        end = chunk.rfind(b"\n") + 1
        if self._skipping:
            start = chunk.find(b"\n") + 1
            if not start:
                return
            self._skipping = False
            self._lines += 1
            chunk, end = chunk[start:], end - start
        if not end:
            self._keep(self._rest + chunk)
            return
        # Only the line that began in an earlier chunk is joined, so the chunk itself is never copied.
        first = chunk.find(b"\n") + 1 if self._rest else 0
        if first:
            self._scan(self._rest + chunk[:first], 0, len(self._rest) + first)
        self._scan(chunk, first, end)
        self._rest = b""
        self._keep(chunk[end:])

    def finish(self) -> ReaderResult:
        """Return all facts and findings; the scanner must not be used afterwards."""
        out = self._out
        if self._rest:
            self._scan(self._rest + b"\n", 0, len(self._rest) + 1)
        if self._rest or self._skipping:
            place = f"line {self._lines + self._skipping}"
            out.finding("no-final-newline", place, "the log may be cut short", "warning")
            self._lines += self._skipping
        if not self._bytes:
            out.finding("empty", "", "the log is empty", "unknown")
        for counts in self._all:
            name = counts.pattern.name
            out.fact(f"log.{name}#lines", counts.lines)
            if counts.closed:
                message = f"not applied after {counts.closed}; {counts.lines} lines hold its marker"
                out.finding("too-many-matches", "", f"pattern {quoted(name)}: {message}")
            else:
                out.fact(f"log.{name}#matches", counts.matches)
        out.fact("log#lines", self._lines)
        out.fact("log#bytes", self._bytes)
        return out.result()

    def _keep(self, rest: bytes) -> None:
        if len(rest) <= MAX_LINE_BYTES:
            self._rest = rest
            return
        place = f"line {self._lines + 1}"
        held = [counts.pattern.name for counts in self._all if counts.marker in rest]
        message = f"longer than {MAX_LINE_BYTES} bytes, not read; markers in its beginning: {held or 'none'}"
        self._out.finding("line-too-long", place, message, "error" if held else "warning")
        self._rest = b""
        self._skipping = True

    def _scan(self, block: bytes, start: int, end: int) -> None:
        """Look at the whole lines of ``block[start:end]``."""
        hits: list[tuple[int, int, _Counts]] = []
        for order, counts in enumerate(self._all):
            marker = counts.marker
            here = block.find(marker, start, end)
            while here >= 0:
                hits.append((here, order, counts))
                line_end = block.find(b"\n", here, end)
                here = block.find(marker, line_end + 1, end)
        hits.sort(key=lambda hit: hit[:2])
        counted, line = start, self._lines + 1
        for here, _, counts in hits:
            begin = block.rfind(b"\n", start, here) + 1 or start
            line += block.count(b"\n", counted, begin) if begin > counted else 0
            counted = max(counted, begin)
            self._match(counts, block[begin : block.find(b"\n", here, end)], line)
        self._lines = line - 1 + block.count(b"\n", counted, end)

    def _match(self, counts: _Counts, raw: bytes, number: int) -> None:
        counts.lines += 1
        if counts.closed:
            return
        place = f"line {number}"
        name = counts.pattern.name
        if len(raw) > MAX_MATCHED_BYTES:
            self._out.finding("line-too-long", place, f"holds the marker of {quoted(name)}; {len(raw)} bytes")
            return
        counts.work += len(raw) ** 2
        if counts.work > MAX_WORK or counts.lines > MAX_APPLIED:
            counts.closed = f"{counts.lines - 1} lines, {counts.matches} of them matches"
            return
        began = time.process_time()
        try:
            found = counts.compiled.search(raw.removesuffix(b"\r"), timeout=max(counts.left_s, 0.001))
        except TimeoutError:
            counts.closed = (
                f"{counts.lines - 1} lines, {counts.matches} of them matches, in the time there is"
            )
            return
        counts.left_s -= time.process_time() - began
        if found is None:
            message = f"holds the marker of {quoted(name)} and does not match its pattern: {quoted(raw)}"
            self._out.finding("marker-without-match", place, message)
            return
        counts.matches += 1
        self._out.fact(f"log.{name}", found[0].decode("utf-8", "backslashreplace")[:MAX_TEXT], place)
        for group, value in found.groupdict().items():
            if value is not None:
                self._group(counts.pattern, group, value, place)

    def _group(self, pattern: LinePattern, group: str, value: bytes, place: str) -> None:
        key = f"log.{pattern.name}.{group}"
        try:
            text = value.decode()
        except UnicodeDecodeError:
            self._out.finding("not-utf8", place, f"{key} is not valid UTF-8: {quoted(value)}")
            return
        if group not in pattern.integers:
            self._out.fact(key, text, place)
        elif _INTEGER.fullmatch(text):
            self._out.fact(key, int(text), place)
        else:
            self._out.finding("wrong-type", place, f"{key} must be an integer, is {quoted(text)}")


def scan_log(chunks: Iterable[bytes], patterns: Iterable[LinePattern]) -> ReaderResult:
    r"""Scan a whole log; see :class:`LogScanner`.

    Example:
        >>> result = scan_log([b"a\nstop\n"], [LinePattern(name="stop", marker="stop")])
        >>> [(f.key, f.value) for f in result.facts if not f.location]
        [('log.stop#lines', 1), ('log.stop#matches', 1), ('log#lines', 2), ('log#bytes', 7)]
    """
    scanner = LogScanner(patterns)
    for chunk in chunks:
        scanner.feed(chunk)
    return scanner.finish()


def takes_exponential_time(pattern: str) -> bool:
    r"""Say whether a group that is repeated holds a repetition or a choice itself.

    Both give one text several ways to fit, and their number may double with each round. It says so of a few
    harmless expressions too; those can be written without the group.

    Example:
        >>> [takes_exponential_time(text) for text in (r"(a+)+b", r"(?:aa|a)*b", r"(a|b) \d+")]
        [True, True, False]
    """
    stack: list[bool] = []
    inner = False
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 2
            continue
        if char == "[":
            at = _class_end(pattern, at)
            continue
        if char == "(":
            stack.append(inner)
            inner = False
            at += 1 if pattern[at + 1 : at + 2] == "?" else 0
        elif char == ")" and stack:
            repeated = bool(_REPEATED.match(pattern, at + 1))
            if repeated and inner:
                return True
            inner = stack.pop() or inner or repeated
        elif _CHOICE.match(pattern, at):
            inner = True
        at += 1
    return False


def _class_end(pattern: str, at: int) -> int:
    """Return the index after the ``]`` of a character class that begins at ``at``."""
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    at += 1 if pattern[at : at + 1] == "]" else 0
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
