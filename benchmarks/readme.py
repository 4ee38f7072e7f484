"""The results in words and tables, put into README.md between two markers."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from rows import Finding, Goal, Row, number

BEGIN: Final = "<!-- results: written by run.py, do not edit -->"
END: Final = "<!-- end of results -->"

_UNITS: Final = {"x": " x"}
_VERDICTS: Final = {"met": "met", "missed": "**missed**", "not measured": "not measured"}


class Run(NamedTuple):
    """One run of the benchmarks.

    Attributes:
        date: day of it, UTC.
        scale: 1 for the full workloads.
        rounds: times that each case ran.
        machine: what it ran on.
        workloads: what was measured, by name.
        rows: results.
        notes: what makes this run less than usual.
    """

    date: str
    scale: float
    rounds: int
    machine: dict[str, str]
    workloads: dict[str, str]
    rows: list[Row]
    notes: list[str]


def document(run: Run) -> dict[str, Any]:
    """Return a run as plain values for JSON; spreads are median, least and greatest."""
    return {
        "format": "provstore/benchmarks/v1",
        **run._asdict(),
        "rows": [
            {
                **row._asdict(),
                "findings": [
                    {
                        **finding.goal._asdict(),
                        "measured": finding.measured,
                        "absent": finding.absent,
                        "verdict": finding.verdict(),
                    }
                    for finding in row.findings
                ],
            }
            for row in run.rows
        ],
    }


def write(path: Path, run: Run) -> None:
    """Replace what stands between the markers of a README; one without markers gets them at its end."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(before + BEGIN + "\n\n" + "\n".join(lines(run)) + "\n" + END + after, encoding="utf-8")


def lines(run: Run) -> list[str]:
    """Return the lines of the results: the run, its verdicts, its times."""
    machine = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    text = [f"## Results of {run.date}", ""]
    text += [f"Scale {run.scale:g}, {run.rounds} rounds. {note}" for note in run.notes[:1]] or [
        f"Scale {run.scale:g}, {run.rounds} rounds."
    ]
    text += [*run.notes[1:], "", f"Machine: {machine}.", ""]
    text += [f"- {name}: {what}" for name, what in run.workloads.items()]
    text += ["", "### Goals", "", "| row | what | goal | measured (least to greatest) | | what bounds it |"]
    text += ["| --- | --- | --- | --- | --- | --- |"]
    for row in run.rows:
        text += [_finding(row, finding) for finding in row.findings]
        if not row.findings and not row.times:
            text.append(_table_line((row.name, row.title, "-", "-", "**failed**", " ".join(row.notes))))
    text += ["", "### Times", ""]
    for row in run.rows:
        text += _times(row)
    return text


def _finding(row: Row, finding: Finding) -> str:
    goal, verdict = finding.goal, finding.verdict()
    why = finding.absent or (goal.bound if verdict == "missed" else "")
    cells = (row.name, goal.text, _limit(goal), _measured(finding), _VERDICTS[verdict], why)
    return _table_line(cells)


def _limit(goal: Goal) -> str:
    return f"{'at least' if goal.at_least else 'at most'} {goal.limit:g}{_unit(goal)}"


def _measured(finding: Finding) -> str:
    if finding.measured is None:
        return "-"
    middle, low, high = map(number, finding.measured)
    around = "" if low == high else f" ({low} to {high})"
    return f"{middle}{_unit(finding.goal)}{around}"


def _unit(goal: Goal) -> str:
    return _UNITS.get(goal.unit, f" {goal.unit}")


def _times(row: Row) -> list[str]:
    text = [f"**{row.name}, {row.title}**", ""]
    if row.times:
        text += [
            "| case | seconds, median | least to greatest | processor seconds |",
            "| --- | --- | --- | --- |",
        ]
        for name, (middle, low, high) in row.times.items():
            used = number(row.cpu_seconds[name])
            text.append(_table_line((name, number(middle), f"{number(low)} to {number(high)}", used)))
        text.append("")
    text += [f"- {note}" for note in row.notes]
    if row.facts:
        text.append("- " + "; ".join(f"{name}: {_fact(value)}" for name, value in row.facts.items()))
    if row.foreign_cores is not None:
        text.append(f"- cores that other programs used meanwhile, median: {number(row.foreign_cores)}")
    return [*text, ""]


def _fact(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else number(value)


def _table_line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
