"""Text of scope answers, coverage matrices and the life of claims."""

from collections.abc import Iterable, Iterator
from typing import Final

from provstore.paths import show
from provstore.report.text import NOT_STATED, columns, indented, short
from provstore.reports.scoped import ClaimLife, CoverageReport, ScopeAnswer, ScopeGap

MARKS: Final = {
    "lab-measured": "measured",
    "lab-screened": "screened",
    "community-measured": "community",
}
"""Shorter words for states in a table; the others stand as they are."""


def scope_lines(subject: str, context: str, answers: Iterable[ScopeAnswer]) -> Iterator[str]:
    r"""Yield the answers, one block a kind of claim; prose, which decides nothing, once at the end.

    Args:
        subject: what was asked about.
        context: the place it was asked for.
        answers: in order.

    Example:
        >>> answer = ScopeAnswer(claim="method", of="", answer="unknown", rule="no-rule", because="no rule")
        >>> print(*scope_lines("run", "cards=2", [answer]), sep="\n")
        run: does it carry to cards=2?
        unknown            method       no rule  [no-rule]
    """
    yield f"{show(subject)}: does it carry to {show(context)}?"
    prose: dict[str, None] = {}
    notes: dict[str, None] = {}
    for answer in answers:
        yield f"{answer.answer:<17}  {answer.claim:<11}  {show(answer.because)}  [{answer.rule}]"
        rows = [("claim", answer.of)] if answer.of else []
        rows += [("gap", _gap(gap)) for gap in answer.gaps]
        if answer.free:
            rows.append(("free", ", ".join(answer.free)))
        for closure in answer.closures:
            rows.append((closure.state, f"{closure.reason}  ({short(closure.stated_by)}{closure.location})"))
        if answer.nearest is not None:
            point = answer.nearest
            rows.append(
                ("nearest", f"{point.measurement} ({point.state or 'no state'}): {', '.join(point.values)}")
            )
            if point.differing:
                rows.append(("", f"taken at {', '.join(point.differing)}"))
        rows += [("would change", text) for text in answer.would_change]
        yield from indented(columns([(name, show(text)) for name, text in rows]))
        prose |= dict.fromkeys(f"{line.direction}: {line.text}" for line in answer.prose)
        notes |= dict.fromkeys(answer.notes)
    if notes:
        yield "documents disagree"
        yield from indented(show(note) for note in notes)
    if prose:
        yield "what the family says in words (decides nothing)"
        yield from indented(show(text) for text in prose)


def _gap(gap: ScopeGap) -> str:
    place = f"  ({short(gap.stated_by)} {gap.location})" if gap.stated_by else ""
    return f"{gap.dimension}: {_value(gap.here)} here, {_value(gap.there)} there{place}"


def _value(value: str | int | bool | None) -> str:
    if value is None:
        return NOT_STATED
    return str(value).lower() if isinstance(value, bool) else str(value)


def coverage_lines(report: CoverageReport) -> Iterator[str]:
    """Yield one matrix as a table, then what is behind its cells."""
    yield f"{report.view}  {show(report.label)}"
    if report.fixed:
        fixed = ", ".join(f"{name}={_value(value)}" for name, value in report.fixed.items())
        yield from indented([f"fixed: {show(fixed)}"])
    heads = list(dict.fromkeys(_value(cell.column) for cell in report.cells))
    rows: dict[str, list[str]] = {}
    for cell in report.cells:
        mark = MARKS.get(cell.state, cell.state) + ("" if cell.agrees else "!")
        rows.setdefault(_value(cell.row), []).append(mark)
    corner = f"{report.row_key} by {report.column_key}"
    table = [(corner, *heads), *((row, *marks) for row, marks in rows.items())]
    yield from indented(columns([[show(text) for text in line] for line in table]))
    for cell in report.cells:
        name = f"{_value(cell.row)}:{_value(cell.column)}"
        if cell.values:
            yield from indented([show(f"{name}  {', '.join(cell.values)}  ({cell.cites})")])
        elif cell.reason:
            yield from indented([show(f"{name}  {cell.state}: {cell.reason}")])
        if not cell.agrees:
            said = "has no such cell" if cell.stated is None else f"says {cell.stated}"
            yield from indented([show(f"{name}  ! the data says {cell.state}, the document {said}")])
    yield ", ".join(f"{number} {state}" for state, number in report.counts.items())


def claim_lines(life: ClaimLife) -> Iterator[str]:
    r"""Yield the state of one claim, and under it why it is in its state.

    Example:
        >>> life = ClaimLife(packet="ab" * 32, name="run", claim="decode", value="1.0", unit="tok/s",
        ...     convention="c", state="submitted", because=("no verdict",))
        >>> print(*claim_lines(life), sep="\n")
        submitted    run decode = 1.0 tok/s (c)
          no verdict
    """
    name = life.name or short(life.packet)
    yield show(f"{life.state:<11}  {name} {life.claim} = {life.value} {life.unit} ({life.convention})")
    yield from indented(show(text) for text in life.because)
