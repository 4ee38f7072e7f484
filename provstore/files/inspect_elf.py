"""ELF files: what a shared object or program says about itself, read from its headers alone.

Only the file header, the program headers, the dynamic table, the strings that it names, the interpreter and
the heads of notes are read, never code or data. Every offset and length is held to the size of the file
before anything is read, and each table to a limit, so a crafted file costs neither memory nor time.

A build id is a label, not an identity: different bytes can share one, and it may be absent. What identifies
a file is its digest.

Sources: System V gABI chapters 4 and 5; the GNU note layout as binutils writes it, aligned to the alignment
of its segment; DT_RPATH and DT_RUNPATH as ``ld.so(8)`` reads them. Numbers are named as in ``elf.h``.
"""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.construct import ConstructError
from elftools.elf.structs import ELFStructs

from provstore.errors import InspectError
from provstore.paths import show
from provstore.records.facts import Fact, FactValue

EXTRACTOR: Final = "elf"
VERSION: Final = 1

MAX_TABLE_ENTRIES: Final = 0xFFFF
"""Most program headers, section headers or notes that one file may have."""

MAX_DYNAMIC_BYTES: Final = 1 << 20
"""Largest dynamic table."""

MAX_STRING_BYTES: Final = 1 << 20
"""Most bytes of all names and search paths of one file together."""

MAX_INTERPRETER_BYTES: Final = 4096
"""Longest path of an interpreter, as Linux has it (PATH_MAX)."""

MAX_BUILD_ID_BYTES: Final = 1024
"""Longest build id; usual are 8, 16 and 20."""

_MAGIC: Final = b"\x7fELF"
_IDENT_BYTES: Final = 16
_NOTE_HEAD_BYTES: Final = 12
_STRING_CHUNK: Final = 256
_BUILD_ID_TYPES: Final = ("NT_GNU_BUILD_ID", 3)


class _Image(NamedTuple):
    """An open ELF file: its stream, its size, and the shapes of its structures."""

    stream: BinaryIO
    size: int
    where: str
    structs: ELFStructs
    header: Any
    segments: tuple[Any, ...]

    def fail(self, reason: str) -> InspectError:
        return InspectError(self.where, reason)

    def need(self, offset: int, length: int, what: str) -> None:
        """Check that a range lies in the file."""
        if offset + length > self.size:
            raise self.fail(f"{what} ends at byte {offset + length} of a file of {self.size} bytes")

    def read(self, offset: int, length: int, what: str) -> bytes:
        """Read exactly one range."""
        self.need(offset, length, what)
        self.stream.seek(offset)
        data = self.stream.read(length)
        if len(data) != length:
            raise self.fail(f"{what} could not be read whole at byte {offset}")
        return data


def is_elf(head: bytes) -> bool:
    r"""Return whether a file that begins with ``head`` (4 bytes are enough) says that it is ELF.

    Example:
        >>> is_elf(b"\x7fELF\x02\x01\x01"), is_elf(b"#!/bin/sh")
        (True, False)
    """
    return head.startswith(_MAGIC)


def inspect_elf(stream: BinaryIO, path: str) -> tuple[Fact, ...]:
    r"""Return what an ELF file states about itself.

    Facts, in this order, each only if the file states it: ``elf.machine`` (``EM_X86_64``), ``elf.class_bits``
    (32 or 64), ``elf.type`` (``ET_DYN``), ``elf.interpreter``, ``elf.soname``, ``elf.needed`` (all of them,
    in their order), ``elf.rpath`` and ``elf.runpath`` (the whole text, ``$ORIGIN`` kept), ``elf.build_id``
    (hex). Text is in the form of :func:`provstore.paths.show`. Where one tag is stated twice, the last
    counts, as it does for the GNU loader. A number without a name in ``elf.h`` becomes ``0x…``.

    Args:
        stream: the file, seekable; its first byte is at position 0.
        path: shown path of the file below its entry, for the facts and for errors.

    Raises:
        InspectError: no ELF file, one that is cut short, or tables that contradict themselves or are larger
            than the limits of this module.
        OSError: the stream cannot be read.

    Example:
        >>> head = b"\x7fELF\2\1\1".ljust(16, b"\0") + b"\3\0\x3e\0\1".ljust(48, b"\0")
        >>> inspect_elf(io.BytesIO(head), "x.so")[0].value
        'EM_X86_64'
    """
    where = path or "ELF file"
    try:
        image = _open(stream, where)
        found: list[tuple[str, FactValue]] = [
            ("elf.machine", _name(image.header.e_machine)),
            ("elf.class_bits", image.structs.elfclass),
            ("elf.type", _name(image.header.e_type)),
            ("elf.interpreter", _interpreter(image)),
            *_dynamic(image),
            ("elf.build_id", _build_id(image)),
        ]
    except (ELFError, ConstructError) as error:
        raise InspectError(where, f"malformed ELF: {error}") from error
    return tuple(Fact(key=key, value=value, path=path) for key, value in found if value is not None)


def _name(number: str | int) -> str:
    return number if isinstance(number, str) else hex(number)


def _open(stream: BinaryIO, where: str) -> _Image:
    """Read the file header and the program headers."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    ident = stream.read(_IDENT_BYTES)
    if not is_elf(ident):
        raise InspectError(where, "no ELF file")
    if len(ident) < _IDENT_BYTES or ident[4] not in (1, 2) or ident[5] not in (1, 2) or ident[6] != 1:
        raise InspectError(where, f"class, byte order or version is unknown: {ident[4:7].hex()}")
    structs = ELFStructs(little_endian=ident[5] == 1, elfclass=32 * ident[4])
    structs.create_basic_structs()
    image = _Image(stream, size, where, structs, None, ())
    image.need(0, structs.Elf_Ehdr.sizeof(), "file header")
    header = struct_parse(structs.Elf_Ehdr, stream, 0)
    structs.create_advanced_structs(header.e_type, header.e_machine, header.e_ident.EI_OSABI)
    image = image._replace(header=header)
    if header.e_shoff and header.e_shnum:
        image.need(header.e_shoff, header.e_shnum * header.e_shentsize, "section header table")
    count = header.e_phnum if header.e_phoff else 0
    shape = structs.Elf_Phdr
    segments = tuple(_table(image, header.e_phoff, count, header.e_phentsize, shape, "program header table"))
    for segment in segments:
        if segment.p_type in ("PT_LOAD", "PT_DYNAMIC", "PT_INTERP", "PT_NOTE") and segment.p_filesz:
            image.need(segment.p_offset, segment.p_filesz, f"{segment.p_type} segment")
    return image._replace(segments=segments)


def _table(image: _Image, offset: int, count: int, step: int, shape: Any, what: str) -> Iterator[Any]:
    """Yield the entries of a table that is read at once."""
    if not count:
        return
    if count >= MAX_TABLE_ENTRIES:
        raise image.fail(f"{what} has {MAX_TABLE_ENTRIES} or more entries, which is more than is read")
    if step != shape.sizeof():
        raise image.fail(f"{what} has entries of {step} bytes where {shape.sizeof()} are needed")
    table = io.BytesIO(image.read(offset, count * step, what))
    for _ in range(count):
        yield struct_parse(shape, table)


def _interpreter(image: _Image) -> str | None:
    for segment in image.segments:
        if segment.p_type == "PT_INTERP" and segment.p_filesz:
            if segment.p_filesz > MAX_INTERPRETER_BYTES:
                raise image.fail(f"interpreter of {segment.p_filesz} bytes is no path")
            text, end, _ = image.read(segment.p_offset, segment.p_filesz, "interpreter").partition(b"\0")
            if not text or not end:
                raise image.fail("interpreter is empty or does not end")
            return show(text)
    return None


def _dynamic(image: _Image) -> list[tuple[str, FactValue]]:
    """Return the names and search paths of the dynamic table."""
    table = next((s for s in image.segments if s.p_type == "PT_DYNAMIC" and s.p_filesz), None)
    if table is None:
        return []
    if table.p_filesz > MAX_DYNAMIC_BYTES:
        raise image.fail(f"dynamic table of {table.p_filesz} bytes is larger than {MAX_DYNAMIC_BYTES}")
    data = io.BytesIO(image.read(table.p_offset, table.p_filesz, "dynamic table"))
    needed: list[int] = []
    last: dict[str | int, int] = {}
    for _ in range(table.p_filesz // image.structs.Elf_Dyn.sizeof()):
        entry = struct_parse(image.structs.Elf_Dyn, data)
        if entry.d_tag == "DT_NULL":
            break
        if entry.d_tag == "DT_NEEDED":
            needed.append(entry.d_val)
        last[entry.d_tag] = entry.d_val
    else:
        raise image.fail("dynamic table does not end with DT_NULL")
    tags = {"elf.rpath": "DT_RPATH", "elf.runpath": "DT_RUNPATH"}
    wanted = [last["DT_SONAME"]] if "DT_SONAME" in last else []
    wanted += needed + [last[tag] for tag in tags.values() if tag in last]
    if not wanted:
        return []
    texts = iter(_strings(image, last, wanted))
    found: list[tuple[str, FactValue]] = []
    if "DT_SONAME" in last:
        found.append(("elf.soname", next(texts)))
    if needed:
        found.append(("elf.needed", tuple(next(texts) for _ in needed)))
    found += [(key, next(texts)) for key, tag in tags.items() if tag in last]
    return found


def _strings(image: _Image, dynamic: dict[str | int, int], places: list[int]) -> list[str]:
    """Read strings of the dynamic string table, one by one: the table itself can be large."""
    if "DT_STRTAB" not in dynamic or "DT_STRSZ" not in dynamic:
        raise image.fail("dynamic table names strings but no string table")
    address, length = dynamic["DT_STRTAB"], dynamic["DT_STRSZ"]
    start = None
    for segment in image.segments:
        inside = segment.p_vaddr <= address < segment.p_vaddr + segment.p_filesz
        if segment.p_type == "PT_LOAD" and inside:
            start = segment.p_offset + address - segment.p_vaddr
            break
    if start is None:
        raise image.fail(f"string table at address {address:#x} lies in no loaded segment")
    image.need(start, length, "dynamic string table")
    left = MAX_STRING_BYTES
    found = []
    for place in places:
        if place >= length:
            raise image.fail(f"string {place} lies outside the dynamic string table of {length} bytes")
        text = _string(image, start + place, min(length - place, left))
        left -= len(text) + 1
        found.append(show(text))
    return found


def _string(image: _Image, offset: int, limit: int) -> bytes:
    """Read up to NUL, at most ``limit`` bytes with it."""
    parts = b""
    while len(parts) < limit:
        length = min(_STRING_CHUNK, limit - len(parts))
        text, end, _ = image.read(offset + len(parts), length, "string").partition(b"\0")
        parts += text
        if end:
            return parts
    raise image.fail(f"string at byte {offset} does not end in its table or within {MAX_STRING_BYTES} bytes")


def _build_id(image: _Image) -> str | None:
    """Return the first GNU build id in hex; notes of a core file are about its process, not the file."""
    if image.header.e_type == "ET_CORE":
        return None
    left = MAX_TABLE_ENTRIES
    for offset, length, alignment in _note_areas(image):
        if alignment > 4 and alignment != 8:
            raise image.fail(f"notes at byte {offset} are aligned to {alignment}; known are 4 and 8")
        align = 8 if alignment == 8 else 4
        place, end = offset, offset + length
        while end - place >= _NOTE_HEAD_BYTES:
            left -= 1
            if left < 0:
                raise image.fail(f"more than {MAX_TABLE_ENTRIES} notes")
            note = struct_parse(image.structs.Elf_Nhdr, image.stream, place)
            text_at = place + _NOTE_HEAD_BYTES - offset
            data_at = offset + -(-(text_at + note.n_namesz) // align) * align
            if data_at + note.n_descsz > end:
                raise image.fail(f"note at byte {place} runs past its segment")
            names_gnu = note.n_namesz == 4 and image.read(offset + text_at, 4, "note") == b"GNU\0"
            if names_gnu and note.n_type in _BUILD_ID_TYPES:
                return _build_id_text(image, data_at, note.n_descsz)
            place = offset + -(-(data_at - offset + note.n_descsz) // align) * align
    return None


def _build_id_text(image: _Image, offset: int, length: int) -> str:
    if not 0 < length <= MAX_BUILD_ID_BYTES:
        raise image.fail(f"build id of {length} bytes")
    return image.read(offset, length, "build id").hex()


def _note_areas(image: _Image) -> Iterator[tuple[int, int, int]]:
    """Yield offset, length and alignment of each run of notes: segments, or sections where there are none."""
    segments = [segment for segment in image.segments if segment.p_type == "PT_NOTE"]
    for segment in segments:
        yield segment.p_offset, segment.p_filesz, segment.p_align
    header = image.header
    if segments or not header.e_shoff:
        return
    count = header.e_shnum or MAX_TABLE_ENTRIES
    shape, step = image.structs.Elf_Shdr, header.e_shentsize
    for section in _table(image, header.e_shoff, count, step, shape, "section header table"):
        if section.sh_type == "SHT_NOTE":
            image.need(section.sh_offset, section.sh_size, "note section")
            yield section.sh_offset, section.sh_size, section.sh_addralign
