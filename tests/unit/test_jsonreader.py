"""The strict JSON reader: types, source text, locations and bounds."""

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.evidence.jsonreader import (
    ABSENT,
    Limits,
    Number,
    Spoiled,
    child,
    kind,
    read,
    resolve,
)


def codes(data: bytes) -> list[tuple[str, str]]:
    return [(finding.code, finding.location) for finding in read(data).findings]


def test_five_different_nothings() -> None:
    value = read(b'{"a": false, "b": 0.0, "c": "0", "d": null, "e": 0}').value
    kinds = [kind(resolve(value, f"/{name}")) for name in "abcdef"]
    assert kinds == ["boolean", "decimal", "string", "null", "integer", "absent"]


@pytest.mark.parametrize("text", ["1.0", "1.00", "1e0", "-0", "-0.0", "1E+2", "201.77322600011393", "5e-324"])
def test_number_text_is_kept(text: str) -> None:
    assert read(f"[{text}]".encode()).value == [Number(text, float(text))]


def test_big_integers_stay_exact() -> None:
    assert read(b"[123456789012345678901234567890]").value == [123456789012345678901234567890]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": 1, "a": 1}', ("duplicate-key", "/a")),
        (b'[0, {"a/b": {"x": 1, "x": 2}}]', ("duplicate-key", "/1/a~1b/x")),
        (b'{"v": NaN}', ("non-finite", "/v")),
        (b"[1, [-Infinity]]", ("non-finite", "/1/0")),
        (b'{"v": 1e999}', ("non-finite", "/v")),
        (b'{"v": ' + b"9" * 5000 + b"}", ("number-too-long", "/v")),
        (b'{"v": "\\ud800"}', ("bad-unicode", "/v")),
        (b'{"\\ud800": 1}', ("bad-unicode", "")),
        (b'\xef\xbb\xbf{"v": 1}', ("byte-order-mark", "line 1")),
        (b'{"v":\n "\xff"}', ("not-utf8", "line 2")),
        (b'{"v": 1}\n x', ("trailing-text", "line 2")),
        (b'{"v": 1,\n\n}', ("not-json", "line 3")),
        (b'{"v": "a\x00b"}', ("not-json", "line 1")),
        (b"", ("not-json", "line 1")),
        (b"[01]", ("not-json", "line 1")),
    ],
)
def test_findings_have_a_code_and_a_place(data: bytes, expected: tuple[str, str]) -> None:
    assert codes(data) == [expected]


def test_spoiled_is_no_value() -> None:
    assert read(b'{"a": 1, "a": 1}').value == {"a": Spoiled("duplicate-key", "a")}


def test_emoji_of_two_surrogates_is_text() -> None:
    assert read(b'["\\ud83d\\ude00"]').value == ["\U0001f600"]


@pytest.mark.parametrize(("depth", "fine"), [(64, True), (65, False)])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")])
def test_depth_limit_is_exact(depth: int, fine: bool, brackets: tuple[str, str]) -> None:
    data = (brackets[0] * depth + "1" + brackets[1] * depth).encode()
    assert (codes(data) == []) is fine


def test_brackets_in_strings_are_no_depth() -> None:
    data = json.dumps(["[" * 500, '"' * 3 + "[{" * 300, "\\", "\\" * 7 + '"[']).encode()
    assert read(data).value == json.loads(data)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_deep_nesting_is_refused_fast(data: bytes) -> None:
    start = time.perf_counter()
    found = read(data)
    assert found.value is ABSENT
    assert [finding.code for finding in found.findings] == ["too-deep"]
    assert time.perf_counter() - start < 5


def test_a_million_rows_are_refused_before_they_are_built() -> None:
    data = b'{"rows": [' + b",".join([b"{}"] * 1_000_000) + b"]}"
    tracemalloc.start()
    found = read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [finding.code for finding in found.findings] == ["too-many-values"]
    assert peak < 30 << 20


def test_limits_are_the_callers() -> None:
    assert read(b"[1, 2]", Limits(bytes=3)).findings[0].code == "too-large"
    assert read(b"[1, 2]", Limits(values=0)).findings[0].code == "too-many-values"


def test_pointer_round_trip() -> None:
    value = read(b'{"a/b": {"~": [10, 20]}}').value
    assert resolve(value, child(child(child("", "a/b"), "~"), 1)) == 20
    for wrong in ("/a/b/2", "/a~1b/~0/2", "/a~1b/~0/01", "/a~1b/~0/-", "a", "/a~1b/~0/1/x"):
        assert resolve(value, wrong) is ABSENT


def plain(value: object) -> object:
    if isinstance(value, Number):
        return value.double
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(JSON)
def test_agrees_with_the_standard_library(value: object) -> None:
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    found = read(data)
    if not found.findings:
        assert plain(found.value) == value


@given(
    st.binary(max_size=200) | st.text(alphabet='{}[]",:\\u0de1.-eE naNltrufs', max_size=80).map(str.encode)
)
def test_never_raises(data: bytes) -> None:
    found = read(data)
    assert found.value is not ABSENT or found.findings


def test_a_place_below_a_name_that_is_no_text_can_be_written_down() -> None:
    found = read(b'{"\\ud800": [NaN]}').findings
    assert [(f.code, f.location) for f in found] == [("non-finite", "/\\ud800/0"), ("bad-unicode", "")]
    assert all(f.location.encode() is not None for f in found)
