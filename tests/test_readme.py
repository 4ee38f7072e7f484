"""What the README shows is what happens: its commands run, and its output is theirs."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
MAX_LINES = 420
LAB = "## The lab's packet"
"""The section whose commands read files that are not part of the repository."""

WILD = "..."
"""In output: whole lines that are left out, or the rest of what stands in a line."""


class Block(NamedTuple):
    """A fenced block, the section that it stands in, and the output that is shown right after it."""

    language: str
    section: str
    text: str
    shown: str | None


def blocks() -> Iterator[Block]:
    fences = list(re.finditer(r"(?ms)^```([a-z]+)\n(.*?)^```$", README))
    for fence, after in zip(fences, [*fences[1:], None], strict=True):
        shown = None
        if after is not None and after[1] == "text" and not README[fence.end() : after.start()].strip():
            shown = after[2]
        section = re.findall(r"(?m)^## .*$", README[: fence.start()])[-1]
        if fence[1] != "text":
            yield Block(fence[1], section, fence[2], shown)


BLOCKS = list(blocks())
TOUR = [block for block in BLOCKS if block.section != LAB]


def differs(shown: str, found: str) -> str:
    """Return the first shown line that is not in the output in its place, or nothing."""
    lines = found.splitlines()
    at, skipping = 0, False
    for line in shown.splitlines():
        if line.strip() == WILD:
            skipping = True
            continue
        pattern = re.compile(".*".join(map(re.escape, line.split(WILD))))
        fits = [n for n in range(at, len(lines)) if pattern.fullmatch(lines[n])]
        if not fits or (fits[0] != at and not skipping):
            return line
        at, skipping = fits[0] + 1, False
    return "" if skipping or at == len(lines) else f"and then {lines[at]}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the examples, beside which a ``prov`` of the code under test can be called."""
    folder = tmp_path / "provstore"
    shutil.copytree(ROOT / "examples", folder / "examples")
    program = tmp_path / "bin" / "prov"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m provstore "$@"\n')
    program.chmod(0o755)
    return folder


def run(block: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PROV", "XDG"))}
    environment |= {
        "PATH": os.pathsep.join([os.fspath(folder.parent / "bin"), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([os.fspath(ROOT), os.environ.get("PYTHONPATH", "")]),
        "HOME": os.fspath(folder.parent),
    }
    return subprocess.run(
        block,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def check(told: list[Block], folder: Path) -> None:
    """Run shell blocks one after the other in one shell, and hold what each wrote to what is shown."""
    mark = "-- end of block --"
    script = "set -e\n" + "".join(f"{block.text}echo '{mark}'\n" for block in told)
    done = run(["bash", "-c", script], folder)
    assert done.returncode == 0, done.stdout
    outputs = done.stdout.split(f"{mark}\n")
    assert len(outputs) == len(told) + 1
    for block, found in zip(told, outputs, strict=False):
        wrong = differs(block.shown or "", found)
        assert not wrong, f"{block.text}shows {wrong!r}; it wrote:\n{found}"


def test_the_tour_and_then_python_do_what_is_shown(checkout: Path) -> None:
    check([block for block in TOUR if block.language == "sh"], checkout)
    programs = [block for block in TOUR if block.language == "python"]
    assert programs
    for block in programs:
        done = run([sys.executable, "-W", "error", "-c", block.text], checkout)
        assert done.returncode == 0, done.stdout
        assert not differs(block.shown or "", done.stdout), done.stdout


def test_the_packets_of_the_lab_do_what_is_shown(checkout: Path, corpus: Path) -> None:
    (checkout.parent / "shared").mkdir()
    (checkout.parent / "shared" / "corpus").symlink_to(corpus)
    told = [block for block in BLOCKS if block.section == LAB]
    assert len(told) > 2
    check(told, checkout)


def test_every_block_is_run_and_every_shell_block_shows_its_output() -> None:
    assert {block.language for block in BLOCKS} == {"sh", "python"}
    assert [block.text for block in BLOCKS if block.shown is None] == []
    assert README.count("\n") <= MAX_LINES
    assert "/work/" not in README


@pytest.mark.parametrize(
    ("shown", "found", "wrong"),
    [
        ("a\nb\n", "a\nb\n", ""),
        ("a\nb\n", "a\nc\n", "b"),
        ("a\n", "a\nb\n", "and then b"),
        ("a\nb\n", "a\nx\nb\n", "b"),
        ("a\n...\nb\n", "a\nx\nb\n", ""),
        ("...\nb\n", "a\n", "b"),
        ("a 1... of 3\n", "a 12 of 3\n", ""),
        ("a 1... of 3\n", "a 12 of 4\n", "a 1... of 3"),
        ("a\n...\n", "a\nx\ny\n", ""),
        ("", "a\n", "and then a"),
    ],
)
def test_a_difference_of_output_is_noticed(shown: str, found: str, wrong: str) -> None:
    assert differs(shown, found) == wrong


def newest(kind: str) -> Any:
    """Return the results of the newest run, each part from the newest that has it."""
    found = {}
    for path in sorted((ROOT / "benchmarks" / "results").glob(f"{kind}-*.json")):
        found.update(json.loads(path.read_text()))
    return found


def test_the_counts_of_promises_are_those_of_the_runs_that_were_kept() -> None:
    torture, fuzz = newest("torture"), newest("fuzz")
    executions = sum(target["executions"] for target in fuzz["targets"])
    for text in (
        f"| {torture['random_kills']['kills']:,} kills at random",
        f"| {torture['failing_calls']['cases']:,} system calls",
        f"| {torture['bit_flips']['flips']:,} flipped bits",
        f"| {executions:,} coverage-guided inputs over {len(fuzz['targets'])} decoders",
    ):
        assert text in README


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
