"""Writing into a graph index: numbers for new nodes, rows of edges in both directions, sums of all rows."""

from collections.abc import Iterable
from typing import Final
from zlib import crc32

from provstore.errors import StoreDamagedError
from provstore.graph.index import OWN, Statement, Unit
from provstore.graph.memory import is_own, statement_of
from provstore.graph.nodes import Node
from provstore.graph.relations import Relation
from provstore.store import graph_rows as rows
from provstore.store.lmdb_txn import Txn

COUNTED: Final = ("nodes", "out", "into", "statements", "documents", "units")
"""Databases whose rows are counted and summed, so that a changed row shows."""

_SUM_BYTES: Final = 8


def _sum_key(database: str) -> bytes:
    return b"sum:" + database.encode()


def _sum(count: int, checks: int) -> bytes:
    return b"".join((number % (1 << 64)).to_bytes(_SUM_BYTES, "big") for number in (count, checks))


class Adding:
    """One transaction that takes units in; made anew when it runs again."""

    def __init__(self, txn: Txn) -> None:
        self._txn = txn
        self._new: dict[str, list[tuple[bytes, bytes]]] = {name: [] for name in (*COUNTED, "numbers")}
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
            for id, said in unit.statements:
                key = rows.document_key(id, said)
                self._new["documents"].append((key, rows.checked(key, rows.document_value(said))))
        self._documents()
        for name, pairs in self._new.items():
            pairs.sort()
            if rows.FORM.databases[name]:
                self._txn.put_pairs(name, pairs)
            else:
                self._txn.put_sorted(name, pairs)
        for name in COUNTED:
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
            self._new["nodes"].append((number, rows.checked(number, rows.node_value(node))))
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
            key = rows.number_key(number)
            self._new["statements"].append((key, rows.checked(key, rows.statement_value(statement))))
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


def begin(txn: Txn, stamp: bytes) -> None:
    """Write the settings of a new index."""
    for name in COUNTED:
        txn.put("settings", _sum_key(name), _sum(0, 0))
    txn.put("settings", b"stamp", stamp)


def check_sums(txn: Txn) -> None:
    """Read every row and compare with what was counted when it was written.

    Raises:
        StoreDamagedError: a row is lost, altered, or was never written.
    """
    for name in COUNTED:
        found = [0, 0]
        for key, value in txn.scan(name):
            found[0] += 1
            found[1] += crc32(value, crc32(key))
        if txn.get("settings", _sum_key(name)) != _sum(*found):
            raise StoreDamagedError("graph", f"the rows of {name!r} are not those that were written")
    numbers = txn.entries("numbers")
    for key, value in txn.scan("nodes"):
        if txn.get("numbers", rows.node_key(rows.node(rows.unchecked(key, value)))) != key:
            raise StoreDamagedError("graph", f"node {key.hex()} is not found by its key")
        numbers -= 1
    if numbers:
        raise StoreDamagedError("graph", "keys are not those of the nodes")
