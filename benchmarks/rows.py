"""What a row of the table is: its goals, what was found for each, and how to show it."""

from collections.abc import Mapping
from typing import NamedTuple

from measure import Spread, Timings


class Goal(NamedTuple):
    """One figure that a row has to reach.

    Attributes:
        text: what is compared with what.
        limit: the figure.
        unit: ``x`` for a ratio, else a unit such as ``ms``.
        bound: what bounds it, told where it is missed.
        at_least: the figure must be reached, rather than not exceeded.
    """

    text: str
    limit: float
    unit: str = "x"
    bound: str = ""
    at_least: bool = False


class Finding(NamedTuple):
    """A goal with its measurement, or with the reason why there is none."""

    goal: Goal
    measured: Spread | None
    absent: str = ""

    def verdict(self) -> str:
        """Return ``met``, ``missed`` or ``not measured``; the median decides."""
        if self.measured is None:
            return "not measured"
        value, limit = self.measured.median, self.goal.limit
        return "met" if (value >= limit if self.goal.at_least else value <= limit) else "missed"


class Row(NamedTuple):
    """All of one row.

    Attributes:
        name: such as ``P2``.
        title: the question it answers.
        findings: goals with their measurements.
        times: name and seconds of everything that was timed.
        cpu_seconds: the same in processor time, medians; less noisy where others use the machine.
        facts: other figures by name, in the unit that the name ends in.
        notes: what a reader must know to judge it.
        foreign_cores: processor cores that other programs used meanwhile; None where unknown.
    """

    name: str
    title: str
    findings: tuple[Finding, ...]
    times: Mapping[str, Spread]
    cpu_seconds: Mapping[str, float]
    facts: Mapping[str, float]
    notes: tuple[str, ...]
    foreign_cores: float | None


def against(goal: Goal, timings: Timings, case: str, *over: str) -> Finding:
    """Find the ratio of a case to another, or to the sum of several; absent peers are named."""
    missing = [name for name in (case, *over) if name not in timings]
    if missing:
        return Finding(goal, None, f"no {', '.join(missing)} here")
    return Finding(goal, timings.ratio(case, *over))


def inverse(goal: Goal, timings: Timings, case: str, *over: str) -> Finding:
    """Find how many times faster a case is than another, or than several one after the other."""
    found = against(goal, timings, case, *over)
    if found.measured is None:
        return found
    middle, low, high = found.measured
    return Finding(goal, Spread(1 / middle, 1 / high, 1 / low))


def row(
    name: str,
    title: str,
    timings: Timings,
    findings: list[Finding],
    facts: Mapping[str, float] | None = None,
    notes: tuple[str, ...] = (),
) -> Row:
    """Return a row with the times of all its cases."""
    times = {case: timings.time(case) for case in timings.samples}
    used = {case: timings.cpu_seconds(case) for case in timings.samples}
    return Row(name, title, tuple(findings), times, used, facts or {}, notes, timings.foreign_cores())


def number(value: float) -> str:
    """Return a figure in three significant digits, without an exponent.

    Example:
        >>> number(0.012345), number(1.5), number(123456.0)
        ('0.0123', '1.50', '123456')
    """
    if value == 0:
        return "0"
    digits = 2
    size = abs(value)
    while size >= 10 and digits:
        size /= 10
        digits -= 1
    while size < 1 and digits < 9:
        size *= 10
        digits += 1
    return f"{value:.{digits}f}"
