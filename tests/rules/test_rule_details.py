"""Rules in detail: what each of their conditions finds, beside the example of each rule."""

from typing import Any

import msgspec
import pytest
from ruling import FAMILY, GOOD, Held, after, checked, codes, good, told

from provstore.graph.rules.cells import MAX_CELLS, contract_cells
from provstore.graph.rules.checking import check
from provstore.graph.rules.examples import changed
from provstore.graph.rules.places import Place

PACKAGE = "packages/ember-int4-4card/package.json"
LANES = "families/coverage-registry.json"
ATTESTED = "data/ember-attestation.json"
PUBLISHED = "repro/ember-int4-4card/publication-manifest.json"
RECIPE = "registry/recipe/ember-4card.json"
SWEEPS = "registry/speed-sweep/ember-4card-sweep.json"
ALONE = (GOOD / FAMILY).read_bytes()
RUN = "/run_measurements/0"
VIEW = "/coverage_views/0"
CELL = f"{VIEW}/cells/1024:4"
CONTRACT = "/coverage_contracts/0"


@pytest.mark.parametrize(
    ("at", "to", "wanted"),
    [
        ("/format", "neural-download-model-family-v2", "error family-head /format"),
        ("/name", " ", "error family-head /name"),
        ("/packets/1", "x", "error container-shape /packets/1"),
        ("/weight_revisions/1/id", "ember-a1", "error duplicate-id /weight_revisions/1/id"),
        ("/auxiliary_artifacts/0/id", "ember-a1", "error duplicate-id /auxiliary_artifacts/0/id"),
        ("/estimates/0/id", "ember-record", "error duplicate-id /estimates/0/id"),
        (f"{RUN}/revision", "gone", f"error unresolved-reference {RUN}/revision"),
        (f"{RUN}/revision", ..., f"error unresolved-reference {RUN}/revision"),
        ("/estimates/1/basis_measurement_ids/0", "gone",
         "error unresolved-reference /estimates/1/basis_measurement_ids/0"),
        ("/views/0/series/0/measurement_ids/0", "gone",
         "error unresolved-reference /views/0/series/0/measurement_ids/0"),
        ("/initial_view_ids/0", "gone", "error unresolved-reference /initial_view_ids/0"),
        ("/run_measurements/1/artifact_id", ..., "error artifact-binding /run_measurements/1/artifact_id"),
        ("/packets/1/quantization", "Q4", "error artifact-binding /packets/1/quantization"),
        (f"{RUN}/metrics/power_w", [3], f"error metric-values {RUN}/metrics/power_w"),
        (f"{RUN}/metrics/ttft_ms/0", True, f"error metric-values {RUN}/metrics/ttft_ms/0"),
        ("/series_measurements/0/points/0/x", "1024",
         "error metric-values /series_measurements/0/points/0/x"),
        ("/run_measurements/1/sample_annotations/0/index", 2,
         "error annotation /run_measurements/1/sample_annotations/0"),
        ("/packets/1/featured_metric/point_x", 3, "error headline-binding /packets/1/featured_metric"),
        ("/packets/1/featured_metric/unit", "ms", "error headline-binding /packets/1/featured_metric/unit"),
        ("/packets/0/featured_metric", {"metric": "decode_tok_s"},
         "error headline-binding /packets/0/featured_metric"),
        ("/estimates/0/not_for_promotion", "true", "error estimate-shape /estimates/0/not_for_promotion"),
        ("/estimates/0/engine/snapshot_sha256", "F" * 64,
         "error estimate-shape /estimates/0/engine/snapshot_sha256"),
        ("/packets/0/projection/prompt_tokens", True,
         "error projection-shape /packets/0/projection/prompt_tokens"),
        (f"{VIEW}/row_axis/value_labels/2", "2", f"error coverage-axes {VIEW}/row_axis/value_labels/2"),
        (f"{VIEW}/column_axis/key", "prompt_tokens", f"error coverage-axes {VIEW}/column_axis/key"),
        (f"{VIEW}/rows/0", "10:24", f"error coverage-axes {VIEW}/rows/0"),
        (f"{VIEW}/cells/1:1", {"state": "missing"}, f"error not-cartesian {VIEW}/cells"),
        (f"{VIEW}/cells", [], f"error not-cartesian {VIEW}/cells"),
        (f"{CELL}/state", "seen", f"error cell-state {CELL}/state"),
        (f"{VIEW}/cells/4096:2/state", "quarantined", f"error cell-state {VIEW}/cells/4096:2"),
        (f"{CELL}/evidence_id", "ember-record", f"error point-absent {CELL}/point_x"),
        (f"{CONTRACT}/rules/1/colour", "red", f"error contract-shape {CONTRACT}/rules/1/colour"),
        (f"{CONTRACT}/rules/1/retry", {"when": 3}, f"error contract-shape {CONTRACT}/rules/1/retry"),
        (f"{CONTRACT}/rules/1/match/tp", ..., f"error contract-shape {CONTRACT}/rules/1/match"),
        (f"{CONTRACT}/axes/0/values/0", "*", f"error contract-shape {CONTRACT}/axes/0/values/0"),
        ("/family_closures/0/selectors/tp", [], "error closure-shape /family_closures/0/selectors/tp"),
        ("/family_closures/0/selectors/packet", "gone",
         "error unresolved-reference /family_closures/0/selectors/packet"),
        ("/packets/0/manifest", "/etc/passwd", "error path-outside /packets/0/manifest"),
        ("/packets/0/manifest", ..., "error path-outside /packets/0/manifest"),
        ("/packets/0/projection/runtime", "vllm", "error projection-identity /packets/0/projection/runtime"),
        ("/updated_at", "soon", "warn updated-before-content /updated_at"),
        ("/summary", "It reads 98 tok/s.", "warn prose-number /summary"),
    ],
)  # fmt: skip
def test_a_change_to_the_family_is_found(at: str, to: Any, wanted: str) -> None:
    assert wanted in told(after((at, to)))


def test_a_family_without_packets_has_no_primary() -> None:
    found = told(after(("/packets", [])))
    assert "error primary-packet /primary_packet_id" in found


def test_a_measured_cell_may_not_cite_an_estimate_and_an_estimated_one_no_measurement() -> None:
    found = told(after((f"{VIEW}/cells/1024:2/evidence_id", "ember-record")))
    assert f"error both {VIEW}/cells/1024:2/estimate_id" in found
    assert f"error state-mismatch {VIEW}/cells/1024:2/state" in found


def test_an_estimate_must_have_every_selector_of_its_cell() -> None:
    (finding,) = after(("/estimates/1/selectors/kv", "fp8"))
    assert (finding.code, finding.location) == ("selector-mismatch", f"{VIEW}/cells/1024:2/estimate_id")
    assert (finding.expected, finding.found) == ("kv bfloat16", "fp8")


def test_an_absent_selector_is_a_mismatch() -> None:
    found = after((f"{VIEW}/fixed_selectors/prefix_caching", False))
    mine = [f for f in found if f.location == f"{CELL}/evidence_id"]
    assert [(f.code, f.expected, f.found) for f in mine] == [
        ("selector-mismatch", "prefix_caching false", "absent")
    ]


def test_a_contract_expands_to_the_product_of_its_axes() -> None:
    contract = good()[FAMILY].root.at("coverage_contracts").objects()[0]
    cells = list(contract_cells(contract))
    assert [(cell.selectors["tp"], cell.place.at("state").value) for cell in cells] == [
        (1, "missing"),
        (2, "unsupported"),
    ]


def test_rules_of_a_contract_that_compete_are_found() -> None:
    second = {
        "id": "draft",
        "match": {"tp": "*", "speculator_artifact_id": "ember-small-draft"},
        "state": "closed",
    }
    found = after((f"{CONTRACT}/rules/2", second))
    (finding,) = [f for f in found if f.code == "contract-chain"]
    assert finding.found == "all, two, draft"
    assert "tp=2" in finding.message


def test_a_contract_with_too_many_cells_is_not_expanded() -> None:
    values = list(range(300))
    axes = [{"key": key, "label": key, "values": values} for key in ("tp", "speculator_artifact_id")]
    found = told(after((f"{CONTRACT}/axes", axes)))
    assert MAX_CELLS < 300 * 300
    assert f"error contract-shape {CONTRACT}/axes" in found
    assert not any("contract-chain" in line for line in found)


def test_absent_evidence_is_unknown_where_the_repository_may_be_partial() -> None:
    report = checked({FAMILY: ALONE})
    away = [finding for finding in report.findings if finding.code == "evidence-absent"]
    assert {finding.rule for finding in away} == {
        "evidence-file", "package-id", "value-not-in-evidence", "headline-evidence",
    }  # fmt: skip
    assert {finding.severity for finding in away} == {"unknown"}
    assert report.outcome == "INCOMPLETE"
    assert [f.outcome for f in away if f.rule == "headline-evidence"] == ["INELIGIBLE"]


def test_only_a_broken_rule_makes_an_error_of_a_partial_repository() -> None:
    assert {finding.severity for finding in checked({FAMILY: ALONE}).findings} == {"unknown"}


def test_milliseconds_are_found_where_the_record_counts_seconds() -> None:
    found = told(after(("/series_measurements/0/points/0/ttft_ms", 251)))
    assert "error value-not-in-evidence /series_measurements/0/points/0/ttft_ms" in found
    assert "error value-not-in-evidence" not in " ".join(told(after(("/name", "E"))))


def test_numbers_that_are_the_same_but_for_their_spelling_agree() -> None:
    run = {
        "id": "m",
        "state": "lab-measured",
        "revision": "r",
        "evidence": "r.json",
        "metrics": {"ttft_ms": [0]},
    }
    revision = {"id": "r", "repository": "x/y", "revision": "a" * 40}
    family = {"format": "neural-download-model-family-v1", "id": "a", "name": "A",
              "weight_revisions": [revision], "run_measurements": [run]}  # fmt: skip
    text = msgspec.json.encode(family).replace(b"[0]", b"[201.77322600011393]")
    record = b'{"client_ttft_s": 0.20177322600011394}'
    assert codes(checked({"a.json": text}, {"r.json": record})) == []


def test_a_package_without_a_headline_says_why() -> None:
    changes = (("/library/featured_metric", None), ("/library/benchmark_status", "not measured yet"))
    assert told(after(*changes, document=PACKAGE)) == []


@pytest.mark.parametrize(
    ("document", "at", "to", "wanted"),
    [
        (PACKAGE, "/commands/extra", "x", "error package-commands /commands"),
        (PACKAGE, "/commands/stop", "file:///x", "error package-commands /commands/stop"),
        (PACKAGE, "/runtime/kind", "container", "error package-pins /runtime/image"),
        (PACKAGE, "/status", "starter", "error missing-gates /missing"),
        (PACKAGE, "/model/repository", "x/y", "error copied-value /model/repository"),
        (PACKAGE, "/dependencies/0", "gone.md", "error package-patches /dependencies/0"),
        ("repro/guide-catalog.json", "/guides/0/missing", [], "error guide-gates /guides/0/missing"),
        (LANES, "/lanes/0/family_id", "gone", "error lane-shape /lanes/0/family_id"),
        (LANES, "/lanes/1/artifacts/0/path", "repro/ember-small/README.md",
         "error lane-artifact /lanes/1/artifacts/0/path"),
        (ATTESTED, "/gates/no_quality_loss", False, "error attestation-gates /gates/no_quality_loss"),
        (ATTESTED, "/quality_evidence/0/path", "../x", "error attestation-bytes /quality_evidence/0/path"),
        (PUBLISHED, "/validation/runtime_smoke", False,
         "error publication-status /publication_status"),
        ("claims/lab-ember-int4.json", "/status", "queued", "error claim-status /verification"),
        ("claims/lab-ember-int4.json", "/history", [], "error claim-status /history"),
        (RECIPE, "/speed_sweep_ids/1", "ember-4card-sweep", "error recipe-shape /speed_sweep_ids/1"),
        (RECIPE, "/capabilities/chat", "yes", "error recipe-shape /capabilities/chat"),
        (RECIPE, "/serving/max_concurrency", None, "error unknown-reason /serving/max_concurrency"),
        (RECIPE, "/facts/capabilities.chat", {"state": "unknown", "reason": "x"},
         "error unknown-reason /capabilities/chat"),
        (SWEEPS, "/metrics/point_count", 3, "error sweep-totals /metrics/point_count"),
    ],
)  # fmt: skip
def test_a_change_to_another_document_is_found(document: str, at: str, to: Any, wanted: str) -> None:
    assert wanted in told(after((at, to), document=document))


REGISTRY = {path for path in good() if path.startswith("registry/")}
STATUS = "status-derived"


def status(*changes: tuple[str, str, Any], without: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return outcome and message of what is said of the status of the good recipe after some changes."""
    documents = {path: good()[path] for path in sorted(REGISTRY - set(without))}
    for path, at, to in changes:
        value = changed(documents[path].value, at, None if to is ... else msgspec.json.encode(to).decode())
        documents[path] = documents[path]._replace(value=value)
    findings = check(list(documents.values()), Held()).findings
    return [(f.outcome, f.message) for f in findings if f.rule == STATUS and f.document == RECIPE]


INSTANCE = "registry/model-instance/ember-int4.json"
HARDWARE = "registry/hardware/card-32gb.json"


@pytest.mark.parametrize(
    ("path", "at", "to", "words"),
    [
        (RECIPE, "/launch/kind", "reference", "the kind of launch is reference"),
        (RECIPE, "/launch/image", "example/engine:latest", "the image is example/engine:latest"),
        (RECIPE, "/launch/arguments", "--tp 1", "no list of arguments"),
        (RECIPE, "/launch/arguments/0", "--enforce-eager", "the launch says --enforce-eager"),
        (RECIPE, "/launch/host_port", ..., "a docker launch without host_port"),
        (RECIPE, "/engine/graph_mode", None, "the graph mode is not said"),
        (RECIPE, "/recipe_source", "mlxfast", "mlxfast is a leaderboard: its runs are observations"),
        (INSTANCE, "/revision", "main", "example/Ember at main"),
        (HARDWARE, "/accelerator_backend", "other", "the launch is for example, card-32gb is other"),
        (SWEEPS, "/accepted_at", None, "ember-4card-sweep is neither accepted nor pinned to a commit"),
    ],
)
def test_each_requirement_of_a_validated_recipe(path: str, at: str, to: Any, words: str) -> None:
    found = status((path, at, to))
    assert {outcome for outcome, _ in found} == {"FAIL"}
    assert any(words in message for _, message in found)


def test_a_whole_recipe_that_is_called_a_candidate_is_found_too() -> None:
    ((outcome, message),) = status((RECIPE, "/status", "candidate"))
    assert outcome == "FAIL"
    assert message.startswith("every requirement holds: ")


@pytest.mark.parametrize("away", [INSTANCE, HARDWARE, SWEEPS])
def test_what_is_not_at_hand_leaves_the_status_open(away: str) -> None:
    ((outcome, message),) = status(without=(away,))
    assert outcome == "UNKNOWN"
    assert "is not here" in message or "is here" in message


def test_what_is_missing_counts_even_if_something_else_is_not_at_hand() -> None:
    found = status((RECIPE, "/launch/image", "x"), without=(INSTANCE,))
    assert found == [("FAIL", "a pinned runtime is missing: the image is x")]


def test_places_have_pointers_of_what_is_absent() -> None:
    assert Place("", {}).at("a/b", "~c").pointer == "/a~1b/~0c"
    assert msgspec.json.encode(Place("", {"a": [1]}).at("a").elements()[0].value) == b"1"


PAGE = """Recipe
ember-observed
Record
- Status
- candidate
- Source
- localmaxxing
- Context tokens
- 8,192
Measured speed
| Concurrency | Context | Prefill | Decode | TTFT ms | Status | Sweep |
|---|---|---|---|---|---|---|
| 1 | 8,192 | — | 90.3 | 250 | observed | ember-observed-sweep |
Remaining fields
- id
- ember-observed
- schema version
- local-ai-registry/v1
metadata
- localmaxxing · run id
- run0001
"""


def test_the_page_of_a_recipe_is_held_to_the_rules_of_its_facts() -> None:
    record = (GOOD / "data/ember-record.json").read_bytes()
    report = checked({"page.txt": PAGE.encode(), "data/record.json": record.replace(b"90.25", b"90.251")})
    found = [f for f in report.findings if f.document == "page.txt"]
    assert [(f.code, f.location) for f in found] == [
        ("legacy-convention", "/speed_sweeps/0/rows/0/decode_tok_s"),
        ("context-is-configured-maximum", "/speed_sweeps/0/rows/0/context_tokens"),
    ]
    stated = checked({"page.txt": PAGE.replace("- candidate", "- validated").encode()})
    assert {"imported-status", "status-derived"} <= {f.code for f in stated.findings if f.severity == "error"}
