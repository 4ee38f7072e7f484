"""Bundles made by the real git: whole, thin, cut, shallow, filtered, hostile."""

import os
from pathlib import Path

import pytest
from git_repositories import commit, git, start

from provstore.errors import InputOutputError, InspectError, MissingExtraError
from provstore.files.inspect_bundle import bundle_facts, bundle_header, bundle_problems, is_bundle
from provstore.gitids import ObjectFormat
from provstore.records.facts import FactValue


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three commits, as in the report of the lost bundle."""
    folder = start(tmp_path_factory.mktemp("bundles") / "r")
    git(folder, "config", "uploadpack.allowFilter", "true")
    for number in "123":
        commit(folder, f=number)
    return folder


def oid(folder: Path, name: str) -> str:
    return git(folder, "rev-parse", name).decode().strip()


def bundle(folder: Path, target: Path, *args: str, version: int = 2) -> Path:
    chosen = [f"--version={version}"] if version != 2 else []
    git(folder, "bundle", "create", "-q", *chosen, str(target), *args)
    return target


def facts_of(path: Path) -> dict[str, FactValue]:
    return {fact.key: fact.value for fact in bundle_facts(str(path))}


def test_full_bundle(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "full.bundle", "main", "HEAD")
    assert is_bundle(path.read_bytes()[:20])
    assert bundle_problems(str(path)) == ()
    head = oid(origin, "main")
    assert facts_of(path) == {
        "bundle.version": 2,
        "bundle.object_format": "sha1",
        "bundle.ref": (f"{head} refs/heads/main", f"{head} HEAD"),
        "bundle.head": (head,),
        "bundle.prerequisite": (),
    }
    git(tmp_path, "clone", "-q", "full.bundle", "restored")
    assert oid(tmp_path / "restored", "HEAD") == head


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_version_3(tmp_path: Path, object_format: ObjectFormat) -> None:
    folder = start(tmp_path / "r", object_format)
    first = commit(folder, f="1")
    head = commit(folder, f="2")
    path = bundle(folder, tmp_path / "b.bundle", "main", version=3)
    assert bundle_problems(str(path)) == ()
    facts = facts_of(path)
    assert (facts["bundle.version"], facts["bundle.object_format"]) == (3, object_format)
    assert facts["bundle.head"] == (head,)
    thin = bundle(folder, tmp_path / "thin.bundle", "main~1..main", version=3)
    assert facts_of(thin)["bundle.prerequisite"] == (first,)
    [problem] = bundle_problems(str(thin))
    assert f"needs commit {first}" in problem


def test_thin_bundle_names_the_commit_and_the_remedy(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "thin.bundle", "main~1..main")
    git(origin, "bundle", "verify", "-q", str(path))  # at home all is well
    needed = oid(origin, "main~1")
    [problem] = bundle_problems(os.fsencode(path))
    assert problem.startswith(f"thin.bundle: needs commit {needed}")
    assert problem.endswith("make it again: git bundle create thin.bundle refs/heads/main")
    assert str(tmp_path) not in problem
    assert facts_of(path)["bundle.prerequisite"] == (needed,)


def test_the_remedy_works(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "thin.bundle", "main~1..main")
    [problem] = bundle_problems(str(path))
    words = problem.rpartition("git ")[2].split()
    git(origin, *words[:2], "-q", str(path), *words[3:])
    assert bundle_problems(str(path)) == ()


def test_every_missing_commit_is_named(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    commit(folder, f="0")
    for branch in ("a", "b"):
        git(folder, "checkout", "-qb", branch, "main")
        commit(folder, **{f"file-{branch}": "1"})
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-edit", "a", "b")
    path = bundle(folder, tmp_path / "thin.bundle", "main", "^a", "^b")
    problems = bundle_problems(str(path))
    assert len(problems) == 2
    assert all(any(oid(folder, name) in problem for problem in problems) for name in "ab")


def test_another_bundle_can_provide_the_base(origin: Path, tmp_path: Path) -> None:
    git(origin, "branch", "-f", "one", "main~2")
    git(origin, "branch", "-f", "two", "main~1")
    first = bundle(origin, tmp_path / "1.bundle", "one")
    second = bundle(origin, tmp_path / "2.bundle", "two", "^one")
    third = bundle(origin, tmp_path / "3.bundle", "main", "^two")
    assert bundle_problems(str(third), bases=[str(second), str(first)]) == ()
    [problem] = bundle_problems(str(third), bases=[str(second)])
    assert f"needs commit {oid(origin, 'two')}" in problem
    [problem] = bundle_problems(str(third), bases=[str(first)])
    assert f"needs commit {oid(origin, 'two')}" in problem


@pytest.mark.parametrize("lost", [1, 20, 30, 100])
def test_cut_bundle(origin: Path, tmp_path: Path, lost: int) -> None:
    path = bundle(origin, tmp_path / "b.bundle", "main")
    data = path.read_bytes()
    path.write_bytes(data[:-lost])
    git(origin, "bundle", "verify", "-q", str(path))  # which never reads the pack
    [problem] = bundle_problems(str(path))
    assert "cut short or altered" in problem


def test_bundle_cut_at_its_header(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "b.bundle", "main")
    data = path.read_bytes()
    end = data.index(b"\n\n") + 2
    path.write_bytes(data[:end])
    [problem] = bundle_problems(str(path))
    assert "cut short: 0 bytes of it are left" in problem
    path.write_bytes(data[: end - 1])
    with pytest.raises(InspectError, match="cut short or too long"):
        bundle_problems(str(path))


def test_thin_and_cut_are_both_said(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "b.bundle", "main~1..main")
    path.write_bytes(path.read_bytes()[:-5])
    problems = bundle_problems(str(path))
    assert len(problems) == 2
    assert "altered" in problems[0]
    assert "needs commit" in problems[1]


def test_one_flipped_bit(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "b.bundle", "main")
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)
    [problem] = bundle_problems(str(path))
    assert "checksum does not hold" in problem


def test_ref_that_the_pack_does_not_hold(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "b.bundle", "main")
    head = oid(origin, "main")
    path.write_bytes(path.read_bytes().replace(head.encode(), b"7" * 40, 1))
    [problem] = bundle_problems(str(path))
    assert "refs/heads/main" in problem
    assert "7" * 40 in problem


def test_bundle_of_a_shallow_clone(origin: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "shallow")
    path = bundle(tmp_path / "shallow", tmp_path / "b.bundle", "main")
    [problem] = bundle_problems(str(path))
    assert f"lacks commit {oid(origin, 'main~1')}" in problem


def test_bundle_made_with_a_filter(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "b.bundle", "--filter=blob:none", "main", version=3)
    [problem] = bundle_problems(str(path))
    assert "--filter=blob:none" in problem
    assert facts_of(path)["bundle.filter"] == "blob:none"
    # The same without saying so: the walk finds what is not there.
    path.write_bytes(path.read_bytes().replace(b"@filter=blob:none\n", b""))
    [problem] = bundle_problems(str(path))
    assert "lacks 3 blob(s)" in problem


def test_many_refs_and_hostile_names(tmp_path: Path) -> None:
    folder = start(tmp_path / "r")
    head = commit(folder, f="1")
    name = b"refs/heads/a\xff\xe2\x80\xaeb"
    git(folder, "update-ref", name, head)
    git(folder, "tag", "-am", "t", "v1")
    path = bundle(folder, tmp_path / "-q b.bundle", "--all")
    assert bundle_problems(str(path)) == ()
    refs = facts_of(path)["bundle.ref"]
    assert isinstance(refs, tuple)
    assert rf"{head} refs/heads/a\xff\xe2\x80\xaeb" in refs
    assert f"{oid(folder, 'v1')} refs/tags/v1" in refs


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no Git bundle"),
        (b"PACK", "is no Git bundle"),
        (b"# v2 git bundle", "is no Git bundle"),
        (b"# v4 git bundle\n\nPACK", "version 4 is unknown"),
        (b"# v2 git bundle\nnonsense\n\nPACK", "malformed header line"),
        (b"# v2 git bundle\n-" + b"a" * 39 + b"\n\n", "malformed header line"),
        (b"# v2 git bundle\n" + b"a" * 64 + b" refs/heads/x\n\n", "malformed header line"),
        (b"# v2 git bundle\n" + b"a" * 40 + b" x\n-" + b"a" * 40 + b"\n\n", "malformed header line"),
        (b"# v2 git bundle\n@object-format=sha256\n\n", "malformed header line"),
        (b"# v3 git bundle\n@object-format=md5\n\n", "unknown bundle capability"),
        (b"# v3 git bundle\n@magic\n\n", "unknown bundle capability"),
        (b"# v2 git bundle\n" + b"a" * (2 << 20), "cut short or too long"),
    ],
)
def test_no_bundle(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "b.bundle"
    path.write_bytes(data)
    for look in (bundle_header, bundle_facts, bundle_problems):
        with pytest.raises(InspectError, match=message):
            look(str(path))


def test_bundle_without_refs_or_pack(tmp_path: Path) -> None:
    path = tmp_path / "b.bundle"
    path.write_bytes(b"# v2 git bundle\n\nPACKxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
    problems = bundle_problems(str(path))
    assert [("no Git pack" in p, "names no refs" in p) for p in problems] == [(True, False), (False, True)]
    assert "git bundle create b.bundle --all" in problems[1]


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InspectError, match="no regular file"):
        bundle_problems(str(tmp_path / "fifo"))
    with pytest.raises(InputOutputError, match="No such file"):
        bundle_problems(str(tmp_path / "absent"))


def test_without_git(origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bundle(origin, tmp_path / "b.bundle", "main")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError):
        bundle_problems(str(path))
    assert facts_of(path)["bundle.version"] == 2


def test_nothing_is_left_behind(origin: Path, tmp_path: Path) -> None:
    path = bundle(origin, tmp_path / "b.bundle", "main")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert bundle_problems(str(path), scratch=str(scratch)) == ()
    assert list(scratch.iterdir()) == []
