"""Rules for coverage views and contracts of a family, and for its closures."""

from collections.abc import Container, Iterator
from itertools import islice, pairwise, product
from typing import Final

from provstore.evidence.jsonreader import ABSENT
from provstore.graph.rules.cells import (
    MAX_CELLS,
    OUTPUTS,
    all_cells,
    axes_of,
    contract_size,
    coordinates,
    exact_keys,
    expandable,
    matching,
)
from provstore.graph.rules.family import STATES, family_of
from provstore.graph.rules.formats import FAMILY
from provstore.graph.rules.places import SELECTOR, Place, is_number, is_scalar, key_of, shown
from provstore.graph.rules.rule import Context, Document, Violation, bad, rule, wrong_kind
from provstore.reports.base import count

_SHOWN: Final = 8
"""Cells that one finding names."""


@rule("coverage-axes", 23, on=FAMILY)
def coverage_axes(document: Document, context: Context) -> Iterator[Violation]:
    """A coverage view has two different axes with unique values; named axes come with fixed selectors."""
    for view in family_of(document, context).coverage:
        axes = axes_of(view)
        if axes.row == axes.column:
            yield bad(
                view.at("column_axis", "key"), "both axes have one selector", f"another than {axes.row}"
            )
        for side, values in (("row", "rows"), ("column", "columns")):
            axis, listed = view.at(f"{side}_axis"), view.at(values)
            yield from _axis(axis)
            yield from _values(axis, listed)
        named = view.at("row_axis").given or view.at("column_axis").given
        if named and not view.at("fixed_selectors").members():
            yield bad(
                view.at("fixed_selectors"), "a view with named axes fixes every other selector", "selectors"
            )
        for name, item in view.at("fixed_selectors").members():
            if name in (axes.row, axes.column):
                yield bad(item, f"{name} is an axis already", "no axis among the fixed selectors")
            if not SELECTOR.fullmatch(name) or not is_scalar(item.value):
                yield bad(item, "a selector is a lowercase name with one plain value", "name and scalar")


def _axis(axis: Place) -> Iterator[Violation]:
    if not axis.given:
        return
    if not SELECTOR.fullmatch(axis.at("key").text):
        yield bad(axis.at("key"), "an axis has a selector", "a lowercase name")
    if not axis.at("label").said:
        yield bad(axis.at("label"), "an axis has a label", "text")
    if axis.at("prefix").value is not ABSENT and not isinstance(axis.at("prefix").value, str):
        yield wrong_kind(axis.at("prefix"), "string")


def _values(axis: Place, listed: Place) -> Iterator[Violation]:
    if not listed.elements():
        yield bad(listed, "an axis lists its values", "values")
    seen: set[str] = set()
    for item in listed.elements():
        if isinstance(item.value, bool) or not is_scalar(item.value) or ":" in key_of(item.value):
            yield bad(item, "no value of an axis", "a number or a text without ':'")
            continue
        if key_of(item.value) in seen:
            yield bad(item, "the value is listed twice", "each value once")
        seen.add(key_of(item.value))
    for name, label in axis.at("value_labels").members():
        if name not in seen or not isinstance(label.value, str):
            yield bad(label, "it labels no value of the axis", "a label for a listed value")


@rule("not-cartesian", 24, on=FAMILY)
def not_cartesian(document: Document, context: Context) -> Iterator[Violation]:
    """The cells of a view are the full product of its rows and columns, with keys ``row:column``."""
    for view in family_of(document, context).coverage:
        place = view.at("cells")
        if not isinstance(place.value, dict):
            yield wrong_kind(place, "object")
            continue
        rows, columns = coordinates(view)
        there = {name for name, _ in place.members()}
        extra = sorted(key for key in there if not _named(key, rows, columns))
        many = len(rows) * len(columns) - (len(there) - len(extra))
        pairs = (f"{row}:{column}" for row, column in product(rows, columns))
        lacking = islice((key for key in pairs if key not in there), min(many, _SHOWN))
        for what, number, keys in (("missing", many, lacking), ("of no row and column", len(extra), extra)):
            if number:
                names = ", ".join(shown(key) for key in islice(keys, _SHOWN))
                message = f"{count(number, 'cell')} {what}: {names}"
                wanted = count(len(rows) * len(columns), "cell")
                yield Violation(place.pointer, message, wanted, count(len(there), "cell"))


def _named(key: str, rows: Container[str], columns: Container[str]) -> bool:
    row, colon, column = key.partition(":")
    return bool(colon) and row in rows and column in columns


@rule("cell-selectors", 26, on=FAMILY)
def cell_selectors(document: Document, context: Context) -> Iterator[Violation]:
    """A cell's own selectors repeat none that it inherits, and each is a name with one plain value."""
    for view in family_of(document, context).coverage:
        axes = axes_of(view)
        inherited = {axes.row, axes.column, *(name for name, _ in view.at("fixed_selectors").members())}
        for _, cell in view.at("cells").members():
            for name, item in cell.at("selectors").members():
                if name in inherited:
                    yield bad(item, f"{name} is given by the view already", "absent")
                elif not SELECTOR.fullmatch(name) or not is_scalar(item.value):
                    yield bad(item, "a selector is a lowercase name with one plain value", "name and scalar")


@rule("contract-shape", 30, on=FAMILY)
def contract_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A contract has a label, unique axes, at most 50,000 cells, and rules that name every axis."""
    family = family_of(document, context)
    expanded = {contract.pointer for contract in expandable(family)}
    for contract in family.contracts:
        if not contract.at("label").said:
            yield bad(contract.at("label"), "a contract needs a label", "text")
        keys: list[str] = []
        for axis in contract.at("axes").objects():
            yield from _axis(axis)
            yield from _values(axis, axis.at("values"))
            if axis.at("key").text in keys:
                yield bad(axis.at("key"), "the axis is there twice", "each axis once")
            keys.append(axis.at("key").text)
            yield from (
                bad(item, "'*' stands for every value", "a value")
                for item in axis.at("values").elements()
                if item.value == "*"
            )
        if not keys:
            yield bad(contract.at("axes"), "a contract has axes", "a list of axes")
        if contract_size(contract) > MAX_CELLS:
            many = str(contract_size(contract))[:20]
            yield Violation(contract.at("axes").pointer, "too many cells", f"at most {MAX_CELLS}", many)
        elif contract.pointer not in expanded:
            yield bad(contract.at("rules"), "too many rules and cells to expand", "fewer rules or cells")
        for name, item in contract.at("fixed_selectors").members():
            if name in keys or not is_scalar(item.value) or item.value == "*":
                yield bad(item, "a fixed selector is no axis and has one plain value", "a scalar")
        if not contract.at("rules").objects():
            yield bad(contract.at("rules"), "a contract has rules", "a list of rules")
        for item in contract.at("rules").objects():
            yield from _rule(item, contract, keys)


def _rule(item: Place, contract: Place, keys: list[str]) -> Iterator[Violation]:
    match = item.at("match")
    if sorted(name for name, _ in match.members()) != sorted(keys):
        yield bad(match, "a rule names every axis once", ", ".join(keys))
    known = {
        axis.at("key").text: {key_of(v.value) for v in axis.at("values").elements() if is_scalar(v.value)}
        for axis in contract.at("axes").objects()
    }
    for name, wanted in match.members():
        if (
            is_scalar(wanted.value)
            and wanted.value != "*"
            and key_of(wanted.value) not in known.get(name, ())
        ):
            yield bad(wanted, f"no value of axis {shown(name)}", "a value of the axis, or *")
    for name, place in item.members():
        if name not in OUTPUTS and name not in ("id", "match"):
            yield bad(place, f"a rule has no member {shown(name)}", ", ".join(sorted(OUTPUTS)))
    if item.at("point_x").given and not is_number(item.at("point_x").value):
        yield bad(item.at("point_x"), "no place on an axis", "a number")
    if item.at("retry").given and not item.at("retry", "status").said:
        yield bad(item.at("retry"), "a retry has a status", "an object with status")


@rule("contract-chain", 30, on=FAMILY)
def contract_chain(document: Document, context: Context) -> Iterator[Violation]:
    """For every cell, the rules that match name more and more axes exactly, so that the last one decides."""
    for contract in expandable(family_of(document, context)):
        said = 0
        for selectors, rules in matching(contract):
            exact = [exact_keys(item) for item in rules]
            chained = all(earlier < later for earlier, later in pairwise(exact))
            if rules and chained:
                continue
            said += 1
            if said > _SHOWN:
                continue
            cell = ", ".join(f"{name}={shown(value)}" for name, value in selectors.items())
            which = ", ".join(shown(item.at("id").value) for item in rules) or "none"
            message = "the rules that match are in no order" if rules else "no rule matches"
            yield Violation(contract.at("rules").pointer, f"cell {cell}: {message}"[:400], "a strict chain",
                            which[:160])  # fmt: skip


@rule("contract-role", 30, on=FAMILY)
def contract_role(document: Document, context: Context) -> Iterator[Violation]:
    """``speculator_artifact_id`` names an artifact of the revision with the role ``speculator``."""
    family = family_of(document, context)
    seen: set[tuple[str, str]] = set()
    for cell in all_cells(family):
        speculator = cell.selectors.get("speculator_artifact_id")
        revision = cell.selectors.get("revision")
        if speculator is None or (cell.view.pointer, key_of(speculator)) in seen:
            continue
        seen.add((cell.view.pointer, key_of(speculator)))
        known = family.find("artifact", speculator)
        if known is None or known.at("role").value != "speculator":
            found = "absent" if known is None else shown(known.at("role").value)
            yield Violation(
                cell.view.pointer, f"{shown(speculator)} is no speculator", "role speculator", found
            )
        elif isinstance(revision, str) and family.owner(str(speculator)) != revision:
            yield Violation(cell.view.pointer, f"{shown(speculator)} belongs to another revision", revision,
                            family.owner(str(speculator)))  # fmt: skip


@rule("closure-shape", 31, on=FAMILY)
def closure_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A closure has an allowed state, plain selectors or lists of them, a reason, and evidence."""
    for item in family_of(document, context).closures:
        if item.at("state").value not in STATES:
            yield bad(item.at("state"), "no state of a closure", ", ".join(sorted(STATES)))
        selectors = item.at("selectors")
        if not selectors.members():
            yield bad(selectors, "a closure selects a region", "selectors")
        for name, place in selectors.members():
            values = place.elements() if isinstance(place.value, list) else [place]
            if not SELECTOR.fullmatch(name) or not values or not all(is_scalar(v.value) for v in values):
                yield bad(place, "a selector is a lowercase name with plain values", "scalar or list of them")
        for name in ("reason", "evidence"):
            if not item.at(name).said:
                yield bad(item.at(name), f"a closure needs {name}", "text")


_OF_A_PACKET: Final = frozenset(
    ("revision", "artifact_id", "variant", "runtime", "packet", "quantization", "cards")
)


@rule("closure-selector", on=FAMILY, severity="warn")
def closure_selector(document: Document, context: Context) -> Iterator[Violation]:
    """A closure selects by dimensions that the family declares, or that its measurements and views have."""
    family = family_of(document, context)
    known = set(_OF_A_PACKET) | {name for name, _ in document.root.at("dimensions").members()}
    for item in family.measurements:
        known |= {name for name, _ in item.at("config").members()} | {item.at("axis").text}
        known |= {name for name, _ in item.members() if name in ("profile_id", "artifact_id")}
    for cell in all_cells(family):
        known |= cell.selectors.keys()
    for closure in family.closures:
        for name, place in closure.at("selectors").members():
            if name not in known:
                message = f"no dimension, measurement or view has a selector {shown(name)}"
                yield bad(place, message, "a selector that a question can ask for")
