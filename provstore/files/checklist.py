"""Checksum files of any length: checked as a whole first, then given line by line, in little memory."""

import errno
from array import array
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from blake3 import blake3

from provstore.errors import EmptyError, InputOutputError, MalformedError, SourceChangedError
from provstore.files.checksums import ChecksumLine, UntaggedAlgorithm, parse_line, refuse_twice
from provstore.files.hashing import open_regular
from provstore.ids import Buffer, Digests, TwinHasher
from provstore.paths import show

MAX_LIST_BYTES: Final = 256 << 20
"""Largest checksum file: two million lines of usual length."""

_BLOCK_BYTES: Final = 1 << 20


class CheckList:
    """A checksum file whose every line was found good, and no name twice; see ``checksums`` for the rules.

    Args:
        path: the file; it is read again by whoever iterates, and must not change meanwhile.
        algorithm: what lines without a tag state; see :func:`~provstore.files.checksums.parse_checksums`.

    Attributes:
        where: shown form of the path.
        digests: of the whole file.
        count: number of members.

    Raises:
        ChecksumFileError: the first line that is bad, or a name listed a second time.
        EmptyError: not one member.
        MalformedError: it is larger than :data:`MAX_LIST_BYTES`.
        InputOutputError: it cannot be read, or is no regular file.
    """

    def __init__(self, path: bytes, algorithm: UntaggedAlgorithm | None = None) -> None:
        self._path = path
        self._algorithm = algorithm
        self.where = show(path)
        self.count = 0
        # Eight bytes stand for each name; where two are equal, the names themselves are looked at.
        marks = array("Q")
        twin = TwinHasher()
        try:
            for line in self._lines(twin.update):
                marks.append(_mark(line.name))
        finally:
            self._refuse_twice(marks)
        self.count = len(marks)
        self.digests: Digests = twin.digests()
        if not marks:
            raise EmptyError(self.where)

    def _refuse_twice(self, marks: "array[int]") -> None:
        suspects = {x for x, y in pairwise(sorted(marks)) if x == y}
        seen: dict[bytes, ChecksumLine] = {}
        # Up to the line where reading stopped: what comes first in the file is told first.
        lines = self._lines() if suspects else iter(())
        for line, _ in zip(lines, marks, strict=False):
            if _mark(line.name) in suspects:
                refuse_twice(seen.get(line.name), line, self.where)
                seen[line.name] = line

    def __iter__(self) -> Iterator[ChecksumLine]:
        """Yield the members in the order of the file.

        Raises:
            SourceChangedError: it is not what it was, at the end at the latest.
        """
        twin = TwinHasher()
        yield from self._lines(twin.update)
        self._require(twin.digests())

    def copy(self, write: Callable[[Buffer], object]) -> None:
        """Give the bytes of the file to ``write``; they are those that were checked when this returns.

        Raises:
            SourceChangedError: it is not what it was.
        """
        twin = TwinHasher()
        for block in self._blocks():
            twin.update(block)
            write(block)
        self._require(twin.digests())

    def _require(self, found: Digests) -> None:
        if found != self.digests:
            raise SourceChangedError(self.where, ["content"])

    def _lines(self, feed: Callable[[Buffer], object] | None = None) -> Iterator[ChecksumLine]:
        number = 0
        begun: list[bytes] = []
        for block in self._blocks():
            if feed is not None:
                feed(block)
            first, *rest = block.split(b"\n")
            begun.append(first)
            if rest:
                for raw in (b"".join(begun), *rest[:-1]):
                    number += 1
                    yield from parse_line(raw, self.where, number, self._algorithm)
                begun = [rest[-1]]
        yield from parse_line(b"".join(begun), self.where, number + 1, self._algorithm)

    def _blocks(self) -> Iterator[bytes]:
        size = 0
        try:
            with open(open_regular(self._path), "rb", buffering=0) as file:
                while block := file.read(_BLOCK_BYTES):
                    size += len(block)
                    if size > MAX_LIST_BYTES:
                        raise MalformedError(
                            self.where, f"is larger than any checksum file ({MAX_LIST_BYTES} bytes)"
                        )
                    yield block
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else errno.EINVAL
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise InputOutputError(self.where, number or 0, reason or str(error)) from error


def _mark(name: bytes) -> int:
    return int.from_bytes(blake3(name).digest(8), "little")
