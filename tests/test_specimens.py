"""Every pack in ``stores/packs`` gets the promised verdict, from us and from a verifier without our code."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import zstandard

import provstore
from provstore.report.exits import exit_code

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "stores" / "packs"
INDEX: list[dict[str, str]] = tomllib.loads((FOLDER / "index.toml").read_text())["pack"]
EXITS = {"PASS": 0, "FAIL": 1, "error": 1, "INCOMPLETE": 3}
SPECIMENS = [pytest.param(row, id=row["name"]) for row in INDEX]

MAX_BYTES = 64 << 10
MAX_TOGETHER_BYTES = 1 << 20


def look(name: str, packet_id: str | None = None) -> tuple[str, set[str]]:
    """Verify a pack; return the verdict (or ``error``) and the codes that go with it."""
    try:
        with provstore.locate(name, None) as (reader, packet, _):
            assert packet_id in (None, packet.hex())
            report = provstore.verify(reader, packet)
    except provstore.ProvError as error:
        return "error", {error.code}
    assert exit_code(report) == EXITS[report.outcome]
    outcome = "UNKNOWN" if report.outcome == "INCOMPLETE" else report.outcome
    return report.outcome, {check.code for check in report.checks if check.outcome == outcome}


@pytest.mark.parametrize("row", SPECIMENS)
def test_the_verdict_is_the_one_that_is_promised(row: dict[str, str]) -> None:
    outcome, codes = look(str(FOLDER / row["verify"]), row["packet"])
    assert outcome == row["outcome"]
    assert row["code"] in codes


@pytest.mark.parametrize("row", SPECIMENS)
def test_a_verifier_without_our_code_agrees(row: dict[str, str]) -> None:
    script = ROOT / "examples" / "verify_without_provstore.py"
    run = subprocess.run(
        [sys.executable, "-I", script, FOLDER / row["file"]], capture_output=True, text=True, check=False
    )
    assert run.returncode == EXITS[row["outcome"]], run.stdout + run.stderr
    assert run.stderr == ""


def test_the_other_verifier_uses_nothing_of_ours() -> None:
    text = (ROOT / "examples" / "verify_without_provstore.py").read_text()
    assert "import provstore" not in text
    assert "from provstore" not in text


def restored(row: dict[str, str], target: Path) -> str:
    """Restore a specimen; return the verdict on what was written, or ``refused``."""
    try:
        with provstore.locate(str(FOLDER / row["verify"]), None) as (reader, packet, _):
            report = provstore.restore(reader, packet, target)
            verdict: str = provstore.verify_against(reader, packet, target).outcome
            return "INCOMPLETE" if report.missing else verdict
    except provstore.ProvError:
        return "refused"


@pytest.mark.parametrize("row", SPECIMENS)
def test_nothing_is_written_outside_the_target(row: dict[str, str], tmp_path: Path) -> None:
    target = tmp_path / "in" / "target"
    target.parent.mkdir()
    found = restored(row, target)
    if row["outcome"] in ("PASS", "INCOMPLETE"):
        assert found == row["outcome"]
    elif row["name"] != "wrong-shape":  # all of its bytes are good, so they may be had
        assert found != "PASS"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert {path.name for path in target.parent.iterdir()} <= {"target"}


@pytest.mark.parametrize("row", SPECIMENS)
def test_a_damaged_pack_never_enters_a_store(row: dict[str, str], tmp_path: Path) -> None:
    store = provstore.init_store(tmp_path / "store")
    try:
        provstore.unpack(store, FOLDER / row["file"])
    except provstore.ProvError:
        assert row["outcome"] in ("FAIL", "error")
        assert store.refs() == []
        assert list(store.objects()) == []
        assert list(store.records()) == []
    else:
        assert row["outcome"] in ("PASS", "INCOMPLETE") or row["code"] == "tree-shape"
        assert row["packet"] in {id.hex() for _, id in store.refs()}
    store.close()


def test_no_specimen_was_changed_and_none_is_missing_from_the_list() -> None:
    found = {f"v1/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.glob("v1/*")}
    assert found == {row["file"]: row["sha256"] for row in INDEX}


def test_specimens_are_small() -> None:
    sizes = [path.stat().st_size for path in FOLDER.glob("v1/*.pack")]
    assert max(sizes) <= MAX_BYTES
    assert sum(sizes) <= MAX_TOGETHER_BYTES


def test_git_leaves_the_bytes_of_packs_alone() -> None:
    lines = (ROOT / ".gitattributes").read_text().splitlines()
    assert "* -text" in lines or "*.pack -text" in lines
    assert "*.pack binary" in lines


def made(tmp_path: Path, names: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the maker on a copy from which some packs are missing."""
    copy = tmp_path / "packs"
    if not copy.exists():
        shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name in names:
        copy.joinpath("v1", f"{name}.pack").unlink()
    command: list[Any] = [sys.executable, "-B", copy / "make.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_packs_come_out_the_same_again(tmp_path: Path) -> None:
    """Stored forms depend on the version of Zstandard; records, objects and ids do not."""
    names = ["hello", "parents", "executable-symlink-emptydir"]
    copy = tmp_path / "packs"
    first = made(tmp_path, names)
    assert first.returncode in (0, 1), first.stderr
    once = [copy.joinpath("v1", f"{name}.pack").read_bytes() for name in names]
    made(tmp_path, names)
    assert [copy.joinpath("v1", f"{name}.pack").read_bytes() for name in names] == once
    rows = {row["name"]: row for row in INDEX}
    for name, data in zip(names, once, strict=True):
        if rows[name]["zstd"] == ".".join(map(str, zstandard.ZSTD_VERSION)):
            assert hashlib.sha256(data).hexdigest() == rows[name]["sha256"]
        with provstore.locate(str(copy.parent / "packs" / rows[name]["verify"]), None) as (_, packet, _o):
            assert packet.hex() == rows[name]["packet"]


def test_the_maker_writes_over_nothing(tmp_path: Path) -> None:
    made(tmp_path, [], "--check")
    pack = tmp_path / "packs" / "v1" / "hello.pack"
    pack.write_bytes(b"mine")
    run = made(tmp_path, [])
    assert run.returncode == 1
    assert "hello" in run.stderr
    assert pack.read_bytes() == b"mine"


def test_one_bit_flipped_anywhere_in_a_pack_is_noticed(tmp_path: Path) -> None:
    """Also where no record or object lies: in the index, its padding, the roots, the hash itself."""
    data = (FOLDER / "v1" / "hello.pack").read_bytes()
    copy = tmp_path / "x.pack"
    unnoticed = []
    for position in range(len(data)):
        copy.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        if look(str(copy))[0] == "PASS":
            unnoticed.append(position)
    assert unnoticed == []
