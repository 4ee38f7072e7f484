r"""Checksum files: the three forms that ``sha256sum`` and ``b3sum`` write, read strictly and written back.

Forms of a line, ended by LF (or by the end of the file):

* GNU: ``<64 hex>``, a blank, a blank or ``*``, the name;
* b3sum: ``<64 hex>``, two blanks, the name. The form does not tell BLAKE3 from SHA-256, so the caller does;
* BSD tag: ``SHA256 (name) = <64 hex>`` or ``BLAKE3 (name) = <64 hex>``; the last ``) = `` ends the name.

A line that begins with ``\`` has an escaped name: ``\\``, ``\n`` and ``\r`` stand for backslash, LF and CR.
Without it every backslash is literal. Names are bytes, and each of them counts, leading blanks included.

Where writers disagree, GNU coreutils (measured with 9.1) decides:

* one CR at the end of a line belongs to the line end; a name that ends in CR needs the escaped form;
* a line that begins with ``#`` is a comment, an empty line is nothing (b3sum refuses both);
* upper-case hex is accepted (b3sum refuses it) and becomes lower case;
* an unknown escape, a lone ``\`` at the end and digits that are not hex make a bad line.

Stricter than coreutils, which only warns about a bad line and goes on: one bad line fails the whole file.
So do a NUL (it would cut the name short), an empty name, a name that is listed twice, blanks before the
digest, and one blank or tab alone between digest and name: its reading there depends on earlier lines.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from provstore.errors import ChecksumFileError, EmptyError, UnsafePathError, UsageError
from provstore.ids import Digest
from provstore.paths import show

UntaggedAlgorithm = Literal["sha256", "blake3"]
"""What the digests of lines without a tag are."""

Style = Literal["gnu", "bsd", "b3sum"]

_UNTAGGED: Final = re.compile(rb"([0-9a-fA-F]{64}) ([ *])(.+)", re.DOTALL)
_TAGGED: Final = re.compile(rb"([A-Za-z0-9/-]+) \((.*)\) = ([0-9a-fA-F]+)", re.DOTALL)
_TAG_START: Final = re.compile(rb"[A-Za-z0-9/-]+ ?\(")
_ESCAPE: Final = re.compile(rb"\\(.?)", re.DOTALL)

_TAGS: Final[dict[bytes, UntaggedAlgorithm]] = {b"SHA256": "sha256", b"BLAKE3": "blake3"}
_LETTERS: Final = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}
_ESCAPED: Final = {b"\\": rb"\\", b"\n": rb"\n", b"\r": rb"\r"}


class ChecksumLine(NamedTuple):
    """One member of a checksum file.

    Attributes:
        name: the name's bytes, unescaped; not yet checked to be a safe path.
        digest: algorithm and raw bytes.
        line: number of the line that states it, from 1; 0 in lines that are only to be written.
    """

    name: bytes
    digest: Digest
    line: int = 0


def parse_checksums(
    data: bytes, where: str, algorithm: UntaggedAlgorithm | None = None
) -> tuple[ChecksumLine, ...]:
    r"""Read a checksum file; see the module for what a line may be.

    Args:
        data: the whole file.
        where: what to name in an error.
        algorithm: what lines without a tag state; with None such lines are refused. A tag always decides for
            its own line. With ``blake3`` the marker ``*`` is refused: no writer of BLAKE3 lines has it.

    Returns:
        The members in the order of the file, each name once.

    Raises:
        ChecksumFileError: the first line that is bad, with its number, or a name listed a second time.
        EmptyError: not one member, only comments and empty lines, or nothing at all.

    Example:
        >>> text = b"\\" + b"0" * 64 + rb"  new\nline" + b"\n"
        >>> parse_checksums(text, "x.sum", "sha256")[0].name
        b'new\nline'
    """
    found: dict[bytes, ChecksumLine] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        for member in parse_line(line, where, number, algorithm):
            refuse_twice(found.get(member.name), member, where)
            found[member.name] = member
    if not found:
        raise EmptyError(where)
    return tuple(found.values())


def parse_line(
    line: bytes, where: str, number: int, algorithm: UntaggedAlgorithm | None
) -> tuple[ChecksumLine, ...]:
    """Return the member that one line without its LF states; none for a comment or an empty line.

    Raises:
        ChecksumFileError: the line is bad.
    """
    line = line.removesuffix(b"\r")
    if not line or line.startswith(b"#"):
        return ()
    return (ChecksumLine(*_parse_line(line, where, number, algorithm), number),)


def refuse_twice(first: ChecksumLine | None, again: ChecksumLine, where: str) -> None:
    """Refuse a member whose name an earlier line has.

    Raises:
        ChecksumFileError: there is an earlier one.
    """
    if first is not None:
        relation = "the same" if first.digest == again.digest else "another"
        name = show(again.name[:200])
        reason = f"{name} is listed twice, with {relation} digest, first on line {first.line}"
        raise ChecksumFileError(where, again.line, reason)


def format_checksums(lines: Iterable[ChecksumLine], style: Style = "gnu") -> bytes:
    r"""Write a checksum file, in the order of ``lines``.

    A name that is not UTF-8 is written as it is. ``sha256sum --check`` and :func:`parse_checksums` read it;
    ``b3sum --check`` stops at such a line, because it has no form for it. An old b3sum (1.2) knows neither
    ``\r`` nor tags.

    Args:
        lines: names and digests; their line numbers are not used.
        style: ``gnu`` needs SHA-256, ``b3sum`` BLAKE3, ``bsd`` takes either and names it on each line.

    Returns:
        The bytes of the file; :func:`parse_checksums` reads the same names and digests out of it.

    Raises:
        UsageError: a digest that the style cannot state.
        UnsafePathError: an empty name, one with NUL, or the same name twice.
        EmptyError: no lines.

    Example:
        >>> line = ChecksumLine(b"a\\b", Digest("sha256", bytes(32)))
        >>> format_checksums([line], "bsd")[:17]
        b'\\SHA256 (a\\\\b) = '
    """
    seen: set[bytes] = set()
    parts: list[bytes] = []
    for name, digest, _ in lines:
        if not name or b"\0" in name:
            raise UnsafePathError(
                "checksum file", f"a name of {len(name)} bytes is empty or holds NUL: no line can state it"
            )
        if name in seen:
            raise UnsafePathError("checksum file", f"{show(name)} would be listed twice")
        seen.add(name)
        parts.append(_format_line(name, digest, style))
    if not parts:
        raise EmptyError("checksum file")
    return b"".join(parts)


def _format_line(name: bytes, digest: Digest, style: Style) -> bytes:
    fits = {"gnu": ("sha256",), "b3sum": ("blake3",), "bsd": ("sha256", "blake3")}[style]
    if digest.algorithm not in fits or len(digest.raw) != 32:
        raise UsageError(f"{show(name)}: a {digest.algorithm} digest has no line in style {style}")
    escaped = re.sub(rb"[\\\n\r]", lambda match: _ESCAPED[match[0]], name)
    lead = b"" if escaped == name else b"\\"
    digits = digest.raw.hex().encode()
    if style == "bsd":
        return lead + digest.algorithm.upper().encode() + b" (" + escaped + b") = " + digits + b"\n"
    return lead + digits + b"  " + escaped + b"\n"


def _parse_line(
    line: bytes, where: str, number: int, algorithm: UntaggedAlgorithm | None
) -> tuple[bytes, Digest]:
    """Return name and digest of one line without its end."""
    if b"\0" in line:
        raise ChecksumFileError(where, number, "holds NUL, which no name can hold")
    escaped = line.startswith(b"\\")
    body = line[1:] if escaped else line
    if tagged := _TAGGED.fullmatch(body):
        tag, name, digits = tagged.groups()
        if tag not in _TAGS:
            raise ChecksumFileError(
                where, number, f"tag {show(tag[:40])} is unknown; known are SHA256 and BLAKE3"
            )
        if len(digits) != 64:
            raise ChecksumFileError(where, number, f"{len(digits)} hex digits where 64 are needed")
        stated = _TAGS[tag]
    elif untagged := _UNTAGGED.fullmatch(body):
        digits, marker, name = untagged.groups()
        if algorithm is None:
            raise ChecksumFileError(
                where, number, "has no tag, so its algorithm has to be stated by the caller"
            )
        if algorithm == "blake3" and marker == b"*":
            raise ChecksumFileError(where, number, "has the marker * of sha256sum where BLAKE3 is expected")
        stated = algorithm
    else:
        raise ChecksumFileError(where, number, _why_bad(body))
    if not name:
        raise ChecksumFileError(where, number, "has an empty name")
    if escaped:
        name = _unescape(name, where, number)
    return name, Digest(stated, bytes.fromhex(digits.decode()))


def _unescape(name: bytes, where: str, number: int) -> bytes:
    def letter(match: re.Match[bytes]) -> bytes:
        if match[1] not in _LETTERS:
            what = show(match[1]) or "the end of the name"
            raise ChecksumFileError(where, number, rf"unknown escape: a backslash before {what}")
        return _LETTERS[match[1]]

    return _ESCAPE.sub(letter, name)


def _why_bad(body: bytes) -> str:
    """Say what keeps a line from being of any form."""
    if body.startswith(b"\xef\xbb\xbf"):
        return "begins with a byte order mark; save the file without it"
    if _TAG_START.match(body):
        return "begins like a tagged line but is not `TAG (name) = <hex>`"
    digits = re.match(rb"[0-9a-fA-F]*", body)
    count = len(digits[0]) if digits else 0
    if count != 64:
        start = show(body[:24])
        return f"begins with {count} hex digits where 64 are needed: {start}"
    rest = body[64:]
    if rest in (b"", b" ", b"  ", b" *"):
        return "has an empty name"
    return "needs a blank and then a blank or * between digest and name"
