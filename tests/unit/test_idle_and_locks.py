"""Idle snapshots judged from their raw output; locks and verifications; any document."""

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.evidence.documents import read_document
from provstore.evidence.idle import SnapshotShape, read_idle
from provstore.evidence.locks import read_lock, read_verification

OBSERVER = 4711


def output(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps({"device_util_by_proc_list": rows}, indent=4).encode() + b"\n"


def own_rows(devices: int = 4) -> list[dict[str, Any]]:
    return [
        {"device_id": at, "mem_size": 2780 - at, "process_id": OBSERVER, "process_name": "smi"}
        for at in range(devices)
    ]


def snapshot(
    rows: list[dict[str, Any]] | None = None, raw: bytes | None = None, **changes: Any
) -> dict[str, Any]:
    rows = own_rows() if rows is None else rows
    raw = output(rows) if raw is None else raw
    copied = [{**row, "process_id": "<masked>"} for row in rows]
    document: dict[str, Any] = {
        "status": "passed",
        "child_identity": {"process_id": OBSERVER, "proc_exe_resolved": "/usr/bin/smi"},
        "idle": {
            "device_ids": [0, 1, 2, 3],
            "row_count": len(rows),
            "sanitized_payload": {"device_util_by_proc_list": copied},
        },
        "raw_capture": {
            "stdout_base64": base64.b64encode(raw).decode(),
            "stdout_bytes": len(raw),
            "stdout_sha256": hashlib.sha256(raw).hexdigest(),
            "stderr_base64": "",
            "stderr_bytes": 0,
            "stderr_sha256": hashlib.sha256(b"").hexdigest(),
        },
    }
    for path, value in changes.items():
        inner = document
        *parents, last = path.split("__")
        for part in parents:
            inner = inner[part]
        inner[last] = value
    return document


def codes(document: Any) -> set[str]:
    return {finding.code for finding in read_idle(json.dumps(document).encode()).findings}


def test_an_idle_snapshot() -> None:
    found = read_idle(json.dumps(snapshot()).encode())
    assert (found.findings, found.idle, found.devices, len(found.rows)) == ((), True, (0, 1, 2, 3), 4)
    assert found.value("idle#raw.devices") == (0, 1, 2, 3)
    assert found.value("idle#raw.foreign") == ()
    assert found.value("idle.status") == "passed"


def changed_base64() -> dict[str, Any]:
    document = snapshot()
    text = document["raw_capture"]["stdout_base64"]
    document["raw_capture"]["stdout_base64"] = text[:100] + ("A" if text[100] != "A" else "B") + text[101:]
    return document


OTHER = {"device_id": 2, "mem_size": 9, "process_id": 99, "process_name": "python3"}


@pytest.mark.parametrize(
    ("document", "expected", "idle"),
    [
        (changed_base64(), {"raw-hash"}, None),
        (snapshot(raw_capture__stdout_bytes=10), {"raw-size"}, None),
        (snapshot(raw_capture__stdout_bytes=5000), {"raw-size"}, None),
        (snapshot([*own_rows(), OTHER]), {"not-idle", "status-contradicted"}, False),
        (
            snapshot([*own_rows(), {**OTHER, "process_id": OBSERVER}]),
            {"not-idle", "status-contradicted"},
            False,
        ),
        (
            snapshot([*own_rows(), {**OTHER, "process_name": "smi"}]),
            {"not-idle", "status-contradicted"},
            False,
        ),
        (snapshot([*own_rows(), OTHER], status="failed"), {"not-idle"}, False),
        (snapshot(idle__device_ids=[0, 1, 3]), {"device-set"}, True),
        (snapshot(idle__device_ids=[0, 1, 2, 3, 3]), {"device-set"}, True),
        (snapshot(idle__device_ids=None), {"device-set"}, True),
        (snapshot(own_rows(3)), {"device-set"}, True),
        (snapshot(idle__row_count=5), {"row-count"}, True),
        (snapshot([]), {"device-set"}, True),
        (snapshot(raw_capture__stdout_base64="ab="), {"raw-base64"}, None),
        (snapshot(raw_capture__stdout_base64="ab cd"), {"raw-base64"}, None),
        (snapshot(raw_capture__stdout_base64=None), {"raw-absent"}, None),
        (snapshot(raw_capture__stderr_bytes=1), {"raw-size"}, True),
        (snapshot(raw=b"no devices found\n"), {"not-json", "raw-rows", "copy-differs"}, None),
        (snapshot(raw=b'{"a": 1, "a": 2}'), {"duplicate-key", "raw-rows", "copy-differs"}, None),
        (snapshot(failure={"reason": "timeout"}), {"capture-failed"}, True),
        (snapshot(child_identity={}), {"not-idle", "status-contradicted"}, False),
        (snapshot(idle__sanitized_payload={"device_util_by_proc_list": []}), {"copy-differs"}, True),
        (snapshot(status=True), {"wrong-type"}, True),
    ],
)
def test_the_raw_output_decides(document: dict[str, Any], expected: set[str], idle: bool | None) -> None:
    assert codes(document) == expected
    assert read_idle(json.dumps(document).encode()).idle is idle


def test_a_copied_row_that_differs() -> None:
    document = snapshot()
    document["idle"]["sanitized_payload"]["device_util_by_proc_list"][3]["mem_size"] += 1
    found = read_idle(json.dumps(document).encode())
    assert [finding.location[-11:] for finding in found.findings] == ["/3/mem_size"]


def test_another_tool_is_another_shape() -> None:
    raw = b'{"procs": [{"gpu": 0, "pid": 4711, "cmd": "smi"}]}'
    document = snapshot([], raw, idle__device_ids=[0], idle__row_count=1, idle__sanitized_payload={})
    shape = SnapshotShape(rows="/procs", device="gpu", process="pid", name="cmd", copied="/none")
    found = read_idle(json.dumps(document).encode(), shape)
    assert (found.findings, found.idle, found.devices) == ((), True, (0,))


@given(st.binary(max_size=200))
def test_any_bytes_are_never_idle(data: bytes) -> None:
    assert read_idle(data).idle is None
    assert read_idle(json.dumps(snapshot(raw=data)).encode()).idle is None


DIGESTS = [f"{at:02x}" * 32 for at in range(16)]
COMMIT = "c" * 40


def lock(**changes: Any) -> bytes:
    document: dict[str, Any] = {
        "host": {"smi_sha256": DIGESTS[9]},
        "python_packages": {"torch": "2.12.0+xpu", "warning": "Old metadata.", "freeze": "pip.txt"},
        "source": {"engine": {"commit": COMMIT}},
        "native": [
            {"module": "m._C", "path": "_C.so", "sha256": DIGESTS[0], "observed_build_source_commit": COMMIT},
            {"module": "m._D", "path": "_D.so", "sha256": DIGESTS[1]},
        ],
        "external": {"module": "alloc", "sha256": DIGESTS[2], "observed_path": "/src/alloc.so"},
        "files": [{"path_template": "{venv}/bin/python", "sha256": DIGESTS[3]}],
    }
    return json.dumps({**document, **changes}).encode()


def test_pins_are_found_wherever_they_stand() -> None:
    found = read_lock(lock())
    assert found.findings == ()
    assert [(pin.group, pin.name, pin.path) for pin in found.pins] == [
        ("native", "m._C", "_C.so"),
        ("native", "m._D", "_D.so"),
        ("external", "alloc", "/src/alloc.so"),
        ("files", "{venv}/bin/python", "{venv}/bin/python"),
    ]
    assert (found.pins[0].commit, found.pins[1].commit) == (COMMIT, None)
    assert found.packages == {"torch": "2.12.0+xpu"}
    assert found.sources == {"engine": COMMIT}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"native": [{"path": "a", "sha256": "AB" * 32}]}, "bad-digest"),
        ({"native": [{"path": "a", "sha256": None}]}, "bad-digest"),
        ({"native": [{"sha256": DIGESTS[0]}]}, "absent"),
        (
            {"native": [{"path": "a", "sha256": DIGESTS[0]}, {"path": "a", "sha256": DIGESTS[1]}]},
            "duplicate-pin",
        ),
        ({"source": {"engine": {"commit": "c8942a8e4"}}}, "abbreviated-reference"),
        ({"source": {"engine": {"commit": "main"}}}, "mutable-reference"),
        ({"host": {"smi_sha256": "x"}}, "bad-digest"),
    ],
)
def test_lock_faults(changes: dict[str, Any], code: str) -> None:
    assert [finding.code for finding in read_lock(lock(**changes)).findings] == [code]


def test_a_lock_without_pins_is_told() -> None:
    assert [finding.code for finding in read_lock(b"{}").findings] == ["no-pins"]


def test_origins() -> None:
    document = {
        "status": "PASS",
        "engine_origin": "/src/engine/__init__.py",
        "module_origins": {"m._C": "/k/_C.so"},
        "mapped_libraries": {"liba.so": ["/k/liba.so", "/b/liba.so"], "libb.so": "/k/libb.so"},
        "package_versions": {"torch": "2.12.0+xpu"},
    }
    found = read_verification(json.dumps(document).encode())
    assert found.findings == ()
    assert [(o.group, o.name, o.paths) for o in found.origins] == [
        ("engine_origin", "engine", ("/src/engine/__init__.py",)),
        ("module_origins", "m._C", ("/k/_C.so",)),
        ("mapped_libraries", "liba.so", ("/b/liba.so", "/k/liba.so")),
        ("mapped_libraries", "libb.so", ("/k/libb.so",)),
    ]
    assert (found.status, found.packages) == ("PASS", {"torch": "2.12.0+xpu"})


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"module_origins": {"m": "k/_C.so"}}, "relative-origin"),
        ({"mapped_libraries": {"a": "/k/a.so (deleted)"}}, "deleted-mapping"),
        ({"mapped_libraries": {"a": []}}, "wrong-type"),
        ({"mapped_libraries": {"a": ["/x", 1]}}, "wrong-type"),
        ({"module_origins": []}, "wrong-type"),
        ({}, "no-origins"),
    ],
)
def test_origin_faults(document: dict[str, Any], code: str) -> None:
    assert code in {finding.code for finding in read_verification(json.dumps(document).encode()).findings}


def test_documents_tell_kinds_apart() -> None:
    data = (
        b'[{"a": [], "b": {}, "c": [null, 1], "d": [1, 2.50], '
        b'"e": 9007199254740993, "f": ["x"], "g.h": true}]'
    )
    stated = [(f.location, f.key, f.value, f.decimal) for f in read_document(data, "queue").facts]
    assert stated == [
        ("", "queue#length", 1, False),
        ("/0", "queue#keys", ("a", "b", "c", "d", "e", "f", "g.h"), False),
        ("/0/a", "queue.a", (), False),
        ("/0/b", "queue.b#keys", (), False),
        ("/0/c", "queue.c#length", 2, False),
        ("/0/c/0", "queue.c", None, False),
        ("/0/c/1", "queue.c", 1, False),
        ("/0/d", "queue.d", ("1", "2.50"), True),
        ("/0/e", "queue.e", "9007199254740993", True),
        ("/0/f", "queue.f", ("x",), False),
        ("/0/g.h", "queue.g.h", True, False),
    ]


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for found in (read_lock(data), read_verification(data)):
        assert found.findings
    read_document(data, "x")
