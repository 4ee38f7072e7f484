"""Documents that were imported, as the refs of a store name them now."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from provstore.errors import UsageError
from provstore.graph.documents.reading import VERSIONS, Reading, read_any
from provstore.ids import RawId, to_raw
from provstore.records.packet import Entry
from provstore.store import objects
from provstore.store.protocol import Reader

_HEAD: Final = re.compile(rb'\{"extractor":"([a-z-]+)"')


class StoredDocument(NamedTuple):
    """One imported document.

    Attributes:
        ref: name of its packet.
        packet: id of the packet.
        entry: the packet's only entry.
        form: format that it was imported as.
    """

    ref: str
    packet: RawId
    entry: Entry
    form: str

    @property
    def repository(self) -> str:
        """Name of the collection: what stands before its path."""
        return self.ref.removesuffix(self.entry.role).rstrip("/")

    def data(self, reader: Reader) -> bytes:
        """Return its checked bytes."""
        return objects.read(reader, to_raw(self.entry.blake3 or ""))

    def reading(self, reader: Reader) -> Reading:
        """Return what it is."""
        return read_any(self.data(reader), self.repository, self.entry.role, self.entry.blake3 or "")


def document_entry(reader: Reader, packet: RawId, where: str) -> Entry:
    """Return the entry of an imported document's packet.

    Raises:
        UsageError: the packet has not exactly one entry, or that has no bytes here.
    """
    entries = objects.packet(reader, packet).entries
    if len(entries) != 1 or entries[0].tree is not None or entries[0].custody != "held":
        raise UsageError(f"{where} names a packet that is no imported document")
    return entries[0]


def stored_documents(reader: Reader, *forms: str) -> Iterator[StoredDocument]:
    """Yield the imported documents of some formats, or of all, sorted by ref.

    Args:
        reader: store or pack.
        forms: names of formats.
    """
    for ref, packet in reader.refs():
        try:
            entry = document_entry(reader, packet, ref)
        except UsageError:
            continue
        form = _form(reader, entry)
        if form and (not forms or form in forms) and ref.endswith(entry.role):
            yield StoredDocument(ref, packet, entry, form)


def _form(reader: Reader, entry: Entry) -> str:
    """Return the format whose facts the entry has; empty for what was not imported."""
    if len(entry.facts) != 1 or entry.blake3 is None:
        return ""
    match = _HEAD.match(objects.record(reader, to_raw(entry.facts[0]))[:64])
    form = match[1].decode() if match else ""
    return form if form in VERSIONS else ""


def named_like(document: StoredDocument, reader: Reader, name: str) -> bool:
    """Say whether a name stands for a document: its ref, node, the id it gives itself, or a digest."""
    digests = (f"sha256:{document.entry.sha256}", f"blake3:{document.entry.blake3}")
    if name in (document.ref, f"path:{document.repository}:{document.entry.role}", *digests):
        return True
    understood = document.reading(reader).understood
    return understood is not None and name in (str(understood.subject), understood.subject.key)
