"""Sound specimen packs, made by the library's own seal and pack. ``make.py`` writes them."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import provstore
from provstore.ids import RawId
from provstore.store.memory import MemoryStore

HELLO: Final = b"hello, world\n"


def packed(store: provstore.Store, packets: list[tuple[str, RawId]]) -> bytes:
    """Return the pack of some packets of a store."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "x.pack")
        provstore.pack([(name, provstore.Located(store, id, False)) for name, id in packets], path)
        return path.read_bytes()


def sealed(fill: Callable[[Path], None], name: str) -> tuple[bytes, RawId]:
    """Seal a directory that ``fill`` fills, and pack it."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, name)
        root.mkdir()
        fill(root)
        store = MemoryStore()
        packet = provstore.to_raw(provstore.seal(store, [root], name=name).packet)
        return packed(store, [(name, packet)]), packet


def hello() -> tuple[bytes, RawId]:
    """One file."""
    return sealed(lambda root: write(root / "hello.txt", HELLO), "hello")


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file with a mode that does not depend on the user's mask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def hostile(root: Path) -> None:
    """Fill a directory with names that break tools."""
    for number, name in enumerate(
        (b"\xff\xfe", b"new\nline", b" lead", b"-rf", b"back\\slash", b"\x1b[31m", b"...", b"a" * 255)
    ):
        with open(bytes(root) + b"/" + name, "wb") as file:
            file.write(b"%d\n" % number)
    for text in ("\u00e9", "e\u0301", "\u202eevil", "\U0001f600"):
        write(root / text, text.encode())


def shapes(root: Path) -> None:
    """Fill a directory with each kind of member."""
    write(root / "run.sh", b"#!/bin/sh\nexit 0\n", 0o755)
    write(root / "data" / "rows.txt", b"1\n2\n")
    (root / "empty").mkdir()
    (root / "current").symlink_to("data/rows.txt")
    (root / "dangling").symlink_to("../nowhere")
    (root / "loop").symlink_to(".")


def many(root: Path) -> None:
    """Fill a directory with 5,000 files."""
    for number in range(5000):
        write(root / f"member-{number:06}", b"x\n")


def spec_pack() -> tuple[bytes, RawId]:
    """Seal a spec with members that are held, elsewhere, and only declared."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        write(root / "logs/status.txt", b"0\n")
        write(root / "big/weights.bin", bytes(1000))
        write(root / "weights.sha256", f"{'0' * 64}  int4/model.safetensors\n".encode())
        spec = root / "packet.toml"
        spec.write_text(
            'format = "provstore/packet-spec/v1"\nname = "three-custodies"\n'
            '[[entry]]\nrole = "logs"\nkind = "evidence"\npath = "logs"\n'
            '[[entry]]\nrole = "weights/draft"\nkind = "file"\npath = "big/weights.bin"\nkeep = "external"\n'
            'url = "https://example.org/weights.bin"\n'
            '[[entry]]\nrole = "weights/target"\nkind = "model"\nkeep = "declared"\n'
            f'hub = "someone/model"\nrevision = "{"0" * 40}"\nmanifest = "weights.sha256"\nprefix = "int4/"\n'
        )
        store = MemoryStore()
        packet = provstore.to_raw(provstore.seal_spec(store, spec).packet)
        return packed(store, [("three-custodies", packet)]), packet


def parents() -> tuple[bytes, RawId]:
    """Seal three generations."""
    store = MemoryStore()
    made: list[tuple[str, RawId]] = []
    with tempfile.TemporaryDirectory() as place:
        for generation in ("first", "second", "third"):
            write(Path(place, "result.txt"), generation.encode() + b"\n")
            above = f'parents = ["{made[-1][1].hex()}"]\n' if made else ""
            spec = Path(place, "packet.toml")
            spec.write_text(
                f'format = "provstore/packet-spec/v1"\nname = "{generation}"\n{above}'
                '[[entry]]\nrole = "result"\nkind = "file"\npath = "result.txt"\n'
            )
            report = provstore.seal_spec(store, spec)
            made.append((generation, provstore.to_raw(report.packet)))
    return packed(store, made), made[-1][1]
