"""Readers of documents: whatever the bytes, the same answer twice, and every number of it in the bytes."""

import re
from typing import Final

from graph import documents_of_ours as ours
from graph.documents_of_ours import PAGE, dumped

from fuzz.contract import Target
from fuzz.evidence import can_be_shown, reading_holds
from provstore.evidence.jsonreader import ABSENT, resolve
from provstore.graph.documents.disagreeing import Disagreements
from provstore.graph.documents.facts import facts_of
from provstore.graph.documents.joining import Conventions
from provstore.graph.documents.reading import Reading, read_any
from provstore.graph.documents.registering import Registry
from provstore.graph.nodes import KINDS, parse_node
from provstore.graph.relations import KINDS as RELATION_KINDS

MADE: Final = (
    ours.family,
    ours.record,
    ours.package,
    ours.recipe,
    ours.sweep,
    ours.instance,
    ours.hardware,
    ours.note,
)


def seeds() -> list[bytes]:
    """A document of every format."""
    commit, digest = "3" * 40, "a" * 64
    return [
        *(dumped(make()) for make in MADE),
        dumped(ours.recipe("reference")),
        dumped(ours.sweep("leaderboard")),
        PAGE.encode(),
        f"{digest}  run/a.json\n{digest}  run/b\n".encode(),
        f"schema=leg-v1\nengine_commit={commit}\nsuite_sha256={digest}\n{digest}  /opt/run.sh\n".encode(),
        f"See tools/run.sh at {commit}: 101.50 tok/s, c{'b' * 24}\n".encode(),
        dumped({"_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": digest}}]}),
        dumped({"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": []}),
        dumped([{"label": "l", "payload": {"hfId": "o/m", "modelRevision": commit, "engineFlags": {}}}]),
        dumped({"response": {"id": "r"}, "endpoint": "https://x.org", "payload_path": "q.json"}),
        dumped({"host": {}, "native_modules": [{"path": "a.so", "sha256": digest}]}),
        dumped({"source_sha256": digest, "rows": [{"prompt_id": "p"}]}),
        dumped({"format": "neural-download-coverage-registry-v1", "lanes": [{"artifacts": [{"path": "r"}]}]}),
    ]


def run_document(data: bytes) -> None:
    """A document is understood or not, twice alike; what it states can be kept, shown and found again."""
    found = read_any(data, "lab", "data/doc.json")
    assert read_any(data, "lab", "data/doc.json") == found
    if found.understood is None:
        return
    understood = found.understood
    reading_holds(facts_of(understood.format, found))
    for edge in understood.relations:
        assert edge.source.kind in KINDS
        assert edge.target.kind in KINDS
        assert edge.kind in RELATION_KINDS
        assert parse_node(str(edge.target)) == edge.target
        assert edge.source.key
        str(edge.source).encode()
    _numbers_stand_in(data, found)
    _left_over_is_there(found)
    together(data, found)


def _numbers_stand_in(data: bytes, found: Reading) -> None:
    """Every number keeps its text; a page writes marks of thousands, which are no digits."""
    text = data.decode("utf-8", "replace")
    plain = re.sub(r"(?<=\d),(?=\d)", "", text)
    assert found.understood is not None
    for item in found.understood.statements.measurements:
        for sample in item.samples:
            assert sample.value in text or sample.value in plain, sample


def _left_over_is_there(found: Reading) -> None:
    """What is listed as not understood is a member of the document, or a line."""
    assert found.understood is not None
    for place in found.understood.not_understood:
        if place.startswith(("line ", "/payload")):
            continue
        assert resolve(found.value, place) is not ABSENT


def together(data: bytes, found: Reading) -> None:
    """A document that is read twice joins nothing new and disagrees with itself in nothing."""
    conventions, registry, disagreements = Conventions(), Registry(), Disagreements()
    assert found.understood is not None
    for name in ("a", "b"):
        conventions.add(found.understood)
        registry.add(name, found, data)
        disagreements.add(name, found.understood.format, found.value, data)
    assert list(disagreements.found()) == []
    for joined in conventions.joined():
        assert can_be_shown(joined.convention)
    status = registry.status("a")
    assert status is None or (status.status == "validated") is (not status.missing)


TARGETS: Final[dict[str, Target]] = {"documents": Target(run_document, seeds, 16_384)}
"""Readers of documents, by name."""
