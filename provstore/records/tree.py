"""Trees: a directory as a record, split by its names when it is big."""

import re
from typing import Annotated, Final, Literal

import msgspec

from provstore.errors import CanonError
from provstore.paths import name_bytes, name_fields, show

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 53) - 1)]
"""A number of bytes or things, within what every JSON implementation holds exactly."""

EntryKind = Literal["file", "executable", "symlink", "directory"]

MemberState = Literal["pointer", "prefix", "unreadable"]
"""Why a member is less than it seems: a stand-in for other bytes, the beginning of a growing file, or
a hole that the sealer was told to record. A member with a state never counts as checked evidence."""


class TreeEntry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,  # it holds text and numbers alone, and there are many
):
    """One name in a directory.

    Attributes:
        name: the name, when it is valid UTF-8.
        name_hex: the name's bytes in hex, when it is not.
        kind: ``file``, ``executable`` (the owner's x bit), ``symlink`` or ``directory``.
        blake3: hex id of the content of a file.
        sha256: hex SHA-256 of the same bytes; alone where a file is only declared.
        size_bytes: length of the content; absent only where nobody has seen it.
        target: text of a symlink, when valid UTF-8.
        target_hex: bytes of a symlink's text in hex, when not.
        tree: hex id of the tree record of a directory.
        state: why the member is not whole evidence.
    """

    kind: EntryKind
    name: str | None = None
    name_hex: str | None = None
    blake3: str | None = None
    sha256: str | None = None
    size_bytes: Count | None = None
    target: str | None = None
    target_hex: str | None = None
    tree: str | None = None
    state: MemberState | None = None

    def raw_name(self) -> bytes:
        """Return the name as bytes.

        Raises:
            UnsafePathError: it could not be one part of a path.
        """
        return name_bytes(self.name, self.name_hex, "tree entry")

    def raw_target(self) -> bytes:
        """Return the text of a symlink as bytes."""
        if self.target is not None:
            return self.target.encode()
        return bytes.fromhex(self.target_hex or "")


class TreeLeaf(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="format",
    tag="provstore/tree/v1",
):
    """A whole small directory, or a run of names of a big one.

    Attributes:
        entries: sorted by the bytes of their names, each name once.
    """

    entries: tuple[TreeEntry, ...]


class TreeChild(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One part of a split directory.

    Attributes:
        last: the greatest name below this child, as ``name``/``name_hex`` of an entry.
        last_hex: the same for a name that is not UTF-8.
        tree: hex id of the leaf or index.
        entries: how many names lie below it.
    """

    tree: str
    entries: Count
    last: str | None = None
    last_hex: str | None = None

    def raw_last(self) -> bytes:
        """Return the greatest name below this child as bytes."""
        return name_bytes(self.last, self.last_hex, "tree child")


class TreeIndex(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="format",
    tag="provstore/tree-index/v1",
):
    """A level above the leaves of a split directory.

    Attributes:
        level: 1 above leaves, 2 above those, and so on.
        children: in order of their names.
    """

    level: Count
    children: tuple[TreeChild, ...]


_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def check_entry(entry: TreeEntry, where: str = "tree") -> bytes:
    """Return the raw name of ``entry`` if its fields fit its kind and its name is safe.

    Raises:
        CanonError: a field that the kind does not have or one that it needs; a malformed digest or size.
        UnsafePathError: an unsafe name.
    """
    if (plain := _plain_file(entry)) is not None:
        return plain
    name = entry.raw_name()
    problem = None
    if entry.kind == "directory":
        problem = _directory_problem(entry)
    elif entry.kind == "symlink":
        problem = _symlink_problem(entry)
    else:
        problem = _file_problem(entry)
    if problem is not None:
        raise CanonError(where, f"{entry.kind} {show(name)!r} {problem}")
    return name


_PLAIN_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[ -.0-~]{1,255}")
_BOTH_DIGESTS: Final = re.compile(r"[0-9a-f]{128}")


def _plain_file(entry: TreeEntry) -> bytes | None:
    """Return the raw name of the commonest entry, a file with both digests; None for any other.

    It says yes only where the whole look does; trees have so many files that this one has to be short.
    """
    name, blake3, sha256 = entry.name, entry.blake3, entry.sha256
    if blake3 is None or sha256 is None or name is None or entry.size_bytes is None:
        return None
    if entry.kind not in ("file", "executable") or entry.state == "unreadable":
        return None
    if not (entry.name_hex is entry.tree is entry.target is entry.target_hex is None):
        return None
    if len(blake3) != 64 or not _BOTH_DIGESTS.fullmatch(blake3 + sha256) or not _PLAIN_NAME.fullmatch(name):
        return None
    return name.encode() if 0 <= entry.size_bytes < 1 << 53 else None


def _directory_problem(entry: TreeEntry) -> str | None:
    if entry.tree is None or not _DIGEST.fullmatch(entry.tree):
        return "needs the hex id of its tree"
    if _has_content(entry) or entry.target is not None or entry.target_hex is not None:
        return "has a field of another kind"
    return None


def _symlink_problem(entry: TreeEntry) -> str | None:
    if (entry.target is None) == (entry.target_hex is None):
        return "needs exactly one of target and target_hex"
    if entry.target_hex is not None and not re.fullmatch(r"([0-9a-f]{2})+", entry.target_hex):
        return "has a malformed target_hex"
    target = entry.raw_target()
    if not target or b"\0" in target:
        return "has a target that is empty or holds NUL"
    if entry.target_hex is not None and name_fields(target)[1] is None:
        return "has a target_hex that is valid UTF-8 and must be written as target"
    return "has a field of another kind" if _has_content(entry) or entry.tree is not None else None


def _has_content(entry: TreeEntry) -> bool:
    return any(v is not None for v in (entry.blake3, entry.sha256, entry.size_bytes, entry.state))


def _file_problem(entry: TreeEntry) -> str | None:
    if entry.tree is not None or entry.target is not None or entry.target_hex is not None:
        return "has a field of another kind"
    if entry.state == "unreadable":
        return "cannot have a digest" if entry.blake3 is not None or entry.sha256 is not None else None
    if entry.sha256 is None and entry.blake3 is None:
        return "needs a digest"
    if entry.sha256 is not None and _DIGEST.fullmatch(entry.sha256) is None:
        return "has a malformed digest"
    if entry.blake3 is not None and _DIGEST.fullmatch(entry.blake3) is None:
        return "has a malformed digest"
    if entry.blake3 is not None and entry.sha256 is not None and entry.size_bytes is None:
        return "needs size_bytes"
    if entry.size_bytes is not None and not 0 <= entry.size_bytes < 1 << 53:
        return "has a size out of range"
    return None
