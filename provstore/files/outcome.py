"""What an ingest is asked for, and what came of it."""

from typing import NamedTuple

from provstore.files import hashing
from provstore.ids import RawId
from provstore.records.tree import TreeEntry


class Options(NamedTuple):
    """How a directory becomes a tree.

    Attributes:
        exclude: patterns that are left out.
        skip: device and inode of directories never entered.
        keep: store the bytes; otherwise only note where they are.
        use_cache: trust the stat cache for unchanged files.
        workers: processes for small files; None to decide by their number.
        settings: how files are read.
    """

    exclude: tuple[str, ...] = ()
    skip: frozenset[tuple[int, int]] = frozenset()
    keep: bool = True
    use_cache: bool = True
    workers: int | None = None
    settings: hashing.Settings = hashing.Settings()


class Ingested(NamedTuple):
    """What came of it.

    Attributes:
        tree: id of the tree record of a directory; None for a file.
        file: the entry of a file; None for a directory.
        files: number of files.
        members: number of members below a directory: files, links, directories, holes.
        size_bytes: sum of their sizes.
        excluded: path and rule of what was left out.
        unreadable: path and reason of holes.
        changed: path and stat fields of files that did not hold still.
        pointers: paths of LFS pointers.
        bundles: paths of Git bundles.
        growing: paths of which a prefix was taken.
        git_ids: Git blob id by path, where asked for.
        bytes_read: bytes read from files.
    """

    tree: RawId | None
    file: TreeEntry | None
    files: int
    members: int
    size_bytes: int
    excluded: list[tuple[bytes, str]]
    unreadable: list[tuple[bytes, str]]
    changed: list[tuple[bytes, tuple[str, ...]]]
    pointers: list[bytes]
    bundles: list[bytes]
    growing: list[bytes]
    git_ids: dict[bytes, bytes]
    bytes_read: int
