"""Small documents of every format, written for these tests: no sentence of a real one."""

import json
from typing import Any, Final

REVISION: Final = "1" * 40
DRAFT: Final = "2" * 40
COMMIT: Final = "3" * 40


def family() -> dict[str, Any]:
    """A family with one of everything that its format has."""
    return {
        "format": "neural-download-model-family-v1",
        "id": "fam",
        "name": "Fam",
        "primary_packet_id": "fam-packet",
        "updated_at": "2026-01-02",
        "architecture": {"class": "C", "evidence": "notes/arch.md"},
        "weight_revisions": [
            {
                "id": "fam-rev",
                "label": "Fam",
                "repository": "org/fam",
                "revision": REVISION,
                "model_manifest": "manifests/fam.sha256",
                "grades": {
                    "capability": {
                        "grade": "B",
                        "scope": "s",
                        "basis": "b",
                        "reviewed_at": "2026-01-02",
                        "evidence": ["notes/cap.md"],
                    }
                },
                "quantized_artifacts": [
                    {
                        "id": "fam-q4",
                        "label": "Q4",
                        "quantization": "Q4",
                        "repository": "org/fam-q4",
                        "revision_status": "not pinned",
                        "evidence": "notes/q4.md",
                    }
                ],
            }
        ],
        "auxiliary_artifacts": [
            {"id": "fam-draft", "repository": "org/fam-draft", "revision": DRAFT, "role": "draft"}
        ],
        "transfer_scope": {
            "status": "one pair",
            "transfers": ["methods"],
            "does_not_transfer": ["numbers"],
            "evidence": "notes/scope.md",
        },
        "dimensions": {"cards": [1, 2], "kv": ["bf16"], "memory": [0.8]},
        "packets": [
            {
                "id": "fam-packet",
                "label": "P",
                "revision": "fam-rev",
                "draft_revision": "fam-draft",
                "artifact_id": "fam-q4",
                "quantization": "Q4",
                "runtime": "engine 1",
                "cards": 2,
                "status": "candidate",
                "manifest": "packages/fam/package.json",
                "featured_metric": {"metric": "decode_tok_s", "measurement_id": "fam-run", "sample_index": 0},
            }
        ],
        "run_measurements": [
            {
                "id": "fam-run",
                "state": "lab-measured",
                "revision": "fam-rev",
                "artifact_id": "fam-q4",
                "runtime": "engine 1",
                "config": {"cards": 2, "kv": "bf16", "memory": 0.8, "eager": False},
                "workload": "one prompt",
                "metrics": {"decode_tok_s": [10.50, 11.0], "ttft_ms": [3]},
                "quality": "exact",
                "evidence": "data/run.json",
            }
        ],
        "series_measurements": [
            {
                "id": "fam-series",
                "state": "lab-screened",
                "revision": "fam-rev",
                "axis": "prompt_tokens",
                "points": [{"x": 8, "decode_tok_s": 9.5}, {"x": 16, "decode_tok_s": 8.25}],
                "evidence": "data/series.json",
            }
        ],
        "views": [
            {
                "id": "v",
                "metrics": ["decode_tok_s"],
                "series": [{"label": "a", "measurement_ids": ["fam-run"]}],
            }
        ],
        "coverage_views": [
            {
                "id": "cov",
                "label": "context by cards",
                "row_axis": {"key": "prompt_tokens", "label": "prompt"},
                "column_axis": {"key": "cards", "label": "cards"},
                "fixed_selectors": {"revision": "fam-rev"},
                "rows": [8],
                "columns": [1, 2],
                "cells": {
                    "8:1": {"state": "missing", "label": "not measured"},
                    "8:2": {
                        "state": "lab-screened",
                        "label": "D9.5",
                        "evidence_id": "fam-series",
                        "packet_id": "fam-packet",
                        "point_x": 8,
                    },
                },
            }
        ],
        "family_closures": [
            {
                "selectors": {"revision": "fam-rev", "cards": [1, 4]},
                "state": "missing",
                "reason": "never run",
                "evidence": "data/run.json",
            }
        ],
        "estimates": [
            {
                "id": "est",
                "state": "estimated",
                "selectors": {"cards": 4},
                "metric": "decode_tok_s",
                "value": 20.0,
                "low": 18.0,
                "high": 22.5,
                "unit": "tok/s",
                "engine": {"name": "e", "version": "1", "snapshot_sha256": "a" * 64},
                "basis_measurement_ids": ["fam-run"],
                "record": "data/estimate.json",
                "not_for_promotion": True,
            }
        ],
    }


def record() -> dict[str, Any]:
    """A record with both conventions: 101 of events over 99 intervals is 99.99."""
    return {
        "schema": "small-record-v1",
        "date": "2026-01-02",
        "status": "APPROVED",
        "source": {
            "engine_commit": COMMIT,
            "engine_bundle": "patches/engine.bundle",
            "target_revision": REVISION,
        },
        "run_root": "/data/runs/one",
        "metric_accounting": {
            "published_convention": "legacy-inclusive-events",
            "published_value_tok_s": 101.0,
            "timestamped_events": 100,
            "inter_token_intervals": 99,
            "conventional_interval_value_tok_s": 99.99,
            "correction_note": "notes/correction.md",
        },
        "record": {
            "value_tok_s": 101.0,
            "prior_approved_tok_s": 50.5,
            "prior_approved_id": "run-before",
            "delta_vs_approved_tok_s": 50.5,
        },
        "sha256": {"bench": "b" * 64, "engine_bundle": "c" * 64},
        "leaderboard": {
            "submission_status": "APPROVED",
            "id": "run-own",
            "queue_path": "data/queue.json",
            "response_path": "data/response.json",
        },
    }


def dumped(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode()


def package() -> dict[str, Any]:
    return {
        "format": "b70-model-package-v1",
        "id": "fam-packet",
        "name": "Fam on two cards",
        "status": "candidate",
        "guide": "repro/fam/README.md",
        "library": {
            "publisher": "P",
            "featured_metric": {
                "value": 99.99,
                "unit": "tok/s",
                "label": "median",
                "scope": "thirteen prompts",
                "evidence": "data/record.json",
            },
        },
        "contributors": [{"id": "one", "evidence": "data/record.json"}],
        "performance_profiles": [
            {
                "id": "prof",
                "metric": "decode",
                "unit": "tok/s",
                "points": [{"x": 1, "y": 2.5}, {"x": 2, "y": 2.0}],
            }
        ],
        "hardware": {"accelerator": "A", "cards": 2},
        "model": {"repository": "org/fam", "revision": REVISION, "manifest": "manifests/fam.sha256"},
        "runtime": {"kind": "container", "image": f"engine@sha256:{'d' * 64}", "revision": COMMIT},
        "project_patches": {"required": True, "items": ["patches/engine.bundle"]},
        "commands": {"launch": "run"},
        "dependencies": ["repro/fam/README.md", "data/record.json"],
        "missing": ["a second host"],
    }


def recipe(kind: str = "docker") -> dict[str, Any]:
    """A recipe that everything supports; with kind ``reference`` an observation of a leaderboard run."""
    seen = {
        "captured_at": "2026-01-02T00:00:00Z",
        "sources": [{"kind": "submitter", "url": "https://x.org/a"}],
    }
    launch: dict[str, Any] = {
        "kind": "reference",
        "run_id": "run-before",
        "url": "https://board.org/runs/run-before",
    }
    if kind == "docker":
        image = f"org/engine@sha256:{'d' * 64}"
        launch = {
            "kind": "docker",
            "image": image,
            "arguments": ["--port", "1"],
            "host_port": 1,
            "container_port": 1,
            "accelerator_backend": "xpu",
            "container": {"state": "digest-pinned", "image": image, "digest": f"sha256:{'d' * 64}"},
        }
    return {
        "schema_version": "local-ai-registry/v1",
        "id": "rec",
        "recipe_source": "lab" if kind == "docker" else "localmaxxing",
        "status": "candidate",
        "model_instance_id": "inst",
        "hardware_id": "card",
        "hardware_count": 2,
        "engine": {"name": "engine", "version": "1", "graph_mode": "full"},
        "launch": launch,
        "serving": {"tensor_parallel": 2, "max_context_tokens": 4096, "max_concurrency": None},
        "capabilities": {"chat": True, "vision": None},
        "speed_sweep_ids": ["rec-sweep"],
        "metadata": {},
        "provenance": seen,
        "facts": {"capabilities.vision": {"state": "unknown", "reason": "not-verified", "provenance": seen}},
    }


def sweep(kind: str = "submitter") -> dict[str, Any]:
    url = f"https://git.org/lab/registry/blob/{COMMIT}/sources/README.md"
    source = {"kind": "submitter", "url": url, "paths": ["sources/decode.json"]}
    if kind == "leaderboard":
        source = {
            "kind": "leaderboard",
            "url": "https://board.org/runs/run-before",
            "paths": ["/runs/run-before"],
        }
    return {
        "schema_version": "local-ai-registry/v1",
        "id": "rec-sweep",
        "recipe_id": "rec",
        "measured_at": "2026-01-02",
        "accepted_at": None,
        "source": source,
        "metrics": {"peak_generation_tps": 50.5, "max_context_tokens": 4096, "point_count": 1},
        "rows": [
            {
                "concurrency": None,
                "context_tokens": 4096,
                "decode_tok_s": 50.5,
                "output_tokens": 128,
                "prefill_tok_s": None,
                "ttft_ms_p50": 12.25,
                "samples": 1,
                "status": "measured" if kind == "submitter" else "observed",
            }
        ],
    }


def instance() -> dict[str, Any]:
    return {
        "schema_version": "local-ai-registry/v1",
        "id": "inst",
        "model_id": "fam",
        "repository": "org/fam",
        "revision": REVISION,
        "kind": "quant",
        "weights": {"format": "int4", "precision": "int4", "size_gb": None},
    }


def hardware() -> dict[str, Any]:
    return {
        "schema_version": "local-ai-registry/v1",
        "id": "card",
        "vendor": "intel",
        "name": "Card",
        "kind": "discrete",
        "accelerator_backend": "xpu",
        "memory": {"vram_gb": 32, "bandwidth_gb_per_s": {"min": 1, "max": 2}},
        "sources": [{"kind": "vendor", "url": "https://x.org/card"}],
    }


PAGE: Final = """Recipe
rec
recOne run of a board.
Record
- Status
- candidate
- Source
- localmaxxing
- Engine
- engine
- Accelerators
- 2
- Context tokens
- 4,096
- Max concurrency
- 1
- chat
- unknown
Identity
https://hub.org/org/fam- Repository
- org/fam
Observed configuration
Evidence only · candidate · reference
Words that nobody understands.
Measured speed
| Concurrency | Context | Prefill | Decode | TTFT ms | Status | Sweep |
|---|---|---|---|---|---|---|
| 1 | 4,096 | — | 50.5 | 1,012.3 | observed | rec-sweep |
Remaining fields
- hardware id
- card
- id
- rec
- model instance id
- inst
- schema version
- local-ai-registry/v1
- speed sweep ids
- rec-sweep
- status
- candidate
serving
- tensor parallel
- 2
facts
- capabilities.chat · provenance · captured at
- 2026-01-02T00:00:00Z
capabilities.chat · reason not-verified
capabilities.chat · state unknown
metadata
- board · run id
- run-before
provenance
- captured at
- 2026-01-02T00:00:00Z
sources
| captured at | kind | url |
|---|---|---|
| 2026-01-02T00:00:00Z | normalized-recipe | board.org/en/runs/run-before ↗ |
"""
"""Text of a page that shows a recipe of a leaderboard."""


def note() -> dict[str, Any]:
    return {
        "format": "provstore/note/v1",
        "id": "note-1",
        "date": "2026-01-03",
        "author": "someone",
        "kind": "withdraws",
        "target": ["measurement:fam/fam-run", f"sha256:{'b' * 64}", "lab/notes/plan.md", "nonsense"],
        "reason": "the suite was cut",
        "evidence": ["lab/notes/why.md"],
        "changes": [
            {"document": "family:fam", "at": "/packets/0/quantization", "from": "Q4", "to": "Q4_K"},
        ],
    }
