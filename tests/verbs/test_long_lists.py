"""Lists of very many lines: memory that does not grow with them, and the same answers."""

import json
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from workbench import plant, seal_text

from provstore import merkle
from provstore.errors import CanonError, EmptyError, PinMismatchError, SourceChangedError, UnsafePathError
from provstore.files.checklist import CheckList
from provstore.ids import RawId, digests
from provstore.records.tree import TreeEntry
from provstore.store.memory import MemoryStore
from provstore.verbs import checksumming, declaring
from provstore.verbs.checksumming import CheckSpool, spool_checksums, verify_checksums
from provstore.verbs.declaring import declare

ENTRY = '[[entry]]\nrole = "m"\nkind = "file"\nkeep = "declared"\nmanifest = "x.sum"\n'

LINES = 60_000
"""Held as objects, they would take some 60 MB."""


def digest_of(number: int) -> str:
    return digests(b"%d" % number).sha256.hex()


def write_list(path: Path, count: int) -> Path:
    with open(path, "w", encoding="ascii") as file:
        for number in range(count):
            file.write(f"{digest_of(number)}  shard-{number // 1000:04}/file-{number:07}.bin\n")
    return path


def test_what_was_found_in_a_long_list_waits_on_disk(tmp_path: Path) -> None:
    path = write_list(tmp_path / "x.sum", LINES)
    with CheckSpool() as spool:
        tracemalloc.start()
        report = spool_checksums(spool, path, against=tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (report.outcome, report.checks, spool.outcomes) == ("FAIL", (), {"FAIL": LINES})
        assert peak < 12 << 20
        found = list(spool)
    assert len(found) == LINES
    assert found[-1].path == f"shard-{(LINES - 1) // 1000:04}/file-{LINES - 1:07}.bin"


def test_a_declared_tree_is_built_directory_by_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declaring, "RUN_LINES", 5_000)
    lines = CheckList(bytes(write_list(tmp_path / "x.sum", LINES)), "sha256")
    records = 0

    def add(id: RawId, data: bytes) -> None:
        nonlocal records
        records += 1

    tracemalloc.start()
    found = declare(lines, None, "spec", add)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.files == LINES
    assert records > LINES / 1000
    assert peak < 12 << 20


@pytest.mark.parametrize("run_lines", [3, 1_000_000])
def test_a_declared_tree_is_that_of_its_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_lines: int
) -> None:
    monkeypatch.setattr(declaring, "RUN_LINES", run_lines)
    names = ["a", "a-b", "b/a", "b/a-", "b/c/d", "b/c/d-e/f", "z", *(f"many/{n}" for n in range(200))]
    names += [f"deep{'/x' * n}/y" for n in range(40)]
    random.Random(1).shuffle(names)
    text = "".join(f"{digest_of(number)}  {name}\n" for number, name in enumerate(names))
    (tmp_path / "x.sum").write_text(text)
    members = [
        (name.encode(), TreeEntry(kind="file", name="x", sha256=digest_of(number)))
        for number, name in enumerate(names)
    ]
    expected = merkle.build_tree(members)
    made: list[tuple[RawId, bytes]] = []
    found = declare(
        CheckList(bytes(tmp_path / "x.sum"), "sha256"), None, "spec", lambda id, data: made.append((id, data))
    )
    assert (found.tree, found.files) == (expected[-1][0], len(names))
    assert made[-1] == expected[-1]
    assert dict(made) == dict(expected)


def declared(path: Path, text: str, prefix: str | None = None) -> dict[RawId, bytes]:
    path.write_text(text)
    made: dict[RawId, bytes] = {}
    declare(CheckList(bytes(path), "sha256"), prefix, "spec", made.__setitem__)
    return made


def test_what_no_tree_can_be_made_of_is_refused(tmp_path: Path) -> None:
    a, b = digest_of(1), digest_of(2)
    with pytest.raises(CanonError, match="no directory"):
        declared(tmp_path / "x", f"{a}  n/m\n{b}  n\n")
    with pytest.raises(UnsafePathError):
        declared(tmp_path / "x", f"{a}  ../n\n")
    with pytest.raises(EmptyError, match="q/"):
        declared(tmp_path / "x", f"{a}  n\n", "q/")
    kept = declared(tmp_path / "x", f"{a}  ./n\n{b}  n\n{a}  other\n", None)
    assert b.encode() in b"".join(kept.values()), "the later of two spellings counts"


def test_a_list_that_changes_fails_the_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_list(tmp_path / "x.sum", 10)
    build = declaring._build

    def meddle(*given: object) -> object:
        path.write_bytes(b"")
        return build(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(declaring, "_build", meddle)
    store = MemoryStore()
    with pytest.raises(SourceChangedError):
        seal_text(
            store, tmp_path, '[[entry]]\nrole = "m"\nkind = "file"\nkeep = "declared"\nmanifest = "x.sum"\n'
        )
    assert store.refs() == []


def test_a_declared_tree_can_be_read_before_its_seal_is_finished(tmp_path: Path) -> None:
    """What a seal has to hold is looked for in records that wait on disk."""
    write_list(tmp_path / "x.sum", 3000)
    store = MemoryStore()
    seal_text(store, tmp_path, ENTRY, require=("file-0002999.bin",))
    with pytest.raises(PinMismatchError):
        seal_text(MemoryStore(), tmp_path, ENTRY, require=("file-0003000.bin",))


def test_the_command_says_of_spooled_checks_what_the_report_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksumming, "SPOOL_BYTES", 100)
    names: dict[str | bytes, str | bytes | None] = {f"d/f{n}": str(n) for n in range(1300)}
    tree = plant(tmp_path / "t", names)
    lines = [f"{digest_of(n)}  d/f{n}\n" for n in range(1300)] + [f"{digest_of(1)}  gone\n"]
    (tmp_path / "x.sum").write_text("".join(lines))
    (tree / "d/f7").write_text("other")
    argv = ["verify", "--checksums", os.fspath(tmp_path / "x.sum"), "--against", os.fspath(tree)]
    report = verify_checksums(tmp_path / "x.sum", against=tree)
    done = subprocess.run(
        [sys.executable, "-m", "provstore", *argv, "--json"], capture_output=True, check=False
    )
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert [check["path"] for check in document["checks"]] == [check.path for check in report.checks]
    assert document["outcome"] == report.outcome == "FAIL"
    assert document["objects_checked"] == report.objects_checked == 1299
    shown = subprocess.run([sys.executable, "-m", "provstore", *argv], capture_output=True, check=False)
    assert shown.stdout.count(b"\nPASS  checksums  d/f") == 1299
    assert b"2 FAIL, 1299 PASS" in shown.stdout
