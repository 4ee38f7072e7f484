"""What differs between two trees, in path order; every equal part is skipped unopened.

Trees are those of :mod:`provstore.merkle`. Nothing here does I/O: records come from ``fetch`` functions that
have already checked their ids.

Of two nodes that stand in the same place most entries are the same bytes. Where a store vouches for its
records (it opened each of them whole when it took it in), only the entries that differ are decoded; the
bytes of the others are the same on both sides, so whatever they say, they say it twice.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from provstore import canon
from provstore.errors import CanonError, MalformedError
from provstore.ids import RawId, to_raw
from provstore.merkle import Fetch, check_node
from provstore.paths import join, name_bytes
from provstore.records.tree import TreeChild, TreeEntry, TreeLeaf, check_entry

Change = tuple[bytes, TreeEntry | None, TreeEntry | None]
"""Path, entry before, entry after; one of the two is None for an addition or a removal."""

_LEAF: Final = (b'{"entries":[{', b'}],"format":"provstore/tree/v1"}')
_INDEX: Final = (b'{"children":[{', b'}],"format":"provstore/tree-index/v1","level":%d}')
_LEVEL: Final = re.compile(rb',"level":([1-9][0-9]?)}\Z')
_BETWEEN: Final = b'},{"'


class _Part(NamedTuple):
    """A node below an index: everything in it lies after ``before``, up to the name it is listed with."""

    level: int
    id: RawId
    before: bytes


_Head = tuple[bytes, _Part | TreeEntry]
"""A name, and the entry of that name or the part that ends with it."""


class _Names(msgspec.Struct):
    """The name of an entry or child; the rest of it is left alone."""

    name: str | None = None
    name_hex: str | None = None
    last: str | None = None
    last_hex: str | None = None


_names: Final = msgspec.json.Decoder(_Names)


class _Place(NamedTuple):
    """Where a node stands: the level it must have (-1 for a root), and the names it must lie between."""

    id: RawId
    level: int
    before: bytes
    last: bytes


class _Stream:
    """One side of a comparison: parts and entries of a directory, opened only where needed.

    Attributes:
        stack: what is left of the directory, the next on top.
    """

    def __init__(self, fetch: Fetch) -> None:
        self.fetch = fetch
        self.stack: list[_Head] = []

    def pop(self) -> _Place:
        """Take the top off; if it is a part, the place of its node is of use."""
        last, top = self.stack.pop()
        return _Place(top.id, top.level, top.before, last) if isinstance(top, _Part) else _NOWHERE

    def open(self, place: _Place, data: bytes | None = None) -> None:
        """Put the whole of a node on top."""
        data = self.fetch(place.id) if data is None else data
        node, names = check_node(data, *place)
        if isinstance(node, TreeLeaf):
            self.stack += zip(reversed(names), reversed(node.entries), strict=True)
            return
        before = [place.before, *names[:-1]]
        parts = [
            (name, _Part(node.level - 1, bytes.fromhex(child.tree), after))
            for child, name, after in zip(node.children, names, before, strict=True)
        ]
        self.stack += reversed(parts)


_NOWHERE: Final = _Place(b"", -1, b"", b"")


def _open_both(a: _Stream, at_a: _Place, b: _Stream, at_b: _Place, *, vouched: bool) -> None:
    """Open two nodes that stand in the same place of two directories."""
    data_a, data_b = a.fetch(at_a.id), b.fetch(at_b.id)
    if vouched:
        heads = _differing(data_a, at_a, data_b, at_b)
        if heads is not None:
            a.stack += reversed(heads[0])
            b.stack += reversed(heads[1])
            return
    a.open(at_a, data_a)
    b.open(at_b, data_b)


def _differing(
    data_a: bytes, at_a: _Place, data_b: bytes, at_b: _Place
) -> tuple[list[_Head], list[_Head]] | None:
    """Return what two nodes do not share, or None if they are not of one shape or want a look as a whole."""
    found = _LEVEL.search(data_a)
    level = int(found[1]) if found else 0
    if {at_a.level, at_b.level} - {-1, level}:
        return None
    shape = _LEAF if level == 0 else (_INDEX[0], _INDEX[1] % level)
    pieces_a, pieces_b = _pieces(data_a, shape), _pieces(data_b, shape)
    if pieces_a is None or pieces_b is None:
        return None
    shared = set(pieces_a).intersection(pieces_b)
    try:
        return (
            _heads(pieces_a, shared, at_a._replace(level=level)),
            _heads(pieces_b, shared, at_b._replace(level=level)),
        )
    except (MalformedError, msgspec.MsgspecError):
        return None


def _pieces(data: bytes, shape: tuple[bytes, bytes]) -> list[bytes] | None:
    """Cut a node's bytes into its entries or children, each without braces and first quotation mark.

    A name can look like the border between two; then one of the pieces is no JSON and its node is opened
    as a whole.
    """
    begin, end = shape
    if not (data.startswith(begin) and data.endswith(end)):
        return None
    return data[len(begin) + 1 : -len(end)].split(_BETWEEN)


def _heads(pieces: Sequence[bytes], shared: set[bytes], place: _Place) -> list[_Head]:
    """Decode the pieces of one node that the other does not share, each as strictly as a whole node.

    Raises:
        MalformedError, msgspec.MsgspecError: something needs a look as a whole.
    """
    wanted = [at for at, piece in enumerate(pieces) if piece not in shared]
    if place.last and not (place.before < _name(pieces[0]) and _name(pieces[-1]) == place.last):
        raise CanonError("tree", "does not hold the names that its index states")
    heads: list[_Head] = []
    for at in wanted:
        data = b'{"%s}' % pieces[at]
        if place.level == 0:
            entry = canon.decode(data, TreeEntry, bounded=True)
            heads.append((check_entry(entry), entry))
        else:
            child = canon.decode(data, TreeChild, bounded=True)
            before = _name(pieces[at - 1]) if at else place.before
            heads.append((child.raw_last(), _Part(place.level - 1, to_raw(child.tree), before)))
    if any(x[0] >= y[0] for x, y in itertools.pairwise(heads)):
        raise CanonError("tree", "names are not in order")
    return heads


def _name(piece: bytes) -> bytes:
    found = _names.decode(b'{"%s}' % piece)
    if found.last is not None or found.last_hex is not None:
        return name_bytes(found.last, found.last_hex)
    return name_bytes(found.name, found.name_hex)


def _compare(a: _Stream, b: _Stream, *, vouched: bool) -> Iterator[tuple[TreeEntry | None, TreeEntry | None]]:
    """Yield the pairs of entries of one directory that differ, in the order of names."""
    while a.stack or b.stack:
        name_a, x = a.stack[-1] if a.stack else (b"", None)
        name_b, y = b.stack[-1] if b.stack else (b"", None)
        if isinstance(x, _Part) and isinstance(y, _Part):
            if x.id == y.id:
                a.pop()
                b.pop()
            elif x.level == y.level:
                _open_both(a, a.pop(), b, b.pop(), vouched=vouched)
            else:
                higher = a if x.level > y.level else b
                higher.open(higher.pop())
        elif isinstance(x, _Part):
            a.open(a.pop())
        elif isinstance(y, _Part):
            b.open(b.pop())
        elif y is None or (x is not None and name_a < name_b):
            a.pop()
            yield x, None
        elif x is None or name_b < name_a:
            b.pop()
            yield None, y
        else:
            a.pop()
            b.pop()
            if x != y:
                yield x, y


def diff(
    fetch_a: Fetch, a: RawId, fetch_b: Fetch, b: RawId, prefix: bytes = b"", *, vouched: bool = False
) -> Iterator[Change]:
    """Yield what differs between two directories, in path order, skipping every equal part.

    A directory that only one side has is one change; a directory that both have is entered.

    Args:
        fetch_a: gives checked records of the first side.
        a: id of its directory.
        fetch_b: gives checked records of the second side.
        b: id of its directory.
        prefix: path that is put before each name.
        vouched: each record of both sides was opened whole when it came to where it is, so entries that
            are the same bytes on both sides need no look.
    """
    if a == b:
        return

    def below(x: RawId, y: RawId) -> Iterator[tuple[TreeEntry | None, TreeEntry | None]]:
        sides = _Stream(fetch_a), _Stream(fetch_b)
        places = _NOWHERE._replace(id=x), _NOWHERE._replace(id=y)
        _open_both(sides[0], places[0], sides[1], places[1], vouched=vouched)
        yield from _compare(*sides, vouched=vouched)

    todo = [(prefix, below(a, b))]
    while todo:
        base, pairs = todo[-1]
        for x, y in pairs:
            entry = x or y
            if entry is None:
                continue
            path = join(base, entry.raw_name())
            if x is not None and y is not None and x.kind == y.kind == "directory":
                todo.append((path, below(to_raw(x.tree or ""), to_raw(y.tree or ""))))
                break
            yield path, x, y
        else:
            todo.pop()
