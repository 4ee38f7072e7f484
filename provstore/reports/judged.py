"""Results of judging: kept verdicts beside each other, and the explanation of one gate."""

from provstore.reports.base import Outcome, Report, Verdict


class ShownVerdict(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kept verdict.

    Attributes:
        id: hex id of the verdict record.
        policy: hex id of the policy's bytes.
        name: name that the policy gives itself.
        version: version of the policy.
        date: date of the policy.
        tool: what judged.
        outcome: outcome of the whole.
        gates: number of gates.
        findings: one line for each gate that is not a pass.
    """

    id: str
    policy: str
    name: str
    version: str
    date: str
    tool: str
    outcome: Verdict
    gates: int
    findings: tuple[str, ...] = ()


class ExplainedFact(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fact that a gate looked at, with the line that states it.

    Attributes:
        place: ``role/path`` of the member.
        key: name of the fact.
        value: its value as JSON writes it, shortened.
        object: hex id of the member's bytes; empty for what the packet itself states.
        location: line or JSON pointer.
        line: the line itself, shortened and escaped; empty when the location is a pointer.
    """

    place: str
    key: str
    value: str
    object: str
    location: str
    line: str


class Explained(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One finding of a gate.

    Attributes:
        outcome: what it means.
        code: stable name.
        message: one sentence.
        expected: what should be there.
        found: what is there.
        facts: what was looked at.
        next: what to look at next; empty for a pass.
    """

    outcome: Outcome
    code: str
    message: str
    expected: str | None
    found: str | None
    facts: tuple[ExplainedFact, ...]
    next: str


class ExplainReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a gate says what it says.

    Attributes:
        packet: id of the packet.
        policy: hex id of the policy's bytes.
        gate: name of the gate.
        kind: its kind.
        required: the packet cannot pass without it.
        outcome: what it means for the packet: ``PASS`` when it holds or is not required.
        found: the worst of its findings.
        rule: what the kind asks.
        why: why the policy asks for it.
        parameters: what the policy gave it.
        findings: everything it found.
    """

    packet: str
    policy: str
    gate: str
    kind: str
    required: bool
    outcome: Verdict
    found: Outcome
    rule: str
    why: str
    parameters: tuple[str, ...]
    findings: tuple[Explained, ...]


class RowShown(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of one row; None when it has none.

    Attributes:
        location: JSON pointer of the row; empty for a raw log.
        value: shortest decimal text of the double.
    """

    location: str
    value: str | None


class MetricsReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number that was recomputed from one file.

    Attributes:
        path: what was read.
        convention: how it was counted.
        unit: unit of the value.
        value: shortest decimal text of the double; None when the rows give none.
        formula: what was computed.
        outcome: ``PASS`` with a value; ``INCOMPLETE`` when something is not stated, else ``FAIL``.
        rows: the value of each row.
        findings: why there is no value, and what is odd.
    """

    path: str
    convention: str
    unit: str
    value: str | None
    formula: str
    outcome: Verdict
    rows: tuple[RowShown, ...]
    findings: tuple[str, ...] = ()
