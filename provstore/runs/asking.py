"""Asking a service the prompts of a suite: one at a time, in order, each once, no matter what comes back."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import msgspec

from provstore.evidence.ledger import stamp
from provstore.ids import digests
from provstore.runs.raw import Fields, RawFile, all_seconds, exact, seconds
from provstore.runs.stream import Said, understand, usage_count
from provstore.runs.suite import Prompt, Suite, prompt_sha256, request_body
from provstore.runs.wire import EXCERPT_BYTES, Answer, Limits, Target, ask

Ended = Literal["complete", "stopped"]
"""``complete``: every prompt was asked. ``stopped``: after an answer that did not come in whole."""

PATHS: Final = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}

GOES_ON: Final = frozenset(("complete", "no-finish-reason", "usage-absent", "usage-differs", "no-token-ids"))
"""Outcomes after which the next prompt is asked: the whole answer came in."""

_SOONER: Final = frozenset(("bad-chunking", "line-too-long", "broken-event", "error-event", "mixed-ids"))
"""What an answer says that explains why it was cut short."""

DEFAULT_LIMITS: Final = Limits()


class Hooks(NamedTuple):
    """What others do meanwhile; each is called between two requests, never during one.

    Attributes:
        before_first: before the first request is sent, and after the raw object was begun.
        after: after each answer, with its place from 0 and its outcome.
    """

    before_first: Callable[[], None] = lambda: None
    after: Callable[[int, str], None] = lambda place, outcome: None


class Asked(NamedTuple):
    """What came of a suite.

    Attributes:
        ended: how it ended.
        outcomes: outcome of every request that was sent, in order.
        path: the raw benchmark object.
    """

    ended: Ended
    outcomes: tuple[str, ...]
    path: str

    @property
    def whole(self) -> bool:
        """True when every prompt was asked and every answer has all that it must have."""
        return self.ended == "complete" and set(self.outcomes) == {"complete"}


class _Clock(NamedTuple):
    """One moment by both clocks: times of a run are counted by the first, the second only dates them."""

    monotonic_ns: int
    epoch_ns: int

    def epoch(self, at_ns: int) -> msgspec.Raw:
        """Return a time of the monotonic clock in seconds since the epoch."""
        return seconds(self.epoch_ns + at_ns - self.monotonic_ns)


def run_suite(
    suite: Suite,
    data: bytes,
    target: Target,
    model: str,
    path: str,
    *,
    limits: Limits = DEFAULT_LIMITS,
    hooks: Hooks | None = None,
) -> Asked:
    """Ask every prompt of a suite once, and write the raw benchmark object.

    Nothing is asked before the first prompt, nothing is asked twice, and there is never more than one request
    on its way. After an answer that did not come in whole nothing more is asked. An interruption (Ctrl-C)
    goes through at once and leaves the object cut off where it was.

    Args:
        suite: the suite.
        data: its bytes, as they were read.
        target: the service.
        model: what the service calls the model.
        path: file to write; must not exist.
        limits: how long and how much is waited for.
        hooks: what others do meanwhile.

    Raises:
        TargetError: the file exists.
        InputOutputError: it cannot be written; nothing more was asked.
    """
    hooks = hooks or Hooks()
    clock = _Clock(time.monotonic_ns(), time.time_ns())
    outcomes: list[str] = []
    ended: Ended = "complete"
    with RawFile(path) as raw:
        raw.begin(_identity(suite, data, target, model, clock))
        hooks.before_first()
        for place, prompt in enumerate(suite.prompt):
            body = request_body(suite, prompt, model)
            name = f"{suite.name}-{place:04d}-{prompt.id}"
            raw.open_row(_known(suite, prompt, place, name, body))
            answer = ask(target, PATHS[suite.endpoint], body, _header_safe(name), limits)
            said, outcome, detail = _understood(suite, answer)
            raw.close_row(_row(answer, said, clock) | {"outcome": outcome, "outcome_detail": detail})
            outcomes.append(outcome)
            hooks.after(place, outcome)
            if outcome not in GOES_ON:
                ended = "stopped"
                break
        raw.end(_summary(suite, ended, outcomes, clock))
    return Asked(ended, tuple(outcomes), path)


def _identity(suite: Suite, data: bytes, target: Target, model: str, clock: _Clock) -> Fields:
    found = digests(data)
    return {
        "created_at_utc": stamp(clock.epoch_ns),
        "base_url": f"http://{target.host}:{target.port}{target.prefix}",
        "model": model,
        "api_mode": suite.endpoint,
        "suite": {"name": suite.name, "blake3": found.blake3.hex(), "sha256": found.sha256.hex()},
        "prompt_count": len(suite.prompt),
        "suite_prompt_count": len(suite.prompt),
        "prompt_classes": sorted({prompt.class_ for prompt in suite.prompt if prompt.class_}),
        "selected_prompt_ids": [prompt.id for prompt in suite.prompt],
        "max_tokens": suite.max_tokens,
        "seed": suite.seed,
        "request_extra": suite.parameters,
        "system_prompt": suite.system,
        "return_token_ids": suite.token_ids,
        "concurrency": 1,
        "clock": {
            "name": time.get_clock_info("monotonic").implementation,
            "anchor_ns": str(clock.monotonic_ns),
            "anchor_epoch_ns": str(clock.epoch_ns),
        },
    }


def _known(suite: Suite, prompt: Prompt, place: int, name: str, body: bytes) -> Fields:
    return {
        "prompt_index": place,
        "prompt_id": prompt.id,
        "prompt_class": prompt.class_ or None,
        "prompt_sha256": prompt_sha256(prompt),
        "client_request_id": name,
        "request_sha256": digests(body).sha256.hex(),
        "max_tokens": prompt.max_tokens or suite.max_tokens,
        "seed": prompt.seed if prompt.seed is not None else suite.seed,
    }


def _header_safe(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def _understood(suite: Suite, answer: Answer) -> tuple[Said, str, str]:
    """Return what an answer says, what became of it, and more about that."""
    if answer.status != 200 or answer.trouble in ("compressed", "not-a-stream"):
        return Said(), answer.trouble, answer.detail
    chunked = answer.headers.get("transfer-encoding", "").lower() == "chunked"
    said = understand(
        answer.pieces, answer.stamps, chunked=chunked, token_ids=suite.token_ids, endpoint=suite.endpoint
    )
    if answer.trouble and said.outcome not in _SOONER:
        return said, answer.trouble, answer.detail
    return said, said.outcome, said.detail


def _row(answer: Answer, said: Said, clock: _Clock) -> Fields:
    start, end = answer.started_ns, answer.ended_ns
    first = said.chunk_ns[0] if said.chunk_ns else None
    last = said.chunk_ns[-1] if said.chunk_ns else end
    text = said.text
    row: dict[str, Any] = {
        "http_status": answer.status or None,
        "prompt_tokens": usage_count(said.usage, "prompt_tokens"),
        "completion_tokens": usage_count(said.usage, "completion_tokens"),
        "cached_tokens": usage_count(said.usage, "prompt_tokens_details", "cached_tokens"),
        "usage": exact(said.usage),
        "finish_reasons": said.finish_reasons,
        "token_ids": said.ids,
        "token_id_offsets_s": None if said.ids is None else all_seconds(said.id_ns, start),
        "stream_token_id_count": len(said.ids or ()),
        "chunk_offsets_s": all_seconds(said.chunk_ns, start),
        "chunk_count": len(said.chunk_ns),
        "event_count": said.events,
        "receive_count": answer.receives,
        "ttft_s": None if first is None else seconds(first - start),
        "elapsed_s": seconds(end - start),
        "post_ttft_s": None if first is None else seconds(last - first),
        "request_started_epoch_s": clock.epoch(start),
        "first_text_epoch_s": None if first is None else clock.epoch(first),
        "request_ended_epoch_s": clock.epoch(end),
        "request_id": said.response_ids[0] if said.response_ids else None,
        "response_x_request_id": answer.headers.get("x-request-id"),
        "response_model": said.model,
        "text": text,
        "sha256": digests(text.encode("utf-8", "surrogatepass")).sha256.hex(),
    }
    if said.reasoning:
        row["reasoning_text"] = said.reasoning
    if answer.trouble and answer.status and not said.events:
        body = b"".join(answer.pieces)[:EXCERPT_BYTES]
        row["body_excerpt"] = body.decode("utf-8", "replace")
    return row


def _summary(suite: Suite, ended: Ended, outcomes: list[str], clock: _Clock) -> Fields:
    return {
        "ended": ended,
        "requests_sent": len(outcomes),
        "prompts_not_asked": len(suite.prompt) - len(outcomes),
        "outcomes": dict(sorted(Counter(outcomes).items())),
        "elapsed_s": seconds(time.monotonic_ns() - clock.monotonic_ns),
    }
