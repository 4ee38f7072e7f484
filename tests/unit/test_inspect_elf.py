"""ELF facts: objects that gcc builds here, the interpreter's own, readelf as witness, and broken files."""

import io
import os
import re
import shutil
import struct
import subprocess
import sysconfig
import time
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provstore.errors import InspectError
from provstore.files.inspect_elf import MAX_TABLE_ENTRIES, inspect_elf, is_elf
from provstore.records.facts import FactValue

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
DT_NULL, DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME, DT_RPATH, DT_RUNPATH = 0, 1, 5, 10, 14, 15, 29


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed; these tests build and read real shared objects with it")
    return found


def facts(data: bytes, path: str = "x.so") -> dict[str, FactValue]:
    found = inspect_elf(io.BytesIO(data), path)
    assert {fact.path for fact in found} == {path}
    assert len({fact.key for fact in found}) == len(found)
    return {fact.key: fact.value for fact in found}


def build(root: Path, name: str, *options: str, source: str = "int v(void){return 1;}") -> bytes:
    """Compile one source; a shared object unless the options say otherwise."""
    kind = [] if {"-c", "-static", "-pie", "-no-pie"} & set(options) else ["-shared", "-fPIC"]
    argv = [program("gcc"), *kind, "-x", "c", "-", "-o", name, *options]
    done = subprocess.run(
        argv, cwd=root, input=source.encode(), capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    return (root / name).read_bytes()


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small shared object that states everything."""
    options = ("-nostdlib", "-s", "-Wl,--build-id=0x1234", "-Wl,-soname,libsmall.so.1", "-Wl,-rpath,$ORIGIN")
    return build(tmp_path_factory.mktemp("elf"), "small.so", *options)


def test_everything_stated_is_found(small: bytes) -> None:
    assert facts(small, "lib/small.so") == {
        "elf.machine": {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}[os.uname().machine],
        "elf.class_bits": 64,
        "elf.type": "ET_DYN",
        "elf.soname": "libsmall.so.1",
        "elf.runpath": "$ORIGIN",
        "elf.build_id": "1234",
    }


def test_equal_build_id_of_different_bytes_is_only_a_label(tmp_path: Path) -> None:
    one = build(tmp_path, "a.so", "-Wl,--build-id=0x1234", source="int v(void){return 1;}")
    two = build(tmp_path, "b.so", "-Wl,--build-id=0x1234", source="int v(void){return 2;}")
    assert one != two
    assert facts(one)["elf.build_id"] == facts(two)["elf.build_id"] == "1234"


@pytest.mark.parametrize(
    ("option", "pattern"),
    [
        ("--build-id", "[0-9a-f]{40}"),
        ("--build-id=md5", "[0-9a-f]{32}"),
        ("--build-id=0xabcdef0123", "abcdef0123"),
    ],
)
def test_build_ids_of_any_length(tmp_path: Path, option: str, pattern: str) -> None:
    assert re.fullmatch(pattern, str(facts(build(tmp_path, "a.so", f"-Wl,{option}"))["elf.build_id"]))


def test_absent_things_give_no_fact(tmp_path: Path) -> None:
    found = facts(build(tmp_path, "a.so", "-nostdlib", "-Wl,--build-id=none"))
    assert sorted(found) == ["elf.class_bits", "elf.machine", "elf.type"]


def test_search_paths_old_and_new(tmp_path: Path) -> None:
    (tmp_path / "libdep.so.2").write_bytes(build(tmp_path, "libdep.so", "-Wl,-soname,libdep.so.2"))
    link = ("-L.", "-Wl,--no-as-needed", "-ldep", "-Wl,-rpath,$ORIGIN/../lib:/opt/x")
    old = facts(build(tmp_path, "old.so", *link, "-Wl,--disable-new-dtags"))
    assert (old["elf.rpath"], "elf.runpath" in old) == ("$ORIGIN/../lib:/opt/x", False)
    new = facts(build(tmp_path, "new.so", *link, "-Wl,--enable-new-dtags"))
    assert (new["elf.runpath"], "elf.rpath" in new) == ("$ORIGIN/../lib:/opt/x", False)
    assert new["elf.needed"] == old["elf.needed"] == ("libdep.so.2", "libc.so.6")


def test_hostile_names_are_shown_escaped(tmp_path: Path) -> None:
    found = facts(build(tmp_path, "a.so", "-Wl,-soname,a\x1b[31m\udcff.so"))
    assert found["elf.soname"] == r"a\x1b[31m\xff.so"


def test_programs_objects_and_debug_files(tmp_path: Path) -> None:
    main = "int main(void){return 0;}"
    found = facts(build(tmp_path, "pie", "-pie", "-fPIE", "-g", "-Wl,--build-id=0x77", source=main))
    assert (found["elf.type"], found["elf.build_id"]) == ("ET_DYN", "77")
    assert str(found["elf.interpreter"]).startswith("/lib")
    static = facts(build(tmp_path, "static", "-static", "-no-pie", "-Wl,--build-id=0x78", source=main))
    assert (static["elf.type"], static["elf.build_id"]) == ("ET_EXEC", "78")
    assert not {"elf.interpreter", "elf.needed", "elf.soname"} & set(static)
    assert facts(build(tmp_path, "a.o", "-c"))["elf.type"] == "ET_REL"
    argv = [program("objcopy"), "--only-keep-debug", "pie", "pie.debug"]
    subprocess.run(argv, cwd=tmp_path, check=True, timeout=60)
    debug = facts((tmp_path / "pie.debug").read_bytes())
    assert debug["elf.build_id"] == "77"
    assert "elf.needed" not in debug


def test_build_id_of_an_object_without_segments(tmp_path: Path) -> None:
    """A relocatable file has no PT_NOTE, so its note sections are read."""
    build(tmp_path, "a.o", "-c")
    argv = [program("ld"), "-r", "a.o", "-o", "b.o", "--build-id=0xfeed"]
    subprocess.run(argv, cwd=tmp_path, check=True, timeout=60)
    assert facts((tmp_path / "b.o").read_bytes())["elf.build_id"] == "feed"


def witness(path: Path) -> dict[str, FactValue]:
    """Read the same facts out of what readelf prints."""
    argv = [program("readelf"), "--wide", "-h", "-d", "-n", "-l", str(path)]
    text = subprocess.run(
        argv, capture_output=True, text=True, check=True, timeout=60, env={"LC_ALL": "C"}
    ).stdout
    found: dict[str, FactValue] = {}
    if needed := re.findall(r"\(NEEDED\) .*\[(.*)\]", text):
        found["elf.needed"] = tuple(needed)
    for key, pattern in {
        "elf.soname": r"\(SONAME\) .*\[(.*)\]",
        "elf.rpath": r"\(RPATH\) .*\[(.*)\]",
        "elf.runpath": r"\(RUNPATH\) .*\[(.*)\]",
        "elf.build_id": r"Build ID: ([0-9a-f]+)",
        "elf.interpreter": r"Requesting program interpreter: (.*)\]",
    }.items():
        if match := re.search(pattern, text):
            found[key] = match[1]
    return found


def real_objects() -> list[Path]:
    roots = [Path(sysconfig.get_path("platstdlib")) / "lib-dynload", Path(sysconfig.get_path("platlib"))]
    return sorted(path for root in roots for path in root.rglob("*.so*") if path.is_file())


def test_the_interpreters_own_objects_read_as_readelf_reads_them() -> None:
    paths = real_objects()
    assert len(paths) > 20
    for path in paths[:: max(1, len(paths) // 40)]:
        with path.open("rb") as stream:
            found = {fact.key: fact.value for fact in inspect_elf(stream, path.name)}
        machine, bits, kind = (found.pop(key) for key in ("elf.machine", "elf.class_bits", "elf.type"))
        assert (str(machine)[:3], bits, kind) == ("EM_", 64, "ET_DYN")
        assert found == witness(path), path


class CountingReader(io.BytesIO):
    """A stream that adds up what was read."""

    total = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.total += len(data)
        return data


def test_only_heads_are_read() -> None:
    biggest = max(real_objects(), key=lambda path: path.stat().st_size)
    reader = CountingReader(biggest.read_bytes())
    inspect_elf(reader, "big.so")
    assert len(reader.getbuffer()) > 1_000_000
    assert reader.total < 16_384


def test_truncation_anywhere_is_refused_or_harmless(small: bytes) -> None:
    whole = facts(small)
    for length in [*range(0, len(small), 64), len(small) - 1]:
        with pytest.raises(InspectError, match=r"^cut\.so: "):
            inspect_elf(io.BytesIO(small[:length]), "cut.so")
    assert facts(small + b"appended") == whole


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_flipped_bytes_never_crash(small: bytes, data: st.DataObject) -> None:
    """Half of the flips hit the headers, where all offsets and counts are."""
    places = st.integers(0, 1023) | st.integers(0, len(small) - 1)
    broken = bytearray(small)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=8)):
        broken[place] = value
    try:
        found = inspect_elf(io.BytesIO(bytes(broken)), "x.so")
    except InspectError:
        return
    assert {fact.key for fact in found} >= {"elf.machine", "elf.class_bits", "elf.type"}


class Tiny:
    """A hand-made ELF file of any class and byte order, its one PT_LOAD maps all of it at address 0x10000."""

    BASE = 0x10000

    def __init__(self, bits: int = 64, order: str = "<", machine: int = 62) -> None:
        self.bits, self.order, self.machine = bits, order, machine
        self.segments: list[tuple[int, int, int, int, int]] = []
        self.body = b""
        self.start = 0x400

    def put(self, data: bytes) -> int:
        self.body += bytes(-len(self.body) % 8)
        self.body += data
        return self.start + len(self.body) - len(data)

    def segment(self, kind: int, data: bytes, *, align: int = 8, size: int | None = None) -> None:
        self.segments.append((kind, self.put(data), 0, len(data) if size is None else size, align))

    def dynamic(self, entries: Iterable[tuple[int, int]], strings: bytes, *, size: int | None = None) -> None:
        address = self.put(strings) + self.BASE
        word = "q" if self.bits == 64 else "i"
        table = [
            *entries,
            (DT_STRTAB, address),
            (DT_STRSZ, len(strings) if size is None else size),
            (DT_NULL, 0),
        ]
        self.segment(PT_DYNAMIC, b"".join(struct.pack(self.order + 2 * word, *entry) for entry in table))

    def note(self, name: bytes, kind: int, data: bytes, align: int) -> bytes:
        head = struct.pack(self.order + "III", len(name), len(data), kind) + name
        head += bytes(-len(head) % align) + data
        return head + bytes(-len(head) % align)

    def bytes(self, *, e_phnum: int | None = None, e_phentsize: int | None = None, shoff: int = 0) -> bytes:
        end = self.start + len(self.body)
        all_segments = [(PT_LOAD, 0, self.BASE, end, 0x1000), *self.segments]
        wide = self.bits == 64
        ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if self.order == "<" else 2, 1]) + bytes(9)
        sizes = (64, 56, 64) if wide else (52, 32, 40)
        head = ident + struct.pack(
            self.order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"),
            *(3, self.machine, 1, 0, sizes[0], shoff, 0, sizes[0]),
            *(
                sizes[1] if e_phentsize is None else e_phentsize,
                len(all_segments) if e_phnum is None else e_phnum,
            ),
            *(sizes[2], 0, 0),
        )
        for kind, offset, address, size, align in all_segments:
            if wide:
                head += struct.pack(
                    self.order + "IIQQQQQQ", kind, 4, offset, address, address, size, size, align
                )
            else:
                head += struct.pack(
                    self.order + "IIIIIIII", kind, offset, address, address, size, size, 4, align
                )
        assert len(head) <= self.start
        return head.ljust(self.start, b"\0") + self.body


@pytest.mark.parametrize(("bits", "order"), [(64, "<"), (64, ">"), (32, "<"), (32, ">")])
@pytest.mark.parametrize("align", [0, 1, 4, 8])
def test_both_classes_both_orders_and_each_note_alignment(bits: int, order: str, align: int) -> None:
    tiny = Tiny(bits, order, machine=0xABCD)
    step = 8 if align == 8 else 4
    notes = tiny.note(b"odd\0\0", 1, b"12345", step) + tiny.note(b"GNU\0", 1, b"x", step)
    notes += tiny.note(b"stapsdt\0", 3, b"no id", step) + tiny.note(b"GNU\0", 3, b"\x01\x02\x03", step)
    tiny.segment(PT_NOTE, notes.rstrip(b"\0"), align=align)
    tiny.segment(PT_INTERP, b"/lib/ld.so\0")
    strings = b"\0liba.so\0libb.so\0$ORIGIN\0"
    tiny.dynamic([(DT_NEEDED, 9), (DT_SONAME, 1), (DT_RPATH, 17), (DT_RUNPATH, 17), (DT_NEEDED, 1)], strings)
    assert facts(tiny.bytes()) == {
        "elf.machine": "0xabcd",
        "elf.class_bits": bits,
        "elf.type": "ET_DYN",
        "elf.interpreter": "/lib/ld.so",
        "elf.soname": "liba.so",
        "elf.needed": ("libb.so", "liba.so"),
        "elf.rpath": "$ORIGIN",
        "elf.runpath": "$ORIGIN",
        "elf.build_id": "010203",
    }


def broken_files() -> dict[str, tuple[bytes, str]]:
    """Crafted files, each with the reason that it must be refused for."""

    def of(kind: int, data: bytes, **more: int) -> bytes:
        tiny = Tiny()
        tiny.segment(kind, data, **more)
        return tiny.bytes()

    def dynamic(entries: list[tuple[int, int]], strings: bytes, size: int | None = None) -> bytes:
        tiny = Tiny()
        tiny.dynamic(entries, strings, size=size)
        return tiny.bytes()

    note = Tiny().note
    return {
        "empty": (b"", "no ELF file"),
        "magic": (b"\x7fELF", "unknown"),
        "class": (b"\x7fELF\x03" + bytes(80), "unknown"),
        "header": (b"\x7fELF\x02\x01\x01" + bytes(20), "file header ends"),
        "segments": (Tiny().bytes(e_phnum=60000), "program header table ends"),
        "many": (Tiny().bytes(e_phnum=MAX_TABLE_ENTRIES), "65535 or more"),
        "entry size": (Tiny().bytes(e_phentsize=1), "entries of 1 bytes"),
        "no room": (of(PT_NOTE, b"", size=1 << 62), "PT_NOTE segment ends"),
        "interpreter": (of(PT_INTERP, b"/lib/ld.so"), "does not end"),
        "no interpreter": (of(PT_INTERP, b"\0"), "empty"),
        "long interpreter": (of(PT_INTERP, b"/" * 5000), "no path"),
        "long dynamic": (of(PT_DYNAMIC, bytes((1 << 20) + 16)), "larger than"),
        "endless dynamic": (of(PT_DYNAMIC, struct.pack("<qq", 1, 1) * 4), "DT_NULL"),
        "no strings": (of(PT_DYNAMIC, struct.pack("<qqqq", 1, 1, 0, 0)), "no string table"),
        "string outside": (dynamic([(DT_NEEDED, 99)], b"\0a\0"), "outside"),
        "string without end": (dynamic([(DT_NEEDED, 1)], b"\0a"), "does not end"),
        "string table": (dynamic([(DT_NEEDED, 1)], b"\0a\0", size=1 << 40), "string table ends"),
        "strings": (
            dynamic([(DT_NEEDED, 0)] * 5, b"n" * 300_000 + b"\0"),
            "does not end in its table or within",
        ),
        "strings nowhere": (
            of(PT_DYNAMIC, struct.pack("<10q", 1, 0, 5, 1, 10, 9, 0, 0, 0, 0)),
            "no loaded segment",
        ),
        "note alignment": (of(PT_NOTE, note(b"GNU\0", 3, b"id", 4), align=16), "aligned to 16"),
        "note too long": (of(PT_NOTE, struct.pack("<III", 4, 1 << 31, 3) + b"GNU\0"), "runs past"),
        "note name": (of(PT_NOTE, struct.pack("<III", 1 << 31, 0, 3) + b"GNU\0"), "runs past"),
        "empty id": (of(PT_NOTE, note(b"GNU\0", 3, b"", 4)), "build id of 0 bytes"),
        "long id": (of(PT_NOTE, note(b"GNU\0", 3, bytes(2000), 4)), "build id of 2000 bytes"),
        "notes": (of(PT_NOTE, bytes(12 * 65540), align=4), "more than 65535 notes"),
        "sections": (Tiny().bytes(shoff=0x400), "65535 or more"),
    }


@pytest.mark.parametrize("name", sorted(broken_files()))
def test_crafted_files_are_refused_cheaply(name: str) -> None:
    data, reason = broken_files()[name]
    stream = io.BytesIO(data)
    started = time.process_time()
    tracemalloc.start()
    with pytest.raises(InspectError) as caught:
        inspect_elf(stream, "bad.so")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reason in caught.value.reason
    assert peak < 16 << 20
    assert time.process_time() - started < 20


def test_a_huge_sparse_file_costs_nothing(tmp_path: Path) -> None:
    tiny = Tiny()
    tiny.segment(PT_NOTE, b"", size=1 << 40)
    with (tmp_path / "big.so").open("w+b") as stream:
        stream.write(tiny.bytes())
        stream.truncate((1 << 40) + 4096)
        with pytest.raises(InspectError, match="more than 65535 notes"):
            inspect_elf(stream, "big.so")


def test_is_elf() -> None:
    assert is_elf(b"\x7fELF")
    assert not is_elf(b"\x7fEL")
    assert not is_elf(b"")
