"""The sealed run of the corpus against its own checksum list: every file, every digest, every trick."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from workbench import at_most, listed, seal_text, snapshot

import provstore
from provstore.errors import PinMismatchError
from provstore.ids import digests, to_raw
from provstore.store.memory import MemoryStore
from provstore.store.resolving import resolve
from provstore.verbs.checksumming import verify_checksums
from provstore.verbs.comparing import verify_against
from provstore.verbs.listing import cat_object
from provstore.verbs.sealing import seal_spec
from provstore.verbs.verifying import verify

ROOT = Path(__file__).resolve().parents[2]
SPECS = ROOT / "examples" / "laguna-s-2.1"
RUN = "repro/laguna-s-2.1-int4-b70-102tps-20260726/evidence"
NAME = "laguna-s-2.1-int4-b70-102tps-20260726"

ENTRY = """
[[entry]]
role = "evidence/record-run"
kind = "evidence"
path = "{run}/record-run"
manifest = "{run}/record-run.sha256"
"""

STATUS_WITHOUT_LINE_END = "8066aa7f4ca09c13481b97932e8345ffa2bbc5e8ff93dd3ad6c7ecb442355a27"


def stated(evidence: Path) -> dict[str, str]:
    """Read the checksum list with nothing of ours: digest by name below the run."""
    lines = (evidence / "record-run.sha256").read_text().splitlines()
    return {line[66:].removeprefix("record-run/"): line[:64] for line in lines}


@pytest.fixture(scope="module")
def evidence(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sealed run and its list, which may be changed and put back."""
    place = tmp_path_factory.mktemp("evidence") / "evidence"
    shutil.copytree(corpus / "b70-lab" / RUN, place)
    for path in place.rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)
    assert len(stated(place)) == 39
    return place


@pytest.fixture
def pristine(evidence: Path) -> Iterator[Path]:
    """The copy, which must be as it was when the test is done with it."""
    before = snapshot(evidence)
    yield evidence
    assert snapshot(evidence) == before


def refused(evidence: Path, place: Path) -> list[str]:
    """Seal the run under its list; return what does not hold, and check that nothing was kept."""
    store = MemoryStore()
    with at_most(30), pytest.raises(PinMismatchError) as caught:
        seal_text(store, place, ENTRY.format(run=evidence))
    assert store.refs() == []
    assert list(store.objects()) == []
    return list(caught.value.mismatches)


def test_one_flipped_bit_in_any_file_is_named_with_both_digests(pristine: Path, tmp_path: Path) -> None:
    for name, digest in sorted(stated(pristine).items()):
        path = pristine / "record-run" / name
        whole = path.read_bytes()
        at = len(whole) // 2
        changed = whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :] if whole else b"\0"
        path.write_bytes(changed)
        try:
            (line,) = refused(pristine, tmp_path)
        finally:
            path.write_bytes(whole)
        assert line.startswith(f"evidence/record-run/{name}: changed"), line
        assert digest in line
        assert hashlib.sha256(changed).hexdigest() in line


def test_any_file_that_is_absent_is_named(pristine: Path, tmp_path: Path) -> None:
    for name in ("status.txt", "idle-interval/summary.txt", "bench.json"):
        (pristine / "record-run" / name).rename(tmp_path / "away")
        try:
            (line,) = refused(pristine, tmp_path)
        finally:
            (tmp_path / "away").rename(pristine / "record-run" / name)
        assert line.startswith(f"evidence/record-run/{name}: missing"), line


@pytest.mark.parametrize("name", ["notes.txt", "idle-interval/prestart-13.json", ".hidden", "status.txt~"])
def test_any_file_too_many_is_named(pristine: Path, tmp_path: Path, name: str) -> None:
    """``sha256sum -c`` would say that all is well."""
    path = pristine / "record-run" / name
    path.write_text("n")
    try:
        (line,) = refused(pristine, tmp_path)
        strict = ["sha256sum", "--check", "--strict", "--quiet", "record-run.sha256"]
        assert subprocess.run(strict, cwd=pristine, check=False).returncode == 0
    finally:
        path.unlink()
    assert line.startswith(f"evidence/record-run/{name}: extra"), line


def test_a_status_without_its_line_end_has_the_digest_that_the_field_knows(
    pristine: Path, tmp_path: Path
) -> None:
    path = pristine / "record-run" / "status.txt"
    whole = path.read_bytes()
    path.write_bytes(whole.rstrip(b"\n"))
    try:
        assert len(whole) - path.stat().st_size == 1
        (line,) = refused(pristine, tmp_path)
    finally:
        path.write_bytes(whole)
    assert line.startswith("evidence/record-run/status.txt: changed")
    assert STATUS_WITHOUT_LINE_END in line


def test_everything_that_is_wrong_is_said_at_once(pristine: Path, tmp_path: Path) -> None:
    run = pristine / "record-run"
    status, bench = (run / "status.txt").read_bytes(), (run / "bench.json").read_bytes()
    (run / "status.txt").unlink()
    (run / "notes.txt").write_text("n")
    (run / "bench.json").write_bytes(bench[:-1])
    try:
        lines = refused(pristine, tmp_path)
        report = verify_checksums(pristine / "record-run.sha256", against=pristine)
    finally:
        (run / "status.txt").write_bytes(status)
        (run / "bench.json").write_bytes(bench)
        (run / "notes.txt").unlink()
    found = {line.split(": ")[0].rpartition("/")[2]: line.split(": ")[1] for line in lines}
    assert found == {"status.txt": "missing", "bench.json": "changed", "notes.txt": "extra"}
    codes = {check.path: check.code for check in report.checks if check.outcome != "PASS"}
    assert codes == {"record-run/status.txt": "missing", "record-run/bench.json": "changed"}
    assert report.outcome == "FAIL"


def test_a_link_to_the_same_bytes_is_no_file(pristine: Path, tmp_path: Path) -> None:
    path = pristine / "record-run" / "status.txt"
    path.rename(tmp_path / "status.txt")
    path.symlink_to(tmp_path / "status.txt")
    try:
        (line,) = refused(pristine, tmp_path)
    finally:
        path.unlink()
        (tmp_path / "status.txt").rename(path)
    assert "status.txt" in line
    assert "symlink" in line


# Digests


@pytest.fixture(scope="module")
def store(corpus: Path) -> MemoryStore:
    made = MemoryStore()
    for number in ("102", "125"):
        variables = {"corpus": os.fspath(corpus / "b70-lab")}
        seal_spec(made, SPECS / f"packet-{number}.toml", variables=variables)
    return made


def test_every_digest_of_the_list_finds_its_object(store: MemoryStore, evidence: Path) -> None:
    members = listed(store, resolve(store, NAME))
    for name, digest in stated(evidence).items():
        data = (evidence / "record-run" / name).read_bytes()
        id = resolve(store, f"sha256:{digest}")
        assert id == digests(data).blake3
        assert b"".join(cat_object(store, f"sha256:{digest}")) == data
        member = members[f"evidence/record-run/{name}"]
        assert (member.sha256, member.blake3, member.size) == (digest, id.hex(), len(data))


def test_the_list_holds_for_the_folder(evidence: Path) -> None:
    report = verify_checksums(evidence / "record-run.sha256", against=evidence)
    assert report.outcome == "PASS"
    assert len(report.checks) == report.objects_checked == 39
    assert report.bytes_checked == sum(
        (evidence / "record-run" / name).stat().st_size for name in stated(evidence)
    )


def test_the_folder_is_held_to_the_packet(store: MemoryStore, pristine: Path, tmp_path: Path) -> None:
    place = tmp_path / "laid out"
    (place / "evidence").mkdir(parents=True)
    shutil.copytree(pristine / "record-run", place / "evidence" / "record-run")
    only = "evidence/record-run"
    assert verify_against(store, resolve(store, NAME), place, only=only).outcome == "PASS"
    (place / only / "notes.txt").write_text("n")
    (place / only / "status.txt").unlink()
    report = verify_against(store, resolve(store, NAME), place, only=only)
    assert {check.path: check.code for check in report.checks if check.outcome == "FAIL"} == {
        "notes.txt": "extra",
        "status.txt": "missing",
    }


def test_what_was_only_declared_is_listed_as_missing_and_nothing_else(store: MemoryStore) -> None:
    report = verify(store, resolve(store, NAME))
    assert report.outcome == "PASS"
    roles = [missing.role for missing in report.missing]
    assert len(roles) == 43
    assert sum(role.startswith("weights/") for role in roles) == 32
    assert sum(role.startswith("runtime/native/") for role in roles) == 11
    for missing in report.missing:
        assert missing.custody == "declared"
        assert missing.sha256
        assert missing.blake3 is None
        if missing.role.startswith("weights/"):
            assert missing.origins


# Elsewhere


def test_the_pack_verifies_where_there_is_neither_store_nor_corpus(
    store: MemoryStore, tmp_path: Path
) -> None:
    """A process of its own, in an empty directory, that knows nothing but the file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    provstore.pack([(NAME, provstore.locate(NAME, store))], elsewhere / "102.pack")
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.fspath(elsewhere), "PYTHONPATH": os.fspath(ROOT)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "provstore", *arguments]
        return subprocess.run(
            command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False
        )

    done = run("verify", "102.pack")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert [path.name for path in elsewhere.iterdir()] == ["102.pack"]
    data = bytearray((elsewhere / "102.pack").read_bytes())
    data[len(data) // 3] ^= 0xFF
    (elsewhere / "102.pack").write_bytes(data)
    assert run("verify", "102.pack").returncode not in (0, 3)


def test_the_packet_does_not_depend_on_where_the_corpus_lies(
    store: MemoryStore, corpus: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "another place"
    shutil.copytree(corpus / "b70-lab", copy)
    report = seal_spec(MemoryStore(), SPECS / "packet-102.toml", variables={"corpus": os.fspath(copy)})
    assert to_raw(report.packet) == resolve(store, NAME)
