"""Readers of attestations: a lab's own for promotions, and in-toto statements, bare or in an envelope."""

import base64
import binascii
from typing import Final

from provstore.evidence.jsonreader import ABSENT, Value, child, read
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.shapes import ANYTHING, LEAF, Each, Many, Shape, leaves
from provstore.graph.documents.values import is_commit, is_sha256, part, parts, selectors, text
from provstore.graph.nodes import Node
from provstore.graph.relations import RelationKind
from provstore.graph.statements import Lineup, Understood

PROMOTION_SCHEMA: Final = "neural.download.promotion-attestation.v1"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPES: Final = ("application/vnd.in-toto+json", "application/vnd.in-toto.")

PROMOTION: Final[Shape] = leaves(
    "schema",
    performance_evidence=leaves("path sha256"),
    identity=Each(LEAF),
    gates=Each(LEAF),
    quality_evidence=Many(leaves("path sha256 supports")),
)
_RESOURCE: Final = leaves(
    "name uri mediaType downloadLocation content", digest=Each(LEAF), annotations=ANYTHING
)
STATEMENT: Final[Shape] = leaves("_type predicateType", subject=Many(_RESOURCE), predicate=ANYTHING)
ENVELOPE: Final[Shape] = leaves("payloadType payload", signatures=Many(leaves("sig keyid cert")))


def is_promotion(value: Value) -> bool:
    """Say whether a document is a promotion attestation."""
    return isinstance(value, dict) and value.get("schema") == PROMOTION_SCHEMA


def is_statement(value: Value) -> bool:
    """Say whether a document is an in-toto statement, or an envelope of one."""
    if not isinstance(value, dict):
        return False
    if value.get("_type") == STATEMENT_TYPE:
        return True
    return text(value, "payloadType").startswith(PAYLOAD_TYPES) and isinstance(value.get("payload"), str)


def read_promotion(value: Value, source: Source) -> Understood:
    """Return what a promotion attestation binds."""
    draft = Draft(source, "promotion-attestation")
    draft.covered(value, PROMOTION)
    document = value if isinstance(value, dict) else {}
    node = draft.subject("attestation", "")
    bound = [("/performance_evidence", part(document, "performance_evidence"), "performance")]
    for place, item in parts(document, "quality_evidence"):
        supports = item.get("supports")
        named = [name for name in supports if isinstance(name, str)] if isinstance(supports, list) else []
        bound.append((place, item, ", ".join(named)))
    for place, item, said in bound:
        draft.cite(node, "binds", item.get("path"), child(place, "path"))
        digest = text(item, "sha256")
        if is_sha256(digest):
            draft.relate(node, "binds", Node("object", digest), child(place, "sha256"), said)
    identity = part(document, "identity")
    for name in ("model_revision", "runtime_revision"):
        if is_commit(identity.get(name)):
            draft.relate(node, "about", Node("commit", text(identity, name)), child("/identity", name), name)
    gates = {f"gate.{name}": found for name, found in selectors(part(document, "gates")).items()}
    draft.lineups.append(Lineup(key=node.key, kind="attestation", selectors={**selectors(identity), **gates}))
    return draft.finish(node)


def read_statement(value: Value, source: Source) -> Understood:
    """Return what an in-toto statement binds; of an envelope only what its payload says.

    A signature is not checked here, and nothing is believed because of one.
    """
    draft = Draft(source, "in-toto")
    document = value if isinstance(value, dict) else {}
    if "_type" in document:
        draft.covered(value, STATEMENT)
    else:
        draft.covered(value, ENVELOPE)
        document = _payload(draft, document)
    node = draft.subject("attestation", "")
    for place, item in parts(document, "subject"):
        _resource(draft, node, "binds", item, place)
    predicate = part(document, "predicate")
    for group in (predicate, part(predicate, "buildDefinition")):
        base = "/predicate" if group is predicate else "/predicate/buildDefinition"
        for name in ("materials", "resolvedDependencies"):
            for place, item in parts(group, name, base):
                _resource(draft, node, "uses", item, place)
    chosen = selectors(document, "predicateType") | selectors(predicate, "result", "verificationResult")
    draft.lineups.append(Lineup(key=node.key, kind="attestation", selectors=chosen))
    return draft.finish(node)


def _payload(draft: Draft, envelope: dict[str, Value]) -> dict[str, Value]:
    """Return the statement inside an envelope; one that cannot be read is left over."""
    try:
        data = base64.b64decode(text(envelope, "payload"), validate=True)
    except (binascii.Error, ValueError):
        draft.left.append("/payload")
        return {}
    inner = read(data).value
    if inner is ABSENT or not isinstance(inner, dict) or inner.get("_type") != STATEMENT_TYPE:
        draft.left.append("/payload")
        return {}
    before = len(draft.left)
    draft.covered(inner, STATEMENT)
    draft.left[before:] = [f"/payload{place}" for place in draft.left[before:]]
    return inner


def _resource(draft: Draft, node: Node, kind: RelationKind, item: dict[str, Value], place: str) -> None:
    digest, name = part(item, "digest"), text(item, "name")
    below = child(place, "digest")
    if is_sha256(digest.get("sha256")):
        draft.relate(node, kind, Node("object", text(digest, "sha256")), child(below, "sha256"), name)
    elif is_sha256(digest.get("blake3")):
        draft.relate(
            node, kind, Node("object", f"blake3:{text(digest, 'blake3')}"), child(below, "blake3"), name
        )
    for name in ("gitCommit", "sha1"):
        if is_commit(digest.get(name)):
            draft.relate(node, kind, Node("commit", text(digest, name)), child(below, name))
    for name in ("uri", "downloadLocation"):
        draft.cite(node, kind, item.get(name), child(place, name))
