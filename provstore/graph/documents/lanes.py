"""Reader of coverage registries: every public artifact in one lane, each lane with a family or a reason."""

from typing import Final

from provstore.evidence.jsonreader import Value, child
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.shapes import Many, Shape, leaves
from provstore.graph.documents.values import parts, selectors, text
from provstore.graph.nodes import Node
from provstore.graph.statements import Lineup, Understood

FORMAT: Final = "neural-download-coverage-registry-v1"

SHAPE: Final[Shape] = leaves(
    "format reviewed_at",
    planned_families=Many(leaves("id label reason")),
    lanes=Many(leaves("id disposition family_id reason", artifacts=Many(leaves("kind path")))),
)


def is_lanes(value: Value) -> bool:
    """Say whether a document is a coverage registry."""
    return isinstance(value, dict) and value.get("format") == FORMAT


def read_lanes(value: Value, source: Source) -> Understood:
    """Return which files belong to which family, and which to none, with the reason."""
    draft = Draft(source, "coverage-registry")
    draft.covered(value, SHAPE)
    document = value if isinstance(value, dict) else {}
    for place, lane in parts(document, "lanes"):
        family, said = text(lane, "family_id"), text(lane, "disposition")
        for below, artifact in parts(lane, "artifacts", place):
            if not text(artifact, "path"):
                continue
            target = draft.file(text(artifact, "path"))
            draft.relate(draft.here, "names", target, child(below, "path"), text(artifact, "kind"))
            draft.relate(target, "belongs-to", Node("family", family), child(below, "path"), said)
        key = f"{draft.here.key}#{text(lane, 'id') or place}"
        draft.lineups.append(
            Lineup(
                key=key,
                kind="lane",
                selectors=selectors(lane, "id", "family_id", "reason"),
                status=said,
                location=place,
            )
        )
    return draft.finish(draft.here)
