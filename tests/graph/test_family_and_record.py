"""What the readers of families and records make of small documents: edges, numbers, and what is left."""

import json
from typing import Any

import pytest

from graph.documents_of_ours import COMMIT, DRAFT, REVISION, dumped, family, record
from provstore.graph.documents.reading import understand
from provstore.graph.statements import Understood


def understood(document: Any, path: str = "doc.json") -> Understood:
    found = understand(dumped(document), "lab", path)
    assert found is not None
    return found


def edges(found: Understood) -> set[str]:
    return {f"{edge.source} {edge.kind} {edge.target} {edge.location}" for edge in found.relations}


def test_every_edge_of_a_family() -> None:
    found = understood(family(), "families/fam.json")
    assert (found.format, str(found.subject), found.not_understood) == ("family", "family:fam", ())
    assert edges(found) >= {
        "path:lab:families/fam.json states family:fam ",
        "family:fam has-revision revision:fam/fam-rev /weight_revisions/0",
        f"family:fam has-revision hub-revision:org/fam@{REVISION} /weight_revisions/0/revision",
        f"revision:fam/fam-rev pins hub-revision:org/fam@{REVISION} /weight_revisions/0/revision",
        f"hub-revision:org/fam@{REVISION} pins commit:{REVISION} /weight_revisions/0/revision",
        "revision:fam/fam-rev has-payload path:lab:manifests/fam.sha256 /weight_revisions/0/model_manifest",
        "revision:fam/fam-rev has-artifact artifact:fam/fam-q4 /weight_revisions/0/quantized_artifacts/0",
        "family:fam has-auxiliary artifact:fam/fam-draft /auxiliary_artifacts/0",
        f"family:fam has-auxiliary hub-revision:org/fam-draft@{DRAFT} /auxiliary_artifacts/0/revision",
        "family-packet:fam/fam-packet pins revision:fam/fam-rev /packets/0/revision",
        "family-packet:fam/fam-packet pins artifact:fam/fam-draft /packets/0/draft_revision",
        "family-packet:fam/fam-packet described-by path:lab:packages/fam/package.json /packets/0/manifest",
        "family-packet:fam/fam-packet cites measurement:fam/fam-run "
        "/packets/0/featured_metric/measurement_id",
        "measurement:fam/fam-run evidenced-by path:lab:data/run.json /run_measurements/0/evidence",
        "measurement:fam/fam-run about artifact:fam/fam-q4 /run_measurements/0/artifact_id",
        "view:fam/v plots measurement:fam/fam-run /views/0/series/0/measurement_ids/0",
        "coverage:fam/cov cites measurement:fam/fam-series /coverage_views/0/cells/8:2/evidence_id",
        "coverage:fam/cov cites family-packet:fam/fam-packet /coverage_views/0/cells/8:2/packet_id",
        "closure:fam/closure-0 evidenced-by path:lab:data/run.json /family_closures/0/evidence",
        "closure:fam/closure-0 about revision:fam/fam-rev /family_closures/0/selectors/revision",
        "estimate:fam/est based-on measurement:fam/fam-run /estimates/0/basis_measurement_ids/0",
        f"estimate:fam/est uses object:{'a' * 64} /estimates/0/engine/snapshot_sha256",
        "grade:fam/fam-rev:capability evidenced-by path:lab:notes/cap.md "
        "/weight_revisions/0/grades/capability/evidence/0",
        "family:fam evidenced-by path:lab:notes/arch.md /architecture/evidence",
        "family:fam names family-packet:fam/fam-packet /primary_packet_id",
    }


def test_every_number_of_a_family_keeps_its_text() -> None:
    data = dumped(family()).replace(b"10.5,", b"10.50,")
    found = understand(data, "lab", "f.json")
    assert found is not None
    run, series = found.statements.measurements
    assert [(s.metric, s.value, s.unit, s.index) for s in run.samples] == [
        ("decode_tok_s", "10.50", "tok/s", 0),
        ("decode_tok_s", "11.0", "tok/s", 1),
        ("ttft_ms", "3", "ms", 0),
    ]
    assert run.selectors["memory"] == "0.8"
    assert run.selectors["eager"] is False
    assert run.selectors["revision"] == "fam-rev"
    assert [(s.point_x, s.value, s.location) for s in series.samples] == [
        ("8", "9.5", "/series_measurements/0/points/0/decode_tok_s"),
        ("16", "8.25", "/series_measurements/0/points/1/decode_tok_s"),
    ]
    assert found.statements.estimates[0].low == "18.0"
    assert found.statements.dimensions == {"cards": (1, 2), "kv": ("bf16",), "memory": ("0.8",)}


def test_cells_closures_and_sentences() -> None:
    statements = understood(family()).statements
    view = statements.coverage[0]
    assert (view.row_key, view.column_key, view.rows, view.columns) == (
        "prompt_tokens",
        "cards",
        (8,),
        (1, 2),
    )
    assert [(c.row, c.column, c.state, c.measurement, c.point_x) for c in view.cells] == [
        (8, 1, "missing", "", None),
        (8, 2, "lab-screened", "fam/fam-series", "8"),
    ]
    assert statements.closures[0].selectors == {"revision": ("fam-rev",), "cards": (1, 4)}
    assert [(s.direction, s.text) for s in statements.scope] == [
        ("transfers", "methods"),
        ("does-not-transfer", "numbers"),
    ]
    lineup = statements.lineups[0]
    assert (lineup.key, lineup.status, lineup.selectors["cards"]) == ("fam/fam-packet", "candidate", 2)
    assert lineup.selectors["packet"] == "fam-packet"


def test_a_matrix_without_axes_has_those_of_the_format() -> None:
    document = family()
    view = document["coverage_views"][0]
    del view["row_axis"], view["column_axis"]
    found = understood(document).statements.coverage[0]
    assert (found.row_key, found.column_key) == ("mtp", "tp")


@pytest.mark.parametrize(
    ("pointer", "change"),
    [
        ("/odd", lambda d: d.update(odd={"x": 1})),
        ("/packets/0/odd", lambda d: d["packets"][0].update(odd=1)),
        ("/packets/1", lambda d: d["packets"].append("not an object")),
        ("/weight_revisions", lambda d: d.update(weight_revisions="gone")),
        (
            "/run_measurements/0/config/deep",
            lambda d: d["run_measurements"][0]["config"].update(deep={"a": 1}),
        ),
        ("/coverage_views/0/cells/8:1/odd", lambda d: d["coverage_views"][0]["cells"]["8:1"].update(odd=1)),
    ],
)
def test_what_the_format_does_not_have_is_listed(pointer: str, change: Any) -> None:
    document = family()
    change(document)
    assert understood(document).not_understood == (pointer,)


def test_spoiled_values_are_listed_and_make_nothing_of_themselves() -> None:
    data = dumped(family()).replace(b'"value": 20.0', b'"value": NaN')
    found = understand(data, "lab", "f.json")
    assert found is not None
    assert found.not_understood == ("/estimates/0/value",)
    assert found.statements.estimates[0].value == ""


def test_edges_and_conventions_of_a_record() -> None:
    found = understood(record(), "data/r.json")
    me = "record:lab:data/r.json"
    assert (found.format, str(found.subject), found.not_understood) == ("record", me, ())
    assert edges(found) >= {
        f"{me} measured-by path:lab:/data/runs/one /run_root",
        f"{me} built-from commit:{COMMIT} /source/engine_commit",
        f"{me} uses commit:{REVISION} /source/target_revision",
        f"{me} restores-from path:lab:patches/engine.bundle /source/engine_bundle",
        f"path:lab:patches/engine.bundle pins object:{'c' * 64} /sha256/engine_bundle",
        f"{me} seals object:{'b' * 64} /sha256/bench",
        f"{me} cites path:lab:notes/correction.md /metric_accounting/correction_note",
        f"leaderboard-run:run-own is-receipt-of {me} /leaderboard/id",
        f"{me} submitted-as path:lab:data/queue.json /leaderboard/queue_path",
        f"{me} submitted-as path:lab:data/response.json /leaderboard/response_path",
        f"{me} compares-to leaderboard-run:run-before /record/prior_approved_id",
        "measurement:lab:data/r.json/prior-approved observed-at leaderboard-run:run-before "
        "/record/prior_approved_id",
    }
    told = {
        m.key.rpartition("/")[2]: (m.convention, m.samples[0].value) for m in found.statements.measurements
    }
    assert told["published"] == ("legacy-inclusive-events", "101.0")
    assert told["conventional"] == ("conventional-intervals", "99.99")
    assert told["prior-approved"] == ("legacy-inclusive-events", "50.5")
    assert told["record"][0] == ""


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("metric_accounting", "conventional_interval_value_tok_s", 100.0),
        ("metric_accounting", "timestamped_events", 99),
        ("metric_accounting", "published_convention", "some other way"),
        ("metric_accounting", "published_convention", None),
    ],
)
def test_a_convention_whose_numbers_disagree_is_not_believed(group: str, name: str, value: object) -> None:
    document = record()
    document[group][name] = value
    found = understood(document)
    assert {m.convention for m in found.statements.measurements} == {""}


@pytest.mark.parametrize(
    ("name", "value"),
    [("delta_vs_approved_tok_s", 49.0), ("value_tok_s", 99.99), ("prior_approved_id", None)],
)
def test_an_earlier_value_takes_the_convention_only_of_what_it_is_subtracted_from(
    name: str, value: object
) -> None:
    document = record()
    document["record"][name] = value
    keys = [m.key.rpartition("/")[2] for m in understood(document).statements.measurements]
    assert "published" in keys
    assert "prior-approved" not in keys


def test_counts_in_names_of_fields_are_a_convention() -> None:
    document = {
        "schema": "other-record-v2",
        "record": {
            "historical_100_event_metric_tok_s": 101.0,
            "conventional_99_interval_metric_tok_s": 99.99,
        },
    }
    told = {m.convention: m.samples[0].value for m in understood(document).statements.measurements}
    assert told == {"legacy-inclusive-events": "101.0", "conventional-intervals": "99.99"}
    document["record"]["conventional_99_interval_metric_tok_s"] = 98.0  # type: ignore[index]
    assert understood(document).statements.measurements == ()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"[1",
        b"\xff{",
        b'{"format": 7}',
        b'{"schema": "x-record-v1"}',
        json.dumps("x").encode(),
    ],
)
def test_what_no_reader_knows_is_no_document(data: bytes) -> None:
    assert understand(data, "lab", "x") is None


WRONG: tuple[Any, ...] = (None, 7, "text", [], {}, [[]], [None], [{}], {"a": {"b": []}})


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_everything_of_a_wrong_type_still_reads(wrong: Any) -> None:
    for name in family().keys() - {"format"}:
        assert understood({**family(), name: wrong}).format == "family"
    for name in record().keys() - {"schema", "record"}:
        assert understood({**record(), name: wrong}).format == "record"
