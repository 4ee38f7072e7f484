"""Properties of the verbs over random trees: what goes in comes out, and no flipped byte passes."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbench import listed, plant, seal, seal_text, snapshot

from provstore.errors import ProvError
from provstore.ids import RawId
from provstore.store.memory import MemoryStore
from provstore.verbs.comparing import verify_against
from provstore.verbs.diffing import diff, side
from provstore.verbs.locating import locate
from provstore.verbs.packing import pack
from provstore.verbs.restoring import restore
from provstore.verbs.unpacking import unpack
from provstore.verbs.verifying import verify

Files = dict[str | bytes, str | bytes | None]

names = st.binary(min_size=1, max_size=8).filter(lambda n: n not in (b".", b"..") and not {47, 0} & set(n))
contents = st.one_of(
    st.binary(max_size=60).filter(lambda b: not b.startswith(b"# v")),
    st.integers(0, 255).map(lambda n: bytes([n]) * 3000),
    st.none(),
    st.text("ab", max_size=5).map(lambda t: "+x" + t),
    st.sampled_from(["->a", "->../b", "->/nowhere", "->loop"]),
)
trees = st.dictionaries(
    st.lists(names, min_size=1, max_size=3).map(b"/".join), contents, min_size=1, max_size=14
).map(lambda files: {p: c for p, c in files.items() if not any(q.startswith(p + b"/") for q in files)})


@contextmanager
def place_for(files: Files, *more: Files) -> Iterator[tuple[Path, list[Path]]]:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        made = []
        for number, wanted in enumerate((files, *more)):
            root = place / f"t{number}"
            root.mkdir()
            made.append(plant(root, wanted))
        yield place, made


slow = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@slow
@given(trees)
def test_what_was_sealed_is_restored(files: Files) -> None:
    with place_for(files) as (place, (tree,)):
        store = MemoryStore()
        packet = seal(store, tree)
        verdict = verify(store, packet)
        assert verdict.outcome in ("PASS", "INCOMPLETE")
        assert (verdict.outcome == "PASS") == any(m.blake3 for m in listed(store, packet).values())
        assert verify_against(store, packet, tree).outcome == "PASS"
        restore(store, packet, place / "out")
        assert snapshot(place / "out") == snapshot(tree)
        assert seal(MemoryStore(), place / "out") == packet
        pack([("x", locate(packet.hex(), store))], place / "p.pack")
        other = MemoryStore()
        unpack(other, place / "p.pack")
        restore(other, packet, place / "again")
        assert snapshot(place / "again") == snapshot(tree)


@slow
@given(trees, trees)
def test_two_trees_are_one_packet_only_if_they_are_equal(a: Files, b: Files) -> None:
    with place_for(a, b) as (_, (first, second)):
        store = MemoryStore()
        packets = seal(store, first, name="a"), seal(store, second, name="b")
        same = snapshot(first) == snapshot(second)
        assert (packets[0] == packets[1]) == same
        assert (verify_against(store, packets[0], second).outcome == "PASS") == same
        with side("a", store) as x, side("b", store) as y:
            report = diff(x, y)
        assert report.same == same
        found, other = snapshot(first), snapshot(second)
        # Directories without members are named on the side that has them.
        changed = {
            p
            for p in found.keys() & other.keys()
            if found[p] != other[p] and "directory" not in (found[p][0], other[p][0])
        }
        assert len(report.changed) == len(changed)


@pytest.fixture(scope="module")
def sealed() -> Iterator[tuple[MemoryStore, RawId]]:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        plant(place / "t", {f"d{n % 3}/f{n}": os.urandom(40) for n in range(90)})
        plant(place, {"r.json": '{"a": 1, "b": [1.50, "x"]}', "o/f": "outside"})
        lines = sorted(path for path in (place / "t").rglob("*") if path.is_file())
        import hashlib

        sums = "".join(
            f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(place / 't')}\n" for p in lines
        )
        (place / "t.sum").write_text(sums)
        text = (
            '[[entry]]\nrole = "t"\nkind = "evidence"\npath = "t"\nmanifest = "t.sum"\n'
            '[[entry]]\nrole = "r"\nkind = "record"\npath = "r.json"\n'
            '[[claim]]\nname = "c"\nvalue = "1"\nunit = "u"\nmetric = "m"\nconvention = "v"\n'
            'evidence = ["r"]\n'
        )
        store = MemoryStore()
        packet = seal_text(store, place, text)
        assert verify(store, packet).outcome == "PASS"
        shutil.rmtree(place / "t")
        yield store, packet


def needed(store: MemoryStore, packet: RawId) -> list[tuple[str, RawId]]:
    """Return every record and object of a store but the observation, which no packet needs."""
    observations = {step.observation for step in store.ref_log()}
    found = [("records", id) for id in store.records() if id not in observations]
    return found + [("data", id) for id, _ in store.objects()]


@settings(max_examples=150)
@given(st.data())
def test_no_flipped_byte_of_anything_passes(sealed: tuple[MemoryStore, RawId], data: st.DataObject) -> None:
    store, packet = sealed
    where, id = data.draw(st.sampled_from(needed(store, packet)))
    shelf: dict[RawId, bytes] = getattr(store._content, where)
    whole = shelf[id]
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    shelf[id] = bytes(flipped)
    try:
        assert verify(store, packet).outcome == "FAIL"
    except ProvError as error:
        pytest.fail(f"raised instead of a verdict: {error.code}")
    finally:
        shelf[id] = whole
    assert verify(store, packet).outcome == "PASS"


@settings(max_examples=40)
@given(st.data())
def test_nothing_that_is_missing_passes(sealed: tuple[MemoryStore, RawId], data: st.DataObject) -> None:
    store, packet = sealed
    where, id = data.draw(st.sampled_from(needed(store, packet)))
    shelf: dict[RawId, bytes] = getattr(store._content, where)
    whole, info = shelf.pop(id), store._content.infos.pop(id, None)
    try:
        if id == packet:
            with pytest.raises(ProvError):
                verify(store, packet)
        else:
            assert verify(store, packet).outcome == "FAIL"
    finally:
        shelf[id] = whole
        if info is not None:
            store._content.infos[id] = info
