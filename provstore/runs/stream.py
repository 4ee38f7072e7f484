"""What the pieces of a streamed answer say: events with their times, tokens, usage; pure.

An event has the time at which the line feed that ends it was here. Whatever a service sends becomes a typed
outcome; nothing raises, and what was said before the trouble is kept.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from provstore import canon
from provstore.errors import MalformedError
from provstore.paths import show

Outcome = Literal[
    "complete",
    "bad-chunking",
    "line-too-long",
    "broken-event",
    "error-event",
    "mixed-ids",
    "early-close",
    "no-finish-reason",
    "usage-absent",
    "usage-differs",
    "no-token-ids",
]

MAX_LINE_BYTES: Final = 1 << 20
MAX_EVENTS: Final = 1_000_000
_MAX_CHUNK_DIGITS: Final = 8


class Span(NamedTuple):
    """Bytes of the body, and where they lie in what came over the wire."""

    body_end: int
    wire_end: int


class Event(NamedTuple):
    """One event: when it was here, and its data."""

    at_ns: int
    data: bytes


class Said:
    """What one answer said, as far as it came.

    Attributes:
        outcome: ``complete``, or the first thing that was wrong.
        detail: more about it, for people.
        ids: token ids in order; None while no event had any.
        id_ns: time of each token id: that of its event.
        chunk_ns: time of each event that brought text or tokens.
        text: the answer.
        reasoning: text that the service kept apart from the answer.
        usage: the usage report as it was sent.
        finish_reasons: in the order in which they came.
        response_ids: distinct ids of the response.
        model: what the service calls its model.
        prompt_token_ids: number of token ids that it reports of the prompt.
        events: number of events.
    """

    def __init__(self) -> None:
        self.outcome: Outcome = "complete"
        self.detail = ""
        self.ids: list[int] | None = None
        self.id_ns: list[int] = []
        self.chunk_ns: list[int] = []
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.usage: dict[str, Any] | None = None
        self.finish_reasons: list[str] = []
        self.response_ids: list[str] = []
        self.model: str | None = None
        self.prompt_token_ids: int | None = None
        self.events = 0

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(self.texts)

    @property
    def reasoning(self) -> str:
        """What was kept apart from it."""
        return "".join(self.thoughts)

    def wrong(self, outcome: Outcome, detail: str) -> None:
        """Note what is wrong; the first thing counts."""
        if self.outcome == "complete":
            self.outcome, self.detail = outcome, detail


class _StreamError(Exception):
    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome: Outcome = outcome
        self.detail = detail


def understand(
    pieces: Sequence[bytes], stamps: Sequence[int], *, chunked: bool, token_ids: bool, endpoint: str
) -> Said:
    """Read the pieces of an answer.

    Args:
        pieces: what came after the head.
        stamps: when each piece was here.
        chunked: in the chunks of HTTP/1.1.
        token_ids: token ids were asked for.
        endpoint: ``chat`` or ``completions``.
    """
    said = Said()
    ended = False
    try:
        for event in _events(pieces, stamps, chunked):
            if event.data == b"[DONE]":
                ended = True
                break
            _take(said, event, endpoint)
    except _StreamError as error:
        said.wrong(error.outcome, error.detail)
    if said.outcome == "complete" and not ended:
        said.wrong("early-close", "the stream has no end")
    _weigh(said, token_ids)
    return said


def _events(pieces: Sequence[bytes], stamps: Sequence[int], chunked: bool) -> Iterator[Event]:
    wire = b"".join(pieces)
    ends = []
    total = 0
    for piece in pieces:
        total += len(piece)
        ends.append(total)
    trouble: list[_StreamError] = []
    body, spans = _unchunked(wire, trouble) if chunked else (wire, [Span(len(wire), len(wire))])
    span_ends = [span.body_end for span in spans]
    data: list[bytes] = []
    at = count = 0
    while (end := body.find(b"\n", at)) >= 0:
        if end - at > MAX_LINE_BYTES:
            raise _StreamError("line-too-long", f"a line of {end - at} bytes")
        line = body[at:end].removesuffix(b"\r")
        at = end + 1
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        if data and (not line or data == [b"[DONE]"]):
            count += 1
            if count > MAX_EVENTS:
                raise _StreamError("broken-event", f"more than {MAX_EVENTS} events")
            span = spans[bisect_left(span_ends, at)]
            place = span.wire_end - (span.body_end - at)
            yield Event(stamps[bisect_left(ends, place)], b"\n".join(data))
            data = []
    if len(body) - at > MAX_LINE_BYTES:
        raise _StreamError("line-too-long", f"a line of more than {MAX_LINE_BYTES} bytes")
    if body[at:].strip() in (b"data: [DONE]", b"data:[DONE]"):
        yield Event(stamps[-1], b"[DONE]")
    if trouble:
        raise trouble[0]


def _unchunked(wire: bytes, trouble: list[_StreamError]) -> tuple[bytes, list[Span]]:
    """Return the body and where its parts lie; a chunk that is cut short counts as far as it came."""
    parts: list[bytes] = []
    spans: list[Span] = []
    at = total = 0
    while at < len(wire):
        end = wire.find(b"\r\n", at, at + 1024)
        if end < 0:
            if len(wire) - at >= 1024:
                trouble.append(_StreamError("bad-chunking", "no size of a chunk"))
            break
        digits = wire[at:end].partition(b";")[0].strip()
        try:
            size = int(digits, 16) if digits.isalnum() and len(digits) <= _MAX_CHUNK_DIGITS else -1
        except ValueError:
            size = -1
        if size < 0:
            trouble.append(_StreamError("bad-chunking", f"{show(digits[:40])} is no size of a chunk"))
            break
        if size == 0:
            break
        start = end + 2
        part = wire[start : start + size]
        total += len(part)
        parts.append(part)
        spans.append(Span(total, start + len(part)))
        at = start + size
        if at < len(wire) and wire[at : at + 2] != b"\r\n"[: len(wire) - at]:
            trouble.append(_StreamError("bad-chunking", "a chunk is longer than its size"))
            break
        at += 2
    return b"".join(parts), spans


def _take(said: Said, event: Event, endpoint: str) -> None:
    try:
        document = canon.parse(event.data, f"event {said.events}", floats=True)
    except MalformedError as error:
        raise _StreamError("broken-event", error.message) from error
    said.events += 1
    if not isinstance(document, dict):
        raise _StreamError("broken-event", "an event that is no object")
    if b"\\u" in event.data and _has_surrogate(document):
        raise _StreamError("broken-event", "text that is not valid Unicode")
    if "error" in document:
        raise _StreamError("error-event", show(str(document["error"])[:500]))
    _note_response(said, document)
    choices = document.get("choices")
    if not isinstance(choices, list) or len(choices) > 1:
        raise _StreamError("broken-event", "an event needs a list of at most one choice")
    brought = False
    for choice in choices:
        if not isinstance(choice, dict) or choice.get("index", 0) != 0:
            raise _StreamError("broken-event", "a choice that is not the first")
        brought |= _take_ids(said, choice, event.at_ns)
        brought |= _take_text(said, choice, endpoint)
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            said.finish_reasons.append(reason)
    if brought:
        said.chunk_ns.append(event.at_ns)


def _has_surrogate(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_surrogate(part) for pair in value.items() for part in pair)
    if isinstance(value, list):
        return any(map(_has_surrogate, value))
    return isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value)


def _note_response(said: Said, document: dict[str, Any]) -> None:
    id, model, usage = document.get("id"), document.get("model"), document.get("usage")
    if isinstance(id, str) and id not in said.response_ids:
        said.response_ids.append(id)
        if len(said.response_ids) > 1:
            raise _StreamError("mixed-ids", "events of two responses in one stream")
    said.model = model if isinstance(model, str) else said.model
    if isinstance(usage, dict):
        said.usage = usage
    prompt = document.get("prompt_token_ids")
    if isinstance(prompt, list):
        said.prompt_token_ids = len(prompt)


def _take_ids(said: Said, choice: dict[str, Any], at_ns: int) -> bool:
    ids = choice.get("token_ids")
    prompt = choice.get("prompt_token_ids")
    if isinstance(prompt, list):
        said.prompt_token_ids = len(prompt)
    if ids is None:
        return False
    if not isinstance(ids, list) or not all(type(id) is int and id >= 0 for id in ids):
        raise _StreamError("broken-event", "token ids that are no list of integers")
    if said.ids is None:
        said.ids = []
    said.ids += ids
    said.id_ns += [at_ns] * len(ids)
    return bool(ids)


def _take_text(said: Said, choice: dict[str, Any], endpoint: str) -> bool:
    source = choice.get("delta") if endpoint == "chat" else choice
    if not isinstance(source, dict):
        raise _StreamError("broken-event", "a choice without its part of the answer")
    text = source.get("content" if endpoint == "chat" else "text")
    thought = source.get("reasoning_content") or source.get("reasoning")
    for part, into in ((text, said.texts), (thought, said.thoughts)):
        if isinstance(part, str):
            into.append(part)
        elif part is not None:
            raise _StreamError("broken-event", "text that is no text")
    return bool(text) or bool(thought)


def _weigh(said: Said, token_ids: bool) -> None:
    """Note what a whole answer lacks."""
    if not said.finish_reasons:
        said.wrong("no-finish-reason", "nothing says why the answer ended")
    if said.usage is None:
        said.wrong("usage-absent", "no usage report")
    elif reason := _bad_usage(said):
        said.wrong("usage-differs", reason)
    if token_ids and not said.ids:
        said.wrong("no-token-ids", "token ids were asked for, and none came")


def usage_count(usage: dict[str, Any] | None, *path: str) -> int | None:
    """Return a count of a usage report; None where it states none: never zero.

    Example:
        >>> usage_count({"prompt_tokens": 3, "prompt_tokens_details": None}, "prompt_tokens")
        3
        >>> usage_count({"prompt_tokens_details": None}, "prompt_tokens_details", "cached_tokens") is None
        True
    """
    here: Any = usage
    for name in path:
        here = here.get(name) if isinstance(here, dict) else None
    return here if type(here) is int and here >= 0 else None


def _bad_usage(said: Said) -> str:
    prompt = usage_count(said.usage, "prompt_tokens")
    answer = usage_count(said.usage, "completion_tokens")
    cached = usage_count(said.usage, "prompt_tokens_details", "cached_tokens")
    if prompt is None or answer is None:
        return "the usage report does not count prompt and answer"
    if cached is not None and cached > prompt:
        return f"{cached} cached tokens of a prompt of {prompt}"
    if said.prompt_token_ids not in (None, prompt):
        return f"{prompt} prompt tokens, and {said.prompt_token_ids} of their ids"
    # Some engines count an end token that they do not stream.
    if said.ids is not None and answer - len(said.ids) not in (0, 1):
        return f"{answer} tokens of the answer, and {len(said.ids)} of their ids"
    return ""
