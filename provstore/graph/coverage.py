"""Coverage matrices: what every cell is, found from measurements, estimates and closures.

What a document wrote into a cell is shown beside and never decides what was measured. A cell that nothing
speaks of is ``missing``, with the reason why that is known, if any; never zero.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from provstore.graph.places import Known, Place, covers, equal, place_of, scalar
from provstore.graph.statements import Cell, Closure, Coverage, Estimate, Measurement, Sample, Scalar


class Sources(NamedTuple):
    """Everything that may fill cells."""

    measurements: Sequence[Measurement]
    estimates: Sequence[Estimate] = ()
    closures: Sequence[Closure] = ()


class Found(NamedTuple):
    """One cell as the data has it.

    Attributes:
        row: value of the row axis.
        column: value of the column axis.
        state: see :data:`~provstore.graph.statements.State`.
        cites: key of the measurement or estimate, empty for none.
        point_x: source text of the point of a series.
        samples: the numbers at that point.
        reason: why it is what it is, in words of a document; empty when none says.
        also: keys of other measurements of the same place.
        stated: the cell as its document writes it, None when it has none.
        agrees: the document says the same state and cites the same data.
    """

    row: Scalar
    column: Scalar
    state: str
    cites: str
    point_x: str | None
    samples: tuple[Sample, ...]
    reason: str
    also: tuple[str, ...]
    stated: Cell | None
    agrees: bool


def matrix(view: Coverage, known: Sources) -> tuple[Found, ...]:
    """Return every cell of a view, row by row."""
    cells = {(str(cell.row), str(cell.column)): cell for cell in view.cells}
    found = []
    for row in view.rows:
        for column in view.columns:
            stated = cells.get((str(row), str(column)))
            found.append(_cell(view, row, column, stated, known))
    return tuple(found)


def _cell(view: Coverage, row: Scalar, column: Scalar, stated: Cell | None, known: Sources) -> Found:
    own = {} if stated is None else stated.selectors
    wanted = {**view.fixed, **own, view.row_key: row, view.column_key: column}
    here: Place = {name: Known(value) for name, value in wanted.items()}
    measurements = known.measurements
    if not view.fixed:
        # Two axes alone do not say what the matrix is about, so only what a cell cites can be meant by it.
        cited = "" if stated is None else stated.measurement
        measurements = [m for m in measurements if m.key == cited]
    points = [point for m in measurements for point in _at(m, wanted)]
    if points:
        points.sort(key=lambda point: (stated is None or point[0].key != stated.measurement, point[0].key))
        measurement, point_x, samples = points[0]
        also = tuple(other.key for other, _, _ in points[1:])
        cites, state = measurement.key, measurement.state or "missing"
        reason = "" if stated is None else stated.reason
    else:
        cites, point_x, samples, also = "", None, (), ()
        state, reason = "missing", "" if stated is None else stated.reason
        estimates = known.estimates if view.fixed else ()
        estimate = next((e for e in estimates if _fits(e.selectors, wanted)), None)
        closure = next((c for c in known.closures if covers(c, here)), None)
        if estimate is not None:
            state, cites = "estimated", estimate.key
        elif closure is not None:
            state, reason = closure.state, closure.reason
        elif stated is not None and stated.state in ("unsupported", "closed", "quarantined"):
            # No measurement can show that something cannot run: the document's word, with its reason, is all.
            state = stated.state
    agrees = stated is not None and (stated.state, stated.measurement or stated.estimate) == (state, cites)
    if agrees and stated is not None and stated.point_x is not None:
        agrees = point_x is not None and equal(scalar(stated.point_x), scalar(point_x))
    return Found(row, column, state, cites, point_x, samples, reason, also, stated, agrees)


def _at(
    measurement: Measurement, wanted: Mapping[str, Scalar]
) -> list[tuple[Measurement, str | None, tuple[Sample, ...]]]:
    """Return the points of a measurement that lie in a cell."""
    base = {name: known.value for name, known in place_of(measurement).items()}
    if not measurement.axis:
        return [(measurement, None, measurement.samples)] if _fits(wanted, base) else []
    found: list[tuple[Measurement, str | None, tuple[Sample, ...]]] = []
    for x in dict.fromkeys(sample.point_x for sample in measurement.samples):
        if x is not None and _fits(wanted, {**base, measurement.axis: scalar(x)}):
            at = tuple(sample for sample in measurement.samples if sample.point_x == x)
            found.append((measurement, x, at))
    return found


def _fits(wanted: Mapping[str, Scalar], place: Mapping[str, Scalar]) -> bool:
    """Say whether a place states everything that is wanted, with these values."""
    return all(name in place and equal(value, place[name]) for name, value in wanted.items())
