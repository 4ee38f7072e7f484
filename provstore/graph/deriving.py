"""Relations out of what is sealed: packets, trees, facts, verdicts, and evidence files that name other files.

Everything here is a pure function of records and bytes. Documents of the field's own formats have readers of
their own (:mod:`provstore.graph.documents`); what they do not know and evidence readers do is taken here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from provstore.errors import ChecksumFileError, EmptyError, UnsafePathError
from provstore.evidence.keyvalue import read_identity
from provstore.evidence.locks import read_lock, read_verification
from provstore.evidence.oracle import read_oracle
from provstore.evidence.recognising import recognise
from provstore.files.checksums import parse_checksums
from provstore.graph.nodes import Node
from provstore.graph.relations import Relation, RelationKind
from provstore.graph.statements import Lineup, Measurement, Sample, Statements
from provstore.paths import show
from provstore.records.facts import Fact, Facts
from provstore.records.packet import Claim, Entry, Packet
from provstore.records.tree import TreeEntry, TreeIndex, TreeLeaf
from provstore.records.verdict import Verdict

VERSION: Final = "1"
"""Version of what this module derives; another one makes every index anew."""

DOCUMENT_KINDS: Final = frozenset(
    ("document", "record", "receipt", "recipe", "runtime-lock", "suite", "policy", "identity")
)
"""Kinds of entries whose bytes may be a document of the field."""

READERS: Final = ("identity", "lock", "loaded", "oracle")
"""Evidence readers whose files name other files; see :func:`provstore.evidence.recognising.recognise`."""

OPAQUE: Final = frozenset(("source-tree", "native", "model", "python-env", "file"))
"""Kinds of directories whose members are never looked into for relations."""

_HEX_64: Final = re.compile(r"[0-9a-f]{64}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

ToSha256 = Callable[[str], str | None]
"""Gives the hex SHA-256 of an object by its hex BLAKE3, or None where it is not known."""


def object_node(sha256: str | None, blake3: str | None = None) -> Node | None:
    """Return the node of an object by whatever digest is known.

    Example:
        >>> object_node(None, "ab" * 32).key[:10]
        'blake3:aba'
    """
    if sha256:
        return Node("object", sha256)
    return Node("object", f"blake3:{blake3}") if blake3 else None


def member_node(member: Entry | TreeEntry) -> Node | None:
    """Return the node of what an entry or a tree member holds; None for a link, a hole and a bare pin."""
    if member.tree is not None:
        return Node("tree", member.tree)
    return object_node(member.sha256, member.blake3)


def tree_relations(id: str, node: TreeLeaf | TreeIndex) -> Iterator[Relation]:
    """Yield what one tree record contains; names are read from the record itself when they are asked for."""
    here = Node("tree", id)
    if isinstance(node, TreeIndex):
        for child in node.children:
            yield Relation(here, "contains", Node("tree", child.tree), id)
        return
    for entry in node.entries:
        found = member_node(entry)
        if found is not None:
            yield Relation(here, "contains", found, id)


class _Packet:
    """Derives the relations of one packet record."""

    def __init__(self, id: str, packet: Packet, sha256_of: ToSha256) -> None:
        self.id = id
        self.here = Node("packet", id)
        self.packet = packet
        self.sha256_of = sha256_of

    def _to(self, kind: RelationKind, target: Node, location: str) -> Relation:
        return Relation(self.here, kind, target, self.id, location)

    def _between(self, source: Node, kind: RelationKind, target: Node, location: str) -> Relation:
        return Relation(source, kind, target, self.id, location)

    def relations(self) -> Iterator[Relation]:
        # A document that was imported again says by its parent what it takes the place of; a run does not.
        replaces = is_import(self.packet)
        for parent in self.packet.parents:
            yield Relation(self.here, "has-parent", Node("packet", parent), self.id)
            if replaces:
                target = Node("packet", parent)
                yield Relation(self.here, "supersedes", target, self.id, "", "imported again, changed")
        for entry in self.packet.entries:
            yield from self._entry(entry)

    def _entry(self, entry: Entry) -> Iterator[Relation]:
        member = member_node(entry)
        if member is not None:
            yield self._to("pins" if entry.custody == "declared" else "holds", member, entry.role)
            if entry.kind in DOCUMENT_KINDS and member.kind == "object":
                path = Node("path", f"{repository_of(self.packet, entry) or self.id}:{entry.role}")
                yield self._between(path, "is-file", member, entry.role)
        for pin in entry.pins:
            if pin.kind == "manifest":
                manifest = object_node(self.sha256_of(pin.value), pin.value)
                if manifest is not None:
                    yield self._to("pins", manifest, entry.role)
                    if member is not None:
                        yield self._between(member, "sealed-by", manifest, entry.role)
            elif pin.kind == "commit":
                yield from self._commit(pin.value, member, entry.role)
        for origin in entry.origins:
            if origin.hub is not None and origin.revision is not None:
                yield from self._origin(
                    Node("hub-revision", f"{origin.hub}@{origin.revision}"), member, entry
                )
            elif origin.git is not None and origin.revision is not None:
                yield from self._commit(origin.revision, member, entry.role)
            elif origin.url is not None:
                yield from self._origin(Node("url", origin.url), member, entry)

    def _commit(self, commit: str, member: Node | None, role: str) -> Iterator[Relation]:
        if _COMMIT.fullmatch(commit):
            yield self._to("pins", Node("commit", commit), role)
            if member is not None:
                yield self._between(member, "built-from", Node("commit", commit), role)

    def _origin(self, origin: Node, member: Node | None, entry: Entry) -> Iterator[Relation]:
        yield self._to("pins", origin, entry.role)
        if member is not None:
            yield self._between(member, "restores-from", origin, entry.role)


def repository_of(packet: Packet, entry: Entry) -> str | None:
    """Return the collection of files that a document of a packet belongs to.

    A packet that was made of one imported document is named after both; any other is a collection itself.

    Example:
        >>> entry = Entry(role="data/a.json", kind="document", files=1)
        >>> repository_of(Packet(entries=(entry,), name="lab/data/a.json"), entry)
        'lab'
    """
    name = packet.name
    return name[: -len(entry.role) - 1] if name and is_import(packet) else name


def is_import(packet: Packet) -> bool:
    """Say whether a packet was made of one imported document, and is named after its collection and place."""
    name, entries = packet.name, packet.entries
    return name is not None and len(entries) == 1 and name.endswith("/" + entries[0].role)


def packet_relations(id: str, packet: Packet, sha256_of: ToSha256) -> Iterator[Relation]:
    """Yield what a packet record states: members, pins, origins, parents.

    Args:
        id: hex id of the packet.
        packet: the record.
        sha256_of: for the manifests that it pins by their BLAKE3.
    """
    yield from _Packet(id, packet, sha256_of).relations()


def claim_relations(id: str, packet: Packet, find: Callable[[str], Node | None]) -> Iterator[Relation]:
    """Yield the claims of a packet and what they rest on.

    Args:
        id: hex id of the packet.
        packet: the record.
        find: gives the node at ``role/path``, or None where the packet has nothing there.
    """
    for claim in packet.claims:
        here = claim_node(id, claim)
        yield Relation(Node("packet", id), "states", here, id, f"claim {claim.name}")
        for place in claim.evidence:
            found = find(place)
            if found is not None:
                yield Relation(here, "evidenced-by", found, id, place)


def claim_node(packet: str, claim: Claim) -> Node:
    """Return the node of a claim."""
    return Node("claim", f"{packet}/{claim.name}")


def packet_statements(id: str, packet: Packet) -> Statements | None:
    """Return what a packet states of itself: its place in the space, and its claims as measurements of it."""
    selectors = dict(packet.scope.at) if packet.scope is not None else {}
    if not packet.claims and not selectors:
        return None
    return Statements(
        subject=id,
        subject_kind="packet",
        lineups=(Lineup(key=id, kind="packet", selectors=selectors),),
        measurements=tuple(
            Measurement(
                key=f"{id}/{claim.name}",
                state="",
                selectors=selectors,
                samples=(Sample(metric=claim.metric, value=claim.value, unit=claim.unit),),
                workload=claim.samples or "",
                convention=claim.convention,
                said=claim.limits,
                evidence=claim.evidence,
                location=f"claim {claim.name}",
            )
            for claim in packet.claims
        ),
    )


def verdict_relations(id: str, verdict: Verdict, sha256_of: ToSha256) -> Iterator[Relation]:
    """Yield what a verdict judges, by which policy, and the objects whose facts decided it."""
    here = Node("verdict", id)
    yield Relation(here, "judges", Node("packet", verdict.packet), id, verdict.policy_name, verdict.outcome)
    policy = object_node(sha256_of(verdict.policy), verdict.policy)
    if policy is not None:
        yield Relation(here, "judged-against", policy, id)
    gates: dict[str, list[str]] = {}
    for gate in verdict.gates:
        for judgement in gate.judgements:
            for fact in judgement.facts:
                if fact.object and gate.gate not in gates.setdefault(fact.object, []):
                    gates[fact.object].append(gate.gate)
    for blake3, names in gates.items():
        node = object_node(sha256_of(blake3), blake3) if _HEX_64.fullmatch(blake3) else None
        if node is not None:
            yield Relation(here, "evidenced-by", node, id, ", ".join(names))


def facts_relations(id: str, facts: Facts, source: Node, members: Mapping[str, Node]) -> Iterator[Relation]:
    """Yield what inspectors found about where things come from and what they load.

    Args:
        id: hex id of the facts record.
        facts: the record.
        source: node of the object or tree that was read.
        members: node of each file below it, by shown path; empty for a single file.
    """
    by_name: dict[str, Node] = {}
    for path, node in members.items():
        by_name.setdefault(path.rpartition("/")[2], node)
    for fact in facts.facts:
        where = f"{fact.path}: {fact.key}" if fact.path else fact.key
        if fact.key == "elf.needed":
            about = members.get(fact.path, source) if fact.path else source
            for name in _texts(fact):
                target = by_name.get(name) or Node("path", f"soname:{name}")
                if target != about:
                    yield Relation(about, "needs", target, id, where)
        elif fact.key == "git.commit" or fact.key.endswith(".commit"):
            for commit in _texts(fact):
                if _COMMIT.fullmatch(commit):
                    yield Relation(source, "built-from", Node("commit", commit), id, where)


def _texts(fact: Fact) -> tuple[str, ...]:
    if isinstance(fact.value, str):
        return (fact.value,)
    return tuple(v for v in fact.value if isinstance(v, str)) if isinstance(fact.value, tuple) else ()


# -- files of evidence that name other files --------------------------------------------------------


def reader_of(kind: str, place: str) -> str | None:
    """Return which evidence reader a member is for, or None when its name says that it names no files.

    Example:
        >>> reader_of("evidence", "run/identity.txt"), reader_of("model", "lock.json")
        ('identity', None)
    """
    if kind in OPAQUE:
        return None
    found = recognise(kind, place)
    return found.reader if found is not None and found.reader in READERS else None


def evidence_relations(reader: str, data: bytes, sha256: str, stated_by: str) -> list[Relation]:
    """Return what a file of evidence says about others.

    Args:
        reader: one of :data:`READERS`.
        data: its bytes.
        sha256: their hex SHA-256.
        stated_by: their hex BLAKE3.
    """
    here = Node("object", sha256)
    readers: dict[str, Callable[[bytes], Iterator[_Said]]] = {
        "identity": _identity,
        "lock": _lock,
        "loaded": _loaded,
        "oracle": _oracle,
    }
    return list(
        dict.fromkeys(
            Relation(source or here, kind, target, stated_by, location)
            for source, kind, target, location in readers[reader](data)
            if (source or here) != target
        )
    )


_Said = tuple[Node | None, RelationKind, Node, str]
"""Source (None for the file itself), kind, target, location."""

_MEANT: Final[tuple[tuple[re.Pattern[str], RelationKind], ...]] = (
    (re.compile(r"suite|teacher|oracle"), "judged-against"),
    (re.compile(r"lock|verif|manifest"), "binds"),
)


def _identity(data: bytes) -> Iterator[_Said]:
    for fact in read_identity(data).facts:
        if fact.key == "identity#file" and isinstance(fact.value, tuple):
            yield None, "uses", Node("object", str(fact.value[0])), fact.location
        elif isinstance(fact.value, str):
            key = fact.key.partition(".")[2]
            if key.endswith("sha256") and _HEX_64.fullmatch(fact.value):
                meant = (kind for pattern, kind in _MEANT if pattern.search(key))
                yield None, next(meant, "uses"), Node("object", fact.value), fact.location
            elif key.endswith("commit") and _COMMIT.fullmatch(fact.value):
                yield None, "built-from", Node("commit", fact.value), fact.location


def _lock(data: bytes) -> Iterator[_Said]:
    lock = read_lock(data)
    for pin in lock.pins:
        node = Node("object", pin.sha256)
        yield None, "pins", node, pin.location
        if pin.commit and _COMMIT.fullmatch(pin.commit):
            yield node, "built-from", Node("commit", pin.commit), pin.location
    for name, commit in lock.sources.items():
        if _COMMIT.fullmatch(commit):
            yield None, "built-from", Node("commit", commit), f"/source/{name}/commit"


def _loaded(data: bytes) -> Iterator[_Said]:
    for origin in read_verification(data).origins:
        for path in origin.paths:
            yield None, "observed", Node("path", f"host:{path}"), origin.location


def _oracle(data: bytes) -> Iterator[_Said]:
    source = read_oracle(data).source_sha256
    if source is not None and _HEX_64.fullmatch(source):
        yield None, "derived-from", Node("object", source), "/source_sha256"


def manifest_relations(data: bytes, sha256: str, stated_by: str) -> list[Relation]:
    """Return the objects that a checksum manifest pins, each with its line; none of a file that is none."""
    try:
        lines = parse_checksums(data, "manifest", "sha256")
    except (ChecksumFileError, EmptyError, UnsafePathError):
        return []
    here = Node("object", sha256)
    made: Iterable[Relation] = (
        Relation(here, "pins", node, stated_by, f"line {line.line}", show(line.name))
        for line in lines
        if (node := _listed(line.digest.algorithm, line.digest.raw.hex())) is not None and node != here
    )
    return list(dict.fromkeys(made))


def _listed(algorithm: str, digest: str) -> Node | None:
    if algorithm == "sha256":
        return Node("object", digest)
    return Node("object", f"blake3:{digest}") if algorithm == "blake3" else None
