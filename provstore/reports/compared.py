"""Results of diff: what differs and what stayed."""

import msgspec

from provstore.reports.base import Report


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
        kept: number of files that are equal.
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
