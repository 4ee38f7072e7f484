"""Cells of coverage views and of coverage contracts in one form, so that both are held to the same rules."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

from provstore.evidence.jsonreader import Absent, Value
from provstore.graph.rules.family import Cell, Family
from provstore.graph.rules.places import Place, is_scalar, key_of, same, shown

MAX_CELLS: Final = 50_000
"""Cells that one contract may have."""

MAX_MATCHES: Final = 5_000_000
"""Most cells times rules that contracts of one family are expanded to."""

OUTPUTS: Final = frozenset(
    (
        "state",
        "label",
        "reason",
        "evidence_id",
        "evidence",
        "packet_id",
        "estimate_id",
        "point_x",
        "parent",
        "retry",
    )
)
"""Members of a contract's rule that become members of its cells."""


class Axes(NamedTuple):
    """Names and values of the two axes of a view.

    Attributes:
        row: selector of the rows.
        column: selector of the columns.
        rows: values.
        columns: values.
    """

    row: str
    column: str
    rows: Sequence[Value]
    columns: Sequence[Value]


def axes_of(view: Place) -> Axes:
    """Return the axes of a coverage view; the selectors are ``mtp`` and ``tp`` where it names none."""
    names = [
        view.at(f"{side}_axis", "key").text or other for side, other in (("row", "mtp"), ("column", "tp"))
    ]
    values = [
        [item.value for item in view.at(side).elements() if is_scalar(item.value)]
        for side in ("rows", "columns")
    ]
    return Axes(names[0], names[1], values[0], values[1])


def coordinates(view: Place) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return the values of rows and of columns by how they are written in the key of a cell."""
    axes = axes_of(view)
    return {key_of(value): value for value in axes.rows}, {key_of(value): value for value in axes.columns}


def view_cells(view: Place) -> Iterator[Cell]:
    """Yield the cells of a coverage view that its axes name."""
    axes, (rows, columns) = axes_of(view), coordinates(view)
    fixed = {name: item.value for name, item in view.at("fixed_selectors").members() if is_scalar(item.value)}
    named = any(view.at(f"{side}_axis").given for side in ("row", "column"))
    for key, place in view.at("cells").members():
        row, _, column = key.partition(":")
        if row not in rows or column not in columns or not isinstance(place.value, dict):
            continue
        own = {name: item.value for name, item in place.at("selectors").members() if is_scalar(item.value)}
        selectors = {**fixed, axes.row: rows[row], axes.column: columns[column], **own}
        yield Cell(place, selectors, view, bool(named or fixed or own))


def contract_size(contract: Place) -> int:
    """Return how many cells a contract has."""
    return prod(len(axis.at("values").elements()) for axis in contract.at("axes").objects())


def expandable(family: Family) -> list[Place]:
    """Return the contracts of a family that are expanded: each alone and all together within bounds."""
    found, left = [], MAX_MATCHES
    for contract in family.contracts:
        size = contract_size(contract)
        left -= size * (1 + len(contract.at("rules").objects())) if size <= MAX_CELLS else 0
        if size <= MAX_CELLS and left >= 0:
            found.append(contract)
    return found


def matching(contract: Place) -> Iterator[tuple[dict[str, Value], list[Place]]]:
    """Yield the selectors of each cell of a contract with the rules that apply, in their order."""
    axes = contract.at("axes").objects()
    if not axes or contract_size(contract) > MAX_CELLS:
        return
    names = [axis.at("key").text for axis in axes]
    values = [axis_values(axis) for axis in axes]
    rules = contract.at("rules").objects()
    wanted: list[tuple[Place, tuple[tuple[int, int], ...]]] = []
    for rule in rules:
        exact = [(at, rule.at("match", name).value) for at, name in enumerate(names)]
        if all(value == "*" or _number(values[at], value) >= 0 for at, value in exact):
            pairs = tuple((at, _number(values[at], value)) for at, value in exact if value != "*")
            wanted.append((rule, pairs))
    for places in product(*(range(len(axis)) for axis in values)):
        found = [rule for rule, pairs in wanted if all(places[at] == number for at, number in pairs)]
        cell = {name: values[at][places[at]] for at, name in enumerate(names)}
        yield cell, found


def axis_values(axis: Place) -> list[Value]:
    """Return the values that an axis of a contract lists."""
    listed = axis.at("values").value
    return listed if isinstance(listed, list) else []


def _number(values: Sequence[Value], value: Value | Absent) -> int:
    """Return the place of a value among the values of an axis, or -1."""
    return next((at for at, item in enumerate(values) if same(item, value)), -1)


def exact_keys(rule: Place) -> frozenset[str]:
    """Return the axes for which a contract's rule names a value."""
    return frozenset(name for name, item in rule.at("match").members() if item.value != "*")


def contract_cells(contract: Place) -> Iterator[Cell]:
    """Yield the cells of a contract, each merged from the rules that apply to it; equal cells once.

    Cells that the same rules make differ in their selectors only; those are all yielded, since rules look at
    selectors.
    """
    fixed = {n: item.value for n, item in contract.at("fixed_selectors").members() if is_scalar(item.value)}
    for selectors, rules in matching(contract):
        if not rules:
            continue
        merged: dict[str, Value] = {}
        for rule in rules:
            own = rule.value if isinstance(rule.value, dict) else {}
            merged |= {name: value for name, value in own.items() if name in OUTPUTS}
        place = Place(rules[-1].pointer, merged)
        yield Cell(place, {**fixed, **selectors}, contract, True)


def all_cells(family: Family) -> list[Cell]:
    """Return every cell of every view and contract of a family; they are worked out once."""
    if family.cells is None:
        found = [cell for view in family.coverage for cell in view_cells(view)]
        family.cells = found + [cell for contract in expandable(family) for cell in contract_cells(contract)]
    return family.cells


def named_cell(cell: Cell) -> str:
    """Return the words for a cell in a message: nothing for a view's, its selectors for a contract's."""
    if cell.view.at("cells").given:
        return ""
    inside = ", ".join(f"{name}={shown(value)}" for name, value in cell.selectors.items())
    return f" (cell {inside})"[:200]
