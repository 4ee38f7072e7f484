"""A small run of an engine that does not exist: three prompts, two ranks, every file that a gate reads.

Everything is made from plain values, so that a test can change one of them and see what the policy says.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provstore.evidence.conventions import find
from provstore.evidence.metrics import recompute
from provstore.evidence.rows import Row
from provstore.ids import to_raw
from provstore.records.verdict import GateOutcome
from provstore.store.memory import MemoryStore
from provstore.verbs.judging import Judging, judge
from provstore.verbs.sealing import SealOptions, seal_spec

COMMIT = "1234567890abcdef1234567890abcdef12345678"
EVENTS = 100
TOOL = "ab" * 32

HEAD = 'format = "provstore/policy/v1"\nname = "test"\nversion = "1"\ndate = "2026-07-26"\n'


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def row(index: int, *, tokens: int = 120, step: float = 0.01) -> dict[str, Any]:
    """Return one row: one token an event, ``step`` seconds apart."""
    text = f"answer {index}"
    stamps = [round(0.5 + at * step, 6) for at in range(tokens)]
    return {
        "prompt_index": index,
        "prompt_id": f"prompt-{index}",
        "prompt_class": f"class-{index}",
        "prompt_sha256": digest(f"prompt {index}"),
        "prompt_tokens": 10 + index,
        "completion_tokens": tokens,
        "cached_tokens": 0,
        "token_ids": [1000 * index + at for at in range(tokens)],
        "token_id_offsets_s": stamps,
        "tok_s_1_100_after_ttft": 100 / (stamps[99] - stamps[0]),
        "ttft_s": 0.5,
        "elapsed_s": 2.5,
        "post_ttft_s": 2.0,
        "request_started_epoch_s": 1785102457.5 + 3 * index,
        "request_ended_epoch_s": 1785102460.25 + 3 * index,
        "finish_reasons": ["length"],
        "sha256": digest(text),
        "text": text,
    }


def median_of(convention: str, rows: list[dict[str, Any]]) -> float:
    value = recompute(
        find(convention), [Row(location=f"/rows/{at}", fields=item) for at, item in enumerate(typed(rows))]
    )
    assert value.value is not None, value.failures
    return value.value


def typed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from provstore.evidence.jsonreader import read

    value = read(json.dumps(rows).encode()).value
    assert isinstance(value, list)
    return [dict(item) for item in value if isinstance(item, dict)]


def bench(rows: list[dict[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a benchmark in its later shape."""
    rows = [row(0), row(1, step=0.02), row(2, step=0.04)] if rows is None else rows
    legacy = median_of("legacy-inclusive-events", rows)
    intervals = median_of("conventional-intervals", rows)
    identity = {
        "prompt_count": len(rows),
        "suite_prompt_count": len(rows),
        "prompt_classes": sorted({item["prompt_class"] for item in rows}),
        "max_tokens": 120,
        "seed": 1,
        "model": "tiny",
        "request_extra": {},
    }
    found: dict[str, Any] = {
        "run_identity": identity,
        "realistic_final_gate": {"passed": True, "cached_tokens": [item["cached_tokens"] for item in rows]},
        "summary": {
            "tok_s_1_100_after_ttft": {"count": len(rows), "median": legacy},
            "tok_s_1_100_intervals_after_ttft": {"count": len(rows), "median": intervals},
        },
        "rows": rows,
        "prompt_sha256s": [item["prompt_sha256"] for item in rows],
        "output_sha256s": [item["sha256"] for item in rows],
    }
    found["run_identity"] |= changes.pop("identity", {})
    return found | changes


def oracle(rows: list[dict[str, Any]], *names: str) -> dict[str, Any]:
    wanted = ("prompt_index", "prompt_id", *names)
    return {
        "source_sha256": digest("teacher"),
        "rows": [{name: item[name] for name in wanted} for item in rows],
    }


def prom(prompt: int, completion: int, requests: int, drafts: int, accepted: list[int]) -> str:
    lines = [
        "process_start_time_seconds 1.78510244e+09",
        f'eng:prompt_tokens_total{{m="t"}} {prompt}.0',
        f'eng:generation_tokens_total{{m="t"}} {completion}.0',
        f'eng:success_total{{m="t",reason="length"}} {requests}.0',
        'eng:success_total{m="t",reason="abort"} 0.0',
        'eng:cache_hits_total{m="t"} 0.0',
        f'eng:drafts_total{{m="t"}} {drafts}.0',
        f'eng:draft_tokens_total{{m="t"}} {drafts * len(accepted)}.0',
        f'eng:accepted_total{{m="t"}} {sum(accepted)}.0',
    ]
    lines += [f'eng:accepted_pos_total{{m="t",position="{at}"}} {n}.0' for at, n in enumerate(accepted)]
    return "\n".join(lines) + "\n"


def snapshot(time: str, process: int = 77, **changes: Any) -> dict[str, Any]:
    """Return one idle snapshot of two devices."""
    rows = [{"device_id": at, "process_id": process, "process_name": "smi"} for at in (0, 1)]
    raw = json.dumps({"device_util_by_proc_list": changes.pop("raw_rows", rows)}).encode()
    found: dict[str, Any] = {
        "status": "passed",
        "observed_utc": time,
        "child_identity": {"process_id": process, "proc_exe_resolved": "/usr/bin/smi"},
        "xpu_smi": {"sha256": TOOL},
        "idle": {"device_ids": [0, 1], "row_count": len(rows)},
        "raw_capture": {
            "stdout_base64": base64.b64encode(raw).decode(),
            "stdout_bytes": len(raw),
            "stdout_sha256": digest(raw),
            "stderr_base64": "",
            "stderr_bytes": 0,
            "stderr_sha256": digest(b""),
        },
    }
    return found | changes


def log() -> str:
    lines = ["engine version 0.1.dev3+g1234567"]
    lines += [f"rank TP{r} 07-26 21:47:39 captured graph graphs=146, breaks=145" for r in (1, 0)]
    lines += [f"rank TP{r} prepared projections count=31" for r in (0, 1)]
    lines += ['"POST /v1/chat" 200'] * 3
    return "\n".join(lines) + "\n"


ENVIRONMENT = {
    "ENGINE_FP8": "1",
    "ENGINE_WIDTH": "12",
    "HOME": "/runs/a/home",
    "KVS_IFACE": "eth1",
    "LD_LIBRARY_PATH": "/opt/kernels:/usr/lib",
    "TCP_IFACE": "eth1",
}


def environment(changes: Mapping[str, str | None] | None = None) -> str:
    found = {**ENVIRONMENT, **(changes or {})}
    return "".join(f"{key}={value}\n" for key, value in found.items() if value is not None)


def files() -> dict[str, bytes]:
    """Return the whole run, by place."""
    run = bench()
    rows = run["rows"]
    accepted = [20, 12, 5]
    library = digest("library")
    found: dict[str, str | dict[str, Any]] = {
        "run/bench.json": run,
        "run/identity.txt": f"schema=leg-v2\nengine_commit={COMMIT}\nexpected_graphs=146\n",
        "run/environment.txt": environment(),
        "run/server.log": log(),
        "run/before.prom": prom(0, 0, 0, 0, [0, 0, 0]),
        "run/after.prom": prom(33, 360, 3, 40, accepted),
        "run/idle/pre-0.json": snapshot("2026-07-26T21:46:00+00:00"),
        "run/idle/pre-1.json": snapshot("2026-07-26T21:47:05+00:00"),
        "run/idle/post-0.json": snapshot("2026-07-26T21:48:00+00:00"),
        "run/idle/post-1.json": snapshot("2026-07-26T21:49:01+00:00"),
        "run/idle/summary.txt": "pre elapsed_seconds=65 snapshots=2\npost elapsed_seconds=61 snapshots=2\n",
        "run/cleanup.txt": "stop_status=0\nidle_status=0\n",
        "run/status.txt": "status=PASS\n",
        "run/loaded.json": {"mapped_libraries": {"libk.so": ["/opt/kernels/libk.so"]}},
        "oracle/tokens": oracle(rows, "prompt_sha256", "token_ids"),
        "oracle/text": oracle(rows, "sha256"),
        "native/libk.so": "library",
        "runtime/lock": {
            "libraries": [{"path": "libk.so", "sha256": library}],
            "python_packages": {"torch": "2.12.0"},
            "source": {"engine": {"commit": COMMIT}},
        },
        "runtime/freeze": "torch==2.12.0\nnumpy==2.0.0\n",
        "docs/record": {
            "rate": run["summary"]["tok_s_1_100_after_ttft"]["median"],
            "exact": "3/3",
            "graphs": 146,
            "engine_commit": COMMIT,
            "bench_sha256": digest(dump(run)),
            "accepted": sum(accepted),
        },
    }
    return {
        place: dump(value) if isinstance(value, dict) else value.encode() for place, value in found.items()
    }


def dump(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


POLICY = HEAD + (Path(__file__).parent / "smallrun.toml").read_text()


def sealed(
    place: Path, planted: Mapping[str, bytes], extra: str = "", *, manifest: bool = True
) -> tuple[MemoryStore, bytes]:
    """Seal files, one entry for each first part of their places; ``run`` is pinned by a manifest."""
    root = place / "files"
    for name, data in planted.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    text = 'format = "provstore/packet-spec/v1"\nname = "small"\n'
    for role in sorted({name.partition("/")[0] for name in planted}):
        text += f'[[entry]]\nrole = "{role}"\nkind = "evidence"\npath = "files/{role}"\n'
        if role == "run" and manifest:
            lines = [
                f"{digest(data)}  {name[4:]}\n" for name, data in planted.items() if name.startswith("run/")
            ]
            (place / "run.sha256").write_text("".join(lines))
            text += 'manifest = "run.sha256"\n'
    (place / "spec.toml").write_text(text + extra)
    store = MemoryStore()
    report = seal_spec(store, place / "spec.toml", options=SealOptions(use_cache=False))
    return store, to_raw(report.packet)


def judged(
    place: Path, planted: Mapping[str, bytes], policy: str = POLICY, extra: str = "", *, manifest: bool = True
) -> Judging:
    """Seal files and judge them."""
    place.mkdir(parents=True, exist_ok=True)
    store, packet = sealed(place, planted, extra, manifest=manifest)
    text = policy if policy.startswith("format") else HEAD + policy
    return judge(store, packet, text.encode(), where="test.toml")


def gate(judging: Judging, name: str) -> GateOutcome:
    return next(found for found in judging.verdict.gates if found.gate == name)


def said(judging: Judging, name: str) -> list[str]:
    """Return outcome and code of everything that one gate found."""
    return [f"{found.outcome} {found.code}" for found in gate(judging, name).judgements]


def words(judging: Judging) -> dict[str, str]:
    """Return the codes of every gate that is no pass."""
    return {
        found.gate: " ".join(dict.fromkeys(f"{j.outcome} {j.code}" for j in found.judgements))
        for found in judging.verdict.gates
        if found.outcome not in ("PASS", "NOT-APPLICABLE")
    }
