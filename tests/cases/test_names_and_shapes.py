"""Edge cases of names and tree shapes (1 to 17): each began as a public report about another tool."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from workbench import (
    STORES,
    at_most,
    findings,
    listed,
    open_store_of,
    packet_of,
    plant,
    seal,
    snapshot,
)

from provstore.errors import SourceUnreadableError, SpecialFileError
from provstore.paths import unshow
from provstore.reports import SealReport
from provstore.store.memory import MemoryStore
from provstore.verbs.checksumming import verify_checksums
from provstore.verbs.comparing import verify_against
from provstore.verbs.diffing import diff, side
from provstore.verbs.exporting import export
from provstore.verbs.listing import cat
from provstore.verbs.restoring import restore
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.verifying import verify


def report_of(path: Path, **options: object) -> SealReport:
    return seal_paths(MemoryStore(), [path], options=SealOptions(**options))  # type: ignore[arg-type]


# 1. Symlink cycle


def test_1_links_in_a_circle_are_members(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a/loop": "->../a", "loop2": "->loop2"})
    store = MemoryStore()
    packet = seal(store, tree)
    assert seal(store, tree) == packet == seal(MemoryStore(), tree)
    members = listed(store, packet)
    assert {path: member.target for path, member in members.items()} == {"a/loop": "../a", "loop2": "loop2"}
    assert {member.type for member in members.values()} == {"symlink"}


def test_1_the_text_of_a_link_is_its_content(tmp_path: Path) -> None:
    store = MemoryStore()
    first = seal(store, plant(tmp_path / "t", {"f": "x", "l": "->f"}))
    (tmp_path / "t/l").unlink()
    (tmp_path / "t/l").symlink_to("./f")
    assert seal(store, tmp_path / "t") != first
    assert findings(verify_against(store, first, tmp_path / "t")) == {"l": "changed"}


def test_1_a_followed_circle_is_refused_by_name(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a/f": "x", "a/loop": "->../a"})
    with pytest.raises(SourceUnreadableError, match="a/loop") as raised:
        report_of(tree, follow_symlinks=True)
    assert raised.value.exit_code != 0


# 2. Symlink inside an ignored path


def test_2_exclusion_comes_before_any_look(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {".cache/x": "->/nonexistent", "w.bin": "w", "deep/.cache/y": "y"})
    os.mkfifo(tree / ".cache/pipe")
    report = report_of(tree, exclude=(".cache",), follow_symlinks=True)
    assert [(item.path, item.rule) for item in report.excluded] == [
        (".cache", ".cache"),
        ("deep/.cache", ".cache"),
    ]
    assert report.files == 1


def test_2_a_pattern_with_a_slash_is_held_against_the_whole_path(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a/b/f": "1", "b/f": "2", "a/c.tmp": "3", "c.tmp": "4"})
    report = report_of(tree, exclude=("a/b", "*.tmp"))
    assert [item.path for item in report.excluded] == ["a/b", "a/c.tmp", "c.tmp"]


def test_2_what_is_excluded_is_in_the_packet_and_verify_goes_by_it(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {".cache/x": "x", "w": "w"})
    store = MemoryStore()
    packet = seal(store, tree, exclude=(".cache",))
    assert packet_of(store, packet).entries[0].exclude == (".cache",)
    assert verify_against(store, packet, tree).outcome == "PASS"
    (tree / ".cache/y").write_text("y")
    assert verify_against(store, packet, tree).outcome == "PASS"
    (tree / "y").write_text("y")
    assert findings(verify_against(store, packet, tree)) == {"y": "extra"}


# 3. Recorded symlink policy


def test_3_verify_follows_links_because_the_packet_says_so(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x\n", "l": "->f"})
    store = MemoryStore()
    followed, plain = seal(store, tree, follow_symlinks=True), seal(store, tree)
    assert followed != plain
    assert packet_of(store, followed).entries[0].follow_symlinks
    assert verify_against(store, followed, tree).outcome == "PASS"
    (tree / "l").unlink()
    (tree / "l").write_text("x\n")
    assert verify_against(store, followed, tree).outcome == "PASS"
    assert findings(verify_against(store, plain, tree)) == {"l": "type"}


# 4. Names that are not UTF-8


@pytest.mark.parametrize("kind", STORES)
def test_4_a_name_that_is_not_utf8(tmp_path: Path, kind: str) -> None:
    tree = plant(tmp_path / "t", {b"a\xffb": "x", "ok": "y", b"l\xfe": "->ok", b"d\xfd/f": "z"})
    with open_store_of(kind, tmp_path) as store:
        packet = seal(store, tree)
        assert verify(store, packet).outcome == "PASS"
        assert verify_against(store, packet, tree).outcome == "PASS"
        members = listed(store, packet)
        assert {unshow(path) for path in members} == {b"a\xffb", b"ok", b"l\xfe", b"d\xfd/f"}
        assert b"".join(cat(store, packet, "a\\xffb")) == b"x"
        restore(store, packet, tmp_path / "out")
        assert snapshot(tmp_path / "out") == snapshot(tree)


def test_4_a_link_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    os.symlink(b"\xffwhere\n", os.fsencode(tmp_path / "t/l"))
    store = MemoryStore()
    packet = seal(store, tmp_path / "t")
    restore(store, packet, tmp_path / "out")
    assert os.readlink(os.fsencode(tmp_path / "out/l")) == b"\xffwhere\n"


# 7. Backslash, newline, carriage return in checksum files


def test_7_exported_lists_come_back(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a\\b": "x", "n\nl": "x", "c\rr": "y", b"\xff": "z"})
    store = MemoryStore()
    packet = seal(store, tree)
    for style, algorithm in (("sha256sum", "sha256"), ("b3sum", "blake3")):
        out = tmp_path / style
        data, about = export(store, packet, style)
        assert (about.outcome, about.members) == ("PASS", 4)
        out.write_bytes(data)
        report = verify_checksums(out, against=tree, algorithm=algorithm)
        assert report.outcome == "PASS"
        assert report.objects_checked == 4


# 9. Control characters


def test_9_no_control_character_in_any_report_or_error(tmp_path: Path) -> None:
    name = "bad\x1b[2J\x1b[32mPASS\x1b[0m\x85\u202e"
    tree = plant(tmp_path / "t", {name: "x", "l": f"->{name}"})
    store = MemoryStore()
    packet = seal(store, tree)
    (tree / name).write_text("y")
    with side("t", store) as a, side(os.fspath(tree), store) as b:
        said = [repr(listed(store, packet)), repr(verify_against(store, packet, tree)), repr(diff(a, b))]
    os.mkfifo(tree / (name + "pipe"))
    with pytest.raises(SpecialFileError) as raised:
        seal(store, tree)
    said.append(raised.value.message)
    for text in said:
        assert not {c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")}


# 10. FIFO, socket, device


def make_special(kind: str, path: Path) -> None:
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            here = os.getcwd()
            os.chdir(path.parent)
            made.bind(path.name)
            os.chdir(here)
    else:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))


@pytest.mark.parametrize("kind", ["FIFO", "socket", "character device"])
def test_10_special_files_are_refused_by_name_and_type(tmp_path: Path, kind: str) -> None:
    tree = plant(tmp_path / "t", {"f": "x", "l": "->pipe", "d/g": "y"})
    make_special(kind, tree / "pipe")
    make_special(kind, tree / "d/other")
    store = MemoryStore()
    with pytest.raises(SpecialFileError) as raised:
        seal(store, tree)
    assert raised.value.found == (("d/other", kind), ("pipe", kind))
    assert store.refs() == []
    assert list(store.objects()) == []


def test_10_a_link_to_a_fifo_is_a_link_and_refused_when_followed(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"l": "->../pipe", "f": "x"})
    os.mkfifo(tmp_path / "pipe")
    report_of(tree)
    with pytest.raises(SpecialFileError, match="l"):
        report_of(tree, follow_symlinks=True)


@pytest.mark.parametrize("kind", ["FIFO", "character device"])
def test_10_a_special_file_given_by_its_own_path(tmp_path: Path, kind: str) -> None:
    make_special(kind, tmp_path / "pipe")
    with pytest.raises(SpecialFileError, match="pipe"):
        report_of(tmp_path / "pipe")


def test_10_a_fifo_where_a_file_was_never_passes(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x", "g": "y"})
    store = MemoryStore()
    whole, alone = seal(store, tree), seal(store, tree / "f")
    (tree / "f").unlink()
    os.mkfifo(tree / "f")
    for packet, only in ((whole, None), (alone, None), (whole, "f"), (alone, "f")):
        try:
            outcome = verify_against(store, packet, tree, only=only).outcome
        except SpecialFileError as error:
            outcome = "FAIL" if error.found == (("f", "FIFO"),) else "PASS"
        assert outcome == "FAIL"


def test_10_a_listed_fifo_never_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "x.sum").write_text("0" * 64 + "  pipe\n")
    with at_most(10):
        report = verify_checksums(tmp_path / "x.sum", against=tmp_path)
    assert report.outcome != "PASS"
    assert findings(report).keys() == {"pipe"}


# 11. Deep paths


def chain(base: Path, name: str, depth: int) -> None:
    """Make a chain of directories of any depth with a file at its end."""
    descriptor = os.open(base, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    leaf = os.open("leaf", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor)
    os.write(leaf, b"x")
    os.close(leaf)
    os.close(descriptor)


def remove_leaf(base: Path, name: str) -> None:
    descriptors = [os.open(base, os.O_RDONLY)]
    while True:
        try:
            descriptors.append(os.open(name, os.O_RDONLY, dir_fd=descriptors[-1]))
        except FileNotFoundError:
            break
        if len(descriptors) > 200:
            os.close(descriptors.pop(0))
    os.remove("leaf", dir_fd=descriptors[-1])
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize(("name", "depth"), [("d" * 200, 30), ("d", 2000)])
def test_11_paths_deeper_than_the_system_takes(tmp_path: Path, name: str, depth: int) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    chain(tree, name, depth)
    store = MemoryStore()
    packet = seal(store, tree)
    (path,) = listed(store, packet)
    assert path == f"{name}/" * depth + "leaf"
    assert b"".join(cat(store, packet, path)) == b"x"
    assert verify(store, packet).outcome == "PASS"
    assert verify_against(store, packet, tree).outcome == "PASS"
    restore(store, packet, tmp_path / "out")
    assert verify_against(store, packet, tmp_path / "out").outcome == "PASS"
    remove_leaf(tree, name)
    assert findings(verify_against(store, packet, tree)) == {path: "missing"}
    # pytest itself could not clear away what is so deep.
    subprocess.run(["rm", "-rf", tree, tmp_path / "out"], check=True)


# 12 (huge directories)


def test_12_a_big_directory_and_one_change_in_it(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {f"f{n}": str(n % 7) for n in range(3000)})
    store = MemoryStore()
    first = seal(store, tree)
    before = set(store.records())
    (tree / "f1500").write_text("changed")
    second = seal(store, tree)
    assert first != second
    assert len(set(store.records()) - before) < 8
    assert len(listed(store, second)) == 3000
