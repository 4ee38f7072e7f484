"""The graph index of a store directory: an LMDB environment of its own in ``graph/``.

Everything in it can be derived again, so whatever is wrong with it has one cure: it is made anew.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final
from zlib import crc32

from provstore.errors import (
    NewerFormatError,
    NotAStoreError,
    NotFoundError,
    StoreDamagedError,
)
from provstore.graph.index import OWN, Edge, Statement, Unit
from provstore.graph.memory import is_own, statement_of
from provstore.graph.nodes import Node, NodeKind
from provstore.graph.relations import Relation, RelationKind
from provstore.graph.statements import Statements
from provstore.paths import show
from provstore.store import graph_rows as rows
from provstore.store import writer_lock
from provstore.store.blobs import remove_quietly
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_reader import GRAPH_DIRECTORY as DIRECTORY
from provstore.store.lmdb_registry import acquire, release
from provstore.store.lmdb_txn import Txn
from provstore.store.profile import DEFAULT, StoreProfile
from provstore.store.system import refused

FILES: Final = ("data.mdb", "lock.mdb")
BATCH: Final = 4096
"""Rows that are read in one transaction."""

_ASKED: Final = 512
"""Nodes whose edges are read in one transaction."""

_COUNTED: Final = ("nodes", "out", "into", "statements", "documents", "units")
_SUM_BYTES: Final = 8


class GraphIndex:
    """A graph index on disk. Made by :func:`open_graph` and :func:`make_graph`."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._closed = False

    def number(self, node: Node) -> int | None:
        """Return the number of a node, or None when nothing speaks of it."""
        found = self._env.get("numbers", rows.node_key(node))
        return None if found is None else int.from_bytes(found, "big")

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
        table = "into" if back else "out"
        ranks = None if kinds is None else frozenset(map(rows.rank_of, kinds))
        ordered = sorted(numbers)
        for at in range(0, len(ordered), _ASKED):
            keys = [rows.number_key(number) for number in ordered[at : at + _ASKED]]
            pairs = self._env.read(lambda txn: txn.get_pairs(table, keys, rows.EDGE_BYTES))  # noqa: B023
            for number, rank, node, statement in rows.edges_of(pairs):
                if ranks is None or rank in ranks:
                    yield number, Edge(rows.kind_of(rank), node, statement)

    def statement(self, number: int) -> Statement:
        """Return where a relation is stated."""
        if number == OWN:
            return Statement("", "", "")
        return rows.statement(self._env.get("statements", rows.number_key(number)))

    def nodes(self, kind: NodeKind, prefix: str = "") -> Iterator[tuple[int, Node]]:
        """Yield the nodes of a kind whose keys begin with a prefix, sorted by key."""
        start = end = rows.prefix_key(kind, prefix)
        for key, value in self._iterate("numbers", start):
            if not key.startswith(end):
                return
            number = int.from_bytes(value, "big")
            found = self.node(number) if rows.is_cut(key) else rows.node(key)
            if found.key.startswith(prefix):
                yield number, found

    def stated(self) -> Iterator[tuple[str, Statements]]:
        """Yield what every document states, with the hex id of its object, sorted by that id."""
        for key, value in self._iterate("documents", count=64):
            yield key.hex(), rows.document(value)

    def stated_by(self, object_hex: str) -> Statements | None:
        """Return what one document states."""
        found = self._env.get("documents", bytes.fromhex(object_hex))
        return None if found is None else rows.document(found)

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
        self._env.write(lambda txn: _Adding(txn).run(given, note))

    def check(self) -> None:
        """Read every row and compare with what was counted when it was written.

        Raises:
            StoreDamagedError: a row is lost, altered, or was never written.
        """

        def work(txn: Txn) -> None:
            for name in _COUNTED:
                found = [0, 0]
                for key, value in txn.scan(name):
                    found[0] += 1
                    found[1] += crc32(value, crc32(key))
                if txn.get("settings", _sum_key(name)) != _sum(*found):
                    raise StoreDamagedError("graph", f"the rows of {name!r} are not those that were written")
            numbers = sum(1 for _ in txn.scan("numbers"))
            for key, value in txn.scan("nodes"):
                if txn.get("numbers", rows.node_key(rows.node(value))) != key:
                    raise StoreDamagedError("graph", f"node {key.hex()} is not found by its key")
                numbers -= 1
            if numbers:
                raise StoreDamagedError("graph", "keys are not those of the nodes")

        self._env.read(work)

    def close(self) -> None:
        """Release everything; closing twice is fine."""
        if not self._closed:
            self._closed = True
            release(self._env)


def _node(key: bytes, value: bytes | None) -> Node:
    if value is None:
        raise NotFoundError(str(int.from_bytes(key, "big")), "no node of the graph has this number")
    return rows.node(value)


def _sum_key(database: str) -> bytes:
    return b"sum:" + database.encode()


def _sum(count: int, checks: int) -> bytes:
    return b"".join((number % (1 << 64)).to_bytes(_SUM_BYTES, "big") for number in (count, checks))


class _Adding:
    """One transaction that takes units in; made anew when it runs again."""

    def __init__(self, txn: Txn) -> None:
        self._txn = txn
        self._new: dict[str, list[tuple[bytes, bytes]]] = {name: [] for name in (*_COUNTED, "numbers")}
        self._numbers: dict[Node, int] = {}
        self._next_node = self._last("nodes")
        self._next_statement = self._last("statements")

    def _last(self, database: str) -> int:
        return int.from_bytes(self._txn.last_key(database) or b"", "big")

    def run(self, units: list[Unit], note: bytes | None) -> None:
        """Take units in."""
        seen: set[str] = set()
        new: list[Unit] = []
        for unit in units:
            if unit.id not in seen and self._txn.get("units", bytes.fromhex(unit.id)) is None:
                new.append(unit)
            seen.add(unit.id)
        self._number_nodes(new)
        for unit in new:
            self._new["units"].append((bytes.fromhex(unit.id), b""))
            self._relations(unit)
            for id, statements in unit.statements.items():
                self._new["documents"].append((bytes.fromhex(id), rows.document_value(statements)))
        self._documents()
        for name, pairs in self._new.items():
            pairs.sort()
            if rows.FORM.databases[name]:
                self._txn.put_pairs(name, pairs)
            else:
                self._txn.put_sorted(name, pairs)
        for name in _COUNTED:
            self._count(name, self._new[name], 1)
        if note is not None:
            self._txn.put("settings", b"note", note)

    def _number_nodes(self, units: list[Unit]) -> None:
        wanted: dict[Node, bytes] = {}
        for unit in units:
            for relation in unit.relations:
                for node in (relation.source, relation.target):
                    if node not in wanted:
                        wanted[node] = rows.node_key(node)
        known = self._txn.get_many("numbers", sorted(wanted.values()))
        for node, key in wanted.items():
            found = known.get(key)
            if found is not None:
                self._numbers[node] = int.from_bytes(found, "big")
                continue
            self._next_node += 1
            self._numbers[node] = self._next_node
            number = rows.number_key(self._next_node)
            self._new["nodes"].append((number, rows.node_value(node)))
            self._new["numbers"].append((key, number))

    def _relations(self, unit: Unit) -> None:
        made: dict[Statement, int] = {}
        out, into, numbers = self._new["out"], self._new["into"], self._numbers
        for relation in dict.fromkeys(unit.relations):
            source, target = numbers[relation.source], numbers[relation.target]
            number = OWN if is_own(relation) else self._statement(relation, made)
            rank = rows.rank_of(relation.kind)
            out.append((rows.number_key(source), rows.edge_value(rank, target, number)))
            into.append((rows.number_key(target), rows.edge_value(rank, source, number)))

    def _statement(self, relation: Relation, made: dict[Statement, int]) -> int:
        statement = statement_of(relation)
        number = made.get(statement)
        if number is None:
            self._next_statement += 1
            number = made[statement] = self._next_statement
            self._new["statements"].append((rows.number_key(number), rows.statement_value(statement)))
        return number

    def _documents(self) -> None:
        """Keep one row for a document that several units bring; take what it replaces out of the count."""
        newest = dict(self._new["documents"])
        self._new["documents"] = list(newest.items())
        old = self._txn.get_many("documents", sorted(newest))
        self._count("documents", list(old.items()), -1)

    def _count(self, name: str, pairs: Iterable[tuple[bytes, bytes]], sign: int) -> None:
        stored = self._txn.get("settings", _sum_key(name)) or _sum(0, 0)
        count = int.from_bytes(stored[:_SUM_BYTES], "big")
        checks = int.from_bytes(stored[_SUM_BYTES:], "big")
        for key, value in pairs:
            count += sign
            checks += sign * crc32(value, crc32(key))
        self._txn.put("settings", _sum_key(name), _sum(count, checks))


def open_graph(
    store: str,
    stamp: bytes,
    *,
    writable: bool,
    profile: StoreProfile = DEFAULT,
    thorough: bool = False,
) -> GraphIndex | None:
    """Open the graph index of a store directory, or return None if it is absent, old or damaged.

    Args:
        store: the store's directory.
        stamp: what it must say of itself; see :func:`provstore.store.graph_rows.stamp`.
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
        if index.stamp() == stamp:
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
        env.write(lambda txn: _begin(txn, stamp))
    except BaseException:
        index.close()
        raise
    return index


def _begin(txn: Txn, stamp: bytes) -> None:
    for name in _COUNTED:
        txn.put("settings", _sum_key(name), _sum(0, 0))
    txn.put("settings", b"stamp", stamp)


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
