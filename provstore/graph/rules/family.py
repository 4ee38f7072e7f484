"""A family document as rules need it: its lists, and what its ids name."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from provstore.evidence.jsonreader import ABSENT, Absent, Value
from provstore.graph.rules.places import Place, is_number, same, sameness
from provstore.graph.rules.rule import Context, Document

METRICS: Final = {
    "decode_tok_s": "tok/s",
    "aggregate_tok_s": "tok/s",
    "prefill_tok_s": "tok/s",
    "ttft_ms": "ms",
    "mean_acceptance_length": "tokens",
    "draft_acceptance_rate": "ratio",
    "effective_tokens_per_verification": "tokens",
}
"""Metrics of the format and their units, in the order of a label."""

OBSERVED: Final = frozenset(("lab-measured", "lab-screened", "community-measured", "quarantined"))
"""States of a measurement."""

MEASURED: Final = frozenset(("lab-measured", "community-measured"))
"""States of a cell that need a measurement."""

CHARTABLE: Final = MEASURED | {"lab-screened"}
"""States whose numbers may be drawn or be a headline."""

STATES: Final = OBSERVED | {"estimated", "closed", "unsupported", "missing"}
"""States of a cell."""

LISTS: Final = (
    "weight_revisions",
    "model_variants",
    "packets",
    "run_measurements",
    "series_measurements",
    "featured_results",
    "estimates",
    "views",
    "coverage_views",
    "coverage_contracts",
    "family_closures",
)
"""Members that are lists of objects."""


class Cell(NamedTuple):
    """One cell.

    Attributes:
        place: the cell as it is written; of a contract, its members by the rules that apply.
        selectors: everything that holds for it: fixed, axes, own.
        view: the view or contract.
        strict: every selector must be found in the measurement that it cites.
    """

    place: Place
    selectors: dict[str, Value]
    view: Place
    strict: bool


class Family:
    """Lists and ids of one family document; the first of several with one id counts.

    Args:
        document: the document.

    Attributes:
        root: the whole document.
        revisions: weight revisions.
        variants: model variants, which share ids with the revisions.
        artifacts: quantized artifacts with the revision they stand under.
        auxiliaries: auxiliary artifacts.
        measurements: of runs and of series.
        packets, estimates, views, coverage, contracts, closures: the other lists.
        cells: of all views and contracts, once they were worked out.
    """

    def __init__(self, document: Document) -> None:
        root = document.root
        self.document = document
        self.root = root
        self.revisions = root.at("weight_revisions").objects()
        self.variants = root.at("model_variants").objects()
        self.auxiliaries = root.at("auxiliary_artifacts").objects()
        self.artifacts = [
            (item, revision)
            for revision in self.revisions
            for item in revision.at("quantized_artifacts").objects()
        ]
        self.measurements = [
            *root.at("run_measurements").objects(),
            *root.at("series_measurements").objects(),
        ]
        self.packets = root.at("packets").objects()
        self.estimates = root.at("estimates").objects()
        self.views = root.at("views").objects()
        self.coverage = root.at("coverage_views").objects()
        self.contracts = root.at("coverage_contracts").objects()
        self.closures = root.at("family_closures").objects()
        self.cells: list[Cell] | None = None
        self._points: dict[str, dict[tuple[str, object], Place]] = {}
        self._named = {
            "revision": named([*self.revisions, *self.variants]),
            "auxiliary": named(self.auxiliaries),
            "artifact": named([item for item, _ in self.artifacts]),
            "measurement": named(self.measurements),
            "packet": named(self.packets),
            "estimate": named(self.estimates),
            "view": named(self.views),
        }
        self._bound = {owner.at("id").text for _, owner in self.artifacts} - {""}
        self._owner = {item.at("id").text: owner.at("id").text for item, owner in reversed(self.artifacts)}

    def find(self, what: str, id: Value | Absent) -> Place | None:
        """Return the item of a kind with an id; None when there is none, or the id is no string."""
        return self._named[what].get(id) if isinstance(id, str) and id else None

    def point(self, measurement: Place, x: Value | Absent) -> Place | None:
        """Return the point of a series at a place of its axis; the first of several."""
        known = self._points.get(measurement.pointer)
        if known is None:
            known = {sameness(point.at("x").value): point for point in reversed(points(measurement))}
            self._points[measurement.pointer] = known
        found = known.get(sameness(x)) if is_number(x) else None
        return found if found is not None and same(found.at("x").value, x) else None

    def bound(self, revision: Value | Absent) -> bool:
        """Say whether what names this revision must name one of its artifacts too."""
        return isinstance(revision, str) and revision in self._bound

    def owner(self, artifact: str) -> str:
        """Return the id of the revision that an artifact stands under."""
        return self._owner.get(artifact, "")


def family_of(document: Document, context: Context) -> Family:
    """Return the lists and ids of a family document; they are worked out once for one check."""
    return context.kept(document, Family)


def named(items: list[Place]) -> dict[str, Place]:
    """Return items by their ids; the first of several with one id."""
    return {item.at("id").text: item for item in reversed(items) if item.at("id").text}


def stated(record: Place, key: str) -> Value | Absent:
    """Return what a record states for a selector: at its top level, in ``config`` or in ``identity``."""
    for place in (record.at(key), record.at("config", key), record.at("identity", key)):
        if place.value is not ABSENT:
            return place.value
    return ABSENT


def points(measurement: Place) -> list[Place]:
    """Return the points of a series."""
    return measurement.at("points").objects()


def binding(owner: Place) -> Iterator[tuple[str, Place]]:
    """Yield what a headline points to a number with: ``sample_index`` and ``point_x`` if given."""
    for name in ("sample_index", "point_x"):
        if owner.at(name).given:
            yield name, owner.at(name)


def selected(family: Family, owner: Place, measurement: Place) -> Place | None:
    """Return the number that a headline points to: one sample or one point, never a computed one."""
    metric = owner.at("metric").text
    for name, place in binding(owner):
        if name == "point_x":
            point = family.point(measurement, place.value)
            found = None if point is None else point.at(metric)
        else:
            samples = measurement.at("metrics", metric).elements()
            index = place.value
            inside = type(index) is int and 0 <= index < len(samples)
            found = samples[index] if inside and type(index) is int else None
        if found is not None and found.value is not ABSENT:
            return found
    return None
