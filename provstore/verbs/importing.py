"""Importing documents of the field: each becomes a packet of one entry, named by where it lies.

A document that changed since it was last imported becomes a new packet whose parent is the earlier one; one
that did not change writes nothing. All files of one call go into one commit, or none of them does.
"""

import os
import time
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from provstore import records
from provstore.canon import MAX_RECORD_BYTES
from provstore.errors import DocumentError, UsageError
from provstore.graph.documents.clashing import Clashes
from provstore.graph.documents.facts import FactDifference, differences, facts_of
from provstore.graph.documents.joining import Conventions
from provstore.graph.documents.reading import MAX_DOCUMENT_BYTES, VERSIONS, Reading, read_any
from provstore.graph.documents.recipe_status import DerivedStatus
from provstore.graph.documents.registering import Registry
from provstore.graph.statements import Statements, Understood
from provstore.ids import Digests, RawId, digests
from provstore.paths import show
from provstore.records import Record
from provstore.records.facts import Fact, Facts
from provstore.records.observation import Observation
from provstore.records.packet import Entry, Kind, Packet
from provstore.reports.imported import (
    Clash,
    Disagreement,
    DocumentChange,
    DocumentFinding,
    ImportedDocument,
    ImportReport,
    KnownConvention,
    SkippedFile,
)
from provstore.store import objects
from provstore.store.protocol import Stage, Store
from provstore.verbs.document_files import DocumentFile, ImportOptions, chosen_files, read_whole
from provstore.verbs.stored_documents import document_entry

KINDS: Final[dict[str, Kind]] = {
    "record": "record",
    "receipt": "receipt",
    "runtime-lock": "runtime-lock",
    "oracle": "oracle",
    "identity": "identity",
}
"""Kind of entry for formats that are more than a document."""

COUNTED: Final = (
    "lineups",
    "measurements",
    "estimates",
    "closures",
    "coverage",
    "scope",
    "dimensions",
)
"""Statements that a report counts."""

INLINE_BYTES: Final = 4 << 20
"""Largest document that goes to the store in one piece."""


def import_documents(
    store: Store, paths: Sequence[str | bytes | os.PathLike[str]], options: ImportOptions | None = None
) -> ImportReport:
    """Bring documents into the store and return what they are.

    A directory stands for every file below it that is a document; the others are listed.

    Args:
        store: receives everything.
        paths: files and directories; at least one.
        options: see :class:`~provstore.verbs.document_files.ImportOptions`.

    Raises:
        DocumentError: a file that was named is no document of a known format; nothing was imported.
        UsageError: a file lies outside the root, two files would have one name, or a name is taken by a
            packet that is no imported document.
        NotFoundError: there is no such file.
    """
    options = options or ImportOptions()
    files = chosen_files(store, paths, options)
    made: list[ImportedDocument] = []
    skipped: list[SkippedFile] = []
    clashes, registry, conventions = Clashes(), Registry(), Conventions()
    with store.stage() as stage:
        work = _Import(store, stage, options.tool)
        for file in files:
            data = read_whole(file)
            reading = None if data is None else read_any(data, file.repository, file.role)
            if data is None or reading is None or reading.understood is None:
                skipped.append(_skipped(file, reading))
                continue
            clashes.add(file.name, reading.understood)
            registry.add(file.name, reading, data)
            conventions.add(reading.understood)
            made.append(work.document(file, data, reading, reading.understood))
        counts = stage.commit()
    return ImportReport(
        documents=tuple(_with_status(document, registry.status(document.name)) for document in made),
        conventions=tuple(KnownConvention(**found._asdict()) for found in conventions.joined()),
        disagreements=tuple(Disagreement(**found._asdict()) for found in registry.disagreements.found()),
        skipped=tuple(skipped),
        clashes=tuple(Clash(node=node, places=places, reason=why) for node, places, why in clashes.found()),
        objects=counts.objects,
        records=counts.records,
        bytes_stored=counts.bytes_stored,
    )


def _skipped(file: DocumentFile, reading: Reading | None) -> SkippedFile:
    """Return why a file is no document; one that was named by itself is an error.

    Raises:
        DocumentError: the file was named.
    """
    if reading is None:
        reason = f"larger than any document ({MAX_DOCUMENT_BYTES} bytes)"
    elif reading.findings:
        first = reading.findings[0]
        reason = f"{first.code} at {first.location or 'its beginning'}: {first.message}"
    else:
        reason = "no known format"
    if file.given:
        raise DocumentError(show(file.path), reason)
    return SkippedFile(path=show(file.path), reason=reason)


def _with_status(document: ImportedDocument, status: DerivedStatus | None) -> ImportedDocument:
    if status is None:
        return document
    return msgspec.structs.replace(
        document, status=status.status, supported_by=status.supported_by, missing=status.missing
    )


class _Made(NamedTuple):
    """What came of one document in the store."""

    state: Literal["new", "changed", "unchanged"]
    packet: RawId
    parent: RawId | None
    changes: tuple[DocumentChange, ...] = ()


class _Import:
    """One import: the store, the stage behind it, and what is said of the tool."""

    def __init__(self, store: Store, stage: Stage, tool: str) -> None:
        self.store = store
        self.stage = stage
        self.tool = tool

    def document(
        self, file: DocumentFile, data: bytes, reading: Reading, understood: Understood
    ) -> ImportedDocument:
        """Bring one document into the stage, unless the store has it as it is."""
        found = digests(data)
        taken = facts_of(understood.format, reading)
        made = self.version(file, data, found, understood, taken.facts)
        return ImportedDocument(
            path=show(file.path),
            name=file.name,
            format=understood.format,
            subject=str(understood.subject),
            state=made.state,
            packet=made.packet.hex(),
            parent=None if made.parent is None else made.parent.hex(),
            blake3=found.blake3.hex(),
            sha256=found.sha256.hex(),
            size_bytes=found.size_bytes,
            facts=len(taken.facts),
            relations=len(understood.relations),
            stated=_stated(understood.statements),
            not_understood=understood.not_understood,
            findings=tuple(
                DocumentFinding(
                    code=item.code, severity=item.severity, location=item.location, message=item.message
                )
                for item in taken.findings
            ),
            changes=made.changes,
        )

    def version(
        self, file: DocumentFile, data: bytes, found: Digests, understood: Understood, facts: tuple[Fact, ...]
    ) -> _Made:
        before = self.store.ref(file.name)
        if before is None:
            return _Made("new", self.packet(file, data, found, understood.format, facts, None), None)
        old = document_entry(self.store, before, file.name)
        if old.role != file.role or old.blake3 is None:
            raise UsageError(f"{file.name} names a packet that is no imported document; choose another --as")
        if old.blake3 == found.blake3.hex():
            return _Made("unchanged", before, None)
        earlier = objects.read(self.store, bytes.fromhex(old.blake3))
        reading = read_any(earlier, file.repository, file.role, old.blake3)
        form = understood.format if reading.understood is None else reading.understood.format
        differing = differences(facts_of(form, reading).facts, facts)
        packet = self.packet(file, data, found, understood.format, facts, before)
        return _Made("changed", packet, before, tuple(_change(item) for item in differing))

    def packet(
        self,
        file: DocumentFile,
        data: bytes,
        found: Digests,
        form: str,
        facts: tuple[Fact, ...],
        parent: RawId | None,
    ) -> RawId:
        """Add object, facts, packet and observation; move the ref."""
        self.content(found, data)
        entry = Entry(
            role=file.role,
            kind=KINDS.get(form, "document"),
            files=1,
            blake3=found.blake3.hex(),
            sha256=found.sha256.hex(),
            size_bytes=found.size_bytes,
            facts=self.facts(form, found, facts),
        )
        parents = () if parent is None else (parent.hex(),)
        packet = self.record(Packet(entries=(entry,), name=file.name, parents=parents))
        observation = self.record(
            Observation(
                packet=packet.hex(),
                taken_ns=str(time.time_ns()),
                tool=self.tool,
                sources={file.role: show(file.path)},
            )
        )
        self.stage.set_ref(file.name, packet, expected=parent, observation=observation)
        return packet

    def content(self, found: Digests, data: bytes) -> None:
        if self.stage.has_object(found.blake3):
            return
        if found.size_bytes <= INLINE_BYTES:
            self.stage.add_object(found, data)
            return
        blob = self.stage.blob()
        blob.write(data)
        blob.finish(found)

    def facts(self, form: str, found: Digests, facts: tuple[Fact, ...]) -> tuple[str, ...]:
        """Add the facts record; none for a document without facts, or with more than a record holds."""
        made = Facts(extractor=form, version=VERSIONS[form], source=found.blake3.hex(), facts=facts)
        id, data = records.encode(made)
        if not facts or len(data) > MAX_RECORD_BYTES:
            return ()
        self.add(id, data)
        return (id.hex(),)

    def record(self, made: Record) -> RawId:
        id, data = records.encode(made)
        self.add(id, data)
        return id

    def add(self, id: RawId, data: bytes) -> None:
        """Add a record that is not there yet."""
        if not self.stage.has_record(id):
            self.stage.add_record(id, data)


def _change(item: FactDifference) -> DocumentChange:
    return DocumentChange(location=item.location, key=item.key, from_=item.before, to=item.after)


def _stated(statements: Statements) -> dict[str, int]:
    """Return how many statements of each kind there are."""
    numbers = {name: len(getattr(statements, name)) for name in COUNTED}
    numbers["cells"] = sum(len(view.cells) for view in statements.coverage)
    return {name: number for name, number in numbers.items() if number}
