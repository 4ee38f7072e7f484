# /// script
# requires-python = ">=3.11"
# dependencies = ["blake3", "zstandard"]
# ///
"""Verify a pack file without a line of provstore: what one trusts is the format, not our code.

    python examples/verify_without_provstore.py run-7.pack

Written after schemas/README.md. Exit code 0: everything holds. 1: something does not. 3: nothing is wrong,
but bytes that the packets stand for are not in the pack. It is for reading, not for speed.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

import zstandard
from blake3 import blake3

ROW, ROOT = struct.Struct("<32s32sQQIB3x"), struct.Struct("<32sH")
RECORD, ABSENT = 1, 3
Json = dict[str, Any]


def require(holds: bool, message: str) -> None:
    """Raise unless a condition holds."""
    if not holds:
        raise ValueError(message)


def canonical(value: Json) -> bytes:
    """Return canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def record_id(kind: str, data: bytes) -> str:
    """Return the id of a record; every kind has a hash domain of its own."""
    return blake3(data, derive_key_context=f"provstore 2026 {kind} v1").hexdigest()


def refuse(text: str) -> None:
    """Refuse a number that is no integer."""
    raise ValueError(f"{text} in a record")


def raw(item: Json, field: str) -> bytes:
    """Return a name as bytes; exactly one of ``field`` and ``field_hex`` must be there."""
    require((field in item) != (f"{field}_hex" in item), f"needs one of {field} and {field}_hex")
    return item[field].encode() if field in item else bytes.fromhex(item[f"{field}_hex"])


def cut(names: list[bytes], level: int) -> list[slice]:
    """Return which names each node of a split directory has."""
    slices, start = [], 0
    for end, name in enumerate(names, 1):
        low = int.from_bytes(blake3(name).digest()[:8], "little")
        if low % (1 << 5 * (level + 1)) == 0 or end - start == 4096 or end == len(names):
            slices.append(slice(start, end))
            start = end
    return slices


def rebuilt(members: list[Json]) -> str:
    """Return the id that a directory with these members must have, whatever its size."""
    names = [raw(member, "name") for member in members]
    parts, level = [], 0
    for s in cut(names, 0) if len(names) > 64 else [slice(0, len(names))]:
        leaf = canonical({"format": "provstore/tree/v1", "entries": members[s]})
        parts.append((record_id("tree", leaf), members[s][-1:], len(members[s])))
    while len(parts) > 1:
        level, below, parts = level + 1, parts, []
        for s in cut([raw(last[0], "name") for _, last, _ in below], level):
            children = [{"tree": id, "entries": count} for id, _, count in below[s]]
            for child, (_, (last,), _) in zip(children, below[s], strict=True):
                child |= {key.replace("name", "last"): last[key] for key in last if key.startswith("name")}
            index = canonical({"format": "provstore/tree-index/v1", "level": level, "children": children})
            total = sum(count for _, _, count in below[s])
            parts.append((record_id("tree-index", index), below[s][-1][1], total))
    return parts[0][0]


class Pack:
    """A pack file, and one walk from its packets down."""

    def __init__(self, data: bytes) -> None:
        require(data[:8] == b"provpack" and data[-8:] == b"kcapvorp", "no whole pack")
        require(data[8:16] == struct.pack("<II", 1, 0), "a format that is not known here")
        require(blake3(data[:-40]).digest() == data[-40:-8], "the hash over the file differs")
        index, count, at, root_count = struct.unpack("<QQQQ", data[-72:-40])
        require(index >= 16 and index + count * ROW.size == at <= len(data) - 72, "impossible positions")
        rows = list(ROW.iter_unpack(data[index:at]))
        require([row[0] for row in rows] == sorted({row[0] for row in rows}), "index rows out of order")
        self.rows = {row[0].hex(): row[1:] for row in rows}
        self.frames, self.checked, self.absent, self.roots = data[:index], set[str](), 0, set[str]()
        for _ in range(root_count):
            id, length = ROOT.unpack_from(data, at)
            self.roots.add(id.hex())
            at += ROOT.size + length
        require(at == len(data) - 72 and root_count > 0, "no roots, or bytes after them")

    def content(self, id: str) -> bytes:
        """Return the plain bytes behind a row."""
        _, size, position, offset, _ = self.rows[id]
        plain = b""
        while len(plain) < offset + size:
            codec, plain_size, stored = struct.unpack_from("<BII", self.frames, position)
            payload = self.frames[position + 9 : position + 9 + stored]
            require(len(payload) == stored and 0 < plain_size <= 16 << 20, f"{id}: a frame out of bounds")
            require(codec == 1 or (codec == 0 and stored == plain_size), f"{id}: an unknown codec")
            if codec == 1:
                stated = zstandard.get_frame_parameters(payload).content_size
                require(stated == plain_size, f"{id}: a frame that states two sizes")
                payload = zstandard.ZstdDecompressor().decompress(payload, allow_extra_data=False)
            plain, position = plain + payload, position + 9 + stored
        return plain[offset : offset + size]

    def record(self, id: str, kind: str) -> Json:
        """Return a record after checking its id under its own hash domain, and its canonical form."""
        require(id in self.rows and self.rows[id][4] == RECORD, f"record {id} is not in the pack")
        data = self.content(id)
        require(record_id(kind, data) == id, f"record {id} is damaged, or no {kind}")
        value: Json = json.loads(data, parse_float=refuse, parse_constant=refuse)
        require(canonical(value) == data, f"record {id} is not canonical")
        require(value["format"] == f"provstore/{kind}/v1", f"record {id} names another format")
        return value

    def packet(self, id: str) -> None:
        """Check a packet and everything below it."""
        entries = self.record(id, "packet")["entries"]
        roles = [entry["role"].encode() for entry in entries]
        require(bool(roles) and roles == sorted(set(roles)), "roles: none, out of order, or one twice")
        for entry, role in zip(entries, roles, strict=True):
            parts = role.split(b"/") if roles != [b""] else []
            require(not {b"", b".", b".."} & set(parts), f"unsafe role {role!r}")
            require(not any(other.startswith(role + b"/") for other in roles), f"{role!r} is above another")
            is_bare = not {"tree", "blake3", "sha256"} & entry.keys()
            found = (0, 0) if is_bare else self.member({"kind": "file", **entry}, entry)
            if entry.get("custody") != "declared":
                require(found == (entry["files"], entry["size_bytes"]), f"{role!r} states other totals")
            for fact in entry.get("facts", []):
                self.record(fact, "facts")
            for pin in entry.get("pins", []):
                if pin["kind"] == "manifest":
                    self.object(pin["value"])

    def member(self, item: Json, entry: Json) -> tuple[int, int]:
        """Check a file, a link or a directory; return its number of files and of bytes."""
        if "tree" in item:
            members = self.entries(item["tree"])
            names = [raw(member, "name") for member in members]
            require(names == sorted(set(names)), f"{item['tree']}: names out of order")
            require(not {b"", b".", b".."} & set(names), f"{item['tree']}: an unsafe name")
            require(not any(set(name) & set(b"/\0") for name in names), f"{item['tree']}: an unsafe name")
            require(rebuilt(members) == item["tree"], f"{item['tree']}: not split where its names say")
            found = [self.member(member, entry) for member in members]
            return sum(files for files, _ in found), sum(size for _, size in found)
        if item["kind"] == "symlink" or item.get("state") == "unreadable":
            self.absent += item["kind"] != "symlink"
            return 0, 0
        if entry.get("custody") == "declared" or "blake3" not in item:
            self.absent += 1
        else:
            stated = (item["sha256"], item["size_bytes"])
            require(self.object(item["blake3"]) == stated, f"{item['blake3']}: other SHA-256 or size")
        return 1, item.get("size_bytes", 0)

    def entries(self, id: str) -> list[Json]:
        """Return the entries of one directory, through all levels of its index."""
        if id not in self.rows or not self.content(id).startswith(b'{"children":'):
            found: list[Json] = self.record(id, "tree")["entries"]
            return found
        children = self.record(id, "tree-index")["children"]
        return [member for child in children for member in self.entries(child["tree"])]

    def object(self, id: str) -> tuple[str, int]:
        """Check one object; return SHA-256 and size: as counted, or as stated if its bytes are not here."""
        require(id in self.rows and self.rows[id][4] != RECORD, f"object {id} is not in the pack")
        sha256, size = self.rows[id][0].hex(), self.rows[id][1]
        if self.rows[id][4] == ABSENT:
            self.absent += 1
        elif id not in self.checked:
            data = self.content(id)
            require(blake3(data).hexdigest() == id, f"object {id} is damaged")
            found = (hashlib.sha256(data).hexdigest(), len(data))
            require(found == (sha256, size), f"object {id}: the index states another SHA-256 or size")
            self.checked.add(id)
        return sha256, size


def main(path: str) -> int:
    """Check one pack, say what was found, return the exit code."""
    try:
        pack = Pack(Path(path).read_bytes())
        for root in sorted(pack.roots):
            pack.packet(root)
    except (ValueError, KeyError, TypeError, struct.error, RecursionError, zstandard.ZstdError) as error:
        print(f"FAIL {path}: {error}")
        return 1
    verdict = "INCOMPLETE" if pack.absent or not pack.checked else "PASS"
    print(f"{verdict} {path}: {len(pack.roots)} packets, {len(pack.checked)} objects, {pack.absent} not here")
    return 0 if verdict == "PASS" else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
