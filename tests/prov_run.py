"""A way to run ``prov`` in this process, and small trees to run it on; ``conftest`` loads it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from provstore.cli import main


class Ended(NamedTuple):
    """How one command ended."""

    code: int
    out: bytes
    err: str

    def json(self) -> Any:
        return msgspec.json.decode(self.out)

    def text(self) -> str:
        return self.out.decode()

    def id(self) -> str:
        """Return the packet id that a seal printed, which must be all that it printed."""
        assert self.code == 0, self.err
        assert self.out.endswith(b"\n")
        digits = self.text()[:-1]
        assert len(digits) == 64
        assert set(digits) <= set("0123456789abcdef")
        return digits


Prov = Callable[..., Ended]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory with a store of its own and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("PROVSTORE", "PROV_STORE", "PROV_MAP_SIZE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", os.fspath(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def prov(place: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Prov:
    """Return a function that runs ``prov`` in this process; the store is ``./.prov``."""

    def run(*arguments: str | Path) -> Ended:
        capsysbinary.readouterr()
        code = main([os.fspath(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return Ended(code, out, err.decode())

    assert run("init").code == 0
    return run


@pytest.fixture
def tree(place: Path) -> Path:
    """Return a small directory with a file, an executable, a link and an empty directory."""
    root = place / "t"
    (root / "logs").mkdir(parents=True)
    (root / "f").write_text("x\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("f")
    return root
