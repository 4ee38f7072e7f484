"""Diffing: what differs between two packets, packs or directories, and what stayed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from provstore import merkle, records, treediff
from provstore.errors import MalformedError, NotFoundError
from provstore.files.excluding import Excluder
from provstore.ids import RawId, to_raw
from provstore.merkle import Fetch
from provstore.paths import show
from provstore.records.facts import Fact, Facts
from provstore.records.packet import Entry, Packet, rule_text
from provstore.records.tree import TreeEntry
from provstore.reports import DiffReport, FactChange, KeptFact, MemberChange
from provstore.reports import Side as ReportSide
from provstore.reports.base import count
from provstore.store import objects
from provstore.store.memory import MemoryStore
from provstore.store.pack import PackStore
from provstore.store.protocol import Reader
from provstore.verbs import seldom
from provstore.verbs.locating import locate
from provstore.verbs.members import Member, entry_members, is_file, is_hole, origin_text, single

_ENVIRONMENT: Final = frozenset({"environment", "host", "idle"})
_RESULT: Final = frozenset({"benchmark-log", "server-log", "metrics", "record", "receipt"})

_LONGEST_VALUE: Final = 4000


class Side(NamedTuple):
    """One side of a comparison.

    Attributes:
        name: what the person called it.
        packet: the packet.
        fetch: gives its records.
        plain: it is a directory that was read just now.
        reader: gives the bytes of a packet's members; of a directory, its records alone.
        root: where the directory lies; empty for a packet.
    """

    name: str
    packet: Packet
    fetch: Fetch
    plain: bool
    reader: Reader
    root: str = ""


@contextmanager
def side(name: str, store: Reader | None) -> Iterator[Side]:
    """Open one side: a packet by ref, id, prefix or pack file, else a directory, which is read now.

    Raises:
        NotFoundError: it is none of these.
    """
    try:
        located = locate(name, store)
    except NotFoundError:
        if not os.path.isdir(name):
            raise
        memory = MemoryStore()
        skip = store.directory_ids() if store is not None else frozenset()
        options = seldom.SealOptions(use_cache=False, allow_pointers=True, keep=False, skip=skip)
        report = seldom.seal_paths(memory, [name], name="side", options=options)
        id = to_raw(report.packet)
        yield Side(
            name, objects.packet(memory, id), objects.fetcher(memory), True, memory, os.path.abspath(name)
        )
        return
    with located:
        yield _packet_side(name, located.reader, located.packet)


def _packet_side(name: str, reader: Reader, packet: RawId) -> Side:
    return Side(name, objects.packet(reader, packet), objects.fetcher(reader), False, reader)


class _Diff:
    def __init__(self, a: Side, b: Side) -> None:
        self.a = a
        self.b = b
        self.added: list[MemberChange] = []
        self.removed: list[MemberChange] = []
        self.changed: list[MemberChange] = []
        self.facts: dict[str, list[FactChange]] = {"identity": [], "environment": [], "result": []}
        self.kept_facts: list[KeptFact] = []
        self.kept_roles: list[str] = []
        self.kept = 0
        self.notes: list[str] = []

    def run(self) -> DiffReport:
        for before, after in _groups(self.a.packet.entries, self.b.packet.entries):
            if len(before) == len(after) == 1 and before[0].role == after[0].role:
                self.entry(before[0], after[0])
            else:
                self.places(before, after)
        self.packet_fields()
        same = not (self.added or self.removed or self.changed or any(self.facts.values()))
        return DiffReport(
            same=same,
            sentence=self.sentence(same),
            added=tuple(self.added),
            removed=tuple(self.removed),
            changed=tuple(self.changed),
            identity=tuple(self.facts["identity"]),
            environment=tuple(self.facts["environment"]),
            result=tuple(self.facts["result"]),
            kept=self.kept,
            kept_roles=tuple(self.kept_roles),
            kept_facts=tuple(self.kept_facts),
            notes=tuple(self.notes),
        )

    def sentence(self, same: bool) -> str:
        if same:
            entries = count(len(self.kept_roles), "entry", "entries")
            return f"nothing differs: {count(self.kept, 'member')} and {entries} are equal"
        parts = [
            f"{len(found)} {word}"
            for found, word in (
                (self.changed, "changed"),
                (self.added, "added"),
                (self.removed, "removed"),
            )
            if found
        ]
        members = (
            f"{', '.join(parts)} of {count(self.kept + len(self.changed) + len(self.removed), 'member')}"
        )
        facts = [count(len(found), f"{layer} fact") for layer, found in self.facts.items() if found]
        return (members if parts else "all members equal") + (f"; {', '.join(facts)} differ" if facts else "")

    # Entries

    def entry(self, x: Entry, y: Entry) -> None:
        before = len(self.added) + len(self.removed) + len(self.changed)
        facts_before = sum(map(len, self.facts.values()))
        if x.tree is not None and y.tree is not None:
            self.trees(x, y)
        else:
            a, b = single(x), single(y)
            if a is not None and b is not None:
                if is_hole(a) and is_hole(b):
                    self.unread(x.role)
                elif _same_bytes(a, b):
                    self.kept += 1
                else:
                    self.changed.append(_change(x.role, b"", a, b, self.note(x, y)))
            elif (x.tree is None and a is None) != (y.tree is None and b is None):
                self.notes.append(f"{x.role}: bytes are stated on one side only, so they were not compared")
            elif a is not None or b is not None:
                self.changed.append(_change(x.role, b"", _as_node(x), _as_node(y), "file against directory"))
        self.fields(x, y)
        self.compare_facts(x, y)
        same = before == len(self.added) + len(self.removed) + len(self.changed)
        if same and facts_before == sum(map(len, self.facts.values())):
            self.kept_roles.append(x.role)

    def trees(self, x: Entry, y: Entry) -> None:
        differing = 0
        # A pack is a file that anybody may have written; a store has opened each record it took in.
        vouched = not (isinstance(self.a.reader, PackStore) or isinstance(self.b.reader, PackStore))
        trees = to_raw(x.tree or ""), to_raw(y.tree or "")
        changes = treediff.diff(self.a.fetch, trees[0], self.b.fetch, trees[1], vouched=vouched)
        left_out = Excluder(x.exclude if self.b.plain else y.exclude if self.a.plain else ())
        for path, a, b in changes:
            if (a is None or b is None) and left_out.rule(*os.path.split(path)) is not None:
                # The packet says that this is no part of it; the directory that was just read has it.
                differing += a is not None and is_file(a)
                continue
            if a is not None and b is not None and a.kind != "directory" and b.kind != "directory":
                if _same_bytes(a, b):
                    continue
                differing += is_file(a)
                self.changed.append(_change(x.role, path, a, b, self.note(x, y, path)))
                continue
            for node, fetch, gone in ((a, self.a.fetch, True), (b, self.b.fetch, False)):
                if node is not None:
                    differing += self.whole(x.role, path, node, fetch, gone=gone)
        self.kept += max(0, x.files - differing)

    def whole(self, role: str, path: bytes, node: TreeEntry, fetch: Fetch, *, gone: bool) -> int:
        """Report a member that only one side has, and everything below it; returns the first side's files."""
        nodes = [(path, node)]
        if node.kind == "directory":
            below = list(merkle.walk(fetch, to_raw(node.tree or ""), path))
            nodes = [item for item in below if item[1].kind != "directory"] or nodes
        for inner, found in nodes:
            if gone:
                self.removed.append(_change(role, inner, found, None))
            else:
                self.added.append(_change(role, inner, None, found))
        return sum(is_file(found) for _, found in nodes) if gone else 0

    def places(self, before: list[Entry], after: list[Entry]) -> None:
        """Compare entries of which one side has others than the other, by where their members lie."""
        sides = []
        for entries, side_ in ((before, self.a), (after, self.b)):
            found: dict[bytes, Member] = {}
            for entry in entries:
                nodes = [m for m in entry_members(side_.fetch, entry) if m.node.kind != "directory"]
                found.update((member.place(), member) for member in nodes)
                if not nodes:
                    text = "; ".join(f"{pin.kind} {pin.value}" for pin in entry.pins) or "stated"
                    pair = (text, None) if side_ is self.a else (None, text)
                    self.fact(entry, "", "entry", *pair)
            sides.append(found)
        for place in sorted(sides[0].keys() | sides[1].keys()):
            x, y = sides[0].get(place), sides[1].get(place)
            if x is not None and y is not None:
                if is_hole(x.node) and is_hole(y.node):
                    self.unread(show(place))
                elif _same_bytes(x.node, y.node):
                    self.kept += is_file(x.node)
                else:
                    self.changed.append(_change(x.entry.role, x.path, x.node, y.node))
            elif x is not None:
                self.removed.append(_change(x.entry.role, x.path, x.node, None))
            elif y is not None:
                self.added.append(_change(y.entry.role, y.path, None, y.node))

    def unread(self, place: str) -> None:
        """Note that nobody could read a member on either side; that is neither equal nor a difference."""
        self.notes.append(f"{place}: unreadable on both sides, so it was not compared")

    def note(self, x: Entry, y: Entry, path: bytes = b"") -> str:
        """Say what a person would miss: an equal build-id does not make two objects the same."""
        a, b = self.facts_of(self.a, x), self.facts_of(self.b, y)
        key = (show(path), "elf.build_id")
        if key in a and key in b and a[key].value == b[key].value:
            return "build-id equal, content differs"
        return ""

    # Facts

    def fields(self, x: Entry, y: Entry) -> None:
        for key, before, after in (
            ("kind", x.kind, y.kind),
            ("origin", _origins(x), _origins(y)),
            ("exclude", ", ".join(x.exclude), ", ".join(y.exclude)),
            ("follow_symlinks", str(x.follow_symlinks), str(y.follow_symlinks)),
            ("commit", _pin(x, "commit"), _pin(y, "commit")),
        ):
            plain = self.a.plain or self.b.plain
            if before != after and not (plain and key in ("kind", "exclude", "origin", "commit")):
                self.fact(x, "", key, before or None, after or None)

    def packet_fields(self) -> None:
        if self.a.plain or self.b.plain:
            return
        before = {claim.name: claim for claim in self.a.packet.claims}
        after = {claim.name: claim for claim in self.b.packet.claims}
        for name in sorted(before.keys() | after.keys()):
            x, y = before.get(name), after.get(name)
            if x != y:
                texts = [f"{c.value} {c.unit} ({c.convention})" if c else None for c in (x, y)]
                change = FactChange(role="", path="", key=f"claim.{name}", from_=texts[0], to=texts[1])
                self.facts["result"].append(change)
        self.scope_fields()

    def scope_fields(self) -> None:
        before, after = _scope(self.a.packet), _scope(self.b.packet)
        for key in sorted(before.keys() | after.keys()):
            x, y = before.get(key), after.get(key)
            if x != y:
                self.facts["identity"].append(FactChange(role="", path="", key=key, from_=x, to=y))

    def facts_of(self, side: Side, entry: Entry) -> dict[tuple[str, str], Fact]:
        found: dict[tuple[str, str], Fact] = {}
        for id in entry.facts:
            record = records.decode(side.fetch(to_raw(id)), f"facts {id}")
            if not isinstance(record, Facts):
                raise MalformedError(id, "is a record but no facts")
            for fact in record.facts:
                key = (fact.path, fact.key)
                count = 1
                while key in found:
                    count += 1
                    key = (fact.path, f"{fact.key}[{count}]")
                found[key] = fact
        return found

    def compare_facts(self, x: Entry, y: Entry) -> None:
        if x.facts == y.facts or (self.a.plain != self.b.plain):
            return
        before, after = self.facts_of(self.a, x), self.facts_of(self.b, y)
        kept = []
        for path, key in sorted(before.keys() | after.keys()):
            a, b = before.get((path, key)), after.get((path, key))
            if a is not None and b is not None and (a.value, a.decimal) == (b.value, b.decimal):
                kept.append(KeptFact(role=x.role, path=path, key=key, value=_value(a) or ""))
            else:
                self.fact(x, path, key, _value(a), _value(b))
        self.kept_facts += kept

    def fact(self, entry: Entry, path: str, key: str, before: str | None, after: str | None) -> None:
        layer = "environment" if entry.kind in _ENVIRONMENT else "identity"
        layer = "result" if entry.kind in _RESULT else layer
        self.facts[layer].append(FactChange(role=entry.role, path=path, key=key, from_=before, to=after))


def _groups(a: tuple[Entry, ...], b: tuple[Entry, ...]) -> Iterator[tuple[list[Entry], list[Entry]]]:
    """Yield the entries of both sides that lie at or below one role, in the order of roles."""
    roles = sorted({entry.role for entry in (*a, *b)}, key=lambda role: role.encode())
    tops: list[str] = []
    for role in sorted(roles, key=lambda role: role.count("/") + bool(role)):
        if not any(top == "" or role.startswith(top + "/") for top in tops):
            tops.append(role)
    for top in sorted(tops):

        def inside(entries: tuple[Entry, ...], top: str = top) -> list[Entry]:
            return [e for e in entries if top == "" or e.role == top or e.role.startswith(top + "/")]

        yield inside(a), inside(b)


def _value(fact: Fact | None) -> str | None:
    if fact is None:
        return None
    value = fact.value
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else _plain(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + f"... ({len(text)} characters)"


def _plain(value: str | int | bool | None) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pin(entry: Entry, kind: str) -> str:
    return ", ".join(pin.value for pin in entry.pins if pin.kind == kind)


def _origins(entry: Entry) -> str:
    return ", ".join(map(origin_text, entry.origins))


def _as_node(entry: Entry) -> TreeEntry | None:
    if entry.tree is not None:
        return TreeEntry(kind="directory", name="x", tree=entry.tree)
    return single(entry)


def _same_bytes(a: TreeEntry, b: TreeEntry) -> bool:
    """Say whether two members are equal in all that both sides state."""
    if a.kind == "symlink" or b.kind == "symlink" or a.state != b.state:
        return a == b
    digests = [(a.blake3, b.blake3), (a.sha256, b.sha256)]
    stated = [(x, y) for x, y in digests if x is not None and y is not None]
    modes_known = a.blake3 is not None and b.blake3 is not None
    return bool(stated) and all(x == y for x, y in stated) and (a.kind == b.kind or not modes_known)


def _change(role: str, path: bytes, a: TreeEntry | None, b: TreeEntry | None, note: str = "") -> MemberChange:
    return MemberChange(role=role, path=show(path), from_=_side(a), to=_side(b), note=note)


def _side(node: TreeEntry | None) -> ReportSide | None:
    if node is None:
        return None
    return ReportSide(
        type=node.kind,
        blake3=node.blake3,
        sha256=node.sha256,
        size=node.size_bytes,
        target=show(node.raw_target()) if node.kind == "symlink" else None,
    )


def diff(a: Side, b: Side) -> DiffReport:
    """Compare two sides; equal subtrees are skipped, no object is read.

    Args:
        a: the first side, from :func:`side`.
        b: the second side.

    Returns:
        What was added, removed and changed, which facts differ in which layer, and what stayed.
    """
    return _Diff(a, b).run()


def _scope(packet: Packet) -> dict[str, str]:
    if packet.scope is None:
        return {}
    found = {f"scope.{name}": str(value) for name, value in packet.scope.at.items()}
    for number, rule in enumerate(packet.scope.rules, 1):
        found[f"scope.rule.{number}"] = rule_text(rule)
    if packet.scope.described_as:
        found["scope.described_as"] = ", ".join(packet.scope.described_as)
    return found
