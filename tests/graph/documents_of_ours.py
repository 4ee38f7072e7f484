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
