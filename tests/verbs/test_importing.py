"""Importing documents: what is stored, what a second import does, and what is refused."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from graph.documents_of_ours import dumped, family, record
from hypothesis import given
from hypothesis import strategies as st

from provstore import records
from provstore.errors import DocumentError, NotFoundError, UsageError
from provstore.ids import to_raw
from provstore.records.facts import Facts
from provstore.reports.imported import ImportedDocument, ImportReport
from provstore.store import objects
from provstore.store.memory import MemoryStore
from provstore.store.opening import init_store
from provstore.store.protocol import Store
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.importing import import_documents
from provstore.verbs.sealing import seal_paths
from provstore.verbs.verifying import verify


@pytest.fixture(params=["memory", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else init_store(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    root = tmp_path / "lab"
    (root / "families").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "families/fam.json").write_bytes(dumped(family()))
    (root / "data/run.json").write_bytes(dumped(record()))
    (root / "data/notes.txt").write_text("a note\n")
    return root


def only(report: ImportReport) -> ImportedDocument:
    assert len(report.documents) == 1
    return report.documents[0]


def test_a_document_becomes_a_packet_of_its_bytes_and_facts(store: Store, lab: Path) -> None:
    path = lab / "families/fam.json"
    found = only(import_documents(store, [path], ImportOptions(root=lab)))
    assert (found.name, found.format, found.subject, found.state) == (
        "lab/families/fam.json",
        "family",
        "family:fam",
        "new",
    )
    assert store.ref("lab/families/fam.json") == to_raw(found.packet)
    packet = objects.packet(store, to_raw(found.packet))
    entry = packet.entries[0]
    assert (packet.name, packet.parents) == ("lab/families/fam.json", ())
    assert (entry.role, entry.kind, entry.custody) == ("families/fam.json", "document", "held")
    assert objects.read(store, to_raw(found.blake3)) == path.read_bytes()
    facts = records.decode(objects.record(store, to_raw(entry.facts[0])))
    assert isinstance(facts, Facts)
    assert (facts.extractor, facts.source, len(facts.facts)) == ("family", found.blake3, found.facts)
    rates = [fact for fact in facts.facts if fact.key == "family.run_measurements.metrics.decode_tok_s"]
    assert [(fact.value, fact.decimal) for fact in rates] == [(("10.5", "11.0"), True)]
    assert verify(store, to_raw(found.packet)).outcome == "PASS"


def test_importing_again_writes_nothing(store: Store, lab: Path) -> None:
    first = only(import_documents(store, [lab / "families/fam.json"], ImportOptions(root=lab)))
    before = store.generation()
    report = import_documents(store, [lab / "families/fam.json"], ImportOptions(root=lab))
    assert (only(report).state, only(report).packet) == ("unchanged", first.packet)
    assert (report.objects, report.records, report.bytes_stored) == (0, 0, 0)
    assert store.generation() == before
    assert len(store.ref_log("lab/families/fam.json")) == 1


def test_a_changed_document_is_a_new_version_with_its_changes(store: Store, lab: Path) -> None:
    path = lab / "families/fam.json"
    first = only(import_documents(store, [path], ImportOptions(root=lab)))
    text = path.read_text()
    path.write_text(
        text.replace("11.0", "11.00").replace('"exact"', '"inexact"').replace('"name": "Fam",', "")
    )
    second = only(import_documents(store, [path], ImportOptions(root=lab)))
    assert (second.state, second.parent) == ("changed", first.packet)
    assert objects.packet(store, to_raw(second.packet)).parents == (first.packet,)
    told = {(item.location, item.from_, item.to) for item in second.changes}
    assert told >= {
        ("/run_measurements/0/metrics/decode_tok_s", "10.5, 11.0", "10.5, 11.00"),
        ("/run_measurements/0/quality", "exact", "inexact"),
        ("/name", "Fam", None),
    }
    assert objects.read(store, to_raw(first.blake3)) == text.encode()
    path.write_text(text)
    third = only(import_documents(store, [path], ImportOptions(root=lab)))
    assert (third.state, third.parent, third.blake3) == ("changed", second.packet, first.blake3)


def test_a_directory_imports_its_documents_and_lists_the_rest(store: Store, lab: Path) -> None:
    report = import_documents(store, [lab])
    assert [item.name for item in report.documents] == ["lab/data/run.json", "lab/families/fam.json"]
    assert [(os.path.basename(item.path), item.reason) for item in report.skipped] == [
        ("notes.txt", "no known format")
    ]


def test_files_without_a_root_go_by_their_own_names(store: Store, lab: Path) -> None:
    report = import_documents(store, [lab / "families/fam.json", lab / "data/run.json"])
    assert [item.name for item in report.documents] == ["documents/fam.json", "documents/run.json"]
    named = import_documents(store, [lab / "data/run.json"], ImportOptions(root=lab, repository="other"))
    assert only(named).name == "other/data/run.json"


def test_one_unknown_file_stops_the_whole_import(store: Store, lab: Path) -> None:
    with pytest.raises(DocumentError, match="no known format"):
        import_documents(store, [lab / "families/fam.json", lab / "data/notes.txt"])
    assert store.refs() == []
    (lab / "data/cut.json").write_bytes(dumped(family())[:-1])
    with pytest.raises(DocumentError, match="not-json"):
        import_documents(store, [lab / "data/cut.json"])


def test_what_an_import_refuses(store: Store, lab: Path, tmp_path: Path) -> None:
    (lab / "copy").mkdir()
    (lab / "copy/fam.json").write_bytes(dumped(family()))
    with pytest.raises(UsageError, match="would both be"):
        import_documents(store, [lab / "families/fam.json", lab / "copy/fam.json"])
    with pytest.raises(UsageError, match="does not lie below the root"):
        import_documents(store, [lab / "families/fam.json"], ImportOptions(root=lab / "copy"))
    with pytest.raises(NotFoundError):
        import_documents(store, [tmp_path / "gone.json"])
    with pytest.raises(UsageError, match="nothing to import"):
        import_documents(store, [])
    seal_paths(store, [lab / "data"], name="documents/fam.json")
    with pytest.raises(UsageError, match="no imported document"):
        import_documents(store, [lab / "families/fam.json"])


def test_spoiled_members_are_findings_and_the_bytes_are_kept(store: Store, lab: Path) -> None:
    data = dumped(family()).replace(b'"name": "Fam"', b'"name": "Fam", "name": "Two"')
    data = data.replace(b'"value": 20.0', b'"value": NaN')
    (lab / "odd.json").write_bytes(data)
    found = only(import_documents(store, [lab / "odd.json"]))
    assert [(item.code, item.location) for item in found.findings] == [
        ("duplicate-key", "/name"),
        ("non-finite", "/estimates/0/value"),
    ]
    assert found.not_understood == ("/name", "/estimates/0/value")
    assert objects.read(store, to_raw(found.blake3)) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[" * 5000 + b"]" * 5000, "too-deep"),
        (b'{"format": "neural-download-model-family-v1", "format": 1}', "duplicate-key"),
        (b"\xef\xbb\xbf{}", "byte-order-mark"),
        (b'{"format": "\xff"}', "not-utf8"),
    ],
    ids=["deep", "format twice", "mark", "bytes"],
)
def test_documents_that_cannot_be_told(store: Store, lab: Path, data: bytes, reason: str) -> None:
    (lab / "x.json").write_bytes(data)
    with pytest.raises(DocumentError, match=reason):
        import_documents(store, [lab / "x.json"])


def test_a_huge_document_is_kept_whole(store: Store, lab: Path) -> None:
    document = family()
    document["summary"] = "long " * 2_000_000
    (lab / "huge.json").write_bytes(json.dumps(document).encode())
    found = only(import_documents(store, [lab / "huge.json"]))
    assert found.size_bytes > 10_000_000
    assert verify(store, to_raw(found.packet)).outcome == "PASS"


def test_ids_that_cannot_be_told_apart_are_reported_and_all_kept(store: Store, tmp_path: Path) -> None:
    for name, id, packet in (
        ("a", "fam", "one"),
        ("b", "Fam", "two"),
        ("c", "fam", "one"),
        ("d", "g", "ONE"),
    ):
        document = {**family(), "id": id}
        document["packets"] = [{**document["packets"][0], "id": packet}]
        document["run_measurements"] = [{**document["run_measurements"][0], "id": f"{name}-run"}]
        document["series_measurements"] = []
        (tmp_path / f"{name}.json").write_bytes(dumped(document))
    report = import_documents(store, sorted(tmp_path.glob("*.json")))
    assert len(report.documents) == 4
    told = {(clash.node, clash.reason, len(clash.places)) for clash in report.clashes}
    assert ("family:fam", "ids that differ in case alone", 3) in told
    assert ("family-packet:fam/one", "several families give this id", 3) in told


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_document_with_one_byte_changed_imports_or_is_refused(at: int, byte: int) -> None:
    data = bytearray(dumped(family()))
    data[at % len(data)] = byte
    store = MemoryStore()
    path = Path(f"/tmp/provstore-import-{os.getpid()}.json")
    path.write_bytes(data)
    try:
        found = only(import_documents(store, [path]))
    except DocumentError:
        assert store.refs() == []
    else:
        assert objects.read(store, to_raw(found.blake3)) == bytes(data)
    finally:
        path.unlink()
