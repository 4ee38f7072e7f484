"""The raw benchmark object on disk: made once, exclusively, and written as the answers come.

The head of a row is written before its request is sent and the rest when its answer is in; each row is on
the disk before the next request. A file that ends early is what a killed run leaves: cut-off JSON, never a
shorter suite that looks whole.
"""

import os
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from provstore.canon import NumberText
from provstore.errors import InputOutputError, TargetError
from provstore.paths import show

Fields = dict[str, object]

NS: Final = 1_000_000_000


def seconds(ns: int) -> msgspec.Raw:
    """Return nanoseconds as a JSON number of seconds with all digits.

    Example:
        >>> bytes(seconds(1_000_000_001))
        b'1.000000001'
    """
    return msgspec.Raw(b"%d.%09d" % divmod(ns, NS))


def all_seconds(stamps: list[int], since_ns: int) -> msgspec.Raw:
    """Return times since another as a JSON array of seconds.

    Example:
        >>> bytes(all_seconds([5, 1_000_000_005], 5))
        b'[0.000000000,1.000000000]'
    """
    return msgspec.Raw(b"[" + b",".join(b"%d.%09d" % divmod(at - since_ns, NS) for at in stamps) + b"]")


def exact(value: Any) -> Any:
    """Return parsed JSON in a form that is written with the digits that it was read with.

    Example:
        >>> msgspec.json.encode(exact({"a": [NumberText("1.50"), 2]}))
        b'{"a":[1.50,2]}'
    """
    if isinstance(value, NumberText):
        return msgspec.Raw(value.encode())
    if isinstance(value, dict):
        return {name: exact(part) for name, part in value.items()}
    return [exact(part) for part in value] if isinstance(value, list) else value


class RawFile:
    """A benchmark object that is being written; leaving the ``with`` block closes it as far as it came.

    Args:
        path: must not exist.

    Raises:
        TargetError: it exists.
        InputOutputError: it cannot be made.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._rows = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(path, flags, 0o644)
            folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_CLOEXEC)
        except FileExistsError as error:
            raise TargetError(show(path), "exists; a raw object is written once") from error
        except OSError as error:
            raise self._refused(error) from error
        try:
            os.fsync(folder)  # so that a cut power leaves a name as well
        finally:
            os.close(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def begin(self, identity: Fields) -> None:
        """Write what is known before the first request."""
        self._write(b'{"run_identity":' + msgspec.json.encode(identity) + b',"rows":[')

    def open_row(self, fields: Fields) -> None:
        """Write what is known of a request before it is sent."""
        comma = b"," if self._rows else b""
        self._rows += 1
        self._write(comma + b"\n" + msgspec.json.encode(fields)[:-1])

    def close_row(self, fields: Fields) -> None:
        """Write what came of it."""
        self._write(b"," + msgspec.json.encode(fields)[1:])

    def end(self, summary: Fields) -> None:
        """Write what is known when nothing more is asked."""
        self._write(b'],"summary":' + msgspec.json.encode(summary) + b"}\n")

    def _write(self, data: bytes) -> None:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> InputOutputError:
        return InputOutputError(show(self.path), error.errno or 0, error.strerror or str(error))
