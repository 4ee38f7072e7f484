"""Results of verify, fsck, gc and doctor: what was looked at and what was found."""

from typing import Literal

from provstore.reports.base import Outcome, Report, Verdict
from provstore.reports.judged import ShownVerdict


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
        gate: gate or claim that says so, when a policy judged.
        required: the outcome of the whole depends on it.
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
    gate: str = ""
    required: bool = True


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
        verdicts: what each policy says that the packet was judged by.
        settles: places whose bytes would settle what no gate could decide.
    """

    packet: str
    outcome: Verdict
    checks: tuple[Check, ...]
    metrics: tuple[Metric, ...] = ()
    missing: tuple[Missing, ...] = ()
    objects_checked: int = 0
    bytes_checked: int = 0
    verdicts: tuple[ShownVerdict, ...] = ()
    settles: tuple[str, ...] = ()


class Damage(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object or record whose bytes are wrong or gone, and each place that refers to it."""

    id: str
    role: str
    packet: str
    reason: str
    path: str = ""


class Repaired(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that has good bytes again.

    Attributes:
        id: of the object, record or packet.
        kind: what it is; a packet is one that came back into a store whose index was rebuilt.
        source: where the bytes came from.
    """

    id: str
    kind: Literal["object", "record", "packet"]
    source: str


class FsckReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a check of a whole store found.

    Attributes:
        objects: objects whose bytes were re-hashed.
        records: records that were re-hashed and decoded.
        bytes: number of bytes that were re-hashed.
        damaged: one for each damaged thing and packet; ``role`` and ``packet`` are empty when nothing
            refers to it. After a repair, what stays damaged.
        whole: everything there is was looked at, and what packets need is there; not so for a sample or a
            time budget.
        unreferenced: objects and records that no ref reaches, which ``gc`` removes; null if not counted.
        leftovers: temporary files of killed writers.
        cycle: number of the round of checks that a time budget goes on with; null without one.
        remaining: objects and records that this round has not come to yet; null without a time budget.
        oldest_check: UTC time of the check that is longest ago; null without a time budget, and while
            something was never checked.
        repaired: what was replaced by good bytes, and where they came from.
        graph: state of the index of the graph beside the store; after a repair a damaged one is removed, and
            the next question makes it anew. Null if nobody looked.
        kept_as: name of the old index file inside the store after a rebuild, if there was one.
        lost: what a rebuilt index can no longer know.
    """

    objects: int
    records: int
    bytes: int
    damaged: tuple[Damage, ...]
    whole: bool = True
    unreferenced: int | None = None
    leftovers: int = 0
    cycle: int | None = None
    remaining: int | None = None
    oldest_check: str | None = None
    repaired: tuple[Repaired, ...] = ()
    kept_as: str | None = None
    graph: Literal["absent", "whole", "damaged", "removed"] | None = None
    lost: tuple[str, ...] = ()


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
    outcomes = {check.outcome for check in checks if check.required}
    if outcomes & {"FAIL", "INELIGIBLE"}:
        return "FAIL"
    if "UNKNOWN" in outcomes or "PASS" not in outcomes:
        return "INCOMPLETE"
    return "PASS"
