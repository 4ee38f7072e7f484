"""Proofs: a member shown to be in a packet with nothing but the proof."""

import os
import random
import resource
from pathlib import Path

import pytest
from killing import Say, run
from workbench import listed, plant, seal, seal_text

from provstore.errors import (
    InputOutputError,
    MalformedError,
    NewerFormatError,
    NotFoundError,
    ProvError,
    TargetError,
)
from provstore.paths import show
from provstore.store.memory import MemoryStore
from provstore.verbs.exporting import write_export
from provstore.verbs.proving import is_proof, prove, verify_proof


def test_members_of_every_kind_and_place(tmp_path: Path) -> None:
    names: dict[str | bytes, str | bytes | None] = {f"many/f{n}": str(n) for n in range(500)}
    tree = plant(
        tmp_path / "t",
        {**names, "a": "1", "x\\y": "2", b"n\xff": "3", "d/l": "->../a", "e": None, "s": "+x4"},
    )
    store = MemoryStore()
    packet = seal(store, tree)
    for number, name in enumerate((b"many/f77", b"a", b"x\\y", b"n\xff", b"d/l", b"e", b"d", b"s")):
        path = tmp_path / f"{number}.proof"
        made = prove(store, packet, show(name), path)
        assert made.path == show(name)
        data = path.read_bytes()
        assert is_proof(data)
        assert len(data) == made.size_bytes < 40_000
        report = verify_proof(data, "p")
        assert report.outcome == "PASS"
        assert report.packet == packet.hex()
        assert report.checks[0].path == show(name)


def test_roles_and_single_files(tmp_path: Path) -> None:
    plant(tmp_path, {"one/f": "x", "two": "z"})
    text = (
        '[[entry]]\nrole = "a/b"\nkind = "evidence"\npath = "one"\n'
        '[[entry]]\nrole = "c"\nkind = "file"\npath = "two"\n'
    )
    store = MemoryStore()
    packet = seal_text(store, tmp_path, text)
    for number, (name, role, path) in enumerate((("a/b/f", "a/b", "f"), ("c", "c", ""))):
        made = prove(store, packet, name, tmp_path / f"{number}.proof")
        assert (made.role, made.path) == (role, path)
        check = verify_proof((tmp_path / f"{number}.proof").read_bytes(), "p").checks[0]
        assert (check.role, check.path) == (role, path)
    for absent in ("a", "a/b/g", "c/d", "", "/", "x"):
        with pytest.raises(NotFoundError):
            prove(store, packet, absent, tmp_path / "no.proof")
    assert not (tmp_path / "no.proof").exists()


def test_a_file_held_against_the_proof(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x", "g": "y"})
    store = MemoryStore()
    prove(store, seal(store, tree), "f", tmp_path / "p")
    data = (tmp_path / "p").read_bytes()
    assert verify_proof(data, "p", against=tree / "f").outcome == "PASS"
    assert verify_proof(data, "p", against=tree / "g").outcome == "FAIL"
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "gone", tree, tmp_path / "fifo"):
        with pytest.raises((ProvError, OSError)):
            verify_proof(data, "p", against=path)


def test_no_altered_proof_passes(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {f"d/f{n}": str(n) for n in range(100)})
    store = MemoryStore()
    packet = seal(store, tree)
    members = {path: member.blake3 for path, member in listed(store, packet).items()}
    prove(store, packet, "d/f7", tmp_path / "p")
    data = (tmp_path / "p").read_bytes()
    chance = random.Random(3)
    for place in {*range(200), *chance.sample(range(len(data)), 600)}:
        altered = bytearray(data)
        altered[place] ^= 1 << chance.randrange(8)
        try:
            report = verify_proof(bytes(altered), "p")
        except MalformedError:
            continue
        # A leaf proves each of its members; only what is true of the packet may pass.
        check = report.checks[0]
        true = report.packet == packet.hex() and members.get(check.path) == check.found
        assert report.outcome == "FAIL" or true, place
    for cut in range(0, len(data), 97):
        with pytest.raises(MalformedError):
            verify_proof(data[:cut], "p")


def test_a_proof_of_one_member_proves_no_other(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x", "g": "y"})
    store = MemoryStore()
    prove(store, seal(store, tree), "f", tmp_path / "p")
    data = (tmp_path / "p").read_bytes()
    outcomes = []
    for path in ("h", "f/", "", "/f", "F"):
        assert b'"path":"f"' in data
        report = verify_proof(data.replace(b'"path":"f"', f'"path":"{path}"'.encode()), "p")
        outcomes.append(report.outcome)
    assert set(outcomes) == {"FAIL"}


def test_files_that_are_no_proofs(tmp_path: Path) -> None:
    for data in (b"", b"{}", b'{"format":"provstore/packet/v1"}', b"[]", b"\xff", b"[" * 10000):
        assert not is_proof(data)
        with pytest.raises(MalformedError):
            verify_proof(data, "p")
    assert is_proof(b'{"format":"provstore/proof/v2"}')
    with pytest.raises(NewerFormatError):
        verify_proof(b'{"format":"provstore/proof/v2"}', "p")
    with pytest.raises(MalformedError):
        verify_proof(b" " * ((16 << 20) + 1), "p")


def test_a_disk_that_takes_no_more_leaves_no_file(tmp_path: Path) -> None:
    """The file size limit stands in for the disk."""
    store = MemoryStore()
    packet = seal(store, plant(tmp_path / "t", {"f": "x"}))

    def work(say: Say) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
        for write in (
            lambda: prove(store, packet, "f", tmp_path / "p"),
            lambda: write_export(b"x" * 100, os.fspath(tmp_path / "p")),
        ):
            try:
                write()
            except InputOutputError as error:
                say(error.code)

    assert run(work) == (0, ["io", "io"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]


def test_an_output_that_is_there_stays(tmp_path: Path) -> None:
    store = MemoryStore()
    packet = seal(store, plant(tmp_path / "t", {"f": "x"}))
    (tmp_path / "p").write_text("mine")
    with pytest.raises(TargetError):
        prove(store, packet, "f", tmp_path / "p")
    assert (tmp_path / "p").read_text() == "mine"
