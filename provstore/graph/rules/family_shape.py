"""Rules for the shape of a family document: its head, its lists, its ids and what they refer to."""

from collections.abc import Iterator
from typing import Final

from provstore.evidence.jsonreader import ABSENT
from provstore.graph.rules.family import LISTS, METRICS, Family, family_of
from provstore.graph.rules.formats import FAMILY
from provstore.graph.rules.places import COMMIT, SLUG, Place, shown
from provstore.graph.rules.rule import Context, Document, Violation, bad, rule, wrong_kind


@rule("family-head", 1, on=FAMILY)
def family_head(document: Document, context: Context) -> Iterator[Violation]:
    """``format`` is that of a family, ``id`` a lowercase hyphenated slug, ``name`` not empty."""
    root = document.root
    if root.at("format").value != FAMILY:
        yield bad(root.at("format"), "the format is not that of a family", FAMILY)
    if not SLUG.fullmatch(root.at("id").text):
        yield bad(root.at("id"), "the id is no lowercase hyphenated slug", "a-slug")
    if not root.at("name").said:
        yield bad(root.at("name"), "the family has no name", "a name")


@rule("container-shape", 2, on=FAMILY)
def container_shape(document: Document, context: Context) -> Iterator[Violation]:
    """Every list of the document is an array, and every element of it an object."""
    lists = [document.root.at(name) for name in (*LISTS, "auxiliary_artifacts")]
    lists += [place.at("quantized_artifacts") for place in document.root.at("weight_revisions").objects()]
    lists += [place.at("series") for place in document.root.at("views").objects()]
    lists += [place.at("points") for place in document.root.at("series_measurements").objects()]
    for place in lists:
        if not place.given:
            continue
        if not isinstance(place.value, list):
            yield wrong_kind(place, "array")
        yield from (
            wrong_kind(item, "object") for item in place.elements() if not isinstance(item.value, dict)
        )


_SLUGGED: Final = ("artifact", "view", "coverage view or contract")


def _spaces(family: Family) -> dict[str, list[Place]]:
    """Return every space of ids: two items of one space never share an id."""
    spaces = {
        "revision or variant": [*family.revisions, *family.variants, *family.auxiliaries],
        "artifact": [item for item, _ in family.artifacts],
        "measurement or estimate": [*family.measurements, *family.estimates],
        "packet": family.packets,
        "view": family.views,
        "coverage view or contract": [*family.coverage, *family.contracts],
    }
    for contract in family.contracts:
        spaces[f"rule of {shown(contract.at('id').value)}"] = contract.at("rules").objects()
    return spaces


@rule("id-shape", 3, 4, 5, 12, 20, 21, 23, 30, on=FAMILY)
def id_shape(document: Document, context: Context) -> Iterator[Violation]:
    """What others refer to has an id; ids of artifacts, views, coverage and its rules are slugs."""
    for space, items in _spaces(family_of(document, context)).items():
        slugged = space in _SLUGGED or space.startswith("rule of")
        for item in items:
            id = item.at("id")
            if not id.text or (slugged and not SLUG.fullmatch(id.text)):
                wanted = "a lowercase hyphenated slug" if slugged else "a non-empty string"
                yield bad(id, f"the id of a {space} must be {wanted}", wanted)


@rule("duplicate-id", 3, 4, 5, 12, 20, 21, 23, on=FAMILY)
def duplicate_id(document: Document, context: Context) -> Iterator[Violation]:
    """No two things of one kind share an id: revisions with variants, measurements with estimates."""
    for space, items in _spaces(family_of(document, context)).items():
        seen: dict[str, str] = {}
        for item in items:
            id = item.at("id").text
            if id in seen:
                yield bad(item.at("id"), f"{seen[id]} has this id already ({space})", "an id of its own")
            elif id:
                seen[id] = item.pointer


@rule("folded-id", on=FAMILY, severity="warn")
def folded_id(document: Document, context: Context) -> Iterator[Violation]:
    """No two ids of one kind differ in upper and lower case only."""
    for space, items in _spaces(family_of(document, context)).items():
        seen: dict[str, str] = {}
        for item in items:
            id = item.at("id").text
            other = seen.setdefault(id.casefold(), id)
            if id and other != id:
                yield bad(item.at("id"), f"differs from the {space} {other} in case only", "a distinct id")


def _references(family: Family) -> Iterator[tuple[str, Place]]:
    """Yield every member that names something of the family, with the kind of what it names."""
    for owner in (*family.measurements, *family.packets):
        yield "revision", owner.at("revision")
        yield "artifact", owner.at("artifact_id")
    for packet in family.packets:
        yield "auxiliary", packet.at("draft_revision")
        yield "measurement", packet.at("featured_metric", "measurement_id")
    for featured in family.root.at("featured_results").objects():
        yield "measurement", featured.at("measurement_id")
    for estimate in family.estimates:
        yield from (("measurement", item) for item in estimate.at("basis_measurement_ids").elements())
        yield "revision", estimate.at("selectors", "revision")
        yield "artifact", estimate.at("selectors", "artifact_id")
    for view in family.views:
        for series in view.at("series").objects():
            yield from (("measurement", item) for item in series.at("measurement_ids").elements())
    yield from (("view", item) for item in family.root.at("initial_view_ids").elements())
    yield from _coverage_references(family)


def _coverage_references(family: Family) -> Iterator[tuple[str, Place]]:
    for view in (*family.coverage, *family.contracts):
        yield "revision", view.at("fixed_selectors", "revision")
        yield "artifact", view.at("fixed_selectors", "artifact_id")
        cells = [place for _, place in view.at("cells").members()] + view.at("rules").objects()
        for cell in cells:
            yield "measurement", cell.at("evidence_id")
            yield "estimate", cell.at("estimate_id")
            yield "packet", cell.at("packet_id")
            yield "artifact", cell.at("selectors", "artifact_id")
    for closure in family.closures:
        for key, what in (("revision", "revision"), ("artifact_id", "artifact"), ("packet", "packet")):
            place = closure.at("selectors", key)
            yield from ((what, item) for item in (place.elements() or [place]))


@rule("unresolved-reference", 7, 8, 12, 18, 19, 20, 21, 22, 25, 31, on=FAMILY)
def unresolved_reference(document: Document, context: Context) -> Iterator[Violation]:
    """Every reference to a revision, artifact, draft, measurement, estimate, packet or view resolves."""
    family = family_of(document, context)
    for what, place in _references(family):
        if place.given and family.find(what, place.value) is None:
            yield bad(place, f"no {what} of the family has this id", f"an id of {what}")
    for owner in (*family.measurements, *family.packets):
        if not owner.at("revision").given:
            yield bad(owner.at("revision"), "it names no revision", "the id of a revision")


@rule("artifact-shape", 4, on=FAMILY)
def artifact_shape(document: Document, context: Context) -> Iterator[Violation]:
    """An artifact has label, quantization, repository, evidence, and a revision or why it has none."""
    for item, _ in family_of(document, context).artifacts:
        for name in ("label", "quantization", "repository", "evidence"):
            if not item.at(name).said:
                yield bad(item.at(name), f"an artifact needs {name}", "a non-empty string")
        yield from _pinned(item)
        origin = item.at("quantization_origin")
        if origin.given and origin.value not in ("export", "runtime"):
            yield bad(origin, "quantization comes from an export or from the runtime", "export or runtime")


def _pinned(item: Place) -> Iterator[Violation]:
    revision = item.at("revision")
    if revision.given and not revision.said:
        yield bad(revision, "the revision is empty", "a revision")
    if not revision.given and not item.at("revision_status").said:
        yield bad(revision, "it has neither revision nor revision_status", "revision or revision_status")


@rule("auxiliary-shape", on=FAMILY)
def auxiliary_shape(document: Document, context: Context) -> Iterator[Violation]:
    """An auxiliary artifact has label, role, repository and a full commit, or says why it is not pinned."""
    for item in family_of(document, context).auxiliaries:
        for name in ("id", "label", "role", "repository"):
            if not item.at(name).said:
                yield bad(item.at(name), f"an auxiliary artifact needs {name}", "a non-empty string")
        revision = item.at("revision")
        if revision.said and not COMMIT.fullmatch(revision.text):
            yield bad(revision, "the revision is no full commit", "40 hex digits")
        yield from _pinned(item)


@rule("revision-pin", on=FAMILY, severity="warn")
def revision_pin(document: Document, context: Context) -> Iterator[Violation]:
    """A weight revision without artifacts names its repository and a full commit of it."""
    family = family_of(document, context)
    for revision in family.revisions:
        if family.bound(revision.at("id").value):
            continue
        if not revision.at("repository").said:
            yield bad(
                revision.at("repository"), "weights without a repository cannot be fetched", "a repository"
            )
        if not COMMIT.fullmatch(revision.at("revision").text):
            yield bad(revision.at("revision"), "weights are not pinned to a full commit", "40 hex digits")


@rule("primary-packet", 17, on=FAMILY)
def primary_packet(document: Document, context: Context) -> Iterator[Violation]:
    """``primary_packet_id`` names a packet of the family; a family without packets has none."""
    family = family_of(document, context)
    primary = document.root.at("primary_packet_id")
    if family.packets and family.find("packet", primary.value) is None:
        yield bad(primary, "it names no packet of the family", "the id of a packet")
    if not family.packets and primary.value is not ABSENT and primary.value is not None:
        yield bad(primary, "the family has no packets", "absent")


@rule("initial-views", 22, on=FAMILY)
def initial_views(document: Document, context: Context) -> Iterator[Violation]:
    """``initial_view_ids`` is a list of ids, each once."""
    place = document.root.at("initial_view_ids")
    if not place.given:
        return
    if not isinstance(place.value, list) or not place.value:
        yield bad(place, "it must list at least one view", "a list of ids")
    seen: set[str] = set()
    for item in place.elements():
        if not item.text or item.text in seen:
            yield bad(item, "each view is named once, by its id", "an id that was not named before")
        seen.add(item.text)


@rule("artifact-binding", 8, 12, 20, 23, 31, on=FAMILY)
def artifact_binding(document: Document, context: Context) -> Iterator[Violation]:
    """Under a revision with artifacts, everything names one of them, with its quantization."""
    family = family_of(document, context)
    for owner in (*family.measurements, *family.packets):
        yield from bound_artifact(family, owner, owner, needs_quantization=True)
    for owner in (*family.estimates, *family.closures):
        yield from bound_artifact(family, owner.at("selectors"), owner)
    for view in family.coverage:
        for _, axis in (("row", view.at("row_axis")), ("column", view.at("column_axis"))):
            if axis.at("key").value != "artifact_id":
                continue
            values = view.at("rows" if axis.pointer.endswith("row_axis") else "columns")
            for item in values.elements():
                if family.find("artifact", item.value) is None:
                    yield bad(item, "no artifact of the family has this id", "the id of an artifact")


def bound_artifact(
    family: Family, place: Place, owner: Place, *, needs_quantization: bool = False
) -> Iterator[Violation]:
    """Yield what is wrong with the artifact that a set of members names, or does not name.

    Args:
        family: the family.
        place: object with ``revision``, ``artifact_id`` and ``quantization`` (or ``variant``).
        owner: what to point to when a member is absent.
        needs_quantization: the quantization has to be repeated.
    """
    revision, artifact = place.at("revision").value, place.at("artifact_id")
    if isinstance(revision, list):
        return
    if not artifact.given:
        if family.bound(revision):
            message = f"revision {shown(revision)} has artifacts, and none is named"
            yield Violation(artifact.pointer or owner.pointer, message, "the id of an artifact", "absent")
        return
    known = family.find("artifact", artifact.value)
    if known is None:
        return
    if isinstance(revision, str) and family.owner(artifact.text) != revision:
        yield bad(artifact, f"it belongs to revision {family.owner(artifact.text)}", f"one of {revision}")
    wanted = known.at("quantization")
    for name in ("quantization",) if needs_quantization else ("quantization", "variant"):
        said = place.at(name)
        if (said.given or needs_quantization) and said.value != wanted.value:
            yield bad(said, f"artifact {artifact.text} has another quantization", shown(wanted.value))


def metric_unit(metric: str) -> str:
    """Return the unit of a metric of the format; empty for any other name."""
    return METRICS.get(metric, "")
