"""What a question is about: a ref, a digest, a prefix, a file, a role of a packet, or any ``kind:key``."""

import os
import stat
from contextlib import suppress
from typing import NamedTuple

from provstore import merkle, records
from provstore.errors import AmbiguousError, DigestError, InputOutputError, NotFoundError, ProvError
from provstore.files.hashing import hash_file
from provstore.files.walk import refuse_inside
from provstore.graph.deriving import object_node
from provstore.graph.index import Index
from provstore.graph.nodes import KINDS, Node, NodeKind
from provstore.ids import RawId, is_prefix, parse_digest, to_raw
from provstore.paths import show
from provstore.records.packet import Packet
from provstore.records.tree import TreeIndex, TreeLeaf
from provstore.records.verdict import Verdict
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.store.resolving import resolve, resolve_packet
from provstore.verbs.relating import node_at

LISTED = 20
"""Most nodes that an error about an ambiguous name lists."""


class Asked(NamedTuple):
    """What a question is asked of.

    Attributes:
        reader: store or pack.
        graph: index of its graph, up to date.
    """

    reader: Reader
    graph: Index


def node_of(asked: Asked, text: str) -> Node:
    """Return the node that a person means.

    Tried in this order: a ref; ``KIND:KEY``; a digest, or 8 or more digits of one; the path of a file, for
    its bytes; ``PACKET/ROLE``, with a path below it where the role is a directory; the exact key of a node.

    Raises:
        NotFoundError: it is none of these, or the graph does not speak of it.
        AmbiguousError: it is several things; all are listed.
    """
    for attempt in (_ref, _typed, _digest, _file, _member, _bare):
        found = attempt(asked, text)
        if found is not None:
            return found
    raise NotFoundError(show(text), "no ref, node, digest, file or PACKET/ROLE of this name is in the graph")


def number_of(asked: Asked, node: Node) -> int:
    """Return the number of a node.

    Raises:
        NotFoundError: the graph does not speak of it.
    """
    found = asked.graph.number(node)
    if found is None:
        raise NotFoundError(str(node), "nothing in the graph speaks of it")
    return found


def _ref(asked: Asked, text: str) -> Node | None:
    packet = asked.reader.ref(text)
    return None if packet is None else Node("packet", packet.hex())


def _typed(asked: Asked, text: str) -> Node | None:
    kind, colon, key = text.partition(":")
    if not colon or kind not in KINDS or not key:
        return None
    exact = Node(kind, key)  # type: ignore[arg-type]
    if asked.graph.number(exact) is not None:
        return exact
    below = [node for _, node in asked.graph.nodes(exact.kind) if node.key.endswith(f"/{key}")]
    return _only(text, below) or _by_prefix(asked, text, key, exact.kind)


def _only(text: str, nodes: list[Node]) -> Node | None:
    if len(nodes) > 1:
        raise AmbiguousError(show(text), [str(node) for node in nodes[:LISTED]])
    return nodes[0] if nodes else None


def _by_prefix(asked: Asked, text: str, key: str, kind: NodeKind) -> Node | None:
    if not is_prefix(key):
        return None
    return _only(text, [node for _, node in asked.graph.nodes(kind, key)][: LISTED + 1])


def _digest(asked: Asked, text: str) -> Node | None:
    named = text.startswith(("blake3:", "sha256:", "git:"))
    if not named and not is_prefix(text):
        return None
    try:
        find = resolve if named else resolve_packet
        return node_of_id(asked.reader, find(asked.reader, text))
    except NotFoundError:
        pass
    digits = text.partition(":")[2] if named else text
    if named:
        parse_digest(text)
    if text.startswith("blake3:"):
        return _known(asked, Node("object", text))
    if text.startswith("git:"):
        return _known(asked, Node("commit", digits))
    found: list[Node] = []
    for kind in ("object", "commit"):
        found += [node for _, node in asked.graph.nodes(kind, digits)][: LISTED + 1]
    return _only(text, found)


def _known(asked: Asked, node: Node) -> Node | None:
    return node if asked.graph.number(node) is not None else None


def node_of_id(reader: Reader, id: RawId) -> Node:
    """Return the node of an object or a record of the store."""
    info = reader.info(id)
    if info is not None:
        return Node("object", info.sha256.hex())
    record = records.decode(objects.record(reader, id), id.hex())
    if isinstance(record, Packet):
        return Node("packet", id.hex())
    if isinstance(record, TreeLeaf | TreeIndex):
        return Node("tree", id.hex())
    if isinstance(record, Verdict):
        return Node("verdict", id.hex())
    raise NotFoundError(id.hex(), "it is a record that the graph has no node for")


def _file(asked: Asked, text: str) -> Node | None:
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.stat(text).st_mode):
            return file_node(asked.reader, text)
    return None


def file_node(reader: Reader, path: str) -> Node:
    """Return the node of the bytes of a file on disk.

    Raises:
        UsageError: it lies in the store itself.
        SourceChangedError, SourceUnreadableError: it cannot be read whole.
    """
    refuse_inside(os.path.abspath(os.fsencode(path)), reader.directory_ids())
    return Node("object", hash_file(path).sha256.hex())


def _member(asked: Asked, text: str) -> Node | None:
    at = len(text)
    while (at := text.rfind("/", 0, at)) > 0:
        with suppress(NotFoundError, AmbiguousError, DigestError):
            packet = resolve_packet(asked.reader, text[:at])
            found = node_at(asked.reader, objects.packet(asked.reader, packet), text[at + 1 :])
            if found is not None:
                return found
    return None


def _bare(asked: Asked, text: str) -> Node | None:
    exact = [Node(kind, text) for kind in KINDS]  # type: ignore[arg-type]
    return _only(text, [node for node in exact if asked.graph.number(node) is not None])


def names_in_tree(reader: Reader, tree: str, target: Node) -> str:
    """Return the names under which a tree record holds a node, sorted; nothing if it is unreadable."""
    try:
        node = merkle.open_node(objects.record(reader, to_raw(tree)), f"tree {tree}").node
    except ProvError as error:
        if isinstance(error, InputOutputError):
            raise
        return ""
    if not isinstance(node, TreeLeaf):
        return ""
    names = [
        show(entry.raw_name())
        for entry in node.entries
        if (Node("tree", entry.tree) if entry.tree else object_node(entry.sha256, entry.blake3)) == target
    ]
    return ", ".join(sorted(names))
