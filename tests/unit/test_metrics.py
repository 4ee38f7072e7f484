"""Metric definitions, recomputation, comparison and conversion."""

import math
import statistics
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.errors import IncomparableError, MalformedError, NotFoundError
from provstore.evidence import conventions
from provstore.evidence.aggregation import mean, median, percentile
from provstore.evidence.comparing import compare, conventions_giving, convert, difference, rank
from provstore.evidence.jsonreader import Number, Value, read
from provstore.evidence.metrics import Definition, MetricValue, Window, definition_from, recompute
from provstore.evidence.rows import Row, from_log

LEGACY = conventions.find("legacy-inclusive-events")
INTERVALS = conventions.find("conventional-intervals")
BALANCED = conventions.find("class-balanced-intervals")


def number(value: float) -> Number:
    return Number(repr(float(value)), float(value))


def row(offsets: list[Value], index: int = 0, **fields: Value) -> Row:
    return Row(location=f"/rows/{index}", fields={"token_id_offsets_s": offsets, **fields})


def steps(step: float, count: int = 100) -> list[Value]:
    return [number(at * step) for at in range(count)]


def test_one_real_row() -> None:
    offsets: list[Value] = [Number("10.328412583003228", 10.328412583003228)]
    offsets += [number(11.0)] * 98 + [Number("22.82249498800229", 22.82249498800229)]
    assert recompute(LEGACY, [row(offsets)]).text == "8.003789054567829"
    assert recompute(INTERVALS, [row(offsets)]).text == "7.923751164022152"


def test_known_timestamps_and_a_right_number_under_a_wrong_name() -> None:
    rows = [row(steps(0.01))]
    value = recompute(INTERVALS, rows)
    assert compare("100.0", "conventional-intervals", value).outcome == "equal"
    wrong = compare("101.01010101010101", "conventional-intervals", value)
    assert (wrong.outcome, wrong.code) == ("differs", "not-bit-equal")
    named = conventions_giving("101.01010101010101", rows, conventions.SHIPPED)
    assert named == ("legacy-inclusive-events",)
    assert compare("101.01010101010101", named[0], recompute(LEGACY, rows)).code == "bit-equal"


@pytest.mark.parametrize(
    ("stated", "recomputed", "difference"),
    [
        ("101.94172124017025", 101.94172124017027, 1.4e-14),
        ("102.9714355961316", 102.97143559613157, 2.8e-14),
    ],
)
def test_tolerance_is_stated(stated: str, recomputed: float, difference: float) -> None:
    value = MetricValue(convention="wall", unit="tok/s", value=recomputed)
    strict = compare(stated, "wall", value)
    assert (strict.code, strict.tolerance) == ("not-bit-equal", "0")
    assert abs(float(strict.difference)) == pytest.approx(difference, rel=0.03)
    assert compare(stated, "wall", value, "1e-12").code == "within-tolerance"
    assert compare(stated, "wall", value, "1e-15").code == "beyond-tolerance"


DECREASING: list[Value] = [*steps(0.01)[:99], number(-1.0)]


@pytest.mark.parametrize(
    ("offsets", "code"),
    [
        (steps(0.01, 99), "window-too-short"),
        ([number(1.0)] * 100, "nonpositive-span"),
        (DECREASING, "nonpositive-span"),
        ([*steps(0.01)[:50], None, *steps(0.01)[51:]], "wrong-type"),
        ([*steps(0.01)[:99], True], "wrong-type"),
        (["0"] * 100, "wrong-type"),
        ([], "window-too-short"),
    ],
)
def test_one_bad_row_leaves_no_value(offsets: list[Value], code: str) -> None:
    good = [row(steps(0.01), index) for index in range(12)]
    value = recompute(INTERVALS, [*good, row(offsets, 12)])
    assert value.value is None
    assert value.text == ""
    assert [finding.code for finding in value.failures] == [code]
    assert value.failures[0].location.startswith("/rows/12/token_id_offsets_s")
    assert [each.value is None for each in value.rows] == [False] * 12 + [True]


@pytest.mark.parametrize("fields", [{}, {"token_id_offsets_s": None}])
def test_absent_timestamps_are_unknown(fields: dict[str, Value]) -> None:
    failure = recompute(LEGACY, [Row(location="/rows/0", fields=fields)]).failures[0]
    assert (failure.code, failure.severity) == ("absent", "unknown")


def test_no_rows_is_no_value() -> None:
    assert [finding.code for finding in recompute(LEGACY, []).failures] == ["too-few-rows"]


def test_decreasing_inside_the_window_is_told() -> None:
    offsets = steps(0.01)
    offsets[50], offsets[51] = offsets[51], offsets[50]
    value = recompute(LEGACY, [row(offsets)])
    assert value.value is not None
    assert [note.code for note in value.notes] == ["timestamps-decrease"]


def test_classes_are_balanced() -> None:
    speeds = {"code": [0.01, 0.02, 0.03], "prose": [0.5], "json": [0.1, 0.2]}
    rows = [
        row(steps(step), index, prompt_class=name)
        for index, (name, step) in enumerate((n, s) for n, each in speeds.items() for s in each)
    ]
    value = recompute(BALANCED, rows)
    assert dict(value.classes).keys() == speeds.keys()
    assert value.value == dict(value.classes)["json"]
    assert recompute(BALANCED, rows[::-1]).value == value.value
    unnamed = recompute(BALANCED, [*rows, row(steps(0.1), 9, prompt_class=None)])
    assert [(f.code, f.severity) for f in unnamed.failures] == [("class-absent", "unknown")]


def test_counter_ratios() -> None:
    fields: dict[str, Value] = {"drafts": 1609, "draft_tokens": 17699, "accepted_tokens": 4747}
    counters = [Row(location="", fields=fields)]
    assert recompute(conventions.find("draft-acceptance"), counters).text == "0.26820724334708174"
    assert recompute(conventions.find("tokens-per-verification"), counters).text == "3.950279676817899"
    none = [Row(location="", fields={"drafts": 0, "draft_tokens": 0, "accepted_tokens": 0})]
    assert recompute(conventions.find("draft-acceptance"), none).failures[0].code == "nonpositive-span"
    assert recompute(conventions.find("draft-acceptance"), counters * 2).failures[0].code == "not-single"


@pytest.mark.parametrize(
    ("found", "code"),
    [(True, "wrong-type"), ("3", "wrong-type"), (None, "absent"), (-1, "negative"), ([3], "wrong-type")],
)
def test_fields_are_typed(found: Value, code: str) -> None:
    value = recompute(
        conventions.find("wall"), [Row(location="", fields={"completion_tokens": found, "elapsed_s": 2})]
    )
    assert [finding.code for finding in value.failures] == [code]


def test_engine_rate_is_read_by_pointer() -> None:
    rows = [
        Row(location=f"/rows/{at}", fields={"timings": {"predicted_per_second": number(rate)}})
        for at, rate in enumerate((90.0, 110.0))
    ]
    assert recompute(conventions.find("engine-rate-mean"), rows).value == 100.0
    missing = recompute(conventions.find("engine-rate-mean"), [Row(location="/rows/0", fields={})])
    assert missing.failures[0].location == "/rows/0/timings/predicted_per_second"


def test_values_of_two_conventions_do_not_meet() -> None:
    rows = [row(steps(0.01))]
    legacy, interval = recompute(LEGACY, rows), recompute(INTERVALS, rows)
    with pytest.raises(IncomparableError):
        difference(legacy, interval)
    with pytest.raises(IncomparableError):
        rank([legacy, interval])
    with pytest.raises(IncomparableError):
        compare("100.0", "legacy-inclusive-events", interval)
    with pytest.raises(TypeError):
        sorted([legacy, interval])  # type: ignore[type-var]
    nothing = recompute(LEGACY, [])
    with pytest.raises(IncomparableError):
        difference(legacy, nothing)
    with pytest.raises(IncomparableError):
        rank([nothing])
    assert compare("1.0", LEGACY.name, nothing).outcome == "unknown"


def test_ranking_and_difference_within_one() -> None:
    values = [recompute(INTERVALS, [row(steps(step))]) for step in (0.02, 0.01, 0.04)]
    assert [value.value for value in rank(values)] == [100.0, 50.0, 25.0]
    assert (difference(values[1], values[0]).delta, difference(values[1], values[0]).percent) == (
        -50.0,
        -50.0,
    )


def test_conversion_is_a_new_derived_value() -> None:
    legacy = MetricValue(convention=LEGACY.name, unit="tok/s", value=102.97143559613157)
    derived = convert(legacy, LEGACY, INTERVALS)
    assert (derived.text, derived.derived_from) == ("101.94172124017025", "legacy-inclusive-events")
    with pytest.raises(IncomparableError):
        convert(legacy, LEGACY, conventions.find("wall"))
    with pytest.raises(IncomparableError):
        convert(legacy, LEGACY, BALANCED)
    with pytest.raises(IncomparableError):
        convert(derived, LEGACY, INTERVALS)


def test_definitions_are_data() -> None:
    text = """
    name = "p90-first-fifty"
    unit = "tok/s"
    numerator = "intervals"
    timing = "chunk_offsets_s"
    window = { first = 0, last = 49 }
    aggregation = "percentile"
    percentile = "90"
    method = "nearest-rank"
    tolerance = "1e-9"
    minimum_rows = 12
    """
    found = definition_from(tomllib.loads(text), "policy.toml")
    assert found.window == Window(first=0, last=49)
    assert found.formula() == (
        "90th percentile (nearest-rank) over rows of 49 / (chunk_offsets_s[49] - chunk_offsets_s[0])"
    )


GOOD: dict[str, Any] = {"name": "x", "unit": "s", "numerator": ["a"]}
SPAN: dict[str, Any] = {"name": "x", "unit": "s", "numerator": "events", "timing": "t"}


@pytest.mark.parametrize(
    "table",
    [
        {**GOOD, "name": "X y"},
        {**GOOD, "unit": ""},
        {**GOOD, "numerator": []},
        {**GOOD, "numerator": [""]},
        {**GOOD, "numerator": "tokens"},
        {**GOOD, "numerator": "events"},
        {**GOOD, "window": {"first": 0, "last": 9}},
        {**GOOD, "aggregation": "mode"},
        {**GOOD, "aggregation": "percentile"},
        {**GOOD, "percentile": "10"},
        {**GOOD, "aggregation": "percentile", "percentile": "101"},
        {**GOOD, "tolerance": "-1"},
        {**GOOD, "tolerance": "nan"},
        {**GOOD, "minimum_rows": 0},
        {**GOOD, "scale": 0},
        {**GOOD, "surprise": 1},
        {**SPAN, "window": {"first": 5, "last": 5}},
        {**SPAN, "window": {"first": -1, "last": 5}},
        {**SPAN, "window": {"first": 0, "last": 5}, "per": "s"},
        SPAN,
    ],
)
def test_bad_definitions_are_refused(table: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        definition_from(table, "policy.toml")


def test_unknown_conventions_are_named() -> None:
    with pytest.raises(NotFoundError, match="legacy-inclusive-events"):
        conventions.find("fastest")
    assert conventions.find("events") is LEGACY


def test_raw_log_of_timestamps() -> None:
    data = b"".join(b"%.6f\n" % (at * 0.008) for at in range(100))
    found = from_log(data, INTERVALS.timing)
    assert recompute(INTERVALS, found.rows).text == "125.0"
    assert recompute(LEGACY, found.rows).value == pytest.approx(126.2626, abs=1e-4)
    short = from_log(b"".join(data.splitlines(keepends=True)[:-1]), INTERVALS.timing)
    assert recompute(INTERVALS, short.rows).failures[0].code == "window-too-short"


@pytest.mark.parametrize(
    "line", [b"", b" 1.0", b"1.0\r", b"nan", b"1,0", b"-1.0", b"0x1", b"1_0", b"\xff", b"1e999"]
)
def test_malformed_log_gives_no_rows(line: bytes) -> None:
    found = from_log(b"0.1\n" + line + b"\n0.3\n", "t")
    assert found.rows == ()
    assert [(finding.code, finding.location) for finding in found.findings] == [("malformed-line", "line 2")]
    assert recompute(LEGACY, found.rows).value is None


FLOATS = st.lists(st.floats(min_value=1e-6, max_value=1e9), min_size=1, max_size=50)


@given(FLOATS)
def test_aggregations_agree_with_the_standard_library(values: list[float]) -> None:
    assert median(values) == statistics.median(values)
    assert mean(values) == statistics.fmean(values)
    tenth = percentile(values, "10", "linear")
    assert min(values) * (1 - 1e-15) <= tenth <= max(values) * (1 + 1e-15)
    assert percentile(values, "100", "nearest-rank") == max(values)
    assert percentile(values, "0", "linear") == min(values)


@given(FLOATS, st.randoms())
def test_order_of_rows_has_no_effect(spans: list[float], chance: Any) -> None:
    rows = [
        Row(location=f"/rows/{at}", fields={"completion_tokens": 100, "elapsed_s": number(span)})
        for at, span in enumerate(spans)
    ]
    mixed = rows[:]
    chance.shuffle(mixed)
    for name in ("wall",):
        assert recompute(conventions.find(name), rows).value == recompute(conventions.find(name), mixed).value


def test_overflow_is_no_value() -> None:
    tiny = [Row(location="", fields={"completion_tokens": 10**400, "elapsed_s": number(1.0)})]
    assert recompute(conventions.find("wall"), tiny).failures[0].code == "non-finite"
    small = [Row(location="", fields={"completion_tokens": 10, "elapsed_s": number(5e-324)})]
    assert recompute(conventions.find("wall"), small).failures[0].code == "non-finite"


def test_source_text_decides_the_double() -> None:
    value = read(b'{"completion_tokens": 1, "elapsed_s": 0.1000000000000000055511151231257827}').value
    assert isinstance(value, dict)
    assert math.isclose(
        recompute(conventions.find("wall"), [Row(location="", fields=value)]).value or 0, 10.0
    )


def test_definition_is_hashable_data() -> None:
    assert isinstance(hash(Definition(name="x", unit="s", numerator=("a",))), int)
