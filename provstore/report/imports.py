"""Text of what an import brought in."""

from collections.abc import Iterator
from typing import Final

from provstore.report.text import amount, count, indented, short
from provstore.reports.imported import DocumentChange, GenerateReport, ImportedDocument, ImportReport

MOST_SHOWN: Final = 40
"""Lines of one sort that are shown of one document; ``--json`` has all."""


def import_lines(report: ImportReport) -> Iterator[str]:
    """Yield what each document is, what changed in it, and what does not fit together."""
    for document in report.documents:
        yield from _document(document)
    for known in report.conventions:
        yield f"{known.value} of {known.measurement} is {known.convention}: {known.reason}"
        if known.conventional:
            yield f"  with intervals counted: {known.conventional}"
    for item in report.disagreements:
        yield f"{item.subject}: {item.first} and {item.second} state two values of {item.field} ({item.kind})"
        yield from indented([f"{item.first_value}", f"{item.second_value}"])
    for clash in report.clashes:
        yield f"{clash.node}: {clash.reason}; all are kept"
        yield from indented(clash.places)
    yield from _few([f"skipped {item.path}: {item.reason}" for item in report.skipped], "skipped")
    new = f"{count(report.objects, 'new object')}, {count(report.records, 'new record')}"
    yield f"{count(len(report.documents), 'document')}; stored {amount(report.bytes_stored)} ({new})"


def _document(document: ImportedDocument) -> Iterator[str]:
    what = f"{document.format}, {document.subject}, as {short(document.packet)}"
    yield f"{document.state:9} {document.name}: {what}"
    if document.state == "unchanged":
        return
    said = [count(number, *_WORDS[name]) for name, number in document.stated.items()]
    yield f"  {', '.join([count(document.facts, 'fact'), count(document.relations, 'relation'), *said])}"
    if document.parent is not None:
        yield f"  follows {short(document.parent)}: {count(len(document.changes), 'fact')} changed"
    yield from indented(_few([_change(item) for item in document.changes], "changes"), 4)
    for finding in document.findings:
        yield f"  {finding.severity} {finding.code} at {finding.location or 'the whole'}: {finding.message}"
    if document.status is not None:
        yield f"  status by its facts: {document.status}"
        yield from indented([f"holds: {item}" for item in document.supported_by], 4)
        yield from indented([f"missing: {item}" for item in document.missing], 4)
    yield from indented(_few([f"not understood: {item}" for item in document.not_understood], "members"))


_WORDS: Final = {
    "lineups": ("lineup", "lineups"),
    "measurements": ("measurement", "measurements"),
    "estimates": ("estimate", "estimates"),
    "closures": ("closure", "closures"),
    "coverage": ("matrix", "matrices"),
    "cells": ("cell", "cells"),
    "scope": ("sentence of scope", "sentences of scope"),
    "dimensions": ("dimension", "dimensions"),
}
"""One and many of what documents state."""


def generate_lines(report: GenerateReport) -> Iterator[str]:
    """Yield what a document that was written back differs in from the one that was imported."""
    same = "as it was imported" if report.identical else f"{count(len(report.corrected), 'value')} corrected"
    yield f"{report.name} ({report.format}) as of {short(report.packet)}: {same}"
    for item in report.corrected:
        yield f"  {item.location}: {item.from_} -> {item.to} ({item.by}: {item.reason})"
    for held in report.held_back:
        yield f"  not carried out: {held.by} at {held.location}: {held.reason}"
    yield from indented([f"missing for validated: {item}" for item in report.missing])


def _change(item: DocumentChange) -> str:
    if item.from_ is None:
        return f"+ {item.location}: {item.to}"
    if item.to is None:
        return f"- {item.location}: {item.from_}"
    return f"{item.location}: {item.from_} -> {item.to}"


def _few(lines: list[str], noun: str) -> list[str]:
    left = len(lines) - MOST_SHOWN
    return lines if left <= 0 else [*lines[:MOST_SHOWN], f"and {left} more {noun}; --json lists all"]
