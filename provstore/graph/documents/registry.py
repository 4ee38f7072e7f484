"""Readers of a registry (``local-ai-registry/v1``): recipes, speed sweeps, model instances, hardware."""

from typing import Final

from provstore.evidence.jsonreader import ABSENT, Value, child
from provstore.graph.documents import naming
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.registry_shape import (
    HARDWARE,
    INSTANCE,
    RECIPE,
    ROW_NUMBERS,
    ROW_SELECTORS,
    SCHEMA,
    SWEEP,
    SWEEP_LISTS,
)
from provstore.graph.documents.values import (
    is_commit,
    is_sha256,
    number,
    part,
    parts,
    scalar,
    selectors,
    text,
    texts,
)
from provstore.graph.nodes import Node
from provstore.graph.statements import Lineup, Measurement, Sample, Scalar, Understood

_DIGEST: Final = "sha256:"

RENAMED: Final = {
    "/hardware_count": "cards",
    "/serving/tensor_parallel": "tp",
    "/serving/max_context_tokens": "configured_max_context_tokens",
    "/serving/max_concurrency": "concurrency",
    "/engine/name": "engine",
    "/engine/version": "runtime",
    "/engine/graph_mode": "graph",
    "/model_instance_id": "model_instance",
    "/hardware_id": "hardware",
}
"""Members of a recipe and the dimension that other documents know each by."""


def _is(value: Value, *members: str) -> bool:
    return (
        isinstance(value, dict)
        and value.get("schema_version") == SCHEMA
        and all(name in value for name in members)
    )


def is_recipe(value: Value) -> bool:
    """Say whether a document is a recipe."""
    return _is(value, "recipe_source", "launch")


def is_sweep(value: Value) -> bool:
    """Say whether a document is a speed sweep."""
    return _is(value, "recipe_id", "rows")


def is_instance(value: Value) -> bool:
    """Say whether a document is a model instance."""
    return _is(value, "model_id", "weights")


def is_hardware(value: Value) -> bool:
    """Say whether a document is a kind of hardware."""
    return _is(value, "vendor", "memory")


def read_recipe(value: Value, source: Source) -> Understood:
    """Return what a recipe states."""
    draft = Draft(source, "recipe")
    draft.covered(value, RECIPE)
    return draft.finish(recipe(draft, value if isinstance(value, dict) else {}))


def recipe(draft: Draft, document: dict[str, Value]) -> Node:
    """Write down what a recipe states; return its node."""
    node = draft.subject("recipe", text(document, "id"))
    for name in SWEEP_LISTS:
        for index, id in enumerate(texts(document.get(name))):
            draft.relate(node, "has-sweep", Node("sweep", id), f"/{name}/{index}")
    instance = Node("model-instance", text(document, "model_instance_id"))
    draft.relate(node, "about", instance, "/model_instance_id")
    draft.relate(node, "about", Node("hardware", text(document, "hardware_id")), "/hardware_id")
    launch = part(document, "launch")
    draft.relate(node, "observed-at", Node("leaderboard-run", text(launch, "run_id")), "/launch/run_id")
    draft.cite(node, "observed-at", launch.get("url"), "/launch/url")
    for name in part(document, "metadata"):
        run = Node("leaderboard-run", text(part(part(document, "metadata"), name), "run_id"))
        draft.relate(node, "observed-at", run, child("/metadata", name) + "/run_id")
    digest = text(part(launch, "container"), "digest").removeprefix(_DIGEST)
    if is_sha256(digest):
        draft.relate(node, "pins", Node("object", digest), "/launch/container/digest", "container image")
    if is_commit(launch.get("commit")):
        draft.relate(node, "pins", Node("commit", text(launch, "commit")), "/launch/commit", "launch")
    provenance(draft, node, document)
    draft.lineups.append(
        Lineup(key=node.key, kind="recipe", selectors=_dimensions(document), status=text(document, "status"))
    )
    return node


def _dimensions(document: dict[str, Value]) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for group in ("", "engine", "serving", "capabilities"):
        table = part(document, group) if group else document
        for name in table:
            pointer = f"/{group}/{name}" if group else f"/{name}"
            known = pointer in RENAMED or group in ("serving", "capabilities")
            value = scalar(table[name]) if known else None
            if value is not None:
                found[RENAMED.get(pointer, name)] = value
    return found


def provenance(draft: Draft, node: Node, document: dict[str, Value]) -> None:
    """Tie a node to the addresses that it and its facts were taken from."""
    places = [("/provenance", part(document, "provenance"))]
    for name in part(document, "facts"):
        fact = part(part(document, "facts"), name)
        places.append((child("/facts", name) + "/provenance", part(fact, "provenance")))
    hub = part(part(document, "huggingface"), "provenance")
    places.append(("/huggingface/provenance", hub))
    for place, found in places:
        for below, item in parts(found, "sources", place):
            draft.cite(node, "evidenced-by", item.get("url"), child(below, "url"))


def read_sweep(value: Value, source: Source) -> Understood:
    """Return what a speed sweep states."""
    draft = Draft(source, "sweep")
    draft.covered(value, SWEEP)
    return draft.finish(sweep(draft, value if isinstance(value, dict) else {}))


def sweep(draft: Draft, document: dict[str, Value]) -> Node:
    """Write down what a sweep states; return its node."""
    node = draft.subject("sweep", text(document, "id"))
    draft.relate(node, "about", Node("recipe", text(document, "recipe_id")), "/recipe_id")
    origin = part(document, "source")
    run = leaderboard_run(origin)
    if run is not None:
        draft.relate(node, "observed-at", run, "/source/url")
    evidence = draft.cite(node, "evidenced-by", origin.get("url"), "/source/url")
    if run is None:
        evidence += draft.cite(node, "evidenced-by", origin.get("paths"), "/source/paths")
    if is_commit(origin.get("commit")):
        draft.relate(node, "evidenced-by", Node("commit", text(origin, "commit")), "/source/commit")
    provenance(draft, node, document)
    shared = selectors(document, "recipe_id")
    said = tuple(filter(None, (text(origin, "methodology"), text(part(document, "metrics"), "decode_mode"))))
    for place, row in parts(document, "rows"):
        index = place.rpartition("/")[2]
        chosen = shared | selectors(row, *ROW_SELECTORS) | _context(row, document, run)
        samples = [
            Sample(metric=name, value=shown, unit=naming.unit(name), location=child(place, name))
            for name in ROW_NUMBERS
            if (shown := number(row.get(name))) is not None
        ]
        made = Node("measurement", f"{node.key}/{index}")
        draft.relate(made, "belongs-to", node, place)
        if run is not None:
            draft.relate(made, "observed-at", run, place)
        draft.measurements.append(
            Measurement(
                key=made.key,
                state=text(row, "status"),
                selectors=chosen,
                samples=tuple(samples),
                said=tuple(filter(None, (text(row, "metric_note"), *said))),
                evidence=evidence,
                location=place,
            )
        )
    _summary(draft, node, document, shared)
    return node


def leaderboard_run(origin: dict[str, Value]) -> Node | None:
    """Return the run that a sweep's source names, when that is a leaderboard."""
    address = text(origin, "url").rstrip("/")
    id = address.rpartition("/")[2]
    if text(origin, "kind") != "leaderboard" or "/runs/" not in address or not id:
        return None
    return Node("leaderboard-run", id)


def _context(row: dict[str, Value], document: dict[str, Value], run: Node | None) -> dict[str, Scalar]:
    """Return the context of a row: a leaderboard knows only what was configured, not what was asked."""
    value = scalar(row.get("context_tokens", ABSENT))
    if value is None:
        return {}
    return {"context_tokens" if run is None else "configured_max_context_tokens": value}


def _summary(draft: Draft, node: Node, document: dict[str, Value], shared: dict[str, Scalar]) -> None:
    """Add the figures of the whole sweep."""
    table = part(document, "metrics")
    samples = [
        Sample(metric=name, value=shown, unit=naming.unit(name), location=child("/metrics", name))
        for name, value in table.items()
        if naming.unit(name) and (shown := number(value)) is not None
    ]
    if not samples:
        return
    made = Node("measurement", f"{node.key}/metrics")
    draft.relate(made, "belongs-to", node, "/metrics")
    draft.measurements.append(
        Measurement(
            key=made.key,
            state="",
            selectors=shared | selectors(table, "inference_engine_version", "concurrency"),
            samples=tuple(samples),
            location="/metrics",
        )
    )


def read_instance(value: Value, source: Source) -> Understood:
    """Return what a model instance states."""
    draft = Draft(source, "model-instance")
    draft.covered(value, INSTANCE)
    document = value if isinstance(value, dict) else {}
    node = draft.subject("model-instance", text(document, "id"))
    hub = draft.hub(text(document, "repository"), text(document, "revision"), "/revision")
    if hub is not None:
        draft.relate(node, "pins", hub, "/revision")
    draft.cite(node, "evidenced-by", document.get("url"), "/url")
    provenance(draft, node, document)
    weights = {f"weights_{name}": value for name, value in selectors(part(document, "weights")).items()}
    named = selectors(document, "model_id", "repository", "revision", "served_name", "kind")
    draft.lineups.append(Lineup(key=node.key, kind="model-instance", selectors={**named, **weights}))
    return draft.finish(node)


def read_hardware(value: Value, source: Source) -> Understood:
    """Return what a kind of hardware states."""
    draft = Draft(source, "hardware")
    draft.covered(value, HARDWARE)
    document = value if isinstance(value, dict) else {}
    node = draft.subject("hardware", text(document, "id"))
    for place, item in parts(document, "sources"):
        draft.cite(node, "evidenced-by", item.get("url"), child(place, "url"))
    provenance(draft, node, document)
    named = selectors(document, "vendor", "name", "family", "kind", "accelerator_backend")
    draft.lineups.append(
        Lineup(key=node.key, kind="hardware", selectors={**named, **selectors(part(document, "memory"))})
    )
    return draft.finish(node)
