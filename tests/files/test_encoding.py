"""Entries of files taken from a leaf as bytes: exactly those that the encoder gives, and no others."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workbench import STORES, open_store_of, plant, seal, settle

from provstore import canon, merkle
from provstore.files.encoding import whole_files
from provstore.paths import name_fields
from provstore.records.tree import TreeEntry
from provstore.verbs.sealing import seal_paths

DIGESTS = st.sampled_from(["0" * 64, "a1" * 32])
NAMES = st.one_of(
    st.text("ab {}[],:\"\\é~'\x7f", min_size=1, max_size=6).map(str.encode),
    st.binary(min_size=1, max_size=4),
    st.sampled_from([b'{"blake3":"', b'x","sha256":"', b"plain.py", b'"size_bytes":0}']),
).filter(lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b".."))


@st.composite
def entries(draw: st.DrawFn) -> TreeEntry:
    name, name_hex = name_fields(draw(NAMES))
    sort = draw(st.sampled_from(["file", "executable", "declared", "state", "hole", "symlink", "directory"]))
    size = draw(st.integers(0, (1 << 53) - 1))
    made: dict[str, object] = {"name": name, "name_hex": name_hex, "kind": "file"}
    if sort in ("file", "executable", "state"):
        made |= {"blake3": draw(DIGESTS), "sha256": draw(DIGESTS), "size_bytes": size}
    if sort == "declared":
        made |= {"sha256": draw(DIGESTS)}
    if sort in ("executable", "symlink", "directory"):
        made["kind"] = sort
    if sort == "state":
        made["state"] = draw(st.sampled_from(["pointer", "prefix"]))
    if sort == "hole":
        made["state"] = "unreadable"
    if sort == "symlink":
        target, target_hex = name_fields(draw(NAMES))
        made |= {"target": target, "target_hex": target_hex}
    if sort == "directory":
        made["tree"] = draw(DIGESTS)
    stated = {field: value for field, value in made.items() if value is not None}
    return canon.decode(canon.encode(stated), TreeEntry, "test")


@settings(max_examples=300, deadline=None)
@given(st.lists(entries(), max_size=8, unique_by=TreeEntry.raw_name))
def test_what_is_taken_from_a_leaf_is_what_the_encoder_gives(members: list[TreeEntry]) -> None:
    members.sort(key=TreeEntry.raw_name)
    ((_, leaf),) = merkle.build(members)
    by_name = {entry.raw_name(): entry for entry in members}
    taken = whole_files(leaf)
    for name, data in taken.items():
        assert data == canon.encode(by_name[name], bounded=True)
        assert by_name[name].blake3 is not None
        assert by_name[name].state is None
    left = [entry for entry in members if entry.raw_name() not in taken and entry.blake3 is not None]
    for entry in left:
        plain = re.fullmatch(r"[ !#-\[\]-~]+", entry.name or "")
        assert plain is None or entry.state is not None or (entry.size_bytes or 0) >= 10**15


def test_what_is_taken_covers_plain_files() -> None:
    plain = TreeEntry(kind="executable", name="a {b},c", blake3="0" * 64, sha256="1" * 64, size_bytes=0)
    ((_, leaf),) = merkle.build([plain])
    assert whole_files(leaf) == {b"a {b},c": canon.encode(plain)}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("many", [0, 300])
def test_one_changed_file_is_read_alone_whatever_the_others_are_called(
    tmp_path: Path, kind: str, many: int
) -> None:
    files: dict[str | bytes, str | bytes | None] = {f"f{n}": str(n) for n in range(many)}
    names: list[str | bytes] = ["plain", 'quo"te', "back\\slash", "é", b"\xff", "a b", "~\x7f", '{"blake3":"']
    odd: dict[str | bytes, str | bytes | None] = {name: os.urandom(40) for name in names}
    tree = plant(tmp_path / "t", files | odd | {"run": "+xy", "link": "->run", "large": os.urandom(5 << 20)})
    settle(tree)
    with open_store_of(kind, tmp_path) as store:
        seal_paths(store, [tree])
        (tree / "plain").write_bytes(b"changed")
        again = seal_paths(store, [tree])
        assert again.bytes_read == 7
        assert again.objects == 1
        assert seal(store, tree, use_cache=False).hex() == again.packet
        (tree / "é").unlink()
        (tree / "é").mkdir()
        (tree / "run").chmod(0o644)
        third = seal_paths(store, [tree])
        assert third.bytes_read == 7 + 1, "changed just now, and the one with another mode"
        assert seal(store, tree, use_cache=False).hex() == third.packet
