"""Arguments that would hang the command, fill the memory, or quietly mean another place."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from prov_run import Ended, Prov

from provstore.errors import InputOutputError
from provstore.store.opening import find_store, open_store

SPARSE_BYTES = 20_000_000_000
NOBODY = 65534
SECONDS = 20
MEMORY_BYTES = 2 << 30
"""Address space of one command; far below the sparse file, above what an index map takes."""

START = "import sys; from provstore.cli import main; sys.exit(main())"
LIMITED = (
    f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES})); {START}"
)


def run(place: Path, *arguments: str) -> Ended:
    """Run ``prov`` in a process of its own that may take little time and little memory."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *arguments],
        cwd=place,
        env={**os.environ, "PROV_MAP_SIZE": str(1 << 24)},
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode())


READERS = [
    ["metrics", "FILE"],
    ["schema", "check", "FILE"],
    ["verify", "proof", "FILE"],
    ["verify", "t", "--policy", "FILE"],
    ["unpack", "FILE"],
]


@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
@pytest.mark.parametrize("kind", ["device", "fifo", "sparse"])
def test_what_never_ends_is_refused(
    prov: Prov, tree: Path, place: Path, arguments: list[str], kind: str
) -> None:
    assert prov("seal", tree).code == 0
    path = place / kind
    if kind == "device":
        path = Path("/dev/zero")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.touch()
        os.truncate(path, SPARSE_BYTES)
    ended = run(place, *(os.fspath(path) if word == "FILE" else word for word in arguments))
    assert ended.code not in (0, 1, 3, 70), ended.err
    assert path.name in ended.err
    assert "Traceback" not in ended.err
    if kind != "sparse" and "--policy" not in arguments:
        assert "no regular file" in ended.err


def test_a_document_on_stdin_is_bounded(prov: Prov, place: Path) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, "schema", "check", "-"],
            cwd=place,
            stdin=endless,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    assert done.returncode == 2, done.stderr


def test_the_beginning_tells_a_spec(prov: Prov, place: Path) -> None:
    big = place / "big.toml"
    big.write_text('format = "provstore/packet-spec/v1"\n')
    os.truncate(big, SPARSE_BYTES)
    ended = run(place, "seal", "big.toml")
    assert ended.code == 2
    assert "larger than any spec" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["seal", ""],
        ["seal", "t", ""],
        ["verify", "t", "--against", ""],
        ["verify", "t", "--at", ""],
        ["verify", "--checksums", ""],
        ["restore", "t", ""],
        ["pack", "t", "-o", ""],
        ["init", ""],
        ["--store", "", "ls", "t"],
        ["ls", "t", "--store", ""],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_no_path(prov: Prov, tree: Path, place: Path, arguments: list[str]) -> None:
    assert prov("seal", tree).code == 0
    before = sorted(place.iterdir())
    ended = prov(*arguments)
    assert ended.code == 2
    assert "empty value" in ended.err
    assert sorted(place.iterdir()) == before


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Return a directory that every user may enter; pytest's own are private."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


def test_a_store_of_somebody_else_is_refused_and_not_passed_over(open_place: Path) -> None:
    inner = open_place / "work"
    inner.mkdir()
    for directory in (open_place, inner):
        assert run(directory, "init", ".prov").code == 0
    (inner / ".prov").chmod(0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _as_nobody(inner, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    (inner / ".prov").chmod(0o755)
    assert said == f"{inner}/.prov refused"


def _as_nobody(inner: Path, writer: int) -> None:
    """Say in this forked process which store another user would get, and end it."""
    said = "defect"
    try:
        if os.getuid() == 0:
            os.setgroups([])
            os.setuid(NOBODY)
        found = find_store(inner)
        said = str(found)
        open_store(inner, writable=False)
    except InputOutputError:
        said += " refused"
    finally:
        os.write(writer, said.encode())
        os._exit(0)
