"""Edge cases of stores, Git and the Hub as the commands that people type."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from prov_run import Prov
from workbench import git, plant

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{7:064d}\nsize 4900000000\n"


def test_23_a_damaged_blob_is_named_by_verify_and_fsck(prov: Prov, place: Path) -> None:
    plant(place / "t", {"big": os.urandom(9 << 20), "small": "x"})
    packet = prov("seal", "t").id()
    blob = next(path for path in (place / ".prov/blobs").rglob("*") if path.is_file())
    blob.chmod(0o644)
    with blob.open("r+b") as file:
        file.seek(5000)
        file.write(b"evil")
    blob.chmod(0o444)
    verified = prov("verify", packet)
    assert verified.code == 1
    assert "big" in verified.text()
    checked = prov("fsck", "--json")
    assert checked.code == 1
    assert [damage["path"] for damage in checked.json()["damaged"]] == ["big"]
    assert prov("cat", packet, "big").code == 10
    assert prov("restore", packet, "out").code == 10


def test_25_a_rewritten_blob_of_the_hub_cache(prov: Prov, place: Path) -> None:
    name = hashlib.sha256(b"good").hexdigest()
    plant(place, {f"c/blobs/{name}": "good", "c/snapshots/r/m.bin": f"->../../blobs/{name}"})
    assert prov("seal", "--hf", "c").code == 0
    (place / "c/snapshots/r/m.bin").write_text("rewritten")
    ended = prov("seal", "--hf", "c")
    assert ended.code == 18
    assert name in ended.err


def test_31_a_store_whose_map_is_full(prov: Prov, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(place / "t", {f"f{n}": os.urandom(2500) for n in range(900)})
    monkeypatch.setenv("PROV_MAP_SIZE", str(1 << 20))
    assert prov("init", "s").code == 0
    assert prov("--store", "s", "seal", "t").code == 0
    assert prov("--store", "s", "verify", "t").code == 0
    assert prov("--store", "s", "fsck").code == 0


def test_35_a_tree_that_holds_its_store(prov: Prov, place: Path) -> None:
    plant(place, {"f": "x"})
    first = prov("seal", ".", "--name", "here", "--json")
    assert first.code == 0
    assert {"path": ".prov", "rule": "the store itself"} in first.json()["excluded"]
    assert prov("seal", ".", "--name", "here").id() == first.json()["packet"]
    for path in (".prov", ".prov/data.mdb", ".prov/blobs"):
        assert prov("seal", path).code == 2


def test_38_a_store_that_is_none(prov: Prov, place: Path) -> None:
    (place / "s").mkdir()
    (place / "s/data.mdb").write_bytes(os.urandom(65536))
    ended = prov("--store", "s", "verify", "x")
    assert ended.code >= 10
    assert "Traceback" not in ended.err
    assert prov("verify", "s/data.mdb").code in (2, 11)
    assert prov("unpack", "s/data.mdb").code == 2


def test_43_a_thin_bundle(prov: Prov, place: Path) -> None:
    (place / "r").mkdir()
    (place / "t").mkdir()
    git(place / "r", "init", "-q")
    for number in range(3):
        (place / "r/f").write_text(str(number))
        git(place / "r", "add", "f")
        git(place / "r", "commit", "-qm", str(number))
    git(place / "r", "bundle", "create", "-q", str(place / "t/thin.bundle"), "HEAD~1..HEAD")
    ended = prov("seal", "t")
    assert ended.code == 18
    assert git(place / "r", "rev-parse", "HEAD~1") in ended.err
    assert "git bundle create" in ended.err
    assert ended.out == b""


def test_44_a_pointer(prov: Prov, place: Path) -> None:
    plant(place / "t", {"model.safetensors": POINTER})
    for flags in ([], ["--hf"]):
        ended = prov("seal", "t", *flags)
        assert ended.code == 18
        assert "model.safetensors" in ended.err
    packet = prov("seal", "t", "--allow-pointers").id()
    assert prov("verify", packet).code == 3
    assert prov("ls", packet, "--json").json()[0]["state"] == "pointer"


def test_46_and_48_a_work_tree_that_differs_from_its_commit(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    git(place / "t", "init", "-q")
    git(place / "t", "config", "core.autocrlf", "input")
    (place / "t/f").write_bytes(b"a\r\nb\r\n")
    git(place / "t", "add", "f")
    git(place / "t", "commit", "-qm", "1")
    sealed = prov("seal", "t", "--git", "--json").json()
    assert any("filter" in note for note in sealed["observations"]["notes"])
    assert prov("cat", "t", "f").out == b"a\r\nb\r\n"
    (place / "t/f").write_bytes(b"uncommitted\n")
    (place / "t/new").write_bytes(b"n")
    assert prov("seal", "t", "--git").code == 0
    card = prov("show", "t", "--json").text()
    assert git(place / "t", "rev-parse", "HEAD") in card
    assert "dirty" in card
    assert "untracked" in card


def test_49_two_layouts_of_one_model(prov: Prov, place: Path) -> None:
    revision = "a" * 40
    plant(
        place,
        {
            "d/w": "w",
            "d/.cache/huggingface/download/w.metadata": f"{revision}\ne\n1\n",
            "c/models--o--m/blobs/x": "w",
            f"c/models--o--m/snapshots/{revision}/w": "->../../blobs/x",
            "c/models--o--m/refs/main": revision,
        },
    )
    trees = [
        prov("seal", "--hf", path, "--json").json()["entries"][0]["id"] for path in ("d", "c/models--o--m")
    ]
    assert trees[0] == trees[1]
    assert [member["path"] for member in prov("ls", "d", "--json").json()] == ["w"]


def test_51_a_download_that_did_not_finish(prov: Prov, place: Path) -> None:
    index = {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
    plant(
        place,
        {
            "m/model.safetensors.index.json": json.dumps(index),
            "m/0a.de.incomplete": "",
            "m/config.json": "{}",
        },
    )
    ended = prov("seal", "--hf", "m")
    assert ended.code == 18
    for name in ("model-1-of-2", "model-2-of-2", "0a.de.incomplete"):
        assert name in ended.err


def test_54_no_packet_at_hand(prov: Prov, place: Path) -> None:
    assert prov("verify").code == 2
    assert prov("verify", "nothing").code == 11
    plant(place, {"t/f": "x", "empty": None})
    packet = prov("seal", "t").id()
    assert prov("verify", packet, "--against", "empty").code == 1
    assert prov("verify", packet, "--against", "gone").code == 11


def test_61_a_pack_is_looked_at_before_it_is_unpacked(prov: Prov, place: Path) -> None:
    plant(place / "t", {f"f{n}": os.urandom(200) for n in range(9)})
    assert prov("seal", "t").code == 0
    assert prov("pack", "t", "-o", "t.pack").code == 0
    data = bytearray((place / "t.pack").read_bytes())
    data[len(data) // 2] ^= 1
    (place / "bad.pack").write_bytes(data)
    shutil.rmtree(place / ".prov")
    prov("init")
    assert prov("unpack", "bad.pack").code in (2, 10)
    assert prov("stats", "--json").json()["objects"] == 0
    assert prov("verify", "bad.pack").code != 0
    assert prov("verify", "t.pack").code == 0


def test_41_a_killed_seal_leaves_a_sound_store(prov: Prov, place: Path) -> None:
    import sys
    import time

    plant(place / "t", {"w": os.urandom(60 << 20), **{f"f{n}": str(n) for n in range(300)}})
    for delay in (0.15, 0.3, 0.5, 0.8):
        run = subprocess.Popen(
            [sys.executable, "-m", "provstore", "seal", "t"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay)
        run.kill()
        run.wait()
        assert prov("fsck").code == 0
    assert prov("seal", "t").code == 0
    assert prov("verify", "t").code == 0
