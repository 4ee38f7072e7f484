"""Measured rows: what a metric is recomputed from, one row a request, each field typed and placed."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from provstore.evidence.finding import Extraction, Finding, quoted
from provstore.evidence.jsonreader import ABSENT, Absent, Number, Value, child, kind, resolve
from provstore.records.facts import Fact, FactValue

MAX_EVENTS: Final = 1_000_000
"""Most lines of a log of timestamps."""

MAX_LINE_BYTES: Final = 64
"""Longest line that can be a timestamp."""

_DECIMAL: Final = re.compile(rb"[0-9]{1,15}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it was recorded.

    Attributes:
        location: JSON pointer of the row, or empty for a whole log.
        fields: its fields by name.
    """

    location: str
    fields: Mapping[str, Value]

    def get(self, name: str) -> Value | Absent:
        """Return a field, or a field of a field when ``name`` is a JSON pointer such as ``/timings/rate``."""
        if name.startswith("/"):
            here: Value | Absent = dict(self.fields)
            return resolve(here, name)
        return self.fields.get(name, ABSENT)

    def where(self, name: str) -> str:
        """Return the location of a field."""
        return self.location + name if name.startswith("/") else child(self.location, name)


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows and what is wrong with their source."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]


def at(value: Value | Absent, pointer: str = "/rows") -> Rows:
    """Return the rows that lie in a document at ``pointer``.

    Example:
        >>> [row.location for row in at({"rows": [{"n": 1}, {"n": 2}]}).rows]
        ['/rows/0', '/rows/1']
        >>> at({"rows": 3}).findings[0].code
        'wrong-type'
    """
    out = Extraction()
    found = resolve(value, pointer)
    rows: list[Row] = []
    if isinstance(found, list):
        for index, item in enumerate(found):
            if isinstance(item, dict):
                rows.append(Row(location=f"{pointer}/{index}", fields=item))
            else:
                out.finding("wrong-type", f"{pointer}/{index}", f"a row must be an object, not {kind(item)}")
    elif found is ABSENT:
        out.finding("absent", pointer, "no rows here", "unknown")
    else:
        out.finding("wrong-type", pointer, f"rows must be an array, not {kind(found)}")
    return Rows(rows=tuple(rows), findings=out.findings())


def from_log(data: bytes, field: str) -> Rows:
    r"""Read a raw log that holds one timestamp in seconds on each line, as one row.

    Args:
        data: ASCII text, one non-negative decimal a line.
        field: name under which the row holds the timestamps.

    Returns:
        One row; no row when a line is malformed, since a window over the other lines would be another one.

    Example:
        >>> from_log(b"0.000\n0.008\n", "offsets").rows[0].fields["offsets"][1].text
        '0.008'
        >>> from_log(b"0.0\n\n0.2\n", "offsets").findings[0].location
        'line 2'
    """
    out = Extraction()
    if data.count(b"\n") > MAX_EVENTS or len(data) > MAX_EVENTS * MAX_LINE_BYTES:
        out.finding("too-large", "", f"{len(data)} bytes; at most {MAX_EVENTS} short lines are read")
        return Rows(rows=(), findings=out.findings())
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    stamps: list[Value] = []
    for number, line in enumerate(lines, 1):
        if _DECIMAL.fullmatch(line):
            stamps.append(Number(line.decode(), float(line)))
        else:
            out.finding("malformed-line", f"line {number}", f"no timestamp: {quoted(line)}")
    if not lines:
        out.finding("absent", "", "no timestamps", "unknown")
    findings = out.findings()
    rows = () if findings else (Row(location="", fields={field: stamps}),)
    return Rows(rows=rows, findings=findings)


def from_facts(facts: Sequence[Fact], pointer: str = "/rows") -> tuple[Row, ...]:
    """Rebuild rows from the facts of a document, as far as the fields are scalars or flat arrays.

    Example:
        >>> from_facts([Fact(key="b.rows.n", value="1.50", decimal=True, location="/rows/0/n")])[0].fields
        {'n': Number(text='1.50', double=1.5)}
    """
    rows: dict[str, dict[str, Value]] = {}
    for fact in facts:
        prefix, _, name = fact.location.rpartition("/")
        if prefix.rpartition("/")[0] == pointer and not fact.key.endswith(("#keys", "#length")):
            name = name.replace("~1", "/").replace("~0", "~")
            rows.setdefault(prefix, {})[name] = value_of(fact)
    return tuple(Row(location=place, fields=fields) for place, fields in rows.items())


def value_of(fact: Fact) -> Value:
    """Return the value that a fact was made of.

    Example:
        >>> value_of(Fact(key="k", value=("1", "2.0"), decimal=True))
        [1, Number(text='2.0', double=2.0)]
    """
    found: FactValue = fact.value
    if isinstance(found, tuple):
        return [_number(str(item)) if fact.decimal else item for item in found]
    return _number(str(found)) if fact.decimal else found


def _number(text: str) -> Number | int:
    plain = text.lstrip("-").isdecimal() and text != "-0"
    return int(text) if plain else Number(text, float(text))
