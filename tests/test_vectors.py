"""The library gives the values of ``schemas/vectors``, and so do ``b3sum``, ``sha256sum`` and ``git``."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from provstore import canon, gitids, merkle, records
from provstore.errors import ProvError
from provstore.evidence.ledger import read_ledger
from provstore.files.checksums import parse_checksums
from provstore.ids import digests, object_id, parse_digest, record_id
from provstore.paths import check_path, name_fields, show, unshow
from provstore.records.packet import Packet, check_packet
from provstore.records.tree import TreeEntry
from provstore.store import frame
from provstore.verbs.proving import verify_proof
from provstore.verbs.spec import load_spec

FOLDER = Path(__file__).parent.parent / "schemas" / "vectors"
Case = dict[str, Any]

GIT_TREE = {
    "git_sha1": "07ca39207ea3e1e62b8529d9fce53b273a83c8e3",
    "git_sha256": "9ef4ce253275606c80b1d8c2b458f883341e3ab568573895fe50d45375f8aa57",
    "swhid": "swh:1:dir:6649f4a6d3d6bdc134a3efc744ddd0eeeef6cd84",
}
PATTERN_OF_1048577 = "2f053cd7472cf0cd2f9adaf45c1180255b91b9a865404a63671a0ee5f792ed33"


def document(name: str) -> Case:
    found: Case = json.loads((FOLDER / name).read_bytes())
    return found


def cases(name: str, key: str = "cases") -> list[Any]:
    return [
        pytest.param(case, id=f"{number}-{case.get('name', number)}")
        for number, case in enumerate(document(name)[key])
    ]


def pattern(length: int) -> bytes:
    return (bytes(range(251)) * (length // 251 + 1))[:length]


def input_of(case: Case) -> bytes:
    if "pattern_length" in case:
        return pattern(case["pattern_length"])
    return case["input"].encode() if "input" in case else bytes.fromhex(case["input_hex"])


def raw(case: Case, field: str) -> bytes:
    return case[field].encode() if field in case else bytes.fromhex(case[f"{field}_hex"])


# The files themselves


def test_no_vector_was_changed_and_none_is_missing_from_the_list() -> None:
    index = document("INDEX.json")
    found = {
        path.relative_to(FOLDER).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in FOLDER.rglob("*.json")
        if path.name != "INDEX.json"
    }
    assert found == index


def test_the_maker_gives_the_vectors_again_and_writes_nothing_over_them(tmp_path: Path) -> None:
    copy = tmp_path / "vectors"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
    make = [sys.executable, "-B", os.fspath(copy / "make.py")]
    assert subprocess.run([*make, "--check"], check=False).returncode == 0
    copy.joinpath("git.json").write_text("{}")
    copy.joinpath("bad", "digests.json").unlink()
    run = subprocess.run(make, check=False, capture_output=True, text=True)
    assert run.returncode == 1
    assert "git.json" in run.stderr
    assert copy.joinpath("git.json").read_text() == "{}"
    assert copy.joinpath("bad", "digests.json").read_bytes() == (FOLDER / "bad/digests.json").read_bytes()


# Objects and records


@pytest.mark.parametrize("case", cases("objects.json"))
def test_objects(case: Case) -> None:
    found = digests(input_of(case))
    assert found.blake3.hex() == case["blake3"] == object_id(input_of(case)).hex()
    assert found.sha256.hex() == case["sha256"]
    assert found.size_bytes == case["size_bytes"]


def test_the_known_answers_of_others_are_among_the_vectors() -> None:
    known = {case["name"]: case for case in document("objects.json")["cases"]}
    assert known["1048577 bytes i mod 251"]["blake3"] == PATTERN_OF_1048577
    tree = document("trees.json")["cases"][0]
    assert {name: tree[name] for name in GIT_TREE} == GIT_TREE


@pytest.mark.parametrize("program", ["b3sum", "sha256sum"])
def test_objects_against_other_programs(program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        return
    wanted = document("objects.json")["cases"]
    for number, case in enumerate(wanted):
        tmp_path.joinpath(f"{number:03}").write_bytes(input_of(case))
    names = sorted(path.name for path in tmp_path.iterdir())
    run = subprocess.run([program, *names], cwd=tmp_path, capture_output=True, text=True, check=True)
    field = "blake3" if program == "b3sum" else "sha256"
    assert [line.split()[0] for line in run.stdout.splitlines()] == [case[field] for case in wanted]


@pytest.mark.parametrize("case", cases("records.json"))
def test_records(case: Case) -> None:
    data = case["canonical"].encode()
    record = records.decode(data)
    assert records.encode(record) == (bytes.fromhex(case["id"]), data)
    assert record_id(case["kind"], data).hex() == case["id"]
    assert canon.parse(data) == case["record"]
    if case["kind"].startswith("tree"):
        assert merkle.open_node(data).node == record


def test_no_two_kinds_share_ids() -> None:
    data = document("records.json")["cases"][0]["canonical"].encode()
    kinds = ("tree", "tree-index", "packet", "facts", "observation")
    assert len({*(record_id(kind, data) for kind in kinds), object_id(data)}) == len(kinds) + 1


# Trees and packets


def entries(members: list[Case]) -> Iterator[tuple[bytes, TreeEntry]]:
    for member in members:
        if member["kind"] == "directory":
            entry = TreeEntry(kind="directory", name="x", tree="0" * 64)
        elif member["kind"] == "symlink":
            text, text_hex = name_fields(raw(member, "target"))
            entry = TreeEntry(kind="symlink", name="x", target=text, target_hex=text_hex)
        else:
            found = digests(raw(member, "content"))
            entry = TreeEntry(
                kind=member["kind"],
                name="x",
                blake3=found.blake3.hex(),
                sha256=found.sha256.hex(),
                size_bytes=found.size_bytes,
            )
        yield raw(member, "path"), entry


def git_id(members: list[Case], algorithm: gitids.ObjectFormat, *, keep_empty: bool) -> bytes:
    """Return the Git id of a whole tree by the library's own parts."""
    here: list[gitids.TreeMember] = []
    for member in members:
        name = raw(member, "path")
        if b"/" in name:
            continue
        if member["kind"] == "directory":
            prefix = name + b"/"
            below = [
                {**m, "path_hex": raw(m, "path")[len(prefix) :].hex()}
                for m in members
                if raw(m, "path").startswith(prefix)
            ]
            for m in below:
                m.pop("path", None)
            if keep_empty or any(m["kind"] != "directory" for m in below):
                here.append(gitids.TreeMember(name, "40000", git_id(below, algorithm, keep_empty=keep_empty)))
        elif member["kind"] == "symlink":
            here.append(gitids.TreeMember(name, "120000", gitids.blob_id(raw(member, "target"), algorithm)))
        else:
            mode: gitids.Mode = "100755" if member["kind"] == "executable" else "100644"
            here.append(gitids.TreeMember(name, mode, gitids.blob_id(raw(member, "content"), algorithm)))
    return gitids.tree_id(here, algorithm)


@pytest.mark.parametrize("case", cases("trees.json"))
def test_trees(case: Case) -> None:
    nodes = merkle.build_tree(list(entries(case["members"])))
    assert nodes[-1][0].hex() == case["tree"]
    assert {id.hex(): data.decode() for id, data in nodes} == {
        row["id"]: row["canonical"] for row in case["records"]
    }
    assert git_id(case["members"], "sha1", keep_empty=False).hex() == case["git_sha1"]
    assert git_id(case["members"], "sha256", keep_empty=False).hex() == case["git_sha256"]
    kept = git_id(case["members"], "sha1", keep_empty=True)
    assert gitids.swhid("dir", kept) == case["swhid"]


def split_names(case: Case) -> list[bytes]:
    names: list[bytes] = []
    number = 0
    while len(names) < case["count"]:
        name = b"member-%06d" % number
        number += 1
        if case["rule"] == "plain" or object_id(name)[0] & 31:
            names.append(name)
    return names


@pytest.mark.parametrize("case", cases("splits.json"))
def test_splits(case: Case) -> None:
    found = digests(b"x\n")
    nodes = merkle.build(
        [
            TreeEntry(
                kind="file",
                name=name.decode(),
                blake3=found.blake3.hex(),
                sha256=found.sha256.hex(),
                size_bytes=2,
            )
            for name in split_names(case)
        ]
    )
    assert nodes[-1][0].hex() == case["tree"]
    parsed = [json.loads(data) for _, data in nodes]
    leaves = [record["entries"] for record in parsed if "entries" in record]
    assert [len(leaf) for leaf in leaves] == case["leaf_sizes"]
    assert [record["level"] for record in parsed if "level" in record] == case["levels"]
    if "records" in case:
        assert [leaf[-1]["name"] for leaf in leaves] == case["leaf_last"]
        assert [id.hex() for id, _ in nodes] == [row["id"] for row in case["records"]]


@pytest.mark.parametrize("case", cases("packets.json"))
def test_packets(case: Case) -> None:
    known = {bytes.fromhex(row["id"]): row["canonical"].encode() for row in case["records"]}
    for row in case["records"]:
        assert record_id(row["kind"], row["canonical"].encode()).hex() == row["id"]
    packet = records.decode(known[bytes.fromhex(case["packet"])])
    assert isinstance(packet, Packet)
    check_packet(packet)
    wanted = {
        path: digests(raw(m, "content"))
        for m in case["members"]
        if "content_hex" in m
        for path in [raw(m, "path")]
    }
    found = {}
    for entry in packet.entries:
        if entry.tree is None:
            found[entry.role.encode()] = (entry.blake3, entry.sha256, entry.size_bytes)
            continue
        for path, node in merkle.walk(known.__getitem__, bytes.fromhex(entry.tree), entry.role.encode()):
            if node.kind != "directory":
                found[path] = (node.blake3, node.sha256, node.size_bytes)
    assert found == {path: (d.blake3.hex(), d.sha256.hex(), d.size_bytes) for path, d in wanted.items()}


# Git


@pytest.mark.parametrize("case", cases("ledgers.json"))
def test_ledgers(case: Case) -> None:
    found = read_ledger("".join(line + "\n" for line in case["lines"]).encode())
    assert [finding.code for finding in found.findings] == case["codes"]
    assert found.value("ledger.head") == case["head"]


@pytest.mark.parametrize("case", cases("git.json"))
def test_git_blobs(case: Case) -> None:
    data = input_of(case)
    assert gitids.blob_id(data).hex() == case["sha1"]
    assert gitids.blob_id(data, "sha256").hex() == case["sha256"]
    assert gitids.swhid("cnt", gitids.blob_id(data)) == case["swhid"]


def run_git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    clean = {"PATH": os.environ["PATH"], "HOME": os.fspath(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    run = subprocess.run(
        ["git", *arguments], cwd=folder, input=given, capture_output=True, check=True, env=clean
    )
    return run.stdout.strip()


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
@pytest.mark.parametrize("case", cases("trees.json"))
def test_trees_against_git(case: Case, algorithm: str, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        return
    run_git(tmp_path, "init", "--quiet", f"--object-format={algorithm}")
    lines = []
    for member in case["members"]:
        if member["kind"] != "directory":
            content = raw(member, "target" if member["kind"] == "symlink" else "content")
            blob = run_git(tmp_path, "hash-object", "-w", "--stdin", "--no-filters", given=content)
            mode = {"symlink": b"120000", "executable": b"100755"}.get(member["kind"], b"100644")
            lines.append(mode + b" " + blob + b"\t" + raw(member, "path") + b"\0")
    run_git(tmp_path, "update-index", "-z", "--index-info", given=b"".join(lines))
    assert run_git(tmp_path, "write-tree").decode() == case[f"git_{algorithm}"]


# Refusals


def code_of(action: Callable[[], object]) -> str:
    try:
        action()
    except ProvError as error:
        return error.code
    return "accepted"


@pytest.mark.parametrize("case", cases("bad/records.json"))
def test_bad_records(case: Case) -> None:
    assert code_of(lambda: merkle.open_node(input_of(case))) == case["code"]


@pytest.mark.parametrize("case", cases("bad/packets.json"))
def test_bad_packets(case: Case) -> None:
    def look() -> None:
        packet = records.decode(input_of(case))
        assert isinstance(packet, Packet)
        check_packet(packet)

    assert code_of(look) == case["code"]


@pytest.mark.parametrize("case", cases("bad/specs.json"))
def test_bad_specs(case: Case) -> None:
    assert code_of(lambda: load_spec(input_of(case), "spec.toml", {})) == case["code"]


@pytest.mark.parametrize("case", cases("bad/digests.json"))
def test_bad_digests(case: Case) -> None:
    assert code_of(lambda: parse_digest(case["input"])) == case["code"]


@pytest.mark.parametrize("text", document("bad/digests.json")["good"])
def test_good_digests(text: str) -> None:
    assert str(parse_digest(text)) == text


@pytest.mark.parametrize("case", cases("bad/frames.json"))
def test_bad_frames(case: Case) -> None:
    assert code_of(lambda: frame.unpack(input_of(case))) == case["code"]


@pytest.mark.parametrize("case", cases("bad/frames.json", "good"))
def test_good_frames(case: Case) -> None:
    assert frame.unpack(input_of(case)) == bytes.fromhex(case["plain_hex"])


@pytest.mark.parametrize("case", cases("proofs.json"))
def test_proofs(case: Case) -> None:
    data = case["text"].encode()
    if "code" in case:
        assert code_of(lambda: verify_proof(data, "proof")) == case["code"]
    else:
        assert verify_proof(data, "proof").outcome == case["outcome"]


# Text


@pytest.mark.parametrize("case", cases("checksums.json"))
def test_bad_checksum_files(case: Case) -> None:
    assert code_of(lambda: parse_checksums(input_of(case), "x.sha256", "sha256")) == case["code"]


@pytest.mark.parametrize("case", cases("checksums.json", "good"))
def test_good_checksum_files(case: Case, tmp_path: Path) -> None:
    lines = parse_checksums(input_of(case), "x.sha256", "sha256")
    names = [bytes.fromhex(name) for name in case["names_hex"]]
    assert [line.name for line in lines] == names
    assert {line.digest.raw.hex() for line in lines} == {document("checksums.json")["sha256"]}
    if shutil.which("sha256sum") is not None:
        for name in names:
            with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
                file.write(b"x")
        run = subprocess.run(
            ["sha256sum", "--check", "--strict", "-"], cwd=tmp_path, input=input_of(case), check=False
        )
        assert run.returncode == 0


@pytest.mark.parametrize("case", cases("paths.json"))
def test_bad_paths(case: Case) -> None:
    assert code_of(lambda: check_path(input_of(case))) == case["code"]


@pytest.mark.parametrize("case", cases("paths.json", "good"))
def test_good_paths(case: Case) -> None:
    path = bytes.fromhex(case["path_hex"])
    assert check_path(path) == path
    assert show(path) == case["shown"]
    assert unshow(case["shown"]) == path


def test_the_example_in_the_prose_is_that_of_the_vectors() -> None:
    prose = (FOLDER.parent / "README.md").read_text()
    case = next(c for c in document("splits.json")["cases"] if (c["rule"], c["count"]) == ("plain", 100))
    for name in case["leaf_last"]:
        head = object_id(name.encode())[:8]
        bits = f"{int.from_bytes(head, 'little') & 0xFFF:012b}"
        assert f"| `{name}` | `{head.hex()}` | `{bits[:4]} {bits[4:8]} {bits[8:]}` |" in prose
    assert f"`{case['tree'][:8]}…{case['tree'][-9:]}`" in prose
