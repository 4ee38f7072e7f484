"""``prov import --check``: every finding, an exit code for the outcome, and nothing written."""

import shutil
from pathlib import Path

import pytest
from prov_run import Prov
from ruling import GOOD

FAMILY = "families/ember.json"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A copy of the small repository."""
    return Path(shutil.copytree(GOOD, tmp_path / "lab"))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_whole_repository_that_keeps_every_rule_passes(prov: Prov, lab: Path) -> None:
    (lab / ".git").mkdir()
    found = prov("import", lab, "--check", "--json")
    assert found.code == 0, found.text()
    report = found.json()
    assert (report["outcome"], report["findings"]) == ("PASS", [])
    assert FAMILY in [document["path"] for document in report["documents"]]
    assert "data/ember-small-record.json" in report["not_checked"]


def test_an_error_ends_with_one_and_is_shown_with_its_place(prov: Prov, lab: Path) -> None:
    edit(lab / FAMILY, '"D88.5 ', '"D88 ')
    found = prov("import", lab / FAMILY, "--root", lab, "--check")
    assert found.code == 1
    place = f"{FAMILY}#/coverage_views/0/cells/1024:4/label"
    assert f"FAIL label-mismatch {place}" in found.text()
    assert "expected D88.5 · P4,100 · T250 · AR0.25; found D88 · P4,100 · T250 · AR0.25" in found.text()


def test_only_undecided_rules_end_with_three(prov: Prov, lab: Path) -> None:
    (lab / "data/ember-record.json").unlink()
    found = prov("import", lab / FAMILY, "--root", lab, "--check", "--json")
    assert found.code == 3
    report = found.json()
    assert report["outcome"] == "INCOMPLETE"
    assert {finding["code"] for finding in report["findings"]} == {"evidence-absent"}


def test_a_file_that_is_absent_from_a_whole_repository_is_an_error(prov: Prov, lab: Path) -> None:
    (lab / ".git").mkdir()
    (lab / "data/ember-record.json").unlink()
    found = prov("import", lab / FAMILY, "--root", lab, "--check", "--json")
    assert found.code == 1
    assert "evidence-file" in {finding["code"] for finding in found.json()["findings"]}


def test_nothing_is_written(prov: Prov, lab: Path, tmp_path: Path) -> None:
    before = sorted(path for path in tmp_path.rglob("*"))
    assert prov("import", lab, "--check", "--quiet").code in (0, 3)
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_evidence_that_was_imported_before_is_found_in_the_store(
    prov: Prov, lab: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    assert prov("init", store).code == 0
    record = lab / "data/ember-record.json"
    assert prov("import", record, "--root", lab, "--store", store).code == 0
    record.unlink()
    family = ("import", lab / FAMILY, "--root", lab, "--check", "--json", "--store")
    found = prov(*family, store).json()
    assert not any("ember-record.json" in finding["message"] for finding in found["findings"])
    edit(lab / FAMILY, "512.25", "512.5")
    found = prov(*family, store)
    assert found.code == 1
    assert [f["code"] for f in found.json()["findings"] if f["severity"] == "error"] == [
        "value-not-in-evidence"
    ]


def test_a_link_out_of_the_root_is_no_evidence(prov: Prov, lab: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    shutil.move(lab / "data/ember-record.json", outside)
    (lab / "data/ember-record.json").symlink_to(outside)
    found = prov("import", lab / FAMILY, "--root", lab, "--check", "--json")
    assert found.code == 1
    assert "path-outside" in {finding["code"] for finding in found.json()["findings"]}


def test_a_document_that_no_rule_is_for_is_undecided(prov: Prov, tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text('{"a": 1}')
    found = prov("import", odd, "--check")
    assert found.code == 3
    assert "odd.json: no rule is for this document" in found.text()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"format": "b70-model-package-v1", "format": "b70-model-package-v1"}', "duplicate-key"),
        ('{"format": "b70-model-package-v1", "x": NaN}', "non-finite"),
        ('{"format": "b70-model-package-v1", "x": 1e999}', "non-finite"),
        ('{"format": ', "not-json"),
        ("", "not-json"),
    ],
)
def test_what_is_wrong_with_the_text_is_an_error(prov: Prov, tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "document.json"
    path.write_text(text)
    found = prov("import", path, "--check", "--json")
    assert found.code == 1
    assert code in {finding["code"] for finding in found.json()["findings"]}
