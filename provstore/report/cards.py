"""Text of a packet's card."""

from collections.abc import Iterator

from provstore.paths import show
from provstore.report.judged import verdict_lines
from provstore.report.text import amount, columns, count, indented
from provstore.reports import ShownClaim, ShownEntry, ShowReport


def show_lines(report: ShowReport) -> Iterator[str]:
    """Yield the card: names, totals, one block for each entry, claims, parents, circumstances.

    Example:
        >>> card = ShowReport(packet="ab" * 32, name="run", refs=("run",), entries=(), claims=(), parents=(),
        ...     files=0, size_bytes=0)
        >>> list(show_lines(card))[3]
        '  holds  0 files, 0 B'
    """
    yield f"packet {report.packet}"
    about = [("name", report.name or "-"), ("refs", ", ".join(report.refs) or "-")]
    about.append(("holds", f"{count(report.files, 'file')}, {amount(report.size_bytes)}"))
    about += [("parent", parent) for parent in report.parents]
    about += [("ledger", report.ledger)] if report.ledger else []
    yield from indented(columns(about))
    for entry in report.entries:
        yield from _entry(entry)
    for claim in report.claims:
        yield from _claim(claim)
    yield from _scope(report)
    yield from verdict_lines(report.verdicts)
    if report.observations:
        yield "observed"
        yield from indented(report.observations)


def _entry(entry: ShownEntry) -> Iterator[str]:
    size = f"{count(entry.files, 'file')}, {amount(entry.size_bytes)}"
    yield f"{entry.role or '(directory)'}  {entry.kind}, {entry.custody}, {size}"
    rows = [
        (name, value)
        for name, value in (("tree", entry.tree), ("blake3", entry.blake3), ("sha256", entry.sha256))
        if value is not None
    ]
    rows += [("origin", origin) for origin in entry.origins]
    rows += [("pin", pin) for pin in entry.pins]
    rows += [("excluded", pattern) for pattern in entry.exclude]
    if entry.follow_symlinks:
        rows.append(("symlinks", "followed"))
    rows += [("fact", fact) for fact in entry.facts]
    yield from indented(columns(rows))


def _scope(report: ShowReport) -> Iterator[str]:
    if report.scope or report.scope_rules or report.described_as:
        yield "scope"
        rows = [(show(name), show(str(value))) for name, value in sorted(report.scope.items())]
        rows += [("described as", show(name)) for name in report.described_as]
        rows += [("rule", show(text)) for text in report.scope_rules]
        yield from indented(columns(rows))


def _claim(claim: ShownClaim) -> Iterator[str]:
    yield f"claim {claim.name}: {claim.value} {claim.unit} ({claim.metric}, {claim.convention})"
    yield from indented(f"rests on {role}" for role in claim.evidence)
    yield from indented(f"does not say: {limit}" for limit in claim.limits)
