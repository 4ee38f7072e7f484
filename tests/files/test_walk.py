"""The walk: what it lists, what it refuses by name, what it never touches."""

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from workbench import as_nobody, at_most, open_to_all, plant

from provstore.errors import SourceUnreadableError, SpecialFileError, UsageError
from provstore.files.excluding import Excluder
from provstore.files.root import UNREADABLE, Root
from provstore.files.walk import Found, refuse_inside, walk
from provstore.paths import join


def walked(place: Path | bytes, *exclude: str, follow: bool = False, skip: Path | None = None) -> Found:
    status = os.stat(skip) if skip is not None else None
    inside = frozenset({(status.st_dev, status.st_ino)} if status else ())
    with Root(os.fsencode(place)) as root, at_most(30):
        return walk(root, exclude, inside, follow_symlinks=follow)


def members(found: Found) -> dict[bytes, str]:
    """Return path and type of everything that was listed."""
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink", UNREADABLE: "hole"}
    return {
        join(listing.path, name): kinds[stat.S_IFMT(row.mode)]
        for listing in found.listings
        for name, row in listing.members()
    }


_HEARD: list[list[tuple[str, Any]]] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _HEARD and event == "open":
        _HEARD[-1].append((event, arguments))


sys.addaudithook(_hear)


@contextmanager
def opened() -> Iterator[list[tuple[str, Any]]]:
    """Note every file that this process opens."""
    _HEARD.append([])
    try:
        yield _HEARD[-1]
    finally:
        _HEARD.pop()


@contextmanager
def deep_directory(part: str, levels: int) -> Iterator[Path]:
    """Make directories inside each other with a file and a link in the last; Python cannot remove them."""
    place = Path(tempfile.mkdtemp(prefix="prov-deep-"))
    here = os.open(place, os.O_RDONLY)
    try:
        for _ in range(levels):
            os.mkdir(part, dir_fd=here)
            below = os.open(part, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.symlink("leaf", "link", dir_fd=here)
        yield place
    finally:
        os.close(here)
        subprocess.run(["rm", "-rf", "--", place], check=True)


# What is listed


def test_everything_is_listed_once_in_the_order_of_bytes(tmp_path: Path) -> None:
    plant(tmp_path, {b"b/\xff": "x", b"b/a": "y", b"a": "z", "é": "", b"B": "", b"a.b": "", b"a-": ""})
    plant(tmp_path, {b"empty": None, b"l": "->nowhere"})
    found = walked(tmp_path)
    assert [listing.path for listing in found.listings] == [b"", b"b", b"empty"]
    assert found.listings[0].names == sorted([b"a", b"a-", b"a.b", b"b", b"B", b"empty", b"l", "é".encode()])
    assert members(found)[b"b/\xff"] == "file"
    assert members(found)[b"l"] == "symlink"
    assert found.excluded == found.unreadable == []


def test_rows_say_what_lstat_says(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "abc", "x": "+x#!", "l": "->f", "d": None})
    listing = walked(tmp_path).listings[0]
    for name, row in listing.members():
        status = os.lstat(tmp_path / os.fsdecode(name))
        assert row.signature() == (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        assert row.mode == status.st_mode
        assert listing.row(listing.names.index(name)) == row


def test_hard_links_are_members_each(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x", "d/b": "y"})
    os.link(tmp_path / "a", tmp_path / "c")
    os.link(tmp_path / "a", tmp_path / "d" / "e")
    assert members(walked(tmp_path)).keys() == {b"a", b"c", b"d", b"d/b", b"d/e"}


def test_an_empty_directory_is_a_listing_without_names(tmp_path: Path) -> None:
    assert [(found.path, found.names) for found in walked(tmp_path).listings] == [(b"", [])]


def test_a_huge_directory(tmp_path: Path) -> None:
    for number in range(20_000):
        os.close(os.open(tmp_path / f"{number}", os.O_CREAT | os.O_WRONLY))
    names = walked(tmp_path).listings[0].names
    assert names == sorted(str(number).encode() for number in range(20_000))


@pytest.mark.parametrize(("part", "levels"), [("d" * 200, 30), ("d", 2500)])
def test_paths_beyond_what_the_system_takes_at_once(part: str, levels: int) -> None:
    base = b"/".join([part.encode()] * levels)
    with deep_directory(part, levels) as place:
        before = len(os.listdir("/proc/self/fd"))
        with Root(os.fsencode(place)) as root:
            found = walk(root)
            assert root.lstat(base + b"/leaf").st_size == 0
            assert root.readlink(base + b"/link") == b"leaf"
            os.close(root.open(base + b"/leaf", os.O_RDONLY))
        assert len(os.listdir("/proc/self/fd")) == before
    assert len(found.listings) == levels + 1
    assert found.listings[-1].path == base
    assert found.listings[-1].names == [b"leaf", b"link"]
    assert found.unreadable == []


# Links


def test_links_are_never_followed(tmp_path: Path) -> None:
    outside = plant(tmp_path / "outside", {"secret": "s"})
    place = plant(tmp_path / "t", {"a/f": "x", "a/loop": "->../a", "self": "->self", "up": "->.."})
    (place / "out").symlink_to(outside)
    found = members(walked(place))
    assert found == {
        b"a": "directory",
        b"a/f": "file",
        b"a/loop": "symlink",
        b"out": "symlink",
        b"self": "symlink",
        b"up": "symlink",
    }


def test_links_that_are_followed_stand_for_their_targets(tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"d/f": "abc", "l": "->d/f", "e": "->d"})
    found = walked(place, follow=True)
    assert members(found) == {
        b"d": "directory",
        b"d/f": "file",
        b"e": "directory",
        b"e/f": "file",
        b"l": "file",
    }
    assert dict(found.listings[0].members())[b"l"].size_bytes == 3


def test_following_ends_at_a_loop_and_names_broken_links(tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a/b/f": "x", "a/b/up": "->../../a", "gone": "->nowhere", "s": "->s"})
    found = walked(place, follow=True)
    assert {path for path, _ in found.unreadable} == {b"a/b/up", b"gone", b"s"}
    assert members(found)[b"a/b/f"] == "file"
    assert members(found)[b"gone"] == "hole"


# Special files


def test_special_files_are_refused_all_of_them_by_name(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "x", "d/g": "y"})
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "d" / "pipe\n2")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(tmp_path / "d" / "sock"))
        with pytest.raises(SpecialFileError) as caught:
            walked(tmp_path)
    text = str(caught.value)
    assert "FIFO" in text
    assert "socket" in text
    for name in ("pipe", r"d/pipe\x0a2", "d/sock"):
        assert name in text
    assert "\n2" not in text


def test_a_device_is_refused() -> None:
    with pytest.raises(SpecialFileError, match="character device"), Root(b"/dev") as root:
        walk(root, ("fd", "shm", "pts", "mqueue", "log"))


def test_a_link_to_a_fifo_is_a_link_unless_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    place = plant(tmp_path / "t", {"l": "->../pipe"})
    assert members(walked(place)) == {b"l": "symlink"}
    with pytest.raises(SpecialFileError, match="FIFO"):
        walked(place, follow=True)


# Exclusion


def test_exclusion_comes_before_any_look_at_a_type(tmp_path: Path) -> None:
    plant(tmp_path, {"w.bin": "w", ".cache/x": "->/nonexistent", "d/.cache/y": "z"})
    os.mkfifo(tmp_path / "d" / "run.pipe")
    os.mkfifo(tmp_path / ".cache" / "pipe")
    found = walked(tmp_path, ".cache", "*.pipe")
    assert members(found) == {b"w.bin": "file", b"d": "directory"}
    assert found.excluded == [(b".cache", ".cache"), (b"d/.cache", ".cache"), (b"d/run.pipe", "*.pipe")]


@pytest.mark.parametrize(
    ("pattern", "left_out"),
    [
        ("*.log", {b"a.log", b"d/b.log", b"d/e/c.log"}),
        ("d/*.log", {b"d/b.log", b"d/e/c.log"}),
        ("/d/", {b"d"}),
        ("d/e", {b"d/e"}),
        ("e", {b"d/e"}),
        ("[ab].log", {b"a.log", b"d/b.log"}),
        ("?.LOG", set()),
        ("log", set()),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, left_out: set[bytes]) -> None:
    plant(tmp_path, {"a.log": "", "d/b.log": "", "d/e/c.log": "", "f": ""})
    assert {path for path, _ in walked(tmp_path, pattern).excluded} == left_out


def test_patterns_reach_names_that_are_no_text(tmp_path: Path) -> None:
    plant(tmp_path, {b"a\xff.tmp": "", b"a\n.tmp": "", b"\xff\xfe": ""})
    assert walked(tmp_path, "*.tmp", os.fsdecode(b"\xff?")).listings[0].names == []
    assert Excluder(["é"]).rule(b"", "é".encode()) == "é"


# The store


def test_the_store_is_recognised_by_inode_and_nothing_in_it_is_touched(tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"f": "x", "odd-name/data.mdb": "m", "odd-name/blobs/a": "b"})
    store = place / "odd-name"
    os.mkfifo(store / "would-be-refused")
    found = walked(place, skip=store)
    assert members(found) == {b"f": "file"}
    assert found.excluded == [(b"odd-name", "the store itself")]


def test_links_that_are_followed_do_not_lead_into_the_store(tmp_path: Path) -> None:
    store = plant(tmp_path / "store", {"data.mdb": "m", "blobs/ab/c": "x"})
    place = plant(tmp_path / "t", {"f": "x"})
    (place / "file").symlink_to(store / "data.mdb")
    (place / "inner").symlink_to(store / "blobs")
    (place / "whole").symlink_to(store)
    assert members(walked(place, skip=store))[b"whole"] == "symlink"
    with opened() as heard:
        found = walked(place, follow=True, skip=store)
    assert members(found) == {b"f": "file"}
    assert found.excluded == [(name, "the store itself") for name in (b"file", b"inner", b"whole")]
    paths = [os.fsencode(a[0]) for _, a in heard if isinstance(a[0], str | bytes)]
    assert [path for path in paths if path.startswith(os.fsencode(store))] == []


def test_a_path_inside_a_store_is_refused_by_any_name(tmp_path: Path) -> None:
    store = plant(tmp_path / "store", {"data.mdb": "m", "blobs/ab/c": "x"})
    (tmp_path / "alias").symlink_to(store)
    status = os.stat(store)
    skip = frozenset({(status.st_dev, status.st_ino)})
    for inside in ("store", "store/blobs", "store/blobs/ab/c", "alias/data.mdb", "alias", "store/not-there"):
        with pytest.raises(UsageError):
            refuse_inside(os.fsencode(tmp_path / inside), skip)
    refuse_inside(os.fsencode(tmp_path), skip)


def test_no_file_is_opened(tmp_path: Path) -> None:
    plant(tmp_path, {f"d{i}/f{j}": "x" for i in range(5) for j in range(5)})
    with opened() as heard:
        walked(tmp_path)
    files = [
        arguments[0]
        for _, arguments in heard
        if isinstance(arguments[0], str | bytes) and os.path.isfile(arguments[0])
    ]
    assert files == []


# Holes and changes


def test_what_cannot_be_looked_at_is_named(tmp_path: Path) -> None:
    with open_to_all() as place:
        plant(place, {"ok": "x", "shut/a": "y", "d/no/b": "z"})
        (place / "shut").chmod(0o000)
        (place / "d" / "no").chmod(0o444)
        found = as_nobody(lambda: walked(place))
        (place / "shut").chmod(0o755)
        (place / "d" / "no").chmod(0o755)
    assert found.unreadable == [(b"d/no/b", "Permission denied"), (b"shut", "Permission denied")]
    assert [listing.path for listing in found.listings] == [b"", b"d", b"d/no"]


def test_a_root_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadableError, match="No such file"):
        walked(tmp_path / "nowhere")
    with pytest.raises(SourceUnreadableError, match="Not a directory"):
        walked(plant(tmp_path, {"f": "x"}) / "f")


def meanwhile(monkeypatch: pytest.MonkeyPatch, name: bytes, change: Any) -> None:
    """Run ``change`` after the directory was read and before the entry ``name`` is looked at."""
    rule = Excluder.rule

    def changing(self: Excluder, directory: bytes, entry: bytes) -> str | None:
        if entry == name:
            change()
        return rule(self, directory, entry)

    monkeypatch.setattr(Excluder, "rule", changing)


def test_a_file_that_vanishes_is_a_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, {"a": "x", "b": "y"})
    meanwhile(monkeypatch, b"b", lambda: (tmp_path / "b").unlink())
    found = walked(tmp_path)
    assert found.unreadable == [(b"b", "No such file or directory")]
    assert members(found) == {b"a": "file", b"b": "hole"}


def test_a_directory_that_vanishes_is_a_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, {"d/f": "x", "e/trigger": "y"})
    meanwhile(monkeypatch, b"f", lambda: shutil.rmtree(tmp_path / "e"))
    found = walked(tmp_path)
    assert found.unreadable == [(b"e", "No such file or directory")]


def test_a_link_put_in_the_place_of_a_directory_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = plant(tmp_path / "outside", {"secret": "s"})
    place = plant(tmp_path / "t", {"d/f": "x", "e/g": "y"})

    def swap() -> None:
        if not (place / "e").is_symlink():
            (place / "e").rename(tmp_path / "away")
            (place / "e").symlink_to(outside)

    meanwhile(monkeypatch, b"f", swap)
    found = walked(place)
    assert b"e/secret" not in members(found)
    assert [path for path, _ in found.unreadable] == [b"e"]


def test_another_directory_in_the_place_of_one_is_noticed_when_links_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The identity that ended a loop must be of the directory that is entered."""
    place = plant(tmp_path / "t", {"d/f": "x", "e/g": "y"})

    def swap() -> None:
        if not (tmp_path / "away").exists():
            (place / "e").rename(tmp_path / "away")
            (place / "e").symlink_to("..")

    meanwhile(monkeypatch, b"f", swap)
    found = walked(place, follow=True)
    assert [path for path, _ in found.unreadable] == [b"e"]


def test_a_tree_that_never_holds_still_ends_in_a_list_or_in_holes(tmp_path: Path) -> None:
    plant(tmp_path, {f"d{i}/f": "x" for i in range(50)})
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            victim = tmp_path / f"d{number % 50}"
            victim.rename(tmp_path / "moving")
            (tmp_path / "moving").rename(victim)
            number += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(30):
            found = walked(tmp_path)
            holes = {path for path, _ in found.unreadable}
            listed = {listing.path for listing in found.listings}
            named = {path for path, kind in members(found).items() if kind == "directory"}
            assert named <= listed | holes
    finally:
        stop.set()
        thread.join()
