"""Documents written back: byte for byte, with corrections, what follows from them, and derived statuses."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph import documents_of_ours as ours
from graph.documents_of_ours import dumped
from hypothesis import given
from hypothesis import strategies as st

from provstore.errors import AmbiguousError, NotFoundError, UsageError
from provstore.evidence.jsonreader import read, resolve
from provstore.graph.documents.splicing import Splice, source_text, spliced
from provstore.reports.imported import GenerateReport
from provstore.store.memory import MemoryStore
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.generating import generate
from provstore.verbs.importing import import_documents
from provstore.verbs.ruling import check_documents

Lab = Callable[..., MemoryStore]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """Return a function that imports documents, given by name, under ``lab``."""
    store = MemoryStore()

    def make(**documents: Any) -> MemoryStore:
        paths = []
        for name, document in documents.items():
            path = tmp_path / f"{name}.json"
            path.write_bytes(document if isinstance(document, bytes) else dumped(document))
            paths.append(path)
        import_documents(store, paths, ImportOptions(root=tmp_path, repository="lab"))
        return store

    return make


def note(id: str, *changes: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {
        "format": "provstore/note/v1",
        "id": id,
        "date": "2026-02-03",
        "author": "someone",
        "kind": "corrects",
        "reason": "it was typed wrongly",
        "changes": [{"document": "family:fam", **change} for change in changes],
        **others,
    }


def change(at: str, before: Any, after: Any) -> dict[str, Any]:
    return {"at": at, "from": before, "to": after}


def made(
    store: MemoryStore, name: str = "fam", form: str = "family"
) -> tuple[dict[str, Any], GenerateReport]:
    data, report = generate(store, name, form)
    return json.loads(data), report


ODD = (
    b'{ "format":"neural-download-model-family-v1",\r\n\t"id" : "fam", "x": 1.50e+01,'
    b'"y":[ 2.0 ,\n-0],"\\u006e":"\\/" }\n\n'
)


def test_an_imported_document_comes_back_byte_for_byte(lab: Lab) -> None:
    store = lab(fam=ODD, pack=ours.package(), rec=ours.recipe())
    for name, form, data in (
        ("fam", "family", ODD),
        ("family:fam", "family", ODD),
        ("lab/fam.json", "family", ODD),
        ("fam-packet", "package", dumped(ours.package())),
    ):
        found, report = generate(store, name, form)
        assert found == data
        assert (report.identical, report.corrected, report.held_back) == (True, (), ())


def test_a_note_corrects_one_value_and_nothing_else(lab: Lab) -> None:
    at = "/run_measurements/0/metrics/ttft_ms/0"
    text = dumped(note("n", change(at, 3, 4))).replace(b'"to": 4', b'"to": 4.10')
    store = lab(fam=ours.family(), n=text)
    data, report = generate(store, "fam", "family")
    before = dumped(ours.family()).decode()
    assert data.decode() == spliced(before, [Splice(at, "4.10")])
    (item,) = report.corrected
    assert (item.location, item.from_, item.to, item.by) == (at, "3", "4.10", "lab/n.json")
    assert item.reason == "it was typed wrongly"
    assert not report.identical


def test_copies_of_a_corrected_value_follow(lab: Lab) -> None:
    family = ours.family()
    family["packets"][0]["featured_metric"]["value"] = 10.5
    store = lab(
        fam=family,
        n=note(
            "n",
            change("/series_measurements/0/points/0/decode_tok_s", 9.5, 7331.79),
            change("/run_measurements/0/metrics/decode_tok_s/0", 10.5, 12.25),
            change("/series_measurements/0/state", "lab-screened", "quarantined"),
        ),
    )
    document, report = made(store)
    cell = document["coverage_views"][0]["cells"]["8:2"]
    assert (cell["label"], cell["state"]) == ("D7,332", "quarantined")
    assert document["packets"][0]["featured_metric"]["value"] == 12.25
    assert {item.location for item in report.corrected if item.by == "provstore"} == {
        "/coverage_views/0/cells/8:2/label",
        "/coverage_views/0/cells/8:2/state",
        "/packets/0/featured_metric/value",
    }


def test_a_copy_that_differed_before_does_not_follow(lab: Lab) -> None:
    family = ours.family()
    family["coverage_views"][0]["cells"]["8:2"]["label"] = "typed by hand"
    store = lab(fam=family, n=note("n", change("/series_measurements/0/points/0/decode_tok_s", 9.5, 8.0)))
    document, report = made(store)
    assert document["coverage_views"][0]["cells"]["8:2"]["label"] == "typed by hand"
    assert len(report.corrected) == 1


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (change("/name", "Another", "x"), "another value stands there"),
        (change("/gone/0", "Fam", "x"), "nothing that can be replaced"),
        ({"at": "/name", "to": "x"}, "does not say what it takes"),
        (change("/run_measurements/0/metrics/ttft_ms/0", 3.0, 4), "another value stands there"),
    ],
    ids=["value", "place", "no from", "spelling"],
)
def test_a_correction_that_does_not_fit_is_held_back(lab: Lab, wrong: dict[str, Any], why: str) -> None:
    store = lab(fam=ours.family(), n=note("n", wrong))
    data, report = generate(store, "fam", "family")
    assert data == dumped(ours.family())
    (held,) = report.held_back
    assert why in held.reason
    assert held.by == "lab/n.json"


def test_two_notes_for_one_value(lab: Lab) -> None:
    first = note("a", change("/name", "Fam", "Second"), date="2026-02-01")
    store = lab(
        fam=ours.family(),
        z=first,
        b=note("b", change("/name", "Second", "Third"), date="2026-02-02"),
        c=note("c", change("/name", "Fam", "Other"), date="2026-02-03"),
    )
    document, report = made(store)
    assert document["name"] == "Third"
    assert [item.by for item in report.corrected] == ["lab/z.json", "lab/b.json"]
    assert "lab/b.json changed it before" in report.held_back[0].reason


def test_a_withdrawn_note_corrects_nothing(lab: Lab) -> None:
    undo = note("undo", kind="withdraws", target="note:n")
    store = lab(fam=ours.family(), n=note("n", change("/name", "Fam", "x")), undo=undo)
    assert made(store)[1].identical


def test_a_correction_for_other_bytes_or_another_document_is_none_here(lab: Lab) -> None:
    store = lab(
        fam=ours.family(),
        n=note("n", {**change("/name", "Fam", "x"), "document": f"sha256:{'0' * 64}"}),
        m=note("m", {**change("/name", "Fam", "x"), "document": "family:other"}),
    )
    assert made(store)[1].identical
    assert made(store)[1].held_back == ()


def test_a_recipe_gets_the_status_of_its_facts(lab: Lab) -> None:
    parts = {"inst": ours.instance(), "card": ours.hardware(), "sweep": ours.sweep()}
    store = lab(rec=ours.recipe(), **parts)
    document, report = made(store, "rec", "recipe")
    assert (document["status"], report.missing) == ("validated", ())
    assert [(item.location, item.from_, item.to) for item in report.corrected] == [
        ("/status", '"candidate"', '"validated"')
    ]
    board = {**ours.recipe("reference"), "id": "board", "status": "validated"}
    store = lab(board=board)
    document, report = made(store, "board", "recipe")
    assert document["status"] == "candidate"
    assert any("an executable launch" in item for item in report.missing)


def test_what_cannot_be_written(lab: Lab) -> None:
    store = lab(fam=ours.family(), twin=ours.family())
    with pytest.raises(AmbiguousError):
        generate(store, "fam", "family")
    assert generate(store, "lab/twin.json", "family")[1].identical
    with pytest.raises(NotFoundError):
        generate(store, "gone", "family")
    with pytest.raises(NotFoundError):
        generate(store, "lab/fam.json", "package")
    with pytest.raises(UsageError, match="unknown"):
        generate(store, "fam", "novel")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def pointers(value: Any, at: str = "") -> list[str]:
    found = [at]
    if isinstance(value, dict):
        for name, item in value.items():
            found += pointers(item, f"{at}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += pointers(item, f"{at}/{index}")
    return found


@given(value=VALUES, indent=st.sampled_from([None, 0, 3]), ascii=st.booleans(), pick=st.integers(0, 100))
def test_any_value_of_any_text_is_replaced_alone(
    value: Any, indent: int | None, ascii: bool, pick: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    places = pointers(value)
    at = places[pick % len(places)]
    found = source_text(text, at)
    assert found is not None
    assert read(found.encode()).value == resolve(read(text.encode()).value, at)
    assert spliced(text, [Splice(at, found)]) == text
    changed = spliced(text, [Splice(at, '"new"')])
    assert resolve(read(changed.encode()).value, at) == "new"
    assert len(changed) == len(text) - len(found) + len('"new"')


GOOD = Path(__file__).resolve().parents[2] / "examples/rules/good"


def told_of_family(root: Path) -> list[tuple[str, str]]:
    found = check_documents([root], ImportOptions(root=root)).findings
    return [(item.code, item.location) for item in found if item.document == "families/ember.json"]


def test_a_family_that_was_corrected_keeps_every_rule_again(tmp_path: Path) -> None:
    """The record of a measurement is corrected by its lab; the family follows by a note and an export."""
    root = tmp_path / "good"
    shutil.copytree(GOOD, root)
    family, record = root / "families/ember.json", root / "data/ember-context.json"
    store = MemoryStore()
    import_documents(store, [root])
    assert generate(store, "ember", "family")[0] == family.read_bytes()
    at_first = told_of_family(root)
    record.write_text(record.read_text().replace("61.75", "62.5"))
    assert len(told_of_family(root)) > len(at_first)
    at = "/series_measurements/0/points/1/decode_tok_s"
    written = note("n", {**change(at, 61.75, 62.5), "document": "family:ember"})
    (root / "notes/third.json").write_bytes(dumped(written))
    import_documents(store, [root])
    data, report = generate(store, "ember", "family")
    assert {item.location for item in report.corrected} == {at, "/coverage_views/0/cells/4096:4/label"}
    family.write_bytes(data)
    assert told_of_family(root) == at_first
