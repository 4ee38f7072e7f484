"""Rules for the views of a family: what may be drawn as one curve."""

from collections.abc import Iterator
from typing import Final

from provstore.evidence.jsonreader import ABSENT, Absent, Value
from provstore.graph.rules.conventions import convention_of
from provstore.graph.rules.family import CHARTABLE, METRICS, Family, family_of
from provstore.graph.rules.formats import FAMILY
from provstore.graph.rules.places import Place, is_number, same, shown
from provstore.graph.rules.rule import Context, Document, Violation, bad, rule

_IDENTITY: Final = (
    "revision",
    "variant",
    "quantization",
    "runtime",
    "runtime_family",
    "profile_id",
    "measurement_class",
    "workload",
    "model_revision",
    "artifact_id",
    "identity",
    "runtime_identity",
)
"""Members that stay the same along a connected curve, beside ``config``."""


@rule("view-shape", 21, on=FAMILY)
def view_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A view has known metrics, series of measurements, and numbers where it names places of its axis."""
    for view in family_of(document, context).views:
        if not view.at("metrics").elements():
            yield bad(view.at("metrics"), "a view shows at least one metric", "a list of metrics")
        for item in view.at("metrics").elements():
            if item.value not in METRICS:
                yield bad(item, "no metric of the format", ", ".join(METRICS))
        for name in ("missing_x", "unsupported_x"):
            for item in view.at(name).elements():
                if not is_number(item.value):
                    yield bad(item, "no place on an axis", "a number")
        for series in view.at("series").objects():
            if not series.at("measurement_ids").elements():
                yield bad(series.at("measurement_ids"), "a series shows at least one measurement", "ids")


def _series(family: Family) -> Iterator[tuple[Place, Place, list[Place]]]:
    """Yield each series with its view and the measurements that it names."""
    for view in family.views:
        for series in view.at("series").objects():
            named = [family.find("measurement", i.value) for i in series.at("measurement_ids").elements()]
            yield view, series, [item for item in named if item is not None]


@rule("view-state", 21, on=FAMILY)
def view_state(document: Document, context: Context) -> Iterator[Violation]:
    """What is drawn was measured or screened, and one series does not mix states."""
    for _, series, items in _series(family_of(document, context)):
        states = sorted({shown(item.at("state").value) for item in items})
        place = series.at("measurement_ids")
        for state in states:
            if state not in CHARTABLE:
                yield Violation(
                    place.pointer, f"a measurement is {state}", ", ".join(sorted(CHARTABLE)), state
                )
        if len(states) > 1:
            yield Violation(place.pointer, "one series mixes states", "one state", ", ".join(states))


def _identity(item: Place, without: tuple[str, ...]) -> dict[str, Value | Absent]:
    found: dict[str, Value | Absent] = {name: item.at(name).value for name in _IDENTITY}
    found |= {f"config.{name}": place.value for name, place in item.at("config").members()}
    found.pop(".".join(without), None)
    return found


@rule("mixed-identity", 21, on=FAMILY)
def mixed_identity(document: Document, context: Context) -> Iterator[Violation]:
    """The measurements of a connected curve agree in everything but the axis; others are marked discrete."""
    for view, series, items in _series(family_of(document, context)):
        if view.at("discrete").value is True or len(items) < 2:
            continue
        axis = series.at("x_from").text or "config.tp"
        first, *rest = (_identity(item, tuple(axis.split("."))) for item in items)
        for other in rest:
            differ = sorted(
                name
                for name in first.keys() | other.keys()
                if not _equal(first.get(name, ABSENT), other.get(name, ABSENT))
            )
            if differ:
                message = "measurements of one curve differ in more than the axis"
                yield Violation(
                    series.pointer, message, f"equal but for {axis}"[:160], ", ".join(differ)[:160]
                )


def _equal(one: Value | Absent, other: Value | Absent) -> bool:
    return one == other or same(one, other)


@rule("convention-mismatch", 21, on=FAMILY)
def convention_mismatch(document: Document, context: Context) -> Iterator[Violation]:
    """Rates of two conventions of counting never stand in one series of a view."""
    for _, series, items in _series(family_of(document, context)):
        said = {convention_of(item, context) for item in items} - {""}
        if len(said) > 1:
            place = series.at("measurement_ids")
            message = "a series compares numbers of different conventions"
            yield Violation(place.pointer, message, "one convention", ", ".join(sorted(said))[:160])
