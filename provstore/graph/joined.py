"""Conventions that documents of a whole store tell of each other's numbers."""

from collections.abc import Iterator
from typing import Final

from provstore.graph.documents.joining import Conventions, Joined
from provstore.graph.index import Index
from provstore.graph.nodes import Node, parse_node
from provstore.graph.relations import RelationKind
from provstore.graph.statements import Statements

_OBSERVED: Final[frozenset[RelationKind]] = frozenset({"observed-at"})
_STATES: Final[frozenset[RelationKind]] = frozenset({"states"})


def joined_conventions(index: Index) -> Iterator[Joined]:
    """Yield every number of an index whose convention another document tells.

    See :mod:`provstore.graph.documents.joining` for when two numbers are one.
    """
    conventions = Conventions()
    for object_hex, statements in index.stated():
        runs = {item.key: found for item in statements.measurements if (found := _runs(index, item.key))}
        conventions.take(statements.measurements, runs, _place(index, statements, object_hex))
    yield from conventions.joined()


def _runs(index: Index, key: str) -> frozenset[str]:
    """Return the leaderboard runs at which a measurement was observed."""
    number = index.number(Node("measurement", key))
    if number is None:
        return frozenset()
    nodes = (index.node(edge.node) for edge in index.out(number, _OBSERVED))
    return frozenset(node.key for node in nodes if node.kind == "leaderboard-run")


def _place(index: Index, statements: Statements, object_hex: str) -> str:
    """Return the path of the document itself, by which others cite it."""
    number = index.number(parse_node(f"{statements.subject_kind}:{statements.subject}"))
    for edge in index.into(number, _STATES) if number is not None else ():
        if index.statement(edge.statement).stated_by == object_hex:
            return index.node(edge.node).key
    return statements.subject
