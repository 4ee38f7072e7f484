"""Whatever bytes come: a stream is understood or has a typed outcome, a ledger is followed or refused."""

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st
from runs.ledgers import permit, valid
from runs.servers import chunk, whole

from provstore.evidence.ledger import read_ledger
from provstore.runs.stream import Outcome, understand
from provstore.store import objects
from provstore.store.memory import MemoryStore

OUTCOMES = set(get_args(Outcome))
WIRE = b"".join(chunk(part) for part in whole(4)) + b"0\r\n\r\n"


def ledger() -> bytes:
    store = MemoryStore()
    valid(store, permit(store))
    return b"".join(objects.record(store, id) + b"\n" for id in store.ledger())


LEDGER = ledger()


def mutated(draw: Any, base: bytes) -> bytes:
    data = bytearray(base)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
    return bytes(data)


@given(st.data())
def test_any_stream_gives_a_typed_outcome(data: st.DataObject) -> None:
    wire = data.draw(st.one_of(st.binary(max_size=200), st.composite(lambda draw: mutated(draw, WIRE))()))
    size = data.draw(st.integers(1, 64))
    pieces = [wire[at : at + size] for at in range(0, len(wire), size)]
    found = understand(
        pieces, range(len(pieces)), chunked=data.draw(st.booleans()), token_ids=True, endpoint="chat"
    )
    assert found.outcome in OUTCOMES
    assert len(found.id_ns) == len(found.ids or ())
    assert found.id_ns == sorted(found.id_ns)
    assert (found.outcome == "complete") == (not found.detail)


@given(st.data())
def test_a_ledger_that_was_altered_is_never_taken_for_the_same(data: st.DataObject) -> None:
    altered = data.draw(st.composite(lambda draw: mutated(draw, LEDGER))())
    found = read_ledger(altered)
    whole_tree = read_ledger(LEDGER).tree
    assert altered == LEDGER or found.findings or found.tree != whole_tree
