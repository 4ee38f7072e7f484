"""Git's object ids and SWHIDs, computed from bytes alone.

A Git object is ``<type> SP <decimal size> NUL <content>``, hashed with the hash of the repository's object
format ("Git Internals - Git Objects", git-scm.com). A tree proves equal to a commit's
tree without Git. SWHID v1 (ISO/IEC 18670) is the same hash for contents, directories and revisions, except
that a directory may hold an empty directory, which Git cannot: the caller leaves such members out for a Git
tree and keeps them for a SWHID.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from provstore import libraries
from provstore.errors import DigestError, MalformedError
from provstore.ids import Buffer
from provstore.paths import check_name, show

ObjectFormat = Literal["sha1", "sha256"]
"""Hash function of a repository: ``extensions.objectFormat``."""

Mode = Literal["100644", "100755", "120000", "40000", "160000"]
"""File, executable, symlink, directory, submodule (or revision, in a SWHID)."""

SwhidKind = Literal["cnt", "dir", "rev"]
"""Content, directory, revision."""

ID_BYTES: Final[dict[ObjectFormat, int]] = {"sha1": 20, "sha256": 32}
"""Length of a raw id in each object format."""

_MODES: Final = frozenset({"100644", "100755", "120000", "40000", "160000"})


class TreeMember(NamedTuple):
    """One entry of a Git tree object.

    Attributes:
        name: one path part, as bytes.
        mode: as Git writes it, without leading zeros.
        id: raw id of the blob, tree or commit.
    """

    name: bytes
    mode: Mode
    id: bytes


class BlobHasher:
    """Git blob id of a stream whose length is known before its first byte.

    Args:
        size_bytes: how many bytes will be fed, 0 or more.
        algorithm: object format of the repository.

    Example:
        >>> hasher = BlobHasher(2)
        >>> hasher.update(b"a")
        >>> hasher.update(b"b")
        >>> hasher.digest() == blob_id(b"ab")
        True
    """

    __slots__ = ("_fed_bytes", "_hash", "size_bytes")

    def __init__(self, size_bytes: int, algorithm: ObjectFormat = "sha1") -> None:
        self.size_bytes = size_bytes
        self._fed_bytes = 0
        self._hash = libraries.hashlib.new(algorithm, b"blob %d\0" % size_bytes, usedforsecurity=False)

    def update(self, data: Buffer) -> None:
        """Feed the next bytes."""
        view = memoryview(data)
        self._hash.update(view)
        self._fed_bytes += view.nbytes

    def digest(self) -> bytes:
        """Return the raw id.

        Raises:
            MalformedError: more or fewer bytes were fed than announced; such a digest names no blob.
        """
        if self._fed_bytes != self.size_bytes:
            raise MalformedError("git blob", f"announced {self.size_bytes} bytes, got {self._fed_bytes}")
        return self._hash.digest()


def blob_id(data: Buffer, algorithm: ObjectFormat = "sha1") -> bytes:
    """Return the raw Git id of a blob with exactly these bytes (of a symlink: its text).

    Args:
        data: content, before any filter; Git itself hashes what its clean filters make of a file.
        algorithm: object format of the repository.

    Returns:
        20 bytes for ``sha1``, 32 for ``sha256``.

    Example:
        >>> blob_id(b"").hex()
        'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    view = memoryview(data)
    hasher = BlobHasher(view.nbytes, algorithm)
    hasher.update(view)
    return hasher.digest()


def tree_id(members: Iterable[TreeMember], algorithm: ObjectFormat = "sha1") -> bytes:
    """Return the raw Git id of a tree with these members, in any order.

    Git orders them by the bytes of their names, a directory as if its name ended in ``/``; a submodule is
    no directory in this respect.

    Args:
        members: all entries. An empty directory is the caller's choice: leave it out for the id that Git
            would give, keep it (as the tree without members) for a SWHID.
        algorithm: object format of the repository.

    Returns:
        20 bytes for ``sha1``, 32 for ``sha256``.

    Raises:
        MalformedError: a name given twice, an unknown mode, or an id of the wrong length.
        UnsafePathError: a name that is no single path part.

    Example:
        >>> tree_id([]).hex()
        '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
    """
    ordered = sorted(members, key=lambda m: m.name + b"/" if m.mode == "40000" else m.name)
    seen: set[bytes] = set()
    parts: list[bytes] = []
    for member in ordered:
        _check_member(member, algorithm, seen)
        parts.append(b"%s %s\0%s" % (member.mode.encode(), member.name, member.id))
    content = b"".join(parts)
    whole = b"tree %d\0%s" % (len(content), content)
    return libraries.hashlib.new(algorithm, whole, usedforsecurity=False).digest()


def _check_member(member: TreeMember, algorithm: ObjectFormat, seen: set[bytes]) -> None:
    """Refuse what no tree object may hold, and add the member's name to ``seen``."""
    check_name(member.name, "git tree")
    if member.name in seen:
        raise MalformedError("git tree", f"name {show(member.name)} is given twice")
    if member.mode not in _MODES:
        raise MalformedError("git tree", f"{show(member.name)}: unknown mode {member.mode!r}")
    if len(member.id) != ID_BYTES[algorithm]:
        raise MalformedError(
            "git tree",
            f"{show(member.name)}: id of {len(member.id)} bytes, {algorithm} needs {ID_BYTES[algorithm]}",
        )
    seen.add(member.name)


def root_tree_id(files: Mapping[bytes, tuple[Mode, bytes]], algorithm: ObjectFormat = "sha1") -> bytes:
    r"""Return the raw Git id of a whole tree from the paths in it.

    Args:
        files: path to mode and raw id of each blob, symlink and submodule; directories follow from them.
        algorithm: object format of the repository.

    Raises:
        MalformedError: one path lies below another, or as :func:`tree_id` says.

    Example:
        >>> root_tree_id({b"foo/x": ("100644", blob_id(b"a\n"))}).hex()[:8]
        '1f48386b'
    """
    below: dict[bytes, dict[bytes, TreeMember]] = {b"": {}}
    for path, (mode, id) in files.items():
        directory, _, name = path.rpartition(b"/")
        below.setdefault(directory, {})[name] = TreeMember(name, mode, id)
        while directory:
            directory = directory.rpartition(b"/")[0]
            below.setdefault(directory, {})
    for path in sorted(below, key=lambda path: -path.count(b"/") - bool(path)):
        made = tree_id(below[path].values(), algorithm)
        if not path:
            return made
        directory, _, name = path.rpartition(b"/")
        if name in below[directory]:
            raise MalformedError("git tree", f"{show(path)} is a file and a directory")
        below[directory][name] = TreeMember(name, "40000", made)
    return tree_id([], algorithm)


def swhid(kind: SwhidKind, id: bytes) -> str:
    """Return the core SWHID v1 of a content, directory or revision (ISO/IEC 18670).

    Args:
        kind: ``cnt`` for :func:`blob_id`, ``dir`` for :func:`tree_id` with empty directories kept, ``rev``
            for a commit.
        id: raw SHA-1 id, 20 bytes.

    Raises:
        DigestError: the id has another length; SWHID v1 knows SHA-1 only.

    Example:
        >>> swhid("cnt", blob_id(b""))
        'swh:1:cnt:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    if len(id) != ID_BYTES["sha1"]:
        raise DigestError("SWHID", f"id of {len(id)} bytes; version 1 takes the 20 bytes of a SHA-1 id")
    return f"swh:1:{kind}:{id.hex()}"
