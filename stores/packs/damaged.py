"""Damaged specimen packs. ``make.py`` writes them.

They are either written by the library's own writer from bytes that it was lied to about, or are the pack
``hello`` with a few bytes altered in place. Then the hash over the whole file is made to fit again, so that
nothing but the check in question can notice.
"""

import io
from typing import NamedTuple

from blake3 import blake3
from sound import HELLO, hello

from provstore import canon
from provstore.ids import RawId, digests, record_id
from provstore.store import pack_format as form
from provstore.store.pack_writer import write_pack
from provstore.store.protocol import ObjectInfo


class Parts(NamedTuple):
    """The parts of the pack ``hello``, to be put together wrongly."""

    packet: RawId
    records: list[tuple[RawId, bytes]]
    object: RawId
    info: ObjectInfo


def hello_parts() -> Parts:
    """Return the records and the object of ``hello``, made by hand."""
    found = digests(HELLO)
    leaf = {
        "entries": [
            {
                "blake3": found.blake3.hex(),
                "kind": "file",
                "name": "hello.txt",
                "sha256": found.sha256.hex(),
                "size_bytes": found.size_bytes,
            }
        ],
        "format": "provstore/tree/v1",
    }
    tree = canon.encode(leaf)
    tree_id = record_id("tree", tree)
    packet = canon.encode(packet_of([entry_of(tree_id)]))
    packet_id = record_id("packet", packet)
    info = ObjectInfo(found.size_bytes, found.sha256, "inline")
    return Parts(packet_id, [(packet_id, packet), (tree_id, tree)], found.blake3, info)


def entry_of(tree: RawId, role: str = "") -> dict[str, object]:
    """Return a packet entry of the directory of ``hello``."""
    return {"files": 1, "kind": "evidence", "role": role, "size_bytes": len(HELLO), "tree": tree.hex()}


def packet_of(entries: list[dict[str, object]]) -> dict[str, object]:
    """Return a packet with these entries."""
    return {"entries": entries, "format": "provstore/packet/v1"}


def put_together(parts: Parts, content: bytes | None = HELLO) -> bytes:
    """Write a pack of parts, whatever they are; without content the object has no row at all."""
    out = io.BytesIO()
    objects = [] if content is None else [(parts.object, parts.info, [content])]
    write_pack(out, [("hello", parts.packet)], parts.records, objects)
    return out.getvalue()


def flipped_blob() -> tuple[bytes, RawId]:
    """One bit of the content."""
    parts = hello_parts()
    return put_together(parts, b"hello, worle\n"), parts.packet


def flipped_record() -> tuple[bytes, RawId]:
    """A tree whose bytes are canonical and of another id."""
    parts = hello_parts()
    id, data = parts.records[1]
    altered = data.replace(b"hello.txt", b"hullo.txt")
    return put_together(parts._replace(records=[parts.records[0], (id, altered)])), parts.packet


def missing_blob() -> tuple[bytes, RawId]:
    """The content is not in the pack, and the index does not say that it was left out."""
    parts = hello_parts()
    return put_together(parts, None), parts.packet


def with_packet(entries: list[dict[str, object]]) -> tuple[bytes, RawId]:
    """Put a hand-made packet over the tree of ``hello``."""
    parts = hello_parts()
    packet = canon.encode(packet_of(entries))
    id = record_id("packet", packet)
    return put_together(parts._replace(packet=id, records=[(id, packet), parts.records[1]])), id


def escaping_role() -> tuple[bytes, RawId]:
    """A role that leads out of the directory."""
    return with_packet([entry_of(hello_parts().records[1][0], "../x")])


def duplicate_role() -> tuple[bytes, RawId]:
    """One role twice."""
    entry = entry_of(hello_parts().records[1][0], "a")
    return with_packet([entry, entry])


def escaping_name() -> tuple[bytes, RawId]:
    """A name that leads out of the directory."""
    parts = hello_parts()
    tree = parts.records[1][1].replace(b'"hello.txt"', b'".."')
    tree_id = record_id("tree", tree)
    packet = canon.encode(packet_of([entry_of(tree_id)]))
    id = record_id("packet", packet)
    return put_together(parts._replace(packet=id, records=[(id, packet), (tree_id, tree)])), id


def wrong_shape() -> tuple[bytes, RawId]:
    """A split directory that is not cut where its names say."""
    parts = hello_parts()
    leaf_id, leaf = parts.records[1]
    child = {"entries": 1, "last": "hello.txt", "tree": leaf_id.hex()}
    tree = canon.encode({"children": [child], "format": "provstore/tree-index/v1", "level": 1})
    tree_id = record_id("tree-index", tree)
    packet = canon.encode(packet_of([entry_of(tree_id)]))
    id = record_id("packet", packet)
    records = [(id, packet), (tree_id, tree), (leaf_id, leaf)]
    return put_together(parts._replace(packet=id, records=records)), id


def lying_sha256() -> tuple[bytes, RawId]:
    """The index states another SHA-256 than the content has."""
    parts = hello_parts()
    return put_together(parts._replace(info=parts.info._replace(sha256=bytes(31) + b"\1"))), parts.packet


def lying_size() -> tuple[bytes, RawId]:
    """The index states a terabyte."""
    data, packet = hello()
    at = row_position(data, hello_parts().object)
    return altered(data, at + 64, (1 << 40).to_bytes(8, "little")), packet


def oversized_frame() -> tuple[bytes, RawId]:
    """The frame of the content states 4 GiB."""
    data, packet = hello()
    position = int.from_bytes(data[(at := row_position(data, hello_parts().object)) + 72 : at + 80], "little")
    return altered(data, position + 1, b"\xff\xff\xff\xff"), packet


def newer_format() -> tuple[bytes, RawId]:
    """A pack of format 2."""
    data, packet = hello()
    return altered(data, len(form.MAGIC), (2).to_bytes(4, "little")), packet


def cut_short() -> tuple[bytes, RawId]:
    """The last 100 bytes are gone."""
    data, packet = hello()
    return data[:-100], packet


def row_position(data: bytes, id: RawId) -> int:
    """Return where the index row of an id begins."""
    layout = form.check_layout(data[-form.TRAILER_BYTES :], len(data), "specimen")
    at = data.index(id, layout.index_position)
    if (at - layout.index_position) % form.ROW.size:
        raise ValueError("the id was found inside another row")
    return at


def altered(data: bytes, at: int, new: bytes) -> bytes:
    """Return a pack with other bytes at a position, and a hash over the whole that fits them."""
    changed = data[:at] + new + data[at + len(new) :]
    end = len(data) - form.HASH_BYTES - len(form.END_MAGIC)
    return changed[:end] + blake3(changed[:end]).digest() + changed[end + form.HASH_BYTES :]
