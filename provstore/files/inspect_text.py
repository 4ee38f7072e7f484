"""Facts of small text evidence: key=value files and the leaves of JSON documents."""

from collections.abc import Iterator
from typing import Any, Final

from provstore import canon
from provstore.errors import MalformedError
from provstore.paths import show
from provstore.records.facts import Fact

MAX_TEXT_BYTES: Final = 4 << 20
"""Larger files get no facts here."""

MAX_FACTS: Final = 4096
"""A document with more leaves is raw data, not a statement; it gets none."""

MAX_FACTS_CHARS: Final = 8 << 20
"""So does one whose keys, places and values together are longer: each leaf repeats the keys above it."""


def key_values(data: bytes, prefix: str) -> tuple[Fact, ...]:
    """Return a fact for each ``KEY=value`` line.

    Args:
        data: the file's bytes; lines without ``=`` are left out.
        prefix: first part of each fact's key, such as ``env``.

    Example:
        >>> key_values(b"A=1", "env")[0].key
        'env.A'
    """
    facts: list[Fact] = []
    for number, line in enumerate(data.splitlines(), 1):
        key, equals, value = line.partition(b"=")
        if equals and key.strip():
            if len(facts) == MAX_FACTS:
                return ()
            facts.append(Fact(key=f"{prefix}.{show(key)}", value=show(value), location=f"line {number}"))
    return tuple(facts)


def json_leaves(data: bytes, where: str) -> tuple[Fact, ...]:
    """Return a fact for each leaf of a JSON document.

    The location is the leaf's JSON pointer (RFC 6901). The key is the same path, but objects in a list go
    by their own name where each has one (``module``, ``path``, ``name``, ``id`` ...), so that two documents
    compare by what is meant and not by position. Numbers with a fraction keep their source text.

    Raises:
        CanonError: the JSON is not strict; see :func:`provstore.canon.parse`.

    Example:
        >>> [(f.key, f.value) for f in json_leaves(b'{"a": [{"id": "x", "v": 1.50}]}', "x")][1]
        ('json/a/x/v', '1.50')
    """
    facts: list[Fact] = []
    chars = 0
    for key, pointer, value in _leaves(canon.parse_exact(data, where), "json", ""):
        chars += len(key) + len(pointer) + (len(value) if isinstance(value, str) else 0)
        if len(facts) == MAX_FACTS or chars > MAX_FACTS_CHARS:
            return ()
        decimal = isinstance(value, canon.NumberText)
        facts.append(Fact(key=key, value=str(value) if decimal else value, decimal=decimal, location=pointer))
    return tuple(facts)


def _leaves(value: Any, key: str, pointer: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            step = show(name).replace("~", "~0").replace("/", "~1")
            yield from _leaves(item, f"{key}/{step}", f"{pointer}/{step}")
    elif isinstance(value, list):
        names = _names(value)
        for index, item in enumerate(value):
            yield from _leaves(item, f"{key}/{names[index]}", f"{pointer}/{index}")
    else:
        yield key, pointer, show(value) if type(value) is str else value


def _names(items: list[Any]) -> list[str]:
    """Return what each item of a list is called: its own name if all have different ones, else its index."""
    for field in _NAMING:
        found = [item.get(field) if isinstance(item, dict) else None for item in items]
        texts = [show(name).replace("/", "~1") for name in found if type(name) is str and name]
        if items and len(set(texts)) == len(items):
            return texts
    return [str(index) for index in range(len(items))]


_NAMING: Final = ("module", "path", "path_template", "prompt_id", "name", "id", "label", "role")


def text_facts(kind: str, data: bytes, where: str) -> tuple[Fact, ...]:
    """Return the facts of a single-file entry of a kind that is small text.

    Malformed documents give no facts; judging them is for the gates.
    """
    if len(data) > MAX_TEXT_BYTES:
        return ()
    if kind in ("environment", "identity"):
        return key_values(data, "env" if kind == "environment" else "identity")
    if data[:1] in (b"{", b"["):
        try:
            return json_leaves(data, where)
        except MalformedError:
            return ()
    return ()
