"""Any sequence of stages, sweeps and reopenings, on each store, against a dict."""

import os
import shutil
import tempfile
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from provstore.errors import RefConflictError
from provstore.ids import RawId, digests, record_id
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.profile import StoreProfile
from provstore.store.protocol import Store

PROFILE = StoreProfile(inline_limit_bytes=3_000, map_size_bytes=1 << 20, sync=False)

contents = st.one_of(
    st.binary(max_size=40), st.integers(0, 9_000).map(lambda n: bytes(i * n % 251 for i in range(n)))
)
names = st.sampled_from(["a", "b/c", "é"])


class StoreMachine(RuleBasedStateMachine):
    """The model: what is held, which records there are, what refs name."""

    def __init__(self) -> None:
        super().__init__()
        self.store: Store = self.make()
        self.held: dict[RawId, bytes] = {}
        self.records: dict[RawId, bytes] = {}
        self.refs: dict[str, RawId] = {}
        self.steps = 0

    def make(self) -> Store:
        return MemoryStore()

    @rule(
        datas=st.lists(contents, max_size=5),
        notes=st.lists(st.integers(0, 30), max_size=3),
        moves=st.dictionaries(names, st.booleans(), max_size=2),
        commit=st.booleans(),
        by_blob=st.booleans(),
    )
    def seal(
        self, datas: list[bytes], notes: list[int], moves: dict[str, bool], commit: bool, by_blob: bool
    ) -> None:
        added = {digests(data).blake3: data for data in datas}
        new = [b'{"note":"%d"}' % note * (note + 1) for note in notes]
        with self.store.stage() as stage:
            for data in datas:
                assert stage.has_object(digests(data).blake3) or digests(data).blake3 not in self.held
                if by_blob:
                    writer = stage.blob()
                    writer.write(data)
                    writer.finish(digests(data))
                else:
                    stage.add_object(digests(data), data)
            for data in new:
                stage.add_record(record_id("tree", data), data)
            for name, there in moves.items():
                stage.set_ref(name, bytes([self.steps % 256]) * 32 if there else None)
            if not commit:
                return
            counts = stage.commit()
        fresh = {record_id("tree", data): data for data in new}
        assert counts.objects == len(added.keys() - self.held.keys())
        assert counts.records == len(fresh.keys() - self.records.keys())
        self.held |= added
        self.records |= fresh
        for name, there in moves.items():
            if there:
                self.refs[name] = bytes([self.steps % 256]) * 32
            else:
                self.refs.pop(name, None)
        self.steps += 1

    @rule(name=names, data=contents)
    def conflict(self, name: str, data: bytes) -> None:
        with self.store.stage() as stage:
            stage.add_object(digests(data), data)
            stage.set_ref(name, bytes(32), expected=b"\xff" * 32)
            with pytest.raises(RefConflictError):
                stage.commit()

    @precondition(lambda self: self.held or self.records)
    @rule(data=st.data())
    def sweep(self, data: Any) -> None:
        gone = data.draw(st.lists(st.sampled_from(sorted(self.held)))) if self.held else []
        dropped = data.draw(st.lists(st.sampled_from(sorted(self.records)))) if self.records else []
        counts = self.store.sweep(gone, dropped, self.store.generation())
        assert counts is not None
        assert (counts.objects, counts.records) == (len(set(gone)), len(set(dropped)))
        for id in gone:
            self.held.pop(id, None)
        for id in dropped:
            self.records.pop(id, None)

    @rule()
    def reopen(self) -> None:
        self.again()

    def again(self) -> None:
        """Close and open; memory has nothing to close."""

    @invariant()
    def is_as_the_model_says(self) -> None:
        assert [id for id, _ in self.store.objects()] == sorted(self.held)
        assert list(self.store.records()) == sorted(self.records)
        assert dict(self.store.refs()) == self.refs
        for id, data in self.held.items():
            assert objects.read(self.store, id) == data
            assert objects.check(self.store, id).blake3 == id
        for id, data in self.records.items():
            assert self.store.record(id) == data
        assert [step.sequence for step in self.store.ref_log()] == list(
            range(1, len(self.store.ref_log()) + 1)
        )

    def teardown(self) -> None:
        self.store.close()


class LmdbMachine(StoreMachine):
    """The same on a store directory."""

    def make(self) -> Store:
        self.place = tempfile.mkdtemp(prefix="prov-machine-")
        return LmdbStore.create(os.path.join(self.place, "store"), profile=PROFILE)

    def again(self) -> None:
        self.store.close()
        self.store = LmdbStore.open(os.path.join(self.place, "store"), profile=PROFILE)
        assert self.store.remove_leftovers(1 << 62) == []

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.place)


@pytest.mark.parametrize("machine", [StoreMachine, LmdbMachine])
def test_a_store_does_what_a_dict_does(machine: type[StoreMachine]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=40, stateful_step_count=15, deadline=None)
    )
