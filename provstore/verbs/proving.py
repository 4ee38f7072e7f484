"""Inclusion proofs: a small file that shows one member to be in a packet, without store or payload.

A proof is the chain of records from the packet down to the leaf that names the member. Each record's id
is stated by the one above it, and the first one's id is the packet's, so nothing else is needed.
"""

import os
from typing import Final

import msgspec

from provstore import canon, merkle, records
from provstore.errors import MalformedError, NotFoundError, ProofError
from provstore.files.hashing import hash_file
from provstore.files.publishing import write_new
from provstore.ids import RawId, record_id, to_raw
from provstore.paths import show, unshow
from provstore.records.packet import Packet, check_packet
from provstore.reports import Check, ProveReport, VerifyReport, worst
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.members import Member, find_member

FORMAT: Final = "provstore/proof/v1"

MAX_PROOF_BYTES: Final = 16 << 20


class Proof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file's content.

    Attributes:
        format: ``provstore/proof/v1``.
        packet: hex id of the packet.
        path: ``role/path`` of the member, shown form.
        records: canonical text of each record, from the packet down to the leaf.
    """

    format: str
    packet: str
    path: str
    records: tuple[str, ...]


def prove(reader: Reader, packet: RawId, path: str, output: str | bytes | os.PathLike[str]) -> ProveReport:
    """Write an inclusion proof of one member.

    Args:
        reader: store or pack that holds the packet's records.
        packet: its id.
        path: ``role/path`` in shown form.
        output: the file to write; it must not exist.

    Raises:
        NotFoundError: the packet has no such member.
        TargetError: the file exists.
        InputOutputError: it cannot be written; nothing of it stays.
    """
    found = objects.packet(reader, packet)
    member, trail = find_member(objects.fetcher(reader), found, path)
    chain = [objects.record(reader, packet), *trail]
    proof = Proof(
        format=FORMAT,
        packet=packet.hex(),
        path=show(member.place()),
        records=tuple(data.decode() for data in chain),
    )
    target = os.path.abspath(os.fsencode(output))
    data = canon.encode(proof)
    write_new(target, data)
    return ProveReport(
        packet=packet.hex(),
        role=member.entry.role,
        path=show(member.path),
        blake3=member.node.blake3,
        size_bytes=len(data),
        records=len(chain),
        output=show(target),
    )


def is_proof(data: bytes) -> bool:
    """Say whether bytes look like a proof of any version."""
    return (canon.format_of(data[:MAX_PROOF_BYTES]) or "").startswith("provstore/proof/")


def verify_proof(
    data: bytes, where: str, *, against: str | bytes | os.PathLike[str] | None = None
) -> VerifyReport:
    """Check a proof, with nothing but its own bytes.

    Args:
        data: the proof file.
        where: what to call it.
        against: a file that should be the member.

    Returns:
        A pass means: the packet of this id has a member at this path with these digests.

    Raises:
        ProofError: the bytes are no proof.
    """
    if len(data) > MAX_PROOF_BYTES:
        raise ProofError(where, f"{len(data)} bytes is larger than any proof")
    canon.require_format(data, FORMAT, where)
    proof = canon.decode(data, Proof, where)
    packet_id = to_raw(proof.packet, where)
    checks: list[Check] = []
    try:
        member = _member(proof, packet_id, where)
    except (MalformedError, NotFoundError) as error:
        checks.append(Check(check="proof", outcome="FAIL", code="bad-proof", message=error.message))
    else:
        digest = member.node.blake3 or member.node.sha256 or member.node.kind
        checks.append(
            Check(
                check="proof",
                outcome="PASS",
                code="ok",
                role=member.entry.role,
                path=show(member.path),
                expected=digest,
                found=digest,
                message=f"is in packet {proof.packet}",
            )
        )
        if against is not None:
            checks.append(_held_against(member, against))
    return VerifyReport(packet=proof.packet, outcome=worst(tuple(checks)), checks=tuple(checks))


def _member(proof: Proof, packet_id: RawId, where: str) -> Member:
    if not proof.records:
        raise ProofError(where, "has no records")
    chain = {}
    for text in proof.records:
        data = text.encode()
        chain[record_id(records.kind_of(data, where), data)] = data
    if packet_id not in chain:
        raise ProofError(where, "its records do not lead to the packet it names")

    def fetch(id: RawId) -> bytes:
        if id not in chain:
            raise ProofError(where, f"a record on the way is absent or altered: {id.hex()}")
        return chain[id]

    packet = records.decode(chain[packet_id], where)
    if not isinstance(packet, Packet):
        raise ProofError(where, "its first record is no packet")
    member, trail = find_member(fetch, check_packet(packet, where), proof.path)
    if show(member.place()) != proof.path or unshow(proof.path) != member.place():
        raise ProofError(where, "the path is not written as it is shown")
    if len(trail) + 1 != len(chain):
        raise ProofError(where, "holds records that are not on the way")
    for data in trail:
        merkle.open_node(data, where)
    return member


def _held_against(member: Member, against: str | bytes | os.PathLike[str]) -> Check:
    found = hash_file(against)
    same = member.node.blake3 == found.blake3.hex()
    if member.node.blake3 is None:
        same = member.node.sha256 == found.sha256.hex()
    return Check(
        check="against",
        outcome="PASS" if same else "FAIL",
        code="ok" if same else "changed",
        role=member.entry.role,
        path=show(member.path),
        expected=f"blake3:{member.node.blake3} ({member.node.size_bytes} bytes)",
        found=f"blake3:{found.blake3.hex()} ({found.size_bytes} bytes)",
    )
