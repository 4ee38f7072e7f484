"""This host as dimensions that a claim's context can be compared with; what cannot be read is left out."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from provstore.graph.statements import Scalar

_PRETTY: Final = re.compile(r'^PRETTY_NAME="?([^"\n]+)"?$', re.MULTILINE)
_DISPLAY: Final = ("0x0300", "0x0302", "0x0380", "0x1200")
"""PCI classes of display controllers, 3D controllers, other display devices and processing accelerators."""

READ_LIMIT_BYTES: Final = 64 << 10


def host_dimensions(root: str = "/") -> dict[str, Scalar]:
    """Return what this host is: system, kernel, architecture, and its accelerators by PCI vendor and device.

    Args:
        root: directory that stands for ``/``.

    Returns:
        ``host.os``, ``host.kernel``, ``host.architecture``, ``host.gpu`` and ``host.gpu_count``, those that
        could be read. Several kinds of accelerator are one text, sorted; none is no dimension.
    """
    found: dict[str, Scalar] = {}
    system = _PRETTY.search(_text(Path(root, "etc/os-release")))
    if system is not None:
        found["host.os"] = system[1]
    kernel = _text(Path(root, "proc/sys/kernel/osrelease")).strip()
    if kernel:
        found["host.kernel"] = kernel
    if root == "/":
        found["host.architecture"] = os.uname().machine
    devices = Counter(_accelerators(Path(root, "sys/bus/pci/devices")))
    if devices:
        found["host.gpu"] = " ".join(sorted(devices))
        found["host.gpu_count"] = sum(devices.values())
    return found


def _accelerators(place: Path) -> Iterator[str]:
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    for name in names:
        if _text(place / name / "class").startswith(_DISPLAY):
            vendor, device = (_text(place / name / part).strip() for part in ("vendor", "device"))
            yield f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(READ_LIMIT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
