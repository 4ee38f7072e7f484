"""How fast do a huge server log and other evidence become facts, and in how much memory? (P14)."""

import json
import re
from pathlib import Path
from typing import Final

import readers
from measure import Case, Command, Spread, Timings, alternate, call, peak_memory, timed
from rows import Finding, Goal, Row, row
from setting import Setting

from provstore.evidence.bench import read_bench
from provstore.evidence.jsonreader import read
from provstore.evidence.prometheus import read_prometheus
from provstore.evidence.serverlog import scan_log

LOG_BYTES: Final = 1 << 30
SMALL_BYTES: Final = 16 << 20
REPEATS: Final = 5
MB: Final = 1e6

SCAN: Final = "facts of the log"
GREP: Final = "grep, one process a marker"
LINES: Final = "Python, re on every line"
JSON: Final = "json.loads"
STRICT: Final = "strict JSON reader"

P14: Final = Goal("facts of a server log", 400, "MB/s", bound="one search for each marker", at_least=True)
P14_MEMORY: Final = Goal(
    "memory of that, beyond what a log of 16 MiB takes", 8, "MB", bound="a chunk, and the facts themselves"
)

_CODE: Final = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from readers import PATTERNS, file_chunks
from provstore.evidence.serverlog import scan_log
found = scan_log(file_chunks(Path({path!r})), PATTERNS)
assert found.sound and len(found.facts) > len(PATTERNS), found.findings
"""

_LINE_CODE: Final = """
import re
patterns = [re.compile(text) for text in {patterns!r}]
found = 0
with open({path!r}, "rb") as file:
    for line in file:
        for pattern in patterns:
            found += pattern.search(line) is not None
assert found
"""


def facts_of_logs(setting: Setting) -> Row:
    """Measure P14: a log of 1 GiB streamed through the reader, and readers of JSON beside Python's own."""
    large = _log(setting, max(4 << 20, int(LOG_BYTES * setting.scale)))
    small = _log(setting, min(SMALL_BYTES, large.stat().st_size))
    size = large.stat().st_size
    cases = [Case(SCAN, lambda _: call(lambda: _scan(large)))]
    cases.append(Case(GREP, lambda _: timed(_grep(setting, large))))
    timings = alternate(cases, setting.rounds, setting.say)
    by_line = alternate([Case(LINES, lambda _: timed(_by_line(setting, small)))], 1, setting.say)
    peaks = [peak_memory(_child(setting, path)) / MB for path in (large, small)]
    rate = size / MB
    seconds = timings.time(SCAN)
    findings = [
        Finding(P14, Spread(rate / seconds.median, rate / seconds.high, rate / seconds.low)),
        Finding(P14_MEMORY, Spread(*[max(0.0, peaks[0] - peaks[1])] * 3)),
    ]
    facts = {
        "log bytes": float(size),
        "peak MB, whole process": peaks[0],
        f"{GREP} MB/s": rate / timings.time(GREP).median,
        f"{LINES} MB/s": small.stat().st_size / MB / by_line.time(LINES).median,
    }
    both = Timings([])
    json_timings, speeds = _json(setting)
    both.samples = {**timings.samples, **json_timings.samples}
    notes = (
        f"six markers, one marked line in about ten thousand; {LINES}: measured on {_mib(small)} MiB",
        "readers keep the digits of numbers, see duplicate keys and give a place with every fact",
    )
    return row("P14", "facts of a server log, and of JSON", both, findings, facts | speeds, notes)


def _json(setting: Setting) -> tuple[Timings, dict[str, float]]:
    """Time the readers of a benchmark file and of a scrape; MB/s by name."""
    bench, scrape = readers.bench_file(), readers.scrape()
    jobs = {
        f"{JSON} (bench)": (lambda: json.loads(bench), bench),
        f"{STRICT} (bench)": (lambda: read(bench), bench),
        "facts and rows (bench)": (lambda: read_bench(bench), bench),
        "facts (Prometheus text)": (lambda: read_prometheus(scrape), scrape),
    }
    cases = [Case(name, lambda _, job=job: call(job, 3)) for name, (job, _) in jobs.items()]  # type: ignore[misc]
    timings = alternate(cases, setting.rounds * REPEATS, setting.say)
    return timings, {
        f"{name} MB/s": len(data) / MB / timings.time(name).median for name, (_, data) in jobs.items()
    }


def _log(setting: Setting, size: int) -> Path:
    path = setting.fresh("server.log")
    with open(path, "wb") as target:
        while target.tell() < size:
            for chunk in readers.log_chunks(8):
                target.write(chunk[: size - target.tell()])
        target.seek(-1, 2)
        target.write(b"\n")
    return path


def _scan(path: Path) -> None:
    scan_log(readers.file_chunks(path), readers.PATTERNS)


def _child(setting: Setting, path: Path) -> Command:
    return setting.python(_CODE.format(here=str(Path(__file__).parent), path=str(path)))


def _grep(setting: Setting, path: Path) -> Command:
    markers = [pattern.marker for pattern in readers.PATTERNS]
    return setting.shell('log=$1; shift; for m; do grep -Fc -e "$m" "$log" || true; done', path, *markers)


def _by_line(setting: Setting, path: Path) -> Command:
    patterns = [re.compile(found.pattern.encode()).pattern for found in readers.PATTERNS]
    return setting.python(_LINE_CODE.format(patterns=patterns, path=str(path)))


def _mib(path: Path) -> int:
    return path.stat().st_size >> 20
