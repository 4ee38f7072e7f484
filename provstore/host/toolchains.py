"""Toolchains and libraries of the system, as the files say that their installers leave; nothing is run."""

import re
from typing import Final

from provstore.host.sheet import Sheet

_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+)+")
_ONEAPI: Final = "/opt/intel/oneapi"
_GCC: Final = "/usr/lib/gcc"
_CUDA: Final = re.compile(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([^"]+)"')
_STATUS: Final = "/var/lib/dpkg/status"

PACKAGES: Final = (
    "libc6",
    "libze1",
    "level-zero",
    "libze-intel-gpu1",
    "intel-level-zero-gpu",
    "intel-opencl-icd",
    "intel-igc-core",
    "libigc2",
    "xpu-smi",
    "rocm-core",
    "nvidia-driver",
    "linux-firmware",
    "gcc",
    "cmake",
)
"""Packages of the system whose versions decide what a GPU program does."""


def look_at_toolchains(sheet: Sheet) -> None:
    """Note compilers, vendor stacks and the packages of the system that matter to them."""
    versions = [name for name in sheet.names(f"{_ONEAPI}/compiler") if _VERSION.fullmatch(name)]
    if versions:
        sheet.add("toolchain.oneapi_compilers", " ".join(versions), f"{_ONEAPI}/compiler")
    else:
        sheet.unknown("toolchain.oneapi_compilers", f"{_ONEAPI}/compiler", "no version is installed there")
    if sheet.there("/opt/rocm/.info/version"):
        sheet.take("toolchain.rocm", "/opt/rocm/.info/version")
    if sheet.there("/usr/local/cuda/version.json"):
        sheet.take("toolchain.cuda", "/usr/local/cuda/version.json", _cuda)
    found = sorted(
        {
            version
            for machine in sheet.names(_GCC)
            for version in sheet.names(f"{_GCC}/{machine}")
            if re.fullmatch(r"[0-9]+(?:\.[0-9]+)*", version)
        }
    )
    if found:
        sheet.add("toolchain.gcc", " ".join(found), _GCC)
    else:
        sheet.unknown("toolchain.gcc", _GCC, "no version is installed there")
    _system_packages(sheet)


def _cuda(text: str) -> str | None:
    found = _CUDA.search(text)
    return found[1] if found else None


def _system_packages(sheet: Sheet) -> None:
    found = sheet.read(_STATUS)
    if found.value is None:
        sheet.unknown(
            "system_packages", _STATUS, f"{found.reason}; another package manager has no file of it"
        )
        return
    for block in found.value.split("\n\n"):
        name = re.match(r"Package: (\S+)$", block, re.MULTILINE)
        if name is None or name[1] not in PACKAGES:
            continue
        version = re.search(r"^Version: (\S+)$", block, re.MULTILINE)
        if version and re.search(r"^Status: \S+ \S+ installed$", block, re.MULTILINE):
            sheet.add(f"system_package.{name[1]}", version[1], _STATUS)
