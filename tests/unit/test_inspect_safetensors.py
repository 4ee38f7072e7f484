"""Safetensors headers: bytes of the real writer, every check of the format, and no tensor data read."""

import hashlib
import io
import json
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.errors import EmptyError, InspectError, UnsafePathError
from provstore.files.inspect_safetensors import (
    DTYPE_BITS,
    MAX_HEADER_BYTES,
    MAX_METADATA_BYTES,
    index_shards,
    inspect_safetensors,
    missing_shards,
)
from provstore.records.facts import FactValue

# Written by safetensors 0.8.0 (serialize, metadata format=pt) from four tensors.
GOLDEN = (
    b'\x00\x01\x00\x00\x00\x00\x00\x00{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":'
    b'[0,24]},"q":{"dtype":"I32","shape":[1],"data_offsets":[24,28]},"b":{"dtype":"BF16","shape":[4],"data_offsets":'
    b'[28,36]},"e":{"dtype":"F16","shape":[0],"data_offsets":[36,36]}}  ' + bytes(range(24)) + bytes(12)
)
GOLDEN_SHA256 = "bd007417fd7ce952b753151a93f183e69515e2216a44561ff67c350b23caa3ab"


def file_of(header: dict[str, Any] | bytes, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def facts(data: bytes, path: str = "m.safetensors") -> dict[str, FactValue]:
    found = inspect_safetensors(io.BytesIO(data), path)
    assert {fact.path for fact in found} == {path}
    return {fact.key: fact.value for fact in found}


def test_golden_file_of_the_real_writer() -> None:
    assert hashlib.sha256(GOLDEN).hexdigest() == GOLDEN_SHA256
    assert facts(GOLDEN) == {
        "safetensors.tensors": 4,
        "safetensors.data_bytes": 36,
        "safetensors.dtypes": ("BF16:1", "F16:1", "F32:1", "I32:1"),
        "safetensors.parameters": 11,
        "safetensors.metadata.format": "pt",
    }
    assert inspect_safetensors(io.BytesIO(GOLDEN), "")[-1].location == "/__metadata__/format"


# Measured with the reader of safetensors 0.8.0: all types that it knows, each with its bits.
GOLDEN_BITS = {
    4: "F4",
    6: "F6_E2M3 F6_E3M2",
    8: "BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ",
    16: "I16 U16 F16 BF16",
    32: "I32 U32 F32",
    64: "C64 F64 I64 U64",
}


def test_all_dtypes_of_the_real_reader_are_known() -> None:
    assert {name: bits for bits, names in GOLDEN_BITS.items() for name in names.split()} == DTYPE_BITS


@pytest.mark.parametrize(("dtype", "bits"), sorted(DTYPE_BITS.items()))
def test_each_dtype_is_held_to_its_bits(dtype: str, bits: int) -> None:
    """Eight elements take as many bytes as one has bits."""
    assert facts(file_of({"t": tensor(dtype, [2, 4], 0, bits)}, bytes(bits)))["safetensors.parameters"] == 8
    with pytest.raises(InspectError, match=f"8 elements of {dtype} need {8 * bits} bits"):
        facts(file_of({"t": tensor(dtype, [2, 4], 0, bits + 1)}, bytes(bits + 1)))


def test_unknown_dtype_is_listed_and_not_measured() -> None:
    found = facts(file_of({"a": tensor("F3_\x1b", [3], 0, 7), "b": tensor("U8", [], 7, 8)}, bytes(8)))
    assert found["safetensors.dtypes"] == (r"F3_\x1b:1", "U8:1")
    assert found["safetensors.parameters"] == 4


def test_an_empty_header_counts_nothing() -> None:
    found = facts(file_of(b"{}      "))
    assert (found["safetensors.tensors"], found["safetensors.data_bytes"]) == (0, 0)
    assert found["safetensors.dtypes"] == ()
    assert len(found) == 4


def test_metadata_is_kept_as_stated_and_long_text_by_its_digest() -> None:
    long = "é" * MAX_METADATA_BYTES
    header = {"__metadata__": {"b/\x1b~": "1\x1b", "a": long}, "t": tensor("U8", [1], 0, 1)}
    found = inspect_safetensors(io.BytesIO(file_of(header, b"x")), "m")[4:]
    digest = f"sha256:{hashlib.sha256(long.encode()).hexdigest()}"
    assert [(fact.key, fact.value, fact.location) for fact in found] == [
        ("safetensors.metadata_digest.a", digest, "/__metadata__/a"),
        (r"safetensors.metadata.b/\x1b~", "1\x1b", r"/__metadata__/b~1\x1b~0"),
    ]
    assert len(facts(file_of(b'{"__metadata__":null}'))) == 4


ONE = tensor("U8", [2], 0, 2)
TWICE = b'{"a":%s,"a":%s}' % ((b'{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',) * 2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "too few"),
        (b"\x01\0\0\0\0\0\0", "too few"),
        (struct.pack("<Q", MAX_HEADER_BYTES + 1), "at most"),
        (b"\xff" * 8, "at most"),
        (struct.pack("<Q", 3) + b"{}", "ends at byte 11 of a file of 10"),
        (file_of(b""), "does not begin with {"),
        (file_of(b" {}"), "does not begin with {"),
        (file_of(b"[]"), "does not begin with {"),
        (file_of(b"{"), "header"),
        (file_of(b"{}}"), "header"),
        (file_of(b'{"a":1}'), "header at a"),
        (file_of(b'{"\xff":1}'), "header"),
        (file_of(b'{"\\ud800":{}}'), "header"),
        (file_of(b'{"__metadata__":{"a":"\\udc80"}}'), "header"),
        (file_of(b'{"__metadata__":{"a":1}}'), "header at __metadata__"),
        (file_of(b'{"__metadata__":{"a":"1","a":"2"}}'), "'a' is stated twice"),
        (file_of(TWICE, b"x"), "'a' is stated twice"),
        (file_of({"a": {"dtype": "U8", "shape": [2]}}, b"xx"), "data_offsets"),
        (file_of({"a": {**ONE, "extra": 1}}, b"xx"), "extra"),
        (file_of({"a": {**ONE, "shape": [2.5]}}, b"xx"), "header at a"),
        (file_of({"a": {**ONE, "data_offsets": [0, 1, 2]}}, b"xx"), "header at a"),
        (file_of({"a": {**ONE, "shape": [-2]}}, b"xx"), "negative size -2"),
        (file_of({"a": {**ONE, "data_offsets": [0, -2]}}, b"xx"), "before its begin"),
        (file_of({"a": tensor("U8", [2], 1, 3)}, b"xxx"), "hole"),
        (file_of({"a": ONE, "b": tensor("U8", [2], 1, 3)}, b"xxx"), "overlaps"),
        (file_of({"a": ONE, "b": tensor("U8", [2], 3, 5)}, b"xxxxx"), "hole"),
        (file_of({"a": ONE}, b"xxx"), "end at byte 2 of 3"),
        (file_of({"a": ONE}, b"x"), "end at byte 2 of 1"),
        (file_of({"a": tensor("F4", [3], 0, 2)}, b"xx"), "need 12 bits"),
        (file_of({"a": tensor("X", [1 << 40, 1 << 40], 0, 2)}, b"xx"), "more than 9007199254740991"),
        (file_of({"a": tensor("X", [1 << 52] * 2, 0, 1), "b": tensor("X", [0], 1, 1)}, b"x"), "more than"),
        (file_of({"a": tensor("X", [1 << 60], 0, 1)}, b"x"), "9007199254740991"),
        (file_of({"a\x1b[2J": tensor("U8", [1], 1, 2)}, b"xx"), r"tensor a\x1b[2J"),
    ],
)
def test_what_the_format_forbids_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InspectError) as caught:
        facts(data)
    assert reason in caught.value.reason
    assert caught.value.where == "m.safetensors"
    assert "\x1b" not in str(caught.value)


def test_deep_nesting_and_many_lists_stay_cheap() -> None:
    """A header that is no map of tensors is refused before it is turned into objects."""
    for header in (
        b'{"a":' + b"[" * 500_000,
        b'{"a":[' + b"[]," * 1_000_000 + b"[]]}",
        b'{"a":{"shape":' * 100_000,
    ):
        data = file_of(header)
        started = time.process_time()
        tracemalloc.start()
        with pytest.raises(InspectError):
            facts(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 * len(data) + (1 << 20)
        assert time.process_time() - started < 20


class CountingReader(io.FileIO):
    """A file that adds up what was read of it."""

    total = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        self.total += len(data or b"")
        return data or b""


def test_a_sparse_terabyte_costs_its_header_only(tmp_path: Path) -> None:
    terabyte = 1 << 40
    header = json.dumps(
        {f"t{n}": tensor("BF16", [1 << 36], n << 37, (n + 1) << 37) for n in range(8)}
    ).encode()
    path = tmp_path / "huge.safetensors"
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header)
        stream.truncate(8 + len(header) + terabyte)
    with CountingReader(path) as reader:
        found = {fact.key: fact.value for fact in inspect_safetensors(reader, "huge")}
        assert reader.total == 8 + len(header)
    assert found["safetensors.data_bytes"] == terabyte
    assert found["safetensors.parameters"] == 8 << 36
    assert found["safetensors.dtypes"] == ("BF16:8",)


@given(
    cut=st.integers(0, len(GOLDEN)),
    flips=st.lists(st.tuples(st.integers(0, 270), st.integers(0, 255)), max_size=3),
)
def test_damaged_files_give_facts_or_our_error(cut: int, flips: list[tuple[int, int]]) -> None:
    data = bytearray(GOLDEN)
    for place, value in flips:
        data[place] = value
    for broken in (bytes(data), GOLDEN[:cut]):
        try:
            found = facts(broken)
        except InspectError:
            continue
        assert found["safetensors.data_bytes"] == len(broken) - 8 - int.from_bytes(broken[:8], "little")


def test_a_size_that_the_caller_knows_counts() -> None:
    with pytest.raises(InspectError, match="end at byte 36 of 37"):
        inspect_safetensors(io.BytesIO(GOLDEN), "m", len(GOLDEN) + 1)
    assert len(inspect_safetensors(io.BytesIO(GOLDEN), "m", len(GOLDEN))) == 5


def test_every_truncation_is_refused() -> None:
    for length in range(len(GOLDEN)):
        with pytest.raises(InspectError):
            facts(GOLDEN[:length])


def test_index_lists_its_shards() -> None:
    index = {"metadata": {"total_size": 1.5e9}, "weight_map": {"b": "m-2.st", "a": "m-1.st", "c": "m-2.st"}}
    assert index_shards(json.dumps(index).encode(), "index") == ("m-1.st", "m-2.st")
    broken: list[tuple[bytes, type[Exception]]] = [
        (b"", InspectError),
        (b"[]", InspectError),
        (b"{}", InspectError),
        (b'{"weight_map":[]}', InspectError),
        (b'{"weight_map":{"a":1}}', InspectError),
        (b'{"weight_map":{"a":"x","a":"y"}}', InspectError),
        (b'{"weight_map":{"a":"\\ud800"}}', InspectError),
        (b'{"weight_map":{}}', EmptyError),
        (b'{"weight_map":{"a":"../../etc/passwd"}}', UnsafePathError),
        (b'{"weight_map":{"a":"/etc/passwd"}}', UnsafePathError),
    ]
    for data, error in broken:
        with pytest.raises(error, match="index"):
            index_shards(data, "index")


def test_missing_shards() -> None:
    assert missing_shards(set()) == ()
    assert missing_shards({"a", "b"}, ["a", "b"]) == ()
    assert missing_shards({"a"}, ["c", "b", "a"]) == ("b", "c")
    first = "model-00001-of-00002.safetensors"
    second = "model-00002-of-00002.safetensors"
    assert missing_shards({first}) == missing_shards({first}, [first, second]) == (second,)
    assert missing_shards({first, second}) == ()
    assert missing_shards({"m-00002-of-00007.gguf", "m-00006-of-00007.gguf"}) == (
        "m-00001-of-00007.gguf",
        "m-00003-of-00007.gguf to m-00005-of-00007.gguf",
        "m-00007-of-00007.gguf",
    )
    assert missing_shards({"m-00001-of-00002.a", "m-00002-of-00002.b"}) == (
        "m-00001-of-00002.b",
        "m-00002-of-00002.a",
    )
    assert len(missing_shards({f"{n}-50000-of-99999.x" for n in range(1000)})) == 2000
