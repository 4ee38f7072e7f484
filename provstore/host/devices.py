"""PCI devices and accelerators: what the bus, the drivers and DRM say of them without any tool of a vendor.

Counters that read zero because nothing was measured are unknown. Firmware versions that a driver shows to
root alone are unknown with that reason; a declared command can say them.
"""

import re
from typing import Final

from provstore.host.sheet import Sheet, counted, hexadecimal, whole

PCI: Final = "/sys/bus/pci/devices"
DRM: Final = "/sys/class/drm"

ACCELERATORS: Final = ("0300", "0302", "0380", "1200")
"""PCI classes of display controllers, 3D controllers, other display devices and processing accelerators."""

_IDS: Final = ("vendor", "device", "subsystem_vendor", "subsystem_device", "revision")
_NONE: Final = "the bus is not listed"
_VENDORS: Final = {"8086": "intel", "10de": "nvidia", "1002": "amd"}

_GT: Final = {
    "min_mhz": "min_freq",
    "max_mhz": "max_freq",
    "rated_max_mhz": "rp0_freq",
    "efficient_mhz": "rpe_freq",
}
_INTEL: Final = {
    "fan_control_version": "lb_fan_control_version",
    "voltage_regulator_version": "lb_voltage_regulator_version",
    "vram_bytes": "tile0/physical_vram_size_bytes",
}
_AMD: Final = {
    "vram_bytes": "mem_info_vram_total",
    "video_bios": "vbios_version",
    "performance_level": "power_dpm_force_performance_level",
}
_HWMON: Final = {
    "power_limit_uw": ("power1_max", "power1_cap"),
    "power_rated_max_uw": ("power1_rated_max", "power1_cap_max"),
    "power_critical_uw": ("power1_crit",),
    "energy_uj": ("energy1_input",),
    "temperature_mc": ("temp2_input", "temp1_input"),
}
_SIZE: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")


def look_at_devices(sheet: Sheet) -> None:
    """Note every PCI device, and more of those that compute."""
    names = sheet.names(PCI)
    listed = sheet.there(PCI)
    if listed:
        sheet.add("pci.devices", len(names), PCI)
    else:
        sheet.unknown("pci.devices", PCI, _NONE)
    found = []
    for address in names:
        _device(sheet, address)
        kind = hexadecimal(sheet.read(f"{PCI}/{address}/class").value or "") or ""
        if kind.startswith(ACCELERATORS):
            found.append(address)
    if listed:
        sheet.add("gpu.count", len(found), PCI)
    else:
        sheet.unknown("gpu.count", PCI, _NONE)
    if found:
        ids = sorted({_vendor_device(sheet, address) for address in found})
        sheet.add("gpu.devices", " ".join(ids), PCI)
        sheet.add("gpu.addresses", " ".join(found), PCI)
    for number, address in enumerate(found):
        _accelerator(sheet, f"gpu.{number}", address)
    _modules(sheet, found)


def _vendor_device(sheet: Sheet, address: str) -> str:
    parts = (hexadecimal(sheet.read(f"{PCI}/{address}/{name}").value or "") for name in ("vendor", "device"))
    return ":".join(part or "?" for part in parts)


def _device(sheet: Sheet, address: str) -> None:
    place, key = f"{PCI}/{address}", f"pci.{address}"
    for name in _IDS:
        sheet.take(f"{key}.{name}", f"{place}/{name}", hexadecimal)
    sheet.take(f"{key}.class", f"{place}/class", hexadecimal)
    driver = sheet.link(f"{place}/driver")
    if driver.value is None:
        reason = "no driver is bound" if driver.reason == "not there" else driver.reason
        sheet.unknown(f"{key}.driver", f"{place}/driver", reason)
    else:
        sheet.add(f"{key}.driver", driver.value, f"{place}/driver")
    sheet.take(f"{key}.numa_node", f"{place}/numa_node", lambda text: None if text == "-1" else whole(text))
    for name in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"):
        if sheet.there(f"{place}/{name}"):
            sheet.take(f"{key}.{name}", f"{place}/{name}", _link)


def _link(text: str) -> str | None:
    """Return a speed or width of a link; a link that is down reads 0 or ``Unknown``."""
    return None if text in ("0", "255") or text.startswith("Unknown") else text


def _accelerator(sheet: Sheet, key: str, address: str) -> None:
    place = f"{PCI}/{address}"
    sheet.add(f"{key}.address", address, PCI)
    sheet.add(f"{key}.vendor_device", _vendor_device(sheet, address), f"{place}/vendor, {place}/device")
    driver = sheet.link(f"{place}/driver").value
    if driver is None:
        sheet.unknown(f"{key}.driver", f"{place}/driver", "no driver is bound")
    else:
        sheet.add(f"{key}.driver", driver, f"{place}/driver")
    nodes = sheet.names(f"{place}/drm")
    cards = [name for name in nodes if re.fullmatch(r"card[0-9]+", name)]
    for name, found in (("card", cards), ("render", [name for name in nodes if name.startswith("renderD")])):
        if found:
            sheet.add(f"{key}.{name}", found[0], f"{place}/drm")
        else:
            sheet.unknown(f"{key}.{name}", f"{place}/drm", "DRM lists no node of it")
    _bar(sheet, key, place)
    vendor = _VENDORS.get(hexadecimal(sheet.read(f"{place}/vendor").value or "") or "")
    if vendor == "intel":
        _intel(sheet, key, place, driver, cards)
    elif vendor == "amd":
        _amd(sheet, key, place)
    elif vendor == "nvidia":
        _nvidia(sheet, key, address)
    for name in sheet.names(f"{place}/hwmon")[:1]:
        _sensors(sheet, key, f"{place}/hwmon/{name}")


def _bar(sheet: Sheet, key: str, place: str) -> None:
    """Note the largest region of memory that the bus gives it; the whole VRAM where the BAR was resized."""
    found = sheet.read(f"{place}/resource")
    sizes = []
    for line in (found.value or "").splitlines():
        ends = line.split()
        if len(ends) == 3 and all(_SIZE.fullmatch(end) for end in ends):
            start, last = int(ends[0], 16), int(ends[1], 16)
            sizes.append(last - start + 1 if last else 0)
    if any(sizes):
        sheet.add(f"{key}.largest_bar_bytes", max(sizes), f"{place}/resource")
    else:
        sheet.unknown(
            f"{key}.largest_bar_bytes", f"{place}/resource", found.reason or "no region is assigned"
        )


def _intel(sheet: Sheet, key: str, place: str, driver: str | None, cards: list[str]) -> None:
    for name, path in _INTEL.items():
        sheet.take(f"{key}.{name}", f"{place}/{path}", _amount if name == "vram_bytes" else None)
    gt = f"{place}/tile0/gt0/freq0"
    if driver == "xe" or sheet.there(gt):
        for name, file in _GT.items():
            sheet.take(f"{key}.{name}", f"{gt}/{file}", counted)
        sheet.take(f"{key}.actual_mhz", f"{gt}/act_freq", counted)
        sheet.take(f"{key}.throttled", f"{gt}/throttle/status", _flag)
        _reasons(sheet, key, f"{gt}/throttle")
    elif cards:
        old = f"{DRM}/{cards[0]}/gt/gt0"
        sheet.take(f"{key}.max_mhz", f"{old}/rps_max_freq_mhz", counted)
        sheet.take(f"{key}.actual_mhz", f"{old}/rps_act_freq_mhz", counted)
        sheet.take(f"{key}.throttled", f"{old}/throttle_reason_status", _flag)
    for name in ("guc", "huc"):
        path = f"/sys/kernel/debug/dri/{address_of(place)}/gt0/uc/{name}_info"
        found = sheet.read(path)
        version = re.search(r"(?:found|version:?) ([0-9]+(?:\.[0-9]+){1,3})", found.value or "")
        if version:
            sheet.add(f"{key}.{name}_version", version[1], path)
        else:
            reason = found.reason or "no version in it"
            sheet.unknown(f"{key}.{name}_version", path, f"{reason}; the driver shows it to root alone")


def address_of(place: str) -> str:
    """Return the PCI address of a device's directory.

    Example:
        >>> address_of("/sys/bus/pci/devices/0000:23:00.0")
        '0000:23:00.0'
    """
    return place.rpartition("/")[2]


def _reasons(sheet: Sheet, key: str, place: str) -> None:
    names = [name for name in sheet.names(place) if name.startswith("reason_")]
    if not names:
        return
    active = [name.removeprefix("reason_") for name in names if sheet.read(f"{place}/{name}").value == "1"]
    sheet.add(f"{key}.throttle_reasons", " ".join(active) or "none", place)


def _amount(text: str) -> int | None:
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    return int(found[1], 16 if text.startswith("0x") else 10) or None


def _flag(text: str) -> bool | None:
    return {"0": False, "1": True}.get(text)


def _amd(sheet: Sheet, key: str, place: str) -> None:
    for name, file in _AMD.items():
        sheet.take(f"{key}.{name}", f"{place}/{file}", counted if name == "vram_bytes" else None)
    for name in sheet.names(f"{place}/fw_version"):
        path = f"{place}/fw_version/{name}"
        sheet.take(f"{key}.firmware.{name.removesuffix('_fw_version')}", path, _loaded)


def _loaded(text: str) -> str | None:
    """Return a firmware version; an engine that has none reads zero."""
    return None if re.fullmatch(r"0x0+", text) else text


def _nvidia(sheet: Sheet, key: str, address: str) -> None:
    path = f"/proc/driver/nvidia/gpus/{address}/information"
    found = sheet.read(path)
    lines = dict(line.partition(":")[::2] for line in (found.value or "").splitlines())
    stated = {name.strip(): value.strip() for name, value in lines.items()}
    names = {"model": "Model", "video_bios": "Video BIOS", "firmware.gsp": "GPU Firmware"}
    for name, label in names.items():
        value = stated.get(label, "")
        if value and value != "N/A" and "?" not in value:
            sheet.add(f"{key}.{name}", value, path)
        else:
            sheet.unknown(f"{key}.{name}", path, found.reason or f"it states no {label}")


def _sensors(sheet: Sheet, key: str, place: str) -> None:
    for name, files in _HWMON.items():
        file = next((file for file in files if sheet.there(f"{place}/{file}")), files[0])
        sheet.take(f"{key}.{name}", f"{place}/{file}", counted)


def _modules(sheet: Sheet, addresses: list[str]) -> None:
    """Note the versions of the drivers that the accelerators are bound to."""
    drivers = {sheet.link(f"{PCI}/{address}/driver").value for address in addresses} - {None}
    for driver in sorted(name for name in drivers if name):
        place = f"/sys/module/{driver}"
        if sheet.there(f"{place}/version"):
            sheet.take(f"driver.{driver}.version", f"{place}/version")
        else:
            reason = "it states no version of its own; it is the kernel's"
            sheet.unknown(f"driver.{driver}.version", f"{place}/version", reason)
        sheet.take(f"driver.{driver}.source_version", f"{place}/srcversion")
    if sheet.there("/proc/driver/nvidia/version"):
        sheet.take("driver.nvidia.version", "/proc/driver/nvidia/version", _nvidia_version)


def _nvidia_version(text: str) -> str | None:
    found = re.search(r"(?:Module(?: for \w+)?)\s+([0-9]+(?:\.[0-9]+)+)", text)
    return found[1] if found else None
