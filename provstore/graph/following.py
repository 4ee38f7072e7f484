"""What has to follow in a family when one of its values was corrected: copies of it in the same document.

A copy follows only if it agreed with its source before: one that did not is a finding of the rules, and
nobody's guess.
"""

import json
from collections.abc import Iterator

from provstore.evidence.jsonreader import ABSENT, Absent, Value, child
from provstore.graph.documents.splicing import Splice
from provstore.graph.documents.values import number, part, parts, text
from provstore.graph.rules.labels import label_of
from provstore.graph.rules.places import Place


def following(before: dict[str, Value], after: dict[str, Value]) -> Iterator[Splice]:
    """Yield the values that have to follow a correction.

    Args:
        before: the family as it was.
        after: the same with its corrections, in the same shape.
    """
    old, new = _measurements(before), _measurements(after)
    for place, cell in _cells(after):
        id = text(cell, "evidence_id")
        if id not in old or id not in new:
            continue
        was, now = old[id].get("state", ABSENT), new[id].get("state", ABSENT)
        if was != now and cell.get("state") == was and isinstance(now, str):
            yield Splice(child(place, "state"), json.dumps(now, ensure_ascii=False))
        labels = [_label(side, number(cell.get("point_x"))) for side in (old[id], new[id])]
        if labels[0] != labels[1] and cell.get("label") == labels[0] and labels[1]:
            yield Splice(child(place, "label"), json.dumps(labels[1], ensure_ascii=False))
    for place, binding in _bindings(after):
        id = text(binding, "measurement_id")
        if id in old and id in new:
            was, now = _bound(binding, old[id]), _bound(binding, new[id])
            shown = number(now)
            if was != now and binding.get("value", ABSENT) == was and shown is not None:
                yield Splice(child(place, "value"), shown)


def _measurements(document: dict[str, Value]) -> dict[str, dict[str, Value]]:
    found: dict[str, dict[str, Value]] = {}
    for group in ("run_measurements", "series_measurements"):
        for _, item in parts(document, group):
            found.setdefault(text(item, "id"), item)
    return found


def _cells(document: dict[str, Value]) -> Iterator[tuple[str, dict[str, Value]]]:
    for place, view in parts(document, "coverage_views"):
        for name in part(view, "cells"):
            yield child(child(place, "cells"), name), part(part(view, "cells"), name)


def _bindings(document: dict[str, Value]) -> Iterator[tuple[str, dict[str, Value]]]:
    for place, packet in parts(document, "packets"):
        yield child(place, "featured_metric"), part(packet, "featured_metric")
    yield from parts(document, "featured_results")


def _label(measurement: dict[str, Value], x: str | None) -> str:
    for _, point in parts(measurement, "points"):
        if x is not None and number(point.get("x")) == x:
            return label_of(Place("", point))
    return ""


def _bound(binding: dict[str, Value], measurement: dict[str, Value]) -> Value | Absent:
    """Return the value that a binding points to."""
    metric, index = text(binding, "metric"), binding.get("sample_index")
    samples = part(measurement, "metrics").get(metric)
    if isinstance(samples, list) and type(index) is int and 0 <= index < len(samples):
        return samples[index]
    x = number(binding.get("point_x"))
    for _, point in parts(measurement, "points"):
        if x is not None and number(point.get("x")) == x:
            return point.get(metric, ABSENT)
    return ABSENT
