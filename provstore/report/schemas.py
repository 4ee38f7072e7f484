"""JSON Schemas of records, reports and the packet spec, made from their structs (JSON Schema 2020-12).

The structs are the only source: a schema cannot say anything else than the decoder does, except that no
schema can ask for canonical bytes. The files under ``schemas/`` of the repository are what
:func:`schema_text` returns.
"""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from provstore import canon, records, reports
from provstore.errors import NewerFormatError, NotFoundError
from provstore.paths import show
from provstore.records import FORMATS
from provstore.report.failures import ErrorDocument
from provstore.reports import asked, hosted
from provstore.reports.attempted import (
    AuthorizeReport,
    LedgerCheckReport,
    LedgerCloseReport,
    LedgerExportReport,
    LedgerReport,
)
from provstore.reports.imported import GenerateReport, ImportReport
from provstore.reports.prepared import PreflightReport
from provstore.reports.scoped import ClaimLife, CoverageReport, ScopeAnswer
from provstore.runs.recipe import Recipe
from provstore.runs.suite import Suite
from provstore.verbs.exporting import ExportReport
from provstore.verbs.spec import PacketSpec


class SchemaCheck(reports.Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was found about one JSON document.

    Attributes:
        outcome: ``PASS``; anything else is an error with its own code.
        path: what was read.
        format: format that the document names and obeys; None when it names none of ours.
    """

    outcome: reports.Verdict
    path: str
    format: str | None


_REPORTS: Final[dict[str, Any]] = {
    "authorize": AuthorizeReport,
    "capture": hosted.CaptureReport,
    "diff": reports.DiffReport,
    "doctor": reports.DoctorReport,
    "error": ErrorDocument,
    "explain": reports.ExplainReport,
    "export": ExportReport,
    "export-document": GenerateReport,
    "fsck": reports.FsckReport,
    "gc": reports.GcReport,
    "host": hosted.HostReport,
    "import": ImportReport,
    "import-check": reports.CheckReport,
    "ledger": LedgerReport,
    "ledger-check": LedgerCheckReport,
    "ledger-close": LedgerCloseReport,
    "ledger-export": LedgerExportReport,
    "log": list[reports.RefStep],
    "ls": list[reports.Listed],
    "metrics": reports.MetricsReport,
    "pack": reports.PackReport,
    "prove": reports.ProveReport,
    "query-claims": list[ClaimLife],
    "query-coverage": list[CoverageReport],
    "query-closure": asked.ClosureReport,
    "query-convention": asked.SaidReport,
    "query-pins": asked.PinsReport,
    "query-select": asked.SaidReport,
    "query-shared": asked.SharedReport,
    "query-stale": asked.StaleReport,
    "query-timeline": asked.TimelineReport,
    "query-unpinned": asked.UnpinnedReport,
    "query-uses": asked.UsesReport,
    "query-why": asked.WhyReport,
    "restore": reports.RestoreReport,
    "run-preflight": PreflightReport,
    "seal": reports.SealReport,
    "schema-check": SchemaCheck,
    "scope": list[ScopeAnswer],
    "show": reports.ShowReport,
    "stats": reports.StatsReport,
    "unpack": reports.UnpackReport,
    "verify": reports.VerifyReport,
}

DOCUMENTS: Final[dict[str, Any]] = (
    dict(FORMATS.values()) | _REPORTS | {"packet-spec": PacketSpec, "recipe": Recipe, "suite": Suite}
)
"""Name of each published schema and the type it is made from; the output of a command has its name."""


def schema(name: str) -> dict[str, Any]:
    """Return one schema.

    Raises:
        NotFoundError: there is none of that name.

    Example:
        >>> schema("packet")["title"]
        'packet'
    """
    if name not in DOCUMENTS:
        raise NotFoundError(name, f"no such schema; there are {', '.join(sorted(DOCUMENTS))}")
    body = msgspec.json.schema(DOCUMENTS[name])
    for definition in body.get("$defs", {}).values():
        _describe(definition)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, **body}


def schema_text(name: str) -> str:
    """Return one schema as the text of its published file."""
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def check_document(data: bytes, where: str) -> SchemaCheck:
    """Check that bytes are strict JSON, and a canonical record if they name a format of ours.

    Args:
        data: the document.
        where: what to name in an error and in the result.

    Raises:
        MalformedError: a duplicate key, a number that is none, other text after it, a field or a form that
            the named format does not have.
        NewerFormatError: a format of ours that this release does not know.

    Example:
        >>> check_document(b'{"tok_s": null}', "c.json").format is None
        True
    """
    value = canon.parse(data, where, floats=True)
    named = value.get("format") if isinstance(value, dict) else None
    if not isinstance(named, str) or not named.startswith("provstore/"):
        return SchemaCheck(outcome="PASS", path=show(where), format=None)
    if named not in FORMATS:
        raise NewerFormatError(where, named)
    records.decode(data, where)
    return SchemaCheck(outcome="PASS", path=show(where), format=named)


def check_lines(report: SchemaCheck) -> Iterator[str]:
    """Yield what was found about a document.

    Example:
        >>> print(*check_lines(SchemaCheck(outcome="PASS", path="a.json", format=None)))
        PASS  a.json: strict JSON; it names no format of ours
    """
    what = f"is {report.format}, canonical" if report.format else "strict JSON; it names no format of ours"
    yield f"{report.outcome}  {report.path}: {what}"


def _describe(definition: dict[str, Any]) -> None:
    """Move what a docstring says of each field to that field; keep its first paragraph for the whole."""
    text = inspect.cleandoc(definition.get("description", ""))
    if text:
        definition["description"] = _flat(text.split("\n\n")[0])
    for name, meaning in _fields(text):
        found = definition.get("properties", {}).get(name.rstrip("_"))
        if found is not None:
            found["description"] = meaning


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and meaning of each entry of a docstring's ``Attributes:`` section."""
    section = re.search(r"^Attributes:\n((?:[ ]+.*\n?|\n)*)", text, re.MULTILINE)
    if section is not None:
        for name, meaning in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section[1], re.MULTILINE):
            yield name, _flat(meaning)


def _flat(text: str) -> str:
    """Return text as one line, without the marks of docstrings."""
    plain = re.sub(r":\w+:`[~.]*([^`]+)`", r"\1", " ".join(text.split()))
    return plain.replace("``", "`")
