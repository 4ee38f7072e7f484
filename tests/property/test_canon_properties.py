"""Canonical JSON: one spelling for each value, and no other spelling is ever accepted."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from provstore import canon, records
from provstore.errors import (
    CanonError,
    DepthError,
    DuplicateKeyError,
    FloatError,
    MalformedError,
    NewerFormatError,
    TrailingBytesError,
    UnknownFieldError,
)
from provstore.records.facts import Fact, Facts
from provstore.records.observation import Observation
from provstore.records.packet import Claim, Entry, Origin, Packet, Pin
from provstore.records.tree import TreeChild, TreeEntry, TreeIndex, TreeLeaf

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-canon.MAX_INTEGER, canon.MAX_INTEGER)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=25,
)

HEX = "0123456789abcdef" * 4
SAMPLES: list[records.Record] = [
    TreeLeaf(entries=()),
    TreeLeaf(
        entries=(
            TreeEntry(kind="executable", name='a\u0001"\\/é', blake3=HEX, sha256=HEX, size_bytes=7),
            TreeEntry(kind="directory", name="b", tree=HEX),
            TreeEntry(kind="symlink", name="c", target="../\u2028"),
            TreeEntry(kind="file", name_hex="ff", state="unreadable"),
        )
    ),
    TreeIndex(
        level=1,
        children=(TreeChild(tree=HEX, entries=40, last="x"), TreeChild(tree=HEX, entries=1, last_hex="ff")),
    ),
    Packet(
        name="run",
        entries=(
            Entry(
                role="w",
                kind="model",
                files=2,
                tree=HEX,
                size_bytes=11,
                custody="external",
                origins=(Origin(hub="o/m", revision="4bbf"),),
                pins=(Pin(kind="manifest", value=HEX, prefix="int4/"),),
                facts=(HEX,),
                exclude=("*.lock",),
                follow_symlinks=True,
            ),
        ),
        claims=(
            Claim(
                name="decode", value="102.97143559613157", unit="tok/s", metric="rate", convention="intervals"
            ),
        ),
        parents=(HEX,),
    ),
    Facts(
        extractor="elf",
        version=1,
        source=HEX,
        facts=(Fact(key="elf.needed", value=("libc.so.6", "libm.so.6"), path="a"), Fact(key="n", value=12)),
    ),
    Observation(
        packet=HEX, taken_ns="1784500000000000000", tool="provstore 0.1.0", variables={"corpus": "/x"}
    ),
]
SAMPLE = st.sampled_from([records.encode(record)[1] for record in SAMPLES])


def reference(value: Any) -> bytes:
    """Encode with another implementation: code-point order, no blanks, only the escapes JSON demands."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


# Round trips


@given(VALUES)
@example({"\U00010000": 1, "\uffff": 2, "": 3, "é": 4, "e\u0301": 5})
def test_encoding_is_canonical_and_comes_back(value: Any) -> None:
    data = canon.encode(value)
    assert canon.decode(data, Any) == value
    assert canon.encode(json.loads(data)) == data
    assert json.loads(data) == value


@given(st.dictionaries(TEXT, INTEGERS, max_size=8))
@example({"\U0001f600": 1, "\ufb03": 2, "~": 3})
def test_keys_come_in_code_point_order(value: dict[str, int]) -> None:
    assert list(json.loads(canon.encode(value))) == sorted(value)


@given(st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"], exclude_characters='"\\\x7f')))
def test_text_that_needs_no_escape_has_none(text: str) -> None:
    assert canon.encode(text) == b'"' + text.encode() + b'"'


@pytest.mark.parametrize("record", SAMPLES, ids=lambda record: type(record).__name__)
def test_records_come_back(record: records.Record) -> None:
    id, data = records.encode(record)
    assert records.decode(data) == record
    assert records.encode(records.decode(data)) == (id, data)
    assert data == reference(json.loads(data))


# Every other spelling


def refused(data: bytes, *kinds: type[MalformedError]) -> None:
    """Check that neither the record decoder nor the plain one takes these bytes."""
    with pytest.raises(kinds or MalformedError):
        records.decode(data)
    with pytest.raises(MalformedError):
        canon.decode(data, dict[str, Any])


def in_string(data: bytes, at: int) -> bool:
    inside = escaped = False
    for char in data[:at]:
        if inside and escaped:
            escaped = False
        elif inside and char == ord("\\"):
            escaped = True
        elif char == ord('"'):
            inside = not inside
    return inside and not escaped


def tokens(data: bytes) -> list[int]:
    """Return the positions between tokens of canonical JSON, outside of strings."""
    return sorted(
        {0, len(data)} | {at for at in range(len(data)) if data[at] in b"{}[],:" and not in_string(data, at)}
    )


@given(st.data(), SAMPLE, st.sampled_from([b" ", b"\n", b"\t", b"\r\n"]))
def test_a_blank_between_any_two_tokens_is_refused(draw: st.DataObject, data: bytes, blank: bytes) -> None:
    at = draw.draw(st.sampled_from(tokens(data)))
    altered = data[:at] + blank + data[at:]
    assert json.loads(altered) == json.loads(data)
    refused(altered, CanonError)


@given(SAMPLE, st.sampled_from([b" ", b"\n", b"\0", b"{}", b"x", b",", b"\xef\xbb\xbf"]))
def test_bytes_before_and_after_are_refused(data: bytes, extra: bytes) -> None:
    refused(data + extra, CanonError)
    refused(extra + data, MalformedError)
    if not extra.strip():
        with pytest.raises(TrailingBytesError):
            records.decode(data + extra)


def objects_in(value: Any) -> list[dict[str, Any]]:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    here = [value] if isinstance(value, dict) else []
    return here + [found for inner in below for found in objects_in(inner)]


def rendered(value: Any, target: dict[str, Any], lines: list[str]) -> bytes:
    """Encode with one object written as the given members, in this order."""

    def text(inner: Any) -> str:
        if inner is target:
            return "{" + ",".join(lines) + "}"
        if isinstance(inner, dict):
            return (
                "{"
                + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{text(inner[k])}" for k in sorted(inner))
                + "}"
            )
        if isinstance(inner, list):
            return "[" + ",".join(map(text, inner)) + "]"
        return reference(inner).decode()

    return text(value).encode()


def members(target: dict[str, Any]) -> list[str]:
    return [f"{reference(key).decode()}:{reference(target[key]).decode()}" for key in sorted(target)]


@given(st.data(), SAMPLE)
def test_any_other_order_of_keys_is_refused(draw: st.DataObject, data: bytes) -> None:
    value = json.loads(data)
    target = draw.draw(st.sampled_from([found for found in objects_in(value) if len(found) > 1]))
    lines = members(target)
    assert rendered(value, target, lines) == data
    other = draw.draw(st.permutations(lines).filter(lambda found: found != lines))
    refused(rendered(value, target, list(other)), CanonError)


@given(st.data(), SAMPLE)
def test_a_key_that_is_stated_twice_is_refused_at_any_depth(draw: st.DataObject, data: bytes) -> None:
    value = json.loads(data)
    target = draw.draw(st.sampled_from([found for found in objects_in(value) if found]))
    lines = members(target)
    at = draw.draw(st.integers(0, len(lines) - 1))
    twice = [
        *lines[: at + 1],
        draw.draw(st.sampled_from([lines[at], lines[at].split(":")[0] + ':"x"'])),
        *lines[at + 1 :],
    ]
    refused(rendered(value, target, twice), DuplicateKeyError)


@given(st.data(), SAMPLE)
def test_an_unknown_field_is_refused_at_any_depth(draw: st.DataObject, data: bytes) -> None:
    value = json.loads(data)
    target = draw.draw(st.sampled_from([f for f in objects_in(value) if f is not value.get("variables")]))
    lines = sorted([*members(target), '"zzz":1'])
    with pytest.raises(UnknownFieldError):
        records.decode(rendered(value, target, lines))


@given(st.data(), SAMPLE)
def test_an_escape_that_is_not_needed_is_refused(draw: st.DataObject, data: bytes) -> None:
    plain = [at for at in range(len(data)) if 0x30 <= data[at] < 0x7F and in_string(data, at)]
    letters = [at for at in plain if b"\\" not in data[at - 5 : at + 1] and data[at] != ord('"')]
    at = draw.draw(st.sampled_from(letters))
    style = draw.draw(st.sampled_from(["\\u%04x", "\\u%04X"]))
    altered = data[:at] + (style % data[at]).encode() + data[at + 1 :]
    assert json.loads(altered) == json.loads(data)
    refused(altered, CanonError)


@pytest.mark.parametrize(
    "spelling",
    [
        b'"\\/"',
        b'"\\u0022"',
        b'"\\u005c"',
        b'"\\u000a"',
        b'"\\u001F"',
        b'"\\u0008"',
        b'"\\ud83d\\ude00"',
        b'"\\u00e9"',
    ],
)
def test_escapes_have_one_spelling(spelling: bytes) -> None:
    assert isinstance(json.loads(spelling), str)
    with pytest.raises(CanonError):
        canon.decode(spelling, str)


@given(
    st.data(),
    SAMPLE,
    st.sampled_from(
        [
            "{}.0",
            "{}e0",
            "{}E1",
            "0{}",
            "-0",
            "{}0000000000000000",
            "9007199254740992",
            "-9007199254740992",
            "1e400",
            "NaN",
            "Infinity",
            "-Infinity",
            "0x10",
            "1_0",
            "+1",
            ".5",
            "1.",
        ]
    ),
)
def test_no_other_number_than_an_exact_integer_is_accepted(
    draw: st.DataObject, data: bytes, form: str
) -> None:
    value = json.loads(data)
    spots = [
        (found, key) for found in objects_in(value) for key, inner in found.items() if type(inner) is int
    ]
    if not spots:
        return
    target, key = draw.draw(st.sampled_from(spots))
    number = form.format(target[key])
    if number.lstrip("-") == "0":
        number = "-0"
    lines = [f'"{key}":{number}' if line.startswith(f'"{key}":') else line for line in members(target)]
    refused(rendered(value, target, lines), CanonError)


@pytest.mark.parametrize(
    "value", [0.5, 1.0, float("nan"), float("inf"), -float("inf"), 1 << 53, -(1 << 53), 10**40]
)
@pytest.mark.parametrize(
    "wrap", [lambda v: v, lambda v: [v], lambda v: {"a": {"b": [None, v]}}, lambda v: ["1.5", v]]
)
def test_the_encoder_refuses_what_the_decoder_would(value: Any, wrap: Any) -> None:
    with pytest.raises(CanonError):
        canon.encode(wrap(value))


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, ["a", "\udcff"]])
def test_text_that_is_no_unicode_has_no_form(value: Any) -> None:
    with pytest.raises(CanonError):
        canon.encode(value)


@given(st.integers(1, 400), st.sampled_from([("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")]))
def test_depth_has_a_limit_and_its_own_error(levels: int, brackets: tuple[str, str]) -> None:
    before, after = brackets
    data = (before * levels + "1" + after * levels).encode()
    depth = levels * sum(before.count(char) for char in "[{")
    if depth > canon.MAX_DEPTH:
        with pytest.raises(DepthError):
            canon.parse(data)
        with pytest.raises(MalformedError):
            records.decode(data)
    else:
        assert canon.parse(data) == json.loads(data)


@pytest.mark.parametrize("levels", [100_000, 3_000_000])
def test_absurd_depth_is_refused_quickly_everywhere(levels: int) -> None:
    data = b"[" * levels
    start = time.monotonic()
    for decode in (canon.parse, canon.parse_exact, records.decode, lambda d: canon.decode(d, list[Any])):
        with pytest.raises(MalformedError):
            decode(data)
        with pytest.raises(MalformedError):
            decode(data + b"]" * levels)
    assert canon.format_of(data) is None
    assert time.monotonic() - start < 8


@pytest.mark.parametrize(
    "data",
    [
        b'"' + b'\\"' * 300_000,
        b'["' + b"\\" * 600_001,
        b'{"a":"' + b'x"' * 300_000,
        b'{"' + b'":"' * 200_000,
        b"1" * 600_000,
        b"[" + b"1" * 600_000 + b"]",
        b"-" * 600_000,
        b'"' + b"1.1e5" * 120_000 + b'"',
        b'["' + b"1." * 300_000 + b'x"]',
        b"[" + b"0," * 300_000 + b"0]",
        b"[1" + b"e" * 600_000,
        b"[1" + b".1" * 300_000 + b"]",
        b" " * 600_000,
    ],
    ids=lambda data: repr(data[:12]),
)
def test_no_text_takes_long_to_refuse(data: bytes) -> None:
    """Each is some 600 kB; time that grows with the square would be minutes."""
    start = time.monotonic()
    for decode in (canon.parse, canon.parse_exact, records.decode):
        try:
            decode(data)
        except MalformedError:
            continue
    assert time.monotonic() - start < 8


# Any bytes


@given(st.binary(max_size=60))
@example(b"")
@example(b"\xff")
@example(b'"\xed\xa0\x80"')
@example(b'{"format":"provstore/tree/v1"}')
@settings(max_examples=200)
def test_any_bytes_are_decoded_or_refused_with_an_error_of_ours(data: bytes) -> None:
    for decode, encode in (
        (records.decode, lambda r: records.encode(r)[1]),
        (lambda d: canon.decode(d, Any), canon.encode),
    ):
        try:
            value = decode(data)
        except MalformedError:
            continue
        assert encode(value) == data


@given(st.data(), SAMPLE)
@settings(max_examples=300)
def test_one_altered_byte_is_another_record_or_none(draw: st.DataObject, data: bytes) -> None:
    at = draw.draw(st.integers(0, len(data) - 1))
    byte = draw.draw(st.integers(0, 255).filter(lambda b: b != data[at]))
    altered = data[:at] + bytes((byte,)) + data[at + 1 :]
    try:
        record = records.decode(altered)
    except MalformedError:
        return
    assert records.encode(record)[1] == altered
    assert records.encode(record)[0] != records.encode(records.decode(data))[0]


@given(st.data(), SAMPLE)
def test_what_is_cut_short_is_refused(draw: st.DataObject, data: bytes) -> None:
    refused(data[: draw.draw(st.integers(0, len(data) - 1))])


@given(st.data(), SAMPLE)
def test_a_default_that_is_written_out_is_refused(draw: st.DataObject, data: bytes) -> None:
    """Two spellings of one record would be two ids for one meaning."""
    value = json.loads(data)
    target = draw.draw(st.sampled_from([f for f in objects_in(value) if f is not value.get("variables")]))
    for key, default in (
        ("state", None),
        ("executable", False),
        ("exclude", []),
        ("custody", "held"),
        ("name", None),
    ):
        if key not in target:
            with pytest.raises(MalformedError):
                records.decode(
                    rendered(value, target, sorted([*members(target), f'"{key}":{json.dumps(default)}']))
                )


@given(SAMPLE, st.sampled_from(["v2", "v999", "v1 ", "V1", ""]))
def test_a_newer_version_is_named_as_such(data: bytes, version: str) -> None:
    altered = data.replace(b'/v1"', b"/" + version.encode() + b'"', 1)
    with pytest.raises(NewerFormatError, match="provstore/"):
        records.decode(altered)


@given(st.from_regex(r"\A-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?\Z"))
@example("102.97143559613157")
@example("1e999")
@example("9007199254740993")
def test_foreign_numbers_keep_their_text(text: str) -> None:
    try:
        found = canon.parse_exact(text.encode())
    except FloatError:
        assert text == "-0" or float(text) in (float("inf"), -float("inf"))
        return
    assert str(found) == text
    if isinstance(found, int):
        assert abs(found) <= canon.MAX_INTEGER
