"""Judging: a verdict over a packet under a policy, kept as a record, and the explanation of a gate."""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from provstore import __version__
from provstore.errors import IntegrityError, MalformedError, NotFoundError, NotHeldError
from provstore.ids import RawId, digests
from provstore.records.packet import Entry
from provstore.records.verdict import Verdict
from provstore.reports import Check, Metric, VerifyReport
from provstore.store import objects
from provstore.store.protocol import Reader, Store
from provstore.verbs import keeping, seldom
from provstore.verbs.members import find_member

Path = str | bytes | os.PathLike[str]


class Judging(NamedTuple):
    """A verdict with everything it was made of.

    Attributes:
        verdict: the record.
        policy: the policy, read.
        policy_data: its bytes.
        facts: id and bytes of each facts record.
        roles: roles of the packet.
    """

    verdict: Verdict
    policy: "seldom.Policy"
    policy_data: bytes
    facts: tuple[tuple[RawId, bytes], ...]
    roles: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """The verdict's findings as checks of a report."""
        return checks_of(self.verdict, self.roles) + _reason(self.verdict, self.policy)

    @property
    def settles(self) -> tuple[str, ...]:
        """Places whose bytes would settle what is unknown now, sorted."""
        return settles(self.verdict)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The verdict's numbers as metrics of a report."""
        return metrics_of(self.verdict)


def judge(
    reader: Reader, packet: RawId, policy: bytes, *, where: str = "policy", at: Sequence[Path] = ()
) -> Judging:
    """Judge a packet under a policy.

    Args:
        reader: store or pack that holds the packet.
        packet: its id.
        policy: bytes of the policy.
        where: what to call the policy in errors.
        at: directories where members may lie that are kept outside.

    Returns:
        The verdict. Nothing is written; :func:`keep` does that.

    Raises:
        PolicyError: the policy cannot be judged by.
        NotFoundError: there is no such packet.
    """
    loaded = _loaded(bytes(policy), where)
    found = objects.packet(reader, packet)
    gathered = seldom.gather(reader, found, loaded, [os.path.abspath(os.fsencode(place)) for place in at])
    judged = seldom.judge_all(loaded, gathered.evidence)
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
    return Judging(verdict, loaded, policy, gathered.records, tuple(entry.role for entry in found.entries))


@lru_cache(maxsize=8)
def _loaded(data: bytes, where: str) -> "seldom.Policy":
    """Read a policy; it judges many packets, is read once and is never changed."""
    return seldom.load_policy(data, where)


_WORST: Final = {"PASS": 0, "INCOMPLETE": 1, "FAIL": 2}


_UNUSABLE: Final = (IntegrityError, MalformedError, NotFoundError, NotHeldError)
"""What keeps a policy that a packet carries from being judged by."""


def _reason(verdict: Verdict, policy: "seldom.Policy") -> tuple[Check, ...]:
    """Say why an outcome is INCOMPLETE where no finding does: a policy that requires nothing cannot pass."""
    own = {gate.name for gate in policy.gate if gate.needed}
    told = any(gate.required and gate.outcome == "UNKNOWN" for gate in verdict.gates)
    if verdict.outcome != "INCOMPLETE" or (own and told):
        return ()
    about = f"policy {verdict.policy_name} {verdict.policy_version}"
    if own:
        code, message = "no-gate-applied", f"no gate that {about} requires applies to this packet"
    else:
        code, message = "no-required-gate", f"no gate of {about} is required, so it can pass nothing"
    return (Check(check="gate", outcome="UNKNOWN", code=code, message=message),)


def judged(
    report: VerifyReport,
    judgings: Sequence[Judging],
    ids: Sequence[str] = (),
    unusable: Sequence[Check] = (),
) -> VerifyReport:
    """Return a report on integrity and closure with what policies say added; never a better outcome.

    Args:
        report: what was found about the bytes.
        judgings: what each policy says.
        ids: ids under which the verdicts are kept; missing ones are not kept.
        unusable: a finding for each policy that could not be judged by.
    """
    names = [*ids, *[""] * len(judgings)]
    outcomes = [report.outcome, *(judging.verdict.outcome for judging in judgings)]
    outcomes += ["INCOMPLETE"] * bool(unusable)
    numbers = {(m.convention, m.value): m for judging in judgings for m in judging.metrics}
    return msgspec.structs.replace(
        report,
        outcome=max(outcomes, key=_WORST.__getitem__),
        checks=(*report.checks, *(check for judging in judgings for check in judging.checks), *unusable),
        metrics=report.metrics + tuple(numbers.values()),
        verdicts=tuple(keeping.shown(j.verdict, id) for j, id in zip(judgings, names, strict=False)),
        settles=tuple(sorted({place for judging in judgings for place in judging.settles})),
    )


def unjudged(reader: Reader, packet: RawId, report: VerifyReport) -> VerifyReport:
    """Return a report that says which claims nobody judged, because there was no policy."""
    claims = objects.packet(reader, packet).claims
    if not claims:
        return report
    names = ", ".join(claim.name for claim in claims)
    check = Check(
        check="claims",
        outcome="NOT-APPLICABLE",
        code="claims-not-judged",
        message=f"no policy was given, so no claim was recomputed: {names}",
    )
    return msgspec.structs.replace(report, checks=(*report.checks, check))


def _own(reader: Reader, packet: RawId) -> list[Entry]:
    """Return the entries of a packet that are policies and state what their bytes are."""
    entries = objects.packet(reader, packet).entries
    return [e for e in entries if e.kind == "policy" and e.blake3 is not None and e.custody != "declared"]


def own_policies(reader: Reader, packet: RawId) -> list[tuple[str, bytes]]:
    """Return role and bytes of every policy that a packet carries.

    Raises:
        NotHeldError: the bytes of one are not here.
        IntegrityError: the bytes of one are damaged.
    """
    return [
        (entry.role, objects.read_member(reader, entry.blake3, entry.sha256, entry.custody))
        for entry in _own(reader, packet)
    ]


def judge_own(
    reader: Reader, packet: RawId, *, at: Sequence[Path] = ()
) -> tuple[list[Judging], tuple[Check, ...]]:
    """Judge a packet under every policy that it carries.

    Args:
        reader: store or pack that holds the packet.
        packet: its id.
        at: directories where members may lie that are kept outside.

    Returns:
        A verdict for each policy that can be judged by, and an UNKNOWN check for each other one: what a
        packet carries may be absent or damaged, and must not hide what is found about the rest.
    """
    judgings = []
    unusable = []
    for entry in _own(reader, packet):
        try:
            data = objects.read_member(reader, entry.blake3, entry.sha256, entry.custody)
            judgings.append(judge(reader, packet, data, where=entry.role, at=at))
        except _UNUSABLE as error:
            message = f"nothing was judged by this policy of the packet: {error.message}"
            unusable.append(
                Check(check="gate", outcome="UNKNOWN", code=error.code, role=entry.role, message=message)
            )
    return judgings, tuple(unusable)


def set_aside(reader: Reader, packet: RawId, report: VerifyReport) -> VerifyReport:
    """Return a report on a part or a directory that says which policies of the packet were not judged."""
    roles = [entry.role for entry in objects.packet(reader, packet).entries if entry.kind == "policy"]
    if not roles:
        return report
    check = Check(
        check="gate",
        outcome="NOT-APPLICABLE",
        code="policies-not-judged",
        message=f"policies judge a whole packet, so its own were not judged: {', '.join(roles)}",
    )
    return msgspec.structs.replace(report, checks=(*report.checks, check))


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
    return keeping.keep(store, judging.verdict, judging.policy_data, judging.facts)


def checks_of(verdict: Verdict, roles: Sequence[str] = ()) -> tuple[Check, ...]:
    """Return a check for each finding of each gate.

    Args:
        verdict: the verdict.
        roles: roles of the packet, which tell a place's role from its path.
    """
    found = []
    for gate in verdict.gates:
        for judgement in gate.judgements:
            fact = judgement.facts[0] if judgement.facts and judgement.outcome != "PASS" else None
            place = fact.place if fact else ""
            role = next((r for r in roles if place == r or place.startswith(r + "/")), place)
            found.append(
                Check(
                    check="gate",
                    outcome=judgement.outcome,
                    code=judgement.code,
                    role=role,
                    path=place[len(role) + 1 :],
                    expected=judgement.expected,
                    found=judgement.found,
                    location=fact.location or None if fact else None,
                    message=judgement.message,
                    gate=gate.gate,
                    required=gate.required,
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
