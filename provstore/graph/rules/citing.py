"""Rules for what a document cites: paths that stay inside, files that are there and say what is cited."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from provstore.evidence.jsonreader import ABSENT, Absent, Value
from provstore.graph.rules.family import METRICS, family_of, points, stated
from provstore.graph.rules.family_numbers import is_package
from provstore.graph.rules.formats import FAMILY
from provstore.graph.rules.places import Place, decimal, is_number, same, shown, walk
from provstore.graph.rules.rule import Context, Document, Violation, bad, missing_evidence, rule

_CITING: Final = frozenset(("evidence", "manifest", "model_manifest", "record"))
"""Members whose text is a path, at any depth."""

_ADDRESSES: Final = ("https://", "http://")


def paths(root: Place) -> Iterator[Place]:
    """Yield every member below that cites a file of the repository."""
    for name, place in walk(root):
        if name in _CITING and place.text and not place.text.startswith(_ADDRESSES):
            yield place


def inside(path: str) -> bool:
    """Say whether a path stays inside the repository.

    Example:
        >>> inside("data/a.json"), inside("/data/a.json"), inside("../a"), inside("a//b"), inside("")
        (True, False, False, False, False)
    """
    parts = path.split("/")
    return (
        "" not in parts and "." not in parts and ".." not in parts and "\0" not in path and "\\" not in path
    )


@rule("path-outside", 13, 32, on=FAMILY)
def path_outside(document: Document, context: Context) -> Iterator[Violation]:
    """Every cited path stays inside the repository; every packet has a manifest."""
    for place in paths(document.root):
        if not inside(place.text) or context.files.escapes(place.text):
            yield bad(place, "the path does not stay inside the repository", "a relative path")
    for packet in family_of(document, context).packets:
        if not packet.at("manifest").said:
            yield bad(packet.at("manifest"), "a packet names its manifest", "a path")


@rule("evidence-file", 32, on=FAMILY)
def evidence_file(document: Document, context: Context) -> Iterator[Violation]:
    """Every file that is cited as evidence, manifest or record is there."""
    seen: set[str] = set()
    for place in paths(document.root):
        if not inside(place.text) or place.text in seen:
            continue
        seen.add(place.text)
        yield from not_there(place, context)


def not_there(place: Place, context: Context) -> Iterator[Violation]:
    """Yield what to say of a cited file that is not there: wrong in a whole repository, else unknown."""
    if context.has(place.text):
        return
    if context.files.whole:
        yield bad(place, "the repository has no such file", "an existing file")
    else:
        yield missing_evidence(place, place.text)


@rule("package-id", 14, on=FAMILY)
def package_id(document: Document, context: Context) -> Iterator[Violation]:
    """A packet that a package describes has the id of that package."""
    for packet in family_of(document, context).packets:
        manifest = packet.at("manifest")
        if not is_package(manifest.text) or not inside(manifest.text):
            continue
        package = context.cited(manifest.text)
        if package is None:
            yield missing_evidence(manifest, manifest.text, "the id of the package was not compared")
        elif not same(package.root.at("id").value, packet.at("id").value):
            yield bad(packet.at("id"), f"{manifest.text} has another id", shown(package.root.at("id").value))


_THOUSAND: Final = Decimal(1000)
_MOST: Final = Decimal(10) ** 300


class Numbers:
    """Every number below a place, to look others up in.

    Args:
        root: the place.

    Example:
        >>> from provstore.evidence.jsonreader import Number
        >>> numbers = Numbers(Place("", {"ttft_s": Number("0.25", 0.25), "rows": [3]}))
        >>> numbers.have(3), numbers.have(250), numbers.have(250, milliseconds=True), numbers.have(True)
        (True, False, True, False)
    """

    def __init__(self, root: Place) -> None:
        found = (decimal(place.value) for _, place in walk(root))
        self.exact = {number for number in found if number is not None and abs(number) < _MOST}
        self.nearest = {float(number) for number in self.exact}
        self.thousands = {float(number * _THOUSAND) for number in self.exact}

    def have(self, value: Value | Absent, *, milliseconds: bool = False) -> bool:
        """Say whether a number is among these, or is nearest to the same double as one.

        Args:
            value: the number; anything else is not among them.
            milliseconds: it may be among them in seconds too.
        """
        exact = decimal(value)
        if exact is None or abs(exact) >= _MOST:
            return False
        if exact in self.exact or float(exact) in self.nearest:
            return True
        return milliseconds and float(exact) in self.thousands


@rule("value-not-in-evidence", 28, on=FAMILY)
def value_not_in_evidence(document: Document, context: Context) -> Iterator[Violation]:
    """Every number of a measurement stands in the record that it cites."""
    for item in family_of(document, context).measurements:
        evidence = item.at("evidence")
        if not evidence.said or evidence.text.startswith(_ADDRESSES) or not inside(evidence.text):
            continue
        record = context.cited(evidence.text)
        if record is None:
            yield missing_evidence(evidence, evidence.text, "the numbers were not looked up in it")
            continue
        numbers = context.kept(record, numbers_of)
        for place in _numbers_of(item):
            if not numbers.have(place.value, milliseconds="/ttft_ms" in place.pointer):
                yield bad(place, f"{evidence.text} has no such number", "a number of the record")


def numbers_of(record: Document) -> Numbers:
    """Return every number of a record."""
    return Numbers(record.root)


def _numbers_of(item: Place) -> Iterator[Place]:
    for _, samples in item.at("metrics").members():
        yield from (place for place in samples.elements() if is_number(place.value))
    for point in points(item):
        yield from (place for name, place in point.members() if name in METRICS and is_number(place.value))


@rule("evidence-selector", 28, on=FAMILY)
def evidence_selector(document: Document, context: Context) -> Iterator[Violation]:
    """A selector of a measurement that its record states under the same name has the same value there."""
    for item in family_of(document, context).measurements:
        record = context.cited(item.at("evidence").text) if inside(item.at("evidence").text) else None
        if record is None:
            continue
        for name, place in item.at("config").members():
            there = stated(record.root, name)
            if there is not ABSENT and not _agree(place.value, there):
                yield bad(place, f"{item.at('evidence').text} states another {shown(name)}", shown(there))


def _agree(one: Value | Absent, other: Value | Absent) -> bool:
    """Say whether a selector and a record's member agree; upper and lower case of a word do not count."""
    if isinstance(one, str) and isinstance(other, str):
        return one.casefold() == other.casefold()
    return isinstance(other, dict | list) or same(one, other)


@rule("pin-in-evidence", 28, on=FAMILY)
def pin_in_evidence(document: Document, context: Context) -> Iterator[Violation]:
    """Where the record of a measurement states target and draft revision, they are those of the family."""
    family = family_of(document, context)
    drafts = {draft.at("revision").text for draft in family.auxiliaries}
    for item in family.measurements:
        evidence = item.at("evidence")
        record = context.cited(evidence.text) if inside(evidence.text) else None
        revision = family.find("revision", item.at("revision").value)
        if record is None or revision is None:
            continue
        for name, place in context.kept(record, _pins_of):
            wanted = {revision.at("revision").text} if name == "target_revision" else drafts
            if wanted - {""} and place.text not in wanted:
                yield Violation(item.at("revision").pointer, f"{evidence.text} states another {name}",
                                ", ".join(sorted(wanted)), shown(place.value))  # fmt: skip


def _pins_of(record: Document) -> list[tuple[str, Place]]:
    """Return what a record states of the commits of target and draft."""
    return [(n, place) for n, place in walk(record.root) if n in ("target_revision", "draft_revision")]


@rule("package-in-family", 33, on=FAMILY)
def package_in_family(document: Document, context: Context) -> Iterator[Violation]:
    """No package stands in two families, nor twice in one."""
    mine = [packet.at("manifest") for packet in family_of(document, context).packets]
    for place in mine:
        if not is_package(place.text):
            continue
        owners = [
            other.path
            for other in context.of_format(FAMILY)
            for packet in other.root.at("packets").objects()
            if packet.at("manifest").value == place.value
        ]
        if len(owners) > 1:
            yield bad(place, f"the package stands in {', '.join(owners)}"[:300], "one family")
