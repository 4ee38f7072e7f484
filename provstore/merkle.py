"""Merkle trees over directories: building, walking, looking up and comparing.

A directory of up to :data:`SPLIT_ABOVE` names is one leaf. A bigger one is cut after each name whose
BLAKE3 ends in enough zero bits, so its shape depends on the set of names alone: changing one file rewrites
one leaf and the path above it, and comparing two versions skips every equal part. Nothing here does I/O;
records come from a ``fetch`` function that has already checked their ids.
"""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from blake3 import blake3

from provstore import canon, records
from provstore.errors import CanonError, MalformedError
from provstore.ids import RawId, record_id, to_raw
from provstore.paths import join, name_fields, show
from provstore.records.tree import TreeChild, TreeEntry, TreeIndex, TreeLeaf, check_entry

SPLIT_ABOVE: Final = 64
"""Largest number of names that stay in one leaf."""

SPLIT_BITS: Final = 5
"""Zero bits of BLAKE3(name) that end a leaf; each level above needs as many more. Mean leaf: 32 names."""

MAX_NODE_ENTRIES: Final = 4096
"""A node ends here at the latest, so that chosen names cannot make one without bound."""

LEAF_END: Final = b'],"format":"provstore/tree/v1"}'
"""How a leaf ends, and no other record."""

Fetch = Callable[[RawId], bytes]
"""Gives the checked bytes of a record, or raises an error of ``provstore.errors``."""

Node = tuple[RawId, bytes]
"""Id and canonical bytes of one record."""


class _Part(NamedTuple):
    """A node as its parent sees it."""

    level: int
    id: RawId
    last: bytes
    entries: int


def build(entries: Sequence[TreeEntry]) -> list[Node]:
    """Return the records of one directory, the root last.

    Args:
        entries: sorted by the bytes of their names, each name once.

    Raises:
        CanonError: entries out of order, or in a name that is not safe.

    Example:
        >>> len(build([TreeEntry(kind="directory", name="a", tree="0" * 64)]))
        1
    """
    names = [check_entry(entry) for entry in entries]
    return build_encoded(names, [canon.encode(entry, bounded=True) for entry in entries])


def build_encoded(names: Sequence[bytes], entries: Sequence[bytes]) -> list[Node]:
    """Return the records of one directory from the canonical bytes of its entries, the root last.

    Args:
        names: sorted, each once.
        entries: canonical bytes of the entry of each name, as :func:`check_entry` allows them.

    Raises:
        CanonError: names out of order.
    """
    if any(a >= b for a, b in itertools.pairwise(names)):
        raise CanonError("tree", "entries are not in the order of their names, or a name is there twice")
    if len(entries) <= SPLIT_ABOVE:
        return [_leaf(entries)]
    nodes: list[Node] = []
    parts: list[_Part] = []
    for start, end in _cuts(names, 0):
        node = _leaf(entries[start:end])
        nodes.append(node)
        parts.append(_Part(0, node[0], names[end - 1], end - start))
    level = 0
    while len(parts) > 1:
        level += 1
        above = []
        for start, end in _cuts([part.last for part in parts], level):
            below = parts[start:end]
            node = records.encode(TreeIndex(level=level, children=tuple(map(_child, below))))
            nodes.append(node)
            above.append(_Part(level, node[0], below[-1].last, sum(part.entries for part in below)))
        parts = above
    return nodes


def _leaf(entries: Sequence[bytes]) -> Node:
    data = b'{"entries":[' + b",".join(entries) + LEAF_END
    return record_id("tree", data), data


def _child(part: _Part) -> TreeChild:
    last, last_hex = name_fields(part.last)
    return TreeChild(tree=part.id.hex(), entries=part.entries, last=last, last_hex=last_hex)


def _cuts(names: Sequence[bytes], level: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each node over ``names``; end excluded."""
    mask = (1 << (SPLIT_BITS * (level + 1))) - 1
    start = 0
    for end, name in enumerate(names, 1):
        low = int.from_bytes(blake3(name).digest(8), "little")
        if low & mask == 0 or end - start == MAX_NODE_ENTRIES or end == len(names):
            yield start, end
            start = end


class Opened(NamedTuple):
    """A decoded tree record, and the names of its entries or the last names of its children."""

    node: TreeLeaf | TreeIndex
    names: list[bytes]


def open_node(data: bytes, where: str = "tree") -> Opened:
    """Decode a tree record and check what its schema cannot say.

    Raises:
        CanonError: order, fields or level are wrong.
        MalformedError: the record is no tree.
    """
    record = records.decode(data, where)
    if isinstance(record, TreeLeaf):
        names = [check_entry(entry, where) for entry in record.entries]
    elif isinstance(record, TreeIndex):
        names = [child.raw_last() for child in record.children]
        for child in record.children:
            to_raw(child.tree, where)
        if record.level < 1 or not names:
            raise CanonError(where, "an index needs a level of 1 or more and children")
    else:
        raise MalformedError(where, f"is a {type(record).__name__} record, not a tree")
    if any(a >= b for a, b in itertools.pairwise(names)):
        raise CanonError(where, "names are not in order")
    return Opened(record, names)


def entries_of(fetch: Fetch, tree: RawId) -> Iterator[TreeEntry]:
    """Yield the entries of one directory in the order of their names; raises as :func:`open_node` does."""
    todo: list[tuple[RawId, int, bytes]] = [(tree, -1, b"")]
    before = b""
    while todo:
        node_id, level, last = todo.pop()
        node, names = check_node(fetch(node_id), node_id, level, before, last)
        if isinstance(node, TreeLeaf):
            yield from node.entries
            before = last
        else:
            for child, name in zip(reversed(node.children), reversed(names), strict=True):
                todo.append((bytes.fromhex(child.tree), node.level - 1, name))


def leaves_of(fetch: Fetch, tree: RawId) -> Iterator[bytes]:
    """Yield the bytes of the leaves of one directory in order, not parsed; indexes are checked.

    For a caller who takes from them what has one form alone; raises as :func:`open_node` does of indexes.
    """
    todo: list[tuple[RawId, int]] = [(tree, -1)]
    while todo:
        node_id, level = todo.pop()
        data = fetch(node_id)
        if level <= 0 and data.endswith(LEAF_END):
            yield data
            continue
        node, _ = check_node(data, node_id, level)
        if isinstance(node, TreeIndex):
            todo.extend((bytes.fromhex(child.tree), node.level - 1) for child in reversed(node.children))


def check_node(
    data: bytes, node_id: RawId, level: int = -1, before: bytes = b"", last: bytes = b""
) -> Opened:
    """Parse a node; ``level`` is the one it must have, or -1 for any (a root).

    If ``last`` is given, its names must come after ``before`` and end with that one, so that no part of a
    directory can stand in two places of it.
    """
    where = f"tree {node_id.hex()}"
    opened = open_node(data, where)
    found = 0 if isinstance(opened.node, TreeLeaf) else opened.node.level
    if level not in (-1, found):
        raise CanonError(where, f"level {found} where level {level} belongs")
    if last and not (opened.names and before < opened.names[0] and opened.names[-1] == last):
        raise CanonError(where, "does not hold the names that its index states")
    return opened


def walk(fetch: Fetch, tree: RawId, prefix: bytes = b"") -> Iterator[tuple[bytes, TreeEntry]]:
    """Yield path and entry of everything below a directory, parents before children, names in order.

    Args:
        fetch: gives checked record bytes.
        tree: id of the directory.
        prefix: path that is put before each name.
    """
    todo = [(prefix, entries_of(fetch, tree))]
    while todo:
        base, entries = todo[-1]
        for entry in entries:
            path = join(base, entry.raw_name())
            yield path, entry
            if entry.kind == "directory":
                todo.append((path, entries_of(fetch, to_raw(entry.tree or ""))))
                break
        else:
            todo.pop()


def node_ids(fetch: Fetch, tree: RawId, seen: set[RawId]) -> Iterator[RawId]:
    """Yield the id of every tree record at and below ``tree`` that is not in ``seen``, and add it there."""
    todo = [tree]
    while todo:
        node_id = todo.pop()
        if node_id in seen:
            continue
        seen.add(node_id)
        yield node_id
        node, _ = check_node(fetch(node_id), node_id)
        if isinstance(node, TreeLeaf):
            todo.extend(bytes.fromhex(e.tree) for e in node.entries if e.tree is not None)
        else:
            todo.extend(bytes.fromhex(child.tree) for child in node.children)


def find(fetch: Fetch, tree: RawId, path: bytes) -> tuple[TreeEntry | None, list[bytes]]:
    """Look one path up.

    Returns:
        The entry, or None, and the bytes of the records from ``tree`` down to the leaf that holds it (or
        would hold it), which prove the answer.
    """
    trail: list[bytes] = []
    node_id = tree
    names = path.split(b"/")
    for depth, name in enumerate(names, 1):
        entry = None
        level = -1
        while entry is None:
            data = fetch(node_id)
            trail.append(data)
            node, found = check_node(data, node_id, level)
            if isinstance(node, TreeLeaf):
                at = bisect_left(found, name)
                entry = node.entries[at] if at < len(found) and found[at] == name else None
                break
            at = bisect_left(found, name)
            if at == len(found):
                break
            node_id, level = to_raw(node.children[at].tree), node.level - 1
        if entry is None or depth == len(names):
            return entry, trail
        if entry.kind != "directory":
            return None, trail
        node_id = to_raw(entry.tree or "")
    return None, trail


def build_tree(members: Iterable[tuple[bytes, TreeEntry]]) -> list[Node]:
    """Return the records of a whole tree, root last, from ``(path, entry)`` pairs of its leaves.

    Args:
        members: files, symlinks, and directories with no members of their own, in any order. The name of
            an entry is set from its path; parent directories are made as needed.

    Raises:
        CanonError: one path lies below another that is no directory, or is there twice.
    """
    root: dict[bytes, object] = {}
    for path, entry in members:
        *parents, name = path.split(b"/")
        here = root
        for parent in parents:
            below = here.setdefault(parent, {})
            if not isinstance(below, dict):
                raise CanonError("tree", f"{show(path)} lies below something that is no directory")
            here = below
        if name in here:
            if not (entry.kind == "directory" and isinstance(here[name], dict)):
                raise CanonError("tree", f"{show(path)} is there twice")
            continue
        here[name] = {} if entry.kind == "directory" else entry
    return _assemble(root)


def _assemble(root: dict[bytes, object]) -> list[Node]:
    """Build nested dictionaries into nodes, deepest first, without recursion."""
    nodes: list[Node] = []
    built: dict[int, str] = {}
    todo: list[tuple[dict[bytes, object], bool]] = [(root, False)]
    while todo:
        here, children_done = todo.pop()
        if not children_done:
            todo.append((here, True))
            todo.extend((value, False) for value in here.values() if isinstance(value, dict))
            continue
        entries = [_named(name, here[name], built) for name in sorted(here)]
        made = build(entries)
        nodes.extend(made)
        built[id(here)] = made[-1][0].hex()
    return nodes


def _named(name: bytes, value: object, built: dict[int, str]) -> TreeEntry:
    text, text_hex = name_fields(name)
    if isinstance(value, TreeEntry):
        if value.name == text and value.name_hex == text_hex:
            return value
        return msgspec.structs.replace(value, name=text, name_hex=text_hex)
    return TreeEntry(kind="directory", name=text, name_hex=text_hex, tree=built[id(value)])
