"""Any JSON document as facts: records, queues, receipts and what else a lab writes down.

The key of a fact is the name of the document and the path of the member without array indices, dotted; its
location is the exact JSON pointer. ``false``, ``0.0``, ``"0"`` and ``null`` become four different facts, and
what is absent becomes none. Every object also states its member names (``#keys``) and every array that is
not one fact its length (``#length``), so that ``{}`` and ``[]`` differ from absence.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from provstore.canon import MAX_INTEGER
from provstore.evidence.finding import Extraction, ReaderResult
from provstore.evidence.jsonreader import (
    ABSENT,
    DEFAULT_LIMITS,
    Absent,
    Limits,
    Number,
    Spoiled,
    Value,
    child,
    kind,
    read,
)

MAX_FACTS: Final = 200_000
"""Facts taken from one document."""


class Field(NamedTuple):
    """What a format says about one member.

    Attributes:
        name: the member.
        kinds: kinds its value may have; see :func:`provstore.evidence.jsonreader.kind`.
        required: an absent member is a finding.
    """

    name: str
    kinds: tuple[str, ...]
    required: bool = False


def read_document(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> ReaderResult:
    """Read one JSON document into facts.

    Args:
        data: the document.
        name: first part of every key, such as ``record`` or ``receipt``.
        limits: bounds of what is read.

    Example:
        >>> result = read_document(b'{"ok": false, "rate": 0.0, "ids": [1, 2]}', "record")
        >>> for fact in result.facts:
        ...     print(fact.location or "-", fact.key, fact.value, fact.decimal)
        - record#keys ('ids', 'ok', 'rate') False
        /ok record.ok False False
        /rate record.rate 0.0 True
        /ids record.ids (1, 2) False
    """
    document = read(data, limits)
    out = Extraction()
    out.add(document.findings)
    add_facts(document.value, name, "", out)
    return out.result()


def add_facts(value: Value | Absent, key: str, pointer: str, out: Extraction) -> None:
    """Add the facts of a value and all below it; depth is bounded by the reader's limits."""
    if isinstance(value, dict):
        out.fact(key + "#keys", tuple(sorted(value)), pointer)
        for name, item in value.items():
            if len(out.facts) >= MAX_FACTS:
                out.finding("too-many-facts", pointer, f"more than {MAX_FACTS} facts; the rest is left out")
                return
            add_facts(item, f"{key}.{name}", child(pointer, name), out)
    elif isinstance(value, list):
        _add_array(value, key, pointer, out)
    elif isinstance(value, Number):
        out.fact(key, value.text, pointer, decimal=True)
    elif type(value) is int and not -MAX_INTEGER <= value <= MAX_INTEGER:
        out.fact(key, str(value), pointer, decimal=True)
    elif not isinstance(value, Spoiled | Absent):
        out.fact(key, value, pointer)


def _add_array(items: list[Value], key: str, pointer: str, out: Extraction) -> None:
    kinds = set(map(type, items))
    exact = kinds <= {int} and all(-MAX_INTEGER <= item <= MAX_INTEGER for item in items)  # type: ignore[operator]
    if exact or kinds == {str}:
        out.fact(key, tuple(items), pointer)  # type: ignore[arg-type]
    elif kinds <= {int, Number}:
        texts = tuple(item.text if isinstance(item, Number) else str(item) for item in items)
        out.fact(key, texts, pointer, decimal=True)
    else:
        out.fact(key + "#length", len(items), pointer)
        for index, item in enumerate(items):
            if len(out.facts) >= MAX_FACTS:
                out.finding("too-many-facts", pointer, f"more than {MAX_FACTS} facts; the rest is left out")
                return
            add_facts(item, key, f"{pointer}/{index}", out)


def check_fields(value: Value | Absent, fields: Sequence[Field], pointer: str, out: Extraction) -> None:
    """Add a finding for each member that is absent though required, or has a kind that the format excludes.

    Example:
        >>> out = Extraction()
        >>> check_fields({"cached": False}, [Field("cached", ("integer", "null"))], "/rows/0", out)
        >>> out.findings()[0].message
        'must be integer or null, is boolean'
    """
    if not isinstance(value, dict):
        if not isinstance(value, Spoiled | Absent):
            out.finding("wrong-type", pointer, f"must be object, is {kind(value)}")
        return
    for name, kinds, required in fields:
        found = value.get(name, ABSENT)
        if found is ABSENT:
            if required:
                out.finding("absent", child(pointer, name), "the format requires it", "unknown")
        elif not isinstance(found, Spoiled) and not _fits(found, kinds):
            out.finding(
                "wrong-type", child(pointer, name), f"must be {' or '.join(kinds)}, is {_shape(found)}"
            )


def _fits(value: Value | Absent, kinds: tuple[str, ...]) -> bool:
    if isinstance(value, list) and "array" not in kinds:
        inside = {kind(item) for item in value}
        return any(inside <= _ELEMENTS[name] for name in kinds if name in _ELEMENTS)
    return kind(value) in kinds


def _shape(value: Value | Absent) -> str:
    if isinstance(value, list):
        return f"array of {', '.join(sorted({kind(item) for item in value})) or 'nothing'}"
    return kind(value)


_ELEMENTS: Final = {
    "integers": {"integer"},
    "numbers": {"integer", "decimal"},
    "strings": {"string"},
}
