"""Rules for numbers that stand twice: in data, and again in labels, qualities, reasons and grades."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final, NamedTuple

from provstore.evidence.jsonreader import resolve
from provstore.graph.rules.cells import view_cells
from provstore.graph.rules.citing import inside
from provstore.graph.rules.family import Family, family_of
from provstore.graph.rules.formats import FAMILY, PACKAGE
from provstore.graph.rules.labels import PREFIXES
from provstore.graph.rules.places import Place, decimal, walk
from provstore.graph.rules.prose import Known, Said, fits, label_numbers, numbers_below, numbers_said
from provstore.graph.rules.rule import Context, Document, Violation, missing_evidence, rule

_PROSE: Final = frozenset(
    (
        "basis",
        "benchmark_status",
        "decision_note",
        "fixed",
        "label",
        "quality",
        "quality_scope",
        "reason",
        "scope",
        "subtitle",
        "summary",
        "title",
        "validated_effect",
        "workload",
    )
)
"""Members that people write for people."""


class _Near(NamedTuple):
    """What prose is about.

    Attributes:
        numbers: of the thing itself.
        whole: of the whole document.
        evidence: paths that the thing cites.
        own: a number of something else is worth a look.
    """

    numbers: list[Decimal]
    whole: Known
    evidence: list[str]
    own: bool


@rule("prose-number", on=(FAMILY, PACKAGE), severity="warn")
def prose_number(document: Document, context: Context) -> Iterator[Violation]:
    """A rate, a percentage or a long decimal in prose is a number of the data or of the evidence, rounded."""
    whole = context.kept(document, known_of)
    cited = _of_cells(family_of(document, context)) if document.format == FAMILY else {}
    places = [document.root, *(place for _, place in walk(document.root))]
    for owner in places:
        for name, place in owner.members():
            if name not in _PROSE or not place.text:
                continue
            near = _near(owner, cited.get(owner.pointer), whole)
            if "/cells/" in owner.pointer:
                near.evidence.extend(_of_view(owner, document))
            for said in numbers_said(place.text):
                yield from _judge(said, place, near, context)


def _of_view(cell: Place, document: Document) -> list[str]:
    """Return the path that the view of a cell cites."""
    path = resolve(document.value, f"{cell.pointer.partition('/cells/')[0]}/evidence")
    return [path] if isinstance(path, str) and inside(path) else []


def _of_cells(family: Family) -> dict[str, Place]:
    """Return the measurement that each cell of a view cites, or the point of it, by the cell's pointer."""
    found = {}
    for view in family.coverage:
        for cell in view_cells(view):
            measurement = family.find("measurement", cell.place.at("evidence_id").value)
            if measurement is not None:
                point = family.point(measurement, cell.place.at("point_x").value)
                found[cell.place.pointer] = point if point is not None else measurement
    return found


def known_of(document: Document) -> Known:
    """Return every number of a document."""
    return Known(numbers_below([document.root]))


def _near(owner: Place, cited: Place | None, whole: Known) -> _Near:
    files = owner.at("evidence")
    paths = [item.text for item in (files, *files.elements()) if item.text and inside(item.text)]
    if cited is None:
        return _Near(numbers_below([owner]), whole, paths, False)
    more = cited.at("evidence").text
    return _Near(numbers_below([cited, owner]), whole, [*paths, more] if more else paths, True)


def _judge(said: Said, place: Place, near: _Near, context: Context) -> Iterator[Violation]:
    if any(fits(said, number) for number in near.numbers):
        return
    elsewhere = near.whole.fit(said)
    if elsewhere and not near.own:
        return
    absent = []
    for path in near.evidence:
        record = context.cited(path)
        if record is None:
            absent.append(path)
        elif context.kept(record, known_of).fit(said):
            return
    if elsewhere:
        yield Violation(place.pointer, f"{said.text} is a number of something else in this document",
                        "a number of what it is about", said.text)  # fmt: skip
    elif absent:
        yield missing_evidence(place, absent[0], f"{said.text} was not looked up in it")
    else:
        yield Violation(place.pointer, f"no data says {said.text}", "a number of the data", said.text)


@rule("label-number", 27, on=FAMILY, severity="warn")
def label_number(document: Document, context: Context) -> Iterator[Violation]:
    """A number in the label of a cell that cites a run is a sample of it, as the letter before it says."""
    family = family_of(document, context)
    for view in family.coverage:
        for cell in view_cells(view):
            measurement = family.find("measurement", cell.place.at("evidence_id").value)
            if measurement is None or cell.place.at("point_x").given:
                continue
            label = cell.place.at("label")
            for prefix, said in label_numbers(label.text):
                metrics = [name for name, letter in PREFIXES.items() if letter == prefix]
                samples = [s for name in metrics for s in measurement.at("metrics", name).elements()]
                numbers = [number for s in samples for number in (decimal(s.value),) if number is not None]
                if metrics and not any(fits(said, number) for number in numbers):
                    samples_said = ", ".join(str(number) for number in numbers)[:160] or "no sample"
                    message = f"the measurement has no {metrics[0]} that reads {said.text}"
                    yield Violation(label.pointer, message, samples_said, said.text)
