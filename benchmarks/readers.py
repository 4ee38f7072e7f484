"""Speed of the readers on generated input: figures only, nothing here passes or fails.

Run it as ``python benchmarks/readers.py [MEGABYTES]``; a real file is read instead with ``--bench FILE``,
``--prom FILE`` or ``--log FILE``.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from provstore.evidence import conventions
from provstore.evidence.bench import read_bench
from provstore.evidence.jsonreader import read
from provstore.evidence.metrics import recompute
from provstore.evidence.prometheus import read_prometheus
from provstore.evidence.serverlog import LinePattern, scan_log

CHUNK = 1 << 20
PATTERNS = (
    LinePattern(name="version", marker=" version ", pattern=r" version (?P<version>\S+)"),
    LinePattern(
        name="captured",
        marker="Captured graph set",
        pattern=r"Rank_(?P<rank>\d+) .*graphs=(?P<graphs>\d+)",
        integers=("rank", "graphs"),
    ),
    LinePattern(name="replayed", marker="Replayed graph set", pattern=r"Rank_(?P<rank>\d+) "),
    LinePattern(name="prepared", marker="Prepared projections: count=", pattern=r"count=(?P<count>\d+)"),
    LinePattern(name="unknown", marker="Unknown environment variable", pattern=r": (?P<name>\w+)"),
    LinePattern(name="post", marker='"POST /v1/', pattern=r'HTTP/1.1" (?P<status>\d+)'),
)


def fastest(job: Callable[[], object], times: int = 5) -> float:
    """Return the shortest of some runs, in seconds."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - start)
    return best


def log_chunks(megabytes: int) -> Iterator[bytes]:
    """Yield a log of ordinary lines with one marked line in about ten thousand."""
    plain = (
        b"(Engine pid=4242) INFO 01-02 03:04:05 [metrics.py:120] Avg generation throughput: 41.7 tokens/s\n"
    )
    marked = b"(Rank_3 pid=17) INFO 01-02 03:04:05 [graph.py:7] Captured graph set (graphs=12, breaks=11)\n"
    block = (plain * 10_000 + marked) * 8
    block += plain * ((8 * CHUNK - len(block)) // len(plain))
    for _ in range(megabytes * CHUNK // len(block)):
        for at in range(0, len(block), CHUNK):
            yield block[at : at + CHUNK]


def file_chunks(path: Path) -> Iterator[bytes]:
    """Yield a file in chunks."""
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def bench_file(rows: int = 13, tokens: int = 512) -> bytes:
    """Return a benchmark file of the earlier shape."""
    stamps = [0.1 + at * 0.009123456789 for at in range(tokens)]
    row = {"token_ids": list(range(tokens)), "token_id_offsets_s": stamps, "completion_tokens": tokens}
    rest = {"prompt_id": "p", "cached_tokens": 0, "elapsed_s": 5.5, "ttft_s": 0.1, "sha256": "0" * 64}
    listed = [row | rest | {"prompt_index": index} for index in range(rows)]
    return json.dumps({"rows": listed, "run_identity": {}, "summary": {}}, indent=1).encode()


def scrape() -> bytes:
    """Return a scrape of 430 samples."""
    lines = [
        f'engine:wait_bucket{{engine="0",le="{at}.0",model_name="some-model"}} {at}.0' for at in range(430)
    ]
    return "\n".join(["# TYPE engine:wait histogram", *lines, ""]).encode()


def show(what: str, seconds: float, size: int) -> None:
    """Print one figure."""
    print(f"{what:<42} {seconds * 1e3:9.2f} ms {size / seconds / 1e6:9.0f} MB/s")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", nargs="?", type=int, default=256)
    for name in ("bench", "prom", "log"):
        parser.add_argument(f"--{name}", type=Path)
    chosen = parser.parse_args(arguments)
    data = chosen.bench.read_bytes() if chosen.bench else bench_file()
    print(f"JSON of {len(data)} bytes")
    show("  json.loads", fastest(lambda: json.loads(data)), len(data))
    show("  msgspec.json.decode (loses number text)", fastest(lambda: msgspec.json.decode(data)), len(data))
    show("  jsonreader.read", fastest(lambda: read(data)), len(data))
    show("  read_bench", fastest(lambda: read_bench(data)), len(data))
    rows = read_bench(data).rows
    definition = conventions.find("conventional-intervals")
    show("  recompute one convention", fastest(lambda: recompute(definition, rows)), len(data))
    text = chosen.prom.read_bytes() if chosen.prom else scrape()
    show("read_prometheus", fastest(lambda: read_prometheus(text), 3), len(text))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    chunks = list(file_chunks(chosen.log)) if chosen.log else list(log_chunks(8))
    size = sum(map(len, chunks))
    show("scan_log, held in memory", fastest(lambda: scan_log(chunks, PATTERNS)), size)
    start = time.perf_counter()
    scan_log(log_chunks(chosen.megabytes), PATTERNS)
    show(f"scan_log, {chosen.megabytes} MB streamed", time.perf_counter() - start, chosen.megabytes << 20)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"peak memory grew by {grown / 1024:.0f} MiB while logs were scanned")


if __name__ == "__main__":
    main()
