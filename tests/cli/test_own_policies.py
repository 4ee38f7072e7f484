"""Policies that a packet carries: absent, damaged, set aside, two of them, and one that requires nothing."""

from pathlib import Path
from typing import Any

import pytest
from prov_run import Ended, Prov

HEAD = 'format = "provstore/policy/v1"\nname = "{}"\nversion = "1"\ndate = "2026-07-26"\n'
READ = '[[extract]]\nname = "s"\nkind = "json"\nrole = "d"\n'
GATE = '[[gate]]\nname = "{}"\nkind = "equal"\nvalues = {{ "s:/n" = {} }}\n'


def policy(name: str, value: int = 1, *, gate: str = "g", extra: str = "") -> str:
    """Return a policy of one gate."""
    return HEAD.format(name) + READ + GATE.format(gate, value) + extra


def seal(prov: Prov, place: Path, **policies: str) -> None:
    """Seal one document with policies, each under its name as role."""
    (place / "d.json").write_text('{"n": 1}')
    text = 'format = "provstore/packet-spec/v1"\nname = "p"\n'
    text += '[[entry]]\nrole = "d"\nkind = "document"\npath = "d.json"\n'
    for role, content in policies.items():
        (place / f"{role}.toml").write_text(content)
        text += f'[[entry]]\nrole = "{role}"\nkind = "policy"\npath = "{role}.toml"\n'
    (place / "spec.toml").write_text(text)
    prov("seal", "spec.toml").id()


def gates(ran: Ended) -> list[Any]:
    """Return what gates and policies say in a report."""
    return [check for check in ran.json()["checks"] if check["check"] == "gate"]


def unusable(ran: Ended) -> list[Any]:
    """Return code, outcome, role and weight of what concerns a policy and no gate of it."""
    return [(c["code"], c["outcome"], c["role"], c["required"]) for c in gates(ran) if not c["gate"]]


def test_a_policy_left_out_of_a_pack_leaves_the_report(prov: Prov, place: Path) -> None:
    seal(prov, place, own=policy("a"), other=policy("b"))
    assert prov("verify", "p").code == 0
    assert prov("pack", "p", "-o", "p.pack", "--without", "own").code == 0
    ran = prov("verify", "p.pack", "--json")
    assert (ran.code, ran.json()["outcome"]) == (3, "INCOMPLETE")
    assert unusable(ran) == [("not-held", "UNKNOWN", "own", True)]
    assert [verdict["name"] for verdict in ran.json()["verdicts"]] == ["b"]
    assert any(c["check"] == "integrity" and c["role"] == "d" for c in ran.json()["checks"])


def test_a_malformed_policy_leaves_the_report_but_a_named_one_is_an_error(prov: Prov, place: Path) -> None:
    seal(prov, place, own="this is no policy\n")
    ran = prov("verify", "p", "--json")
    assert (ran.code, ran.json()["outcome"]) == (3, "INCOMPLETE")
    assert unusable(ran) == [("bad-policy", "UNKNOWN", "own", True)]
    assert prov("verify", "p", "--policy", "own").code == 2
    assert prov("verify", "p", "--policy", "own.toml").code == 2


def test_a_damaged_policy_fails_integrity_and_is_not_judged_by(prov: Prov, place: Path) -> None:
    seal(prov, place, own=policy("a"))
    pack = place / "p.pack"
    assert prov("pack", "p", "-o", pack).code == 0
    data = pack.read_bytes()
    found = []
    for at in range(0, len(data), 16):  # packs compress: the policy's bytes lie where damage says so
        pack.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        ran = prov("verify", pack, "--json")
        checks = ran.json()["checks"] if ran.code == 1 else []
        if any(c["check"] == "integrity" and c["outcome"] == "FAIL" and c["role"] == "own" for c in checks):
            found.append((ran.json()["outcome"], [told[1:] for told in unusable(ran)]))

    assert found[0] == ("FAIL", [("UNKNOWN", "own", True)])


@pytest.mark.parametrize("part", [("--only", "d"), ("--against", "there")])
def test_a_part_says_which_policies_were_not_judged(prov: Prov, place: Path, part: tuple[str, str]) -> None:
    seal(prov, place, own=policy("a", 2), other=policy("b"))
    prov("restore", "p", "there")
    ran = prov("verify", "p", *part, "--json")
    assert (ran.code, ran.json()["outcome"]) == (0, "PASS")
    (check,) = gates(ran)
    assert (check["outcome"], check["code"]) == ("NOT-APPLICABLE", "policies-not-judged")
    assert "other, own" in check["message"]
    assert check["message"] in prov("verify", "p", *part).text()


def test_explain_tells_the_worst_of_two_policies_first(prov: Prov, place: Path) -> None:
    only = GATE.format("alone", 1)
    seal(prov, place, a=policy("a"), b=policy("b", 2, extra=only))
    ran = prov("explain", "p", "g")
    told = [line for line in ran.text().splitlines() if " gate g " in line]
    assert ran.code == 1
    assert [line.split()[0] for line in told] == ["FAIL", "PASS"]
    assert "2 policies have this gate" in ran.err
    assert prov("explain", "p", "g", "--json").json()["outcome"] == "FAIL"
    assert prov("explain", "p", "alone").code == 0
    assert prov("explain", "p", "absent").code == 11


def test_a_policy_that_requires_nothing_says_so(prov: Prov, place: Path) -> None:
    seal(prov, place, own=policy("a", extra="required = false\n"))
    ran = prov("verify", "p", "--json")
    assert (ran.code, ran.json()["outcome"]) == (3, "INCOMPLETE")
    assert unusable(ran) == [("no-required-gate", "UNKNOWN", "", True)]
    assert "no gate of policy a 1 is required" in prov("verify", "p").text()
