"""Frames: every bound checked before work, every cut and flip refused or caught by the id."""

import io
import os
import resource
import struct
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from killing import Say, run

from provstore.errors import FrameError
from provstore.ids import object_id
from provstore.store import frame

TEXT = b"".join(b"line %d of a log\n" % i for i in range(40))

SAMPLES = [b"", b"x", b"y" * 63, b"z" * 64, TEXT, bytes(range(256)) * 3]


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 19))
def test_what_is_packed_comes_out_again(parts: list[bytes], level: int) -> None:
    packed = frame.pack(parts, level)
    assert frame.unpack(packed) == b"".join(parts)
    assert frame.plain_size(packed) == sum(map(len, parts))
    assert len(packed) <= frame.HEADER.size + sum(map(len, parts))


@pytest.mark.parametrize("plain", SAMPLES, ids=len)
def test_equal_bytes_give_equal_frames(plain: bytes) -> None:
    assert frame.pack([plain]) == frame.pack([plain[:5], plain[5:]]) == frame.pack([plain])


@pytest.mark.parametrize("plain", SAMPLES, ids=len)
def test_every_cut_is_refused(plain: bytes) -> None:
    packed = frame.pack([plain])
    for end in range(len(packed)):
        with pytest.raises(FrameError):
            frame.unpack(packed[:end])
        with pytest.raises(FrameError):
            frame.plain_size(packed[:end])


@pytest.mark.parametrize("plain", SAMPLES, ids=len)
def test_every_byte_too_many_is_refused(plain: bytes) -> None:
    for more in (b"\0", b"\0" * 9, frame.pack([b"x"])):
        with pytest.raises(FrameError):
            frame.unpack(frame.pack([plain]) + more)


@pytest.mark.parametrize("plain", SAMPLES, ids=len)
def test_every_flipped_bit_is_refused_or_gives_bytes_with_another_id(plain: bytes) -> None:
    packed = frame.pack([plain])
    same = []
    for at in range(len(packed)):
        for bit in range(8):
            torn = bytearray(packed)
            torn[at] ^= 1 << bit
            try:
                found = frame.unpack(bytes(torn))
            except FrameError:
                continue
            if object_id(found) == object_id(plain):
                same.append((at, bit))
    # Some bits of the form are free (an unused bit of the Zstandard header): the bytes are still right.
    assert len(same) <= 8, same


@pytest.mark.parametrize("plain", [*SAMPLES, TEXT * 9], ids=len)
def test_what_a_store_keeps_is_whole_to_the_last_bit(plain: bytes) -> None:
    """The one difference to the test above: no bit of the form is free."""
    packed = frame.vouched(frame.pack([plain]))
    assert frame.unpack(packed) == plain
    assert len(packed) <= frame.HEADER.size + len(plain)
    for at in range(len(packed)):
        for bit in range(8):
            torn = bytearray(packed)
            torn[at] ^= 1 << bit
            try:
                found = frame.unpack(bytes(torn))
            except FrameError:
                continue
            assert packed[0] == frame.RAW
            assert found != plain


def test_what_is_left_of_a_frame_with_a_wrong_check_is_all_of_it() -> None:
    packed = bytearray(frame.vouched(frame.pack([TEXT])))
    packed[frame.HEADER.size + 4] ^= 0x10  # the unused bit of a Zstandard header
    with pytest.raises(FrameError, match="not those that were written"):
        frame.unpack(bytes(packed))
    assert frame.salvage(bytes(packed)) == TEXT


def test_a_check_that_would_make_a_frame_longer_than_its_bytes_makes_it_raw() -> None:
    for size in range(60, 200):
        plain = os.urandom(size // 2) + bytes(size - size // 2)
        packed = frame.vouched(frame.pack([plain]))
        assert len(packed) <= frame.HEADER.size + size
        assert frame.unpack(packed) == plain


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_is_a_frame(data: bytes) -> None:
    try:
        plain = frame.unpack(data)
    except FrameError:
        return
    assert len(plain) == struct.unpack_from("<I", data, 1)[0]


def header(codec: int, plain: int, stored: int) -> bytes:
    return frame.HEADER.pack(codec, plain, stored)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (header(3, 1, 1) + b"x", "codec 3"),
        (header(2, 9, 3) + b"abc", "not those that were written"),
        (header(255, 1, 1) + b"x", "codec 255"),
        (header(0, 2, 1) + b"x", "stored bytes"),
        (header(1, 1, 2) + b"xx", "stored bytes"),
        (header(0, frame.MAX_PLAIN + 1, frame.MAX_PLAIN + 1), "more than"),
        (header(1, 0xFFFFFFFF, 0xFFFFFFFF), "more than"),
        (header(0, 1, 1), "its header says"),
        (header(1, 100, 4) + b"abcd", "no Zstandard frame"),
    ],
)
def test_headers_out_of_bounds_are_refused(data: bytes, word: str) -> None:
    with pytest.raises(FrameError, match=word):
        frame.unpack(data)


def zstd(plain: bytes, stated: int | None = None, **options: int | bool) -> bytes:
    """Return our frame around a Zstandard frame of any kind."""
    payload = zstandard.ZstdCompressor(**options).compress(plain)  # type: ignore[arg-type]
    return header(frame.ZSTD, len(plain) if stated is None else stated, len(payload)) + payload


def test_a_zstandard_frame_without_its_size_is_refused() -> None:
    with pytest.raises(FrameError, match="states"):
        frame.unpack(zstd(TEXT, write_content_size=False))


def test_two_zstandard_frames_in_one_are_refused() -> None:
    half = zstandard.ZstdCompressor().compress(TEXT)
    with pytest.raises(FrameError):
        frame.unpack(header(frame.ZSTD, 2 * len(TEXT), 2 * len(half)) + half + half)


def test_a_frame_that_needs_a_dictionary_is_refused() -> None:
    words = zstandard.ZstdCompressionDict(TEXT * 20, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    trained = zstandard.train_dictionary(2000, [TEXT[i : i + 200] + bytes(40) for i in range(400)])
    for dictionary in (words, trained):
        payload = zstandard.ZstdCompressor(dict_data=dictionary).compress(TEXT)
        with pytest.raises(FrameError):
            frame.unpack(header(frame.ZSTD, len(TEXT), len(payload)) + payload)


def test_more_than_a_frame_may_hold_is_not_packed() -> None:
    with pytest.raises(FrameError, match="more than"):
        frame.pack([bytes(frame.MAX_PLAIN), b"x"])


def bomb(size: int) -> bytes:
    """Return a Zstandard frame that unpacks to so many zeros."""
    return zstandard.ZstdCompressor(level=19).compress(bytes(size))


BOMB = bomb(256 << 20)


def bombs() -> list[bytes]:
    """Return frames that would unpack to 256 MiB, stated rightly, too small, or not at all."""
    hidden = zstandard.ZstdCompressor(level=19, write_content_size=False).compress(bytes(256 << 20))
    lying = bytearray(BOMB)
    # Frame header: magic (4), descriptor (1), then the content size; the window descriptor is absent.
    assert zstandard.get_frame_parameters(BOMB).content_size == 256 << 20
    at = BOMB.index(struct.pack("<I", 256 << 20), 4, 18)
    lying[at : at + 4] = struct.pack("<I", 1 << 20)
    return [
        header(frame.ZSTD, frame.MAX_PLAIN, len(BOMB)) + BOMB,
        header(frame.ZSTD, 256 << 20, len(BOMB)) + BOMB,
        header(frame.ZSTD, 1 << 20, len(lying)) + bytes(lying),
        header(frame.ZSTD, frame.MAX_PLAIN, len(hidden)) + hidden,
    ]


def peak_kib(work: Callable[[], object]) -> int:
    """Return by how much a child's peak memory grows over ``work``, in KiB, under a limit of 1 GiB."""

    def inside(say: Say) -> None:
        limit = (status("VmSize") << 10) + (1 << 30)  # beyond the maps of other tests' stores
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        before = status("VmRSS")
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # forgets the peak of the parent
        work()
        say(str(max(0, status("VmHWM") - before)))

    ended = run(inside)
    assert ended.signal == 0
    return int(ended.said[0])


def status(field: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field))


def test_bombs_cost_no_more_than_they_state() -> None:
    frames = bombs()
    for packed in frames:

        def work(packed: bytes = packed) -> None:
            with pytest.raises(FrameError):
                frame.unpack(packed)
            with pytest.raises(FrameError):
                list(frame.read_frames(io.BytesIO(packed)))

        assert peak_kib(work) < 40 << 10


def test_a_bomb_shows_that_the_measure_can_fail() -> None:
    assert peak_kib(lambda: zstandard.ZstdDecompressor().decompress(BOMB)) > 200 << 10


def test_a_file_of_frames_gives_its_bytes_in_order() -> None:
    out = io.BytesIO()
    writer = frame.FrameWriter(out, frame_bytes=1000)
    data = os.urandom(2500) + TEXT
    for start in range(0, len(data), 77):
        writer.write(data[start : start + 77])
    writer.finish()
    assert writer.stored_bytes == len(out.getvalue())
    pieces = list(frame.read_frames(io.BytesIO(out.getvalue())))
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) == 1000
    for end in range(len(out.getvalue()) - 1, 0, -7):
        try:
            found = b"".join(frame.read_frames(io.BytesIO(out.getvalue()[:end])))
        except FrameError:
            continue
        assert object_id(found) != object_id(data)
