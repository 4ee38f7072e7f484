"""What every store must do, as checks that a third-party store can run against itself.

Nothing here needs a test framework: each ``check_*`` method of a class takes a function that makes a new,
empty store, and raises :class:`ContractError` with a sentence when a promise of
:mod:`provstore.store.protocol` is broken.
"""

from collections.abc import Callable, Iterable
from typing import Final

from provstore.errors import (
    FrameError,
    IntegrityError,
    LedgerMovedError,
    NotFoundError,
    NotHeldError,
    ProvError,
    RefConflictError,
    SweptError,
    UsageError,
)
from provstore.ids import RawId, digests, record_id
from provstore.store import frame, objects
from provstore.store.protocol import Location, ObjectInfo, Reader, StatSignature, Store

MakeStore = Callable[[], Store]

SAMPLES: Final[tuple[bytes, ...]] = (b"", b"x", b"line\n" * 5000, bytes(range(256)) * 40, b"\0" * 100_000)
"""Contents of several sizes, compressible and not."""

LARGE: Final = bytes(range(251)) * 20_000
"""An object over every inline limit."""

RECORDS: Final[tuple[bytes, ...]] = tuple(
    b'{"entries":[],"format":"provstore/tree/v1","note":"%d"}' % number for number in range(3)
)
_PLACE: Final = Location(b"/data/a", StatSignature(1, 2, 3, 4, 5))


class ContractError(AssertionError):
    """A store broke a promise; the message says which."""


def require(condition: bool, promise: str) -> None:
    """Raise ContractError unless the promise is kept."""
    if not condition:
        raise ContractError(promise)


def refuses(kinds: "type[ProvError] | tuple[type[ProvError], ...]", work: Callable[[], object]) -> None:
    """Raise ContractError unless ``work`` raises one of ``kinds``."""
    try:
        work()
    except kinds:
        return
    raise ContractError(f"must be refused with {kinds}")


def fill(store: Store) -> dict[RawId, bytes]:
    """Put the samples, a large object, records and refs into a store; return the objects."""
    with store.stage() as stage:
        for data in SAMPLES:
            stage.add_object(digests(data), data)
        writer = stage.blob()
        for start in range(0, len(LARGE), 1 << 20):
            writer.write(LARGE[start : start + (1 << 20)])
        writer.finish(digests(LARGE))
        for data in RECORDS:
            stage.add_record(record_id("tree", data), data)
        stage.set_ref("first", record_id("tree", RECORDS[0]))
        stage.set_ref("a/second é", record_id("tree", RECORDS[1]))
        stage.commit()
    return {digests(data).blake3: data for data in (*SAMPLES, LARGE)}


def _joined(reader: Reader, id: RawId) -> bytes:
    return b"".join(bytes(chunk) for chunk in reader.chunks(id))


class ReaderContract:
    """Promises about reading, for stores that can only be read too."""

    def check_filled(self, reader: Reader) -> None:
        """Check a reader of the content of :func:`fill`; what it names with refs it may also leave out."""
        held = {digests(data).blake3: data for data in (*SAMPLES, LARGE)}
        for id, data in held.items():
            info = reader.info(id)
            require(info is not None, "info() knows every object")
            if info is not None:
                require(info.size_bytes == len(data), "info() states the plain size")
                require(info.sha256 == digests(data).sha256, "info() states the SHA-256")
                require(info.placement != "external", "a held object is inline or a blob")
            require(_joined(reader, id) == data, "chunks() gives the bytes in order")
            require(objects.check(reader, id).blake3 == id, "the one door finds it whole")
        require([id for id, _ in reader.objects()] == sorted(held), "objects() yields all, by id")
        ids = sorted(record_id("tree", data) for data in RECORDS)
        require(list(reader.records()) == ids, "records() yields all, by id")
        for data in RECORDS:
            require(reader.record(record_id("tree", data)) == data, "record() gives the bytes")
        self._check_unknown(reader, held)
        self._check_matches(reader, held)

    def _check_unknown(self, reader: Reader, held: Iterable[RawId]) -> None:
        unknown = bytes(32)
        require(reader.info(unknown) is None, "info() of an unknown id is None")
        require(reader.record(unknown) is None, "record() of an unknown id is None")
        require(reader.record(digests(b"x").blake3) is None, "an object is no record")
        require(reader.info(record_id("tree", RECORDS[0])) is None, "a record is no object")
        refuses(NotFoundError, lambda: list(reader.chunks(unknown)))
        order = reader.in_storage_order([unknown, *held])
        require(sorted(order) == sorted([unknown, *held]), "in_storage_order() keeps every id")
        require(reader.ref("no such ref") is None, "ref() of an unknown name is None")
        require(reader.locations(unknown) == [], "locations() of an unknown id are none")
        require(reader.cached(b"no such key") is None, "cached() of an unknown key is None")

    def _check_matches(self, reader: Reader, held: Iterable[RawId]) -> None:
        for id in held:
            require(reader.match("blake3", id.hex()) == [id], "match() finds a whole id")
            require(id in reader.match("blake3", id.hex()[:8]), "match() finds a prefix")
            info = reader.info(id)
            if info is not None:
                require(reader.match("sha256", info.sha256.hex()) == [id], "match() finds a SHA-256")
        require(reader.match("blake3", "f" * 64) == [], "match() of nothing is empty")


class StoreContract(ReaderContract):
    """Promises about reading and writing.

    Example:
        >>> from provstore.store.memory import MemoryStore
        >>> StoreContract().run(MemoryStore)
    """

    def run(self, make_store: MakeStore) -> None:
        """Run every check, each on a new store."""
        for check in self.checks():
            getattr(self, check)(make_store)

    @classmethod
    def checks(cls) -> list[str]:
        """Return the names of the checks that take a function that makes a store."""
        return [name for name in dir(cls) if name.startswith("check_") and name != "check_filled"]

    def check_reading(self, make_store: MakeStore) -> None:
        """What was committed can be read, as stored."""
        store = make_store()
        fill(store)
        self.check_filled(store)
        first, second = (record_id("tree", data) for data in RECORDS[:2])
        require(store.refs() == [("a/second é", second), ("first", first)], "refs() yields all, by name")
        require(store.ref("first") == first, "ref() names the packet")
        stats = store.stats()
        require((stats.objects, stats.records, stats.refs) == (len(SAMPLES) + 1, 3, 2), "stats() counts")
        plain = sum(map(len, SAMPLES)) + len(LARGE)
        require(stats.plain_bytes == plain, "stats() sums the plain sizes")
        store.close()
        store.close()

    def check_empty(self, make_store: MakeStore) -> None:
        """A new store holds nothing."""
        store = make_store()
        require(list(store.objects()) == [] and list(store.records()) == [], "a new store is empty")
        require(store.refs() == [] and store.ref_log() == [], "a new store has no refs")
        with store.stage() as stage:
            counts = stage.commit()
        require(tuple(counts) == (0, 0, 0, 0, 0), "committing nothing does nothing")

    def check_all_or_nothing(self, make_store: MakeStore) -> None:
        """A stage shows nothing before its commit, and never anything without one."""
        store = make_store()
        before = store.generation()
        data = SAMPLES[2]
        with store.stage() as stage:
            stage.add_object(digests(data), data)
            stage.add_record(record_id("tree", RECORDS[0]), RECORDS[0])
            stage.set_ref("run", bytes(32))
            require(stage.has_object(digests(data).blake3), "a stage knows its own objects")
            require(stage.has_record(record_id("tree", RECORDS[0])), "a stage knows its own records")
            require(store.info(digests(data).blake3) is None, "nothing is visible before the commit")
        require(store.info(digests(data).blake3) is None, "nothing is visible without a commit")
        require(store.ref("run") is None and store.generation() == before, "the store is as it was")
        refuses(UsageError, stage.commit)

    def check_commits_once(self, make_store: MakeStore) -> None:
        """A stage commits once."""
        with make_store().stage() as stage:
            stage.add_object(digests(b"x"), b"x")
            stage.commit()
            refuses(UsageError, stage.commit)

    def check_work_counts(self, make_store: MakeStore) -> None:
        """A commit counts what was new, and adds nothing twice."""
        store = make_store()
        for expected in (1, 0):
            with store.stage() as stage:
                stage.add_object(digests(b"x"), b"x")
                stage.add_object(digests(b"x"), b"x")
                stage.add_record(record_id("tree", RECORDS[0]), RECORDS[0])
                stage.add_record(record_id("tree", RECORDS[0]), RECORDS[0])
                stage.add_cached({b"k": b"v"})
                counts = stage.commit()
            require((counts.objects, counts.records) == (expected, expected), "only what is new is counted")

    def check_wrong_sizes(self, make_store: MakeStore) -> None:
        """Bytes of another length than was hashed are refused."""
        store = make_store()
        with store.stage() as stage:
            refuses(IntegrityError, lambda: stage.add_object(digests(b"xy"), b"x"))
            writer = stage.blob()
            writer.write(b"x" * 10)
            refuses(IntegrityError, lambda: writer.finish(digests(b"x")))
            refuses(FrameError, lambda: stage.add_frame(frame.pack([b"abc"]), [digests(b"ab")]))
            refuses(UsageError, lambda: stage.add_git(b"short", digests(b"x").blake3))
        require(list(store.objects()) == [], "nothing of it is stored")

    def check_frames(self, make_store: MakeStore) -> None:
        """A frame gives each of its members, also those that were there already."""
        store = make_store()
        parts = [b"one", b"", b"three" * 100]
        with store.stage() as stage:
            stage.add_object(digests(parts[0]), parts[0])
            stage.add_frame(frame.pack(parts), [digests(part) for part in parts])
            require(stage.commit().objects == 3, "each member counts once")
        for part in parts:
            require(_joined(store, digests(part).blake3) == part, "each member has its bytes")

    def check_blobs(self, make_store: MakeStore) -> None:
        """A discarded blob leaves nothing; a finished one is held."""
        store = make_store()
        with store.stage() as stage:
            gone = stage.blob()
            gone.write(LARGE[:1000])
            gone.discard()
            kept = stage.blob()
            kept.write(LARGE)
            kept.finish(digests(LARGE))
            stage.commit()
        require(
            [id for id, _ in store.objects()] == [digests(LARGE).blake3], "only the finished one is there"
        )

    def check_external(self, make_store: MakeStore) -> None:
        """An external object is known, not held; a copy that comes later is held, and stays."""
        store = make_store()
        found = digests(b"weights")
        with store.stage() as stage:
            stage.add_external(found, _PLACE)
            require(not stage.has_object(found.blake3), "an external object is not held")
            stage.commit()
        info = ObjectInfo(found.size_bytes, found.sha256, "external")
        require(store.info(found.blake3) == info, "info() of an external object says so")
        refuses(NotHeldError, lambda: list(store.chunks(found.blake3)))
        require(store.locations(found.blake3) == [_PLACE], "its location is known")
        moved = _PLACE._replace(signature=StatSignature(9, 9, 9, 9, 9))
        with store.stage() as stage:
            stage.add_object(found, b"weights")
            stage.add_location(found.blake3, moved)
            stage.commit()
        require(_joined(store, found.blake3) == b"weights", "a copy that comes later is held")
        require(store.locations(found.blake3) == [moved], "a path has one location, the latest")
        with store.stage() as stage:
            stage.add_absent(found.blake3, info)
            stage.commit()
        require(_joined(store, found.blake3) == b"weights", "a held copy stays held")

    def check_lookups(self, make_store: MakeStore) -> None:
        """Git ids find objects; the stat cache keeps, replaces and forgets values."""
        store = make_store()
        git = bytes(range(20))
        with store.stage() as stage:
            stage.add_object(digests(b"x"), b"x")
            stage.add_git(git, digests(b"x").blake3)
            stage.add_cached({b"a": b"1", b"b": b"2"})
            stage.commit()
        require(store.match("git", git.hex()) == [digests(b"x").blake3], "a Git id finds its object")
        require(store.match("git", "ff") == [], "another does not")
        with store.stage() as stage:
            stage.add_cached({b"a": None, b"b": b"3"})
            stage.commit()
        require((store.cached(b"a"), store.cached(b"b")) == (None, b"3"), "the stat cache does as told")
        require(
            store.cached_many([b"b", b"c"]) == [b"3", None], "many values come in the order of their keys"
        )

    def check_verdicts(self, make_store: MakeStore) -> None:
        """Verdicts of a packet are kept in order, each once, and stay when the stat cache is emptied."""
        store = make_store()
        packet, one, two = bytes([1]) * 32, bytes([2]) * 32, bytes([3]) * 32
        require(store.verdicts(packet) == [], "a packet has no verdicts at first")
        for verdict in (two, one, two):
            with store.stage() as stage:
                stage.add_verdict(packet, verdict)
                stage.add_cached({b"k": b"v"})
                stage.commit()
        store.sweep([], [], store.generation())
        require(store.cached(b"k") is None, "a sweep empties the stat cache")
        require(store.verdicts(packet) == [two, one], "verdicts stand in the order in which they were noted")

    def check_ledger(self, make_store: MakeStore) -> None:
        """The ledger grows by one entry a commit, each after the newest; a sweep takes none away."""
        store = make_store()
        require(store.ledger() == [], "a new store has no ledger")
        ids = [record_id("tree", data) for data in RECORDS]
        for at, (id, data) in enumerate(zip(ids, RECORDS, strict=True)):
            after = ids[at - 1] if at else None
            for wrong in {bytes(32), *ids[:at], None} - {after}:
                with store.stage() as stage:
                    stage.add_record(id, data)
                    stage.append_ledger(id, wrong)
                    refuses(LedgerMovedError, stage.commit)
            require(store.record(id) is None, "what comes after another entry leaves nothing")
            with store.stage() as stage:
                stage.add_record(id, data)
                stage.append_ledger(id, after)
                refuses(UsageError, lambda: stage.append_ledger(id, after))  # noqa: B023
                stage.commit()
            require(store.ledger() == ids[: at + 1], "entries stand in their order")
        store.sweep([], [], store.generation())
        require(store.ledger() == ids, "a sweep takes no entry away")

    def check_refs(self, make_store: MakeStore) -> None:
        """Refs move, only from where they are expected, and every step is remembered."""
        store = make_store()
        one, two = bytes([1]) * 32, bytes([2]) * 32
        steps = [("run", one, None), ("run", two, one), ("run", None, two)]
        for name, target, expected in steps:
            with store.stage() as stage:
                stage.set_ref(name, target, expected=expected, observation=one if target else None)
                stage.commit()
            require(store.ref(name) == target, "a ref names what it was moved to")
        log = store.ref_log("run")
        require([(s.id, s.previous) for s in log] == [(one, None), (two, one), (None, two)], "steps in order")
        require([step.sequence for step in log] == [1, 2, 3], "steps are numbered from 1")
        times = [step.taken_ns for step in log]
        require(times == sorted(set(times)), "time goes forward")
        with store.stage() as stage:
            stage.add_object(digests(b"x"), b"x")
            stage.set_ref("run", one, expected=two)
            refuses(RefConflictError, stage.commit)
        require(store.info(digests(b"x").blake3) is None and store.ref("run") is None, "all or nothing")
        with store.stage() as stage:
            for bad in ("", "x" * 481, "\udcff"):
                refuses(UsageError, lambda name=bad: stage.set_ref(name, one))  # type: ignore[misc]

    def check_generation(self, make_store: MakeStore) -> None:
        """The generation grows with every commit and sweep."""
        store = make_store()
        seen = [store.generation()]
        for data in (b"x", b"y"):
            with store.stage() as stage:
                stage.add_object(digests(data), data)
                stage.commit()
            seen.append(store.generation())
        store.sweep([digests(b"x").blake3], [], seen[-1])
        seen.append(store.generation())
        require(seen == sorted(set(seen)), "it grows each time")

    def check_sweeping(self, make_store: MakeStore) -> None:
        """A sweep removes what it is told, keeps the rest whole, and never works from an old look."""
        store = make_store()
        held = fill(store)
        gone = sorted(held)[::2]
        dropped = record_id("tree", RECORDS[2])
        require(store.sweep(gone, [dropped], store.generation() - 1) is None, "an old look removes nothing")
        require(all(store.info(id) is not None for id in gone), "and nothing is gone")
        counts = store.sweep(gone, [dropped], store.generation())
        require(counts is not None and (counts.objects, counts.records) == (len(gone), 1), "it counts")
        for id, data in held.items():
            if id in gone:
                require(store.info(id) is None, "what was swept is unknown")
            else:
                require(_joined(store, id) == data, "what stays is whole")
        require(store.record(dropped) is None, "a swept record is gone")
        require(store.record(record_id("tree", RECORDS[0])) == RECORDS[0], "the others are not")
        fill(store)
        self.check_filled(store)

    def check_sweep_against_stage(self, make_store: MakeStore) -> None:
        """A stage that relied on something that was swept meanwhile does not commit."""
        store = make_store()
        fill(store)
        with store.stage() as stage:
            require(stage.has_object(digests(b"x").blake3), "it is there")
            stage.set_ref("relies", bytes(32))
            store.sweep([digests(b"x").blake3], [], store.generation())
            refuses(SweptError, stage.commit)
        require(store.ref("relies") is None, "the store is as the sweep left it")
