"""``/etc/ld.so.cache`` of the GNU loader: which file it finds for a name.

Format: glibc's ``sysdeps/generic/dl-cache.h``, the "new" format; an old one may stand before it.
"""

import struct
from typing import Final, NamedTuple

MAGIC: Final = b"glibc-ld.so.cache1.1"
MAX_ENTRIES: Final = 200_000

_HEAD: Final = struct.Struct("<20sIIB3xI3I")
_ENTRY: Final = struct.Struct("<iIIIQ")
_HWCAPS: Final = 1 << 62

_FLAGS: Final = {
    "EM_X86_64": 0x0303,
    "EM_AARCH64": 0x0A03,
    "EM_386": 0x0003,
    "EM_PPC64": 0x0503,
    "EM_S390": 0x0403,
    "EM_RISCV": 0x1003,
}
"""Kind of library, as ldconfig marks what is for this machine's own programs."""


class Cached(NamedTuple):
    """One file that the cache gives for a name; ``special`` needs some capability of the processor."""

    path: str
    special: bool


def parse_cache(data: bytes, machine: str) -> dict[str, list[Cached]] | None:
    """Return what the cache holds for programs of a machine, or None for a file of another format.

    Args:
        data: the file.
        machine: as ``elf.machine`` names it.
    """
    start = data.find(MAGIC)
    if start < 0 or start > len(data) - _HEAD.size or machine not in _FLAGS:
        return None
    count = _HEAD.unpack_from(data, start)[1]
    if count > MAX_ENTRIES or start + _HEAD.size + count * _ENTRY.size > len(data):
        return None
    found: dict[str, list[Cached]] = {}
    for number in range(count):
        flags, key, value, _, hwcap = _ENTRY.unpack_from(data, start + _HEAD.size + number * _ENTRY.size)
        if flags != _FLAGS[machine]:
            continue
        name, path = _string(data, start + key), _string(data, start + value)
        if name and path:
            found.setdefault(name, []).append(Cached(path, bool(hwcap & _HWCAPS)))
    return found


def _string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + 4096)
    return data[at:end].decode("utf-8", "surrogateescape") if 0 <= at < end else ""
