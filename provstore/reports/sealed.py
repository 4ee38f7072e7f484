"""Results of seal, restore, pack, unpack and prove: what was made."""

from provstore.reports.base import Report
from provstore.reports.verified import Missing


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
