"""Rules for single cells: their states, what they cite, and their labels."""

from collections.abc import Iterator

from provstore.evidence.jsonreader import ABSENT, Value
from provstore.graph.rules.cells import all_cells, named_cell
from provstore.graph.rules.family import MEASURED, STATES, Cell, Family, family_of, stated
from provstore.graph.rules.family_shape import bound_artifact
from provstore.graph.rules.formats import FAMILY
from provstore.graph.rules.labels import label_of, lost
from provstore.graph.rules.places import Place, is_number, same, shown
from provstore.graph.rules.rule import Context, Document, Violation, bad, rule


def _cited(family: Family, cell: Cell) -> Place | None:
    return family.find("measurement", cell.place.at("evidence_id").value)


def _point(family: Family, cell: Cell) -> Place | None:
    """Return the point of a series that a cell cites."""
    measurement, x = _cited(family, cell), cell.place.at("point_x")
    return family.point(measurement, x.value) if measurement is not None and x.given else None


@rule("cell-state", 25, 30, on=FAMILY)
def cell_state(document: Document, context: Context) -> Iterator[Violation]:
    """A cell has an allowed state; by its state it cites a measurement, an estimate, or some evidence."""
    family = family_of(document, context)
    for cell in all_cells(family):
        place, state = cell.place, cell.place.at("state")
        if state.value not in STATES:
            yield bad(state, f"no state of a cell{named_cell(cell)}", ", ".join(sorted(STATES)))
        if state.value in MEASURED and not place.at("evidence_id").given:
            yield bad(
                place.at("evidence_id"), f"a measured cell cites a measurement{named_cell(cell)}", "an id"
            )
        estimate = place.at("estimate_id")
        if state.value == "estimated" and not estimate.given:
            yield bad(estimate, f"an estimated cell cites an estimate{named_cell(cell)}", "an id")
        if state.value != "estimated" and estimate.given:
            yield bad(estimate, f"only an estimated cell cites an estimate{named_cell(cell)}", "absent")
        some = (place.at("evidence_id"), place.at("evidence"), cell.view.at("evidence"))
        if state.value in ("lab-screened", "quarantined") and not any(item.given for item in some):
            yield bad(place, f"a {shown(state.value)} cell without evidence{named_cell(cell)}", "evidence")


@rule("state-mismatch", 25, on=FAMILY)
def state_mismatch(document: Document, context: Context) -> Iterator[Violation]:
    """A cell has the state of the measurement that it cites."""
    family = family_of(document, context)
    for cell in all_cells(family):
        measurement = _cited(family, cell)
        if measurement is not None and not same(measurement.at("state").value, cell.place.at("state").value):
            message = f"{cell.place.at('evidence_id').text} has another state{named_cell(cell)}"
            yield bad(cell.place.at("state"), message, shown(measurement.at("state").value))


@rule("both", 25, on=FAMILY)
def both(document: Document, context: Context) -> Iterator[Violation]:
    """A cell never cites a measurement and an estimate at once."""
    for cell in all_cells(family_of(document, context)):
        if cell.place.at("evidence_id").given and cell.place.at("estimate_id").given:
            message = f"the cell cites a measurement and an estimate{named_cell(cell)}"
            yield bad(cell.place.at("estimate_id"), message, "one of them")


@rule("point-absent", 27, on=FAMILY)
def point_absent(document: Document, context: Context) -> Iterator[Violation]:
    """``point_x`` is a number and a point of the series that the cell cites."""
    family = family_of(document, context)
    for cell in all_cells(family):
        x, measurement = cell.place.at("point_x"), _cited(family, cell)
        if not x.given:
            continue
        if not is_number(x.value) or measurement is None:
            yield bad(x, f"it selects a point of no series{named_cell(cell)}", "a number, and a measurement")
        elif _point(family, cell) is None:
            there = ", ".join(shown(p.at("x").value) for p in measurement.at("points").objects()[:12])
            yield bad(x, f"the series has no such point{named_cell(cell)}", there)


@rule("point-axis", 27, on=FAMILY)
def point_axis(document: Document, context: Context) -> Iterator[Violation]:
    """``point_x`` equals the selector of the cell that the axis of the series names."""
    family = family_of(document, context)
    for cell in all_cells(family):
        x, measurement = cell.place.at("point_x"), _cited(family, cell)
        if not is_number(x.value) or measurement is None:
            continue
        axis = measurement.at("axis").text
        wanted = cell.selectors.get(axis)
        if wanted is None or not same(wanted, x.value):
            expected = f"{axis} {shown(wanted)}" if wanted is not None else "an axis that the cell selects by"
            yield bad(x, f"it is another place than that of the cell{named_cell(cell)}", expected)


@rule("label-mismatch", 27, on=FAMILY)
def label_mismatch(document: Document, context: Context) -> Iterator[Violation]:
    """The label of a cell that cites a point is the one that the numbers of the point give."""
    family = family_of(document, context)
    for cell in all_cells(family):
        point = _point(family, cell)
        own = cell.view.at("cells").given or cell.place.at("label").given
        if point is not None and own and cell.place.at("label").value != label_of(point):
            message = f"the point {point.pointer} gives another label{named_cell(cell)}"
            yield bad(cell.place.at("label"), message, label_of(point))


@rule("label-loses-value", 27, on=FAMILY, severity="warn")
def label_loses_value(document: Document, context: Context) -> Iterator[Violation]:
    """Rounding for a label does not turn a number into zero."""
    family = family_of(document, context)
    for cell in all_cells(family):
        point = _point(family, cell)
        for metric in [] if point is None else lost(point):
            value = shown(ABSENT if point is None else point.at(metric).value)
            message = f"the label shows {metric} as zero, it is {value}"
            yield bad(cell.place.at("label"), message, value)


@rule("selector-mismatch", 28, 25, 30, on=FAMILY)
def selector_mismatch(document: Document, context: Context) -> Iterator[Violation]:
    """Every selector of a cell is found in the measurement or estimate that it cites, with the same value."""
    family = family_of(document, context)
    for cell in all_cells(family):
        measurement, x = _cited(family, cell), cell.place.at("point_x")
        for name, wanted in cell.selectors.items() if measurement is not None else ():
            there = stated(measurement, name) if measurement is not None else ABSENT
            on_axis = x.given and measurement is not None and measurement.at("axis").value == name
            if same(there, wanted) or (there is ABSENT and on_axis and same(x.value, wanted)):
                continue
            if there is ABSENT and not cell.strict:
                continue
            yield _differs(cell, name, wanted, cell.place.at("evidence_id"), shown(there))
        estimate = family.find("estimate", cell.place.at("estimate_id").value)
        for name, wanted in cell.selectors.items() if estimate is not None else ():
            said = estimate.at("selectors", name).value if estimate is not None else ABSENT
            if not same(said, wanted):
                yield _differs(cell, name, wanted, cell.place.at("estimate_id"), shown(said))


def _differs(cell: Cell, name: str, wanted: Value, cites: Place, found: str) -> Violation:
    message = f"{shown(cites.value)} has another {shown(name)} than the cell{named_cell(cell)}"
    return Violation(cites.pointer, message[:400], f"{shown(name)} {shown(wanted)}", found)


@rule("cell-artifact", 25, 30, on=FAMILY)
def cell_artifact(document: Document, context: Context) -> Iterator[Violation]:
    """A cell under a revision with artifacts selects one of them, of that revision, with its quantization."""
    family = family_of(document, context)
    for cell in all_cells(family):
        place = Place(cell.place.pointer, dict(cell.selectors))
        for found in bound_artifact(family, place, cell.place):
            yield found._replace(pointer=cell.place.pointer)


@rule("packet-selector", 29, on=FAMILY)
def packet_selector(document: Document, context: Context) -> Iterator[Violation]:
    """A packet that a cell cites agrees with the cell in revision, artifact, variant, runtime and cards."""
    family = family_of(document, context)
    for cell in all_cells(family):
        packet = family.find("packet", cell.place.at("packet_id").value)
        if packet is None:
            continue
        variant = "variant" if cell.view.at("cells").given else "quantization"
        for key, name in (("revision", "revision"), ("artifact_id", "artifact_id"),
                          (variant, "quantization"), ("runtime", "runtime")):  # fmt: skip
            wanted, said = cell.selectors.get(key), packet.at(name)
            if wanted is not None and said.given and not same(wanted, said.value):
                yield _differs(cell, key, wanted, cell.place.at("packet_id"), shown(said.value))
        cards, tp = packet.at("cards"), cell.selectors.get("tp")
        topologies = packet.at("topologies")
        if tp is None:
            continue
        inside = any(same(tp, item.value) for item in topologies.elements())
        if (cards.given and not same(cards.value, tp)) or (
            not cards.given and isinstance(topologies.value, list) and not inside
        ):
            yield _differs(cell, "tp", tp, cell.place.at("packet_id"), f"cards {shown(cards.value)}")
