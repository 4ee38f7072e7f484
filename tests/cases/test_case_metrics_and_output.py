"""Cases C01 to C17: accounting, exactness, cache, workload, counters."""

import json
from pathlib import Path
from typing import Any

import pytest
from smallrun import POLICY, bench, dump, files, gate, judged, oracle, prom, row, said, sealed, words

from provstore.errors import NotFoundError
from provstore.verbs.judging import judge

BENCH = '[[extract]]\nname = "bench"\nkind = "bench"\nrole = "run/bench.json"\n'
ORACLE = '[[extract]]\nname = "tokens"\nkind = "oracle"\nrole = "oracle/tokens"\n'


def rows_policy(gates: str) -> str:
    return BENCH + ORACLE + gates


def claim(value: str, convention: str, **more: str) -> str:
    text = f'[[claim]]\nname = "decode"\nvalue = "{value}"\nunit = "tok/s"\nmetric = "decode"\n'
    text += f'convention = "{convention}"\nevidence = ["run/bench.json"]\n'
    return text + "".join(f"{key} = {json.dumps(item)}\n" for key, item in more.items())


def one_row(offsets: list[float], **fields: Any) -> dict[str, bytes]:
    """Return a benchmark of one row with these timestamps, and its oracle."""
    item = row(0) | {"token_ids": list(range(len(offsets))), "completion_tokens": len(offsets)}
    item |= {"token_id_offsets_s": offsets} | fields
    found = bench([row(0)]) | {"rows": [item]}
    return {"run/bench.json": dump(found), "oracle/tokens": dump(oracle([item], "token_ids"))}


METRIC = '[[gate]]\nname = "rate"\nkind = "metric"\nrows = "bench"\n'


def test_c01_legacy_and_conventional_value_of_one_row(tmp_path: Path) -> None:
    offsets = [10.328412583003228, *[12.0 + at / 100 for at in range(98)], 22.82249498800229]
    planted = one_row(offsets, tok_s_1_100_after_ttft=8.003789054567829)
    found = judged(
        tmp_path,
        planted,
        rows_policy(
            METRIC + 'convention = "legacy-inclusive-events"\nrow_field = "tok_s_1_100_after_ttft"\n'
            '[[gate]]\nname = "interval"\nkind = "metric"\nrows = "bench"\nrequired = false\n'
            'convention = "conventional-intervals"\nrow_field = "tok_s_1_100_intervals_after_ttft"\n'
            'required_statement = false\nmissing_code = "missing-interval-field"\n'
        ),
    )
    assert said(found, "rate") == ["PASS ok"]
    assert said(found, "interval") == ["WARN missing-interval-field"]
    values = {metric.convention: metric.value for metric in found.verdict.metrics}
    assert values == {
        "legacy-inclusive-events": "8.003789054567829",
        "conventional-intervals": "7.923751164022152",
    }


@pytest.mark.parametrize(
    ("value", "convention", "code"),
    [
        ("100.0", "conventional-intervals", "PASS ok"),
        ("101.01010101010101", "conventional-intervals", "FAIL metric-convention"),
        ("101.01010101010101", "legacy-inclusive-events", "PASS ok"),
        ("100.5", "conventional-intervals", "FAIL not-bit-equal"),
        ("100.0", "made-up", "UNKNOWN convention-unknown"),
        ("fast", "conventional-intervals", "FAIL type"),
    ],
)
def test_c02_the_name_carries_the_formula(tmp_path: Path, value: str, convention: str, code: str) -> None:
    planted = one_row([at * 0.01 for at in range(100)])
    extra = claim(value, convention)
    found = judged(tmp_path, planted, rows_policy(METRIC + 'convention = "wall"\nrequired = false\n'), extra)
    assert said(found, "claim: decode") == [code]


@pytest.mark.parametrize(("tolerance", "code"), [("1e-12", "PASS ok"), ("0", "FAIL not-bit-equal")])
def test_c04_tolerance_is_stated_and_the_difference_printed(
    tmp_path: Path, tolerance: str, code: str
) -> None:
    document = b'{"a": 102.97143559613157, "b": 102.9714355961316}'
    policy = (
        '[[extract]]\nname = "d"\nkind = "json"\nrole = "run/d.json"\n'
        f'[[gate]]\nname = "same"\nkind = "consistent"\ntolerance = "{tolerance}"\n'
        f'groups = [["d:/a", "d:/b"]]\n'
    )
    found = judged(tmp_path, {"run/d.json": document}, policy)
    assert said(found, "same") == [code]
    if code != "PASS ok":
        assert "2.8" in gate(found, "same").judgements[0].message


@pytest.mark.parametrize(
    ("offsets", "code"),
    [
        ([at * 0.01 for at in range(99)], "FAIL window-too-short"),
        ([1.0] * 100, "FAIL nonpositive-span"),
        ([1.0, *[2.0] * 98, 0.5], "FAIL nonpositive-span"),
    ],
)
def test_c05_no_median_over_the_rows_that_are_left(tmp_path: Path, offsets: list[float], code: str) -> None:
    bad = row(1) | {"token_id_offsets_s": offsets}
    planted = {"run/bench.json": dump(bench([row(0), row(2)]) | {"rows": [row(0), bad, row(2)]})}
    found = judged(tmp_path, planted, BENCH + METRIC + 'convention = "conventional-intervals"\n')
    assert code in said(found, "rate")
    assert [metric.value for metric in found.verdict.metrics] == [""]
    assert found.verdict.outcome == "FAIL"


@pytest.mark.parametrize(("median", "code"), [("96.9", "PASS ok"), ("96.8", "FAIL below-floor")])
def test_c07_correct_but_not_a_reproduction_of_the_speed(tmp_path: Path, median: str, code: str) -> None:
    span = 99 / float(median)
    planted = one_row([at * span / 99 for at in range(99)] + [span])
    found = judged(
        tmp_path,
        planted,
        rows_policy(
            '[[gate]]\nname = "tokens"\nkind = "tokens"\nrows = "bench"\noracle = "tokens"\n'
            "prompt_hashes = false\n"
            '[[gate]]\nname = "floor"\nkind = "floor"\nrows = "bench"\n'
            'convention = "conventional-intervals"\n'
            'reference = "101.94172124017027"\nratio = "0.95"\n'
        ),
    )
    assert said(found, "tokens") == ["PASS ok"]
    assert said(found, "floor") == [code]
    assert "96.84463517816175" in (
        gate(found, "floor").judgements[0].message + str(gate(found, "floor").judgements[0].expected)
    )


TOKENS = '[[gate]]\nname = "tokens"\nkind = "tokens"\nrows = "bench"\noracle = "tokens"\n'
EXACT = '[[gate]]\nname = "exact"\nkind = "exact"\nrows = "bench"\noracle = "tokens"\n'


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        ([5, 6, 7], None),
        ([5, 9, 7], "token 1: expected 6, found 9"),
        ([5, 6], "token 2: expected 7, found None"),
        ([5, 6, 7, 8], "token 3: expected None, found 8"),
    ],
)
def test_c08_the_first_difference_is_named(tmp_path: Path, candidate: list[int], words: str | None) -> None:
    item = row(0) | {"token_ids": candidate, "completion_tokens": len(candidate)}
    wanted = oracle([row(0) | {"token_ids": [5, 6, 7]}], "prompt_sha256", "token_ids")
    planted = {"run/bench.json": dump(bench([row(0)]) | {"rows": [item]}), "oracle/tokens": dump(wanted)}
    found = judged(tmp_path, planted, rows_policy(TOKENS))
    assert said(found, "tokens") == ["PASS ok" if words is None else "FAIL token-diff"]
    if words:
        assert words in gate(found, "tokens").judgements[0].message


def without(item: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in names}


def test_c09_two_absent_lists_are_not_equal(tmp_path: Path) -> None:
    item = without(row(0), "token_ids", "prompt_sha256")
    planted = {
        "run/bench.json": dump(without(bench([row(0)]) | {"rows": [item]}, "prompt_sha256s")),
        "oracle/tokens": dump({"rows": [{"prompt_index": 0, "prompt_id": "prompt-0"}]}),
    }
    found = judged(tmp_path, planted, rows_policy(TOKENS + EXACT))
    assert set(said(found, "tokens")) == {"UNKNOWN tokens-absent", "UNKNOWN prompt-hash-absent"}
    assert gate(found, "exact").outcome == "UNKNOWN"
    assert found.verdict.outcome == "INCOMPLETE"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("0", "PASS ok"),
        ("null", "UNKNOWN cache-state"),
        ("", "UNKNOWN cache-state"),
        ("false", "FAIL type"),
        ("0.0", "FAIL type"),
        ('"0"', "FAIL type"),
        ("-0", "FAIL type"),
        ("3", "FAIL cache-reuse"),
    ],
)
def test_c10_zero_is_the_integer_zero(tmp_path: Path, value: str, code: str) -> None:
    text = dump(bench([row(0)]))
    text = text.replace(b'"cached_tokens": 0,', f'"cached_tokens": {value},'.encode() if value else b"")
    found = judged(
        tmp_path, {"run/bench.json": text}, BENCH + '[[gate]]\nname = "zero"\nkind = "zero"\nrows = "bench"\n'
    )
    assert said(found, "zero") == [code]
    assert (found.verdict.outcome == "PASS") == (code == "PASS ok")


def test_c12_one_wrong_prompt_is_not_mostly_exact(tmp_path: Path) -> None:
    rows = [row(at) for at in range(13)]
    wanted = oracle(rows, "prompt_sha256", "token_ids")
    rows[4]["token_ids"] = [7, *rows[4]["token_ids"][1:]]
    planted = {"run/bench.json": dump(bench(rows)), "oracle/tokens": dump(wanted)}
    found = judged(tmp_path, planted, rows_policy(EXACT))
    assert said(found, "exact") == ["INELIGIBLE not-exact"]
    assert gate(found, "exact").judgements[0].found == "12/13"
    assert found.verdict.outcome == "FAIL"


CURVES = [([1171, 847, 631, 497, 397, 328, 248, 204, 172, 140, 112], "PASS ok"),
          ([847, 844, 840, 838, 835, 833, 830, 827, 824, 820, 818], "WARN acceptance-flat")]  # fmt: skip


@pytest.mark.parametrize(("curve", "code"), CURVES)
def test_c13_a_flat_curve_is_an_anomaly(tmp_path: Path, curve: list[int], code: str) -> None:
    rows = [row(0)]
    wanted = oracle([row(0) | {"token_ids": [1] * 120}], "prompt_sha256", "token_ids")
    planted = {
        "run/bench.json": dump(bench(rows)),
        "oracle/tokens": dump(wanted),
        "run/after.prom": prom(10, 120, 1, 2000, curve).encode(),
    }
    policy = rows_policy(EXACT) + (
        '[[extract]]\nname = "after"\nkind = "metrics"\nrole = "run/after.prom"\n'
        '[[gate]]\nname = "flat"\nkind = "acceptance-flat"\ncounters = "after"\n'
        'counter = "eng:accepted_pos_total"\n'
    )
    found = judged(tmp_path, planted, policy)
    assert said(found, "exact") == ["INELIGIBLE not-exact"]
    assert said(found, "flat") == [code]


WORKLOAD = (
    '[[gate]]\nname = "workload"\nkind = "workload"\nrows = "bench"\nminimum_prompts = 12\ncap = 512\n'
    "minimum_completion = 100\nwindow = 100\nclasses = 5\n"
)


def suite(count: int, cap: int, **identity: Any) -> dict[str, Any]:
    rows = [row(at) | {"prompt_class": f"class-{at % 6}"} for at in range(count)]
    return bench(rows, identity={"max_tokens": cap} | identity)


def test_c14_a_screening_run_is_no_final_run(tmp_path: Path) -> None:
    capped = judged(tmp_path / "a", {"run/bench.json": dump(suite(12, 128))}, BENCH + WORKLOAD)
    assert said(capped, "workload") == ["FAIL cap-not-512"]
    chosen = suite(1, 512, selected_prompt_ids=["x"])
    single = judged(tmp_path / "b", {"run/bench.json": dump(chosen)}, BENCH + WORKLOAD)
    assert said(single, "workload") == ["FAIL subset", "FAIL fewer-than-12", "FAIL classes"]
    early = suite(12, 512)
    early["rows"][3] |= row(3, tokens=110) | {"prompt_class": "class-3", "finish_reasons": ["stop"]}
    assert said(judged(tmp_path / "c", {"run/bench.json": dump(early)}, BENCH + WORKLOAD), "workload") == [
        "PASS ok"
    ]


def test_c15_verdicts_of_two_policies_stand_side_by_side(tmp_path: Path) -> None:
    run = suite(13, 512)
    for item in run["rows"]:
        del item["prompt_class"]
    del run["run_identity"]["prompt_classes"], run["summary"]["tok_s_1_100_intervals_after_ttft"]
    store, packet = sealed(tmp_path, {"run/bench.json": dump(run)})
    head = 'format = "provstore/policy/v1"\nname = "p"\n'
    july = head + 'version = "1"\ndate = "2026-07-26"\n' + BENCH + WORKLOAD.replace("classes = 5\n", "")
    stated = 'stated = ["bench:/summary/tok_s_1_100_intervals_after_ttft/median"]\n'
    august = head + 'version = "2"\ndate = "2026-08-27"\n' + BENCH + WORKLOAD + METRIC + (
        'convention = "conventional-intervals"\nmissing_code = "interval-summary-missing"\n' + stated
    )  # fmt: skip
    first, second = (judge(store, packet, text.encode()) for text in (july, august))
    assert (first.verdict.outcome, second.verdict.outcome) == ("PASS", "FAIL")
    assert words(second) == {"workload": "FAIL classes-missing", "rate": "FAIL interval-summary-missing"}


ACCEPTED = [1171, 847, 631, 497, 397, 328, 248, 204, 172, 140, 112]
PROMPTS = [90, 132, 110, 102, 112, 89, 149, 111, 125, 140, 229, 112, 863]
COMPLETIONS = [*[512] * 10, 296, 426, 512]


def real_counters(tmp_path: Path, change: dict[str, str]) -> list[str]:
    """Judge the sums of the sealed run against its counters, with changes."""
    rows = []
    for at, (prompt, completion) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        rows.append(row(at) | {"prompt_tokens": prompt, "completion_tokens": completion})
    after = prom(2364, 6354, 11, 1609, ACCEPTED) + 'eng:success_total{m="t",reason="stop"} 2.0\n'
    before = prom(0, 0, 0, 0, [0] * 11) + 'eng:success_total{m="t",reason="stop"} 0.0\n'
    for old, new in change.items():
        assert old in after
        after = after.replace(old, new)
    planted = {
        "run/bench.json": dump(bench(rows)),
        "run/b.prom": before.encode(),
        "run/a.prom": after.encode(),
    }
    policy = BENCH + (
        '[[extract]]\nname = "before"\nkind = "metrics"\nrole = "run/b.prom"\n'
        '[[extract]]\nname = "after"\nkind = "metrics"\nrole = "run/a.prom"\n'
        '[[gate]]\nname = "counters"\nkind = "conservation"\nbefore = "before"\nafter = "after"\n'
        'rows = "bench"\n'
        'sums = [{ counter = "eng:prompt_tokens_total", field = "prompt_tokens", code = "extra-prompt" },'
        '{ counter = "eng:generation_tokens_total", field = "completion_tokens", code = "extra-tokens" },'
        '{ counter = "eng:success_total", code = "request-count" }]\n'
        'products = [{ counter = "eng:draft_tokens_total", of = "eng:drafts_total", times = 11 }]\n'
        'parts = [{ counter = "eng:accepted_pos_total", label = "position", whole = "eng:accepted_total",'
        ' parts = 11, code = "acceptance-sum" }]\n'
        'zeros = [{ counter = "eng:cache_hits_total", code = "cache-reuse" }]\n'
    )
    return said(judged(tmp_path, planted, policy), "counters")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, "PASS ok"),
        ({'eng:prompt_tokens_total{m="t"} 2364': 'eng:prompt_tokens_total{m="t"} 2453'}, "FAIL extra-prompt"),
        ({'reason="length"} 11': 'reason="length"} 12'}, "FAIL request-count"),
        ({'eng:cache_hits_total{m="t"} 0': 'eng:cache_hits_total{m="t"} 64'}, "FAIL cache-reuse"),
        ({'position="4"} 397': 'position="4"} 396'}, "FAIL acceptance-sum"),
        ({'eng:drafts_total{m="t"} 1609': 'eng:drafts_total{m="t"} 1608'}, "FAIL counter-product"),
        ({"1.78510244e+09": "1.78510245e+09"}, "FAIL process-changed"),
    ],
)
def test_c17_counters_account_for_every_token(tmp_path: Path, change: dict[str, str], code: str) -> None:
    assert real_counters(tmp_path, change) == [code]


def test_counts_in_a_claim_need_a_gate_that_compared_them(tmp_path: Path) -> None:
    planted = files()
    value = str(
        json.loads(planted["run/bench.json"])["summary"]["tok_s_1_100_intervals_after_ttft"]["median"]
    )
    tokens_only = rows_policy(TOKENS)
    for index, (text, code) in enumerate([("3/3 tokens", "PASS ok"), ("3/3 text", "FAIL claim-limit"),
                                          ("4/4 tokens", "FAIL claim-limit")]):  # fmt: skip
        extra = claim(value, "conventional-intervals", samples=f"one suite, {text}")
        assert said(judged(tmp_path / str(index), planted, tokens_only, extra), "claim: decode") == [code]


def test_a_claim_on_evidence_that_was_never_seen_is_unknown(tmp_path: Path) -> None:
    extra = (
        '[[entry]]\nrole = "far/bench.json"\nkind = "benchmark-log"\nkeep = "declared"\nsha256 = "'
        + "0" * 64
        + '"\n'
    )
    extra += claim("1.5", "conventional-intervals").replace("run/bench.json", "far/bench.json")
    policy = TOKENS + ORACLE + BENCH.replace("run/", "far/")
    found = judged(tmp_path, files(), policy, extra)
    assert said(found, "claim: decode") == ["UNKNOWN evidence-absent"]
    assert said(found, "tokens") == ["UNKNOWN evidence-absent"]
    assert found.verdict.outcome == "INCOMPLETE"


def test_a_packet_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    store, _ = sealed(tmp_path, files())
    with pytest.raises(NotFoundError):
        judge(store, bytes(32), POLICY.encode())
