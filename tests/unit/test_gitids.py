import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provstore.errors import DigestError, MalformedError, UnsafePathError
from provstore.gitids import BlobHasher, Mode, ObjectFormat, TreeMember, blob_id, swhid, tree_id

FORMATS: tuple[ObjectFormat, ...] = ("sha1", "sha256")


def git(folder: Path, *args: str | bytes, data: bytes = b"") -> bytes:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "LC_ALL": "C",
    }
    return subprocess.run(
        ["git", "-C", str(folder), *args], input=data, stdout=subprocess.PIPE, check=True, env=env
    ).stdout


def known_members(algorithm: ObjectFormat) -> dict[bytes, TreeMember]:
    """A tree whose order differs between plain byte order and Git's, with an empty directory."""

    def blob(name: bytes, data: bytes, mode: Mode = "100644") -> TreeMember:
        return TreeMember(name, mode, blob_id(data, algorithm))

    foo = tree_id([blob(b"x", b"a\n")], algorithm)
    members = [
        blob(b"zero", b""),
        blob(b"run.sh", b"#!/bin/sh\n", "100755"),
        blob(b"link", b"foo/x", "120000"),
        TreeMember(b"foo", "40000", foo),
        blob(b"foo0", b"d\n"),
        blob(b"foo.txt", b"c\n"),
        blob(b"foo-bar", b"b\n"),
        TreeMember(b"empty", "40000", tree_id([], algorithm)),
    ]
    return {member.name: member for member in members}


def without_empty(members: Mapping[bytes, TreeMember]) -> list[TreeMember]:
    return [member for name, member in members.items() if name != b"empty"]


def test_known_tree_sha1() -> None:
    members = known_members("sha1")
    assert tree_id(without_empty(members)).hex() == "07ca39207ea3e1e62b8529d9fce53b273a83c8e3"


def test_known_tree_sha256() -> None:
    found = tree_id(without_empty(known_members("sha256")), "sha256").hex()
    assert found == "9ef4ce253275606c80b1d8c2b458f883341e3ab568573895fe50d45375f8aa57"


def test_known_directory_swhid_keeps_the_empty_directory() -> None:
    found = swhid("dir", tree_id(known_members("sha1").values()))
    assert found == "swh:1:dir:6649f4a6d3d6bdc134a3efc744ddd0eeeef6cd84"


def test_known_blobs() -> None:
    assert blob_id(b"").hex() == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    empty = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
    assert blob_id(b"", "sha256").hex() == empty
    assert blob_id(b"foo/x").hex() == "5252be0e1a6fe3ef133cfd7a2367781bfcd53c7d"


def test_directory_sorts_as_if_it_ended_in_a_slash() -> None:
    """`foo/ foo-bar foo.txt foo0` as Git orders it, and not as plain names."""
    members = known_members("sha1")
    four = [members[name] for name in (b"foo", b"foo-bar", b"foo.txt", b"foo0")]
    assert tree_id(four).hex() == "906952b1dd5da165c84fb011264a24d5ff69e40a"
    plain = [member._replace(mode="100644") for member in four]
    assert tree_id(plain) != tree_id(four)


@pytest.mark.parametrize("algorithm", FORMATS)
def test_tree_equals_git_write_tree(tmp_path: Path, algorithm: ObjectFormat) -> None:
    git(tmp_path, "init", "-q", f"--object-format={algorithm}")
    (tmp_path / "foo").mkdir()
    (tmp_path / "empty").mkdir()
    for name, data in (
        ("foo/x", "a\n"),
        ("foo-bar", "b\n"),
        ("foo.txt", "c\n"),
        ("foo0", "d\n"),
        ("zero", ""),
    ):
        (tmp_path / name).write_text(data)
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "link").symlink_to("foo/x")
    git(tmp_path, "add", "-A")
    expected = git(tmp_path, "write-tree").decode().strip()
    assert tree_id(without_empty(known_members(algorithm)), algorithm).hex() == expected


@pytest.mark.parametrize("algorithm", FORMATS)
@pytest.mark.parametrize("data", [b"", b"x", b"a\r\nb\r\n", bytes(range(256)) * 5000])
def test_blob_equals_git_hash_object(tmp_path: Path, algorithm: ObjectFormat, data: bytes) -> None:
    git(tmp_path, "init", "-q", f"--object-format={algorithm}")
    expected = git(tmp_path, "hash-object", "--stdin", "--no-filters", data=data).decode().strip()
    assert blob_id(data, algorithm).hex() == expected


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[ObjectFormat, Path]:
    made: dict[ObjectFormat, Path] = {}
    for algorithm in FORMATS:
        made[algorithm] = tmp_path_factory.mktemp(algorithm)
        git(made[algorithm], "init", "-q", f"--object-format={algorithm}")
    return made


names = st.binary(min_size=1, max_size=6).filter(
    lambda name: name not in (b".", b"..") and b"/" not in name and b"\0" not in name
)
close_names = st.sampled_from([b"a", b"a-", b"a.", b"a0", b"a b", b"a\n", b"ab", b"\xff", b"a\xff", b"a\x2e"])
modes: st.SearchStrategy[str] = st.sampled_from(["100644", "100755", "120000", "40000", "160000"])


@settings(max_examples=40, deadline=None)
@given(
    algorithm=st.sampled_from(FORMATS),
    shape=st.dictionaries(
        names | close_names, st.tuples(modes, st.binary(min_size=32, max_size=32)), max_size=8
    ),
)
def test_tree_equals_git_mktree(
    repositories: dict[ObjectFormat, Path], algorithm: ObjectFormat, shape: dict[bytes, tuple[str, bytes]]
) -> None:
    length = 20 if algorithm == "sha1" else 32
    members = [TreeMember(name, cast(Mode, mode), id[:length]) for name, (mode, id) in shape.items()]
    kinds = {"40000": b"tree", "160000": b"commit"}
    lines = [
        b"%s %s %s\t%s\0" % (m.mode.encode(), kinds.get(m.mode, b"blob"), m.id.hex().encode(), m.name)
        for m in members
    ]
    expected = git(repositories[algorithm], "mktree", "-z", "--missing", data=b"".join(lines))
    assert tree_id(members, algorithm).hex() == expected.decode().strip()


@given(st.lists(st.binary(max_size=50), max_size=6), st.sampled_from(FORMATS))
def test_stream_equals_whole(parts: list[bytes], algorithm: ObjectFormat) -> None:
    whole = b"".join(parts)
    hasher = BlobHasher(len(whole), algorithm)
    for part in parts:
        hasher.update(memoryview(part))
    assert hasher.digest() == blob_id(whole, algorithm)


@pytest.mark.parametrize("size", [0, 2, 4])
def test_stream_of_another_length_has_no_id(size: int) -> None:
    hasher = BlobHasher(size)
    hasher.update(b"abc")
    with pytest.raises(MalformedError, match=f"announced {size} bytes, got 3"):
        hasher.digest()


def test_order_of_members_does_not_matter() -> None:
    members = list(known_members("sha1").values())
    assert tree_id(members) == tree_id(reversed(members))


def test_name_given_twice() -> None:
    blob = TreeMember(b"a", "100644", bytes(20))
    with pytest.raises(MalformedError, match="twice"):
        tree_id([blob, TreeMember(b"a-", "100644", bytes(20)), TreeMember(b"a", "40000", bytes(20))])


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"a\0b"])
def test_unsafe_name(name: bytes) -> None:
    with pytest.raises(UnsafePathError):
        tree_id([TreeMember(name, "100644", bytes(20))])


def test_unknown_mode_and_wrong_length() -> None:
    with pytest.raises(MalformedError, match="unknown mode '040000'"):
        tree_id([TreeMember(b"a", cast(Mode, "040000"), bytes(20))])
    with pytest.raises(MalformedError, match="id of 20 bytes, sha256 needs 32"):
        tree_id([TreeMember(b"a", "100644", bytes(20))], "sha256")


def test_swhid_kinds_and_length() -> None:
    assert swhid("rev", bytes(20)) == "swh:1:rev:" + "0" * 40
    assert swhid("cnt", blob_id(b"foo/x")) == "swh:1:cnt:5252be0e1a6fe3ef133cfd7a2367781bfcd53c7d"
    with pytest.raises(DigestError, match="20 bytes"):
        swhid("cnt", bytes(32))
