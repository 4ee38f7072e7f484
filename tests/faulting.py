"""One system call of a seal fails once, by a preloaded shim; used by tests and torture.

Run as a script this is the driver: a process with the shim loaded that forks one ``prov seal`` a line.
"""

import ctypes
import errno
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from killing import PROFILE, copied, left_in, seal_into, small_batches, sound, tree

from provstore.cli import main
from provstore.files import hashing
from provstore.store.lmdb_store import LmdbStore
from provstore.store.system import FEW_FILES

SHIM: Final = Path(__file__).parent / "fault" / "shim.c"

OPS: Final = (
    "open", "read", "pread", "write", "pwrite", "fsync", "fdatasync", "syncfs", "rename", "mkdir", "unlink",
    "ftruncate", "mmap",
)  # fmt: skip
"""In the order of the shim's enumeration."""

SHORT: Final = "SHORT"

_PUBLISH: Final = ("ENOSPC", "EIO", "EPERM", "EROFS")
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "open": ("EIO", "EPERM", "EMFILE", "EINTR", "EROFS", "ENOSPC"),
    "read": ("EIO", "EPERM", "EINTR", SHORT),
    "pread": ("EIO", "EPERM", "EINTR", SHORT),
    "write": ("ENOSPC", "EIO", "EPERM", "EINTR", SHORT),
    "pwrite": ("ENOSPC", "EIO", "EPERM", "EINTR", SHORT),
    "fsync": ("ENOSPC", "EIO", "EINTR"),
    "fdatasync": ("ENOSPC", "EIO", "EINTR"),
    "syncfs": ("ENOSPC", "EIO", "EINTR"),
    "rename": _PUBLISH,
    "mkdir": _PUBLISH,
    "unlink": _PUBLISH,
    "ftruncate": ("ENOSPC", "EIO", "EPERM", "EINTR"),
    "mmap": ("EPERM", "EMFILE", "EIO"),
}

MUST_SUCCEED: Final = ("EINTR", SHORT)

LMDB_FAILS: Final = (("write", SHORT), ("pwrite", SHORT))
"""LMDB takes a short write of pages for a full disk; the whole commit then fails and can be repeated."""


class Case(msgspec.Struct, frozen=True):
    """Which call fails, and how."""

    op: str
    nth: int
    kind: str


class Outcome(msgspec.Struct, frozen=True):
    """How one ``prov seal`` with a failing call ended."""

    status: int
    fired: bool
    counts: dict[str, int]
    out: str
    err: str


def build(place: Path) -> Path:
    """Compile the shim."""
    library = place / "shim.so"
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-O2",
        "-Wall",
        "-Werror",
        "-o",
        *map(os.fspath, (library, SHIM)),
        "-ldl",
    ]
    subprocess.run(command, check=True)
    return library


# -- the driver -------------------------------------------------------------------------------------------


def serve(place: Path) -> None:
    """Answer each case on standard input with its outcome."""
    shim = ctypes.CDLL(None)
    small_batches()
    hashing.SMALL_BYTES = PROFILE.inline_limit_bytes  # type: ignore[misc]
    warm = place / "warm"
    arguments = ["seal", os.fspath(place / "b"), "--name", "b", "--no-cache", "--store"]
    for number, line in enumerate(sys.stdin):
        if number == 0:  # whatever is imported or cached on the way is no call of a seal
            with open(os.devnull, "w") as void:
                sys.stdout, sys.stderr = void, void
                _seal([*arguments, os.fspath(warm)], -1, Case("open", -1, "EIO"), shim)
                sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        case = msgspec.json.decode(line, type=Case)
        outcome = _one([*arguments, os.fspath(place / "store")], case, shim)
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        sys.stdout.flush()


def _one(arguments: Sequence[str], case: Case, shim: Any) -> Outcome:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as told:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            code = 71
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                code = _seal(arguments, told.fileno(), case, shim)
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        for file in (out, err, told):
            file.seek(0)
        fired, counts = msgspec.json.decode(told.read() or b"[false,{}]")
        return Outcome(
            os.waitstatus_to_exitcode(status), fired, counts, out.read().decode(), err.read().decode()
        )


def _seal(arguments: Sequence[str], told: int, case: Case, shim: Any) -> int:
    how = -1 if case.kind == SHORT else getattr(errno, case.kind)
    never = case.nth < 0
    shim.fault_arm(OPS.index(case.op), ctypes.c_long(1 << 40 if never else case.nth), how)
    code = main(arguments)
    counts = {op: shim.fault_count(number) for number, op in enumerate(OPS)}
    fired = bool(shim.fault_fired())
    shim.fault_arm(-1, ctypes.c_long(0), 0)
    if told >= 0:
        os.write(told, msgspec.json.encode([fired, counts]))
    return code


# -- the other side ---------------------------------------------------------------------------------------


class Bench:
    """A store with packet ``a``, and a driver that seals ``b`` into copies of it."""

    def __init__(self, place: Path, driver: "subprocess.Popen[str]") -> None:
        self.place = place
        self._driver = driver
        base = LmdbStore.create(os.fspath(place / "base"), profile=PROFILE)
        base.close()
        for mark in "ab":
            tree(place / mark, mark)
        copied(place / "base", place / "warm")
        self.packets = {"b": seal_into(copied(place / "base", place / "other"), place / "b", "b")}
        self.packets["a"] = seal_into(place / "base", place / "a", "a")

    def many_blobs(self) -> None:
        """Give ``b`` more blob files than are synced one by one."""
        for number in range(FEW_FILES + 2):
            self.place.joinpath("b", f"blob{number}").write_bytes(bytes((number,)) * 21_000)
        self.packets["b"] = seal_into(self.place / "other", self.place / "b", "b")

    def ask(self, case: Case) -> Outcome:
        """Seal ``b`` into a fresh copy while a call fails."""
        copied(self.place / "base", self.place / "store")
        source, sink = self._driver.stdin, self._driver.stdout
        assert source is not None
        assert sink is not None
        source.write(msgspec.json.encode(case).decode() + "\n")
        source.flush()
        line = sink.readline()
        assert line, "the driver died"
        return msgspec.json.decode(line, type=Outcome)

    def counts(self) -> dict[str, int]:
        """Return how often a seal makes each call."""
        outcome = self.ask(Case("open", -1, "EIO"))
        assert (outcome.status, outcome.fired) == (0, False), outcome
        return outcome.counts

    def check(self, case: Case) -> str:
        """Check one case; return ``sealed`` or the code of the error."""
        outcome = self.ask(case)
        assert "Traceback" not in outcome.err, (case, outcome)
        assert "defect" not in outcome.err, (case, outcome)
        store = self.place / "store"
        found = sound(store, {"a": self.packets["a"]}, frozenset("b"))
        assert found.get("b") in (None, self.packets["b"]), case
        if outcome.status == 0:
            assert outcome.out == self.packets["b"] + "\n", (case, outcome)
            assert found.get("b") == self.packets["b"], (case, outcome)
        else:
            assert outcome.status == 2 or 10 <= outcome.status < 70, (case, outcome)
            assert re.search(r"^error \[[a-z-]+\]: ", outcome.err, re.MULTILINE), (case, outcome)
            assert outcome.out in ("", self.packets["b"] + "\n"), (case, outcome)
        left = left_in(store)
        assert case.op == "unlink" or left == ([], [], []), (case, outcome, left)
        assert seal_into(store, self.place / "b", "b") == self.packets["b"], case
        sound(store, self.packets)
        if outcome.status == 0:
            return "sealed"
        assert case.kind not in MUST_SUCCEED or (case.op, case.kind) in LMDB_FAILS, (case, outcome)
        return outcome.err.split("error [")[1].split("]")[0]


@contextmanager
def bench(place: Path) -> Iterator[Bench]:
    """Start a driver and make what it seals."""
    environment = {**os.environ, "LD_PRELOAD": os.fspath(build(place))}
    command = [sys.executable, __file__, os.fspath(place)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        try:
            yield Bench(place, driver)
        finally:
            with suppress(OSError):
                if driver.stdin is not None:
                    driver.stdin.close()
            driver.wait()


def cases(counts: dict[str, int]) -> list[Case]:
    """Return every case there is."""
    return [Case(op, nth, kind) for op in OPS for nth in range(counts[op]) for kind in KINDS[op]]


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
