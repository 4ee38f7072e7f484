"""Re-reading a store: all of it, a sample, or for a time, the least recently checked first."""

import itertools
import random
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Final

from provstore.errors import (
    NotFoundError,
    ProvError,
    StoreDamagedError,
    UsageError,
)
from provstore.files.crew import Crew, spare_cores
from provstore.files.progress import Meter, Reporter
from provstore.ids import RawId
from provstore.records import decode
from provstore.reports import Damage, FsckReport
from provstore.runs.ledger import follow
from provstore.store import objects
from provstore.store.protocol import Mark, Reader, Store, Unit
from provstore.verbs.closing import Needed
from provstore.verbs.collecting import LEDGER, Lost, lost, reach, roots
from provstore.verbs.naming import name_all
from provstore.verbs.passing import DAMAGE, ID_BYTES, PIECE_UNITS, Piece, passing
from provstore.verbs.refreshing import check_graph

WORTH_HELPERS_BYTES: Final = 32 << 20
"""A store that holds less is checked before a helper has begun."""

NOTE_EVERY_S: Final = 1.0
"""Most work of a check by time budget that a kill makes undone."""


class Findings:
    """What a check has looked at and found.

    Attributes:
        bad: reason by id.
        bad_records: those ids of ``bad`` that are records.
        objects, records, bytes: how much was re-hashed.
    """

    def __init__(self, reader: Reader, meter: Meter) -> None:
        self.bad: dict[RawId, str] = {}
        self.bad_records: set[RawId] = set()
        self.objects = 0
        self.records = 0
        self.bytes = 0
        self._reader = reader
        self._meter = meter
        self._generation = reader.generation()

    def check(self, unit: Unit) -> bool:
        """Re-hash one unit; return whether anything in it is damaged."""
        before = len(self.bad)
        for id in unit.objects:
            try:
                size = objects.check(self._reader, id).size_bytes
            except (*DAMAGE, NotFoundError) as error:
                self._note(id, error)
                size = 0
            self.objects += 1
            self.bytes += size
            self._meter.add(size, 1, id.hex().encode())
        for id in unit.records:
            try:
                decode(objects.record(self._reader, id), id.hex())
            except (*DAMAGE, NotFoundError) as error:
                self.bad_records.add(id)
                self._note(id, error)
            self.records += 1
            self._meter.add(0, 0, id.hex().encode())
        return len(self.bad) > before

    def check_all(self, units: Iterable[Unit], helpers: int) -> None:
        """Re-hash units on all cores; what does not pass at once is looked at by itself, here."""
        given: dict[int, list[Unit]] = {}

        def pieces() -> Iterator[Piece]:
            rest = iter(units)
            for number in itertools.count():
                given[number] = list(itertools.islice(rest, PIECE_UNITS))
                if not given[number]:
                    return
                yield number, [tuple(unit) for unit in given[number]]

        with Crew(partial(passing, self._reader), helpers) as crew:
            for number, passed, size in crew.over(pieces()):
                whole = {passed[at : at + ID_BYTES] for at in range(0, len(passed), ID_BYTES)}
                for unit in given.pop(number):
                    size = self._passed(unit, whole, size)

    def _passed(self, unit: Unit, whole: set[RawId], size: int) -> int:
        """Count what passed, its size with the first of it, and look at the rest; returns the size left."""
        rest: tuple[list[RawId], list[RawId]] = ([], [])
        for records, ids in enumerate((unit.objects, unit.records)):
            for id in ids:
                if id not in whole:
                    rest[records].append(id)
                    continue
                self.records += records
                self.objects += 1 - records
                self.bytes += size
                self._meter.add(size, 1 - records, id.hex().encode())
                size = 0
        if rest[0] or rest[1]:
            self.check(Unit(unit.key, tuple(rest[0]), tuple(rest[1])))
        return size

    def _note(self, id: RawId, error: ProvError) -> None:
        # What was listed a moment ago and is gone after a commit was swept; without one, it is lost.
        if not isinstance(error, NotFoundError) or self._reader.generation() == self._generation:
            self.bad[id] = error.message

    def absent(self, needed: Iterable[tuple[Needed, str]]) -> None:
        """Add records that packets need and that cannot be read."""
        for record, reason in needed:
            self.bad.setdefault(record.id, reason)
            self.bad_records.add(record.id)

    def lost(self, gone: Iterable[Lost]) -> None:
        """Add records that the log of refs or the list of verdicts names and that are not there."""
        for item in gone:
            self.bad.setdefault(item.id, "is not in the store")
            self.bad_records.add(item.id)


LOOKS: Final = 20
"""How often fsck looks at what refs reach while other processes keep on removing some of it."""


class Reached:
    """What the refs of a store reach, held against what is there.

    Attributes:
        damaged: one for each place where something bad is needed.
        unreferenced: objects and records that no ref reaches.
    """

    def __init__(self, reader: Reader, found: Findings) -> None:
        self.damaged: list[Damage] = []
        self.unreferenced = 0
        for _ in range(LOOKS):
            generation = reader.generation()
            try:
                packets = roots(reader, 0)
            except StoreDamagedError as error:
                packets = {}
                self.damaged.append(Damage(id="", role="", packet="", reason=error.message))
            broken: list[tuple[Needed, str]] = []
            reached, walked = reach(reader, packets, broken)
            # What a commit took away meanwhile is not lost: look again at what refs reach now.
            if not broken or self.damaged or reader.generation() == generation:
                break
        found.absent(broken)
        gone = [] if self.damaged else lost(reader)
        found.lost(gone)
        here = 0
        for id in _ids(reader):
            here += id in reached.objects
            self.unreferenced += id not in reached.objects
        if here < len(reached.objects):
            for id in sorted(reached.objects):
                if id not in found.bad and reader.info(id) is None:
                    found.bad[id] = "is not in the store"
        self.unreferenced += sum(id not in reached.records for id in reader.records())
        self.damaged += name_all(reader, packets, walked, found.bad, gone)
        if not self.damaged:
            self.damaged += [
                Damage(id=one.id, role=LEDGER, packet="", reason=one.objection.message, path="(entry)")
                for one in follow(reader)[1]
            ]


def _ids(reader: Reader) -> Iterator[RawId]:
    """Yield the id of every object; a row that says nothing sensible is found where it is read."""
    listed = reader.objects()
    while True:
        try:
            for id, _ in listed:
                yield id
        except StoreDamagedError:
            return
        return


def fsck(
    reader: Reader,
    *,
    sample: int | None = None,
    fraction: float | None = None,
    progress: Reporter | None = None,
) -> FsckReport:
    """Re-read a store or pack, and name each damaged thing with the role and packet that need it.

    Nothing is written.

    Args:
        reader: store or pack.
        sample: only so many objects and records, chosen at random; at least 1.
        fraction: only this part of them, over 0 and at most 1.
        progress: is told how far it is.

    Raises:
        UsageError: a sample of nothing.
    """
    count = _sample_size(reader, sample, fraction)
    if count is None:
        found = Findings(reader, Meter(progress, bytes_total=bytes_in(reader)))
        units = reader.units()
    else:
        found = Findings(reader, Meter(progress, files_total=count))
        units = _sampled(reader, count)
    worth = count is None and (bytes_in(reader) or 0) >= WORTH_HELPERS_BYTES
    found.check_all(units, spare_cores() if worth else 0)
    if count is not None and not found.bad:
        return FsckReport(
            objects=found.objects, records=found.records, bytes=found.bytes, damaged=(), whole=False
        )
    reached = Reached(reader, found)
    return FsckReport(
        objects=found.objects,
        records=found.records,
        bytes=found.bytes,
        damaged=tuple(reached.damaged),
        whole=count is None,
        unreferenced=reached.unreferenced,
        graph=check_graph(reader) if count is None else None,
    )


def _sample_size(reader: Reader, sample: int | None, fraction: float | None) -> int | None:
    if sample is None and fraction is None:
        return None
    if sample is not None and fraction is not None:
        raise UsageError("a sample is a number or a part of all, not both")
    if sample is not None:
        if sample < 1:
            raise UsageError("a sample of nothing proves nothing")
        return sample
    part = fraction or 0.0
    if not 0 < part <= 1:
        raise UsageError("a part of all is more than 0 and at most 100 %")
    return max(1, round(_count(reader) * part))


def _count(reader: Reader) -> int:
    """Return how many objects and records are held."""
    return sum(len(unit.objects) + len(unit.records) for unit in reader.units())


def bytes_in(reader: Reader) -> int | None:
    """Return how many bytes are held; None when a damaged row keeps them from being counted."""
    try:
        return reader.stats().plain_bytes
    except StoreDamagedError:
        return None


def _sampled(reader: Reader, count: int) -> Iterator[Unit]:
    """Yield units with a random choice of their members, in storage order."""
    total = _count(reader)
    picked = iter(sorted(random.SystemRandom().sample(range(total), min(count, total))))
    wanted = next(picked, None)
    position = 0
    for unit in reader.units():
        chosen: tuple[list[RawId], list[RawId]] = ([], [])
        for kind, ids in enumerate((unit.objects, unit.records)):
            while wanted is not None and wanted < position + len(ids):
                chosen[kind].append(ids[wanted - position])
                wanted = next(picked, None)
            position += len(ids)
        if chosen[0] or chosen[1]:
            yield Unit(unit.key, tuple(chosen[0]), tuple(chosen[1]))


def fsck_for(store: Store, budget_s: float, *, progress: Reporter | None = None) -> FsckReport:
    """Re-read a store for a time, what was checked longest ago first, and remember how far it came.

    Rounds follow each other: in each, every object and record is read once, however many runs it takes
    and however they end. Something that was begun is finished, so the time may be exceeded by one file.
    What was found damaged earlier in a round is read again, to be named, and does not count.

    Args:
        store: must be writable.
        budget_s: seconds.
        progress: is told how far it is.

    Raises:
        ReadOnlyError: the store was opened for reading; check it in full.
        UsageError: no time.
    """
    if not budget_s > 0:
        raise UsageError("a time budget is more than nothing")
    round_ = _Round(store, time.monotonic() + budget_s, progress)
    round_.run()
    found = round_.found
    damaged: list[Damage] = []
    objects_read, records_read, bytes_read = found.objects, found.records, found.bytes
    round_.read_again()
    if found.bad:
        damaged = Reached(store, found).damaged
    return FsckReport(
        objects=objects_read,
        records=records_read,
        bytes=bytes_read,
        damaged=tuple(damaged),
        whole=False,
        cycle=round_.cycle,
        remaining=round_.remaining(),
        oldest_check=round_.oldest(),
    )


class _Round:
    """One run's part of a round of checks."""

    def __init__(self, store: Store, deadline: float, progress: Reporter | None) -> None:
        self._store = store
        self._deadline = deadline
        state = store.checks()
        self.cycle = state.cycle + 1 if state.finished or not state.cycle else state.cycle
        self._marks = state.marks
        self._units = list(store.units())
        due = [unit for unit in self._units if self._due(unit)]
        due.sort(key=lambda unit: self._marks.get(unit.key, _NEVER)[:2])
        self._todo = due
        self._done = 0
        self.found = Findings(store, Meter(progress, files_total=sum(len(unit.objects) for unit in due)))
        self._earlier = [
            unit for unit in self._units if not self._due(unit) and self._marks[unit.key].damaged
        ]

    def _due(self, unit: Unit) -> bool:
        mark = self._marks.get(unit.key)
        return mark is None or mark.cycle != self.cycle

    def run(self) -> None:
        """Check until the time is up or nothing is left."""
        pending: dict[bytes, Mark] = {}
        noted = time.monotonic()
        self._store.note_checks(self.cycle, pending, finished=not self._todo)
        for unit in self._todo:
            damaged = self.found.check(unit)
            pending[unit.key] = Mark(self.cycle, time.time_ns(), damaged)
            self._done += 1
            now = time.monotonic()
            if now >= self._deadline or self._done == len(self._todo) or now - noted >= NOTE_EVERY_S:
                self._store.note_checks(self.cycle, pending, finished=self._done == len(self._todo))
                self._marks.update(pending)
                pending = {}
                noted = now
            if now >= self._deadline:
                break

    def read_again(self) -> None:
        """Read what was found damaged earlier in this round; it may be repaired by now."""
        whole = {}
        for unit in self._earlier:
            if not self.found.check(unit):
                whole[unit.key] = self._marks[unit.key]._replace(damaged=False)
        if whole:
            self._store.note_checks(self.cycle, whole, finished=self._done == len(self._todo))

    def remaining(self) -> int:
        """Return how many objects and records this round has not come to."""
        return sum(len(unit.objects) + len(unit.records) for unit in self._todo[self._done :])

    def oldest(self) -> str | None:
        """Return the time of the check that is longest ago; None while something was never checked."""
        marks = [self._marks.get(unit.key) for unit in self._units]
        times = [mark.taken_ns for mark in marks if mark is not None]
        if not times or len(times) < len(marks):
            return None
        return datetime.fromtimestamp(min(times) // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_NEVER: Final = Mark(0, 0, False)
