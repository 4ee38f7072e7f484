"""What does the suite client itself cost between two tokens, at 1,000 events a second? (P17)."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from measure import Case, Command, Sample, Spread, alternate, spread
from rows import Finding, Goal, Row, row
from setting import Setting

RATE: Final = 1000
EVENTS: Final = 5000
MICROSECONDS: Final = 1e6

OURS: Final = "suite client"
WHOLE: Final = "suite client, reading what it means included"
FLOOR: Final = "bare recv and a clock"
NAIVE: Final = "http.client, readline and json.loads"

P17: Final = Goal(
    "processor time of receiving an event beyond that of a bare recv / interval of 1 ms",
    1.0,
    "%",
    bound="stamping and keeping a piece; the rest is the kernel's, waking a process that waits",
)

_HEAD: Final = """
import sys, time
sys.path.insert(0, {package!r})
port, events = {port}, {events}
"""

_CODES: Final = {
    OURS: """
from provstore.runs.wire import Limits, Target, ask
used = time.process_time()
answer = ask(Target("127.0.0.1", port), "/v1/chat/completions", b"{}", "x", Limits())
used = time.process_time() - used
assert not answer.trouble, answer
""",
    WHOLE: """
from provstore.runs.stream import understand
from provstore.runs.wire import Limits, Target, ask
used = time.process_time()
answer = ask(Target("127.0.0.1", port), "/v1/chat/completions", b"{}", "x", Limits())
said = understand(answer.pieces, answer.stamps, chunked=True, token_ids=True, endpoint="chat")
used = time.process_time() - used
assert said.outcome == "complete" and said.ids == list(range(events)), said.detail
""",
    FLOOR: """
import socket
used = time.process_time()
link = socket.create_connection(("127.0.0.1", port))
link.sendall(b"POST / HTTP/1.1\\r\\nContent-Length: 0\\r\\n\\r\\n")
while link.recv(65536):
    time.monotonic_ns()
used = time.process_time() - used
""",
    NAIVE: """
import http.client, json
used = time.process_time()
link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
link.request("POST", "/v1/chat/completions", b"{}")
answer, stamps = link.getresponse(), []
while line := answer.readline():
    if line.startswith(b"data: {"):
        stamps.append(time.monotonic())
        json.loads(line[6:])
used = time.process_time() - used
assert len(stamps) == events + 1
""",
}


def client_cost(setting: Setting) -> Row:
    """Measure P17: processor time of clients that take in a stream of known timing, each in a process."""
    events = max(200, int(EVENTS * setting.scale))
    with _service(setting, events) as port:
        cases = [
            Case(name, lambda _, code=code: _run(setting, port, events, code))  # type: ignore[misc]
            for name, code in _CODES.items()
        ]
        timings = alternate(cases, setting.rounds, setting.say)
    each = {
        name: [sample.cpu_seconds / events * MICROSECONDS for sample in timings.samples[name]]
        for name in _CODES
    }
    interval = MICROSECONDS / RATE
    beyond = [(ours - bare) / interval * 100 for ours, bare in zip(each[OURS], each[FLOOR], strict=True)]
    facts = {f"{name}, us an event": spread(values).median for name, values in each.items()}
    facts |= {
        f"{name}, % of the interval": spread(values).median / interval * 100 for name, values in each.items()
    }
    notes = (
        f"{events} events of one token, {RATE} a second, from another process; processor time of the client, "
        "system calls included",
        "what an answer means is read after its end, between two requests",
    )
    return row(
        "P17", "the suite client beside the tokens", timings, [Finding(P17, _least(beyond))], facts, notes
    )


def _least(values: list[float]) -> Spread:
    return spread([max(0.0, value) for value in values])


@contextmanager
def _service(setting: Setting, events: int) -> Iterator[int]:
    here = Path(__file__).parent / "streaming.py"
    argv = [sys.executable, str(here), str(events), str(1 / RATE)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=setting.env, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


def _run(setting: Setting, port: int, events: int, code: str) -> Sample:
    """Run a client; its own measure of processor time leaves out its start."""
    package = str(Path(__file__).parents[1])
    text = _HEAD.format(package=package, port=port, events=events) + code + "print(used)\n"
    command: Command = setting.python(text)
    done = subprocess.run(command.argv, env=command.env, capture_output=True, text=True, check=True)
    return Sample(events / RATE, float(done.stdout))
