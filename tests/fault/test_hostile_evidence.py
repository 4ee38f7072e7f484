"""Evidence made to cost time or memory: a clear answer within bounds, each in a child under limits."""

import base64
import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import smallrun
from fuzz.contract import limit_memory, within
from fuzz.evidence import packet_of
from fuzz.evidence_seeds import TINY_POLICY, small_files

from provstore.errors import ProvError
from provstore.evidence.serverlog import LinePattern, scan_log
from provstore.gates.policy import load_policy
from provstore.verbs.judging import judge

TESTS: Final = Path(__file__).resolve().parents[1]
MiB: Final = 1 << 20

SECONDS: Final = 60.0
MEMORY_BYTES: Final = 768 * MiB


def bomb() -> bytes:
    """Tool output of 10 MiB of one letter, in the base64 of an idle snapshot."""
    raw = b"a" * (10 * MiB)
    snapshot = smallrun.snapshot("2026-07-26T21:46:00+00:00")
    snapshot["raw_capture"] |= {
        "stdout_base64": base64.b64encode(raw).decode(),
        "stdout_bytes": len(raw),
        "stdout_sha256": hashlib.sha256(raw).hexdigest(),
    }
    return json.dumps(snapshot).encode()


def rows(count: int) -> bytes:
    return b'{"rows":[' + b'{"prompt_index":1},' * (count - 1) + b'{"prompt_index":1}],"run_identity":{}}'


def nested(count: int) -> bytes:
    return b'{"rows":' + b"[" * count + b"]" * count + b"}"


CASES: Final[dict[str, tuple[str, Callable[[], bytes], str]]] = {
    "a bomb in a snapshot": ("run/idle/pre-0.json", bomb, "too-large"),
    "a million rows": ("run/bench.json", lambda: rows(1_000_000), "too-many-values"),
    "a million rows of an oracle": ("oracle/tokens", lambda: rows(1_000_000), "too-many-values"),
    "as many rows as are read": ("run/bench.json", lambda: rows(150_000), "absent"),
    "brackets without end": ("run/bench.json", lambda: nested(100_000), "too-deep"),
    "brackets of a record": ("docs/record", lambda: nested(100_000), "too-deep"),
    "brackets of a lock": ("runtime/lock", lambda: b"[" * 100_000, "too-deep"),
    "NUL for a benchmark": ("run/bench.json", lambda: bytes(MiB), "not-json"),
    "NUL in an environment": ("run/environment.txt", lambda: b"A=\0\n" * 100_000, "nul"),
    "no UTF-8 for a benchmark": ("run/bench.json", lambda: b'{"rows": "\xff"}', "not-utf8"),
    "no UTF-8 in a status": ("run/status.txt", lambda: b"status=\xff\n", "not-utf8"),
    "a million variables": ("run/environment.txt", lambda: b"A=1\n" * 1_000_000, "too-large"),
    "one key again and again": ("run/environment.txt", lambda: b"A=1\n" * 150_000, "duplicate-key"),
    "a scrape of a million lines": ("run/after.prom", lambda: b"a 1\n" * 1_000_000, "too-large"),
    "labels of escaped quotes": (
        "run/after.prom",
        lambda: b"".join(b'a{b="%d%s"} 1\n' % (n, b'\\"' * 1900) for n in range(4000)),
        "more long labels than are parsed",
    ),
    "a line of 64 MiB": ("run/server.log", lambda: b"captured graph" * (4 * MiB), "line-too-long"),
    "markers without end": ("run/server.log", lambda: b"captured graph\n" * MiB, "findings in all"),
    "matches without end": (
        "run/server.log",
        lambda: b"rank TP0 a b captured graph graphs=1, breaks=1\n" * MiB,
        "too-many-matches",
    ),
    "packages without end": ("runtime/freeze", lambda: b"a==1\n" * 1_000_000, "too-large"),
    "integers of 5000 digits": ("run/bench.json", lambda: b'{"rows":[' + b"9" * 5000 + b"]}", "too-long"),
}
"""Name of each case: the member, what makes its bytes, and a word that the verdict must hold."""

POLICIES: Final[dict[str, tuple[Callable[[], bytes], str]]] = {
    "larger than any policy": (lambda: b"#" * (2 * MiB), "larger than any policy"),
    "a million lines": (lambda: b"\n" * MiB, "format"),
    "an integer of 5000 digits": (lambda: b"a = " + b"9" * 5000, "no TOML"),
    "a dotted key": (lambda: b"a." * 200_000 + b"a = 1", "dots"),
    "tables without end": (lambda: smallrun.HEAD.encode() + b"[[gate]]\n" * 100_000, "at most"),
    "arrays in arrays": (lambda: b"a = " + b"[" * 100_000, "no TOML"),
    "one gate of many lines": (
        lambda: (
            smallrun.HEAD.encode()
            + b'[[gate]]\nname = "g"\nkind = "equal"\n[gate.values]\n'
            + b"".join(b'"x%d:k" = 1\n' % n for n in range(60_000))
        ),
        "no extract is called",
    ),
    "no UTF-8": (lambda: b"\xff", "UTF-8"),
    "NUL": (lambda: bytes(100), "no TOML"),
}

PATTERNS: Final = (
    "(?:aa|a)*b",
    "(?:a?){30}b",
    "(a+)+b",
    "(?:(?:aa|a)){40}b",
    "(?:a|b|ab)*c",
    r"(?P<x>\w+\s?)*y",
)
"""Expressions that can take exponential time."""


def in_a_child(*words: str) -> dict[str, object]:
    """Run this module under its limits; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "fault.test_hostile_evidence", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_over_hostile_evidence_is_clear_and_bounded(name: str) -> None:
    found = in_a_child("judge", name)
    assert found["outcome"] in ("FAIL", "INCOMPLETE")
    assert found["said"], f"no finding says {CASES[name][2]}"


@pytest.mark.parametrize("name", POLICIES)
def test_a_hostile_policy_is_refused(name: str) -> None:
    said = in_a_child("policy", name)["said"]
    assert POLICIES[name][1] in str(said)
    assert len(str(said)) < 2000


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_expression_that_could_take_exponential_time_is_refused(pattern: str) -> None:
    with pytest.raises(ProvError, match="repetition or a choice"):
        LinePattern(name="x", marker="a", pattern=pattern)
    version = smallrun.POLICY.replace(r"\+g(?P<commit>[0-9a-f]{7,40})", f"(?P<commit>a){pattern}")
    assert version != smallrun.POLICY
    with pytest.raises(ProvError, match="repetition or a choice"):
        load_policy(version.encode(), "p.toml")


@pytest.mark.parametrize("pattern", ["a(b|c)d", "(?:ab)+c", "[a|b]+", r"a\|(?P<x>b)+", "(?P<x>a+|b)?c"])
def test_a_choice_that_is_not_repeated_is_taken(pattern: str) -> None:
    assert LinePattern(name="x", marker="a", pattern=pattern).compiled()


def test_a_log_of_a_gigabyte_takes_no_more_memory_than_a_small_one() -> None:
    small, large = in_a_child("log", "8"), in_a_child("log", "1024")
    assert large["bytes"] == 1024 * MiB
    assert large["marked"] == 128 * int(str(small["marked"]))
    assert int(str(large["peak_mb"])) - int(str(small["peak_mb"])) < 16


def log_chunks(megabytes: int) -> Iterator[bytes]:
    """Yield a log that is nowhere: plain lines, one marked line a MiB that lies across two chunks."""
    plain = b"INFO 01-02 03:04:05 throughput: 41.7 tokens/s, running 3, cache usage 12.5%\n"
    marked = b"rank TP1 07-26 21:47:39 captured graph graphs=146, breaks=145\n"
    filler = MiB - len(marked)
    chunk = (
        marked[20:] + plain * (filler // len(plain)) + b"x" * (filler % len(plain) - 1) + b"\n" + marked[:20]
    )
    yield marked[:20]
    for _ in range(megabytes - 1):
        yield chunk
    yield chunk[: MiB - 20]


def run(mode: str, name: str) -> dict[str, object]:
    """Run one case under its limits."""
    if mode == "log":
        pattern = LinePattern(name="up", marker="captured graph", pattern=r"rank TP(?P<tp>\d+)")
        with within(SECONDS):
            found = scan_log(log_chunks(int(name)), [pattern])
        assert found.sound
        return {"bytes": found.value("log#bytes"), "marked": found.value("log.up#matches")}
    if mode == "policy":
        data = POLICIES[name][0]()
        limit_memory(MEMORY_BYTES)
        with within(SECONDS):
            try:
                load_policy(data, "p.toml")
            except ProvError as error:
                return {"said": error.message}
        return {"said": ""}
    place, make, word = CASES[name]
    store, packet = packet_of({**small_files(), place: make()})
    limit_memory(MEMORY_BYTES)
    with within(SECONDS):
        verdict = judge(store, packet, TINY_POLICY).verdict
    text = [f"{j.code} {j.message}" for gate in verdict.gates for j in gate.judgements]
    said = [line[:200] for line in text if word in line][:3]
    return {"outcome": verdict.outcome, "said": said or [], "all": [] if said else text[:40]}


if __name__ == "__main__":
    result = run(*sys.argv[1:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    sys.stdout.write(json.dumps({**result, "peak_mb": peak}))
