"""The graph index of a store directory: an LMDB environment of its own in ``graph/``.

Everything in it can be derived again, so whatever is wrong with it has one cure: it is made anew.
"""

import contextlib
import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from provstore.errors import (
    NewerFormatError,
    NotAStoreError,
    NotFoundError,
    StoreDamagedError,
)
from provstore.graph.index import OWN, Edge, Statement, Unit
from provstore.graph.nodes import Node, NodeKind
from provstore.graph.relations import RelationKind
from provstore.graph.statements import Statements
from provstore.paths import show
from provstore.store import graph_rows as rows
from provstore.store import writer_lock
from provstore.store.blobs import remove_quietly
from provstore.store.graph_adding import Adding, begin, check_sums
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_reader import GRAPH_DIRECTORY as DIRECTORY
from provstore.store.lmdb_registry import acquire, release
from provstore.store.profile import DEFAULT, StoreProfile
from provstore.store.system import refused

FILES: Final = ("data.mdb", "lock.mdb")
BATCH: Final = 4096
"""Rows that are read in one transaction."""

_ASKED: Final = 512
"""Nodes whose edges are read in one transaction."""

_SMALL_ROWS: Final = 8192
"""Nodes and relations up to which every row is held against the sums at each opening: 10 ms at most."""


class GraphIndex:
    """A graph index on disk. Made by :func:`open_graph` and :func:`make_graph`."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._closed = False

    def number(self, node: Node) -> int | None:
        """Return the number of a node, or None when nothing speaks of it."""
        found = self._env.get("numbers", rows.node_key(node))
        if found is None:
            return None
        number = int.from_bytes(found, "big")
        if self.node(number) != node:
            raise StoreDamagedError("graph", f"{node} is not found by its number")
        return number

    def node(self, number: int) -> Node:
        """Return the node with a number."""
        return self.nodes_at((number,))[0]

    def nodes_at(self, numbers: Iterable[int]) -> list[Node]:
        """Return the nodes with these numbers, in their order."""
        keys = [rows.number_key(number) for number in numbers]
        values = self._env.read(lambda txn: [txn.get("nodes", key) for key in keys])
        return [_node(key, value) for key, value in zip(keys, values, strict=True)]

    def out(self, number: int, kinds: frozenset[RelationKind] | None = None) -> Iterator[Edge]:
        """Yield the edges that start from a node, sorted by kind and target."""
        return self._stream("out", number, kinds)

    def into(self, number: int, kinds: frozenset[RelationKind] | None = None) -> Iterator[Edge]:
        """Yield the edges that lead to a node, sorted by kind and source."""
        return self._stream("into", number, kinds)

    def _stream(self, table: str, number: int, kinds: frozenset[RelationKind] | None) -> Iterator[Edge]:
        if kinds is None:
            yield from self._range(table, number, b"", 256)
            return
        for rank in sorted(map(rows.rank_of, kinds)):
            yield from self._range(table, number, bytes((rank,)), rank + 1)

    def _range(self, table: str, number: int, start: bytes, end: int) -> Iterator[Edge]:
        """Yield edges from a value on, as long as their kind's rank is below ``end``."""
        key = rows.number_key(number)
        while True:
            batch = self._env.read(
                lambda txn: list(islice(txn.scan_pairs(table, key, start), BATCH))  # noqa: B023
            )
            for value in batch:
                if value[0] >= end:
                    return
                yield rows.edge(value)
            if len(batch) < BATCH:
                return
            start = (int.from_bytes(batch[-1], "big") + 1).to_bytes(rows.EDGE_BYTES, "big")

    def edges(
        self, numbers: Sequence[int], *, back: bool = False, kinds: frozenset[RelationKind] | None = None
    ) -> Iterator[tuple[int, Edge]]:
        """Yield the edges of many nodes, with the node they were asked for."""
        ranks = None if kinds is None else frozenset(map(rows.rank_of, kinds))
        for pairs in self._pairs(numbers, back=back):
            yield from rows.numbered_edges(pairs, ranks)

    def neighbours(self, numbers: Sequence[int], *, back: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the nodes at the other ends of the edges of many nodes, with the node they were asked for."""
        for pairs in self._pairs(numbers, back=back):
            yield from rows.neighbours(pairs)

    def _pairs(self, numbers: Sequence[int], *, back: bool) -> Iterator[bytes]:
        table = "into" if back else "out"
        ordered = sorted(numbers)
        for at in range(0, len(ordered), _ASKED):
            keys = [rows.number_key(number) for number in ordered[at : at + _ASKED]]
            yield self._env.read(lambda txn: txn.get_pairs(table, keys, rows.EDGE_BYTES))  # noqa: B023

    def degrees(self, numbers: Iterable[int], *, back: bool = False) -> list[int]:
        """Return how many edges each of these nodes has."""
        keys = [rows.number_key(number) for number in numbers]
        return self._env.read(lambda txn: txn.count_pairs("into" if back else "out", keys))

    def statement(self, number: int) -> Statement:
        """Return where a relation is stated."""
        if number == OWN:
            return Statement("", "", "")
        key = rows.number_key(number)
        return rows.statement(rows.unchecked(key, self._env.get("statements", key)))

    def nodes(self, kind: NodeKind, prefix: str = "") -> Iterator[tuple[int, Node]]:
        """Yield the nodes of a kind whose keys begin with a prefix, sorted by key."""
        found = (self._texts(kind, prefix), self._digests(kind, prefix))
        yield from heapq.merge(*found, key=lambda pair: pair[1].key)

    def _texts(self, kind: NodeKind, prefix: str) -> Iterator[tuple[int, Node]]:
        start = rows.text_range(kind, prefix)
        for key, value in self._iterate("numbers", start):
            if not key.startswith(start):
                return
            number = int.from_bytes(value, "big")
            found = self.node(number) if rows.is_cut(key) else rows.node(key)
            if found.key.startswith(prefix):
                yield number, found

    def _digests(self, kind: NodeKind, prefix: str) -> Iterator[tuple[int, Node]]:
        limits = rows.digest_range(kind, prefix)
        if limits is None:
            return
        for key, value in self._iterate("numbers", limits[0]):
            if key > limits[1]:
                return
            yield int.from_bytes(value, "big"), rows.node(key)

    def stated(self) -> Iterator[tuple[str, Statements]]:
        """Yield what every document states, with the hex id of its object."""
        for key, value in self._iterate("documents", count=64):
            yield key[:32].hex(), rows.document(rows.unchecked(key, value))

    def stated_by(self, object_hex: str) -> Statements | None:
        """Return what one document states."""
        key = bytes.fromhex(object_hex)
        found = self._env.read(lambda txn: next(txn.scan("documents", key), None))
        return (
            rows.document(rows.unchecked(*found)) if found is not None and found[0].startswith(key) else None
        )

    def units(self) -> frozenset[str]:
        """Return the ids of everything that was taken in."""
        return frozenset(key.hex() for key, _ in self._iterate("units"))

    def knows(self, unit: str) -> bool:
        """Say whether a unit was taken in."""
        return self._env.get("units", bytes.fromhex(unit)) is not None

    def sizes(self) -> tuple[int, int]:
        """Return how many nodes and relations there are."""
        return self._env.read(lambda txn: (txn.entries("nodes"), txn.entries("out")))

    def noted(self) -> bytes:
        """Return the latest note, empty if there is none."""
        return self._env.get("settings", b"note") or b""

    def stamp(self) -> bytes:
        """Return what the index says of itself."""
        return self._env.get("settings", b"stamp") or b""

    def _iterate(
        self, database: str, start: bytes = b"", count: int = BATCH
    ) -> Iterator[tuple[bytes, bytes]]:
        while True:
            batch = self._env.read(lambda txn: list(islice(txn.scan(database, start), count)))  # noqa: B023
            yield from batch
            if len(batch) < count:
                return
            start = batch[-1][0] + b"\0"

    def add(self, units: Iterable[Unit], note: bytes | None = None) -> None:
        """Take in more, all or nothing; a unit that is there already is left alone."""
        given = [Unit(unit.id, list(unit.relations), unit.statements) for unit in units]
        self._env.write(lambda txn: Adding(txn).run(given, note))

    def check(self) -> None:
        """Read every row and compare with what was counted when it was written.

        Raises:
            StoreDamagedError: a row is lost, altered, or was never written.
        """
        self._env.read(check_sums)

    def close(self) -> None:
        """Release everything; closing twice is fine."""
        if not self._closed:
            self._closed = True
            release(self._env)


def _node(key: bytes, value: bytes | None) -> Node:
    if value is None:
        raise NotFoundError(str(int.from_bytes(key, "big")), "no node of the graph has this number")
    return rows.node(rows.unchecked(key, value))


def open_graph(
    store: str,
    stamp: bytes | None,
    *,
    writable: bool,
    profile: StoreProfile = DEFAULT,
    thorough: bool = False,
) -> GraphIndex | None:
    """Open the graph index of a store directory, or return None if it is absent, old or damaged.

    Args:
        store: the store's directory.
        stamp: what it must say of itself, see :func:`provstore.store.graph_rows.stamp`; None for anything.
        writable: whether anything will be added.
        profile: sizes and waiting.
        thorough: look at every page first, however large it is.

    Raises:
        ReadOnlyError: ``writable``, and it cannot be written.
        InputOutputError: the system refused.
    """
    place = os.path.join(store, DIRECTORY)
    try:
        env = acquire(place, profile, writable, thorough=thorough, form=rows.FORM)
    except (NotAStoreError, StoreDamagedError, NewerFormatError):
        return None
    index = GraphIndex(env)
    try:
        env.check_whole()
        if stamp is None:
            return index
        if index.stamp() == stamp:
            if sum(index.sizes()) <= _SMALL_ROWS:
                index.check()
            return index
    except StoreDamagedError:
        pass
    except BaseException:
        index.close()
        raise
    index.close()
    return None


def make_graph(store: str, stamp: bytes, *, profile: StoreProfile = DEFAULT) -> GraphIndex:
    """Make an empty graph index in a store directory, in the place of any that is there.

    Raises:
        ReadOnlyError, StoreFullError, InputOutputError: the system refused.
    """
    place = os.path.join(store, DIRECTORY)
    try:
        os.makedirs(place, exist_ok=True)
        for name in FILES:
            remove_quietly(os.path.join(place, name))
        env = acquire(place, profile, writable=True, create=True, form=rows.FORM)
    except OSError as error:
        raise refused(error, show(place)) from error
    index = GraphIndex(env)
    try:
        env.write(lambda txn: begin(txn, stamp))
    except BaseException:
        index.close()
        raise
    return index


def is_there(store: str) -> bool:
    """Say whether a store directory has a graph index, be it whole or not."""
    return os.path.lexists(os.path.join(store, DIRECTORY, FILES[0]))


def drop_graph(store: str) -> None:
    """Remove the graph index of a store directory; who reads it just now goes on reading what was there."""
    with alone(store):
        for name in FILES:
            remove_quietly(os.path.join(store, DIRECTORY, name))


def writable_place(store: str) -> str | None:
    """Return why no graph index can be kept in a store directory, or None if it can."""
    place = os.path.join(store, DIRECTORY)
    if not os.path.isdir(place):
        place = store
    return None if os.access(place, os.W_OK | os.X_OK) else f"{show(place)} cannot be written"


@contextlib.contextmanager
def alone(store: str, profile: StoreProfile = DEFAULT) -> Iterator[None]:
    """Be the only one who brings the graph index of a store up to date while the block runs."""
    place = os.path.join(store, DIRECTORY)
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        raise refused(error, show(place)) from error
    with writer_lock.held(place, show(place), profile.wait_s):
        yield
