"""The gate about comparisons: decided by the rules that were frozen before, and by nothing else."""

from typing import ClassVar

from provstore.evidence.aggregation import median
from provstore.gates.evidence import Evidence, Found, number, uses
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement


class Frozen(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="frozen"):
    """A comparison is decided by the rules that were frozen before it, and by nothing else.

    Wins and the paired median are recomputed from the two lists where both are stated; secondary gains are
    not looked at.

    Attributes:
        control: fact with the headline of the control arm.
        candidate: fact with the headline of the candidate arm.
        control_rows: fact with the list of row values of the control arm; empty when only sums are stated.
        candidate_rows: the same of the candidate arm.
        wins: fact with the number of rows that the candidate wins; when there are no lists.
        minimum_wins: fewest rows that it must win; 0 leaves the rule out.
        paired_median: fact with the median of the paired differences; when there are no lists.
        positive_median: the paired median must be above zero.
    """

    control: str
    candidate: str
    control_rows: str = ""
    candidate_rows: str = ""
    wins: str = ""
    minimum_wins: int = 0
    paired_median: str = ""
    positive_median: bool = True

    FACTS: ClassVar[tuple[str, ...]] = (
        "control",
        "candidate",
        "control_rows",
        "candidate_rows",
        "wins",
        "paired_median",
    )
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "crossover"
kind = "json"
role = "crossover.json"

[[gate]]
name = "frozen rules"
kind = "frozen"
control = "crossover:/control/median"
candidate = "crossover:/candidate/median"
control_rows = "crossover:/control/rows"
candidate_rows = "crossover:/candidate/rows"
minimum_wins = 9
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Apply the three rules."""
        seen: list[Found] = []
        headline = [
            self._number(reference, evidence, seen, out) for reference in (self.control, self.candidate)
        ]
        if headline[0] is not None and headline[1] is not None and headline[1] <= headline[0]:
            out.fail(
                "headline",
                f"{headline[0]!r} to {headline[1]!r}: the headline is not higher",
                expected=f"above {headline[0]!r}",
                found=repr(headline[1]),
                facts=uses(seen),
            )
        wins, middle = self._paired(evidence, seen, out)
        if self.minimum_wins and wins is not None and wins < self.minimum_wins:
            out.fail(
                "row-wins", f"{wins!r} rows won", expected=f"at least {self.minimum_wins}", found=repr(wins)
            )
        if self.positive_median and middle is not None and middle <= 0:
            out.fail(
                "paired-median", f"the paired median is {middle!r}", expected="above 0", found=repr(middle)
            )
        return out.done(f"higher headline, {wins} rows won, paired median {middle}", uses(seen))

    def _paired(
        self, evidence: Evidence, seen: list[Found], out: Findings
    ) -> tuple[float | None, float | None]:
        if self.control_rows:
            lists = [self._list(ref, evidence, seen, out) for ref in (self.control_rows, self.candidate_rows)]
            if not lists[0] or not lists[1]:
                return None, None
            if len(lists[0]) != len(lists[1]):
                out.fail("row-count", f"{len(lists[0])} rows beside {len(lists[1])}")
                return None, None
            pairs = [after - before for before, after in zip(*lists, strict=True)]
            return sum(difference > 0 for difference in pairs), median(pairs)
        wins = self._number(self.wins, evidence, seen, out) if self.minimum_wins else None
        middle = self._number(self.paired_median, evidence, seen, out) if self.positive_median else None
        return wins, middle

    def _number(self, reference: str, evidence: Evidence, seen: list[Found], out: Findings) -> float | None:
        found = evidence.only(reference, out)
        if found is None:
            return None
        seen.append(found)
        value = number(found.fact)
        if value is None:
            out.fail("type", f"{reference} is {found.used().value}, not a number", facts=(found.used(),))
        return value

    def _list(self, reference: str, evidence: Evidence, seen: list[Found], out: Findings) -> list[float]:
        found = evidence.only(reference, out)
        if found is None:
            return []
        seen.append(found)
        values = found.fact.value
        if isinstance(values, tuple) and (found.fact.decimal or all(type(item) is int for item in values)):
            return [float(item) for item in values]
        out.fail("type", f"{reference} is no list of numbers", facts=(found.used(),))
        return []

    def idle_reason(self) -> str:
        """Say whether a rule has no number to look at."""
        if self.control == self.candidate or bool(self.control_rows) != bool(self.candidate_rows):
            return "control and candidate must be two arms, and both have lists or none"
        if not self.control_rows and ((self.minimum_wins and not self.wins) or
                                      (self.positive_median and not self.paired_median)):  # fmt: skip
            return "a rule about rows needs lists, or facts that state wins and paired median"
        return ""
