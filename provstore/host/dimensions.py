"""This host as dimensions that a claim's context can be compared with; what cannot be read is left out."""

from typing import Final

from provstore.graph.statements import Scalar
from provstore.host.devices import look_at_devices
from provstore.host.sheet import Sheet
from provstore.host.system import look_at_system
from provstore.reports.hosted import HostReport

_NAMES: Final = {
    "os.name": "host.os",
    "kernel.release": "host.kernel",
    "host.architecture": "host.architecture",
}


def host_dimensions(root: str = "/") -> dict[str, Scalar]:
    """Return what this host is: system, kernel, architecture, and its accelerators by PCI vendor and device.

    Args:
        root: directory that stands for ``/``.

    Returns:
        ``host.os``, ``host.kernel``, ``host.architecture``, ``host.gpu`` and ``host.gpu_count``, those that
        could be read. Several kinds of accelerator are one text, sorted; none is no dimension.
    """
    sheet = Sheet(root)
    look_at_system(sheet)
    look_at_devices(sheet)
    return dimensions_of(HostReport(root=sheet.root, taken="", facts=sheet.facts()))


def dimensions_of(host: HostReport) -> dict[str, Scalar]:
    """Return the dimensions that a captured host states.

    Example:
        >>> from provstore.reports.hosted import HostFact
        >>> facts = (HostFact(key="kernel.release", value="7.0.0", source="/proc/sys/kernel/osrelease"),)
        >>> dimensions_of(HostReport(root="/", taken="", facts=facts))
        {'host.kernel': '7.0.0'}
    """
    found: dict[str, Scalar] = {}
    for key, dimension in _NAMES.items():
        value = host.value(key)
        if value is not None:
            found[dimension] = value
    devices, count = host.value("gpu.devices"), host.value("gpu.count")
    if devices is not None and count is not None:
        found["host.gpu"], found["host.gpu_count"] = devices, count
    return found
