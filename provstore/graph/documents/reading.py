"""Which format a document has, told by its content, and what it states in the words of the graph.

Reading is pure and total: the same bytes, repository and path always give the same answer, and no bytes make
it fail. What no reader knows is not a document of the field, and the answer is None.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from provstore.evidence.finding import Finding
from provstore.evidence.jsonreader import ABSENT, DEFAULT_LIMITS, Value, read
from provstore.graph.documents.draft import Source
from provstore.graph.documents.family import is_family, read_family
from provstore.graph.documents.record import is_record, read_record
from provstore.graph.statements import Understood
from provstore.ids import object_id

MAX_DOCUMENT_BYTES: Final = DEFAULT_LIMITS.bytes
"""Largest document that is read."""


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

VERSIONS: Final = {form.name: form.version for form in JSON_FORMS}
"""Version of each reader."""


class Reading(NamedTuple):
    """What one document is.

    Attributes:
        understood: what it states; None when no reader knows its format.
        findings: what is wrong with its bytes, as text of its form.
    """

    understood: Understood | None
    findings: tuple[Finding, ...]


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
    if data.lstrip()[:1] in (b"{", b"["):
        return _read_json(source)
    return Reading(None, ())


def _read_json(source: Source) -> Reading:
    document = read(source.data)
    if document.value is ABSENT:
        return Reading(None, document.findings)
    for form in JSON_FORMS:
        if form.fits(document.value):
            return Reading(form.reader(document.value, source), document.findings)
    return Reading(None, document.findings)
