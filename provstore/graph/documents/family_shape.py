"""Members of the format ``neural-download-model-family-v1``."""

from typing import Final

from provstore.graph.documents.shapes import LEAF, Each, Either, Many, Shape, leaves

FORMAT: Final = "neural-download-model-family-v1"

UNITS: Final = {
    "decode_tok_s": "tok/s",
    "aggregate_tok_s": "tok/s",
    "prefill_tok_s": "tok/s",
    "ttft_ms": "ms",
    "mean_acceptance_length": "tokens",
    "draft_acceptance_rate": "ratio",
    "effective_tokens_per_verification": "tokens",
}
"""Unit of each metric that the format knows."""

ROW_AXIS: Final = "mtp"
COLUMN_AXIS: Final = "tp"
"""Selectors of a matrix that names no axes."""

CELL: Final = leaves(
    "state label reason evidence_id evidence packet_id estimate_id point_x parent", retry=Each(LEAF)
)
"""Members of a cell, and of what a rule of a contract says about cells."""

_GRADES: Final = Each(leaves("grade scope basis reviewed_at evidence"))

_AXIS: Final = leaves("key label prefix values", value_labels=Each(LEAF))

_REVISION: Final = leaves(
    "id label role repository revision revision_status model_manifest quantization quantization_origin "
    "evidence",
    grades=_GRADES,
)

_BINDING: Final = leaves(
    "role label quality_label metric measurement_id sample_index point_x value unit workload evidence"
)

_MEASUREMENT: Final = leaves(
    "id label state revision artifact_id variant quantization runtime runtime_family model_revision "
    "profile_id measurement_class promotion_status quality_scope workload axis quality evidence",
    config=Each(LEAF),
    identity=Each(LEAF),
    runtime_identity=Either(Each(LEAF)),
    metrics=Each(LEAF),
    points=Many(Each(LEAF)),
    distribution=Each(LEAF),
    sample_annotations=Many(leaves("metric index label value")),
)

_PACKET: Final = leaves(
    "id label revision draft_revision artifact_id variant quantization runtime cards tp status "
    "evidence_level coverage manifest evidence",
    projection=Each(LEAF),
    grades=_GRADES,
    featured_metric=_BINDING,
)

_ESTIMATE: Final = leaves(
    "id state label metric value unit low high generated_at record basis_measurement_ids "
    "not_for_promotion limitations supersedes",
    selectors=Each(LEAF),
    interval=Either(Each(LEAF)),
    engine=Either(leaves("name version snapshot_sha256")),
)

_VIEW: Final = leaves(
    "id title subtitle x_label discrete metrics", series=Many(leaves("label measurement_ids x_from"))
)

_COVERAGE: Final = leaves(
    "id label fixed decision_note evidence rows columns",
    row_axis=_AXIS,
    column_axis=_AXIS,
    fixed_selectors=Each(LEAF),
    cells=Each({**CELL, "selectors": Each(LEAF)}),
)

_CONTRACT: Final = leaves(
    "id label description",
    fixed_selectors=Each(LEAF),
    axes=Many(_AXIS),
    rules=Many({**CELL, "id": LEAF, "match": Each(LEAF)}),
)

SHAPE: Final[Shape] = leaves(
    "format id primary_packet_id name display_name publisher updated_at summary initial_view_ids",
    architecture=Each(LEAF),
    weight_revisions=Many({**_REVISION, "quantized_artifacts": Many(_REVISION)}),
    model_variants=Many(_REVISION),
    auxiliary_artifacts=Many(_REVISION),
    transfer_scope=leaves("status transfers does_not_transfer evidence"),
    model_signals=Each(Each(LEAF)),
    dimensions=Each(LEAF),
    packets=Many(_PACKET),
    run_measurements=Many(_MEASUREMENT),
    series_measurements=Many(_MEASUREMENT),
    featured_results=Many(_BINDING),
    views=Many(_VIEW),
    coverage_views=Many(_COVERAGE),
    coverage_contracts=Many(_CONTRACT),
    family_closures=Many(leaves("id state reason evidence", selectors=Each(LEAF))),
    estimates=Many(_ESTIMATE),
)
"""Every member of a family document."""
