"""The long version of the tests of crashes, faults, crowds and rot: ``make torture``.

    python tests/torture.py --kills 10000 --minutes 60 --flips 1000000

Writes what it did to ``benchmarks/results/torture-DATE.json``, and ends with 1 at the first broken promise.
"""

import argparse
import datetime
import functools
import json
import os
import platform
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crowding import crowd
from faulting import bench, cases
from flipping import Specimen, flips_of, pack_outcome, structure_flips, survey
from killing import memory_disk
from milling import Mill

from provstore.verbs.locating import Located
from provstore.verbs.packing import pack

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
ROUND = 500
"""Kills of one store, and hundred flips of one specimen, before a new one is made."""


def kills(place: Path, count: int, seed: int) -> dict[str, Any]:
    """Kill so many children at random moments."""
    amid: Counter[str] = Counter()
    kept = seen = leftovers = 0
    for start in range(0, count, ROUND):
        folder = place / f"mill{start}"
        folder.mkdir()
        tally = Mill(folder, seed + start).grind(min(ROUND, count - start))
        amid.update(tally.amid)
        kept += tally.kept
        seen += tally.seen
        leftovers += tally.leftovers
    return {"kills": count, "amid": dict(amid), "found_whole": kept, "left_something": leftovers}


def together(place: Path, minutes: float) -> dict[str, Any]:
    """Let two sealers, eight readers, fsck, gc and pack work on one store."""
    found = crowd(place, minutes * 60)
    assert found.index_bytes[-1] <= 4 * found.index_bytes[0] + (16 << 20), "the index grows without bound"
    return {"minutes": minutes, "turns": found.turns, "index_bytes_by_quarter": found.index_bytes}


def calls(place: Path) -> dict[str, Any]:
    """Make every system call of a seal fail in every way."""
    answers: Counter[str] = Counter()
    with bench(place) as workbench:
        for case in cases(workbench.counts()):
            answers[workbench.check(case)] += 1
    return {"cases": sum(answers.values()), "answers": dict(answers)}


def flips(place: Path, count: int, seed: int) -> dict[str, Any]:
    """Flip so many bits of indexes, blob files and packs."""
    outcomes: Counter[str] = Counter()
    chance = random.Random(seed)
    for start in range(0, count, ROUND * 100):
        folder = place / f"flips{start}"
        folder.mkdir()
        specimen = Specimen(folder)
        path = folder / "run.pack"
        with specimen.open() as store:
            packet = dict(store.refs())["run-b"]
            pack([("run-b", Located(store, packet, False))], path)
        share = max(1, min(ROUND * 100, count - start) // 5)
        todo: list[tuple[list[Any], Callable[[], str]]] = [
            (flips_of(specimen.index, share, chance), specimen.outcome),
            (structure_flips(specimen.index, share, chance), specimen.outcome),
            *((flips_of(file, share, chance), specimen.outcome) for file in specimen.files),
            (flips_of(path, share, chance), functools.partial(pack_outcome, path, packet, specimen.truth)),
        ]
        for chosen, ask in todo:
            found = survey(chosen, ask)
            assert found.faults == [], found.faults[:10]
            outcomes.update(found.outcomes)
    return {"flips": sum(outcomes.values()), "outcomes": dict(outcomes)}


def main() -> int:
    """Run what was asked for and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--flips", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    report: dict[str, Any] = {
        "taken": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": asked.seed,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "processors": os.cpu_count(),
    }
    work: dict[str, Callable[[Path], dict[str, Any]]] = {
        "random_kills": lambda place: kills(place, asked.kills, asked.seed),
        "crowd": lambda place: together(place, asked.minutes),
        "failing_calls": calls,
        "bit_flips": lambda place: flips(place, asked.flips, asked.seed),
    }
    for name, run in work.items():
        began = time.monotonic()
        on_disk = name == "crowd"  # one part waits for a real disk; the others need none
        with tempfile.TemporaryDirectory() if on_disk else memory_disk() as place:
            try:
                report[name] = run(Path(place))
            except AssertionError:
                traceback.print_exc()
                return 1
        report[name]["seconds"] = round(time.monotonic() - began, 1)
        print(name, json.dumps(report[name]), flush=True)
    asked.results.mkdir(parents=True, exist_ok=True)
    target = asked.results / f"torture-{report['taken'][:10]}.json"
    target.write_text(json.dumps(report, indent=2) + "\n")
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
