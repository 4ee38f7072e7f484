"""Keys and values of the graph index as bytes: the code side of its part of ``stores/LAYOUT.md``. No I/O."""

import struct
from collections.abc import Iterator
from typing import Final, get_args
from zlib import crc32

import msgspec
from blake3 import blake3

from provstore.errors import StoreDamagedError
from provstore.graph.index import Edge, Statement
from provstore.graph.nodes import Node, NodeKind
from provstore.graph.relations import KINDS, RelationKind
from provstore.graph.statements import Statements
from provstore.store.lmdb_txn import Form

FORMAT: Final = 2
"""Format number of the graph index; one of another number is made anew."""

FORM: Final = Form(
    {
        "nodes": False,
        "numbers": False,
        "out": True,
        "into": True,
        "statements": False,
        "documents": False,
        "units": False,
        "settings": False,
    }
)
"""Databases of the graph index."""

NUMBER_BYTES: Final = 5
EDGE_BYTES: Final = 1 + 2 * NUMBER_BYTES
LONGEST_KEY: Final = 480
_KEPT_OF_LONG: Final = 440

_PAIR: Final = struct.Struct(">QQ")
_LOW: Final = (1 << 40) - 1
_STATEMENT: Final = struct.Struct("<32sI")
_NODE_KINDS: Final[tuple[NodeKind, ...]] = get_args(NodeKind)
_NODE_RANK: Final = {kind: bytes((rank,)) for rank, kind in enumerate(_NODE_KINDS)}
_DIGEST_RANK: Final = {kind: bytes((rank | 0x80,)) for rank, kind in enumerate(_NODE_KINDS)}
_DIGITS: Final = 64
_NO_HEX: Final = {ord(digit): None for digit in "0123456789abcdef"}
_KIND_RANK: Final = {kind: rank for rank, kind in enumerate(KINDS)}
_NOWHERE: Final = Statement("", "", "")


CHECK_BYTES: Final = 4


def checked(key: bytes, value: bytes) -> bytes:
    """Return a value with the check that its row ends with."""
    return value + crc32(value, crc32(key)).to_bytes(CHECK_BYTES, "big")


def unchecked(key: bytes, row: bytes | None) -> bytes:
    """Return a value without its check.

    Raises:
        StoreDamagedError: it is not the value that was written under this key.

    Example:
        >>> unchecked(b"key", checked(b"key", b"value"))
        b'value'
    """
    if row is None or len(row) < CHECK_BYTES:
        raise StoreDamagedError("graph", f"row {key[:40].hex()} is missing or cut short")
    value = row[:-CHECK_BYTES]
    if crc32(value, crc32(key)) != int.from_bytes(row[-CHECK_BYTES:], "big"):
        raise StoreDamagedError("graph", f"row {key[:40].hex()} is not as it was written")
    return value


def number_key(number: int) -> bytes:
    """Return the key of a node or a statement."""
    return number.to_bytes(NUMBER_BYTES, "big")


def kind_of(rank: int) -> RelationKind:
    """Return the kind of a relation by its place among them.

    Raises:
        StoreDamagedError: there is none.
    """
    if rank >= len(KINDS):
        raise StoreDamagedError("graph", f"a relation has kind {rank}")
    return KINDS[rank]  # type: ignore[return-value]


def rank_of(kind: RelationKind) -> int:
    """Return the place of a kind of relation among them."""
    return _KIND_RANK[kind]


def edge_value(rank: int, node: int, statement: int) -> bytes:
    """Return a duplicate of ``out`` or ``into``.

    Example:
        >>> edge_value(1, 2, 3).hex()
        '0100000000020000000003'
    """
    return ((rank << 80) | (node << 40) | statement).to_bytes(EDGE_BYTES, "big")


def numbered_edges(pairs: bytes, ranks: frozenset[int] | None = None) -> Iterator[tuple[int, Edge]]:
    """Yield the node and the edge of each of the joined pairs; of kinds with some ranks only, if given.

    Raises:
        StoreDamagedError: a relation of no kind of ours.

    Example:
        >>> list(numbered_edges(number_key(9) + edge_value(1, 2, 3)))
        [(9, Edge(kind='holds', node=2, statement=3))]
    """
    new, kinds = tuple.__new__, KINDS  # a third of the time of the class's own constructor
    for high, low in _PAIR.iter_unpack(pairs):
        rank = high >> 16 & 0xFF
        if rank >= len(kinds):
            kind_of(rank)
        if ranks is None or rank in ranks:
            yield high >> 24, new(Edge, (kinds[rank], (high & 0xFFFF) << 24 | low >> 40, low & _LOW))


def neighbours(pairs: bytes) -> Iterator[tuple[int, int]]:
    """Yield both nodes of each of the joined pairs.

    Example:
        >>> list(neighbours(number_key(9) + edge_value(1, 2, 3)))
        [(9, 2)]
    """
    return ((high >> 24, (high & 0xFFFF) << 24 | low >> 40) for high, low in _PAIR.iter_unpack(pairs))


def edge(value: bytes) -> Edge:
    """Return an edge from a duplicate of ``out`` or ``into``."""
    number = int.from_bytes(value, "big")
    return Edge(kind_of(number >> 80), number >> 40 & _LOW, number & _LOW)


def _raw(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _packed(node: Node) -> bytes | None:
    """Return the raw form of a node whose key is a digest of 64 hex digits; None for any other."""
    key = node.key
    if len(key) == _DIGITS and not key.translate(_NO_HEX):
        return _DIGEST_RANK[node.kind] + bytes.fromhex(key)
    return None


def node_key(node: Node) -> bytes:
    r"""Return the key of a node in ``numbers``: a long one is cut, and a digest of all of it follows.

    Example:
        >>> node_key(Node("object", "ab")), node_key(Node("object", "ab" * 32))[:3]
        (b'\x00ab', b'\x80\xab\xab')
    """
    packed = _packed(node)
    if packed is not None:
        return packed
    raw = _raw(node.key)
    if len(raw) > LONGEST_KEY:
        raw = raw[:_KEPT_OF_LONG] + b"\xff" + blake3(raw).digest()
    return _NODE_RANK[node.kind] + raw


def text_range(kind: NodeKind, prefix: str) -> bytes:
    """Return what the keys of nodes begin with that are no digests, and whose keys begin with a prefix."""
    return _NODE_RANK[kind] + _raw(prefix)[:_KEPT_OF_LONG]


def digest_range(kind: NodeKind, prefix: str) -> tuple[bytes, bytes] | None:
    """Return the first and the last key of nodes whose keys are digests that begin so; None if none can."""
    if len(prefix) > _DIGITS or prefix.translate(_NO_HEX):
        return None
    rank = _DIGEST_RANK[kind]
    return rank + bytes.fromhex(prefix.ljust(_DIGITS, "0")), rank + bytes.fromhex(prefix.ljust(_DIGITS, "f"))


def is_cut(key: bytes) -> bool:
    """Say whether a key of ``numbers`` is only the beginning of the node's."""
    return len(key) > _KEPT_OF_LONG + 1 and key[_KEPT_OF_LONG + 1] == 0xFF


def node_value(node: Node) -> bytes:
    """Return the value of a node in ``nodes``."""
    return _packed(node) or _NODE_RANK[node.kind] + _raw(node.key)


def node(value: bytes) -> Node:
    """Return a node from its value in ``nodes`` or its key in ``numbers``.

    Raises:
        StoreDamagedError: no node of ours.

    Example:
        >>> node(node_key(Node("tree", "0f" * 32))) == Node("tree", "0f" * 32)
        True
    """
    if not value or value[0] & 0x7F >= len(_NODE_KINDS):
        raise StoreDamagedError("graph", f"node {value[:40].hex()} has an unknown kind")
    kind = _NODE_KINDS[value[0] & 0x7F]
    if value[0] & 0x80:
        return Node(kind, value[1:].hex())
    try:
        return Node(kind, value[1:].decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise StoreDamagedError("graph", f"node {value[:40].hex()} is no text") from error


def statement_value(statement: Statement) -> bytes:
    """Return the value of a statement."""
    location = _raw(statement.location)
    return (
        _STATEMENT.pack(bytes.fromhex(statement.stated_by), len(location)) + location + _raw(statement.reason)
    )


def statement(value: bytes | None) -> Statement:
    """Return a statement from its value.

    Raises:
        StoreDamagedError: no statement of ours.

    Example:
        >>> statement(statement_value(Statement("ab" * 32, "/a", "b"))).location
        '/a'
    """
    if value is None or len(value) < _STATEMENT.size:
        raise StoreDamagedError("graph", "a statement is missing or cut short")
    id, length = _STATEMENT.unpack_from(value)
    text = value[_STATEMENT.size :]
    try:
        location = text[:length].decode("utf-8", "surrogatepass")
        return Statement(id.hex(), location, text[length:].decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise StoreDamagedError("graph", "a statement is no text") from error


def document_key(id: str, statements: Statements) -> bytes:
    """Return the key of what a document states: its id, and what it is about, as long as a key may be."""
    subject = _raw(f"{statements.subject_kind}\0{statements.subject}")
    if len(subject) > _KEPT_OF_LONG:
        subject = subject[: _KEPT_OF_LONG - 32] + blake3(subject).digest()
    return bytes.fromhex(id) + subject


def document_value(statements: Statements) -> bytes:
    """Return what a document states as bytes."""
    return msgspec.msgpack.encode(statements)


_DECODER: Final = msgspec.msgpack.Decoder(Statements)


def document(value: bytes) -> Statements:
    """Return what a document states.

    Raises:
        StoreDamagedError: no value of ours.
    """
    try:
        return _DECODER.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreDamagedError("graph", f"what a document states cannot be read: {error}") from error


def stamp(readers: str) -> bytes:
    """Return what an index must say of itself to be used: format, kinds, and who derived its relations."""
    words = " ".join((str(FORMAT), *_NODE_KINDS, "|", *KINDS, "|", readers))
    return str(FORMAT).encode() + b" " + blake3(words.encode()).digest(16)
