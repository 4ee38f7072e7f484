"""Packets: the sealed manifest over entries; its id covers everything a person can read in it."""

from typing import Annotated, Final, Literal, get_args

import msgspec

from provstore.errors import CanonError
from provstore.ids import to_raw
from provstore.paths import check_role, first_below
from provstore.records.tree import Count

Custody = Literal["held", "external", "declared"]
"""``held``: the bytes are in the store. ``external``: verified when sealed, kept elsewhere. ``declared``:
only a digest from another document, never seen here."""

Kind = Literal[
    "source-tree",
    "native",
    "model",
    "oracle",
    "suite",
    "benchmark-log",
    "server-log",
    "metrics",
    "environment",
    "identity",
    "idle",
    "runtime-lock",
    "python-env",
    "host",
    "recipe",
    "policy",
    "record",
    "receipt",
    "document",
    "evidence",
    "file",
]


KINDS: Final[tuple[str, ...]] = get_args(Kind)
"""Kinds that an entry can have."""


class Origin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where bytes can be had again; exactly one of ``hub``, ``git`` and ``url`` is given.

    Attributes:
        hub: repository on the Hugging Face Hub.
        git: remote of a Git repository.
        url: any other address, without credentials.
        revision: immutable commit of the repository.
        prefix: path inside the origin that the entry's root corresponds to.
    """

    hub: str | None = None
    git: str | None = None
    url: str | None = None
    revision: str | None = None
    prefix: str | None = None


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A statement of the spec that held when the entry was sealed.

    Attributes:
        kind: what was compared.
        value: the pinned digest, commit or revision; for a manifest the BLAKE3 of the manifest file.
        prefix: part of a manifest's names that stands for the entry's root.
    """

    kind: Literal["sha256", "blake3", "manifest", "commit", "revision"]
    value: str
    prefix: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One named member of a packet: a file or a directory.

    Attributes:
        role: name inside the packet, a slash path; empty when the packet is one plain directory.
        kind: what it is evidence of.
        custody: where the bytes are.
        tree: hex id of the tree record, when the member is a directory.
        blake3: hex id of the content, when it is a file that was seen.
        sha256: hex SHA-256 of the same; alone for a declared file.
        executable: the file has its owner's x bit.
        state: why a file is less than whole evidence (see :class:`~provstore.records.tree.TreeEntry`).
        files: number of files in it.
        size_bytes: sum of their sizes; absent when a declared file has no known size.
        origins: where the bytes can be had again.
        pins: what the spec required and was found to hold.
        facts: hex ids of facts records, one per inspector that ran.
        exclude: patterns that were left out below it.
        follow_symlinks: links were replaced by what they point to.
    """

    role: str
    kind: Kind
    files: Count
    custody: Custody = "held"
    tree: str | None = None
    blake3: str | None = None
    sha256: str | None = None
    executable: bool = False
    state: Literal["pointer", "prefix", "unreadable"] | None = None
    size_bytes: Count | None = None
    origins: tuple[Origin, ...] = ()
    pins: tuple[Pin, ...] = ()
    facts: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    follow_symlinks: bool = False


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value that the packet stands for.

    Attributes:
        name: short name of the claim.
        value: source text of the number.
        unit: unit of the value, such as ``tok/s``.
        metric: what was measured.
        convention: how it was counted; values of two conventions are never compared.
        evidence: roles that it rests on.
        samples: what it was measured over.
        limits: statements of what it does not say.
    """

    name: str
    value: str
    unit: str
    metric: str
    convention: str
    evidence: tuple[str, ...] = ()
    samples: str | None = None
    limits: tuple[str, ...] = ()


class ScopeRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must stay the same for one kind of claim to carry over to another context.

    Attributes:
        claim: kind of claim.
        preserve: dimensions that must be preserved, sorted.
        statement: the sentence this rule puts into data, for people.
        evidence: roles that the sentence rests on.
    """

    claim: Literal["performance", "exactness", "method", "treatment", "accounting"]
    preserve: tuple[str, ...]
    statement: str
    evidence: tuple[str, ...] = ()


def rule_text(rule: ScopeRule) -> str:
    """Return a rule as one line for people.

    Example:
        >>> rule_text(ScopeRule(claim="method", preserve=("cards", "kv"), statement="Holds as built."))
        'method: preserve cards, kv. Holds as built.'
    """
    kept = ", ".join(rule.preserve) or "nothing"
    return f"{rule.claim}: preserve {kept}. {rule.statement}"


class Scope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a packet stands, and what carries from there.

    Attributes:
        at: its own value in each dimension; a number with a fraction is its source text.
        rules: in the order of the spec.
        described_as: what other documents call it, as graph nodes: ``family-packet:FAMILY/ID``.
    """

    at: dict[str, str | Annotated[int, msgspec.Meta(ge=-(1 << 53) + 1, le=(1 << 53) - 1)] | bool] = {}
    rules: tuple[ScopeRule, ...] = ()
    described_as: tuple[str, ...] = ()


class Packet(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="format",
    tag="provstore/packet/v1",
):
    """The sealed manifest; its record id is the packet's id.

    Attributes:
        name: the spec's name; absent for a plain directory, so equal directories give equal packets.
        entries: sorted by role, each role once, no role above another.
        claims: values that it stands for, sorted by name.
        parents: hex ids of packets that it continues or replays.
        scope: where it stands and what carries from there.
        ledger: of a run, hex id of the newest entry of the ledger when it was sealed; two packets of one
            ledger show what was attempted between them.
    """

    entries: tuple[Entry, ...]
    name: str | None = None
    claims: tuple[Claim, ...] = ()
    parents: tuple[str, ...] = ()
    scope: Scope | None = None
    ledger: str | None = None


def check_packet(packet: Packet, where: str = "packet") -> Packet:
    """Return ``packet`` if it says nothing that its schema cannot forbid.

    Roles must be safe, sorted and apart, so that nothing can be written or looked up through another
    entry; digests must be digests.

    Raises:
        CanonError: order, overlap or fields are wrong.
        DigestError, UnsafePathError: a malformed digest or role.
    """
    roles = [entry.role.encode() for entry in packet.entries]
    if not roles:
        raise CanonError(where, "has no entries")
    if roles != sorted(set(roles)):
        raise CanonError(where, "roles are not sorted, or one is there twice")
    if roles != [b""]:
        for entry in packet.entries:
            check_role(entry.role, where)
    overlap = first_below(entry.role for entry in packet.entries)
    if overlap is not None:
        raise CanonError(where, f"role {overlap!r} lies below another entry's role")
    for entry in packet.entries:
        ids = (entry.tree, entry.blake3, entry.sha256, *entry.facts)
        manifests = tuple(pin.value for pin in entry.pins if pin.kind == "manifest")
        for id in (*ids, *manifests):
            if id is not None:
                to_raw(id, where)
        if entry.tree is not None and (entry.blake3 is not None or entry.sha256 is not None):
            raise CanonError(where, f"entry {entry.role!r} is a directory and a file")
        if entry.files < 0 or (entry.size_bytes or 0) < 0:
            raise CanonError(where, f"entry {entry.role!r} has a negative total")
    for id in (*packet.parents, *((packet.ledger,) if packet.ledger is not None else ())):
        to_raw(id, where)
    if packet.scope is not None:
        _check_scope(packet.scope, where)
    return packet


def _check_scope(scope: Scope, where: str) -> None:
    names = [*scope.at, *(name for rule in scope.rules for name in rule.preserve)]
    for name in names:
        if not name or "=" in name or name != name.strip():
            raise CanonError(where, f"{name[:80]!r} is no name of a dimension")
    for rule in scope.rules:
        if list(rule.preserve) != sorted(set(rule.preserve)):
            raise CanonError(
                where, f"what a scope rule of {rule.claim} preserves is not sorted, or there twice"
            )
