"""Frozen results of the verbs; their JSON form is what ``--json`` prints.

Digests are 64 hex digits. Paths are in the shown form of :func:`provstore.paths.show`: reversible, and
without control characters.
"""

from typing import Literal

import msgspec

Outcome = Literal["PASS", "FAIL", "UNKNOWN", "NOT-APPLICABLE", "INELIGIBLE", "WARN"]
"""Of one check. ``UNKNOWN`` means not checked: evidence absent or out of reach; it is never a pass."""

Verdict = Literal["PASS", "FAIL", "INCOMPLETE"]
"""Of a whole report: never better than its worst required check."""


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all reports."""


class Excluded(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A path that was left out: its shown form, and the rule that did so."""

    path: str
    rule: str


class EntrySummary(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a packet: what it is, where its bytes are, and how much."""

    role: str
    kind: str
    custody: str
    files: int
    size_bytes: int | None
    id: str | None


class SealReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a seal made.

    Attributes:
        packet: id of the packet.
        name: ref that names it now.
        entries: its entries, in the order of roles.
        files: members that are files, over all entries.
        objects: objects that were new to the store.
        records: records that were new to the store.
        bytes_read: bytes read from files, each byte once; 0 when nothing changed since the last seal.
        bytes_hashed: bytes that went through the hashes; equal to ``bytes_read``.
        bytes_stored: bytes written for new objects and records, as stored.
        transactions: index transactions.
        syncs: waits for the disk.
        excluded: paths that were left out, with the rule.
        observations: circumstances that are no part of the identity: variables, sources, notes.
    """

    packet: str
    name: str
    entries: tuple[EntrySummary, ...]
    files: int
    objects: int
    records: int
    bytes_read: int
    bytes_hashed: int
    bytes_stored: int
    transactions: int
    syncs: int
    excluded: tuple[Excluded, ...]
    observations: dict[str, dict[str, str] | tuple[str, ...]]


class Check(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that was looked at.

    Attributes:
        check: what was checked: ``integrity``, ``closure``, ``against``, ``checksums``, ``gate``.
        outcome: see :data:`Outcome`.
        code: stable name of the finding; ``ok`` for a pass.
        role: entry that it concerns; empty for the packet itself or a plain directory.
        path: member of the entry, shown form; empty for the entry as a whole.
        expected: what should be there.
        found: what is there.
        location: where to look: a file, a line, an offset.
        message: one sentence for people.
    """

    check: str
    outcome: Outcome
    code: str
    role: str = ""
    path: str = ""
    expected: str | None = None
    found: str | None = None
    location: str | None = None
    message: str = ""


class Metric(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recomputed number with the convention it was counted by."""

    name: str
    convention: str
    value: str
    unit: str


class Missing(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes that a packet refers to and that are not held here."""

    role: str
    path: str
    custody: str
    blake3: str | None
    sha256: str | None
    size_bytes: int | None
    origins: tuple[str, ...] = ()


class VerifyReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was found about a packet or a checksum file.

    Attributes:
        packet: id of the packet; empty for a checksum file.
        outcome: the verdict over all required checks.
        checks: passes summed up per entry, everything else one by one.
        metrics: recomputed values.
        missing: what could not be looked at because its bytes are not here.
        objects_checked: objects whose bytes were re-hashed.
        bytes_checked: number of those bytes.
    """

    packet: str
    outcome: Verdict
    checks: tuple[Check, ...]
    metrics: tuple[Metric, ...] = ()
    missing: tuple[Missing, ...] = ()
    objects_checked: int = 0
    bytes_checked: int = 0


class Listed(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One member in a listing; ``size`` in bytes."""

    path: str
    type: Literal["file", "executable", "symlink", "directory"]
    size: int | None
    blake3: str | None
    sha256: str | None
    role: str
    kind: str
    custody: str
    target: str | None = None
    state: str | None = None


class Side(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One side of a change: type, content and size of a member."""

    type: str
    blake3: str | None = None
    sha256: str | None = None
    size: int | None = None
    target: str | None = None


class MemberChange(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A member that only one side has, or that both have differently.

    Attributes:
        role: entry.
        path: member of the entry; empty for the entry itself.
        from_: the member on the first side.
        to: the member on the second side.
        note: what a person would miss otherwise, such as an equal build-id over different bytes.
    """

    role: str
    path: str
    from_: Side | None = msgspec.field(name="from")
    to: Side | None
    note: str = ""


class FactChange(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact of an entry that differs between two packets; None where one side does not state it."""

    role: str
    path: str
    key: str
    from_: str | None = msgspec.field(name="from")
    to: str | None


class KeptFact(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact that both sides state alike, beside others that differ."""

    role: str
    path: str
    key: str
    value: str


class DiffReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs between two packets, packs or directories.

    Attributes:
        same: nothing differs that the sides state.
        sentence: the difference in one sentence.
        added: members that only the second side has.
        removed: members that only the first side has.
        changed: members that both have, differently.
        identity: differing facts about bytes: commits, packages, build-ids, digests.
        environment: differing facts about the host and its variables.
        result: differing facts about what was measured.
        kept: number of members that are equal.
        kept_roles: entries that are wholly equal.
        kept_facts: facts that stayed, of entries in which other facts changed.
        notes: what was not compared, and why.
    """

    same: bool
    sentence: str
    added: tuple[MemberChange, ...]
    removed: tuple[MemberChange, ...]
    changed: tuple[MemberChange, ...]
    identity: tuple[FactChange, ...]
    environment: tuple[FactChange, ...]
    result: tuple[FactChange, ...]
    kept: int
    kept_roles: tuple[str, ...]
    kept_facts: tuple[KeptFact, ...] = ()
    notes: tuple[str, ...] = ()


class RestoreReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was written below a directory."""

    packet: str
    target: str
    files: int
    size_bytes: int
    missing: tuple[Missing, ...] = ()


class PackReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pack that was written: its path, the packets in it and its size."""

    path: str
    packets: tuple[str, ...]
    objects: int
    records: int
    size_bytes: int
    left_out: int


class UnpackReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came into a store out of a pack."""

    packets: tuple[str, ...]
    names: tuple[str, ...]
    objects: int
    records: int
    bytes_stored: int


class ProveReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An inclusion proof that was written."""

    packet: str
    role: str
    path: str
    blake3: str | None
    size_bytes: int
    records: int
    output: str


class ShownEntry(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry on a packet's card."""

    role: str
    kind: str
    custody: str
    files: int
    size_bytes: int | None
    tree: str | None
    blake3: str | None
    sha256: str | None
    origins: tuple[str, ...]
    pins: tuple[str, ...]
    exclude: tuple[str, ...]
    follow_symlinks: bool
    facts: tuple[str, ...]


class ShownClaim(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One claim on a packet's card."""

    name: str
    value: str
    unit: str
    metric: str
    convention: str
    evidence: tuple[str, ...]
    limits: tuple[str, ...]


class ShowReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The card of a packet.

    Attributes:
        packet: its id.
        name: the name inside it, if it has one.
        refs: refs that name it now.
        entries: what it holds; their facts as ``key = value`` lines, the first ones of each.
        claims: values it stands for.
        parents: packets it continues.
        files: number of files.
        size_bytes: sum of the known sizes.
        observations: circumstances of the seals that made it, where known.
    """

    packet: str
    name: str | None
    refs: tuple[str, ...]
    entries: tuple[ShownEntry, ...]
    claims: tuple[ShownClaim, ...]
    parents: tuple[str, ...]
    files: int
    size_bytes: int
    observations: tuple[str, ...] = ()


class Damage(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object or record whose bytes are wrong or gone, and each place that refers to it."""

    id: str
    role: str
    packet: str
    reason: str
    path: str = ""


class FsckReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a check of a whole store found.

    Attributes:
        objects: objects whose bytes were re-hashed.
        records: records that were re-hashed and decoded.
        bytes: number of bytes that were re-hashed.
        damaged: one for each damaged thing and packet; ``role`` and ``packet`` are empty when nothing
            refers to it.
        unreferenced: objects and records that no ref reaches; ``gc`` removes them.
        leftovers: temporary files of killed writers.
    """

    objects: int
    records: int
    bytes: int
    damaged: tuple[Damage, ...]
    unreferenced: int = 0
    leftovers: int = 0


class GcReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What garbage collection found, and removed when ``deleted``."""

    deleted: bool
    objects: int
    records: int
    size_bytes: int
    kept_objects: int
    kept_records: int
    leftovers: tuple[str, ...]
    grace_s: int


class StatsReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of a store."""

    store: str
    objects: int
    records: int
    refs: int
    plain_bytes: int
    stored_bytes: int
    blob_files: int
    readers: int
    stale_readers: int


class RefStep(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step of a ref's history; ``time`` is UTC in RFC 3339 form."""

    name: str
    packet: str | None
    previous: str | None
    time: str
    sequence: int


class Doctored(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of ``prov doctor``: what was looked at and how it is."""

    name: str
    outcome: Outcome
    found: str


class DoctorReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Health of the installation and, if there is one, of the store."""

    outcome: Verdict
    checks: tuple[Doctored, ...]


def worst(checks: tuple[Check, ...]) -> Verdict:
    """Return the verdict over checks: FAIL beats UNKNOWN beats PASS; without any pass it is not PASS.

    Example:
        >>> worst(())
        'INCOMPLETE'
    """
    outcomes = {check.outcome for check in checks}
    if outcomes & {"FAIL", "INELIGIBLE"}:
        return "FAIL"
    if "UNKNOWN" in outcomes or "PASS" not in outcomes:
        return "INCOMPLETE"
    return "PASS"
