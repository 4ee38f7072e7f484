"""Pack files: the same bytes for the same content; every cut, flip and lie refused or found."""

import io
import os
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from flipping import Truth, pack_outcome, truth_of
from killing import seal_into
from workbench import plant

from provstore.errors import (
    InputOutputError,
    IntegrityError,
    NewerFormatError,
    PackError,
    UsageError,
)
from provstore.ids import RawId, digests
from provstore.store import objects
from provstore.store import pack_format as form
from provstore.store.lmdb_store import LmdbStore
from provstore.store.pack import PackStore
from provstore.store.pack_writer import write_pack
from provstore.store.protocol import ObjectInfo
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack


class Small:
    """A small pack of one packet, and what is in it."""

    def __init__(self, place: Path) -> None:
        self.path = place / "small.pack"
        store = place / "store"
        LmdbStore.create(os.fspath(store)).close()
        seal_into(store, plant(place / "t", {"a": "one\n", "d/b": "two\n" * 40, "d/e": ""}), "run")
        with LmdbStore.open(os.fspath(store), writable=False) as reader:
            self.packet = dict(reader.refs())["run"]
            pack([("run", Located(reader, self.packet, False))], self.path)
        self.data = self.path.read_bytes()
        with PackStore(os.fspath(self.path)) as reader_of_pack:
            self.truth: Truth = truth_of(reader_of_pack)

    def outcome(self, data: bytes) -> str:
        self.path.write_bytes(data)
        return pack_outcome(self.path, self.packet, self.truth)

    def sealed(self, change: Callable[[bytearray, form.Layout], None]) -> bytes:
        """Return the pack with a change and a right hash at its end, as somebody who lies would make it."""
        data = bytearray(self.data)
        layout = form.check_layout(bytes(data[-form.TRAILER_BYTES :]), len(data), "pack")
        change(data, layout)
        end = len(data) - form.HASH_BYTES - len(form.END_MAGIC)
        data[end : end + form.HASH_BYTES] = blake3(bytes(data[:end])).digest()
        return bytes(data)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def made(
    items: list[bytes], roots: list[tuple[str, RawId]], level: int = 3, threads: int | None = None
) -> bytes:
    out = io.BytesIO()
    rows = [(digests(d).blake3, ObjectInfo(len(d), digests(d).sha256, "inline"), [d]) for d in items]
    size = write_pack(out, roots, [], rows, level=level, threads=threads)
    assert size == len(out.getvalue())
    return out.getvalue()


def test_equal_content_gives_equal_bytes(small: Small, tmp_path: Path) -> None:
    datas = [b"a", b"b" * 100_000, os.urandom(3 << 20)]
    roots = [("x", bytes(32)), ("a", bytes(32))]
    assert made(datas, roots) == made(datas, roots[::-1])
    again = Small(_folder(tmp_path))
    assert again.data == small.data


def test_the_bytes_do_not_depend_on_the_number_of_threads() -> None:
    datas = [bytes([number]) * (number * 9973 % 400_000) for number in range(1, 80)]
    datas += [os.urandom(5 << 20), b"log line\n" * 700_000, os.urandom(900_000)]
    alone = made(datas, [], threads=1)
    assert made(datas, [], threads=2) == made(datas, [], threads=7) == alone


def test_the_writer_holds_a_few_frames_whatever_the_size_of_the_pack() -> None:
    """What waits to be compressed is bounded, so a slow disk or a big packet takes no more memory."""

    class Nowhere(io.RawIOBase):
        def write(self, data: object, /) -> int:
            return len(memoryview(data))  # type: ignore[arg-type]

    def items(count: int) -> Iterator[tuple[RawId, ObjectInfo, list[bytes]]]:
        for number in range(count):
            data = number.to_bytes(8, "big") * (64 << 10)
            yield number.to_bytes(32, "big"), ObjectInfo(len(data), bytes(32), "inline"), [data]

    tracemalloc.start()
    write_pack(Nowhere(), [], [], items(400), threads=2)  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 << 20 < 400 * (512 << 10)


def _folder(place: Path) -> Path:
    place.joinpath("again").mkdir()
    return place / "again"


def test_an_untouched_pack_is_what_it_was(small: Small) -> None:
    with pytest.raises(Exception, match="it passed"):
        small.outcome(small.data)
    with PackStore(os.fspath(small.path)) as reader:
        reader.check()


def test_every_cut_is_refused(small: Small) -> None:
    for end in range(len(small.data)):
        small.path.write_bytes(small.data[:end])
        with pytest.raises(PackError):
            PackStore(os.fspath(small.path))


def test_every_flipped_byte_is_found(small: Small) -> None:
    for at in range(len(small.data)):
        torn = bytearray(small.data)
        torn[at] ^= 0xFF
        assert small.outcome(bytes(torn)) != "harmless", at


def test_bytes_behind_the_end_are_refused(small: Small) -> None:
    small.path.write_bytes(small.data + b"\0")
    with pytest.raises(PackError):
        PackStore(os.fspath(small.path))


def _set_trailer(data: bytearray, **changes: int) -> None:
    at = len(data) - form.TRAILER_BYTES
    fields = dict(zip(form.Layout._fields, form.TRAILER.unpack_from(data, at), strict=True))
    form.TRAILER.pack_into(data, at, *{**fields, **changes}.values())


HOSTILE = [0, 1, 15, 16, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]


@pytest.mark.parametrize("field", form.Layout._fields)
def test_hostile_counts_and_positions_are_refused(small: Small, field: str) -> None:
    was = form.check_layout(small.data[-form.TRAILER_BYTES :], len(small.data), "pack")._asdict()[field]
    for value in HOSTILE:
        if value == was:
            continue
        small.path.write_bytes(small.sealed(lambda data, _: _set_trailer(data, **{field: value})))  # noqa: B023
        with pytest.raises(PackError):
            PackStore(os.fspath(small.path))


@pytest.mark.parametrize(
    ("offset", "width"), [(64, 8), (72, 8), (80, 4), (84, 1)], ids=["size", "position", "offset", "kind"]
)
def test_hostile_rows_never_pass(small: Small, offset: int, width: int) -> None:
    """The hash at the end is right, as an enemy makes it; every row lies once in every way."""
    layout = form.check_layout(small.data[-form.TRAILER_BYTES :], len(small.data), "pack")
    for row in range(layout.rows):
        size = form.ROW.unpack_from(small.data, layout.index_position + row * form.ROW.size)[2]
        if not size and offset in (72, 80):
            continue  # nothing is there wherever it is
        for value in HOSTILE:

            def change(data: bytearray, where: form.Layout, row: int = row, value: int = value) -> None:
                at = where.index_position + row * form.ROW.size + offset
                data[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")

            lying = small.sealed(change)
            if lying != small.data:
                assert small.outcome(lying) != "harmless", (row, value)


def test_an_index_that_names_other_bytes_is_found(small: Small) -> None:
    """Two objects swap their rows' places: each id leads to the other's bytes."""

    def swap(data: bytearray, layout: form.Layout) -> None:
        rows = [
            at
            for at in range(layout.index_position, layout.roots_position, form.ROW.size)
            if data[at + 84] == form.OBJECT
        ]
        first, second = rows[0], rows[1]
        place = slice(64, 84)
        one, two = data[first:][place], data[second:][place]
        data[first + 64 : first + 84], data[second + 64 : second + 84] = two, one

    small.path.write_bytes(small.sealed(swap))
    with PackStore(os.fspath(small.path)) as reader:
        reader.check()  # as a file it is in order
        bad = 0
        for id in small.truth.objects:
            try:
                objects.read(reader, id)
            except (IntegrityError, PackError):
                bad += 1
        assert bad == 2


def test_rows_out_of_order_are_found(small: Small) -> None:
    def swap(data: bytearray, layout: form.Layout) -> None:
        at, size = layout.index_position, form.ROW.size
        data[at : at + 2 * size] = data[at + size : at + 2 * size] + data[at : at + size]

    small.path.write_bytes(small.sealed(swap))
    with PackStore(os.fspath(small.path)) as reader, pytest.raises(PackError, match="out of order"):
        reader.check()


@pytest.mark.parametrize(("number", "flags"), [(2, 0), (0, 0), (1, 1), (0xFFFFFFFF, 0xFFFFFFFF)])
def test_a_newer_format_is_refused(small: Small, number: int, flags: int) -> None:
    small.path.write_bytes(struct.pack("<8sII", form.MAGIC, number, flags) + small.data[16:])
    with pytest.raises(NewerFormatError):
        PackStore(os.fspath(small.path))


@pytest.mark.parametrize("data", [b"", b"provpack", b"PK\3\4" + bytes(200), os.urandom(5000), bytes(5000)])
def test_other_files_are_no_packs(tmp_path: Path, data: bytes) -> None:
    tmp_path.joinpath("x").write_bytes(data)
    with pytest.raises(PackError):
        PackStore(os.fspath(tmp_path / "x"))


def test_a_pack_that_is_not_there_or_a_directory_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises((InputOutputError, PackError)):
            PackStore(os.fspath(path))


def test_the_writer_refuses_what_would_lie() -> None:
    info = ObjectInfo(3, bytes(32), "inline")
    for chunks in ([b"ab"], [b"abcd"], [b"ab", b"", b"cd"]):
        with pytest.raises(PackError):
            write_pack(io.BytesIO(), [], [], [(bytes(32), info, chunks)])
    twice = [(bytes(32), info, [b"abc"]), (bytes(32), info, [b"abc"])]
    with pytest.raises(PackError, match="twice"):
        write_pack(io.BytesIO(), [], [], twice)
    with pytest.raises(UsageError):
        write_pack(io.BytesIO(), [("x" * 500, bytes(32))], [], [])


def test_a_large_object_comes_in_pieces(tmp_path: Path) -> None:
    data = os.urandom(9 << 20) + b"tail"
    tmp_path.joinpath("x.pack").write_bytes(made([data, b"", b"small"], [("run", bytes(32))]))
    with PackStore(os.fspath(tmp_path / "x.pack")) as reader:
        reader.check()
        pieces = [bytes(chunk) for chunk in reader.chunks(digests(data).blake3)]
        assert b"".join(pieces) == data
        assert max(map(len, pieces)) <= 4 << 20
        assert objects.read(reader, digests(b"").blake3) == b""
