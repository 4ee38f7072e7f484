"""Members of the formats of ``local-ai-registry/v1``: recipe, speed sweep, model instance, hardware."""

from typing import Final

from provstore.graph.documents.shapes import ANYTHING, LEAF, Each, Either, Many, Shape, leaves

SCHEMA: Final = "local-ai-registry/v1"

SWEEP_LISTS: Final = ("speed_sweep_ids", "speed_sweeps_ids")
"""The list of a recipe's sweeps, as later and as earlier versions of the format spell it."""

LEADERBOARDS: Final = frozenset({"localmaxxing", "mlxfast"})
"""Sources whose recipes are observations of leaderboard runs, never contracts."""

EXECUTABLE: Final = frozenset({"docker", "docker-compose", "controller", "script", "native", "host"})
"""Kinds of launch that can be carried out."""

SOURCE: Final = leaves("kind url repository commit paths captured_at publisher retrieved_from")
PROVENANCE: Final[Shape] = leaves("captured_at", sources=Many(SOURCE))
_FACTS: Final = Each(
    leaves(
        "state note scope unit as_of",
        reason=Either(leaves("code detail")),
        provenance=PROVENANCE,
    )
)
_CONTAINER: Final = leaves("state runtime image digest compose_file captured_at reason", source=Many(SOURCE))
_LAUNCH: Final = leaves(
    "kind run_id source url accelerator_backend arguments command entrypoint host_port container_port image "
    "ipc network_mode privileged security_opt shm_size ulimits devices script repository commit compose_file "
    "working_directory",
    container=_CONTAINER,
    environment=Each(LEAF),
    mounts=Many(leaves("source target read_only")),
    provenance=Each(LEAF),
    synthesized=Each(LEAF),
)

RECIPE: Final[Shape] = leaves(
    "schema_version id recipe_source status recommended description model_instance_id hardware_id "
    "hardware_count " + " ".join(SWEEP_LISTS),
    engine=Each(LEAF),
    launch=_LAUNCH,
    draft_launch=_LAUNCH,
    serving=Each(LEAF),
    capabilities=Each(LEAF),
    metadata=ANYTHING,
    provenance=PROVENANCE,
    facts=_FACTS,
)

ROW_SELECTORS: Final = ("concurrency", "output_tokens", "cache_state")
ROW_NUMBERS: Final = (
    "decode_tok_s",
    "decode_tok_s_per_stream",
    "prefill_tok_s",
    "ttft_ms_p50",
    "peak_vram_gb",
)

SWEEP: Final[Shape] = leaves(
    "schema_version id recipe_id measured_at accepted_at",
    source=Either({**SOURCE, "methodology": LEAF}),
    metrics=Each(LEAF),
    rows=Many(
        leaves(" ".join((*ROW_SELECTORS, *ROW_NUMBERS)) + " context_tokens samples status metric_note")
    ),
    provenance=PROVENANCE,
    facts=_FACTS,
)

INSTANCE: Final[Shape] = leaves(
    "schema_version id model_id repository url revision served_name kind",
    weights=Each(LEAF),
    huggingface=leaves("repository url status link_type reason", provenance=PROVENANCE),
    provenance=PROVENANCE,
    facts=_FACTS,
)

HARDWARE: Final[Shape] = leaves(
    "schema_version id vendor name family kind accelerator_backend aliases products product_names "
    "captured_at",
    accelerator=Each(LEAF),
    memory=Each(Either(Each(LEAF))),
    sources=Many(SOURCE),
    commercial=ANYTHING,
    compute=ANYTHING,
    facts=_FACTS,
    provenance=PROVENANCE,
)
