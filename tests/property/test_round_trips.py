"""Whatever lies in a directory comes out of every store and every pack as it went in."""

import itertools
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from workbench import plant, seal

import provstore
from provstore.files import hashing
from provstore.ids import RawId
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.profile import StoreProfile
from provstore.store.protocol import Reader, Store
from provstore.verbs.comparing import verify_against
from provstore.verbs.locating import Located, locate
from provstore.verbs.packing import pack
from provstore.verbs.restoring import restore
from provstore.verbs.unpacking import unpack
from provstore.verbs.verifying import verify

Node = tuple[str, bytes]
Shape = dict[bytes, Node]
"""What lies where: ``file``, ``executable``, ``symlink`` or an empty ``directory``, and its bytes."""

LEGAL = bytes.maketrans(b"\0/", b"\1x")
"""What a name cannot hold, made into something else."""

NAMES = (
    st.binary(min_size=1, max_size=6).map(lambda name: name.translate(LEGAL))
    | st.sampled_from(
        [b"a", b"a.b", b"a-b", b"A", "é".encode(), "e\u0301".encode(), b"n\nl", b"\\x41", b"-rf", b" "]
    )
    | st.sampled_from([b"x" * 255, b"\xff" * 255, b"..."])
).filter(lambda name: name not in (b".", b".."))

CONTENTS = (st.binary(max_size=40) | st.binary(min_size=1, max_size=3).map(lambda b: b * 900)).filter(
    lambda data: (
        not data.startswith((b"# v", b"version https", b"/", b"\\"))
    )  # stand-ins are refused on purpose
)

NODES = (
    st.tuples(st.sampled_from(["file", "executable"]), CONTENTS)
    | st.tuples(st.just("symlink"), st.binary(min_size=1, max_size=30).map(lambda t: t.replace(b"\0", b"/")))
    | st.just(("directory", b""))
)


def apart(shape: Shape) -> Shape:
    """Leave out what lies below something that is no directory."""
    kept: Shape = {}
    for path in sorted(shape):
        above = path.split(b"/")
        if not any(b"/".join(above[:end]) in kept for end in range(1, len(above))):
            kept[path] = shape[path]
    return kept


SHAPES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map(b"/".join), NODES, min_size=1, max_size=12
).map(apart)

often = settings(
    max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


def make(root: Path, shape: Mapping[bytes, Node]) -> Path:
    base = os.fsencode(root)
    os.makedirs(base, exist_ok=True)
    for path, (kind, data) in shape.items():
        place = os.path.join(base, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if kind == "directory":
            os.makedirs(place, exist_ok=True)
        elif kind == "symlink":
            os.symlink(data, place)
        else:
            with open(place, "wb") as file:
                file.write(data)
            os.chmod(place, 0o755 if kind == "executable" else 0o644)
    return root


def look(root: Path) -> Shape:
    """Return what lies below a directory, written down independently of the walk under test."""
    base = os.fsencode(root)
    found: Shape = {}
    for folder, below, files in os.walk(base):
        for name in below + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            place = os.path.relpath(path, base)
            if stat.S_ISLNK(status.st_mode):
                found[place] = "symlink", os.readlink(path)
            elif stat.S_ISDIR(status.st_mode):
                if not os.listdir(path):
                    found[place] = "directory", b""
            else:
                with open(path, "rb") as file:
                    found[place] = "executable" if status.st_mode & 0o100 else "file", file.read()
    return found


@contextmanager
def workplace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="prov-trip-") as place:
        yield Path(place)


@pytest.fixture(params=["memory", "lmdb", "lmdb with blob files"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    if request.param.endswith("files"):
        monkeypatch.setattr(hashing, "SMALL_BYTES", 30)
    if request.param == "memory":
        yield MemoryStore()
        return
    opened = LmdbStore.create(os.fspath(tmp_path / "store"), profile=StoreProfile(sync=False))
    yield opened
    opened.close()


@often
@given(SHAPES)
@example({b"d/e/f": ("directory", b"")})
@example({b"\xff": ("executable", b""), b"l": ("symlink", b"\xff\xfe\n")})
@example({b"%03d" % n: ("file", b"%d" % n) for n in range(200)})
def test_what_was_sealed_is_restored(store: Store, shape: Shape) -> None:
    with workplace() as place:
        source = make(place / "source", shape)
        assert look(source) == shape
        packet = seal(store, source)
        report = restore(store, packet, place / "out")
        assert look(place / "out") == shape
        assert report.missing == ()
        assert verify_against(store, packet, place / "out").outcome == "PASS"
        assert seal(MemoryStore(), place / "out") == packet
        files = sum(kind in ("file", "executable") for kind, _ in shape.values())
        assert verify(store, packet).outcome == ("PASS" if files else "INCOMPLETE")


@often
@given(SHAPES, SHAPES)
def test_equal_directories_are_one_packet_and_no_others(store: Store, a: Shape, b: Shape) -> None:
    with workplace() as place:
        first, second = seal(store, make(place / "a", a)), seal(store, make(place / "b", b))
        assert (first == second) == (a == b)
        assert verify_against(store, first, place / "b").outcome == ("PASS" if a == b else "FAIL")


def contents(reader: Reader, packet: RawId) -> tuple[dict[RawId, bytes], dict[RawId, bytes]]:
    """Return every record and object that a pack of one packet holds, through the one door."""
    return (
        {id: objects.record(reader, id) for id in reader.records()},
        {id: objects.read(reader, id) for id, _ in reader.objects()},
    )


def packed(reader: Reader, packet: RawId, output: Path) -> bytes:
    pack([("run", Located(reader, packet, False))], output)
    return output.read_bytes()


@often
@given(SHAPES)
def test_a_pack_holds_exactly_the_packet(store: Store, shape: Shape) -> None:
    with workplace() as place:
        packet = seal(store, make(place / "source", shape), name="run")
        data = packed(store, packet, place / "p.pack")
        other = MemoryStore()
        unpack(other, place / "p.pack")
        assert other.ref("run") == packet
        restore(other, packet, place / "out")
        assert look(place / "out") == shape
        with locate(os.fspath(place / "p.pack"), None) as (reader, root, _):
            assert root == packet
            assert contents(reader, packet) == contents(other, packet)
            restore(reader, packet, place / "straight")
        assert look(place / "straight") == shape
        assert packed(other, packet, place / "again.pack") == data


def grown_at_once(store: Store, source: Path, place: Path) -> RawId:
    return seal(store, source, name="run")


def grown_in_parts(store: Store, source: Path, place: Path) -> RawId:
    """Every part was sealed before under another name, in the opposite order, among strangers."""
    seal(
        store,
        make(place / "strangers", {b"%d" % n: ("file", b"stranger %d" % n) for n in range(30)}),
        name="s",
    )
    for number, name in enumerate(sorted(os.listdir(source), reverse=True)):
        part = source / name
        if part.is_dir() and not part.is_symlink() and any(part.iterdir()):
            seal(store, part, name=f"part{number}")
    return seal(store, source, name="run")


def grown_through_changes(store: Store, source: Path, place: Path) -> RawId:
    """The same name stood for other things before; their remains were swept in part."""
    other = make(
        place / "before",
        {b"a/b": ("file", b"before"), **{b"x%d" % n: ("file", b"%d" % n) for n in range(90)}},
    )
    seal(store, other, name="run")
    (other / "x5").unlink()
    seal(store, other, name="run")
    packet = seal(store, source, name="run")
    provstore.gc(store, delete=True, grace_s=0)
    return packet


def grown_from_a_pack(store: Store, source: Path, place: Path) -> RawId:
    memory = MemoryStore()
    packet = seal(memory, source, name="run")
    output = place / f"way{len(list(place.iterdir()))}.pack"
    pack([("run", Located(memory, packet, False))], output)
    unpack(store, output)
    return packet


def grown_outside_first(store: Store, source: Path, place: Path) -> RawId:
    seal(store, source, name="outside", keep=False)
    return seal(store, source, name="run", workers=1)


HISTORIES = [grown_at_once, grown_in_parts, grown_through_changes, grown_from_a_pack, grown_outside_first]


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(SHAPES)
@example({b"d%d/%03d" % (n % 3, n): ("file", b"content %d" % (n // 2)) for n in range(150)})
@example({b"big": ("file", bytes(range(256)) * 6000), b"x": ("executable", b"")})
def test_packs_are_the_same_bytes_whatever_the_history_of_the_store(shape: Shape) -> None:
    with workplace() as place:
        source = make(place / "source", shape)
        found: set[bytes] = set()
        for number, (grow, kind) in enumerate(itertools.product(HISTORIES, ("memory", "lmdb"))):
            own = place / f"own{number}"
            own.mkdir()
            profile = StoreProfile(
                sync=False, zstd_level=1 + number % 5, inline_limit_bytes=(number % 3) << 19
            )
            store = (
                MemoryStore()
                if kind == "memory"
                else LmdbStore.create(os.fspath(own / "store"), profile=profile)
            )
            packet = grow(store, source, own)
            found.add(packed(store, packet, own / "p.pack"))
            store.close()
        assert len(found) == 1


def test_two_packets_in_one_pack_come_in_any_order(tmp_path: Path) -> None:
    store = MemoryStore()
    a = seal(store, plant(tmp_path / "a", {"f": "1", "shared": "s"}))
    b = seal(store, plant(tmp_path / "b", {"f": "2", "shared": "s"}))
    ways = [("a", Located(store, a, False)), ("b", Located(store, b, False))]
    pack(ways, tmp_path / "ab.pack")
    pack(ways[::-1], tmp_path / "ba.pack")
    assert (tmp_path / "ab.pack").read_bytes() == (tmp_path / "ba.pack").read_bytes()
