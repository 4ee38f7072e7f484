"""Edge cases of hardlinks, modes, empty directories (13 to 15), and of paths that are not what they seem."""

import os
from pathlib import Path

import pytest
from workbench import (
    as_nobody,
    failures,
    findings,
    listed,
    open_to_all,
    plant,
    seal,
    snapshot,
)

from provstore.errors import ProvError, SourceUnreadableError, UnsafePathError
from provstore.store.memory import MemoryStore
from provstore.verbs.comparing import verify_against
from provstore.verbs.restoring import restore
from provstore.verbs.sealing import seal_paths
from provstore.verbs.verifying import verify

# 13. Hardlinks


def test_13_hardlinks_drop_nobody(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"a": "x\n"})
    os.link(tree / "a", tree / "b")
    os.link(tree / "a", tmp_path / "c")
    store = MemoryStore()
    report = seal_paths(store, [tree, tmp_path / "c"], name="both")
    assert (report.files, report.objects) == (3, 1)
    assert sorted(listed(store, bytes.fromhex(report.packet))) == ["c", "t/a", "t/b"]


# 14. The executable bit


@pytest.mark.parametrize("alone", [False, True])
def test_14_the_executable_bit_is_identity(tmp_path: Path, alone: bool) -> None:
    tree = plant(tmp_path / "t", {"verify.sh": "+x#!/bin/sh\n", "f": "x"})
    store = MemoryStore()
    packet = seal(store, tree / "verify.sh" if alone else tree)
    restore(store, packet, tmp_path / "out")
    assert os.access(tmp_path / "out/verify.sh", os.X_OK)
    (tree / "verify.sh").chmod(0o644)
    (check,) = failures(verify_against(store, packet, tree, only="verify.sh"))
    assert check.code == "mode"
    assert (check.expected, check.found) == ("mode 755", "mode 644")
    assert seal(store, tree / "verify.sh" if alone else tree) != packet


def test_14_only_the_owners_x_bit_counts(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x", "s": "+xy"})
    store = MemoryStore()
    packet = seal(store, tree)
    (tree / "f").chmod(0o600)
    (tree / "s").chmod(0o700)
    assert seal(store, tree) == packet
    old = os.umask(0o077)
    try:
        restore(store, packet, tmp_path / "out")
    finally:
        os.umask(old)
    assert seal(store, tmp_path / "out", name="again") == packet


# 15. Empty directories


def test_15_empty_directories_count(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"logs": None, "f": "x", "deep/er": None})
    store = MemoryStore()
    packet = seal(store, tree)
    assert {p for p, m in listed(store, packet).items() if m.type == "directory"} == {"deep/er", "logs"}
    restore(store, packet, tmp_path / "out")
    assert snapshot(tmp_path / "out") == snapshot(tree)
    (tree / "logs").rmdir()
    assert findings(verify_against(store, packet, tree)) == {"logs": "missing"}


# Paths that are not what they seem


def test_a_path_that_is_itself_a_link_never_makes_an_empty_packet(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    for name, target in (("dir", "t"), ("file", "t/f"), ("dangling", "gone")):
        (tmp_path / name).symlink_to(target)
        store = MemoryStore()
        with pytest.raises(ProvError, match=name):
            seal(store, tmp_path / name)
        assert store.refs() == []


def test_a_followed_link_given_as_the_path_is_what_it_points_to(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    (tmp_path / "dir").symlink_to("t")
    (tmp_path / "file").symlink_to("t/f")
    store = MemoryStore()
    assert listed(store, seal(store, tmp_path / "dir", follow_symlinks=True)).keys() == {"f"}
    assert listed(store, seal(store, tmp_path / "file", follow_symlinks=True)).keys() == {"file"}


def test_a_link_in_place_of_the_entrys_directory_is_another_type(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"e/f": "x", "g": "y"})
    store = MemoryStore()
    packet = seal(store, tree / "e", tree / "g")
    assert verify_against(store, packet, tree).outcome == "PASS"
    (tree / "e").rename(tmp_path / "elsewhere")
    (tree / "e").symlink_to(tmp_path / "elsewhere")
    assert findings(verify_against(store, packet, tree)) == {"e": "type"}


def test_an_unreadable_directory_is_a_hole_not_an_empty_directory() -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no/secret": "y", "empty": None})
        (place / "t/no").chmod(0o000)

        def work() -> tuple[str, dict[str, tuple[str, str | None]], str]:
            store = MemoryStore()
            refused = ""
            try:
                seal(store, place / "t")
            except SourceUnreadableError as error:
                refused = error.message
            packet = seal(store, place / "t", allow_unreadable=True)
            members: dict[str, tuple[str, str | None]] = {
                path: (m.type, m.state) for path, m in listed(store, packet).items()
            }
            return refused, members, verify(store, packet).outcome

        refused, members, outcome = as_nobody(work)
        (place / "t/no").chmod(0o755)
    assert "no: Permission denied" in refused
    assert members["no"][1] == "unreadable"
    assert members["empty"] == ("directory", None)
    assert outcome == "INCOMPLETE"


def test_a_role_that_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    plant(tmp_path, {b"f\xff": "x", "g": "y"})
    with pytest.raises(UnsafePathError):
        seal(MemoryStore(), os.fsencode(tmp_path / "g"), os.path.join(os.fsencode(tmp_path), b"f\xff"))


def test_thousands_of_directories_do_not_use_up_descriptors(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {f"d{n}/f": str(n) for n in range(1500)})
    before = len(os.listdir("/proc/self/fd"))
    assert seal_paths(MemoryStore(), [tree]).files == 1500
    assert len(os.listdir("/proc/self/fd")) <= before
