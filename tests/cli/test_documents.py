"""``prov import`` and ``prov export`` of documents, as a person runs them."""

from pathlib import Path

import pytest
from graph import documents_of_ours as ours
from graph.documents_of_ours import PAGE, dumped
from prov_run import Prov


@pytest.fixture
def lab(place: Path) -> Path:
    root = place / "lab"
    (root / "families").mkdir(parents=True)
    (root / "families/fam.json").write_bytes(dumped(ours.family()))
    (root / "record.json").write_bytes(dumped(ours.record()))
    (root / "sweep.json").write_bytes(dumped(ours.sweep("leaderboard")))
    (root / "page.txt").write_text(PAGE)
    (root / "notes.txt").write_text("nothing to see\n")
    return root


def test_an_import_says_what_it_brought(prov: Prov, lab: Path) -> None:
    found = prov("import", lab)
    assert found.code == 0, found.err
    text = found.text()
    assert "new       lab/families/fam.json: family, family:fam, as " in text
    assert "2 cells" in text
    assert "50.5 of rec-sweep/0 is legacy-inclusive-events" in text
    assert "not understood: line 24" in text
    assert "skipped" in text
    assert "no known format" in text
    assert prov("import", lab, "--json").json()["bytes_stored"] == 0


def test_a_change_is_printed_with_both_spellings(prov: Prov, lab: Path) -> None:
    path = lab / "families/fam.json"
    prov("import", path, "--root", lab)
    path.write_text(path.read_text().replace("20.0", "20.00"))
    text = prov("import", path, "--root", lab).text()
    assert "changed   lab/families/fam.json" in text
    assert "1 fact changed" in text
    assert "/estimates/0/value: 20.0 -> 20.00" in text
    steps = prov("log", "lab/families/fam.json", "--json").json()
    assert len(steps) == 2


def test_an_imported_document_is_a_packet_like_any_other(prov: Prov, lab: Path, place: Path) -> None:
    prov("import", lab / "families/fam.json", "--root", lab)
    name = "lab/families/fam.json"
    assert prov("verify", name).code == 0
    assert prov("cat", name, "families/fam.json").out == dumped(ours.family())
    assert prov("pack", name, "-o", place / "fam.pack").code == 0
    assert prov("verify", place / "fam.pack").code == 0


def test_a_file_of_no_known_format_is_refused_with_a_remedy(prov: Prov, lab: Path) -> None:
    found = prov("import", lab / "notes.txt", "--json")
    assert found.code == 2
    error = found.json()["error"]
    assert error["code"] == "unknown-document"
    assert "docs/documents.md" in error["remedy"]


def test_both_ways_to_ask_for_a_document(prov: Prov, lab: Path, place: Path) -> None:
    prov("import", lab)
    wanted = dumped(ours.family())
    assert prov("export", "family", "fam").out == wanted
    assert prov("export", "lab/families/fam.json", "--format", "family").out == wanted
    told = prov("export", "family", "fam", "-o", place / "out.json", "--json").json()
    assert (told["identical"], told["corrected"]) == (True, [])
    assert (place / "out.json").read_bytes() == wanted


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("family", "gone"), 11, "no imported family"),
        (("fam",), 2, "--format is needed"),
        (("family", "fam", "--format", "recipe"), 2, "says another"),
        (("novel", "fam"), 2, "novel"),
    ],
)
def test_what_an_export_refuses(
    prov: Prov, lab: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    prov("import", lab)
    found = prov("export", *arguments)
    assert (found.code, found.out) == (code, b"")
    assert said in found.err
