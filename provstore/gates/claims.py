"""Claims of a packet, held against what is recomputed: value, convention, evidence, and what they add."""

import re
from collections.abc import Sequence
from typing import Final

from provstore.errors import MalformedError, NotFoundError
from provstore.evidence.bench import BenchResult
from provstore.evidence.comparing import compare
from provstore.evidence.metrics import recompute
from provstore.gates.evidence import Evidence, Source
from provstore.gates.findings import Findings, worst_of
from provstore.gates.measure import (
    definition_of,
    other_conventions,
    outcome_of,
    rows_of,
    say_comparison,
    say_failures,
)
from provstore.records.packet import Claim
from provstore.records.verdict import GateOutcome, MetricOutcome, UsedFact

KIND: Final = "claim"
"""Kind of the outcome of a claim; every policy judges every claim."""

_COUNT: Final = re.compile(r"\b(\d{1,6})/(\d{1,6})\s+(tokens?|texts?)\b", re.IGNORECASE)
_GATE_OF: Final = {"token": "tokens", "text": "texts"}


def judge_claim(
    claim: Claim, evidence: Evidence, gates: Sequence[GateOutcome]
) -> tuple[GateOutcome, list[MetricOutcome]]:
    """Judge one claim.

    Args:
        claim: what the packet says.
        evidence: what the policy's extractors read.
        gates: outcomes of the policy's gates, for counts that the claim adds.

    Returns:
        The outcome, and the recomputed number.
    """
    out = Findings()
    fact = UsedFact(place="claim", key=claim.name, value=claim.value)
    rows = _rows(claim, evidence, out)
    if rows is not None:
        _value(claim, rows, evidence, fact, out)
    _counts(claim, gates, fact, out)
    message = f"{claim.value} {claim.unit} ({claim.convention}) is recomputed"
    judgements = tuple(out.done(message, [fact]))
    outcome = GateOutcome(
        gate=f"claim: {claim.name}",
        kind=KIND,
        required=True,
        outcome=worst_of(judgement.outcome for judgement in judgements),
        judgements=judgements,
    )
    return outcome, out.metrics


def _rows(claim: Claim, evidence: Evidence, out: Findings) -> Source | None:
    """Return the benchmark among the evidence of a claim; says what of the evidence is not here."""
    held = {member.place: member.custody for member in evidence.members if member.kind != "directory"}
    if not claim.evidence:
        out.unknown("claim-without-evidence", f"claim {claim.name} names no evidence")
        return None
    for role in claim.evidence:
        below = [custody for place, custody in held.items() if place == role or place.startswith(role + "/")]
        if not below or "declared" in below:
            what = "is only declared" if below else "is not in the packet"
            out.unknown("evidence-absent", f"{role} {what}", expected=role)
    found: list[Source] = []
    for sources in evidence.sources.values():
        for source in sources:
            near = any(source.place == role or source.place.startswith(role + "/") for role in claim.evidence)
            if (
                near
                and isinstance(source.reading, BenchResult)
                and source.place not in [s.place for s in found]
            ):
                found.append(source)
    if len(found) != 1:
        if not out.decided:
            out.unknown(
                "evidence-absent", f"{len(found)} benchmarks among the evidence of claim {claim.name}"
            )
        return None
    return found[0]


def _value(claim: Claim, source: Source, evidence: Evidence, fact: UsedFact, out: Findings) -> None:
    try:
        definition = definition_of(claim.convention, evidence)
    except NotFoundError:
        out.unknown("convention-unknown", f"no definition is called {claim.convention}", facts=(fact,))
        return
    value = recompute(definition, rows_of(source))
    out.metrics.append(outcome_of(f"claim: {claim.name}", definition, value))
    say_failures(source, value, out)
    if claim.unit != definition.unit:
        out.fail("unit", f"the claim is in {claim.unit}, the convention in {definition.unit}",
                 expected=definition.unit, found=claim.unit, facts=(fact,))  # fmt: skip
    if value.value is None:
        return
    try:
        comparison = compare(claim.value, value.convention, value, definition.tolerance)
    except MalformedError as error:
        out.fail("type", f"claim {claim.name}: {error.message}", facts=(fact,))
        return
    differs = comparison.outcome == "differs"
    others = other_conventions(claim.value, rows_of(source), evidence) if differs else ()
    if others:
        out.fail("metric-convention", f"{claim.value} is the number of {', '.join(others)}, not of "
                 f"{claim.convention}", expected=value.text, found=claim.value, facts=(fact,))  # fmt: skip
        return
    say_comparison(comparison, f"claim {claim.name} states", fact, out)


def _counts(claim: Claim, gates: Sequence[GateOutcome], fact: UsedFact, out: Findings) -> None:
    """Hold "13/13 text" against a gate that compared texts, and tokens against one that compared tokens."""
    texts = [claim.name, claim.metric, claim.samples or "", *claim.limits]
    for text in texts:
        for count, total, noun in _COUNT.findall(text):
            kind = _GATE_OF[noun.lower().rstrip("s")]
            stated = f"{count}/{total} "
            held = any(
                gate.kind == kind and gate.outcome == "PASS" and gate.judgements[0].message.startswith(stated)
                for gate in gates
            )
            if not held:
                out.fail("claim-limit", f"claim {claim.name} says {stated}{noun}; no gate of kind {kind} "
                         "compared them with this result", expected=f"{stated}by a gate {kind}",
                         facts=(fact,))  # fmt: skip
