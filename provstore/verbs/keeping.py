"""Keeping verdicts: beside each other, found by their packet, never in place of an earlier one."""

from collections.abc import Iterable

from provstore import records
from provstore.errors import IntegrityError, MalformedError, StoreDamagedError
from provstore.ids import RawId, digests, to_raw
from provstore.records.verdict import GateOutcome, Verdict
from provstore.reports import ShownVerdict
from provstore.store import objects
from provstore.store.protocol import Reader, Store


def keep(store: Store, verdict: Verdict, policy: bytes, facts: Iterable[tuple[RawId, bytes]] = ()) -> RawId:
    """Keep a verdict, the policy that it is under, and the facts that extractors gave.

    Args:
        store: the store that holds the packet.
        verdict: the verdict.
        policy: bytes of the policy.
        facts: id and bytes of each facts record.

    Returns:
        The verdict's id; keeping an equal verdict again changes nothing.
    """
    id, data = records.encode(verdict)
    packet = to_raw(verdict.packet)
    ids = verdict_ids(store, packet)
    if id in ids:
        return id
    with store.stage() as stage:
        found = digests(policy)
        if not stage.has_object(found.blake3):
            stage.add_object(found, policy)
        for record_id, record in (*facts, (id, data)):
            if not stage.has_record(record_id):
                stage.add_record(record_id, record)
        stage.add_verdict(packet, id)
        stage.commit()
    return id


def verdict_ids(reader: Reader, packet: RawId) -> tuple[RawId, ...]:
    """Return the ids of the verdicts that were kept for a packet, oldest first."""
    return tuple(id for id in reader.verdicts(packet) if is_here(reader, id))


def is_here(reader: Reader, id: RawId) -> bool:
    """Say whether a record is in the store, be it whole or damaged."""
    try:
        return reader.record(id) is not None
    except (IntegrityError, MalformedError, StoreDamagedError):
        return True


def verdicts(reader: Reader, packet: RawId) -> tuple[tuple[RawId, Verdict], ...]:
    """Return every kept verdict of a packet, oldest first.

    Raises:
        IntegrityError: a verdict is damaged.
    """
    found = []
    for id in verdict_ids(reader, packet):
        record = records.decode(objects.record(reader, id), id.hex())
        if isinstance(record, Verdict) and record.packet == packet.hex():
            found.append((id, record))
    return tuple(found)


def shown_verdicts(reader: Reader, packet: RawId) -> tuple[ShownVerdict, ...]:
    """Return every kept verdict of a packet, oldest first.

    Raises:
        IntegrityError: a verdict is damaged.
    """
    return tuple(shown(verdict, id.hex()) for id, verdict in verdicts(reader, packet))


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
