"""Bytes that are not what the commit says: filters, hidden changes, LFS, submodules, partial clones."""

import hashlib
import os
import shutil
from pathlib import Path

import msgspec
import pytest
from git_repositories import blob_ids, codes, commit, facts_of, git, start

from provstore.files.git_state import GitChange, GitState, TrackedFile
from provstore.files.inspect_git import conversions, filtered, git_facts, inspect_git, tracked
from provstore.gitids import blob_id

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"


def checksum(data: bytes) -> bytes:
    return hashlib.sha1(data).digest()


def test_line_end_filter(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    (folder / "f").write_bytes(b"a\r\nb\r\n")
    os.utime(folder / "f", (1, 1))  # git trusts its stat data only if they are older than the index
    git(folder, "-c", "core.autocrlf=input", "-c", "core.safecrlf=false", "add", "f")
    git(folder, "commit", "-qm", "1")
    state = inspect_git(str(folder))
    assert state.dirty == ()
    assert tracked(state)[b"f"] == ("100644", blob_id(b"a\nb\n").hex())
    assert filtered(state, blob_ids(folder)) == (b"f",)
    assert conversions(str(folder), state, [b"f"], {}) == {b"f": "line-ends"}
    # Also where Git has to compare contents, without knowing the setting of whoever committed.
    os.utime(folder / "f", (2, 2))
    state = inspect_git(str(folder))
    assert codes(state) == {b"f": ".M"}
    assert conversions(str(folder), state, [b"f"], {}) == {b"f": "line-ends"}
    git(folder, "config", "core.autocrlf", "input")
    assert conversions(str(folder), state, [b"f"], {}) == {b"f": "built-in"}


def test_line_ends_of_gitattributes(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    (folder / ".gitattributes").write_text("*.bat text eol=crlf\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "x.bat").write_bytes(b"a\r\n")
    commit(folder, plain="a\n")
    os.utime(folder / "sub" / "x.bat", (1, 1))
    state = inspect_git(str(folder))
    assert state.clean
    assert filtered(state, blob_ids(folder)) == (b"sub/x.bat",)
    assert conversions(str(folder), state, [b"sub/x.bat"], {}) == {b"sub/x.bat": "built-in"}
    (folder / "sub" / "x.bat").write_bytes(b"b\r\n")
    state = inspect_git(str(folder))
    assert codes(state) == {b"sub/x.bat": ".M"}
    assert filtered(state, blob_ids(folder)) == ()
    assert conversions(str(folder), state, [b"sub/x.bat"], {}) == {b"sub/x.bat": "unexplained"}


def test_forged_stat_data_is_found_by_the_bytes(tmp_path: Path) -> None:
    """An index that claims to have seen the present bytes but names the blob of others."""
    folder = start(tmp_path / "r")
    commit(folder, f="old\n")
    (folder / "f").write_text("new\n")
    os.utime(folder / "f", (1, 1))
    git(folder, "add", "f")
    index = folder / ".git" / "index"
    data = index.read_bytes()[:-20].replace(blob_id(b"new\n"), blob_id(b"old\n"))
    at = data.index(b"TREE")
    data = data[:at]
    index.write_bytes(data + checksum(data))
    assert git(folder, "status", "--porcelain") == b""
    state = inspect_git(str(folder))
    assert state.dirty == ()
    assert filtered(state, blob_ids(folder)) == (b"f",)
    assert conversions(str(folder), state, [b"f"], {}) == {b"f": "unexplained"}
    # As old as the file it describes, the index is not to be trusted, and our copy must keep that age.
    seen = os.stat(folder / "f")
    os.utime(index, ns=(seen.st_mtime_ns, seen.st_mtime_ns))
    assert codes(inspect_git(str(folder))) == {b"f": ".M"}


def test_hidden_changes(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, assumed="a", skipped="a", absent="a", f="a")
    git(folder, "update-index", "--assume-unchanged", "assumed")
    git(folder, "update-index", "--skip-worktree", "skipped", "absent")
    (folder / "assumed").write_text("bb")
    (folder / "skipped").write_text("bb")
    (folder / "absent").unlink()
    assert git(folder, "status", "--porcelain") == b""
    state = inspect_git(str(folder))
    assert state.assume_unchanged == (b"assumed",)
    assert state.skip_worktree == (b"absent", b"skipped")
    assert codes(state) == {b"assumed": ".M", b"skipped": ".M"}
    assert not state.clean
    assert git(folder, "ls-files", "-v", "assumed") == b"h assumed\n"


def test_lfs_pointers(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    payload = b"x" * 2000
    sha256 = hashlib.sha256(payload)
    text = POINTER % (sha256.hexdigest().encode(), 2000)
    for name in ("pointer", "payload", "absent", "other"):
        (folder / name).write_bytes(text)
    commit(folder, prose="version https://git-lfs.github.com/spec/v1\nno digest\n")
    (folder / "payload").write_bytes(payload)
    (folder / "absent").unlink()
    (folder / "other").write_bytes(b"y")
    state = inspect_git(str(folder))
    assert [(file.path, file.state) for file in state.lfs] == [
        (b"absent", "absent"),
        (b"other", "other"),
        (b"payload", "payload"),
        (b"pointer", "pointer"),
    ]
    assert facts_of(state)["git.lfs_pointer"] == tuple(
        f"{name} sha256:{sha256.hexdigest()} 2000 {name}"
        for name in ("absent", "other", "payload", "pointer")
    )
    changed = [b"payload", b"other", b"absent"]
    assert conversions(str(folder), state, changed, {b"payload": sha256.digest(), b"other": b"z"}) == {
        b"absent": "unexplained",
        b"other": "unexplained",
        b"payload": "lfs",
    }


def test_submodules(tmp_path: Path) -> None:
    library = start(tmp_path / "library")
    first = commit(library, lib="1\n")
    second = commit(library, lib="2\n")
    folder = start(tmp_path / "r")
    for name in ("clean", "moved", "dirty", "absent"):
        git(folder, "submodule", "--quiet", "add", str(library), name)
    commit(folder, f="a")
    git(folder, "submodule", "--quiet", "deinit", "-f", "absent")
    git(folder / "moved", "checkout", "-q", first)
    (folder / "dirty" / "lib").write_text("hand edited\n")
    (folder / "dirty" / "extra").write_text("u")
    state = inspect_git(str(folder))
    assert {s.path: (s.state, s.recorded, s.checked_out) for s in state.submodules} == {
        b"absent": ("absent", second, None),
        b"clean": ("clean", second, second),
        b"dirty": ("dirty", second, second),
        b"moved": ("moved", second, first),
    }
    assert not state.clean
    assert codes(state) == {b"moved": ".M"}
    assert facts_of(state)["git.submodule"] == (
        f"absent {second} - absent",
        f"clean {second} {second} clean",
        f"dirty {second} {second} dirty",
        f"moved {second} {first} moved",
    )
    inside = facts_of(state, "dirty")
    assert inside["git.dirty"] == (".M lib",)
    assert inside["git.untracked"] == ("extra",)
    assert tracked(state)[b"dirty"] == ("160000", second)
    wrong = {b"clean/lib": blob_id(b"2\r\n"), b"dirty/lib": blob_id(b"hand edited\n")}
    assert filtered(state, wrong) == (b"clean/lib",)
    (folder / "clean" / "lib").write_bytes(b"2\r\n")
    git(folder / "clean", "config", "core.autocrlf", "input")
    assert conversions(str(folder), state, [b"clean/lib"], {}) == {b"clean/lib": "built-in"}


def test_submodule_behind_a_symlink_is_not_entered(tmp_path: Path) -> None:
    library = start(tmp_path / "library")
    commit(library, lib="1\n")
    folder = start(tmp_path / "r")
    git(folder, "submodule", "--quiet", "add", str(library), "sub")
    commit(folder)
    shutil.rmtree(folder / "sub")
    (folder / "sub").symlink_to(library)
    state = inspect_git(str(folder))
    assert [(s.state, s.inner) for s in state.submodules] == [("absent", None)]
    assert codes(state) == {b"sub": ".T"}


def test_clones_that_left_something_out(tmp_path: Path) -> None:
    origin = start(tmp_path / "origin")
    git(origin, "config", "uploadpack.allowFilter", "true")
    commit(origin, f="1\n")
    commit(origin, f="2\n")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "shallow")
    state = inspect_git(str(tmp_path / "shallow"))
    assert (state.shallow, state.partial_clone, state.clean) == (True, False, True)
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{origin}", "partial")
    git(tmp_path / "partial", "read-tree", "HEAD")
    state = inspect_git(str(tmp_path / "partial"))
    assert (state.shallow, state.partial_clone) == (False, True)
    assert state.missing_blobs == (b"f",)
    assert codes(state) == {b"f": ".D"}
    assert facts_of(state)["git.remote"] == ("origin (local path)",)
    assert str(tmp_path) not in msgspec.json.encode(git_facts(state)).decode()


def test_remotes_lose_their_credentials(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    git(folder, "remote", "add", "origin", "https://user:ghp_token@example.org/a.git")
    git(folder, "remote", "add", "b", "git@example.org:b.git")
    state = inspect_git(str(folder))
    assert facts_of(state)["git.remote"] == ("origin https://example.org/a.git", "b git@example.org:b.git")
    assert "ghp_token" not in repr(state)


def test_files_left_out_of_the_comparison_are_not_called_equal_or_different() -> None:
    file = TrackedFile(b"f", "100644", blob_id(b"a").hex())
    state = GitState(commit=None, tree=None, object_format="sha1", tracked=(file,))
    assert filtered(state, {}) == ()
    assert filtered(state, {b"f": blob_id(b"a"), b"g": blob_id(b"b")}) == ()
    assert filtered(state, {b"f": blob_id(b"b")}) == (b"f",)


@pytest.mark.parametrize(
    ("code", "found"), [("M.", (b"f",)), ("A.", (b"f",)), ("MM", ()), (".M", ()), (".T", ())]
)
def test_a_change_that_git_reports_is_no_filter(code: str, found: tuple[bytes, ...]) -> None:
    file = TrackedFile(b"f", "100644", blob_id(b"a").hex())
    dirty = (GitChange(code, b"f"),)
    state = GitState(commit=None, tree=None, object_format="sha1", tracked=(file,), dirty=dirty)
    assert filtered(state, {b"f": blob_id(b"b")}) == found
