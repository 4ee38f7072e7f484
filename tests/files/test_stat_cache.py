"""What is not read again, and that nothing changed is ever missed by not reading it.

The measure of every test here is a second seal into another store, which knows nothing: whatever the cache
saves, the packet must be the one that reading everything gives.
"""

import itertools
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from workbench import (
    SPEC,
    STORES,
    after_walk,
    as_nobody,
    listed,
    open_store_of,
    open_to_all,
    plant,
    seal_text,
    snapshot,
)

from provstore import merkle
from provstore.errors import IncompleteSourceError, SourceChangedError
from provstore.files import cache_blocks, hashing
from provstore.files.cache_blocks import Block, decode, decode_list, encode, encode_list
from provstore.files.remembering import Memory
from provstore.files.root import ROW, pack_row
from provstore.files.stat_cache import Remembered, key, trusted_rows
from provstore.files.walk import Listing
from provstore.ids import RawId, object_id, to_raw
from provstore.reports import SealReport
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.protocol import Store
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import gc
from provstore.verbs.sealing import SealOptions, seal_paths, seal_spec
from provstore.verbs.verifying import verify

SECOND = 1_000_000_000


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryStore | LmdbStore]:
    opened = open_store_of(request.param, tmp_path)
    yield opened
    opened.close()


def sealed(store: Store, place: Path, **options: object) -> SealReport:
    """Seal, and check the packet against one by a store that has no cache."""
    report = seal_paths(store, [place], options=SealOptions(**options))  # type: ignore[arg-type]
    fresh = seal_paths(MemoryStore(), [place], options=SealOptions(**options))  # type: ignore[arg-type]
    assert report.packet == fresh.packet
    assert report.files == fresh.files
    assert report.entries == fresh.entries
    assert report.excluded == fresh.excluded
    return report


def rest(place: Path) -> None:
    """Wait until everything below a directory is older than the clock's grain."""
    paths = [os.path.join(folder, name) for folder, below, files in os.walk(place) for name in below + files]
    newest = max(os.lstat(path).st_ctime_ns for path in paths)
    time.sleep(max(0, newest + 70_000_000 - time.time_ns()) / SECOND)


def quiet(store: Store, place: Path, **options: object) -> SealReport:
    """Seal what is old enough to be remembered."""
    rest(place)
    return sealed(store, place, **options)


def total(place: Path) -> int:
    return sum(len(content) for kind, content in snapshot(place).values() if kind in ("file", "executable"))


# The rule for fresh files


def rows(*times: tuple[int, int]) -> Listing:
    packed = [ROW.pack(1, n, 10, mtime, ctime, 0o100644) for n, (mtime, ctime) in enumerate(times)]
    return Listing(b"", [b"%d" % n for n in range(len(times))], b"".join(packed))


def kept(walked_ns: int, *times: tuple[int, int]) -> list[bool]:
    listing = rows(*times)
    trusted = trusted_rows(listing.rows, walked_ns)
    size = ROW.size
    pairs = [(listing.rows[n : n + size], trusted[n : n + size]) for n in range(0, len(trusted), size)]
    assert all(after in (before, bytes(size)) for before, after in pairs)
    return [before == after for before, after in pairs]


def test_a_row_is_kept_only_when_it_is_older_than_the_clocks_grain() -> None:
    now = 1_800_000_000 * SECOND + 123
    old, fresh = now - 3 * SECOND, now - 1000
    assert kept(now, (old, old)) == [True]
    assert kept(now, (fresh, fresh)) == [False]
    assert kept(now, (old, fresh)) == [False], "contents or mode changed just now, with the time set back"
    assert kept(now, (fresh, old)) == [False]
    assert kept(now, (now, now)) == [False]
    assert kept(now, (old, old), (fresh, fresh), (old, old)) == [True, False, True]


def test_a_file_from_the_future_is_never_trusted() -> None:
    now = 1_800_000_000 * SECOND + 5
    assert kept(now, (now + SECOND, now - 9 * SECOND), (now - 9 * SECOND, now + SECOND)) == [False, False]


def test_times_of_whole_seconds_need_more_than_a_second() -> None:
    """A file system with such times could hold two contents under one time for as long."""
    now = 1_800_000_000 * SECOND + SECOND // 2
    second = now // SECOND * SECOND
    assert kept(now, (second, second), (second - SECOND, second - SECOND)) == [False, False]
    assert kept(now, (second - 3 * SECOND, second - 3 * SECOND)) == [True]


def directory(names: bytes, *, below: int = 0, git: bool = False) -> Remembered:
    """Return a directory of made-up signatures; its first ``below`` names are directories."""
    count = names.count(b"/") + 1 if names else 0
    members = b"".join(ROW.pack(7, n + len(names), 10 * n, 5 << 60, -n, 0o100644) for n in range(count))
    trees = blake3(names).digest(32 * below)
    return Remembered(
        object_id(names),
        ROW.pack(7, 1, 4096, 3, 4, 0o040755),
        names,
        members,
        trees,
        tuple(range(below)),
        count - below,
        10 * count,
        b"g" * 20 * count * git,
        count // 2,
    )


SOME = {
    b"": directory(b"a/a.b/z", below=2),
    b"a": directory(b"\xff/x y", git=True),
    b"a/c": directory(b""),
    b"a.b": directory(b"one", below=1),
}


def test_a_block_gives_back_the_directories_that_were_put_in() -> None:
    assert decode(encode(SOME)) == SOME
    assert list(decode(encode(SOME))) == list(SOME), "in the same order"
    assert decode(encode({})) == {}
    large = {b"": directory(b"/".join(b"%06d" % n for n in range(400_000)))}
    assert decode(encode(large)) == large, "one that takes more than a frame"


def test_a_list_gives_back_its_blocks_in_the_order_of_a_walk() -> None:
    blocks = [Block(3, b""), Block(0, b"a/c"), Block(7, b"a.b")]
    assert decode_list(encode_list(blocks)) == blocks
    assert decode_list(encode_list(reversed(blocks))) == blocks
    assert decode_list(encode_list([])) == []


def test_stored_forms_that_are_not_ours_are_nothing() -> None:
    block, places = encode(SOME), encode_list([Block(1, b"x")])
    for right in (block, places):
        for wrong in (None, b"", b"\x01", right[:1], right[:-1], right + b"x", b"\x01" + right[1:]):
            assert decode(wrong) == {}
            assert decode_list(wrong) == []
    assert decode(places) == {}
    assert decode_list(block) == []


def test_blocks_are_cut_in_the_order_of_a_walk_and_hold_whole_directories() -> None:
    many = {b"d%d/e%d" % (n % 7, n): directory(b"/".join(b"f%d" % m for m in range(n))) for n in range(200)}
    huge = {b"d3/e": directory(b"/".join(b"%d" % n for n in range(3000)))}
    blocks = list(cache_blocks.cut(many | huge))
    paths = [path for block in blocks for path in block]
    assert paths == sorted(many | huge, key=cache_blocks.order)
    sizes = [sum(cache_blocks.plain_bytes(*item) for item in block.items()) for block in blocks]
    assert [size for size in sizes if size > cache_blocks.BLOCK_BYTES] == [
        cache_blocks.plain_bytes(*item) for item in huge.items()
    ]
    pairs = [a + b for a, b in itertools.pairwise(sizes)]
    assert min(pairs) > cache_blocks.BLOCK_BYTES, "no two neighbours would have fitted into one"


def test_every_member_of_a_damaged_block_is_held_back_or_right() -> None:
    """A flipped bit is caught by the check of the store; whatever comes through has a sound form."""
    stored = encode(SOME)
    for at in range(1, len(stored)):
        flipped = stored[:at] + bytes((stored[at] ^ 16,)) + stored[at + 1 :]
        for known in decode(flipped).values():
            assert len(known.rows) % ROW.size == 0
            assert len(known.below) == 32 * len(known.directories)


def test_keys_cannot_be_confused() -> None:
    found = {
        key(root, path, options)
        for root in (b"/a", b"/a/b")
        for path in (b"", b"b", b"b/c")
        for options in (b"", b"x")
    }
    assert len(found) == 12
    assert key(b"/a", b"b", b"") != key(b"/ab", b"", b"")


# What is not read


def test_what_did_not_change_is_not_read(store: Store, tmp_path: Path) -> None:
    dice = random.Random(1)
    place = plant(tmp_path / "t", {f"d{n % 4}/e{n % 3}/f{n}": dice.randbytes(500 + n) for n in range(60)})
    plant(place, {"l": "->d0", "x": "+x#!", "empty": None, b"\xff": "y", "large": dice.randbytes(5 << 20)})
    first = quiet(store, place)
    second = sealed(store, place)
    assert second.packet == first.packet
    assert second.bytes_read == second.bytes_hashed == 0
    assert (second.objects, second.records, second.bytes_stored, second.transactions, second.syncs) == (
        0,
    ) * 5
    assert second.files == first.files == 63


def test_no_file_is_opened_for_it(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = plant(tmp_path / "t", {f"f{n}": "x" for n in range(10)})
    first = quiet(store, place)
    for name in snapshot(place):
        (place / os.fsdecode(name)).chmod(0)  # also changes the time of change, so this is found
    assert seal_paths(store, [place]).bytes_read == 10
    rest(place)
    seal_paths(store, [place])

    def refuse(*_: object) -> int:
        raise AssertionError("a file is opened")

    monkeypatch.setattr(hashing, "_open", refuse)
    assert seal_paths(store, [place]).packet == first.packet


def test_exactly_the_changed_files_are_read(store: Store, tmp_path: Path) -> None:
    dice = random.Random(2)
    place = plant(tmp_path / "t", {f"d{n % 20}/f{n:04}": dice.randbytes(100 + n % 50) for n in range(2000)})
    rest(place)
    seal_paths(store, [place])
    changed = [place / f"d{n % 20}" / f"f{n:04}" for n in dice.sample(range(2000), 20)]
    for path in changed:
        path.write_bytes(dice.randbytes(path.stat().st_size))
    report = sealed(store, place)
    assert report.bytes_read == sum(path.stat().st_size for path in changed)
    assert report.objects == 20
    rest(place)
    assert seal_paths(store, [place]).bytes_read == report.bytes_read, "too fresh to be remembered so far"
    assert seal_paths(store, [place]).bytes_read == 0


def test_an_added_and_a_removed_file_cost_no_other(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {f"d/f{n}": f"content {n}" for n in range(100)})
    quiet(store, place)
    (place / "d" / "f50").unlink()
    plant(place, {"d/new": "12345", "e/other": "123"})
    assert sealed(store, place).bytes_read == 8


def test_a_change_deep_below_is_found_through_unchanged_directories(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a/b/c/d/e/f": "deep", "a/b/x": "1", "a/y": "2", "z": "3"})
    quiet(store, place)
    (place / "a/b/c/d/e/f").write_text("DEEP")
    assert sealed(store, place).bytes_read == 4
    plant(place, {"a/b/c/d/e/g": ""})
    sealed(store, place)
    (place / "a/b/c/d/e/g").unlink()
    sealed(store, place)


def cached_values(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that receives the key of each value of the stat cache that is read from now on."""
    keys: list[bytes] = []
    original = type(store).cached

    def counting(self: Store, key: bytes) -> bytes | None:
        keys.append(key)
        return original(self, key)

    monkeypatch.setattr(type(store), "cached", counting)
    return keys


def test_an_unchanged_tree_costs_a_value_a_block_and_no_record(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = plant(tmp_path / "t", {f"d{n % 60}/e{n % 7}/f{n}": "x" for n in range(900)})
    monkeypatch.setattr(cache_blocks, "BLOCK_BYTES", 6000)
    first = quiet(store, place)
    keys = cached_values(store, monkeypatch)

    def refuse(*_: object) -> None:
        raise AssertionError("a tree is built")

    monkeypatch.setattr(merkle, "build_encoded", refuse)
    again = seal_paths(store, [place])
    assert again.packet == first.packet
    assert again.transactions == again.records == 0
    assert len(keys) == len(set(keys)), "nothing is looked up twice"
    assert 15 <= len(keys) <= 30


def test_one_changed_file_rewrites_the_blocks_on_its_path_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = plant(tmp_path / "t", {f"d{n % 60:02}/e{n % 7}/f{n}": "x" for n in range(900)})
    monkeypatch.setattr(cache_blocks, "BLOCK_BYTES", 6000)
    quiet(store, place)
    (place / "d59" / "e3" / "f59").write_text("y")
    written: dict[bytes, bytes | None] = {}
    original = Memory.changes

    def noting(self: Memory) -> dict[bytes, bytes | None]:
        found = original(self)
        written.update(found)
        return found

    rest(place)
    monkeypatch.setattr(Memory, "changes", noting)
    report = seal_paths(store, [place])
    assert (report.bytes_read, report.objects) == (1, 1)
    assert len(written) == 2, "the first block, which holds the root, and the last"


EDITS = ("same size", "rename", "mode", "add", "remove", "to directory", "to file", "link", "move", "swap")


def edit(place: Path, dice: random.Random) -> None:
    """Change one thing below a directory at random, often so that little of it shows."""
    everything = sorted(place.rglob("*"))
    files = [path for path in everything if path.is_file() and not path.is_symlink()]
    folders = [path for path in everything if path.is_dir() and not path.is_symlink()]
    what = dice.choice(EDITS)
    name = f"n{dice.randrange(10**9)}"
    if what == "add" or len(files) < 10 or len(folders) < 4:
        where = dice.choice([place, *folders])
        plant(where, {dice.choice([name, f"{name}/deep/f", f"{name}.d/f"]): dice.randbytes(5)})
    elif what == "same size":
        path = dice.choice(files)
        status = path.stat()
        with path.open("r+b") as file:
            file.write(dice.randbytes(status.st_size))
        same_times(path, status)
    elif what == "rename":
        path = dice.choice(everything)
        path.rename(path.with_name(name))
    elif what == "mode":
        path = dice.choice(files)
        path.chmod(path.stat().st_mode ^ 0o100)
    elif what in ("to file", "move"):
        path = dice.choice(folders)
        to = dice.choice([place, *(other for other in folders if not other.is_relative_to(path))])
        path.rename(to / name)
        if what == "to file":
            path.write_bytes(dice.randbytes(3))
    elif what == "swap":
        a, b = dice.sample(files, 2)
        a.rename(a.with_name(name))
        b.rename(a)
        a.with_name(name).rename(b)
    else:
        path = dice.choice(files)
        path.unlink()
        if what == "to directory":
            plant(path, {"inner": dice.randbytes(3)} if dice.random() < 0.7 else {"d": None})
        elif what == "link":
            path.symlink_to(dice.choice(everything).name)


@pytest.mark.parametrize("seed", range(12))
def test_after_any_edits_a_seal_is_what_an_empty_store_would_make(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(cache_blocks, "BLOCK_BYTES", dice.choice([1, 700, 3000, 64 << 10]))
    tree: dict[str | bytes, str | bytes | None] = {
        f"d{dice.randrange(6)}/{'abc'[n % 3]}/f{n}" if n % 4 else f"f{n}": dice.randbytes(4)
        for n in range(120)
    }
    place = plant(tmp_path / "t", tree)
    for _ in range(8):
        if dice.random() < 0.7:
            rest(place)
        sealed(store, place)
        for _ in range(dice.choice([0, 1, 1, 5, 20])):
            edit(place, dice)
    last = quiet(store, place)
    again = sealed(store, place)
    assert (again.packet, again.bytes_read, again.transactions) == (last.packet, 0, 0)


# What must be found


def same_times(path: Path, status: os.stat_result) -> None:
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def in_place(path: Path) -> None:
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"BBBB")
    same_times(path, status)


def by_rename(path: Path) -> None:
    status = path.stat()
    other = path.with_name("other")
    other.write_text("BBBB")
    same_times(other, status)
    other.rename(path)


def by_reuse_of_its_inode(path: Path) -> None:
    """Remove and create until the file system gives the same inode number again."""
    status = path.stat()
    spare: list[Path] = []
    path.unlink()
    for number in range(200):
        path.write_text("BBBB")
        if path.stat().st_ino == status.st_ino:
            break
        spare.append(path.rename(path.parent.parent / f"spare{number}"))
    else:
        path.write_text("BBBB")
    same_times(path, status)


def by_a_link(path: Path) -> None:
    """Write through another name of the same inode."""
    other = path.parent.parent / "other name"
    os.link(path, other)
    in_place(other)
    other.unlink()


def by_swap(path: Path) -> None:
    status = path.stat()
    twin = path.with_name("twin")
    path.rename(path.with_name("away"))
    twin.rename(path)
    path.with_name("away").rename(twin)
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert path.stat().st_size == status.st_size


@pytest.mark.parametrize("change", [in_place, by_rename, by_reuse_of_its_inode, by_a_link, by_swap])
def test_other_bytes_under_the_same_size_and_time_are_found(
    store: Store, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    place = plant(tmp_path / "t", {"f": "AAAA", "twin": "BBBB", "g": "unchanged"})
    same_times(place / "twin", (place / "f").stat())
    first = quiet(store, place)
    before = (place / "f").stat()
    change(place / "f")
    after = (place / "f").stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    second = sealed(store, place)
    assert second.packet != first.packet
    assert listed(store, to_raw(second.packet))["f"].blake3 == object_id(b"BBBB").hex()


def test_a_write_right_after_a_seal_is_found(store: Store, tmp_path: Path) -> None:
    """Also one that the clock of the file system cannot tell from the bytes that were sealed."""
    place = plant(tmp_path / "t", {f"f{n}": "AAAA" for n in range(20)})
    first = sealed(store, place)
    for number in range(20):
        (place / f"f{number}").write_text("BBBB")
    second = sealed(store, place)
    assert second.packet != first.packet
    assert second.bytes_read == 80


def test_fresh_files_are_read_again_until_they_are_old_enough(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = plant(tmp_path / "t", {"a": "12345", "d/b": "123"})
    written_ns = (place / "d" / "b").stat().st_ctime_ns
    monkeypatch.setattr("provstore.files.stat_cache.now_ns", lambda: written_ns + 1_000_000)
    assert sealed(store, place).bytes_read == 8
    assert sealed(store, place).bytes_read == 8
    monkeypatch.undo()
    assert quiet(store, place).bytes_read == 8
    assert sealed(store, place).bytes_read == 0


def test_the_racy_write_that_no_stat_can_show(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two contents under one signature, as a coarse clock leaves them: the second is found all the same."""
    place = plant(tmp_path / "t", {"f": "AAAA", "g": "old"})
    rest(place)
    signature = pack_row((place / "f").stat())
    fresh = ROW.pack(*ROW.unpack(signature)[:3], time.time_ns(), time.time_ns(), 0o100644)
    frozen = (place / "f").stat().st_ino

    def coarse(status: os.stat_result) -> bytes:
        return fresh if status.st_ino == frozen else pack_row(status)

    monkeypatch.setattr("provstore.files.walk.pack_row", coarse)
    monkeypatch.setattr("provstore.files.hashing.pack_row", coarse)
    first = seal_paths(store, [place])
    with (place / "f").open("r+b") as file:
        file.write(b"BBBB")
    second = seal_paths(store, [place])
    assert second.packet != first.packet
    assert second.bytes_read == 4


def test_a_file_dated_in_the_future_is_read_each_time(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"f": "12345", "g": "123"})
    ahead = time.time_ns() + 3600 * SECOND
    os.utime(place / "f", ns=(ahead, ahead))
    rest(place)
    sealed(store, place)
    assert sealed(store, place).bytes_read == 5


# Names and types


def test_a_renamed_directory(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a/f": "1", "a/d/g": "22", "b/h": "333"})
    quiet(store, place)
    (place / "a").rename(place / "c")
    report = sealed(store, place)
    assert listed(store, to_raw(report.packet)).keys() == {"b/h", "c/f", "c/d/g"}
    assert report.bytes_read <= 3
    assert report.objects == 0
    (place / "c").rename(place / "a")
    assert sealed(store, place).bytes_read <= 3


def test_directories_that_changed_places(store: Store, tmp_path: Path) -> None:
    """Same names, sizes and times on both sides; only the inodes tell them apart."""
    place = plant(tmp_path / "t", {"a/f": "AAAA", "a/d/g": "AA", "b/f": "BBBB", "b/d/g": "BB"})
    for path in place.rglob("*"):
        os.utime(path, ns=(10 * SECOND + 5, 10 * SECOND + 5))
    first = quiet(store, place)
    (place / "a").rename(place / "x")
    (place / "b").rename(place / "a")
    (place / "x").rename(place / "b")
    assert sealed(store, place).packet != first.packet


def test_the_whole_tree_in_another_place(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a": "1", "d/b": "22"})
    first = quiet(store, place)
    moved = place.rename(tmp_path / "moved")
    assert sealed(store, moved).packet == first.packet
    plant(place, {"a": "x", "d/b": "yy"})
    assert sealed(store, place).packet != first.packet


def to_directory(path: Path) -> None:
    path.unlink()
    plant(path, {"inner": "x"})


def to_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("other")


def to_empty_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_executable(path: Path) -> None:
    path.chmod(0o755)


@pytest.mark.parametrize("change", [to_directory, to_empty_directory, to_link, to_executable])
def test_a_file_that_becomes_something_else_and_back(
    store: Store, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    place = plant(tmp_path / "t", {"d/f": "1234", "d/other": "x", "z": "y"})
    first = quiet(store, place)
    path = place / "d" / "f"
    change(path)
    second = quiet(store, place)
    assert second.packet != first.packet
    assert sealed(store, place).packet == second.packet
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    path.write_text("1234")
    assert sealed(store, place).packet == first.packet
    assert quiet(store, place).packet == first.packet


def test_a_link_that_points_elsewhere(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"l": "->aaaa", "d/m": "->x", "f": "y"})
    first = quiet(store, place)
    for target in ("bbbb", "aaaa"):
        (place / "l").unlink()
        (place / "l").symlink_to(target)
        report = quiet(store, place)
        assert (report.packet == first.packet) == (target == "aaaa")
        assert report.bytes_read == 0


def test_an_empty_directory_that_comes_and_goes(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"d/f": "x"})
    first = quiet(store, place)
    (place / "d" / "logs").mkdir()
    assert quiet(store, place).packet != first.packet
    (place / "d" / "logs").rmdir()
    assert sealed(store, place).packet == first.packet


def test_the_execute_bit_alone_is_found_and_nothing_but_it(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"f": "x", "g": "y"})
    first = quiet(store, place)
    (place / "f").chmod(0o755)
    assert quiet(store, place).packet != first.packet
    (place / "f").chmod(0o600)
    assert sealed(store, place).packet == first.packet


def test_names_that_come_and_go_are_found_whatever_the_directory_says(store: Store, tmp_path: Path) -> None:
    """The time of a directory can be set back; the time of its change cannot."""
    place = plant(tmp_path / "t", {"d/f": "1", "d/g": "22", "z": "3"})
    first = quiet(store, place)
    status = (place / "d").stat()
    (place / "d" / "f").rename(place / "d" / "e")
    same_times(place / "d", status)
    assert listed(store, to_raw(sealed(store, place).packet)).keys() == {"d/e", "d/g", "z"}
    (place / "d" / "e").rename(place / "d" / "f")
    same_times(place / "d", status)
    assert sealed(store, place).packet == first.packet


def test_a_name_added_right_after_a_seal_is_found(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"d/f": "1"})
    for number in range(20):
        seal_paths(store, [place])
        (place / "d" / f"new{number}").touch()
        assert f"d/new{number}" in listed(store, to_raw(seal_paths(store, [place]).packet))
        (place / "d" / f"new{number}").unlink()
        assert listed(store, to_raw(seal_paths(store, [place]).packet)).keys() == {"d/f"}


def test_a_directory_of_the_same_names_in_the_place_of_another(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"d/f": "AAAA", "d/s/g": "AA"})
    plant(tmp_path, {"other/f": "BBBB", "other/s/g": "BB"})
    status = (place / "d").stat()
    same_times(tmp_path / "other", status)
    rest(tmp_path)
    first = sealed(store, place)
    (place / "d").rename(tmp_path / "away")
    (tmp_path / "other").rename(place / "d")
    same_times(place / "d", status)
    assert sealed(store, place).packet != first.packet


# Options


def test_options_that_shape_a_tree_do_not_share_what_is_remembered(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a": "1", "b.tmp": "22", "d/c": "333", "d/c.tmp": "4444", "l": "->d"})
    rest(place)
    choices: list[dict[str, object]] = [
        {},
        {"exclude": ("*.tmp",)},
        {"exclude": ("d",)},
        {"exclude": ("d/c",)},
        {"follow_symlinks": True},
        {"follow_symlinks": True, "exclude": ("*.tmp",)},
        {"keep": False},
    ]
    first = [sealed(store, place, **choice).packet for choice in choices]
    assert len(set(first)) == len(choices) - 1, "what is kept is no part of the identity"
    for choice, packet in reversed(list(zip(choices, first, strict=True))):
        again = sealed(store, place, **choice)
        assert again.packet == packet
        assert again.bytes_read == 0


def test_without_the_cache_everything_is_read(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a": "1", "d/b": "22"})
    quiet(store, place)
    assert sealed(store, place, use_cache=False).bytes_read == 3


def test_a_stand_in_is_refused_each_time(store: Store, tmp_path: Path) -> None:
    """A choice that was made for one seal is not remembered for the next."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "7" * 64 + "\nsize 4900000000\n"
    place = plant(tmp_path / "t", {"w.safetensors": pointer, "d/ok": "x"})
    packet = to_raw(quiet(store, place, allow_pointers=True).packet)
    assert listed(store, packet)["w.safetensors"].state == "pointer"
    for _ in range(2):
        with pytest.raises(IncompleteSourceError, match="safetensors"):
            seal_paths(store, [place])
        rest(place)
    assert to_raw(sealed(store, place, allow_pointers=True).packet) == packet


def test_a_hole_is_looked_at_each_time() -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y", "shut/f": "z"})
        (place / "t" / "no").chmod(0)
        (place / "t" / "shut").chmod(0)

        def sealing() -> list[tuple[str, int]]:
            store = MemoryStore()
            found = []
            options = SealOptions(allow_unreadable=True)
            for mode in (0, 0, 0o755, 0o755, 0):
                (place / "t" / "no").chmod(mode)
                (place / "t" / "shut").chmod(mode)
                rest(place / "t")
                report = seal_paths(store, [place / "t"], options=options)
                fresh = seal_paths(MemoryStore(), [place / "t"], options=options)
                assert report.packet == fresh.packet
                found.append((report.packet, report.files))
            (place / "t" / "shut").chmod(0o755)
            return found

        os.chown(place / "t" / "no", 65534, 65534)
        os.chown(place / "t" / "shut", 65534, 65534)
        found = as_nobody(sealing)
    assert [files for _, files in found] == [1, 1, 3, 3, 1]
    assert found[0] == found[1] == found[4]
    assert found[2] == found[3] != found[0]


def test_a_prefix_is_not_remembered_as_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = plant(tmp_path / "t", {"run.log": "line 1\n"})
    rest(place)
    store = MemoryStore()

    def growing() -> None:
        with (place / "run.log").open("a") as file:
            file.write("more\n")

    after_walk(monkeypatch, growing)
    packet = to_raw(seal_paths(store, [place], options=SealOptions(allow_growing=True)).packet)
    assert listed(store, packet)["run.log"].state == "prefix"
    monkeypatch.undo()
    report = quiet(store, place, allow_growing=True)
    member = listed(store, to_raw(report.packet))["run.log"]
    assert (member.state, member.size) == (None, 12)


def test_a_failed_seal_remembers_nothing_that_it_did_not_keep(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = plant(tmp_path / "t", {"a/good": "x" * 100, "b/restless": "y"})
    rest(place)
    path = place / "b" / "restless"

    def touching(status: os.stat_result) -> bytes:
        row = pack_row(status)
        if status.st_ino == os.stat(path).st_ino:
            os.utime(path)
        return row

    monkeypatch.setattr("provstore.files.hashing.pack_row", touching)
    with pytest.raises(SourceChangedError):
        seal_paths(store, [place], options=SealOptions(workers=0))
    monkeypatch.undo()
    packet = to_raw(quiet(store, place).packet)
    assert verify(store, packet).outcome == "PASS"
    assert fsck(store).damaged == ()


# Swept stores, custody


def swept(store: Store) -> None:
    with store.stage() as stage:
        for name, _ in store.refs():
            stage.set_ref(name, None)
        stage.commit()
    gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + 60 * SECOND)
    assert list(store.objects()) == []
    assert list(store.records()) == []


def test_a_swept_tree_is_not_trusted(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a": "1", "d/b": "22", "large": bytes(5 << 20)})
    first = quiet(store, place)
    assert sealed(store, place).bytes_read == 0
    swept(store)
    again = sealed(store, place)
    assert again.packet == first.packet
    assert again.bytes_read == total(place)
    assert verify(store, to_raw(again.packet)).outcome == "PASS"


def test_a_tree_swept_in_part_is_not_trusted(store: Store, tmp_path: Path) -> None:
    """The tree of a subdirectory stays because another packet needs it."""
    place = plant(tmp_path / "t", {"a": "1", "d/b": "22"})
    rest(place)
    seal_paths(store, [place / "d"], name="inner")
    seal_paths(store, [place], name="outer")
    with store.stage() as stage:
        stage.set_ref("outer", None)
        stage.commit()
    gc(store, delete=True, grace_s=0, now_ns=time.time_ns() + 60 * SECOND)
    report = sealed(store, place)
    assert verify(store, to_raw(report.packet)).outcome == "PASS"
    assert verify(store, _ref(store, "inner")).outcome == "PASS"


def _ref(store: Store, name: str) -> RawId:
    found = store.ref(name)
    assert found is not None
    return found


def entry(place: Path, keep: str) -> str:
    return SPEC + f'[[entry]]\nrole = "w"\nkind = "file"\npath = "{place}"\nkeep = "{keep}"\n'


@pytest.mark.parametrize(
    "order", [("external", "held"), ("held", "external"), ("external", "held", "external")]
)
def test_custody_is_not_remembered_across(store: Store, tmp_path: Path, order: tuple[str, ...]) -> None:
    place = plant(tmp_path / "t", {"a": "1", "d/b": "22", "large": bytes(5 << 20)})
    rest(place)
    for keep in order:
        packet = seal_text(store, tmp_path, entry(place, keep))
        assert verify(store, packet).outcome == "PASS"
        for member in listed(store, packet).values():
            assert member.custody == keep
            held = (place / member.path.removeprefix("w/")).read_bytes()
            if "held" in order[: order.index(keep) + 1]:
                assert objects.read(store, to_raw(member.blake3 or "")) == held
    assert verify(store, packet).outcome == "PASS"


def test_external_members_are_not_read_again_either(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a": "1", "d/b": "22", "large": bytes(5 << 20)})
    rest(place)
    (tmp_path / "spec.toml").write_text(entry(place, "external"))
    first = seal_spec(store, tmp_path / "spec.toml")
    second = seal_spec(store, tmp_path / "spec.toml")
    assert (first.bytes_read, second.bytes_read) == (total(place), 0)
    assert second.packet == first.packet
    assert store.stats().plain_bytes == 0
    (place / "d" / "b").write_text("xx")
    third = seal_spec(store, tmp_path / "spec.toml")
    assert third.packet != first.packet
    assert third.bytes_read == 2


def test_external_members_that_moved_are_known_where_they_are_now(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"a": "1", "d/b": "22"})
    rest(place)
    seal_text(store, tmp_path, entry(place, "external"))
    moved = place.rename(tmp_path / "moved")
    packet = seal_text(store, tmp_path, entry(moved, "external"))
    assert verify(store, packet).outcome == "PASS"


# One file by its own path


def test_one_file_is_remembered_alike(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"f": "AAAA"})
    rest(place)
    path = place / "f"
    assert [seal_paths(store, [path]).bytes_read for _ in range(2)] == [4, 0]
    first = store.ref("f")
    in_place(path)
    assert seal_paths(store, [path]).bytes_read == 4
    assert store.ref("f") != first
    path.chmod(0o755)
    executable = seal_paths(store, [path]).packet
    path.chmod(0o644)
    assert seal_paths(store, [path]).packet != executable
    rest(place)
    seal_paths(store, [path])
    swept(store)
    again = seal_paths(store, [path])
    assert again.bytes_read == 4
    assert verify(store, to_raw(again.packet)).outcome == "PASS"


def test_a_directory_and_a_file_of_one_path_do_not_share(store: Store, tmp_path: Path) -> None:
    place = plant(tmp_path / "t", {"x/y": "1"})
    rest(place)
    seal_paths(store, [place / "x"])
    shutil.rmtree(place / "x")
    (place / "x").write_text("file now")
    rest(place)
    assert seal_paths(store, [place / "x"]).files == 1
    (place / "x").unlink()
    plant(place, {"x/y": "1"})
    assert listed(store, to_raw(sealed(store, place / "x").packet)).keys() == {"y"}


def test_verification_never_looks_at_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = plant(tmp_path / "t", {"a": "1", "d/b": "22"})
    packet = to_raw(quiet(store, place).packet)

    def refuse(*_: object) -> None:
        raise AssertionError("asked the stat cache")

    monkeypatch.setattr(type(store), "cached", refuse)
    monkeypatch.setattr(cache_blocks, "decode", refuse)
    assert verify(store, packet).outcome == "PASS"
    assert fsck(store).damaged == ()
