"""Packet specs: the TOML that says what goes into a packet (format ``provstore/packet-spec/v1``)."""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from provstore import canon, libraries
from provstore.errors import NewerFormatError, ProvError, SpecError, UsageError
from provstore.graph.nodes import parse_node
from provstore.ids import to_raw
from provstore.paths import MAX_ROLE_BYTES, check_role, first_below, show
from provstore.records.packet import Kind, ScopeRule

FORMAT: Final = "provstore/packet-spec/v1"

MAX_SPEC_BYTES: Final = 2 << 20

HEAD_BYTES: Final = 64 << 10
"""So much of the beginning of a file tells whether it is a spec."""
"""Largest spec; some 8,000 entries fit into it."""

MAX_LINE_DOTS: Final = 100
"""Most dots in one line of a spec: reading a dotted key takes the square of their number."""

MAX_DOTS: Final = 100_000
"""Most dots in a spec: each may make a table, which takes some 500 bytes."""

_VARIABLE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HEADER: Final = re.compile(r"^[ \t]*+\[\[[ \t]*+entry[ \t]*+\]\]", re.MULTILINE)
_FORMAT_LINE: Final = re.compile(rb"^[ \t]*+format[ \t]*+=[ \t]*+[\"']provstore/packet-spec/", re.MULTILINE)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class EntrySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One ``[[entry]]`` of a spec.

    Attributes:
        role: name inside the packet.
        kind: what it is evidence of.
        path: file or directory to seal; relative to the spec's directory; may hold ``{name}`` variables.
        keep: ``held`` stores the bytes, ``external`` verifies them and leaves them where they are,
            ``declared`` takes digests from the manifest, the pins or ``values`` alone.
        manifest: checksum file that must list exactly the entry's files.
        prefix: part of the manifest's names that stands for the entry's root; other lines are ignored.
        sha256: hex digest of a single file.
        blake3: hex digest of a single file.
        size_bytes: size of a declared single file.
        commit: full commit of a source tree.
        revision: immutable revision of a Hub repository.
        hub: Hub repository that the bytes come from.
        git: Git remote that the bytes come from.
        url: other address that the bytes come from.
        exclude: patterns left out below ``path``.
        follow_symlinks: take links for what they point to.
        values: facts that this spec states for a declared entry.
    """

    role: str
    kind: Kind
    path: str | None = None
    keep: Literal["held", "external", "declared"] = "held"
    manifest: str | None = None
    prefix: str | None = None
    sha256: str | None = None
    blake3: str | None = None
    size_bytes: int | None = None
    commit: str | None = None
    revision: str | None = None
    hub: str | None = None
    git: str | None = None
    url: str | None = None
    exclude: tuple[str, ...] = ()
    follow_symlinks: bool = False
    values: dict[str, str | int | bool] = {}


class ClaimSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One ``[[claim]]`` of a spec; ``value`` is text, so that its digits stay as the source printed them."""

    name: str
    value: str
    unit: str
    metric: str
    convention: str
    evidence: tuple[str, ...] = ()
    samples: str | None = None
    limits: tuple[str, ...] = ()


class ScopeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The ``[scope]`` of a spec.

    Attributes:
        at: the packet's own value in each dimension, such as ``cards = 4``; a fraction is written as text.
        rule: what must be preserved for a kind of claim to carry over.
        described_as: what other documents call the packet, such as ``family-packet:FAMILY/ID``.
    """

    at: dict[str, str | int | bool] = {}
    rule: tuple[ScopeRule, ...] = ()
    described_as: tuple[str, ...] = ()


class PacketSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole spec.

    Attributes:
        format: ``provstore/packet-spec/v1``.
        name: name of the packet, and of its ref unless another is asked for.
        entry: its entries, at least one.
        claim: values the packet stands for.
        parents: ids of packets it continues.
        scope: where the packet stands and what carries from there.
    """

    format: str
    name: str
    entry: tuple[EntrySpec, ...]
    claim: tuple[ClaimSpec, ...] = ()
    parents: tuple[str, ...] = ()
    scope: ScopeSpec | None = None


class LoadedSpec(NamedTuple):
    """A spec with its variables filled in, and the ones that were used."""

    spec: PacketSpec
    variables: dict[str, str]


def load_spec(data: bytes, where: str, variables: Mapping[str, str]) -> LoadedSpec:
    """Parse and check a spec.

    Args:
        data: the TOML text.
        where: what to call it in errors.
        variables: values for ``{name}`` in paths.

    Raises:
        SpecError: anything that could not be sealed, with its line where known.
        NewerFormatError: another format.
    """
    if len(data) > MAX_SPEC_BYTES:
        raise SpecError(where, f"{len(data)} bytes is larger than any spec ({MAX_SPEC_BYTES})")
    if data.count(b".") > MAX_DOTS:
        raise SpecError(where, f"more than {MAX_DOTS} dots; seal less in one packet")
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.count(b".") > MAX_LINE_DOTS:
            raise SpecError(f"{where}:{number}", f"more than {MAX_LINE_DOTS} dots; break the line")
    try:
        text = data.decode()
        raw = libraries.tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise SpecError(where, f"not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:  # also of a number with too many digits
        raise SpecError(where, f"no TOML: {error}") from error
    if raw.get("format") != FORMAT:
        if isinstance(raw.get("format"), str):
            raise NewerFormatError(where, raw["format"])
        raise SpecError(where, f'needs format = "{FORMAT}"')
    try:
        spec = msgspec.convert(raw, PacketSpec)
    except msgspec.ValidationError as error:
        raise SpecError(_at(where, text, str(error)), str(error)) from error
    used: dict[str, str] = {}
    entries = []
    places = [f"{where}:{line}" for line in _entry_lines(text, len(spec.entry))]
    for entry, place in zip(spec.entry, places, strict=True):
        entries.append(_filled(entry, place, variables, used))
        _check(entries[-1], place)
    _check_roles(spec, where, places)
    for parent in spec.parents:
        to_raw(parent, f"{where}: parents")
    return LoadedSpec(msgspec.structs.replace(spec, entry=tuple(entries)), used)


def is_spec(data: bytes) -> bool:
    """Say whether bytes look like a packet spec of any version."""
    return (
        re.search(rb'(?m)^[ \t]*+format[ \t]*+=[ \t]*+["\']provstore/packet-spec/', data[:HEAD_BYTES])
        is not None
    )


def _at(where: str, text: str, message: str) -> str:
    number = re.search(r"\$\.entry\[(\d+)\]", message)
    return f"{where}:{_entry_lines(text, int(number[1]) + 1)[-1]}" if number else where


def _entry_lines(text: str, count: int) -> list[int]:
    """Return the lines of the first ``[[entry]]`` headers, from 1; 1 for those written in another way."""
    found: list[int] = []
    line, at = 1, 0
    for header in itertools.islice(_HEADER.finditer(text), count):
        line += text.count("\n", at, header.start())
        at = header.start()
        found.append(line)
    return found + [1] * (count - len(found))


def _filled(entry: EntrySpec, place: str, variables: Mapping[str, str], used: dict[str, str]) -> EntrySpec:
    def fill(text: str | None) -> str | None:
        if text is None:
            return None

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name not in variables:
                raise SpecError(place, f"variable {{{name}}} has no value; give --set {name}=...")
            used[name] = variables[name]
            return variables[name]

        return _VARIABLE.sub(value, text)

    return msgspec.structs.replace(entry, path=fill(entry.path), manifest=fill(entry.manifest))


def _check_roles(spec: PacketSpec, where: str, places: Sequence[str]) -> None:
    if not spec.entry:
        raise SpecError(where, "needs at least one [[entry]]")
    roles: dict[str, int] = {}
    for number, (entry, place) in enumerate(zip(spec.entry, places, strict=True)):
        check_role(entry.role, place)
        if entry.role in roles:
            raise SpecError(place, f"role {entry.role!r} is there twice")
        roles[entry.role] = number
    overlap = first_below(roles)
    if overlap is not None:
        raise SpecError(places[roles[overlap]], f"role {overlap!r} lies below another entry's role")
    names = [claim.name for claim in spec.claim]
    for before, name in itertools.pairwise(sorted(names)):
        if before == name:
            raise SpecError(where, f"claim {name!r} is there twice")
    resting = [(f"claim {claim.name!r}", claim.evidence) for claim in spec.claim]
    if spec.scope is not None:
        resting += [(f"the scope rule of {rule.claim}", rule.evidence) for rule in spec.scope.rule]
        _check_scope(spec.scope, where)
    for what, cited in resting:
        for evidence in cited:
            if len(evidence) > MAX_ROLE_BYTES or not _is_covered(evidence, roles):
                raise SpecError(where, f"{what} rests on {evidence!r}, which is no role")


def _check_scope(scope: ScopeSpec, where: str) -> None:
    for name, value in scope.at.items():
        if isinstance(value, int) and abs(value) > canon.MAX_INTEGER:
            raise SpecError(where, f"scope: {name} = {value} is beyond 2**53; write text")
    for name in (*scope.at, *(name for rule in scope.rule for name in rule.preserve)):
        if not name or "=" in name or name != name.strip():
            raise SpecError(where, f"scope: {name[:80]!r} is no name of a dimension")
    for text in scope.described_as:
        try:
            parse_node(text)
        except UsageError as error:
            raise SpecError(where, f"scope: {error.message}") from error


def _is_covered(evidence: str, roles: Collection[str]) -> bool:
    ends = (match.start() for match in re.finditer(r"/|\Z", evidence))
    return any(evidence[:end] in roles for end in ends)


def _check(entry: EntrySpec, place: str) -> None:
    """Refuse what contradicts itself inside one entry."""
    role = entry.role

    def refuse(reason: str) -> ProvError:
        return SpecError(place, f"entry {role!r}: {reason}")

    for name, path in (("path", entry.path), ("manifest", entry.manifest)):
        if path is not None and (not path or "\0" in path):
            raise refuse(f"{name} {show(path)!r} is no path: it is empty or holds NUL")
    for key, number in (("size_bytes", entry.size_bytes), *entry.values.items()):
        if isinstance(number, int) and abs(number) > canon.MAX_INTEGER:
            raise refuse(f"{key} = {number} is beyond 2**53, where JSON numbers stop being exact; write text")
    if entry.keep == "declared":
        if entry.path is not None:
            raise refuse('keep = "declared" takes digests from a document; it cannot have a path')
        if not (entry.manifest or entry.sha256 or entry.commit or entry.values):
            raise refuse("declares nothing: give manifest, sha256, commit or values")
    elif entry.path is None:
        raise refuse("needs a path")
    elif entry.values:
        raise refuse('values are for keep = "declared"; a sealed entry gives its own facts')
    if entry.size_bytes is not None and (entry.keep != "declared" or entry.size_bytes < 0):
        raise refuse("size_bytes is for a declared file, and is 0 or more")
    if entry.prefix is not None and entry.manifest is None:
        raise refuse("prefix needs a manifest")
    if entry.manifest is not None and (entry.sha256 or entry.blake3):
        raise refuse("has a manifest and a digest of a single file")
    for name, digest in (("sha256", entry.sha256), ("blake3", entry.blake3)):
        if digest is not None:
            to_raw(digest, f"{place}: {name}")
    if entry.commit is not None and not _COMMIT.fullmatch(entry.commit):
        raise refuse(f"commit {entry.commit!r} is not a full commit id")
    if entry.commit is not None and entry.kind != "source-tree":
        raise refuse("a commit pins a source-tree")
    if entry.revision is not None and not _COMMIT.fullmatch(entry.revision):
        raise refuse(f"revision {entry.revision!r} can move; give the full commit id")
    if sum(origin is not None for origin in (entry.hub, entry.git, entry.url)) > 1:
        raise refuse("has more than one of hub, git and url")
    if entry.revision is not None and entry.hub is None:
        raise refuse("revision needs hub")
