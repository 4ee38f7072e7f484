r"""``/proc/PID/maps``: what a process has mapped, by file.

The kernel escapes line ends in names as ``\012``, and writes `` (deleted)`` behind the name of a file that
was unlinked; a file can also be called so. Memory without a name on disk has names of its own, most of them
with that mark: memfd, System V segments, huge pages, ``/dev/zero``. Those are classed apart.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

DELETED: Final = b" (deleted)"

_LINE: Final = re.compile(
    rb"([0-9a-f]+)-([0-9a-f]+) ([r-][w-][x-][sp]) [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) ([0-9]+) *(.*)"
)
_ESCAPE: Final = re.compile(rb"\\012")

Kind = Literal["file", "memfd", "sysv", "shm", "hugepages", "zero", "device"]


class Mapping(NamedTuple):
    """All mappings of one file in one process.

    Attributes:
        path: its name, without the mark for deleted files.
        device: ``major:minor``, in hex as the kernel writes them.
        inode: its inode.
        deleted: the kernel marks it as deleted.
        executable: some mapping of it may be executed.
        bytes: of address space, together.
        start: the lowest address.
        kind: what it is.
    """

    path: bytes
    device: str
    inode: int
    deleted: bool
    executable: bool
    bytes: int
    start: int
    kind: Kind


def parse_maps(data: bytes) -> list[Mapping]:
    r"""Return the named mappings of a process, one for each file, by their lowest address.

    Example:
        >>> found = parse_maps(b"7f00-8f00 r-xp 00000000 08:01 42       /lib/x.so (deleted)\n")
        >>> found[0].path, found[0].deleted, found[0].inode, found[0].bytes
        (b'/lib/x.so', True, 42, 4096)
    """
    found: dict[tuple[str, int, bytes], Mapping] = {}
    for line in data.split(b"\n"):
        match = _LINE.fullmatch(line)
        if match is None or not match[6].startswith(b"/"):
            continue
        start, size = int(match[1], 16), int(match[2], 16) - int(match[1], 16)
        name = _ESCAPE.sub(b"\n", match[6])
        deleted = name.endswith(DELETED)
        path = name.removesuffix(DELETED) if deleted else name
        device, inode = match[4].decode(), int(match[5])
        key = (device, inode, name)
        before = found.get(key)
        runs = b"x" in match[3]
        if before is None:
            found[key] = Mapping(path, device, inode, deleted, runs, size, start, _kind(path, deleted))
        else:
            found[key] = before._replace(
                executable=before.executable or runs,
                bytes=before.bytes + size,
                start=min(before.start, start),
            )
    return sorted(found.values(), key=lambda mapping: mapping.start)


def _kind(path: bytes, deleted: bool) -> Kind:
    if path.startswith(b"/memfd:"):
        return "memfd"
    if deleted and re.fullmatch(rb"/SYSV[0-9a-f]{8}", path):
        return "sysv"
    if deleted and path in (b"/anon_hugepage", b"/dev/zero"):
        return "zero" if path == b"/dev/zero" else "hugepages"
    if path.startswith(b"/dev/shm/"):
        return "shm"
    return "device" if path.startswith(b"/dev/") else "file"


def device_number(device: str) -> tuple[int, int]:
    """Return major and minor number of a device as maps writes it.

    Example:
        >>> device_number("fd:01")
        (253, 1)
    """
    major, _, minor = device.partition(":")
    return int(major, 16), int(minor, 16)


def names_twice(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that stand for several paths.

    Example:
        >>> names_twice([("libv.so", "/a/libv.so"), ("libv.so", "/b/libv.so"), ("libc.so.6", "/c")])
        {'libv.so': ['/a/libv.so', '/b/libv.so']}
    """
    found: dict[str, set[str]] = {}
    for name, path in pairs:
        found.setdefault(name, set()).add(path)
    return {name: sorted(paths) for name, paths in sorted(found.items()) if len(paths) > 1}
