"""Which convention of counting a number has, as far as data says; prose never counts."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from provstore.graph.rules.citing import inside
from provstore.graph.rules.formats import RECORD, SWEEP
from provstore.graph.rules.places import Place, decimal, is_number, same, sameness, walk
from provstore.graph.rules.rule import Context, Document

INTERVALS: Final = "conventional-intervals"
"""Intervals between events over the time they span."""

EVENTS: Final = "legacy-inclusive-events"
"""All events over the same time, one more than there are intervals."""

_STATED: Final = ("convention", "metric_convention")


def runs_of(document: Document) -> set[str]:
    """Return what could be ids of runs: text under ``run_id``, and the ends of addresses of the source."""
    found = {place.text for name, place in walk(document.root) if name == "run_id"}
    for name, place in walk(document.root.at("source")):
        if name in ("url", "paths"):
            found.add(place.text.rstrip("/").rpartition("/")[2])
    return found - {""}


def known_runs(sweep: Document, context: Context) -> Iterator[tuple[Document, Place, Decimal]]:
    """Yield records that know a run of a sweep: the record, the number it knows it by, and that per interval.

    A record knows a run by ``NAME_id`` beside ``NAME_tok_s``, in its own convention of events, and states how
    many events and intervals that counts.
    """
    runs = runs_of(sweep)
    for record in context.of_format(RECORD):
        accounting = record.root.at("metric_accounting")
        events = decimal(accounting.at("timestamped_events").value)
        intervals = decimal(accounting.at("inter_token_intervals").value)
        if not events or intervals is None or events == intervals:
            continue
        for name, place in walk(record.root):
            if name.endswith("_id") and place.text in runs:
                value = sibling(record.root, place, name.removesuffix("_id") + "_tok_s")
                number = decimal(value.value)
                if number is not None:
                    yield record, value, number * intervals / events


def sibling(root: Place, place: Place, name: str) -> Place:
    """Return another member of the object that a member stands in."""
    here = root
    for token in place.pointer.split("/")[1:-1]:
        here = here.elements()[int(token)] if isinstance(here.value, list) else here.at(_plain(token))
    return here.at(name)


def _plain(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


def convention_of(item: Place, context: Context) -> str:
    """Return the convention of a measurement's rate, as it or its record states; else empty.

    A record says it by a member that names events or intervals and has the same number; a sweep's rate
    has the convention of the record that knows its run.
    """
    for owner in (item, item.at("config")):
        for name in _STATED:
            if owner.at(name).said:
                return owner.at(name).text
    evidence = item.at("evidence").text
    record = context.cited(evidence) if inside(evidence) else None
    samples = item.at("metrics", "decode_tok_s").elements()
    if record is None or not samples:
        return ""
    rate = samples[0].value
    if record.format == SWEEP:
        return EVENTS if any(same(value.value, rate) for _, value, _ in known_runs(record, context)) else ""
    for name in context.kept(record, _names_of).get(sameness(rate), ()):
        if "interval" in name:
            return INTERVALS
        if "event" in name or name == "published_value_tok_s":
            return EVENTS
    return ""


def _names_of(record: Document) -> dict[tuple[str, object], list[str]]:
    """Return the names of the members that hold each number of a record."""
    found: dict[tuple[str, object], list[str]] = {}
    for name, place in walk(record.root):
        if is_number(place.value):
            found.setdefault(sameness(place.value), []).append(name)
    return found
