"""Checksum files: golden bytes, real sha256sum and b3sum in both directions, refusals by line."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.errors import ChecksumFileError, EmptyError, UnsafePathError, UsageError
from provstore.files.checksums import (
    ChecksumLine,
    Style,
    UntaggedAlgorithm,
    format_checksums,
    parse_checksums,
)
from provstore.ids import Digest, digests, object_id

SHA_X = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
"""SHA-256 of the one byte ``x``."""
BLAKE_X = "3ae7d805f6789a6402acb70ad4096a85a56bf6804eaf25c0493ac697548d30b5"
"""BLAKE3 of the one byte ``x``."""

HOSTILE = (
    b"a",
    b" lead",
    b"trail ",
    b"*star",
    b"#hash",
    b"-dash",
    b"tab\there",
    b"back\\slash",
    b"\\first",
    b"last\\",
    b"\\n",
    b"new\nline",
    b"car\rret",
    b"end\r",
    b"\r",
    b"\n",
    b"p) = q",
    b"SHA256 (x) = y",
    b"esc\x1b[31m",
    b"caf\xc3\xa9",
    b"not-utf8-\xff\xfe",
    b"\xef\xbb\xbfbom",
    b"~",
    b"$HOME;`id`",
)

# Written by sha256sum 9.1 and by b3sum 1.2 for files that hold the byte x.
GOLDEN_GNU = (
    (rb"\%s  back\\slash", b"back\\slash"),
    (rb"\%s  new\nline", b"new\nline"),
    (rb"\%s  car\rret", b"car\rret"),
    (b"%s   lead", b" lead"),
    (b"%s  *star", b"*star"),
    (b"%s  #hash", b"#hash"),
    (b"%s  tab\there", b"tab\there"),
    (b"%s  not-utf8-\xff", b"not-utf8-\xff"),
)
GOLDEN_TAG = (
    (rb"\SHA256 (back\\slash) = %s", b"back\\slash"),
    (rb"\SHA256 (new\nline) = %s", b"new\nline"),
    (b"SHA256 (p) = q) = %s", b"p) = q"),
    (b"SHA256 ( lead) = %s", b" lead"),
)
GOLDEN_B3SUM = (
    (rb"\%s  back\\slash", b"back\\slash"),
    (rb"\%s  new\nline", b"new\nline"),
    (b"%s   lead", b" lead"),
    (b"%s  *star", b"*star"),
    (b"%s  #hash", b"#hash"),
)
# By the source of b3sum 1.8, which also escapes CR and knows a tag.
GOLDEN_B3SUM_NEW = (
    (rb"\%s  car\rret", b"car\rret"),
    (rb"\BLAKE3 (car\rret) = %s", b"car\rret"),
    (b"BLAKE3 (p) = q) = %s", b"p) = q"),
)


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed; this test proves that our files and its files agree")
    return found


def run(argv: list[str], cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, check=False, timeout=60)


def plant(root: Path, names: Iterable[bytes]) -> dict[bytes, bytes]:
    """Write one file per name, each with other content; return what is in each."""
    root.mkdir()
    content = {name: b"content %d" % number for number, name in enumerate(names)}
    for name, data in content.items():
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(data)
    return content


def lines_of(content: dict[bytes, bytes], algorithm: UntaggedAlgorithm) -> list[ChecksumLine]:
    return [
        ChecksumLine(name, Digest(algorithm, getattr(digests(data), algorithm)))
        for name, data in content.items()
    ]


@pytest.mark.parametrize(
    ("golden", "digits", "algorithm"),
    [
        (GOLDEN_GNU, SHA_X, "sha256"),
        (GOLDEN_TAG, SHA_X, None),
        (GOLDEN_B3SUM, BLAKE_X, "blake3"),
        (GOLDEN_B3SUM_NEW, BLAKE_X, "blake3"),
    ],
)
def test_golden_lines_are_read(
    golden: tuple[tuple[bytes, bytes], ...], digits: str, algorithm: UntaggedAlgorithm | None
) -> None:
    for line, name in golden:
        (found,) = parse_checksums(line % digits.encode() + b"\n", "x.sum", algorithm)
        assert found.name == name
        assert found.digest.raw.hex() == digits
        assert found.digest.algorithm == ("sha256" if digits == SHA_X else "blake3")
        assert found.line == 1


@pytest.mark.parametrize(
    ("golden", "digits", "style"),
    [
        (GOLDEN_GNU, SHA_X, "gnu"),
        (GOLDEN_TAG, SHA_X, "bsd"),
        (GOLDEN_B3SUM, BLAKE_X, "b3sum"),
        (GOLDEN_B3SUM_NEW[:1], BLAKE_X, "b3sum"),
        (GOLDEN_B3SUM_NEW[1:], BLAKE_X, "bsd"),
    ],
)
def test_golden_lines_are_written(golden: tuple[tuple[bytes, bytes], ...], digits: str, style: Style) -> None:
    algorithm: UntaggedAlgorithm = "sha256" if digits == SHA_X else "blake3"
    for line, name in golden:
        written = format_checksums([ChecksumLine(name, Digest(algorithm, bytes.fromhex(digits)))], style)
        assert written == line % digits.encode() + b"\n"


@pytest.mark.parametrize("style", ["gnu", "bsd"])
def test_sha256sum_accepts_our_file(tmp_path: Path, style: Style) -> None:
    content = plant(tmp_path / "t", HOSTILE)
    (tmp_path / "ours.sum").write_bytes(format_checksums(lines_of(content, "sha256"), style))
    done = run([program("sha256sum"), "--check", "--strict", "../ours.sum"], tmp_path / "t")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(b": OK\n") == len(HOSTILE)
    Path(tmp_path / "t" / "a").write_bytes(b"changed")
    done = run([program("sha256sum"), "--check", "--quiet", "../ours.sum"], tmp_path / "t")
    assert done.returncode == 1
    assert done.stdout == b"a: FAILED\n"


@pytest.mark.parametrize("options", [[], ["--tag"], ["--binary"], ["--text"]])
def test_we_read_what_sha256sum_writes(tmp_path: Path, options: list[str]) -> None:
    content = plant(tmp_path / "t", HOSTILE)
    names = [os.fsdecode(b"./" + name) for name in HOSTILE]
    done = run([program("sha256sum"), *options, "--", *names], tmp_path / "t")
    assert done.returncode == 0, done.stderr
    found = parse_checksums(done.stdout, "theirs.sum", None if options == ["--tag"] else "sha256")
    assert [(line.name, line.digest.raw) for line in found] == [
        (b"./" + name, hashlib.sha256(data).digest()) for name, data in content.items()
    ]


def test_sha256sum_reads_odd_lines_as_we_do(tmp_path: Path) -> None:
    """Each line that both accept names the same file; what only we refuse is listed here in full."""
    digits = SHA_X.encode()
    (tmp_path / "a").write_bytes(b"x")
    same = [
        b"%s  a" % digits,
        b"%s *a\n" % digits,
        b"%s  a\r\n" % digits,
        b"%s  a\n" % digits.upper(),
        rb"\%s  a" % digits + b"\n",
        b"# comment\n\n\r\n%s  a\n" % digits,
        b"SHA256 (a) = %s\r\n" % digits.upper(),
    ]
    both_refuse = [
        rb"\%s  a\q" % digits,
        rb"\%s  a" % digits + b"\\\n",
        b"%s\n" % digits,
        b"%s \n" % digits,
        b"%s0  a\n" % digits,
        b"%s  a\n" % digits[:63],
        b"z%s  a\n" % digits[1:],
        b"SHA256 (a) = %s \n" % digits,
        b"BLAKE2b (a) = %s\n" % digits,
        b"\xef\xbb\xbf%s  a\n" % digits,
    ]
    only_we_refuse = [
        b"  %s  a\n" % digits,
        b"%s a\n" % digits,
        b"%s\ta\n" % digits,
        b"%s  a\0b\n" % digits,
        b"SHA256(a)= %s\n" % digits,
        b"SHA256 (a)  =  %s\n" % digits,
        b"%s  a\n%s  a\n" % (digits, digits),
        b" # no comment\n%s  a\n" % digits,
    ]
    check = [program("sha256sum"), "--check", "x.sum"]
    for text in same + both_refuse + only_we_refuse:
        (tmp_path / "x.sum").write_bytes(text)
        done = run(check, tmp_path)
        assert (done.returncode == 0) == (text not in both_refuse), (text, done.stdout, done.stderr)
        if text in same:
            assert [line.name for line in parse_checksums(text, "x.sum", "sha256")] == [b"a"]
        else:
            with pytest.raises(ChecksumFileError):
                parse_checksums(text, "x.sum", "sha256")


def b3sum_checks_our_file(b3sum: str, root: Path) -> None:
    """Let a real b3sum check our file and read its own; needs it installed."""
    utf8 = [name for name in HOSTILE if b"\xff" not in name]
    (root / "cr\r").write_bytes(b"x")
    escapes_cr = run([b3sum, "cr\r"], root).stdout.startswith(b"\\")
    names = [name for name in utf8 if escapes_cr or b"\r" not in name]
    content = plant(root / "t", names)
    (root / "ours.sum").write_bytes(format_checksums(lines_of(content, "blake3"), "b3sum"))
    done = run([b3sum, "--check", "../ours.sum"], root / "t")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(b": OK\n") == len(names)
    (root / "t" / "a").write_bytes(b"changed")
    assert run([b3sum, "--check", "../ours.sum"], root / "t").returncode == 1
    (root / "t" / "a").write_bytes(content[b"a"])
    done = run([b3sum, "--", *(os.fsdecode(name) for name in names)], root / "t")
    found = parse_checksums(done.stdout, "theirs.sum", "blake3")
    assert [(line.name, line.digest.raw) for line in found] == [
        (name, object_id(data)) for name, data in content.items()
    ]


def test_b3sum_agrees(tmp_path: Path) -> None:
    """With b3sum installed both directions are run; the golden lines above hold in any case."""
    b3sum = shutil.which("b3sum")
    if b3sum is not None:
        b3sum_checks_our_file(b3sum, tmp_path)
    assert object_id(b"x").hex() == BLAKE_X
    text = b"".join(line % BLAKE_X.encode() + b"\n" for line, _ in GOLDEN_B3SUM)
    found = parse_checksums(text, "x.sum", "blake3")
    assert [line.name for line in found] == [name for _, name in GOLDEN_B3SUM]
    assert format_checksums(found, "b3sum") == text


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (b"%s  a\n%s  a\n", 2, "same digest, first on line 1"),
        (b"%s  a\n\n# c\nSHA256 (a) = 0%.63s\n", 4, "another digest, first on line 1"),
        (b"%s  a\nBLAKE3 (a) = %s\n", 2, "another digest"),
        (b"%s  a\n%s  \n", 2, "empty name"),
        (b"%s  a\n%s  \r\n", 2, "empty name"),
        (b"%s  a\nSHA256 () = %s\n", 2, "empty name"),
        (b"%s  a\n%s  b\0c\n", 2, "NUL"),
        (b"%s  a\n\\%s  b\\qc\n", 2, "backslash before q"),
        (b"%s  a\n\\%s  b\\\n", 2, "the end of the name"),
        (b"%s  a\n\\%s  b\\x\n", 2, "backslash before x"),
        (b"%s  a\n%s\tb\n", 2, "needs a blank"),
        (b"%s  a\n%s b\n", 2, "needs a blank"),
        (b"%s  a\n%.63s  b\n", 2, "63 hex digits"),
        (b"%s  a\n%s0  b\n", 2, "65 hex digits"),
        (b"%s  a\n %s  b\n", 2, "0 hex digits"),
        (b"%s  a\nMD5 (b) = %.32s\n", 2, "tag MD5 is unknown"),
        (b"%s  a\nSHA256 (b) = %.62s\n", 2, "62 hex digits"),
        (b"%s  a\nSHA256 (b) %s\n", 2, "tagged line"),
        (b"%s  a\n\x1b[2Jhello %s\n", 2, r"0 hex digits where 64 are needed: \x1b[2Jhello"),
    ],
)
def test_bad_line_is_named(text: bytes, line: int, reason: str) -> None:
    digits = SHA_X.encode()
    with pytest.raises(ChecksumFileError) as caught:
        parse_checksums(text % (digits, digits), "some.sum", "sha256")
    assert caught.value.line == line
    assert reason in caught.value.reason
    assert str(caught.value).startswith(f"some.sum:{line}: ")
    assert "\x1b" not in str(caught.value)


def test_algorithm_of_untagged_lines_is_the_callers() -> None:
    digits = SHA_X.encode()
    text = b"%s  a\nBLAKE3 (b) = %s\nSHA256 (c) = %s\n" % (digits, digits, digits)
    found = parse_checksums(text, "x", "blake3")
    assert [line.digest.algorithm for line in found] == ["blake3", "blake3", "sha256"]
    with pytest.raises(ChecksumFileError, match="x:1: has no tag"):
        parse_checksums(text, "x")
    with pytest.raises(ChecksumFileError, match="marker"):
        parse_checksums(b"%s *a\n" % digits, "x", "blake3")


@pytest.mark.parametrize("text", [b"", b"\n", b"\r\n\n", b"# only a comment\n", b"#%s  a" % SHA_X.encode()])
def test_nothing_listed_is_an_error(text: bytes) -> None:
    with pytest.raises(EmptyError, match=r"^z\.sum: 0 members checked$"):
        parse_checksums(text, "z.sum", "sha256")


def test_writer_refuses_what_it_cannot_state() -> None:
    sha = Digest("sha256", bytes(32))
    styles: list[tuple[Digest, Style]] = [
        (sha, "b3sum"),
        (Digest("blake3", bytes(32)), "gnu"),
        (Digest("git", bytes(20)), "bsd"),
    ]
    for digest, style in styles:
        with pytest.raises(UsageError, match=f"a {digest.algorithm} digest has no line in style {style}"):
            format_checksums([ChecksumLine(b"a", digest)], style)
    for name in (b"", b"a\0b"):
        with pytest.raises(UnsafePathError):
            format_checksums([ChecksumLine(name, sha)])
    with pytest.raises(UnsafePathError, match="twice"):
        format_checksums([ChecksumLine(b"a", sha), ChecksumLine(b"a", sha)])
    with pytest.raises(EmptyError):
        format_checksums([])


NAMES = st.lists(
    st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name), min_size=1, unique=True
)


@given(names=NAMES, tail=st.booleans(), crlf=st.booleans())
def test_any_names_come_back(names: list[bytes], tail: bool, crlf: bool) -> None:
    styles: list[tuple[Style, UntaggedAlgorithm]] = [
        ("gnu", "sha256"),
        ("bsd", "blake3"),
        ("b3sum", "blake3"),
    ]
    for style, algorithm in styles:
        lines = [
            ChecksumLine(name, Digest(algorithm, object_id(name)), number)
            for number, name in enumerate(names, start=1)
        ]
        text = format_checksums(lines, style)
        if crlf:
            text = text.replace(b"\n", b"\r\n")
        if tail:
            text = text[:-1]
        assert list(parse_checksums(text, "x", None if style == "bsd" else algorithm)) == lines


PIECES = st.sampled_from(
    [
        SHA_X.encode(),
        SHA_X.encode().upper(),
        b" ",
        b"  ",
        b" *",
        b"\\",
        b"n",
        b"q",
        b"\r",
        b"\n",
        b"#",
        b"SHA256 (",
        b") = ",
        b"a",
    ]
)


@given(
    pieces=st.lists(PIECES | st.binary(max_size=3), max_size=12),
    algorithm=st.sampled_from([None, "sha256", "blake3"]),
)
def test_any_bytes_give_lines_that_come_back_or_an_error_of_ours(
    pieces: list[bytes], algorithm: UntaggedAlgorithm | None
) -> None:
    try:
        found = parse_checksums(b"".join(pieces), "x", algorithm)
    except (ChecksumFileError, EmptyError):
        return
    again = parse_checksums(format_checksums(found, "bsd"), "x")
    assert [(line.name, line.digest) for line in again] == [(line.name, line.digest) for line in found]


def test_every_line_of_the_sealed_evidence_holds(corpus: Path) -> None:
    (packet,) = corpus.glob("b70-lab/repro/*/evidence/record-run.sha256")
    found = parse_checksums(packet.read_bytes(), "record-run.sha256", "sha256")
    assert len(found) == 39
    for name, digest, _ in found:
        assert hashlib.sha256((packet.parent / os.fsdecode(name)).read_bytes()).digest() == digest.raw
    assert format_checksums(found) == packet.read_bytes()
