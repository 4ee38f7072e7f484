"""Scope and coverage over the lab's real families, packets and records: the questions people really ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from provstore.graph.index import Index
from provstore.graph.nodes import Node
from provstore.graph.places import context
from provstore.reports.scoped import ScopeAnswer
from provstore.store.opening import init_store
from provstore.store.protocol import Store
from provstore.verbs.covering import coverage
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.importing import import_documents
from provstore.verbs.refreshing import refresh
from provstore.verbs.scoping import scope
from provstore.verbs.sealing import seal_spec
from provstore.verbs.standing import stand, subject

SPECS = Path(__file__).resolve().parents[2] / "examples/laguna-s-2.1"
OLD, NEW = "laguna-s-2.1-int4-b70-102tps-20260726", "laguna-s-2.1-int4-b70-125tps-20260731"
WHERE = ("tp=2", "cards=2", "kv=fp8", "revision=another", "replay=non-originating-host")
RECORDED = ("families", "data", "packages")


@pytest.fixture(scope="module")
def lab(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Index]]:
    store = init_store(tmp_path_factory.mktemp("scope") / "store")
    place = corpus / "b70-lab"
    for name in ("102", "125", "long-context"):
        seal_spec(store, SPECS / f"packet-{name}.toml", variables={"corpus": str(place)})
    import_documents(store, [place / name for name in RECORDED], ImportOptions(root=place))
    graph = refresh(store).graph
    yield store, graph
    graph.close()
    store.close()


def ask(lab: tuple[Store, Index], name: str, *where: str) -> dict[str, ScopeAnswer]:
    store, graph = lab
    return {found.claim: found for found in scope(store, graph, subject(store, name), context(where))}


@pytest.mark.parametrize("name", [OLD, NEW])
@pytest.mark.parametrize(
    "where", ["tp=2", "cards=2", "kv=fp8", "revision=another", "replay=non-originating-host"]
)
def test_the_decode_claim_does_not_leave_its_place(lab: tuple[Store, Index], name: str, where: str) -> None:
    found = ask(lab, name, where)["performance"]
    assert (found.answer, found.rule) == ("does-not-transfer", "scope-rule 1")
    (gap,) = found.gaps
    assert f"{gap.dimension}={gap.there}" == where
    assert found.nearest is not None
    assert found.nearest.state == "lab-measured"
    # Seven sentences of the family are shown; none of them decided.
    assert len(found.prose) == 7


def test_the_four_closures_answer(lab: tuple[Store, Index]) -> None:
    said = [
        closure.location
        for where in (("cards=2",), ("profile=q1-exact-context-sweep",), ("replay=portable-runtime-build",))
        for closure in ask(lab, NEW, *where)["performance"].closures
    ]
    assert said == ["/family_closures/0", "/family_closures/1", "/family_closures/2"]
    (last,) = ask(lab, NEW, "replay=non-originating-host")["performance"].closures
    assert last.reason == "No non-originating-host replay has completed the full record gate."
    assert not ask(lab, OLD, "replay=non-originating-host")["performance"].closures  # It is about the other.


def test_the_family_itself_answers_where_no_packet_states_a_dimension(lab: tuple[Store, Index]) -> None:
    found = ask(lab, "measurement:laguna-s/laguna-s-current-width12-dflash11-record", "kv=fp8", "tp=4")
    assert (found["performance"].answer, found["performance"].rule) == ("does-not-transfer", "own-point")
    assert found["method"].answer == "unknown"
    assert ask(lab, f"family-packet:laguna-s/{NEW}", "kv=fp8")["performance"].answer == "unknown"


def test_depth_is_answered_by_the_nearest_screened_point(lab: tuple[Store, Index]) -> None:
    found = ask(lab, NEW, "prompt_tokens=9000")["performance"]
    assert found.answer == "unknown"
    assert found.nearest is not None
    assert found.nearest.state == "lab-screened"
    assert "decode_tok_s = 46.80992228390887 tok/s" in found.nearest.values


def test_all_cells_come_out_as_the_family_states_them(lab: tuple[Store, Index]) -> None:
    store, graph = lab
    (view,) = coverage(store, graph, "laguna-s")
    assert len(view.cells) == 24
    assert view.counts == {"lab-screened": 6, "missing": 18}
    assert view.disagreements == 0
    cell = next(cell for cell in view.cells if (cell.row, cell.column) == (4096, 4))
    assert cell.values == (
        "decode_tok_s = 80.24333572713317 tok/s",
        "prefill_tok_s = 7331.793132902693 tok/s",
        "ttft_ms = 564.3018349996964 ms",
        "draft_acceptance_rate = 0.11363636363636363 ratio",
    )
    assert sum(len(view.cells) for view in coverage(store, graph, "muse-glimmer")) == 9
    assert all(view.disagreements == 0 for view in coverage(store, graph, "muse-glimmer"))
    (phi,) = coverage(store, graph, "phi-4")
    assert (phi.counts, phi.disagreements) == ({"lab-measured": 2, "missing": 4}, 0)


def test_between_the_two_records_the_method_carries_and_the_number_does_not(lab: tuple[Store, Index]) -> None:
    store, graph = lab
    old, new = subject(store, OLD), subject(store, NEW)
    found = {a.claim: a for a in scope(store, graph, old, {}, to=new)}
    assert found["performance"].answer == "does-not-transfer"
    assert [gap.dimension for gap in found["performance"].gaps] == ["runtime"]
    assert found["method"].answer == "transfers"
    counted = [a for a in scope(store, graph, old, {}, to=new) if a.claim == "accounting"]
    # 101.94 is counted as the other record counts; 102.97 is not.
    assert [a.answer for a in counted] == ["transfers", "does-not-transfer"]


def test_a_packet_is_known_by_the_record_it_holds(lab: tuple[Store, Index]) -> None:
    store, graph = lab
    described = stand(store, graph, subject(store, OLD)).described
    assert Node("measurement", "laguna-s/laguna-s-historical-width12-dflash11-record") in described
    found = ask(lab, OLD, "graph=EAGER")["exactness"]
    assert (found.answer, found.free) == ("transfers", ("graph",))  # Its own rule does not name it.
