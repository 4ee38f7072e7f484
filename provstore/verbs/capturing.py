"""Captures as files: a report, and the raw outputs that it tells the digests of, in a directory to seal."""

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from provstore.errors import TargetError
from provstore.files.publishing import write_new
from provstore.paths import show
from provstore.reports.hosted import CaptureReport, HostReport

HOST_FILE: Final = "host.json"
PROCESSES_FILE: Final = "processes.json"


def write_host(
    target: str | bytes | os.PathLike[str], report: HostReport, outputs: Mapping[str, bytes]
) -> list[str]:
    """Write a host's report as ``host.json`` and the outputs of its commands below ``commands/``.

    Args:
        target: directory that does not exist yet or is empty.
        report: the report.
        outputs: bytes by the file names that the report states.

    Returns:
        Shown paths of what was written.

    Raises:
        TargetError: the target is a file or not empty.
        InputOutputError: something cannot be written.
    """
    base = _prepare(target)
    written = [os.path.join(base, HOST_FILE.encode())]
    write_new(written[0], document(report))
    if outputs:
        _make(os.path.join(base, b"commands"))
    for name, data in outputs.items():
        path = os.path.join(base, b"commands", os.fsencode(name))
        write_new(path, data)
        written.append(path)
    return [show(path) for path in written]


def write_processes(target: str | bytes | os.PathLike[str], report: CaptureReport) -> list[str]:
    """Write a capture of processes as ``processes.json``; raises as :func:`write_host` does."""
    path = os.path.join(_prepare(target), PROCESSES_FILE.encode())
    write_new(path, document(report))
    return [show(path)]


def document(report: HostReport | CaptureReport) -> bytes:
    """Return a report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def _prepare(target: str | bytes | os.PathLike[str]) -> bytes:
    base = os.path.abspath(os.fsencode(target))
    if not os.path.lexists(base):
        _make(base)
    try:
        if os.listdir(base):
            raise TargetError(show(base), "is not empty")
    except OSError as error:
        raise TargetError(show(base), error.strerror or str(error)) from error
    return base


def _make(path: bytes) -> None:
    try:
        os.mkdir(path)
    except OSError as error:
        raise TargetError(show(path), error.strerror or str(error)) from error
