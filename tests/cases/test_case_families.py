"""Cases C37 to C46: composed profiles, coverage, projections, packages, registry, what was withdrawn."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruling import checked, codes

from provstore.graph.rules.checking import check, document_of
from provstore.graph.rules.examples import changed
from provstore.graph.rules.rule import Document
from provstore.reports.checked import CheckFinding
from provstore.verbs.ruling import Below

LAGUNA = "families/laguna-s.json"
LONG = "data/laguna-s-2.1-xpu-b70/long-context-baseline-gpu080-swap24g-20260802.json"
VIEW = "/coverage_views/0"
CELL = f"{VIEW}/cells/4096:4"


def laguna(corpus: Path, *changes: tuple[str, Any], more: tuple[Document, ...] = ()) -> list[CheckFinding]:
    """Return what is found in the real family after members of it were put."""
    lab = corpus / "b70-lab"
    document = document_of(LAGUNA, (lab / LAGUNA).read_bytes())
    value = document.value
    for at, to in changes:
        value = changed(value, at, None if to is ... else msgspec.json.encode(to).decode())
    report = check([document._replace(value=value), *more], Below(lab))
    return [finding for finding in report.findings if finding.document == LAGUNA]


def at(findings: list[CheckFinding], place: str) -> list[str]:
    return [f"{f.outcome} {f.code}" for f in findings if f.location.startswith(place)]


def test_c37_a_composed_profile_with_an_unfinished_part(corpus: Path) -> None:
    series = "/series_measurements/0"
    found = laguna(corpus)
    assert at(found, f"{series}/evidence") == ["WARN part-not-terminal"]
    assert at(found, f"{series}/workload") == ["FAIL contradicted"]
    assert at(found, f"{series}/state") == []
    claimed = laguna(corpus, (f"{series}/state", "lab-measured"))
    assert at(claimed, f"{series}/state") == ["FAIL state-exceeds-evidence"]
    unsaid = laguna(corpus, (f"{series}/workload", "three service runs"))
    assert at(unsaid, f"{series}/workload") == []


def test_c37_rows_that_differ_are_no_measurement_even_if_every_part_ended(corpus: Path) -> None:
    record = document_of(LONG, (corpus / "b70-lab" / LONG).read_bytes())
    ended = record._replace(value=changed(record.value, "/artifacts/0/bench_status", '"PASS"'))
    state = ("/series_measurements/0/state", "lab-measured")
    (finding,) = [f for f in laguna(corpus, state, more=(ended,)) if f.code == "state-exceeds-evidence"]
    assert finding.message == f"{LONG}: 15 rows differ"


def test_c38_all_24_cells_come_out_as_stated(corpus: Path) -> None:
    found = [finding for finding in laguna(corpus) if finding.location.startswith(VIEW)]
    assert [(f.outcome, f.code, f.location, f.expected) for f in found] == [
        ("WARN", "label-loses-value", f"{VIEW}/cells/32640:4/label", "0.0047430830039525695")
    ]


@pytest.mark.parametrize(
    ("change", "wanted", "place"),
    [
        ((f"{CELL}/state", "lab-measured"), "FAIL state-mismatch", f"{CELL}/state"),
        ((f"{CELL}/label", "D80.2"), "FAIL label-mismatch", f"{CELL}/label"),
        ((f"{CELL}/point_x", 4097), "FAIL point-absent", f"{CELL}/point_x"),
        ((f"{VIEW}/cells/4096:3", ...), "FAIL not-cartesian", f"{VIEW}/cells"),
        ((f"{VIEW}/fixed_selectors/kv", "fp8"), "FAIL selector-mismatch", f"{CELL}/evidence_id"),
        ((f"{CELL}/estimate_id", "some-estimate"), "FAIL both", f"{CELL}/estimate_id"),
    ],
)
def test_c38_variants_of_a_cell(corpus: Path, change: tuple[str, Any], wanted: str, place: str) -> None:
    assert wanted in at(laguna(corpus, change), place)


def test_c38_the_label_is_the_one_that_the_point_gives(corpus: Path) -> None:
    (finding,) = [f for f in laguna(corpus, (f"{CELL}/label", "D80.2")) if f.code == "label-mismatch"]
    assert finding.expected == "D80.24 · P7,332 · T564.3 · AR0.11"


def test_c39_a_projection_that_contradicts_the_artifact(corpus: Path) -> None:
    found = laguna(corpus)
    assert at(found, "/packets/0/projection") == ["FAIL projection-identity", "FAIL projection-workload"]
    quant = ("/packets/0/projection/quant", "INT4 compressed-tensors")
    assert at(laguna(corpus, quant), "/packets/0/projection") == ["FAIL projection-workload"]
    tokens = (("/packets/0/projection/prompt_tokens", 4096), quant)
    assert at(laguna(corpus, *tokens), "/packets/0/projection") == []


def test_c40_a_dangling_auxiliary(corpus: Path) -> None:
    (finding,) = [f for f in laguna(corpus, ("/packets/0/draft_revision", "x")) if f.outcome == "FAIL"
                  and f.location == "/packets/0/draft_revision"]  # fmt: skip
    assert (finding.code, finding.found) == ("unresolved-reference", "x")


PACKAGE = {
    "format": "b70-model-package-v1",
    "id": "p",
    "library": {"featured_metric": {"value": 36.772932, "unit": "tok/s", "evidence": "data/run.json"}},
    "runtime": {"kind": "native", "defaults": {"reasoning": "off"}},
}


def test_c41_a_headline_of_another_configuration() -> None:
    record = msgspec.json.encode({"median": 36.772932, "config": {"reasoning": "on"}})
    report = checked({"packages/p/package.json": PACKAGE}, {"data/run.json": record})
    (finding,) = [f for f in report.findings if f.code == "headline-configuration"]
    assert (finding.outcome, finding.location) == ("FAIL", "/library/featured_metric")
    assert "reasoning on" in finding.message


def test_c41_no_headline_with_a_reason_passes() -> None:
    library = {"featured_metric": None, "benchmark_status": "strict headline pending"}
    report = checked({"packages/p/package.json": {**PACKAGE, "library": library}})
    found = {f.code for f in report.findings}
    assert not found & {"headline-configuration", "package-headline", "headline-evidence"}


@pytest.mark.parametrize("held", [{}, {"repro/p/README.md": b"# It reads 132.351606 tok/s"}])
def test_c42_a_headline_without_its_record_is_not_eligible(held: dict[str, bytes]) -> None:
    headline = {"value": 132.351606, "unit": "tok/s", "evidence": "repro/p/README.md"}
    report = checked({"packages/p/package.json": {**PACKAGE, "library": {"featured_metric": headline}}}, held)
    (finding,) = [f for f in report.findings if f.rule == "headline-evidence"]
    assert (finding.outcome, finding.code, finding.severity) == ("INELIGIBLE", "evidence-absent", "unknown")


RECIPE = ("registry/recipe/laguna-s-2-1-compressed-tensors-int4-group-32-w4a16-intel-arc-pro-b70-32gb-"
          "vllm-tp4.json")  # fmt: skip
SWEEP = ("data/registry/speed-sweep/laguna-s-2-1-compressed-tensors-int4-group-32-w4a16-intel-arc-pro-"
         "b70-32gb-vllm-tp4-sweep.json")  # fmt: skip
INSTANCE = ("registry/model-instance/poolside-laguna-s-2-1-int4--compressed-tensors-int4-group-32-"
            "w4a16.json")  # fmt: skip
RECORD = "data/laguna-s-2.1-width12-dflash-fp8-record-20260726.json"


def registry(corpus: Path, *changes: tuple[str, str, Any]) -> list[CheckFinding]:
    """Check the registry's records beside the lab's record, after members of them were put."""
    root = corpus / "local-ai-registry"
    documents = {path: document_of(path, (root / path).read_bytes()) for path in (RECIPE, SWEEP, INSTANCE)}
    documents[RECORD] = document_of(RECORD, (corpus / "b70-lab" / RECORD).read_bytes())
    for path, place, to in changes:
        value = changed(documents[path].value, place, msgspec.json.encode(to).decode())
        documents[path] = documents[path]._replace(value=value)
    return list(check(list(documents.values()), Below(root)).findings)


def test_c44_an_observed_recipe_is_a_candidate(corpus: Path) -> None:
    found = registry(corpus)
    assert [f"{f.outcome} {f.code} {f.location}" for f in found if f.severity != "unknown"] == [
        "WARN legacy-convention /rows/0/decode_tok_s",
        "WARN context-is-configured-maximum /rows/0/context_tokens",
    ]
    legacy = next(f for f in found if f.code == "legacy-convention")
    assert (legacy.found, legacy.expected) == ("94.92003934159611", "93.97")
    assert "/record/prior_approved_tok_s" in legacy.message


def test_c44_a_validated_status_is_not_what_the_facts_give(corpus: Path) -> None:
    found = registry(corpus, (RECIPE, "/status", "validated"))
    derived = [f for f in found if f.code == "status-derived"]
    assert {(f.outcome, f.expected) for f in derived} == {("FAIL", "candidate")}
    assert [f.message.partition(" is missing: ")[2].partition(" and ")[0] for f in derived] == [
        "localmaxxing is a leaderboard: its runs are observations",
        "the kind of launch is reference",
        "no digest",
        "no list of arguments",
        f"{SWEEP.rpartition('/')[2].removesuffix('.json')} has no row that is measured",
        "the graph mode is not said",
    ]
    loose = registry(corpus, (RECIPE, "/status", "validated"), (INSTANCE, "/revision", None))
    assert any("at no revision" in f.message for f in loose if f.code == "status-derived")


def test_c44_the_observed_rate_is_not_compared_with_one_per_interval(corpus: Path) -> None:
    series = {"label": "both", "measurement_ids": ["leaderboard", "laguna-s-current-width12-dflash11-record"],
              "x_from": "config.record_order"}  # fmt: skip
    observed = {
        "id": "leaderboard",
        "state": "lab-measured",
        "revision": "laguna-s-2.1-int4-4bbfc28",
        "metrics": {"decode_tok_s": [0]},
        "evidence": SWEEP,
    }
    lab = corpus / "b70-lab"
    value = document_of(LAGUNA, (lab / LAGUNA).read_bytes()).value
    value = changed(value, "/run_measurements/2", msgspec.json.encode(observed).decode())
    value = changed(value, "/run_measurements/2/metrics/decode_tok_s/0", "94.92003934159611")
    value = changed(value, "/views/0/series/0", msgspec.json.encode(series).decode())
    beside = [document_of(SWEEP, (corpus / "local-ai-registry" / SWEEP).read_bytes()),
              document_of(RECORD, (lab / RECORD).read_bytes())]  # fmt: skip
    family = document_of(LAGUNA, b"{}")._replace(value=value, format="neural-download-model-family-v1")
    report = check([family, *beside], Below(lab))
    (finding,) = [f for f in report.findings if f.code == "convention-mismatch"]
    assert finding.found == "conventional-intervals, legacy-inclusive-events"


def test_c44_a_validated_docker_recipe_keeps_its_status_with_what_supports_it(corpus: Path) -> None:
    root = corpus / "local-ai-registry"
    paths = ("data/registry/recipe/deepseek-v4-1-flash-fp8-rtxpro6000-vllm-tp4.json",
             "registry/speed-sweep/deepseek-v4-1-flash-fp8-rtxpro6000-vllm-tp4-sweep.json",
             "registry/model-instance/deepseek-ai-deepseek-v4-1-flash--fp8.json",
             "data/registry/hardware/rtx-pro-6000-blackwell-96gb.json")  # fmt: skip
    documents = [document_of(path, (root / path).read_bytes()) for path in paths]
    report = check(documents, Below(root))
    assert report.outcome == "PASS"
    assert report.findings == ()
    recipe = documents[0]
    other = recipe._replace(value=changed(recipe.value, "/recipe_source", '"somebody-else"'))
    doubted = check([other, *documents[1:]], Below(root))
    assert [f.code for f in doubted.findings] == ["status-derived"]
    assert check([other, *documents[1:]], Below(root), trusted=["0xSero"]).findings == ()


NOTE = {"format": "provstore/note/v1", "id": "n2", "date": "2026-07-26", "author": "lab", "kind": "corrects",
        "reason": "the probe used raw prompts"}  # fmt: skip


@pytest.mark.parametrize("target", ["notes/n1.md", "path:lab:notes/n1.md"])
def test_c46_a_withdrawn_conclusion_that_is_still_cited(target: str) -> None:
    plan = {"schema": "plan-v1", "evidence": ["notes/n1.md", "data/other.json"]}
    report = checked({"notes/n2.json": {**NOTE, "target": target}, "data/plan.json": plan})
    (finding,) = [f for f in report.findings if f.code == "depends-on-withdrawn"]
    assert (finding.document, finding.location, finding.outcome) == ("data/plan.json", "/evidence/0", "FAIL")
    assert finding.message == "notes/n2.json corrects it: the probe used raw prompts"


def test_c46_what_nobody_corrected_may_be_cited() -> None:
    plan = {"schema": "plan-v1", "evidence": ["notes/n3.md"]}
    report = checked({"notes/n2.json": {**NOTE, "target": "notes/n1.md"}, "data/plan.json": plan})
    assert codes(report, "data/plan.json") == []
