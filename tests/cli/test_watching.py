"""Large damaged indexes: LMDB dies of a signal, and the command says what is wrong all the same."""

import itertools
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from flipping import flipped, key_pages, structure_flips
from killing import Say, run
from workbench import plant

from provstore.cli import main, watching
from provstore.cli.console import Process
from provstore.errors import StoreDamagedError
from provstore.ids import digests
from provstore.store import data_file
from provstore.store.lmdb_store import LmdbStore
from provstore.store.opening import index_bytes
from provstore.store.protocol import Location, StatSignature
from provstore.verbs.sealing import SealOptions, seal_paths

OBJECTS = 20_000
FLIPS = 30

DAMAGED = StoreDamagedError.exit_code


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose index has too many pages to be walked whenever it is opened."""
    place = tmp_path_factory.mktemp("large")
    with LmdbStore.create(os.fspath(place / ".prov")) as store:
        assert isinstance(store, LmdbStore)
        with store.stage() as stage:
            for number in range(OBJECTS):
                data = b"%d" % number
                where = Location(b"/gone/" + data, StatSignature(1, number, len(data), 0, 0))
                stage.add_external(digests(data), where)
            stage.commit()
        seal_paths(store, [plant(place / "t", {"f": "x"})], name="run", options=SealOptions(workers=0))
    path = place / ".prov"
    assert index_bytes(place) == index_bytes(path) > watching.LARGE_BYTES
    assert key_pages(path) > data_file.SMALL_PAGES
    return path


def command(store: Path, *arguments: str) -> Callable[[], int]:
    """Return what runs ``prov`` as a process of its own does; only in a child that is not needed any more."""

    def work() -> int:
        Process.alone = True
        return main([*arguments, "--store", os.fspath(store)])

    return work


def ended(store: Path, *arguments: str) -> tuple[int, int, str, str]:
    """Run ``prov`` in a process of its own; return signal, exit code, and what it wrote."""
    process = subprocess.run(
        [sys.executable, "-m", "provstore", *arguments, "--store", os.fspath(store)],
        capture_output=True,
        text=True,
        check=False,
    )
    code = process.returncode
    return max(0, -code), max(0, code), process.stdout, process.stderr


def break_leaves(path: Path) -> None:
    """Let the nodes of the last leaves lie behind the end of the file, which is a bus error to read."""
    data = bytearray(path.joinpath("data.mdb").read_bytes())
    for start in range(len(data) - 15 * 4096, len(data), 4096):
        number, _, flags, lower = struct.unpack_from("=QHHH", data, start)
        if (number, flags) == (start // 4096, 2):
            data[start + 16 : start + lower] = b"\xff" * (lower - 16)
    path.joinpath("data.mdb").write_bytes(data)


@pytest.fixture
def broken(large: Path, tmp_path: Path) -> Path:
    copy = tmp_path / ".prov"
    subprocess.run(["cp", "-r", large, copy], check=True)
    break_leaves(copy)
    return copy


def test_without_a_watch_reading_it_ends_in_a_signal(broken: Path) -> None:
    """If this fails, the tests below test nothing."""

    def work(say: Say) -> None:
        say(str(main(["stats", "--store", os.fspath(broken)])))

    assert run(work).signal in (signal.SIGBUS, signal.SIGSEGV)


@pytest.mark.parametrize(
    "arguments",
    [
        ["stats"],
        ["stats", "--json"],
        ["ls", "run"],
        ["verify", "run"],
        ["cat", digests(b"x").blake3.hex()],
        ["gc"],
        ["gc", "--delete"],
        ["doctor"],
        ["fsck"],
        ["fsck", "--budget", "1s"],
        ["fsck", "--repair"],
        ["seal", "t"],
    ],
    ids=" ".join,
)
def test_every_command_says_what_is_damaged(
    broken: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(broken.parent)
    plant(broken.parent / "t", {"f": "y"})
    killed, code, out, err = ended(broken, *arguments)
    assert killed == 0
    assert "Traceback" not in err
    if code == DAMAGED:
        assert "error [store-damaged]" in err
        assert "page " in err
        if "--json" in arguments:
            assert json.loads(out)["error"]["code"] == "store-damaged"
    else:  # it read nothing that is damaged, or says so in its own words
        assert (code, arguments[0]) in [(0, "ls"), (0, "verify"), (0, "cat"), (0, "seal"), (1, "doctor")]


def test_whatever_bit_flips_no_command_ends_in_a_signal(large: Path) -> None:
    index = large / "data.mdb"
    codes: Counter[int] = Counter()
    commands = itertools.cycle((["stats"], ["gc"], ["verify", "run"], ["fsck"], ["fsck", "--sample", "99"]))
    for flip, _ in flipped(structure_flips(index, FLIPS, random.Random(), node_bytes=8), lambda: ""):

        def work(say: Say, given: list[str] = next(commands)) -> None:  # noqa: B008
            with open(os.devnull, "w") as void:
                sys.stdout, sys.stderr = void, void
                say(str(command(large, *given)()))

        end = run(work)
        assert end.signal == 0, (flip, end)
        codes[int(end.said[-1])] += 1
    assert codes[DAMAGED] > FLIPS / 20, codes


def test_a_whole_store_is_read_as_ever(large: Path) -> None:
    assert ended(large, "ls", "run")[:2] == (0, 0)
    assert ended(large, "ls", "gone")[1] == 11
    assert ended(large, "verify", "run", "--policy", "/none")[0] == 0
    killed, code, out, _ = ended(large, "stats", "--json")
    assert (killed, code) == (0, 0)
    assert json.loads(out)["objects"] == OBJECTS + 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_process_ends_both(large: Path, tmp_path: Path, number: int) -> None:
    fifo = tmp_path / "t" / "f"
    fifo.parent.mkdir()
    os.truncate(os.open(fifo, os.O_CREAT | os.O_WRONLY), 20 << 30)  # long enough to be read for a while
    process = subprocess.Popen(
        [sys.executable, "-m", "provstore", "seal", os.fspath(fifo.parent), "--store", os.fspath(large)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (found := children.read_text().split()):
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    code = process.wait(timeout=20)
    assert code in (-number, 130)
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in found):
        assert time.monotonic() < deadline, "the child lives on"
        time.sleep(0.01)


def test_small_stores_and_other_peoples_processes_are_not_split(large: Path, tmp_path: Path) -> None:
    """A child would be seen by what it says."""

    def work(say: Say) -> None:
        own = os.getpid()
        watching.watch(os.fspath(large))
        say(str(os.getpid() == own))
        Process.alone = True
        LmdbStore.create(os.fspath(tmp_path / "small")).close()
        watching.watch(os.fspath(tmp_path / "small"))
        watching.watch(os.fspath(tmp_path / "none"))
        say(str(os.getpid() == own))
        watching.watch(os.fspath(large))
        say(str(os.getpid() == own))
        child = os.getpid()
        watching.watch(os.fspath(large))
        say(str(os.getpid() == child))

    assert run(work).said == ["True", "True", "False", "True"]
