"""Gathering small objects and records into frames, in memory first and in a spool file when they are many."""

import contextlib
from collections.abc import Iterator
from typing import IO, Final

from provstore.ids import Buffer
from provstore.store import frame
from provstore.store.blobs import remove_quietly, temporary_path
from provstore.store.rows import Place
from provstore.store.system import refused

MEMORY_BYTES: Final = 4 << 20
"""Stored bytes of frames that stay in memory."""

RECORD_LEVEL: Final = 1
"""Records are mostly digests, in which higher levels find nothing."""

RECORD_PAGES_BYTES: Final = 4 * 4096 - 16 - frame.CHECK_BYTES
"""Size that frames of records aim at: with their check four whole pages of the index without their header."""

_FIRST_RATIO: Final = 0.40


class FrameSpool:
    """Finished frames of a stage in order; their numbers count from 0 within the stage.

    Attributes:
        count: number of frames.
        stored_bytes: their bytes together.
    """

    def __init__(self, directory: str) -> None:
        self.count = 0
        self.stored_bytes = 0
        self._directory = directory
        self._memory: list[bytes] = []
        self._memory_bytes = 0
        self._path: str | None = None
        self._file: IO[bytes] | None = None

    def add(self, packed: bytes) -> int:
        """Append a frame, with its check, and return its number.

        Raises:
            StoreFullError, InputOutputError: the spool file cannot be written.
        """
        packed = frame.vouched(packed)
        self._memory.append(packed)
        self._memory_bytes += len(packed)
        self.stored_bytes += len(packed)
        self.count += 1
        if self._memory_bytes > MEMORY_BYTES:
            self._spill()
        return self.count - 1

    def _spill(self) -> None:
        path = self._path or temporary_path(self._directory, ".frames")
        try:
            if self._file is None:
                self._path = path
                self._file = open(path, "x+b")  # noqa: SIM115 (closed by close)
            self._file.seek(0, 2)
            self._file.writelines(self._memory)
            self._file.flush()
        except OSError as error:
            raise refused(error, path) from error
        self._memory = []
        self._memory_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the frames in order."""
        if self._file is not None:
            try:
                self._file.seek(0)
                while header := self._file.read(frame.HEADER.size):
                    yield header + self._file.read(frame.check_header(header)[2])
            except OSError as error:
                raise refused(error, self._path or "") from error
        yield from self._memory

    def close(self) -> None:
        """Forget everything and remove the spool file."""
        self._memory = []
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk refuses what is still buffered
                self._file.close()
            self._file = None
        if self._path is not None:
            remove_quietly(self._path)


class Group:
    """Members waiting for their frame; a place is final only when :meth:`close` has given its number.

    Args:
        spool: where finished frames go.
        level: of compression.
    """

    def __init__(self, spool: FrameSpool, level: int) -> None:
        self._spool = spool
        self._level = level
        self.parts: list[tuple[bytes, bytes]] = []
        self.plain_bytes = 0

    def add(self, key: bytes, data: Buffer) -> None:
        """Append a member."""
        part = bytes(data)
        self.parts.append((key, part))
        self.plain_bytes += len(part)

    def close(self) -> list[tuple[bytes, Place]]:
        """Make a frame of all members; return the place of each."""
        if not self.parts:
            return []
        number = self._spool.add(frame.pack([part for _, part in self.parts], self._level))
        return self._places(number, len(self.parts))

    def _places(self, number: int, count: int) -> list[tuple[bytes, Place]]:
        places = []
        offset = 0
        for key, part in self.parts[:count]:
            places.append((key, Place(number, offset, len(part))))
            offset += len(part)
        del self.parts[:count]
        self.plain_bytes -= offset
        return places


class RecordGroup(Group):
    """Records, in frames that fill whole pages of the index closely, so that reading one stays cheap."""

    def __init__(self, spool: FrameSpool) -> None:
        super().__init__(spool, RECORD_LEVEL)
        self._ratio = _FIRST_RATIO

    def is_due(self) -> bool:
        """Say whether the members should fill a frame."""
        return self.plain_bytes * self._ratio >= RECORD_PAGES_BYTES

    def close_due(self) -> list[tuple[bytes, Place]]:
        """Make one frame of as many members as fit its pages; the others wait for the next."""
        count = len(self.parts)
        plain = self.plain_bytes
        while True:
            packed = frame.pack([part for _, part in self.parts[:count]], self._level)
            self._ratio = len(packed) / max(plain, 1)
            if len(packed) <= RECORD_PAGES_BYTES or count == 1:
                return self._places(self._spool.add(packed), count)
            over = (len(packed) - RECORD_PAGES_BYTES) / self._ratio
            while count > 1 and over > 0:
                count -= 1
                over -= len(self.parts[count][1])
                plain -= len(self.parts[count][1])

    def add_long(self, key: bytes, data: Buffer) -> tuple[bytes, Place]:
        """Store a record that needs frames of its own; return its place."""
        view = memoryview(data)
        first = self._spool.count
        for start in range(0, view.nbytes, frame.MAX_PLAIN):
            self._spool.add(frame.pack([view[start : start + frame.MAX_PLAIN]], self._level))
        return key, Place(first, 0, view.nbytes)
