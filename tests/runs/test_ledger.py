"""What the ledger permits, what it refuses, and what it shows of attempts that came to nothing."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from provstore import records
from provstore.errors import NotFoundError, NotPermittedError, StoreDamagedError, UsageError
from provstore.evidence.book import Book
from provstore.evidence.ledger import read_ledger
from provstore.ids import digests, to_raw
from provstore.records.ledger import Attempt, Authorization, LedgerEntry, Rules, Step
from provstore.runs.ledger import entry_of, follow, head, note
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.protocol import Store
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import gc
from runs.ledgers import ALL, CANDIDATE, POLICY, POLICY_ID, begin, end, go, permit, valid

LET_PASS = Rules(
    unauthorized="ineligible", uncited="ineligible", used_up="ineligible", early_evidence="ineligible"
)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def refused(work: Any) -> list[str]:
    with pytest.raises(NotPermittedError) as raised:
        work()
    return [code for code, _ in raised.value.objections]


def test_an_attempt_that_counts(store: MemoryStore) -> None:
    given = permit(store)
    attempt = valid(store, given)
    book, wrong = follow(store)
    assert wrong == []
    assert book.head == head(store) == store.ledger()[-1].hex()
    life = book.lives[attempt]
    assert life.states == ["created", *ALL]
    assert (life.sent, life.score, life.visible) == (13, "125.46", True)
    assert life.ending is not None
    assert life.ending.disposition == "valid"
    assert (book.permits[given].spent, book.permits[given].valid) == ([attempt], [attempt])


def test_entries_name_the_one_before_and_times_go_forward(store: MemoryStore) -> None:
    valid(store, permit(store))
    entries = [entry_of(store, id) for id in store.ledger()]
    assert [entry.sequence for entry in entries] == list(range(1, 10))
    ids = [None, *(id.hex() for id in store.ledger()[:-1])]
    assert [entry.previous for entry in entries] == ids
    times = [int(entry.taken_ns) for entry in entries]
    assert times == sorted(set(times))


def test_a_second_suite_on_one_authorization_is_refused(store: MemoryStore) -> None:
    given = permit(store)
    first = valid(store, given)
    before = store.ledger()
    assert refused(lambda: begin(store, given)) == ["authorization-used-up", "uncited-start"]
    cited: dict[str, Any] = {"cites": first, "reason": "once more"}
    assert refused(lambda: begin(store, given, **cited)) == ["authorization-used-up"]
    assert store.ledger() == before


def test_two_attempts_that_race_for_one_suite(store: MemoryStore) -> None:
    given = permit(store)
    first, second = begin(store, given), begin(store, given)
    go(store, first, "preflight-passed", "service-up", "first-request")
    go(store, second, "preflight-passed", "service-up")
    assert refused(lambda: go(store, second, "first-request")) == ["authorization-used-up"]
    end(store, second, "construction-failure", "the other one came first")
    assert follow(store)[1] == []


def test_an_attempt_without_a_request_does_not_use_up_its_authorization(store: MemoryStore) -> None:
    given = permit(store)
    failed = begin(store, given)
    go(store, failed, "preflight-passed")
    end(store, failed, "construction-failure", "duplicate layer name on all ranks")
    valid(store, given)
    book, wrong = follow(store)
    assert wrong == []
    assert list(book.lives) == [failed, book.permits[given].valid[0]]


def test_a_rejected_run_uses_up_its_authorization_and_must_be_cited(store: MemoryStore) -> None:
    given = permit(store)
    rejected = begin(store, given)
    go(store, rejected, *ALL[:4], requests=13, score="125.06865574449961")
    go(store, rejected, "judged")
    end(store, rejected, "diagnostic-rejected", "one marker instead of four")
    fresh = permit(store)
    assert refused(lambda: begin(store, fresh)) == ["uncited-start"]
    assert refused(lambda: begin(store, fresh, cites=rejected)) == ["uncited-start"]
    assert refused(lambda: permit(store, cites=rejected)) == ["no-reason"]
    again = permit(store, cites=rejected, reason="the marker had local-rank scope")
    valid(store, again)
    other = permit(store, line="prefill")
    valid(store, other, line="prefill")
    assert follow(store)[1] == []


def test_a_complete_suite_is_a_visible_score_even_if_nobody_wrote_it_down(store: MemoryStore) -> None:
    killed = begin(store, permit(store))
    go(store, killed, *ALL[:4])
    assert refused(lambda: begin(store, permit(store))) == ["uncited-start"]


def test_an_attempt_without_an_authorization(store: MemoryStore) -> None:
    assert refused(lambda: begin(store, None)) == ["unauthorized-start"]
    assert refused(lambda: begin(store, "ab" * 32)) == ["unauthorized-start"]
    attempt = begin(store, None, LET_PASS)
    go(store, attempt, *ALL)
    assert refused(lambda: end(store, attempt, "valid")) == ["not-eligible"]
    end(store, attempt, "diagnostic-rejected", "nobody permitted it")
    book, wrong = follow(store)
    assert wrong == []
    assert book.lives[attempt].ineligible == ["unauthorized-start"]


def test_another_candidate_than_was_authorized(store: MemoryStore) -> None:
    given = permit(store)
    assert refused(lambda: begin(store, given, candidate=CANDIDATE | {"engine": "c" * 40})) == [
        "unauthorized-start"
    ]
    assert refused(lambda: begin(store, given, candidate={"engine": "a" * 40})) == ["unauthorized-start"]
    assert refused(lambda: begin(store, given, line="prefill")) == ["unauthorized-start"]
    begin(store, given, candidate=CANDIDATE | {"host": "box"})


def test_what_the_policy_lets_pass_is_ineligible(store: MemoryStore) -> None:
    given = permit(store, rules=LET_PASS)
    valid(store, given)
    second = begin(store, given)
    assert follow(store)[0].lives[second].ineligible == ["authorization-used-up", "uncited-start"]
    go(store, second, *ALL)
    assert refused(lambda: end(store, second, "valid")) == ["not-eligible", "second-valid-score"]
    end(store, second, "diagnostic-rejected")
    assert follow(store)[1] == []


def test_evidence_older_than_its_authorization(store: MemoryStore) -> None:
    given = permit(store)
    when = follow(store)[0].permits[given].taken_ns
    attempt = begin(store, given)
    go(store, attempt, *ALL)
    early = {"bench": str(when), "device-tests": str(when - 1)}
    assert refused(lambda: end(store, attempt, "valid", evidence=early)) == ["pre-authorization"]
    ended = end(store, attempt, "diagnostic-rejected", evidence=early)
    assert ended.book.lives[attempt].ineligible == ["pre-authorization"]
    strict = permit(store, rules=Rules(early_evidence="refuse"), cites=attempt, reason="tests first")
    again = begin(store, strict)
    go(store, again, "preflight-passed")
    old = {"bench": str(when)}
    assert refused(lambda: end(store, again, "infrastructure-invalid", evidence=old)) == ["pre-authorization"]
    assert follow(store)[1] == []


def test_evidence_as_old_as_its_authorization_counts(store: MemoryStore) -> None:
    given = permit(store)
    when = follow(store)[0].permits[given].taken_ns
    attempt = begin(store, given)
    go(store, attempt, *ALL)
    end(store, attempt, "valid", evidence={"bench": str(when)})


@pytest.mark.parametrize(
    ("states", "ending"),
    [
        (["preflight-passed"], "preflight-abort"),
        ([], "construction-failure"),
        (["preflight-passed", "service-up", "first-request"], "construction-failure"),
        (["preflight-passed", "service-up"], "diagnostic-rejected"),
        (["preflight-passed", "service-up", "first-request", "suite-complete", "judged"], "valid"),
        (["preflight-passed", "service-up", "first-request", "judged", "sealed"], "valid"),
    ],
)
def test_an_ending_that_does_not_fit(store: MemoryStore, states: Any, ending: Any) -> None:
    attempt = begin(store, permit(store))
    go(store, attempt, *states)
    assert refused(lambda: end(store, attempt, ending)) == ["wrong-ending"]
    end(store, attempt, "infrastructure-invalid", "power cut")
    assert "ended" in refused(lambda: go(store, attempt, "sealed"))
    assert "ended" in refused(lambda: end(store, attempt, "infrastructure-invalid", "again"))


def test_states_come_in_order(store: MemoryStore) -> None:
    attempt = begin(store, permit(store))
    for state in ("created", "service-up", "first-request", "suite-complete"):
        assert refused(lambda: go(store, attempt, state)) == ["out-of-order"], state  # noqa: B023
    go(store, attempt, "preflight-passed", "first-request", requests=3)
    assert refused(lambda: go(store, attempt, "suite-complete", requests=2)) == ["out-of-order"]
    go(store, attempt, "suite-complete", "sealed", "judged")
    assert refused(lambda: go(store, attempt, "sealed")) == ["out-of-order"]
    assert refused(lambda: go(store, "ab" * 32, "sealed")) == ["unknown-attempt"]


def test_an_authorization_for_several_suites(store: MemoryStore) -> None:
    given = permit(store, suites=2)
    first = valid(store, given)
    second = valid(store, given, cites=first, reason="second of two that were preregistered")
    again: dict[str, Any] = {"cites": second, "reason": "a third"}
    assert refused(lambda: begin(store, given, **again)) == ["authorization-used-up"]


def test_what_an_entry_names_must_be_here(store: MemoryStore) -> None:
    with pytest.raises(NotFoundError):
        permit(store, documents={"preregistration": "cd" * 32})
    assert refused(lambda: permit(store, policy="x")) == ["bad-digest"]
    assert refused(lambda: permit(store, candidate={})) == ["no-candidate"]
    attempt = begin(store, permit(store))
    with pytest.raises(NotFoundError):
        go(store, attempt, "sealed", packet="ab" * 32)
    assert follow(store)[1] == []


def exported(store: Store) -> list[bytes]:
    return [objects.record(store, id) for id in store.ledger()]


def test_a_ledger_as_a_file_tells_the_same(store: MemoryStore) -> None:
    attempt = valid(store, permit(store))
    found = read_ledger(b"".join(line + b"\n" for line in exported(store)))
    assert found.findings == ()
    assert isinstance(found.tree, dict)
    assert found.tree["head"] == head(store)
    assert found.value("ledger.attempts.id") == attempt
    assert found.value("ledger.attempts.disposition") == "valid"


@pytest.mark.parametrize("gone", range(9))
def test_an_entry_that_is_left_out_shows(store: MemoryStore, gone: int) -> None:
    valid(store, permit(store))
    lines = exported(store)
    del lines[gone]
    found = read_ledger(b"".join(line + b"\n" for line in lines))
    codes = [finding.code for finding in found.findings]
    assert isinstance(found.tree, dict)
    if gone == 8:  # the newest: only who knows a later head can tell
        assert codes == []
        assert found.tree["head"] != head(store)
    else:
        assert "chain-broken" in codes


def test_a_forged_entry_shows(store: MemoryStore) -> None:
    attempt = begin(store, permit(store))
    go(store, attempt, *ALL)
    lines = exported(store)
    before = records.encode(entry_of(store, store.ledger()[-1]))[0].hex()
    other = records.decode(lines[-1])
    assert isinstance(other, LedgerEntry)
    forged: list[dict[str, Any]] = [
        {"sequence": 20, "previous": before},
        {"sequence": 9, "previous": "ab" * 32},
        {"sequence": 9, "previous": before, "taken_ns": "17"},
        {"sequence": 9, "previous": before, "about": Attempt(line="decode", candidate=CANDIDATE)},
        {"sequence": 9, "previous": before,
         "about": Attempt(line="decode", candidate=CANDIDATE, ineligible=("unauthorized-start",))},
    ]  # fmt: skip
    wanted = [
        ["chain-broken"],
        ["chain-broken"],
        ["time-backwards"],
        ["unauthorized-start", "uncited-start"],
        ["uncited-start"],
    ]
    late: dict[str, Any] = {"taken_ns": "9" * 18 + "0", "tool": "forger", "about": other.about}
    for change, codes in zip(forged, wanted, strict=True):
        fields = {
            "about": Authorization(line="x", policy=POLICY_ID, candidate={"a": "b"}, suites=1, given_by="x")
        }
        data = records.encode(LedgerEntry(**(late | fields | change)))[1]
        found = read_ledger(b"".join(line + b"\n" for line in (*lines, data)))
        assert [finding.code for finding in found.findings] == codes, change


def test_a_rule_that_refuses_cannot_be_written_as_let_pass(store: MemoryStore) -> None:
    given = permit(store)
    valid(store, given)
    book, _ = follow(store)
    entry = LedgerEntry(
        sequence=10,
        previous=book.head,
        taken_ns=str(book.last_ns + 1),
        tool="forger",
        about=Attempt(
            line="decode",
            candidate=CANDIDATE,
            authorization=given,
            ineligible=("authorization-used-up", "uncited-start"),
        ),
    )
    assert [found.code for found in book.take("ab" * 32, entry)] == ["authorization-used-up", "uncited-start"]


def test_writers_at_the_same_time_make_one_chain(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "store")
    LmdbStore.create(path).close()
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            with LmdbStore.open(path) as mine:
                for number in range(5):
                    permit(mine, line=f"{name}-{number}")
        except BaseException as error:  # noqa: BLE001 (told to the test)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with LmdbStore.open(path, writable=False) as store:
        book, wrong = follow(store)
    assert wrong == []
    assert len(book.permits) == 15


def test_gc_keeps_the_ledger_and_what_it_names(tmp_path: Path) -> None:
    with LmdbStore.create(os.fspath(tmp_path / "store")) as store:
        plan = b"what is to be shown, and when to stop\n"
        note(
            store,
            Authorization(
                line="decode",
                policy=POLICY_ID,
                candidate=CANDIDATE,
                suites=1,
                given_by="ann",
                documents={"preregistration": digests(plan).blake3.hex()},
            ),
            [POLICY, plan],
        )
        with store.stage() as stage:
            stage.add_object(digests(b"nobody's"), b"nobody's")
            stage.commit()
        report = gc(store, delete=True, grace_s=0)
        assert (report.objects, report.records) == (1, 0)
        assert objects.read(store, digests(plan).blake3) == plan
        assert fsck(store).damaged == ()
        assert follow(store)[1] == []


def test_a_stage_appends_one_entry(store: MemoryStore) -> None:
    with store.stage() as stage:
        stage.append_ledger(bytes(32), None)
        with pytest.raises(UsageError):
            stage.append_ledger(bytes(32), None)


def test_nothing_follows_a_broken_ledger(store: MemoryStore) -> None:
    entry = LedgerEntry(sequence=7, taken_ns="1", tool="x", about=Step(attempt="ab" * 32, state="sealed"))
    id, data = records.encode(entry)
    with store.stage() as stage:
        stage.add_record(id, data)
        stage.append_ledger(id, None)
        stage.commit()
    with pytest.raises(StoreDamagedError):
        permit(store)
    damaged = fsck(store).damaged
    assert {(one.id, one.role) for one in damaged} == {(id.hex(), "ledger")}
    assert to_raw(damaged[0].id) == id


def test_an_empty_book_has_no_head() -> None:
    assert Book().head is None
