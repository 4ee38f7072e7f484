"""Members of a packet in the forms of other tools: checksum files and Git trees."""

import os
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from provstore.errors import EmptyError, UsageError
from provstore.files.checksums import ChecksumLine, format_checksums
from provstore.files.publishing import write_new
from provstore.gitids import BlobHasher, Mode, TreeMember, blob_id, tree_id
from provstore.ids import Digest, RawId
from provstore.paths import show
from provstore.records.tree import TreeEntry
from provstore.reports import Report, Verdict
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.members import Member, members, single

FORMATS: Final = ("sha256sum", "b3sum", "git-tree")
"""Forms that :func:`export` writes."""

_GIT_MODES: Final[dict[str, Mode]] = {"file": "100644", "executable": "100755", "symlink": "120000"}


class ExportReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an export holds, and what it cannot hold.

    Attributes:
        packet: id of the packet.
        format: one of :data:`FORMATS`.
        outcome: ``INCOMPLETE`` when members that the format could hold are absent from it, because nobody
            here knows their digest or has their bytes.
        members: members that are in it.
        root: id of the Git tree; None for other formats, and for an incomplete tree.
        left_out: one line for each group of members that are not in it, with the reason.
    """

    packet: str
    format: str
    outcome: Verdict
    members: int
    root: str | None
    left_out: tuple[str, ...]


class _Chosen(NamedTuple):
    """Members sorted by what a format can do with them."""

    files: list[Member]
    symlinks: list[Member]
    empty_directories: list[Member]


def export(reader: Reader, packet: RawId, form: str) -> tuple[bytes, ExportReport]:
    """Return the members of a packet in a form of another tool.

    ``sha256sum`` and ``b3sum`` are checksum files in the order of paths. ``git-tree`` is a line ``tree <id>``
    followed by what ``git ls-tree -r`` prints of that tree.

    Args:
        reader: where the packet is.
        packet: its id.
        form: one of :data:`FORMATS`.

    Returns:
        The bytes of the export, and what they do and do not hold.

    Raises:
        UsageError: an unknown form.
        EmptyError: the packet has no member that the form can hold.
    """
    if form not in FORMATS:
        raise UsageError(f"format {form!r} is unknown; known are {', '.join(FORMATS)}")
    sealed = objects.packet(reader, packet)
    chosen = _choose(members(objects.fetcher(reader), sealed))
    data, held, root, unknown = _git_tree(reader, chosen) if form == "git-tree" else _checksums(chosen, form)
    unknown += [entry.role for entry in sealed.entries if entry.tree is None and single(entry) is None]
    if not held:
        raise EmptyError(f"export of packet {packet.hex()} as {form}")
    report = ExportReport(
        packet=packet.hex(),
        format=form,
        outcome="INCOMPLETE" if unknown else "PASS",
        members=held,
        root=root,
        left_out=tuple(_left_out(chosen, form, unknown)),
    )
    return data, report


def write_export(data: bytes, output: str) -> None:
    """Write an export to a new file.

    Raises:
        TargetError: the file exists.
        InputOutputError: it cannot be written; nothing of it stays.
    """
    write_new(os.fsencode(output), data)


def _choose(found: Iterable[Member]) -> _Chosen:
    ordered = sorted(found, key=Member.place)
    parents = {member.place().rpartition(b"/")[0] for member in ordered}
    return _Chosen(
        [m for m in ordered if m.node.kind in ("file", "executable")],
        [m for m in ordered if m.node.kind == "symlink"],
        [m for m in ordered if m.node.kind == "directory" and m.place() not in parents],
    )


def _checksums(chosen: _Chosen, form: str) -> tuple[bytes, int, None, list[str]]:
    lines, unknown = [], []
    for member in chosen.files:
        digits = member.node.sha256 if form == "sha256sum" else member.node.blake3
        if digits is None:
            unknown.append(show(member.place()))
            continue
        digest = Digest("sha256" if form == "sha256sum" else "blake3", bytes.fromhex(digits))
        lines.append(ChecksumLine(member.place(), digest))
    return format_checksums(lines, "gnu" if form == "sha256sum" else "b3sum"), len(lines), None, unknown


def _git_tree(reader: Reader, chosen: _Chosen) -> tuple[bytes, int, str | None, list[str]]:
    """Build the tree bottom up out of blobs that are hashed here; absent bytes leave it without an id."""
    blobs: list[tuple[bytes, Mode, bytes]] = []
    unknown = []
    for member in chosen.files:
        blob = _blob(reader, member.node)
        if blob is None:
            unknown.append(show(member.place()))
        else:
            blobs.append((member.place(), _GIT_MODES[member.node.kind], blob))
    for member in chosen.symlinks:
        blobs.append((member.place(), _GIT_MODES["symlink"], blob_id(member.node.raw_target())))
    blobs.sort()
    root = None if unknown else _root(blobs).hex()
    head = [b"tree %s\n" % root.encode()] if root else []
    lines = [
        b"%s blob %s\t%s\n" % (mode.encode(), blob.hex().encode(), _quoted(path))
        for path, mode, blob in blobs
    ]
    return b"".join(head + lines), len(blobs), root, unknown


def _blob(reader: Reader, node: TreeEntry) -> bytes | None:
    """Return the Git blob id of a file's checked bytes, or None when they are not here."""
    if node.blake3 is None or node.size_bytes is None:
        return None
    info = reader.info(bytes.fromhex(node.blake3))
    if info is None or info.placement == "external":
        return None
    hasher = BlobHasher(node.size_bytes)
    objects.copy(reader, bytes.fromhex(node.blake3), hasher.update)
    return hasher.digest()


def _root(blobs: list[tuple[bytes, Mode, bytes]]) -> bytes:
    """Return the id of the tree over all blobs, deepest directories first."""
    below: dict[bytes, list[TreeMember]] = {b"": []}
    for path, mode, blob in blobs:
        parent, _, name = path.rpartition(b"/")
        below.setdefault(parent, []).append(TreeMember(name, mode, blob))
        while parent:
            parent = parent.rpartition(b"/")[0]
            below.setdefault(parent, [])
    for directory in sorted(below, key=lambda path: path.count(b"/"), reverse=True):
        if directory:
            parent, _, name = directory.rpartition(b"/")
            below[parent].append(TreeMember(name, "40000", tree_id(below[directory])))
    return tree_id(below[b""])


def _quoted(path: bytes) -> bytes:
    """Return a path as ``git ls-tree`` prints it: in C quotes when a byte of it is unusual."""
    special = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
    if all(0x20 <= byte < 0x7F and byte not in special for byte in path):
        return path
    parts = []
    for byte in path:
        if byte in special:
            parts.append(b"\\" + special[byte])
        else:
            parts.append(bytes([byte]) if 0x20 <= byte < 0x7F else b"\\%03o" % byte)
    return b'"' + b"".join(parts) + b'"'


def _left_out(chosen: _Chosen, form: str, unknown: list[str]) -> Iterator[str]:
    """Yield what the form cannot hold, by kind, with the paths."""
    empty, links = len(chosen.empty_directories), len(chosen.symlinks)
    if empty:
        noun = "directory" if empty == 1 else "directories"
        paths = _paths(chosen.empty_directories)
        yield f"{empty} empty {noun} not representable in {form}: {paths}"
    if links and form != "git-tree":
        noun = "symlink" if links == 1 else "symlinks"
        yield f"{links} {noun} not representable in {form}: {_paths(chosen.symlinks)}"
    if form == "b3sum":
        odd = [m for m in chosen.files if not _is_utf8(m.place())]
        if odd:
            yield f"{len(odd)} name(s) that are not UTF-8, which b3sum --check cannot read: {_paths(odd)}"
    if unknown:
        yield f"{len(unknown)} member(s) whose digest or bytes are not known here: {', '.join(unknown)}"


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _paths(members: Iterable[Member]) -> str:
    return ", ".join(show(member.place()) for member in members)
