"""Does a claim transfer to another context? Rules decide; closures, the nearest point and prose stand by."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from provstore.errors import UsageError
from provstore.graph.index import Index
from provstore.graph.nodes import Node
from provstore.graph.places import Gap, Known, Near, covers, moved, nearest
from provstore.graph.scope import CLAIM_KINDS, Decision, Question, decide
from provstore.graph.statements import ClaimKind, Measurement, Sample, Scalar
from provstore.reports.scoped import ScopeAnswer, ScopeClosure, ScopeGap, ScopePoint, ScopeProse
from provstore.store.protocol import Reader
from provstore.verbs.standing import Stand, stand

MAX_PROSE: Final = 40
"""Sentences of families shown with one answer."""

_ASKED: Final = Known("")


def scope(
    reader: Reader,
    index: Index,
    node: Node,
    where: Mapping[str, Scalar],
    *,
    to: Node | None = None,
    kinds: Sequence[ClaimKind] = CLAIM_KINDS,
) -> tuple[ScopeAnswer, ...]:
    """Say, for each kind of claim, whether it carries to another context.

    Args:
        reader: the store or pack.
        index: its graph, up to date.
        node: whose claims are asked about; see :func:`stand`.
        where: dimensions of the context; everything else is taken to be as it is there.
        to: something else that stands somewhere: then all dimensions of both are compared, after ``where``
            was put over those of ``to``.
        kinds: kinds of claim to answer for.

    Returns:
        One answer a kind, and where the packet has several claims, one a claim for what depends on how they
        were counted.

    Raises:
        UsageError: neither a context nor another place was given.
        NotFoundError, IntegrityError: a packet is not here, or damaged.
    """
    if not where and to is None:
        raise UsageError(
            "scope needs --where NAME=VALUE, --to B or --this-host: where should the claim carry to?"
        )
    here = stand(reader, index, node)
    other = stand(reader, index, to) if to is not None else None
    there = moved({} if other is None else other.place, where)
    answers = []
    for kind in kinds:
        for question, shown in _questions(kind, here, other, there):
            answers.append(_answer(here, question, decide(kind, question, here.rules), shown))
    return tuple(answers)


def _questions(
    kind: ClaimKind, here: Stand, other: Stand | None, there: Mapping[str, Known]
) -> Iterator[tuple[Question, str]]:
    """Yield what is asked for one kind, and the claims that are meant: for accounting one after the other."""
    whole = other is not None
    if kind != "accounting" or not here.claims:
        shown = "; ".join(text for _, _, text in here.claims) if kind == "performance" else ""
        yield Question(here.place, there, whole, here.undone, here.shaken), shown
        return
    for name, convention, shown in here.claims:
        place = {**here.place, "convention": Known(convention, here.node.key, f"claim {name}")}
        counted = dict(there)
        conventions = {} if other is None else {found: label for label, found, _ in other.claims}
        if other is not None and "convention" not in there and conventions:
            match = convention if convention in conventions else min(conventions)
            counted["convention"] = Known(match, other.node.key, f"claim {conventions[match]}")
        yield Question(place, counted, whole, here.undone, here.shaken), shown


def _answer(here: Stand, question: Question, decision: Decision, of: str) -> ScopeAnswer:
    target = dict(question.there) if question.whole else {**question.here, **question.there}
    measured = decision.claim in ("performance", "exactness", "treatment")
    near = None
    if measured and decision.answer != "transfers":
        near = nearest(target, _candidates(here), question.there)
    rule = next((rule for rule in here.rules if rule.name == decision.rule), None)
    return ScopeAnswer(
        claim=decision.claim,
        of=of,
        answer=decision.answer,
        rule=decision.rule,
        because=decision.because,
        stated_by="" if rule is None else rule.stated_by,
        gaps=tuple(_gap(question.here, gap) for gap in decision.gaps),
        free=decision.free,
        assumed=decision.assumed,
        closures=_closures(here, target) if measured else (),
        nearest=None if near is None else _point(near),
        would_change=tuple(_would_change(decision, question)),
        prose=tuple(_prose(here))[:MAX_PROSE],
        notes=here.notes,
    )


def _gap(here: Mapping[str, Known], gap: Gap) -> ScopeGap:
    known = here.get(gap.dimension)
    return ScopeGap(
        dimension=gap.dimension,
        here=gap.here,
        there=gap.there,
        stated_by="" if known is None else known.stated_by,
        location="" if known is None else known.location,
    )


def _candidates(here: Stand) -> Iterator[Measurement]:
    for _, statements in here.families:
        yield from statements.measurements


def _closures(here: Stand, target: Mapping[str, Known]) -> tuple[ScopeClosure, ...]:
    return tuple(
        ScopeClosure(
            state=closure.state,
            reason=closure.reason,
            selectors=closure.selectors,
            stated_by=id,
            location=closure.location,
        )
        for id, statements in here.families
        for closure in statements.closures
        if covers(closure, target)
    )


def values(samples: Iterable[Sample]) -> tuple[str, ...]:
    """Return samples as texts for people; numbers as their source prints them."""
    return tuple(f"{s.metric} = {s.value} {s.unit}".rstrip() for s in samples)


def _point(near: Near) -> ScopePoint:
    samples = [s for s in near.measurement.samples if near.point_x is None or s.point_x == near.point_x]
    return ScopePoint(
        measurement=str(Node("measurement", near.measurement.key)),
        state=near.measurement.state,
        values=values(samples),
        differing=tuple(f"{gap.dimension}: {gap.there}" for gap in near.differing),
        unstated=near.unstated,
    )


def _would_change(decision: Decision, question: Question) -> Iterator[str]:
    """Yield evidence that would change an answer."""
    if decision.rule == "does-not-stand":
        yield "a new run that passes, sealed with this packet as its parent"
        return
    if decision.rule == "rests-on-undone":
        yield "evidence that stands, for what rests on what was taken back"
        return
    if decision.rule == "no-rule":
        yield f"a [[scope.rule]] for {decision.claim} in the packet's spec, with the dimensions it needs"
        return
    differing = [f"{gap.dimension}={gap.there}" for gap in decision.gaps if gap.differs]
    if differing and decision.claim == "accounting":
        yield "the same rows counted in the other convention, with prov metrics"
    elif differing:
        yield f"a packet measured at {', '.join(differing)}, everything else as here, that passes its policy"
    for gap in decision.gaps:
        if not gap.differs and question.here.get(gap.dimension, _ASKED).others:
            yield f"a note that corrects one of the documents that disagree on {gap.dimension}"
        elif gap.here is None:
            yield f"a statement of {gap.dimension} for this packet: in its spec, or in a document it rests on"
        elif gap.there is None:
            yield f"a statement of {gap.dimension} for the other place"


def _prose(here: Stand) -> Iterator[ScopeProse]:
    for id, statements in here.families:
        for sentence in statements.scope:
            yield ScopeProse(
                direction=sentence.direction, text=sentence.text, stated_by=id, location=sentence.location
            )
