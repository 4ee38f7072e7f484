"""Ids that stand for several things: the same id twice, or two ids that differ in case alone."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from provstore.graph.statements import Understood

_OWN_PLACE: Final = frozenset({"record", "queue", "receipt", "lock", "attestation", "path", "object"})
"""Kinds whose nodes are known by where the document lies, so that nothing can be said about them twice."""


class Clashing(NamedTuple):
    """An id that cannot be told apart; see :class:`provstore.reports.imported.Clash`."""

    node: str
    places: tuple[str, ...]
    reason: str


class Clashes:
    """Collects the ids of documents and of their parts.

    Ids of parts are namespaced by their family, so they are compared within one family and, without it, among
    all: the same measurement id in two families is no error, but a person will take one for the other.
    """

    def __init__(self) -> None:
        self._subjects: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._parts: dict[tuple[str, str], dict[str, list[str]]] = {}

    def add(self, name: str, understood: Understood) -> None:
        """Take in one document under the name it has in the store."""
        subject = understood.subject
        if subject.kind not in _OWN_PLACE:
            key = (understood.format, subject.key.casefold())
            self._subjects.setdefault(key, {}).setdefault(subject.key, []).append(name)
        stated = understood.statements
        if subject.kind != "family":
            return
        for kind, parts in (("family-packet", stated.lineups), ("measurement", stated.measurements)):
            for part in parts:
                id = part.key.removeprefix(f"{subject.key}/")
                place = f"{name} {part.location}"
                self._parts.setdefault((kind, id.casefold()), {}).setdefault(part.key, []).append(place)

    def found(self) -> Iterator[Clashing]:
        """Yield every clash, sorted by kind and id."""
        for (kind, _), spellings in sorted(self._subjects.items()):
            first = next(iter(spellings))
            places = tuple(place for found in spellings.values() for place in found)
            if len(spellings) > 1:
                yield Clashing(f"{kind}:{first}", places, "ids that differ in case alone")
            elif len(places) > 1:
                yield Clashing(f"{kind}:{first}", places, "several documents give themselves this id")
        for (kind, _), keys in sorted(self._parts.items()):
            places = tuple(place for found in keys.values() for place in found)
            if len(places) > 1:
                yield Clashing(f"{kind}:{next(iter(keys))}", places, _reason(list(keys)))


def _reason(keys: list[str]) -> str:
    if len(keys) == 1:
        return "one family gives this id twice"
    families = {key.partition("/")[0] for key in keys}
    if len(families) > 1:
        return "several families give this id"
    return "ids that differ in case alone"
