"""Reader of reproduction guides in plain text: which files, commits and runs they name, and which rates.

A guide is prose. Its numbers are taken with the line that they stand in and without a convention; what prose
says about a number is shown beside it and never believed.
"""

import re
from collections.abc import Iterator
from typing import Final

from provstore.graph.documents.draft import Draft, Source
from provstore.graph.nodes import Node, NodeKind
from provstore.graph.statements import Measurement, Sample, Understood
from provstore.records.facts import Fact

MAX_GUIDE_BYTES: Final = 1 << 20

_RATE: Final = re.compile(r"(?<![\w.,-])(\d+(?:\.\d+)?) tok/s\b")
_PATH: Final = re.compile(
    r"(?<![\w./:@-])((?:[\w.@+-]+/)+[\w.@+-]*\w\.(?:sh|json|md|sha256|py|bundle|patch|toml|txt))(?![\w/-])"
)
_NAMED: Final[tuple[tuple[NodeKind, re.Pattern[str]], ...]] = (
    ("object", re.compile(r"(?<![\w])([0-9a-f]{64})(?!\w)")),
    ("commit", re.compile(r"(?<![\w])([0-9a-f]{40})(?!\w)")),
    ("leaderboard-run", re.compile(r"(?<![\w])(c[a-z0-9]{24})(?!\w)")),
)
_LOG: Final = re.compile(rb"^(?:\([^)\n]*pid=|INFO |WARNING |DEBUG |\[?\d{4}-\d\d-\d\d[T ])", re.MULTILINE)


def guide_text(data: bytes) -> str | None:
    """Return the text of a guide, or None: prose that names a file of its repository and states a rate."""
    if len(data) > MAX_GUIDE_BYTES or b" tok/s" not in data or b"\0" in data or _LOG.search(data):
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if _RATE.search(text) and _PATH.search(text) else None


def read_guide(text: str, source: Source) -> tuple[Understood, tuple[Fact, ...]]:
    """Return what a guide names, each with its line."""
    draft = Draft(source, "guide")
    facts: list[Fact] = []
    rates: list[tuple[Sample, str]] = []
    runs: dict[str, None] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        place = f"line {number}"
        for node in _named(draft, line):
            draft.relate(draft.here, "names", node, place)
            facts.append(Fact(key=f"guide.{node.kind}", value=node.key, location=place))
            if node.kind == "leaderboard-run":
                runs[node.key] = None
        for match in _RATE.finditer(line):
            facts.append(Fact(key="guide.tok_s", value=match[1], decimal=True, location=place))
            sample = Sample(metric="decode_tok_s", value=match[1], unit="tok/s", location=place)
            rates.append((sample, line.strip()))
    for index, (sample, line) in enumerate(rates):
        made = Node("measurement", f"{draft.here.key}/{index}")
        draft.relate(made, "belongs-to", draft.here, sample.location)
        if len(runs) == 1:
            draft.relate(made, "observed-at", Node("leaderboard-run", next(iter(runs))), sample.location)
        draft.measurements.append(
            Measurement(
                key=made.key,
                state="",
                selectors={},
                samples=(sample,),
                said=(line,),
                location=sample.location,
            )
        )
    return draft.finish(draft.here), tuple(facts)


def _named(draft: Draft, line: str) -> Iterator[Node]:
    for match in _PATH.finditer(line):
        yield draft.file(match[1])
    for kind, pattern in _NAMED:
        for match in pattern.finditer(line):
            yield Node(kind, match[1])
