"""Measure the rows of the table in README.md and write them there: ``python benchmarks/run.py``.

Everything else is an option: some rows only, fewer rounds, smaller workloads, some peers. Results of a whole
run go to ``results/`` and into README.md; those of some rows only to ``results/``, unless ``--readme`` asks
for it.
"""

import argparse
import datetime
import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import bench_again
import bench_diff
import bench_first
import bench_graph
import bench_logs
import bench_memory
import bench_million
import bench_model
import bench_pack
import bench_serverlog
import bench_startup
import bench_suite
import bench_verdict
import bench_verify
import machine
import readme
from measure import CommandFailedError
from readme import Run
from rows import Row
from setting import Options, Setting

HERE: Final = Path(__file__).resolve().parent

ROWS: Final[dict[str, Callable[[Setting], Row]]] = {
    "P1": bench_model.seal_model,
    "P2": bench_first.first_seal,
    "P3": bench_again.unchanged,
    "P4": bench_again.few_changed,
    "P5": bench_verify.verify_tree,
    "P6": bench_model.verify_model,
    "P7": bench_diff.compare,
    "P8": bench_first.store_size,
    "P9": bench_million.many_objects,
    "P10": bench_memory.peaks,
    "P11": bench_startup.start_up,
    "P12": bench_pack.pack_tree,
    "P13": bench_verdict.verdict,
    "P14": bench_serverlog.facts_of_logs,
    "P15": bench_graph.questions,
    "P17": bench_suite.client_cost,
    "W3": bench_logs.seal_logs,
}

FAILED: Final = "NOT MEASURED"

SETTLING_S: Final = 300
"""For so long ext4 is slow to make files where many were deleted."""


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments ask for; return the exit code."""
    parser = argparse.ArgumentParser(prog="run.py", description="Measure provstore beside its peers.")
    parser.add_argument("--rows", default=",".join(ROWS), help="such as P2,P3 (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="times that each case runs (default: 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="1 for the full workloads (default)")
    parser.add_argument("--peers", help="such as b3sum,git, or none (default: all installed)")
    parser.add_argument("--synthetic", action="store_true", help="make the tree of sources, fetch nothing")
    parser.add_argument("--work", type=Path, default=HERE / "work", help="folder of workloads and stores")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for the results")
    parser.add_argument("--readme", type=Path, help="write results into this README, also those of some rows")
    parser.add_argument("--keep", action="store_true", help="leave stores in the work folder")
    given = parser.parse_args(arguments)
    wanted = [name.strip().upper() for name in given.rows.split(",") if name.strip()]
    unknown = sorted(set(wanted) - set(ROWS))
    if unknown or not wanted or given.rounds < 1 or not 0 < given.scale <= 1:
        parser.error(f"known rows: {', '.join(ROWS)}; rounds from 1; scale over 0 up to 1")
    peers = None if given.peers is None else frozenset(given.peers.split(","))
    work: Path = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    setting = Setting(Options(work, given.scale, given.rounds, peers, given.synthetic), _say)
    notes = _unsettled(work / "cleared")
    try:
        rows = [_row(name, setting) for name in ROWS if name in wanted]
        run = _run(setting, rows, notes)
        path = _save(run, given.results)
        target = given.readme or (HERE / "README.md" if len(rows) == len(ROWS) else None)
        if target is not None:
            readme.write(target, run)
        sys.stdout.write("\n".join(readme.lines(run)) + f"\n\nwritten: {path.name}\n")
        sys.stdout.flush()
    finally:
        if not given.keep:
            _say("removing what was made; this can take a while")
            setting.clear()
            (work / "cleared").touch()
    return 1 if any(row.title == FAILED for row in rows) else 0


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')}  {text}\n")
    sys.stderr.flush()


def _row(name: str, setting: Setting) -> Row:
    """Measure a row; where a program failed, the row says so and the others still run."""
    _say(f"--- {name}")
    try:
        return ROWS[name](setting)
    except CommandFailedError as error:
        _say(f"{name} FAILED: {error}")
        return Row(name, FAILED, (), {}, {}, {}, ("a program failed; stderr of the run has its words",), None)


def _unsettled(cleared: Path) -> list[str]:
    """Return a note when many files were deleted here a short time ago."""
    try:
        age = time.time() - cleared.stat().st_mtime
    except OSError:
        return []
    if age > SETTLING_S:
        return []
    note = f"An earlier run's files were deleted {age:.0f} s before, so whatever makes many files is slower."
    _say(note)
    return [note]


def _run(setting: Setting, rows: list[Row], notes: list[str]) -> Run:
    used = {name: getattr(setting, name) for name in ("model", "sources", "logs") if name in vars(setting)}
    workloads = {
        {"model": "W1", "sources": "W2", "logs": "W3"}[name]: (
            f"{tree.files:,} files, {tree.size_bytes:,} bytes: {tree.made_of}"
        )
        for name, tree in used.items()
    }
    absent = machine.absent(setting)
    if absent:
        notes = [*notes, f"Peers not measured: {', '.join(absent)}."]
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Run(day, setting.scale, setting.rounds, machine.described(setting), workloads, rows, notes)


def _save(run: Run, folder: Path) -> Path:
    """Write one line of JSON to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{run.date}-{machine.kind()}"
    more = (folder / f"{stem}-{count}.json" for count in itertools.count(2))
    path = next(name for name in itertools.chain([folder / f"{stem}.json"], more) if not name.exists())
    path.write_text(json.dumps(readme.document(run), sort_keys=True) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
