"""Edge cases of Git and the Hub (43 to 51), with the real git."""

import json
import struct
from pathlib import Path

import pytest
from workbench import (
    SPEC,
    facts_of,
    findings,
    git,
    listed,
    packet_of,
    plant,
    seal,
    seal_text,
    snapshot,
)

from provstore.errors import EmptyError, IncompleteSourceError, PinMismatchError, ProvError
from provstore.reports import SealReport
from provstore.store.memory import MemoryStore
from provstore.verbs.comparing import verify_against
from provstore.verbs.diffing import diff, side
from provstore.verbs.listing import cat
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.verifying import verify

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{7:064d}\nsize 4900000000\n"


def repository(folder: Path, commits: int = 1) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    for number in range(commits):
        (folder / "f").write_text(f"{number}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", str(number))
    return folder


def source_facts(store: MemoryStore, report: SealReport) -> dict[tuple[str, str], object]:
    (entry,) = packet_of(store, bytes.fromhex(report.packet)).entries
    return facts_of(store, entry)


# 43. A thin bundle


def test_43_a_bundle_that_needs_what_nobody_has(tmp_path: Path) -> None:
    source = repository(tmp_path / "r", 3)
    tree = plant(tmp_path / "t", {"readme": "x"})
    git(source, "bundle", "create", "-q", str(tree / "thin.bundle"), "HEAD~1..HEAD")
    needed = git(source, "rev-parse", "HEAD~1")
    store = MemoryStore()
    with pytest.raises(IncompleteSourceError, match=needed) as raised:
        seal(store, tree)
    assert "thin.bundle" in raised.value.message
    assert "git bundle create" in raised.value.message
    assert store.refs() == []
    git(source, "branch", "base", "HEAD~1")
    git(source, "bundle", "create", "-q", str(tree / "base.bundle"), "base")
    packet = seal(store, tree)
    assert verify(store, packet).outcome == "PASS"


def test_43_a_full_bundle_stands_alone(tmp_path: Path) -> None:
    source = repository(tmp_path / "r", 2)
    (tmp_path / "t").mkdir()
    git(source, "bundle", "create", "-q", str(tmp_path / "t/full.bundle"), "--all")
    assert seal(MemoryStore(), tmp_path / "t")
    assert seal(MemoryStore(), tmp_path / "t/full.bundle")


def test_43_the_same_rule_for_a_bundle_by_its_own_path(tmp_path: Path) -> None:
    source = repository(tmp_path / "r", 3)
    git(source, "bundle", "create", "-q", str(tmp_path / "thin.bundle"), "HEAD~1..HEAD")
    with pytest.raises(IncompleteSourceError):
        seal(MemoryStore(), tmp_path / "thin.bundle")


# 44. Pointers


def test_44_a_pointer_is_no_payload(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"model-00001.safetensors": POINTER, "d/other.bin": POINTER, "ok": "x"})
    store = MemoryStore()
    with pytest.raises(IncompleteSourceError) as raised:
        seal(store, tree)
    assert len(raised.value.problems) == 2
    assert all("LFS pointer" in problem for problem in raised.value.problems)
    packet = seal(store, tree, allow_pointers=True)
    assert listed(store, packet)["d/other.bin"].state == "pointer"
    report = verify(store, packet)
    assert report.outcome == "INCOMPLETE"
    assert findings(report) == {"d/other.bin": "pointer", "model-00001.safetensors": "pointer"}


def test_44_a_pointer_by_its_own_path_and_as_a_model(tmp_path: Path) -> None:
    plant(tmp_path, {"w.safetensors": POINTER, "m/w.safetensors": POINTER})
    for path, kind in (("w.safetensors", "model"), ("m", "model"), ("w.safetensors", "evidence")):
        with pytest.raises(IncompleteSourceError, match="pointer"):
            seal(MemoryStore(), tmp_path / path, kind=kind)


@pytest.mark.parametrize(
    "text",
    [
        "version https://git-lfs.github.com/spec/v1\nis what the first line of a pointer looks like.\n",
        POINTER + "and then a chapter about it\n" * 200,
    ],
)
def test_44_prose_about_pointers_is_evidence(tmp_path: Path, text: str) -> None:
    tree = plant(tmp_path / "t", {"README.md": text})
    store = MemoryStore()
    packet = seal(store, tree)
    assert listed(store, packet)["README.md"].state is None
    assert verify(store, packet).outcome == "PASS"


@pytest.mark.parametrize("extra", ["", "text that somebody appended\n"])
def test_44_an_annex_pointer_is_no_payload_either(tmp_path: Path, extra: str) -> None:
    text = f"/annex/objects/SHA256E-s31--{7:064d}.safetensors\n" + extra
    tree = plant(tmp_path / "t", {"model.safetensors": text})
    with pytest.raises(IncompleteSourceError, match="model.safetensors"):  # noqa: RUF043
        seal(MemoryStore(), tree)


# 46. Line ends


def test_46_bytes_of_the_work_tree_and_of_the_blob_are_two_facts(tmp_path: Path) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    git(tree, "init", "-q")
    git(tree, "config", "core.autocrlf", "input")
    (tree / "f").write_bytes(b"a\r\nb\r\n")
    git(tree, "add", "f")
    git(tree, "commit", "-qm", "1")
    store = MemoryStore()
    report = seal_paths(store, [tree], options=SealOptions(kind="source-tree"))
    packet = bytes.fromhex(report.packet)
    assert b"".join(cat(store, packet, "f")) == b"a\r\nb\r\n"
    assert any("f" in note and "filter" in note for note in report.observations["notes"])
    values = repr(source_facts(store, report))
    assert git(tree, "rev-parse", "HEAD") in values
    plain = plant(tmp_path / "u", {"f": b"a\nb\n"})
    with side("t", store) as a, side(str(plain), store) as b:
        assert [change.path for change in diff(a, b).changed] == ["f"]


# 48. A commit over a dirty tree


def test_48_dirty_and_untracked_files_are_listed_and_their_bytes_kept(tmp_path: Path) -> None:
    tree = repository(tmp_path / "t")
    clean = seal_paths(MemoryStore(), [tree], options=SealOptions(kind="source-tree"))
    (tree / "f").write_text("uncommitted\n")
    (tree / "new").write_text("untracked\n")
    store = MemoryStore()
    report = seal_paths(store, [tree], options=SealOptions(kind="source-tree"))
    assert report.packet != clean.packet
    packet = bytes.fromhex(report.packet)
    assert b"".join(cat(store, packet, "f")) == b"uncommitted\n"
    assert b"".join(cat(store, packet, "new")) == b"untracked\n"
    facts = source_facts(store, report)
    text = repr(facts)
    assert git(tree, "rev-parse", "HEAD") in text
    dirty = [key for key, value in facts.items() if "f" in (key[0], value) or "f" in repr(value)]
    assert any("dirty" in key[1] for key in dirty)
    assert any("untracked" in key[1] for key in facts)


def test_48_git_tree_id_of_a_clean_source_tree(tmp_path: Path) -> None:
    tree = repository(tmp_path / "t", 2)
    store = MemoryStore()
    report = seal_paths(store, [tree], options=SealOptions(kind="source-tree"))
    assert git(tree, "rev-parse", "HEAD^{tree}") in repr(source_facts(store, report))
    blob = git(tree, "rev-parse", "HEAD:f")
    assert store.match("git", blob)


def test_48_a_commit_pin_that_does_not_hold(tmp_path: Path) -> None:
    repository(tmp_path / "t")
    head = git(tmp_path / "t", "rev-parse", "HEAD")
    text = '[[entry]]\nrole = "src"\nkind = "source-tree"\npath = "t"\ncommit = "{}"\n'
    assert seal_text(MemoryStore(), tmp_path, text.format(head))
    with pytest.raises(PinMismatchError, match=head) as raised:
        seal_text(MemoryStore(), tmp_path, text.format("0" * 40))
    assert "0" * 40 in raised.value.message
    plant(tmp_path / "plain", {"f": "x"})
    with pytest.raises(ProvError):
        seal_text(MemoryStore(), tmp_path, text.replace('"t"', '"plain"').format(head))


# 49. Layouts of the Hub's client


def safetensors(value: bytes) -> bytes:
    head = json.dumps({"w": {"dtype": "U8", "shape": [len(value)], "data_offsets": [0, len(value)]}}).encode()
    return struct.pack("<Q", len(head)) + head + value


def local_layout(root: Path, revision: str = "a" * 40) -> Path:
    note = f"{revision}\netag\n1700000000.0\n"
    return plant(
        root,
        {
            "w.safetensors": safetensors(b"abc"),
            "config.json": "{}",
            ".cache/huggingface/.gitignore": "*",
            ".cache/huggingface/download/w.safetensors.metadata": note,
            ".cache/huggingface/download/config.json.metadata": note,
            ".cache/huggingface/download/config.json.lock": "",
        },
    )


def cache_layout(root: Path, revision: str = "a" * 40) -> Path:
    return plant(
        root,
        {
            "blobs/weights": safetensors(b"abc"),
            "blobs/config": "{}",
            f"snapshots/{revision}/w.safetensors": "->../../blobs/weights",
            f"snapshots/{revision}/config.json": "->../../blobs/config",
            "refs/main": revision,
            ".no_exist/x/y": "",
        },
    )


def tree_of(store: MemoryStore, packet: bytes) -> str | None:
    return packet_of(store, packet).entries[0].tree


def test_49_both_layouts_are_one_model(tmp_path: Path) -> None:
    local, cache = local_layout(tmp_path / "d"), cache_layout(tmp_path / "c/models--o--m")
    store = MemoryStore()
    packets = [seal(store, path, kind="model") for path in (local, cache, cache / "snapshots" / ("a" * 40))]
    assert len({tree_of(store, packet) for packet in packets}) == 1
    assert {*listed(store, packets[0])} == {"config.json", "w.safetensors"}
    assert verify_against(store, packets[0], local).outcome == "PASS"


def test_49_a_cache_with_two_snapshots_is_ambiguous_and_one_with_none_is_empty(tmp_path: Path) -> None:
    cache = cache_layout(tmp_path / "c")
    cache_layout(tmp_path / "e", "b" * 40)
    (cache / "snapshots" / ("b" * 40)).mkdir()
    with pytest.raises(ProvError, match="b" * 40):
        seal(MemoryStore(), cache, kind="model")
    plant(tmp_path / "n", {"blobs/x": "x", "snapshots": None, "refs/main": "y"})
    with pytest.raises(EmptyError):
        seal(MemoryStore(), tmp_path / "n", kind="model")


def test_49_a_broken_link_in_a_snapshot_is_named(tmp_path: Path) -> None:
    cache = cache_layout(tmp_path / "c")
    (cache / "blobs/weights").unlink()
    with pytest.raises(ProvError, match=r"w\.safetensors"):
        seal(MemoryStore(), cache, kind="model")


@pytest.mark.parametrize("layout", [local_layout, cache_layout])
def test_49_a_revision_pin_is_held_against_what_the_client_noted(tmp_path: Path, layout: object) -> None:
    layout(tmp_path / "m")  # type: ignore[operator]
    text = '[[entry]]\nrole = "w"\nkind = "model"\npath = "m"\nhub = "o/m"\nrevision = "{}"\n'
    store = MemoryStore()
    packet = seal_text(store, tmp_path, text.format("a" * 40))
    assert [pin.kind for pin in packet_of(store, packet).entries[0].pins] == ["revision"]
    with pytest.raises(PinMismatchError) as raised:
        seal_text(MemoryStore(), tmp_path, text.format("b" * 40))
    assert "a" * 40 in raised.value.message


def test_49_a_revision_that_nothing_shows_is_no_pin(tmp_path: Path) -> None:
    plant(tmp_path / "m", {"config.json": "{}"})
    text = '[[entry]]\nrole = "w"\nkind = "model"\npath = "m"\nhub = "o/m"\nrevision = "{}"\n'
    store = MemoryStore()
    (entry,) = packet_of(store, seal_text(store, tmp_path, text.format("a" * 40))).entries
    assert entry.pins == ()
    assert [origin.revision for origin in entry.origins] == ["a" * 40]


# 51. Partial downloads


def test_51_an_absent_shard_and_an_unfinished_download_are_both_named(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    tree = plant(
        tmp_path / "m",
        {
            "model.safetensors.index.json": json.dumps(index),
            "model-00001-of-00002.safetensors": safetensors(b"x"),
            "0a1b2c3d.deadbeef.1234abcd.incomplete": "",
        },
    )
    with pytest.raises(IncompleteSourceError) as raised:
        seal(MemoryStore(), tree, kind="model")
    text = "\n".join(raised.value.problems)
    assert "model-00002-of-00002.safetensors" in text
    assert "0a1b2c3d.deadbeef.1234abcd.incomplete" in text


def test_51_unfinished_downloads_in_the_clients_own_folders(tmp_path: Path) -> None:
    local, cache = local_layout(tmp_path / "d"), cache_layout(tmp_path / "c")
    plant(local, {".cache/huggingface/download/abc.incomplete": "part"})
    plant(cache, {"blobs/abc.incomplete": "part"})
    for path in (local, cache):
        with pytest.raises(IncompleteSourceError, match="abc.incomplete"):  # noqa: RUF043
            seal(MemoryStore(), path, kind="model")


def test_a_model_that_changed_is_another_packet_and_diff_names_the_shard(tmp_path: Path) -> None:
    tree = plant(tmp_path / "m", {"a.safetensors": safetensors(b"abc"), "b.safetensors": safetensors(b"d")})
    store = MemoryStore()
    first = seal(store, tree, kind="model", name="one")
    before = snapshot(tree)
    (tree / "a.safetensors").write_bytes(safetensors(b"abd"))
    assert snapshot(tree) != before
    assert seal(store, tree, kind="model", name="two") != first
    with side("one", store) as a, side("two", store) as b:
        report = diff(a, b)
    assert [change.path for change in report.changed] == ["a.safetensors"]
    assert report.kept == 1
    assert SPEC.startswith("format")
