"""Ways to break it that somebody found by hand."""

import os
import time
from pathlib import Path

import pytest
from workbench import STORES, open_store_of, plant, seal

from provstore.errors import RefConflictError, UsageError
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.resolving import resolve
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.unpacking import unpack
from provstore.verbs.verifying import verify


@pytest.mark.parametrize("kind", STORES)
def test_no_ref_can_pose_as_an_id(kind: str, tmp_path: Path) -> None:
    store = open_store_of(kind, tmp_path)
    packet = seal(store, plant(tmp_path / "t", {"f": "1"}))
    other = plant(tmp_path / "u", {"f": "2"})
    for name in (packet.hex(), packet.hex()[:8], f"blake3:{packet.hex()}", "sha256:x", "deadbeef"):
        with pytest.raises(UsageError, match="reads as an id"):
            seal(store, other, name=name)
    assert resolve(store, packet.hex()) == packet
    store.close()


def test_a_directory_named_like_an_id_gets_a_ref_that_says_where_it_lies(tmp_path: Path) -> None:
    store = MemoryStore()
    tree = plant(tmp_path / "snapshots" / ("a" * 40), {"f": "1"})
    report = seal_paths(store, [tree])
    assert report.name == "snapshots/" + "a" * 40


@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_a_large_file_whose_blob_is_gone_is_read_again(harm: str, tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"d/large": os.urandom(6 << 20), "d/small": "x"})
    time.sleep(1.1)
    store = LmdbStore.create(os.fspath(tmp_path / "store"))
    seal(store, tree)
    assert seal_paths(store, [tree]).bytes_read == 0
    (blob,) = [path for path in Path(store.path, "blobs").rglob("*") if path.is_file()]
    if harm == "cut":
        os.truncate(blob, 100)
    else:
        blob.unlink()
    report = seal_paths(store, [tree])
    assert report.bytes_read == 6 << 20
    assert verify(store, bytes.fromhex(report.packet)).outcome == "PASS"
    store.close()


def test_a_pack_whose_name_is_taken_comes_in_without_it(tmp_path: Path) -> None:
    theirs, ours = MemoryStore(), MemoryStore()
    packet = seal(theirs, plant(tmp_path / "run", {"f": "theirs"}))
    mine = seal(ours, plant(tmp_path / "mine", {"f": "ours"}), name="run")
    pack([("run", Located(theirs, packet, False))], tmp_path / "p.pack")
    with pytest.raises(RefConflictError, match="run"):
        unpack(ours, tmp_path / "p.pack")
    report = unpack(ours, tmp_path / "p.pack", refs=False)
    assert (report.names, ours.ref("run")) == ((), mine)
    assert verify(ours, packet).outcome == "PASS"


def test_holes_and_pointers_that_were_allowed_are_told(tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{7:064d}\nsize 49\n"
    tree = plant(tmp_path / "t", {"ok": "x", "weights": pointer})
    report = seal_paths(MemoryStore(), [tree], options=SealOptions(allow_pointers=True))
    assert report.observations["notes"] == ("weights: a pointer stands in for its payload",)


def test_a_store_may_lie_below_a_name_that_is_no_text(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/odd\xff"
    os.mkdir(place)
    store = LmdbStore.create(os.fsdecode(place + b"/store"))
    packet = seal(store, plant(tmp_path / "t", {"f": "1"}))
    assert verify(store, packet).outcome == "PASS"
    store.close()
