"""Vectors that must be accepted: whole trees, packets, Git ids and proofs. ``make.py`` writes them."""

import json

from accepted_records import pattern
from reference import (
    Json,
    Link,
    Members,
    Program,
    canonical,
    digests,
    ends_node,
    git_blob,
    git_tree,
    listed,
    sealed,
    tree,
)


def known_tree() -> Members:
    """Return the tree whose Git ids are known answers."""
    return {
        b"foo": {b"x": b"a\n"},
        b"foo-bar": b"b\n",
        b"foo.txt": b"c\n",
        b"foo0": b"d\n",
        b"run.sh": Program(b"#!/bin/sh\n"),
        b"link": Link(b"foo/x"),
        b"zero": b"",
        b"empty": {},
    }


def tree_case(name: str, members: Members) -> Json:
    """Return one whole tree with every id that it has."""
    made: list[Json] = []
    root = tree(members, made)
    return {
        "name": name,
        "members": listed(members),
        "tree": root,
        "records": [dict(row) for row in {row["id"]: row for row in made}.values()],
        "git_sha1": git_tree(members),
        "git_sha256": git_tree(members, "sha256"),
        "swhid": f"swh:1:dir:{git_tree(members, keep_empty=True)}",
    }


def trees() -> Json:
    """Whole small trees."""
    hostile: Members = {
        b"\xff\xfe": b"1",
        b"new\nline": b"2",
        b" lead": b"3",
        b"-rf": b"4",
        b"back\\slash": b"5",
        "\u00e9".encode(): b"6",
        "e\u0301".encode(): b"7",
        b"\x1b[31m": b"8",
        b"to-bytes": Link(b"\xff"),
        b"...": b"9",
        b"a" * 255: b"10",
    }
    hollow: Members = {b"a": {b"b": {b"c": {}}}, b"d": {b"e": {}, b"f": b"f"}}
    return {
        "what": "directories: members, tree records (the root last), Git ids, SWHID",
        "cases": [
            tree_case("a directory among names that sort around it", known_tree()),
            tree_case("hostile names", hostile),
            tree_case("directories without files", hollow),
        ],
    }


def split_names(rule: str, count: int) -> list[bytes]:
    """Return names of a big directory: ``plain`` takes all numbers, ``inner`` those that end no leaf."""
    names: list[bytes] = []
    number = 0
    while len(names) < count:
        name = b"member-%06d" % number
        number += 1
        if rule == "plain" or not ends_node(name, 0):
            names.append(name)
    return names


def splits() -> Json:
    """Shapes of big directories."""
    cases = []
    for rule, count in (
        ("plain", 64),
        ("plain", 65),
        ("plain", 100),
        ("plain", 5000),
        ("inner", 70),
        ("inner", 4200),
    ):
        names = split_names(rule, count)
        made: list[Json] = []
        root = tree(dict.fromkeys(names, b"x\n"), made)
        parsed = [json.loads(row["canonical"]) for row in made]
        leaves = [r["entries"] for r in parsed if r["format"] == "provstore/tree/v1"]
        case: Json = {
            "rule": rule,
            "count": count,
            "first": names[0].decode(),
            "last": names[-1].decode(),
            "tree": root,
            "levels": [r["level"] for r in parsed if "level" in r],
            "leaf_sizes": [len(leaf) for leaf in leaves],
        }
        if count <= 100:
            case["leaf_last"] = [leaf[-1]["name"] for leaf in leaves]
            case["records"] = made
        cases.append(case)
    return {
        "what": "directories of files with the content x LF and names member-NNNNNN; rule plain: all numbers "
        "from 0; rule inner: only names after which no leaf ends",
        "cases": cases,
    }


def packets() -> Json:
    """Packets down to the last byte."""
    members: Members = {b"hello.txt": b"hello, world\n", b"sub": {b"run.sh": Program(b"#!/bin/sh\n")}}
    made: list[Json] = []
    root = tree(members, made)
    files = [b"hello, world\n", b"#!/bin/sh\n"]
    plain: Json = {
        "role": "",
        "kind": "evidence",
        "files": 2,
        "size_bytes": sum(map(len, files)),
        "tree": root,
    }
    packet = {"format": "provstore/packet/v1", "entries": [plain]}
    role = {
        "format": "provstore/packet/v1",
        "name": "hello",
        "entries": [
            {
                "role": "a/dir",
                "kind": "evidence",
                "files": 2,
                "size_bytes": plain["size_bytes"],
                "tree": root,
            },
            {"role": "a/file", "kind": "file", "files": 1, **digests(files[0])},
        ],
    }
    return {
        "what": "packets with the members they lead to; the records go from the trees to the packet",
        "cases": [
            {
                "name": "a plain directory",
                "members": listed(members),
                "records": [*made, sealed(packet)],
                "packet": sealed(packet)["id"],
            },
            {
                "name": "two entries, the packet named",
                "members": listed({b"dir": members, b"file": files[0]}, b"a/"),
                "records": [*made, sealed(role)],
                "packet": sealed(role)["id"],
            },
        ],
    }


def git() -> Json:
    """Ids of Git blobs."""
    cases = [
        {
            "name": name,
            "input_hex": data.hex(),
            "sha1": git_blob(data),
            "sha256": git_blob(data, "sha256"),
            "swhid": f"swh:1:cnt:{git_blob(data)}",
        }
        for name, data in (
            ("empty", b""),
            ("the text of a link", b"foo/x"),
            ("CR LF", b"a\r\n"),
            ("pattern", pattern(3000)),
        )
    ]
    return {"what": "Git blob ids in both object formats, and the SWHID of the content", "cases": cases}


def proofs() -> Json:
    """Proof files, one good, the others each with one thing wrong."""
    members: Members = {b"a": {b"b": b"1", b"c": b"2"}, b"d": b"3"}
    made: list[Json] = []
    root = tree(members, made)
    packet = sealed(
        {
            "format": "provstore/packet/v1",
            "entries": [{"role": "r", "kind": "evidence", "files": 3, "size_bytes": 3, "tree": root}],
        }
    )
    top, inner = made[-1]["canonical"], made[0]["canonical"]
    good: Json = {
        "format": "provstore/proof/v1",
        "packet": packet["id"],
        "path": "r/a/b",
        "records": [packet["canonical"], top, inner],
    }
    cases: list[Json] = [{"name": "a file two directories down", "proof": good, "outcome": "PASS"}]
    for name, change in (
        ("another packet", {"packet": "0" * 64}),
        ("another path", {"path": "r/a/x"}),
        ("a record left out", {"records": [packet["canonical"], top]}),
        (
            "an altered leaf",
            {"records": [packet["canonical"], top, inner.replace('"size_bytes":1', '"size_bytes":2')]},
        ),
        ("a record too many", {"path": "r/d"}),
        ("no records", {"records": []}),
    ):
        cases.append({"name": name, "proof": {**good, **change}, "outcome": "FAIL"})
    cases += [
        {"name": "a newer format", "proof": {**good, "format": "provstore/proof/v2"}, "code": "newer-format"},
        {"name": "an unknown field", "proof": {**good, "note": ""}, "code": "unknown-field"},
    ]
    for case in cases:
        case["text"] = canonical(case.pop("proof")).decode()
    return {
        "what": "inclusion proofs; outcome is the verdict, code an error that is raised instead",
        "cases": cases,
    }
