# /// script
# requires-python = ">=3.11"
# dependencies = ["provstore"]
# ///
"""Say what changed between two runs: which files, and which facts in them.

python examples/diff_two_runs.py
"""

import tempfile
from pathlib import Path

import provstore

SPEC = """
format = "provstore/packet-spec/v1"
name = "NAME"

[[entry]]
role = "environment"
kind = "environment"
path = "NAME/env.txt"

[[entry]]
role = "lock"
kind = "runtime-lock"
path = "NAME/lock.json"

[[entry]]
role = "logs"
kind = "evidence"
path = "NAME/logs"
"""


def write_run(place: Path, name: str, threads: int, version: str) -> Path:
    """Write the files of one run and its packet spec."""
    run = place / name
    (run / "logs").mkdir(parents=True)
    (run / "env.txt").write_text(f"THREADS={threads}\nLANG=C\n")
    (run / "lock.json").write_text(f'{{"packages": [{{"name": "engine", "version": "{version}"}}]}}\n')
    (run / "logs" / "client.log").write_text("13 prompts\n")
    (run / "logs" / "server.log").write_text(f"engine {version} ready\n")
    spec = place / f"{name}.toml"
    spec.write_text(SPEC.replace("NAME", name))
    return spec


def main() -> None:
    """Seal two runs and compare them; equal parts are skipped, evidence that differs is read."""
    with tempfile.TemporaryDirectory() as place:
        store = provstore.init_store(Path(place, "store"))
        provstore.seal_spec(store, write_run(Path(place), "monday", 4, "1.0"))
        provstore.seal_spec(store, write_run(Path(place), "friday", 8, "1.1"))

        with provstore.side("monday", store) as before, provstore.side("friday", store) as after:
            report = provstore.diff(before, after)
        print(report.sentence)
        print(report.counts)
        for change in report.changed:
            print(f"  bytes: {change.role} {change.path}")
        for fact in (*report.identity, *report.environment, *report.result):
            print(f"  fact:  {fact.role} {fact.key}: {fact.from_} => {fact.to}")
        for kept in report.kept_facts:
            print(f"  kept:  {kept.role} {kept.key} = {kept.value}")
        store.close()


if __name__ == "__main__":
    main()
