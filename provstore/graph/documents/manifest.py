"""Reader of checksum manifests: which files a collection consists of, by digest."""

from typing import Final

from provstore.errors import ChecksumFileError, EmptyError
from provstore.files.checksums import ChecksumLine, parse_checksums
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.nodes import Node
from provstore.graph.statements import Understood
from provstore.paths import show
from provstore.records.facts import Fact

MAX_FACTS: Final = 200_000
"""Facts taken from one manifest; its relations are complete."""


def manifest_lines(source: Source) -> tuple[ChecksumLine, ...] | None:
    """Return the lines of a checksum manifest, or None when a document is none."""
    head = source.data[:4096].lstrip(b"\\\r\n")
    if not (head[:64].isalnum() and b" " in head) and b" (" not in head[:16]:
        return None
    algorithm = "blake3" if source.path.lower().endswith((".b3", ".b3sum", ".blake3")) else "sha256"
    try:
        return parse_checksums(source.data, source.path, "blake3" if algorithm == "blake3" else "sha256")
    except (ChecksumFileError, EmptyError):
        return None


def read_manifest(lines: tuple[ChecksumLine, ...], source: Source) -> tuple[Understood, tuple[Fact, ...]]:
    """Return what a manifest contains: an edge to each object, with the name it has there."""
    draft = Draft(source, "checksums")
    node = draft.content()
    facts: list[Fact] = []
    for name, digest, line in lines:
        shown, place = show(name), f"line {line}"
        hex = digest.raw.hex()
        target = Node("object", hex if digest.algorithm == "sha256" else f"blake3:{hex}")
        draft.relate(node, "contains", target, place, shown)
        if len(facts) < MAX_FACTS:
            facts.append(
                Fact(key="checksums#file", value=(f"{digest.algorithm}:{hex}", shown), location=place)
            )
    directory = _sealed(lines, source.path)
    if directory:
        draft.relate(draft.file(directory), "sealed-by", node)
        folder = directory.rpartition("/")[0]
        for name, digest, line in lines:
            path = f"{folder}/{show(name)}" if folder else show(name)
            if digest.algorithm == "sha256":
                draft.relate(draft.file(path), "is-file", Node("object", digest.raw.hex()), f"line {line}")
    return draft.finish(node), tuple(facts)


def _sealed(lines: tuple[ChecksumLine, ...], path: str) -> str:
    """Return the directory that a manifest seals: the one beside it with its name, if all lines lie there."""
    stem = path.rpartition(".")[0]
    name = stem.rpartition("/")[2].encode() + b"/"
    return stem if stem and all(line.name.startswith(name) for line in lines) else ""
