"""Large inputs made to cost time or memory: each is answered or refused within bounds, in a child."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from fuzz.contract import hold, limit_memory, within
from fuzz.seeds import SPEC
from fuzz.targets import TARGETS
from provstore import canon
from provstore.files.inspect_safetensors import MAX_READ_BYTES
from provstore.store import frame
from provstore.verbs.spec import MAX_DOTS, MAX_LINE_DOTS, MAX_SPEC_BYTES

TESTS: Final = Path(__file__).resolve().parents[1]

MiB: Final = 1 << 20

ENTRY: Final = b'[[entry]]\nrole = "%s"\nkind = "file"\npath = "x"\n'
CLAIM: Final = (
    b'[[claim]]\nname = "%d"\nvalue = "1"\nunit = "u"\nmetric = "m"\nconvention = "c"\nevidence = ["%s"]\n'
)
TENSOR: Final = b'"%d":{"dtype":"F4","shape":[],"data_offsets":[0,0]},'


def header_of(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text


def entries(count: int) -> bytes:
    return SPEC + b"".join(ENTRY % b"r%d" % number for number in range(count))


def dotted() -> bytes:
    """As many nested tables as the limits of a spec allow."""
    line = b"a." * (MAX_LINE_DOTS - 1) + b"a = 1\n"
    return b"".join(b"[t%d]\n" % number + line for number in range(MAX_DOTS // MAX_LINE_DOTS))


CASES: Final[dict[str, tuple[str, Callable[[], bytes]]]] = {
    "a string of quotes that does not end": ("canon", lambda: b'"' + b'\\"' * (7 * MiB)),
    "empty lists": ("schema", lambda: b"[" + b"[]," * (5 * MiB) + b"[]]"),
    "more JSON than is read": ("schema", lambda: b"[" + b"[]," * (20 * MiB) + b"[]]"),
    "number characters in a string": ("records", lambda: json_fact(b"1e" * (16 * MiB))),
    "a record beyond the limit": ("records", lambda: bytes(canon.MAX_RECORD_BYTES + 1)),
    "leaves below long keys": (
        "text",
        lambda: (b'{"' + b"a" * 100_000 + b'":') * 30 + b"[" + b"1," * 4000 + b"1]" + b"}" * 30,
    ),
    "lines of keys": ("text", lambda: b"a=\n" * MiB),
    "number characters in an environment": ("text", lambda: b"A=" + b"1e" * (2 * MiB) + b"\n"),
    "a header of tensors": ("safetensors", lambda: header_of(b"{" + tensors(500_000)[:-1] + b"}")),
    "a header of lists": ("safetensors", lambda: header_of(b"{" + b"[]," * (8 * MiB))),
    "a header beyond the limit": ("safetensors", lambda: header_of(b"{".ljust(MAX_READ_BYTES + 1))),
    "a shard index of lists": ("shards", lambda: b'{"a":[' + b"[]," * (5 * MiB) + b'[]],"weight_map":{}}'),
    "as many entries as fit": ("spec", lambda: entries(40_000)[:MAX_SPEC_BYTES]),
    "deep roles": (
        "spec",
        lambda: SPEC + b"".join(ENTRY % (b"%d/" % n + b"a/" * 2000 + b"a") for n in range(480)),
    ),
    "claims of one name": (
        "spec",
        lambda: SPEC + ENTRY % b"a" + b"".join(CLAIM % (n, b"a/" * 40 + b"x") for n in range(9000)),
    ),
    "dotted keys": ("spec", dotted),
    "empty lines": ("spec", lambda: b"\n" * (2 * MiB)),
    "a role of a megabyte": ("spec", lambda: SPEC + ENTRY % (b"a/" * (MiB // 2) + b"a")),
    "a checksum file of one long name": ("checksums", lambda: b"0" * 64 + b"  " + b"a" * (16 * MiB)),
    "a tag that ends again and again": ("checksums", lambda: b"SHA256 (" + b") = " * MiB),
    "packages without end": ("freeze", lambda: b"a==1\n" * (MiB // 2)),
    "one long name of a package": ("freeze", lambda: b"a-" * MiB),
    "metadata of headers": ("environment", lambda: b"a:\n" * (MiB // 3)),
    "a path file of places": ("environment", lambda: b"\0\n\0\n\0\n" + b"../x\n" * 100_000),
    "links upon links": ("standins", lambda: b".git/annex/objects/" * 50_000),
    "helpers upon helpers": ("urls", lambda: b"a::" * 500_000),
    "program headers": ("elf", lambda: elf_of_tables(56, 54)),
    "section headers": ("elf", lambda: elf_of_tables(64, 58)),
    "frames that unpack to much": ("frame", lambda: frame.pack([bytes(frame.MAX_PLAIN)]) * 8),
    "refs of a bundle": ("bundle", lambda: b"# v2 git bundle\n" + (b"0" * 40 + b" r\n") * 100_000),
}
"""Name of each case: the target, and what makes the input."""

SECONDS: Final = 10.0
MEMORY_BYTES: Final = 768 * MiB


def json_fact(text: bytes) -> bytes:
    fact = b'{"extractor":"x","facts":[{"key":"k","value":"%s"}],"format":"provstore/facts/v1",' % text
    return fact + b'"source":"","version":1}'


def tensors(count: int) -> bytes:
    return b"".join(TENSOR % number for number in range(count))


def elf_of_tables(size: int, place: int) -> bytes:
    """Return an ELF file whose header names as many entries of a table as it can."""
    head = bytearray(b"\x7fELF\2\1\1" + bytes(9) + b"\3\0\x3e\0\1" + bytes(43))
    head[52:54] = (64).to_bytes(2, "little")
    at = 32 if place == 54 else 40
    head[at : at + 8] = (64).to_bytes(8, "little")
    head[place : place + 2] = size.to_bytes(2, "little")
    head[place + 2 : place + 4] = (0xFFFE).to_bytes(2, "little")
    return bytes(head) + bytes(size * 0xFFFE)


@pytest.mark.parametrize("name", CASES)
def test_large_inputs_stay_within_time_and_memory(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.test_bounds", name],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["case"] == name


def run(name: str) -> None:
    """Run one case under its limits; anything but an answer or an error of ours ends the process badly."""
    target, make = CASES[name]
    data = make()
    limit_memory(MEMORY_BYTES)
    with within(SECONDS):
        refused = hold(TARGETS[target], data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    sys.stdout.write(json.dumps({"case": name, "refused": str(refused)[:100], "peak_mb": peak}))


if __name__ == "__main__":
    run(sys.argv[1])
