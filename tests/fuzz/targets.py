"""One function for each decoder: bytes in, an answer or an error of ours out, and what must hold of it."""

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fuzz import documents, evidence, hostile, seeds
from fuzz.contract import Target
from provstore import canon, merkle, paths, records, treediff
from provstore.errors import ProvError
from provstore.files import cache_blocks, stat_cache
from provstore.files.checksums import UntaggedAlgorithm, format_checksums, parse_checksums
from provstore.files.git_urls import public_url
from provstore.files.inspect_bundle import bundle_facts, bundle_header, is_bundle
from provstore.files.inspect_elf import inspect_elf
from provstore.files.inspect_python import inspect_python_env, parse_freeze
from provstore.files.inspect_safetensors import index_shards, inspect_safetensors, missing_shards
from provstore.files.inspect_text import text_facts
from provstore.files.python_origins import contradiction, requirement_url
from provstore.files.root import ROW
from provstore.files.standins import annex_link, annex_pointer, is_partial_name, lfs_pointer
from provstore.ids import digests, is_prefix, parse_digest, record_id, to_raw
from provstore.paths import show, unshow
from provstore.records.facts import Fact, Facts
from provstore.records.packet import Packet, check_packet
from provstore.records.tree import TreeEntry
from provstore.report.schemas import check_document
from provstore.store import data_file, frame, rows
from provstore.store.opening import load_profile
from provstore.verbs.proving import Proof, is_proof, verify_proof
from provstore.verbs.spec import is_spec, load_spec


@contextlib.contextmanager
def file_of(data: bytes) -> Iterator[str]:
    """Give the path of a file in memory that holds these bytes."""
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def may_refuse() -> Iterator[None]:
    """Go on after an error of ours: one input is for several decoders."""
    with contextlib.suppress(ProvError):
        yield


def facts_hold(facts: tuple[Fact, ...]) -> None:
    """Facts can be sealed, and read back as they were."""
    record = Facts(extractor="fuzz", version=1, source="0" * 64, facts=facts)
    _, data = records.encode(record)
    assert records.decode(data) == record


def run_canon(data: bytes) -> None:
    canon.format_of(data)
    with may_refuse():
        canon.parse_exact(data)
    value = canon.parse(data)
    encoded = canon.encode(value)
    assert canon.parse(encoded) == value
    assert canon.encode(canon.parse(encoded)) == encoded
    assert canon.decode(encoded, Any) == value


def run_records(data: bytes) -> None:
    with may_refuse():
        records.kind_of(data)
    record = records.decode(data)
    assert records.encode(record)[1] == data
    if isinstance(record, Packet):
        check_packet(record)
    elif isinstance(record, Facts):
        facts_hold(record.facts)
    else:
        _, names = merkle.open_node(data)
        assert all(paths.check_path(name) == name and b"/" not in name for name in names)


def run_merkle(data: bytes) -> None:
    """Two directories of the names that the input lists, built, walked, looked up and compared."""
    sides: list[dict[bytes, TreeEntry]] = [{}, {}]
    for line in data.split(b"\n"):
        flags, path = line[:1], line[1:]
        content = digests(flags)
        kind = "directory" if flags in (b"d", b"D") else "file"
        entry = TreeEntry(kind="directory", tree="0" * 64)
        if kind == "file":
            entry = TreeEntry(
                kind="file", name="x", blake3=content.blake3.hex(), sha256=content.sha256.hex(), size_bytes=1
            )
        sides[flags.isupper()][path] = entry
    known: dict[bytes, bytes] = {}
    trees = []
    for side in sides:
        nodes = merkle.build_tree(side.items())
        known.update(nodes)
        trees.append(nodes[-1][0])
    fetch = known.__getitem__
    found = [dict(merkle.walk(fetch, tree)) for tree in trees]
    for side, tree, seen in zip(sides, trees, found, strict=True):
        assert list(seen) == sorted(seen, key=lambda path: path.split(b"/"))
        for path, entry in side.items():
            assert seen[path].blake3 == entry.blake3
            assert merkle.find(fetch, tree, path)[0] == seen[path]
    for path, before, after in treediff.diff(fetch, trees[0], fetch, trees[1]):
        assert before == found[0].get(path)
        assert after == found[1].get(path)
        assert before != after


def run_frame(data: bytes) -> None:
    assert frame.unpack(frame.pack([data])) == data
    assert frame.unpack(frame.pack_large(data)) == data
    with may_refuse():
        parts = b"".join(frame.read_frames(io.BytesIO(data)))
        assert len(parts) <= len(data) * frame.MAX_PLAIN
    with may_refuse():
        size = frame.plain_size(data)
        assert size <= frame.MAX_PLAIN
    plain = frame.unpack(data)
    assert len(plain) == frame.plain_size(data)
    assert frame.unpack(frame.pack([plain])) == plain


def run_spec(data: bytes) -> None:
    is_spec(data)
    with may_refuse(), file_of(data) as path:
        load_profile(path)
    loaded = load_spec(data, "spec.toml", {"a": "x", "b": "../{a}"})
    assert is_spec(data) or b"\\" in data or len(data) > 65536
    for entry in loaded.spec.entry:
        paths.check_role(entry.role)
        if entry.keep == "declared":
            assert entry.path is None


def run_proof(data: bytes) -> None:
    is_proof(data)
    report = verify_proof(data, "proof")
    proof = canon.decode(data, Proof)
    if report.outcome == "PASS":
        first = proof.records[0].encode()
        assert any(record_id("packet", text.encode()).hex() == proof.packet for text in proof.records)
        assert records.encode(records.decode(first))[1] == first
        assert show(unshow(proof.path)) == proof.path


def run_checksums(data: bytes) -> None:
    algorithms: tuple[UntaggedAlgorithm | None, ...] = (None, "sha256", "blake3")
    refused: ProvError | None = None
    for algorithm in algorithms:
        try:
            lines = parse_checksums(data, "x.sum", algorithm)
        except ProvError as error:
            refused = error
            continue
        stated = [(line.name, line.digest) for line in lines]
        again = parse_checksums(format_checksums(lines, "bsd"), "again")
        assert [(line.name, line.digest) for line in again] == stated
    if refused is not None:
        raise refused


def run_elf(data: bytes) -> None:
    facts_hold(inspect_elf(io.BytesIO(data), "x.so"))


def run_safetensors(data: bytes) -> None:
    facts_hold(inspect_safetensors(io.BytesIO(data), "x.safetensors"))


def run_shards(data: bytes) -> None:
    shards = index_shards(data, "index")
    for shard in shards:
        paths.check_path(shard.encode())
    assert missing_shards(set(shards), shards) == ()
    missing_shards(set(), shards)


def run_freeze(data: bytes) -> None:
    facts_hold(parse_freeze(data, "freeze.txt"))


_PLACES: Final = ("METADATA", "direct_url.json", "INSTALLER", "x.pth", "x.egg-link", "finder", "pyvenv.cfg")


def run_environment(data: bytes) -> None:
    """Each part of the input, cut at NUL LF, is one metadata file of an environment."""
    with tempfile.TemporaryDirectory(dir=hostile.SCRATCH) as place:
        site = Path(place, "lib/python3/site-packages")
        distribution = site / "x-1.dist-info"
        distribution.mkdir(parents=True)
        for name, part in zip(_PLACES, data.split(b"\0\n"), strict=False):
            where = site if name.startswith("x.") else distribution
            if name == "finder":
                site.joinpath("__editable___x_finder.py").write_bytes(part)
            else:
                (Path(place) if name == "pyvenv.cfg" else where).joinpath(name).write_bytes(part)
        facts_hold(inspect_python_env(os.fsencode(place)))


def run_bundle(data: bytes) -> None:
    with file_of(data) as path:
        header = bundle_header(path)
        assert is_bundle(data[:64])
        assert header.size_bytes <= len(data)
        facts_hold(bundle_facts(path))


def run_standins(data: bytes) -> None:
    found = lfs_pointer(data)
    if found is not None:
        assert len(to_raw(found.sha256)) == 32
        assert found.size_bytes < 10**19
    for stood in (annex_pointer(data), annex_link(data)):
        if stood is not None:
            assert stood.key in data
            assert stood.sha256 is None or to_raw(stood.sha256)
    is_partial_name(data)


def run_words(data: bytes) -> None:
    """Digests, ids, names and paths as text and as bytes."""
    assert unshow(show(data)) == data
    text = data.decode("utf-8", "surrogateescape")
    assert unshow(show(text)) == data
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in show(data))
    is_prefix(text)
    fields = paths.name_fields(data)
    with may_refuse():
        assert paths.name_bytes(*fields) == data
    with may_refuse():
        path = paths.check_path(data)
        assert not path.startswith(b"/")
        assert not {b"", b".", b".."} & set(path.split(b"/"))
    with may_refuse():
        assert paths.check_role(text).encode() == data
    with may_refuse():
        assert paths.hex_bytes(text, "hex").hex() == text
    with may_refuse():
        assert to_raw(text).hex() == text
    assert str(parse_digest(text)) == text


def run_schema(data: bytes) -> None:
    check_document(data, "document.json")


def run_text(data: bytes) -> None:
    for kind in ("environment", "identity", "record"):
        facts_hold(text_facts(kind, data, "text"))


def run_urls(data: bytes) -> None:
    for text in (public_url(data), show(data)):
        assert not any(ord(char) < 32 for char in text)
    text = data.decode("utf-8", "replace")
    origin, more = requirement_url(text)
    facts_hold(tuple(Fact(key=key, value=value) for key, value in {"origin": origin, **more}.items()))
    contradiction(text, "0" * 40)


def run_rows(data: bytes) -> None:
    """Values of the index and of the stat cache."""
    with may_refuse():
        rows.object_info(data)
    with may_refuse():
        assert rows.record_row(rows.record_place(data)) == data
    key = data[:8]
    for stored in (data, rows.checked(key, data)):
        with may_refuse():
            assert rows.location_value(key, rows.parse_location(key, stored)) == stored
        with may_refuse():
            rows.parse_change(key, stored)
    directories = cache_blocks.decode(data)
    assert cache_blocks.decode(cache_blocks.encode(directories)) == directories
    blocks = cache_blocks.decode_list(data)
    assert cache_blocks.decode_list(cache_blocks.encode_list(blocks)) == blocks
    stat_cache.decode_file(data, data[1 : 1 + ROW.size])


def run_data_file(data: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=hostile.SCRATCH) as place:
        Path(place, "data.mdb").write_bytes(data)
        data_file.check(place, attempts=1)


TARGETS: Final[dict[str, Target]] = {
    **documents.TARGETS,
    **evidence.TARGETS,
    "bundle": Target(run_bundle, seeds.bundles),
    "canon": Target(run_canon, seeds.json_texts),
    "checksums": Target(run_checksums, seeds.checksum_files),
    "data-file": Target(run_data_file, seeds.data_files, 65_536),
    "elf": Target(run_elf, seeds.elf_files, 8192),
    "environment": Target(run_environment, seeds.environments),
    "frame": Target(run_frame, seeds.frames),
    "freeze": Target(run_freeze, seeds.freezes),
    "hostile-packet": Target(hostile.run_packet, hostile.packet_seeds),
    "merkle": Target(run_merkle, seeds.directories, 1500),
    "pack": Target(hostile.run_pack, hostile.pack_seeds, 16_384),
    "proof": Target(run_proof, seeds.proofs, 16_384),
    "records": Target(run_records, seeds.records_and_bad_ones),
    "rows": Target(run_rows, seeds.rows, 1024),
    "safetensors": Target(run_safetensors, seeds.safetensors_files),
    "schema": Target(run_schema, seeds.json_texts),
    "shards": Target(run_shards, seeds.shard_indexes),
    "spec": Target(run_spec, seeds.specs),
    "standins": Target(run_standins, seeds.standins),
    "text": Target(run_text, seeds.texts),
    "urls": Target(run_urls, seeds.urls, 1024),
    "words": Target(run_words, seeds.words, 1024),
}
"""Every decoder by name; the folder of what was found in it is called the same."""
