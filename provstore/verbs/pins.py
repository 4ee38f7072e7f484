"""Pins: what a spec demands of an entry's bytes, held against them; every mismatch is named."""

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from provstore.errors import EmptyError, SpecError
from provstore.files.checksums import ChecksumLine
from provstore.paths import check_path, show
from provstore.records.tree import TreeEntry

MAX_MANIFEST_BYTES: Final = 256 << 20
"""Largest checksum file that is read: two million lines of usual length."""


class ManifestView(NamedTuple):
    """A checksum file as one entry sees it.

    Attributes:
        lines: names below the entry's root, and their lines.
        prefix: what was taken off the names, or None where they were relative to the entry.
        unlisted: name below the entry's root that the manifest itself has, if it lies there.
    """

    lines: dict[bytes, ChecksumLine]
    prefix: str | None
    unlisted: bytes | None


def view_manifest(
    lines: Sequence[ChecksumLine], prefix: str | None, manifest: bytes, root: bytes | None, place: str
) -> ManifestView:
    """Map a manifest's names to paths below an entry.

    With a prefix, lines below it count and the others belong elsewhere. Without one, names are relative
    to the manifest's own directory when that puts all of them below the entry, as ``sha256sum -c`` run
    there reads them; else relative to the entry.

    Args:
        lines: the manifest's lines.
        prefix: prefix that the spec states, or None.
        manifest: absolute path of the checksum file.
        root: absolute path of the entry, or None for a declared one.
        place: where the spec says so, for errors.

    Raises:
        EmptyError: no line is about the entry.
        UnsafePathError: a name leaves the entry.
    """
    unlisted = None
    if root is not None and manifest.startswith(root + b"/"):
        unlisted = manifest[len(root) + 1 :]
    if prefix is None and root is not None:
        prefix = _folder_prefix(lines, manifest, root)
    start = os.fsencode(prefix) if prefix else b""
    found = {
        check_path(_plain(line.name)[len(start) :], place): line
        for line in lines
        if _plain(line.name).startswith(start)
    }
    if not found:
        raise EmptyError(f"{place}: no line of {show(manifest)} begins with {prefix!r}")
    return ManifestView(found, prefix, unlisted)


def _plain(name: bytes) -> bytes:
    return name[2:] if name.startswith(b"./") else name


def _folder_prefix(lines: Sequence[ChecksumLine], manifest: bytes, root: bytes) -> str | None:
    """Return the prefix that makes names relative to the manifest's folder relative to the entry."""
    folder = os.path.dirname(manifest)
    if not root.startswith(folder + b"/"):
        return None
    prefix = root[len(folder) + 1 :] + b"/"
    if all(_plain(line.name).startswith(prefix) for line in lines):
        return os.fsdecode(prefix)
    return None


def manifest_mismatches(role: str, view: ManifestView, members: Mapping[bytes, TreeEntry]) -> list[str]:
    """Hold a manifest against the members of an entry, exactly: nothing absent, nothing extra.

    Args:
        role: the entry, for the lines.
        view: the manifest.
        members: path and entry of every member that is no directory.
    """
    found = []
    for path in sorted(view.lines.keys() | members.keys()):
        line, entry = view.lines.get(path), members.get(path)
        name = f"{role}/{show(path)}" if role else show(path)
        if line is None:
            if path != view.unlisted:
                found.append(f"{name}: extra: not listed in the manifest")
        elif entry is None:
            found.append(
                f"{name}: missing: line {line.line} of the manifest lists it, expected {line.digest}"
            )
        elif entry.kind == "symlink":
            found.append(f"{name}: is a symlink; line {line.line} of the manifest lists a file")
        else:
            digest = entry.blake3 if line.digest.algorithm == "blake3" else entry.sha256
            if digest != line.digest.raw.hex():
                found.append(
                    f"{name}: changed: line {line.line} expects {line.digest}, "
                    f"found {line.digest.algorithm}:{digest} ({entry.size_bytes} bytes)"
                )
    return found


def digest_mismatches(
    role: str, sha256: str | None, blake3: str | None, entry: TreeEntry | None
) -> list[str]:
    """Hold digest pins of a single file against its entry."""
    found = []
    for algorithm, expected in (("sha256", sha256), ("blake3", blake3)):
        if expected is None:
            continue
        if entry is None:
            raise SpecError(role, f"{algorithm} pins a single file, but the path is a directory")
        actual = entry.sha256 if algorithm == "sha256" else entry.blake3
        if actual != expected:
            found.append(f"{role}: expected {algorithm}:{expected}, found {algorithm}:{actual}")
    return found
