"""Sealing: identities, custody, counters, all or nothing."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from workbench import (
    STORES,
    as_nobody,
    facts_of,
    file_node,
    findings,
    listed,
    open_store_of,
    open_to_all,
    packet_of,
    plant,
    put_object,
    put_packet,
    seal,
    seal_text,
    settle,
    snapshot,
)

from provstore.errors import (
    EmptyError,
    NotFoundError,
    NotHeldError,
    PinMismatchError,
    ProvError,
    SpecError,
    UsageError,
)
from provstore.ids import object_id, to_raw
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.verbs import entries, members
from provstore.verbs.collecting import gc
from provstore.verbs.listing import cat, log, show_packet
from provstore.verbs.restoring import restore
from provstore.verbs.sealing import SealOptions, seal_paths, seal_spec
from provstore.verbs.verifying import verify

# Identity


def test_equal_directories_are_equal_packets_anywhere(tmp_path: Path) -> None:
    files: dict[str | bytes, str | bytes | None] = {"f": "x", "d/g": "+xy", "l": "->f", "e": None}
    here, there = plant(tmp_path / "one/a", files), plant(tmp_path / "two/b", files)
    (there / "f").touch()
    os.utime(there / "d", (1, 1))
    assert seal(MemoryStore(), here) == seal(MemoryStore(), there)
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        assert seal(store, there, workers=2) == seal(MemoryStore(), here, workers=0, use_cache=False)


def test_the_packet_id_covers_every_difference(tmp_path: Path) -> None:
    base: dict[str | bytes, str | bytes | None] = {"f": "x", "g": "y", "l": "->f"}
    changes: list[dict[str | bytes, str | bytes | None]] = [
        base,
        base | {"f": "z"},
        base | {"f": "+xx"},
        base | {"l": "->g"},
        base | {"l": "x"},
        base | {"h": ""},
        base | {"h": None},
        {"f": "x", "l": "->f"},
        {"d/f": "x", "d/g": "y", "d/l": "->f"},
    ]
    ids = {seal(MemoryStore(), plant(tmp_path / str(n), files)) for n, files in enumerate(changes)}
    assert len(ids) == len(changes)


def test_both_digests_and_the_size_are_those_of_the_bytes(tmp_path: Path) -> None:
    data = {"small": b"x", "empty": b"", "large": os.urandom(9 << 20), "zeros": bytes(5 << 20)}
    tree = plant(tmp_path / "t", {name: content for name, content in data.items()})  # noqa: C416
    store = MemoryStore()
    members = listed(store, seal(store, tree))
    for name, content in data.items():
        assert members[name].blake3 == object_id(content).hex()
        assert members[name].sha256 == hashlib.sha256(content).hexdigest()
        assert members[name].size == len(content)
    b3sum = subprocess.run(["b3sum", "--no-names", tree / "large"], capture_output=True, check=True)
    assert b3sum.stdout.decode().strip() == members["large"].blake3


# Names


def test_refs_and_their_history(tmp_path: Path) -> None:
    tree = plant(tmp_path / "run", {"f": "1"})
    store = MemoryStore()
    first = seal(store, tree)
    assert [name for name, _ in store.refs()] == ["run"]
    seal(store, tree)
    assert len(log(store, "run")) == 1
    (tree / "f").write_text("2")
    second = seal(store, tree)
    steps = log(store, "run")
    assert [(step.packet, step.previous) for step in steps] == [
        (first.hex(), None),
        (second.hex(), first.hex()),
    ]
    assert seal(store, tree, name="a/b") == second
    with pytest.raises(ProvError):
        seal(store, tree, name="../x")


def test_what_cannot_be_sealed(tmp_path: Path) -> None:
    store = MemoryStore()
    plant(tmp_path, {"a/f": "1", "b/f": "2"})
    with pytest.raises(UsageError):
        seal_paths(store, [])
    with pytest.raises(NotFoundError, match="gone"):
        seal(store, tmp_path / "gone")
    with pytest.raises(UsageError, match="same last name"):
        seal(store, tmp_path / "a/f", tmp_path / "b/f")
    with pytest.raises(UsageError, match="kind"):
        seal(store, tmp_path / "a", kind="nonsense")
    (tmp_path / "e").mkdir()
    with pytest.raises(EmptyError):
        seal(store, tmp_path / "a", tmp_path / "e")
    assert (store.refs(), list(store.objects())) == ([], [])


# All or nothing


@pytest.mark.parametrize("kind", STORES)
def test_a_refused_seal_changes_nothing(tmp_path: Path, kind: str) -> None:
    tree = plant(tmp_path / "t", {"f": os.urandom(6 << 20), "g": "y"})
    (tmp_path / "t.sum").write_text(f"{'0' * 64}  f\n")
    with open_store_of(kind, tmp_path) as store:
        packet = seal(store, plant(tmp_path / "before", {"x": "x"}), name="run")
        known = sorted(id for id, _ in store.objects())
        text = '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "t"\nmanifest = "t.sum"\n'
        with pytest.raises(PinMismatchError):
            seal_text(store, tmp_path, text)
        assert store.ref("run") == packet
        assert sorted(id for id, _ in store.objects()) == known
        assert seal(store, tree)


# Work counters


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("workers", [0, 2])
def test_every_byte_is_read_once_in_one_transaction(tmp_path: Path, kind: str, workers: int) -> None:
    files: dict[str | bytes, str | bytes | None] = {f"d{n % 5}/f{n}": os.urandom(n * 7) for n in range(900)}
    tree = plant(tmp_path / "t", files | {"large": os.urandom(9 << 20), "again": "x", "twice": "x"})
    total = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    settle(tree)
    with open_store_of(kind, tmp_path) as store:
        report = seal_paths(store, [tree], options=SealOptions(workers=workers))
        assert (report.bytes_read, report.bytes_hashed) == (total, total)
        assert report.files == 903
        assert report.objects == 902
        assert report.transactions == 1
        assert report.syncs <= 4
        again = seal_paths(store, [tree], options=SealOptions(workers=workers))
        assert (again.bytes_read, again.bytes_hashed) == (0, 0)
        assert (again.packet, again.objects, again.records, again.bytes_stored) == (report.packet, 0, 0, 0)
        assert again.files == report.files
        assert again.entries == report.entries
        (tree / "d1/f1").write_bytes(b"changed")
        third = seal_paths(store, [tree])
        assert third.bytes_read == 7
        assert third.objects == 1
        assert seal(store, tree, use_cache=False).hex() == third.packet
        forced = seal_paths(store, [tree], options=SealOptions(use_cache=False))
        assert forced.bytes_read == total


@pytest.mark.parametrize("keep", ["held", "external"])
def test_an_unchanged_file_by_its_own_path_is_not_read_again(tmp_path: Path, keep: str) -> None:
    plant(tmp_path, {"t/w": os.urandom(6 << 20)})
    settle(tmp_path / "t")
    text = f'[[entry]]\nrole = "w"\nkind = "file"\npath = "t/w"\nkeep = "{keep}"\n'
    (tmp_path / "spec.toml").write_text('format = "provstore/packet-spec/v1"\nname = "run"\n' + text)
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        first = seal_spec(store, tmp_path / "spec.toml")
        assert first.bytes_read == 6 << 20
        again = seal_spec(store, tmp_path / "spec.toml")
        assert (again.packet, again.bytes_read) == (first.packet, 0)
        (tmp_path / "t/w").write_bytes(b"other")
        assert seal_spec(store, tmp_path / "spec.toml").bytes_read == 5


def test_a_clean_source_tree_costs_a_stat_per_file_the_second_time(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {f"f{n}": str(n) for n in range(50)})
    git = ["git", "-C", os.fspath(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "1"], check=True)
    settle(tree)
    store = MemoryStore()
    options = SealOptions(kind="source-tree")
    first = seal_paths(store, [tree], options=options)
    again = seal_paths(store, [tree], options=options)
    assert (again.packet, again.bytes_read) == (first.packet, 0)


def opens_of(tree: Path, kind: str) -> int:
    """Return how often a seal opens the one file of a tree."""
    code = (
        "import sys\nseen = []\n"
        "sys.addaudithook(lambda e, a: seen.append(a[0]) if e == 'open' else None)\n"
        "from provstore.store.memory import MemoryStore\n"
        "from provstore.verbs.sealing import seal_paths, SealOptions\n"
        "seal_paths(MemoryStore(), [sys.argv[1]], options=SealOptions(kind=sys.argv[2]))\n"
        "print(sum(str(p).rstrip(\"'\").endswith('data.json') for p in seen))\n"
    )
    run = subprocess.run([sys.executable, "-c", code, tree, kind], capture_output=True, text=True, check=True)
    return int(run.stdout)


def test_a_plain_file_is_opened_once(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"data.json": '{"a": 1}'})
    assert opens_of(tree, "evidence") == 1


# Custody


def test_external_bytes_stay_where_they_are(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"w": os.urandom(5 << 20), "s": "x"})
    text = (
        '[[entry]]\nrole = "w"\nkind = "file"\npath = "t"\nkeep = "external"\nurl = "https://example.org/w"\n'
    )
    with LmdbStore.create(os.fspath(tmp_path / "s")) as store:
        packet = seal_text(store, tmp_path, text)
        assert store.stats().plain_bytes == 0
        assert verify(store, packet).outcome == "PASS"
        assert verify(store, packet).bytes_checked == (5 << 20) + 1
        with pytest.raises(NotHeldError):
            list(cat(store, packet, "w/s"))
        report = restore(store, packet, tmp_path / "out")
        assert report.files == 0
        assert {m.origins for m in report.missing} == {("https://example.org/w",)}
        (tmp_path / "t").rename(tmp_path / "moved")
        away = verify(store, packet)
        assert away.outcome == "INCOMPLETE"
        assert findings(away) == {"w/s": "not-held", "w/w": "not-held", "": "nothing-checked"}
        assert {m.custody for m in away.missing} == {"external"}
        assert verify(store, packet, at=[tmp_path / "moved"]).outcome == "PASS"
        (tmp_path / "moved/s").write_text("y")
        assert findings(verify(store, packet, at=[tmp_path / "moved"])) == {"w/s": "external-changed"}
        (tmp_path / "moved").rename(tmp_path / "t")
        assert verify(store, packet).outcome == "FAIL"


def test_declared_is_only_what_the_spec_declares(tmp_path: Path) -> None:
    (tmp_path / "m.sum").write_text(f"{'1' * 64}  int4/a\n{'2' * 64}  int4/b/c\n{'3' * 64}  other/d\n")
    text = (
        '[[entry]]\nrole = "weights"\nkind = "model"\nkeep = "declared"\nhub = "o/m"\n'
        f'revision = "{"a" * 40}"\nmanifest = "m.sum"\nprefix = "int4/"\n'
        '[[entry]]\nrole = "sel"\nkind = "environment"\nkeep = "declared"\n'
        'values = { A = "1", N = 7, B = true }\n'
    )
    store = MemoryStore()
    packet = seal_text(store, tmp_path, text)
    members = listed(store, packet)
    assert {path: (m.sha256, m.blake3, m.size, m.custody) for path, m in members.items()} == {
        "weights/a": ("1" * 64, None, None, "declared"),
        "weights/b/c": ("2" * 64, None, None, "declared"),
    }
    entries = {entry.role: entry for entry in packet_of(store, packet).entries}
    assert facts_of(store, entries["sel"]) == {("", "A"): "1", ("", "N"): 7, ("", "B"): True}
    report = verify(store, packet)
    assert report.outcome == "INCOMPLETE"
    assert {m.origins for m in report.missing} == {(f"hub:o/m@{'a' * 40}",)}
    with pytest.raises(NotHeldError):
        list(cat(store, packet, "weights/a"))
    with pytest.raises(EmptyError):
        seal_text(MemoryStore(), tmp_path, text.replace('"int4/"', '"int8/"'))


def test_an_absent_path_is_never_downgraded(tmp_path: Path) -> None:
    (tmp_path / "m.sum").write_text(f"{'1' * 64}  a\n")
    text = '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "gone"\nmanifest = "m.sum"\n'
    for keep in ("held", "external"):
        with pytest.raises((NotFoundError, SpecError)):
            seal_text(MemoryStore(), tmp_path, text + f'keep = "{keep}"\n')


def test_one_object_held_and_external_stays_held(tmp_path: Path) -> None:
    plant(tmp_path, {"a/f": "x", "b/f": "x"})
    entry = '[[entry]]\nrole = "{0}"\nkind = "evidence"\npath = "{0}"\nkeep = "{1}"\n'
    for keeps in (("held", "external"), ("external", "held")):
        store = MemoryStore()
        text = "".join(entry.format(name, keep) for name, keep in zip("ab", keeps, strict=True))
        packet = seal_text(store, tmp_path, text)
        info = store.info(object_id(b"x"))
        assert info is not None
        assert info.placement == "inline"
        assert verify(store, packet).outcome == "PASS"


# Observations


def test_circumstances_are_kept_beside_the_identity(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x", "tmp": "y"})
    text = '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "{where}"\nexclude = ["tmp"]\n'
    store = MemoryStore()
    packet = seal_text(store, tmp_path, text, variables={"where": "t"}, tool="test 1")
    notes = "\n".join(show_packet(store, packet).observations)
    assert "where = t" in notes
    assert f"e from {tmp_path / 't'}" in notes
    assert "by test 1" in notes
    gc(store, delete=True, grace_s=0)
    assert show_packet(store, packet).observations
    assert verify(store, packet).outcome == "PASS"


# Of kinds


def test_native_objects_state_what_they_are(tmp_path: Path) -> None:
    libpython = Path(sys.executable).resolve()
    plant(tmp_path, {"t/libx.so": libpython.read_bytes(), "bad/libx.so": "no ELF"})
    store = MemoryStore()
    for path in ("t", "t/libx.so"):
        packet = seal(store, tmp_path / path, kind="native")
        keys = {key for _, key in facts_of(store, packet_of(store, packet).entries[0])}
        assert "elf.machine" in keys
    for path in ("bad", "bad/libx.so"):
        with pytest.raises(ProvError, match="ELF"):
            seal(MemoryStore(), tmp_path / path, kind="native")


def test_what_verify_would_not_unfold_is_not_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides count alike: links, directories and holes beyond the bound are refused when sealed."""
    monkeypatch.setattr(members, "MAX_OTHERS", 5)
    monkeypatch.setattr(entries, "MAX_OTHERS", 5)
    tree = plant(tmp_path / "t", {"f": "x", "a/b/g": "y", "l": "->f", "e1": None, "e2": None})
    store = MemoryStore()
    assert verify(store, seal(store, tree)).outcome == "PASS"
    plant(tree, {"e3": None})
    for _ in range(2):  # and with what is remembered of the directories that did not change
        with pytest.raises(UsageError, match="6 directories and links, over 5 an entry"):
            seal(store, tree)


def test_a_hole_counts_nowhere_as_evidence() -> None:
    with open_to_all() as place:
        plant(place / "t", {"f": "x", "no": "y"})
        (place / "t/no").chmod(0)

        def work() -> tuple[int, str, list[str]]:
            store = MemoryStore()
            report = seal_paths(store, [place / "t"], options=SealOptions(allow_unreadable=True))
            packet = to_raw(report.packet)
            restored = restore(store, packet, place / "out")
            return report.files, verify(store, packet).outcome, [m.path for m in restored.missing]

        assert as_nobody(work) == (1, "INCOMPLETE", ["no"])
        assert snapshot(place / "out") == {b"f": ("file", b"x")}


def test_hand_made_packets_are_what_the_tests_think(tmp_path: Path) -> None:
    store = MemoryStore()
    put_object(store, b"x")
    assert put_packet(store, [(b"f", file_node(b"x"))]) == seal(
        MemoryStore(), plant(tmp_path / "t", {"f": "x"})
    )
