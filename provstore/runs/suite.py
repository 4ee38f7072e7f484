"""Suites of prompts as data (format ``provstore/suite/v1``, TOML): what is asked, how, in which order."""

import re
from math import isfinite
from typing import Annotated, Any, Final, Literal

import msgspec

from provstore import libraries
from provstore.errors import NewerFormatError, SpecError, UsageError
from provstore.ids import digests

FORMAT: Final = "provstore/suite/v1"

MAX_SUITE_BYTES: Final = 16 << 20
"""Largest suite."""

MAX_LINE_DOTS: Final = 100
"""Most dots in one line before its value: reading a dotted key takes the square of their number."""

OWN_MEMBERS: Final = frozenset(
    ("model", "messages", "prompt", "max_tokens", "seed", "stream", "stream_options", "return_token_ids", "n")
)
"""Members of a request that the suite says elsewhere, or that the client alone decides."""

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")

Cap = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=(1 << 53) - 1)]


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of a chat."""

    role: Literal["system", "user", "assistant", "developer"]
    content: str


class Prompt(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"class_": "class"}
):
    """One ``[[prompt]]`` of a suite.

    Attributes:
        id: its name; each once.
        class_: what it is an example of, such as prose or code.
        text: what is asked; of a chat, the one message of the user.
        messages: a whole chat instead of a text.
        max_tokens: most tokens of the answer; else the suite's.
        seed: seed of this prompt; else the suite's.
    """

    id: str
    class_: str = ""
    text: str | None = None
    messages: tuple[Message, ...] = ()
    max_tokens: Cap | None = None
    seed: Seed | None = None


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole suite.

    Attributes:
        format: ``provstore/suite/v1``.
        name: name of the suite.
        endpoint: ``chat`` for ``/v1/chat/completions``, ``completions`` for ``/v1/completions``.
        prompt: what is asked, in this order, each once.
        max_tokens: most tokens of an answer.
        seed: seed of every request; no seed is sent without one.
        system: first message of every chat that is given as a text.
        token_ids: ask for the ids of the answer's tokens; an answer without them is not complete.
        parameters: further members of every request, as they are.
    """

    format: str
    name: str
    endpoint: Literal["chat", "completions"]
    prompt: tuple[Prompt, ...]
    max_tokens: Cap
    seed: Seed | None = None
    system: str | None = None
    token_ids: bool = True
    parameters: dict[str, Any] = {}


def load_suite(data: bytes, where: str) -> Suite:
    """Read and check a suite.

    Raises:
        SpecError: it cannot be asked as it is written.
        NewerFormatError: another format.

    Example:
        >>> text = b'''format = "provstore/suite/v1"
        ... name = "s"
        ... endpoint = "chat"
        ... max_tokens = 8
        ... [[prompt]]
        ... id = "a"
        ... text = "Say it."
        ... '''
        >>> load_suite(text, "s.toml").prompt[0].id
        'a'
    """
    if len(data) > MAX_SUITE_BYTES:
        raise SpecError(where, f"{len(data)} bytes is larger than any suite ({MAX_SUITE_BYTES})")
    for number, row in enumerate(data.split(b"\n"), 1):
        if row.partition(b"=")[0].count(b".") > MAX_LINE_DOTS:
            raise SpecError(f"{where}:{number}", f"more than {MAX_LINE_DOTS} dots in a key; break the line")
    try:
        raw = libraries.tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise SpecError(where, f"not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise SpecError(where, f"no TOML: {error}") from error
    if raw.get("format") != FORMAT:
        if isinstance(raw.get("format"), str):
            raise NewerFormatError(where, raw["format"])
        raise SpecError(where, f'needs format = "{FORMAT}"')
    try:
        suite = msgspec.convert(raw, Suite)
    except msgspec.ValidationError as error:
        raise SpecError(where, str(error)) from error
    _check(suite, where)
    return suite


def _check(suite: Suite, where: str) -> None:
    if not suite.prompt:
        raise SpecError(where, "has no prompts")
    if taken := sorted(OWN_MEMBERS & suite.parameters.keys()):
        raise SpecError(where, f"parameters may not say {', '.join(taken)}")
    if not _is_json(suite.parameters):
        raise SpecError(where, "parameters hold what JSON has not")
    seen: set[str] = set()
    for number, prompt in enumerate(suite.prompt, 1):
        place = f"{where}: prompt {number}"
        if not _ID.fullmatch(prompt.id) or prompt.id in seen:
            raise SpecError(
                place, f"{prompt.id[:80]!r} is no id of letters, digits, . _ and -, or is there twice"
            )
        seen.add(prompt.id)
        if (prompt.text is None) == (not prompt.messages):
            raise SpecError(place, "needs either text or messages")
        if prompt.messages and suite.endpoint == "completions":
            raise SpecError(place, "messages go to the chat endpoint")
    if suite.system is not None and suite.endpoint == "completions":
        raise SpecError(where, "a system message goes to the chat endpoint")


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))


def request_body(suite: Suite, prompt: Prompt, model: str) -> bytes:
    """Return the body of the request for a prompt."""
    body: dict[str, Any] = {"model": model}
    if suite.endpoint == "completions":
        body["prompt"] = prompt.text
    else:
        body["messages"] = [msgspec.structs.asdict(message) for message in messages_of(suite, prompt)]
    body["max_tokens"] = prompt.max_tokens or suite.max_tokens
    seed = prompt.seed if prompt.seed is not None else suite.seed
    if seed is not None:
        body["seed"] = seed
    body["stream"] = True
    body["stream_options"] = {"include_usage": True}
    if suite.token_ids:
        body["return_token_ids"] = True
    return msgspec.json.encode(body | suite.parameters)


def messages_of(suite: Suite, prompt: Prompt) -> tuple[Message, ...]:
    """Return the chat that a prompt stands for."""
    if prompt.messages:
        return prompt.messages
    first = () if suite.system is None else (Message(role="system", content=suite.system),)
    return (*first, Message(role="user", content=prompt.text or ""))


def prompt_sha256(prompt: Prompt) -> str:
    """Return the SHA-256 of a prompt: of its text, or of its messages as JSON without blanks."""
    if prompt.text is not None:
        return digests(prompt.text.encode()).sha256.hex()
    if not prompt.messages:
        raise UsageError("a prompt needs text or messages")
    return digests(msgspec.json.encode(prompt.messages)).sha256.hex()
