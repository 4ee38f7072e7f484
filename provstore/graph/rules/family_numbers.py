"""Rules for measured and estimated numbers of a family."""

from collections.abc import Iterator
from typing import Final

from provstore.evidence.jsonreader import ABSENT
from provstore.graph.rules.family import (
    CHARTABLE,
    METRICS,
    OBSERVED,
    Family,
    binding,
    family_of,
    named,
    points,
    selected,
)
from provstore.graph.rules.formats import FAMILY
from provstore.graph.rules.places import (
    SELECTOR,
    SHA256,
    Place,
    decimal,
    is_count,
    is_number,
    is_scalar,
    same,
    sameness,
    shown,
)
from provstore.graph.rules.rule import Context, Document, Violation, bad, rule

_STRINGS: Final = ("profile_id", "measurement_class", "promotion_status", "quality_scope")


@rule("measurement-state", 6, on=FAMILY)
def measurement_state(document: Document, context: Context) -> Iterator[Violation]:
    """A measurement is lab-measured, lab-screened, community-measured or quarantined."""
    for item in family_of(document, context).measurements:
        if item.at("state").value not in OBSERVED:
            yield bad(item.at("state"), "no state of a measurement", ", ".join(sorted(OBSERVED)))


@rule("measurement-evidence", 9, on=FAMILY)
def measurement_evidence(document: Document, context: Context) -> Iterator[Violation]:
    """A measurement cites its evidence; what it says of profile, class, promotion and quality is text."""
    for item in family_of(document, context).measurements:
        if not item.at("evidence").said:
            yield bad(item.at("evidence"), "a measurement needs evidence", "a path")
        for name in _STRINGS:
            if item.at(name).value is not ABSENT and not isinstance(item.at(name).value, str):
                yield bad(item.at(name), f"{name} must be text", "a string")


@rule("metric-values", 10, on=FAMILY)
def metric_values(document: Document, context: Context) -> Iterator[Violation]:
    """A measurement has known metrics with lists of numbers, or points with ``x`` and a known metric."""
    for item in family_of(document, context).measurements:
        metrics, series = item.at("metrics"), item.at("points")
        if not metrics.members() and not series.elements():
            yield bad(item, "a measurement without metrics or points", "metrics or points")
        for name, place in metrics.members():
            if name not in METRICS:
                yield bad(place, f"{shown(name)} is no metric of the format", ", ".join(METRICS))
            if not isinstance(place.value, list) or not place.value:
                yield bad(place, "samples must be in a list that is not empty", "a list of numbers")
            yield from (
                bad(at, "no number", "a number") for at in place.elements() if not is_number(at.value)
            )
        for point in points(item):
            if not is_number(point.at("x").value):
                yield bad(point.at("x"), "a point needs a number x", "a number")
            known = [name for name, _ in point.members() if name in METRICS]
            if not known:
                yield bad(point, "a point without a known metric", ", ".join(METRICS))
            for name in known:
                if not is_number(point.at(name).value):
                    yield bad(point.at(name), "no number", "a number")


@rule("duplicate-point", on=FAMILY)
def duplicate_point(document: Document, context: Context) -> Iterator[Violation]:
    """Two points of one series never have the same ``x``; a series with points names its axis."""
    for item in family_of(document, context).measurements:
        seen: set[tuple[str, object]] = set()
        for point in points(item):
            x = point.at("x")
            if is_number(x.value) and sameness(x.value) in seen:
                yield bad(x, "an earlier point has the same x", "a place of its own on the axis")
            seen.add(sameness(x.value))


@rule("annotation", 11, on=FAMILY)
def annotation(document: Document, context: Context) -> Iterator[Violation]:
    """A note on a sample names a metric and an index that are there; it has a label and no other value."""
    for item in family_of(document, context).measurements:
        place = item.at("sample_annotations")
        if place.given and not isinstance(place.value, list):
            yield bad(place, "must be a list", "a list")
        for note in place.elements():
            samples = item.at("metrics", note.at("metric").text).elements()
            index = note.at("index").value
            if type(index) is not int or not 0 <= index < len(samples):
                yield bad(note, "it points to no sample", "metric and index of a sample")
                continue
            if not note.at("label").said:
                yield bad(note.at("label"), "an annotation needs a label", "a label")
            value = note.at("value")
            if value.value is not ABSENT and not same(value.value, samples[index].value):
                yield bad(value, f"sample {index} has another value", shown(samples[index].value))


@rule("headline-binding", 18, on=FAMILY)
def headline_binding(document: Document, context: Context) -> Iterator[Violation]:
    """A headline points to one sample or point and repeats its value, unit, workload and evidence."""
    family = family_of(document, context)
    for packet in family.packets:
        headline = packet.at("featured_metric")
        if not headline.given:
            continue
        if is_package(packet.at("manifest").text):
            yield bad(headline, "the package of this packet has the headline", "absent")
        metric = headline.at("metric").value
        if metric not in METRICS:
            yield bad(headline.at("metric"), "no metric of the format", ", ".join(METRICS))
        elif headline.at("unit").value != METRICS[str(metric)]:
            yield bad(headline.at("unit"), f"{metric} has another unit", METRICS[str(metric)])
        yield from _bound(family, headline, ("workload", "evidence"))
        found = family.find("measurement", headline.at("measurement_id").value)
        number = None if found is None else selected(family, headline, found)
        if number is not None and not same(number.value, headline.at("value").value):
            yield bad(headline.at("value"), f"{number.pointer} has another value", shown(number.value))


def is_package(path: str) -> bool:
    """Say whether a path is that of a package document."""
    return path.startswith("packages/") and path.endswith("package.json")


def _bound(family: Family, headline: Place, copied: tuple[str, ...]) -> Iterator[Violation]:
    """Yield what is wrong with how a headline points to a number."""
    if len(list(binding(headline))) != 1:
        yield bad(headline, "it points with exactly one of sample_index and point_x", "one of them")
    measurement = family.find("measurement", headline.at("measurement_id").value)
    if measurement is None:
        if not headline.at("measurement_id").given:
            yield bad(headline.at("measurement_id"), "it names no measurement", "the id of a measurement")
        return
    if measurement.at("state").value not in CHARTABLE:
        yield bad(headline.at("measurement_id"), f"the measurement is {shown(measurement.at('state').value)}",
                  ", ".join(sorted(CHARTABLE)))  # fmt: skip
    if selected(family, headline, measurement) is None:
        yield bad(headline, "it selects no number of the metric", "a sample or a point")
    for name in copied:
        if not same(headline.at(name).value, measurement.at(name).value):
            yield bad(headline.at(name), "the measurement says otherwise", shown(measurement.at(name).value))


@rule("featured-results", 19, on=FAMILY)
def featured_results(document: Document, context: Context) -> Iterator[Violation]:
    """Featured results have one hero, labels, and point to one number each."""
    family = family_of(document, context)
    items = document.root.at("featured_results")
    heroes = [item for item in items.objects() if item.at("role").value == "hero"]
    if items.elements() and len(heroes) != 1:
        yield bad(items, f"{len(heroes)} of them are heroes", "exactly one hero")
    for item in items.objects():
        if item.at("role").value not in ("hero", "support"):
            yield bad(item.at("role"), "no role of a featured result", "hero or support")
        for name in ("label", "quality_label"):
            if not item.at(name).said:
                yield bad(item.at(name), f"a featured result needs {name}", "a label")
        if item.at("metric").value not in METRICS:
            yield bad(item.at("metric"), "no metric of the format", ", ".join(METRICS))
        yield from _bound(family, item, ())


@rule("estimate-shape", 20, on=FAMILY)
def estimate_shape(document: Document, context: Context) -> Iterator[Violation]:
    """An estimate states selectors, metric, unit, bounds, engine, basis, limits; it is not for promotion."""
    for item in family_of(document, context).estimates:
        if item.at("state").value != "estimated":
            yield bad(item.at("state"), "an estimate has the state estimated", "estimated")
        yield from _selectors(item.at("selectors"))
        metric = item.at("metric").value
        if metric not in METRICS:
            yield bad(item.at("metric"), "no metric of the format", ", ".join(METRICS))
        elif item.at("unit").value != METRICS[str(metric)]:
            yield bad(item.at("unit"), f"{metric} has another unit", METRICS[str(metric)])
        yield from _bounds(item)
        for name in ("name", "version"):
            if not item.at("engine", name).said:
                yield bad(item.at("engine", name), f"the engine of an estimate needs {name}", "text")
        snapshot = item.at("engine", "snapshot_sha256")
        if not SHA256.fullmatch(snapshot.text.removeprefix("sha256:")):
            yield bad(snapshot, "the snapshot of the engine is no SHA-256", "64 hex digits")
        for name in ("generated_at", "limitations", "record"):
            if not item.at(name).said:
                yield bad(item.at(name), f"an estimate needs {name}", "text")
        if not item.at("basis_measurement_ids").elements():
            yield bad(item.at("basis_measurement_ids"), "an estimate rests on measurements", "ids")
        if item.at("not_for_promotion").value is not True:
            yield bad(item.at("not_for_promotion"), "an estimate is never for promotion", "true")


def _selectors(place: Place) -> Iterator[Violation]:
    if not place.members():
        yield bad(place, "selectors must not be empty", "an object of selectors")
    for name, item in place.members():
        if not SELECTOR.fullmatch(name) or not is_scalar(item.value):
            yield bad(item, "a selector is a lowercase name with one plain value", "name and scalar")


def _bounds(item: Place) -> Iterator[Violation]:
    value = decimal(item.at("value").value)
    low, high = (decimal(item.at("interval", name).value) for name in ("low", "high"))
    if value is None or low is None or high is None:
        yield bad(
            item.at("value" if value is None else "interval"), "it needs value, low and high", "numbers"
        )
    elif not low <= value <= high:
        yield bad(item.at("value"), "the value lies outside its own bounds", f"{low} to {high}")


@rule("estimate-supersedes", 20, on=FAMILY)
def estimate_supersedes(document: Document, context: Context) -> Iterator[Violation]:
    """An estimate supersedes an earlier one of the list, so no chain of estimates returns to itself."""
    estimates = family_of(document, context).estimates
    known = named(estimates)
    earlier: set[str] = set()
    for item in estimates:
        place = item.at("supersedes")
        if place.given and place.text not in earlier:
            later = place.text in known
            message = (
                "it stands later in the list, or is the estimate itself" if later else "no such estimate"
            )
            yield bad(place, message, "the id of an earlier estimate")
        earlier.add(item.at("id").text)


@rule("grade-shape", 15, on=FAMILY)
def grade_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A grade is A to D with scope, basis, date and at least one file of evidence."""
    family = family_of(document, context)
    for owner in (*family.revisions, *family.packets):
        place = owner.at("grades")
        if place.given and not isinstance(place.value, dict):
            yield bad(place, "grades must be an object", "an object")
        for name in ("capability", "evidence"):
            grade = place.at(name)
            if not grade.given:
                continue
            if grade.at("grade").value not in ("A", "B", "C", "D"):
                yield bad(grade.at("grade"), "no such grade", "A, B, C or D")
            for text in ("scope", "basis", "reviewed_at"):
                if not grade.at(text).said:
                    yield bad(grade.at(text), f"a grade needs {text}", "text")
            files = grade.at("evidence").elements()
            if not files or not all(item.said for item in files):
                yield bad(grade.at("evidence"), "a grade cites at least one file", "a list of paths")


@rule("projection-shape", 16, on=FAMILY)
def projection_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A projection names model, quant and runtime, and prompt and output tokens together or neither."""
    for packet in family_of(document, context).packets:
        place = packet.at("projection")
        if not place.given:
            continue
        for name in ("model", "quant", "runtime"):
            if not place.at(name).said:
                yield bad(place.at(name), f"a projection needs {name}", "text")
        tokens = [place.at("prompt_tokens"), place.at("output_tokens")]
        if tokens[0].given != tokens[1].given:
            yield bad(place, "prompt_tokens and output_tokens go together", "both or neither")
        for item in tokens:
            if item.given and not is_count(item.value):
                yield bad(item, "tokens are a positive integer", "a positive integer")
