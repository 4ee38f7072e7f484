"""Edge cases of manifests, encodings, imports and verdicts (53 to 66), and case C30."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from workbench import (
    at_most,
    failures,
    file_node,
    findings,
    open_to_all,
    plant,
    put_object,
    put_packet,
    seal,
    seal_text,
)

from provstore import canon, records
from provstore.errors import (
    CanonError,
    EmptyError,
    NewerFormatError,
    NotFoundError,
    PinMismatchError,
    ProvError,
    SpecError,
)
from provstore.ids import object_id, record_id
from provstore.store.memory import MemoryStore
from provstore.verbs.checking import fsck
from provstore.verbs.checksumming import verify_checksums
from provstore.verbs.comparing import verify_against
from provstore.verbs.listing import cat
from provstore.verbs.locating import locate
from provstore.verbs.packing import pack
from provstore.verbs.restoring import restore
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.unpacking import unpack
from provstore.verbs.verifying import verify

# 53. Nothing checked


def test_53_zero_members_are_never_a_success(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    plant(tmp_path / "t", {"f": "x", "g/h": "y"})
    store = MemoryStore()
    packet = seal(store, tmp_path / "t")
    (tmp_path / "z.sum").write_text("# only a comment\n\n")
    looks: list[Callable[[], object]] = [
        lambda: seal(store, tmp_path / "empty"),
        lambda: seal(store, tmp_path / "t", exclude=("*",)),
        lambda: verify(store, packet, only="nomatch/*"),
        lambda: verify_against(store, packet, tmp_path / "t", only="nomatch/*"),
        lambda: verify_checksums(tmp_path / "z.sum", against=tmp_path),
        lambda: restore(store, packet, tmp_path / "out", only="nomatch"),
        lambda: pack([("t", locate("t", store))], tmp_path / "p.pack", only=["nomatch"]),
        lambda: pack([("t", locate("t", store))], tmp_path / "p.pack", without=["nomatch"]),
        lambda: pack([], tmp_path / "p.pack"),
    ]
    for look in looks:
        with pytest.raises(EmptyError) as raised:
            look()
        assert raised.value.exit_code not in (0, 1)
    with pytest.raises(EmptyError, match="0 members checked"):
        verify(store, packet, only="nomatch/*")
    assert not (tmp_path / "p.pack").exists()


def test_53_a_packet_of_declared_digests_alone_is_not_verified(tmp_path: Path) -> None:
    store = MemoryStore()
    packet = seal_text(
        store, tmp_path, f'[[entry]]\nrole = "w"\nkind = "file"\nkeep = "declared"\nsha256 = "{"0" * 64}"\n'
    )
    report = verify(store, packet)
    assert report.outcome == "INCOMPLETE"
    assert (report.objects_checked, report.bytes_checked) == (0, 0)
    assert [missing.custody for missing in report.missing] == ["declared"]


def test_53_a_declared_entry_never_helps_a_held_one(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"f": "x"})
    store = MemoryStore()
    packet = seal_text(
        store,
        tmp_path,
        '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "t"\n'
        f'[[entry]]\nrole = "w"\nkind = "file"\nkeep = "declared"\nsha256 = "{"0" * 64}"\n',
    )
    assert verify(store, packet).outcome == "PASS"
    assert verify(store, packet, only="w").outcome == "INCOMPLETE"


# 54. Required evidence deleted


def test_54_the_packet_says_what_is_required_not_the_disk(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"oracle/tokens.json": "tok", "raw.log": "1"})
    store = MemoryStore()
    packet = seal(store, tree, require=("oracle",))
    (tree / "oracle/tokens.json").unlink()
    (tree / "oracle").rmdir()
    report = verify_against(store, packet, tree)
    assert report.outcome == "FAIL"
    assert findings(report)["oracle/tokens.json"] == "missing"
    with pytest.raises(PinMismatchError, match="oracle"):
        seal(store, tree, require=("oracle",))
    with pytest.raises(NotFoundError):
        verify_against(store, packet, tmp_path / "elsewhere")
    assert verify_against(store, packet, open_empty(tmp_path)).outcome == "FAIL"


def open_empty(place: Path) -> Path:
    (place / "none").mkdir()
    return place / "none"


def test_54_require_finds_roles_and_what_lies_above_them(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"a.json": "1", "b.json": "2"})
    text = "".join(
        f'[[entry]]\nrole = "oracle/{name}"\nkind = "oracle"\npath = "t/{name}.json"\n' for name in "ab"
    )
    for required in ("oracle/a", "oracle/b", "oracle", "*/a"):
        seal_text(MemoryStore(), tmp_path, text, require=(required,))
    with pytest.raises(PinMismatchError) as raised:
        seal_text(MemoryStore(), tmp_path, text, require=("oracle/c", "oracles", "oracle/a"))
    assert len(raised.value.mismatches) == 2


def test_54_a_claim_rests_on_evidence_that_is_there(tmp_path: Path) -> None:
    plant(tmp_path / "t", {"bench.json": "{}"})
    text = (
        '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "t"\n'
        '[[claim]]\nname = "decode"\nvalue = "1.5"\nunit = "tok/s"\nmetric = "m"\nconvention = "c"\n'
        'evidence = ["e/{}"]\n'
    )
    assert seal_text(MemoryStore(), tmp_path, text.format("bench.json"))
    store = MemoryStore()
    with pytest.raises(ProvError, match=r"gone\.json"):
        seal_text(store, tmp_path, text.format("gone.json"))
    assert store.refs() == []


# 65. Everything at once, with what to look at


def test_65_one_run_names_everything(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {name: f"{name}\n" for name in "12356"})
    (tree / "7").symlink_to("1")
    store = MemoryStore()
    packet = seal(store, tree)
    (tree / "2").write_text("X\n")
    (tree / "3").unlink()
    (tree / "4").write_text("n\n")
    (tree / "5").chmod(0o755)
    (tree / "6").unlink()
    (tree / "6").mkdir()
    (tree / "7").unlink()
    (tree / "7").symlink_to("2")
    report = verify_against(store, packet, tree)
    assert findings(report) == {
        "2": "changed",
        "3": "missing",
        "4": "extra",
        "5": "mode",
        "6": "type",
        "7": "changed",
    }
    changed = next(check for check in failures(report) if check.path == "2")
    assert object_id(b"2\n").hex() in (changed.expected or "")
    assert object_id(b"X\n").hex() in (changed.found or "")
    assert "2 bytes" in (changed.expected or "")
    assert changed.location == "byte 0"


def test_65_the_first_differing_byte_is_named(tmp_path: Path) -> None:
    data = bytearray(range(256)) * 100
    tree = plant(tmp_path / "t", {"f": bytes(data), "short": b"abc"})
    store = MemoryStore()
    packet = seal(store, tree)
    data[17_003] ^= 1
    (tree / "f").write_bytes(bytes(data))
    (tree / "short").write_bytes(b"abcd")
    found = {check.path: check.location for check in failures(verify_against(store, packet, tree))}
    assert found == {"f": "byte 17003", "short": "byte 3"}


# 66. Formats of other times


@pytest.mark.parametrize("format", ["provstore/999", "provstore/tree/v2", "provstore/packet/v9"])
def test_66_a_newer_format_is_named(format: str) -> None:
    data = canon.encode({"entries": [], "format": format})
    with pytest.raises(NewerFormatError, match=format):
        records.decode(data)
    with pytest.raises(NewerFormatError):
        records.kind_of(data)


def test_66_a_newer_packet_in_a_store_is_a_failure_not_a_crash(tmp_path: Path) -> None:
    store = MemoryStore()
    data = canon.encode({"entries": [], "format": "provstore/packet/v2", "extra": {"a": 1}})
    with store.stage() as stage:
        stage.add_record(record_id("packet", data), data)
        stage.set_ref("new", record_id("packet", data))
        stage.commit()
    report = verify(store, record_id("packet", data))
    assert report.outcome == "FAIL"
    assert "newer" in failures(report)[0].message
    assert "newer" in fsck(store).damaged[0].reason


# C30. Seal completeness


def manifest_of(tree: Path, *, without: str = "") -> str:
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n"
        for path in sorted(tree.rglob("*"))
        if path.is_file() and path.name != without
    )


PINNED = '[[entry]]\nrole = "evidence"\nkind = "evidence"\npath = "t"\nmanifest = "t.sum"\n'


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    tree = plant(tmp_path / "t", {"status.txt": "PASS\n", "log": "x", "d/e": "y"})
    (tmp_path / "t.sum").write_text(manifest_of(tree))
    return tmp_path


def test_c30_a_manifest_is_exact(pinned: Path) -> None:
    store = MemoryStore()
    packet = seal_text(store, pinned, PINNED)
    assert verify(store, packet).outcome == "PASS"
    (pinned / "t/status.txt").unlink()
    (pinned / "t/notes.txt").write_text("n")
    (pinned / "t/log").write_text("changed")
    with pytest.raises(PinMismatchError) as raised:
        seal_text(MemoryStore(), pinned, PINNED)
    lines = dict(line.split(": ", 1) for line in raised.value.mismatches)
    assert lines.keys() == {"evidence/status.txt", "evidence/notes.txt", "evidence/log"}
    assert lines["evidence/status.txt"].startswith("missing")
    assert lines["evidence/notes.txt"].startswith("extra")
    assert lines["evidence/log"].startswith("changed")
    assert hashlib.sha256(b"changed").hexdigest() in lines["evidence/log"]


@pytest.mark.parametrize("change", ["no newline", "crlf"])
def test_c30_a_changed_line_end_is_a_change(pinned: Path, change: str) -> None:
    (pinned / "t/status.txt").write_bytes(b"PASS" if change == "no newline" else b"PASS\r\n")
    with pytest.raises(PinMismatchError, match=r"status\.txt"):
        seal_text(MemoryStore(), pinned, PINNED)


def test_c30_an_empty_manifest_is_refused(pinned: Path) -> None:
    (pinned / "t.sum").write_text("")
    with pytest.raises(EmptyError):
        seal_text(MemoryStore(), pinned, PINNED)


def test_c30_a_link_does_not_stand_for_a_listed_file(pinned: Path) -> None:
    (pinned / "t/log").rename(pinned / "elsewhere")
    (pinned / "t/log").symlink_to(pinned / "elsewhere")
    with pytest.raises(PinMismatchError, match="log"):
        seal_text(MemoryStore(), pinned, PINNED)


def test_c30_a_manifest_that_lies_in_the_directory_it_lists(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"f": "x"})
    (tree / "SHA256SUMS").write_text(manifest_of(tree, without="SHA256SUMS"))
    store = MemoryStore()
    text = PINNED.replace("t.sum", "t/SHA256SUMS")
    packet = seal_text(store, tmp_path, text)
    assert verify(store, packet).outcome == "PASS"
    (tree / "g").write_text("y")
    with pytest.raises(PinMismatchError, match="g: extra"):
        seal_text(MemoryStore(), tmp_path, text)


def test_c30_a_packet_that_lies_about_its_manifest_fails(tmp_path: Path) -> None:
    store = MemoryStore()
    put_object(store, b"x")
    manifest = put_object(store, f"{'1' * 64}  f\n".encode()).hex()
    for custody in ("held", "declared"):
        packet = put_packet(
            store,
            [(b"f", file_node(b"x"))],
            custody=custody,
            pins=(records.packet.Pin(kind="manifest", value=manifest),),
        )
        report = verify(store, packet)
        assert report.outcome == "FAIL", custody
        assert "pin-mismatch" in {check.code for check in failures(report)}


def test_a_manifest_never_waits_for_a_fifo(pinned: Path) -> None:
    import os

    (pinned / "t.sum").unlink()
    os.mkfifo(pinned / "t.sum")
    with at_most(10), pytest.raises(ProvError, match=r"t\.sum"):
        seal_text(MemoryStore(), pinned, PINNED)
    with at_most(10), pytest.raises(ProvError):
        verify_checksums(pinned / "t.sum")


def test_all_pins_of_all_entries_are_reported_at_once(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "1", "b": "2", "t/f": "3"})
    (tmp_path / "t.sum").write_text(f"{'0' * 64}  f\n")
    text = (
        f'[[entry]]\nrole = "a"\nkind = "file"\npath = "a"\nsha256 = "{"1" * 64}"\nblake3 = "{"2" * 64}"\n'
        f'[[entry]]\nrole = "b"\nkind = "file"\npath = "b"\nsha256 = "{hashlib.sha256(b"2").hexdigest()}"\n'
        '[[entry]]\nrole = "t"\nkind = "evidence"\npath = "t"\nmanifest = "t.sum"\n'
    )
    store = MemoryStore()
    with pytest.raises(PinMismatchError) as raised:
        seal_text(store, tmp_path, text)
    assert len(raised.value.mismatches) == 3
    assert list(store.objects()) == []


def test_all_absent_paths_are_named_at_once(tmp_path: Path) -> None:
    text = "".join(f'[[entry]]\nrole = "{n}"\nkind = "file"\npath = "gone-{n}"\n' for n in "ab")
    with pytest.raises((NotFoundError, SpecError)) as raised:
        seal_text(MemoryStore(), tmp_path, text)
    assert "gone-a" in raised.value.message
    assert "gone-b" in raised.value.message


def test_evidence_that_is_no_strict_json_is_sealed_as_it_is(tmp_path: Path) -> None:
    texts: dict[str | bytes, str | bytes | None] = {
        "twice.json": '{"a":1,"a":2}',
        "nan.json": '{"a": NaN}',
        "lone.json": '{"a": "\\ud800", "\\udfff": 1}',
        "deep.json": "[" * 100_000,
        "cut.json": '{"a": ',
        "latin.json": b'{"a": "\xe9"}',
        "numbers.json": '{"a": 1' + "0" * 5000 + ', "b": 1e5}',
        "null.json": '{"a\\u0000b": "\\u0000"}',
        "env": b"A=\xff\x00\nB=\x1b[2J\n=x\nC",
    }
    tree = plant(tmp_path / "t", texts)
    for name in map(str, texts):
        kind = "environment" if name == "env" else "record"
        store = MemoryStore()
        packet = seal(store, tree / name, kind=kind)
        assert verify(store, packet).outcome == "PASS"
        assert b"".join(cat(store, packet, name)) == (tree / name).read_bytes()


def test_a_pack_brings_its_packet_whole_or_not_at_all(tmp_path: Path) -> None:
    store = MemoryStore()
    seal(store, plant(tmp_path / "t", {f"f{n}": bytes([n]) * 3000 for n in range(20)}))
    pack([("t", locate("t", store))], tmp_path / "p.pack")
    whole = (tmp_path / "p.pack").read_bytes()
    for size in range(0, len(whole), max(1, len(whole) // 40)):
        (tmp_path / "cut.pack").write_bytes(whole[:size])
        target = MemoryStore()
        with pytest.raises(ProvError):
            unpack(target, tmp_path / "cut.pack")
        assert list(target.objects()) == []
        assert target.refs() == []


def test_seal_reports_are_plain_json(tmp_path: Path) -> None:
    import msgspec

    with open_to_all() as place:
        report = seal_paths(MemoryStore(), [plant(place / "t", {"f": "x"})], options=SealOptions())
    assert json.loads(msgspec.json.encode(report))["packet"] == report.packet
    assert CanonError.exit_code == 2
