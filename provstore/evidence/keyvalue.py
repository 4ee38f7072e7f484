"""Text files of ``key=value`` lines: run identity, service environment, status, cleanup, idle summary.

A key that is stated twice has no value: both lines become one finding and no fact.
"""

import re
from typing import Final, NamedTuple

from provstore.evidence.finding import Extraction, ReaderResult, quoted
from provstore.evidence.lines import text_lines

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,14}")
_DIGEST_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_KEY: Final = re.compile(r"[^\s=]+")
_PHASE_LINE: Final = re.compile(r"([A-Za-z][\w-]*)((?: [A-Za-z_][\w-]*=\S*)+)")


class _Pair(NamedTuple):
    value: str
    line: int


def read_identity(data: bytes) -> ReaderResult:
    r"""Read a run identity: ``key=value`` lines, then ``digest  path`` lines without a mark between them.

    Returns:
        A fact ``identity.KEY`` for each pair, and ``identity#file`` with digest and path for each digest
        line; values are text, also those that look like numbers.

    Example:
        >>> data = b"schema=leg-v1\nretries=0\n" + b"0" * 64 + b"  /opt/tools/a=b.py\n"
        >>> for fact in read_identity(data).facts:
        ...     print(fact.location, fact.key, repr(fact.value)[:24])
        line 1 identity.schema 'leg-v1'
        line 2 identity.retries '0'
        line 3 identity#file ('0000000000000000000000
    """
    out = Extraction()
    rest: list[tuple[int, str]] = []
    files: list[tuple[int, str, str]] = []
    for number, line in text_lines(data, out):
        match = _DIGEST_LINE.fullmatch(line)
        if match:
            files.append((number, match[1], match[2]))
            continue
        if files:
            out.finding("out-of-order", f"line {number}", "a pair after the digest lines began", "warning")
        rest.append((number, line))
    for key, pair in _pairs(rest, out).items():
        out.fact(f"identity.{key}", pair.value, f"line {pair.line}")
    for number, digest, path in files:
        out.fact("identity#file", (digest, path), f"line {number}")
    return out.result()


def read_environment(data: bytes) -> ReaderResult:
    r"""Read an environment that was written down as one ``KEY=value`` line for each variable.

    Returns:
        A fact ``env.KEY`` for each variable; an empty value is the empty text, not absence.

    Example:
        >>> [(f.key, f.value) for f in read_environment(b"LANG=C\nLD_PRELOAD=\nX=a=b\n").facts]
        [('env.LANG', 'C'), ('env.LD_PRELOAD', ''), ('env.X', 'a=b')]
    """
    return _texts(data, "env")


def read_status(data: bytes) -> ReaderResult:
    r"""Read a status file, one ``status=WORD`` line.

    Returns:
        ``status.status`` and the number of clean lines, ``status#lines``.

    Example:
        >>> read_status(b"status=PASS\n").value("status.status")
        'PASS'
    """
    return _texts(data, "status", count=True)


def read_cleanup(data: bytes) -> ReaderResult:
    r"""Read exit codes, one ``name=integer`` line each.

    Returns:
        An integer fact ``cleanup.NAME`` for each line and ``cleanup#lines``; what is no integer is a finding.

    Example:
        >>> read_cleanup(b"stop_status=0\nidle_status=00\n").findings[0].code
        'wrong-type'
    """
    out = Extraction()
    lines = list(text_lines(data, out))
    for key, pair in _pairs(lines, out).items():
        if _INTEGER.fullmatch(pair.value):
            out.fact(f"cleanup.{key}", int(pair.value), f"line {pair.line}")
        else:
            out.finding("wrong-type", f"line {pair.line}", f"must be an integer, is {quoted(pair.value)}")
    out.fact("cleanup#lines", len(lines))
    return out.result()


def read_idle_summary(data: bytes) -> ReaderResult:
    r"""Read an idle summary, one ``PHASE name=integer name=integer`` line for each phase.

    Returns:
        Facts ``idle_summary.phase`` and ``idle_summary.NAME`` of each line, all with the line's location, so
        that a phase stated twice is two facts; and ``idle_summary#lines``.

    Example:
        >>> result = read_idle_summary(b"prestart elapsed_seconds=73 snapshots=13\n")
        >>> [(f.key, f.value) for f in result.facts][:2]
        [('idle_summary.phase', 'prestart'), ('idle_summary.elapsed_seconds', 73)]
    """
    out = Extraction()
    lines = list(text_lines(data, out))
    for number, line in lines:
        place = f"line {number}"
        match = _PHASE_LINE.fullmatch(line)
        if not match:
            out.finding("malformed-line", place, f"no phase with name=integer pairs: {quoted(line)}")
            continue
        out.fact("idle_summary.phase", match[1], place)
        seen: set[str] = set()
        for part in match[2].split():
            key, _, value = part.partition("=")
            if key in seen:
                out.finding("duplicate-key", place, f"{quoted(key)} is stated twice in one line")
            elif _INTEGER.fullmatch(value):
                out.fact(f"idle_summary.{key}", int(value), place)
            else:
                out.finding("wrong-type", place, f"{quoted(part)} must be an integer")
            seen.add(key)
    out.fact("idle_summary#lines", len(lines))
    return out.result()


def _texts(data: bytes, name: str, *, count: bool = False) -> ReaderResult:
    out = Extraction()
    lines = list(text_lines(data, out))
    for key, pair in _pairs(lines, out).items():
        out.fact(f"{name}.{key}", pair.value, f"line {pair.line}")
    if count:
        out.fact(f"{name}#lines", len(lines))
    return out.result()


def _pairs(lines: list[tuple[int, str]], out: Extraction) -> dict[str, _Pair]:
    """Return each key that is stated once; add findings for the lines that state none or one again."""
    found: dict[str, _Pair] = {}
    repeated: dict[str, list[int]] = {}
    for number, line in lines:
        key, sign, value = line.partition("=")
        if not sign or not _KEY.fullmatch(key):
            out.finding("malformed-line", f"line {number}", f"no key=value: {quoted(line)}")
        elif key in found:
            repeated.setdefault(key, []).append(number)
        else:
            found[key] = _Pair(value, number)
    for key, numbers in repeated.items():
        first = found.pop(key).line
        message = f"{quoted(key)} is stated on line {first} and again, so it has no value"
        for number in numbers:
            out.finding("duplicate-key", f"line {number}", message)
    return found
