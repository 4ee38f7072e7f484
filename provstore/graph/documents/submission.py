"""Readers of what was prepared for a leaderboard (a queue) and of what came back (a receipt)."""

import re
from typing import Final

from provstore.evidence.jsonreader import Value, child
from provstore.graph.documents import naming
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.shapes import LEAF, Each, Either, Many, Shape, leaves
from provstore.graph.documents.values import is_commit, is_sha256, number, part, scalar, selectors, text
from provstore.graph.nodes import Node
from provstore.graph.statements import Measurement, Sample, Scalar, Understood

QUEUE: Final[Shape] = Many(
    leaves(
        "label",
        payload=leaves(
            "hfId modelRevision engineName engineVersion backend quantization contextLength batchSize "
            "promptTokens outputTokens tokSOut tokSTotal ttftMs prefillTokS notes",
            hardware=Each(LEAF),
            engineFlags=Each(LEAF),
        ),
    )
)

RECEIPT: Final[Shape] = leaves(
    "schema submitted_at endpoint http_status payload_path public_hardware_normalization_caveat",
    response=Each(LEAF),
    public_verification=Each(Either(Each(LEAF))),
)

_NUMBERS: Final = {
    "tokSOut": ("decode_tok_s", "tok/s"),
    "tokSTotal": ("total_tok_s", "tok/s"),
    "ttftMs": ("ttft_ms", "ms"),
    "prefillTokS": ("prefill_tok_s", "tok/s"),
}
_RENAMED: Final = {
    "contextLength": "configured_max_context_tokens",
    "promptTokens": "prompt_tokens",
    "outputTokens": "output_tokens",
    "batchSize": "batch_size",
    "engineName": "engine",
    "engineVersion": "runtime",
    "quantization": "quantization",
    "backend": "backend",
}
_FLAGS: Final = {
    "tensorParallelSize": "tp",
    "expertParallelSize": "ep",
    "kvCacheDtype": "kv",
    "specMethod": "speculative_method",
    "specNumTokens": "draft_depth",
    "targetVerifierWidth": "verifier_width",
    "graphMode": "graph",
    "xpuGraph": "device_graph",
}
_PATH: Final = re.compile(r"/?[\w.+@-]+(/[\w.+@-]+)+")


def is_queue(value: Value) -> bool:
    """Say whether a document is a queue: a list of labelled payloads."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(item, dict) and "label" in item and isinstance(item.get("payload"), dict)
            for item in value
        )
    )


def is_receipt(value: Value) -> bool:
    """Say whether a document is a receipt: a response, and the payload it answers."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("response"), dict)
        and "payload_path" in value
        and "endpoint" in value
    )


def read_queue(value: Value, source: Source) -> Understood:
    """Return what a queue states."""
    draft = Draft(source, "queue")
    draft.covered(value, QUEUE)
    node = draft.subject("queue", "")
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            _payload(
                draft, node, part(item, "payload"), f"/{index}/payload", text(item, "label") or str(index)
            )
    return draft.finish(node)


def _payload(draft: Draft, node: Node, payload: dict[str, Value], place: str, label: str) -> None:
    hub = draft.hub(text(payload, "hfId"), text(payload, "modelRevision"), child(place, "modelRevision"))
    if hub is not None:
        draft.relate(node, "pins", hub, child(place, "modelRevision"))
    flags = part(payload, "engineFlags")
    _flags(draft, node, flags, child(place, "engineFlags"))
    made = Node("measurement", f"{node.key}/{label}")
    draft.relate(made, "belongs-to", node, place)
    chosen: dict[str, Scalar] = {}
    for table, names in ((payload, _RENAMED), (flags, _FLAGS)):
        for name, dimension in names.items():
            found = scalar(table.get(name))
            if found is not None:
                chosen[dimension] = found
    cards = scalar(part(payload, "hardware").get("gpuCount"))
    chosen |= {} if cards is None else {"cards": cards}
    samples = [
        Sample(metric=metric, value=shown, unit=unit, location=child(place, name))
        for name, (metric, unit) in _NUMBERS.items()
        if (shown := number(payload.get(name))) is not None
    ]
    draft.measurements.append(
        Measurement(key=made.key, state="", selectors=chosen, samples=tuple(samples), location=place)
    )


def _flags(draft: Draft, node: Node, flags: dict[str, Value], place: str) -> None:
    """Tie a queue to what its flags name: commits, digests, models, files, an earlier run."""
    for name, value in flags.items():
        below = child(place, name)
        if not isinstance(value, str):
            continue
        if name.endswith("RecordId"):
            draft.relate(node, "compares-to", Node("leaderboard-run", value), below, name)
        elif name.endswith("Commit") and is_commit(value):
            draft.relate(node, "built-from", Node("commit", value), below, name)
        elif name.endswith("Sha256") and is_sha256(value):
            draft.relate(node, "pins", Node("object", value), below, name)
        elif name.endswith(("Json", "Txt", "Log", "Packet", "Path", "Suite")) and _PATH.fullmatch(value):
            draft.relate(node, "evidenced-by", draft.file(value), below, name)
    hub = draft.hub(
        text(flags, "draftModel"), text(flags, "draftModelRevision"), child(place, "draftModelRevision")
    )
    if hub is not None:
        draft.relate(node, "pins", hub, child(place, "draftModelRevision"), "draft model")


def read_receipt(value: Value, source: Source) -> Understood:
    """Return what a receipt states."""
    draft = Draft(source, "receipt")
    draft.covered(value, RECEIPT)
    document = value if isinstance(value, dict) else {}
    node = draft.subject("receipt", "")
    draft.cite(node, "answers", document.get("payload_path"), "/payload_path")
    draft.cite(node, "observed-at", document.get("endpoint"), "/endpoint")
    response = part(document, "response")
    run = Node("leaderboard-run", text(response, "id"))
    draft.relate(node, "observed-at", run, "/response/id", text(response, "status"))
    public, place = part(document, "public_verification"), "/public_verification"
    hub = draft.hub(text(public, "model"), text(public, "model_revision"), child(place, "model_revision"))
    if hub is not None:
        draft.relate(node, "about", hub, child(place, "model_revision"))
    samples = [
        Sample(
            metric="decode_tok_s" if name == "tok_s_out" else name,
            value=shown,
            unit=naming.unit(name),
            location=child(place, name),
        )
        for name, found in public.items()
        if naming.unit(name) == "tok/s" and (shown := number(found)) is not None
    ]
    if samples:
        made = Node("measurement", f"{node.key}/public")
        draft.relate(made, "belongs-to", node, place)
        draft.relate(made, "observed-at", Node("leaderboard-run", text(public, "id")), child(place, "id"))
        draft.measurements.append(
            Measurement(
                key=made.key,
                state=text(public, "status"),
                selectors=_public(public),
                samples=tuple(samples),
                location=place,
            )
        )
    return draft.finish(node)


def _public(public: dict[str, Value]) -> dict[str, Scalar]:
    renamed = {"gpu_count": "cards", "tensor_parallel": "tp", "spec_num_tokens": "draft_depth"}
    names = ("engine", "quantization", "spec_method", *renamed)
    return {renamed.get(name, name): value for name, value in selectors(public, *names).items()}
