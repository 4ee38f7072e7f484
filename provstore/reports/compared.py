"""Results of diff: what differs and what stayed."""

from typing import Literal

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


class TokenChange(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first token in which two outputs for one prompt differ.

    Attributes:
        layer: ``identity`` for an oracle, ``result`` for what was measured.
        role: entry.
        path: member of the entry; empty for the entry itself.
        prompt: name or number of the prompt.
        index: place of the token, from 0; the shorter length when one output is the other's beginning.
        from_: token of the first side; None when its output ends here.
        to: token of the second side; None when its output ends here.
        from_length: tokens of the first side.
        to_length: tokens of the second side.
    """

    layer: Literal["identity", "environment", "result"]
    role: str
    path: str
    prompt: str
    index: int
    from_: int | None = msgspec.field(name="from")
    to: int | None
    from_length: int
    to_length: int


class MetricChange(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric of both sides under one convention; values of two conventions never meet here.

    Attributes:
        basis: ``recomputed`` from rows, or ``claim``: what the packets state.
        role: entry.
        path: member of the entry; empty for the entry itself.
        name: name of the claim; empty when no claim of the first side is about the convention.
        convention: how it was counted.
        unit: unit of the value.
        from_: value of the first side.
        to: value of the second side.
        delta: second minus first, in doubles.
        percent: the same in percent of the first; None when that is zero.
        rows: rows that it was computed from; 0 for a claim.
        rows_changed: rows whose own value differs, also where the aggregate does not.
    """

    basis: Literal["recomputed", "claim"]
    role: str
    path: str
    name: str
    convention: str
    unit: str
    from_: str = msgspec.field(name="from")
    to: str
    delta: str
    percent: str | None
    rows: int = 0
    rows_changed: int = 0


class RowsChange(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field of measured rows that differs in some of them, beside tokens, texts and counts."""

    role: str
    path: str
    field: str
    rows: int
    of: int


class UnknownPart(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Evidence that could not be compared, so that nothing about it is equal or different."""

    layer: Literal["identity", "environment", "result"]
    role: str
    path: str
    reader: str
    reason: str


class LayerState(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the comparison says of one layer.

    Attributes:
        layer: the layer.
        state: ``same``, ``differs``, ``unknown`` (what decides it could not be compared) or ``not-stated``.
        differences: how many differences were found.
        by_facts: bytes differ, and nothing that they say does.
    """

    layer: Literal["identity", "environment", "result"]
    state: Literal["same", "differs", "unknown", "not-stated"]
    differences: int
    by_facts: bool = False


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
        counts: members that differ, in one sentence, where ``sentence`` says what the difference is about.
        layers: what is known of each layer; empty when no side states anything to attribute.
        tokens: first differing token of each prompt.
        metrics: metrics that both sides have, each under one convention.
        rows: other fields of measured rows that differ.
        folded: values that differ only in private paths, times or process numbers; they count as equal.
        unknown: evidence that could not be compared.
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
    counts: str = ""
    layers: tuple[LayerState, ...] = ()
    tokens: tuple[TokenChange, ...] = ()
    metrics: tuple[MetricChange, ...] = ()
    rows: tuple[RowsChange, ...] = ()
    folded: tuple[FactChange, ...] = ()
    unknown: tuple[UnknownPart, ...] = ()
