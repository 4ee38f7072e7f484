"""Text of what differs between two packets, packs or directories."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from provstore.report.text import NOT_STATED, amount, columns, count, indented, short
from provstore.reports import DiffReport, FactChange, MemberChange, MetricChange, Side

SHOWN_ONE_SIDED: Final = 8
"""Members or facts of one role that only one side has, before they are counted instead of listed."""

SHOWN_CHANGED: Final = 60
"""Differing members of one role, or facts of one layer, that are listed."""

SHOWN_CHARACTERS: Final = 60
"""Longest value that is shown whole."""


def diff_lines(report: DiffReport) -> Iterator[str]:
    r"""Yield the difference in one sentence, then by role what changed, then what stayed.

    Members are marked ``+`` (only on the second side), ``-`` (only on the first) and ``~`` (different).

    Example:
        >>> same = DiffReport(same=True, sentence="No difference.", added=(), removed=(), changed=(),
        ...     identity=(), environment=(), result=(), kept=3, kept_roles=("logs",))
        >>> print(*diff_lines(same), sep="\n")
        No difference.
        stayed: 3 members; whole: logs
    """
    yield report.sentence
    if report.counts:
        yield report.counts
    yield from _outputs(report)
    marked = [("+", c) for c in report.added]
    marked += [("-", c) for c in report.removed] + [("~", c) for c in report.changed]
    for role in sorted({change.role for _, change in marked}):
        yield role or "(directory)"
        own = sorted(((mark, c) for mark, c in marked if c.role == role), key=lambda item: item[1].path)
        yield from indented(_members(own))
    yield from _facts("identity", report.identity)
    yield from _facts("environment", report.environment)
    yield from _facts("result", report.result)
    if report.folded:
        values = count(len(report.folded), "value")
        yield f"equal but for private paths, times or process numbers: {values}; --json lists them"
    whole = f"; whole: {', '.join(report.kept_roles)}" if report.kept_roles else ""
    yield f"stayed: {count(report.kept, 'member')}{whole}"
    for role, number in Counter(fact.role for fact in report.kept_facts).items():
        yield f"  {role or '(directory)'}: {count(number, 'fact')} equal beside those that differ"
    for note in report.notes:
        yield f"note: {note}"


def _outputs(report: DiffReport) -> Iterator[str]:
    """Yield metrics that moved, the first differing token of each prompt, and other fields of rows."""
    moved = [m for m in report.metrics if m.basis == "claim" or m.rows_changed]
    if moved:
        yield "metrics"
        yield from indented(columns([_metric(metric) for metric in moved]))
    if report.tokens:
        yield f"tokens: {count(len(report.tokens), 'first difference')}"
        rows = [
            (_place(t.role, t.path), t.prompt, f"[{t.index}]", f"{_token(t.from_)} => {_token(t.to)}")
            for t in report.tokens[:SHOWN_CHANGED]
        ]
        yield from indented(columns(rows))
        if len(report.tokens) > SHOWN_CHANGED:
            yield f"  ... and {len(report.tokens) - SHOWN_CHANGED} more; --json lists them all"
    if report.rows:
        fields = ", ".join(f"{row.field} ({row.rows} of {row.of})" for row in report.rows[:SHOWN_CHANGED])
        yield f"rows differ in {fields}"


def _metric(metric: MetricChange) -> tuple[str, str, str, str]:
    off = float(metric.delta)
    share = "" if metric.percent is None else f", {float(metric.percent):+.4g} %"
    rows = f"{metric.rows_changed} of {metric.rows} rows moved" if metric.basis == "recomputed" else "claimed"
    return (
        " ".join(part for part in (metric.name, metric.convention) if part),
        f"{metric.from_} => {metric.to} {metric.unit}",
        f"{off:+.6g}{share}",
        rows,
    )


def _token(token: int | None) -> str:
    return "none" if token is None else str(token)


def _members(own: list[tuple[str, MemberChange]]) -> Iterator[str]:
    """Yield changed members, and those of one side alone up to a few, then their number."""
    shown: list[tuple[str, str, str, str, str]] = []
    hidden: Counter[str] = Counter()
    room = {"+": SHOWN_ONE_SIDED, "-": SHOWN_ONE_SIDED, "~": SHOWN_CHANGED}
    for mark, change in own:
        room[mark] -= 1
        if room[mark] >= 0:
            shown.append(_member(mark, change))
        else:
            hidden[mark] += 1
    yield from columns(shown)
    for mark, number in sorted(hidden.items()):
        yield f"{mark}  ... and {number} more; --json lists them all"


def _place(role: str, path: str) -> str:
    return " ".join(part for part in (role, path) if part)


def _member(mark: str, change: MemberChange) -> tuple[str, str, str, str, str]:
    before, after = change.from_, change.to
    return (
        mark,
        change.path or "(entry)",
        _turn(_content(before), _content(after)),
        _turn(_size(before), _size(after)),
        change.note,
    )


def _content(side: Side | None) -> str | None:
    if side is None:
        return None
    if side.target is not None:
        return f"-> {side.target}"
    digest = side.blake3 or side.sha256
    return side.type if digest is None else f"{short(digest)}{_kind(side)}"


def _kind(side: Side) -> str:
    return "" if side.type == "file" else f" {side.type}"


def _size(side: Side | None) -> str | None:
    return None if side is None or side.size is None else amount(side.size)


def _turn(before: str | None, after: str | None) -> str:
    """Return both values, or the one there is; equal ones once."""
    if before == after:
        return before or ""
    if before is None or after is None:
        return before or after or ""
    return f"{before} => {after}"


def _facts(title: str, changes: tuple[FactChange, ...]) -> Iterator[str]:
    """Yield the facts that both sides state differently; those of one side alone are counted by role."""
    if not changes:
        return
    yield f"{title}: {count(len(changes), 'fact')}"
    both = [c for c in changes if c.from_ is not None and c.to is not None]
    alone = Counter((c.role, "first" if c.to is None else "second") for c in changes if c not in both)
    few = {key for key, number in alone.items() if number <= SHOWN_ONE_SIDED}
    rows = [
        (_place(c.role, c.path), c.key, f"{_value(c.from_)} => {_value(c.to)}")
        for c in changes
        if c in both or (c.role, "first" if c.to is None else "second") in few
    ]
    yield from indented(columns(rows[:SHOWN_CHANGED]))
    if len(rows) > SHOWN_CHANGED:
        yield f"  ... and {len(rows) - SHOWN_CHANGED} more; --json lists them all"
    for (role, side), number in sorted(alone.items()):
        if (role, side) not in few:
            yield f"  {role}: {count(number, 'fact')} that only the {side} side states; --json lists them"


def _value(value: str | None) -> str:
    if value is None:
        return NOT_STATED
    whole_digest = len(value) in (40, 64) and all(char in "0123456789abcdef" for char in value)
    if whole_digest:
        return short(value)
    return value if len(value) <= SHOWN_CHARACTERS else value[: SHOWN_CHARACTERS - 3] + "..."
