"""Text of what policies say: verdicts beside each other, one gate explained, one number recomputed."""

from collections.abc import Iterator
from typing import Final

from provstore.report.text import columns, count, indented, short
from provstore.reports import Explained, ExplainedFact, ExplainReport, MetricsReport, ShownVerdict

SHOWN_PLACES: Final = 16
"""Places of one finding that are shown; the report itself has more."""

SHOWN_ROWS: Final = 20
"""Rows whose values are shown."""


def verdict_lines(verdicts: tuple[ShownVerdict, ...]) -> Iterator[str]:
    """Yield each verdict with what is no pass in it.

    Example:
        >>> shown = ShownVerdict(id="", policy="ab" * 32, name="p", version="1", date="2026-07-26", tool="t",
        ...     outcome="PASS", gates=3)
        >>> list(verdict_lines((shown,)))
        ['PASS  policy p 1 of 2026-07-26 (abababababab): 3 gates']
    """
    for verdict in verdicts:
        kept = f", kept as {short(verdict.id)}" if verdict.id else ""
        about = f"policy {verdict.name} {verdict.version} of {verdict.date} ({short(verdict.policy)})"
        yield f"{verdict.outcome}  {about}: {count(verdict.gates, 'gate')}{kept}"
        yield from indented(verdict.findings)


def explain_lines(report: ExplainReport) -> Iterator[str]:
    """Yield outcome and rule of a gate, then each finding with facts, places and lines."""
    need = "required" if report.required else "not required"
    yield f"{report.found}  gate {report.gate} (kind {report.kind}, {need})"
    yield from indented([f"rule: {report.rule}"])
    if report.why:
        yield from indented([f"why: {report.why}"])
    yield from indented(f"with {parameter}" for parameter in report.parameters)
    for finding in report.findings:
        yield from _finding(finding)


def _finding(finding: Explained) -> Iterator[str]:
    yield f"{finding.outcome}  {finding.code}"
    rows = [
        (name, value) for name, value in (("expected", finding.expected), ("found", finding.found)) if value
    ]
    yield from indented([*finding.message.splitlines(), *columns(rows)])
    places: dict[tuple[str, str], list[ExplainedFact]] = {}
    for fact in finding.facts:
        places.setdefault((fact.place, fact.location), []).append(fact)
    for (place, location), facts in list(places.items())[:SHOWN_PLACES]:
        values = ", ".join(f"{fact.key} = {fact.value}" for fact in facts)
        yield from indented([f"{f'{place} {location}'.strip()}: {values}"])
        if facts[0].line:
            yield from indented(indented([f"| {facts[0].line}"]))
    if len(places) > SHOWN_PLACES:
        yield from indented([f"... and {len(places) - SHOWN_PLACES} more places; --json lists them"])
    if finding.next:
        yield f"to do: {finding.next}"


def metrics_lines(report: MetricsReport) -> Iterator[str]:
    """Yield the value, its formula, and the value of each row.

    Example:
        >>> report = MetricsReport(path="b", convention="wall", unit="tok/s", value="1.5", formula="f",
        ...     outcome="PASS", rows=())
        >>> list(metrics_lines(report))
        ['1.5 tok/s  (wall)', '  f']
    """
    yield (
        f"{report.value or 'no value'} {report.unit if report.value else ''}".rstrip()
        + f"  ({report.convention})"
    )
    yield from indented([report.formula])
    yield from indented(
        columns([(row.location or "log", row.value or "-") for row in report.rows[:SHOWN_ROWS]])
    )
    if len(report.rows) > SHOWN_ROWS:
        yield from indented([f"... and {len(report.rows) - SHOWN_ROWS} more rows"])
    for finding in report.findings:
        yield f"{'WARN' if report.value else report.outcome}  {finding}"
