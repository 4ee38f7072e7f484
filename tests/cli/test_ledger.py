"""``prov authorize`` and ``prov ledger``: what is printed, what is refused, what two packets show."""

import os
from pathlib import Path

import pytest
from prov_run import Prov
from runs.ledgers import ALL, begin, end, go
from smallrun import HEAD

from provstore.ids import to_raw
from provstore.runs.ledger import follow, head
from provstore.store.lmdb_store import LmdbStore

POLICY = HEAD + (
    '[[extract]]\nname = "s"\nkind = "status"\nrole = "status.txt"\n'
    '[[gate]]\nname = "g"\nkind = "status"\nstatus = "s"\n'
)


@pytest.fixture
def policy(place: Path) -> Path:
    path = place / "policy.toml"
    path.write_text(POLICY)
    return path


def given(prov: Prov, policy: Path, *more: str) -> str:
    return prov("authorize", "--policy", policy, "--candidate", "engine=a1", *more).id()


def store_of(place: Path) -> LmdbStore:
    return LmdbStore.open(os.fspath(place / ".prov"))


CANDIDATE = {"engine": "a1"}


def test_an_authorization_prints_its_id_and_is_listed(prov: Prov, policy: Path, place: Path) -> None:
    (place / "run.toml").write_text("a recipe\n")
    id = given(
        prov, policy, "--candidate", "recipe=@run.toml", "--document", "plan=policy.toml", "--by", "ann"
    )
    ended = prov("ledger", "--json")
    report = ended.json()
    assert (report["head"], report["entries"], report["attempts"]) == (id, 1, [])
    permit = report["authorizations"][0]
    assert (permit["line"], permit["suites"], permit["used"], permit["given_by"]) == ("test", 1, 0, "ann")
    assert set(permit["documents"]) == {"recipe", "plan"}
    assert permit["candidate"]["recipe"] == f"blake3:{permit['documents']['recipe']}"
    assert prov("cat", permit["documents"]["recipe"]).out == b"a recipe\n"
    assert id[:12] in prov("ledger").text()


def test_an_attempt_that_was_killed_is_shown_and_can_be_closed(prov: Prov, policy: Path, place: Path) -> None:
    id = given(prov, policy)
    with store_of(place) as store:
        attempt = begin(store, id, line="test", candidate=CANDIDATE)
        go(store, attempt, "preflight-passed", "service-up")
    assert "not ended, came to service-up" in prov("ledger").text()
    assert prov("ledger", "close", "#1", "--as", "valid", "--reason", "x").code == 2
    assert prov("ledger", "close", "#1", "--as", "preflight-abort", "--reason", "x").code == 32
    closed = prov(
        "ledger", "close", attempt[:8], "--as", "infrastructure-invalid", "--reason", "power cut", "--json"
    )
    assert closed.json()["attempt"]["disposition"] == "infrastructure-invalid"
    assert prov("ledger", "close", "#2", "--as", "failed-stop", "--reason", "x").code == 11
    assert "because power cut" in prov("ledger", "list", "--line", "test").text()
    assert prov("ledger", "list", "--line", "other").code == 11


def test_the_next_authorization_cites_and_shows_what_changed(prov: Prov, policy: Path, place: Path) -> None:
    id = given(prov, policy)
    with store_of(place) as store:
        attempt = begin(store, id, line="test", candidate=CANDIDATE)
        go(store, attempt, *ALL[:4], score="125.06865574449961", requests=13)
        end(store, attempt, "diagnostic-rejected", "one marker instead of four")
    refused = prov("authorize", "--policy", policy, "--candidate", "engine=b2", "--cites", "#1")
    assert refused.code == 32
    assert "no-reason" in refused.err
    again = prov(
        "authorize",
        "--policy",
        policy,
        "--candidate",
        "engine=b2",
        "--cites",
        "#1",
        "--reason",
        "scope",
        "--json",
    ).json()
    assert again["authorization"]["cites"] == attempt
    assert again["authorization"]["changes"] == [{"part": "engine", "before": "a1", "after": "b2"}]
    assert "changed since: engine a1 -> b2" in prov("ledger").text()


def sealed_at(prov: Prov, place: Path, name: str) -> str:
    (place / name).mkdir(exist_ok=True)
    (place / name / "status.txt").write_text(f"status=PASS {name}\n")
    return prov("seal", "--ledger", place / name, "--name", name).id()


def test_two_packets_show_what_was_attempted_between_them(prov: Prov, policy: Path, place: Path) -> None:
    id = given(prov, policy)
    sealed_at(prov, place, "one")
    with store_of(place) as store:
        first = begin(store, id, line="test", candidate=CANDIDATE)
        second = begin(store, id, line="test", candidate=CANDIDATE)
        newest = head(store)
    packet = sealed_at(prov, place, "two")
    ended = prov("ledger", "verify", "one", "two", "--json")
    assert ended.code == 0
    found = ended.json()["packets"]
    assert [(one["name"], one["sequence"], one["between"]) for one in found] == [
        ("one", 1, []),
        ("two", 3, [first, second]),
    ]
    assert found[1] == found[1] | {"head": newest, "packet": packet}
    assert prov("ledger", "verify").code == 0
    pack = place / "two.pack"
    assert prov("pack", "two", "-o", pack).code == 0
    other = place / "other"
    assert prov("init", other).code == 0
    elsewhere = prov("ledger", "verify", pack, "--store", other)
    assert elsewhere.code == 1
    assert "head-unknown" in elsewhere.text()


def test_a_ledger_that_lost_entries_is_told_by_a_packet(prov: Prov, policy: Path, place: Path) -> None:
    id = given(prov, policy)
    assert prov("ledger", "export", "-o", "early.jsonl").code == 0
    with store_of(place) as store:
        begin(store, id, line="test", candidate=CANDIDATE)
    assert prov("ledger", "export", "-o", "late.jsonl").code == 0
    assert prov("ledger", "export", "-o", "late.jsonl").code == 24
    late = (place / "late.jsonl").read_bytes()
    assert late.startswith((place / "early.jsonl").read_bytes())
    assert prov("ledger", "export").out == late
    assert prov("ledger", "verify", "late.jsonl").code == 0
    (place / "cut.jsonl").write_bytes(late.split(b"\n", 1)[1])
    cut = prov("ledger", "verify", "cut.jsonl", "--json")
    assert cut.code == 1
    assert "chain-broken" in {check["code"] for check in cut.json()["checks"]}


def test_an_empty_ledger_proves_nothing(prov: Prov, place: Path) -> None:
    assert prov("ledger").code == 0
    assert prov("ledger", "verify").code == 3
    assert prov("ledger", "export").code == 17
    (place / "empty.jsonl").write_bytes(b"")
    assert prov("ledger", "verify", "empty.jsonl").code == 3


def test_a_packet_without_a_head_decides_nothing(prov: Prov, policy: Path, tree: Path) -> None:
    given(prov, policy)
    assert prov("seal", tree, "--name", "plain").code == 0
    assert prov("ledger", "verify").code == 0
    assert prov("ledger", "verify", "plain").code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["authorize", "--policy", "policy.toml", "--candidate", "engine"],
        ["authorize", "--policy", "policy.toml", "--candidate", "a=1", "--candidate", "a=2"],
        ["authorize", "--policy", "policy.toml", "--candidate", "a=1", "--suites", "0"],
        ["ledger", "forget"],
        ["ledger", "list", "x"],
        ["ledger", "list", "--as", "valid"],
        ["ledger", "verify", "--line", "x"],
        ["ledger", "close", "#1"],
        ["ledger", "close", "#1", "--as", "fine", "--reason", "x"],
        ["ledger", "export", "--json"],
    ],
)
def test_wrong_usage(prov: Prov, policy: Path, arguments: list[str]) -> None:
    given(prov, policy)
    assert prov(*arguments).code == 2


def test_a_sealed_ledger_is_judged_by_its_own_gates(prov: Prov, policy: Path, place: Path) -> None:
    rules = place / "ledger.toml"
    rules.write_text(
        HEAD + '[[extract]]\nname = "ledger"\nkind = "ledger"\nrole = "ledger.jsonl"\n'
        '[[gate]]\nname = "ledger"\nkind = "ledger"\nledger = "ledger"\n'
        '[[gate]]\nname = "attempts"\nkind = "attempts"\nattempts = "ledger:/attempts"\n'
        'authorizations = "ledger:/authorizations"\n'
    )
    id = given(prov, policy)
    run = place / "run"
    run.mkdir()
    with store_of(place) as store:
        attempt = begin(store, id, line="test", candidate=CANDIDATE)
        go(store, attempt, *ALL[:4], score="125.4", requests=13)
    assert prov("ledger", "export", "-o", run / "ledger.jsonl").code == 0
    assert prov("seal", "--ledger", run).code == 0
    assert prov("verify", "run", "--policy", rules).code == 0
    with store_of(place) as store:
        end(store, attempt, "diagnostic-rejected")
        assert follow(store)[1] == []
    assert prov("seal", "--ledger", run, "--name", "late").code == 0
    late = prov("verify", "late", "--policy", rules)
    assert late.code == 1
    assert "other-head" in late.text()
    assert prov("seal", run, "--name", "bare").code == 0
    bare = prov("verify", "bare", "--policy", rules)
    assert bare.code == 3
    assert "head-absent" in bare.text()
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (run / "ledger.jsonl").write_bytes(b"".join(lines[:1] + lines[2:]))
    assert prov("seal", run, "--name", "cut").code == 0
    cut = prov("verify", "cut", "--policy", rules)
    assert cut.code == 1
    assert "chain-broken" in cut.text()


def test_show_names_the_entry(prov: Prov, policy: Path, place: Path) -> None:
    given(prov, policy)
    sealed_at(prov, place, "one")
    with store_of(place) as store:
        newest = head(store)
    assert prov("show", "one", "--json").json()["ledger"] == newest
    assert newest is not None
    assert newest in prov("show", "one").text()
    assert to_raw(newest)


def test_the_policy_says_what_is_refused_and_what_may_not_count(
    prov: Prov, policy: Path, place: Path
) -> None:
    policy.write_text(
        POLICY.replace("[[extract]]", '[permission]\nuncited = "ineligible"\n[[extract]]', 1)
        + '[[extract]]\nname = "ledger"\nkind = "ledger"\nrole = "ledger.jsonl"\n'
        '[[gate]]\nname = "attempts"\nkind = "attempts"\nattempts = "ledger:/attempts"\n'
        'authorizations = "ledger:/authorizations"\n'
    )
    first, second = given(prov, policy), given(prov, policy)
    with store_of(place) as store:
        seen = begin(store, first, line="test", candidate=CANDIDATE)
        go(store, seen, *ALL[:4], score="1.5", requests=13)
        lenient = begin(store, second, line="test", candidate=CANDIDATE)
        go(store, lenient, *ALL[:4], score="1.7", requests=13)
        assert follow(store)[0].lives[lenient].ineligible == ["uncited-start"]
    run = place / "run"
    run.mkdir()
    (run / "status.txt").write_text("status=PASS\n")
    assert prov("ledger", "export", "-o", run / "ledger.jsonl").code == 0
    assert prov("seal", "--ledger", run).code == 0
    judged = prov("verify", "run", "--policy", policy, "--json").json()
    found = [check for check in judged["checks"] if check.get("gate") == "attempts"]
    assert [(check["outcome"], check["code"]) for check in found] == [("INELIGIBLE", "uncited-start")]
    policy.write_text(policy.read_text().replace('"ineligible"', '"perhaps"'))
    refused = prov("authorize", "--policy", policy, "--candidate", "engine=a1")
    assert refused.code == 2
    assert "perhaps" in refused.err
