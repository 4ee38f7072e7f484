"""Layers of a difference: what ran, where it ran, what came out; and the sentence that says which differ."""

from collections.abc import Iterable, Mapping, Set
from typing import Final, Literal

from provstore.errors import IntegrityError, MalformedError, NotFoundError
from provstore.evidence.recognising import LAYERS, Layer, recognise
from provstore.paths import show
from provstore.records.packet import Entry
from provstore.reports import DiffReport, LayerState, MemberChange, MetricChange, UnknownPart
from provstore.verbs.diffing import Side
from provstore.verbs.members import entry_members, single

MOST_NAMES: Final = 256
"""Files of an entry whose names are looked at to learn what it states."""

MOST_PLACES: Final = 3
"""Places that a sentence or a note names, before it counts."""

_NOUNS: Final = {"identity": "inputs", "environment": "environment", "result": "result"}
_DECIDES: Final = ("bench", "oracle")
_MIXED: Final = ("evidence", "document", "file")


def attributable(a: Side, b: Side, report: DiffReport) -> bool:
    """Say whether a difference has anything to attribute: an environment, a result, or inputs with names.

    Two trees of sources have nothing but bytes, and nothing of them needs to be read.
    """
    if report.same:
        return False
    kinds = {entry.kind for side in (a, b) for entry in side.packet.entries if entry.kind not in _MIXED}
    named = any(recognise("evidence", place_of(change)) for change in members_of(report))
    facts = report.environment or report.result
    return bool(named or facts or kinds - {"source-tree", "native", "model"})


def members_of(report: DiffReport) -> tuple[MemberChange, ...]:
    """Return every member that a report names."""
    return (*report.changed, *report.added, *report.removed)


def place_of(change: MemberChange) -> str:
    """Return the shown path of a member inside its packet."""
    return "/".join(part for part in (change.role, change.path) if part)


def stated_layers(side: Side) -> set[Layer]:
    """Return the layers that a side states anything about; large entries are judged by their kind alone."""
    found: set[Layer] = set()
    for entry in side.packet.entries:
        places = [entry.role]
        if entry.tree is not None and entry.kind in _MIXED:
            places = list(_places(side, entry)) if entry.files <= MOST_NAMES else []
        for place in places:
            known = recognise(entry.kind, place)
            found |= {known.layer} if known is not None else set()
        found |= {"identity"} if entry.pins and single(entry) is None and not found else set()
    return found | ({"result"} if side.packet.claims else set())


def _places(side: Side, entry: Entry) -> Iterable[str]:
    try:
        return [show(m.place()) for m in entry_members(side.fetch, entry) if m.node.kind != "directory"]
    except (NotFoundError, IntegrityError, MalformedError):
        return []


def states(
    a: Side, b: Side, report: DiffReport, bare: Mapping[Layer, int], read: Set[Layer]
) -> tuple[LayerState, ...]:
    """Return what is known of each layer.

    Args:
        a: the first side.
        b: the second side.
        report: everything that was found.
        bare: members of each layer that differ in bytes and of which nothing more is said.
        read: layers of the members that differ in bytes and were compared by what they say.
    """
    stated = stated_layers(a) | stated_layers(b)
    found = []
    for layer in LAYERS:
        number = bare.get(layer, 0) + _facts(report, layer)
        number += sum(change.layer == layer for change in report.tokens)
        unknown = [part for part in report.unknown if part.layer == layer]
        measured = layer != "result"
        state: Literal["same", "not-stated"]
        if layer == "result":
            moved = [metric for metric in report.metrics if metric.basis == "recomputed"]
            number += sum(metric.rows_changed > 0 for metric in moved) + len(report.rows)
            measured = bool(moved or report.tokens) or not any(part.reader in _DECIDES for part in unknown)
        if unknown and not (number and measured):
            found.append(LayerState(layer=layer, state="unknown", differences=number))
        elif number:
            found.append(LayerState(layer=layer, state="differs", differences=number))
        else:
            state = "same" if layer in stated else "not-stated"
            found.append(LayerState(layer=layer, state=state, differences=0, by_facts=layer in read))
    return tuple(found)


def _facts(report: DiffReport, layer: Layer) -> int:
    by_layer = {"identity": report.identity, "environment": report.environment, "result": report.result}
    return len(by_layer[layer])


def sentence(report: DiffReport) -> str:
    """Return the difference in one sentence that says which layer differs, and by how much.

    Example:
        >>> states = [LayerState(layer="identity", state="same", differences=0),
        ...     LayerState(layer="environment", state="differs", differences=3),
        ...     LayerState(layer="result", state="same", differences=0)]
        >>> sentence(DiffReport(same=False, sentence="", added=(), removed=(), changed=(), identity=(),
        ...     environment=(), result=(), kept=3, kept_roles=(), layers=tuple(states)))
        'inputs identical, environment differs in 3, result identical'
    """
    return ", ".join(_clause(report, state) for state in report.layers)


def _clause(report: DiffReport, state: LayerState) -> str:
    noun = _NOUNS[state.layer]
    if state.state == "not-stated":
        return f"no {noun} stated"
    if state.state == "same":
        return f"{noun} equal in every fact" if state.by_facts else f"{noun} identical"
    unknown = [part for part in report.unknown if part.layer == state.layer]
    if state.state == "unknown":
        named = next((part for part in unknown if part.reader in _DECIDES), unknown[0])
        differ = f"{state.differences} differ, " if state.differences and state.layer != "result" else ""
        claims = "".join(f", claimed {_moved(m)}" for m in _claims(report)) if state.layer == "result" else ""
        return f"{noun} unknown ({differ}{_place(named)}: {named.reason}){claims}"
    verb = "differ" if state.layer == "identity" else "differs"
    clause = f"{noun} {verb} in {state.differences}"
    if state.layer == "result":
        clause = _result(report, clause)
    if unknown:
        clause += f" ({len(unknown)} unknown)"
    return clause


def _result(report: DiffReport, otherwise: str) -> str:
    metric = primary(report.metrics)
    prompts = len({change.prompt for change in report.tokens if change.layer == "result"})
    tokens = f"tokens differ in {prompts} prompt{'s' * (prompts != 1)}" if prompts else ""
    if metric is not None and metric.rows_changed:
        return f"result {_moved(metric)}" + (f", {tokens}" if tokens else "")
    claims = [f"claimed {_moved(claim)}" for claim in _claims(report)] if metric is None else []
    return ", ".join(part for part in (otherwise, tokens, *claims) if part)


def primary(metrics: tuple[MetricChange, ...]) -> MetricChange | None:
    """Return the recomputed metric that a sentence names: one that is claimed, else the first that moved."""
    found = [metric for metric in metrics if metric.basis == "recomputed"]
    named = [metric for metric in found if metric.name]
    usual = [metric for metric in found if metric.convention == "conventional-intervals"]
    moved = [metric for metric in found if metric.rows_changed]
    return next((metric for metric in (*named, *usual, *moved, *found) if metric.rows_changed), None)


def _claims(report: DiffReport) -> list[MetricChange]:
    return [metric for metric in report.metrics if metric.basis == "claim"][:1]


def _moved(metric: MetricChange) -> str:
    name = ", ".join(part for part in (metric.name, metric.convention) if part)
    rows = ""
    if metric.basis == "recomputed" and float(metric.delta) == 0.0:
        rows = f"; {metric.rows_changed} of {metric.rows} rows moved"
    return f"{percent(metric)} ({name}{rows})"


def percent(metric: MetricChange) -> str:
    """Return the relative difference of a metric with its sign, or the absolute one from zero.

    Example:
        >>> moved = dict(basis="claim", role="", path="", name="", convention="c", unit="tok/s",
        ...     from_="100.0", to="91.9", delta="-8.1")
        >>> percent(MetricChange(percent="-8.1", **moved)), percent(MetricChange(percent="0.002", **moved))
        ('−8.1 %', '+0.002 %')
    """
    if metric.percent is None:
        return f"{float(metric.delta):+.6g} {metric.unit}".replace("-", "\N{MINUS SIGN}")
    value = float(metric.percent)
    if value == 0.0:
        return "±0 %"
    text = f"{value:+.1f}" if abs(value) >= 0.05 else f"{value:+.1g}"
    return f"{text} %".replace("-", "\N{MINUS SIGN}")


def unknown_notes(parts: Iterable[UnknownPart]) -> list[str]:
    """Return a note for each layer and reason, with the places that it holds for."""
    groups: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        groups.setdefault((part.layer, part.reason), []).append(_place(part))
    notes = []
    for (layer, reason), places in groups.items():
        more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
        notes.append(f"{layer} unknown: {', '.join(places[:MOST_PLACES])}{more}: {reason}")
    return notes


def _place(part: UnknownPart) -> str:
    return "/".join(text for text in (part.role, part.path) if text)
