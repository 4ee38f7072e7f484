"""Cases C28 to C30: cleanup and idle files, snapshots, the seal."""

import base64
from pathlib import Path
from typing import Any

import pytest
from smallrun import HEAD, digest, dump, gate, judged, said, sealed, snapshot

from provstore import records
from provstore.errors import PinMismatchError
from provstore.ids import digests
from provstore.records.verdict import GateOutcome
from provstore.store import objects
from provstore.store.memory import MemoryStore
from provstore.verbs.judging import judge
from provstore.verbs.sealing import SealOptions, seal_spec

OPERATION = (
    '[[extract]]\nname = "cleanup"\nkind = "cleanup"\nrole = "run/cleanup.txt"\n'
    '[[extract]]\nname = "summary"\nkind = "idle-summary"\nrole = "run/summary.txt"\n'
    '[[gate]]\nname = "cleanup"\nkind = "cleanup"\ncodes = "cleanup"\n'
    'names = ["original_status", "stop_status", "worker_status", "idle_status"]\n'
    '[[gate]]\nname = "summary"\nkind = "idle-summary"\nsummary = "summary"\n'
    'phases = ["prestart", "poststop"]\n'
    "snapshots = 13\nminimum_seconds = 60\n"
)
CLEAN = "original_status=0\nstop_status=0\nworker_status=0\nidle_status=0\n"
QUIET = "prestart elapsed_seconds=73 snapshots=13\npoststop elapsed_seconds=73 snapshots=13\n"


def test_c28_the_files_are_the_known_ones() -> None:
    assert digest(CLEAN) == "1ba9e60bb1f16ee57a01346eab588020551409680f48e4dd3956934c0e82f834"
    assert digest(QUIET) == "7c125b7b9573653cb522bbcc8f6fe940bca29c83d9cfd82d9df26ceb4575d5c6"


@pytest.mark.parametrize(
    ("name", "old", "new", "code"),
    [
        ("cleanup", "", "", "PASS ok"),
        ("cleanup", "idle_status=0", "idle_status=1", "FAIL cleanup"),
        ("cleanup", CLEAN, "", "FAIL cleanup-incomplete"),
        ("cleanup", "worker_status=0\n", "", "FAIL cleanup-incomplete"),
        ("cleanup", "worker_status=0", "worker_status=00", "FAIL wrong-type"),
        ("cleanup", "worker_status=0", "worker_status=0\nworker_status=0", "FAIL duplicate-key"),
        ("cleanup", "worker_status=0", "worker_status=0\nextra=0", "FAIL cleanup-extra"),
        ("summary", "", "", "PASS ok"),
        ("summary", "poststop elapsed_seconds=73", "poststop elapsed_seconds=59", "FAIL idle-too-short"),
        ("summary", "prestart elapsed_seconds=73 snapshots=13", "prestart elapsed_seconds=73 snapshots=12",
         "FAIL idle-count"),
        ("summary", "poststop", "prestart", "FAIL idle-phase"),
        ("summary", " snapshots=13", "", "FAIL idle-phase"),
    ],
)  # fmt: skip
def test_c28_cleanup_and_idle_files(tmp_path: Path, name: str, old: str, new: str, code: str) -> None:
    texts = {"cleanup": CLEAN, "summary": QUIET}
    if old:
        assert old in texts[name]
        texts[name] = texts[name].replace(old, new, 1)
    planted = {f"run/{key}.txt": text.encode() for key, text in texts.items()}
    found = judged(tmp_path, planted, OPERATION)
    assert code in said(found, name)
    assert (found.verdict.outcome == "PASS") == (code == "PASS ok")


IDLE = (
    '[[extract]]\nname = "idle"\nkind = "idle"\nrole = "run/idle-*.json"\n'
    '[[gate]]\nname = "g"\nkind = "idle"\nsnapshots = "idle"\ndevices = [0, 1]\ncount = 1\n'
)


def idle(tmp_path: Path, shown: dict[str, Any]) -> GateOutcome:
    return gate(judged(tmp_path, {"run/idle-0.json": dump(shown)}, IDLE), "g")


def test_c29_the_raw_output_decides(tmp_path: Path) -> None:
    good = snapshot("2026-07-26T21:44:00+00:00")
    assert [j.code for j in idle(tmp_path / "a", good).judgements] == ["ok"]
    raw = base64.b64decode(good["raw_capture"]["stdout_base64"])
    changed = base64.b64encode(raw.replace(b"77", b"78", 1)).decode()
    cases: dict[str, dict[str, Any]] = {
        "raw-hash": good | {"raw_capture": good["raw_capture"] | {"stdout_base64": changed}},
        "raw-size": good | {"raw_capture": good["raw_capture"] | {"stdout_bytes": len(raw) - 1}},
        "device-set": good | {"idle": good["idle"] | {"device_ids": [0, 3]}},
        "not-idle": snapshot(
            "2026-07-26T21:44:00+00:00",
            raw_rows=[
                {"device_id": 0, "process_id": 77, "process_name": "smi"},
                {"device_id": 1, "process_id": 77, "process_name": "smi"},
                {"device_id": 1, "process_id": 9, "process_name": "python"},
            ],
        ),
        "idle-status": good | {"status": "failed"},
    }
    for number, (code, shown) in enumerate(cases.items()):
        found = idle(tmp_path / str(number), shown)
        assert (found.outcome, code in [j.code for j in found.judgements]) == ("FAIL", True), (code, found)


def test_c29_a_copied_snapshot_is_no_second_one(tmp_path: Path) -> None:
    good = dump(snapshot("2026-07-26T21:44:00+00:00"))
    policy = IDLE.replace("count = 1", "count = 2\nminimum_seconds = 60")
    found = judged(tmp_path, {"run/idle-0.json": good, "run/idle-1.json": good}, policy)
    assert set(said(found, "g")) == {"FAIL idle-repeated", "FAIL idle-too-short"}


SEAL = '[[gate]]\nname = "g"\nkind = "seal"\nrole = "run"\ncount = 3\n'
THREE = {"run/status.txt": b"status=PASS\n", "run/a": b"a", "run/b": b"b"}


def test_c30_the_seal_is_exact(tmp_path: Path) -> None:
    assert digest(b"status=PASS") == "8066aa7f4ca09c13481b97932e8345ffa2bbc5e8ff93dd3ad6c7ecb442355a27"
    assert said(judged(tmp_path, THREE, SEAL), "g") == ["PASS ok"]
    for name, data in (("run/status.txt", None), ("run/notes.txt", b"n"), ("run/status.txt", b"status=PASS")):
        place = tmp_path / "files" / name
        before = place.read_bytes() if place.exists() else None
        place.unlink(missing_ok=True)
        if data is not None:
            place.write_bytes(data)
        with pytest.raises(PinMismatchError):
            sealed_again(tmp_path)
        place.unlink(missing_ok=True)
        if before is not None:
            place.write_bytes(before)


def sealed_again(place: Path) -> None:

    seal_spec(MemoryStore(), place / "spec.toml", options=SealOptions(use_cache=False))


def test_c30_a_packet_whose_manifest_is_not_its_files(tmp_path: Path) -> None:
    """No seal makes such a packet, but a forged or older one may say so; the gate looks for itself."""

    store, whole = sealed(tmp_path / "a", THREE)
    pins = objects.packet(store, whole).entries[0].pins
    variants: dict[str, dict[str, bytes | None]] = {
        "missing-object": {"run/status.txt": None},
        "extra-entry": {"run/notes.txt": b"n"},
        "content-changed": {"run/status.txt": b"status=PASS"},
    }
    for code, change in variants.items():
        planted = {name: data for name, data in {**THREE, **change}.items() if data is not None}
        other, packet = sealed(tmp_path / code, planted, manifest=False)
        found = objects.packet(other, packet)
        entry = found.entries[0]
        forged = type(found)(
            entries=(type(entry)(**{f: getattr(entry, f) for f in entry.__struct_fields__} | {"pins": pins}),)
        )
        id, data = records.encode(forged)
        with other.stage() as stage:
            manifest = objects.read(store, bytes.fromhex(pins[0].value))

            stage.add_object(digests(manifest), manifest)
            stage.add_record(id, data)
            stage.commit()
        verdict = judge(other, id, (HEAD + SEAL).encode())
        assert said(verdict, "g") == [f"FAIL {code}"]
