"""What only shows on a terminal: colours and progress."""

import io
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prov_run import Prov

from provstore.cli.meter import ProgressMeter, progress_text
from provstore.files.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(arguments: list[str], place: Path, **settings: str) -> str:
    """Run ``prov`` with stdout on a pseudo-terminal and return what appeared there."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **settings}
    command = [sys.executable, "-m", "provstore", *arguments]
    with subprocess.Popen(command, cwd=place, stdout=theirs, stderr=subprocess.DEVNULL, env=environment):
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(ours)
    return shown.decode()


def test_colour_only_on_a_terminal_and_never_against_no_color(prov: Prov, tree: Path, place: Path) -> None:
    prov("seal", tree)
    assert on_a_terminal(["verify", "t"], place).startswith("\x1b[32mPASS\x1b[0m")
    assert "\x1b" not in on_a_terminal(["verify", "t"], place, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(["verify", "t"], place, TERM="dumb")
    assert "\x1b" not in prov("verify", "t").text()


def test_progress_waits_a_second_and_escapes_names(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with ProgressMeter("seal", quiet=False) as shown:
        assert shown.reporter is not None
        shown.reporter(Progress(1, 100, 0, 2, b"early"))
        assert stream.getvalue() == ""
        now[0] = 2.0
        shown.reporter(Progress(50, 100, 1, 2, b"a\x1b[2Jb"))
        shown.reporter(Progress(51, 100, 1, 2, b"too soon"))
    text = stream.getvalue()
    assert "50 B of 100 B, 1 of 2 files, 25 B/s, 0:02 left" in text
    assert "\\x1b[2Jb" in text
    assert "early" not in text
    assert "too soon" not in text
    assert text.endswith("\r\x1b[K")


def test_progress_in_a_file_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with ProgressMeter("seal", quiet=False) as shown:
        assert shown.reporter is not None
        for second in range(1, 26):
            now[0] = float(second)
            shown.reporter(Progress(second, None, 0, None, b"f"))
    assert len(stream.getvalue().splitlines()) == 2
    assert "\x1b" not in stream.getvalue()


def test_quiet_has_no_reporter() -> None:
    assert ProgressMeter("seal", quiet=True).reporter is None


def test_an_unknown_total_promises_nothing() -> None:
    text = progress_text("verify", Progress(0, None, 3, None, b"x"), 0.0)
    assert text == "verify: 0 B, 3 files, 0 B/s, x"
