"""This machine as evidence: the environment that the tests run in, and the repository that they lie in."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import blake3
import lmdb
import msgspec
import pytest
import zstandard
from workbench import facts_of, git, listed, open_store_of, packet_of, seal_text, snapshot

import provstore
from provstore import gitids
from provstore.errors import PinMismatchError
from provstore.ids import to_raw
from provstore.records.packet import Entry
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.verbs.restoring import restore
from provstore.verbs.verifying import verify

ROOT = Path(__file__).resolve().parents[2]

Facts = dict[tuple[str, str], Any]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The virtual environment of this run; one around the same packages where it runs without one."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix)
    place = tmp_path_factory.mktemp("env") / "venv"
    venv.create(place, symlinks=True)
    site = next(place.glob("lib/python3*/site-packages"))
    for found in importlib.metadata.distributions():
        for file in found.files or ():
            source, target = Path(str(found.locate_file(file))), site / file
            if ".." not in file.parts and source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    return place


def shared_objects() -> list[Path]:
    """Return the shared objects that this project stands on."""
    found: list[Path] = []
    for module in (blake3, lmdb, msgspec, zstandard):
        found += sorted(Path(module.__file__ or "").parent.rglob("*.so"))
    assert len(found) >= 4
    return found


def build_id(path: Path) -> str | None:
    """Ask readelf."""
    text = subprocess.run(["readelf", "--notes", path], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", text)
    return found[1] if found else None


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LmdbStore]:
    with LmdbStore.create(os.fspath(tmp_path_factory.mktemp("machine") / "store")) as made:
        yield made


@pytest.fixture(scope="module")
def sealed(
    store: LmdbStore, environment: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bytes, dict[str, Entry]]:
    """The environment, whose bytes stay where they are, and the shared objects, whose bytes are kept."""
    text = f'[[entry]]\nrole = "env"\nkind = "python-env"\npath = "{environment}"\nkeep = "external"\n'
    for path in shared_objects():
        text += f'[[entry]]\nrole = "native/{path.name}"\nkind = "native"\npath = "{path}"\n'
    packet = seal_text(store, tmp_path_factory.mktemp("spec"), text)
    return packet, {entry.role: entry for entry in packet_of(store, packet).entries}


@pytest.fixture(scope="module")
def known(store: LmdbStore, sealed: tuple[bytes, dict[str, Entry]]) -> Facts:
    return facts_of(store, sealed[1]["env"])


def plain(name: str) -> str:
    """Normalise as PEP 503 says."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_installed_package_is_there_with_its_version(known: Facts, environment: Path) -> None:
    site = [os.fspath(path) for path in environment.glob("lib/python3*/site-packages")]
    expected = {plain(found.name): found.version for found in importlib.metadata.distributions(path=site)}
    stated = {
        key.removeprefix("python.package."): value
        for (_, key), value in known.items()
        if key.startswith("python.package.")
    }
    assert stated == expected
    assert {"blake3", "lmdb", "msgspec", "zstandard", "pytest"} <= stated.keys()
    assert [key for _, key in known if "duplicate" in key or "problem" in key] == []


def test_the_environment_says_which_python_it_is(known: Facts) -> None:
    ((_, version),) = [(key, value) for key, value in known.items() if key[1] == "python.version"]
    assert version.split(".")[:2] == [str(part) for part in sys.version_info[:2]]


def test_every_file_of_the_environment_is_a_member(
    store: LmdbStore, sealed: tuple[bytes, dict[str, Entry]], environment: Path
) -> None:
    packet, entries = sealed
    there = {
        os.fspath(path.relative_to(environment))
        for path in environment.rglob("*")
        if "__pycache__" not in path.parts and (path.is_symlink() or path.is_file())
    }
    members = {path.removeprefix("env/"): m for path, m in listed(store, packet).items() if m.role == "env"}
    assert {path for path, member in members.items() if member.type != "directory"} == there
    assert entries["env"].exclude == ("__pycache__",)
    assert entries["env"].custody == "external"


def test_shared_objects_are_known_by_what_other_programs_say(
    store: LmdbStore, sealed: tuple[bytes, dict[str, Entry]], known: Facts, environment: Path
) -> None:
    for path in shared_objects():
        entry = sealed[1][f"native/{path.name}"]
        facts = {key: value for (_, key), value in facts_of(store, entry).items()}
        assert facts["elf.type"] == "ET_DYN"
        assert facts["elf.class_bits"] == 64
        if shutil.which("readelf"):
            assert facts.get("elf.build_id") == build_id(path)
        assert objects.read(store, to_raw(entry.blake3 or "")) == path.read_bytes()
        if path.is_relative_to(environment):
            place = os.fspath(path.relative_to(environment))
            assert {key: value for (where, key), value in known.items() if where == place} == facts
    assert any(key == "elf.build_id" for _, key in known)


def test_the_environment_verifies_where_it_lies(
    store: LmdbStore, sealed: tuple[bytes, dict[str, Entry]]
) -> None:
    report = verify(store, sealed[0])
    assert report.outcome == "PASS", [check for check in report.checks if check.outcome != "PASS"]
    assert report.missing == ()
    assert report.objects_checked > 500


# The repository


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this repository; of its files, committed here, where they came without one."""
    place = tmp_path_factory.mktemp("clone")
    if (ROOT / ".git").exists():
        git(place, "-c", "safe.directory=*", "clone", "--quiet", os.fspath(ROOT), "repository")
        return place / "repository"
    left_out = shutil.ignore_patterns(".venv", "__pycache__", ".*_cache", "demo-out")
    shutil.copytree(ROOT, place / "repository", symlinks=True, ignore=left_out)
    git(place / "repository", "init", "--quiet")
    git(place / "repository", "add", "--all", "--force")
    git(place / "repository", "commit", "--quiet", "--message", "all")
    return place / "repository"


def entry_text(place: Path, more: str = "") -> str:
    return f'[[entry]]\nrole = "source"\nkind = "source-tree"\npath = "{place}"\n{more}'


def source_facts(store: MemoryStore | LmdbStore, packet: bytes) -> dict[str, Any]:
    (entry,) = packet_of(store, packet).entries
    return {key: value for (path, key), value in facts_of(store, entry).items() if path == ""}


@pytest.mark.parametrize("kind", ["memory", "lmdb"])
def test_the_tree_id_is_that_of_git_computed_from_the_sealed_bytes(
    clone: Path, tmp_path: Path, kind: str
) -> None:
    store = open_store_of(kind, tmp_path)
    packet = seal_text(store, tmp_path, entry_text(clone, f'commit = "{git(clone, "rev-parse", "HEAD")}"\n'))
    tree = git(clone, "rev-parse", "HEAD^{tree}")
    facts = source_facts(store, packet)
    assert facts["git.commit"] == git(clone, "rev-parse", "HEAD")
    assert facts["git.tree"] == facts["git.sealed_tree"] == tree
    assert facts["git.clean"] is True
    assert facts["git.untracked"] == facts["git.dirty"] == ()
    # And once more here, from nothing but what the store gives out.
    files: dict[bytes, tuple[gitids.Mode, bytes]] = {}
    for path, member in listed(store, packet).items():
        assert member.type != "directory"
        name = provstore_path(path)
        if member.type == "symlink":
            files[name] = "120000", gitids.blob_id((member.target or "").encode())
        else:
            data = objects.read(store, to_raw(member.blake3 or ""))
            files[name] = "100755" if member.type == "executable" else "100644", gitids.blob_id(data)
    assert gitids.root_tree_id(files).hex() == tree
    store.close()


def provstore_path(shown: str) -> bytes:
    assert "\\" not in shown
    return shown.removeprefix("source/").encode()


def test_what_is_restored_is_that_tree_to_git_itself(clone: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    packet = seal_text(store, tmp_path, entry_text(clone))
    restore(store, packet, tmp_path / "out")
    out = tmp_path / "out" / "source"
    assert snapshot(out) == {
        path: found for path, found in snapshot(clone).items() if not path.startswith(b".git/")
    }
    git(out, "init", "--quiet")
    git(out, "add", "--all", "--force")
    assert git(out, "write-tree") == git(clone, "rev-parse", "HEAD^{tree}")


def test_a_git_blob_id_finds_the_file(clone: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    seal_text(store, tmp_path, entry_text(clone))
    for name in ("README.md", "provstore/merkle.py", "pyproject.toml"):
        id = provstore.resolve(store, "git:" + git(clone, "rev-parse", f"HEAD:{name}"))
        assert objects.read(store, id) == (clone / name).read_bytes()


def test_a_changed_repository_is_another_tree_under_the_same_commit(clone: Path, tmp_path: Path) -> None:
    copy = tmp_path / "repository"
    shutil.copytree(clone, copy, symlinks=True)
    with (copy / "README.md").open("a") as file:
        file.write("changed\n")
    (copy / "new.txt").write_text("untracked")
    store = MemoryStore()
    facts = source_facts(store, seal_text(store, tmp_path, entry_text(copy)))
    assert facts["git.commit"] == git(clone, "rev-parse", "HEAD")
    assert facts["git.tree"] == git(clone, "rev-parse", "HEAD^{tree}")
    assert facts["git.sealed_tree"] != facts["git.tree"]
    assert facts["git.clean"] is False
    assert facts["git.untracked"] == ("new.txt",)
    assert [line.split()[-1] for line in facts["git.dirty"]] == ["README.md"]
    git(copy, "add", "README.md")
    assert facts["git.sealed_tree"] == git(copy, "write-tree")


def test_another_commit_than_the_pinned_one_is_refused(clone: Path, tmp_path: Path) -> None:
    with pytest.raises(PinMismatchError, match="commit"):
        seal_text(MemoryStore(), tmp_path, entry_text(clone, f'commit = "{"0" * 40}"\n'))
