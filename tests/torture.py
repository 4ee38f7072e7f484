"""The long version of the tests of crashes, faults, crowds and rot: ``make torture``.

    python tests/torture.py --kills 10000 --minutes 60 --flips 1000000
    python tests/torture.py --parts kills,flips --resume

Each part is cut into jobs, of which ``--processes`` run at once; the crowd works alone. A line is printed
for each that ended, and kept in a file of its own, so that ``--resume`` goes on where a run was stopped.
Writes what it did to ``benchmarks/results/torture-DATE.json``, beside the parts of earlier runs of that day,
and ends with 1 at the first broken promise, with the seed of the job that found it.
"""

import argparse
import datetime
import json
import multiprocessing
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final, NamedTuple

from crowding import crowd
from faulting import bench, cases
from flipping import CHECKED, Flip, Specimen, flips_of, pack_outcome, structure_flips, survey
from killing import memory_disk
from milling import Mill

from provstore.verbs.locating import Located
from provstore.verbs.packing import pack

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
STATE = ROOT / "benchmarks" / "work" / "torture.jsonl"

PARTS: Final = {"kills": "random_kills", "calls": "failing_calls", "flips": "bit_flips", "crowd": "crowd"}
"""Name of each part in the results."""

KILLS_A_JOB: Final = 100
FLIPS_A_JOB: Final = 10_000
CALL_JOBS: Final = 2


class Job(NamedTuple):
    """One piece of a part; what it is called is the same whenever sizes and seed are."""

    part: str
    number: int
    size: float
    seed: int


def kills(place: Path, job: Job) -> dict[str, Any]:
    """Kill so many children at random moments."""
    tally = Mill(place, job.seed).grind(int(job.size))
    return {
        "kills": tally.kills,
        "amid": tally.amid,
        "found_whole": tally.kept,
        "left_something": tally.leftovers,
    }


def together(place: Path, job: Job) -> dict[str, Any]:
    """Let two sealers, eight readers, fsck, gc and pack work on one store."""
    found = crowd(place, job.size * 60)
    assert found.index_bytes[-1] <= 4 * found.index_bytes[0] + (16 << 20), "the index grows without bound"
    return {"minutes": job.size, "turns": found.turns, "index_bytes_by_quarter": found.index_bytes}


def calls(place: Path, job: Job) -> dict[str, Any]:
    """Make system calls of a seal fail in every way: those of this job's share."""
    answers: Counter[str] = Counter()
    with bench(place) as workbench:
        for case in cases(workbench.counts())[job.number :: CALL_JOBS]:
            answers[workbench.check(case)] += 1
    return {"cases": sum(answers.values()), "answers": dict(answers)}


def flips(place: Path, job: Job) -> dict[str, Any]:
    """Flip so many bits of an index, its blob files and a pack."""
    outcomes: Counter[str] = Counter()
    chance = random.Random(job.seed)
    specimen = Specimen(place)
    path = place / "run.pack"
    with specimen.open() as store:
        packet = dict(store.refs())["run-b"]
        pack([("run-b", Located(store, packet, False))], path)

    def of_pack(_: Flip) -> str:
        return pack_outcome(path, packet, specimen.truth)

    chosen = {
        "index": flips_of,
        "structure": structure_flips,
        **{str(number): flips_of for number in range(len(specimen.files))},
        "pack": flips_of,
    }
    files = {"index": specimen.index, "structure": specimen.index, "pack": path}
    files |= {str(number): file for number, file in enumerate(specimen.files)}
    for number, (name, choose) in enumerate(chosen.items()):
        share = (int(job.size) * (number + 1)) // len(chosen) - (int(job.size) * number) // len(chosen)
        ask = of_pack if name == "pack" else specimen.quick
        found = survey(choose(files[name], share, chance), ask, specimen.kind)
        assert found.faults == [], found.faults[:10]
        outcomes.update(found.outcomes)
    return {"flips": sum(outcomes.values()), "outcomes": dict(outcomes)}


WORK: Final[dict[str, Callable[[Path, Job], dict[str, Any]]]] = {
    "kills": kills,
    "calls": calls,
    "flips": flips,
    "crowd": together,
}


def do(job: Job) -> tuple[Job, dict[str, Any]]:
    """Do one job; what went wrong names the job, so that it can be done again."""
    began = time.monotonic()
    on_disk = job.part == "crowd"  # one part waits for a real disk; the others need none
    with tempfile.TemporaryDirectory() if on_disk else memory_disk() as place:
        try:
            found = WORK[job.part](Path(place), job)
        except AssertionError as error:
            raise AssertionError(f"{job}: {error}") from error
    return job, {**found, "seconds": round(time.monotonic() - began, 1)}


def jobs_of(asked: argparse.Namespace) -> Iterator[Job]:
    """Yield the jobs of all parts that were asked for."""
    sizes = {
        "kills": [min(KILLS_A_JOB, asked.kills - start) for start in range(0, asked.kills, KILLS_A_JOB)],
        "calls": [1] * CALL_JOBS,
        "flips": [min(FLIPS_A_JOB, asked.flips - start) for start in range(0, asked.flips, FLIPS_A_JOB)],
        "crowd": [asked.minutes] if asked.minutes else [],
    }
    for part in asked.parts:
        for number, count in enumerate(sizes[part]):
            yield Job(part, number, count, random.Random(f"{asked.seed} {part} {number}").getrandbits(32))


def added(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of two jobs' figures, name by name."""
    sums = dict(total)
    for name, value in more.items():
        if isinstance(value, dict):
            sums[name] = added(sums.get(name, {}), value)
        elif isinstance(value, list):
            sums[name] = value
        else:
            sums[name] = round(sums.get(name, 0) + value, 1)
    return sums


class Account:
    """What was done so far, in memory and in a file."""

    def __init__(self, path: Path, head: dict[str, Any], resume: bool) -> None:
        self.done: dict[Job, dict[str, Any]] = {}
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume and path.exists():
            first, *lines = [json.loads(line) for line in path.read_text().splitlines()]
            if first != head:
                raise SystemExit(f"{path} is of a run with {first}, not {head}")
            self.done = {Job(*line["job"]): line["found"] for line in lines}
        else:
            path.write_text(json.dumps(head) + "\n")

    def add(self, job: Job, found: dict[str, Any]) -> None:
        self.done[job] = found
        with open(self._path, "a") as file:
            file.write(json.dumps({"job": job, "found": found}) + "\n")

    def totals(self, part: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for job in sorted(self.done):
            if job.part == part:
                found = added(found, self.done[job])
        return found


def run(asked: argparse.Namespace, account: Account) -> None:
    """Do what is left to do, and tell of each job that ended."""
    todo = [job for job in jobs_of(asked) if job not in account.done]
    began = time.monotonic()
    spawn = multiprocessing.get_context("spawn")
    for part in asked.parts:
        mine = [job for job in todo if job.part == part]
        at_once = 1 if part == "crowd" else asked.processes
        with ProcessPoolExecutor(at_once, mp_context=spawn) as pool:
            pending = [pool.submit(do, job) for job in mine]
            try:
                for number, future in enumerate(as_completed(pending), 1):
                    job, found = future.result()
                    account.add(job, found)
                    minutes = (time.monotonic() - began) / 60
                    line = json.dumps(
                        {name: found[name] for name in found if not isinstance(found[name], list)}
                    )
                    print(f"{minutes:6.1f} min  {part} {number} of {len(mine)}  {line}", flush=True)
            except AssertionError:
                pool.shutdown(cancel_futures=True)
                raise


def write(asked: argparse.Namespace, account: Account, began: float) -> Path:
    """Write the figures beside those of other parts of the same day."""
    now = datetime.datetime.now(datetime.UTC)
    target: Path = asked.results / f"torture-{now.date()}.json"
    report = json.loads(target.read_text()) if target.exists() else {}
    for part in asked.parts:
        report[PARTS[part]] = {
            "taken": now.isoformat(timespec="seconds"),
            "seed": asked.seed,
            "python": platform.python_version(),
            "kernel": platform.release(),
            "processors": os.cpu_count(),
            "processes": 1 if part == "crowd" else asked.processes,
            **account.totals(part),
        }
        if part == "flips":
            report[PARTS[part]]["checked"] = CHECKED
    asked.results.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(report, indent=2) + "\n")
    print(f"{(time.monotonic() - began) / 60:.1f} min in all; {target}")
    return target


def parts_of(text: str) -> list[str]:
    """Return the names of parts in a list; raises ValueError for any that is none."""
    names = text.split(",")
    if set(names) - PARTS.keys():
        raise ValueError(text)
    return [part for part in PARTS if part in names]


def main() -> int:
    """Run what was asked for and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", type=parts_of, default=list(PARTS), metavar=",".join(PARTS))
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--flips", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--state", type=Path, default=STATE, help="what is done so far")
    parser.add_argument("--resume", action="store_true", help="go on with what --state has")
    asked = parser.parse_args()
    if asked.seed is None and asked.resume and asked.state.exists():
        asked.seed = json.loads(asked.state.read_text().splitlines()[0])["seed"]
    elif asked.seed is None:
        asked.seed = random.SystemRandom().getrandbits(32)
    print(f"seed {asked.seed}", flush=True)
    began = time.monotonic()
    sizes = {name: getattr(asked, name) for name in ("seed", "kills", "minutes", "flips")}
    account = Account(asked.state, sizes, asked.resume)
    try:
        run(asked, account)
    except AssertionError as error:
        print(f"a promise is broken: {error}", file=sys.stderr)
        return 1
    write(asked, account, began)
    return 0


if __name__ == "__main__":
    sys.exit(main())
