"""What a store must keep, and the removal of everything else."""

import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Final, NamedTuple

from provstore.errors import IntegrityError, NotFoundError, StoreBusyError, StoreDamagedError
from provstore.ids import RawId, to_raw
from provstore.records import decode
from provstore.reports import GcReport
from provstore.store import objects
from provstore.store.protocol import Reader, Store
from provstore.verbs.closing import Closure, Needed, noted_records
from provstore.verbs.keeping import is_here, verdict_ids

GRACE_S: Final = 14 * 24 * 3600
"""How long a packet that lost its ref stays, unless asked otherwise."""

SWEEP_ATTEMPTS: Final = 5
"""How often gc looks again when a seal commits between looking and removing."""

LEDGER: Final = "ledger"
"""What names an entry of the ledger, as a ref names a packet."""

BATCH: Final = 200_000
"""Objects and records that are removed in one commit; whole frames, so that none is rewritten twice."""


def roots(reader: Reader, since_ns: int) -> dict[RawId, str]:
    """Return what must stay: packets under refs or lately so, their observations, their verdicts, the ledger.

    What only the log remembers may have been swept already; then it is not among them. What a ref names
    always is.

    Args:
        reader: the store.
        since_ns: nanoseconds since the epoch; steps of the ref log at or after it still protect.
    """
    kept = {id: name for name, id in reader.refs()}
    for step in reader.ref_log():
        ids: tuple[RawId | None, ...] = ()
        if step.taken_ns >= since_ns:
            ids = (step.id, step.previous, step.observation)
        elif step.id in kept:
            ids = (step.observation,)
        for id in ids:
            if id is not None and id not in kept and is_here(reader, id):
                kept[id] = step.name
    for packet in list(kept):
        for id in verdict_ids(reader, packet):
            kept.setdefault(id, kept[packet])
    for id in reader.ledger():
        kept.setdefault(id, LEDGER)
    return kept


class Lost(NamedTuple):
    """A record that the store says it has, and has not.

    Attributes:
        id: of the record.
        packet: packet that it belongs to.
        name: ref of that packet.
        path: what it is to the packet.
    """

    id: RawId
    packet: RawId
    name: str
    path: bytes


def lost(reader: Reader) -> list[Lost]:
    """Return observations and verdicts that are not here although their packets had refs ever since.

    Those of a packet that was without a ref for a while may have been swept meanwhile.
    """
    missing = {item for item in _promised(reader) if not is_here(reader, item.id)}
    # Asked again afterwards: a packet may have lost its ref, and then these, in between.
    return [item for item in _promised(reader) if item in missing] if missing else []


def _promised(reader: Reader) -> Iterator[Lost]:
    named: dict[str, RawId] = {}
    observed: dict[RawId, list[Lost]] = {}
    for step in reader.ref_log():
        named.pop(step.name, None)
        if step.previous is not None and step.previous not in named.values():
            observed.pop(step.previous, None)
        if step.id is not None:
            named[step.name] = step.id
            if step.observation is not None:
                item = Lost(step.observation, step.id, step.name, b"(observation)")
                observed.setdefault(step.id, []).append(item)
    for items in observed.values():
        yield from items
    for name, packet in reader.refs():
        for id in reader.verdicts(packet):
            yield Lost(id, packet, name, b"(verdict)")


def reach(
    reader: Reader, wanted: Iterable[RawId], broken: list[tuple[Needed, str]]
) -> tuple[Closure, list[RawId]]:
    """Walk everything that packets need, their parents included where they are here.

    Args:
        reader: the store.
        wanted: packets and other records to begin with.
        broken: receives what could not be read.

    Returns:
        What was reached, two sets of ids; and the packets among it that were walked, parents included.
    """

    def fetch(id: RawId) -> bytes:
        try:
            return objects.record(reader, id)
        except StoreDamagedError as error:
            raise IntegrityError(id.hex(), error.message) from error

    closure = Closure(fetch, broken)
    todo = list(wanted)
    walked = []
    while todo:
        id = todo.pop()
        if id in closure.records:
            continue
        unread = len(broken)
        for _ in closure.packet(id):
            pass
        walked.append(id)
        if any(needed.id == id for needed, _ in broken[unread:]):
            continue
        try:
            data = objects.record(reader, id)
        except NotFoundError as error:  # swept since it was walked
            broken.append((Needed(id, True, None), error.message))
            continue
        if b'"parents":' in data:
            parents = [to_raw(parent) for parent in getattr(decode(data), "parents", ())]
            todo += [p for p in parents if p not in closure.records and is_here(reader, p)]
        elif b'"kind":"step"' in data:
            todo += [id for id in noted_records(decode(data)) if id not in closure.records]
    return closure, walked


class _Dead(NamedTuple):
    """Things that go together in one commit; ``size_bytes`` of those that are held."""

    objects: list[RawId]
    records: list[RawId]
    size_bytes: int


def _dead(store: Store, reached: Closure) -> Iterator[_Dead]:
    """Yield what was not reached, frame by frame, in batches."""
    batch = _Dead([], [], 0)
    for unit in store.units():
        lost = [id for id in unit.objects if id not in reached.objects]
        batch.objects.extend(lost)
        batch.records.extend(id for id in unit.records if id not in reached.records)
        size = batch.size_bytes + sum(info.size_bytes for id in lost if (info := store.info(id)) is not None)
        batch = batch._replace(size_bytes=size)
        if len(batch.objects) + len(batch.records) >= BATCH:
            yield batch
            batch = _Dead([], [], 0)
    for id, info in store.objects():
        if info.placement == "external" and id not in reached.objects:
            batch.objects.append(id)
            if len(batch.objects) >= BATCH:
                yield batch
                batch = _Dead([], [], 0)
    if batch.objects or batch.records:
        yield batch


class _Gone(NamedTuple):
    """What was removed, or would be."""

    objects: int
    records: int
    size_bytes: int


def _look(store: Store, since_ns: int, *, delete: bool) -> tuple[Closure, _Gone, bool]:
    """Find what is dead and remove it if asked; the last value is false when a writer came in between."""
    generation = store.generation()
    broken: list[tuple[Needed, str]] = []
    reached, _ = reach(store, roots(store, since_ns), broken)
    if broken and store.generation() != generation:
        return reached, _Gone(0, 0, 0), False
    if broken:
        needed, reason = broken[0]
        raise IntegrityError(needed.id.hex(), f"{reason}; gc cannot tell what it needs, run fsck")
    gone = _Gone(0, 0, 0)
    # After a rebuild nothing has a ref, until packs bring them back: all of it would seem dead.
    fresh = 0 < since_ns <= store.rebuilt_ns()
    for batch in () if fresh else _dead(store, reached):
        if delete:
            if store.sweep(batch.objects, batch.records, generation) is None:
                return reached, gone, False
            generation += 1
        gone = _Gone(
            gone.objects + len(batch.objects),
            gone.records + len(batch.records),
            gone.size_bytes + batch.size_bytes,
        )
    return reached, gone, True


def gc(store: Store, *, delete: bool = False, grace_s: int = GRACE_S, now_ns: int | None = None) -> GcReport:
    """Find what no ref reaches, and remove it if asked.

    Args:
        store: the store.
        delete: remove; otherwise only report.
        grace_s: seconds for which a packet stays after it lost its ref, everything after the index was
            rebuilt, and a temporary file after it was last touched.
        now_ns: the time, for tests; the wall clock if not given.

    Raises:
        IntegrityError: a record that decides what stays is damaged; nothing is removed.
        StoreDamagedError: a ref, which decides what stays, is damaged; nothing is removed.
        StoreBusyError: other writers committed each time between looking and removing.
    """
    now = time.time_ns() if now_ns is None else now_ns
    since = now - grace_s * 1_000_000_000
    gone = _Gone(0, 0, 0)
    for attempt in range(1, SWEEP_ATTEMPTS + 1):
        # Sealers that never pause would overtake each look; they wait for the last one.
        alone = delete and attempt == SWEEP_ATTEMPTS
        with store.writing() if alone else nullcontext():
            reached, some, finished = _look(store, since, delete=delete)
        gone = _Gone(*map(sum, zip(gone, some, strict=True)))
        if finished:
            return GcReport(
                deleted=delete,
                objects=gone.objects,
                records=gone.records,
                size_bytes=gone.size_bytes,
                kept_objects=len(reached.objects),
                kept_records=len(reached.records),
                leftovers=tuple(store.remove_leftovers(since)) if delete else (),
                grace_s=grace_s,
            )
    raise StoreBusyError(store.where, "writers that commit again and again")
