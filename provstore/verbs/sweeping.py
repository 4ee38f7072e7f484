"""Looking after a store: a check of everything in it, and removal of what nothing needs."""

import time
from collections.abc import Iterable
from typing import Final

from provstore.errors import (
    FrameError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    StoreBusyError,
)
from provstore.files.progress import Meter, Reporter
from provstore.ids import RawId
from provstore.paths import show
from provstore.records import decode
from provstore.records.verdict import Verdict
from provstore.reports import Damage, FsckReport, GcReport
from provstore.store import objects
from provstore.store.protocol import Reader, Store
from provstore.verbs.closing import Closure, Needed
from provstore.verbs.keeping import verdict_ids
from provstore.verbs.members import entry_members

GRACE_S: Final = 14 * 24 * 3600
"""How long a packet that lost its ref stays, unless asked otherwise."""

SWEEP_ATTEMPTS: Final = 5
"""How often gc looks again when a seal commits between looking and removing."""


def roots(reader: Reader, since_ns: int) -> dict[RawId, str]:
    """Return what must stay: packets under refs or lately so, their observations and verdicts.

    Args:
        reader: the store.
        since_ns: nanoseconds since the epoch; steps of the ref log at or after it still protect.
    """
    kept = {id: name for name, id in reader.refs()}
    for step in reader.ref_log():
        if step.observation is not None and step.id in kept:
            kept.setdefault(step.observation, step.name)
        if step.taken_ns >= since_ns:
            for id in (step.id, step.previous, step.observation):
                if id is not None:
                    kept.setdefault(id, step.name)
    for id in list(kept):
        for verdict in verdict_ids(reader, id):
            kept.setdefault(verdict, kept[id])
    return kept


def _reach(reader: Reader, wanted: Iterable[RawId], broken: list[tuple[Needed, str]]) -> Closure:
    """Walk everything that packets need, their parents included where they are here."""
    closure = Closure(objects.fetcher(reader), broken)
    todo = list(wanted)
    while todo:
        id = todo.pop()
        for _ in closure.packet(id):
            pass
        data = reader.record(id)
        if data is not None and b'"parents":' in data:
            parents = [bytes.fromhex(parent) for parent in getattr(decode(data), "parents", ())]
            todo += [p for p in parents if p not in closure.records and reader.record(p) is not None]
    return closure


def gc(store: Store, *, delete: bool = False, grace_s: int = GRACE_S, now_ns: int | None = None) -> GcReport:
    """Find what no ref reaches, and remove it if asked.

    Args:
        store: the store.
        delete: remove; otherwise only report.
        grace_s: seconds for which a packet stays after it lost its ref, and a temporary file after it
            was last touched.
        now_ns: the time, for tests; the wall clock if not given.

    Raises:
        IntegrityError: a record that decides what stays is damaged; nothing is removed.
        StoreBusyError: other writers committed each time between looking and removing.
    """
    now = time.time_ns() if now_ns is None else now_ns
    since = now - grace_s * 1_000_000_000
    for _ in range(SWEEP_ATTEMPTS):
        generation = store.generation()
        broken: list[tuple[Needed, str]] = []
        reached = _reach(store, roots(store, since), broken)
        if broken:
            needed, reason = broken[0]
            raise IntegrityError(needed.id.hex(), f"{reason}; gc cannot tell what it needs, run fsck")
        dead_objects = [(id, info) for id, info in store.objects() if id not in reached.objects]
        dead_records = [id for id in store.records() if id not in reached.records]
        size = sum(info.size_bytes for _, info in dead_objects if info.placement != "external")
        if delete:
            swept = store.sweep([id for id, _ in dead_objects], dead_records, generation)
            if swept is None:
                continue
        leftovers = store.remove_leftovers(since) if delete else []
        return GcReport(
            deleted=delete,
            objects=len(dead_objects),
            records=len(dead_records),
            size_bytes=size,
            kept_objects=len(reached.objects),
            kept_records=len(reached.records),
            leftovers=tuple(leftovers),
            grace_s=grace_s,
        )
    raise StoreBusyError(store.where, "writers that commit again and again")


def fsck(reader: Reader, *, progress: Reporter | None = None) -> FsckReport:
    """Re-read everything in a store, and name each damaged thing with the role and packet that need it.

    Args:
        reader: store or pack.
        progress: is told how far it is.
    """
    meter = Meter(progress, bytes_total=reader.stats().plain_bytes)
    bad: dict[RawId, str] = {}
    held = 0
    inside = [id for id, info in reader.objects() if info.placement != "external"]
    for id in reader.in_storage_order(inside):
        held += 1
        try:
            found = objects.check(reader, id)
            meter.add(found.size_bytes, 1, id.hex().encode())
        except (IntegrityError, FrameError, NotFoundError) as error:
            bad[id] = error.message
    checked = 0
    for id in reader.records():
        checked += 1
        try:
            decode(objects.record(reader, id), id.hex())
        except (IntegrityError, MalformedError, NotFoundError) as error:
            bad[id] = error.message
    return _report(reader, bad, held, checked, meter)


class _Naming:
    """Names damaged and absent things by everything that refers to them."""

    def __init__(self, reader: Reader, bad: dict[RawId, str]) -> None:
        self.reader = reader
        self.fetch = objects.fetcher(reader)
        self.bad = bad
        self.damaged: list[Damage] = []
        self.named: set[RawId] = set()
        self.objects: set[RawId] = set()
        self.records: set[RawId] = set()

    def packet(self, id: RawId, name: str) -> None:
        broken: list[tuple[Needed, str]] = []
        closure = Closure(self.fetch, broken)
        for needed in closure.packet(id):
            if not needed.record and self.reader.info(needed.id) is None:
                self.bad.setdefault(needed.id, "is not in the store")
        for needed, reason in broken:
            role = needed.entry.role if needed.entry is not None else name
            self.name(needed.id, id, role, needed.path, reason)
        if not self.bad.keys().isdisjoint(closure.objects):
            self.members(id)
        self.objects |= closure.objects
        self.records |= closure.records

    def members(self, id: RawId) -> None:
        """Name every place of a packet where a bad object is; one object may be in many."""
        record = decode(objects.record(self.reader, id))
        if isinstance(record, Verdict):
            raw = bytes.fromhex(record.policy)
            self.name(raw, bytes.fromhex(record.packet), "verdict", b"(policy)", self.bad[raw])
            return
        for entry in objects.packet(self.reader, id).entries:
            for pin in entry.pins:
                raw = bytes.fromhex(pin.value) if pin.kind == "manifest" else b""
                if raw in self.bad:
                    self.name(raw, id, entry.role, b"(manifest)", self.bad[raw])
            try:
                for member in entry_members(self.fetch, entry):
                    raw = bytes.fromhex(member.node.blake3 or "")
                    if raw in self.bad:
                        self.name(raw, id, entry.role, member.path, self.bad[raw])
            except (IntegrityError, MalformedError, NotFoundError):
                continue

    def name(self, id: RawId, packet: RawId, role: str, path: bytes, reason: str) -> None:
        self.named.add(id)
        damage = Damage(id=id.hex(), role=role, packet=packet.hex(), reason=reason, path=show(path))
        self.damaged.append(damage)


def _report(reader: Reader, bad: dict[RawId, str], held: int, checked: int, meter: Meter) -> FsckReport:
    naming = _Naming(reader, bad)
    named = {id for _, id in reader.refs()}
    for packet, name in sorted(roots(reader, 0).items()):
        # What the log of refs remembers may have been swept since; what a ref names may not be absent.
        if packet in named or reader.record(packet) is not None:
            naming.packet(packet, name)
    nobody = [
        Damage(id=id.hex(), role="", packet="", reason=reason)
        for id, reason in sorted(bad.items())
        if id not in naming.named
    ]
    unreferenced = sum(id not in naming.objects for id, _ in reader.objects())
    unreferenced += sum(id not in naming.records for id in reader.records())
    return FsckReport(
        objects=held,
        records=checked,
        bytes=meter.bytes_done,
        damaged=(*naming.damaged, *nobody),
        unreferenced=unreferenced,
    )
