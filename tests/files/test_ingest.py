"""A directory into a store: what is read, hashed, written and synced, counted; and what is refused."""

import os
import random
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from workbench import (
    STORES,
    after_walk,
    as_nobody,
    at_most,
    listed,
    open_store_of,
    open_to_all,
    packet_of,
    plant,
    seal,
    seal_text,
    snapshot,
)

from provstore.errors import (
    SourceChangedError,
    SourceUnreadableError,
    SpecialFileError,
    StoreFullError,
    UsageError,
)
from provstore.files import hashing, pool
from provstore.files.root import pack_row
from provstore.ids import digests, object_id, to_raw
from provstore.reports import SealReport
from provstore.store import gathering, objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.protocol import Store
from provstore.verbs.checking import fsck
from provstore.verbs.restoring import restore
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.verifying import verify


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryStore | LmdbStore]:
    opened = open_store_of(request.param, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def lmdb(tmp_path: Path) -> Iterator[LmdbStore]:
    opened = LmdbStore.create(os.fspath(tmp_path / "store"))
    yield opened
    opened.close()


def sealed(store: Store, place: Path, **options: object) -> SealReport:
    return seal_paths(store, [place], options=SealOptions(**options))  # type: ignore[arg-type]


def total(place: Path) -> int:
    return sum(len(content) for kind, content in snapshot(place).values() if kind in ("file", "executable"))


# Work


def test_every_byte_is_read_and_hashed_once(store: Store, tmp_path: Path) -> None:
    dice = random.Random(1)
    place = plant(tmp_path / "t", {f"d{n % 5}/f{n}": dice.randbytes(n * 37) for n in range(200)})
    plant(place, {"large": dice.randbytes(9 << 20), "empty": "", "l": "->large"})
    report = sealed(store, place)
    assert report.bytes_read == report.bytes_hashed == total(place)
    assert report.files == 202
    assert report.transactions == 1


def test_the_kernel_counts_each_byte_once(lmdb: LmdbStore, tmp_path: Path) -> None:
    """Of less than a stage keeps in memory: what it spools to a file is read back."""
    dice = random.Random(2)
    place = plant(tmp_path / "t", {f"f{n}": dice.randbytes(10_000) for n in range(400)})
    assert total(place) < gathering.MEMORY_BYTES
    plant(place, {"large": dice.randbytes(12 << 20)})

    def asked() -> int:
        lines = Path("/proc/self/io").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("rchar")))

    time.sleep(hashing.YOUNG_NS / 1e9 + 0.1)  # a young file is read twice
    before = asked()
    report = sealed(lmdb, place, workers=0)
    here = asked() - before
    assert report.bytes_read == total(place)
    assert total(place) <= here < total(place) + (64 << 10)


def test_a_small_seal_is_one_transaction_and_few_waits(lmdb: LmdbStore, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {f"f{n}": f"content {n}" for n in range(100)})
    report = sealed(lmdb, place)
    assert report.transactions == 1
    assert 1 <= report.syncs <= 2
    assert report.objects == 100


def test_waits_do_not_grow_with_the_number_of_files(
    lmdb: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "SMALL_BYTES", 1000)
    dice = random.Random(3)
    few = plant(tmp_path / "few", {f"a{n}": dice.randbytes(2000 + n) for n in range(40)})
    many = plant(tmp_path / "many", {f"b{n}": dice.randbytes(2000 + n) for n in range(400)})
    plant(many, {f"s{n}": f"{n}" for n in range(300)})
    first, second = sealed(lmdb, few), sealed(lmdb, many)
    assert first.transactions == second.transactions == 1
    assert lmdb.stats().blob_files == 440
    assert first.syncs == second.syncs <= 3


def test_a_second_store_of_the_same_bytes_writes_nothing_of_them(store: Store, tmp_path: Path) -> None:
    data = random.Random(4).randbytes(300_000)
    sealed(store, plant(tmp_path / "a", {"x": data, "d/y": data[:1000]}))
    report = sealed(store, plant(tmp_path / "b", {"other": data, "e/name": data[:1000]}))
    assert report.objects == 0
    assert report.bytes_read == 301_000
    assert report.bytes_stored < 2000


# Duplicates


def test_duplicate_contents_are_stored_once(store: Store, tmp_path: Path) -> None:
    dice = random.Random(5)
    small, large = dice.randbytes(100_000), dice.randbytes(5 << 20)
    place = plant(tmp_path / "t", {f"d{n}/s{n}": small for n in range(20)})
    plant(place, {f"d{n}/l{n}": large for n in range(4)})
    report = sealed(store, place)
    assert report.objects == 2
    assert report.files == 24
    assert report.bytes_stored < len(small) + len(large) + 20_000
    assert store.stats().objects == 2
    assert len(listed(store, to_raw(report.packet))) == 24


def test_one_large_content_at_many_paths_is_one_file(lmdb: LmdbStore, tmp_path: Path) -> None:
    data = random.Random(6).randbytes(6 << 20)
    sealed(lmdb, plant(tmp_path / "t", {f"copy{n}": data for n in range(8)}))
    assert lmdb.stats().blob_files == 1
    blobs = [path for path in (tmp_path / "store" / "blobs").rglob("*") if path.is_file()]
    assert len(blobs) == 1
    assert [path.name for path in (tmp_path / "store" / "tmp").iterdir()] in ([], ["writer.lock"])


@pytest.mark.parametrize("workers", [0, 2])
def test_duplicates_in_batches_that_are_read_at_once_are_stored_once(
    lmdb: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Half of each batch is in the batch beside it as well, which another worker has in hand meanwhile."""
    monkeypatch.setattr(hashing, "BATCH_FILES", 64)
    dice = random.Random(8)
    half = hashing.BATCH_FILES // 2
    contents = [dice.randbytes(4000) for _ in range(half * 9)]
    order: list[bytes] = []
    for start in range(0, len(contents) - half, half):
        pairs = zip(contents[start : start + half], contents[start + half : start + 2 * half], strict=True)
        order += [content for pair in pairs for content in pair]
    place = plant(tmp_path / "t", {f"{number:06}": content for number, content in enumerate(order)})
    report = sealed(lmdb, place, workers=workers)
    unique = sum(map(len, contents))
    assert report.bytes_read == len(order) * 4000
    assert report.objects == len(contents)
    assert report.bytes_stored < unique * 1.1
    assert verify(lmdb, to_raw(report.packet)).outcome == "PASS"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_dies_takes_no_content_along(
    lmdb: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """What another batch left to the dead worker's must come from somewhere, though its source is gone."""
    monkeypatch.setattr(hashing, "BATCH_FILES", 64)
    dice = random.Random(9)
    contents = [dice.randbytes(3000) for _ in range(hashing.BATCH_FILES)]
    place = tmp_path / "t"
    for copy in range(4):
        plant(place, {f"{copy}{n:05}": data for n, data in enumerate(contents)})
    stepped = pool._Worker.step
    steps = 0

    def dying(self: pool._Worker, wanted: pool.Wanted) -> pool.Packed | None:
        nonlocal steps
        steps += 1
        if steps == 1:
            # Nobody tells it what is wanted, or its answer might be in the pipe already when it dies.
            monkeypatch.setattr(self, "_send", lambda message: None)
        found = stepped(self, wanted)
        if steps == 1:
            self._process.kill()
            self._process.wait()
            # The files of its batch change before they can be read again.
            for path, _ in self.jobs:
                (place / os.fsdecode(path)).write_bytes(b"changed " + path)
        return found

    monkeypatch.setattr(pool._Worker, "step", dying)
    try:
        report = sealed(lmdb, place, workers=workers)
    except SourceChangedError:
        assert lmdb.refs() == []
        return
    assert verify(lmdb, to_raw(report.packet)).outcome == "PASS"
    assert fsck(lmdb).damaged == ()
    restore(lmdb, to_raw(report.packet), tmp_path / "out")
    assert snapshot(tmp_path / "out") == snapshot(place)


# Sameness


def test_the_packet_does_not_depend_on_how_the_bytes_came_in(tmp_path: Path) -> None:
    dice = random.Random(10)
    place = plant(tmp_path / "t", {f"d{n % 9}/{n}": dice.randbytes(n) for n in range(900)})
    plant(place, {"big": dice.randbytes(5 << 20), "x": "+x#!", "l": "->x", "e": None})
    found = set()
    for workers in (0, 1, 3):
        for kind in STORES:
            (tmp_path / f"{workers}").mkdir(exist_ok=True)
            store = open_store_of(kind, tmp_path / f"{workers}")
            found.add(seal(store, place, workers=workers))
            store.close()
    memory = MemoryStore()
    found.add(seal(memory, place, keep=False))
    copy = tmp_path / "elsewhere" / "another name"
    restore_from = MemoryStore()
    packet = seal(restore_from, place)
    restore(restore_from, packet, copy)
    found.add(seal(MemoryStore(), copy))
    assert found == {packet}


def test_digests_beside_every_member_are_those_of_its_bytes(store: Store, tmp_path: Path) -> None:
    dice = random.Random(11)
    place = plant(tmp_path / "t", {"a": dice.randbytes(70_000), "d/b": b"", "d/c": dice.randbytes(5 << 20)})
    packet = seal(store, place)
    for path, member in listed(store, packet).items():
        expected = digests((place / path).read_bytes())
        assert (member.blake3, member.sha256, member.size) == (
            expected.blake3.hex(),
            expected.sha256.hex(),
            expected.size_bytes,
        )
        assert objects.read(store, expected.blake3) == (place / path).read_bytes()
    (entry,) = packet_of(store, packet).entries
    assert entry.files == 3
    assert entry.size_bytes == total(place)


# Refusals leave nothing


@pytest.fixture
def untouched(lmdb: LmdbStore) -> Iterator[LmdbStore]:
    """A store that must be as empty afterwards as it was before."""
    yield lmdb
    assert lmdb.refs() == []
    assert list(lmdb.objects()) == []
    assert list(lmdb.records()) == []
    left = [path.name for name in ("tmp", "blobs") for path in Path(lmdb.path, name).rglob("*")]
    assert [name for name in left if name != "writer.lock"] == []


@pytest.mark.parametrize("size", [100, 6 << 20])
def test_a_file_that_changes_while_it_is_read_fails_the_seal(
    untouched: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    place = plant(tmp_path / "t", {"ok": "x", "restless": bytes(size), "other": bytes(5 << 20)})
    path = place / "restless"

    def touching(status: os.stat_result) -> bytes:
        row = pack_row(status)
        if status.st_ino == os.stat(path).st_ino:
            os.utime(path)
        return row

    monkeypatch.setattr("provstore.files.hashing.pack_row", touching)
    with pytest.raises(SourceChangedError, match=r"restless.*(mtime|ctime)"):
        seal(untouched, place, workers=0)


@pytest.mark.parametrize("size", [100, 6 << 20])
def test_a_file_that_vanishes_before_it_is_read_fails_the_seal(
    untouched: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    place = plant(tmp_path / "t", {"a": "x", "gone": bytes(size)})

    def then() -> None:
        (place / "gone").unlink(missing_ok=True)

    after_walk(monkeypatch, then)
    with pytest.raises(SourceUnreadableError, match=r"gone.*No such file"):
        seal(untouched, place)


def test_a_special_file_that_appears_after_the_walk_fails_the_seal(
    untouched: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = plant(tmp_path / "t", {"a": "x", "f": ""})

    def then() -> None:
        (place / "f").unlink()
        os.mkfifo(place / "f")

    after_walk(monkeypatch, then)
    with at_most(10), pytest.raises((SourceUnreadableError, SpecialFileError), match="f"):
        seal(untouched, place)


def test_unreadable_files_fail_the_seal_all_of_them_named(tmp_path: Path) -> None:
    def sealing(place: Path) -> str:
        store = LmdbStore.create(os.fspath(place / "store"))
        try:
            seal(store, place / "t")
        except SourceUnreadableError as error:
            assert store.refs() == []
            assert list(store.objects()) == []
            return str(error)
        finally:
            store.close()
        return "sealed"

    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y", "d/neither": bytes(5 << 20), "shut/f": "z"})
        for name in ("no", "d/neither", "shut"):
            (place / "t" / name).chmod(0)
        text = as_nobody(lambda: sealing(place))
        (place / "t" / "shut").chmod(0o755)
    for name in ("no", "d/neither", "shut", "Permission denied"):
        assert name in text


def test_holes_are_recorded_only_where_the_sealer_says_so(tmp_path: Path) -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y", "shut/f": "z"})
        (place / "t" / "no").chmod(0)
        (place / "t" / "shut").chmod(0)

        def sealing() -> tuple[dict[str, str | None], str, int]:
            store = MemoryStore()
            packet = seal(store, place / "t", allow_unreadable=True)
            states = {path: member.state for path, member in listed(store, packet).items()}
            return states, verify(store, packet).outcome, packet_of(store, packet).entries[0].files

        states, outcome, files = as_nobody(sealing)
        (place / "t" / "shut").chmod(0o755)
    assert states == {"ok": None, "no": "unreadable", "shut": "unreadable"}
    assert outcome == "INCOMPLETE"
    assert files == 1


def test_what_lies_in_the_store_is_never_evidence(lmdb: LmdbStore, tmp_path: Path) -> None:
    for inside in ("", "blobs", "data.mdb"):
        with pytest.raises(UsageError, match="store"):
            seal(lmdb, tmp_path / "store" / inside)


def test_a_tree_that_holds_the_store_seals_without_it(tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"f": "x"})
    store = LmdbStore.create(os.fspath(place / ".prov"))
    first = seal(store, place)
    assert seal(store, place) == first == seal(store, place)
    assert listed(store, first).keys() == {"f"}
    report = sealed(store, place)
    assert [(excluded.path, excluded.rule) for excluded in report.excluded] == [(".prov", "the store itself")]
    other = LmdbStore.open(store.path, writable=False)
    other.close()
    seal(store, plant(place, {"g": "y"}))
    store.close()


def test_the_locks_of_the_store_survive_a_seal_of_its_parent(tmp_path: Path) -> None:
    """Opening and closing a file of the index would silently drop this process's locks on it."""
    place = plant(tmp_path / "t", {"f": "x"})
    store = LmdbStore.create(os.fspath(place / "s"))
    inode = (place / "s" / "lock.mdb").stat().st_ino

    def locks() -> list[str]:
        lines = Path("/proc/locks").read_text().splitlines()
        return sorted(line.split(":", 1)[1] for line in lines if f":{inode} " in line)

    store.refs()
    before = locks()
    assert before
    seal(store, place)
    seal(store, place, follow_symlinks=True)
    assert locks() == before
    store.close()


# Modes


@pytest.mark.parametrize("how", ["replace", "chmod"])
def test_the_kind_is_that_of_the_bytes_that_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A script that became executable between the walk and the reading is sealed as it was read."""
    place = plant(tmp_path / "t", {"run.sh": "#!/bin/sh\n", "other": "x"})

    def then() -> None:
        if how == "replace":
            plant(place, {"new": "+x#!/bin/sh\necho\n"})
            (place / "new").rename(place / "run.sh")
        else:
            (place / "run.sh").chmod(0o755)

    store = MemoryStore()
    after_walk(monkeypatch, then)
    packet = seal(store, place)
    monkeypatch.undo()
    assert listed(store, packet)["run.sh"].type == "executable"
    assert seal(MemoryStore(), place) == packet


def test_only_the_owners_execute_bit_counts(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a": "x", "b": "x", "c": "x"})
    (place / "a").chmod(0o744)
    (place / "b").chmod(0o655)
    (place / "c").chmod(0o4600)
    kinds = {path: member.type for path, member in listed(store, seal(store, place)).items()}
    assert kinds == {"a": "executable", "b": "file", "c": "file"}


# Custody


def test_external_members_are_read_but_not_kept(store: Store, tmp_path: Path) -> None:
    data = random.Random(12).randbytes(5 << 20)
    plant(tmp_path / "w", {"a.bin": data, "b.bin": "small"})
    text = f'[[entry]]\nrole = "w"\nkind = "file"\npath = "{tmp_path}/w"\nkeep = "external"\n'
    packet = seal_text(store, tmp_path, text)
    assert store.stats().plain_bytes == 0
    for member in listed(store, packet).values():
        info = store.info(to_raw(member.blake3 or ""))
        assert info is not None
        assert info.placement == "external"
        (place,) = store.locations(to_raw(member.blake3 or ""))
        assert place.path == os.fsencode(tmp_path / member.path)
        assert place.signature.size_bytes == member.size
    assert verify(store, packet).outcome == "PASS"


def test_one_content_held_and_external_in_one_seal_is_held(store: Store, tmp_path: Path) -> None:
    for first, second in (("external", "held"), ("held", "external")):
        name = f"{first}-first"
        data = random.Random(first).randbytes(10_000)
        plant(tmp_path / name, {"a/f": data, "b/f": data})
        text = "".join(
            f'[[entry]]\nrole = "{role}"\nkind = "file"\npath = "{tmp_path}/{name}/{role}"\nkeep = "{keep}"\n'
            for role, keep in (("a", first), ("b", second))
        )
        seal_text(store, tmp_path, text)
        assert objects.read(store, object_id(data)) == data


def test_results_of_one_file_are_one_line(store: Store, tmp_path: Path) -> None:
    """A file that is named by its own path: read once, kept, and not read again."""
    place = plant(tmp_path / "t", {"f": "abc"})
    report = seal_paths(store, [place / "f"])
    assert (report.files, report.bytes_read, report.objects) == (1, 3, 1)
    (entry,) = report.entries
    assert (entry.role, entry.size_bytes, entry.id) == ("f", 3, object_id(b"abc").hex())


def test_no_result_is_lost_between_threads(store: Store, tmp_path: Path) -> None:
    """More large files than cores, some of them copies; each is in the packet with its own bytes."""
    dice = random.Random(13)
    contents = [dice.randbytes((4 << 20) + 10 + n) for n in range(5)]
    place = plant(tmp_path / "t", {f"f{n}": contents[n % 5] for n in range(15)})
    packet = seal(store, place)
    for path, member in listed(store, packet).items():
        assert member.blake3 == object_id(contents[int(path[1:]) % 5]).hex()
    assert verify(store, packet).outcome == "PASS"


def test_a_full_disk_amid_a_large_file_leaves_nothing() -> None:
    """The limit on the size of a file stands in for the end of the disk."""

    def sealing(place: Path) -> tuple[str, int, list[str]]:
        store = LmdbStore.create(os.fspath(place / "store"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        try:
            seal(store, place / "t")
        except StoreFullError as error:
            text = str(error)
        left = [path.name for name in ("tmp", "blobs") for path in Path(store.path, name).rglob("*")]
        found = text, len(store.refs()) + len(list(store.objects())), left
        store.close()
        return found

    with open_to_all() as place:
        plant(place / "t", {f"f{n}": random.Random(n).randbytes(5 << 20) for n in range(3)})
        text, things, left = as_nobody(lambda: sealing(place))
    assert "/t/" not in text, "the source is not to blame"
    assert things == 0
    assert [name for name in left if name != "writer.lock"] == []
