"""Policies: the TOML that says what is read, and what must hold (format ``provstore/policy/v1``)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from provstore import libraries
from provstore.errors import MalformedError, NewerFormatError, PolicyError
from provstore.evidence.jsonreader import Number
from provstore.evidence.metrics import Definition, definition_from
from provstore.gates.evidence import split
from provstore.gates.extracts import EXTRACTS, NAME, Extract, keys_of
from provstore.gates.kinds import Gate
from provstore.gates.measure import check_convention
from provstore.gates.registry import GATES
from provstore.paths import check_role
from provstore.records.ledger import Rules

FORMAT: Final = "provstore/policy/v1"

MAX_POLICY_BYTES: Final = 1 << 20
"""Largest policy."""

MAX_TABLES: Final = 2000
"""Most extractors, metrics and gates together."""

MAX_LINE_DOTS: Final = 100
"""Most dots in one line before its value: reading a dotted key takes the square of their number."""

LANGUAGE: Final = """
A policy is a TOML file of format `provstore/policy/v1`. It has a `name`, a `version`, a `date` and three
lists of tables: `[[extract]]` says which member of a packet is read by which reader, `[[metric]]` defines
numbers beside the shipped ones, `[[gate]]` says what must hold (see [gates.md](gates.md)). Its bytes are an
object: a verdict names them, and old policies stay runnable.

A gate names a fact as `extract:key` or `extract:/json/pointer` (RFC 6901). A key is what the reader calls it;
for JSON, the names of members joined by dots, without places in arrays: `bench:rows.cached_tokens` is that
field of every row. Values are typed: `0`, `0.0`, `"0"`, `false` and absent are five different things.
Decimals in a policy keep their digits and compare as doubles; tolerances are written as text.

A policy is refused, with its line, for an unknown field, kind, extractor or fact, a name that is there
twice, an expression that could take exponential time, and a gate that could never fail: no values, a rank
set of size zero, a floor of zero, a thing compared with itself.

Beside its own gates every policy has `readings` (no reader met anything malformed, contradicting or absent
though its format requires it) and judges every claim of the packet: value, convention, evidence, and counts
that it adds. The outcome of the whole is never better than the worst required gate; without a required gate
that was looked at it is not `PASS`.

A table `[permission]` says what follows when an attempt under the policy breaks a rule of the ledger:
`unauthorized` (no authorization, or one for something else), `uncited` (a score was seen before, and nobody
cites it with a reason), `used_up` (no scored suite is left), `early_evidence` (evidence older than its
authorization). Each is `"refuse"`, so that it does not happen, or `"ineligible"`, so that it happens, is
noted and never counts. Without the table evidence that is too old makes ineligible; the others are refused.
"""
"""The language in prose, for the reference page."""

EXTRACTORS: Final = """
Every `[[extract]]` has a `name`, a `kind` and a `role`: the place of a member (`role/path`), or a pattern in
which `*` fits within one part of the path. With `parent = true` it is read from a parent of the packet.
"""
"""What all extractors share, for the reference page."""

_DATE: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_SECTIONS: Final = ("extract", "metric", "gate")
_HEAD: Final = re.compile(r"[ \t]*\[\[[ \t]*([a-z]+)[ \t]*\]\]")


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole policy.

    Attributes:
        name: name of the policy; several versions share it.
        version: version of the policy, text.
        date: day that it was decided, ``YYYY-MM-DD``.
        about: what it is for.
        extract: what is read.
        metric: definitions of metrics beside the shipped ones.
        gate: what must hold.
        permission: what follows when a rule of permission is broken, see :class:`Rules`.
    """

    name: str
    version: str
    date: str
    gate: tuple[Gate, ...]
    extract: tuple[Extract, ...] = ()
    metric: tuple[Definition, ...] = ()
    about: str = ""
    permission: Rules = Rules()

    def find(self, gate: str) -> Gate | None:
        """Return a gate by its name."""
        return next((found for found in self.gate if found.name == gate), None)


def load_policy(data: bytes, where: str) -> Policy:
    """Read and check a policy.

    Args:
        data: the TOML text.
        where: what to call it in errors.

    Raises:
        PolicyError: anything that could not be judged by, with its line where known.
        NewerFormatError: another format.

    Example:
        >>> text = b'''format = "provstore/policy/v1"
        ... name = "p"
        ... version = "1"
        ... date = "2026-07-26"
        ... [[gate]]
        ... name = "g"
        ... kind = "topologie"
        ... '''
        >>> load_policy(text, "p.toml")
        Traceback (most recent call last):
        ...
        provstore.errors.malformed.PolicyError: p.toml:7: gate 'g': no kind is called 'topologie'
    """
    text, raw = _parse(data, where)
    lines = Lines(text, where)
    top = {key: value for key, value in raw.items() if key not in (*_SECTIONS, "format")}
    for section in _SECTIONS:
        found = raw.get(section, [])
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise PolicyError(where, f"{section} must be a list of tables, [[{section}]]")
    if (count := sum(len(raw.get(section, ())) for section in _SECTIONS)) > MAX_TABLES:
        raise PolicyError(where, f"{count} extracts, metrics and gates; at most {MAX_TABLES} are read")
    extracts = [_extract(table, lines.at("extract", n)) for n, table in enumerate(raw.get("extract", []))]
    metrics = [_metric(table, lines.at("metric", n)) for n, table in enumerate(raw.get("metric", []))]
    gates = [_gate(table, lines.at("gate", n)) for n, table in enumerate(raw.get("gate", []))]
    for section, items in (("extract", extracts), ("metric", metrics), ("gate", gates)):
        _once(section, [item.name for item in items], lines)
    if not gates:
        raise PolicyError(where, "needs at least one [[gate]]")
    known = {extract.name: extract for extract in extracts}
    for number, gate in enumerate(gates):
        _check_gate(gate, known, tuple(metrics), lines.at("gate", number))
    try:
        head = msgspec.convert({**top, "gate": ()}, Policy)
    except msgspec.ValidationError as error:
        raise PolicyError(lines.top(str(error)), str(error)) from error
    if not (head.name and head.version and _DATE.fullmatch(head.date)):
        raise PolicyError(lines.top("date"), "needs a name, a version and a date like 2026-07-26")
    return msgspec.structs.replace(head, extract=tuple(extracts), metric=tuple(metrics), gate=tuple(gates))


class Place:
    """One table of a policy: where it begins, and on which line each of its keys stands."""

    def __init__(self, where: str, lines: Sequence[str], start: int) -> None:
        self._where = where
        self._lines = lines
        self._start = start

    def line(self, key: str = "") -> str:
        """Return ``file:line`` of a key, or of the table."""
        if not self._start:
            return self._where
        pattern = re.compile(rf"\s*(?:\"{re.escape(key)}\"|{re.escape(key)})\s*[=.]")
        for number, line in enumerate(self._lines):
            if key and pattern.match(line):
                return f"{self._where}:{self._start + number}"
        return f"{self._where}:{self._start}"

    def holding(self, text: str) -> str:
        """Return ``file:line`` of the first line of the table that holds a text."""
        for number, line in enumerate(self._lines):
            if text in line:
                return f"{self._where}:{self._start + number}"
        return self.line()


class Lines:
    """Where the tables of a policy begin."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._lines = text.split("\n")
        self._starts: dict[str, list[tuple[int, int]]] = {}
        heads = [(n, match[1]) for n, line in enumerate(self._lines, 1) if (match := _HEAD.match(line))]
        ends = [start - 1 for start, _ in heads[1:]] + [len(self._lines)]
        for (start, name), end in zip(heads, ends, strict=False):
            self._starts.setdefault(name, []).append((start, end))

    def at(self, section: str, number: int) -> Place:
        """Return the place of the nth table of a section, from 0."""
        mine = self._starts.get(section, [])
        if number >= len(mine):
            return Place(self._where, (), 0)
        start, end = mine[number]
        return Place(self._where, self._lines[start - 1 : end], start)

    def top(self, message: str) -> str:
        """Return ``file:line`` of a top-level key that a message names."""
        named = re.search(r"`\$?\.?([a-z]+)`|^([a-z]+)$", message)
        key = (named[1] or named[2]) if named else ""
        match = re.search(rf"(?m)^[ \t]*{key}[ \t]*=", self._text) if key else None
        return f"{self._where}:{self._text.count(chr(10), 0, match.start()) + 1}" if match else self._where


def _parse(data: bytes, where: str) -> tuple[str, dict[str, Any]]:
    if len(data) > MAX_POLICY_BYTES:
        raise PolicyError(where, f"{len(data)} bytes is larger than any policy ({MAX_POLICY_BYTES})")
    for number, row in enumerate(data.split(b"\n"), 1):
        if row.partition(b"=")[0].count(b".") > MAX_LINE_DOTS:
            raise PolicyError(f"{where}:{number}", f"more than {MAX_LINE_DOTS} dots in a key; break the line")
    try:
        text = data.decode()
        raw = libraries.tomllib.loads(text, parse_float=_decimal)
    except UnicodeDecodeError as error:
        raise PolicyError(where, f"not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:  # also of a number with too many digits
        line = re.search(r"at line (\d+)", str(error))
        raise PolicyError(f"{where}:{line[1]}" if line else where, f"no TOML: {error}") from error
    found = raw.get("format")
    if found != FORMAT:
        if isinstance(found, str):
            raise NewerFormatError(where, found)
        raise PolicyError(where, f'needs format = "{FORMAT}"')
    return text, raw


def _decimal(text: str) -> Number:
    """Keep the digits of a decimal; infinities and NaN are refused by whoever wants a number."""
    return Number(text, float(text))


def _extract(table: Mapping[str, Any], place: Place) -> Extract:
    name, cls = _kind("extract", table, EXTRACTS, place)
    extract: Extract = _convert(table, cls, f"extract {name!r}", place)
    if not NAME.fullmatch(extract.name):
        raise PolicyError(place.line("name"), f"extract {name!r}: a name is lower-case letters, digits and -")
    check_role(extract.role, place.line("role"))
    try:
        keys_of(extract)
    except MalformedError as error:
        raise PolicyError(place.line("pattern"), error.message) from error
    return extract


def _metric(table: Mapping[str, Any], place: Place) -> Definition:
    try:
        return definition_from(table, "metric")
    except MalformedError as error:
        raise PolicyError(place.line(), error.message) from error


def _gate(table: Mapping[str, Any], place: Place) -> Gate:
    name, cls = _kind("gate", table, GATES, place)
    gate: Gate = _convert(table, cls, f"gate {name!r}", place)
    if not gate.name or len(gate.name) > 80 or not gate.name.isprintable():
        raise PolicyError(place.line("name"), "a gate needs a name of at most 80 printable characters")
    if gate.name.startswith("claim: "):
        raise PolicyError(place.line("name"), f"gate {name!r}: names of claims are taken by the claims")
    return gate


def _kind(section: str, table: Mapping[str, Any], kinds: Mapping[str, Any], place: Place) -> tuple[str, Any]:
    name, kind = str(table.get("name", "")), table.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        said = f"no kind is called {kind!r}" if "kind" in table else "it names no kind"
        raise PolicyError(place.line("kind"), f"{section} {name!r}: {said}")
    return name, kinds[kind]


def _convert(table: Mapping[str, Any], cls: Any, what: str, place: Place) -> Any:
    try:
        return msgspec.convert(table, cls)
    except msgspec.ValidationError as error:
        named = re.search(r"field `([^`]+)`|`\$\.([A-Za-z_]+)", str(error))
        key = (named[1] or named[2]) if named else ""
        raise PolicyError(place.line(key), f"{what}: {error}") from error
    except MalformedError as error:
        raise PolicyError(place.line(), f"{what}: {error.message}") from error


def _once(section: str, names: list[str], lines: Lines) -> None:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if name in seen:
            place = lines.at(section, number)
            raise PolicyError(place.line("name"), f"{section} {name!r} is there twice")
        seen.add(name)


def _check_gate(
    gate: Gate, known: Mapping[str, Extract], metrics: tuple[Definition, ...], place: Place
) -> None:
    """Refuse what a gate names and nothing gives, and a gate that could never fail."""
    what = f"gate {gate.name!r}"
    for parameter, name in gate.input_names():
        extract = known.get(name)
        allowed = gate.INPUTS[parameter]
        if extract is None:
            raise PolicyError(place.line(parameter), f"{what}: no extract is called {name!r}")
        if allowed and extract.kind not in allowed:
            wanted = " or ".join(allowed)
            raise PolicyError(
                place.line(parameter), f"{what}: {name!r} is {extract.kind}, {parameter} takes {wanted}"
            )
    for parameter, reference in (*gate.fact_references(), *_inner_references(gate)):
        _check_reference(reference, known, what, place, parameter)
    convention = getattr(gate, "convention", "")
    if convention and (reason := check_convention(convention, metrics)):
        raise PolicyError(place.line("convention"), f"{what}: {reason}")
    if reason := gate.idle_reason():
        key = "ranks" if "rank" in reason else ""
        raise PolicyError(place.line(key), f"{what} can never fail, or cannot be judged: {reason}")
    if gate.ADVISORY and gate.required:
        raise PolicyError(place.line("required"), f"{what} can never fail: kind {gate.kind} only warns")


def _inner_references(gate: Gate) -> list[tuple[str, str]]:
    events = getattr(gate, "events", ())
    found = [("events", event.fact) for event in events]
    pattern = re.compile(r"[a-z][a-z0-9-]*:(?:/|[A-Za-z_#])\S*")
    for value in getattr(gate, "expect", {}).values():
        if isinstance(value, str) and pattern.fullmatch(value):
            found.append(("expect", value))
    return found


def _check_reference(
    reference: str, known: Mapping[str, Extract], what: str, place: Place, parameter: str
) -> None:
    name, selector = split(reference)
    extract = known.get(name)
    keys = keys_of(extract) if extract is not None else None
    if not selector:
        reason = f"{parameter} names {reference!r}; write extract:key or extract:/pointer"
    elif extract is None:
        reason = f"no extract is called {name!r}"
    elif keys is not None and selector not in keys:
        reason = f"{name!r} gives no fact {selector!r}; it gives {', '.join(sorted(keys))}"
    else:
        return
    raise PolicyError(place.holding(reference), f"{what}: {reason}")
