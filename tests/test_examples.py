"""The examples do what they say, with public names alone and without a network."""

import ast
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

import provstore

FOLDER = Path(__file__).parent.parent / "examples"
MAX_LINES = 80

WANTED = {
    "seal_a_folder": ["sealed 2 files, 38 bytes read", "another name: same id", "more: another id"],
    "verify_and_catch_a_tamper": [
        "PASS  what the store holds",
        "PASS  the folder as it was",
        "FAIL  the folder after three changes",
        "extra: notes.txt",
        "changed: rows.txt",
        "missing: status.txt",
        "FAIL  a pack with one number altered",
        "damaged: rows.txt",
    ],
    "diff_two_runs": [
        "3 changed of 4 members",
        "bytes: logs server.log",
        "env.THREADS: 4 => 8",
        "version: 1.0 => 1.1",
        "env.LANG = C",
    ],
    "send_a_pack": [
        "without the packet: PASS",
        "as it arrived: PASS",
        "restored 2 files, 23 bytes",
        "held to the packet: PASS",
    ],
}

NO_NETWORK = """
import runpy, socket, sys
class Refused(socket.socket):
    def __init__(self, *arguments, **named): raise OSError("an example went for the network")
socket.socket = socket.create_connection = Refused
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("name", WANTED)
def test_an_example_runs_offline_and_says_what_happened(name: str, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": os.fspath(tmp_path), "TMPDIR": os.fspath(tmp_path)}
    environment |= {key: value for key, value in os.environ.items() if key == "PYTHONPATH"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_NETWORK, FOLDER / f"{name}.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    for text in WANTED[name]:
        assert text in run.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", WANTED)
def test_an_example_is_short_and_uses_public_names_only(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert len(text.splitlines()) <= MAX_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("provstore")
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("provstore.") for alias in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "provstore" or node.attr in provstore.__all__


def run_demo(place: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "error", FOLDER / "demo.py", place],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_shows_every_job_in_under_80_lines(tmp_path: Path) -> None:
    run = run_demo(tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) < 80
    for text in (
        "sealed small-run-1",
        "sealed this-environment",
        "PASS  packet",
        "FAIL  damaged  evidence/run bench.json",
        "notes.txt: extra",
        "status.txt: missing",
        "100.02857959416974 tok/s (seven-intervals) from 3 rows",
        "claim: decode                    100.0286 tok/s (seven-intervals) is recomputed",
        "114.31837667905113 is the number of eight-events, not of seven-intervals",
        "evidence/run/server.log line 3: log.ranks.rank = 1, log.ranks.graphs = 11",
        "env.ENGINE_THREADS  4 => 8",
        "whole: oracle/tokens, weights/target",
        "does-not-transfer  performance  cards is 2 here and 1 there",
        "Nobody ran it on one card.",
        "weights/target  2 of 2 missing",
    ):
        assert text in run.stdout


def test_the_demo_removes_nothing_of_others(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    run = run_demo(tmp_path)
    assert run.returncode == 1
    assert "holds something else" in run.stderr
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("number", [1, 2])
def test_the_small_run_says_nothing_untrue(number: int) -> None:
    """The claimed rate is that of the raw times; tokens, texts and prompts are those of the oracle."""
    folder = FOLDER / "small-run" / f"run-{number}"
    data = (folder / "evidence" / "bench.json").read_bytes()
    bench = json.loads(data, parse_float=Decimal)
    record = json.loads((folder / "record.json").read_bytes())
    oracle = json.loads((folder / "tokens-oracle.json").read_bytes())
    rates = []
    for row, wanted in zip(bench["rows"], oracle["rows"], strict=True):
        times = row["token_id_offsets_s"]
        rates.append((len(times) - 1) / (times[-1] - times[0]))
        assert len(times) == len(row["token_ids"]) == row["completion_tokens"]
        assert {name: row[name] for name in wanted} == wanted
        assert hashlib.sha256(row["text"].encode()).hexdigest() == row["sha256"]
    rate = str(statistics.median(rates).quantize(Decimal("0.0001")))
    assert str(bench["summary"]["decode_tokens_per_s"]) == rate
    assert str(record["decode"]["tokens_per_s"]) == rate
    assert record["sha256"]["bench"] == hashlib.sha256(data).hexdigest()
    assert tomllib.loads((folder / "packet.toml").read_text())["claim"][0]["value"] == rate
