"""The members of a packet, seen as one list of places, whatever entries they lie in."""

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from provstore import canon, merkle
from provstore.errors import EmptyError, MalformedError, NotFoundError
from provstore.ids import RawId, to_raw
from provstore.merkle import Fetch
from provstore.paths import join, show, unshow
from provstore.records.packet import Entry, Origin, Packet
from provstore.records.tree import TreeEntry, TreeLeaf
from provstore.reports import Missing

MAX_FILES: Final = 1 << 22
"""Most files of one entry."""

MAX_OTHERS: Final = 1 << 19
"""Most links, directories and holes of one entry, and files beyond what it states."""


class Member(NamedTuple):
    """One member.

    Attributes:
        entry: the packet's entry that it lies in.
        path: path below the entry; empty for the entry itself.
        node: what the tree says of it.
    """

    entry: Entry
    path: bytes
    node: TreeEntry

    def place(self) -> bytes:
        """Return its path inside the packet."""
        return join(self.entry.role.encode(), self.path)


def single(entry: Entry) -> TreeEntry | None:
    """Return a single-file entry in the form of a tree member; None for a directory or a bare pin."""
    if entry.tree is not None or (entry.sha256 is None and entry.blake3 is None and entry.state is None):
        return None
    return TreeEntry(
        kind="executable" if entry.executable else "file",
        name="file",
        blake3=entry.blake3,
        sha256=entry.sha256,
        size_bytes=entry.size_bytes,
        state=entry.state,
    )


def is_hole(node: TreeEntry) -> bool:
    """Say whether a member could not be read when it was sealed."""
    return node.state == "unreadable"


def is_file(node: TreeEntry) -> bool:
    """Say whether a member counts among the files of its entry; holes do not."""
    return node.kind in ("file", "executable") and not is_hole(node)


def most_members(entry: Entry) -> int:
    """Return how many members an entry may have, 0 if it states more files than any may have."""
    return entry.files + MAX_OTHERS if entry.files <= MAX_FILES else 0


def too_many(entry: Entry) -> str:
    """Return the sentence about an entry that unfolds to more members than it may."""
    return (
        f"entry {entry.role!r} states {entry.files} files and unfolds to more members than that allows "
        f"(at most {MAX_FILES} files, {MAX_OTHERS} links and directories)"
    )


def members(fetch: Fetch, packet: Packet) -> Iterator[Member]:
    """Yield every member of a packet: entries in the order of roles, parents before children."""
    for entry in packet.entries:
        yield from entry_members(fetch, entry)


def entry_members(fetch: Fetch, entry: Entry) -> Iterator[Member]:
    """Yield every member of one entry.

    Raises:
        MalformedError: it has more members than it states: few records can unfold to any number of paths.
    """
    if entry.tree is not None:
        left = most_members(entry)
        if not left:
            raise MalformedError(f"entry {entry.role!r}", too_many(entry))
        for path, node in merkle.walk(fetch, to_raw(entry.tree)):
            left -= 1
            if left < 0:
                raise MalformedError(f"entry {entry.role!r}", too_many(entry))
            yield Member(entry, path, node)
    else:
        node_or_none = single(entry)
        if node_or_none is not None:
            yield Member(entry, b"", node_or_none)


def unfold(fetch: Fetch, tree: RawId) -> tuple[list[bytes], Sequence[TreeEntry], RawId]:
    """Return names and entries of one directory, and the id that its tree has if it is split by its names.

    A directory in one leaf that may be in one leaf is what it should be: the leaf's bytes are the canonical
    form of its entries. Only one that is split, or should be, is built again.

    Raises:
        CanonError, MalformedError: as :func:`~provstore.merkle.open_node`.
    """
    opened = merkle.open_node(fetch(tree), f"tree {tree.hex()}")
    if isinstance(opened.node, TreeLeaf) and len(opened.names) <= merkle.SPLIT_ABOVE:
        return opened.names, opened.node.entries, tree
    entries = list(merkle.entries_of(fetch, tree))
    names = [entry.raw_name() for entry in entries]
    rebuilt = merkle.build_encoded(names, [canon.encode(entry, bounded=True) for entry in entries])
    return names, entries, rebuilt[-1][0]


def find_member(fetch: Fetch, packet: Packet, path: str) -> tuple[Member, list[bytes]]:
    """Return the member at a path of the packet, and the tree records that lead to it.

    Args:
        fetch: gives checked record bytes.
        packet: where to look.
        path: ``role/path`` in shown form.

    Raises:
        NotFoundError: there is none.
    """
    raw = unshow(path).strip(b"/")
    for entry in packet.entries:
        role = entry.role.encode()
        if raw == role and (alone := single(entry)) is not None:
            return Member(entry, b"", alone), []
        below = raw[len(role) + 1 :] if role else raw
        if entry.tree is None or not below or not (not role or raw.startswith(role + b"/")):
            continue
        node, trail = merkle.find(fetch, to_raw(entry.tree), below)
        if node is not None:
            return Member(entry, below, node), trail
    raise NotFoundError(show(raw), "no member of the packet has this path; `prov ls` lists them")


class Only:
    """Picks members by a pattern over ``role/path``; remembers whether it picked any.

    A pattern matches a member, or any directory or role above it; ``*`` also matches ``/``.
    """

    def __init__(self, pattern: str | None) -> None:
        self.pattern = pattern
        self.hits = 0
        text = os.fsencode(pattern.strip("/")).decode("latin-1") if pattern is not None else "*"
        self._compiled = re.compile(fnmatch.translate(text).encode("latin-1"))

    def __call__(self, place: bytes) -> bool:
        """Say whether the member at ``place`` is picked, and remember it."""
        hit = self.picks(place)
        self.hits += hit
        return hit

    def picks(self, place: bytes) -> bool:
        """Say whether the member at ``place`` is picked."""
        hit = self.pattern is None
        while not hit and place:
            hit = self._compiled.match(place) is not None
            place = place.rpartition(b"/")[0]
        return hit

    def require_hits(self) -> None:
        """Raise if nothing was picked.

        Raises:
            EmptyError: a pattern that matches nothing is never a success.
        """
        if self.pattern is not None and not self.hits:
            raise EmptyError(f"--only {self.pattern}")


def origin_text(origin: Origin) -> str:
    """Return one line that says where bytes can be had again."""
    where = (origin.hub and f"hub:{origin.hub}") or (origin.git and f"git:{origin.git}") or origin.url or ""
    return where + (f"@{origin.revision}" if origin.revision else "")


def missing_of(member: Member) -> Missing:
    """Return the report line of a member whose bytes are not here."""
    return Missing(
        role=member.entry.role,
        path=show(member.path),
        custody=member.entry.custody,
        blake3=member.node.blake3,
        sha256=member.node.sha256,
        size_bytes=member.node.size_bytes,
        origins=tuple(origin_text(origin) for origin in member.entry.origins),
    )


def mode_text(node: TreeEntry) -> str:
    """Return what people call the mode of a file."""
    return "mode 755" if node.kind == "executable" else "mode 644"


def node_text(node: TreeEntry | None) -> str | None:
    """Return what a member is, in a few words; None for none."""
    if node is None:
        return None
    if node.kind == "symlink":
        return f"symlink to {show(node.raw_target())}"
    if node.kind == "directory":
        return "directory"
    digest = f"blake3:{node.blake3}" if node.blake3 else f"sha256:{node.sha256}"
    return f"{node.kind} {digest}" + (f" ({node.size_bytes} bytes)" if node.size_bytes is not None else "")
