"""Explaining one gate: its rule, the facts that it looked at, and the lines that state them."""

from collections.abc import Sequence
from typing import Final

import msgspec

from provstore.errors import IntegrityError, MalformedError, NotFoundError, NotHeldError
from provstore.gates.kinds import Gate
from provstore.ids import RawId, to_raw
from provstore.records.verdict import Judgement
from provstore.reports import Explained, ExplainedFact, ExplainReport, Verdict
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.judging import judge
from provstore.verbs.keeping import verdicts

MAX_LINE: Final = 2000
"""Characters of a line of evidence that an explanation quotes."""

NEXT: Final = {
    "evidence-absent": "bring the bytes: pull, unpack or seal the packet where the named member is held",
    "evidence-ambiguous": "narrow the role of the extractor until it fits one member",
    "fact-absent": "look into the named member; if it states the fact elsewhere, correct the policy",
    "claim-limit": "drop the count from the claim, or add the gate that compares what it counts",
    "metric-convention": "state the claim under the convention that gives its number",
    "not-bit-equal": "a tolerance is stated in the policy; without one, doubles must be equal",
    "missing-object": "find the listed file where the run was made, and seal again",
    "extra-entry": "find out who wrote the file after the manifest was made",
    "content-changed": "compare the file with its copy where the run was made",
    "evidence-mismatch": "compare both named places",
    "treatment-cardinality": "check that the marker is logged by every rank, not once for each host",
    "rank-set": "look at the log of the absent ranks",
    "token-diff": "compare both outputs from the named token on",
}
"""What to look at next, by the code of a finding."""


def explain(
    reader: Reader, packet: RawId, policy: bytes, gate: str, *, where: str = "policy"
) -> ExplainReport:
    """Explain one gate: its rule, the facts it looked at, and the lines of the files they came from.

    Args:
        reader: store or pack that holds the packet.
        packet: its id.
        policy: bytes of the policy.
        gate: name of the gate, or of a claim.
        where: what to call the policy in errors.

    Raises:
        PolicyError: the policy cannot be judged by.
        NotFoundError: there is no such packet or gate.
    """
    judging = judge(reader, packet, policy, where=where)
    outcome = next((found for found in judging.verdict.gates if found.gate == gate), None)
    if outcome is None:
        names = ", ".join(repr(found.gate) for found in judging.verdict.gates)
        raise NotFoundError(gate, f"the policy has no gate of this name; it has {names}")
    own = judging.policy.find(gate)
    rule = " ".join((type(own).__doc__ or "").split("Attributes:")[0].split()) if own else _CLAIM_RULE
    lines = _LineReader(reader)
    return ExplainReport(
        packet=packet.hex(),
        policy=judging.verdict.policy,
        gate=gate,
        kind=outcome.kind,
        required=outcome.required,
        outcome=_meaning(outcome.outcome) if outcome.required else "PASS",
        found=outcome.outcome,
        rule=rule.replace("``", "`"),
        why=own.rule if own else "",
        parameters=_parameters(own),
        findings=tuple(_explained(judgement, lines) for judgement in outcome.judgements),
    )


def explain_each(
    reader: Reader, packet: RawId, policies: Sequence[tuple[str, bytes]], gate: str
) -> list[ExplainReport]:
    """Explain one gate under each policy that has it, the worst outcome first.

    Args:
        reader: store or pack that holds the packet.
        packet: its id.
        policies: what to call each policy, and its bytes; at least one.
        gate: name of the gate, or of a claim.

    Raises:
        PolicyError: a policy cannot be judged by.
        NotFoundError: there is no such packet, or no policy has the gate.
    """
    found = []
    absent: list[NotFoundError] = []
    for where, data in policies:
        try:
            found.append(explain(reader, packet, data, gate, where=where))
        except NotFoundError as error:
            absent.append(error)
    if not found:
        raise absent[0]
    return sorted(found, key=lambda report: (_BADNESS[report.outcome], _BADNESS[_meaning(report.found)]))


_BADNESS: Final[dict[Verdict, int]] = {"FAIL": 0, "INCOMPLETE": 1, "PASS": 2}


def _meaning(outcome: str) -> Verdict:
    return _MEANING.get(outcome, "PASS")


_AT_THE_LINE: Final = "look at the named place, then at who wrote it"
_AT_THE_POLICY: Final = "the run does not state it; the policy decides whether it may be missing"


def latest_policy(reader: Reader, packet: RawId) -> list[tuple[str, bytes]]:
    """Return name and bytes of the policy of the latest kept verdict.

    Raises:
        NotFoundError: no verdict was kept.
    """
    kept = verdicts(reader, packet)
    if not kept:
        raise NotFoundError("policy", "the packet carries none, and no verdict of it was kept; give --policy")
    verdict = kept[-1][1]
    return [(f"{verdict.policy_name} {verdict.policy_version}", objects.read(reader, to_raw(verdict.policy)))]


_MEANING: Final[dict[str, Verdict]] = {"FAIL": "FAIL", "INELIGIBLE": "FAIL", "UNKNOWN": "INCOMPLETE"}

_CLAIM_RULE: Final = (
    "What a packet claims is recomputed under the convention that it names; its evidence must be here, and "
    "counts that it adds must have been compared. Readers must have taken everything as stated."
)


def _parameters(own: Gate | None) -> tuple[str, ...]:
    """Return what the policy gave a gate, without what it left as it is by default."""
    if own is None:
        return ()
    given = [
        (field.name, getattr(own, field.name))
        for field in msgspec.structs.fields(own)
        if field.name not in ("name", "required", "rule") and getattr(own, field.name) != field.default
    ]
    return tuple(f"{name} = {value!r}" for name, value in given if value not in ({}, ()))


def _explained(judgement: Judgement, lines: "_LineReader") -> Explained:
    facts = tuple(
        ExplainedFact(
            place=fact.place,
            key=fact.key,
            value=fact.value,
            object=fact.object,
            location=fact.location,
            line=lines.line(fact.object, fact.location),
        )
        for fact in judgement.facts
    )
    passed = judgement.outcome in ("PASS", "NOT-APPLICABLE")
    return Explained(
        outcome=judgement.outcome,
        code=judgement.code,
        message=judgement.message,
        expected=judgement.expected,
        found=judgement.found,
        facts=facts,
        next="" if passed else NEXT.get(judgement.code, _AT_THE_LINE if facts else _AT_THE_POLICY),
    )


class _LineReader:
    """Quotes lines of objects; reads each object once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lines: dict[str, list[bytes] | None] = {}

    def line(self, object: str, location: str) -> str:
        """Return the line that a location names, or nothing where it names none or the bytes are not here."""
        word, _, number = location.partition(" ")
        if word != "line" or not number.isdigit() or not object:
            return ""
        if object not in self._lines:
            try:
                self._lines[object] = objects.read(self._reader, to_raw(object)).split(b"\n")
            except (NotFoundError, NotHeldError, IntegrityError, MalformedError):
                self._lines[object] = None
        lines = self._lines[object]
        if lines is None or int(number) > len(lines):
            return ""
        text = lines[int(number) - 1][:MAX_LINE].decode("utf-8", "backslashreplace")
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
