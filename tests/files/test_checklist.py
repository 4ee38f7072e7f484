"""Checksum files of any length: the same lines and errors as when read at once, and little memory."""

from pathlib import Path

import pytest

from provstore.errors import (
    ChecksumFileError,
    EmptyError,
    InputOutputError,
    MalformedError,
    ProvError,
    SourceChangedError,
)
from provstore.files import checklist
from provstore.files.checklist import CheckList
from provstore.files.checksums import parse_checksums
from provstore.ids import digests

A, B = b"a" * 64, b"b" * 64

FILES = {
    "plain": A + b"  x\n" + B + b" *y\n",
    "no end": A + b"  x\n" + B + b"  y",
    "blank and comment": b"# c\n\n" + A + b"  x\r\n\n",
    "escaped": b"\\" + A + b"  a\\nb\n" + B + b"  a\\nb\n",
    "tagged": b"BLAKE3 (x) = " + A + b"\nSHA256 (y) = " + B + b"\n",
    "bad": A + b"  x\n" + b"what\n" + B + b"  x\n",
    "twice": A + b"  x\n" + B + b"  y\n" + A + b"  x\n" + b"what\n",
    "twice, other": A + b"  x\n" + B + b"  x\n",
    "nul": A + b"  x\0y\n",
    "nothing": b"\n#\n",
    "empty": b"",
}


def outcome(read: object) -> object:
    try:
        return read() if callable(read) else None
    except ProvError as error:
        return type(error), error.message


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_it_is_read_as_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, block_bytes: int
) -> None:
    monkeypatch.setattr(checklist, "_BLOCK_BYTES", block_bytes)
    path = tmp_path / "x.sum"
    path.write_bytes(FILES[name])
    where = str(path)
    at_once = outcome(lambda: parse_checksums(FILES[name], where, "sha256"))
    by_lines = outcome(lambda: tuple(CheckList(where.encode(), "sha256")))
    assert by_lines == at_once


def test_it_knows_its_own_digests_and_gives_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "x.sum").write_bytes(FILES["plain"])
    lines = CheckList(bytes(tmp_path / "x.sum"), "sha256")
    assert (lines.count, lines.digests) == (2, digests(FILES["plain"]))
    parts: list[bytes] = []
    lines.copy(lambda part: parts.append(bytes(part)))
    assert b"".join(parts) == FILES["plain"]


def test_names_of_one_mark_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checklist, "_mark", lambda name: 7)
    (tmp_path / "x.sum").write_bytes(FILES["plain"])
    assert [line.name for line in CheckList(bytes(tmp_path / "x.sum"), "sha256")] == [b"x", b"y"]
    (tmp_path / "x.sum").write_bytes(FILES["twice"])
    with pytest.raises(ChecksumFileError, match="listed twice"):
        CheckList(bytes(tmp_path / "x.sum"), "sha256")


def test_a_list_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.sum"
    path.write_bytes(FILES["plain"])
    lines = CheckList(bytes(path), "sha256")
    path.write_bytes(FILES["plain"] + A + b"  z\n")
    with pytest.raises(SourceChangedError):
        list(lines)
    with pytest.raises(SourceChangedError):
        lines.copy(len)


def test_lists_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputOutputError):
        CheckList(bytes(tmp_path))
    (tmp_path / "e").touch()
    with pytest.raises(EmptyError):
        CheckList(bytes(tmp_path / "e"))
    (tmp_path / "x.sum").write_bytes(FILES["plain"])
    monkeypatch.setattr(checklist, "MAX_LIST_BYTES", 100)
    with pytest.raises(MalformedError, match="larger"):
        CheckList(bytes(tmp_path / "x.sum"), "sha256")
