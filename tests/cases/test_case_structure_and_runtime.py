"""Cases C18 to C30: structure and treatment from the log, runtime identity, operation, the seal."""

import json
from pathlib import Path
from typing import Any

import pytest
from smallrun import COMMIT, digest, dump, files, gate, judged, said

LINES = (
    '[[extract]]\nname = "captured"\nkind = "lines"\nrole = "run/server.log"\nmarker = "captured graph"\n'
    "pattern = 'Worker_TP(?P<tp>\\d+)_EP(?P<ep>\\d+) .*graphs=(?P<graphs>\\d+),"
    " eager_breaks=(?P<breaks>\\d+)'\n"
    'integers = ["tp", "ep", "graphs", "breaks"]\n'
    '[[gate]]\nname = "g"\nkind = "topology"\nlines = "captured"\nrank = ["tp", "ep"]\n'
    "ranks = [[0, 0], [1, 1], [2, 2], [3, 3]]\nexpect = { graphs = GRAPHS, breaks = BREAKS }\n"
)


def captured(ranks: list[int], graphs: list[int] | None = None) -> bytes:
    shapes = graphs or [146] * len(ranks)
    lines = [
        f"(Worker_TP{rank}_EP{rank} pid=1) captured graph for x: (graphs={shape}, eager_breaks={shape - 1})"
        for rank, shape in zip(ranks, shapes, strict=True)
    ]
    return ("noise\n" + "\n".join(lines) + "\nnoise\n").encode()


@pytest.mark.parametrize(
    ("ranks", "graphs", "declared", "code"),
    [
        ([2, 0, 3, 1], None, 146, "PASS ok"),
        ([0, 1, 3], None, 146, "FAIL rank-set"),
        ([0, 1, 1, 3], None, 146, "FAIL rank-set"),
        ([0, 1, 2, 3, 3], None, 146, "FAIL cardinality"),
        ([0, 1, 2, 3, 4], None, 146, "FAIL rank-set"),
        ([0, 1, 2, 3], [685] * 4, 146, "FAIL topology"),
        ([0, 1, 2, 3], [146, 146, 98, 146], 146, "FAIL topology-differs"),
        ([0, 1, 2, 3], [98] * 4, 98, "PASS ok"),
        ([], None, 146, "FAIL rank-set"),
    ],
)
def test_c18_topology_of_each_rank(
    tmp_path: Path, ranks: list[int], graphs: list[int] | None, declared: int, code: str
) -> None:
    policy = LINES.replace("GRAPHS", str(declared)).replace("BREAKS", str(declared - 1))
    assert said(judged(tmp_path, {"run/server.log": captured(ranks, graphs)}, policy), "g") == [code]


TREATMENT = (
    '[[extract]]\nname = "environment"\nkind = "environment"\nrole = "run/environment.txt"\n'
    '[[extract]]\nname = "treated"\nkind = "lines"\nrole = "run/server.log"\nmarker = "projections"\n'
    "pattern = 'TP(?P<tp>\\d+) .*count=(?P<count>\\d+)'\n"
    'integers = ["tp", "count"]\n'
    '[[gate]]\nname = "g"\nkind = "treatment"\nlines = "treated"\nrank = ["tp"]\nranks = [0, 1, 2, 3]\n'
    'expect = { count = 31 }\nselector = "environment:FP8"\n'
)


def treated(ranks: list[int], count: int = 31, fp8: str = "1") -> dict[str, bytes]:
    text = "start\n" + "".join(f"TP{rank} prepared projections count={count}\n" for rank in ranks)
    return {"run/server.log": text.encode(), "run/environment.txt": f"FP8={fp8}\n".encode()}


@pytest.mark.parametrize(
    ("planted", "code"),
    [
        (treated([0, 1, 2, 3]), "PASS ok"),
        (treated([0]), "FAIL treatment-cardinality"),  # C19: once for each host
        (treated([0, 1, 2, 3], fp8="0"), "FAIL treatment-leak"),  # C20 A
        (treated([], fp8="1"), "FAIL treatment-absent"),  # C20 B
        (treated([], fp8="0"), "PASS ok"),
        (treated([0, 1, 1, 3]), "FAIL rank-set"),
        (treated([0, 1, 2, 3], count=30), "FAIL treatment-value"),
        (treated([0, 1, 2, 3], fp8="yes"), "UNKNOWN selector-value"),
        ({"run/server.log": b"x\n", "run/environment.txt": b"OTHER=1\n"}, "UNKNOWN fact-absent"),
    ],
)
def test_c19_c20_one_marker_for_each_rank(tmp_path: Path, planted: dict[str, bytes], code: str) -> None:
    assert code in said(judged(tmp_path, planted, TREATMENT), "g")


def test_c19_says_how_many_of_how_many(tmp_path: Path) -> None:
    found = gate(judged(tmp_path, treated([0]), TREATMENT), "g").judgements[0]
    assert (found.expected, found.found) == ("4", "1")


def test_c20_no_credit_without_a_marker(tmp_path: Path) -> None:
    claims = (
        '[[claim]]\nname = "decode"\nvalue = "1.0"\nunit = "tok/s"\n'
        'metric = "faster through the FP8 Draft Head"\n'
        'convention = "wall"\nevidence = ["run/server.log"]\n'
    )
    policy = TREATMENT + (
        '[[extract]]\nname = "head"\nkind = "lines"\nrole = "run/server.log"\nmarker = "draft head ready"\n'
        '[[gate]]\nname = "credit"\nkind = "attribution"\nsubject = "the draft head"\nlines = "head"\n'
        'phrases = ["draft head"]\n'
    )
    planted = treated([0, 1, 2, 3])
    bare = judged(tmp_path / "a", planted, policy)
    assert (said(bare, "g"), said(bare, "credit")) == (["PASS ok"], ["NOT-APPLICABLE not-claimed"])
    assert said(judged(tmp_path / "b", planted, policy, claims), "credit") == ["FAIL attribution-unproven"]
    planted["run/server.log"] += b"draft head ready\n"
    assert said(judged(tmp_path / "c", planted, policy, claims), "credit") == ["PASS ok"]


def test_c22_a_selector_that_nobody_reads(tmp_path: Path) -> None:
    planted = {
        "run/environment.txt": b"ROUTE_INTERLEAVE=1\nKNOWN=1\n",
        "run/server.log": b"WARNING Unknown variable: ROUTE_INTERLEAVE\n",
    }
    policy = (
        '[[extract]]\nname = "env"\nkind = "environment"\nrole = "run/environment.txt"\n'
        '[[extract]]\nname = "unread"\nkind = "lines"\nrole = "run/server.log"\nmarker = "Unknown variable"\n'
        "pattern = 'variable: (?P<key>[A-Z_]+)'\n"
        '[[extract]]\nname = "route"\nkind = "lines"\nrole = "run/server.log"\nmarker = "interleaving on"\n'
        '[[gate]]\nname = "pin"\nkind = "environment"\nvariables = "env"\n'
        'pinned = { ROUTE_INTERLEAVE = "1", KNOWN = "1" }\n'
        '[[gate]]\nname = "readers"\nkind = "selectors"\nenvironment = "env"\nunknown = "unread:key"\n'
        '[[gate]]\nname = "credit"\nkind = "attribution"\nsubject = "interleaving"\nlines = "route"\n'
        'claimed = ["env:ROUTE_INTERLEAVE"]\nrequired = false\n'
    )
    found = judged(tmp_path, planted, policy)
    assert said(found, "pin") == ["PASS ok"]
    assert said(found, "readers") == ["WARN selector-without-reader"]
    assert said(found, "credit") == ["FAIL attribution-unproven"]
    assert found.verdict.outcome == "PASS"


LOADER = (
    '[[extract]]\nname = "loaded"\nkind = "loaded"\nrole = "run/loaded*.json"\n'
    '[[extract]]\nname = "lock"\nkind = "lock"\nrole = "run/lock.json"\n'
    '[[gate]]\nname = "g"\nkind = "loader"\nloaded = "loaded"\nlock = "lock"\n'
    'origins = { "libattn.so" = "/K/libattn.so" }\n'
)
LOCK = {"libraries": [{"path": "libattn.so", "sha256": "ad" * 32}]}


@pytest.mark.parametrize(
    ("paths", "code"),
    [
        (["/K/libattn.so"], "PASS ok"),
        (["/B/build/temp/libattn.so"], "FAIL loader-origin"),
        (["/K/libattn.so", "/B/build/temp/libattn.so"], "FAIL loader-origin-multiple"),
        (["/K/libattn.so (deleted)"], "FAIL deleted-mapping"),
        (None, "FAIL not-loaded"),
    ],
)
def test_c23_the_right_bytes_from_the_wrong_place(tmp_path: Path, paths: list[str] | None, code: str) -> None:
    loaded: dict[str, Any] = {"mapped_libraries": {"other.so": ["/K/other.so"]}}
    if paths is not None:
        loaded["mapped_libraries"]["libattn.so"] = paths
        loaded["sha256"] = dict.fromkeys(paths, "ad" * 32)
    found = judged(tmp_path, {"run/loaded.json": dump(loaded), "run/lock.json": dump(LOCK)}, LOADER)
    assert said(found, "g") == [code]
    assert ("same content, other path" in gate(found, "g").judgements[0].message) == (
        code == "FAIL loader-origin"
    )


def test_c23_every_observation_must_agree(tmp_path: Path) -> None:
    planted = {f"run/loaded-{rank}.json": dump({"mapped_libraries": {"libattn.so": [f"/{root}/libattn.so"]}})
               for rank, root in enumerate("KKBK")}  # fmt: skip
    found = judged(tmp_path, planted | {"run/lock.json": dump(LOCK)}, LOADER)
    assert said(found, "g") == ["FAIL loader-origin"]
    assert "loaded-2" in gate(found, "g").judgements[0].message


def test_c24_what_was_loaded_and_not_pinned(tmp_path: Path) -> None:
    modules, libraries = [f"m{at}" for at in range(4)], [f"lib{at}.so" for at in range(6)]
    lock = {
        "native_modules": [
            {"module": name, "path": f"{name}.so", "sha256": digest(name)} for name in modules
        ],
        "libraries": [{"path": name, "sha256": digest(name)} for name in libraries[:2]],
    }
    loaded = {
        "module_origins": {name: f"/k/{name}.so" for name in modules},
        "mapped_libraries": {name: [f"/k/{name}"] for name in libraries},
        "allocator_origin": "/other/tree/alloc.so",
    }
    policy = LOADER[: LOADER.index("[[gate]]")] + (
        '[[gate]]\nname = "g"\nkind = "loaded-pinned"\nloaded = "loaded"\nlock = "lock"\n'
    )
    found = gate(
        judged(tmp_path, {"run/loaded.json": dump(loaded), "run/lock.json": dump(lock)}, policy), "g"
    )
    assert [(j.outcome, j.code, j.found) for j in found.judgements] == [("FAIL", "unpinned-loaded", "5")]
    assert "allocator, lib2.so, lib3.so, lib4.so, lib5.so" in found.judgements[0].message


VERSION = (
    '[[extract]]\nname = "identity"\nkind = "identity"\nrole = "run/identity.txt"\n'
    '[[extract]]\nname = "banner"\nkind = "lines"\nrole = "run/server.log"\nmarker = "engine version"\n'
    "pattern = 'version (?P<version>\\S+)'\n"
    '[[gate]]\nname = "identity"\nkind = "equal"\nvalues = { "identity:engine_commit" = "' + COMMIT + '" }\n'
    '[[gate]]\nname = "g"\nkind = "version"\ntext = ["banner:version"]\ncommit = "identity:engine_commit"\n'
    "pattern = '\\+g(?P<commit>[0-9a-f]{7,40})'\n"
)


@pytest.mark.parametrize(
    ("mode", "code", "outcome"),
    [("required = false\n", "WARN", "PASS"), ("authoritative = true\n", "FAIL", "FAIL")],
)
def test_c25_a_stale_version_string(tmp_path: Path, mode: str, code: str, outcome: str) -> None:
    planted = files() | {"run/server.log": b"engine version 0.1.dev1267+g6ae34833d.d20260726\n"}
    found = judged(tmp_path, planted, VERSION + mode)
    assert said(found, "identity") == ["PASS ok"]
    assert said(found, "g") == [f"{code} version-string-contradicts-source"]
    assert found.verdict.outcome == outcome


@pytest.mark.parametrize(
    ("parameter", "value", "code"),
    [
        ("commits", "c8942a8e4", "WARN abbreviated-reference"),
        ("commits", "main", "FAIL mutable-reference"),
        ("commits", "ab" * 20, "PASS ok"),
        ("commits", "AB" * 20, "FAIL mutable-reference"),
        ("images", "repo/name:tag", "FAIL mutable-reference"),
        ("images", "repo/name@sha256:" + "ab" * 32, "PASS ok"),
        ("images", "repo/name@sha256:" + "ab" * 31, "FAIL mutable-reference"),
    ],
)
def test_c27_references_that_can_move(tmp_path: Path, parameter: str, value: str, code: str) -> None:
    policy = (
        '[[extract]]\nname = "d"\nkind = "json"\nrole = "run/d.json"\n'
        f'[[gate]]\nname = "g"\nkind = "references"\n{parameter} = ["d:/x"]\n'
    )
    assert said(judged(tmp_path, {"run/d.json": dump({"x": value})}, policy), "g") == [code]


def test_the_lock_pins_the_members_of_the_packet(tmp_path: Path) -> None:
    planted = {
        "native/libk.so": b"k",
        "runtime/lock": dump({"libs": [{"path": "libk.so", "sha256": digest(b"k")}]}),
    }
    policy = (
        '[[extract]]\nname = "lock"\nkind = "lock"\nrole = "runtime/lock"\n'
        '[[gate]]\nname = "g"\nkind = "pinned-members"\nlock = "lock"\ngroups = ["libs"]\nrole = "native"\n'
    )
    assert said(judged(tmp_path / "a", planted, policy), "g") == ["PASS ok"]
    assert said(judged(tmp_path / "b", planted | {"native/libk.so": b"x"}, policy), "g") == [
        "FAIL pin-differs"
    ]
    extra = planted | {"native/libz.so": b"z"}
    assert said(judged(tmp_path / "c", extra, policy), "g") == ["FAIL unpinned-member"]
    gone = {"native/other.so": b"o", "runtime/lock": planted["runtime/lock"]}
    assert said(judged(tmp_path / "d", gone, policy), "g") == [
        "UNKNOWN evidence-absent",
        "FAIL unpinned-member",
    ]


def test_environment_keys_are_each_judged_once(tmp_path: Path) -> None:
    base = json.loads('{"A": "1", "HOME": "/runs/x/home", "LIB": "/k/lib:/usr", "X": "e1", "Y": "e1"}')
    policy = (
        '[[extract]]\nname = "env"\nkind = "environment"\nrole = "run/env"\n'
        '[[extract]]\nname = "ref"\nkind = "environment"\nrole = "run/ref"\n'
        '[[gate]]\nname = "g"\nkind = "environment"\nvariables = "env"\npinned = { A = "1" }\n'
        'present = ["S"]\n'
        'forbidden = ["DEBUG*"]\nreference = "ref"\nfolded = { "/runs/x" = "RUN", "/runs/y" = "RUN" }\n'
        'related = [{ rule = "equal", keys = ["X", "Y"] },'
        '{ rule = "first-entry-ends", keys = ["LIB"], value = "/lib" }]\n'
    )
    reference = {"HOME": "/runs/y/home", "S": "0", "A": "1"}

    def words(number: int, change: dict[str, str | None]) -> list[str]:
        found = {key: value for key, value in {**base, "S": "0", **change}.items() if value is not None}
        texts = [("".join(f"{k}={v}\n" for k, v in side.items())).encode() for side in (found, reference)]
        place = tmp_path / str(number)
        return said(judged(place, {"run/env": texts[0], "run/ref": texts[1]}, policy), "g")

    changes: list[tuple[dict[str, str | None], str]] = [
        ({}, "PASS ok"),
        ({"A": "2"}, "FAIL pinned-differs"),
        ({"A": None}, "FAIL pinned-absent"),
        ({"S": None}, "FAIL presence-absent"),
        ({"S": "1"}, "PASS ok"),
        ({"DEBUG": "0"}, "FAIL forbidden-present"),
        ({"Y": "e2"}, "FAIL relation-broken"),
        ({"LIB": "/usr:/k/lib"}, "FAIL relation-broken"),
        ({"HOME": "/root"}, "WARN environment-drift"),
        ({"NEW": "1"}, "WARN environment-drift"),
    ]
    for number, (change, code) in enumerate(changes):
        assert words(number, change) == [code], change
