"""Looking into packets: members, bytes, cards, histories, sizes."""

from collections.abc import Iterator
from datetime import UTC, datetime

from provstore import records
from provstore.errors import IntegrityError, MalformedError, NotFoundError, NotHeldError
from provstore.ids import Buffer, RawId, to_raw
from provstore.paths import show, unshow
from provstore.records.facts import Facts
from provstore.records.observation import Observation
from provstore.records.packet import Entry, rule_text
from provstore.reports import Listed, RefStep, ShownClaim, ShownEntry, ShowReport, StatsReport
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.store.resolving import resolve
from provstore.verbs import keeping
from provstore.verbs.members import find_member, members, origin_text

SHOWN_FACTS = 12
"""Facts of one entry that a card shows."""


def ls(reader: Reader, packet: RawId, path: str = "") -> Iterator[Listed]:
    """Yield the members of a packet in path order; directories only where they are empty.

    Args:
        reader: store or pack.
        packet: its id.
        path: only what lies at or below this ``role/path``.

    Raises:
        NotFoundError: no member lies there.
    """
    found = objects.packet(reader, packet)
    wanted = unshow(path).strip(b"/")
    hits = 0
    held_back: Listed | None = None
    for member in members(objects.fetcher(reader), found):
        place = member.place()
        if wanted and place != wanted and not place.startswith(wanted + b"/"):
            continue
        node = member.node
        shown = Listed(
            path=show(place),
            type=node.kind,
            size=node.size_bytes,
            blake3=node.blake3,
            sha256=node.sha256,
            role=member.entry.role,
            kind=member.entry.kind,
            custody=member.entry.custody,
            target=show(node.raw_target()) if node.kind == "symlink" else None,
            state=node.state,
        )
        hits += 1
        if held_back is not None and not shown.path.startswith(held_back.path + "/"):
            yield held_back
        held_back = shown if node.kind == "directory" else None
        if held_back is None:
            yield shown
    if held_back is not None:
        yield held_back
    if wanted and not hits:
        raise NotFoundError(show(wanted), "no member of the packet lies there")


def cat(reader: Reader, packet: RawId, path: str) -> Iterator[Buffer]:
    """Yield the bytes of one member; they are checked before the first is given out.

    Raises:
        NotFoundError: no such member, or it has no bytes.
        NotHeldError: its bytes are elsewhere.
        IntegrityError: its bytes are damaged.
    """
    found = objects.packet(reader, packet)
    member, _ = find_member(objects.fetcher(reader), found, path)
    node = member.node
    if node.kind == "symlink":
        yield node.raw_target()
        return
    if node.kind == "directory":
        raise NotFoundError(path, "is a directory; `prov ls` lists it")
    if node.blake3 is None or member.entry.custody == "declared":
        raise NotHeldError(node.sha256 or path, node.state or member.entry.custody)
    yield from objects.stream(reader, to_raw(node.blake3))


def cat_object(reader: Reader, name: str) -> Iterator[Buffer]:
    """Yield the bytes of an object, or the canonical text of a record, by digest or prefix.

    Raises:
        NotFoundError, AmbiguousError, DigestError: see :func:`~provstore.store.resolving.resolve`.
    """
    id = resolve(reader, name)
    if reader.info(id) is not None:
        yield from objects.stream(reader, id)
    else:
        yield objects.record(reader, id)


def show_packet(reader: Reader, packet: RawId, *, verdicts: bool = False) -> ShowReport:
    """Return the card of a packet; with ``verdicts``, also those that were kept for it."""
    found = objects.packet(reader, packet)
    notes = []
    for step in reader.ref_log():
        if step.id == packet and step.observation is not None:
            notes += _observed(reader, step.observation)
    return ShowReport(
        packet=packet.hex(),
        name=found.name,
        refs=tuple(name for name, id in reader.refs() if id == packet),
        entries=tuple(_shown(reader, entry) for entry in found.entries),
        claims=tuple(
            ShownClaim(
                name=claim.name,
                value=claim.value,
                unit=claim.unit,
                metric=claim.metric,
                convention=claim.convention,
                evidence=claim.evidence,
                limits=claim.limits,
            )
            for claim in found.claims
        ),
        parents=found.parents,
        files=sum(entry.files for entry in found.entries),
        size_bytes=sum(entry.size_bytes or 0 for entry in found.entries),
        observations=tuple(notes),
        verdicts=keeping.shown_verdicts(reader, packet) if verdicts else (),
        scope={} if found.scope is None else found.scope.at,
        scope_rules=() if found.scope is None else tuple(rule_text(rule) for rule in found.scope.rules),
        described_as=() if found.scope is None else found.scope.described_as,
        ledger=found.ledger,
    )


def _observed(reader: Reader, id: RawId) -> list[str]:
    try:
        record = records.decode(objects.record(reader, id), id.hex())
    except (NotFoundError, IntegrityError, MalformedError) as error:
        return [f"observation {id.hex()}: {error.message}"]
    if not isinstance(record, Observation):
        return []
    lines = [f"sealed {_utc(int(record.taken_ns))} by {record.tool}"]
    lines += [f"{role or '.'} from {path}" for role, path in sorted(record.sources.items())]
    lines += [f"{key} = {value}" for key, value in sorted(record.variables.items())]
    return lines + list(record.notes)


def _shown(reader: Reader, entry: Entry) -> ShownEntry:
    facts: list[str] = []
    for id in entry.facts:
        record = records.decode(objects.record(reader, to_raw(id)), id)
        if isinstance(record, Facts):
            facts += [
                f"{fact.path + ': ' if fact.path else ''}{fact.key} = {_fact_text(fact.value)}"
                for fact in record.facts
            ]
    more = [f"... {len(facts) - SHOWN_FACTS} more"] if len(facts) > SHOWN_FACTS else []
    return ShownEntry(
        role=entry.role,
        kind=entry.kind,
        custody=entry.custody,
        files=entry.files,
        size_bytes=entry.size_bytes,
        tree=entry.tree,
        blake3=entry.blake3,
        sha256=entry.sha256,
        origins=tuple(map(origin_text, entry.origins)),
        pins=tuple(f"{pin.kind} {pin.value}" for pin in entry.pins),
        exclude=entry.exclude,
        follow_symlinks=entry.follow_symlinks,
        facts=tuple(facts[:SHOWN_FACTS] + more),
    )


def _fact_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def log(reader: Reader, name: str | None = None) -> list[RefStep]:
    """Return the history of one ref, or of all, oldest first.

    Raises:
        NotFoundError: the ref never existed.
    """
    steps = [
        RefStep(
            name=step.name,
            packet=step.id.hex() if step.id is not None else None,
            previous=step.previous.hex() if step.previous is not None else None,
            time=_utc(step.taken_ns),
            sequence=step.sequence,
        )
        for step in reader.ref_log(name)
    ]
    if name is not None and not steps:
        raise NotFoundError(show(name), f"no ref of this name in {reader.where}")
    return steps


def _utc(ns: int) -> str:
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stats(reader: Reader) -> StatsReport:
    """Return the sizes of a store or pack."""
    found = reader.stats()
    return StatsReport(
        store=reader.where,
        objects=found.objects,
        records=found.records,
        refs=found.refs,
        plain_bytes=found.plain_bytes,
        stored_bytes=found.stored_bytes,
        blob_files=found.blob_files,
        readers=found.readers,
        stale_readers=found.stale_readers,
    )
