"""Where and with what one run measures: its folders, its environment, its workloads, its tools."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import data
from data import Tree
from measure import Command

FULL_FROM: Final = 0.25
"""Smallest scale at which the tree of sources and all counts are whole; the large files shrink at once."""

ENTRIES: Final = 1_000_000
"""Entries of the largest directory, and objects of the largest store."""


class Options(NamedTuple):
    """What a run was asked for.

    Attributes:
        work: folder for workloads and stores; on the file system that is to be measured.
        scale: 1 for the full workloads.
        rounds: how often each case runs.
        peers: names of peers to measure; None for every installed one.
        synthetic: make a tree instead of fetching packages.
    """

    work: Path
    scale: float
    rounds: int
    peers: frozenset[str] | None
    synthetic: bool


class Setting:
    """Folders, environment and workloads of one run."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options = options
        self.rounds = options.rounds
        self.scale = options.scale
        self.say = say
        self.runs = options.work / f"run-{os.getpid()}"
        self._count = 0

    # Folders

    def fresh(self, label: str) -> Path:
        """Return a path that does not exist yet, in a folder of its own."""
        self._count += 1
        folder = self.runs / f"{self._count:04d}"
        folder.mkdir(parents=True)
        return folder / label

    def clear(self) -> None:
        """Remove what this run has made, workloads excepted."""
        shutil.rmtree(self.runs, ignore_errors=True)

    # Tools

    def has(self, tool: str) -> bool:
        """Say whether a peer is installed and wanted."""
        wanted = self.options.peers is None or tool in self.options.peers
        return wanted and shutil.which(tool) is not None

    @cached_property
    def env(self) -> dict[str, str]:
        """Return the environment of every measured process: no settings of the person who runs it."""
        home = self.fresh("home")
        home.mkdir()
        kept = {
            name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ
        }
        places = {"HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}
        return {**kept, **{k: os.fspath(v) for k, v in places.items()}, "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def command(self, *argv: str | Path, cwd: Path | None = None, output: Path | None = None) -> Command:
        """Return a process in this run's environment."""
        return Command([os.fspath(part) for part in argv], self.env, cwd, output)

    def shell(self, text: str, *values: str | Path, cwd: Path | None = None) -> Command:
        """Return a shell pipeline; ``values`` are its ``$1``, ``$2``, and so on."""
        return self.command("/bin/sh", "-euc", text, "sh", *values, cwd=cwd)

    def prov(self, *arguments: str | Path, codes: tuple[int, ...] = (0,)) -> Command:
        """Return our command, as a person would run it, without progress."""
        script = Path(sysconfig.get_path("scripts"), "prov")
        program: list[str | Path] = [script] if script.exists() else [sys.executable, "-m", "provstore"]
        return self.command(*program, *arguments, "--quiet")._replace(codes=codes)

    def python(self, code: str) -> Command:
        """Return a fresh interpreter of this environment that runs ``code``."""
        return self.command(sys.executable, "-c", code)

    # Workloads

    @property
    def fraction(self) -> float:
        """Return the part of the tree and of the counts that is measured: all of them from scale 0.25 up."""
        return min(1.0, self.scale / FULL_FROM)

    def sizes(self) -> list[int]:
        """Return the numbers of entries that this scale measures."""
        return [
            size for size in (1_000, 10_000, 100_000, ENTRIES) if size <= max(1_000, ENTRIES * self.fraction)
        ]

    @cached_property
    def model(self) -> Tree:
        """W1: a model of large random files."""
        self.say("making W1")
        return data.model(self.options.work / f"w1-{self.scale:g}", self.scale)

    @cached_property
    def sources(self) -> Tree:
        """W2: a tree of small files. Rows may edit it and must then seal it with every peer again."""
        self.say("making W2")
        place = self.options.work / f"w2-{self.fraction:g}"
        kept = data.sources(
            place, self.fraction, self.options.work / "wheels", synthetic=self.options.synthetic
        )
        # Edited by some rows, so each run works on a copy of its own.
        copy = self.fresh("sources")
        shutil.copytree(kept.path, copy, symlinks=True)
        return data.described(copy, kept.made_of)

    @cached_property
    def logs(self) -> Tree:
        """W3: logs of benchmarks and servers."""
        self.say("making W3")
        return data.logs(self.options.work / f"w3-{self.scale:g}", self.scale)

    @cached_property
    def model_spec(self) -> Path:
        """Return a packet spec that seals W1 by reference."""
        spec = self.fresh("model.toml")
        head = 'format = "provstore/packet-spec/v1"\nname = "model"\n'
        entry = f'[[entry]]\nrole = "model"\nkind = "model"\nkeep = "external"\npath = "{self.model.path}"\n'
        spec.write_text(head + entry, encoding="utf-8")
        return spec
