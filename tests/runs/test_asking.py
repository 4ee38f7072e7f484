"""The suite client: what it sends, what it writes, and what it makes of services that misbehave."""

import json
import os
import signal
import socket
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from provstore.errors import MalformedError, NewerFormatError, SpecError, TargetError, UsageError
from provstore.evidence.bench import read_bench
from provstore.ids import digests
from provstore.runs.asking import Asked, Hooks, run_suite
from provstore.runs.stream import understand
from provstore.runs.suite import load_suite
from provstore.runs.views import view_of
from provstore.runs.wire import RECEIVE_BYTES, Limits, Target, ask, target_of
from runs.servers import (
    CHUNKED,
    END,
    PLAIN,
    Script,
    Server,
    chunk,
    dripping,
    event,
    pieces,
    raw,
    said,
    serving,
    usage,
    whole,
)

SUITE: Final = b"""
format = "provstore/suite/v1"
name = "two"
endpoint = "chat"
max_tokens = 5
seed = 1
system = "Be brief."
[parameters]
temperature = 0
chat_template_kwargs = { enable_thinking = false }
[[prompt]]
id = "a"
class = "prose"
text = "Tell of rain."
[[prompt]]
id = "b"
class = "code"
messages = [{ role = "user", content = "Sort a list." }]
max_tokens = 9
seed = 4
"""

QUICK: Final = Limits(connect_s=2, first_s=0.4, idle_s=0.4, total_s=1.5, answer_bytes=1 << 20)


def asked(server: Server, path: Path, limits: Limits = QUICK, **more: Any) -> tuple[Asked, dict[str, Any]]:
    found = run_suite(
        load_suite(SUITE, "s.toml"), SUITE, server.target, "tiny", os.fspath(path), limits=limits, **more
    )
    return found, json.loads(path.read_bytes())


def test_a_whole_suite(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    with serving(pieces(*whole(5)), pieces(*whole(5))) as server:
        found, document = asked(server, path)
    assert (found.ended, found.outcomes, found.whole) == ("complete", ("complete",) * 2, True)
    assert server.most == 1
    assert [request.headers["x-request-id"] for request in server.requests] == ["two-0000-a", "two-0001-b"]
    first, second = (request.body for request in server.requests)
    assert first == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Tell of rain."},
        ],
        "max_tokens": 5,
        "seed": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert (second["messages"], second["max_tokens"], second["seed"]) == (
        [{"role": "user", "content": "Sort a list."}],
        9,
        4,
    )
    row = document["rows"][0]
    assert row["token_ids"] == [100, 101, 102, 103, 104]
    assert row["text"] == "w0 w1 w2 w3 end"
    assert row["finish_reasons"] == ["length"]
    assert (row["prompt_tokens"], row["completion_tokens"], row["cached_tokens"]) == (7, 5, 0)
    assert row["sha256"] == digests(row["text"].encode()).sha256.hex()
    assert row["prompt_sha256"] == digests(b"Tell of rain.").sha256.hex()
    assert document["summary"]["outcomes"] == {"complete": 2}


def test_the_raw_object_is_what_the_reader_reads(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    with serving(pieces(*whole(120)), pieces(*whole(120))) as server:
        asked(server, path)
    read = read_bench(path.read_bytes())
    assert read.findings == ()
    assert read.shape == "intervals"
    assert len(read.rows) == 2
    before = path.read_bytes()
    view = view_of(before, ["conventional-intervals", "legacy-inclusive-events"])
    assert path.read_bytes() == before
    assert view.source_blake3 == digests(before).blake3.hex()
    intervals, events = (metric.value for metric in view.metrics)
    assert intervals is not None
    assert events is not None
    assert float(events) > float(intervals) > 0
    with pytest.raises(MalformedError):
        view_of(before[:-20], ["conventional-intervals"])


def test_times_are_those_of_the_arrival_by_one_clock(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    pause_s = 0.01
    with serving(pieces(*whole(20), pause_s=pause_s), pieces(*whole(1))) as server:
        _, document = asked(server, path)
        sent = server.sent_ns[1:21]
    row = document["rows"][0]
    anchor = document["run_identity"]["clock"]
    start = round((row["request_started_epoch_s"] * 1e9 - int(anchor["anchor_epoch_ns"])) / 1e3) * 1000
    start += int(anchor["anchor_ns"])
    offsets = row["token_id_offsets_s"]
    assert offsets == sorted(offsets)
    for at, offset in zip(sent, offsets, strict=True):
        assert start + offset * 1e9 >= at - 2_000, "nothing can be here before it was sent"
    gaps = [after - before for before, after in pairwise(offsets)]
    assert sum(gaps) >= 19 * pause_s * 0.9
    assert row["chunk_offsets_s"] == offsets
    assert row["ttft_s"] == offsets[0] <= row["elapsed_s"]


def test_tokens_of_one_event_have_one_time() -> None:
    parts = [
        event(said([1, 2, 3], "abc")),
        event(said([4], "d", finish_reason="stop")),
        event(usage(2, 4)),
        END,
    ]
    found = understand(parts, [10, 20, 30, 40], chunked=False, token_ids=True, endpoint="chat")
    assert (found.outcome, found.ids, found.id_ns) == ("complete", [1, 2, 3, 4], [10, 10, 10, 20])
    assert found.chunk_ns == [10, 20]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("chunked", [True, False])
def test_where_pieces_are_cut_changes_no_word(size: int, chunked: bool) -> None:
    parts = [chunk(part) if chunked else part for part in whole(6)]
    wire = b"".join(parts) + (b"0\r\n\r\n" if chunked else b"")
    cut = [wire[at : at + size] for at in range(0, len(wire), size)]
    found = understand(cut, range(len(cut)), chunked=chunked, token_ids=True, endpoint="chat")
    assert (found.outcome, found.ids) == ("complete", list(range(100, 106)))
    ends = [wire.index(b"\n\n", wire.index(b"[%d]" % id)) + 1 for id in range(100, 106)]
    assert found.id_ns == [end // size for end in ends]


def test_completions(tmp_path: Path) -> None:
    text = SUITE.replace(b'"chat"', b'"completions"').replace(b'system = "Be brief."\n', b"")
    text = text.replace(b'messages = [{ role = "user", content = "Sort a list." }]', b'text = "Sort"')
    one = {"id": "c", "choices": [{"index": 0, "text": "x", "token_ids": [3], "finish_reason": "stop"}]}
    parts = [event(one), event(usage(1, 1) | {"id": "c"}), END]
    path = tmp_path / "bench.json"
    with serving(pieces(*parts)) as server:
        found = run_suite(load_suite(text, "s"), text, server.target, "tiny", os.fspath(path), limits=QUICK)
    assert found.whole
    assert [request.line for request in server.requests] == ["POST /v1/completions HTTP/1.1"] * 2
    assert server.requests[0].body["prompt"] == "Tell of rain."


REDIRECT: Final = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://example.org/\r\n\r\n"
GZIPPED: Final = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
JSON: Final = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"a": 1}'
BUSY: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
OTHER: Final = {**said([9], "x"), "id": "chatcmpl-2"}
DEEP: Final = b'data: {"choices": ' + b"[" * 5000 + b"]" * 5000 + b"}\n\n"

HOSTILE: Final[dict[str, tuple[str, Script]]] = {
    "non-200": ("http-status", raw(BUSY)),
    "redirect": ("redirect", raw(REDIRECT)),
    "compressed": ("compressed", raw(GZIPPED + b"\x1f\x8b\x08")),
    "gzip as transfer": ("compressed", raw(CHUNKED.replace(b"chunked", b"gzip, chunked"))),
    "a JSON document": ("not-a-stream", raw(JSON)),
    "nothing at all": ("early-close", raw(b"")),
    "no HTTP": ("bad-head", raw(b"SSH-2.0-x\r\n\r\n")),
    "endless head": ("bad-head", raw(b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 70_000)),
    "half a head": ("timeout-head", raw(b"HTTP/1.1 200", hold_s=5)),
    "head, then silence": ("timeout-first", raw(CHUNKED, hold_s=5)),
    "stops in the middle": ("timeout-idle", raw(CHUNKED + chunk(whole()[0]), hold_s=5)),
    "a byte at a time, no line": ("timeout-idle", dripping(b"data: x", 0.01)),
    "comments for ever": ("timeout-total", dripping(b": ping\n", 0.01)),
    "early close": ("early-close", raw(CHUNKED + chunk(whole()[0]))),
    "closed without an end": ("early-close", pieces(*whole()[:-1])),
    "half an event": ("early-close", raw(PLAIN + whole()[0][:30])),
    "no JSON": ("broken-event", pieces(b"data: {oops\n\n", *whole())),
    "not UTF-8": ("broken-event", pieces(b'data: {"id": "\xff"}\n\n', *whole())),
    "no object": ("broken-event", pieces(b"data: 7\n\n", *whole())),
    "duplicate keys": ("broken-event", pieces(b'data: {"id": "a", "id": "b"}\n\n', *whole())),
    "too deep": ("broken-event", pieces(DEEP, *whole())),
    "no choices": ("broken-event", pieces(event({"id": "chatcmpl-1"}), *whole())),
    "two choices": ("broken-event", pieces(event({"choices": [{}, {}]}), *whole())),
    "ids that are none": ("broken-event", pieces(event(said([True], "x")), *whole())),
    "text that is none": ("broken-event", pieces(event({"choices": [{"delta": {"content": 3}}]}), *whole())),
    "lone surrogate": ("broken-event", pieces(b'data: {"id": "\\ud800", "choices": []}\n\n', *whole())),
    "an error event": ("error-event", pieces(whole()[0], event({"error": {"message": "no memory"}}), END)),
    "two responses": ("mixed-ids", pieces(whole()[0], event(OTHER), *whole()[1:])),
    "bad chunk size": ("bad-chunking", raw(CHUNKED + b"zz\r\n" + whole()[0] + b"\r\n")),
    "negative chunk size": ("bad-chunking", raw(CHUNKED + b"-5\r\n" + whole()[0] + b"\r\n")),
    "chunk size of 2^64": ("bad-chunking", raw(CHUNKED + b"ffffffffffffffff\r\n" + whole()[0])),
    "chunk longer than it says": ("bad-chunking", raw(CHUNKED + b"3\r\n" + whole()[0])),
    "endless line": ("line-too-long", raw(CHUNKED + chunk(b"data: " + b"x" * (2 << 20)), hold_s=1)),
    "endless comments": ("too-large", raw(CHUNKED + chunk(b": x\n\n" * (1 << 18)), hold_s=1)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_service_gives_a_typed_outcome(name: str, tmp_path: Path) -> None:
    outcome, script = HOSTILE[name]
    path = tmp_path / "bench.json"
    began = time.monotonic()
    with serving(script) as server:
        found, document = asked(server, path)
    assert time.monotonic() - began < 10
    assert (found.ended, found.outcomes, found.whole) == ("stopped", (outcome,), False)
    assert len(server.requests) == 1, "nothing is asked again"
    row = document["rows"][0]
    assert (row["outcome"], len(document["rows"])) == (outcome, 1)
    assert row["outcome_detail"]
    assert document["summary"]["prompts_not_asked"] == 1
    read = read_bench(path.read_bytes())
    assert {finding.code for finding in read.findings} <= {"row-count"}


LACKING: Final[dict[str, tuple[str, list[bytes]]]] = {
    "no token ids": ("no-token-ids", [event(said([], "x", finish_reason="stop")), event(usage(7, 1)), END]),
    "no usage": ("usage-absent", [event(said([1], "x", finish_reason="stop")), END]),
    "no reason": ("no-finish-reason", [event(said([1], "x")), event(usage(7, 1)), END]),
    "too many": ("usage-differs", [event(said([1], "x", finish_reason="stop")), event(usage(7, 3)), END]),
    "too few": ("usage-differs", [event(said([1, 2], "x", finish_reason="stop")), event(usage(7, 1)), END]),
    "a boolean": ("usage-differs", [event(said([1], "x", finish_reason="stop")), event(usage(True, 1)), END]),
    "negative": ("usage-differs", [event(said([1], "x", finish_reason="stop")), event(usage(7, -1)), END]),
    "more cached than there is": (
        "usage-differs",
        [event(said([1], "x", finish_reason="stop")), event(usage(7, 1, 8)), END],
    ),
}


@pytest.mark.parametrize("name", LACKING)
def test_a_whole_answer_that_lacks_something_is_noted_and_the_suite_goes_on(
    name: str, tmp_path: Path
) -> None:
    outcome, parts = LACKING[name]
    with serving(pieces(*parts), pieces(*whole())) as server:
        found, document = asked(server, tmp_path / "bench.json")
    assert (found.ended, found.outcomes) == ("complete", (outcome, "complete"))
    assert not found.whole
    row = document["rows"][0]
    if name == "no usage":
        assert row["completion_tokens"] is row["cached_tokens"] is row["usage"] is None
    if name == "no token ids":
        assert row["token_ids"] == []
        assert row["text"] == "x"


def test_an_absent_cached_count_is_not_zero(tmp_path: Path) -> None:
    counts = {"prompt_tokens": 7, "completion_tokens": 1, "prompt_tokens_details": None, "rate": 1.5}
    report = usage(7, 1) | {"usage": counts}
    with serving(pieces(event(said([1], "x", finish_reason="stop")), event(report), END)) as server:
        found, document = asked(server, tmp_path / "bench.json")
    assert found.whole
    assert document["rows"][0]["cached_tokens"] is None
    assert document["rows"][0]["usage"] == counts


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    suite = load_suite(SUITE, "s")
    path = tmp_path / "bench.json"
    found = run_suite(suite, SUITE, Target("127.0.0.1", port), "tiny", os.fspath(path), limits=QUICK)
    assert found.outcomes == ("connect-failed",)
    assert json.loads(path.read_bytes())["rows"][0]["http_status"] is None


def test_a_raw_object_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text("precious")
    suite = load_suite(SUITE, "s")
    with serving(pieces(*whole())) as server:
        with pytest.raises(TargetError):
            run_suite(suite, SUITE, server.target, "tiny", os.fspath(path))
        (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere.json")
        with pytest.raises(TargetError):
            run_suite(suite, SUITE, server.target, "tiny", os.fspath(tmp_path / "link.json"))
    assert path.read_text() == "precious"
    assert server.requests == []


def test_what_is_written_before_each_request(tmp_path: Path) -> None:
    """A kill leaves the object as it was then: what was asked is in it, and it is not whole."""
    path = tmp_path / "bench.json"
    seen: list[bytes] = []

    def look(server: Server, link: socket.socket) -> None:
        seen.append(path.read_bytes())
        pieces(*whole())(server, link)

    hooks = Hooks(before_first=lambda: seen.append(path.read_bytes()))
    with serving(look) as server:
        asked(server, path, hooks=hooks)
    before, first, second = seen
    assert before.endswith(b'"rows":[')
    assert b'"prompt_id":"a"' in first
    assert b'"prompt_id":"b"' not in first
    assert b'"outcome":"complete"' not in first
    assert b'"prompt_id":"b"' in second
    assert second.count(b'"outcome":"complete"') == 1
    for data in seen:
        read = read_bench(data)
        assert any(finding.severity == "error" for finding in read.findings)


def test_an_interruption_leaves_the_object_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    with serving(raw(CHUNKED + chunk(whole()[0]), hold_s=30)) as server:
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            asked(server, path, limits=Limits())
        timer.join()
    assert any(finding.severity == "error" for finding in read_bench(path.read_bytes()).findings)


def test_between_two_tokens_there_is_one_call_that_waits_and_little_else() -> None:
    """Work is counted, not time: Python-level calls of the client for each event of a stream."""
    events = 400
    calls: dict[str, int] = {}

    def count(frame: Any, kind: str, argument: Any) -> None:
        if kind in ("call", "c_call"):
            name = argument.__name__ if kind == "c_call" else frame.f_code.co_name
            calls[name] = calls.get(name, 0) + 1

    with serving(pieces(*whole(events), pause_s=0.001)) as server:
        sys.setprofile(count)
        try:
            answer = ask(server.target, "/v1/chat/completions", b"{}", "x", Limits())
        finally:
            sys.setprofile(None)
    assert answer.trouble == ""
    assert answer.receives == calls["recv"] <= events + 20
    assert len(answer.pieces) == len(answer.stamps) <= answer.receives
    assert sum(calls.values()) <= 7 * answer.receives + 100
    assert RECEIVE_BYTES >= 1 << 16


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ((b"suite/v1", b"suite/v2"), NewerFormatError),
        ((b'id = "b"', b'id = "a"'), SpecError),
        ((b'id = "b"', b'id = "../b"'), SpecError),
        ((b"max_tokens = 5", b"max_tokens = 0"), SpecError),
        ((b"temperature = 0", b"stream = false"), SpecError),
        ((b"temperature = 0", b"temperature = nan"), SpecError),
        ((b"temperature = 0", b"when = 2026-01-01"), SpecError),
        ((b'text = "Tell of rain."', b""), SpecError),
        ((b'"chat"', b'"embeddings"'), SpecError),
        ((b'"chat"', b'"completions"'), SpecError),
        ((b"seed = 1", b"sead = 1"), SpecError),
        ((b"seed = 1", b"seed = -1"), SpecError),
        ((b"name =", b"name"), SpecError),
        ((b"rain", b"\xff"), SpecError),
    ],
)
def test_a_suite_that_cannot_be_asked(change: tuple[bytes, bytes], error: type[Exception]) -> None:
    assert change[0] in SUITE
    with pytest.raises(error):
        load_suite(SUITE.replace(*change), "suite.toml")


@pytest.mark.parametrize(
    "url", ["https://h", "http://", "http://u:p@h", "http://h/?x", "ftp://h", "h", "http://h:x", "http://h o"]
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(UsageError):
        target_of(url)
