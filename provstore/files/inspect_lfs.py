"""Git LFS pointer files: a few lines of text that stand for a payload kept elsewhere."""

import re
from typing import Final, NamedTuple

MAX_POINTER_BYTES: Final = 1024
"""A pointer is shorter than this (git-lfs, docs/spec.md, "The Pointer")."""

_VERSION: Final = re.compile(
    rb"version (https://git-lfs\.github\.com/spec/v1|https://hawser\.github\.com/spec/v1|http://git-media\.io/v/2)\n"
)
_OID: Final = re.compile(rb"^oid sha256:([0-9a-f]{64})\r?$", re.MULTILINE)
_SIZE: Final = re.compile(rb"^size ([0-9]{1,18})\r?$", re.MULTILINE)


class LfsPointer(NamedTuple):
    """What a pointer stands for.

    Attributes:
        sha256: hex SHA-256 of the payload.
        size_bytes: its length.
    """

    sha256: str
    size_bytes: int


def lfs_pointer(data: bytes) -> LfsPointer | None:
    r"""Return what ``data`` stands for, or ``None`` if it is no LFS pointer.

    Reads the format of git-lfs ``docs/spec.md`` and its two pre-release names; line ends may have been
    converted. Text that starts like a pointer but lacks digest or size is none.

    Example:
        >>> text = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 7\n"
        >>> lfs_pointer(text).size_bytes, lfs_pointer(b"version 1\n")
        (7, None)
    """
    if len(data) >= MAX_POINTER_BYTES or not _VERSION.match(data.replace(b"\r\n", b"\n", 1)):
        return None
    oid = _OID.search(data)
    size = _SIZE.search(data)
    if oid is None or size is None:
        return None
    return LfsPointer(oid[1].decode(), int(size[1]))
