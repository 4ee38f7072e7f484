"""What a reader writes into while it reads one document."""

import hashlib
from typing import Final, NamedTuple

from provstore.evidence.jsonreader import Absent, Value, child
from provstore.graph.documents.shapes import Shape, leftovers
from provstore.graph.documents.values import is_commit
from provstore.graph.nodes import Node, NodeKind
from provstore.graph.relations import Relation, RelationKind
from provstore.graph.statements import (
    Closure,
    Coverage,
    Estimate,
    Lineup,
    Measurement,
    Scalar,
    ScopeSentence,
    Statements,
    Understood,
)

_ADDRESSES: Final = ("https://", "http://")


class Source(NamedTuple):
    """One document as a reader gets it.

    Attributes:
        data: its bytes.
        repository: name of the collection of files that its paths are relative to.
        path: its own path in there.
        stated_by: hex id (BLAKE3) of its object.
    """

    data: bytes
    repository: str
    path: str
    stated_by: str


class Draft:
    """Collects relations and statements of one document.

    Args:
        source: the document.
        form: name of its format.
    """

    def __init__(self, source: Source, form: str) -> None:
        self.source = source
        self.form = form
        self.here = Node("path", f"{source.repository}:{source.path}")
        self.lineups: list[Lineup] = []
        self.measurements: list[Measurement] = []
        self.estimates: list[Estimate] = []
        self.closures: list[Closure] = []
        self.coverage: list[Coverage] = []
        self.scope: list[ScopeSentence] = []
        self.dimensions: dict[str, tuple[Scalar, ...]] = {}
        self.left: list[str] = []
        self.date = ""
        self._relations: dict[Relation, None] = {}

    def subject(self, kind: NodeKind, id: str) -> Node:
        """Return the node that the document is about: by the id that it gives itself, else by its place."""
        return Node(kind, id or self.here.key)

    def content(self) -> Node:
        """Return the node of the document's own bytes."""
        return Node("object", hashlib.sha256(self.source.data).hexdigest())

    def file(self, path: str) -> Node:
        """Return the node of a file or an address that the document cites."""
        if path.startswith(_ADDRESSES):
            return Node("url", path)
        return Node("path", f"{self.source.repository}:{path}")

    def relate(
        self, source: Node, kind: RelationKind, target: Node, location: str = "", reason: str = ""
    ) -> None:
        """Add an edge; the same edge at the same place is one."""
        if source != target and source.key and target.key:
            found = Relation(source, kind, target, self.source.stated_by, location, reason)
            self._relations.setdefault(found)

    def cite(self, source: Node, kind: RelationKind, value: Value | Absent, location: str) -> tuple[str, ...]:
        """Add an edge to each file that a member names; return the keys of their nodes."""
        keys = []
        listed = (
            [(child(location, index), item) for index, item in enumerate(value)]
            if isinstance(value, list)
            else [(location, value)]
        )
        for place, item in listed:
            if isinstance(item, str) and item:
                target = self.file(item)
                self.relate(source, kind, target, place)
                keys.append(target.key)
        return tuple(keys)

    def hub(self, repository: str, revision: str, location: str) -> Node | None:
        """Return the node of a Hub revision, tied to its commit; None when either is not said."""
        if not repository or not revision:
            return None
        node = Node("hub-revision", f"{repository}@{revision}")
        if is_commit(revision):
            self.relate(node, "pins", Node("commit", revision), location)
        return node

    def covered(self, value: Value, shape: Shape) -> None:
        """Note everything that the format's shape does not cover."""
        self.left += leftovers(value, shape)

    def finish(self, subject: Node) -> Understood:
        """Return what was understood; the document's own path states its subject."""
        self.relate(self.here, "states", subject)
        return Understood(
            format=self.form,
            subject=subject,
            relations=tuple(self._relations),
            statements=Statements(
                subject=subject.key,
                subject_kind=subject.kind,
                lineups=tuple(self.lineups),
                measurements=tuple(self.measurements),
                estimates=tuple(self.estimates),
                closures=tuple(self.closures),
                coverage=tuple(self.coverage),
                scope=tuple(self.scope),
                dimensions=self.dimensions,
                date=self.date,
            ),
            not_understood=tuple(self.left),
        )
