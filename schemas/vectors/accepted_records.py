"""Vectors that must be accepted: objects and single records. ``make.py`` writes them."""

from typing import Final

from reference import Json, digests, sealed

LENGTHS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 8, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2048, 2049, 3072)
MORE_LENGTHS: Final = (3073, 4096, 4097, 5120, 5121, 6144, 6145, 7168, 7169, 8192, 8193, 16384, 31744, 102400)


def pattern(length: int) -> bytes:
    """Return bytes of which number i is i mod 251, as the vectors of BLAKE3 itself use them."""
    return bytes(i % 251 for i in range(length))


def objects() -> Json:
    """Ids of objects."""
    cases: list[Json] = [
        {"name": name, "input_hex": data.hex(), **digests(data)}
        for name, data in (
            ("the empty object", b""),
            ("one byte", b"x"),
            ("a final newline counts", b"x\n"),
            ("CR LF is not rewritten", b"x\r\n"),
            ("e with acute accent, one code point", "\u00e9".encode()),
            ("e with acute accent, two code points", "e\u0301".encode()),
            ("NUL and bytes that are not UTF-8", b"\0\xff\xfe"),
            ("bytes of a record are no record", b'{"entries":[],"format":"provstore/tree/v1"}'),
        )
    ]
    for length in (*LENGTHS, *MORE_LENGTHS, 1048576, 1048577):
        cases.append(
            {"name": f"{length} bytes i mod 251", "pattern_length": length, **digests(pattern(length))}
        )
    return {"what": "BLAKE3-256 (the object's id), SHA-256 and size of byte strings", "cases": cases}


def packet_record() -> Json:
    """Return a packet that uses every field."""
    one = digests(b"one\n")
    return {
        "format": "provstore/packet/v1",
        "name": "run-7",
        "parents": ["1" * 64, "2" * 64],
        "claims": [
            {
                "name": "decode",
                "value": "102.97143559613157",
                "unit": "tok/s",
                "metric": "decode throughput",
                "convention": "tokens/window/v1",
                "evidence": ["logs/bench.json"],
                "samples": "13 prompts",
                "limits": ["one host", "greedy decoding"],
            }
        ],
        "entries": [
            {"role": "logs/bench.json", "kind": "benchmark-log", "files": 1, "executable": True, **one},
            {
                "role": "source",
                "kind": "source-tree",
                "files": 2,
                "size_bytes": 8,
                "tree": "3" * 64,
                "exclude": [".git"],
                "facts": ["4" * 64],
                "follow_symlinks": True,
                "origins": [{"git": "https://example.org/x.git", "revision": "5" * 40, "prefix": "sub"}],
                "pins": [{"kind": "commit", "value": "5" * 40}],
            },
            {
                "role": "weights/target",
                "kind": "model",
                "custody": "declared",
                "files": 1,
                "tree": "6" * 64,
                "origins": [{"hub": "someone/model", "revision": "7" * 40}],
                "pins": [
                    {"kind": "manifest", "value": "8" * 64, "prefix": "int4/"},
                    {"kind": "revision", "value": "7" * 40},
                ],
            },
            {"role": "x", "kind": "file", "custody": "external", "files": 1, "state": "prefix", **one},
        ],
    }


def records() -> Json:
    """Canonical bytes and ids of every kind of record."""
    entry = digests(b"x")
    hard = 'a"\\/\u0000\b\f\n\r\t\u001f\u007f\u2028\u00e9\ud7ff\ue000\uffff\U0001f600'
    cases: list[tuple[str, Json]] = [
        ("an empty directory", {"format": "provstore/tree/v1", "entries": []}),
        (
            "every kind of tree entry",
            {
                "format": "provstore/tree/v1",
                "entries": [
                    {"name": "a", "kind": "file", **entry},
                    {"name": "b.sh", "kind": "executable", **entry},
                    {"name": "c", "kind": "symlink", "target": "../a"},
                    {"name": "d", "kind": "symlink", "target_hex": "ff2f61"},
                    {"name": "e", "kind": "directory", "tree": "0" * 64},
                    {"name": "f", "kind": "file", "sha256": entry["sha256"]},
                    {"name": "g", "kind": "file", "blake3": entry["blake3"], "size_bytes": 0},
                    {"name": "h", "kind": "file", "state": "pointer", **entry},
                    {"name": "i", "kind": "file", "state": "prefix", **entry},
                    {"name": "j", "kind": "file", "state": "unreadable"},
                    {"name": "z\u00e9", "kind": "file", **entry},
                    {"name_hex": "ff", "kind": "file", **entry},
                ],
            },
        ),
        (
            "text that needs escapes, and text that must not have them",
            {
                "format": "provstore/facts/v1",
                "extractor": "text",
                "version": 1,
                "source": "0" * 64,
                "facts": [{"key": "json/a", "value": hard, "path": "a/b", "location": "/a"}],
            },
        ),
        (
            "the largest and the smallest integer",
            {
                "format": "provstore/facts/v1",
                "extractor": "x",
                "version": 9007199254740991,
                "source": "0" * 64,
                "facts": [{"key": "a", "value": 9007199254740991}, {"key": "b", "value": -9007199254740991}],
            },
        ),
        (
            "every type of fact",
            {
                "format": "provstore/facts/v1",
                "extractor": "elf",
                "version": 1,
                "source": "0" * 64,
                "facts": [
                    {"key": "elf.needed", "value": ["libc.so.6", 3], "path": "lib/x.so"},
                    {"key": "a", "value": None},
                    {"key": "b", "value": True, "location": "line 3"},
                    {"key": "c", "value": 0},
                    {"key": "d", "value": ""},
                    {"key": "e", "value": "1.50", "decimal": True},
                    {"key": "f", "value": []},
                ],
            },
        ),
        ("a packet with every field", packet_record()),
        (
            "a packet of one plain directory",
            {
                "format": "provstore/packet/v1",
                "entries": [{"role": "", "kind": "evidence", "files": 0, "size_bytes": 0, "tree": "0" * 64}],
            },
        ),
        (
            "an observation; keys by code point, not by UTF-16 unit",
            {
                "format": "provstore/observation/v1",
                "packet": "0" * 64,
                "taken_ns": "1785052800000000000",
                "tool": "provstore 0.1.0",
                "variables": {"models": "/data", "\uffff": "b", "\U0001f600": "a"},
                "sources": {"logs": "/run/\\xff"},
                "excluded": ["tmp/a.tmp (*.tmp)"],
                "notes": ["a note"],
            },
        ),
        (
            "an observation that states nothing more than it must",
            {"format": "provstore/observation/v1", "packet": "0" * 64, "taken_ns": "0", "tool": "t"},
        ),
        (
            "a tree index",
            {
                "format": "provstore/tree-index/v1",
                "level": 1,
                "children": [
                    {"last": "m", "tree": "1" * 64, "entries": 33},
                    {"last_hex": "ff", "tree": "2" * 64, "entries": 40},
                ],
            },
        ),
    ]
    rows = [{"name": name, "record": record, **sealed(record)} for name, record in cases]
    return {"what": "records, their canonical bytes and their ids", "cases": rows}
