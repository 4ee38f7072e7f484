"""Small inputs that lead deep into each decoder: our own vectors and specimens, and a few made by hand."""

import json
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from provstore.ids import digests
from provstore.store import frame
from provstore.store.lmdb_store import LmdbStore
from provstore.store.protocol import Location, RefChange, StatSignature
from provstore.store.rows import Place, change_value, location_value, record_row

ROOT: Final = Path(__file__).resolve().parents[2]
VECTORS: Final = ROOT / "schemas" / "vectors"
PACKS: Final = ROOT / "stores" / "packs" / "v1"

SPEC: Final = b'format = "provstore/packet-spec/v1"\nname = "run"\n'
COMMIT: Final = b"4a6fd874725312c53883b1d53970af1d0eccfc3f"


def _cases(name: str, field: str, part: str = "cases") -> Iterator[bytes]:
    document: dict[str, Any] = json.loads((VECTORS / name).read_bytes())
    for case in document[part]:
        if isinstance(case, str):
            yield case.encode()
        elif field in case:
            yield case[field].encode("utf-8", "surrogatepass")
        elif f"{field}_hex" in case:
            yield bytes.fromhex(case[f"{field}_hex"])


def json_texts() -> list[bytes]:
    return [
        b'{"a": [1, -2, 3.5, 1e9, true, null, "x\\u00e9\\n"], "b": {"c": {}}}',
        b'{"a":{"x":1,"x":1}}',
        b"[" * 65 + b"]" * 65,
        b'{"v": NaN}',
        b'[1e999, -0, 9007199254740993, "\\ud800"]',
        b'"\\"\\"\\"\\"',
        *_cases("bad/records.json", "input"),
    ]


def records_and_bad_ones() -> list[bytes]:
    trees = json.loads((VECTORS / "trees.json").read_bytes())["cases"]
    found = [record["canonical"].encode() for case in trees for record in case["records"]]
    found += _cases("records.json", "canonical")
    found += [*_cases("bad/records.json", "input"), *_cases("bad/packets.json", "input")]
    return [data for data in found if len(data) <= 4096]


def directories() -> list[bytes]:
    many = b"\n".join(b"f%d" % number for number in range(120))
    return [b"fa\nfb/c\nda/e\nFa\nFb/d", b"f\xff\nFx/y/z\ndx", many, b"fa\nfa", b"f..\nf/x\nf"]


def frames() -> list[bytes]:
    bomb = b"\x28\xb5\x2f\xfd\xe0\x6c\x06\x06\x06\x63\x63\x63\x63"
    huge = frame.pack([bytes(1 << 20)])
    return [
        *_cases("bad/frames.json", "input"),
        *_cases("bad/frames.json", "input", "good"),
        frame.pack([b"x"]),
        frame.pack([b"ab" * 500]) + frame.pack([b"y" * 100]),
        frame.HEADER.pack(frame.ZSTD, 1 << 20, len(bomb)) + bomb,
        huge,
        huge[:1] + struct.pack("<I", 16 << 20) + huge[5:],
    ]


def specs() -> list[bytes]:
    return [
        *_cases("bad/specs.json", "input"),
        SPEC + b'[[entry]]\nrole = "a"\nkind = "file"\npath = "{a}/x"\n',
        SPEC
        + b'[[entry]]\nrole = "m/t"\nkind = "model"\nkeep = "declared"\nhub = "o/m"\nrevision = "'
        + COMMIT
        + b'"\nmanifest = "m.sha256"\nprefix = "int4/"\nvalues = {a = 1, b = "x", c = true}\n'
        + b'[[claim]]\nname = "c"\nvalue = "125.0"\nunit = "tok/s"\nmetric = "m"\nconvention = "v"\n'
        + b'evidence = ["m/t"]\nlimits = ["x"]\n',
        b"map_size_bytes = 1048576\nwait_s = 0.5\nsync = false\nzstd_level = 19\n",
    ]


def proofs() -> list[bytes]:
    return [*_cases("proofs.json", "text")]


def checksum_files() -> list[bytes]:
    digits = b"0" * 64
    return [
        *_cases("checksums.json", "input", "good"),
        *_cases("checksums.json", "input"),
        digits + b"  a\n" + digits.upper() + b" *b\r\n# c\n\n",
        b"\\" + digits + b"  a\\\\b\\n\\r\n",
        b"SHA256 (a) = " + digits + b"\n\\BLAKE3 (b\\n) = c) = " + digits + b"\n",
    ]


def elf_files() -> list[bytes]:
    return [_elf(wide, order) for wide in (True, False) for order in "<>"] + [b"\x7fELF\2\1\1" + bytes(9)]


def _elf(wide: bool, order: str) -> bytes:
    """Return a hand-made shared object with interpreter, names, search paths and a build id."""
    start, base = 0x200, 0x10000
    strings = b"\0liba.so\0libb.so\0$ORIGIN\0".ljust(32, b"\0")
    interpreter = b"/lib/ld.so\0".ljust(16, b"\0")
    note = struct.pack(order + "III", 4, 4, 3) + b"GNU\0" + b"\1\2\3\4"
    pairs = [(1, 9), (14, 1), (15, 17), (29, 17), (1, 1), (5, base + start), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack(order + ("qq" if wide else "ii"), *pair) for pair in pairs)
    body, places = strings, []
    for kind, part in ((3, interpreter), (4, note), (2, dynamic)):
        places.append((kind, start + len(body), 0, len(part), 4))
        body += part
    segments = [(1, 0, base, start + len(body), 0x1000), *places]
    sizes = (64, 56, 64) if wide else (52, 32, 40)
    head = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    shape = order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH")
    head += struct.pack(shape, 3, 62, 1, 0, sizes[0], 0, 0, sizes[0], sizes[1], len(segments), sizes[2], 0, 0)
    for kind, offset, address, size, align in segments:
        values = (kind, 4, offset, address, address, size, size, align)
        narrow = (kind, offset, address, address, size, size, 4, align)
        head += struct.pack(order + ("IIQQQQQQ" if wide else "IIIIIIII"), *(values if wide else narrow))
    return head.ljust(start, b"\0") + body


def safetensors_files() -> list[bytes]:
    headers = [
        b'{"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}',
        b'{"__metadata__":{"format":"pt","a/b~c":"\\u001b"},"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},'
        b'"b":{"dtype":"X","shape":[],"data_offsets":[1,12]}}   ',
        b"{}",
        b'{"w":{"dtype":"F16","shape":[0,9],"data_offsets":[0,0],"dtype":"F16"}}',
    ]
    return [len(header).to_bytes(8, "little") + header + bytes(12) for header in headers]


def shard_indexes() -> list[bytes]:
    return [
        b'{"metadata":{"total_size":1.5},"weight_map":{"a":"m-00002-of-00009.safetensors","b":"m-00001-of-00009.x"}}',
        b'{"weight_map":{"a":"../x"}}',
        b'{"weight_map":{"a":"\\ud800"}}',
    ]


def freezes() -> list[bytes]:
    return [
        b"Flash_Attn==2.8.3\nflash-attn===1\nx[y] @ https://a:b@example.org/x.whl#sha256=" + b"0" * 64,
        b"# Editable Git install (x==1)\n-e git+https://t@example.org/x.git@" + COMMIT + b"#egg=x\n--pre\n",
        "\ufeffa==1\r\n-e /home/x\n".encode("utf-16-le"),
        b"a @ git+ssh://git@example.org/a.git@v1#subdirectory=b\n",
    ]


def environments() -> list[bytes]:
    parts = [
        b"Metadata-Version: 2.1\nName: Flash_Attn\nVersion: 2.8+g744a8b4\n\nbody",
        b'{"url":"https://u:p@example.org/x","vcs_info":{"vcs":"git","commit_id":"' + COMMIT + b'"}}',
        b"pip\n",
        b"# c\nimport x\n/somewhere/else\n../x\n",
        b"/home/me/src\n.",
        b"MAPPING: dict[str, str] = {'a': '/x/y', 'b': '../../z'}\n",
        b"home = /usr\nversion_info = 3.12\n",
    ]
    file_url = (
        b'{"url":"file:///x/%2e%2e/y","dir_info":{"editable":true},"archive_info":{"hash":"sha256=aa"}}'
    )
    return [b"\0\n".join(parts), b"\0\n".join([b"Name: a\nName: b\nVersion: 1", file_url, *parts[2:]])]


def bundles() -> list[bytes]:
    pack = b"PACK" + struct.pack(">II", 2, 0) + bytes(20)
    return [
        b"# v2 git bundle\n-" + COMMIT + b" why\n" + COMMIT + b" refs/heads/main\n\n" + pack,
        b"# v3 git bundle\n@object-format=sha256\n@filter=blob:none\n" + b"0" * 64 + b" HEAD\n\n" + pack,
        b"# v4 git bundle\n\n",
    ]


def standins() -> list[bytes]:
    lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 7\n"
    key = b"SHA256E-s31--" + b"0" * 64 + b".safetensors"
    return [
        lfs,
        lfs.replace(b"\n", b"\r\n"),
        b"/annex/objects/" + key + b"\n",
        b"../.git/annex/objects/Kj/0x/" + key + b"/" + key,
        b".git/annex/objects/" * 200,
        b"a/.cache/huggingface/download/x.metadata",
        b"blobs/" + b"0" * 40 + b".lock",
    ]


def texts() -> list[bytes]:
    return [
        b"A=1\nB = x=y\n\xff=\xfe\nno\n",
        b'{"modules":[{"module":"a","v":1.50},{"module":"b/c","v":null}],"~":"\\u001b"}',
        b'[{"name":"\\ud800"},"\\udfff",1e5]',
    ]


def urls() -> list[bytes]:
    return [
        b"https://user:token@example.org:8/a.git?key=1#f",
        b"git@example.org:a.git",
        b"ssh://git@[::1]/a@b",
        b"ext::sh -c x",
        b"git+https://me:secret@example.org/a.git@v1#egg=a&subdirectory=b",
        b"file:///home/x",
        b"c:\\x\xff",
    ]


def words() -> list[bytes]:
    return [
        *_cases("bad/digests.json", "input"),
        *_cases("bad/digests.json", "input", "good"),
        *_cases("paths.json", "path", "good"),
        *_cases("paths.json", "input"),
        b"a\\x5cb",
        "\u202e\u200b\x1b\xff".encode(),
    ]


def rows() -> list[bytes]:
    found = digests(b"x")
    signature = StatSignature(1, 2, 3, 4, 5)
    return [
        record_row(Place(7, 100, 5)),
        location_value(bytes(8), Location(b"/a/b", signature))[:-4],
        change_value(RefChange(1, "run", found.blake3, None, 5, found.sha256))[:-4],
        b"\1" + bytes(48) + bytes(44),
        bytes([129]) + bytes(44) + b'{"kind":"file","name":"x"}',
        bytes([2]) + bytes(48),
    ]


def data_files() -> list[bytes]:
    """The index of a real, empty store: whole, cut, and with nothing but its meta pages."""
    with tempfile.TemporaryDirectory() as place:
        LmdbStore.create(place + "/s").close()
        data = Path(place, "s", "data.mdb").read_bytes()
    return [data, data[:-4096], data[:8192], data[:100]]
