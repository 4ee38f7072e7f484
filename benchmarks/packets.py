"""Big packets straight into a store, through the library: a million files on disk would measure the disk."""

import hashlib
from collections.abc import Callable, Collection
from typing import Final

from blake3 import blake3

from provstore import merkle, records
from provstore.ids import Digests, RawId
from provstore.records.packet import Entry, Packet
from provstore.records.tree import TreeEntry
from provstore.store.frame import FRAME_BYTES, pack
from provstore.store.protocol import Stage

FOLDER: Final = 30
"""Files in a folder, and folders in a folder, of a nested packet."""

DigestsOf = Callable[[int], Digests]
"""Gives the digests of the nth file's content."""


def made_up(number: int) -> Digests:
    """Return digests of a content that is nowhere; comparing packets reads no content."""
    name = b"content %d" % number
    return Digests(blake3(name).digest(), hashlib.sha256(name).digest(), 1000 + number % 5000)


def content(number: int) -> bytes:
    """Return the small content of an object."""
    return b"object %d of the store with many objects\n" % number


def file_entry(name: str, found: Digests) -> TreeEntry:
    """Return the entry of one file."""
    return TreeEntry(
        kind="file",
        name=name,
        blake3=found.blake3.hex(),
        sha256=found.sha256.hex(),
        size_bytes=found.size_bytes,
    )


def add_flat(stage: Stage, count: int, digests: DigestsOf) -> RawId:
    """Add one directory of ``count`` files."""
    return _build(stage, [file_entry(f"file-{number:07d}.txt", digests(number)) for number in range(count)])


def add_nested(stage: Stage, count: int, digests: DigestsOf) -> RawId:
    """Add directories of 30 directories of 30 files each, ``count`` files in all."""
    outer = []
    for start in range(0, count, FOLDER * FOLDER):
        inner = []
        for first in range(start, min(start + FOLDER * FOLDER, count), FOLDER):
            numbers = range(first, min(first + FOLDER, count))
            files = [file_entry(f"file-{number:07d}.txt", digests(number)) for number in numbers]
            inner.append(_folder(f"part-{first:07d}", _build(stage, files)))
        outer.append(_folder(f"group-{start:07d}", _build(stage, inner)))
    return _build(stage, outer)


def _folder(name: str, tree: RawId) -> TreeEntry:
    return TreeEntry(kind="directory", name=name, tree=tree.hex())


def _build(stage: Stage, entries: list[TreeEntry]) -> RawId:
    nodes = merkle.build(entries)
    for node, data in nodes:
        stage.add_record(node, data)
    return nodes[-1][0]


def add_packet(stage: Stage, name: str, tree: RawId, files: int) -> RawId:
    """Add a packet of one directory, and a ref that names it."""
    packet, data = records.encode(
        Packet(entries=(Entry(role="", kind="evidence", files=files, tree=tree.hex()),))
    )
    stage.add_record(packet, data)
    stage.set_ref(name, packet)
    return packet


def changed(numbers: Collection[int], offset: int) -> DigestsOf:
    """Return made-up digests in which some files have other contents."""
    return lambda number: made_up(number + offset if number in numbers else number)


def add_objects(stage: Stage, first: int, count: int) -> list[Digests]:
    """Add ``count`` small objects in full frames; return their digests."""
    added: list[Digests] = []
    group: list[bytes] = []
    begun = size = 0
    for number in range(first, first + count):
        data = content(number)
        group.append(data)
        size += len(data)
        added.append(Digests(blake3(data).digest(), hashlib.sha256(data).digest(), len(data)))
        if size >= FRAME_BYTES or number == first + count - 1:
            stage.add_frame(pack(group), added[begun:])
            group, size, begun = [], 0, len(added)
    return added
