"""The formats written down a second time, in plain Python, for the vectors; nothing here imports provstore.

It is deliberately naive: JSON by the standard library, trees by recursion, no bounds. ``make.py`` computes
every expected value with it, and ``tests/test_vectors.py`` holds the library to those values.
"""

import hashlib
import json
from typing import Any

from blake3 import blake3

Json = dict[str, Any]
Members = dict[bytes, Any]
"""A directory: name to bytes (file), ``Program``, ``Link`` or another directory."""


class Program(bytes):
    """Content of a file whose owner may run it."""


class Link(bytes):
    """Text of a symbolic link."""


def canonical(value: object) -> bytes:
    """Return canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def record_id(kind: str, data: bytes) -> str:
    """Return the hex id of a record."""
    return blake3(data, derive_key_context=f"provstore 2026 {kind} v1").hexdigest()


def kind_of(record: Json) -> str:
    """Return the hash domain of a record by its format."""
    return str(record["format"]).split("/")[1]


def sealed(record: Json) -> Json:
    """Return kind, id and canonical text of a record."""
    data = canonical(record)
    return {"kind": kind_of(record), "id": record_id(kind_of(record), data), "canonical": data.decode()}


def digests(data: bytes) -> Json:
    """Return both digests and the size of bytes, under the names that records use."""
    return {
        "blake3": blake3(data).hexdigest(),
        "sha256": hashlib.sha256(data).hexdigest(),
        "size_bytes": len(data),
    }


def named(field: str, name: bytes) -> Json:
    """Return ``name`` or ``name_hex`` (or the like) for bytes."""
    try:
        return {field: name.decode()}
    except UnicodeDecodeError:
        return {f"{field}_hex": name.hex()}


def entry_of(name: bytes, value: Any, records: list[Json]) -> Json:
    """Return the tree entry of one name; records of directories below are appended."""
    if isinstance(value, dict):
        return {**named("name", name), "kind": "directory", "tree": tree(value, records)}
    if isinstance(value, Link):
        return {**named("name", name), "kind": "symlink", **named("target", bytes(value))}
    kind = "executable" if isinstance(value, Program) else "file"
    return {**named("name", name), "kind": kind, **digests(bytes(value))}


def ends_node(name: bytes, level: int) -> bool:
    """Say whether a node of this level ends after ``name``."""
    low = int.from_bytes(blake3(name).digest()[:8], "little")
    return bool(low % 2 ** (5 * (level + 1)) == 0)


def cut(items: list[Any], names: list[bytes], level: int) -> list[list[int]]:
    """Return the positions of each node's items."""
    nodes: list[list[int]] = [[]]
    for position in range(len(items)):
        nodes[-1].append(position)
        if ends_node(names[position], level) or len(nodes[-1]) == 4096:
            nodes.append([])
    return [node for node in nodes if node]


def tree(members: Members, records: list[Json]) -> str:
    """Return the id of a directory; its records are appended to ``records``, the root last."""
    names = sorted(members)
    entries = [entry_of(name, members[name], records) for name in names]
    groups = [list(range(len(entries)))] if len(entries) <= 64 else cut(entries, names, 0)
    parts = []
    for group in groups:
        made = sealed({"format": "provstore/tree/v1", "entries": [entries[i] for i in group]})
        records.append(made)
        parts.append((names[group[-1]] if group else b"", made["id"], len(group)))
    level = 0
    while len(parts) > 1:
        level += 1
        above = []
        for group in cut(parts, [part[0] for part in parts], level):
            below = [parts[i] for i in group]
            children = [{**named("last", last), "tree": id, "entries": count} for last, id, count in below]
            made = sealed({"format": "provstore/tree-index/v1", "level": level, "children": children})
            records.append(made)
            above.append((below[-1][0], made["id"], sum(part[2] for part in below)))
        parts = above
    return str(parts[0][1])


def git_blob(data: bytes, algorithm: str = "sha1") -> str:
    """Return the hex Git id of a blob."""
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data).hexdigest()


def git_tree(members: Members, algorithm: str = "sha1", *, keep_empty: bool = False) -> str:
    """Return the hex Git id of a directory; with ``keep_empty`` the hash of a SWHID."""
    rows = []
    for name, value in members.items():
        if isinstance(value, dict):
            if _is_hollow(value) and not keep_empty:
                continue
            mode, key, id = b"40000", name + b"/", git_tree(value, algorithm, keep_empty=keep_empty)
        else:
            modes = {Link: b"120000", Program: b"100755"}
            mode, key, id = modes.get(type(value), b"100644"), name, git_blob(bytes(value), algorithm)
        rows.append((key, mode + b" " + name + b"\0" + bytes.fromhex(id)))
    content = b"".join(row for _, row in sorted(rows))
    return hashlib.new(algorithm, b"tree %d\0" % len(content) + content).hexdigest()


def _is_hollow(members: Members) -> bool:
    return all(isinstance(value, dict) and _is_hollow(value) for value in members.values())


def listed(members: Members, prefix: bytes = b"") -> list[Json]:
    """Return the members as vectors write them: path, kind, content in hex or target."""
    rows: list[Json] = []
    for name, value in sorted(members.items()):
        path = prefix + name
        if isinstance(value, dict):
            rows.append({**named("path", path), "kind": "directory"})
            rows += listed(value, path + b"/")
        elif isinstance(value, Link):
            rows.append({**named("path", path), "kind": "symlink", **named("target", bytes(value))})
        else:
            kind = "executable" if isinstance(value, Program) else "file"
            rows.append({**named("path", path), "kind": kind, "content_hex": bytes(value).hex()})
    return rows
