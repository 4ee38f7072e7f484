"""Gathering evidence: the extractors of a policy applied to the members of a packet, through the one door."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from blake3 import blake3

from provstore import canon, records
from provstore.errors import (
    EmptyError,
    FrameError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
)
from provstore.evidence import conventions
from provstore.evidence.finding import Finding, ReaderResult
from provstore.evidence.serverlog import LinePattern, scan_log
from provstore.files.checksums import parse_checksums
from provstore.gates.evidence import Evidence, Listed, Manifest, Placed, Source
from provstore.gates.extracts import EntryFacts, Extract, Lines
from provstore.gates.policy import Policy
from provstore.ids import RawId, object_id, record_id, to_raw
from provstore.paths import show, unshow
from provstore.records.facts import Fact, Facts
from provstore.records.packet import Entry, Packet
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs import pins
from provstore.verbs.members import Member, entry_members

_DAMAGED: Final = (IntegrityError, FrameError)
_STATES: Final = {
    "pointer": "an LFS pointer stands in for the bytes",
    "prefix": "only the beginning of a growing file was sealed",
    "unreadable": "it could not be read when it was sealed",
}


_WHOLE_LOG: Final = ("empty", "line-too-long", "more-findings")
"""Findings of a log that concern every pattern; the last hides whose findings were left out."""


class Gathered(NamedTuple):
    """Evidence, and the facts records that extractors gave.

    Attributes:
        evidence: what gates look at.
        records: id and bytes of each facts record.
    """

    evidence: Evidence
    records: tuple[tuple[RawId, bytes], ...]


class _Gathering:
    def __init__(self, reader: Reader, packet: Packet, policy: Policy, at: Sequence[bytes]) -> None:
        self.reader = reader
        self.at = at
        self.fetch = objects.fetcher(reader)
        self.packet = packet
        self.policy = policy
        self.members = list(self._members(packet))
        self.parents: list[tuple[str, Member]] | None = None
        self.sources: dict[str, list[Source]] = {extract.name: [] for extract in policy.extract}
        self.records: dict[RawId, bytes] = {}

    def run(self) -> Gathered:
        logs: dict[str, list[Lines]] = {}
        for extract in self.policy.extract:
            if isinstance(extract, EntryFacts):
                self._entries(extract)
                continue
            for place, member in self._fitting(extract):
                if isinstance(extract, Lines):
                    logs.setdefault(place, []).append(extract)
                else:
                    self.sources[extract.name].append(self._source(extract, place, member))
        for place, extracts in logs.items():
            self._log(place, extracts)
        evidence = Evidence(
            sources={name: tuple(found) for name, found in self.sources.items()},
            wanted={extract.name: extract.role for extract in self.policy.extract},
            members=tuple(_placed(place, member) for place, member in self.members),
            manifests=self._manifests(),
            claims=self.packet.claims,
            definitions=(*self.policy.metric, *conventions.SHIPPED),
            ledger=self.packet.ledger,
        )
        return Gathered(evidence, tuple(self.records.items()))

    def _members(self, packet: Packet) -> Iterator[tuple[str, Member]]:
        for entry in packet.entries:
            for member in entry_members(self.fetch, entry):
                yield show(member.place()), member

    def _fitting(self, extract: Extract) -> list[tuple[str, Member]]:
        found = self.members
        if extract.parent:
            if self.parents is None:
                self.parents = []
                for parent in self.packet.parents:
                    if self.reader.record(to_raw(parent)) is not None:
                        self.parents += self._members(objects.packet(self.reader, to_raw(parent)))
            found = self.parents
        return [(p, m) for p, m in found if m.node.kind in ("file", "executable") and extract.fits(p)]

    # Bytes

    def _absent(self, member: Member) -> str:
        """Return why the bytes of a member are not here, or nothing."""
        node = member.node
        if node.state is not None:
            return _STATES[node.state]
        if member.entry.custody == "declared" or node.blake3 is None:
            return "only declared: a digest from another document, its bytes were never seen here"
        return "" if self.reader.info(to_raw(node.blake3)) is not None else "its bytes are not in the store"

    def _read(self, id: RawId, place: str) -> bytes:
        """Return the checked bytes of an object; one that is kept outside is read where it lies now.

        Raises:
            NotHeldError: it is kept outside, and nowhere known with these bytes.
        """
        info = self.reader.info(id)
        if info is None or info.placement != "external":
            return objects.read(self.reader, id)
        raw = unshow(place)
        known = [location.path for location in self.reader.locations(id)]
        for path in (*known, *(os.path.join(base, raw) for base in self.at)):
            with suppress(OSError), open(path, "rb") as file:
                data = file.read(objects.WHOLE_LIMIT_BYTES + 1)
                if object_id(data) == id:
                    return data
        raise NotHeldError(id.hex(), "external")

    def _source(self, extract: Extract, place: str, member: Member) -> Source:
        absent = self._absent(member)
        id = member.node.blake3 or ""
        if absent:
            return Source(place, object=id, absent=absent, prefix=extract.prefix)
        try:
            reading = extract.read(self._read(to_raw(id), place))
        except (*_DAMAGED, MalformedError) as error:
            return Source(place, object=id, reading=_damaged(error), prefix=extract.prefix)
        except (NotFoundError, NotHeldError) as error:
            return Source(place, object=id, absent=error.message, prefix=extract.prefix)
        self._keep(extract.kind, extract.VERSION, id, reading.facts)
        return Source(place, object=id, reading=reading, prefix=extract.prefix)

    def _log(self, place: str, extracts: list[Lines]) -> None:
        """Scan a log once for everything that is looked for in it."""
        mine = [member for at, member in self._fitting(extracts[0]) if at == place]
        member = mine[0]
        id, absent = member.node.blake3 or "", self._absent(member)
        patterns: list[LinePattern] = [extract.line_pattern() for extract in extracts]
        reading = None
        if not absent:
            try:
                reading = scan_log(self._chunks(to_raw(id), place), patterns)
            except (*_DAMAGED, MalformedError) as error:
                reading = _damaged(error)
            except (NotFoundError, NotHeldError) as error:
                absent = error.message
        for extract, pattern in zip(extracts, patterns, strict=True):
            own = None if reading is None else _part(reading, extract.prefix, alone=len(extracts) == 1)
            source = Source(place, object=id, absent=absent, reading=own, prefix=extract.prefix)
            self.sources[extract.name].append(source)
            if own is not None:
                digest = blake3(canon.encode(pattern)).hexdigest(8)
                self._keep(f"lines:{digest}", extract.VERSION, id, own.facts)

    def _chunks(self, id: RawId, place: str) -> Iterator[bytes]:
        info = self.reader.info(id)
        if info is not None and info.placement == "external":
            yield self._read(id, place)
        else:
            yield from map(bytes, objects.stream(self.reader, id))

    def _keep(self, extractor: str, version: int, source: str, facts: tuple[Fact, ...]) -> None:
        if facts:
            record = Facts(extractor=extractor, version=version, source=source, facts=facts)
            # Readers give no integer beyond the exact range, so the encoder need not look for one.
            data = canon.encode(record, bounded=True)
            self.records[record_id("facts", data)] = data

    # What the packet itself states

    def _entries(self, extract: EntryFacts) -> None:
        packets = [self.packet]
        if extract.parent:
            present = [p for p in self.packet.parents if self.reader.record(to_raw(p)) is not None]
            packets = [objects.packet(self.reader, to_raw(parent)) for parent in present]
        for packet in packets:
            for entry in packet.entries:
                if extract.fits(entry.role):
                    self._stated(extract, entry.role, _entry_facts(entry) + self._inspected(entry))
        listed = self.members if not extract.parent else self._fitting(extract)
        roles = {entry.role for packet in packets for entry in packet.entries}
        for place, member in listed:
            if place not in roles and extract.fits(place):
                self._stated(extract, place, _member_facts(member))

    def _stated(self, extract: EntryFacts, place: str, facts: list[Fact]) -> None:
        reading = ReaderResult(facts=tuple(facts))
        self.sources[extract.name].append(Source(place, reading=reading, prefix=extract.prefix))

    def _inspected(self, entry: Entry) -> list[Fact]:
        """Return what inspectors found and specs declared, under the extractor's own names."""
        found: list[Fact] = []
        for id in entry.facts:
            record = records.decode(objects.record(self.reader, to_raw(id)), id)
            for fact in record.facts if isinstance(record, Facts) else ():
                found.append(
                    Fact(
                        key=f"{EntryFacts.PREFIX}.{fact.key}",
                        value=fact.value,
                        decimal=fact.decimal,
                        path=fact.path,
                        location=fact.location,
                    )
                )
        return found

    def _manifests(self) -> dict[str, tuple[Manifest, ...]]:
        found: dict[str, tuple[Manifest, ...]] = {}
        for entry in self.packet.entries:
            made = tuple(self._manifest(entry, p.value, p.prefix) for p in entry.pins if p.kind == "manifest")
            if made:
                found[entry.role] = made
        return found

    def _manifest(self, entry: Entry, id: str, prefix: str | None) -> Manifest:
        info = self.reader.info(to_raw(id))
        sha256 = info.sha256.hex() if info else ""
        try:
            data = objects.read(self.reader, to_raw(id))
            lines = parse_checksums(data, f"manifest of {entry.role}", "sha256")
            view = pins.view_manifest(lines, prefix, b"/", None, entry.role)
        except (*_DAMAGED, MalformedError, NotFoundError, NotHeldError, EmptyError) as error:
            return Manifest(id, sha256, (), error.message)
        listed = tuple(
            Listed(show(name), line.digest.algorithm, line.digest.raw.hex(), line.line)
            for name, line in view.lines.items()
        )
        return Manifest(id, sha256, listed)


def _placed(place: str, member: Member) -> Placed:
    node = member.node
    return Placed(place, node.kind, node.blake3, node.sha256, member.entry.custody)


def _damaged(error: IntegrityError | FrameError | MalformedError) -> ReaderResult:
    finding = Finding(code=error.code, severity="error", location="", message=error.message)
    return ReaderResult(findings=(finding,))


def _part(reading: ReaderResult, prefix: str, *, alone: bool) -> ReaderResult:
    """Return the facts of one pattern, and the findings that are about it or about the whole log."""
    marks = (prefix + ".", prefix + "#")
    name = prefix.partition(".")[2]
    facts = tuple(f for f in reading.facts if f.key == prefix or f.key.startswith(marks))
    findings = tuple(f for f in reading.findings if alone or f"'{name}'" in f.message or f.code in _WHOLE_LOG)
    return ReaderResult(facts=facts, findings=findings)


def _member_facts(member: Member) -> list[Fact]:
    node = member.node
    stated: dict[str, str | int | None] = {
        "sha256": node.sha256,
        "blake3": node.blake3,
        "size_bytes": node.size_bytes,
        "custody": member.entry.custody,
    }
    return [
        Fact(key=f"{EntryFacts.PREFIX}.{key}", value=value)
        for key, value in stated.items()
        if value is not None
    ]


def _facts(stated: dict[str, str | int | None]) -> list[Fact]:
    present = [(key, value) for key, value in stated.items() if value is not None]
    return [Fact(key=f"{EntryFacts.PREFIX}.{key}", value=value) for key, value in present]


def _entry_facts(entry: Entry) -> list[Fact]:
    """Return what the packet states of an entry: digests, size, custody, and the pins that held."""
    stated: dict[str, str | int | None] = {
        "sha256": entry.sha256,
        "blake3": entry.blake3,
        "tree": entry.tree,
        "size_bytes": entry.size_bytes,
        "files": entry.files,
        "custody": entry.custody,
    }
    stated |= {pin.kind: pin.value for pin in entry.pins if pin.kind in ("commit", "revision")}
    for origin in entry.origins:
        stated |= {key: getattr(origin, key) for key in ("hub", "git", "url") if getattr(origin, key)}
        if origin.revision:
            stated.setdefault("revision", origin.revision)
    return [
        Fact(key=f"{EntryFacts.PREFIX}.{key}", value=value)
        for key, value in stated.items()
        if value is not None
    ]


def gather(reader: Reader, packet: Packet, policy: Policy, at: Sequence[bytes] = ()) -> Gathered:
    """Read everything that a policy's extractors name.

    Args:
        reader: store or pack that holds the packet.
        packet: the packet.
        policy: what is read.
        at: directories where members may lie that are kept outside.

    Returns:
        The evidence. What is declared, kept outside or absent is there as absent; what is damaged, as an
        error of its reading. Nothing of it raises.
    """
    return _Gathering(reader, packet, policy, at).run()
