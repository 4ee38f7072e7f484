"""Judging: a verdict over a packet under a policy, kept as a record, and the explanation of a gate."""

from typing import Final, NamedTuple

from blake3 import blake3

from provstore import __version__, records
from provstore.errors import IntegrityError, MalformedError, NotFoundError, NotHeldError
from provstore.gates.policy import Policy, load_policy
from provstore.gates.verdict import judge_all
from provstore.ids import RawId, digests, to_raw
from provstore.records.verdict import GateOutcome, Judgement, Verdict
from provstore.reports import Check, Explained, ExplainedFact, ExplainReport, Metric, ShownVerdict
from provstore.store import objects
from provstore.store.protocol import Reader, Store
from provstore.verbs.gathering import gather
from provstore.verbs.members import find_member

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


class Judging(NamedTuple):
    """A verdict with everything it was made of.

    Attributes:
        verdict: the record.
        policy: the policy, read.
        policy_data: its bytes.
        facts: id and bytes of each facts record.
    """

    verdict: Verdict
    policy: Policy
    policy_data: bytes
    facts: tuple[tuple[RawId, bytes], ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        """The verdict's findings as checks of a report."""
        return checks_of(self.verdict)

    @property
    def settles(self) -> tuple[str, ...]:
        """Places whose bytes would settle what is unknown now, sorted."""
        return settles(self.verdict)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The verdict's numbers as metrics of a report."""
        return metrics_of(self.verdict)


def judge(reader: Reader, packet: RawId, policy: bytes, *, where: str = "policy") -> Judging:
    """Judge a packet under a policy.

    Args:
        reader: store or pack that holds the packet.
        packet: its id.
        policy: bytes of the policy.
        where: what to call the policy in errors.

    Returns:
        The verdict. Nothing is written; :func:`keep` does that.

    Raises:
        PolicyError: the policy cannot be judged by.
        NotFoundError: there is no such packet.
    """
    loaded = load_policy(policy, where)
    gathered = gather(reader, objects.packet(reader, packet), loaded)
    judged = judge_all(loaded, gathered.evidence)
    verdict = Verdict(
        packet=packet.hex(),
        policy=digests(policy).blake3.hex(),
        policy_name=loaded.name,
        policy_version=loaded.version,
        policy_date=loaded.date,
        tool=f"provstore {__version__}",
        outcome=judged.outcome,
        gates=judged.gates,
        metrics=judged.metrics,
        facts=tuple(id.hex() for id, _ in gathered.records),
    )
    return Judging(verdict, loaded, policy, gathered.records)


def policy_of(reader: Reader, packet: RawId, role: str) -> bytes:
    """Return the policy that a packet carries under a role.

    Raises:
        NotFoundError: it has no such member.
        NotHeldError: its bytes are not here.
    """
    fetch = objects.fetcher(reader)
    member, _ = find_member(fetch, objects.packet(reader, packet), role)
    return objects.read_member(reader, member.node.blake3, member.node.sha256, member.entry.custody)


def keep(store: Store, judging: Judging) -> RawId:
    """Keep a verdict with its policy and facts beside the earlier ones of the packet; return its id."""
    id, data = records.encode(judging.verdict)
    packet = to_raw(judging.verdict.packet)
    with store.stage() as stage:
        found = digests(judging.policy_data)
        if not stage.has_object(found.blake3):
            stage.add_object(found, judging.policy_data)
        for fact_id, fact in (*judging.facts, (id, data)):
            if not stage.has_record(fact_id):
                stage.add_record(fact_id, fact)
        ids = verdict_ids(store, packet)
        if id not in ids:
            stage.add_cached({_key(packet): b"".join((*ids, id))})
        stage.commit()
    return id


def _key(packet: RawId) -> bytes:
    return blake3(b"verdicts " + packet).digest(16)


def verdict_ids(reader: Reader, packet: RawId) -> tuple[RawId, ...]:
    """Return the ids of the verdicts that were kept for a packet, oldest first."""
    data = reader.cached(_key(packet)) or b""
    ids = tuple(data[at : at + 32] for at in range(0, len(data) - 31, 32))
    return tuple(id for id in ids if reader.record(id) is not None)


def verdicts(reader: Reader, packet: RawId) -> tuple[ShownVerdict, ...]:
    """Return every kept verdict of a packet, oldest first.

    Raises:
        IntegrityError: a verdict is damaged.
    """
    found = []
    for id in verdict_ids(reader, packet):
        record = records.decode(objects.record(reader, id), id.hex())
        if isinstance(record, Verdict) and record.packet == packet.hex():
            found.append(shown(record, id.hex()))
    return tuple(found)


def shown(verdict: Verdict, id: str) -> ShownVerdict:
    """Return one verdict as a line of a card."""
    bad = [gate for gate in verdict.gates if gate.outcome not in ("PASS", "NOT-APPLICABLE")]
    return ShownVerdict(
        id=id,
        policy=verdict.policy,
        name=verdict.policy_name,
        version=verdict.policy_version,
        date=verdict.policy_date,
        tool=verdict.tool,
        outcome=verdict.outcome,
        gates=len(verdict.gates),
        findings=tuple(f"{gate.outcome} {gate.gate}: {', '.join(_codes(gate))}" for gate in bad),
    )


def _codes(gate: GateOutcome) -> list[str]:
    return list(dict.fromkeys(j.code for j in gate.judgements if j.outcome not in ("PASS", "NOT-APPLICABLE")))


def checks_of(verdict: Verdict) -> tuple[Check, ...]:
    """Return a check for each finding of each gate."""
    found = []
    for gate in verdict.gates:
        for judgement in gate.judgements:
            place = judgement.facts[0] if judgement.facts else None
            where = (
                None if place is None else " ".join(part for part in (place.place, place.location) if part)
            )
            found.append(
                Check(
                    check="gate",
                    outcome=judgement.outcome,
                    code=judgement.code,
                    role=gate.gate,
                    path="" if gate.required else "(not required)",
                    expected=judgement.expected,
                    found=judgement.found,
                    location=where if judgement.outcome != "PASS" else None,
                    message=judgement.message,
                )
            )
    return tuple(found)


def settles(verdict: Verdict) -> tuple[str, ...]:
    """Return the places whose bytes would settle what a verdict could not decide, sorted."""
    found = {
        judgement.expected
        for gate in verdict.gates
        for judgement in gate.judgements
        if judgement.code == "evidence-absent" and judgement.expected
    }
    return tuple(sorted(found))


def metrics_of(verdict: Verdict) -> tuple[Metric, ...]:
    """Return the numbers that were recomputed, each convention once."""
    found = {(m.convention, m.value): m for m in reversed(verdict.metrics) if m.value}
    return tuple(
        Metric(name=m.name, convention=m.convention, value=m.value, unit=m.unit)
        for m in reversed(found.values())
    )


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
        outcome=outcome.outcome,
        rule=rule.replace("``", "`"),
        why=own.rule if own else "",
        parameters=_parameters(own),
        findings=tuple(_explained(judgement, lines) for judgement in outcome.judgements),
    )


_CLAIM_RULE: Final = (
    "What a packet claims is recomputed under the convention that it names; its evidence must be here, and "
    "counts that it adds must have been compared. Readers must have taken everything as stated."
)


def _parameters(own: object) -> tuple[str, ...]:
    fields = getattr(own, "__struct_fields__", ())
    hidden = ("name", "required", "rule")
    return tuple(f"{field} = {getattr(own, field)!r}" for field in fields if field not in hidden)


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
        next="" if passed else NEXT.get(judgement.code, "look at the named line, then at who wrote it"),
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
