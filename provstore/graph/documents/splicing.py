"""Changing single values of a JSON text and leaving every other byte as it is."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

_BLANKS: Final = " \t\r\n"
_MARK: Final = "\ufeff"


class Splice(NamedTuple):
    """One value to be replaced.

    Attributes:
        at: JSON pointer of a value that is there.
        text: JSON text of the new value.
    """

    at: str
    text: str


def span(text: str, pointer: str) -> tuple[int, int] | None:
    """Return where the value at a JSON pointer begins and ends, or None when nothing stands there.

    Args:
        text: one whole JSON text, known to be one.
        pointer: see RFC 6901.

    Example:
        >>> text = '{"a": [1, {"b" : 2.50}]}'
        >>> start, end = span(text, "/a/1/b")
        >>> text[start:end]
        '2.50'
    """
    at = _blanks(text, len(_MARK) if text.startswith(_MARK) else 0)
    for raw in pointer.split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        found = _member(text, at, token) if text[at] == "{" else _element(text, at, token)
        if found is None:
            return None
        at = found
    return at, _end(text, at)


def source_text(text: str, pointer: str) -> str | None:
    """Return a value as its source prints it, or None when nothing stands there."""
    found = span(text, pointer)
    return None if found is None else text[found[0] : found[1]]


def spliced(text: str, splices: Sequence[Splice]) -> str:
    """Return a text with values replaced; one that lies inside another replaced one is left out.

    Example:
        >>> spliced('{"a": 1.0,  "b": [2]}', [Splice("/b/0", "3"), Splice("/a", "1.50")])
        '{"a": 1.50,  "b": [3]}'
    """
    places = []
    for splice in splices:
        found = span(text, splice.at)
        if found is not None:
            places.append((found, splice.text))
    parts, done = [], 0
    for (start, end), new in sorted(places):
        if start >= done:
            parts += [text[done:start], new]
            done = end
    return "".join([*parts, text[done:]])


def _blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _end(text: str, at: int) -> int:
    end: int = _DECODER.raw_decode(text, at)[1]
    return end


def _member(text: str, at: int, name: str) -> int | None:
    """Return where the value of a member begins."""
    at = _blanks(text, at + 1)
    while text[at] == '"':
        key, at = _DECODER.raw_decode(text, at)
        at = _blanks(text, _blanks(text, at) + 1)
        if key == name:
            return at
        at = _blanks(text, _end(text, at))
        if text[at] != ",":
            return None
        at = _blanks(text, at + 1)
    return None


def _element(text: str, at: int, index: str) -> int | None:
    """Return where an element of an array begins."""
    if text[at] != "[" or not (index == "0" or (index.isascii() and index.isdigit() and index[0] != "0")):
        return None
    at = _blanks(text, at + 1)
    left = int(index[:9])
    while text[at] != "]":
        if not left:
            return at
        left -= 1
        at = _blanks(text, _end(text, at))
        if text[at] != ",":
            return None
        at = _blanks(text, at + 1)
    return None


def _as_text(digits: str) -> str:
    return digits


_DECODER: Final = json.JSONDecoder(parse_int=_as_text, parse_float=_as_text)
"""Finds the end of a value; numbers stay text, so that none is too long."""
