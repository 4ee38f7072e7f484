"""Packs from an enemy: bytes altered anywhere, and packets that are well-formed and mean harm."""

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import provstore
from fuzz import seeds
from provstore.errors import IntegrityError, ProvError, UsageError
from provstore.ids import RawId, digests, object_id, record_id
from provstore.records import FORMATS
from provstore.store import objects
from provstore.store.memory import MemoryStore
from provstore.store.pack import PackStore
from provstore.store.pack_writer import write_pack
from provstore.store.protocol import ObjectInfo
from provstore.verbs.exporting import FORMATS as FORMS

SCRATCH: Final = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where inputs that have to be files are written: memory, if the system has such a place."""

CANARY: Final = b"nobody may touch this"


class Room:
    """A directory to restore into, with neighbours that must stay as they are.

    Attributes:
        target: the only place that may be written.
    """

    def __init__(self, base: str) -> None:
        self.base = base
        self.target = os.path.join(base, "in", "target")
        for name in ("in", "outside", "in/beside"):
            os.mkdir(os.path.join(base, name))
            Path(base, name, "canary").write_bytes(CANARY)
        self.before = self.look()

    def look(self) -> dict[str, tuple[int, bytes]]:
        """Return mode and content of everything outside of the target."""
        found = {}
        for directory, names, files in os.walk(self.base):
            names[:] = [name for name in names if os.path.join(directory, name) != self.target]
            for name in [*names, *files]:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                content = Path(path).read_bytes() if name in files and not os.path.islink(path) else b""
                found[path] = (status.st_mode, content)
        return found

    def check(self) -> None:
        """Fail if anything outside of the target was made, altered or removed."""
        assert self.look() == self.before, "something outside of the target was touched"
        if os.path.isdir(self.target):
            shutil.rmtree(self.target)
        assert not os.path.lexists(self.target), "the target itself is no directory"


@contextlib.contextmanager
def room() -> Iterator[Room]:
    with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="prov-fuzz-") as base:
        yield Room(base)


@contextlib.contextmanager
def opened(data: bytes) -> Iterator[PackStore]:
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, data)
        with provstore.open_pack(f"/proc/self/fd/{descriptor}") as reader:
            yield reader
    finally:
        os.close(descriptor)


def _tried(work: Callable[[], object]) -> bool:
    """Run one verb; say whether it went through. Anything but an error of ours passes on."""
    try:
        work()
    except ProvError:
        return False
    return True


def _read_all(reader: PackStore) -> None:
    """Whatever comes through the one door hashes to the id that was asked for."""
    for id, _ in reader.objects():
        assert reader.match("blake3", id.hex()[:8]) or not _tried(reader.check)
        with contextlib.suppress(ProvError):
            assert object_id(objects.read(reader, id, 4 << 20)) == id
        with contextlib.suppress(ProvError):
            found = objects.check(reader, id)
            info = reader.info(id)
            assert info is not None
            assert (found.blake3, found.sha256, found.size_bytes) == (id, info.sha256, info.size_bytes)
    for id in reader.records():
        with contextlib.suppress(ProvError):
            data = objects.record(reader, id)
            assert any(record_id(kind, data) == id for kind, _ in FORMATS.values())


def _use(reader: PackStore, packet: RawId, place: Room) -> None:
    """Do with a packet what people do with one that was sent to them."""
    sound = _tried(lambda: _must_pass(provstore.verify(reader, packet)))
    missing: list[object] = []
    restored = _tried(lambda: missing.extend(provstore.restore(reader, packet, place.target).missing))
    if sound and restored and not missing:
        report = provstore.verify_against(reader, packet, place.target)
        assert report.outcome != "FAIL", "what was restored is not what was verified"
    place.check()
    _tried(lambda: list(provstore.ls(reader, packet)))
    _tried(lambda: provstore.show(reader, packet))
    for form in FORMS:
        _tried(lambda form=form: provstore.export(reader, packet, form))  # type: ignore[misc]
    with contextlib.suppress(ProvError):
        for listed in list(provstore.ls(reader, packet))[:3]:
            path = "/".join(part for part in (listed.role, listed.path) if part)
            _tried(lambda path=path: b"".join(provstore.cat(reader, packet, path)))  # type: ignore[misc]
            _tried(
                lambda path=path: provstore.prove(  # type: ignore[misc]
                    reader, packet, path, os.path.join(place.target + ".proof")
                )
            )
            if os.path.lexists(place.target + ".proof"):
                os.unlink(place.target + ".proof")


def _must_pass(report: provstore.VerifyReport) -> None:
    if report.outcome == "FAIL":
        raise UsageError(report.outcome)


def run_pack(data: bytes) -> None:
    with room() as place, opened(data) as reader:
        _tried(reader.check)
        reader.stats()
        _read_all(reader)
        for name, packet in reader.roots()[:4]:
            _tried(lambda name=name: provstore.resolve(reader, name or "none"))  # type: ignore[misc]
            _use(reader, packet, place)
        _unpack(reader, data)


def _unpack(reader: PackStore, data: bytes) -> None:
    """A pack goes into a store whole, or not at all."""
    store = MemoryStore()
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, data)
        done = _tried(lambda: provstore.unpack(store, f"/proc/self/fd/{descriptor}"))
    finally:
        os.close(descriptor)
    if not done:
        assert list(store.objects()) == []
        assert list(store.records()) == []
        assert store.refs() == []
        return
    for id, info in store.objects():
        if info.placement != "external":
            assert object_id(objects.read(store, id)) == id
    for _, packet in reader.roots():
        with contextlib.suppress(IntegrityError):
            objects.packet(store, packet)


# Packets that are well-formed and mean harm: every id is right, what the records say is up to the input.


def run_packet(data: bytes) -> None:
    run_pack(pack_of(data))


def pack_of(data: bytes) -> bytes:
    """Build a pack of the lines of an input; the last record is its root.

    A line ``o...`` is an object, ``O...`` one whose index entry lies, ``r...`` a record as it stands, and
    ``j...`` one that is put into canonical form first. ``@N`` and ``#N`` in a record stand for the id and the
    SHA-256 of line N.
    """
    made: list[tuple[str, str]] = []
    found_records: dict[RawId, bytes] = {}
    found_objects: dict[RawId, tuple[ObjectInfo, bytes]] = {}
    root = bytes(32)
    for line in data.split(b"\n")[:40]:
        kind, text = line[:1], line[1:]
        if kind in b"oO":
            found = digests(text)
            sha256 = found.sha256 if kind == b"o" else bytes(32)
            found_objects[found.blake3] = (ObjectInfo(len(text), sha256, "inline"), text)
            made.append((found.blake3.hex(), found.sha256.hex()))
            continue
        for number in range(len(made) - 1, -1, -1):
            text = text.replace(b"@%d" % number, made[number][0].encode())
            text = text.replace(b"#%d" % number, made[number][1].encode())
        text, domain = _record(text, canonical=kind == b"j")
        root = record_id(domain, text)
        found_records[root] = text
        made.append((root.hex(), "0" * 64))
    out = io.BytesIO()
    content = [(id, info, [text]) for id, (info, text) in found_objects.items() if id not in found_records]
    write_pack(out, [("made", root)], found_records.items(), content)
    return out.getvalue()


def _record(text: bytes, *, canonical: bool) -> tuple[bytes, str]:
    """Return a record's bytes and the domain that its format names, or that of packets."""
    value: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
    if canonical and value is not None:
        encoded = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        text = encoded.encode("utf-8", "surrogatepass")
    named = value.get("format") if isinstance(value, dict) else None
    known = FORMATS.get(named) if isinstance(named, str) else None
    return text, known[0] if known is not None else "packet"


_FILE: Final = '{"blake3":"@0","kind":"file","name":"%s","sha256":"#0","size_bytes":5}'
_LEAF: Final = 'j{"entries":[%s],"format":"provstore/tree/v1"}\n'
_PACKET: Final = (
    'j{"entries":[{"files":1,"kind":"evidence","role":"%s","size_bytes":5,"tree":"@1"}],'
    '"format":"provstore/packet/v1"}'
)
_LINK: Final = '{"kind":"symlink","name":"a","target":"%s"}'


def packet_seeds() -> list[bytes]:
    """Hand-made packets: one sound, the others with what has broken other tools."""
    file, leaf, packet = _FILE % "hello", _LEAF, _PACKET % ""
    inner = leaf % file
    texts = [
        "ohello\n" + inner + packet,
        "Ohello\n" + inner + packet,
        "ohello\n" + inner + _PACKET % "role/sub",
        "ohello\n" + inner + _PACKET % "../x",
        "ohello\n" + inner + _PACKET % "/dev/shm/prov-fuzz-pwned",
        *("ohello\n" + leaf % (_FILE % name) + packet for name in ("..", ".", "a/b", "", "a\\u0000b", "/x")),
        "ohello\n" + leaf % (_LINK % "../../outside") + packet,
        "ohello\n" + leaf % (_LINK % "/etc" + "," + _FILE % "a") + packet,
        "ohello\n" + leaf % (_LINK % "../../outside" + "," + _FILE % "b") + packet,
        "ohello\n"
        + leaf % (_LINK % "../../outside" + "," + '{"kind":"directory","name":"a","tree":"@2"}')
        + inner
        + packet,
        "ohello\n"
        + inner
        + 'j{"children":[{"entries":1,"last":"hello","tree":"@1"}],'
        + '"format":"provstore/tree-index/v1","level":1}\n'
        + _PACKET.replace("@1", "@2") % "",
        "ohello\n"
        + leaf
        % '{"kind":"symlink","name":"x","target_hex":"ff2f"},{"kind":"file","name":"y","state":"unreadable"}'
        + packet,
        'ohello\nj{"entries":[{"blake3":"@0","files":1,"kind":"file","role":"a","sha256":"#0","size_bytes":5},'
        '{"custody":"declared","files":1,"kind":"model","origins":[{"hub":"o/m","revision":"r"}],'
        '"pins":[{"kind":"manifest","value":"@0"}],"role":"b","sha256":"#0"}],"claims":[{"convention":"c",'
        '"evidence":["a"],"metric":"m","name":"n","unit":"u","value":"1"}],'
        '"format":"provstore/packet/v1","name":"n"}',
        'ohello\nj{"extractor":"elf","facts":[{"key":"elf.needed","value":["a"]}],"format":"provstore/facts/v1",'
        '"source":"@0","version":1}\nj{"entries":[{"blake3":"@0","facts":["@1"],"files":1,"kind":"native",'
        '"role":"a","sha256":"#0","size_bytes":5}],"format":"provstore/packet/v1","parents":["@1"]}',
    ]
    return [text.encode() for text in texts]


def pack_seeds() -> list[bytes]:
    packs = [path.read_bytes() for path in sorted(seeds.PACKS.glob("*.pack"))]
    return [data for data in packs if len(data) <= 16_384] + [pack_of(text) for text in packet_seeds()]
