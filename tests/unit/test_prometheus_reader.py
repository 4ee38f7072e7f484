"""Prometheus text: labels, source text, duplicates, resets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from provstore.evidence.prometheus import by_label, delta, read_prometheus, samples_of, total

SCRAPE = rb"""# HELP r_total Requests.
# TYPE r_total counter
r_total{reason="stop",engine="0"} 2.0
r_total{engine="0",reason="length"} 11.0
# TYPE mem_bytes gauge
mem_bytes 6.914220032e+09
odd{path="C:\\x\"}\n",} 1 1395066363000
"""


def codes(data: bytes) -> list[tuple[str, str]]:
    return [(finding.code, finding.location) for finding in read_prometheus(data).findings]


def test_samples_keep_source_text_and_labels() -> None:
    found = read_prometheus(SCRAPE)
    assert found.findings == ()
    assert [(fact.key, fact.value, fact.location) for fact in found.facts] == [
        ('prometheus.r_total{engine="0",reason="stop"}', "2.0", "line 3"),
        ('prometheus.r_total{engine="0",reason="length"}', "11.0", "line 4"),
        ("prometheus.mem_bytes", "6.914220032e+09", "line 6"),
        ('prometheus.odd{path="C:\\\\x\\"}\\n"}', "1", "line 7"),
    ]
    assert all(fact.decimal for fact in found.facts)
    assert [sample.type for sample in found.samples] == ["counter", "counter", "gauge", ""]
    assert found.samples[3].label("path") == 'C:\\x"}\n'


_TEXT = st.text(st.sampled_from('abx_"\\\\,{}=# 1\\t:n\u00e9'), max_size=12)


@given(st.lists(st.tuples(_TEXT, st.sampled_from(["1", "2.50", "1e3", "7"])), min_size=1, max_size=4))
def test_labels_parsed_alone_are_those_of_the_whole_line(parts: list[tuple[str, str]]) -> None:
    """What is read here the parser reads in the same way where it gets the whole line."""
    for text, value in parts:
        line = f"a{{{text}}} {value}"
        for sample in read_prometheus(line.encode() + b"\n").samples:
            ((whole,),) = [family.samples for family in text_string_to_metric_families(line)]
            assert (whole.name, whole.value) == ("a", sample.value)
            assert tuple(sorted(whole.labels.items())) == sample.labels


def test_samples_come_back_from_facts() -> None:
    found = read_prometheus(SCRAPE)
    rebuilt = samples_of(found.facts)
    assert [(s.series, s.text, s.location) for s in rebuilt] == [
        (s.series, s.text, s.location) for s in found.samples
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a 1\na 1\n", [("duplicate-key", "line 2")]),
        (b'a{x="1",y="2"} 1\na{y="2",x="1"} 2\n', [("duplicate-key", "line 2")]),
        (b"a one\n", [("malformed-line", "line 1")]),
        (b"a\n", [("malformed-line", "line 1")]),
        (b"a 1_0\n", [("malformed-line", "line 1")]),
        (b'a{x="1"} 1_0\n', [("malformed-line", "line 1")]),
        (b'a{x="1"} 1 } 2\n', [("malformed-line", "line 1")]),
        (b'a{x="1"} 7 }\t7\n', [("malformed-line", "line 1")]),
        (b'a{__name__="b"} 1\n', [("malformed-line", "line 1")]),
        (b'a{x="1",x="2"} 1\n', [("malformed-line", "line 1")]),
        (b'a{x="1} 1\n', [("malformed-line", "line 1")]),
        (b"1a 1\n", [("malformed-line", "line 1")]),
        (b"# TYPE a\n", [("malformed-line", "line 1")]),
        (b"# TYPE a counter\n# TYPE a gauge\n", [("duplicate-key", "line 2")]),
        (b"a NaN\n", [("non-finite", "line 1")]),
        (b"a +Inf\n", [("non-finite", "line 1")]),
        (b"a 1e999\n", [("non-finite", "line 1")]),
        (b"a " + b"9" * 5000 + b"\n", [("non-finite", "line 1")]),
        ("a \u0661\n".encode(), [("malformed-line", "line 1")]),
        (b"a 1 x\n", [("malformed-line", "line 1")]),
        (b"a" * 10_000 + b" 1\n", [("line-too-long", "line 1")]),
        (b"a 1\0\n", [("nul", "line 1")]),
        (b"", [("empty", "")]),
    ],
)
def test_bad_lines_are_placed_and_no_facts(data: bytes, expected: list[tuple[str, str]]) -> None:
    assert codes(data) == expected
    assert read_prometheus(data).facts == ()


def test_the_good_lines_beside_a_bad_one_stay() -> None:
    found = read_prometheus(b"a 1\nbad\nb 2\n")
    assert [sample.name for sample in found.samples] == ["a", "b"]


def test_totals_and_labels() -> None:
    scrape = read_prometheus(SCRAPE).samples
    assert total(scrape, "r_total").value == 13
    assert total(scrape, "r_total", {"reason": "stop"}).value == 2
    assert {name: each.value for name, each in by_label(scrape, "r_total", "reason").items()} == {
        "stop": 2,
        "length": 11,
    }
    absent = total(scrape, "r_total", {"reason": "abort"})
    assert (absent.value, absent.findings[0].severity) == (None, "unknown")
    assert total(read_prometheus(b"a 1.5\n").samples, "a").findings[0].code == "wrong-type"


@pytest.mark.parametrize(
    ("before", "after", "value", "code"),
    [
        (b"a 0.0\n", b"a 5.0\n", 5, ""),
        (b"a 5.0\n", b"a 5.0\n", 0, ""),
        (b"a 5.0\n", b"a 4.0\n", None, "counter-reset"),
        (b"b 5.0\n", b"a 4.0\n", None, "absent"),
        (b'a{p="0"} 5\n', b'a{p="0"} 6\na{p="1"} 0\n', None, "series-differ"),
        (b'a{p="0"} 5\na{p="1"} 0\n', b'a{p="0"} 1\na{p="1"} 9\n', None, "counter-reset"),
    ],
)
def test_delta(before: bytes, after: bytes, value: int | None, code: str) -> None:
    found = delta(read_prometheus(before).samples, read_prometheus(after).samples, "a")
    assert found.value == value
    assert [finding.code for finding in found.findings] == ([code] if code else [])


@given(st.permutations(SCRAPE.splitlines()))
def test_order_of_sample_lines_has_no_effect(lines: list[bytes]) -> None:
    found = read_prometheus(b"\n".join(lines) + b"\n")
    assert {(f.key, f.value) for f in found.facts} == {
        (f.key, f.value) for f in read_prometheus(SCRAPE).facts
    }


@given(st.binary(max_size=200) | st.text(alphabet='ab{}=",\\# 1.e+\n\tNTYPE', max_size=80).map(str.encode))
def test_any_bytes(data: bytes) -> None:
    found = read_prometheus(data)
    assert len({fact.key for fact in found.facts}) == len(found.facts)
