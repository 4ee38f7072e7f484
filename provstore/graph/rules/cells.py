"""Cells of coverage views and of coverage contracts in one form, so that both are held to the same rules."""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import prod
from typing import Final, NamedTuple

from provstore.evidence.jsonreader import Absent, Value
from provstore.graph.rules.family import Cell, Family
from provstore.graph.rules.places import Place, is_scalar, key_of, same, shown

MAX_CELLS: Final = 50_000
"""Cells that one view or contract may have."""

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


def keys_of(view: Place) -> dict[str, tuple[Value, Value]]:
    """Return the key of every cell of the product of rows and columns, with the two values."""
    axes = axes_of(view)
    pairs = islice(product(axes.rows, axes.columns), MAX_CELLS)
    return {f"{key_of(row)}:{key_of(column)}": (row, column) for row, column in pairs}


def view_cells(view: Place) -> Iterator[Cell]:
    """Yield the cells of a coverage view that its axes name."""
    axes, keys = axes_of(view), keys_of(view)
    fixed = {name: item.value for name, item in view.at("fixed_selectors").members() if is_scalar(item.value)}
    named = any(view.at(f"{side}_axis").given for side in ("row", "column"))
    for key, place in view.at("cells").members():
        if key not in keys or not isinstance(place.value, dict):
            continue
        own = {name: item.value for name, item in place.at("selectors").members() if is_scalar(item.value)}
        row, column = keys[key]
        selectors = {**fixed, axes.row: row, axes.column: column, **own}
        yield Cell(place, selectors, view, bool(named or fixed or own))


def contract_size(contract: Place) -> int:
    """Return how many cells a contract has."""
    return prod(len(axis.at("values").elements()) for axis in contract.at("axes").objects())


def matching(contract: Place) -> Iterator[tuple[dict[str, Value], list[Place]]]:
    """Yield the selectors of each cell of a contract with the rules that apply, in their order; bounded."""
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
        family.cells = found + [cell for contract in family.contracts for cell in contract_cells(contract)]
    return family.cells


def named_cell(cell: Cell) -> str:
    """Return the words for a cell in a message: nothing for a view's, its selectors for a contract's."""
    if cell.view.at("cells").given:
        return ""
    inside = ", ".join(f"{name}={shown(value)}" for name, value in cell.selectors.items())
    return f" (cell {inside})"[:200]
