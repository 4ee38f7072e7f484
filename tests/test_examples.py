"""The examples do what they say, with public names alone and without a network."""

import ast
import os
import subprocess
import sys
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
def refuse(*arguments, **named): raise OSError("an example went for the network")
socket.socket = socket.create_connection = refuse
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
