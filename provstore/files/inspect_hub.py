"""What the layout of a Hub client says of its files: which snapshot, which revision, which blob each is.

Two layouts are known. The cache keeps ``blobs/<etag>`` and ``snapshots/<commit>/<name>`` as links to them;
the etag is the SHA-256 of a large file and the Git blob id of a small one. A local directory keeps plain
files, and beside them ``.cache/huggingface/download/<name>.metadata`` with the commit in its first line.

Source: "Manage huggingface_hub cache-system" and "Download files" in the documentation of huggingface_hub.
"""

import os
import re
from collections.abc import Iterator
from typing import Final

from provstore.errors import EmptyError, UsageError
from provstore.files.hashing import SMALL_BYTES
from provstore.gitids import blob_id
from provstore.paths import show

_COMMIT: Final = re.compile(rb"[0-9a-f]{40}")
_SHA256: Final = re.compile(rb"[0-9a-f]{64}")
_METADATA_BYTES: Final = 4096
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def snapshot_of(path: bytes, revision: str | None) -> bytes:
    """Return the snapshot inside a cached repository; a path that is no such cache is returned as it is.

    Args:
        path: a directory.
        revision: the wanted commit; without one there must be a single snapshot.

    Raises:
        EmptyError: the cache has no snapshot.
        UsageError: it has several, and none is named.
    """
    folder = os.path.join(path, b"snapshots")
    if not (os.path.isdir(folder) and os.path.isdir(os.path.join(path, b"blobs"))):
        return path
    found = sorted(os.listdir(folder))
    if not found:
        raise EmptyError(f"{show(path)}: a Hub cache without a snapshot")
    if revision is not None and os.fsencode(revision) in found:
        return os.path.join(folder, os.fsencode(revision))
    if len(found) > 1:
        names = ", ".join(map(show, found))
        raise UsageError(f"{show(path)} has {len(found)} snapshots ({names}); name the directory of one")
    return os.path.join(folder, found[0])


def revisions_of(path: bytes) -> set[str]:
    """Return the commits that the layout around a model's directory states; none where it states nothing."""
    parent, name = os.path.split(path)
    if os.path.basename(parent) == b"snapshots" and _COMMIT.fullmatch(name):
        return {name.decode()}
    return {commit.decode() for commit in _stated(os.path.join(path, b".cache/huggingface/download"))}


def _stated(folder: bytes) -> Iterator[bytes]:
    for directory, _, names in os.walk(folder):
        for name in names:
            if name.endswith(b".metadata"):
                descriptor = os.open(
                    os.path.join(directory, name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
                )
                with open(descriptor, "rb", buffering=0) as file:
                    line = file.read(_METADATA_BYTES).split(b"\n")[0].strip()
                if _COMMIT.fullmatch(line):
                    yield line


def unfinished(path: bytes) -> list[str]:
    """Return a line for each download beside a model's directory that did not finish.

    They lie in the notes of a local directory, or among the blobs of a cache; neither is a member.
    """
    folders = [os.path.join(path, b".cache/huggingface/download")]
    parent = os.path.dirname(path)
    if os.path.basename(parent) == b"snapshots":
        folders.append(os.path.join(os.path.dirname(parent), b"blobs"))
    return [
        f"{show(os.path.join(directory, name))}: unfinished download of the Hub client"
        for folder in folders
        for directory, _, names in os.walk(folder)
        for name in sorted(names)
        if name.endswith(b".incomplete")
    ]


def blob_problem(base: bytes, path: bytes, sha256: str, size_bytes: int) -> str | None:
    """Return why a file of a cache is not the blob that its place names, or None.

    Args:
        base: the model's directory.
        path: the file below it.
        sha256: what its bytes hash to, hex.
        size_bytes: their number.
    """
    place = os.path.join(base, path)
    if os.path.islink(place):
        place = os.path.join(os.path.dirname(place), os.readlink(place))
    folder, name = os.path.split(place)
    if os.path.basename(folder) != b"blobs":
        return None
    if _SHA256.fullmatch(name):
        found = sha256
    elif _COMMIT.fullmatch(name) and size_bytes <= SMALL_BYTES:
        with open(place, "rb") as file:
            found = blob_id(file.read()).hex()
    else:
        return None
    if found == name.decode():
        return None
    return f"{show(path)}: blob {name.decode()} of the Hub cache has bytes of another digest, {found}"
