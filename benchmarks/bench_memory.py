"""How much memory does the most hungry moment of each job take? (P10)."""

import hashlib
import os
from pathlib import Path
from typing import Final

from measure import Spread, Timings, peak_memory
from rows import Finding, Goal, Row, row
from setting import ENTRIES, Setting

SPARSE_BYTES: Final = 100 << 30
MB: Final = 1e6

WORKERS: Final = "interpreters and their imports, and one object for each file"

P10_TREE: Final = Goal("first seal of W2", 90, "MB", bound=f"two worker processes: {WORKERS}")
P10_AGAIN: Final = Goal("seal of W2 again", 90, "MB", bound=WORKERS)
P10_VERIFY: Final = Goal("verify W2", 90, "MB", bound=WORKERS)
P10_MODEL: Final = Goal(
    "seal W1 by reference", 32, "MB", bound="the interpreter with all imports takes about 30 MB"
)
P10_SPARSE: Final = Goal("seal a sparse file of 100 GB by reference", 32, "MB", bound="the same")
P10_MANIFEST: Final = Goal(
    "seal a manifest of 1,000,000 entries",
    200,
    "MB",
    bound="imports, one run of sorted lines, and what the index maps",
)
P10_LIST: Final = Goal("verify a checksum list of 1,000,000 lines", 200, "MB", bound="eight bytes a name")


def peaks(setting: Setting) -> Row:
    """Measure P10: the peak of each job's whole process tree."""
    store = setting.fresh("store")
    tree = setting.sources.path
    seal = setting.prov("seal", tree, "--name", "tree", "--store", store)
    jobs = [
        (P10_TREE, seal),
        (P10_AGAIN, seal),
        (P10_VERIFY, setting.prov("verify", "tree", "--store", store)),
        (P10_MODEL, setting.prov("seal", setting.model_spec, "--store", setting.fresh("store"))),
        (P10_SPARSE, setting.prov("seal", _sparse(setting), "--store", setting.fresh("store"))),
        (P10_MANIFEST, setting.prov("seal", _manifest(setting), "--store", setting.fresh("store"))),
        (P10_LIST, setting.prov("verify", "--checksums", _list(setting), codes=(1,))),
    ]
    findings = []
    for goal, command in jobs:
        peak = peak_memory(command) / MB
        setting.say(f"{goal.text}: {peak:.1f} MB")
        findings.append(Finding(goal, Spread(peak, peak, peak)))
    facts = {"sparse file bytes": SPARSE_BYTES * setting.scale, "manifest entries": _entries(setting)}
    facts["bare interpreter MB"] = peak_memory(setting.python("import time; time.sleep(0.2)")) / MB
    notes = (
        "resident memory of all processes of a job, what they share counted once; every 4 ms, one run each",
        "the sparse file and the manifest shrink with the scale; what was measured is among the facts",
    )
    return row("P10", "peak memory", Timings([]), findings, facts, notes)


def _sparse(setting: Setting) -> Path:
    """Return a spec of one huge file that takes no room on disk."""
    file = setting.fresh("weights.bin")
    with open(file, "wb") as target:
        os.truncate(target.fileno(), int(SPARSE_BYTES * setting.scale))
    return _spec(setting, "sparse", f'keep = "external"\npath = "{file}"')


def _entries(setting: Setting) -> int:
    return max(1000, int(ENTRIES * setting.fraction))


def _manifest(setting: Setting) -> Path:
    """Return a spec that declares a million files by a checksum list."""
    return _spec(setting, "manifest", f'keep = "declared"\nmanifest = "{_list(setting)}"')


def _list(setting: Setting) -> Path:
    """Return a checksum list of a million files, none of which is there: each is a finding of its own."""
    listed = setting.fresh("SHA256SUMS")
    with open(listed, "w", encoding="ascii", newline="\n") as target:
        for number in range(_entries(setting)):
            digest = hashlib.sha256(b"declared %d" % number).hexdigest()
            target.write(f"{digest}  shard-{number // 1000:04d}/file-{number:07d}.bin\n")
    return listed


def _spec(setting: Setting, name: str, body: str) -> Path:
    spec = setting.fresh(f"{name}.toml")
    head = f'format = "provstore/packet-spec/v1"\nname = "{name}"\n'
    spec.write_text(f'{head}[[entry]]\nrole = "{name}"\nkind = "file"\n{body}\n', encoding="utf-8")
    return spec
