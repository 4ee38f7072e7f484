"""Every benchmark still runs, on tiny workloads. What it shows is looked at, how long it took is not."""

import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
README = BENCHMARKS / "README.md"

GOALS = {
    "P1": 4,
    "P2": 3,
    "P3": 2,
    "P4": 2,
    "P5": 3,
    "P6": 2,
    "P7": 7,
    "P8": 3,
    "P9": 4,
    "P10": 7,
    "P11": 6,
    "P12": 2,
    "P13": 2,
    "P14": 2,
    "P15": 11,
    "P17": 1,
    "W3": 0,
}
"""Rows, and how many goals each has."""

QUICK = "b3sum,sha256sum,git,tar,zstd,jq"
SLOW = [(tool, rows) for tool, rows in (("restic", "P7"), ("borg", "P5,P7")) if shutil.which(tool)]


def measured(place: Path, rows: str, peers: str) -> tuple[dict[str, Any], str, str]:
    """Run some rows once on tiny workloads; return the result, its bytes as text, and the README."""
    options = ["--rounds", "1", "--scale", "0.001", "--synthetic", "--rows", rows, "--peers", peers]
    folders = {"--work": place / "work", "--results": place / "results", "--readme": place / "README.md"}
    shutil.copy(README, place / "README.md")
    arguments = [*options, *[os.fspath(part) for pair in folders.items() for part in pair]]
    done = subprocess.run(
        [sys.executable, os.fspath(BENCHMARKS / "run.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = (place / "results").iterdir()
    text = path.read_text(encoding="utf-8")
    return json.loads(text), text, (place / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GOALS)
def test_each_row_measures_all_its_goals(name: str, tmp_path: Path) -> None:
    result, text, readme = measured(tmp_path, name, QUICK)
    (row,) = result["rows"]
    assert row["name"] == name
    assert len(row["findings"]) == GOALS[name]
    for finding in row["findings"]:
        assert finding["verdict"] in {"met", "missed", "not measured"}
        assert (
            (finding["measured"] is None) == (finding["verdict"] == "not measured") == bool(finding["absent"])
        )
        assert f"| {name} | {finding['text'].replace('|', chr(92) + '|')} |" in readme
    assert row["times"] or name == "P10"
    for middle, low, high in row["times"].values():
        assert 0 < low <= middle <= high
    assert text.count("\n") == 1
    for private in (platform.node(), os.fspath(tmp_path), os.fspath(BENCHMARKS.parent)):
        assert private not in text
        assert private not in readme


@pytest.mark.parametrize(("peer", "rows"), SLOW)
def test_slow_peers_are_measured_where_they_are_installed(peer: str, rows: str, tmp_path: Path) -> None:
    result, _, _ = measured(tmp_path, rows, peer)
    names = {name for row in result["rows"] for name in row["times"]}
    assert f"{peer} diff (W2)" in names
    assert (f"{peer} check" in names) == ("P5" in rows)
    assert "git diff (W2)" not in names


def test_absent_peers_are_named(tmp_path: Path) -> None:
    result, _, readme = measured(tmp_path, "P2", "none")
    assert all(finding["verdict"] == "not measured" for finding in result["rows"][0]["findings"])
    assert result["machine"]["restic"] == "absent"
    assert "Peers not measured: b3sum, sha256sum, git, restic, borg, tar, zstd, jq." in readme


def test_the_readme_keeps_what_stands_around_the_results(tmp_path: Path) -> None:
    _, _, readme = measured(tmp_path, "P11", "none")
    begin, end = "<!-- results: written by run.py, do not edit -->", "<!-- end of results -->"
    before = README.read_text(encoding="utf-8").partition(begin)[0]
    assert readme.startswith(before + begin + "\n\n## Results of ")
    assert readme.endswith(end + "\n")
    assert readme.count(begin) == readme.count(end) == 1


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return {name: importlib.import_module(name) for name in ("rows", "measure", "data")}


def test_the_median_decides_and_ratios_are_taken_round_by_round(modules: dict[str, Any]) -> None:
    rows, measure = modules["rows"], modules["measure"]
    timings = measure.Timings(["ours", "theirs"])
    timings.samples["ours"] = [measure.Sample(seconds, 1.0) for seconds in (1.0, 6.0, 2.0)]
    timings.samples["theirs"] = [measure.Sample(seconds, 1.0) for seconds in (1.0, 2.0, 4.0)]
    found = rows.against(rows.Goal("ours / theirs", 1.0), timings, "ours", "theirs")
    assert found.measured == (1.0, 0.5, 3.0)
    assert found.verdict() == "met"
    assert rows.against(rows.Goal("ours / theirs", 0.9), timings, "ours", "theirs").verdict() == "missed"
    faster = rows.inverse(rows.Goal("theirs / ours", 1.1, at_least=True), timings, "ours", "theirs")
    assert faster.measured == (1.0, 1 / 3, 2.0)
    assert faster.verdict() == "missed"
    absent = rows.against(rows.Goal("ours / other", 1.0), timings, "ours", "other")
    assert (absent.verdict(), absent.absent) == ("not measured", "no other here")


def test_a_failing_program_is_no_measurement(modules: dict[str, Any]) -> None:
    measure = modules["measure"]
    command = measure.Command([sys.executable, "-c", "raise SystemExit('no such luck')"], dict(os.environ))
    for run in (measure.timed, measure.peak_memory):
        with pytest.raises(measure.CommandFailedError, match="ended with 1: no such luck"):
            run(command)
    assert measure.timed(command._replace(codes=(0, 1))).seconds > 0


def test_peak_memory_counts_the_whole_tree(modules: dict[str, Any]) -> None:
    measure = modules["measure"]
    hungry = "import time; held = b'x' * (40 << 20); time.sleep(0.4)"
    start = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', sys.argv[1]]); "

    def peak(code: str) -> int:
        command = measure.Command([sys.executable, "-c", code, hungry], dict(os.environ))
        found = measure.peak_memory(command)
        assert isinstance(found, int)
        return found

    alone, pair = peak(hungry), peak(start + "exec(sys.argv[1]); p.wait()")
    after = peak(start + "p.wait(); exec(sys.argv[1])")
    assert 40 << 20 < alone < 70 << 20
    assert 80 << 20 < pair < 140 << 20
    assert 40 << 20 < after < 80 << 20


def test_workloads_are_the_same_each_time(modules: dict[str, Any], tmp_path: Path) -> None:
    data = modules["data"]
    trees = []
    for name in ("a", "b"):
        tree = data.sources(tmp_path / name, 0.003, tmp_path / "wheels", synthetic=True)
        trees.append({p.relative_to(tree.path): p.read_bytes() for p in data.files_of(tree.path)})
        assert tree.files == len(trees[-1]) == 112
        assert tree.size_bytes == sum(map(len, trees[-1].values()))
    assert trees[0] == trees[1]
    data.edit(tree.path, "token", 20)
    now = {p.relative_to(tree.path): p.read_bytes() for p in data.files_of(tree.path)}
    assert sum(now[path] != content for path, content in trees[0].items()) == 20
