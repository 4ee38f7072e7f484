"""Rules for notes that undo something, and for what still rests on their targets."""

from collections.abc import Iterator
from typing import Final

from provstore.graph.rules.formats import FAMILY, NOTE
from provstore.graph.rules.places import DATE, Place, shown, walk
from provstore.graph.rules.rule import ANY, Context, Document, Violation, bad, rule

KINDS: Final = ("corrects", "withdraws", "quarantines", "supersedes")
"""What a note does to its targets."""


def targets(note: Document) -> list[Place]:
    """Return the targets that a note names, in ``targets`` or in ``target``."""
    one = note.root.at("target")
    return [*note.root.at("targets").elements(), *one.elements(), *([one] if one.said else [])]


@rule("note-shape", on=NOTE)
def note_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A note has id, date, author, reason, a known kind, and at least one target."""
    root = document.root
    for name in ("id", "author", "reason"):
        if not root.at(name).said:
            yield bad(root.at(name), f"a note needs {name}", "text")
    if not DATE.fullmatch(root.at("date").text[:10]):
        yield bad(root.at("date"), "no date", "YYYY-MM-DD")
    if root.at("kind").value not in KINDS:
        yield bad(root.at("kind"), "no kind of note", ", ".join(KINDS))
    if not targets(document):
        yield bad(root.at("targets"), "a note has a target", "at least one")


def _names(document: Document) -> set[str]:
    """Return what others may call a document: its path, its path in any collection, and its own id."""
    id = document.root.at("id").text
    return {document.path, *(f"{kind}:{id}" for kind in ("note", "record", "family", "package") if id)}


def _matches(target: str, names: set[str]) -> bool:
    """Say whether a target is one of some names; a path may have the name of its collection in front."""
    if target in names:
        return True
    kind, _, key = target.partition(":")
    return kind == "path" and key.partition(":")[2] in names


def _undone(context: Context) -> dict[str, list[Document]]:
    """Return the notes that undo something, by each name of it: as the note writes it, and as a bare path."""
    found: dict[str, list[Document]] = {}
    for note in context.of_format(NOTE):
        if note.root.at("kind").value not in KINDS:
            continue
        for target in targets(note):
            kind, _, key = target.text.partition(":")
            names = {target.text, key.partition(":")[2] if kind == "path" else ""} - {""}
            for name in names:
                found.setdefault(name, []).append(note)
    return found


@rule("depends-on-withdrawn", on=ANY)
def depends_on_withdrawn(document: Document, context: Context) -> Iterator[Violation]:
    """Nothing cites what a note corrects, withdraws, quarantines or supersedes, but the note itself."""
    if document.format == NOTE:
        return
    undone = _undone(context)
    for name, place in walk(document.root) if undone else ():
        if not place.said or name == "id":
            continue
        names = {place.text}
        cited = context.documents.get(place.text)
        names |= set() if cited is None else _names(cited)
        if document.format == FAMILY:
            names.add(f"measurement:{document.root.at('id').text}/{place.text}")
        for note in [note for one in sorted(names) for note in undone.get(one, ())]:
            kind, reason = note.root.at("kind").text, note.root.at("reason").value
            message = f"{note.path} {kind} it: {shown(reason)}"
            yield bad(place, message[:400], "something that still stands")


@rule("note-cycle", on=NOTE)
def note_cycle(document: Document, context: Context) -> Iterator[Violation]:
    """No chain of notes returns to itself: what undoes something is not undone by it in turn."""
    notes = list(context.of_format(NOTE))
    below = {
        note.path: [o for o in notes if any(_matches(t.text, _names(o)) for t in targets(note))]
        for note in notes
    }
    todo, seen = list(below.get(document.path, [])), set[str]()
    while todo:
        note = todo.pop()
        if note.path == document.path:
            place = (targets(document) or [document.root])[0]
            yield bad(place, "the notes it undoes undo it in turn", "a chain that ends")
            return
        if note.path not in seen:
            seen.add(note.path)
            todo += below[note.path]
