"""How fast are a model's files sealed and verified where they lie? (P1, P6)."""

import os
from pathlib import Path
from typing import Final

from measure import Case, Sample, alternate, spread, timed
from rows import Finding, Goal, Row, against, inverse, row
from setting import Setting

SHA_BOUND: Final = "SHA-256, see the time of the bare digests; then the start of the interpreter"
VERIFY_BOUND: Final = "SHA-256, see the time of the bare digests in P1; then the start of the interpreter"
NO_MODE: Final = "there is no mode that leaves SHA-256 out: both digests are always kept"

SEAL: Final = "prov seal (by reference)"
VERIFY: Final = "prov verify (by reference)"

P1: Final = Goal("seal, both digests / b3sum", 2.4, bound=SHA_BOUND)
P1_ALONE: Final = Goal("seal, BLAKE3 alone / b3sum", 1.0)
P1_RATE: Final = Goal("seal, both digests", 1.95, "GB/s", bound=SHA_BOUND, at_least=True)
P1_BOTH: Final = Goal("b3sum then sha256sum / seal", 7.0, at_least=True, bound=SHA_BOUND)
P6: Final = Goal("verify, both digests / b3sum --check", 2.4, bound=VERIFY_BOUND)
P6_ALONE: Final = Goal("b3sum --check / verify, BLAKE3 alone", 1.0, at_least=True)


LIMIT: Final = "bare digests, both, a thread a core"
LIMIT_CODE: Final = """
import hashlib, os, queue, sys, threading
from blake3 import blake3
todo = queue.SimpleQueue()
for path in {files!r}:
    todo.put(path)
def work():
    buffer = memoryview(bytearray((1 << 20) + 4096))[2048:-2048]
    while True:
        try:
            path = todo.get_nowait()
        except queue.Empty:
            return
        a, b = blake3(), hashlib.sha256()
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(buffer):
                a.update(buffer[:count]), b.update(buffer[:count])
threads = [threading.Thread(target=work) for _ in range(os.cpu_count())]
[thread.start() for thread in threads], [thread.join() for thread in threads]
"""
"""The least that both digests of these files cost in Python, with nothing kept."""


def seal_model(setting: Setting) -> Row:
    """Measure P1: seal W1 by reference, beside the programs that only print digests."""
    files = _files(setting)

    def ours(_: int) -> Sample:
        return timed(setting.prov("seal", setting.model_spec, "--store", setting.fresh("store")))

    def lists(*program: str) -> Case:
        return Case(program[0], lambda _: timed(setting.command(*program, *files)))

    limit = setting.python(LIMIT_CODE.format(files=[os.fspath(path) for path in files]))
    cases = [Case(SEAL, ours), Case(LIMIT, lambda _: timed(limit))]
    cases += [lists(tool) for tool in ("b3sum", "sha256sum") if setting.has(tool)]
    timings = alternate(cases, setting.rounds, setting.say)
    rate = setting.model.size_bytes / 1e9
    findings = [
        against(P1, timings, SEAL, "b3sum"),
        Finding(P1_RATE, spread([rate / seconds for seconds in timings.seconds(SEAL)])),
        Finding(P1_ALONE, None, NO_MODE),
        inverse(P1_BOTH, timings, SEAL, "b3sum", "sha256sum"),
    ]
    facts = {f"{case} GB/s": rate / timings.time(case).median for case in timings.samples}
    return row("P1", "seal a model by reference (W1)", timings, findings, facts)


def verify_model(setting: Setting) -> Row:
    """Measure P6: verify W1 where it lies, beside a checksum list."""
    store = setting.fresh("store")
    timed(setting.prov("seal", setting.model_spec, "--store", store))
    cases = [Case(VERIFY, lambda _: timed(setting.prov("verify", "model", "--store", store)))]
    for tool in ("b3sum", "sha256sum"):
        if setting.has(tool):
            cases.append(_check_case(setting, tool))
    timings = alternate(cases, setting.rounds, setting.say)
    findings = [against(P6, timings, VERIFY, "b3sum --check"), Finding(P6_ALONE, None, NO_MODE)]
    rate = setting.model.size_bytes / 1e9
    facts = {f"{case} GB/s": rate / timings.time(case).median for case in timings.samples}
    return row("P6", "verify a model where it lies (W1)", timings, findings, facts)


def _check_case(setting: Setting, tool: str) -> Case:
    listed = setting.fresh("list")
    timed(setting.command(tool, *_files(setting), output=listed))
    return Case(f"{tool} --check", lambda _: timed(setting.command(tool, "--check", listed)))


def _files(setting: Setting) -> list[Path]:
    return sorted(setting.model.path.iterdir())
