"""The streaming log reader: patterns are data, memory is constant, nothing is lost between chunks."""

import time
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.errors import MalformedError
from provstore.evidence.finding import ReaderResult
from provstore.evidence.serverlog import LinePattern, LogScanner, scan_log

READY = LinePattern(
    name="ready",
    marker="ready for",
    pattern=r"\(W(?P<rank>\d+)\) ready for (?P<size>\d+)",
    integers=("rank",),
)
STOP = LinePattern(name="stop", marker="stopping")
LOG = (
    b"(W0) ready for 12\nnoise\n(W1) ready for 12\r\n"
    b"stopping, was ready for nothing\nnoise\n(W1) ready for 12\n"
)


def keyed(found: ReaderResult, key: str) -> list[tuple[object, str]]:
    return [(fact.value, fact.location) for fact in found.all(key)]


def test_matches_are_placed_and_typed() -> None:
    found = scan_log([LOG], [READY, STOP])
    assert keyed(found, "log.ready.rank") == [(0, "line 1"), (1, "line 3"), (1, "line 6")]
    assert keyed(found, "log.ready.size") == [("12", "line 1"), ("12", "line 3"), ("12", "line 6")]
    assert keyed(found, "log.stop") == [("stopping", "line 4")]
    assert found.value("log.ready#lines") == 4
    assert found.value("log.ready#matches") == 3
    assert (found.value("log#lines"), found.value("log#bytes")) == (6, len(LOG))
    assert [(f.code, f.location) for f in found.findings] == [("marker-without-match", "line 4")]


def test_no_match_is_a_count_of_zero() -> None:
    found = scan_log([b"quiet\n"], [READY])
    assert (found.value("log.ready#lines"), found.value("log.ready#matches")) == (0, 0)
    assert found.findings == ()


@given(st.lists(st.integers(min_value=0, max_value=len(LOG)), max_size=12))
def test_cuts_between_chunks_have_no_effect(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(LOG)]
    chunks = [LOG[first:last] for first, last in pairwise(edges)]
    assert scan_log(chunks, [READY, STOP]) == scan_log([LOG], [READY, STOP])


@given(st.binary(max_size=300) | st.text(alphabet="(W1) ready for\n\r\0é", max_size=120).map(str.encode))
def test_any_bytes_agree_with_a_plain_loop(data: bytes) -> None:
    found = scan_log([data], [READY, STOP])
    lines = data.split(b"\n")
    assert found.value("log.ready#lines") == sum(b"ready for" in line for line in lines)
    assert found.value("log#lines") == len(lines) - (lines[-1] == b"")


def test_one_marker_counts_once_a_line() -> None:
    assert scan_log([b"stopping stopping stopping\n"], [STOP]).value("log.stop#lines") == 1


def test_a_cut_off_log_is_told() -> None:
    found = scan_log([b"(W0) ready for 1"], [READY])
    assert keyed(found, "log.ready.rank") == [(0, "line 1")]
    assert [finding.code for finding in found.findings] == ["no-final-newline"]
    assert [finding.code for finding in scan_log([], [READY]).findings] == ["empty"]


def test_groups_that_are_no_text_or_no_integer() -> None:
    wanted = LinePattern(name="x", marker="x=", pattern="x=(?P<value>.*)", integers=("value",))
    codes = [f.code for f in scan_log([b"x=\xff\nx=1.5\nx=007\nx=-3\n"], [wanted]).findings]
    assert codes == ["not-utf8", "wrong-type"]
    optional = LinePattern(name="x", marker="x", pattern="x(?P<value>y)?")
    assert scan_log([b"x\n"], [optional]).fact("log.x.value") is None


def test_long_lines_do_not_take_memory() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"first\n(W0) ready for 1 "
        for _ in range(256):
            yield b"z" * (1 << 20)
        yield b"\nstopping\n"

    tracemalloc.start()
    found = scan_log(chunks(), [READY, STOP])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    assert [(f.code, f.severity, f.location) for f in found.findings] == [
        ("line-too-long", "error", "line 2")
    ]
    assert keyed(found, "log.stop") == [("stopping", "line 3")]
    assert found.value("log#lines") == 3


def test_a_long_log_takes_constant_memory() -> None:
    block = (b"an ordinary line of a server log, about as long as this one is\n" * 16_000 + b"stopping\n") * 1
    tracemalloc.start()
    found = scan_log((block for _ in range(200)), [READY, STOP])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.value("log.stop#matches") == 200
    assert found.value("log#bytes") == len(block) * 200
    assert peak < 4 << 20


def test_a_million_matches_are_bounded_and_told() -> None:
    found = scan_log([b"stopping\n" * 1_000_000], [STOP])
    assert found.value("log.stop#lines") == 1_000_000
    assert found.fact("log.stop#matches") is None
    assert len(found.all("log.stop")) == 10_000
    assert [finding.code for finding in found.findings] == ["too-many-matches"]


def test_lines_that_make_a_pattern_slow_are_bounded() -> None:
    wanted = LinePattern(name="slow", marker="rank", pattern=r"rank (?P<rank>\d+).*end")
    line = b"rank 1 " * 4000 + b"\n"
    start = time.perf_counter()
    found = scan_log([line * 200], [wanted])
    assert time.perf_counter() - start < 60
    assert found.findings[-1].code == "too-many-matches"
    assert found.value("log.slow#lines") == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "X", "marker": "m"},
        {"name": "x", "marker": ""},
        {"name": "x", "marker": "a\nb"},
        {"name": "x", "marker": "m", "pattern": "("},
        {"name": "x", "marker": "m", "pattern": "(?P<a>1)", "integers": ("b",)},
        {"name": "x", "marker": "m", "pattern": "(a+)+b"},
        {"name": "x", "marker": "m", "pattern": r"((?:\w*x)|y){2,}"},
        {"name": "x", "marker": "m", "pattern": "(?:(?:a*)b)*"},
    ],
)
def test_bad_patterns_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        LinePattern(**fields)  # type: ignore[arg-type]


def test_good_patterns_with_brackets_are_taken() -> None:
    for pattern in (r"[(+*]+", r"(\d+)(,\d)?", r"[]+]x*", r"\(a+\)+", "(ab)+"):
        assert LinePattern(name="x", marker="m", pattern=pattern).compiled()


def test_names_must_differ() -> None:
    with pytest.raises(MalformedError):
        LogScanner([STOP, STOP])


def test_an_expression_that_grows_with_a_power_of_the_line_is_stopped() -> None:
    pattern = LinePattern(name="slow", marker="a", pattern="(.*)(.*)(.*)(.*)[xy]")
    began = time.process_time()
    found = scan_log([b"a" * 4000 + b"\n", b"ax\n"], [pattern])
    assert time.process_time() - began < 10
    assert found.fact("log.slow#matches") is None
    assert [finding.code for finding in found.findings] != []
