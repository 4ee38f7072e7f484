"""Text of what differs between two packets, packs or directories."""

from collections.abc import Iterable, Iterator

from provstore.report.text import NOT_STATED, amount, columns, count, indented, short
from provstore.reports import DiffReport, FactChange, MemberChange, Side


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
    marked = [("+", c) for c in report.added]
    marked += [("-", c) for c in report.removed] + [("~", c) for c in report.changed]
    for role in sorted({change.role for _, change in marked}):
        yield role or "(directory)"
        own = sorted(((mark, c) for mark, c in marked if c.role == role), key=lambda item: item[1].path)
        yield from indented(columns([_member(mark, change) for mark, change in own]))
    yield from _facts("identity", report.identity)
    yield from _facts("environment", report.environment)
    yield from _facts("result", report.result)
    whole = f"; whole: {', '.join(report.kept_roles)}" if report.kept_roles else ""
    yield f"stayed: {count(report.kept, 'member')}{whole}"
    yield from indented(
        columns([(_place(k.role, k.path), k.key, _value(k.value)) for k in report.kept_facts])
    )
    for note in report.notes:
        yield f"note: {note}"


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


def _facts(title: str, changes: Iterable[FactChange]) -> Iterator[str]:
    rows = [(_place(c.role, c.path), c.key, f"{_value(c.from_)} => {_value(c.to)}") for c in changes]
    if rows:
        yield f"{title}: {count(len(rows), 'fact')}"
        yield from indented(columns(rows))


def _value(value: str | None) -> str:
    if value is None:
        return NOT_STATED
    whole_digest = len(value) in (40, 64) and all(char in "0123456789abcdef" for char in value)
    return short(value) if whole_digest else value
