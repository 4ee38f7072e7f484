"""Declared capture commands: a limit on time and output, an environment from nothing, raw output kept."""

import hashlib
import os
import sys
import time
from pathlib import Path

import pytest

from provstore.host import commands
from provstore.host.commands import CaptureCommand, run_command


def python(text: str, seconds: float = 30.0) -> CaptureCommand:
    return CaptureCommand(name="probe", argv=(sys.executable, "-c", text), seconds=seconds)


def test_raw_output_with_its_digests() -> None:
    found = run_command(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    assert (found.output.state, found.output.exit_code) == ("ended", 3)
    assert (found.stdout, found.stderr) == (b"out\n", b"err\n")
    assert found.output.stdout == "probe.stdout"
    assert found.output.stdout_sha256 == hashlib.sha256(b"out\n").hexdigest()
    assert found.output.stderr_bytes == 4
    program = hashlib.sha256(Path(sys.executable).read_bytes()).hexdigest()
    assert found.output.program_sha256 == program


def test_its_environment_is_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_" + "a" * 30)
    found = run_command(python("import os; print(sorted(os.environ), os.getcwd())"))
    assert found.stdout == b"['LANG', 'LC_ALL', 'PATH'] /\n"


def test_a_command_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    text = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({os.fspath(mark)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    began = time.monotonic()
    found = run_command(python(text, seconds=2.0))
    assert time.monotonic() - began < 30
    assert (found.output.state, found.output.exit_code) == ("timeout", None)
    assert found.output.reason == "did not end within 2 s"
    for _ in range(200):
        if not is_running(int(mark.read_text())):
            break
        time.sleep(0.05)
    assert not is_running(int(mark.read_text()))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_a_command_leaves_behind_is_killed(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    text = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({os.fspath(mark)!r}, 'w').write(str(child.pid))\n"
    )
    assert run_command(python(text)).output.exit_code == 0
    for _ in range(200):
        if not is_running(int(mark.read_text())):
            break
        time.sleep(0.05)
    assert not is_running(int(mark.read_text()))


def test_a_command_that_prints_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "OUTPUT_LIMIT_BYTES", 100_000)
    found = run_command(python("import sys\nwhile True: sys.stdout.write('x' * 1000)", seconds=30.0))
    assert found.output.state == "too-long"
    assert found.output.exit_code is None
    assert len(found.stdout) == 100_000


@pytest.mark.parametrize("argv", [("true",), (), ("./true",), ("/no/such/program",), ("/etc",)])
def test_a_program_that_cannot_be_run_says_why(argv: tuple[str, ...]) -> None:
    found = run_command(CaptureCommand(name="probe", argv=argv))
    assert found.output.state == "not-run"
    assert found.output.reason
    assert found.output.stdout_sha256 is None
