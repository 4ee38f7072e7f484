"""Reader of lab records: a claim with its sources, digests, run directory and leaderboard run.

Records of one lab have many schemas and no common one, so a record is known by what it holds, and its
relations by what the names of its members say: ``vllm_commit`` is a commit, ``bench_sha256`` a digest.
"""

import re
from collections.abc import Iterator
from typing import Final

from provstore.evidence.jsonreader import Value, child
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.record_numbers import measure
from provstore.graph.documents.shapes import LEAF, Each, Many, Shape
from provstore.graph.documents.values import is_commit, is_sha256, number, part, parts, selectors, text
from provstore.graph.nodes import Node
from provstore.graph.statements import Lineup, Understood

_SCHEMA: Final = re.compile(r"record-v[0-9]+$")
_DIGEST_GROUPS: Final = ("sha256", "evidence_sha256")
_REVISIONS: Final = ("target_revision", "draft_revision", "model_revision")
_LINEUP: Final = (
    "model",
    "draft",
    "hardware",
    "kv_cache_dtype",
    "verifier_width",
    "draft_depth",
    "tensor_parallel_size",
    "expert_parallel_size",
    "max_model_len",
    "speculative_method",
)
_FILES: Final = ("portable_sealed_evidence", "portable_model_manifest", "runtime_lock")

_TEXTS: Final = (
    "schema",
    "date",
    "date_local",
    "status",
    "run_root",
    "metric",
    "model",
    "draft",
    "hardware",
    "kv_cache_dtype",
    "layout",
    "verifier_width",
    "draft_depth",
    "record_changed",
    "next_experiment",
)
_TABLES: Final = (
    "source",
    "metric_accounting",
    "record",
    "prior_record",
    "diagnostic_not_promoted",
    "summary",
    "quality",
    "treatment",
    "graph",
    "operational",
    "reproducibility",
    "identity",
    "correctness",
    "infrastructure",
    *_DIGEST_GROUPS,
)

SHAPE: Final[dict[str, Shape]] = {
    **dict.fromkeys(_TEXTS, LEAF),
    **{name: Each(LEAF) for name in _TABLES},
    "artifacts": Many(Each(LEAF)),
    "context_groups": Many(Each(LEAF)),
}
"""Members of a record, wherever they stand at the top; its tables have names of their own."""


def is_record(value: Value) -> bool:
    """Say whether a document is a record: by its schema's name, or as a composition of runs."""
    if not isinstance(value, dict) or not isinstance(value.get("schema"), str):
        return False
    if _SCHEMA.search(text(value, "schema")):
        return isinstance(value.get("record"), dict)
    return any("bench_sha256" in item for _, item in parts(value, "artifacts"))


def read_record(value: Value, source: Source) -> Understood:
    """Return what a record states."""
    draft = Draft(source, "record")
    document = value if isinstance(value, dict) else {}
    record = draft.subject("record", "")
    draft.covered(document, _own_shape(document))
    _runs(draft, record, document)
    _sources(draft, record, document)
    _digests(draft, record, document)
    _submissions(draft, record, document)
    runs = [(text(item, "id"), child(place, "id")) for place, item in submissions(document)]
    measure(draft, record, document, runs)
    draft.date = text(document, "date") or text(document, "date_local") or text(document, "updated_at")
    identity = part(document, "identity")
    draft.lineups.append(
        Lineup(
            key=record.key,
            kind=record.kind,
            selectors=selectors(identity, *_LINEUP) | selectors(document, *_LINEUP),
            status=text(document, "status"),
        )
    )
    return draft.finish(record)


def _own_shape(document: dict[str, Value]) -> Shape:
    """Return the members that this record has besides: submissions, and tables of rates under other names."""
    shape = dict(SHAPE)
    for name, value in document.items():
        rates = value if isinstance(value, dict) else {name: value}
        if _is_submission(value) or any("tok_s" in key for key in rates):
            shape.setdefault(name, Each(LEAF) if isinstance(value, dict) else LEAF)
    return shape


def _is_submission(value: Value) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("id"), str)
        and ("submission_status" in value or "submitted" in value)
    )


def _runs(draft: Draft, record: Node, document: dict[str, Value]) -> None:
    """Tie the record to the run directories that it was measured by, and to those it only mentions."""
    draft.cite(record, "measured-by", document.get("run_root"), "/run_root")
    draft.cite(record, "measured-by", part(document, "record").get("run_root"), "/record/run_root")
    aside = part(document, "diagnostic_not_promoted")
    for path in filter(None, [text(aside, "run_root")]):
        place = "/diagnostic_not_promoted/run_root"
        draft.relate(record, "names", draft.file(path), place, text(aside, "reason"))
    for place, item in parts(document, "artifacts"):
        run = text(item, "path")
        if not run:
            continue
        said = ", ".join(filter(None, (text(item, "role"), text(item, "bench_status"))))
        draft.relate(record, "measured-by", draft.file(run), child(place, "path"), said)
        for name, digest in item.items():
            if isinstance(digest, str) and name.endswith("_sha256") and is_sha256(digest):
                below = child(place, name)
                draft.relate(record, "seals", Node("object", digest), below, name.removesuffix("_sha256"))
                draft.relate(Node("object", digest), "belongs-to", draft.file(run), below)


def _sources(draft: Draft, record: Node, document: dict[str, Value]) -> None:
    """Tie the record to commits, model revisions, bundles and patches."""
    for group in ("source", "identity"):
        for name, value in part(document, group).items():
            place = child(child("", group), name)
            if not isinstance(value, str):
                continue
            if is_commit(value) and name in _REVISIONS:
                draft.relate(record, "uses", Node("commit", value), place, name)
            elif is_commit(value) and (name.endswith(("_commit", "_base"))):
                draft.relate(record, "built-from", Node("commit", value), place, name)
            elif name.endswith(("_bundle", "_patch")):
                draft.relate(record, "restores-from", draft.file(value), place, name)
                digest = part(document, "sha256").get(name)
                if isinstance(digest, str) and is_sha256(digest):
                    draft.relate(draft.file(value), "pins", Node("object", digest), child("/sha256", name))
            elif name.endswith("_sha256") and is_sha256(value):
                draft.relate(record, "pins", Node("object", value), place, name.removesuffix("_sha256"))
    note = part(document, "metric_accounting").get("correction_note")
    draft.cite(record, "cites", note, "/metric_accounting/correction_note")
    for name in _FILES:
        value = part(document, "reproducibility").get(name)
        draft.cite(record, "evidenced-by", value, child("/reproducibility", name))


def _digests(draft: Draft, record: Node, document: dict[str, Value]) -> None:
    """Tie the record to the objects whose digests it states."""
    for group in _DIGEST_GROUPS:
        for name, digest in part(document, group).items():
            if isinstance(digest, str) and is_sha256(digest):
                place = child(child("", group), name)
                draft.relate(record, "seals", Node("object", digest), place, name)
            else:
                draft.left.append(child(child("", group), name))


def submissions(document: dict[str, Value]) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield pointer and value of each member that tells of a run sent to a leaderboard."""
    for name, value in document.items():
        if isinstance(value, dict) and _is_submission(value):
            yield child("", name), value


def _submissions(draft: Draft, record: Node, document: dict[str, Value]) -> None:
    for place, item in submissions(document):
        run = Node("leaderboard-run", text(item, "id"))
        said = text(item, "submission_status") or text(item, "status")
        draft.relate(run, "is-receipt-of", record, child(place, "id"), said)
        draft.cite(record, "submitted-as", item.get("queue_path"), child(place, "queue_path"))
        draft.cite(record, "submitted-as", item.get("response_path"), child(place, "response_path"))
    prior = part(document, "record")
    if text(prior, "prior_approved_id"):
        run = Node("leaderboard-run", text(prior, "prior_approved_id"))
        value = number(prior.get("prior_approved_tok_s")) or "no value"
        draft.relate(record, "compares-to", run, "/record/prior_approved_id", f"prior approved: {value}")
