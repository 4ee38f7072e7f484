"""Rules for projections and dimensions: what is said of the space against what was measured in it."""

import re
from collections.abc import Iterator
from typing import Final

from provstore.evidence.jsonreader import ABSENT, Absent, Value
from provstore.graph.rules.cells import all_cells
from provstore.graph.rules.family import Family, family_of, points, stated
from provstore.graph.rules.formats import FAMILY
from provstore.graph.rules.places import Place, is_count, same, sameness, shown
from provstore.graph.rules.rule import ABSENT_EVIDENCE, Context, Document, Violation, bad, rule
from provstore.reports.base import count

_WORD: Final = re.compile(r"[A-Za-z0-9_.]+")
_PLAIN: Final = re.compile(r"[^a-z0-9]+")
_OUTPUT: Final = re.compile(
    r"(\d[\d,]*)[- ](?:generated|output|completion)?[- ]?(?:token[s]?|cap)\b", re.IGNORECASE
)
_PROMPTS: Final = re.compile(
    r"(?<![\d.])(\d+)[- ](?:unique |cold |fixed |different )*prompts?\b", re.IGNORECASE
)


@rule("projection-identity", on=FAMILY)
def projection_identity(document: Document, context: Context) -> Iterator[Violation]:
    """A projection is made for the quantization and runtime of its packet.

    Else no ratio to it means anything.
    """
    family = family_of(document, context)
    for packet in family.packets:
        quant, runtime = packet.at("projection", "quant"), packet.at("projection", "runtime")
        told = _quantizations(family, packet)
        known = {word.casefold() for text in told for word in _WORD.findall(text)}
        strange = [word for word in _WORD.findall(quant.text) if word.casefold() not in known]
        if strange:
            message = f"{', '.join(strange)}: no quantization of the packet is called so"
            yield bad(quant, message[:400], "; ".join(told)[:160])
        if (
            runtime.said
            and packet.at("runtime").said
            and _plain(runtime.text) not in _plain(packet.at("runtime").text)
        ):
            yield bad(runtime, "the packet has another runtime", packet.at("runtime").text[:160])


def _plain(text: str) -> str:
    return _PLAIN.sub("", text.casefold())


def _quantizations(family: Family, packet: Place) -> list[str]:
    """Return what a packet's quantization is called: by its artifact alone, if it has one."""
    artifact = family.find("artifact", packet.at("artifact_id").value)
    if artifact is not None:
        return [artifact.at("quantization").text]
    dimensions = [
        item.text
        for name, place in family.root.at("dimensions").members()
        if name.endswith("quantization") and not name.startswith("draft")
        for item in place.elements()
    ]
    return [packet.at("quantization").text, *dimensions]


@rule("projection-workload", on=FAMILY)
def projection_workload(document: Document, context: Context) -> Iterator[Violation]:
    """A projection is made for a workload that was measured for its packet.

    Else no ratio to it means anything.
    """
    family = family_of(document, context)
    for packet in family.packets:
        place = packet.at("projection")
        prompt, output = place.at("prompt_tokens"), place.at("output_tokens")
        if not is_count(prompt.value) or not is_count(output.value):
            continue
        package = context.cited(packet.at("manifest").text) if packet.at("manifest").said else None
        known = _evidence(packet) | (
            {package.root.at("library", "featured_metric", "evidence").text} if package else set()
        )
        runs = [item for item in family.measurements if _of_packet(item, packet, known - {""})]
        if any(_measured(item, prompt.value, output.value) for item in runs):
            continue
        otherwise = [
            words for item in runs for words in (_otherwise(item, prompt.value, output.value),) if words
        ]
        wanted = f"prompt {shown(prompt.value)}, output {shown(output.value)}"
        if otherwise:
            message = f"of {count(len(runs), 'measurement')} none has this workload: {'; '.join(otherwise)}"
            yield Violation(place.pointer, message[:400], "a measured workload", wanted)
        else:
            message = f"{count(len(runs), 'measurement')} known to be of this packet; none says what was run"
            asked = "prompt_tokens and output_tokens"
            yield Violation(place.pointer, message, asked, wanted, ABSENT_EVIDENCE, "unknown")


def _of_packet(item: Place, packet: Place, cited: set[str]) -> bool:
    """Say whether a measurement is of a packet: same revision and artifact, and its runtime or evidence."""
    mine, its = packet.at("runtime").text, item.at("runtime").text
    fits = its == mine or its.startswith(mine + " ") or item.at("evidence").text in cited
    return (
        fits
        and same(item.at("revision").value, packet.at("revision").value)
        and item.at("artifact_id").value == packet.at("artifact_id").value
    )


def _evidence(owner: Place) -> set[str]:
    headline = owner.at("featured_metric", "evidence").text
    return {owner.at("evidence").text, owner.at("manifest").text, headline} - {""}


def _measured(item: Place, prompt: Value | Absent, output: Value | Absent) -> bool:
    on_axis = item.at("axis").value == "prompt_tokens"
    prompts = [p.at("x").value for p in points(item)] if on_axis else [stated(item, "prompt_tokens")]
    outputs = [stated(item, name) for name in ("output_tokens", "max_tokens")]
    return any(same(p, prompt) for p in prompts) and any(same(o, output) for o in outputs)


def _otherwise(item: Place, prompt: Value | Absent, output: Value | Absent) -> str:
    """Return how a measurement's workload differs from a projection's; empty when it does not say."""
    id = shown(item.at("id").value)
    if item.at("axis").value == "prompt_tokens":
        xs = [p.at("x").value for p in points(item)]
        if xs and not any(same(x, prompt) for x in xs):
            return f"{id} has prompts of {', '.join(shown(x) for x in xs[:8])}"
    said = stated(item, "prompt_tokens")
    if said is not ABSENT and not same(said, prompt):
        return f"{id} has prompts of {shown(said)}"
    for name in ("output_tokens", "max_tokens"):
        said = stated(item, name)
        if said is not ABSENT and not same(said, output):
            return f"{id} has {name} {shown(said)}"
    text = item.at("workload").text
    lengths = {found.replace(",", "") for found in _OUTPUT.findall(text[:4000])}
    if lengths and shown(output) not in lengths:
        return f"{id} says {', '.join(sorted(lengths))} tokens"
    prompts = {int(found) for found in _PROMPTS.findall(text[:4000]) if len(found) < 9}
    return f"{id} says {max(prompts)} prompts" if prompts and max(prompts) > 1 else ""


_SAME: Final = {"weight_revision": "revision"}
"""Dimensions that measurements state under another name."""


@rule("dimension-mismatch", on=FAMILY, severity="warn")
def dimension_mismatch(document: Document, context: Context) -> Iterator[Violation]:
    """A value that a measurement states for a declared dimension is among those that the dimension lists."""
    family = family_of(document, context)
    for name, place in document.root.at("dimensions").members():
        listed = [item.value for item in place.elements()]
        strange: dict[str, list[str]] = {}
        for item in family.measurements:
            key = _SAME.get(name, name)
            said = stated(item, key)
            values = [p.at("x").value for p in points(item)] if item.at("axis").value == key else []
            for there in [*values, *([] if said is ABSENT else [said])]:
                if not any(_covers(one, there) for one in listed):
                    strange.setdefault(shown(there), []).append(shown(item.at("id").value))
        for value, ids in strange.items():
            many = count(len(ids), "measurement")
            message = f"{many} with {value}, which the dimension does not list: {', '.join(ids)}"
            yield Violation(place.pointer, message[:400], value, count(len(listed), "other value"))


def _covers(listed: Value | Absent, value: Value | Absent) -> bool:
    """Say whether a listed value is one, or is the first words of one."""
    if isinstance(listed, str) and isinstance(value, str):
        return value == listed or value.startswith(listed + " ")
    return same(listed, value)


@rule("dimension-unmeasured", on=FAMILY, severity="warn")
def dimension_unmeasured(document: Document, context: Context) -> Iterator[Violation]:
    """Every value that a dimension lists is met in a measurement, a cell, an estimate or a closure."""
    family = family_of(document, context)
    met = _met(family)
    for name, place in document.root.at("dimensions").members():
        there = met.get(_SAME.get(name, name))
        if there is None:
            message = f"nothing states a {shown(name)}, so no value of it can be asked for"
            yield bad(place, message, "a selector")
            continue
        for item in place.elements():
            if sameness(item.value) not in there and not any(_covers(item.value, v) for v in there.values()):
                message = f"no measurement, cell, estimate or closure has this {shown(name)}"
                yield bad(item, message, "a value met")


def _met(family: Family) -> dict[str, dict[tuple[str, object], Value | Absent]]:
    """Return every value that something in a family states for a selector, each once, by selector."""
    met: dict[str, dict[tuple[str, object], Value | Absent]] = {}

    def meet(name: str, value: Value | Absent) -> None:
        met.setdefault(name, {}).setdefault(sameness(value), value)

    for item in family.measurements:
        for name, place in [*item.members(), *item.at("config").members()]:
            meet(name, place.value)
        for point in points(item):
            meet(item.at("axis").text, point.at("x").value)
    for cell in all_cells(family):
        for name, value in cell.selectors.items():
            meet(name, value)
    for owner in (*family.estimates, *family.closures):
        for name, place in owner.at("selectors").members():
            for one in place.elements() or [place]:
                meet(name, one.value)
    for packet in family.packets:
        for name, place in packet.members():
            meet(name, place.value)
    return met
