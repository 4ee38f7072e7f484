"""Restoring: the same tree again, into a new or empty directory, never over or through anything."""

import os
from pathlib import Path

import pytest
from workbench import STORES, as_nobody, findings, open_store_of, open_to_all, plant, seal, snapshot

from provstore.errors import EmptyError, InputOutputError, IntegrityError, TargetError
from provstore.ids import object_id
from provstore.report.failures import error_document, error_lines
from provstore.store.memory import MemoryStore
from provstore.verbs.comparing import verify_against
from provstore.verbs.restoring import restore


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return plant(
        tmp_path / "t",
        {"a": "1", "d/b": "+x2", "d/l": "->../a", "e/f": None, b"n\xff": "3", "big": os.urandom(6 << 20)},
    )


@pytest.mark.parametrize("kind", STORES)
def test_what_comes_back_is_what_went_in(tmp_path: Path, tree: Path, kind: str) -> None:
    with open_store_of(kind, tmp_path) as store:
        packet = seal(store, tree)
        report = restore(store, packet, tmp_path / "deep/er/out")
        assert snapshot(tmp_path / "deep/er/out") == snapshot(tree)
        assert (report.files, report.missing) == (4, ())
        assert report.size_bytes == 3 + (6 << 20)
        assert seal(store, tmp_path / "deep/er/out", name="again") == packet


def test_targets_that_are_refused_and_left_alone(tmp_path: Path, tree: Path) -> None:
    store = MemoryStore()
    packet = seal(store, tree)
    plant(
        tmp_path, {"full/x": "x", "file": "f", "link": "->elsewhere", "elsewhere": None, "dangling": "->gone"}
    )
    before = snapshot(tmp_path)
    for name in ("full", "file", "link", "dangling", "file/below"):
        with pytest.raises(TargetError):
            restore(store, packet, tmp_path / name)
    assert snapshot(tmp_path) == before
    (tmp_path / "elsewhere").rmdir()
    (tmp_path / "elsewhere").mkdir()
    assert restore(store, packet, tmp_path / "elsewhere").files == 4


def test_only_a_part(tmp_path: Path, tree: Path) -> None:
    store = MemoryStore()
    packet = seal(store, tree)
    assert restore(store, packet, tmp_path / "out", only="d").files == 1
    assert set(snapshot(tmp_path / "out")) == {b"d/b", b"d/l"}
    restore(store, packet, tmp_path / "one", only="d/b")
    assert set(snapshot(tmp_path / "one")) == {b"d/b"}
    restore(store, packet, tmp_path / "odd", only="n\udcff")
    assert set(snapshot(tmp_path / "odd")) == {b"n\xff"}
    with pytest.raises(EmptyError):
        restore(store, packet, tmp_path / "none", only="x*")


def test_damaged_bytes_never_become_a_file(tmp_path: Path, tree: Path) -> None:
    store = MemoryStore()
    packet = seal(store, tree)
    big = object_id((tree / "big").read_bytes())
    store._content.data[big] = store._content.data[big][:-1] + b"?"
    with pytest.raises(IntegrityError, match=big.hex()) as caught:
        restore(store, packet, tmp_path / "out")
    assert not (tmp_path / "out/big").exists()
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(left) == 1
    note = f"big was not written; 1 whole file was written to {tmp_path}/out before it and left there"
    assert caught.value.__notes__ == [note]
    assert f"  {note}" in list(error_lines(caught.value))
    assert error_document(caught.value)["error"]["notes"] == [note]


def test_what_is_not_here_is_listed_and_the_rest_restored(tmp_path: Path, tree: Path) -> None:
    store = MemoryStore()
    packet = seal(store, tree)
    for gone in (b"1", b"2"):
        store._content.infos[object_id(gone)] = store._content.infos[object_id(gone)]._replace(
            placement="external"
        )
        del store._content.data[object_id(gone)]
    report = restore(store, packet, tmp_path / "out")
    assert [missing.path for missing in report.missing] == ["a", "d/b"]
    assert all(missing.sha256 for missing in report.missing)
    assert findings(verify_against(store, packet, tmp_path / "out")).keys() == {"a", "d/b"}


def test_a_target_without_rights() -> None:
    with open_to_all() as place:
        plant(place / "t", {"f": "x"})
        (place / "closed").mkdir()
        (place / "closed").chmod(0o555)

        def work() -> str:
            store = MemoryStore()
            packet = seal(store, place / "t")
            try:
                restore(store, packet, place / "closed/out")
            except (TargetError, InputOutputError) as error:
                return error.message
            return ""

        assert "Permission denied" in as_nobody(work)


def test_two_kinds_of_rights_only(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x", "s": "+xy"})
    (tree / "s").chmod(0o4777)
    store = MemoryStore()
    restore(store, seal(store, tree), tmp_path / "out")
    assert (tmp_path / "out/s").stat().st_mode & 0o7000 == 0
    assert not os.access(tmp_path / "out/f", os.X_OK)
