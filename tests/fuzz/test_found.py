"""What fuzzing found once, the seeds, and fresh mutations: all answered or refused, soon and in bounds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.contract import MAX_INPUT_SECONDS, TooSlowError, hold, within
from fuzz.mutate import FOUND, findings, inputs
from fuzz.targets import TARGETS

TESTS = Path(__file__).resolve().parents[1]

SEED = 20261130

COUNTS = {
    "merkle": 60,
    "hostile-packet": 250,
    "pack": 250,
    "environment": 600,
    "elf": 600,
    "data-file": 800,
    "documents": 1500,
    "evidence-bench": 1500,
    "judge": 150,
    "policy": 800,
}
"""Mutations of the targets that are slow; the others get :data:`USUAL`. Each takes a few seconds at most."""

USUAL = 4000

MAX_FOUND_BYTES = 128 << 10


def found_files() -> list[Path]:
    return sorted(path for path in FOUND.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", found_files(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once_is_held_for_good(path: Path) -> None:
    with within(MAX_INPUT_SECONDS):
        hold(TARGETS[path.parent.name], path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_keep_every_promise_in_bounded_memory(name: str) -> None:
    """A child of its own, under a limit of address space; every input under a limit of processor time."""
    count = COUNTS.get(name, USUAL)
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.mutate", name, str(SEED), str(count)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["target"] == name
    assert last["inputs"] > count


def test_found_inputs_belong_to_targets_and_are_small() -> None:
    assert {path.parent.name for path in found_files()} <= set(TARGETS)
    assert max(path.stat().st_size for path in found_files()) <= MAX_FOUND_BYTES


def test_seeds_are_taken_and_refused() -> None:
    """A target whose seeds are all refused, or all taken, looks at nothing."""
    blind = []
    for name, target in TARGETS.items():
        outcomes = {hold(target, data) is None for data in target.seeds()}
        if True not in outcomes:
            blind.append(name)
    assert blind == []


def test_the_harness_notices_what_it_is_for() -> None:
    """A broken promise, a slow input and memory without bound each come out as findings."""

    def broken(data: bytes) -> None:
        if data == b"wrong":
            raise KeyError("not ours")
        while data == b"slow":
            pass

    target = TARGETS["words"]._replace(run=broken)
    found = dict(findings(target, iter([b"fine", b"wrong"])))
    assert list(found.values()) == [b"wrong"]
    assert next(iter(found)).startswith("KeyError-")
    with pytest.raises(TooSlowError), within(0.2):
        hold(target, b"slow")
    code = "from fuzz.contract import limit_memory; limit_memory(); bytearray(400 << 20)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(TESTS), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert "MemoryError" in done.stderr


def test_mutations_are_the_same_for_the_same_seed() -> None:
    target = TARGETS["checksums"]
    once, again, other = (list(inputs("checksums", target, seed, 50)) for seed in (1, 1, 2))
    assert once == again
    assert once != other
