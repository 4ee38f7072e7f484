"""The real packets held against each other and against copies of themselves with one thing changed."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provstore.reports import DiffReport
from provstore.store.memory import MemoryStore
from provstore.verbs.attributing import diff
from provstore.verbs.diffing import side
from provstore.verbs.sealing import SealOptions, seal_spec

EXAMPLES = Path(__file__).parents[2] / "examples" / "laguna-s-2.1"
R102, R125 = "laguna-s-2.1-int4-b70-102tps-20260726", "laguna-s-2.1-int4-b70-125tps-20260731"
RUN = f"repro/{R102}/evidence/record-run"


def sealed(lab: Path, name: str, spec: str = "") -> MemoryStore:
    store = MemoryStore()
    path = EXAMPLES / f"packet-{name}.toml"
    if spec:
        path = lab.parent / "spec.toml"
        path.write_text(spec)
    seal_spec(store, path, variables={"corpus": os.fspath(lab)}, options=SealOptions(use_cache=False))
    return store


@pytest.fixture(scope="module")
def record(corpus: Path) -> MemoryStore:
    return sealed(corpus / "b70-lab", "102")


def against(record: MemoryStore, other: MemoryStore, name: str) -> DiffReport:
    with side(R102, record) as x, side(name, other) as y:
        return diff(x, y)


def changed(
    corpus: Path, place: Path, record: MemoryStore, file: str, edit: Callable[[str], str]
) -> DiffReport:
    """Compare the sealed run with a copy of it in which one file was edited (its manifest left out)."""
    lab = place / "lab"
    shutil.copytree(corpus / "b70-lab", lab, symlinks=True)
    path = lab / RUN / file
    path.chmod(0o644)
    before = path.read_text()
    after = edit(before)
    assert after != before
    path.write_text(after)
    spec = (EXAMPLES / "packet-102.toml").read_text()
    pinned = next(line for line in spec.splitlines() if line.startswith("manifest") and "record-run" in line)
    return against(record, sealed(lab, "102", spec.replace(pinned, "")), R102)


def edited(change: Callable[[list[dict[str, Any]]], None]) -> Callable[[str], str]:
    def edit(text: str) -> str:
        document = json.loads(text)
        change(document["rows"])
        return json.dumps(document, indent=2, sort_keys=True)

    return edit


def test_the_later_packet_differs_in_inputs_and_environment_and_its_result_is_unknown(
    corpus: Path, record: MemoryStore
) -> None:
    report = against(record, sealed(corpus / "b70-lab", "125"), R125)
    assert {found.layer: found.state for found in report.layers} == {
        "identity": "differs",
        "environment": "differs",
        "result": "unknown",
    }
    assert (
        "result unknown (evidence/record-run/bench.json: only declared on the second side)" in report.sentence
    )
    assert report.sentence.endswith("claimed +23.1 % (decode, conventional-intervals)")
    commits = {fact.role for fact in report.identity if fact.key == "commit"}
    assert commits == {"source/vllm", "source/kernel-record-tree"}
    assert [metric.basis for metric in report.metrics] == ["claim"]
    assert report.tokens == ()


def test_one_changed_variable(corpus: Path, tmp_path: Path, record: MemoryStore) -> None:
    report = changed(
        corpus,
        tmp_path,
        record,
        "service-environment.txt",
        lambda text: text.replace("XPU_LAGUNA_EXACT_MAX_M=12", "XPU_LAGUNA_EXACT_MAX_M=8").replace(
            "laguna-width12-dflash-fp8-e596ef154-20260726T214259Z", "another-run"
        ),
    )
    assert report.sentence == "inputs identical, environment differs in 1, result identical"
    (fact,) = report.environment
    assert (fact.key, fact.from_, fact.to) == ("env.VLLM_XPU_LAGUNA_EXACT_MAX_M", "12", "8")
    assert len(report.folded) >= 10
    assert report.unknown == ()


def test_one_changed_token(corpus: Path, tmp_path: Path, record: MemoryStore) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[4]["token_ids"][17] = 1

    report = changed(corpus, tmp_path, record, "bench.json", edited(change))
    assert report.sentence == (
        "inputs identical, environment identical, result differs in 1, tokens differ in 1 prompt"
    )
    (token,) = report.tokens
    assert (token.index, token.to) == (17, 1)
    assert token.from_ not in (None, 1)
    assert {metric.rows_changed for metric in report.metrics} == {0}


def test_one_slower_row(corpus: Path, tmp_path: Path, record: MemoryStore) -> None:
    """The row whose rate is the median: every other stamp of it comes later, and its median falls."""

    def change(rows: list[dict[str, Any]]) -> None:
        spans = [row["token_id_offsets_s"][99] - row["token_id_offsets_s"][0] for row in rows]
        middle = rows[spans.index(sorted(spans)[len(spans) // 2])]
        start = middle["token_id_offsets_s"][0]
        middle["token_id_offsets_s"] = [start + (at - start) * 1.01 for at in middle["token_id_offsets_s"]]

    report = changed(corpus, tmp_path, record, "bench.json", edited(change))
    minus = "\N{MINUS SIGN}"
    assert report.sentence == (
        f"inputs identical, environment identical, result {minus}1.0 % (decode, conventional-intervals)"
    )
    found = {metric.convention: metric for metric in report.metrics}
    for convention, name in (
        ("conventional-intervals", "decode"),
        ("legacy-inclusive-events", "decode-as-submitted"),
    ):
        assert found[convention].name == name
        assert found[convention].rows_changed == 1
    assert found["conventional-intervals"].from_ == "101.94172124017027"
    assert found["legacy-inclusive-events"].from_ == "102.97143559613157"
    assert report.tokens == ()
