"""Verdicts: what a policy says about a packet, gate by gate, with the facts that decided it."""

from typing import Literal

import msgspec

from provstore.records.tree import Count

GateWord = Literal["PASS", "FAIL", "UNKNOWN", "NOT-APPLICABLE", "INELIGIBLE", "WARN"]
"""Outcome of a gate. ``UNKNOWN``: not decided, evidence absent; ``INELIGIBLE``: evidence fine, claim not
allowed; ``WARN``: accepted, and reported."""


class UsedFact(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """One fact that a gate looked at.

    Attributes:
        place: shown path inside the packet, ``role/path``.
        key: name of the fact.
        value: the value as JSON writes it, shortened; a decimal is its source text.
        object: hex id of the object that states it; empty for what the packet itself states.
        location: ``line 12`` or a JSON pointer (RFC 6901); empty for the whole object.
    """

    place: str
    key: str
    value: str
    object: str = ""
    location: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that a gate found.

    Attributes:
        outcome: see :data:`GateWord`.
        code: stable name of the finding; ``ok`` for a pass.
        message: one sentence for people; foreign text in it is escaped.
        expected: what should be there.
        found: what is there.
        facts: what was looked at.
    """

    outcome: GateWord
    code: str
    message: str
    expected: str | None = None
    found: str | None = None
    facts: tuple[UsedFact, ...] = ()


class GateOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one gate of a policy says.

    Attributes:
        gate: its name in the policy.
        kind: which rule it applies.
        outcome: the worst of its judgements.
        judgements: everything it found, in the order of the rule.
        required: the packet cannot pass without it.
    """

    gate: str
    kind: str
    outcome: GateWord
    judgements: tuple[Judgement, ...]
    required: bool = False


class MetricOutcome(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A number that was recomputed.

    Attributes:
        name: gate or claim that asked for it.
        convention: how it was counted.
        unit: unit of the value.
        value: shortest decimal text of the double; empty when it has none.
        formula: what was computed, for people.
        rows: rows it was computed from.
    """

    name: str
    convention: str
    unit: str
    value: str
    formula: str
    rows: Count


class Verdict(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="format",
    tag="provstore/verdict/v1",
):
    """What one policy says about one packet; verdicts of several policies stand side by side.

    Attributes:
        packet: hex id of the packet.
        policy: hex id of the object with the policy's bytes.
        policy_name: name that the policy gives itself.
        policy_version: version that it gives itself.
        policy_date: date that it gives itself.
        tool: name and version of the program that judged.
        outcome: never better than the worst required gate; without a required gate never ``PASS``.
        gates: every gate of the policy, in its order, then readings and claims.
        metrics: numbers that were recomputed.
        facts: hex ids of the facts records that the extractors gave.
    """

    packet: str
    policy: str
    policy_name: str
    policy_version: str
    policy_date: str
    tool: str
    outcome: Literal["PASS", "FAIL", "INCOMPLETE"]
    gates: tuple[GateOutcome, ...]
    metrics: tuple[MetricOutcome, ...] = ()
    facts: tuple[str, ...] = ()
