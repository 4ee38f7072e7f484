"""Repositories whose configuration wants to run a program when somebody looks at them.

Each trap is shown to be armed: the plain git falls into it, the inspector does not.
"""

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from git_repositories import codes, commit, git, start

from provstore.errors import InputOutputError, InspectError, UnsafePathError
from provstore.files import git_program
from provstore.files.git_program import GitPlace
from provstore.files.inspect_git import conversions, inspect_git


def canary(tmp_path: Path, then: str = "cat") -> tuple[Path, str]:
    """A file that must not appear, and a program that makes it."""
    file = tmp_path / "canary"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho ran >>{file}\n{then}\n")
    script.chmod(0o755)
    return file, str(script)


def fsmonitor(folder: Path, script: str) -> None:
    git(folder, "config", "core.fsmonitor", script)


def clean_filter(folder: Path, script: str) -> None:
    git(folder, "config", "filter.x.clean", script)


def process_filter(folder: Path, script: str) -> None:
    git(folder, "config", "filter.x.process", script)
    git(folder, "config", "filter.x.required", "true")


def odd_filter_name(folder: Path, script: str) -> None:
    (folder / ".git" / "info" / "attributes").write_text("f filter=a=b.c\n")
    git(folder, "config", "filter.a=b.c.clean", script)


def included_filter(folder: Path, script: str) -> None:
    (folder / ".git" / "more").write_text(f'[filter "x"]\n\tclean = {script}\n')
    git(folder, "config", "include.path", "more")


def index_hook(folder: Path, script: str) -> None:
    git(folder, "config", "core.hooksPath", "hooks2")
    (folder / "hooks2").mkdir()
    (folder / "hooks2" / "post-index-change").symlink_to(script)


@pytest.mark.parametrize(
    "arm", [fsmonitor, clean_filter, process_filter, odd_filter_name, included_filter, index_hook]
)
def test_looking_runs_nothing(tmp_path: Path, arm: Callable[[Path, str], None]) -> None:
    folder = start(tmp_path / "r")
    commit(folder, **{".gitattributes": "f filter=x\n", "f": "aaaa\n"})
    file, script = canary(tmp_path)
    arm(folder, script)
    (folder / "f").write_text("bbbb\n")  # the same size, so that git must read it
    state = inspect_git(str(folder))
    assert codes(state) == {b"f": ".M"}
    assert conversions(str(folder), state, [b"f"], {}) == {b"f": "unexplained"}
    assert not file.exists()
    subprocess.run(["git", "-C", str(folder), "status"], capture_output=True, check=False)
    assert file.exists(), "the trap was not armed"


def test_submodule_configuration_runs_nothing(tmp_path: Path) -> None:
    library = start(tmp_path / "library")
    commit(library, f="aaaa\n")
    folder = start(tmp_path / "r")
    git(folder, "submodule", "--quiet", "add", str(library), "sub")
    commit(folder)
    file, script = canary(tmp_path)
    fsmonitor(folder / "sub", script)
    state = inspect_git(str(folder))
    assert [s.state for s in state.submodules] == ["clean"]
    assert not file.exists()
    subprocess.run(["git", "-C", str(folder), "status"], capture_output=True, check=False)
    assert file.exists(), "the trap was not armed"


def test_lazy_fetch_starts_no_transport(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a\n", g="b\n")
    file, script = canary(tmp_path, then="exit 1")
    git(folder, "config", "extensions.partialClone", "origin")
    git(folder, "config", "core.repositoryFormatVersion", "1")
    git(folder, "config", "remote.origin.promisor", "true")
    git(folder, "config", "remote.origin.url", f"ext::{script}")
    git(folder, "config", "protocol.ext.allow", "always")
    git(folder, "config", "core.sshCommand", script)
    blob = git(folder, "rev-parse", "HEAD:f").decode().strip()
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (folder / "f").write_text("c\n")
    state = inspect_git(str(folder))
    assert state.missing_blobs == (b"f",)
    assert state.partial_clone
    assert not file.exists()
    subprocess.run(["git", "-C", str(folder), "diff"], capture_output=True, check=False, timeout=60)
    assert file.exists(), "the trap was not armed"


def test_missing_tree_starts_no_transport_either(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a\n")
    file, script = canary(tmp_path, then="exit 1")
    git(folder, "config", "extensions.partialClone", "origin")
    git(folder, "config", "core.repositoryFormatVersion", "1")
    git(folder, "config", "remote.origin.url", f"ext::{script}")
    git(folder, "config", "protocol.ext.allow", "always")
    tree = git(folder, "rev-parse", "HEAD^{tree}").decode().strip()
    (folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    (folder / "new").write_text("n")
    git(folder, "update-index", "--add", "--cacheinfo", f"100644,{'1' * 40},new")
    with pytest.raises(InspectError):
        inspect_git(str(folder))
    assert not file.exists()


def test_work_tree_elsewhere_is_not_looked_at(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("")
    git(folder, "config", "core.worktree", str(tmp_path / "elsewhere"))
    state = inspect_git(str(folder))
    assert (state.untracked, state.dirty) == ((), ())


def test_settings_that_hide_changes_do_not_count(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a\n")
    for key, value in (
        ("core.fileMode", "false"),
        ("core.symlinks", "false"),
        ("core.ignoreStat", "true"),
        ("core.excludesFile", str(tmp_path / "ignore")),
        ("core.attributesFile", str(tmp_path / "attributes")),
        ("status.showUntrackedFiles", "no"),
        ("core.untrackedCache", "true"),
    ):
        git(folder, "config", key, value)
    (tmp_path / "ignore").write_text("*\n")
    (folder / "f").chmod(0o755)
    (folder / "new").write_text("")
    assert git(folder, "status", "--porcelain") == b""
    state = inspect_git(str(folder))
    assert codes(state) == {b"f": ".M"}
    assert state.untracked == (b"new",)


def test_environment_is_not_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a\n")
    other = start(tmp_path / "other")
    commit(other, g="b\n")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    assert [file.path for file in inspect_git(str(folder)).tracked] == [b"f"]
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", ["index", "HEAD", "config"])
def test_pipes_in_place_of_files(tmp_path: Path, name: str) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a\n")
    (folder / ".git" / name).unlink()
    os.mkfifo(folder / ".git" / name)
    with pytest.raises((InspectError, InputOutputError)):
        inspect_git(str(folder), seconds=0.3)


def test_damaged_index(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a\n")
    (folder / ".git" / "index").write_bytes(b"DIRC garbage")
    with pytest.raises(InspectError, match="git ls-files failed"):
        inspect_git(str(folder))


def test_index_with_a_path_out_of_the_tree(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    (folder / "ab").mkdir()
    commit(folder, **{"ab/c": "a\n"})
    index = folder / ".git" / "index"
    data = index.read_bytes()[:-20].replace(b"ab/c", b"../c")
    data = data[: data.index(b"TREE")]
    index.write_bytes(data + hashlib.sha1(data).digest())
    with pytest.raises(UnsafePathError, match="index of"):
        inspect_git(str(folder))


def bomb(folder: Path, depth: int) -> str:
    """A few hundred bytes that describe 10 ** depth files."""
    id = git(folder, "hash-object", "-w", "--stdin", data=b"x").decode().strip()
    line = "100644 blob"
    for _ in range(depth):
        text = "".join(f"{line} {id}\t{number}\n" for number in range(10))
        id = git(folder, "mktree", data=text.encode()).decode().strip()
        line = "040000 tree"
    return id


def test_small_repository_that_describes_billions_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = start(tmp_path / "r")
    id = git(folder, "commit-tree", "-m", "1", bomb(folder, 9)).decode().strip()
    git(folder, "update-ref", "HEAD", id)
    monkeypatch.setattr(git_program, "MEMORY_LIMIT_BYTES", 64 << 20)
    with pytest.raises(InspectError, match=r"git status failed.*(?i:out of memory)"):
        inspect_git(str(folder))


def test_output_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = start(tmp_path / "r")
    id = git(folder, "commit-tree", "-m", "1", bomb(folder, 6)).decode().strip()
    git(folder, "update-ref", "HEAD", id)
    place = GitPlace(git_dir=os.fsencode(folder / ".git"), home=os.fsencode(tmp_path))
    monkeypatch.setattr(git_program, "OUTPUT_LIMIT_BYTES", 1 << 20)
    with pytest.raises(InspectError, match="printed more than"):
        place.run("ls-tree", "-r", "HEAD")
