"""Benchmark files and oracles: typed rows, copies that must agree, and harmless reordering."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.evidence import conventions
from provstore.evidence.bench import read_bench
from provstore.evidence.metrics import recompute
from provstore.evidence.oracle import read_oracle
from provstore.evidence.rows import from_facts

TEXT = "A short answer."


def bench_row(index: int) -> dict[str, Any]:
    return {
        "prompt_index": index,
        "prompt_id": f"prompt-{index}",
        "prompt_sha256": hashlib.sha256(b"%d" % index).hexdigest(),
        "prompt_tokens": 20 + index,
        "completion_tokens": 120,
        "cached_tokens": 0,
        "token_ids": list(range(120)),
        "token_id_offsets_s": [0.5 + at * (0.01 + index / 1000) for at in range(120)],
        "stream_token_id_count": 120,
        "ttft_s": 0.5,
        "elapsed_s": 1.75,
        "post_ttft_s": 1.25,
        "usage": {"prompt_tokens": 20 + index, "completion_tokens": 120},
        "sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
        "text": TEXT,
    }


def bench(rows: int = 3) -> dict[str, Any]:
    listed = [bench_row(index) for index in range(rows)]
    return {
        "run_identity": {"prompt_count": rows, "max_tokens": 512, "seed": 1, "model": "m"},
        "summary": {"tok_s": {"count": rows, "median": 1.5}},
        "prompt_sha256s": [row["prompt_sha256"] for row in listed],
        "output_sha256s": [row["sha256"] for row in listed],
        "realistic_final_gate": {"passed": True, "cached_tokens": [0] * rows},
        "rows": listed,
    }


def codes(document: Any) -> list[tuple[str, str]]:
    return [(f.code, f.location) for f in read_bench(json.dumps(document).encode()).findings]


def test_a_sound_file_has_no_findings() -> None:
    found = read_bench(json.dumps(bench()).encode())
    assert (found.findings, found.shape, len(found.rows)) == ((), "events", 3)
    assert found.value("bench.realistic_final_gate.passed") is True
    assert found.fact("bench.rows.token_ids", "/rows/1/token_ids") is not None
    assert found.value("bench.summary.tok_s.median") == "1.5"


def test_the_later_shape_is_told() -> None:
    document = bench()
    document["run_identity"]["prompt_classes"] = ["a"]
    assert read_bench(json.dumps(document).encode()).shape == "intervals"
    assert read_bench(b"[]").shape == "unknown"


@pytest.mark.parametrize(
    ("value", "findings", "fact"),
    [
        (0, [], 0),
        (3, [], 3),
        (None, [], None),
        (False, ["wrong-type"], False),
        (0.0, ["wrong-type"], "0.0"),
        ("0", ["wrong-type"], "0"),
    ],
)
def test_typed_zero(value: Any, findings: list[str], fact: Any) -> None:
    document = bench(1)
    del document["realistic_final_gate"]["cached_tokens"]
    document["rows"][0]["cached_tokens"] = value
    found = read_bench(json.dumps(document).encode())
    assert [finding.code for finding in found.findings] == findings
    stated = found.fact("bench.rows.cached_tokens")
    assert stated is not None
    assert stated.value == fact
    assert type(stated.value) is type(fact)
    assert stated.decimal is isinstance(value, float)


def test_absent_is_no_fact_and_unknown() -> None:
    document = bench(1)
    del document["rows"][0]["cached_tokens"]
    del document["realistic_final_gate"]["cached_tokens"]
    found = read_bench(json.dumps(document).encode())
    assert found.fact("bench.rows.cached_tokens") is None
    assert [(f.code, f.severity) for f in found.findings] == [("absent", "unknown")]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("rows", 1, "sha256"), "0" * 63, {"bad-digest", "copy-differs", "text-hash"}),
        (("rows", 1, "text"), TEXT + " ", {"text-hash"}),
        (("rows", 1, "prompt_tokens"), 22, {"row-inconsistent"}),
        (("rows", 1, "prompt_index"), 0, {"duplicate-row"}),
        (("rows", 1, "token_id_offsets_s"), [0.1], {"row-inconsistent"}),
        (("rows", 1, "completion_tokens"), 119, {"row-inconsistent", "count-differs"}),
        (("rows", 1, "token_ids"), ["1"], {"wrong-type", "row-inconsistent", "count-differs"}),
        (("rows", 1), 7, {"wrong-type", "copy-differs", "row-count"}),
        (("rows",), {}, {"wrong-type", "copy-differs", "row-count"}),
        (("run_identity", "prompt_count"), 4, {"row-count"}),
        (("run_identity", "max_tokens"), "512", {"wrong-type"}),
        (("prompt_sha256s",), [], {"copy-differs"}),
        (("realistic_final_gate", "cached_tokens", 0), False, {"copy-differs"}),
        (("run_identity",), None, {"wrong-type"}),
    ],
)
def test_contradictions_are_found(path: tuple[Any, ...], value: Any, expected: set[str]) -> None:
    document = bench()
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    assert {code for code, _ in codes(document)} == expected


def test_every_missing_top_field_is_told() -> None:
    assert {place for code, place in codes({}) if code == "absent"} == {"/run_identity", "/summary", "/rows"}


@given(st.randoms())
def test_order_of_keys_has_no_effect(chance: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return [shuffled(item) for item in value]
        if not isinstance(value, dict):
            return value
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}

    first, second = (read_bench(json.dumps(each).encode()) for each in (bench(), shuffled(bench())))
    assert set(first.facts) == set(second.facts)
    assert first.findings == second.findings == ()


def test_order_of_rows_keeps_facts_and_metrics() -> None:
    document = bench(5)
    turned = {**document, "rows": document["rows"][::-1], "prompt_sha256s": document["prompt_sha256s"][::-1]}
    first, second = (read_bench(json.dumps(each).encode()) for each in (document, turned))
    assert second.findings == ()

    def stated(found: Any) -> list[str]:
        return sorted(repr((fact.key, fact.value)) for fact in found.facts if ".rows." in fact.key)

    assert stated(first) == stated(second)
    for definition in (conventions.find("intervals"), conventions.find("wall"), conventions.find("ttft")):
        values = [recompute(definition, found.rows).value for found in (first, second)]
        assert values[0] == values[1] is not None


def test_rows_come_back_from_facts() -> None:
    found = read_bench(json.dumps(bench()).encode())
    rebuilt = from_facts(found.facts)
    assert [row.location for row in rebuilt] == ["/rows/0", "/rows/1", "/rows/2"]
    definition = conventions.find("intervals")
    assert recompute(definition, rebuilt).text == recompute(definition, found.rows).text != ""


ORACLE = {
    "schema": "any",
    "source_sha256": "ab" * 32,
    "rows": [
        {"prompt_index": 0, "prompt_id": "a", "prompt_sha256": "cd" * 32, "token_ids": [5, 6, 7]},
        {"prompt_index": 1, "prompt_id": "b", "prompt_sha256": "ef" * 32, "token_ids": [8]},
    ],
}


def oracle(**changes: Any) -> bytes:
    document = json.loads(json.dumps(ORACLE))
    document["rows"][1].update(changes)
    return json.dumps(
        {**document, "rows": [{k: v for k, v in r.items() if v != "-"} for r in document["rows"]]}
    ).encode()


def test_token_oracle() -> None:
    found = read_oracle(oracle())
    assert found.findings == ()
    assert (found.has_tokens, found.has_texts, found.source_sha256) == (True, False, "ab" * 32)
    assert found.rows[0].token_ids == (5, 6, 7)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"token_ids": "-"}, "no-output"),
        ({"token_ids": []}, "no-output"),
        ({"token_ids": [1, "2"]}, "wrong-type"),
        ({"token_ids": [1, True]}, "wrong-type"),
        ({"token_ids": [-1]}, "negative"),
        ({"prompt_sha256": "CD" * 32}, "bad-digest"),
        ({"prompt_index": 0}, "duplicate-row"),
        ({"prompt_id": "a"}, "duplicate-row"),
        ({"prompt_index": 0.0}, "wrong-type"),
        ({"prompt_id": "-"}, "absent"),
    ],
)
def test_oracle_faults(changes: dict[str, Any], code: str) -> None:
    found = read_oracle(oracle(**changes))
    assert code in {finding.code for finding in found.findings}
    assert all(finding.location.startswith("/rows/1") for finding in found.findings)


def test_an_oracle_without_rows_judges_nothing() -> None:
    for data in (b"{}", b'{"rows": []}', b'{"rows": 1}', b"nonsense"):
        found = read_oracle(data)
        assert not found.has_tokens
        assert not found.has_texts
        assert found.findings


@given(st.binary(max_size=300))
def test_arbitrary_bytes(data: bytes) -> None:
    assert read_bench(data).findings
    assert read_oracle(data).findings
