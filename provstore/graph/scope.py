"""Does a claim carry to another context? Decided by rules over dimensions, never by prose.

A rule names a kind of claim and the dimensions that must be preserved. A dimension that differs answers
``does-not-transfer``; one that is not known answers ``unknown``; only when every one is known to be the same
the answer is ``transfers``. Rules come from the packet; :data:`OWN_RULES` hold where it has none for a kind.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from provstore.errors import UsageError
from provstore.graph.places import Gap, Known, gaps, moved
from provstore.graph.statements import ClaimKind, Scalar
from provstore.paths import show

Answer = Literal["transfers", "does-not-transfer", "unknown"]

CLAIM_KINDS: Final[tuple[ClaimKind, ...]] = get_args(ClaimKind)


class Rule(NamedTuple):
    """What must be preserved for one kind of claim.

    Attributes:
        name: what answers call it: ``own-point`` and its like, or ``scope-rule N`` of a packet.
        claim: kind of claim.
        preserve: dimensions; None for every dimension that the place states or the question names.
        statement: one sentence for people.
        stated_by: hex id of the packet that states it; empty for a rule of ours.
        location: where in there.
    """

    name: str
    claim: ClaimKind
    preserve: tuple[str, ...] | None
    statement: str
    stated_by: str = ""
    location: str = ""


OWN_RULES: Final[dict[ClaimKind, Rule]] = {
    "performance": Rule(
        "own-point", "performance", None, "A number holds for the configuration that it was measured in."
    ),
    "exactness": Rule(
        "own-point", "exactness", None, "Equal output was shown for the configuration that was compared."
    ),
    "treatment": Rule(
        "own-point",
        "treatment",
        None,
        "The effect of a change was seen in the configuration that was changed.",
    ),
    "accounting": Rule(
        "one-convention", "accounting", ("convention",), "Values of two conventions are never compared."
    ),
}
"""What holds where a packet states no rule. A way of working has none: whether it carries is for its
authors to say."""


def claim_kinds(names: Sequence[str]) -> tuple[ClaimKind, ...]:
    """Return the kinds of claim with these names, in their own order; all for none.

    Raises:
        UsageError: there is no such kind.
    """
    strange = set(names) - set(CLAIM_KINDS)
    if strange:
        word = show(min(strange))
        raise UsageError(f"{word} is no kind of claim; there are {', '.join(CLAIM_KINDS)}")
    return tuple(kind for kind in CLAIM_KINDS if not names or kind in names)


class Standing(NamedTuple):
    """Why something no longer stands as it was said.

    Attributes:
        relation: kind of the relation; ``failed`` for claims that a verdict fails, ``fails`` for what
            else of the packet it fails.
        by: node or record that says so.
        reason: its words.
    """

    relation: str
    by: str
    reason: str


class Decision(NamedTuple):
    """The answer for one kind of claim.

    Attributes:
        claim: kind of claim.
        answer: see :data:`Answer`.
        rule: what decided.
        gaps: dimensions that differ or are not known, of those that the rule preserves.
        free: dimensions that were asked about and that the rule does not preserve.
        assumed: dimensions that were not asked about and are taken to be as they are here.
        because: one sentence.
    """

    claim: ClaimKind
    answer: Answer
    rule: str
    gaps: tuple[Gap, ...]
    free: tuple[str, ...]
    assumed: tuple[str, ...]
    because: str


class Question(NamedTuple):
    """What is asked of a packet.

    Attributes:
        here: where it stands.
        there: the other place; for a partial context what was asked alone.
        whole: ``there`` is a whole place, so that a dimension that it does not state is unknown; otherwise
            everything that was not asked about is taken to be as it is here.
        undone: what says that the packet no longer stands.
        shaken: what says that something it rests on no longer stands.
    """

    here: Mapping[str, Known]
    there: Mapping[str, Known]
    whole: bool
    undone: tuple[Standing, ...] = ()
    shaken: tuple[Standing, ...] = ()


def asked(here: Mapping[str, Known], where: Mapping[str, Scalar]) -> Question:
    """Return the question about a place that is like ``here`` but for what is named."""
    return Question(here, moved({}, where), whole=False)


def decide(kind: ClaimKind, question: Question, rules: Sequence[Rule]) -> Decision:
    """Answer for one kind of claim.

    Args:
        kind: kind of claim.
        question: the two places.
        rules: the packet's rules, of all kinds; each one of this kind must hold.

    Example:
        >>> here = {"cards": Known(4), "kv": Known("bfloat16")}
        >>> d = decide("performance", asked(here, {"cards": 2}), ())
        >>> d.answer, d.rule, d.gaps
        ('does-not-transfer', 'own-point', (Gap(dimension='cards', here=4, there=2),))
        >>> decide("performance", asked(here, {"host": "mine"}), ()).answer
        'unknown'
    """
    gone = [one for one in question.undone if one.relation in ("withdraws", "quarantines", "failed")]
    if gone:
        said = f"it no longer stands where it was made: {gone[0].relation} by {gone[0].by}"
        because = f"{said}: {gone[0].reason}" if gone[0].reason else said
        return Decision(kind, "does-not-transfer", "does-not-stand", (), (), (), because)
    own = [rule for rule in rules if rule.claim == kind] or [
        rule for rule in OWN_RULES.values() if rule.claim == kind
    ]
    if not own:
        because = "no rule of the packet says what a way of working needs; its authors may state one"
        return Decision(kind, "unknown", "no-rule", (), (), (), because)
    found = [_apply(rule, question) for rule in own]
    for answer in ("does-not-transfer", "unknown"):
        for decision in found:
            if decision.answer == answer:
                return decision
    fell = [one for one in question.shaken if one.relation in ("withdraws", "quarantines", "fails")]
    if fell:
        said = f"what it rests on does not stand: {fell[0].relation} by {fell[0].by}"
        because = f"{said}: {fell[0].reason}" if fell[0].reason else said
        return found[0]._replace(answer="unknown", rule="rests-on-undone", because=because)
    return found[0]


def _apply(rule: Rule, question: Question) -> Decision:
    here, there = question.here, question.there
    named = set(there) | (set(here) if question.whole or rule.preserve is None else set())
    preserve = named if rule.preserve is None else set(rule.preserve)
    looked = preserve if question.whole else preserve & set(there)
    if not rule.stated_by and rule.preserve is not None:
        # A rule of ours asks for it by name, so a place that does not state it has nothing to preserve.
        looked |= preserve - set(here)
    # What no rule names and this place does not state may be a slip of the pen: not known to be harmless.
    strange = set() if question.whole else set(there) - preserve - set(here)
    found = gaps(here, there, looked | strange)
    assumed = () if question.whole else tuple(sorted(preserve - set(there)))
    free = tuple(sorted(set(there) - preserve - strange))
    differing = [gap for gap in found if gap.differs]
    answer: Answer = "transfers"
    if differing:
        answer = "does-not-transfer"
        because = "; ".join(
            f"{g.dimension} is {_text(g.here)} here and {_text(g.there)} there" for g in differing
        )
    elif found:
        answer = "unknown"
        because = "; ".join(_unknown(gap, question) for gap in found)
    elif question.whole and not preserve:
        answer, because = "unknown", "neither place states a dimension"
    else:
        kept = ", ".join(sorted(looked))
        because = f"preserved: {kept}" if kept else "it needs nothing of what was asked about"
    return Decision(rule.claim, answer, rule.name, found, free, assumed, f"{because}. {rule.statement}")


def _unknown(gap: Gap, question: Question) -> str:
    name = gap.dimension
    disputed = [
        f"documents disagree on {name} {where}"
        for where, place in (("here", question.here), ("there", question.there))
        if name in place and place[name].others
    ]
    if disputed:
        return " and ".join(disputed)
    if gap.here is None and gap.there is None:
        return f"neither place states {name}"
    return f"{name} is not stated {'here' if gap.here is None else 'there'}"


def _text(value: Scalar | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
