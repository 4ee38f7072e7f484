"""Which format a document has, told by its content, and what it states in the words of the graph.

Reading is pure and total: the same bytes, repository and path always give the same answer, and no bytes make
it fail. What no reader knows is not a document of the field, and the answer is None.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from provstore.evidence.finding import Finding
from provstore.evidence.jsonreader import ABSENT, DEFAULT_LIMITS, Absent, Value, read
from provstore.graph.documents.draft import Source
from provstore.graph.documents.family import is_family, read_family
from provstore.graph.documents.record import is_record, read_record
from provstore.graph.statements import Understood
from provstore.ids import object_id
from provstore.records.facts import Fact

MAX_DOCUMENT_BYTES: Final = DEFAULT_LIMITS.bytes
"""Largest document that is read."""


_JSON: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*[\[{]")


class JsonForm(NamedTuple):
    """One format that is JSON.

    Attributes:
        name: what reports call it.
        version: grows when its reader understands the same bytes in another way.
        fits: says whether a value has the format.
        reader: makes the statements.
        says: how its documents are known, for people.
    """

    name: str
    version: int
    fits: Callable[[Value], bool]
    reader: Callable[[Value, Source], Understood]
    says: str


JSON_FORMS: Final = (
    JsonForm("family", 1, is_family, read_family, "`format` is `neural-download-model-family-v1`"),
    JsonForm("record", 1, is_record, read_record, "`schema` ends in `record-v…`, or runs are composed"),
)
"""Formats that are JSON, in the order in which they are tried."""

FORMATS: Final = tuple((form.name, form.version, form.says) for form in JSON_FORMS)
"""Name and version of each format, and how its documents are told, for people."""

VERSIONS: Final = {name: version for name, version, _ in FORMATS}
"""Version of each reader."""

INTRODUCTION: Final = """
`prov import FILE…` brings documents of the field into the store. Each becomes a packet of one entry: the
bytes as they are, and everything they say as facts, with the JSON pointer or the line it stands at and
numbers as they are spelled. The ref of the packet is `NAME/PATH`: `PATH` is the file's path below `--root`,
or below the directory that was given, or the file's own name; `NAME` is `--as`, or the name of that
directory, or `documents`. Files that documents cite by path are looked for under the same `NAME`, so a
collection is best imported with one root.

A document that changed becomes a new packet whose parent is the earlier one, and the report shows the facts
that differ; one that did not change writes nothing. Its format is told by its content, never by its name.
What no field of the format covers is listed as not understood; it is in the facts all the same. Duplicate
keys, NaN and other spoiled values are findings, and count for nothing.

Relations, measurements and everything else that questions need are derived from the bytes when they are
asked for, by the reader of the format.
"""


class Reading(NamedTuple):
    """What one document is.

    Attributes:
        understood: what it states; None when no reader knows its format.
        findings: what is wrong with its bytes.
        value: the whole of a JSON document.
        facts: what a document of another form says.
    """

    understood: Understood | None
    findings: tuple[Finding, ...] = ()
    value: Value | Absent = ABSENT
    facts: tuple[Fact, ...] = ()


def understand(data: bytes, repository: str, path: str, stated_by: str = "") -> Understood | None:
    """Return what a document states, or None when no reader knows its format.

    Args:
        data: the document.
        repository: name of the collection of files that paths in it are relative to.
        path: its own path in there.
        stated_by: hex id (BLAKE3) of ``data``, if the caller knows it already.

    Example:
        >>> data = b'{"format": "neural-download-model-family-v1", "id": "f", "odd": 1}'
        >>> found = understand(data, "lab", "f.json")
        >>> str(found.subject), found.not_understood
        ('family:f', ('/odd',))
        >>> understand(b"anything else", "lab", "notes.txt") is None
        True
    """
    return read_any(data, repository, path, stated_by).understood


def read_any(data: bytes, repository: str, path: str, stated_by: str = "") -> Reading:
    """Return what :func:`understand` returns, together with findings about the bytes."""
    source = Source(data, repository, path, stated_by or object_id(data).hex())
    if _JSON.match(data):
        return _read_json(source)
    return Reading(None)


def _read_json(source: Source) -> Reading:
    document = read(source.data)
    if document.value is ABSENT:
        return Reading(None, document.findings)
    for form in JSON_FORMS:
        if form.fits(document.value):
            return Reading(form.reader(document.value, source), document.findings, document.value)
    return Reading(None, document.findings)
