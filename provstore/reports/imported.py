"""Results of import: what each document is, what it states, and what changed since it was last imported."""

from typing import Literal

import msgspec

from provstore.reports.base import Report


class DocumentFinding(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something wrong with the bytes of a document; see the readers of evidence."""

    code: str
    severity: str
    location: str
    message: str


class DocumentChange(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact that differs from the version imported before; None where one of them does not state it.

    Attributes:
        location: JSON pointer or line.
        key: name of the fact.
        from_: source text before.
        to: source text now.
    """

    location: str
    key: str
    from_: str | None = msgspec.field(name="from")
    to: str | None


class ImportedDocument(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One document.

    Attributes:
        path: shown path of the file.
        name: ref that names its packet.
        format: what it was recognised as.
        subject: node that it is about.
        state: ``new``, ``changed`` since it was last imported, or ``unchanged``: then nothing was written.
        packet: id of its packet.
        parent: id of the packet of its earlier version.
        blake3: id of its bytes.
        sha256: the other digest of the same.
        size_bytes: their number.
        facts: facts that were taken out of it.
        relations: edges that it states.
        stated: how many measurements, cells and so on it states, by kind; those of which there are none are
            left out.
        not_understood: pointers or lines of what no field of the format covers.
        findings: what is wrong with its bytes.
        changes: facts that differ from the earlier version.
        status: what the status of a registry recipe should be, where that can be computed.
        supported_by: requirements of ``validated`` that hold, with what shows that.
        missing: requirements of ``validated`` that do not, with what is missing.
    """

    path: str
    name: str
    format: str
    subject: str
    state: Literal["new", "changed", "unchanged"]
    packet: str
    parent: str | None
    blake3: str
    sha256: str
    size_bytes: int
    facts: int
    relations: int
    stated: dict[str, int]
    not_understood: tuple[str, ...] = ()
    findings: tuple[DocumentFinding, ...] = ()
    changes: tuple[DocumentChange, ...] = ()
    status: str | None = None
    supported_by: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class SkippedFile(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a directory that is no document of a known format, with the reason."""

    path: str
    reason: str


class Clash(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ids that cannot be told apart; everything was kept.

    Attributes:
        node: the id, as the first document states it.
        places: where it is stated: names of documents, each with a location.
        reason: what is wrong with it.
    """

    node: str
    places: tuple[str, ...]
    reason: str


class KnownConvention(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number whose convention another document states, because both speak of the same run or file.

    Attributes:
        measurement: key of the measurement that states no convention itself.
        value: its source text.
        location: its place.
        convention: name of the convention.
        conventional: the same value with intervals counted, where the counts are stated.
        source: key of the measurement that states the convention.
        reason: how the two were joined.
    """

    measurement: str
    value: str
    location: str
    convention: str
    conventional: str
    source: str
    reason: str


class Disagreement(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field that two documents about the same thing state differently.

    Attributes:
        subject: node that both are about.
        field: the field, as a JSON pointer.
        first: name of the first document.
        first_value: source text there.
        second: name of the second document.
        second_value: source text there; ``null`` and ``absent`` are what they say.
        kind: ``rounded`` when one is the other with fewer digits, else ``differs``.
    """

    subject: str
    field: str
    first: str
    first_value: str
    second: str
    second_value: str
    kind: Literal["differs", "rounded"]


class CorrectedValue(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that differs from the document as it was imported.

    Attributes:
        location: JSON pointer.
        from_: source text before.
        to: source text now.
        by: ref of the note that corrects it, or ``provstore`` where it follows from data.
        reason: why.
    """

    location: str
    from_: str = msgspec.field(name="from")
    to: str
    by: str
    reason: str


class HeldBack(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A correction that was not carried out, with the reason."""

    location: str
    by: str
    reason: str


class GenerateReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a document that was written back differs in.

    Attributes:
        name: ref of the document.
        packet: id of its packet.
        format: what was written.
        identical: every byte is that of the imported document.
        corrected: every value that differs.
        held_back: corrections that do not fit what stands there.
        missing: requirements of ``validated`` that a recipe does not meet.
    """

    name: str
    packet: str
    format: str
    identical: bool
    corrected: tuple[CorrectedValue, ...] = ()
    held_back: tuple[HeldBack, ...] = ()
    missing: tuple[str, ...] = ()


class ImportReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an import made.

    Attributes:
        documents: in the order of their names.
        skipped: files of given directories that no reader knows.
        clashes: ids that stand for several things.
        conventions: numbers whose convention another document tells.
        disagreements: fields that documents about one thing state differently.
        objects: objects that were new to the store.
        records: records that were new to the store.
        bytes_stored: bytes written for them.
    """

    documents: tuple[ImportedDocument, ...]
    skipped: tuple[SkippedFile, ...] = ()
    clashes: tuple[Clash, ...] = ()
    conventions: tuple[KnownConvention, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    objects: int = 0
    records: int = 0
    bytes_stored: int = 0
