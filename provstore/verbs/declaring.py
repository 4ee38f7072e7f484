"""Trees of files that a checksum list declares and nobody has seen, built in little memory.

Lines are sorted by path in runs on disk, so that each directory is finished before the next begins: what is
held is one run, and the directories from the top down to the current one.
"""

import heapq
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final, NamedTuple

from provstore import canon, libraries, merkle
from provstore.errors import CanonError, EmptyError
from provstore.files.checklist import CheckList
from provstore.ids import Digest, RawId
from provstore.paths import check_path, name_fields, show
from provstore.records.tree import TreeEntry, check_entry

RUN_LINES: Final = 100_000
"""Lines that are sorted in memory."""

_LENGTH: Final = struct.Struct("<I")
_TAIL: Final = struct.Struct(">2xI?32s")
"""Behind the path: line number, whether the digest is a SHA-256, the digest. No part of a path is empty, so
the two zeros never occur in one."""


class Declared(NamedTuple):
    """What a list declares: id of the directory, and how many files lie in it."""

    tree: RawId
    files: int


def declare(
    lines: CheckList, prefix: str | None, place: str, add: Callable[[RawId, bytes], object]
) -> Declared:
    """Build the tree of the files that a list names.

    Args:
        lines: the list.
        prefix: only names that begin with it count, without it.
        place: where the spec says so, for errors.
        add: receives each record, the root last.

    Raises:
        EmptyError: no line is about the entry.
        UnsafePathError: a name leaves the entry.
        CanonError: a path lies below another.
    """
    rows = _Sorted()
    try:
        start = os.fsencode(prefix) if prefix else b""
        for line in lines:
            name = line.name.removeprefix(b"./")
            if name.startswith(start):
                path = check_path(name[len(start) :], place)
                tail = _TAIL.pack(line.line, line.digest.algorithm == "sha256", line.digest.raw)
                rows.add(path.replace(b"/", b"\0") + tail)
        if not rows.count:
            raise EmptyError(f"{place}: no line of {lines.where} begins with {prefix!r}")
        return _build(rows, add)
    finally:
        rows.close()


class _Sorted:
    """Rows, sorted at the end; more than one run of them waits on disk."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: list[bytes] = []
        self._runs: list[IO[bytes]] = []

    def add(self, row: bytes) -> None:
        if len(self._rows) == RUN_LINES:
            run = libraries.tempfile.TemporaryFile()
            self._runs.append(run)
            run.writelines(_LENGTH.pack(len(one)) + one for one in sorted(self._rows))
            self._rows = []
        self._rows.append(row)
        self.count += 1

    def __iter__(self) -> Iterator[bytes]:
        return heapq.merge(*map(_rows_of, self._runs), sorted(self._rows))

    def close(self) -> None:
        for run in self._runs:
            run.close()


def _rows_of(run: IO[bytes]) -> Iterator[bytes]:
    run.seek(0)
    while head := run.read(_LENGTH.size):
        yield run.read(_LENGTH.unpack(head)[0])


class _Directory:
    """A directory that is not finished: its name, and its entries so far."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.names: list[bytes] = []
        self.entries: list[bytes] = []

    def put(self, entry: TreeEntry) -> None:
        self.names.append(check_entry(entry))
        self.entries.append(canon.encode(entry, bounded=True))


def _build(rows: Iterable[bytes], add: Callable[[RawId, bytes], object]) -> Declared:
    open_: list[_Directory] = [_Directory(b"")]

    def finish() -> RawId:
        done = open_.pop()
        id = b""
        for id, data in merkle.build_encoded(done.names, done.entries):
            add(id, data)
        if open_:
            text, text_hex = name_fields(done.name)
            open_[-1].put(TreeEntry(kind="directory", name=text, name_hex=text_hex, tree=id.hex()))
        return id

    files = 0
    for path, digest in _last_of_each(rows):
        *parents, name = path
        shared = 0
        while shared < min(len(parents), len(open_) - 1) and open_[shared + 1].name == parents[shared]:
            shared += 1
        while len(open_) - 1 > shared:
            finish()
        for parent in parents[shared:]:
            if open_[-1].names and open_[-1].names[-1] == parent:
                raise CanonError("tree", f"{show(b'/'.join(path))} lies below something that is no directory")
            open_.append(_Directory(parent))
        open_[-1].put(_file(name, digest))
        files += 1
    while len(open_) > 1:
        finish()
    return Declared(finish(), files)


def _last_of_each(rows: Iterable[bytes]) -> Iterator[tuple[list[bytes], Digest]]:
    """Yield path and digest of each path; of two lines that name it in two ways, the later one counts."""
    before: bytes | None = None
    for row in rows:
        if before is not None and before[: -_TAIL.size] != row[: -_TAIL.size]:
            yield _parsed(before)
        before = row
    if before is not None:
        yield _parsed(before)


def _parsed(row: bytes) -> tuple[list[bytes], Digest]:
    _, is_sha256, raw = _TAIL.unpack(row[-_TAIL.size :])
    return row[: -_TAIL.size].split(b"\0"), Digest("sha256" if is_sha256 else "blake3", raw)


def _file(name: bytes, digest: Digest) -> TreeEntry:
    text, text_hex = name_fields(name)
    shown = digest.raw.hex()
    if digest.algorithm == "sha256":
        return TreeEntry(kind="file", name=text, name_hex=text_hex, sha256=shown)
    return TreeEntry(kind="file", name=text, name_hex=text_hex, blake3=shown)
