"""Fields that two documents about the same thing state differently."""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from provstore.evidence.jsonreader import Absent, Number, Spoiled, Value, child
from provstore.graph.documents.joining import is_same
from provstore.graph.documents.page import page_values, parse_page
from provstore.graph.documents.registry import is_recipe, is_sweep
from provstore.graph.documents.values import text
from provstore.graph.nodes import Node

_APART: Final = ("/provenance", "/facts", "/metadata", "/description")
"""Members that say where something comes from: they differ between versions without a disagreement."""

_MAX_FIELDS: Final = 50_000


class Different(NamedTuple):
    """One field; see :class:`provstore.reports.imported.Disagreement`."""

    subject: str
    field: str
    first: str
    first_value: str
    second: str
    second_value: str
    kind: Literal["differs", "rounded"]


class Disagreements:
    """Collects the fields of registry documents and their pages, and compares those about one thing."""

    def __init__(self) -> None:
        self._seen: dict[Node, list[tuple[str, bool, dict[str, str]]]] = {}

    def add(self, name: str, form: str, value: Value | Absent, data: bytes) -> None:
        """Take in one document under its name in the store; other formats are passed over."""
        if form == "recipe-page":
            document, sweeps = page_values(parse_page(data))
            self._note(name, Node("recipe", text(document, "id")), document, partly=True)
            for sweep in sweeps:
                self._note(name, Node("sweep", text(sweep, "id")), sweep, partly=True)
        elif isinstance(value, dict) and is_recipe(value):
            self._note(name, Node("recipe", text(value, "id")), value, partly=False)
        elif isinstance(value, dict) and is_sweep(value):
            self._note(name, Node("sweep", text(value, "id")), value, partly=False)

    def _note(self, name: str, node: Node, document: dict[str, Value], *, partly: bool) -> None:
        self._seen.setdefault(node, []).append((name, partly, dict(_fields(document))))

    def found(self) -> Iterator[Different]:
        """Yield every field in which two documents differ, by subject, documents and field."""
        for node, seen in sorted(self._seen.items()):
            for index, first in enumerate(seen):
                for second in seen[index + 1 :]:
                    yield from _compare(str(node), first, second)


def _compare(
    subject: str, first: tuple[str, bool, dict[str, str]], second: tuple[str, bool, dict[str, str]]
) -> Iterator[Different]:
    """Yield what differs; of a document that shows a part only what it shows."""
    for field in sorted({*first[2], *second[2]}):
        if field.startswith(_APART):
            continue
        one, two = first[2].get(field), second[2].get(field)
        if one == two or (one is None and first[1]) or (two is None and second[1]):
            continue
        kind: Literal["differs", "rounded"] = "differs"
        if one and two and (is_same(one, two) or is_same(two, one)):
            kind = "rounded"
        yield Different(subject, field, first[0], one or "absent", second[0], two or "absent", kind)


def _fields(document: dict[str, Value]) -> Iterator[tuple[str, str]]:
    """Yield pointer and text of everything in a document; containers by what is in them."""
    todo: list[tuple[str, Value]] = [("", document)]
    left = _MAX_FIELDS
    while todo and left:
        left -= 1
        pointer, here = todo.pop()
        if isinstance(here, dict):
            todo += [(child(pointer, name), item) for name, item in here.items()]
        elif isinstance(here, list):
            todo += [(f"{pointer}/{index}", item) for index, item in enumerate(here)]
        else:
            yield pointer, _text(here)


def _text(value: Value) -> str:
    if isinstance(value, Number | Spoiled):
        return value.text
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
