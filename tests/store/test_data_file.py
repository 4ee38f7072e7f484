"""Files that are no index, or a damaged one: refused in words, in a child, and never by a signal."""

import os
import random
import struct
from pathlib import Path

import pytest
from killing import Say, run, seal_into, tree

from provstore.errors import NewerFormatError, NotAStoreError, ProvError, StoreDamagedError
from provstore.store import data_file
from provstore.store.data_file import check
from provstore.store.lmdb_store import LmdbStore
from provstore.store.opening import open_store
from provstore.verbs.checking import fsck

PAGE = 4096


def asked(path: Path) -> str:
    """Open a store in a child, read everything, and return how that ended."""

    def work(say: Say) -> None:
        for writable in (False, True):
            try:
                with LmdbStore.open(os.fspath(path), writable=writable) as store:
                    fsck(store)
                    store.stats()
                say("opened")
            except ProvError as error:
                say(error.code)

    ended = run(work)
    assert ended.signal == 0, f"signal {ended.signal}"
    assert ended.said[0] == ended.said[1]
    return ended.said[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    LmdbStore.create(os.fspath(path)).close()
    for mark in "ab":
        seal_into(path, tree(tmp_path / mark, mark), mark)
    assert asked(path) == "opened"
    path.joinpath("lock.mdb").unlink()
    return path


GARBAGE = {
    "empty": b"",
    "one byte": b"x",
    "zeros": bytes(65536),
    "noise": random.Random(1).randbytes(65536),
    "a page": random.Random(2).randbytes(PAGE),
    "text": b"not an index\n" * 5000,
    "magic alone": bytes(16) + struct.pack("=I", 0xBEEFC0DE),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_store(path: Path, name: str) -> None:
    path.joinpath("data.mdb").write_bytes(GARBAGE[name])
    assert asked(path) in ("not-a-store", "store-damaged")


def test_noise_behind_good_meta_pages_is_refused(path: Path) -> None:
    data = path.joinpath("data.mdb").read_bytes()
    for seed in range(5):
        noise = random.Random(seed).randbytes(len(data) - 2 * PAGE)
        path.joinpath("data.mdb").write_bytes(data[: 2 * PAGE] + noise)
        assert asked(path) == "store-damaged"


def test_every_page_cut_off_is_refused_unless_it_was_free(path: Path) -> None:
    data = path.joinpath("data.mdb").read_bytes()
    answers = set()
    for pages in range(len(data) // PAGE):
        path.joinpath("data.mdb").write_bytes(data[: pages * PAGE])
        answers.add(asked(path))
    for end in random.Random(3).sample(range(len(data)), 20):
        path.joinpath("data.mdb").write_bytes(data[:end])
        answers.add(asked(path))
    assert "store-damaged" in answers
    assert answers <= {"not-a-store", "store-damaged", "opened"}
    path.joinpath("data.mdb").write_bytes(data)
    assert asked(path) == "opened"


@pytest.mark.parametrize("page_bytes", [0, 1, 512, 2048, 8192, 65536, 0xFFFFFFFF])
def test_a_wrong_page_size_is_refused(path: Path, page_bytes: int) -> None:
    data = bytearray(path.joinpath("data.mdb").read_bytes())
    for page in (0, 1):
        struct.pack_into("=I", data, page * PAGE + 40, page_bytes)
    path.joinpath("data.mdb").write_bytes(data)
    assert asked(path) in ("not-a-store", "store-damaged")


def test_another_data_format_of_lmdb_is_no_store(path: Path) -> None:
    data = bytearray(path.joinpath("data.mdb").read_bytes())
    for page in (0, 1):
        struct.pack_into("=I", data, page * PAGE + 20, 2)
    path.joinpath("data.mdb").write_bytes(data)
    with pytest.raises(NotAStoreError, match="data format 2"):
        check(os.fspath(path))


def test_a_newer_format_is_refused_and_left_alone(path: Path) -> None:
    with LmdbStore.open(os.fspath(path)) as store:
        store._env.write(lambda txn: txn.put("settings", b"format", b"3"))
    before = path.joinpath("data.mdb").read_bytes()
    for writable in (False, True):
        with pytest.raises(NewerFormatError, match="provstore store 3"):
            LmdbStore.open(os.fspath(path), writable=writable)
    with pytest.raises(NewerFormatError):
        open_store(path, create=True)
    assert path.joinpath("data.mdb").read_bytes() == before


@pytest.mark.parametrize("pages", [1, 7])
def test_a_node_that_points_behind_the_file_is_refused_before_lmdb_follows_it(path: Path, pages: int) -> None:
    """Without the walk this is a SIGBUS."""
    data = bytearray(path.joinpath("data.mdb").read_bytes())
    far = len(data) // PAGE + pages
    changed = 0
    for start in range(2 * PAGE, len(data), PAGE):
        flags, lower = struct.unpack_from("=HH", data, start + 10)
        if flags & ~0x10 != 0x02:
            continue
        for at in range(16, min(lower, PAGE), 2):
            node = start + int.from_bytes(data[start + at : start + at + 2], "little")
            _, _, node_flags, key_bytes = struct.unpack_from("=HHHH", data, node)
            if node_flags & 0x01 and node + 16 + key_bytes < len(data):
                struct.pack_into("=Q", data, node + 8 + key_bytes, far)
                changed += 1
    assert changed
    path.joinpath("data.mdb").write_bytes(data)
    assert asked(path) == "store-damaged"


def test_a_large_index_is_walked_when_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(path.joinpath("data.mdb").read_bytes())
    monkeypatch.setattr(data_file, "SMALL_PAGES", 0)
    for start in range(2 * PAGE, len(data), PAGE):
        if struct.unpack_from("=H", data, start + 10)[0] == 0x04:
            struct.pack_into("=Q", data, start, 1 << 40)
    path.joinpath("data.mdb").write_bytes(data)
    check(os.fspath(path))
    with pytest.raises(StoreDamagedError):
        check(os.fspath(path), thorough=True)


def test_a_store_without_a_ledger_is_read_and_gets_one(path: Path) -> None:
    with LmdbStore.open(os.fspath(path)) as store:
        _forget_ledger(store)
    with LmdbStore.open(os.fspath(path), writable=False) as reader:
        assert reader.ledger() == []
    with (
        LmdbStore.open(os.fspath(path)) as store,
        LmdbStore.open(os.fspath(path), writable=False) as reader,
    ):
        assert store._env.get("settings", b"format") == b"1"
        with store.stage() as stage:
            stage.append_ledger(bytes(32), None)
            stage.commit()
        assert store._env.get("settings", b"format") == b"2"
        assert reader.ledger() == store.ledger() == [bytes(32)]


def test_a_ledger_that_lost_its_database_or_an_entry_is_damaged(path: Path) -> None:
    with LmdbStore.open(os.fspath(path)) as store:
        for number in range(3):
            with store.stage() as stage:
                stage.append_ledger(bytes([number]) * 32, bytes([number - 1]) * 32 if number else None)
                stage.commit()
        for number in (3, 2, 1):
            kept = store._env.get("ledger", number.to_bytes(8, "big"))
            assert kept is not None
            store._env.write(lambda txn: txn.delete("ledger", number.to_bytes(8, "big")))  # noqa: B023
            with pytest.raises(StoreDamagedError):
                store.ledger()
            store._env.write(lambda txn: txn.put("ledger", number.to_bytes(8, "big"), kept))  # noqa: B023
        assert len(store.ledger()) == 3
        _forget_ledger(store)
    with pytest.raises(StoreDamagedError, match="no database 'ledger'"):
        LmdbStore.open(os.fspath(path))


def _forget_ledger(store: LmdbStore) -> None:
    """Remove the database itself, as a store of before has none."""
    handle = store._env._handle
    with handle.env.begin(write=True) as txn:
        txn.drop(handle.databases.pop("ledger"))
        txn.put(
            b"transaction",
            txn.id().to_bytes(8, "big"),
            db=handle.databases["settings"],
        )
