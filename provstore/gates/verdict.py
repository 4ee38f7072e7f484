"""From a policy and evidence to gate outcomes and one outcome of the whole."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from provstore.gates.claims import judge_claim
from provstore.gates.evidence import Evidence
from provstore.gates.findings import Findings, worst_of
from provstore.gates.kinds import Gate
from provstore.gates.policy import Policy
from provstore.gates.sealing import Readings
from provstore.records.verdict import GateOutcome, GateWord, MetricOutcome

Word = Literal["PASS", "FAIL", "INCOMPLETE"]


class Judged(NamedTuple):
    """What a policy says.

    Attributes:
        outcome: of the whole.
        gates: each gate, then readings, then claims.
        metrics: numbers that were recomputed, each once.
    """

    outcome: Word
    gates: tuple[GateOutcome, ...]
    metrics: tuple[MetricOutcome, ...]


def judge_gate(gate: Gate, evidence: Evidence) -> tuple[GateOutcome, list[MetricOutcome]]:
    """Judge one gate."""
    out = Findings()
    judgements = tuple(gate.judge(evidence, out))
    outcome = GateOutcome(
        gate=gate.name,
        kind=gate.kind,
        required=gate.needed,
        outcome=worst_of(judgement.outcome for judgement in judgements),
        judgements=judgements,
    )
    return outcome, out.metrics


def judge_all(policy: Policy, evidence: Evidence) -> Judged:
    """Judge every gate of a policy, what the readers found, and every claim."""
    gates: list[GateOutcome] = []
    metrics: list[MetricOutcome] = []
    listed: list[Gate] = list(policy.gate)
    if policy.extract and not any(isinstance(gate, Readings) for gate in listed):
        listed.append(Readings(name="readings"))
    for gate in listed:
        outcome, found = judge_gate(gate, evidence)
        gates.append(outcome)
        metrics += found
    claims = [judge_claim(claim, evidence, gates) for claim in evidence.claims]
    for outcome, found in claims:
        gates.append(outcome)
        metrics += found
    return Judged(whole(gates, policy), tuple(gates), tuple(dict.fromkeys(metrics)))


def whole(gates: Sequence[GateOutcome], policy: Policy) -> Word:
    """Return the outcome of the whole: never better than the worst required gate.

    Without a gate that the policy itself requires and that was looked at, it is not a pass.
    """
    required: list[GateWord] = [gate.outcome for gate in gates if gate.required]
    if {"FAIL", "INELIGIBLE"} & set(required):
        return "FAIL"
    own = {gate.name for gate in policy.gate if gate.needed}
    held = any(gate.gate in own and gate.outcome in ("PASS", "WARN") for gate in gates)
    return "INCOMPLETE" if "UNKNOWN" in required or not held else "PASS"
