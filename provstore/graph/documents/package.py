"""Reader of model packages (``b70-model-package-v1``) and of the catalog of their guides."""

from typing import Final

from provstore.evidence.jsonreader import Value, child
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.shapes import LEAF, Each, Either, Many, Shape, leaves
from provstore.graph.documents.values import number, part, parts, selectors, text
from provstore.graph.nodes import Node
from provstore.graph.statements import Lineup, Measurement, Sample, Understood

FORMAT: Final = "b70-model-package-v1"
GUIDE_FORMAT: Final = "b70-reproduction-guide-catalog-v1"

_METRIC: Final = leaves("value unit label scope evidence metric")
SHAPE: Final[Shape] = leaves(
    "format id name status audience guide clean_host_tested dependencies missing known_limitations",
    library=leaves(
        "model_family publisher variant summary quantization runtime_label operating_systems delivery "
        "modalities use_cases tags published_at benchmark_status",
        featured_metric=_METRIC,
    ),
    contributors=Many(leaves("id name kind profile contribution status validated_effect evidence")),
    performance_profiles=Many(
        leaves("id label metric unit x_metric x_label evidence scope", points=Many(Each(LEAF)))
    ),
    hardware=Each(LEAF),
    model=Each(LEAF),
    runtime=Each(LEAF),
    project_patches=leaves("required items reason"),
    commands=Each(LEAF),
    video_measurements=Many(Each(Either(Each(LEAF)))),
)

GUIDE_SHAPE: Final[Shape] = leaves(
    "format",
    guides=Many(
        leaves(
            "id guide package title classification audience clean_host_tested dependency_links missing",
            components=Each(LEAF),
        )
    ),
)


def is_package(value: Value) -> bool:
    """Say whether a document is a model package."""
    return isinstance(value, dict) and value.get("format") == FORMAT


def is_guide_catalog(value: Value) -> bool:
    """Say whether a document is a catalog of guides."""
    return isinstance(value, dict) and value.get("format") == GUIDE_FORMAT


def read_package(value: Value, source: Source) -> Understood:
    """Return what a package states."""
    draft = Draft(source, "package")
    draft.covered(value, SHAPE)
    document = value if isinstance(value, dict) else {}
    node = draft.subject("package", text(document, "id"))
    draft.cite(node, "guided-by", document.get("guide"), "/guide")
    draft.cite(node, "needs", document.get("dependencies"), "/dependencies")
    draft.cite(node, "needs", part(document, "project_patches").get("items"), "/project_patches/items")
    model, runtime = part(document, "model"), part(document, "runtime")
    hub = draft.hub(text(model, "repository"), text(model, "revision"), "/model/revision")
    if hub is not None:
        draft.relate(node, "pins", hub, "/model/revision")
    draft.cite(node, "has-payload", model.get("manifest"), "/model/manifest")
    if text(runtime, "revision"):
        draft.relate(node, "built-from", Node("commit", text(runtime, "revision")), "/runtime/revision")
    draft.cite(node, "built-from", runtime.get("build"), "/runtime/build")
    image = text(runtime, "image").rpartition("@sha256:")[2]
    if len(image) == 64:
        draft.relate(node, "pins", Node("object", image), "/runtime/image", "container image")
    for place, item in parts(document, "contributors"):
        draft.cite(node, "evidenced-by", item.get("evidence"), child(place, "evidence"))
    chosen = {"packet": text(document, "id"), **selectors(part(document, "hardware"))}
    chosen |= {f"runtime_{name}": found for name, found in selectors(runtime).items()}
    draft.lineups.append(
        Lineup(key=node.key, kind="package", selectors=chosen, status=text(document, "status"))
    )
    _headline(draft, node, document)
    _profiles(draft, node, document)
    return draft.finish(node)


def _headline(draft: Draft, node: Node, document: dict[str, Value]) -> None:
    """Add the value that the package shows, with the file that it is copied from."""
    metric, place = part(part(document, "library"), "featured_metric"), "/library/featured_metric"
    shown = number(metric.get("value"))
    if shown is None:
        return
    made = Node("measurement", f"{node.key}/featured")
    draft.relate(made, "belongs-to", node, place)
    evidence = draft.cite(made, "evidenced-by", metric.get("evidence"), child(place, "evidence"))
    draft.cite(node, "evidenced-by", metric.get("evidence"), child(place, "evidence"))
    unit = text(metric, "unit")
    sample = Sample(
        metric="decode_tok_s" if unit == "tok/s" else "",
        value=shown,
        unit=unit,
        location=child(place, "value"),
    )
    draft.measurements.append(
        Measurement(
            key=made.key,
            state="",
            selectors={"packet": text(document, "id")},
            samples=(sample,),
            said=tuple(filter(None, (text(metric, "label"), text(metric, "scope")))),
            evidence=evidence,
            location=place,
        )
    )


def _profiles(draft: Draft, node: Node, document: dict[str, Value]) -> None:
    for index, (place, item) in enumerate(parts(document, "performance_profiles")):
        made = Node("measurement", f"{node.key}/{text(item, 'id') or f'profile-{index}'}")
        draft.relate(made, "belongs-to", node, place)
        metric, axis = text(item, "metric"), text(item, "x_metric")
        samples = []
        for below, point in parts(item, "points", place):
            shown = number(point.get("value")) or number(point.get("y"))
            if shown is not None:
                x = number(point.get("x"))
                unit = text(item, "unit")
                samples.append(Sample(metric=metric, value=shown, unit=unit, point_x=x, location=below))
        draft.measurements.append(
            Measurement(
                key=made.key,
                state="",
                selectors={"packet": text(document, "id")},
                samples=tuple(samples),
                axis=axis,
                evidence=draft.cite(made, "evidenced-by", item.get("evidence"), child(place, "evidence")),
                location=place,
            )
        )


def read_guide_catalog(value: Value, source: Source) -> Understood:
    """Return what a catalog of guides states."""
    draft = Draft(source, "guide-catalog")
    draft.covered(value, GUIDE_SHAPE)
    document = value if isinstance(value, dict) else {}
    for place, item in parts(document, "guides"):
        guide = Node("guide", text(item, "id"))
        draft.relate(draft.here, "contains", guide, place, text(item, "classification"))
        draft.cite(guide, "described-by", item.get("guide"), child(place, "guide"))
        draft.cite(guide, "described-by", item.get("package"), child(place, "package"))
        draft.cite(guide, "needs", item.get("dependency_links"), child(place, "dependency_links"))
        chosen = selectors(item, "classification", "audience", "clean_host_tested")
        draft.lineups.append(
            Lineup(
                key=guide.key,
                kind="guide",
                selectors=chosen,
                status=text(item, "classification"),
                location=place,
            )
        )
    return draft.finish(draft.here)
