"""A small repository of documents that keep every rule, and ways to change it; tests of rules use it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from provstore.graph.rules.checking import check, document_of
from provstore.graph.rules.examples import changed
from provstore.graph.rules.rule import Document
from provstore.reports.checked import CheckFinding, CheckReport
from provstore.verbs.ruling import Below

FOLDER = Path(__file__).parent.parent / "examples" / "rules"
GOOD = FOLDER / "good"
FAMILY = "families/ember.json"


class Held:
    """Files that are held in memory; what is not among them may be anywhere."""

    whole = False

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.files = dict(files or {})

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        data = self.files.get(path)
        return data if data is None or len(data) <= limit_bytes else None

    def has(self, path: str) -> bool:
        return path in self.files

    def escapes(self, path: str) -> bool:
        return False

    def names(self, folder: str, name: str) -> list[str]:
        return sorted(
            path
            for path in self.files
            if path.startswith(f"{folder}/")
            and path.endswith(f"/{name}")
            and path.count("/") == folder.count("/") + 2
        )


@cache
def good() -> dict[str, Document]:
    """Return the documents of the small repository by path."""
    paths = sorted(path.relative_to(GOOD).as_posix() for path in GOOD.rglob("*.json"))
    return {path: document_of(path, (GOOD / path).read_bytes()) for path in paths}


def files() -> Below:
    """Return the files of the small repository, which is whole."""
    return Below(GOOD, whole=True)


def after(*changes: tuple[str, Any], document: str = FAMILY) -> list[CheckFinding]:
    """Return what is found in one document after members of it were put; ``...`` removes one."""
    documents = dict(good())
    value = documents[document].value
    for at, to in changes:
        value = changed(value, at, None if to is ... else msgspec.json.encode(to).decode())
    documents[document] = documents[document]._replace(value=value)
    found = check(list(documents.values()), files()).findings
    return [finding for finding in found if finding.document == document]


def told(findings: list[CheckFinding]) -> list[str]:
    """Return severity, code and place of findings."""
    return [f"{finding.severity} {finding.code} {finding.location}" for finding in findings]


def checked(documents: Mapping[str, Any], held: Mapping[str, bytes] | None = None) -> CheckReport:
    """Check documents that are given as values or as bytes."""
    made = [
        document_of(path, value if isinstance(value, bytes) else msgspec.json.encode(value))
        for path, value in documents.items()
    ]
    return check(made, Held(held))


def codes(report: CheckReport, path: str = "") -> list[str]:
    """Return outcome and code of the findings, of one document if named."""
    return [f"{f.outcome} {f.code}" for f in report.findings if not path or f.document == path]
