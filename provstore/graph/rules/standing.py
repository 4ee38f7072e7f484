"""Rules for how far a number may be trusted: open parts, states, headlines without a record, dates."""

import re
from collections.abc import Iterator
from typing import Final

from provstore.graph.rules.citing import inside, numbers_of
from provstore.graph.rules.family import MEASURED, Family, family_of
from provstore.graph.rules.formats import COMPOSED, FAMILY, PACKAGE
from provstore.graph.rules.places import DATE, Place, decimal, shown, walk
from provstore.graph.rules.rule import Context, Document, Violation, bad, missing_evidence, rule
from provstore.reports.base import count

_UNFINISHED: Final = frozenset(
    (
        "RUNNING",
        "PENDING",
        "QUEUED",
        "STARTED",
        "STARTING",
        "CREATED",
        "IN_PROGRESS",
        "IN-PROGRESS",
        "WAITING",
    )
)
"""Words for a run that has not ended, in upper case."""

_SEALED: Final = re.compile(r"\bsealed\b", re.IGNORECASE)
_IN_NAME: Final = re.compile(r"(?<!\d)(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?!\d)")
_DATES: Final = frozenset(("reviewed_at", "generated_at", "measured_at", "published_at", "captured_at"))


def open_parts(record: Document) -> list[Place]:
    """Return the status members of the parts of a composed result that did not end.

    A part is an object in a list at the top level; its status a member whose name ends in ``status``.
    """
    found = []
    for _, listed in record.root.members():
        for part in listed.objects():
            for name, status in part.members():
                if name.endswith("status") and status.text.upper() in _UNFINISHED:
                    found.append(status)
    return found


def inexact_rows(record: Document) -> Place | None:
    """Return the member that counts rows which differ from the oracle; None when none does."""
    for name, place in walk(record.root):
        number = decimal(place.value)
        if name.endswith("mismatch_rows") and number is not None and number > 0:
            return place
    return None


@rule("part-not-terminal", on=(FAMILY, COMPOSED), severity="warn")
def part_not_terminal(document: Document, context: Context) -> Iterator[Violation]:
    """Every part of a composed result ended."""
    if document.format == COMPOSED:
        for status in open_parts(document):
            yield bad(status, "this part of the result did not end", "a status of a run that ended")
        return
    for item, record in _records(family_of(document, context), context):
        for status in context.kept(record, open_parts):
            yield Violation(item.at("evidence").pointer, f"{record.path}{status.pointer}: a part did not end",
                            "a status of a run that ended", shown(status.value))  # fmt: skip


def _records(family: Family, context: Context) -> Iterator[tuple[Place, Document]]:
    """Yield each measurement with the record it cites, where that is at hand."""
    for item in family.measurements:
        path = item.at("evidence").text
        record = context.cited(path) if path and inside(path) else None
        if record is not None:
            yield item, record


@rule("state-exceeds-evidence", on=FAMILY)
def state_exceeds_evidence(document: Document, context: Context) -> Iterator[Violation]:
    """A measurement whose record has open parts or rows that differ from the oracle is screened at most."""
    for item, record in _records(family_of(document, context), context):
        if item.at("state").value not in MEASURED:
            continue
        unfinished, inexact = context.kept(record, open_parts), context.kept(record, inexact_rows)
        rows = "" if inexact is None else f"{shown(inexact.value)} rows differ"
        if unfinished or inexact is not None:
            why = f"{count(len(unfinished), 'part')} not ended" if unfinished else rows
            yield bad(item.at("state"), f"{record.path}: {why}", "lab-screened")


@rule("contradicted", on=FAMILY)
def contradicted(document: Document, context: Context) -> Iterator[Violation]:
    """Prose does not call a result sealed whose record has a part that did not end."""
    for item, record in _records(family_of(document, context), context):
        unfinished = context.kept(record, open_parts)
        for name in ("workload", "quality", "quality_scope") if unfinished else ():
            if _SEALED.search(item.at(name).text):
                place = unfinished[0]
                message = f"says sealed; {record.path}{place.pointer} is {shown(place.value)}"
                yield Violation(item.at(name).pointer, message[:400], "parts that ended", shown(place.value))


@rule("headline-evidence", 18, 42, on=(FAMILY, PACKAGE))
def headline_evidence(document: Document, context: Context) -> Iterator[Violation]:
    """A headline cites a record that is at hand and has its number; without one it is no headline."""
    if document.format == FAMILY:
        headlines = [p.at("featured_metric") for p in document.root.at("packets").objects()]
    else:
        headlines = [document.root.at("library", "featured_metric")]
    for headline in headlines:
        evidence = headline.at("evidence")
        if not headline.members() or not evidence.said or not inside(evidence.text):
            continue
        record = context.cited(evidence.text)
        if record is None:
            there = context.has(evidence.text)
            why = "it is no record: a number is read from data" if there else "a headline needs its record"
            found = missing_evidence(evidence, evidence.text, why, claim=True)
            message = f"{evidence.text} is here, but {why}" if there else found.message
            yield found._replace(message=message[:400], found="no record" if there else "absent")
            continue
        if not context.kept(record, numbers_of).have(
            headline.at("value").value, milliseconds=_in_ms(headline)
        ):
            yield bad(headline.at("value"), f"{evidence.text} has no such number", "a number of the record")


def _in_ms(headline: Place) -> bool:
    return headline.at("unit").value == "ms"


@rule("updated-before-content", on=FAMILY, severity="warn")
def updated_before_content(document: Document, context: Context) -> Iterator[Violation]:
    """``updated_at`` is a date, and nothing in the document is younger."""
    updated = document.root.at("updated_at")
    if not updated.given:
        return
    if not DATE.fullmatch(updated.text[:10]):
        yield bad(updated, "it is no date", "YYYY-MM-DD")
        return
    for name, place in walk(document.root):
        text = place.text
        days = {text[:10]} if name in _DATES and DATE.fullmatch(text[:10]) else set()
        if name in ("id", "evidence", "manifest", "record"):
            days |= {"-".join(found.groups()) for found in _IN_NAME.finditer(text)}
        for day in sorted(days):
            if day > updated.text[:10]:
                yield Violation(
                    updated.pointer, f"{place.pointer} is of {day}", f"{day} or later", updated.text[:10]
                )
