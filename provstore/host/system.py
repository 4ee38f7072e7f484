"""The machine and its system: release, kernel, processors, memory, firmware, clocks, networks, mounts."""

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from provstore.host.sheet import Sheet, counted, whole
from provstore.paths import show, unshow

_OS: Final = {"PRETTY_NAME": "os.name", "ID": "os.id", "VERSION_ID": "os.version", "BUILD_ID": "os.build"}
_FIRMWARE: Final = {
    "firmware.vendor": "bios_vendor",
    "firmware.version": "bios_version",
    "firmware.date": "bios_date",
    "board.vendor": "board_vendor",
    "board.name": "board_name",
    "machine.vendor": "sys_vendor",
    "machine.product": "product_name",
}
_CPU: Final = {"model name": "cpu.model", "vendor_id": "cpu.vendor", "microcode": "cpu.microcode"}
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_SYNCED: Final = "/run/systemd/timesync/synchronized"
_CHRONY: Final = "/run/chrony/chronyd.pid"


class Mount(NamedTuple):
    """One line of the kernel's mount table."""

    point: str
    kind: str
    device: str
    options: str


def look_at_system(sheet: Sheet) -> None:
    """Note what the machine is and what runs it."""
    _release(sheet)
    sheet.take("kernel.release", "/proc/sys/kernel/osrelease")
    sheet.take("kernel.version", "/proc/sys/kernel/version")
    sheet.take("kernel.command_line", "/proc/cmdline")
    if not sheet.take("host.architecture", "/proc/sys/kernel/arch") and not sheet.recorded:
        sheet.add("host.architecture", os.uname().machine, "uname(2)")
    sheet.take("host.name", "/proc/sys/kernel/hostname")
    for key, name in _FIRMWARE.items():
        sheet.take(key, f"/sys/class/dmi/id/{name}")
    _processors(sheet)
    _memory(sheet)
    _clocks(sheet)
    _networks(sheet)


def _release(sheet: Sheet) -> None:
    path = next((p for p in ("/etc/os-release", "/usr/lib/os-release") if sheet.there(p)), "/etc/os-release")
    found = sheet.read(path)
    stated = dict(line.partition("=")[::2] for line in (found.value or "").splitlines())
    for name, key in _OS.items():
        value = stated.get(name, "").strip("\"'")
        if value:
            sheet.add(key, value, path)
        elif name != "BUILD_ID":
            sheet.unknown(key, path, found.reason or f"it states no {name}")


def _processors(sheet: Sheet) -> None:
    path = "/proc/cpuinfo"
    found = sheet.read(path)
    blocks = [dict(_pairs(block)) for block in re.split(r"\n[ \t]*\n", found.value or "")]
    blocks = [block for block in blocks if "processor" in block]
    for name, key in _CPU.items():
        said = sorted({block[name] for block in blocks if block.get(name)})
        if said:
            sheet.add(key, " / ".join(said), path)
        else:
            sheet.unknown(key, path, found.reason or f"it states no {name}")
    if not blocks:
        sheet.unknown("cpu.logical", path, found.reason or "it lists no processor")
        return
    sheet.add("cpu.logical", len(blocks), path)
    sockets = {block["physical id"] for block in blocks if "physical id" in block}
    if sockets:
        sheet.add("cpu.sockets", len(sockets), path)
        cores = {(block["physical id"], block.get("core id")) for block in blocks if "physical id" in block}
        sheet.add("cpu.cores", len(cores), path)
    else:
        sheet.unknown("cpu.sockets", path, "it states no physical id")
    flags = blocks[0].get("flags") or blocks[0].get("Features")
    if flags:
        sheet.add("cpu.flags", " ".join(sorted(flags.split())), path)
    sheet.take("cpu.governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    sheet.take("cpu.max_khz", "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", counted)
    sheet.take("cpu.smt", "/sys/devices/system/cpu/smt/control")


def _pairs(block: str) -> Iterator[tuple[str, str]]:
    for line in block.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _memory(sheet: Sheet) -> None:
    path = "/proc/meminfo"
    found = sheet.read(path)
    for name, key in (("MemTotal", "memory.total_bytes"), ("SwapTotal", "memory.swap_bytes")):
        line = re.search(rf"(?m)^{name}:\s+([0-9]+) kB$", found.value or "")
        if line is None:
            sheet.unknown(key, path, found.reason or f"it states no {name}")
        else:
            sheet.add(key, int(line[1]) * 1024, path)  # no swap at all is a state, not a missing measurement
    sheet.take("memory.huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled", _chosen)
    nodes = [name for name in sheet.names("/sys/devices/system/node") if re.fullmatch(r"node[0-9]+", name)]
    if not nodes:
        sheet.unknown("numa.nodes", "/sys/devices/system/node", "no node is listed")
        return
    sheet.add("numa.nodes", len(nodes), "/sys/devices/system/node")
    for node in nodes:
        sheet.take(f"numa.{node[4:]}.cpus", f"/sys/devices/system/node/{node}/cpulist")


def _chosen(text: str) -> str | None:
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None


def _clocks(sheet: Sheet) -> None:
    sheet.take("clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource")
    sheet.take("clock.boot_id", "/proc/sys/kernel/random/boot_id")
    sheet.take("clock.uptime_s", "/proc/uptime", lambda text: text.split(".")[0])
    if sheet.there(_SYNCED):
        sheet.add("clock.synchronized", True, _SYNCED)
    elif sheet.there(_CHRONY):
        sheet.unknown("clock.synchronized", _CHRONY, "chronyd runs; only a command of its own says how well")
    else:
        sheet.unknown("clock.synchronized", _SYNCED, "no time service left a mark; declare a command for it")
    zone = sheet.read("/etc/timezone")
    if zone.value:
        sheet.add("clock.zone", zone.value, "/etc/timezone")


def _networks(sheet: Sheet) -> None:
    place = "/sys/class/net"
    names = sheet.names(place)
    if not names:
        sheet.unknown("net.interfaces", place, "no interface is listed")
        return
    sheet.add("net.interfaces", " ".join(show(name) for name in names), place)
    for name in names:
        key = f"net.{show(name)}"
        sheet.take(
            f"{key}.state", f"{place}/{name}/operstate", lambda text: None if text == "unknown" else text
        )
        if sheet.there(f"{place}/{name}/device"):
            sheet.take(f"{key}.speed_mbit", f"{place}/{name}/speed", counted)
            driver = sheet.link(f"{place}/{name}/device/driver")
            if driver.value:
                sheet.add(f"{key}.driver", driver.value, f"{place}/{name}/device/driver")
        sheet.take(f"{key}.mtu", f"{place}/{name}/mtu", whole)


def listening_ports(sheet: Sheet) -> None:
    """Note the TCP ports that somebody listens on."""
    ports: set[int] = set()
    reasons = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        found = sheet.read(path)
        if found.value is None:
            reasons.append(f"{path}: {found.reason}")
            continue
        for line in found.value.splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == "0A" and ":" in fields[1]:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    if len(reasons) == 2:
        sheet.unknown("net.listening", "/proc/net/tcp", "; ".join(reasons))
    else:
        sheet.add("net.listening", " ".join(map(str, sorted(ports))), "/proc/net/tcp, /proc/net/tcp6")


def mounts(sheet: Sheet) -> list[Mount] | None:
    """Return the mount table, or None when it cannot be read."""
    found = sheet.read("/proc/self/mountinfo")
    if found.value is None:
        return None
    table = []
    for line in found.value.splitlines():
        head, dash, tail = line.partition(" - ")
        before, after = head.split(), tail.split()
        if dash and len(before) >= 6 and len(after) >= 2:
            table.append(Mount(_plain(before[4]), after[0], _plain(after[1]), before[5]))
    return table


def look_at_mount(sheet: Sheet, path: str, table: list[Mount] | None) -> None:
    """Note which file system a path lies on; the last mount that covers it counts."""
    key, source = f"mount.{path}", "/proc/self/mountinfo"
    if table is None:
        sheet.unknown(f"{key}.device", source, sheet.read(source).reason)
        return
    real = os.path.realpath(path) if not sheet.recorded else unshow(path).decode("utf-8", "surrogateescape")
    covering = [m for m in table if real == m.point or real.startswith(m.point.rstrip("/") + "/")]
    if not covering:
        sheet.unknown(f"{key}.device", source, "no mount covers it")
        return
    longest = max(len(mount.point) for mount in covering)
    mount = [m for m in covering if len(m.point) == longest][-1]
    for name, value in (("device", mount.device), ("type", mount.kind), ("point", mount.point)):
        sheet.add(f"{key}.{name}", value, source)
    sheet.add(f"{key}.options", mount.options, source)


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
