"""Idle snapshots, judged anew from the tool output that each of them embeds.

A snapshot states a status, the devices it saw, and the raw output of the tool in base64 with its size and
digest. Here the stated parts are only claims: the output is decoded, measured, hashed and parsed, and the
devices and processes are taken from it.
"""

import base64
import binascii
from typing import Final, TypeGuard

import msgspec

from provstore import libraries
from provstore.evidence.bench import same
from provstore.evidence.documents import Field, add_facts, check_fields
from provstore.evidence.finding import Extraction, ReaderResult, quoted
from provstore.evidence.jsonreader import ABSENT, Absent, Limits, Value, child, kind, read, resolve

MAX_RAW: Final = 4 << 20
"""Largest tool output."""

MAX_NUMBER: Final = (1 << 53) - 1
"""Largest device or process number."""

_RAW_LIMITS: Final = Limits(bytes=MAX_RAW, containers=50_000, values=400_000)
_LIMITS: Final = Limits(bytes=4 * MAX_RAW, containers=50_000, values=400_000)


class SnapshotShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a snapshot keeps what; JSON pointers into the snapshot unless said otherwise.

    The defaults fit snapshots of ``xpu-smi ps -j`` output; another tool needs other names.

    Attributes:
        status: the stated outcome.
        devices: the device numbers that the snapshot states.
        row_count: the number of rows that it states.
        failure: present only when the capture failed.
        observer_process: process number of the observing tool itself.
        observer_executable: path of its executable.
        raw: object with ``stdout_base64``, ``stdout_bytes``, ``stdout_sha256`` and the same for ``stderr``.
        copied: the rows as the snapshot repeats them.
        rows: pointer inside the tool's output.
        device: member of a row with the device number.
        process: member of a row with the process number.
        name: member of a row with the process name.
    """

    status: str = "/status"
    devices: str = "/idle/device_ids"
    row_count: str = "/idle/row_count"
    failure: str = "/failure"
    observer_process: str = "/child_identity/process_id"
    observer_executable: str = "/child_identity/proc_exe_resolved"
    raw: str = "/raw_capture"
    copied: str = "/idle/sanitized_payload/device_util_by_proc_list"
    rows: str = "/device_util_by_proc_list"
    device: str = "device_id"
    process: str = "process_id"
    name: str = "process_name"


DEFAULT_SHAPE: Final = SnapshotShape()


class IdleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One process on one device, as the raw output lists it.

    Attributes:
        device: number of the device.
        process: number of the process.
        name: its name.
        observer: it is the observing tool itself, by number and name.
    """

    device: int
    process: int
    name: str
    observer: bool


class IdleResult(ReaderResult, frozen=True, kw_only=True):
    """A snapshot.

    Attributes:
        rows: processes that the raw output lists; empty also when there is no sound output.
        devices: sorted numbers of the devices in these rows; None when the output is not sound.
        idle: True when the raw output is sound and lists nothing but the observer, False when it lists
            another process, None when it cannot be told.
    """

    rows: tuple[IdleRow, ...]
    devices: tuple[int, ...] | None
    idle: bool | None


def read_idle(data: bytes, shape: SnapshotShape = DEFAULT_SHAPE) -> IdleResult:
    """Read a snapshot and derive its state from the raw output.

    Args:
        data: the snapshot, JSON.
        shape: where it keeps what.

    Returns:
        Facts ``idle.…`` as stated, facts ``idle#raw.devices``, ``idle#raw.rows`` and ``idle#raw.foreign``
        as derived, and findings: ``raw-size``, ``raw-hash``, ``raw-base64``, ``not-idle``, ``device-set``,
        ``row-count``, ``copy-differs``, ``status-contradicted``, ``capture-failed``.

    Example:
        >>> read_idle(b'{"status": "passed"}').idle is None
        True
    """
    document = read(data, _LIMITS)
    out = Extraction()
    out.add(document.findings)
    top = document.value
    rows: tuple[IdleRow, ...] | None = None
    if top is not ABSENT:
        add_facts(top, "idle", "", out)
        check_fields(top, (Field(shape.status[1:], ("string",), required=True),), "", out)
        if resolve(top, shape.failure) is not ABSENT:
            out.finding("capture-failed", shape.failure, "the snapshot records a failed capture")
        raw = _stream(top, shape.raw, "stdout", out)
        _stream(top, shape.raw, "stderr", out)
        if raw is not None:
            listed = _listed(raw, shape, out)
            rows = None if listed is None else _rows(top, listed, shape, out)
            _check_copy(top, listed or [], shape, out)
    foreign = [row for row in rows or () if not row.observer]
    if rows is not None:
        _judge(top, rows, foreign, shape, out)
    return IdleResult(
        facts=tuple(out.facts),
        findings=out.findings(),
        rows=rows or (),
        devices=None if rows is None else tuple(sorted({row.device for row in rows})),
        idle=None if rows is None else not foreign,
    )


def _stream(top: Value | Absent, raw: str, name: str, out: Extraction) -> bytes | None:
    """Return the bytes of one captured stream if they have the stated size and digest."""
    text, size, digest = (resolve(top, f"{raw}/{name}_{part}") for part in ("base64", "bytes", "sha256"))
    place = f"{raw}/{name}_base64"
    if not isinstance(text, str) or type(size) is not int or not isinstance(digest, str):
        given = f"output is {kind(text)}, size {kind(size)}, digest {kind(digest)}"
        out.finding("raw-absent", place, f"no captured {name} with size and digest: {given}", "unknown")
        return None
    try:
        data = base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, ValueError) as error:
        out.finding("raw-base64", place, f"no base64: {error}")
        return None
    sound = True
    if len(data) != size:
        out.finding("raw-size", f"{raw}/{name}_bytes", f"states {size} bytes, the output has {len(data)}")
        sound = False
    found = libraries.sha256(data).hexdigest()
    if found != digest:
        stated = quoted(digest)
        out.finding("raw-hash", f"{raw}/{name}_sha256", f"states {stated}, the output hashes to {found}")
        sound = False
    return data if sound else None


def _listed(raw: bytes, shape: SnapshotShape, out: Extraction) -> list[Value] | None:
    """Return the rows of the tool's output as they stand there."""
    place = f"{shape.raw}/stdout_base64"
    document = read(raw, _RAW_LIMITS)
    for finding in document.findings:
        at = finding.location or "its top"
        out.finding(finding.code, place, f"inside the output at {at}: {finding.message}")
    listed = resolve(document.value, shape.rows)
    if document.findings or not isinstance(listed, list):
        out.finding("raw-rows", place, f"the output has no rows at {shape.rows}: {kind(listed)}")
        return None
    return listed


def _rows(
    top: Value | Absent, listed: list[Value], shape: SnapshotShape, out: Extraction
) -> tuple[IdleRow, ...] | None:
    place = f"{shape.raw}/stdout_base64"
    child_process = resolve(top, shape.observer_process)
    executable = resolve(top, shape.observer_executable)
    own_name = executable.rpartition("/")[2] if isinstance(executable, str) else None
    rows: list[IdleRow] = []
    for index, item in enumerate(listed):
        fields = item if isinstance(item, dict) else {}
        device, process, name = (fields.get(key, ABSENT) for key in (shape.device, shape.process, shape.name))
        if not _is_number(device) or not _is_number(process) or not isinstance(name, str):
            kinds = f"device {kind(device)}, process {kind(process)}, name {kind(name)}"
            out.finding("raw-rows", place, f"row {index} of the output is malformed: {kinds}")
            return None
        own = type(child_process) is int and process == child_process and name == own_name
        rows.append(IdleRow(device=device, process=process, name=name, observer=own))
    return tuple(rows)


def _is_number(value: Value | Absent) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MAX_NUMBER


def _judge(
    top: Value | Absent,
    rows: tuple[IdleRow, ...],
    foreign: list[IdleRow],
    shape: SnapshotShape,
    out: Extraction,
) -> None:
    place = f"{shape.raw}/stdout_base64"
    devices = tuple(sorted({row.device for row in rows}))
    out.fact("idle#raw.devices", devices, place)
    out.fact("idle#raw.rows", len(rows), place)
    described = tuple(f"device {row.device}: {row.name} (process {row.process})" for row in foreign)
    out.fact("idle#raw.foreign", described, place)
    for text in described:
        out.finding("not-idle", place, f"the raw output lists {quoted(text)}")
    stated = resolve(top, shape.devices)
    if isinstance(stated, list) and all(type(item) is int for item in stated):
        if not rows:
            message = "the raw output has no rows, so the devices cannot be derived from it"
            out.finding("device-set", shape.devices, message, "unknown")
        elif sorted(map(str, stated)) != sorted(map(str, devices)):
            out.finding("device-set", shape.devices, f"states {stated}, the raw output has {list(devices)}")
    else:
        out.finding("device-set", shape.devices, f"no device numbers: {kind(stated)}", "unknown")
    count = resolve(top, shape.row_count)
    if type(count) is int and count != len(rows):
        out.finding("row-count", shape.row_count, f"states {count} rows, the raw output has {len(rows)}")
    status = resolve(top, shape.status)
    if foreign and status == "passed":
        out.finding(
            "status-contradicted", shape.status, "states passed, the raw output lists other processes"
        )


def _check_copy(top: Value | Absent, listed: list[Value], shape: SnapshotShape, out: Extraction) -> None:
    """Compare the rows that the snapshot repeats; process numbers may be masked there, the rest may not."""
    copied = resolve(top, shape.copied)
    if not isinstance(copied, list):
        return
    if len(copied) != len(listed):
        out.finding("copy-differs", shape.copied, f"repeats {len(copied)} rows of {len(listed)}")
    for index, (item, row) in enumerate(zip(copied, listed, strict=False)):
        for name, wanted in row.items() if isinstance(row, dict) else ():
            if name != shape.process and not same(resolve(item, child("", name)), wanted):
                place = child(child(shape.copied, index), name)
                out.finding("copy-differs", place, "differs from the raw output")
