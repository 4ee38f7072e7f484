"""The contract of stores, on each of ours, and on stores that break it."""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from provstore.ids import Buffer, RawId, record_id
from provstore.store.contract import RECORDS, ContractError, ReaderContract, StoreContract, fill
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.pack import PackStore
from provstore.store.pack_writer import write_pack
from provstore.store.profile import StoreProfile
from provstore.store.protocol import CommitCounts, ObjectInfo, Store

CHECKS = StoreContract.checks()

PROFILES = {
    "lmdb": StoreProfile(),
    "lmdb-all-blobs": StoreProfile(inline_limit_bytes=0),
    "lmdb-unsynced": StoreProfile(sync=False, zstd_level=1),
}


@pytest.fixture(params=["memory", *PROFILES])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    made: list[Store] = []

    def make() -> Store:
        if request.param == "memory":
            made.append(MemoryStore())
        else:
            path = tmp_path / f"store{len(made)}"
            made.append(LmdbStore.create(os.fspath(path), profile=PROFILES[request.param]))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.mark.parametrize("check", CHECKS)
def test_a_store_keeps_its_promise(check: str, make_store: Callable[[], Store]) -> None:
    getattr(StoreContract(), check)(make_store)


def test_a_pack_keeps_the_promises_of_readers(tmp_path: Path) -> None:
    store = MemoryStore()
    held = fill(store)
    records = [(record_id("tree", data), data) for data in RECORDS]
    out = io.BytesIO()
    write_pack(
        out,
        store.refs(),
        records,
        [(id, store.info(id), store.chunks(id)) for id in held],  # type: ignore[misc]
    )
    path = tmp_path / "all.pack"
    path.write_bytes(out.getvalue())
    with PackStore(os.fspath(path)) as pack:
        ReaderContract().check_filled(pack)
        pack.check()
        assert pack.refs() == store.refs()


def test_a_reopened_store_is_the_same(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "store")
    with LmdbStore.create(path) as store:
        assert isinstance(store, LmdbStore)
        fill(store)
        refs, log, generation = store.refs(), store.ref_log(), store.generation()
    for writable in (False, True):
        with LmdbStore.open(path, writable=writable) as again:
            ReaderContract().check_filled(again)
            assert (again.refs(), again.ref_log(), again.generation()) == (refs, log, generation)


class Forgetful(MemoryStore):
    """Sweeps nothing and says that it did."""

    def sweep(
        self, objects: Sequence[RawId], records: Sequence[RawId], generation: int
    ) -> CommitCounts | None:
        return CommitCounts(len(objects), len(records), 0, 1, 0)


class Rotten(MemoryStore):
    """Gives other bytes than it was given."""

    def chunks(self, object_id: RawId) -> Iterator[Buffer]:
        return (bytes(chunk)[::-1] + b"!" for chunk in super().chunks(object_id))


class Talkative(MemoryStore):
    """Knows everything."""

    def info(self, object_id: RawId) -> ObjectInfo | None:
        return super().info(object_id) or ObjectInfo(0, bytes(32), "inline")


@pytest.mark.parametrize("broken", [Forgetful, Rotten, Talkative])
def test_the_contract_finds_a_store_that_breaks_it(broken: Any) -> None:
    with pytest.raises(ContractError):
        StoreContract().run(broken)
