"""Which format a document has, told by its content, and what it states in the words of the graph.

Reading is pure and total: the same bytes, repository and path always give the same answer, and no bytes make
it fail. What no reader knows is not a document of the field, and the answer is None.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from provstore.evidence.finding import Finding
from provstore.evidence.jsonreader import ABSENT, DEFAULT_LIMITS, Absent, Value, read
from provstore.graph.documents.attestation import is_promotion, is_statement, read_promotion, read_statement
from provstore.graph.documents.draft import Source
from provstore.graph.documents.evidence_files import (
    is_exactness,
    is_identity,
    is_lock,
    is_oracle,
    is_verification,
    read_exactness,
    read_identity_document,
    read_lock_document,
    read_oracle_document,
    read_verification_document,
)
from provstore.graph.documents.family import is_family, read_family
from provstore.graph.documents.guide_page import guide_text, read_guide
from provstore.graph.documents.lanes import is_lanes, read_lanes
from provstore.graph.documents.manifest import manifest_lines, read_manifest
from provstore.graph.documents.note import is_note, read_note
from provstore.graph.documents.package import is_guide_catalog, is_package, read_guide_catalog, read_package
from provstore.graph.documents.page import is_page, read_page
from provstore.graph.documents.record import is_record, read_record
from provstore.graph.documents.registry import (
    is_hardware,
    is_instance,
    is_recipe,
    is_sweep,
    read_hardware,
    read_instance,
    read_recipe,
    read_sweep,
)
from provstore.graph.documents.submission import is_queue, is_receipt, read_queue, read_receipt
from provstore.graph.statements import Understood
from provstore.ids import object_id
from provstore.records.facts import Fact

MAX_DOCUMENT_BYTES: Final = DEFAULT_LIMITS.bytes
"""Largest document that is read."""


_REGISTRY: Final = "`schema_version` is `local-ai-registry/v1`, with"

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
    JsonForm("package", 1, is_package, read_package, "`format` is `b70-model-package-v1`"),
    JsonForm("note", 1, is_note, read_note, "`format` is `provstore/note/v1`"),
    JsonForm(
        "coverage-registry", 1, is_lanes, read_lanes, "`format` is `neural-download-coverage-registry-v1`"
    ),
    JsonForm(
        "guide-catalog",
        1,
        is_guide_catalog,
        read_guide_catalog,
        "`format` is `b70-reproduction-guide-catalog-v1`",
    ),
    JsonForm("recipe", 1, is_recipe, read_recipe, f"{_REGISTRY} `recipe_source` and `launch`"),
    JsonForm("sweep", 1, is_sweep, read_sweep, f"{_REGISTRY} `recipe_id` and `rows`"),
    JsonForm("model-instance", 1, is_instance, read_instance, f"{_REGISTRY} `model_id` and `weights`"),
    JsonForm("hardware", 1, is_hardware, read_hardware, f"{_REGISTRY} `vendor` and `memory`"),
    JsonForm(
        "promotion-attestation",
        1,
        is_promotion,
        read_promotion,
        "`schema` is `neural.download.promotion-attestation.v1`",
    ),
    JsonForm(
        "in-toto", 1, is_statement, read_statement, "`_type` is the in-toto Statement v1, bare or in DSSE"
    ),
    JsonForm("queue", 1, is_queue, read_queue, "a list of objects with `label` and `payload`"),
    JsonForm("receipt", 1, is_receipt, read_receipt, "`response`, `endpoint` and `payload_path`"),
    JsonForm("record", 1, is_record, read_record, "`schema` ends in `record-v…`, or runs are composed"),
    JsonForm(
        "runtime-lock", 1, is_lock, read_lock_document, "`host` and `native_modules` or `runtime_files`"
    ),
    JsonForm("oracle", 1, is_oracle, read_oracle_document, "`source_sha256` and `rows`"),
    JsonForm("exactness", 1, is_exactness, read_exactness, "`teacher`, `candidates` and `all_exact`"),
    JsonForm(
        "runtime-verification",
        1,
        is_verification,
        read_verification_document,
        "objects named `…_origins` or `mapped_…`",
    ),
)
"""Formats that are JSON, in the order in which they are tried."""

FORMATS: Final = (
    *((form.name, form.version, form.says) for form in JSON_FORMS),
    ("recipe-page", 1, "the text of a recipe's page: begins with `Recipe`, shows the schema version"),
    ("identity", 1, "lines `key=value` that begin with `schema=`, then lines `digest  path`"),
    ("checksums", 1, "every line is a line of `sha256sum`, `b3sum` or a BSD tag"),
    ("guide", 1, "prose that names a file of its repository and states a rate in tok/s"),
)
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
    return _read_text(source)


def _read_json(source: Source) -> Reading:
    document = read(source.data)
    if document.value is ABSENT:
        return Reading(None, document.findings)
    for form in JSON_FORMS:
        if form.fits(document.value):
            return Reading(form.reader(document.value, source), document.findings, document.value)
    return Reading(None, document.findings)


def _read_text(source: Source) -> Reading:
    if is_page(source.data):
        understood, facts = read_page(source)
        return Reading(understood, facts=facts)
    if is_identity(source.data):
        understood, facts = read_identity_document(source)
        return Reading(understood, facts=facts)
    lines = manifest_lines(source)
    if lines is not None:
        understood, facts = read_manifest(lines, source)
        return Reading(understood, facts=facts)
    text = guide_text(source.data)
    if text is None:
        return Reading(None)
    understood, facts = read_guide(text, source)
    return Reading(understood, facts=facts)
