"""Files that stand in for others: Git LFS and git-annex pointers, unfinished downloads, locks, cache notes.

A stand-in is never evidence of what it stands for: sealed as if it were the payload, it would verify for ever
and prove nothing. Nothing here touches a file system.

Sources: the Git LFS pointer specification; git-annex's "pointer file format" and "key format" pages; the
layout that huggingface_hub gives to its cache and to a local directory.
"""

import re
from itertools import pairwise
from typing import Final, NamedTuple

LFS_MAX_BYTES: Final = 1024
"""A pointer of Git LFS is shorter than this."""

ANNEX_MAX_BYTES: Final = 32_768
"""A pointer of git-annex is at most this long."""

_LFS_VERSION: Final = re.compile(
    rb"version (?:https://git-lfs\.github\.com/spec/v1|https://hawser\.github\.com/spec/v1|http://git-media\.io/v/2)"
)
_LFS_OID: Final = re.compile(rb"oid sha256:([0-9a-f]{64})")
_LFS_SIZE: Final = re.compile(rb"size ([0-9]{1,19})")
_ANNEX_POINTER: Final = re.compile(rb"[/\\]annex[/\\]objects[/\\](?:[^/\\\r\n]+[/\\])*([^/\\\r\n]+)")
_ANNEX_PLACE: Final = re.compile(rb"(?:\A|[/\\])\.git[/\\]annex[/\\]objects[/\\]")
_ANNEX_KEY: Final = re.compile(rb"([A-Z0-9_]+)((?:-[smSC][0-9]{1,19})*)--(.+)", re.DOTALL)
_ETAG: Final = re.compile(rb"(?:.*\.)?(?:[0-9a-f]{40}|[0-9a-f]{64})", re.DOTALL)


class LfsPointer(NamedTuple):
    """What a Git LFS pointer stands for.

    Attributes:
        sha256: 64 lower-case hex digits of the payload's SHA-256.
        size_bytes: the payload's length.
    """

    sha256: str
    size_bytes: int


class AnnexPointer(NamedTuple):
    """What a git-annex pointer or link stands for.

    Attributes:
        key: the whole key.
        sha256: the payload's SHA-256 in hex, where the key states one.
        size_bytes: the payload's length, where the key states it.
    """

    key: bytes
    sha256: str | None
    size_bytes: int | None


def lfs_pointer(head: bytes) -> LfsPointer | None:
    r"""Return what a file stands for if it is a Git LFS pointer, else None.

    Lines may end in CR LF and blank lines may follow, as Git LFS itself allows. Lines of extensions and of
    keys that are not known are passed over.

    Args:
        head: the whole file if it is shorter than :data:`LFS_MAX_BYTES`, else at least that many bytes of it.

    Example:
        >>> text = b"version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 4900000000\n" % 7
        >>> lfs_pointer(text).size_bytes
        4900000000
    """
    if len(head) >= LFS_MAX_BYTES:
        return None
    lines = [line.rstrip() for line in head.split(b"\n")]
    if not _LFS_VERSION.fullmatch(lines[0]):
        return None
    oid = next((match for line in lines[1:] if (match := _LFS_OID.fullmatch(line))), None)
    size = next((match for line in lines[1:] if (match := _LFS_SIZE.fullmatch(line))), None)
    if oid is None or size is None:
        return None
    return LfsPointer(oid[1].decode(), int(size[1]))


def annex_pointer(head: bytes) -> AnnexPointer | None:
    r"""Return what a file stands for if it is a git-annex pointer, else None.

    The first line decides. Text that somebody appended to a pointer does not make it the payload.

    Args:
        head: the beginning of the file, :data:`ANNEX_MAX_BYTES` of it or all.

    Example:
        >>> annex_pointer(b"/annex/objects/SHA256E-s31--%064d.safetensors\n" % 7).size_bytes
        31
    """
    line = head[:ANNEX_MAX_BYTES].split(b"\n", 1)[0].rstrip(b"\r")
    pointer = _ANNEX_POINTER.fullmatch(line)
    return _annex_key(pointer[1] if pointer else b"")


def annex_link(target: bytes) -> AnnexPointer | None:
    r"""Return what a symlink stands for if its text leads into the object directory of git-annex, else None.

    Args:
        target: the bytes of the link's text.

    Example:
        >>> annex_link(b"../.git/annex/objects/Kj/0x/MD5-s3--aa/MD5-s3--aa").key
        b'MD5-s3--aa'
    """
    inside = _ANNEX_PLACE.search(target)
    return _annex_key(re.split(rb"[/\\]", target[inside.end() :])[-1] if inside else b"")


def _annex_key(text: bytes) -> AnnexPointer | None:
    """Take a key apart: backend, fields, name; a SHA256E name goes on with the file's extension."""
    key = _ANNEX_KEY.fullmatch(text)
    if key is None:
        return None
    backend, fields, name = key.groups()
    size = re.search(rb"-s([0-9]+)", fields)
    digits = (
        re.fullmatch(rb"([0-9a-f]{64})(?:\..*)?", name, re.DOTALL)
        if backend in (b"SHA256", b"SHA256E")
        else None
    )
    return AnnexPointer(key[0], digits[1].decode() if digits else None, int(size[1]) if size else None)


def is_partial_name(path: bytes) -> str | None:
    """Return why a path names no finished member of a model or tree, or None if it may be one.

    Known are ``*.incomplete`` (a download of the Hub client that did not finish), everything below
    ``.cache/huggingface`` (its notes beside a model; ``hub`` below it is a cache with real members), and
    locks of the Hub client: whatever lies in a directory ``.locks``, and ``<etag>.lock`` where the etag is
    40 or 64 hex digits. Other names that end in ``.lock`` are members: ``uv.lock`` is a source.

    Args:
        path: relative, parts joined by ``/``.

    Example:
        >>> is_partial_name(b"blobs/0a1b2c3d.deadbeef.incomplete")
        'unfinished download of the Hub client'
    """
    parts = path.split(b"/")
    name = parts[-1]
    if name.endswith(b".incomplete"):
        return "unfinished download of the Hub client"
    for place, pair in enumerate(pairwise(parts)):
        if pair == (b".cache", b"huggingface") and parts[place + 2 : place + 3] != [b"hub"]:
            return "metadata of the Hub client"
    if b".locks" in parts or (name.endswith(b".lock") and _ETAG.fullmatch(name.removesuffix(b".lock"))):
        return "lock of the Hub client"
    return None
