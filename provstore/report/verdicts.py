"""Text of what was looked at and judged: verify, fsck, doctor, schema check."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from provstore.report.judged import verdict_lines
from provstore.report.text import amount, columns, count, indented, short
from provstore.reports import Check, Damage, DoctorReport, FsckReport, Metric, Missing, VerifyReport

REMEDIES: Final = {
    "against": "`prov restore` writes the sealed files elsewhere; seal anew if the change is meant",
    "gate": "`prov explain PACKET GATE --policy P` shows the facts and the lines behind it",
    "checksums": "fetch the named files again, or correct the list if their change is meant",
    "integrity": "`prov fsck` names all that the damage touches; bring whole bytes from another copy",
    "proof": "make the proof again with `prov prove`, from a packet that verifies",
}
"""What to do when a check of that kind failed."""

REMEDY_OF_UNKNOWN: Final = "bring the bytes that are not here, or say with --at PATH where they lie now"

SHOWN_UNKNOWN: Final = 24
"""Things that could not be looked at and are told one by one."""

ROWS_AT_ONCE: Final = 1000

SHOWN_MISSING: Final = 20
"""Members whose absent bytes are listed one by one; the report itself always has all of them."""


def verify_lines(report: VerifyReport, spooled: Iterable[Check] | None = None) -> Iterator[str]:
    """Yield the verdict, what was counted, then everything that is not a pass, then what passed.

    Args:
        report: the report.
        spooled: its checks, where there are too many for it to hold; iterated several times.

    Example:
        >>> next(verify_lines(VerifyReport(packet="ab" * 32, outcome="PASS", checks=())))[:16]
        'PASS  packet aba'
    """
    checks = report.checks if spooled is None else spooled
    about = f"packet {report.packet}" if report.packet else "checksum file"
    yield f"{report.outcome}  {about}"
    tally = Counter(check.outcome for check in checks)
    found = ", ".join(f"{number} {outcome}" for outcome, number in sorted(tally.items())) or "no checks"
    looked = count(report.objects_checked, "object")
    yield f"  {looked} re-hashed ({amount(report.bytes_checked)}); checks: {found}"
    unknown = 0
    for check in checks:
        unknown += check.outcome == "UNKNOWN"
        if check.outcome not in ("PASS", "NOT-APPLICABLE") and (
            check.outcome != "UNKNOWN" or unknown <= SHOWN_UNKNOWN
        ):
            yield from _finding(check)
    if unknown > SHOWN_UNKNOWN:
        yield f"UNKNOWN  ... and {unknown - SHOWN_UNKNOWN} more; --json lists them all"
    passed = ((c.outcome, c.check, _place(c), c.message) for c in checks if c.outcome == "PASS")
    # The cells of spooled checks differ in the last one alone, so these need no common width.
    while batch := list(islice(passed, ROWS_AT_ONCE if spooled is not None else None)):
        yield from columns(batch)
    for code, roles in _not_applicable(checks):
        yield f"not applicable  {code}: {', '.join(roles)}"
    yield from verdict_lines(report.verdicts)
    yield from _metrics(report.metrics)
    yield from indented_list("would settle what is unknown:", report.settles)
    yield from _missing(report.missing)
    yield from _what_to_do(checks)


def _not_applicable(checks: Iterable[Check]) -> list[tuple[str, list[str]]]:
    """Gather what does not apply by its reason: one line says it for all of its roles."""
    found: dict[str, list[str]] = {}
    for check in checks:
        if check.outcome == "NOT-APPLICABLE":
            found.setdefault(check.message or check.code, []).append(_place(check))
    return list(found.items())


def _finding(check: Check) -> Iterator[str]:
    """Yield one finding with what was expected, what was found and where to look."""
    yield f"{check.outcome}  {check.code}  {_place(check)}"
    where = " ".join(part for part in (check.role, check.path, check.location) if part) or None
    details = (
        ("expected", check.expected),
        ("found", check.found),
        ("where", where if check.gate else check.location),
    )
    for name, value in details:
        if value is not None:
            yield f"      {name:<9} {value}"
    for line in check.message.splitlines():
        yield f"      {line}"


def _what_to_do(checks: Iterable[Check]) -> Iterator[str]:
    """Yield one line for each kind of trouble there is."""
    failed = {check.check for check in checks if check.outcome == "FAIL" and check.required}
    for check in sorted(failed & set(REMEDIES)):
        yield f"to do: {REMEDIES[check]}"
    if any(check.outcome == "UNKNOWN" for check in checks):
        yield f"to do: {REMEDY_OF_UNKNOWN}"


def indented_list(title: str, lines: tuple[str, ...]) -> Iterator[str]:
    """Yield a title and its lines; nothing without lines."""
    if lines:
        yield title
        yield from indented(lines)


def _place(check: Check) -> str:
    if check.gate:
        return check.gate + ("" if check.required else " (not required)")
    return " ".join(part for part in (check.role, check.path) if part) or "(whole)"


def _metrics(metrics: tuple[Metric, ...]) -> Iterator[str]:
    yield from columns([("metric", m.name, f"{m.value} {m.unit}", f"({m.convention})") for m in metrics])


def _missing(missing: tuple[Missing, ...]) -> Iterator[str]:
    if not missing:
        return
    yield f"not here: {count(len(missing), 'member')}; nothing about their bytes was checked"
    for item in missing[:SHOWN_MISSING]:
        where = "; ".join(item.origins) or "no origin stated"
        place = " ".join(part for part in (item.role, item.path) if part)
        yield f"  {item.custody}  {place}  {short(item.sha256)}  {amount(item.size_bytes)}  ({where})"
    if len(missing) > SHOWN_MISSING:
        yield f"  ... and {len(missing) - SHOWN_MISSING} more; --json lists them all"


def fsck_lines(report: FsckReport) -> Iterator[str]:
    r"""Yield the state of a store, then each damage with the packet and role that it touches.

    Example:
        >>> print(*fsck_lines(FsckReport(objects=2, records=1, bytes=9, damaged=())), sep="\n")
        PASS  store whole: 2 objects (9 B) and 1 record re-hashed
    """
    looked = (
        f"{count(report.objects, 'object')} ({amount(report.bytes)}) and {count(report.records, 'record')}"
    )
    if report.damaged:
        yield f"FAIL  store damaged in {count(len(report.damaged), 'place')}: {looked} re-hashed"
    elif report.lost:
        yield f"index rebuilt from files: {looked}"
    elif report.whole:
        yield f"PASS  store whole: {looked} re-hashed"
    else:
        yield f"PASS  no damage in what was looked at: {looked} re-hashed"
    for damage in report.damaged:
        yield from _damage(damage)
    for item in report.repaired:
        yield f"repaired {item.kind} {item.id} from {item.source}"
    yield from _round(report)
    if report.graph in _GRAPH:
        yield f"  index of the graph {_GRAPH[report.graph]}"
    yield from _rebuilt(report)
    if not report.lost and (report.unreferenced or report.leftovers):
        loose = count(report.unreferenced or 0, "unreferenced item")
        yield f"  {loose}, {count(report.leftovers, 'leftover file')}: `prov gc` lists them"


_GRAPH: Final[dict[str | None, str]] = {
    "whole": "whole",
    "damaged": "damaged: `prov fsck --repair` removes it, and the next question makes it anew",
    "removed": "was damaged and is removed; the next question makes it anew",
}
"""What is said of the index of the graph, where there is one."""


def _round(report: FsckReport) -> Iterator[str]:
    """Yield how far a check by time budget is."""
    if report.cycle is not None:
        left = count(report.remaining or 0, "item")
        oldest = report.oldest_check or "never, for some"
        yield f"  round {report.cycle}: {left} to go; oldest check: {oldest}"


def _rebuilt(report: FsckReport) -> Iterator[str]:
    """Yield what a rebuild could not bring back, and how to get it."""
    if not report.lost:
        return
    if report.kept_as is not None:
        yield f"  the old index is kept as {report.kept_as}"
    for what in report.lost:
        yield f"  lost: {what}"
    yield "to do: `prov fsck --repair --from PACK` brings back the packets of a pack or another store"


def _damage(damage: Damage) -> Iterator[str]:
    yield f"FAIL  {damage.id or 'the index'}"
    yield f"      {damage.reason}"
    place = " ".join(part for part in (damage.role, damage.path) if part)
    yield f"      in {place or 'nothing that a ref reaches'}" + (
        f" of packet {damage.packet}" if damage.packet else ""
    )


def doctor_lines(report: DoctorReport) -> Iterator[str]:
    """Yield one line for each thing that was looked at, the verdict first.

    Example:
        >>> list(doctor_lines(DoctorReport(outcome="PASS", checks=())))
        ['PASS  0 things looked at']
    """
    yield f"{report.outcome}  {count(len(report.checks), 'thing')} looked at"
    yield from columns([(check.outcome, check.name, check.found) for check in report.checks])
