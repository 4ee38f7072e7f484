"""Scope questions, coverage and claim states over a real store: the small runs and their family."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from provstore.errors import NotFoundError, UsageError
from provstore.graph.index import Index
from provstore.graph.nodes import Node
from provstore.ids import digests, to_raw
from provstore.report.exits import exit_code
from provstore.report.scoped import claim_lines, coverage_lines, scope_lines
from provstore.reports.scoped import ScopeAnswer
from provstore.store.memory import MemoryStore
from provstore.store.opening import init_store
from provstore.store.protocol import Store
from provstore.verbs.asking import Asked
from provstore.verbs.covering import claims, coverage
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.importing import import_documents
from provstore.verbs.judging import judge, keep
from provstore.verbs.querying import stale
from provstore.verbs.refreshing import refresh
from provstore.verbs.scoping import scope
from provstore.verbs.sealing import seal_spec
from provstore.verbs.standing import subject

RUNS = Path(__file__).parents[2] / "examples" / "small-run"
POLICY = (RUNS / "policy.toml").read_bytes()


class World(NamedTuple):
    """A store with both small runs and their family, and its graph."""

    store: Store
    graph: Index
    first: Node
    second: Node


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    store = init_store(tmp_path / "store")
    packets = [seal_spec(store, RUNS / f"run-{n}" / "packet.toml").packet for n in (1, 2)]
    import_documents(store, [RUNS / "family.json"], ImportOptions(root=RUNS))
    graph = refresh(store).graph
    yield World(store, graph, Node("packet", packets[0]), Node("packet", packets[1]))
    graph.close()
    store.close()


Where = dict[str, str | int | bool]


def answers(world: World, node: Node, where: Where, to: Node | None = None) -> dict[str, str]:
    return {a.claim: a.answer for a in scope(world.store, world.graph, node, where, to=to)}


def one(world: World, where: Where) -> ScopeAnswer:
    (found,) = scope(world.store, world.graph, world.first, where, kinds=("performance",))
    return found


def test_rules_of_the_packet_decide_and_everything_else_stands_beside(world: World) -> None:
    found = one(world, {"cards": 1})
    assert (found.answer, found.rule, found.stated_by) == (
        "does-not-transfer",
        "scope-rule 1",
        world.first.key,
    )
    (gap,) = found.gaps
    assert (gap.dimension, gap.here, gap.there, gap.location) == ("cards", 2, 1, "scope.at.cards")
    (closure,) = found.closures
    assert (closure.reason, closure.location) == ("Nobody ran it on one card.", "/family_closures/0")
    assert found.nearest is not None
    assert found.nearest.measurement == "measurement:tiny/tiny-threads-4"
    assert found.nearest.values == ("decode_tok_s = 100.0286 tok/s",)
    assert found.nearest.differing == ("cards: 2",)
    assert found.would_change == (
        "a packet measured at cards=1, everything else as here, that passes its policy",
    )
    assert [line.direction for line in found.prose] == ["transfers", "does-not-transfer"]


def test_the_nearest_point_is_the_one_that_was_measured_there(world: World) -> None:
    found = one(world, {"threads": 8})
    assert found.answer == "does-not-transfer"
    assert found.nearest is not None
    assert found.nearest.measurement == "measurement:tiny/tiny-threads-8"
    assert found.nearest.differing == ("runtime: engine of run 2",)
    assert not found.closures


def test_each_kind_has_its_own_answer(world: World) -> None:
    assert answers(world, world.first, {"cards": 1}) == {
        "performance": "does-not-transfer",
        "exactness": "does-not-transfer",
        "method": "transfers",
        "treatment": "does-not-transfer",
        "accounting": "transfers",
    }
    assert answers(world, world.first, {"revision": "another"})["method"] == "does-not-transfer"
    assert answers(world, world.first, {"moon": "full"})["performance"] == "unknown"


def test_two_packets_are_compared_in_every_dimension(world: World) -> None:
    found = scope(world.store, world.graph, world.first, {}, to=world.second)
    by_kind = {answer.claim: answer for answer in found}
    assert by_kind["performance"].answer == "does-not-transfer"
    assert [(gap.dimension, gap.here, gap.there) for gap in by_kind["performance"].gaps] == [
        ("threads", 4, 8)
    ]
    assert by_kind["method"].answer == "transfers"
    assert by_kind["accounting"].answer == "transfers"
    assert answers(world, world.first, {}, to=world.first)["performance"] == "transfers"


def test_a_measurement_and_a_packet_of_a_family_can_be_asked_about(world: World) -> None:
    measured = Node("measurement", "tiny/tiny-threads-4")
    assert answers(world, measured, {"kv": "fp8"})["performance"] == "does-not-transfer"
    described = Node("family-packet", "tiny/small-run-1")
    assert answers(world, described, {"cards": 1})["performance"] == "does-not-transfer"
    assert answers(world, described, {"kv": "fp8"})["performance"] == "unknown"
    nowhere = Node("measurement", "tiny/none")
    assert answers(world, nowhere, {"kv": "fp8"})["performance"] == "unknown"


def test_a_question_without_a_context_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="where should the claim carry to"):
        scope(world.store, world.graph, world.first, {})


def test_names_are_packets_or_nodes(world: World) -> None:
    assert subject(world.store, "small-run-1") == world.first
    assert subject(world.store, "family:tiny") == Node("family", "tiny")
    with pytest.raises(NotFoundError):
        subject(world.store, "small-run-9")


def test_a_claim_that_a_policy_refutes_carries_nowhere(world: World, tmp_path: Path) -> None:
    place = shutil.copytree(RUNS / "run-1", tmp_path / "run-1")
    spec = (place / "packet.toml").read_text().replace('"100.0286"', '"114.31837667905113"')
    (place / "packet.toml").write_text(spec)
    flattering = to_raw(seal_spec(world.store, place / "packet.toml", name="flattering").packet)
    keep(world.store, judge(world.store, flattering, POLICY))
    graph = refresh(world.store).graph
    found = scope(world.store, graph, Node("packet", flattering.hex()), {"cards": 2})
    assert {(a.answer, a.rule) for a in found} == {("does-not-transfer", "does-not-stand")}
    (life,) = claims(world.store, graph, flattering)
    assert life.state == "refuted"
    assert life.because[0].startswith("policy small-run fails it")
    graph.close()


def test_what_fails_its_policy_elsewhere_is_not_said_to_transfer(world: World) -> None:
    kept = scope(world.store, world.graph, world.first, {"cards": 2}, kinds=("exactness",))
    assert kept[0].answer == "transfers"
    strict = POLICY.replace(b"expect = { graphs = 12 }", b"expect = { graphs = 13 }")
    judging = judge(world.store, to_raw(world.first.key), strict)
    assert judging.verdict.outcome == "FAIL"
    keep(world.store, judging)
    graph = refresh(world.store).graph
    (found,) = scope(world.store, graph, world.first, {"cards": 2}, kinds=("exactness",))
    graph.close()
    assert (found.answer, found.rule) == ("unknown", "rests-on-undone")
    assert "policy small-run: ranks" in found.because


def again(world: World, place: Path, old: str, new: str) -> None:
    """Import the family again, with one text in the place of another."""
    text = (RUNS / "family.json").read_text()
    assert old in text
    (place / "family.json").write_text(text.replace(old, new))
    options = ImportOptions(root=place, repository="small-run")
    import_documents(world.store, [place / "family.json"], options)


def test_documents_that_disagree_about_a_packet_are_told(world: World, tmp_path: Path) -> None:
    text = (
        (RUNS / "family.json")
        .read_text()
        .replace('"cards": 2,\n      "status": "superseded"', '"cards": 3,\n      "status": "superseded"')
    )
    (tmp_path / "family.json").write_text(text)
    import_documents(
        world.store, [tmp_path / "family.json"], ImportOptions(root=tmp_path, repository="small-run")
    )
    graph = refresh(world.store).graph
    found = scope(world.store, graph, world.first, {"cards": 2}, kinds=("performance",))
    assert found[0].answer == "transfers"  # What the packet says of itself counts.
    (note,) = found[0].notes
    assert note.startswith(f"cards is 2 by {world.first.key[:12]} scope.at.cards and 3 by ")
    graph.close()


def test_a_newer_version_of_a_family_takes_the_place_of_the_older(world: World, tmp_path: Path) -> None:
    text = (
        (RUNS / "family.json")
        .read_text()
        .replace("Nobody ran it on one card.", "It does not fit on one card.")
    )
    (tmp_path / "family.json").write_text(text)
    options = ImportOptions(root=tmp_path, repository="small-run")
    import_documents(world.store, [tmp_path / "family.json"], options)
    graph = refresh(world.store).graph
    (found,) = scope(world.store, graph, world.first, {"cards": 1}, kinds=("performance",))
    assert [closure.reason for closure in found.closures] == ["It does not fit on one card."]
    assert len(list(coverage(world.store, graph, "tiny"))) == 1
    graph.close()


def test_cells_are_derived_and_told_apart_from_what_is_written(world: World) -> None:
    (found,) = coverage(world.store, world.graph, "tiny")
    assert found.counts == {"lab-measured": 2, "missing": 2}
    assert found.disagreements == 0
    cells = {(cell.row, cell.column): cell for cell in found.cells}
    assert cells[8, 2].values == ("decode_tok_s = 108.6788 tok/s",)
    assert cells[8, 2].cites == "measurement:tiny/tiny-threads-8"
    assert (cells[4, 1].state, cells[4, 1].reason) == ("missing", "Nobody ran it on one card.")
    assert list(coverage(world.store, world.graph, "tiny/tiny-threads-by-cards")) == [found]
    with pytest.raises(NotFoundError, match="no such coverage view"):
        list(coverage(world.store, world.graph, "tiny/other"))
    with pytest.raises(NotFoundError, match="import it first"):
        list(coverage(world.store, world.graph, "huge"))


def test_the_state_of_a_claim_follows_from_verdicts_and_successors(world: World, tmp_path: Path) -> None:
    def states() -> dict[str, str]:
        graph = refresh(world.store).graph
        found = {life.name: life.state for life in claims(world.store, graph)}
        graph.close()
        return found

    assert states() == {"small-run-1": "submitted", "small-run-2": "submitted"}
    place = shutil.copytree(RUNS / "run-1", tmp_path / "run-1")
    spec = (place / "packet.toml").read_text()
    spec = spec.replace('name = "small-run-1"', f'name = "again"\nparents = ["{world.first.key}"]')
    (place / "packet.toml").write_text(spec)
    packet = to_raw(seal_spec(world.store, place / "packet.toml").packet)
    assert states() == {"small-run-1": "reproducing", "small-run-2": "submitted", "again": "submitted"}
    judging = judge(world.store, packet, POLICY)
    assert judging.verdict.outcome == "PASS"
    keep(world.store, judging)
    assert states()["small-run-1"] == "confirmed"


def test_texts_say_what_the_answers_say(world: World) -> None:
    found = scope(world.store, world.graph, world.first, {"cards": 1})
    lines = list(scope_lines("small-run-1", "cards=1", found))
    assert lines[0] == "small-run-1: does it carry to cards=1?"
    assert any(line.startswith("does-not-transfer  performance") for line in lines)
    assert any("Nobody ran it on one card." in line for line in lines)
    assert exit_code(found) == 1
    (matrix,) = coverage(world.store, world.graph, "tiny")
    table = list(coverage_lines(matrix))
    assert any(line.split() == ["4", "missing", "measured"] for line in table)
    assert table[-1] == "2 lab-measured, 2 missing"
    life = next(iter(claims(world.store, world.graph)))
    assert next(claim_lines(life)) == "submitted    small-run-1 decode = 100.0286 tok/s (seven-intervals)"


def test_exit_codes_of_answers() -> None:
    def answer(word: str) -> ScopeAnswer:
        return ScopeAnswer(claim="method", of="", answer=word, rule="r", because="b")  # type: ignore[arg-type]

    assert exit_code((answer("transfers"),)) == 0
    assert exit_code((answer("transfers"), answer("unknown"))) == 3
    assert exit_code((answer("unknown"), answer("does-not-transfer"))) == 1


@pytest.mark.parametrize("target", ["small-run/record.json", "record:small-run:record.json", "bytes"])
def test_what_is_taken_back_takes_along_what_rests_on_it(target: str, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"schema": "lab-record-v1", "record": {"value_tok_s": 10}}))
    family = {
        "format": "neural-download-model-family-v1",
        "id": "rested",
        "name": "Rested",
        "packets": [{"id": "run", "cards": 4, "manifest": "record.json"}],
        "run_measurements": [
            {
                "id": "m",
                "state": "lab-measured",
                "evidence": ["record.json"],
                "metrics": {"decode_tok_s": [10]},
            }
        ],
    }
    (tmp_path / "family.json").write_text(json.dumps(family))
    written = f"sha256:{digests(record.read_bytes()).sha256.hex()}" if target == "bytes" else target
    note = {
        "format": "provstore/note/v1",
        "id": "n",
        "date": "2026-12-01",
        "author": "someone",
        "kind": "withdraws",
        "target": [written],
        "reason": "the clock was set",
        "evidence": [],
    }
    (tmp_path / "note.json").write_text(json.dumps(note))
    options = ImportOptions(root=tmp_path, repository="small-run")
    run = Node("family-packet", "rested/run")
    with MemoryStore() as store:
        import_documents(store, [record, tmp_path / "family.json"], options)
        (before,) = scope(store, refresh(store).graph, run, {"cards": 4}, kinds=("performance",))
        assert before.answer == "transfers"
        import_documents(store, [tmp_path / "note.json"], options)
        asked = Asked(store, refresh(store).graph)
        (after,) = scope(store, asked.graph, run, {"cards": 4}, kinds=("performance",))
        assert (after.answer, after.rule) == ("unknown", "rests-on-undone")
        assert "the clock was set" in after.because
        assert {"measurement:rested/m", "family-packet:rested/run"} <= {row.node for row in stale(asked).rows}


def test_two_documents_that_disagree_decide_nothing(tmp_path: Path) -> None:
    for place, kv in (("one", "bf16"), ("two", "fp8")):
        family = {
            "format": "neural-download-model-family-v1",
            "id": "twice",
            "name": "Twice",
            "run_measurements": [
                {"id": "m", "state": "lab-measured", "config": {"kv": kv}, "metrics": {"decode_tok_s": [10]}}
            ],
        }
        (tmp_path / place).mkdir()
        (tmp_path / place / "family.json").write_text(json.dumps(family))
    with MemoryStore() as store:
        for place in ("one", "two"):
            root = tmp_path / place
            import_documents(store, [root / "family.json"], ImportOptions(root=root, repository=place))
        graph = refresh(store).graph
        for kv, answer in (("bf16", "unknown"), ("fp8", "unknown"), ("int8", "does-not-transfer")):
            node = Node("measurement", "twice/m")
            (found,) = scope(store, graph, node, {"kv": kv}, kinds=("performance",))
            assert (found.answer, len(found.notes)) == (answer, 1)


def test_a_measurement_that_contradicts_itself_states_nothing_there(world: World, tmp_path: Path) -> None:
    config = '"config": {"cards": 2, "threads": 4'
    again(world, tmp_path, config, f'"identity": {{"threads": 9}}, {config}')
    graph = refresh(world.store).graph
    measured = Node("measurement", "tiny/tiny-threads-4")
    for value in (4, 9):
        (found,) = scope(world.store, graph, measured, {"threads": value}, kinds=("performance",))
        assert found.answer == "unknown"
    (found,) = scope(world.store, graph, measured, {"cards": 2}, kinds=("performance",))
    assert found.answer == "transfers"
    graph.close()
