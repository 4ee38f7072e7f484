"""Holding directories and checksum lists: what is missing, extra, changed, of another type or mode."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from workbench import findings, listed, plant, seal, seal_text

from provstore.errors import ChecksumFileError, EmptyError, InputOutputError, NotFoundError
from provstore.ids import object_id
from provstore.reports import VerifyReport
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.verbs import comparing, holding
from provstore.verbs.checksumming import verify_checksums
from provstore.verbs.comparing import verify_against
from provstore.verbs.restoring import restore

TWO = (
    '[[entry]]\nrole = "a"\nkind = "evidence"\npath = "one"\n'
    '[[entry]]\nrole = "b/c"\nkind = "file"\npath = "two"\n'
    '[[entry]]\nrole = "w"\nkind = "file"\nkeep = "declared"\n'
    f'sha256 = "{hashlib.sha256(b"w").hexdigest()}"\n'
)


@pytest.fixture
def restored(tmp_path: Path) -> tuple[MemoryStore, bytes, Path]:
    plant(tmp_path, {"one/f": "x", "one/d/g": "y", "two": "z"})
    store = MemoryStore()
    packet = seal_text(store, tmp_path, TWO)
    restore(store, packet, tmp_path / "out")
    (tmp_path / "out/w").write_text("w")
    return store, packet, tmp_path / "out"


def test_what_restore_wrote_is_as_sealed(restored: tuple[MemoryStore, bytes, Path]) -> None:
    store, packet, out = restored
    report = verify_against(store, packet, out)
    assert (report.outcome, findings(report)) == ("PASS", {})
    assert report.objects_checked == 4


def test_declared_digests_are_held_against_the_directory_too(
    restored: tuple[MemoryStore, bytes, Path],
) -> None:
    store, packet, out = restored
    (out / "w").write_text("v")
    assert findings(verify_against(store, packet, out)) == {"w": "changed"}
    (out / "w").unlink()
    assert findings(verify_against(store, packet, out)) == {"w": "missing"}


def test_strangers_beside_the_roles_are_extra(restored: tuple[MemoryStore, bytes, Path]) -> None:
    store, packet, out = restored
    plant(out, {"notes.txt": "n", "b/other": "n", "a/d/h": "n", "empty": None})
    assert findings(verify_against(store, packet, out)) == {
        "notes.txt": "extra",
        "b/other": "extra",
        "a/d/h": "extra",
        "empty": "extra",
    }


def test_a_whole_directory_that_is_gone_is_named_member_by_member(
    restored: tuple[MemoryStore, bytes, Path],
) -> None:
    store, packet, out = restored
    shutil.rmtree(out / "a")
    (out / "b/c").unlink()
    (out / "b/c").mkdir()
    found = findings(verify_against(store, packet, out))
    assert found["a/f"] == "missing"
    assert found["a/d/g"] == "missing"
    assert found["b/c"] == "type"


def test_a_link_above_a_role_is_not_the_directory_that_was_sealed(
    restored: tuple[MemoryStore, bytes, Path],
) -> None:
    store, packet, out = restored
    (out / "b").rename(out.parent / "elsewhere")
    (out / "b").symlink_to(out.parent / "elsewhere")
    assert verify_against(store, packet, out).outcome == "FAIL"


def test_no_directory(restored: tuple[MemoryStore, bytes, Path]) -> None:
    store, packet, out = restored
    for path in (out / "gone", out / "w"):
        with pytest.raises(NotFoundError):
            verify_against(store, packet, path)


def test_the_store_beside_the_members_is_no_stranger(tmp_path: Path) -> None:
    plant(tmp_path, {"w/one/f": "x", "w/two": "z"})
    with LmdbStore.create(os.fspath(tmp_path / "w/.prov")) as store:
        packet = seal(store, tmp_path / "w/one", tmp_path / "w/two")
        assert verify_against(store, packet, tmp_path / "w").outcome == "PASS"


def test_a_damaged_store_does_not_hide_what_the_directory_lacks(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a": "1", "b": "2"})
    store = MemoryStore()
    packet = seal(store, tree)
    store._content.data[object_id(b"1")] = b"0"
    (tree / "a").write_text("9")
    (tree / "b").unlink()
    assert findings(verify_against(store, packet, tree)) == {"a": "changed", "b": "missing"}


# Every way to differ, compared on all cores and by building a tree

WAYS: dict[str, dict[str | bytes, str | bytes | None]] = {
    "file": {"f": "f"},
    "other": {"f": "g"},
    "longer": {"f": "f" * 5_000_000},
    "program": {"f": "+xf"},
    "link": {"f": "->a"},
    "other-link": {"f": "->b"},
    "empty": {"f": None},
    "full": {"f/x": "x", "f/y/z": "z", "f/l": "->x"},
    "half": {"f/x": "x", "f/y": None, "f/l": "->y"},
    "none": {},
    "pointer": {
        "f": f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n",
    },
}


@pytest.mark.parametrize("after", WAYS)
@pytest.mark.parametrize("before", WAYS)
@pytest.mark.parametrize("helpers", [0, 2])
def test_both_ways_of_comparing_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, helpers: int
) -> None:
    beside: dict[str | bytes, str | bytes | None] = {"a": "1", "d/c": "->a", b"z\xff": "2", "t.tmp": "3"}
    sealed = plant(tmp_path / "sealed", {**beside, **WAYS[before]})
    here = plant(tmp_path / "here", {**beside, **WAYS[after], "e.tmp": "4"})
    store = MemoryStore()
    packet = seal(store, sealed, exclude=("*.tmp",), allow_pointers=True)
    monkeypatch.setattr(holding, "WORTH_HELPERS_FILES", 0)
    monkeypatch.setattr(holding, "spare_cores", lambda: helpers)
    for only in (None, "[af]*", "f/*"):
        quick = said(store, packet, here, only)
        with monkeypatch.context() as patched:
            patched.setattr(comparing, "hold", unable)
            assert said(store, packet, here, only) == quick
        if only is None:
            assert isinstance(quick, VerifyReport)
            assert (quick.outcome == "PASS") == (before == after)


def said(store: MemoryStore, packet: bytes, here: Path, only: str | None) -> VerifyReport | str:
    try:
        return verify_against(store, packet, here, only=only)
    except EmptyError as error:
        return error.message


def unable(*_: object) -> None:
    raise NotFoundError("0" * 64, "no such record")


# Checksum lists


def sums(tree: Path, program: str, *options: str) -> bytes:
    names = sorted(os.listdir(os.fsencode(tree)))
    return subprocess.run([program, *options, "--", *names], cwd=tree, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("program", "options"),
    [("sha256sum", []), ("sha256sum", ["--tag"]), ("sha256sum", ["-b"]), ("b3sum", [])],
)
def test_lists_of_the_real_programs(tmp_path: Path, program: str, options: list[str]) -> None:
    names: dict[str | bytes, str | bytes | None] = {
        "a b": "1",
        " lead": "2",
        "x\\y": "3",
        "n\nl": "4",
        "(z) = q": "5",
    }
    tree = plant(tmp_path / "t", names)
    (tmp_path / "x.sum").write_bytes(sums(tree, program, *options))
    report = verify_checksums(tmp_path / "x.sum", against=tree)
    assert (report.outcome, report.objects_checked) == ("PASS", 5)
    (tree / "a b").write_text("!")
    (tree / "x\\y").unlink()
    found = findings(verify_checksums(tmp_path / "x.sum", against=tree))
    assert found == {"a b": "changed", "x\\x5cy": "missing"}


def test_an_algorithm_that_was_named_is_the_only_one(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x"})
    for digest, passing in ((hashlib.sha256(b"x").hexdigest(), "sha256"), (object_id(b"x").hex(), "blake3")):
        (tmp_path / "x.sum").write_text(f"{digest}  f\n")
        for algorithm in (None, "sha256", "blake3"):
            report = verify_checksums(tmp_path / "x.sum", against=tree, algorithm=algorithm)
            assert (report.outcome == "PASS") == (algorithm in (None, passing))


def test_a_listed_path_that_leads_away_is_not_looked_at(tmp_path: Path) -> None:
    plant(tmp_path, {"t/f": "x", "secret": "s"})
    digest = hashlib.sha256(b"s").hexdigest()
    (tmp_path / "x.sum").write_text(f"{digest}  ../secret\n{digest}  {tmp_path}/secret\n{digest}  a//b\n")
    report = verify_checksums(tmp_path / "x.sum", against=tmp_path / "t")
    assert report.outcome == "FAIL"
    assert {check.code for check in report.checks} == {"unsafe-path"}


def test_lists_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.sum").write_text("what\n")
    with pytest.raises(ChecksumFileError):
        verify_checksums(tmp_path / "x.sum")
    with pytest.raises(InputOutputError):
        verify_checksums(tmp_path / "gone.sum")
    with pytest.raises(InputOutputError):
        verify_checksums(tmp_path)
    (tmp_path / "e.sum").write_text("\n")
    with pytest.raises(EmptyError):
        verify_checksums(tmp_path / "e.sum")
    store = MemoryStore()
    assert listed(store, seal(store, tmp_path / "x.sum")).keys() == {"x.sum"}
