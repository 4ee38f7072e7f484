"""Numbers of records, each with the convention that the record's own structure gives it."""

from collections.abc import Iterator
from typing import Final

from provstore.evidence.jsonreader import Absent, Value, child
from provstore.graph.documents.draft import Draft
from provstore.graph.documents.naming import (
    CONVENTIONAL,
    LEGACY,
    by_ratio,
    close,
    counted,
    exact,
    shipped,
    unit,
)
from provstore.graph.documents.values import number, part, parts, selectors, text
from provstore.graph.nodes import Node
from provstore.graph.statements import Measurement, Sample

RATE: Final = "decode_tok_s"
"""Name of the metric that is counted over the window of the first tokens."""

_APART: Final = ("metric_accounting", "context_groups")
"""Members that are read by themselves."""


def measure(draft: Draft, record: Node, document: dict[str, Value], own_runs: list[tuple[str, str]]) -> None:
    """Add a measurement for each convention and group of numbers of a record.

    Args:
        draft: receives them.
        record: node of the record.
        document: the record.
        own_runs: leaderboard runs that show the published value, each with its place.
    """
    found = [*_accounting(document), *_named(document), *_context(document), *_groups(document)]
    for name, convention, samples, location, chosen in found:
        if not samples:
            continue
        node = Node("measurement", f"{record.key}/{name}")
        draft.relate(node, "belongs-to", record, location)
        for run, place in own_runs if name == "published" else ():
            draft.relate(node, "observed-at", Node("leaderboard-run", run), place)
        if name == "prior-approved":
            prior = text(part(document, "record"), "prior_approved_id")
            draft.relate(node, "observed-at", Node("leaderboard-run", prior), "/record/prior_approved_id")
        draft.measurements.append(
            Measurement(
                key=node.key,
                state="",
                selectors=chosen,
                samples=tuple(samples),
                convention=convention,
                location=location,
            )
        )


_BOTH: Final = ("published_value_tok_s", "conventional_interval_value_tok_s")

_Found = tuple[str, str, list[Sample], str, dict[str, str | int | bool]]
"""Name, convention, samples, location and selectors of one measurement."""


def _accounting(document: dict[str, Value]) -> Iterator[_Found]:
    """Yield the value of the record in both conventions, where the record counts events and intervals."""
    table, place = part(document, "metric_accounting"), "/metric_accounting"
    published, conventional = (table.get(name) for name in _BOTH)
    events, intervals = table.get("timestamped_events"), table.get("inter_token_intervals")
    first, second = exact(published), exact(conventional)
    if first is None or second is None or type(events) is not int or type(intervals) is not int:
        return
    named = shipped(text(table, "published_convention"))
    if named != LEGACY or not by_ratio(first, second, events, intervals):
        return
    yield "published", LEGACY, _numbers(RATE, _BOTH[0], published, child(place, _BOTH[0])), place, {}
    yield (
        "conventional",
        CONVENTIONAL,
        _numbers(RATE, _BOTH[1], conventional, child(place, _BOTH[1])),
        place,
        {},
    )
    yield from _prior(document, published)


def _prior(document: dict[str, Value], published: Value | Absent) -> Iterator[_Found]:
    """Yield the earlier value that the record subtracts from its own: one difference has one convention."""
    record = part(document, "record")
    own, prior = exact(record.get("value_tok_s")), exact(record.get("prior_approved_tok_s"))
    delta, stated = exact(record.get("delta_vs_approved_tok_s")), exact(published)
    if own is None or prior is None or delta is None or stated is None:
        return
    if own == stated and close(own - prior, delta) and text(record, "prior_approved_id"):
        name, place = "prior_approved_tok_s", "/record/prior_approved_tok_s"
        yield "prior-approved", LEGACY, _numbers(RATE, name, record.get(name), place), place, {}


def _named(document: dict[str, Value]) -> Iterator[_Found]:
    """Yield numbers whose names count their events or intervals, such as ``x_100_event_metric_tok_s``."""
    for group, table in document.items():
        if group in _APART or not isinstance(table, dict):
            continue
        named = {counts[0]: name for name in table if (counts := counted(name)) is not None}
        if len(named) == 2 and not _agree(table, named[LEGACY], named[CONVENTIONAL]):
            continue
        for convention, name in named.items():
            place = child(child("", group), name)
            short = "legacy" if convention == LEGACY else "conventional"
            yield f"{group}-{short}", convention, _numbers(RATE, name, table[name], place), place, {}


def _agree(table: dict[str, Value], legacy: str, conventional: str) -> bool:
    """Say whether two members with counts in their names are one rate under two conventions."""
    first, second = exact(table[legacy]), exact(table[conventional])
    events, intervals = counted(legacy), counted(conventional)
    if first is None or second is None or events is None or intervals is None:
        return False
    return by_ratio(first, second, events[1], intervals[1])


def _context(document: dict[str, Value]) -> Iterator[_Found]:
    """Yield what was measured at each depth of a context sweep; its rate has the convention of its name."""
    for place, item in parts(document, "context_groups"):
        chosen = selectors(item, "prompt_tokens")
        name = f"context-{chosen.get('prompt_tokens', place.rpartition('/')[2])}"
        rest = []
        for field, value in item.items():
            counts, below = counted(field), child(place, field)
            if counts is not None:
                yield f"{name}-rate", counts[0], _numbers(RATE, field, value, below), below, chosen
            elif unit(field):
                rest += _numbers(field, field, value, below)
        yield name, "", rest, place, chosen


def _numbers(metric: str, field: str, value: Value | Absent, place: str) -> list[Sample]:
    """Return a number, or the numbers of a list, as samples."""
    if not isinstance(value, list):
        shown = number(value)
        return [] if shown is None else [Sample(metric=metric, value=shown, unit=unit(field), location=place)]
    found = [(index, number(item)) for index, item in enumerate(value)]
    return [
        Sample(metric=metric, value=shown, unit=unit(field), index=index, location=f"{place}/{index}")
        for index, shown in found
        if shown is not None
    ]


def _groups(document: dict[str, Value]) -> Iterator[_Found]:
    """Yield everything else that has a unit in its name, without a convention."""
    for group, value in document.items():
        place = child("", group)
        if isinstance(value, dict) and group not in _APART:
            samples: list[Sample] = []
            for name, item in value.items():
                if counted(name) is None and unit(name):
                    samples += _numbers(name, name, item, child(place, name))
            yield group, "", samples, place, {}
        elif unit(group):
            yield group, "", _numbers(group, group, value, place), place, {}
