"""Whether the file at a path is what is mapped, for what a live process cannot easily be brought to show."""

import os
import struct
import sys
from pathlib import Path

import pytest

from provstore.host import ldcache
from provstore.host.mapped import Mapped
from provstore.host.maps import Mapping, parse_maps

PROGRAM = os.path.realpath(sys.executable)


def mapping(**changes: object) -> Mapping:
    found = os.stat(PROGRAM)
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    made = Mapping(os.fsencode(PROGRAM), device, found.st_ino, False, True, 4096, 0, "file")
    return made._replace(**changes)  # type: ignore[arg-type]


def test_the_same_file() -> None:
    seen = Mapped().look(os.getpid(), mapping())
    assert seen is not None
    assert seen.file.state == "same"
    assert seen.file.sha256 is not None
    assert seen.object is not None


def test_another_inode_is_another_file_and_gets_no_digest() -> None:
    seen = Mapped().look(os.getpid(), mapping(inode=1))
    assert seen is not None
    assert (seen.file.state, seen.file.sha256, seen.object) == ("replaced", None, None)
    assert seen.file.reason


def test_another_device_with_the_same_inode_is_probable_only() -> None:
    seen = Mapped().look(os.getpid(), mapping(device="fe:7f"))
    assert seen is not None
    assert seen.file.state == "probable"
    assert seen.file.sha256 is not None
    assert "device is not" in seen.file.reason


def test_a_file_that_is_gone_without_a_mark(tmp_path: Path) -> None:
    seen = Mapped().look(os.getpid(), mapping(path=os.fsencode(tmp_path / "gone.so")))
    assert seen is not None
    assert (seen.file.state, seen.file.sha256) == ("deleted", None)


def test_data_is_no_shared_object(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"w" * 100)
    found = os.stat(path)
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    data = Mapping(os.fsencode(path), device, found.st_ino, False, False, 4096, 0, "file")
    assert Mapped().look(os.getpid(), data) is None


@pytest.mark.parametrize(
    ("line", "kind", "path"),
    [
        (b"1000-2000 rw-s 00000000 00:01 7 /memfd:a b (deleted)", "memfd", b"/memfd:a b"),
        (b"1000-2000 rw-s 00000000 00:01 7 /SYSV0000002a (deleted)", "sysv", b"/SYSV0000002a"),
        (b"1000-2000 rw-p 00000000 00:0f 7 /anon_hugepage (deleted)", "hugepages", b"/anon_hugepage"),
        (b"1000-2000 rw-s 00000000 00:01 7 /dev/zero (deleted)", "zero", b"/dev/zero"),
        (b"1000-2000 rw-s 00000000 00:05 7 /dev/shm/psm_1", "shm", b"/dev/shm/psm_1"),
        (b"1000-2000 rw-s 00000000 00:05 7 /dev/dri/renderD128", "device", b"/dev/dri/renderD128"),
        (b"1000-2000 r-xp 00000000 08:01 7 /opt/a\\012b.so", "file", b"/opt/a\nb.so"),
        (b"1000-2000 r-xp 00000000 08:01 7    /opt/lib.so (deleted)", "file", b"/opt/lib.so"),
    ],
)
def test_what_a_line_of_maps_is(line: bytes, kind: str, path: bytes) -> None:
    (found,) = parse_maps(line + b"\n")
    assert (found.kind, found.path, found.bytes) == (kind, path, 4096)
    assert found.deleted == line.endswith(b"(deleted)")


def test_what_has_no_name_on_disk_is_left_out() -> None:
    text = b"1000-2000 rw-p 00000000 00:00 0\n2000-3000 rw-p 00000000 00:00 0 [heap]\nnonsense\n"
    assert parse_maps(text) == []


def cache(entries: list[tuple[int, str, str, int]], old: bytes = b"") -> bytes:
    strings, rows = b"", b""
    start = 48 + 24 * len(entries)
    for flags, name, path, hwcap in entries:
        places = []
        for text in (name, path):
            places.append(start + len(strings))
            strings += text.encode() + b"\0"
        rows += struct.pack("<iIIIQ", flags, *places, 0, hwcap)
    head = struct.pack("<20sIIB3xI3I", ldcache.MAGIC, len(entries), len(strings), 2, 0, 0, 0, 0)
    return old + head + rows + strings


def test_a_cache_gives_the_files_of_a_machine_in_their_order() -> None:
    rows = [
        (0x0303, "libv.so.1", "/usr/lib/glibc-hwcaps/x86-64-v3/libv.so.1", 1 << 62),
        (0x0303, "libv.so.1", "/usr/lib/libv.so.1", 0),
        (0x0003, "libv.so.1", "/usr/lib32/libv.so.1", 0),
    ]
    for old in (b"", b"ld.so-1.7.0\0\0\0\0\0"):
        found = ldcache.parse_cache(cache(rows, old), "EM_X86_64")
        assert found is not None
        assert [(one.path, one.special) for one in found["libv.so.1"]] == [
            ("/usr/lib/glibc-hwcaps/x86-64-v3/libv.so.1", True),
            ("/usr/lib/libv.so.1", False),
        ]


@pytest.mark.parametrize("cut", [0, 10, 40, 60])
def test_a_cache_that_is_cut_short_is_none(cut: int) -> None:
    whole = cache([(0x0303, "libv.so.1", "/usr/lib/libv.so.1", 0)] * 3)
    assert ldcache.parse_cache(whole[:cut], "EM_X86_64") is None
    assert ldcache.parse_cache(whole, "EM_NONE") is None


def test_the_cache_of_this_machine_is_read() -> None:
    found = ldcache.parse_cache(Path("/etc/ld.so.cache").read_bytes(), "EM_X86_64")
    if os.uname().machine == "x86_64":
        assert found is not None
        assert found["libc.so.6"][0].path.endswith("/libc.so.6")
