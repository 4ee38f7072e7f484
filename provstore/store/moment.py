"""Which commit a store is at, so that one that was put back to an earlier time and went on shows."""

from typing import Final, NamedTuple

COMMITS: Final = 64
"""Commits that a store remembers the marks of."""

MARK_BYTES: Final = 8
"""Bytes of the random mark of a commit."""


class Moment(NamedTuple):
    """What a store was like at one time; as long as it is the same, nothing was added or removed.

    Attributes:
        store: tells stores apart; empty for what is not kept.
        generation: grows with every commit.
        sweeps: grows with every removal of objects or records.
        marks: random marks of the latest commits, joined, the newest last; empty where none are kept.
    """

    store: bytes
    generation: int
    sweeps: int
    marks: bytes = b""

    def mark(self, generation: int) -> bytes | None:
        """Return the mark of a commit, or None if it is not remembered.

        Example:
            >>> now = Moment(b"", 7, 0, b"commit-6commit-7")
            >>> now.mark(6), now.mark(5), now.mark(8)
            (b'commit-6', None, None)
        """
        end = len(self.marks) - (self.generation - generation) * MARK_BYTES
        if not MARK_BYTES <= end <= len(self.marks):
            return None
        return self.marks[end - MARK_BYTES : end]


def marks_of(generation: int, stored: bytes) -> bytes:
    """Return the marks that a stored value has for a generation; none if it is of another one.

    A release that writes no marks leaves those of an earlier generation behind.
    """
    head, marks = stored[:MARK_BYTES], stored[MARK_BYTES:]
    return marks if head == generation.to_bytes(MARK_BYTES, "big") else b""


def with_mark(generation: int, stored: bytes, mark: bytes) -> bytes:
    """Return the value to store for a new commit with a mark; ``stored`` is what the one before it left.

    Example:
        >>> marks_of(2, with_mark(2, with_mark(1, b"", b"commit-1"), b"commit-2"))
        b'commit-1commit-2'
        >>> marks_of(3, with_mark(3, with_mark(1, b"", b"commit-1"), b"commit-3"))
        b'commit-3'
    """
    marks = (marks_of(generation - 1, stored) + mark)[-COMMITS * MARK_BYTES :]
    return generation.to_bytes(MARK_BYTES, "big") + marks
