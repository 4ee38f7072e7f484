"""Judging through a store: other places of bytes, parents, damage, what is kept."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from smallrun import HEAD, POLICY, dump, files, judged, said, sealed, words
from workbench import STORES, open_store_of

from provstore import records
from provstore.ids import Buffer, RawId, digests, to_raw
from provstore.records.facts import Facts
from provstore.records.verdict import Verdict
from provstore.store import objects
from provstore.store.memory import MemoryStore
from provstore.store.protocol import Store
from provstore.verbs.explaining import explain
from provstore.verbs.judging import judge, keep
from provstore.verbs.keeping import shown_verdicts
from provstore.verbs.members import find_member
from provstore.verbs.sealing import SealOptions, seal_spec

STATUS = (
    '[[extract]]\nname = "s"\nkind = "status"\nrole = "run/status.txt"\n'
    '[[gate]]\nname = "s"\nkind = "status"\nstatus = "s"\n'
)


def seal(store: Store, place: Path, text: str) -> RawId:
    (place / "spec.toml").write_text('format = "provstore/packet-spec/v1"\nname = "p"\n' + text)
    return to_raw(seal_spec(store, place / "spec.toml", options=SealOptions(use_cache=False)).packet)


def test_bytes_that_are_kept_outside_are_read_where_they_lie(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "status.txt").write_text("status=PASS\n")
    (tmp_path / "run" / "log").write_text("one\nready\n")
    store = MemoryStore()
    entry = '[[entry]]\nrole = "run"\nkind = "evidence"\npath = "run"\nkeep = "external"\n'
    packet = seal(store, tmp_path, entry)
    policy = (HEAD + STATUS).encode() + (
        b'[[extract]]\nname = "r"\nkind = "lines"\nrole = "run/log"\nmarker = "ready"\n'
        b'[[gate]]\nname = "r"\nkind = "equal"\nvalues = { "r:#matches" = 1 }\n'
    )
    assert judge(store, packet, policy).verdict.outcome == "PASS"
    os.rename(tmp_path / "run", tmp_path / "moved")
    assert words(judge(store, packet, policy)) == {
        "s": "UNKNOWN evidence-absent",
        "r": "UNKNOWN evidence-absent",
        "readings": "UNKNOWN evidence-absent",
    }
    (tmp_path / "at").mkdir()
    os.rename(tmp_path / "moved", tmp_path / "at" / "run")
    assert judge(store, packet, policy, at=[tmp_path / "at"]).verdict.outcome == "PASS"
    (tmp_path / "at" / "run" / "status.txt").write_text("status=PASS\n\n")
    assert judge(store, packet, policy, at=[tmp_path / "at"]).verdict.outcome == "INCOMPLETE"


def test_facts_of_a_parent_and_of_the_packet_itself(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "a.json").write_bytes(dump({"commit": "ab" * 20, "rate": 1.5}))
    parent = seal(store, tmp_path, '[[entry]]\nrole = "d"\nkind = "document"\npath = "a.json"\n')
    (tmp_path / "b.json").write_bytes(dump({"commit": "ab" * 20}))
    text = f'parents = ["{parent.hex()}"]\n[[entry]]\nrole = "d"\nkind = "document"\npath = "b.json"\n'
    text += '[[entry]]\nrole = "src"\nkind = "source-tree"\nkeep = "declared"\ncommit = "' + "ab" * 20 + '"\n'
    child = seal(store, tmp_path, text)
    policy = HEAD + (
        '[[extract]]\nname = "here"\nkind = "json"\nrole = "d"\n'
        '[[extract]]\nname = "there"\nkind = "json"\nrole = "d"\nparent = true\n'
        '[[extract]]\nname = "src"\nkind = "entry"\nrole = "src"\n'
        '[[gate]]\nname = "g"\nkind = "consistent"\n'
        'groups = [["here:/commit", "there:/commit", "src:commit"]]\n'
        '[[gate]]\nname = "rate"\nkind = "equal"\nvalues = { "there:/rate" = 1.50 }\n'
        '[[gate]]\nname = "custody"\nkind = "equal"\nvalues = { "src:custody" = "declared" }\n'
    )
    assert judge(store, child, policy.encode()).verdict.outcome == "PASS"
    alone = judge(store, parent, policy.encode())
    assert said(alone, "g") == ["UNKNOWN evidence-absent"] * 2


def test_damaged_evidence_is_a_failure_and_no_absence(tmp_path: Path) -> None:
    store, packet = sealed(tmp_path, {"run/status.txt": b"status=PASS\n"})
    wrong = digests(b"status=PASX\n")
    real = objects.read_member(store, *stated(store, packet), "held")

    class Lying(MemoryStore):
        """Gives other bytes than it says; the one door notices."""

        def chunks(self, object_id: RawId) -> Iterator[Buffer]:
            data = b"".join(map(bytes, super().chunks(object_id)))
            return iter([b"status=PASX\n" if data == real else data])

    store.__class__ = Lying
    found = judge(store, packet, (HEAD + STATUS).encode())
    assert wrong.size_bytes == len(real)
    assert found.verdict.outcome == "FAIL"
    assert said(found, "readings") == ["FAIL damaged"]


def stated(store: Store, packet: RawId) -> tuple[str | None, str | None]:
    """Return both digests of the status file."""
    member, _ = find_member(objects.fetcher(store), objects.packet(store, packet), "run/status.txt")
    return member.node.blake3, member.node.sha256


@pytest.mark.parametrize("kind", STORES)
def test_kept_verdicts_have_their_facts_and_their_policy(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "work"
    place.mkdir()
    (place / "status.txt").write_text("status=PASS\n")
    store = open_store_of(kind, tmp_path)
    packet = seal(
        store, place, '[[entry]]\nrole = "run/status.txt"\nkind = "evidence"\npath = "status.txt"\n'
    )
    policy = (HEAD + STATUS).encode()
    first = judge(store, packet, policy)
    id = keep(store, first)
    assert keep(store, first) == id
    later = judge(store, packet, policy.replace(b'version = "1"', b'version = "2"'))
    assert keep(store, later) != id
    assert [shown.version for shown in shown_verdicts(store, packet)] == ["1", "2"]
    record = records.decode(objects.record(store, id))
    assert isinstance(record, Verdict)
    assert record == first.verdict
    assert objects.read(store, to_raw(record.policy)) == policy
    facts = [records.decode(objects.record(store, to_raw(fact))) for fact in record.facts]
    assert [(f.extractor, f.version) for f in facts if isinstance(f, Facts)] == [("status", 1)]
    store.close()


def test_equal_evidence_gives_equal_verdicts(tmp_path: Path) -> None:
    first, second = (judged(tmp_path / name, files()) for name in "ab")
    assert records.encode(first.verdict) == records.encode(second.verdict)


def test_an_explanation_has_the_rule_and_the_lines(tmp_path: Path) -> None:
    store, packet = sealed(tmp_path, files())
    report = explain(store, packet, POLICY.encode(), "treatment")
    assert (report.found, report.outcome, report.kind) == ("PASS", "PASS", "treatment")
    assert report.rule.startswith("The change under test ran on every rank")
    assert "ranks = (0, 1)" in report.parameters
    lines = {fact.line for fact in report.findings[0].facts}
    assert {"rank TP0 prepared projections count=31", "rank TP1 prepared projections count=31"} <= lines
    assert "ENGINE_FP8=1" in lines
