"""The states of real repositories, from clean to broken."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from git_repositories import blob_ids, bytes_of, codes, commit, facts_of, git, start

from provstore.errors import InputOutputError, InspectError, MissingExtraError
from provstore.files.inspect_git import conversions, filtered, git_facts, inspect_git, tracked
from provstore.gitids import Mode, ObjectFormat, TreeMember, blob_id, tree_id


def tree_of(files: dict[bytes, tuple[Mode, bytes]], object_format: ObjectFormat) -> bytes:
    """Git tree of flat paths."""
    members: list[TreeMember] = []
    below: dict[bytes, dict[bytes, tuple[Mode, bytes]]] = {}
    for path, (mode, id) in files.items():
        first, slash, rest = path.partition(b"/")
        if slash:
            below.setdefault(first, {})[rest] = (mode, id)
        else:
            members.append(TreeMember(first, mode, id))
    members += [TreeMember(name, "40000", tree_of(inner, object_format)) for name, inner in below.items()]
    return tree_id(members, object_format)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_clean_tree_proves_equal_to_its_commit(tmp_path: Path, object_format: ObjectFormat) -> None:
    folder = start(tmp_path / "r", object_format)
    (folder / "foo").mkdir()
    (folder / "foo" / "x").write_bytes(b"a\n")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("foo/x")
    head = commit(folder, **{"foo-bar": "b\n", "foo.txt": "c\n", "foo0": "d\n", "zero": ""})
    state = inspect_git(str(folder))
    assert state.commit == head
    assert state.object_format == object_format
    assert state.clean
    found = {path: (mode, blob_id(data, object_format)) for path, mode, data in bytes_of(folder)}
    assert tree_of(found, object_format).hex() == state.tree
    assert state.tree == git(folder, "rev-parse", "HEAD^{tree}").decode().strip()
    assert tracked(state) == {path: (mode, id.hex()) for path, (mode, id) in found.items()}
    assert filtered(state, blob_ids(folder, object_format)) == ()


def test_four_states_from_clean_to_ignored(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    head = commit(folder, f="a\n", gone="a\n", staged="a\n", both="a\n", mode="a\n", type="a\n")
    (folder / "f").write_text("b\n")
    (folder / "gone").unlink()
    for name in ("staged", "both"):
        (folder / name).write_text("bb\n")
    (folder / "new").write_text("n")
    git(folder, "add", "staged", "both", "new")
    (folder / "both").write_text("ccc\n")
    (folder / "mode").chmod(0o755)
    (folder / "type").unlink()
    (folder / "type").symlink_to("f")
    (folder / "later").write_text("l")
    git(folder, "add", "-N", "later")
    (folder / "untracked").mkdir()
    (folder / "untracked" / "u").write_text("u")
    state = inspect_git(str(folder))
    assert state.commit == head
    assert not state.clean
    assert codes(state) == {
        b"both": "MM",
        b"f": ".M",
        b"gone": ".D",
        b"later": ".A",
        b"mode": ".M",
        b"new": "A.",
        b"staged": "M.",
        b"type": ".T",
    }
    assert state.untracked == (b"untracked/u",)
    facts = facts_of(state)
    assert facts["git.commit"] == head
    assert facts["git.clean"] is False
    assert facts["git.untracked"] == ("untracked/u",)
    dirty = facts["git.dirty"]
    assert isinstance(dirty, tuple)
    assert dirty[:2] == ("MM both", ".M f")


def test_untracked_alone_is_not_clean_and_ignored_alone_is(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, **{".gitignore": "*.o\nbuild/\n", "f": "a"})
    for name in ("build/x/y.txt", "only/deep/q.o", "mixed/a.o"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("")
    (folder / "top.o").write_text("")
    state = inspect_git(str(folder))
    assert state.ignored == (b"build/", b"mixed/", b"only/", b"top.o")
    assert state.clean
    (folder / "mixed" / "u").write_text("")
    state = inspect_git(str(folder))
    assert state.ignored == (b"build/", b"mixed/a.o", b"only/", b"top.o")
    assert state.untracked == (b"mixed/u",)
    assert not state.clean


def test_exclude_file_of_the_repository_counts(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a")
    (folder / ".git" / "info" / "exclude").write_text("secret\n")
    (folder / "secret").write_text("")
    state = inspect_git(str(folder))
    assert (state.ignored, state.untracked) == ((b"secret",), ())


def test_nested_repository_is_one_untracked_path(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a")
    commit(start(folder / "nested"), g="b")
    assert inspect_git(str(folder)).untracked == (b"nested/",)


def test_unborn(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    state = inspect_git(str(folder))
    assert (state.commit, state.tree, state.clean) == (None, None, False)
    (folder / "f").write_text("a")
    git(folder, "add", "f")
    state = inspect_git(str(folder))
    assert codes(state) == {b"f": "A."}
    facts = facts_of(state)
    assert facts["git.unborn"] is True
    assert "git.commit" not in facts
    assert "git.tree" not in facts


@pytest.mark.parametrize("text", ["garbage\n", "", "0" * 40 + "\n"])
def test_broken_branch_is_not_unborn(tmp_path: Path, text: str) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a")
    (folder / ".git" / "refs" / "heads" / "main").write_text(text)
    with pytest.raises(InspectError):
        inspect_git(str(folder))


def test_commit_that_is_not_there(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a")
    (folder / ".git" / "refs" / "heads" / "main").write_text("7" * 40 + "\n")
    with pytest.raises(InspectError, match="does not hold"):
        inspect_git(str(folder))


def test_not_a_repository(tmp_path: Path) -> None:
    with pytest.raises(InspectError, match="not the top of a Git work tree"):
        inspect_git(str(tmp_path))
    (tmp_path / ".git").write_text("nonsense")
    with pytest.raises(InspectError, match="gitdir: PATH"):
        inspect_git(str(tmp_path))
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    with pytest.raises(InspectError, match="not the top"):
        inspect_git(str(tmp_path))
    (tmp_path / "nowhere").mkdir()
    with pytest.raises(InspectError, match="no objects"):
        inspect_git(str(tmp_path))


def test_directory_inside_a_work_tree_has_no_commit_of_its_own(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    (folder / "inside").mkdir()
    commit(folder, f="a")
    with pytest.raises(InspectError, match="not the top of a Git work tree"):
        inspect_git(str(folder / "inside"))


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = start(tmp_path / "r")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="git is needed"):
        inspect_git(str(folder))


def test_time_limit(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    os.mkfifo(tmp_path / "fifo")
    git(folder, "config", "include.path", str(tmp_path / "fifo"))
    with pytest.raises(InputOutputError, match=r"git config did not finish within 0\.2 s"):
        inspect_git(str(folder), seconds=0.2)


def test_hostile_names_come_back_as_bytes(tmp_path: Path) -> None:
    folder = os.fsencode(start(tmp_path / "r"))
    names = [
        b"a\nb",
        b"a\xffb",
        b"bad\x1b[2JPASS",
        b" lead",
        b"-c",
        b":(top)x",
        b'q"uote',
        b"tab\tname",
        b"*",
    ]
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"1")
    commit(tmp_path / "r")
    assert inspect_git(folder).clean
    for name in names[:5]:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"22")
    for name in names:
        with open(os.path.join(folder, name + b".new"), "wb") as file:
            file.write(b"3")
    state = inspect_git(folder)
    assert codes(state) == dict.fromkeys(names[:5], ".M")
    assert state.untracked == tuple(sorted(name + b".new" for name in names))
    facts = facts_of(state)
    dirty = facts["git.dirty"]
    assert isinstance(dirty, tuple)
    assert r".M a\xffb" in dirty
    assert "\x1b" not in msgspec.json.encode(git_facts(state)).decode()
    ids = blob_ids(tmp_path / "r")
    assert filtered(state, ids) == ()
    assert set(conversions(folder, state, names, {}).values()) == {"unexplained", "built-in"}


def test_merge_conflict(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a\n")
    git(folder, "checkout", "-qb", "other")
    commit(folder, f="b\n")
    git(folder, "checkout", "-q", "main")
    commit(folder, f="c\n")
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, "merge", "-q", "other")
    state = inspect_git(str(folder))
    assert codes(state) == {b"f": "UU"}
    assert state.tracked == ()


def test_linked_work_tree_and_split_index(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a", g="b")
    git(folder, "worktree", "add", "-q", "-b", "side", "../linked")
    linked = tmp_path / "linked"
    head = commit(linked, g="c")
    git(linked, "update-index", "--split-index")
    git(linked, "update-index", "--chmod=+x", "f")
    state = inspect_git(str(linked))
    assert state.commit == head != inspect_git(str(folder)).commit
    assert codes(state) == {b"f": "MM"}
    assert [file.path for file in state.tracked] == [b"f", b"g"]


def test_nothing_in_the_repository_is_touched(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="a", g="b")
    git(folder, "update-index", "--assume-unchanged", "g")
    os.utime(folder / "f", (1, 1))  # stale stat data, which git status would write back

    def snapshot() -> dict[Path, tuple[int, int, bytes]]:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return {path: (path.stat().st_mtime_ns, path.stat().st_ino, path.read_bytes()) for path in files}

    before = snapshot()
    assert inspect_git(str(folder)).clean
    assert snapshot() == before
