"""Readers of documents over the real ones: what is recognised, what joins, what disagrees."""

import json
from functools import cache
from pathlib import Path

import pytest

from provstore.graph.documents.facts import facts_of
from provstore.graph.documents.reading import Reading, read_any
from provstore.graph.joined import joined_conventions
from provstore.reports.imported import ImportReport
from provstore.store import objects
from provstore.store.memory import MemoryStore
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.generating import generate
from provstore.verbs.importing import import_documents
from provstore.verbs.refreshing import refresh

LAB = "b70-lab"
REGISTRY = "local-ai-registry"
PACKET = "repro/laguna-s-2.1-int4-b70-102tps-20260726"
RECORD_102 = "data/laguna-s-2.1-width12-dflash-fp8-record-20260726.json"
RECORD_125 = "data/laguna-shared-elementwise-m12-record-20260731.json"
COMPOSED = "data/laguna-s-2.1-xpu-b70/long-context-baseline-gpu080-swap24g-20260802.json"
RUN = "cmrzrd4tf001ipa013xpx4kid"
SWEEP = "laguna-s-2-1-compressed-tensors-int4-group-32-w4a16-intel-arc-pro-b70-32gb-vllm-tp4-sweep"

FORMATS = {
    "families/laguna-s.json": "family",
    "families/muse-glimmer.json": "family",
    "families/phi-4.json": "family",
    "packages/laguna-s-2.1-int4-b70-125tps/package.json": "package",
    RECORD_102: "record",
    RECORD_125: "record",
    COMPOSED: "record",
    "data/localmaxxing-laguna-s-2.1-int4-b70-width12-dflash-fp8-102.971tok-20260726.queue.json": "queue",
    "data/localmaxxing-responses/"
    "laguna-s-2.1-int4-b70-width12-dflash-fp8-102.971tok-20260726.response.json": "receipt",
    "experiments/laguna-s-2.1-xpu-b70/tools/runtime-lock-shared-elementwise-m12.json": "runtime-lock",
    f"{PACKET}/manifests/runtime-lock.json": "runtime-lock",
    f"{PACKET}/manifests/model-release-files.sha256": "checksums",
    f"{PACKET}/manifests/model-directory-verification.sha256": "checksums",
    f"{PACKET}/evidence/record-run.sha256": "checksums",
    f"{PACKET}/evidence/record-run/identity.txt": "identity",
    f"{PACKET}/evidence/record-run/exactness-vs-q1.json": "exactness",
    f"{PACKET}/teacher-token-oracle-v1.json": "oracle",
    f"{PACKET}/teacher-text-sha256-v1.json": "oracle",
}


@pytest.fixture
def seeds(corpus: Path) -> Path:
    return corpus.parent / "seeds"


@cache
def reading(root: Path, path: str) -> Reading:
    return read_any((root / path).read_bytes(), "lab", path)


@pytest.mark.parametrize("path", FORMATS)
def test_every_document_of_the_lab_is_recognised_and_understood(corpus: Path, path: str) -> None:
    found = reading(corpus / LAB, path)
    assert found.understood is not None
    assert found.understood.format == FORMATS[path]
    assert found.understood.not_understood == ()
    assert found.findings == ()
    assert facts_of(found.understood.format, found).facts


def test_every_other_file_of_the_lab_is_left_alone(corpus: Path) -> None:
    root = corpus / LAB
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root).as_posix()
        if path.is_file() and relative not in FORMATS:
            assert read_any(path.read_bytes(), "lab", relative).understood is None, relative


def test_every_document_of_the_registry(corpus: Path) -> None:
    root = corpus / REGISTRY
    told: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.json")):
        found = read_any(path.read_bytes(), "registry", path.relative_to(root).as_posix()).understood
        if found is not None:
            assert found.not_understood == ()
            told.setdefault(found.format, []).append(found.subject.key)
    assert {form: len(keys) for form, keys in told.items()} == {
        "hardware": 2,
        "model-instance": 2,
        "recipe": 2,
        "sweep": 2,
    }


def test_the_family_states_its_cells_and_closures(corpus: Path, seeds: Path) -> None:
    laid_out = reading(corpus / LAB, "families/laguna-s.json").understood
    seed = read_any(
        (seeds / "000_b1d7e9ac15b28256.txt").read_bytes(), "lab", "families/laguna-s.json"
    ).understood
    assert laid_out is not None
    assert seed is not None
    assert seed.statements == laid_out.statements
    view = laid_out.statements.coverage[0]
    states = [cell.state for cell in view.cells]
    assert (len(view.cells), states.count("missing"), states.count("lab-screened")) == (24, 18, 6)
    assert {(cell.column, cell.point_x) for cell in view.cells if cell.state == "lab-screened"} == {
        (4, depth) for depth in ("1024", "4096", "8192", "16384", "24576", "32640")
    }
    assert laid_out.statements.closures[0].selectors["cards"] == (1, 2, 3)
    assert len(laid_out.statements.closures) == 4
    ttft = [s.value for m in laid_out.statements.measurements for s in m.samples if s.metric == "ttft_ms"]
    assert "201.77322600011393" in ttft


def test_records_state_their_own_conventions(corpus: Path) -> None:
    def told(path: str) -> dict[str, tuple[str, str]]:
        found = reading(corpus / LAB, path).understood
        assert found is not None
        return {
            item.key.rpartition("/")[2]: (item.convention, item.samples[0].value)
            for item in found.statements.measurements
            if item.convention
        }

    assert told(RECORD_102) == {
        "published": ("legacy-inclusive-events", "102.97143559613157"),
        "conventional": ("conventional-intervals", "101.94172124017027"),
        "prior-approved": ("legacy-inclusive-events", "94.92003934159611"),
    }
    assert told(RECORD_125) == {
        "record-legacy": ("legacy-inclusive-events", "126.72926582199506"),
        "record-conventional": ("conventional-intervals", "125.4619731637751"),
        "prior_record-conventional": ("conventional-intervals", "124.64241272122038"),
        "diagnostic_not_promoted-conventional": ("conventional-intervals", "125.06865574449961"),
    }
    composed = told(COMPOSED)
    assert len(composed) == 7
    assert composed["context-4096-rate"] == ("conventional-intervals", "80.24333572713317")


@pytest.fixture(scope="module")
def imported(corpus: Path) -> tuple[MemoryStore, ImportReport]:
    store = MemoryStore()
    paths = [corpus / LAB, corpus / REGISTRY, corpus.parent / "seeds"]
    return store, import_documents(store, paths)


def test_the_page_joins_the_lab_through_the_run(imported: tuple[MemoryStore, ImportReport]) -> None:
    """C44, C01: 94.9 is legacy, 93.97 conventional, and 8,192 is what was configured."""
    _, report = imported
    told = {
        (item.value, item.convention, item.conventional)
        for item in report.conventions
        if SWEEP in item.measurement
    }
    assert told == {
        ("94.9", "legacy-inclusive-events", "93.97083894818014"),
        ("94.92003934159611", "legacy-inclusive-events", "93.97083894818014"),
    }
    assert all(RUN in item.reason for item in report.conventions if SWEEP in item.measurement)


def test_imports_one_after_the_other_join_as_well(corpus: Path) -> None:
    """The page first, the record of the lab later: the index of the store tells both conventions."""
    store = MemoryStore()
    import_documents(store, [corpus.parent / "seeds/002_63ecfc2629612d79.txt"])
    import_documents(store, [corpus / LAB / RECORD_102], ImportOptions(root=corpus / LAB))
    import_documents(store, [corpus / LAB / "families/laguna-s.json"], ImportOptions(root=corpus / LAB))
    graph = refresh(store).graph
    told = {(item.value, item.convention, item.conventional) for item in joined_conventions(graph)}
    graph.close()
    assert told == {
        ("94.9", "legacy-inclusive-events", "93.97083894818014"),
        ("101.94172124017027", "conventional-intervals", "101.94172124017027"),
    }


def test_the_page_shows_the_configured_maximum(seeds: Path) -> None:
    page = read_any((seeds / "002_63ecfc2629612d79.txt").read_bytes(), "lab", "page").understood
    assert page is not None
    row = page.statements.measurements[0]
    assert row.selectors["configured_max_context_tokens"] == 8192
    assert "prompt_tokens" not in row.selectors
    assert [(s.metric, s.value) for s in row.samples] == [("decode_tok_s", "94.9"), ("ttft_ms_p50", "5960.3")]


def test_page_and_registry_disagree_visibly(imported: tuple[MemoryStore, ImportReport]) -> None:
    _, report = imported
    told = {(item.field, item.first_value, item.second_value, item.kind) for item in report.disagreements}
    assert told == {
        ("/serving/max_concurrency", "null", "1", "differs"),
        ("/serving/max_context_tokens", "null", "8192", "differs"),
        ("/rows/0/concurrency", "null", "1", "differs"),
        ("/rows/0/decode_tok_s", "94.92003934159611", "94.9", "rounded"),
        ("/rows/0/ttft_ms_p50", "5960.275208984967", "5960.3", "rounded"),
    }


def test_statuses_are_derived(imported: tuple[MemoryStore, ImportReport]) -> None:
    _, report = imported
    status = {item.name: item for item in report.documents if item.status is not None}
    docker = next(item for name, item in status.items() if "deepseek" in name)
    assert (docker.status, docker.missing, len(docker.supported_by)) == ("validated", (), 8)
    assert any("7d85cce3dff965cbdf26bba231ec9e1aff384db3" in item for item in docker.supported_by)
    board = next(item for name, item in status.items() if "laguna" in name)
    assert board.status == "candidate"
    assert any("localmaxxing is a leaderboard" in item for item in board.missing)
    assert any("4bbfc285f2f8b3b6b526274c133b7b17aae6c8cb" in item for item in board.supported_by)


def test_every_byte_of_every_document_is_kept(
    corpus: Path, imported: tuple[MemoryStore, ImportReport]
) -> None:
    store, report = imported
    assert len(report.documents) == len(FORMATS) + 8 + 3
    for document in report.documents:
        assert objects.read(store, bytes.fromhex(document.blake3)) == Path(document.path).read_bytes()
    again = import_documents(store, [corpus / LAB], ImportOptions())
    assert {item.state for item in again.documents} == {"unchanged"}
    assert again.bytes_stored == 0


def test_the_draft_manifest_pins_five_files(corpus: Path) -> None:
    manifest = reading(corpus / LAB, f"{PACKET}/manifests/model-release-files.sha256").understood
    assert manifest is not None
    draft = [edge for edge in manifest.relations if edge.reason.startswith("dflash-int4/")]
    assert len(draft) == 5
    assert len([edge for edge in manifest.relations if edge.kind == "contains"]) == 32


@pytest.mark.parametrize(
    ("name", "form"),
    [
        (f"{LAB}/families/laguna-s.json", "family"),
        ("muse-glimmer", "family"),
        ("family:phi-4", "family"),
        ("seeds/000_b1d7e9ac15b28256.txt", "family"),
        ("laguna-s-2.1-int4-b70-125tps-20260731", "package"),
        ("recipe:deepseek-v4-1-flash-fp8-rtxpro6000-vllm-tp4", "recipe"),
        ("laguna-s-2-1-compressed-tensors-int4-group-32-w4a16-intel-arc-pro-b70-32gb-vllm-tp4", "recipe"),
    ],
)
def test_real_documents_come_back_byte_for_byte(
    imported: tuple[MemoryStore, ImportReport], name: str, form: str
) -> None:
    store, report = imported
    data, made = generate(store, name, form)
    path = next(item.path for item in report.documents if item.name == made.name)
    assert data == Path(path).read_bytes()
    assert (made.identical, made.corrected, made.held_back) == (True, (), ())


def test_a_correction_of_the_projection_leaves_every_other_byte(corpus: Path, tmp_path: Path) -> None:
    """C39: the projection of the seed names another quantization than the artifact."""
    store = MemoryStore()
    seed = corpus.parent / "seeds/000_b1d7e9ac15b28256.txt"
    at = "/packets/0/projection/quant"
    note = tmp_path / "note.json"
    note.write_text(
        json.dumps(
            {
                "format": "provstore/note/v1",
                "id": "projection",
                "date": "2026-11-30",
                "author": "tests",
                "kind": "corrects",
                "reason": "the artifact is compressed-tensors",
                "changes": [
                    {
                        "document": "family:laguna-s",
                        "at": at,
                        "from": "AutoRound INT4",
                        "to": "INT4 compressed-tensors",
                    }
                ],
            }
        )
    )
    import_documents(store, [seed, note])
    data, made = generate(store, "laguna-s", "family")
    before = seed.read_bytes()
    assert data == before.replace(b'"quant": "AutoRound INT4"', b'"quant": "INT4 compressed-tensors"')
    assert data != before
    assert [(item.location, item.reason) for item in made.corrected] == [
        (at, "the artifact is compressed-tensors")
    ]
