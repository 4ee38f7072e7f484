"""Results of ls, show, log and stats: what is there."""

from typing import Literal

import msgspec

from provstore.reports.base import Report
from provstore.reports.judged import ShownVerdict


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
        verdicts: verdicts that were kept for it, oldest first; empty unless they were asked for.
        scope: where it stands, by dimension.
        scope_rules: what must be preserved for its claims to carry over, one text a rule.
        described_as: what other documents call it.
        ledger: of a run, hex id of the newest entry of the ledger when it was sealed.
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
    verdicts: tuple[ShownVerdict, ...] = ()
    scope: dict[str, str | int | bool] = msgspec.field(default_factory=dict)
    scope_rules: tuple[str, ...] = ()
    described_as: tuple[str, ...] = ()
    ledger: str | None = None


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
