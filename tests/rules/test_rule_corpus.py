"""What the rules find in the real documents, to the last finding; all but absence was read by hand."""

from collections import Counter
from pathlib import Path

from provstore.reports.checked import CheckReport
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.ruling import check_documents

LAGUNA = "families/laguna-s.json"
MUSE = "families/muse-glimmer.json"
PHI = "families/phi-4.json"
PACKAGE = "packages/laguna-s-2.1-int4-b70-125tps/package.json"
LONG = "data/laguna-s-2.1-xpu-b70/long-context-baseline-gpu080-swap24g-20260802.json"

SAID = {
    # The parts of the composed profile: one is RUNNING to this day, and the family calls all three sealed.
    f"WARN part-not-terminal {LONG} /artifacts/0/bench_status",
    f"WARN part-not-terminal {LAGUNA} /series_measurements/0/evidence",
    f"FAIL contradicted {LAGUNA} /series_measurements/0/workload",
    # The projection is for AutoRound and 128/128 tokens; the weights are compressed-tensors, and nothing was
    # measured at 128/128.
    f"FAIL projection-identity {LAGUNA} /packets/0/projection/quant",
    f"FAIL projection-workload {LAGUNA} /packets/0/projection",
    # An acceptance of 0.47 % reads AR0.
    f"WARN label-loses-value {LAGUNA} /coverage_views/0/cells/32640:4/label",
    # Closures select by words that no measurement, view or dimension has, so no question can reach them.
    f"WARN closure-selector {LAGUNA} /family_closures/1/selectors/profile",
    f"WARN closure-selector {LAGUNA} /family_closures/2/selectors/replay",
    f"WARN closure-selector {LAGUNA} /family_closures/3/selectors/replay",
    f"WARN closure-selector {MUSE} /family_closures/1/selectors/objective",
    # Dimensions that measurements contradict, and values or whole dimensions that nothing is stated for.
    f"WARN dimension-mismatch {LAGUNA} /dimensions/graph",
    f"WARN dimension-unmeasured {LAGUNA} /dimensions/graph/0",
    f"WARN dimension-unmeasured {LAGUNA} /dimensions/target_quantization",
    f"WARN dimension-unmeasured {LAGUNA} /dimensions/draft_quantization",
    f"WARN dimension-unmeasured {PHI} /dimensions/weight_quantization",
    f"WARN dimension-mismatch {MUSE} /dimensions/runtime",
    f"WARN dimension-unmeasured {MUSE} /dimensions/weight_quantization",
    f"WARN dimension-unmeasured {MUSE} /dimensions/draft_quantization",
    f"WARN dimension-unmeasured {MUSE} /dimensions/active_context_tokens",
    f"WARN dimension-unmeasured {MUSE} /dimensions/dflash_n_max/0",
    f"WARN dimension-unmeasured {MUSE} /dimensions/dflash_n_max/3",
    f"WARN dimension-unmeasured {MUSE} /dimensions/configured_max_context_tokens/1",
    f"WARN dimension-unmeasured {MUSE} /dimensions/configured_max_context_tokens/2",
    # Weights that are named by a local manifest alone.
    f"WARN revision-pin {MUSE} /weight_revisions/0/repository",
    f"WARN revision-pin {MUSE} /weight_revisions/0/revision",
}

REGISTRY = {
    "WARN context-is-configured-maximum data/registry/speed-sweep/laguna-s-2-1-compressed-tensors-int4-"
    "group-32-w4a16-intel-arc-pro-b70-32gb-vllm-tp4-sweep.json /rows/0/context_tokens",
}


def said(report: CheckReport) -> set[str]:
    """Return outcome, code and place of what was decided."""
    return {
        f"{f.outcome} {f.code} {f.document} {f.location}"
        for f in report.findings
        if f.code != "evidence-absent"
    }


def test_everything_that_is_found_in_the_lab_s_documents(corpus: Path) -> None:
    report = check_documents([corpus / "b70-lab"])
    assert said(report) == SAID
    assert report.outcome == "FAIL"
    assert [document.path for document in report.documents if document.errors] == [LAGUNA]


def test_what_could_not_be_looked_at_in_the_lab_s_documents(corpus: Path) -> None:
    report = check_documents([corpus / "b70-lab"])
    away = [f for f in report.findings if f.code == "evidence-absent"]
    assert Counter((f.document, f.rule) for f in away) == {
        (LAGUNA, "evidence-file"): 2,
        (PHI, "evidence-file"): 3,
        (PHI, "value-not-in-evidence"): 2,
        (PHI, "headline-evidence"): 1,
        (MUSE, "evidence-file"): 9,
        (MUSE, "package-id"): 1,
        (MUSE, "value-not-in-evidence"): 11,
        (MUSE, "prose-number"): 5,
        (MUSE, "projection-workload"): 1,
        (PACKAGE, "package-guide"): 1,
        (PACKAGE, "package-patches"): 9,
    }
    for finding in away:
        if finding.rule != "projection-workload":
            assert not (corpus / "b70-lab" / finding.expected).exists()


def test_numbers_of_the_two_records_and_the_context_profile_are_found_in_their_evidence(corpus: Path) -> None:
    report = check_documents([corpus / "b70-lab" / LAGUNA], ImportOptions(root=corpus / "b70-lab"))
    assert "value-not-in-evidence" not in {finding.rule for finding in report.findings}


def test_everything_that_is_found_in_the_registry_s_records(corpus: Path) -> None:
    report = check_documents([corpus / "local-ai-registry"])
    assert {f"{f.outcome} {f.code} {f.document} {f.location}" for f in report.findings} == REGISTRY
    assert report.outcome == "PASS"
    assert len(report.documents) == 8
    assert len(report.not_checked) == 6


def test_findings_are_the_same_every_time(corpus: Path) -> None:
    assert check_documents([corpus / "b70-lab"]) == check_documents([corpus / "b70-lab"])
