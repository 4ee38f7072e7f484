"""The life of a claim: its state follows from verdicts and relations, nobody types it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from provstore.graph.scope import Standing

ClaimState = Literal["submitted", "reproducing", "confirmed", "adjusted", "refuted", "stale", "withdrawn"]
"""- ``submitted``: stated, and nobody else has looked
- ``reproducing``: a packet continues this one, and no verdict decides it yet
- ``confirmed``: a packet that continues this one passed
- ``adjusted``: something corrects it
- ``refuted``: a verdict fails it here, or the packet that continues it failed
- ``stale``: it was superseded, or what it rests on no longer stands
- ``withdrawn``: somebody took it back, or quarantined it"""


class Judged(NamedTuple):
    """What a verdict says of one claim.

    Attributes:
        verdict: hex id of the verdict.
        policy: name of the policy.
        outcome: outcome for the claim itself, ``PASS``, ``FAIL`` or another word of gates.
        whole: outcome for the whole packet.
        reason: the first finding that is no pass.
    """

    verdict: str
    policy: str
    outcome: str
    whole: str
    reason: str = ""


class Successor(NamedTuple):
    """A packet that continues this one, with the outcome of its newest verdict; empty when it has none."""

    packet: str
    outcome: str


class Signs(NamedTuple):
    """What the store knows that bears on a claim.

    Attributes:
        judged: newest verdict of each policy.
        successors: packets that continue its packet.
        undone: relations that undo the claim or its packet.
        rests_on_undone: relations that undo what the claim rests on.
    """

    judged: Sequence[Judged] = ()
    successors: Sequence[Successor] = ()
    undone: Sequence[Standing] = ()
    rests_on_undone: Sequence[Standing] = ()


class Life(NamedTuple):
    """State of a claim and every sign of it, the deciding one first."""

    state: ClaimState
    because: tuple[str, ...]


def life(signs: Signs) -> Life:
    """Return the state of a claim; the gravest sign decides, and all are listed.

    Example:
        >>> life(Signs()).state
        'submitted'
        >>> life(Signs(successors=[Successor("ab" * 32, "PASS")])).state
        'confirmed'
        >>> life(Signs(judged=[Judged("cd" * 32, "strict", "FAIL", "FAIL", "not recomputed")])).state
        'refuted'
    """
    states: list[tuple[ClaimState, str]] = []
    for one in signs.undone:
        word: ClaimState = "stale"
        if one.relation in ("withdraws", "quarantines"):
            word = "withdrawn"
        elif one.relation == "corrects":
            word = "adjusted"
        states.append((word, _said(one)))
    for verdict in signs.judged:
        if verdict.outcome == "FAIL":
            why = f": {verdict.reason}" if verdict.reason else ""
            states.append(
                ("refuted", f"policy {verdict.policy} fails it (verdict {verdict.verdict[:12]}){why}")
            )
    for packet, outcome in signs.successors:
        if outcome == "FAIL":
            states.append(("refuted", f"packet {packet[:12]} continues it and failed"))
        elif outcome == "PASS":
            states.append(("confirmed", f"packet {packet[:12]} continues it and passed"))
        else:
            words = outcome or "has no verdict"
            states.append(("reproducing", f"packet {packet[:12]} continues it: {words}"))
    states += [("stale", f"it rests on something else: {_said(one)}") for one in signs.rests_on_undone]
    for state in ("withdrawn", "refuted", "adjusted", "stale", "confirmed", "reproducing"):
        deciding = [said for found, said in states if found == state]
        if deciding:
            rest = [said for found, said in states if found != state]
            return Life(state, tuple(deciding + rest))
    passed = [one for one in signs.judged if one.outcome == "PASS"]
    if passed:
        return Life("submitted", tuple(f"its own evidence passes policy {one.policy}" for one in passed))
    return Life("submitted", ("no verdict and no other packet speaks of it",))


def _said(one: Standing) -> str:
    return f"{one.by} {one.relation} it" + (f": {one.reason}" if one.reason else "")
