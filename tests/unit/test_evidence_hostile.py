"""Every reader against damaged input: no exception, and facts that any record can hold."""

import json
import random
import time
import tracemalloc
from collections.abc import Callable

import pytest

from provstore.evidence import conventions
from provstore.evidence.bench import read_bench
from provstore.evidence.documents import read_document
from provstore.evidence.finding import ReaderResult
from provstore.evidence.idle import read_idle
from provstore.evidence.keyvalue import (
    read_cleanup,
    read_environment,
    read_identity,
    read_idle_summary,
    read_status,
)
from provstore.evidence.locks import read_lock, read_verification
from provstore.evidence.metrics import recompute
from provstore.evidence.oracle import read_oracle
from provstore.evidence.prometheus import read_prometheus, samples_of
from provstore.evidence.rows import from_facts, from_log
from provstore.evidence.serverlog import LinePattern, scan_log
from provstore.records import encode
from provstore.records.facts import Facts

PATTERN = LinePattern(name="up", marker="up", pattern=r"rank (?P<rank>\d+)", integers=("rank",))
DIGEST = "ab" * 32
BENCH = json.dumps(
    {
        "run_identity": {"prompt_count": 1, "max_tokens": 512, "seed": 1, "model": "m", "extra": {}},
        "summary": {"rate": {"median": 1.25, "count": 1}},
        "rows": [
            {
                "prompt_index": 0,
                "prompt_id": "a\u00e9",
                "prompt_sha256": DIGEST,
                "sha256": DIGEST,
                "cached_tokens": 0,
                "completion_tokens": 3,
                "token_ids": [1, 2, 3],
                "token_id_offsets_s": [0.1, 0.2, 0.35],
                "elapsed_s": 0.5,
                "prompt_class": None,
            }
        ],
    }
).encode()
IDLE = json.dumps(
    {
        "status": "passed",
        "child_identity": {"process_id": 7, "proc_exe_resolved": "/bin/smi"},
        "idle": {"device_ids": [0], "row_count": 1},
        "raw_capture": {"stdout_base64": "e30=", "stdout_bytes": 2, "stdout_sha256": DIGEST},
    }
).encode()
LOCK = json.dumps(
    {"files": [{"path": "a", "sha256": DIGEST}], "source": {"x": {"commit": "c" * 40}}}
).encode()


def log(data: bytes) -> ReaderResult:
    return scan_log([data[:30], data[30:]], [PATTERN])


def document(data: bytes) -> ReaderResult:
    return read_document(data, "record")


READERS: list[tuple[Callable[[bytes], ReaderResult], bytes]] = [
    (read_bench, BENCH),
    (read_oracle, BENCH),
    (document, BENCH),
    (read_idle, IDLE),
    (read_lock, LOCK),
    (read_verification, b'{"module_origins": {"a": "/b", "c": ["/d", "/e"]}, "status": "PASS"}'),
    (read_identity, b"schema=x\nretries=0\n" + DIGEST.encode() + b"  /bin/tool\n"),
    (read_environment, b"A=1\nLD_PRELOAD=\nB=x=y\n"),
    (read_status, b"status=PASS\n"),
    (read_cleanup, b"a_status=0\nb_status=-1\n"),
    (read_idle_summary, b"prestart elapsed_seconds=73 snapshots=13\n"),
    (read_prometheus, b'# TYPE a counter\na_total{x="1",y="\\n"} 2.0\nb 3e5\n'),
    (log, b"line\nup: rank 1\nother\nup: rank 22\n"),
]
TOKENS = [
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"=", b" ", b"\\", b'"', b"{", b"}", b"[", b"]", b","),
    *(
        b":",
        b"-0",
        b"NaN",
        b"1e999",
        b"1e308",
        b"\\ud800",
        b"9" * 5000,
        b"9007199254740993",
        b"null",
        b"true",
    ),
    *(b'"a":1,"a":2', b"[[[[", b"0.0", b"1e-400", b"\xc3", b"\xe2\x80\xae", b"\x1b[2J"),
]


def damaged(data: bytes, chance: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 6))):
        at = chance.randrange(len(text) + 1)
        match chance.randrange(4):
            case 0:
                text[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                text[at:at] = chance.choice(TOKENS)
            case 2:
                del text[at : at + chance.choice((1, 2, 30))]
            case _:
                text[at : at + chance.choice((1, 3, 12))] = chance.choice(TOKENS)
    return bytes(text)


def check(found: ReaderResult) -> None:
    """Facts and findings go into records and onto terminals, so they must be encodable and harmless."""
    encode(Facts(extractor="x", version=1, source="0" * 64, facts=found.facts))
    for finding in found.findings:
        assert finding.message.isprintable()
        finding.message.encode()
        finding.location.encode()


@pytest.mark.parametrize(("reader", "data"), READERS)
def test_damaged_input(reader: Callable[[bytes], ReaderResult], data: bytes) -> None:
    check(reader(data))
    chance = random.Random(2026)
    for _ in range(400):
        check(reader(damaged(data, chance)))


def test_rows_of_damaged_files_recompute_or_fail() -> None:
    chance = random.Random(7)
    for _ in range(400):
        found = read_bench(damaged(BENCH, chance))
        for definition in conventions.SHIPPED:
            for rows in (found.rows, from_facts(found.facts)):
                value = recompute(definition, rows)
                assert (value.value is None) is bool(value.failures)
        samples_of(read_prometheus(damaged(READERS[11][1], chance)).facts)


@pytest.mark.parametrize(("reader", "data"), READERS)
@pytest.mark.parametrize(
    "hostile", [b"\0", b"\xff", b"\n", b"a=1\n", b"[", b'{"a":', b'"', b"\\", b"9", b"up\n"]
)
def test_two_million_bytes_of_nonsense(
    reader: Callable[[bytes], ReaderResult], data: bytes, hostile: bytes
) -> None:
    began = time.process_time()  # not the clock on the wall: what other processes do must not count
    tracemalloc.start()
    found = reader(hostile * (2_000_000 // len(hostile)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.findings or reader is log
    assert len(found.findings) <= 204
    assert peak < 150 << 20
    assert time.process_time() - began < 30


def test_a_million_timestamps_are_read_and_more_are_not() -> None:
    assert len(from_log(b"1.5\n" * 1000, "t").rows) == 1
    assert [f.code for f in from_log(b"1\n" * 1_000_002, "t").findings] == ["too-large"]
