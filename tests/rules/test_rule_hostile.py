"""Rules under documents that nobody wrote: nothing crashes, nothing hangs, findings stay the same."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruling import FAMILY, GOOD, after, checked, codes, files, good, told

from provstore.evidence.jsonreader import Absent, Number, Value, read
from provstore.graph.rules import formats
from provstore.graph.rules.checking import check, document_of
from provstore.graph.rules.examples import changed
from provstore.graph.rules.places import Place, walk
from provstore.graph.rules.rule import ANY
from provstore.graph.rules.table import RULES

DOCUMENTS = sorted(path for path, document in good().items() if document.format)

ODD: list[Value] = [
    None, True, False, 0, -1, 10**30, 10**320, Number("1e308", 1e308), Number("-0.0", -0.0), "", " ", "*",
    "a:b", Number("0." + "1" * 400, 0.1), "0." + "1" * 400 + " tok/s", "99999999999999999999.123 ms",
    "../x", "/x", "\x1b[2J", "\u202e", "a" * 3000, "1" * 3000 + ".5%", [], {}, [[]], [None], [{}], {"": {}},
    {"id": "x"}, ["x"] * 40,
]  # fmt: skip


def places(value: Value | Absent) -> list[str]:
    return [place.pointer for _, place in walk(Place("", value))]


def put(value: Value, at: str, to: Value) -> Value:
    """Put a value at a place, or beside it."""
    if not at:
        return to
    token, _, rest = at[1:].partition("/")
    key = token.replace("~1", "/").replace("~0", "~")
    rest = f"/{rest}" if rest else ""
    if isinstance(value, dict):
        return {**value, key: put(value.get(key), rest, to)}
    if isinstance(value, list) and key.isdigit() and int(key) < len(value):
        return [*value[: int(key)], put(value[int(key)], rest, to), *value[int(key) + 1 :]]
    return to


@settings(max_examples=100)
@given(st.sampled_from(DOCUMENTS), st.data())
def test_a_document_with_odd_values_anywhere_is_judged_and_always_the_same(
    path: str, data: st.DataObject
) -> None:
    value = good()[path].value
    assert isinstance(value, dict | list)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(places(value) or [""]))
        value = put(value, at, data.draw(st.sampled_from(ODD)))
        assert isinstance(value, dict | list | str | int | bool | Number | None)
    form = good()[path].format
    documents = {**good(), path: good()[path]._replace(value=value, format=form)}
    first = check(list(documents.values()), files())
    assert check(list(documents.values()), files()) == first
    assert all(finding.location.isprintable() and finding.message.isprintable() for finding in first.findings)


@settings(max_examples=200)
@given(
    st.sampled_from(sorted({name for rule in RULES for name in rule.formats} - {ANY})),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inside: (
            st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=12), inside, max_size=6)
        ),
        max_leaves=30,
    ),
)
def test_any_value_is_judged_as_a_document_of_any_format(form: str, value: Any) -> None:
    document = document_of("families/x.json", msgspec.json.encode(value))._replace(format=form)
    report = check([document], files())
    assert report.documents[0].rules > 0


def test_members_of_the_good_family_may_be_absent() -> None:
    for at in places(good()[FAMILY].value)[::3]:
        assert all(finding.severity != "error" or finding.message for finding in after((at, ...)))


@pytest.mark.parametrize("path", DOCUMENTS)
def test_an_empty_document_of_each_format_is_found_wanting(path: str) -> None:
    form = good()[path].format
    empty: Value = [{}] if form == formats.QUEUE else {}
    report = check([good()[path]._replace(value=empty)], files())
    assert report.outcome in ("FAIL", "INCOMPLETE") or form in (formats.RECORD, formats.COMPOSED)


@pytest.mark.parametrize(
    "rate", ["1e300", "0." + "1" * 300, "123456789012345678901234567890.5", "-0.0", "5e-324"]
)
def test_numbers_beyond_any_rounding_are_compared_all_the_same(rate: str) -> None:
    sweep, record = "registry/speed-sweep/ember-observed-sweep.json", "data/ember-record.json"
    documents = dict(good())
    for path, at in ((sweep, "/rows/0/decode_tok_s"), (record, "/record/prior_approved_tok_s")):
        value = changed(documents[path].value, at, rate)
        documents[path] = documents[path]._replace(value=value)
    found = check(list(documents.values()), files()).findings
    assert "legacy-convention" in {finding.code for finding in found if finding.document == sweep}


def test_a_key_that_is_stated_twice_has_no_value_and_is_an_error_wherever_it_stands() -> None:
    text = (GOOD / FAMILY).read_bytes()
    twice = text.replace(b'"state": "missing"', b'"state": "missing", "state": "lab-measured"', 1)
    report = check([document_of(FAMILY, twice)], files())
    (found,) = [f for f in report.findings if f.code == "duplicate-key"]
    assert (found.severity, found.rule, found.location) == (
        "error", "readable", "/coverage_views/0/cells/4096:2/state",
    )  # fmt: skip
    assert f"error cell-state {found.location}" in told(list(report.findings))


def test_a_number_that_is_none_is_an_error() -> None:
    text = (GOOD / FAMILY).read_bytes().replace(b"512.25", b"NaN", 1)
    found = told(list(check([document_of(FAMILY, text)], files()).findings))
    assert "error non-finite /run_measurements/0/metrics/ttft_ms/0" in found
    assert "error metric-values /run_measurements/0/metrics/ttft_ms/0" in found


def test_nothing_from_a_document_reaches_a_terminal_raw() -> None:
    found = after(("/packets/0/projection/quant", "\x1b[2J"), ("/run_measurements/0/state", "\x07\u202e"))
    assert found
    assert all(text.isprintable() for f in found for text in (f.message, f.expected, f.found, f.location))


def test_chains_of_estimates_that_return_to_themselves_end() -> None:
    found = told(after(("/estimates/0/supersedes", "ember-tp2-second")))
    assert "error estimate-supersedes /estimates/0/supersedes" in found
    assert "error estimate-supersedes /estimates/1/supersedes" in told(
        after(("/estimates/1/supersedes", "ember-tp2-second"))
    )


def test_notes_that_undo_each_other_in_a_ring_end() -> None:
    base = {
        "format": "provstore/note/v1",
        "date": "2026-05-01",
        "author": "a",
        "reason": "r",
        "kind": "corrects",
    }
    ring = {
        f"notes/{at}.json": {**base, "id": f"n{at}", "target": f"note:n{(at + 1) % 5}"} for at in range(5)
    }
    report = checked(ring)
    assert codes(report) == ["FAIL note-cycle"] * 5
    alone = checked({"notes/0.json": {**base, "id": "n0", "target": "note:n0"}})
    assert codes(alone) == ["FAIL note-cycle"]


def test_ids_that_differ_in_case_only_are_worth_a_look() -> None:
    found = told(after(("/packets/1/id", "EMBER-INT4-4CARD-20260502")))
    assert "warn folded-id /packets/1/id" in found


def test_the_same_id_in_two_families_is_no_error_of_either() -> None:
    text = (GOOD / FAMILY).read_bytes()
    other = text.replace(b'"id": "ember"', b'"id": "ember-two"', 1)
    report = check([document_of(FAMILY, text), document_of("families/two.json", other)], files())
    assert {finding.code for finding in report.findings} == {"package-in-family"}


def test_a_huge_family_is_judged_in_seconds() -> None:
    run = {"state": "lab-measured", "revision": "r", "evidence": "x.json", "metrics": {"ttft_ms": [1.5]},
           "config": {"tp": 1}, "quality": "1.5 ms"}  # fmt: skip
    cells = {f"{row}:{column}": {"state": "lab-measured", "evidence_id": f"m{row}"} for row in range(500)
             for column in range(20)}  # fmt: skip
    family = {
        "format": "neural-download-model-family-v1",
        "id": "big",
        "name": "Big",
        "weight_revisions": [{"id": "r", "repository": "x/y", "revision": "a" * 40}],
        "run_measurements": [{**run, "id": f"m{at}"} for at in range(5000)],
        "coverage_views": [{"id": "v", "rows": list(range(500)), "columns": list(range(20)), "cells": cells}],
    }
    before = time.process_time()
    report = checked({"families/big.json": family})
    assert time.process_time() - before < 60
    assert report.left_out > 0
    assert {f.code for f in report.findings} >= {"selector-mismatch", "evidence-absent"}


def test_a_large_contract_is_judged_in_seconds() -> None:
    axes = [{"key": key, "label": key, "values": list(range(36))} for key in ("tp", "mtp", "cards")]
    rules: list[dict[str, Any]] = [
        {"id": "all", "match": {"tp": "*", "mtp": "*", "cards": "*"}, "state": "missing"}
    ]
    rules += [
        {"id": f"tp-{at}", "match": {"tp": at, "mtp": "*", "cards": "*"}, "state": "closed"}
        for at in range(36)
    ]
    before = time.process_time()
    found = after(("/coverage_contracts/0", {"id": "c", "label": "c", "axes": axes, "rules": rules}))
    assert time.process_time() - before < 60
    assert [f.code for f in found if f.severity == "error"] == []


def test_text_of_many_numbers_is_judged_in_seconds() -> None:
    before = time.process_time()
    found = after(("/summary", "12.345 " * 200_000))
    assert time.process_time() - before < 30
    assert {f.code for f in found} == {"prose-number"}


def test_deep_nesting_and_lone_surrogates_are_findings_of_the_reader() -> None:
    assert read(b"[" * 5000).findings
    for data, code in (
        (b"[" * 5000, "too-deep"),
        (b'{"a": "\\ud800"}', "bad-unicode"),
        (b"\xff", "not-utf8"),
    ):
        report = check([document_of("a.json", data)], files())
        assert code in {finding.code for finding in report.findings}
        assert report.outcome == "FAIL"
