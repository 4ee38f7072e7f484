"""Notes of our own (``provstore/note/v1``): corrections, withdrawals, quarantine, supersession.

A note changes nothing. It is imported like any other document, states relations, and lists changes of values
that an export may carry out.
"""

from typing import Final, NamedTuple

from provstore.errors import UsageError
from provstore.evidence.jsonreader import ABSENT, Absent, Value
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.shapes import ANYTHING, Many, Shape, leaves
from provstore.graph.documents.values import is_sha256, parts, text, texts
from provstore.graph.nodes import Node, parse_node
from provstore.graph.relations import UNDOING, RelationKind
from provstore.graph.statements import Understood

FORMAT: Final = "provstore/note/v1"

SHAPE: Final[Shape] = leaves(
    "format id date author kind target by reason evidence",
    changes=Many({**leaves("document at"), "from": ANYTHING, "to": ANYTHING}),
)


class Correction(NamedTuple):
    """One value that a note corrects.

    Attributes:
        document: node or ref of the document, as the note writes it.
        at: JSON pointer of the value.
        before: what the note takes to stand there, or :data:`~provstore.evidence.jsonreader.ABSENT`.
        after: what has to stand there.
        location: pointer in the note.
    """

    document: str
    at: str
    before: Value | Absent
    after: Value | Absent
    location: str


def is_note(value: Value) -> bool:
    """Say whether a document is a note of ours."""
    return isinstance(value, dict) and value.get("format") == FORMAT


def read_note(value: Value, source: Source) -> Understood:
    """Return what a note undoes, and why."""
    draft = Draft(source, "note")
    draft.covered(value, SHAPE)
    document = value if isinstance(value, dict) else {}
    node = draft.subject("note", text(document, "id"))
    reason = text(document, "reason")
    kind = _kind(text(document, "kind"))
    if kind is None:
        draft.left += ["/kind"] if "kind" in document else []
    else:
        by = target(draft, text(document, "by")) if text(document, "by") else None
        many = isinstance(document.get("target"), list)
        for index, written in enumerate(texts(document.get("target"))):
            found, place = target(draft, written), f"/target/{index}" if many else "/target"
            if found is None:
                draft.left.append(place)
                continue
            draft.relate(node, kind, found, place, reason)
            if by is not None:
                draft.relate(by, kind, found, place, reason)
    for index, written in enumerate(texts(document.get("evidence"))):
        found = target(draft, written)
        if found is not None:
            draft.relate(node, "evidenced-by", found, f"/evidence/{index}")
    for change in corrections(document):
        found = target(draft, change.document)
        if found is not None:
            draft.relate(node, "corrects", found, change.location, f"{change.at}: {reason}")
    return draft.finish(node)


def _kind(written: str) -> RelationKind | None:
    return next((kind for kind in UNDOING if kind == written), None)


def target(draft: Draft, written: str) -> Node | None:
    """Return the node that a note names: ``KIND:KEY``, a digest, ``NAME/PATH`` of a document, an address."""
    try:
        return parse_node(written)
    except UsageError:
        algorithm, _, hex = written.partition(":")
        if algorithm in ("sha256", "blake3") and is_sha256(hex):
            return Node("object", hex if algorithm == "sha256" else written)
        name, slash, path = written.partition("/")
        if "://" in written:
            return draft.file(written)
        return Node("path", f"{name}:{path}") if slash and name and path else None


def corrections(document: dict[str, Value]) -> list[Correction]:
    """Return the values that a note corrects, in its order."""
    return [
        Correction(
            document=text(item, "document"),
            at=text(item, "at"),
            before=item.get("from", ABSENT),
            after=item.get("to", ABSENT),
            location=place,
        )
        for place, item in parts(document, "changes")
        if "to" in item and text(item, "document")
    ]
