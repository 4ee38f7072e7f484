"""Frames: bytes as they are stored, compressed where that pays. The only module that knows zstd.

A frame is a header of 9 bytes (codec, plain size, stored size; integers little-endian) and the payload.
Codec 0 is the plain bytes, codec 1 one Zstandard frame (RFC 8878) that states its content size, codec 2 such
a frame and a check of all bytes before it: some bits of a Zstandard frame can flip without a change of what
unpacks. Stored forms never enter an id, so another level or library version changes nothing that is hashed.
"""

import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import zstandard
from blake3 import blake3

from provstore.errors import FrameError
from provstore.ids import Buffer

HEADER: Final = struct.Struct("<BII")
RAW: Final = 0
ZSTD: Final = 1
CHECKED: Final = 2

CHECK_BYTES: Final = 4
"""Length of the check at the end of a frame of codec 2."""

FRAME_BYTES: Final = 1 << 20
"""Plain bytes after which a group of small objects is closed. See LAYOUT.md for the figures."""

BLOB_FRAME_BYTES: Final = 1 << 20
"""Plain bytes of each frame of a compressed blob file."""

MAX_PLAIN: Final = 16 << 20
"""Most plain bytes of one frame; a header that states more is refused before any work."""

SAMPLE_BYTES: Final = 128 << 10
"""Bytes from the beginning of a large object that decide whether compressing it pays."""

LEVEL: Final = 3

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_KEEP: Final = 0.97
_SAMPLE_KEEP: Final = 0.90
_MIN_ZSTD_BYTES: Final = 64
_SALVAGE_STEP: Final = 64


class Source(Protocol):
    """Anything with ``read``."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; none at the end."""


class Sink(Protocol):
    """Anything with ``write``."""

    def write(self, data: Buffer, /) -> object:
        """Take all bytes."""


class _PerThread(threading.local):
    """Compressors are not safe to share, and making one costs more than a small frame."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_PLAIN)


_local = _PerThread()


def _compress(data: Buffer, level: int) -> bytes:
    compressor = _local.compressors.get(level)
    if compressor is None:
        compressor = _local.compressors[level] = zstandard.ZstdCompressor(
            level=level, write_content_size=True, write_checksum=False, write_dict_id=False
        )
    return compressor.compress(data)


def pack(parts: Sequence[Buffer], level: int = LEVEL) -> bytes:
    """Return a frame of the parts joined; equal input gives equal bytes.

    Args:
        parts: plain bytes, together at most :data:`MAX_PLAIN`.
        level: of Zstandard, 1 to 19.

    Raises:
        FrameError: more plain bytes than a frame may hold.

    Example:
        >>> len(pack([b"ab" * 500, b"c"])) < 60
        True
        >>> pack([b"x"])[9:]
        b'x'
    """
    plain = b"".join(parts)
    size = len(plain)
    if size > MAX_PLAIN:
        raise FrameError("frame", f"{size} plain bytes are more than {MAX_PLAIN}")
    if size >= _MIN_ZSTD_BYTES:
        packed = _compress(plain, level)
        if len(packed) <= size * _KEEP:
            return HEADER.pack(ZSTD, size, len(packed)) + packed
    return HEADER.pack(RAW, size, size) + plain


def pack_large(data: Buffer, level: int = LEVEL) -> bytes:
    """Return a frame of a piece of a large object; what its first bytes promise decides, as for blobs.

    Raises:
        FrameError: more plain bytes than a frame may hold.

    Example:
        >>> unpack(pack_large(b"ab" * 1000)) == b"ab" * 1000
        True
    """
    view = memoryview(data)
    if view.nbytes > MAX_PLAIN or is_compressible(view[:SAMPLE_BYTES]):
        return pack([data], level)
    return HEADER.pack(RAW, view.nbytes, view.nbytes) + bytes(view)


def vouched(packed: bytes) -> bytes:
    """Return a frame of :func:`pack` in the form that a store keeps: every bit of it is answered for.

    Raw frames are as they were, since the ids of their members answer for their bytes.

    Example:
        >>> packed = pack([b"ab" * 500])
        >>> len(vouched(packed)) - len(packed), unpack(vouched(packed)) == b"ab" * 500
        (4, True)
    """
    codec, plain, stored = check_header(packed)
    if codec != ZSTD:
        return packed
    if stored + CHECK_BYTES > plain:
        return HEADER.pack(RAW, plain, plain) + unpack(packed)
    body = HEADER.pack(CHECKED, plain, stored + CHECK_BYTES) + packed[HEADER.size :]
    return body + blake3(body).digest(CHECK_BYTES)


def check_header(header: Buffer, limit_bytes: int = MAX_PLAIN, where: str = "frame") -> tuple[int, int, int]:
    """Return codec, plain size and stored size of a frame from its first 9 bytes.

    Raises:
        FrameError: cut short, an unknown codec, or sizes out of bounds.
    """
    if len(header) < HEADER.size:
        raise FrameError(where, f"{len(header)} bytes are no frame header")
    codec, plain, stored = HEADER.unpack_from(header)
    if codec not in (RAW, ZSTD, CHECKED):
        raise FrameError(where, f"codec {codec} is unknown")
    if plain > limit_bytes:
        raise FrameError(where, f"states {plain} plain bytes, more than {limit_bytes}")
    if stored > plain or (codec == RAW and stored != plain):
        raise FrameError(where, f"states {stored} stored bytes for {plain} plain ones")
    return codec, plain, stored


def plain_size(frame: Buffer, where: str = "frame") -> int:
    """Return the plain size that a whole frame states, without unpacking it.

    Raises:
        FrameError: the frame is not as long as its header says, or the header is malformed.

    Example:
        >>> plain_size(pack([b"abc"]))
        3
    """
    _, plain, stored = check_header(frame, where=where)
    if len(frame) != HEADER.size + stored:
        raise FrameError(where, f"has {len(frame)} bytes, its header says {HEADER.size + stored}")
    return plain


def unpack(frame: Buffer, limit_bytes: int = MAX_PLAIN, where: str = "frame") -> bytes:
    """Return the plain bytes of a frame. Every bound is checked before memory is asked for.

    Raises:
        FrameError: anything but exactly one whole frame of at most ``limit_bytes`` plain bytes, or a check
            that does not hold.

    Example:
        >>> unpack(pack([b"ab", b"c"]))
        b'abc'
    """
    codec, plain, stored = check_header(frame, limit_bytes, where)
    if len(frame) != HEADER.size + stored:
        raise FrameError(where, f"has {len(frame)} bytes, its header says {HEADER.size + stored}")
    payload = memoryview(frame)[HEADER.size :]
    if codec == CHECKED:
        if blake3(memoryview(frame)[:-CHECK_BYTES]).digest(CHECK_BYTES) != payload[-CHECK_BYTES:]:
            raise FrameError(where, "its stored bytes are not those that were written")
        payload = payload[:-CHECK_BYTES]
    return bytes(payload) if codec == RAW else _decompress(payload, plain, where)


def salvage(frame: Buffer) -> bytes:
    """Return the plain bytes at the beginning of a damaged frame, as far as they can be had; unchecked.

    Example:
        >>> whole = pack([bytes(range(256)) * 4000])
        >>> salvage(whole[:-1]) == b"", salvage(whole) == bytes(range(256)) * 4000
        (False, True)
    """
    try:
        codec, plain, _ = check_header(frame)
    except FrameError:
        return b""
    payload = memoryview(frame)[HEADER.size :]
    if codec == RAW:
        return bytes(payload[:plain])
    found = bytearray()
    # Fed bit by bit: everything before the block that breaks comes out.
    rest = zstandard.ZstdDecompressor(max_window_size=MAX_PLAIN).decompressobj()
    try:
        for start in range(0, payload.nbytes, _SALVAGE_STEP):
            found += rest.decompress(payload[start : start + _SALVAGE_STEP])
            if len(found) >= plain or rest.eof:
                break
    except (zstandard.ZstdError, MemoryError):
        pass
    return bytes(found[:plain])


def _decompress(payload: memoryview, plain: int, where: str) -> bytes:
    if bytes(payload[:4]) != _MAGIC:
        raise FrameError(where, "payload is no Zstandard frame")
    try:
        stated = zstandard.get_frame_parameters(payload)
        # The library trusts a stated content size over any output limit, so it is compared first.
        if stated.content_size != plain:
            raise FrameError(where, f"payload states {stated.content_size} bytes, the header {plain}")
        if stated.dict_id or stated.window_size > MAX_PLAIN:
            raise FrameError(where, "payload needs a dictionary or a larger window than we write")
        data = _local.decompressor.decompress(
            payload, max_output_size=plain, read_across_frames=False, allow_extra_data=False
        )
    except (zstandard.ZstdError, MemoryError) as error:
        raise FrameError(where, f"payload does not unpack: {error}") from error
    if len(data) != plain:
        raise FrameError(where, f"unpacks to {len(data)} bytes, its header says {plain}")
    return data


def is_compressible(sample: Buffer) -> bool:
    r"""Say whether a large object is worth compressing, judged by its first bytes at level 1.

    Example:
        >>> is_compressible(b"a line of a log\n" * 100)
        True
    """
    return len(sample) >= _MIN_ZSTD_BYTES and len(_compress(sample, 1)) <= len(sample) * _SAMPLE_KEEP


class FrameWriter:
    """Writes one object as a sequence of frames, so that damage and reading stay local.

    Attributes:
        stored_bytes: bytes given to the file so far.

    Example:
        >>> import io
        >>> out = io.BytesIO()
        >>> writer = FrameWriter(out)
        >>> writer.write(b"x" * 100)
        >>> writer.finish()
        >>> list(read_frames(io.BytesIO(out.getvalue()))) == [b"x" * 100]
        True
    """

    def __init__(self, file: Sink, level: int = LEVEL, frame_bytes: int = BLOB_FRAME_BYTES) -> None:
        self._file = file
        self._level = level
        self._frame_bytes = frame_bytes
        self._parts: list[bytes] = []
        self._gathered = 0
        self.stored_bytes = 0

    def write(self, data: Buffer) -> None:
        """Append plain bytes."""
        view = memoryview(data)
        while view.nbytes:
            part = view[: self._frame_bytes - self._gathered]
            self._parts.append(bytes(part))
            self._gathered += part.nbytes
            view = view[part.nbytes :]
            if self._gathered == self._frame_bytes:
                self.finish()

    def finish(self) -> None:
        """Write what is gathered as a last, possibly shorter frame."""
        if self._gathered:
            packed = vouched(pack(self._parts, self._level))
            self._parts = []
            self._gathered = 0
            self._file.write(packed)
            self.stored_bytes += len(packed)


def read_frames(
    file: Source, limit_bytes: int = MAX_PLAIN, where: str = "blob", *, salvaging: bool = False
) -> Iterator[bytes]:
    """Yield the plain bytes of each frame of a file that holds nothing but frames.

    Args:
        file: the frames.
        limit_bytes: most plain bytes of a frame.
        where: what to call the file.
        salvaging: give what can be had of a damaged frame instead of refusing it; unchecked.

    Raises:
        FrameError: a frame is malformed or cut short.
    """
    while header := file.read(HEADER.size):
        _, _, stored = check_header(header, limit_bytes, where)
        packed = header + file.read(stored)
        yield salvage(packed) if salvaging else unpack(packed, limit_bytes, where)
