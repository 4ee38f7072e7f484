"""Edge cases of encodings and of what comes from outside (55 to 62)."""

import hashlib
import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from workbench import (
    at_most,
    file_node,
    plant,
    put_json,
    put_object,
    put_packet,
    seal,
    snapshot,
)

from provstore import canon, merkle, records
from provstore.errors import (
    AmbiguousError,
    DigestError,
    DuplicateKeyError,
    FloatError,
    FrameError,
    MalformedError,
    NotFoundError,
    ProvError,
)
from provstore.ids import object_id, parse_digest, record_id
from provstore.records.packet import Entry, Packet
from provstore.records.tree import TreeEntry
from provstore.store import frame, objects
from provstore.store.memory import MemoryStore
from provstore.store.opening import open_pack
from provstore.store.resolving import resolve
from provstore.verbs.checking import fsck
from provstore.verbs.listing import cat_object, ls
from provstore.verbs.locating import locate
from provstore.verbs.packing import pack
from provstore.verbs.restoring import restore
from provstore.verbs.verifying import verify

# 55 and 56. Strict JSON


@pytest.mark.parametrize(
    "text",
    ['{"digest":"aa","digest":"bb"}', '{"a":{"x":1,"x":1}}', '{"a":[{"b":{"c":0,"d":1,"c":2}}]}'],
)
def test_55_a_key_stated_twice_is_refused_at_every_depth(text: str) -> None:
    with pytest.raises(DuplicateKeyError, match="byte"):
        canon.parse(text.encode())
    with pytest.raises(DuplicateKeyError):
        canon.decode(text.encode(), dict[str, Any])


def test_55_a_record_with_a_key_twice_is_damage(tmp_path: Path) -> None:
    data = b'{"entries":[],"entries":[],"format":"provstore/tree/v1"}'
    store = MemoryStore()
    with store.stage() as stage:
        stage.add_record(record_id("tree", data), data)
        stage.commit()
    assert len(fsck(store).damaged) == 1
    with pytest.raises(DuplicateKeyError):
        records.decode(objects.record(store, record_id("tree", data)))


@pytest.mark.parametrize(
    "text", ['{"v": NaN}', '{"v": 1e999}', '{"v": -Infinity}', '{"v": 1.5}', '{"v": -0}']
)
def test_56_numbers_that_no_record_holds(text: str) -> None:
    with pytest.raises(FloatError):
        canon.parse(text.encode())
    if "1.5" not in text and "-0" not in text:
        with pytest.raises(FloatError):
            canon.parse_exact(text.encode())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, 2**53, -(2**53)])
def test_56_the_encoder_refuses_instead_of_writing_null(value: float) -> None:
    with pytest.raises(FloatError):
        canon.encode({"a": [value]})
    with pytest.raises(FloatError):
        canon.encode({"value": value, "z": "text"})


def test_56_null_is_not_a_number(tmp_path: Path) -> None:
    assert canon.parse_exact(b'{"tok_s": null}') == {"tok_s": None}


# 59. Decompression bombs


def test_59_a_frame_that_states_terabytes_costs_nothing() -> None:
    bomb = bytes.fromhex("28b52ffde06c0606066363636363")
    for header in (struct.pack("<BII", 1, 1 << 20, len(bomb)), struct.pack("<BII", 1, 0xFFFFFFFF, len(bomb))):
        with pytest.raises(FrameError):
            frame.unpack(header + bomb)


def test_59_memory_stays_bounded() -> None:
    code = (
        "import resource, struct, zstandard\n"
        "from provstore.store import frame\nfrom provstore.errors import FrameError\n"
        "big = zstandard.ZstdCompressor().compress(bytes(256 << 20))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for plain in (len(big), 1 << 20, 16 << 20):\n"
        "    try:\n"
        "        frame.unpack(struct.pack('<BII', 1, plain, len(big)) + big)\n"
        "    except FrameError:\n"
        "        continue\n"
        "    raise SystemExit('it unpacked')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 64 << 10
    assert resource.getpagesize()


def folded_bomb(store: MemoryStore, depth: int) -> bytes:
    """Store a tree whose every directory names one subdirectory twice: 2**depth paths in few records."""
    put_object(store, b"x")
    nodes = merkle.build([file_node(b"x", "f")])
    for _ in range(depth):
        below = nodes[-1][0].hex()
        nodes += merkle.build([TreeEntry(kind="directory", name=name, tree=below) for name in "ab"])
    packet = Packet(entries=(Entry(role="", kind="evidence", tree=nodes[-1][0].hex(), files=1 << depth),))
    id, data = records.encode(packet)
    with store.stage() as stage:
        for node_id, node in nodes:
            stage.add_record(node_id, node)
        stage.add_record(id, data)
        stage.set_ref("bomb", id)
        stage.commit()
    return id


def test_59_few_records_that_unfold_to_a_trillion_members(tmp_path: Path) -> None:
    store = MemoryStore()
    bomb = folded_bomb(store, 40)
    with at_most(60):
        assert fsck(store).damaged == ()
        pack([("bomb", locate("bomb", store))], tmp_path / "bomb.pack")
        with open_pack(tmp_path / "bomb.pack") as reader:
            try:
                outcome: str = verify(reader, bomb).outcome
            except MalformedError as error:
                outcome = error.code
            assert outcome
            with pytest.raises(ProvError):
                restore(reader, bomb, tmp_path / "out")


# 61. Names that lead out of the target


EVIL = ("..", ".", "", "a/b", "/etc", "x\0y", "a" * 5000)


def evil_packet(store: MemoryStore, name: str, *, deep: bool) -> bytes:
    """Store a packet whose last member has a name that no file may have."""
    good = put_object(store, b"good").hex()
    sha = hashlib.sha256(b"good").hexdigest()

    def entry(called: str) -> dict[str, object]:
        return {"blake3": good, "kind": "file", "name": called, "sha256": sha, "size_bytes": 4}

    def tree(*entries: dict[str, object]) -> str:
        return put_json(store, "tree", {"entries": entries, "format": "provstore/tree/v1"}).hex()

    evil = tree(entry(name))
    root = tree(entry("a"), {"kind": "directory", "name": "z", "tree": evil}) if deep else evil
    packet = {
        "entries": [{"files": 1, "kind": "evidence", "role": "", "size_bytes": 4, "tree": root}],
        "format": "provstore/packet/v1",
    }
    id = put_json(store, "packet", packet)
    with store.stage() as stage:
        stage.set_ref("evil", id)
        stage.commit()
    return id


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("name", EVIL)
def test_61_a_name_that_leads_astray_is_refused_before_the_first_byte(
    tmp_path: Path, name: str, deep: bool
) -> None:
    store = MemoryStore()
    id = evil_packet(store, name, deep=deep)
    before = snapshot(tmp_path)
    with pytest.raises(MalformedError):
        restore(store, id, tmp_path / "in/out")
    assert snapshot(tmp_path).keys() - before.keys() <= {b"in", b"in/out"}
    report = verify(store, id)
    assert report.outcome == "FAIL"
    assert fsck(store).damaged != ()
    with pytest.raises(MalformedError):
        list(ls(store, id))
    with pytest.raises(ProvError):
        pack([("evil", locate("evil", store))], tmp_path / "evil.pack")
    assert not (tmp_path / "evil.pack").exists()


@pytest.mark.parametrize(
    "roles", [("../x",), ("/x",), ("a", "a/b"), ("b", "a"), ("a", "a"), ("",) * 2, ("a//b",), ("x\x1b",)]
)
def test_61_roles_that_lead_astray(tmp_path: Path, roles: tuple[str, ...]) -> None:
    store = MemoryStore()
    good = put_object(store, b"good").hex()
    entries = [
        {
            "blake3": good,
            "files": 1,
            "kind": "file",
            "role": role,
            "sha256": hashlib.sha256(b"good").hexdigest(),
            "size_bytes": 4,
        }
        for role in roles
    ]
    id = put_json(store, "packet", {"entries": entries, "format": "provstore/packet/v1"})
    with store.stage() as stage:
        stage.set_ref("evil", id)
        stage.commit()
    for look in (lambda: restore(store, id, tmp_path / "out"), lambda: list(ls(store, id))):
        with pytest.raises(MalformedError):
            look()
    assert not (tmp_path / "out").exists()
    assert verify(store, id).outcome == "FAIL"
    assert fsck(store).damaged != ()


def test_61_a_link_of_the_packet_is_never_written_through(tmp_path: Path) -> None:
    store = MemoryStore()
    put_object(store, b"x")
    link = TreeEntry(kind="symlink", name="d", target=str(tmp_path / "outside"))
    (tmp_path / "outside").mkdir()
    packet = put_packet(store, [(b"d", link), (b"e/f", file_node(b"x"))])
    restore(store, packet, tmp_path / "out")
    assert list((tmp_path / "outside").iterdir()) == []
    assert (tmp_path / "out/d").is_symlink()


# 62. Digests as paths


@pytest.mark.parametrize(
    "text",
    [
        "sha256:../../../../tmp/pwn",
        "sha256:ABC",
        "sha256:" + "0" * 63,
        "sha256:" + "0" * 65,
        "SHA256:" + "0" * 64,
        "sha256:" + "A" * 64,
        "sha256:" + "0" * 63 + "\n",
        "blake3:",
        "md5:" + "0" * 32,
        "blake3:" + "\uff10" * 64,
    ],
)
def test_62_malformed_digests_are_refused_before_any_look(text: str) -> None:
    with pytest.raises(DigestError):
        parse_digest(text)
    with pytest.raises(DigestError):
        resolve(MemoryStore(), text)
    with pytest.raises(DigestError):
        next(iter(cat_object(MemoryStore(), text)))


def test_62_prefixes(tmp_path: Path) -> None:
    store = MemoryStore()
    packet = seal(store, plant(tmp_path / "t", {"f": "x"}))
    assert resolve(store, packet.hex()[:8]) == packet
    assert resolve(store, f"sha256:{hashlib.sha256(b'x').hexdigest()}") == object_id(b"x")
    for short in (packet.hex()[:7], "", "deadbeef"):
        with pytest.raises((NotFoundError, AmbiguousError)):
            resolve(store, short)
