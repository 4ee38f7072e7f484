"""Diffing: what was added, removed, changed; what stayed; which facts differ, in which layer."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from workbench import SPEC, as_nobody, findings, listed, open_to_all, plant, seal, seal_text

from provstore.errors import NotFoundError
from provstore.reports import DiffReport
from provstore.store.memory import MemoryStore
from provstore.verbs.comparing import verify_against
from provstore.verbs.diffing import diff, side
from provstore.verbs.locating import locate
from provstore.verbs.packing import pack
from provstore.verbs.restoring import restore

Files = Mapping[str | bytes, str | bytes | None]


def compare(store: MemoryStore | None, a: str | Path, b: str | Path) -> DiffReport:
    with side(os.fspath(a), store) as first, side(os.fspath(b), store) as second:
        return diff(first, second)


def paths(changes: object) -> list[str]:
    return ["/".join(part for part in (c.role, c.path) if part) for c in changes]  # type: ignore[attr-defined]


@pytest.fixture
def two(tmp_path: Path) -> tuple[MemoryStore, Path]:
    before: Files = {
        "same": "s",
        "changed": "1",
        "gone": "g",
        "mode": "m",
        "l": "->same",
        "d/x": "x",
        "t": "t",
    }
    plant(tmp_path / "a", before)
    after: Files = {
        "same": "s",
        "changed": "2",
        "new": "n",
        "mode": "+xm",
        "l": "->new",
        "d/y/z": "z",
        "t/u": "u",
    }
    plant(tmp_path / "b", after)
    store = MemoryStore()
    seal(store, tmp_path / "a", name="a")
    seal(store, tmp_path / "b", name="b")
    return store, tmp_path


def test_every_kind_of_change_is_named(two: tuple[MemoryStore, Path]) -> None:
    report = compare(two[0], "a", "b")
    assert not report.same
    assert paths(report.changed) == ["changed", "l", "mode"]
    assert sorted(paths(report.added)) == ["d/y/z", "new", "t/u"]
    assert sorted(paths(report.removed)) == ["d/x", "gone", "t"]
    assert report.kept == 1
    changed = report.changed[0]
    assert changed.from_ is not None
    assert changed.to is not None
    assert changed.from_.blake3 != changed.to.blake3
    assert (changed.from_.size, changed.to.size) == (1, 1)


def test_a_diff_the_other_way_round_is_its_mirror(two: tuple[MemoryStore, Path]) -> None:
    there, back = compare(two[0], "a", "b"), compare(two[0], "b", "a")
    assert paths(there.added) == paths(back.removed)
    assert paths(there.removed) == paths(back.added)
    assert [(c.from_, c.to) for c in there.changed] == [(c.to, c.from_) for c in back.changed]
    assert there.kept == back.kept


def test_equal_sides_however_they_are_given(two: tuple[MemoryStore, Path]) -> None:
    store, place = two
    pack([("a", locate("a", store))], place / "a.pack")
    restore(store, locate("a", store).packet, place / "again")
    for x, y in (
        ("a", "a"),
        ("a", place / "a.pack"),
        ("a", place / "a"),
        (place / "again", place / "a.pack"),
    ):
        report = compare(store, x, y)
        assert report.same, (x, y)
        assert report.kept == 6
        assert (report.added, report.removed, report.changed) == ((), (), ())


def test_a_packet_with_roles_and_its_restored_directory(tmp_path: Path) -> None:
    plant(tmp_path, {"one/f": "x", "one/d/g": "y", "two": "z"})
    text = (
        '[[entry]]\nrole = "a"\nkind = "evidence"\npath = "one"\n'
        '[[entry]]\nrole = "b/c"\nkind = "file"\npath = "two"\n'
    )
    store = MemoryStore()
    packet = seal_text(store, tmp_path, text)
    restore(store, packet, tmp_path / "out")
    assert compare(store, "run", tmp_path / "out").same
    (tmp_path / "out/a/f").write_text("changed")
    (tmp_path / "out/notes").write_text("n")
    report = compare(store, "run", tmp_path / "out")
    assert paths(report.changed) == ["a/f"]
    assert paths(report.added) == ["notes"]
    assert report.removed == ()


def test_a_side_that_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="gone"):
        compare(MemoryStore(), tmp_path / "gone", tmp_path / "gone")


def test_a_link_is_no_file_in_the_count_of_what_stayed(tmp_path: Path) -> None:
    plant(tmp_path / "a", {"f": "x", "g": "y", "l": "->f"})
    plant(tmp_path / "b", {"f": "x", "g": "y"})
    report = compare(None, tmp_path / "a", tmp_path / "b")
    assert paths(report.removed) == ["l"]
    assert report.kept == 2


def test_hardlinks_and_copies_do_not_differ(tmp_path: Path) -> None:
    plant(tmp_path / "a", {"f": "x", "g": "x"})
    plant(tmp_path / "b", {"f": "x"})
    os.link(tmp_path / "b/f", tmp_path / "b/g")
    assert compare(None, tmp_path / "a", tmp_path / "b").same


ENTRY = '[[entry]]\nrole = "{}"\nkind = "{}"\nkeep = "declared"\n'


def declared(store: MemoryStore, place: Path, name: str, text: str) -> None:
    (place / name).mkdir()
    seal_text(store, place / name, SPEC.replace('"run"', f'"{name}"') + text)


def test_facts_differ_in_the_layer_they_belong_to(tmp_path: Path) -> None:
    store = MemoryStore()
    for name, commit, value, rate in (("a", "1", "0", "10.5"), ("b", "2", "1", "11.5")):
        text = (
            ENTRY.format("src", "source-tree")
            + f'commit = "{commit * 40}"\n'
            + ENTRY.format("env", "environment")
            + f'values = {{ SELECTOR = "{value}", STAYS = "x" }}\n'
            + ENTRY.format("rec", "record")
            + f'values = {{ rate = "{rate}" }}\n'
            + f'[[claim]]\nname = "decode"\nvalue = "{rate}"\nunit = "tok/s"\nmetric = "m"\n'
            'convention = "c"\nevidence = ["rec"]\n'
        )
        declared(store, tmp_path, name, text)
    report = compare(store, "a", "b")
    assert not report.same
    assert [(c.role, c.from_, c.to) for c in report.identity] == [("src", "1" * 40, "2" * 40)]
    assert [(c.role, c.key, c.from_, c.to) for c in report.environment] == [("env", "SELECTOR", "0", "1")]
    assert {(c.key, c.from_, c.to) for c in report.result} >= {("rate", "10.5", "11.5")}
    assert any(c.key == "claim.decode" for c in report.result)
    assert [(k.role, k.key) for k in report.kept_facts] == [("env", "STAYS")]


def test_a_selector_that_one_side_does_not_state_is_not_equal_to_anything(tmp_path: Path) -> None:
    store = MemoryStore()
    for name, values in (("a", '{ A = "1", B = "0" }'), ("b", '{ A = "1" }')):
        declared(store, tmp_path, name, ENTRY.format("env", "environment") + f"values = {values}\n")
    (change,) = compare(store, "a", "b").environment
    assert (change.key, change.from_, change.to) == ("B", "0", None)


def test_declared_bytes_compare_with_held_ones_by_their_sha256(tmp_path: Path) -> None:
    import hashlib

    store = MemoryStore()
    digest = hashlib.sha256(b"x").hexdigest()
    declared(store, tmp_path, "a", ENTRY.format("f", "file") + f'sha256 = "{digest}"\n')
    (tmp_path / "b").mkdir()
    plant(tmp_path / "b", {"f": "x", "g": "y"})
    held = SPEC.replace('"run"', '"{0}"') + '[[entry]]\nrole = "f"\nkind = "file"\npath = "{0}"\n'
    seal_text(store, tmp_path / "b", held.replace("{0}", "f").replace('name = "f"', 'name = "b"'))
    assert compare(store, "a", "b").changed == ()
    seal_text(store, tmp_path / "b", held.replace("{0}", "g").replace('name = "g"', 'name = "c"'))
    assert paths(compare(store, "a", "c").changed) == ["f"]


def test_equal_parts_are_skipped_without_being_read(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {f"d{n % 30}/f{n}": str(n) for n in range(3000)})
    store = MemoryStore()
    seal(store, tree, name="a")
    (tree / "d7/f7").write_text("changed")
    packet = seal(store, tree, name="b")
    fetched: list[bytes] = []
    with side("a", store) as x, side("b", store) as y:

        def counting(id: bytes) -> bytes:
            fetched.append(id)
            return y.fetch(id)

        report = diff(x, y._replace(fetch=counting))
    assert paths(report.changed) == ["d7/f7"]
    assert report.kept == 2999
    assert len(fetched) < 12
    assert len(listed(store, packet)) == 3000


def test_diff_and_verify_against_agree(two: tuple[MemoryStore, Path]) -> None:
    store, place = two
    report = compare(store, "a", place / "b")
    found = findings(verify_against(store, locate("a", store).packet, place / "b"))
    named = {*paths(report.added), *paths(report.removed), *paths(report.changed)}
    assert named <= found.keys()
    assert {path for path in found if path not in named} <= {"d/y", "t"}


def test_a_recorded_exclusion_holds_for_the_directory_too(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x", ".cache/y": "y"})
    store = MemoryStore()
    seal(store, tree, exclude=(".cache",))
    assert compare(store, "t", tree).same


@pytest.mark.parametrize("apart", [False, True], ids=["one entry", "entries below each other"])
def test_holes_are_neither_equal_nor_counted(apart: bool) -> None:
    """An unreadable file is a hole: of two packets with it nobody knows whether they differ there."""
    with open_to_all() as place:
        for name in ("whole", "a", "b"):
            plant(place / name, {"f": "x", "no": "y", "other": "2" if name == "b" else "1"})
        (place / "a/no").chmod(0)
        (place / "b/no").chmod(0)

        def work() -> list[tuple[list[str], str, bool]]:
            store = MemoryStore()
            seal(store, place / "whole", name="whole")
            seal(store, place / "a", name="a", allow_unreadable=True)
            seal(store, place / "b", name="b", allow_unreadable=True)
            if apart:
                seal(store, place / "b/f", place / "b/no", place / "b/other", name="b", allow_unreadable=True)
            found = []
            for left, right in (("whole", "a"), ("a", "b")):
                report = compare(store, left, right)
                noted = any("no: unreadable on both sides" in note for note in report.notes)
                found.append((paths(report.changed), report.sentence, noted))
            return found

        assert as_nobody(work) == [
            (["no"], "1 changed of 3 members", False),
            (["other"], "1 changed of 2 members", apart),
        ]


def test_one_is_not_called_many(tmp_path: Path) -> None:
    store = MemoryStore()
    for name, text in (("a", "1"), ("b", "2")):
        seal(store, plant(tmp_path / name, {"f": text}), name=name)
    assert compare(store, "a", "b").sentence == "1 changed of 1 member"
    assert compare(store, "a", "a").sentence == "nothing differs: 1 member and 1 entry are equal"
