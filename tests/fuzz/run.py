"""Coverage-guided fuzzing with atheris: ``make fuzz``, or ``PYTHONPATH=tests python -m fuzz.run --seconds 60``.

Each target runs in processes of its own for so many seconds, beginning with its seeds, with what was found once,
and with what earlier runs learned (kept in the work folder). A broken promise does not end the run: its input is
written to ``found/TARGET/`` under the place where it broke, once a place, and the run goes on. Figures go to
``benchmarks/results/``; the exit code is 1 when anything was found.
"""

import argparse
import datetime
import hashlib
import importlib
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
WORK: Final = ROOT / "benchmarks" / "work" / "fuzz"
RESULTS: Final = ROOT / "benchmarks" / "results"

HANG_SECONDS: Final = 20
"""After so long an input that cannot be interrupted ends its process; the input is kept."""

MEMORY_MB: Final = 1536
"""Resident memory, the fuzzer's own included, that ends a process."""

INSTRUMENTED: Final = ["provstore", "json", "tomllib", "elftools", "email", "ast"]


def main(arguments: Sequence[str]) -> int:
    """Fuzz what the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(prog="fuzz.run", description="Coverage-guided fuzzing of every decoder.")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--targets", help="such as canon,pack (default: all)")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of what runs learn")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the figures")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside is not None:
        inside(given.inside, given.work, given.seconds)
        return 0
    try:
        importlib.import_module("atheris")
    except ModuleNotFoundError:
        parser.error(
            "atheris is not installed: pip install 'provstore[fuzz]' (CPython 3.11 or newer on Linux)"
        )
    known = importlib.import_module("fuzz.targets").TARGETS
    names = given.targets.split(",") if given.targets else list(known)
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(known)}")
    figures = [fuzzed(name, given.work, given.seconds) for name in names]
    given.results.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC)
    path = given.results / f"fuzz-{now:%Y-%m-%d-%H%M%S}.json"
    about = {"date": f"{now:%Y-%m-%d}", "python": platform.python_version(), "cores": os.cpu_count()}
    path.write_text(json.dumps(about | {"seconds": given.seconds, "targets": figures}) + "\n")
    return int(any(row["findings"] for row in figures))


def fuzzed(name: str, work: Path, seconds: int) -> dict[str, Any]:
    """Run one target, again after each end that was not its own; return its figures."""
    start = time.monotonic()
    before = set(HERE.glob(f"found/{name}/*"))
    executions = restarts = coverage = 0
    while (left := seconds - (time.monotonic() - start)) > 1:
        command = [sys.executable, "-m", "fuzz.run", "--inside", name, "--work", os.fspath(work)]
        done = subprocess.run(
            [*command, "--seconds", str(int(left))],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        counts = re.findall(r"^(?:#|stat::number_of_executed_units: )(\d+)", done.stderr, re.MULTILINE)
        seen = re.findall(r"cov: (\d+)", done.stderr)
        executions += int(counts[-1]) if counts else 0
        coverage = max([coverage, *map(int, seen)])
        if done.returncode == 0:
            break
        restarts += 1
        if not counts:
            raise RuntimeError(f"{name} does not start: {done.stderr[-2000:]}")
    for artifact in sorted(work.glob(f"artifacts/{name}/*")):
        keep(name, artifact.name.partition("-")[0], artifact.read_bytes())
        artifact.unlink()
    found = sorted(path.name for path in set(HERE.glob(f"found/{name}/*")) - before)
    figures = {
        "target": name,
        "executions": executions,
        "seconds": round(time.monotonic() - start, 1),
        "coverage": coverage,
        "corpus": len(list((work / name).glob("*"))),
        "restarts": restarts,
        "findings": found,
    }
    sys.stderr.write(json.dumps(figures) + "\n")
    return figures


def keep(name: str, place: str, data: bytes) -> None:
    """Write a found input under the place where it broke; of two for one place the shorter stays."""
    folder = HERE / "found" / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / place
    if not path.exists() or len(data) < path.stat().st_size:
        path.write_bytes(data)


def inside(name: str, work: Path, seconds: int) -> None:
    """Be the process that fuzzes."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=INSTRUMENTED):
        contract = importlib.import_module("fuzz.contract")
        target = importlib.import_module("fuzz.targets").TARGETS[name]
    corpus, artifacts = work / name, work / "artifacts" / name
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    known = [path.read_bytes() for path in sorted(HERE.glob(f"found/{name}/*"))]
    for data in [*target.seeds(), *known]:
        corpus.joinpath(hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)

    def one(data: bytes) -> None:
        try:
            with contract.within(contract.MAX_INPUT_SECONDS):
                contract.hold(target, data)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what we look for)
            keep(name, contract.place_of(error), data)

    options = {
        "max_total_time": seconds,
        "max_len": target.max_bytes,
        "timeout": HANG_SECONDS,
        "rss_limit_mb": MEMORY_MB,
        "artifact_prefix": f"{artifacts}/",
        "print_final_stats": 1,
        "verbosity": 1,
    }
    atheris.Setup([name, *(f"-{key}={value}" for key, value in options.items()), os.fspath(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
