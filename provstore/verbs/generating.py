"""Writing documents of the field back from the store, with what later documents correct, and nothing else."""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from provstore.errors import AmbiguousError, NotFoundError, UsageError
from provstore.evidence.jsonreader import ABSENT, Value, kind, read, resolve
from provstore.graph.documents.note import Correction, corrections
from provstore.graph.documents.recipe_status import derive_status
from provstore.graph.documents.registering import Registry
from provstore.graph.documents.splicing import Splice, source_text, spliced
from provstore.graph.documents.values import text, texts
from provstore.graph.following import following
from provstore.paths import show
from provstore.reports.imported import CorrectedValue, GenerateReport, HeldBack
from provstore.store.protocol import Reader
from provstore.verbs.stored_documents import StoredDocument, named_like, stored_documents

FORMATS: Final = ("family", "package", "recipe")
"""Formats of documents that can be written back."""

_REGISTRY: Final = ("recipe", "recipe-page", "sweep", "model-instance", "hardware")


class _Note(NamedTuple):
    """A note, and the changes in it."""

    document: StoredDocument
    source: str
    value: dict[str, Value]
    changes: list[Correction]

    @property
    def order(self) -> tuple[str, str]:
        return text(self.value, "date"), self.document.ref


class _Draft:
    """A document on its way out: the text, what was corrected in it, and what was not."""

    def __init__(self, data: bytes) -> None:
        self.text = data.decode()
        self.corrected: list[CorrectedValue] = []
        self.held: list[HeldBack] = []
        self._by: dict[str, str] = {}

    @property
    def value(self) -> dict[str, Value]:
        found = read(self.text.encode()).value
        return found if isinstance(found, dict) else {}

    def put(self, at: str, new: str, by: str, reason: str) -> None:
        """Replace one value, and note that."""
        old = source_text(self.text, at)
        if old is None:
            self.hold(at, by, "nothing stands there")
        elif old != new:
            self.text = spliced(self.text, [Splice(at, new)])
            self._by[at] = by
            self.corrected.append(CorrectedValue(location=at, from_=old, to=new, by=by, reason=reason))

    def hold(self, at: str, by: str, why: str) -> None:
        self.held.append(HeldBack(location=at, by=by, reason=why))

    def changed_by(self, at: str) -> str:
        """Return who changed a value before, or the empty text."""
        return self._by.get(at, "")


def generate(reader: Reader, name: str, form: str) -> tuple[bytes, GenerateReport]:
    """Return a document as it should be, and what differs from how it was imported.

    Notes of the store correct single values; what copies a corrected value in the same document follows; the
    status of a recipe is the one that its facts give. Every other byte is the original's.

    Args:
        reader: store or pack.
        name: ref, node (``family:ID``), the id that the document gives itself, or a digest.
        form: one of :data:`FORMATS`.

    Raises:
        UsageError: an unknown format, or bytes that cannot be taken apart.
        NotFoundError, AmbiguousError: no such document, or several.
    """
    if form not in FORMATS:
        raise UsageError(f"format {form!r} is unknown; known are {', '.join(FORMATS)}")
    document = _find(reader, name, form)
    original = document.data(reader)
    draft = _Draft(original)
    before = draft.value
    if not before:
        raise UsageError(f"{document.ref} is no JSON object that can be taken apart")
    for note in sorted(_notes(reader, document), key=lambda note: note.order):
        for change in note.changes:
            _correct(draft, note, change)
    if form == "family":
        for splice in list(following(before, draft.value)):
            draft.put(splice.at, splice.text, "provstore", "it copies a value that was corrected")
    missing: tuple[str, ...] = ()
    if form == "recipe":
        missing = _status(reader, draft, document)
    data = draft.text.encode()
    return data, GenerateReport(
        name=document.ref,
        packet=document.packet.hex(),
        format=form,
        identical=data == original,
        corrected=tuple(draft.corrected),
        held_back=tuple(draft.held),
        missing=missing,
    )


def _find(reader: Reader, name: str, form: str) -> StoredDocument:
    found = [item for item in stored_documents(reader, form) if item.ref == name]
    if not found:
        found = [item for item in stored_documents(reader, form) if named_like(item, reader, name)]
    if not found:
        raise NotFoundError(show(name), f"no imported {form} of this name, ref or id")
    if len(found) > 1:
        raise AmbiguousError(show(name), [item.ref for item in found])
    return found[0]


def _notes(reader: Reader, document: StoredDocument) -> Iterator[_Note]:
    """Yield the notes that correct a document; one that another note undoes does not count."""
    notes = []
    undone: set[str] = set()
    for item in stored_documents(reader, "note"):
        data = item.data(reader)
        value = read(data).value
        if isinstance(value, dict):
            notes.append(_Note(item, data.decode(), value, corrections(value)))
            undone |= {written for written in texts(value.get("target")) if written.startswith("note:")}
    for note in notes:
        if f"note:{text(note.value, 'id')}" in undone:
            continue
        changes = [change for change in note.changes if named_like(document, reader, change.document)]
        if changes:
            yield note._replace(changes=changes)


def _correct(draft: _Draft, note: _Note, change: Correction) -> None:
    """Carry out one correction, if what it corrects is still there."""
    by = note.document.ref
    here = resolve(draft.value, change.at)
    new = source_text(note.source, f"{change.location}/to")
    other = draft.changed_by(change.at)
    if here is ABSENT or new is None or kind(here) == "spoiled":
        draft.hold(change.at, by, "nothing that can be replaced stands there")
    elif change.before is ABSENT:
        draft.hold(change.at, by, "the note does not say what it takes to stand there (`from`)")
    elif here != change.before:
        why = f"{other} changed it before" if other else "another value stands there than the note says"
        draft.hold(change.at, by, why)
    else:
        draft.put(change.at, new, by, text(note.value, "reason"))


def _status(reader: Reader, draft: _Draft, document: StoredDocument) -> tuple[str, ...]:
    """Give a recipe the status that its facts give it; return what is missing for ``validated``."""
    registry = Registry()
    for item in stored_documents(reader, *_REGISTRY):
        if item.form != "recipe":
            registry.add(item.ref, item.reading(reader), item.data(reader))
    recipe = draft.value
    found = derive_status(recipe, registry.parts(recipe))
    if "status" in recipe and text(recipe, "status") != found.status:
        draft.put("/status", json.dumps(found.status), "provstore", "; ".join(found.missing) or "all holds")
    return found.missing
