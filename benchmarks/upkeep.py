"""Time and memory of gc and fsck on a store of many small objects: ``upkeep.py [OBJECTS] [DIRECTORY]``.

Half of the objects lose their packets before the removal is measured. Each verb runs in a process of its
own; beside its time stands the most memory that it asked for. Pages of the index, which the kernel gives and
takes, do not count in it.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import packets

import provstore
from provstore.ids import Digests
from provstore.store.protocol import Store

PACKET: Final = 10_000
BATCH: Final = 100_000
MIB: Final = 1024
LOOK_EVERY_S: Final = 0.02


def make(place: Path, count: int) -> None:
    """Make a store of ``count`` objects in packets of :data:`PACKET`."""
    store = provstore.init_store(place)
    for first in range(0, count, BATCH):
        with store.stage() as stage:
            known: list[Digests] = packets.add_objects(stage, first, min(BATCH, count - first))
            for start in range(0, len(known), PACKET):
                here = known[start : start + PACKET]
                tree = packets.add_nested(stage, len(here), here.__getitem__)
                packets.add_packet(stage, f"packet-{first + start:09d}", tree, len(here))
            stage.commit()
    store.close()


def apart(work: Callable[[], object]) -> tuple[float, int, str]:
    """Run work in a child; return its seconds, the most anonymous memory in MiB, and what it said."""
    out, into = os.pipe()
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(into, str(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(into)
    most = 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        most = max(most, anonymous(pid))
        time.sleep(LOOK_EVERY_S)
    seconds = time.perf_counter() - began
    with os.fdopen(out) as source:
        said = source.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"the child ended with {status}")
    return seconds, most // MIB, said


def anonymous(pid: int) -> int:
    """Return the KiB of memory of a process that no file stands behind; 0 when it has just ended."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^RssAnon:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def measure(place: Path, name: str, work: Callable[[Store], object], *, writable: bool = True) -> None:
    """Measure one verb and print a line."""

    def run() -> object:
        store = provstore.open_store(place, writable=writable)
        try:
            return work(store)
        finally:
            store.close()

    seconds, memory, said = apart(run)
    print(f"{name:<28} {seconds:8.1f} s {memory:7d} MiB  {said}", flush=True)


def drop_half(store: Store) -> int:
    """Remove every second ref."""
    names = [name for name, _ in store.refs()][::2]
    with store.stage() as stage:
        for name in names:
            stage.set_ref(name, None)
        stage.commit()
    return len(names)


def collect(store: Store, *, delete: bool) -> str:
    """Run gc and say what it found."""
    report = provstore.gc(store, delete=delete, grace_s=0)
    return f"{report.objects} objects, {report.records} records; kept {report.kept_objects}"


def check(store: Store) -> str:
    """Run fsck in full and say what it read."""
    report = provstore.fsck(store)
    return f"{report.objects} objects, {report.records} records, {len(report.damaged)} damaged"


def check_for(store: Store, budget_s: float) -> str:
    """Run fsck for a time and say how far it came."""
    report = provstore.fsck_for(store, budget_s)
    return f"{report.objects} objects, {report.records} records, {report.remaining} remaining"


def main() -> None:
    """Make a store and measure every verb that walks all of it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        place = Path(folder) / "store"
        seconds, memory, _ = apart(lambda: make(place, count))
        size = (place / "data.mdb").stat().st_size >> 20
        print(f"{'make':<28} {seconds:8.1f} s {memory:7d} MiB  {count} objects, index of {size} MiB")
        measure(place, "gc (nothing to remove)", lambda store: collect(store, delete=False), writable=False)
        measure(place, "fsck", check, writable=False)
        measure(place, "fsck --sample 1000", lambda s: provstore.fsck(s, sample=1000).objects, writable=False)
        measure(place, "fsck --budget 5s", lambda store: check_for(store, 5.0))
        measure(place, "fsck --budget 1h", lambda store: check_for(store, 3600.0))
        measure(place, "drop half of the refs", drop_half)
        measure(place, "gc", lambda store: collect(store, delete=False), writable=False)
        measure(place, "gc --delete", lambda store: collect(store, delete=True))
        measure(place, "fsck", check, writable=False)


if __name__ == "__main__":
    main()
