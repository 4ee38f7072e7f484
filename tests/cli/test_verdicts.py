"""``prov verify --policy``, ``prov explain``, ``prov metrics`` and ``prov show --verdicts``."""

import json
import os
from pathlib import Path

import pytest
from prov_run import Prov
from smallrun import POLICY, digest, files

SPEC = 'format = "provstore/packet-spec/v1"\nname = "small"\n'


def plant(
    place: Path, change: dict[str, bytes] | None = None, extra: str = "", *, policy: str = POLICY
) -> None:
    """Write the small run, its manifest, a spec and a policy."""
    planted = {name: data for name, data in {**files(), **(change or {})}.items() if data}
    for name, data in planted.items():
        path = place / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    lines = [f"{digest(data)}  {name[4:]}\n" for name, data in planted.items() if name.startswith("run/")]
    (place / "run.sha256").write_text("".join(lines))
    text = SPEC
    for role in sorted({name.partition("/")[0] for name in planted}):
        text += f'[[entry]]\nrole = "{role}"\nkind = "evidence"\npath = "files/{role}"\n'
        text += 'manifest = "run.sha256"\n' if role == "run" else ""
    (place / "spec.toml").write_text(text + extra)
    (place / "policy.toml").write_text(policy)


OWN = '[[entry]]\nrole = "policy"\nkind = "policy"\npath = "policy.toml"\n'


@pytest.fixture
def small(prov: Prov, place: Path) -> Prov:
    plant(place)
    prov("seal", "spec.toml").id()
    return prov


def test_a_verdict_passes_is_kept_and_shown(small: Prov) -> None:
    ran = small("verify", "small", "--policy", "policy.toml", "--json")
    report = ran.json()
    assert (ran.code, report["outcome"]) == (0, "PASS")
    gates = [check for check in report["checks"] if check["check"] == "gate"]
    assert {check["outcome"] for check in gates} == {"PASS"}
    assert {"tokens", "counters", "readings"} <= {check["gate"] for check in gates}
    assert {metric["convention"] for metric in report["metrics"]} == {
        "legacy-inclusive-events",
        "conventional-intervals",
    }
    shown = small("show", "small", "--verdicts", "--json").json()["verdicts"]
    assert [(verdict["outcome"], verdict["id"]) for verdict in shown] == [
        ("PASS", report["verdicts"][0]["id"])
    ]
    assert small("show", "small", "--json").json()["verdicts"] == []


def test_verdicts_of_two_policies_stand_side_by_side(small: Prov, place: Path) -> None:
    stricter = POLICY.replace('version = "1"', 'version = "2"').replace(
        'reference = "50"', 'reference = "5000"'
    )
    (place / "later.toml").write_text(stricter)
    assert small("verify", "small", "--policy", "policy.toml").code == 0
    assert small("verify", "small", "--policy", "later.toml").code == 1
    assert small("verify", "small", "--policy", "policy.toml").code == 0
    shown = small("show", "small", "--verdicts", "--json").json()["verdicts"]
    assert [(verdict["version"], verdict["outcome"]) for verdict in shown] == [("1", "PASS"), ("2", "FAIL")]
    text = small("show", "small", "--verdicts").text()
    assert "FAIL  policy test 2 of 2026-07-26" in text
    assert "FAIL floor: below-floor" in text


def test_kept_verdicts_survive_gc_and_fsck(small: Prov) -> None:
    small("verify", "small", "--policy", "policy.toml")
    assert small("gc", "--delete", "--json").json()["records"] == 0
    found = small("fsck", "--json").json()
    assert (found["damaged"], found["unreferenced"]) == ([], 0)
    assert len(small("show", "small", "--verdicts", "--json").json()["verdicts"]) == 1
    assert small("explain", "small", "tokens").code == 0  # by the policy of the kept verdict


def test_a_failure_names_gate_place_and_line(prov: Prov, place: Path) -> None:
    plant(place, {"run/cleanup.txt": b"stop_status=0\nidle_status=1\n"})
    prov("seal", "spec.toml").id()
    ran = prov("verify", "small", "--policy", "policy.toml", "--json")
    assert ran.code == 1
    (failure,) = [check for check in ran.json()["checks"] if check["outcome"] == "FAIL"]
    assert (failure["gate"], failure["code"], failure["role"], failure["path"], failure["location"]) == (
        "cleanup",
        "cleanup",
        "run",
        "cleanup.txt",
        "line 2",
    )
    told = prov("explain", "small", "cleanup", "--policy", "policy.toml")
    assert told.code == 1
    assert "run/cleanup.txt line 2: cleanup.idle_status = 1" in told.text()
    assert "| idle_status=1" in told.text()
    assert "to do: " in told.text()
    report = prov("explain", "small", "cleanup", "--policy", "policy.toml", "--json").json()
    assert (report["outcome"], report["found"], report["findings"][0]["facts"][0]["line"]) == (
        "FAIL",
        "FAIL",
        "idle_status=1",
    )


def test_absent_evidence_is_incomplete_and_says_what_would_settle_it(prov: Prov, place: Path) -> None:
    plant(place, {"run/status.txt": b""}, policy=POLICY.replace("count = 14", "count = 13"))
    prov("seal", "spec.toml").id()
    ran = prov("verify", "small", "--policy", "policy.toml", "--json")
    assert (ran.code, ran.json()["outcome"], ran.json()["settles"]) == (3, "INCOMPLETE", ["run/status.txt"])
    assert "would settle what is unknown:" in prov("verify", "small", "--policy", "policy.toml").text()


def test_a_packet_is_judged_by_the_policy_that_it_carries(prov: Prov, place: Path) -> None:
    plant(place, {"run/status.txt": b"status=FAIL\n"}, OWN)
    prov("seal", "spec.toml").id()
    ran = prov("verify", "small", "--json")
    assert ran.code == 1
    assert [check["code"] for check in ran.json()["checks"] if check["outcome"] == "FAIL"] == ["status"]
    assert prov("verify", "small", "--policy", "policy").code == 1
    assert prov("explain", "small", "status").code == 1
    loose = POLICY.replace('kind = "status"\nstatus', 'kind = "status"\nrequired = false\nstatus')
    (place / "loose.toml").write_text(loose)
    assert prov("verify", "small", "--policy", "loose.toml").code == 0


def test_integrity_comes_first(small: Prov, place: Path) -> None:
    """A verdict never makes a damaged packet better."""
    (place / "easy.toml").write_text(
        'format = "provstore/policy/v1"\nname = "p"\nversion = "1"\ndate = "2026-01-01"\n'
        '[[extract]]\nname = "s"\nkind = "status"\nrole = "run/status.txt"\n'
        '[[gate]]\nname = "s"\nkind = "status"\nstatus = "s"\n'
    )
    assert small("verify", "small", "--policy", "easy.toml").code == 0
    pack = place / "small.pack"
    assert small("pack", "small", "-o", "small.pack").code == 0
    data = bytearray(pack.read_bytes())
    spot = data.find(b"stop_status")
    if spot < 0:  # compressed: damage the middle
        spot = len(data) // 2
    data[spot] ^= 1
    pack.write_bytes(bytes(data))
    assert small("verify", "small.pack", "--policy", "easy.toml").code not in (0, 3)


def test_a_pack_is_judged_in_place(small: Prov, place: Path) -> None:
    assert small("pack", "small", "-o", "small.pack").code == 0
    os.rename(".prov", "elsewhere")
    ran = small("verify", "small.pack", "--policy", "policy.toml", "--json")
    assert (ran.code, ran.json()["verdicts"][0]["id"]) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("verify", "small", "--policy", "nowhere.toml"), 11),
        (("verify", "small", "--policy", "policy.toml", "--only", "run/*"), 2),
        (("verify", "small", "--policy", "policy.toml", "--against", "files"), 2),
        (("explain", "small", "nonsense", "--policy", "policy.toml"), 11),
        (("explain", "small", "tokens"), 11),
        (("verify", "small", "--policy", "spec.toml"), 2),
        (("metrics", "files/run/bench.json", "--convention", "fastest"), 11),
        (("metrics", "files/run/status.txt", "--convention", "legacy"), 2),
        (("metrics", "nowhere.json"), 27),
    ],
)
def test_wrong_usage(small: Prov, arguments: tuple[str, ...], code: int) -> None:
    assert small(*arguments).code == code


def test_a_bad_policy_is_refused_with_its_line(small: Prov, place: Path) -> None:
    (place / "bad.toml").write_text(POLICY.replace('kind = "tokens"', 'kind = "tokenz"'))
    ran = small("verify", "small", "--policy", "bad.toml")
    assert ran.code == 2
    line = (place / "bad.toml").read_text().split("\n").index('kind = "tokenz"') + 1
    assert f"bad.toml:{line}: gate 'tokens': no kind is called 'tokenz'" in ran.err


def test_metrics_of_a_benchmark_and_of_a_raw_log(small: Prov, place: Path) -> None:
    wanted = json.loads(files()["run/bench.json"])["summary"]["tok_s_1_100_after_ttft"]["median"]
    ran = small("metrics", "files/run/bench.json", "--convention", "legacy-inclusive-events", "--json")
    report = ran.json()
    assert (ran.code, report["value"], report["convention"]) == (0, repr(wanted), "legacy-inclusive-events")
    assert len(report["rows"]) == 3
    (place / "stamps.log").write_text("".join(f"{at / 100}\n" for at in range(100)))
    log = small("metrics", "stamps.log", "--convention", "intervals", "--json").json()
    assert (log["value"], log["formula"]) == (
        "100.0",
        "median over rows of 99 / (token_id_offsets_s[99] - token_id_offsets_s[0])",
    )
    (place / "short.log").write_text("0.0\n0.1\n")
    short = small("metrics", "short.log", "--json")
    assert (short.code, short.json()["value"], short.json()["outcome"]) == (1, None, "FAIL")
    bare = small("metrics", "files/run/bench.json", "--convention", "engine-rate-mean", "--json")
    assert (bare.code, bare.json()["outcome"]) == (3, "INCOMPLETE")
