"""Cases C32 to C41: attempts and authorizations, frozen rules, composed results, documents."""

import copy
from pathlib import Path
from typing import Any

import pytest
from smallrun import dump, gate, judged, said

LEDGER: dict[str, Any] = {
    "authorizations": [
        {"id": "p1", "created_at": "2026-08-01T05:00:00Z"},
        {"id": "p2", "created_at": "2026-08-01T05:15:00Z", "reason": "construction failed", "cites": "a1"},
        {"id": "p3", "created_at": "2026-08-01T05:25:00Z", "reason": "marker once a host", "cites": "a2"},
    ],
    "attempts": [
        {"id": "a1", "previous": None, "requests": 0, "score": None, "disposition": "construction-failure",
         "authorization": "p1", "started_at": "2026-08-01T05:10:00Z"},
        {"id": "a2", "previous": "a1", "requests": 13, "score": "125.06865574449961",
         "disposition": "diagnostic-rejected", "authorization": "p2", "started_at": "2026-08-01T05:20:00Z"},
        {"id": "a3", "previous": "a2", "requests": 13, "score": "125.4619731637751", "disposition": "valid",
         "authorization": "p3", "started_at": "2026-08-01T05:30:00Z"},
    ],
}  # fmt: skip

ATTEMPTS = (
    '[[extract]]\nname = "ledger"\nkind = "json"\nrole = "run/ledger.json"\n'
    '[[gate]]\nname = "g"\nkind = "attempts"\nattempts = "ledger:/attempts"\n'
    'authorizations = "ledger:/authorizations"\n'
)


def attempts(tmp_path: Path, ledger: dict[str, Any]) -> list[str]:
    return said(judged(tmp_path, {"run/ledger.json": dump(ledger)}, ATTEMPTS), "g")


def test_c32_three_starts_and_one_record(tmp_path: Path) -> None:
    found = gate(judged(tmp_path, {"run/ledger.json": dump(LEDGER)}, ATTEMPTS), "g")
    assert found.outcome == "PASS"
    assert found.judgements[0].message == "attempt 3 of 3; 1 earlier visible score(s)"


def test_c32_variants(tmp_path: Path) -> None:
    deleted = copy.deepcopy(LEDGER)
    del deleted["attempts"][1]
    assert "FAIL chain-broken" in attempts(tmp_path / "a", deleted)
    uncited = copy.deepcopy(LEDGER)
    del uncited["authorizations"][2]["cites"]
    assert attempts(tmp_path / "b", uncited) == ["FAIL unauthorized-start"]
    second = copy.deepcopy(LEDGER)
    second["attempts"].append(second["attempts"][2] | {"id": "a4", "previous": "a3"})
    assert "FAIL second-valid-score" in attempts(tmp_path / "c", second)
    late = copy.deepcopy(LEDGER)
    late["authorizations"][2]["created_at"] = "2026-08-01T05:31:00Z"
    assert attempts(tmp_path / "d", late) == ["FAIL authorization-late"]
    reused = copy.deepcopy(LEDGER)
    reused["attempts"][2]["authorization"] = "p2"
    assert "FAIL unauthorized-start" in attempts(tmp_path / "e", reused)
    forged = copy.deepcopy(LEDGER)
    forged["attempts"][2]["authorization"] = "p9"
    assert attempts(tmp_path / "f", forged) == ["FAIL unauthorized-start"]
    zoneless = copy.deepcopy(LEDGER)
    zoneless["attempts"][0]["started_at"] = "2026-08-01T05:10:00"
    assert attempts(tmp_path / "g", zoneless) == ["UNKNOWN time-absent"]
    assert attempts(tmp_path / "h", {"attempts": [], "authorizations": []}) == ["UNKNOWN rows-absent"] * 2


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ("2026-07-23T09:00:00Z", "INELIGIBLE pre-authorization"),
        ("2026-07-23T12:00:00+02:00", "PASS ok"),
        ("2026-07-23T11:59:59+02:00", "INELIGIBLE pre-authorization"),
        ("yesterday", "UNKNOWN time-absent"),
    ],
)
def test_c33_evidence_before_its_authorization(tmp_path: Path, result: str, code: str) -> None:
    policy = (
        '[[extract]]\nname = "d"\nkind = "json"\nrole = "run/d.json"\n'
        '[[gate]]\nname = "g"\nkind = "authorized"\nresults = ["d:/at"]\nauthorization = "d:/permit"\n'
    )
    found = judged(tmp_path, {"run/d.json": dump({"at": result, "permit": "2026-07-23T10:00:00Z"})}, policy)
    assert said(found, "g") == [code]


FROZEN = (
    '[[extract]]\nname = "d"\nkind = "json"\nrole = "run/d.json"\n'
    '[[gate]]\nname = "g"\nkind = "frozen"\ncontrol = "d:/control"\ncandidate = "d:/candidate"\n'
    "minimum_wins = 9\n"
)


def test_c35_frozen_rules_beat_secondary_gains(tmp_path: Path) -> None:
    stated = {"control": 34.969418822, "candidate": 34.029104704, "wins": 3, "median": -0.940314118,
              "mean": 0.952913685, "p10": 2.593894789}  # fmt: skip
    policy = FROZEN + 'wins = "d:/wins"\npaired_median = "d:/median"\n'
    assert said(judged(tmp_path, {"run/d.json": dump(stated)}, policy), "g") == [
        "FAIL headline",
        "FAIL row-wins",
        "FAIL paired-median",
    ]


def test_c35_wins_are_recomputed_from_the_rows(tmp_path: Path) -> None:
    rows = [float(at) for at in range(13)]
    document = {"control": 6.0, "candidate": 6.5, "a": rows, "b": [value + 0.5 for value in rows], "wins": 0}
    policy = FROZEN + 'control_rows = "d:/a"\ncandidate_rows = "d:/b"\n'
    assert said(judged(tmp_path / "a", {"run/d.json": dump(document)}, policy), "g") == ["PASS ok"]
    document["b"] = [value - 0.5 for value in rows[:5]] + [value + 0.5 for value in rows[5:]]
    assert said(judged(tmp_path / "b", {"run/d.json": dump(document)}, policy), "g") == ["FAIL row-wins"]
    document["b"] = rows[:3]
    assert said(judged(tmp_path / "c", {"run/d.json": dump(document)}, policy), "g") == ["FAIL row-count"]


PARTS = (
    '[[extract]]\nname = "d"\nkind = "json"\nrole = "run/d.json"\n'
    '[[gate]]\nname = "g"\nkind = "parts"\nparts = "d:/artifacts"\nstatus = "bench_status"\n'
    'terminal = ["PASS_BASELINE_ORACLE_NOT_TESTED"]\nstate = "d:/state"\nscreened = ["lab-screened"]\n'
    'equal = "d:/equal"\ntotal = "d:/total"\nsealed = ["d:/prose"]\n'
)


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({}, ["WARN part-not-terminal", "WARN not-exact"]),
        (
            {"state": "lab-measured"},
            ["WARN part-not-terminal", "WARN not-exact", "FAIL state-exceeds-evidence"],
        ),
        ({"prose": "sealed"}, ["WARN part-not-terminal", "WARN not-exact", "FAIL contradicted"]),
        ({"equal": 18, "first": "PASS_BASELINE_ORACLE_NOT_TESTED", "state": "lab-measured"}, ["PASS ok"]),
        ({"equal": 18, "state": "lab-measured"}, ["WARN part-not-terminal", "FAIL state-exceeds-evidence"]),
    ],
)
def test_c37_a_composed_result_with_an_open_part(
    tmp_path: Path, change: dict[str, Any], codes: list[str]
) -> None:
    document = {"state": "lab-screened", "equal": 3, "total": 18, "prose": "composed", **change}
    statuses = [change.get("first", "RUNNING"), *["PASS_BASELINE_ORACLE_NOT_TESTED"] * 2]
    document["artifacts"] = [{"bench_status": status} for status in statuses]
    found = judged(tmp_path, {"run/d.json": dump(document)}, PARTS)
    assert said(found, "g") == codes
    strict = judged(tmp_path / "strict", {"run/d.json": dump(document)}, PARTS + "strict = true\n")
    assert ("FAIL part-not-terminal" in said(strict, "g")) == ("WARN part-not-terminal" in codes)


DOCUMENT = '[[extract]]\nname = "d"\nkind = "json"\nrole = "run/d.json"\n'


def test_c39_a_projection_that_contradicts_its_packet(tmp_path: Path) -> None:
    document = {
        "packets": [{"quantization": "INT4 compressed-tensors"}],
        "projection": {"quant": "AutoRound INT4", "output": 128},
        "measurement": {"output": 512},
    }
    policy = DOCUMENT + (
        '[[gate]]\nname = "identity"\nkind = "consistent"\ncode = "projection-identity"\n'
        'groups = [["d:/packets/0/quantization", "d:/projection/quant"]]\n'
        '[[gate]]\nname = "workload"\nkind = "consistent"\ncode = "projection-workload"\n'
        'groups = [["d:/measurement/output", "d:/projection/output"]]\n'
    )
    found = judged(tmp_path, {"run/d.json": dump(document)}, policy)
    assert said(found, "identity") == ["FAIL projection-identity"]
    assert said(found, "workload") == ["FAIL projection-workload"]


def test_c40_a_reference_that_nothing_names(tmp_path: Path) -> None:
    policy = DOCUMENT + (
        '[[gate]]\nname = "g"\nkind = "resolves"\nreferences = ["d:packets.draft_revision"]\n'
        'targets = ["d:auxiliary_artifacts.id"]\n'
    )
    document: dict[str, Any] = {"packets": [{"draft_revision": "x"}], "auxiliary_artifacts": [{"id": "y"}]}
    assert said(judged(tmp_path / "a", {"run/d.json": dump(document)}, policy), "g") == [
        "FAIL unresolved-reference"
    ]
    document["auxiliary_artifacts"] = []
    assert said(judged(tmp_path / "b", {"run/d.json": dump(document)}, policy), "g") == [
        "FAIL unresolved-reference"
    ]
    document["auxiliary_artifacts"] = [{"id": "x"}]
    assert said(judged(tmp_path / "c", {"run/d.json": dump(document)}, policy), "g") == ["PASS ok"]


def test_c41_a_headline_of_another_configuration(tmp_path: Path) -> None:
    policy = DOCUMENT + (
        '[[gate]]\nname = "g"\nkind = "consistent"\ncode = "headline-configuration"\n'
        'groups = [["d:/headline/reasoning", "d:/launch/reasoning"]]\n'
    )
    document = {"headline": {"reasoning": True}, "launch": {"reasoning": False}}
    assert said(judged(tmp_path, {"run/d.json": dump(document)}, policy), "g") == [
        "FAIL headline-configuration"
    ]


def test_a_run_that_is_not_eligible_keeps_its_evidence(tmp_path: Path) -> None:
    policy = DOCUMENT + (
        '[[gate]]\nname = "held"\nkind = "equal"\nvalues = { "d:/ok" = true }\n'
        '[[gate]]\nname = "g"\nkind = "eligible"\nrequired = false\nsubject = "a run of today"\n'
        'values = { "d:/schema" = "v2" }\ncode = "schema-v1"\n'
    )
    found = judged(tmp_path, {"run/d.json": dump({"ok": True, "schema": "v1"})}, policy)
    assert said(found, "g") == ["INELIGIBLE schema-v1"]
    assert found.verdict.outcome == "PASS"
