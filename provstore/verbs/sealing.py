"""Sealing: directories, files or a spec into one packet, all or nothing."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from provstore import merkle, records
from provstore.errors import (
    EmptyError,
    IncompleteSourceError,
    NotFoundError,
    PinMismatchError,
    SourceChangedError,
    SourceUnreadableError,
    SpecError,
    SweptError,
    UsageError,
)
from provstore.files import hashing
from provstore.files.excluding import Excluder
from provstore.files.hashing import read_file
from provstore.files.outcome import Options
from provstore.files.progress import Meter, Reporter
from provstore.ids import RawId, is_prefix
from provstore.paths import check_role, show
from provstore.records.observation import Observation
from provstore.records.packet import Claim, Entry, Packet, Scope
from provstore.reports import EntrySummary, Excluded, SealReport
from provstore.store.objects import Records
from provstore.store.protocol import Store
from provstore.verbs import entries
from provstore.verbs.entries import Source, Work
from provstore.verbs.inspecting import thin_bundles
from provstore.verbs.members import find_member
from provstore.verbs.spec import MAX_SPEC_BYTES, PacketSpec, load_spec

SEAL_ATTEMPTS: Final = 3
"""How often a seal begins again when gc removed what it relied on."""


class SealOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Choices of one seal.

    Attributes:
        exclude: patterns that are left out of every entry.
        follow_symlinks: take links for what they point to; recorded in the packet.
        allow_unreadable: record holes instead of refusing.
        allow_growing: seal the beginning of files that grow meanwhile; recorded.
        allow_pointers: record LFS pointers as what they are instead of refusing.
        kind: kind of entries given as paths.
        require: roles, paths or patterns that must be in the packet.
        workers: processes for small files; None to decide by their number.
        use_cache: trust the stat cache for files whose signature did not change.
        keep: store the bytes of entries given as paths; otherwise only their digests.
        skip: device and inode of directories never entered, beside the store's own.
        tool: name and version that the observation states.
        ledger: name the newest entry of the store's ledger in the packet, as every run does.
    """

    exclude: tuple[str, ...] = ()
    follow_symlinks: bool = False
    allow_unreadable: bool = False
    allow_growing: bool = False
    allow_pointers: bool = False
    kind: str = "evidence"
    require: tuple[str, ...] = ()
    workers: int | None = None
    use_cache: bool = True
    keep: bool = True
    skip: frozenset[tuple[int, int]] = frozenset()
    tool: str = "provstore"
    ledger: bool = False


class _Plan(NamedTuple):
    """What one seal is to make, before any byte is read."""

    sources: list[Source]
    packet_name: str | None
    ref: str
    claims: tuple[Claim, ...]
    parents: tuple[str, ...]
    variables: dict[str, str]
    scope: Scope | None = None


def seal_paths(
    store: Store,
    paths: Sequence[str | bytes | os.PathLike[str]],
    *,
    name: str | None = None,
    options: SealOptions | None = None,
    progress: Reporter | None = None,
) -> SealReport:
    """Seal directories and files as they are.

    One directory becomes a packet whose members are the directory's own. Anything else becomes one entry
    a path, with the path's last name as its role.

    Args:
        store: receives everything.
        paths: what to seal; at least one.
        name: ref that will name the packet; the first path's own name if not given.
        options: see :class:`SealOptions`.
        progress: is told how far it is.

    Raises:
        SourceUnreadableError, SpecialFileError, SourceChangedError: the source cannot be read as it is.
        IncompleteSourceError: stand-ins or thin bundles in place of payloads.
        EmptyError: nothing to seal.
    """
    options = options or SealOptions()
    if not paths:
        raise UsageError("nothing to seal: name a directory, a file or a spec")
    raw = [os.path.abspath(os.fsencode(path)) for path in paths]
    for path in raw:
        if not os.path.lexists(path):
            raise NotFoundError(show(path), "no such file or directory")
    single = len(raw) == 1 and os.path.isdir(raw[0])
    sources = []
    for path in raw:
        role = "" if single else check_role(show(os.path.basename(path)))
        sources.append(Source(role=role, kind=entries.known_kind(options.kind), path=path))
    if len({source.role for source in sources}) != len(sources):
        raise UsageError("two paths have the same last name; seal them with a spec that gives them roles")
    ref = name if name is not None else _own_name(raw[0])
    plan = _Plan(sources, None, check_role(ref, "--name"), (), (), {})
    return _seal(store, plan, options, progress)


def _own_name(path: bytes) -> str:
    """Return the ref that a path gives: its last name, with the one above it where that reads as an id."""
    above, base = os.path.split(path)
    name = show(base or b"root")
    return f"{show(os.path.basename(above) or b'root')}/{name}" if is_prefix(name) else name


def seal_spec(
    store: Store,
    spec_path: str | bytes | os.PathLike[str],
    *,
    name: str | None = None,
    variables: Mapping[str, str] | None = None,
    options: SealOptions | None = None,
    progress: Reporter | None = None,
) -> SealReport:
    """Seal what a packet spec names.

    Args:
        store: receives everything.
        spec_path: the TOML file; paths in it are relative to its directory.
        name: ref that will name the packet; the spec's ``name`` if not given.
        variables: values of ``{name}`` in the spec's paths.
        options: see :class:`SealOptions`.
        progress: is told how far it is.

    Raises:
        SpecError: the spec says something that cannot be sealed.
        PinMismatchError: pins do not hold; all of them are named.
    """
    options = options or SealOptions()
    path = os.path.abspath(os.fsencode(spec_path))
    data = read_file(path, MAX_SPEC_BYTES)
    loaded = load_spec(data, show(path), variables or {})
    spec = loaded.spec
    ref = check_role(name if name is not None else spec.name, f"{show(path)}: name")
    base = os.path.dirname(path)
    sources = [entries.from_spec(entry, base, show(path)) for entry in spec.entry]
    absent = [source for source in sources if source.path is not None and not os.path.lexists(source.path)]
    if absent:
        paths = ", ".join(f"{show(source.path or b'')} of entry {source.role!r}" for source in absent)
        raise NotFoundError(show(absent[0].path or b""), f"{show(path)} names what is not there: {paths}")
    unused = sorted(set(variables or {}) - set(loaded.variables))
    if unused:
        raise SpecError(show(path), f"--set gives {', '.join(unused)}, which no path uses")
    plan = _Plan(sources, spec.name, ref, _claims(spec), tuple(spec.parents), loaded.variables, _scope(spec))
    return _seal(store, plan, options, progress)


def _claims(spec: PacketSpec) -> tuple[Claim, ...]:
    claims = [Claim(**msgspec.structs.asdict(claim)) for claim in spec.claim]
    return tuple(sorted(claims, key=lambda claim: claim.name))


def _scope(spec: PacketSpec) -> Scope | None:
    if spec.scope is None:
        return None
    rules = (
        msgspec.structs.replace(rule, preserve=tuple(sorted(set(rule.preserve)))) for rule in spec.scope.rule
    )
    return Scope(at=spec.scope.at, rules=tuple(rules), described_as=spec.scope.described_as)


def _seal(store: Store, plan: _Plan, options: SealOptions, progress: Reporter | None) -> SealReport:
    for attempt in range(SEAL_ATTEMPTS):
        try:
            return _attempt(store, plan, options, progress)
        except SweptError:
            if attempt + 1 == SEAL_ATTEMPTS:
                raise
    raise UsageError("no attempt was made")


def _attempt(store: Store, plan: _Plan, options: SealOptions, progress: Reporter | None) -> SealReport:
    with store.stage() as stage, Records(store) as known:
        work = Work(
            store,
            stage,
            known,
            Meter(progress),
            _ingest_options(store, options),
            holes=options.allow_unreadable,
        )
        made = [entries.seal_entry(work, source, exclude=options.exclude) for source in plan.sources]
        _refuse(work, options)
        work.notes += [f"{show(path)}: a hole, it could not be read ({why})" for path, why in work.unreadable]
        work.notes += [f"{show(path)}: a pointer stands in for its payload" for path in work.pointers]
        _require(work, made, options.require)
        _evidence(work, made, plan)
        packet = Packet(
            entries=tuple(sorted(made, key=lambda entry: entry.role.encode())),
            name=plan.packet_name,
            claims=plan.claims,
            parents=tuple(sorted(plan.parents)),
            scope=plan.scope,
            ledger=_newest(store) if options.ledger else None,
        )
        packet_id, data = records.encode(packet)
        if not stage.has_record(packet_id):
            stage.add_record(packet_id, data)
        observation = _observe(work, plan, packet_id, options)
        observation_id, observed = records.encode(observation)
        if store.ref(plan.ref) != packet_id:
            stage.add_record(observation_id, observed)
            stage.set_ref(plan.ref, packet_id, observation=observation_id)
        counts = stage.commit()
    return SealReport(
        packet=packet_id.hex(),
        name=plan.ref,
        entries=tuple(summary(entry) for entry in packet.entries),
        files=sum(entry.files for entry in packet.entries),
        objects=counts.objects,
        records=counts.records,
        bytes_read=work.bytes_read,
        bytes_hashed=work.bytes_read,
        bytes_stored=counts.bytes_stored,
        transactions=counts.transactions,
        syncs=counts.syncs,
        excluded=tuple(Excluded(path=show(path), rule=rule) for path, rule in work.excluded),
        observations={
            "variables": observation.variables,
            "sources": observation.sources,
            "notes": observation.notes,
        },
    )


def _newest(store: Store) -> str:
    entries = store.ledger()
    if not entries:
        raise EmptyError(f"ledger of {store.where}")
    return entries[-1].hex()


def summary(entry: Entry) -> EntrySummary:
    """Return what reports say of one entry."""
    return EntrySummary(
        role=entry.role,
        kind=entry.kind,
        custody=entry.custody,
        files=entry.files,
        size_bytes=entry.size_bytes,
        id=entry.tree or entry.blake3 or entry.sha256,
    )


def _ingest_options(store: Store, options: SealOptions) -> Options:
    return Options(
        exclude=options.exclude,
        skip=store.directory_ids() | options.skip,
        keep=options.keep,
        use_cache=options.use_cache,
        workers=options.workers,
        settings=hashing.Settings(
            follow_symlinks=options.follow_symlinks, allow_growing=options.allow_growing
        ),
    )


def _refuse(work: Work, options: SealOptions) -> None:
    """Raise for what makes the source unfit; everything of one sort is named at once."""
    if work.unreadable and not options.allow_unreadable:
        raise SourceUnreadableError(sorted((show(path), reason) for path, reason in work.unreadable))
    if work.changed:
        path, fields = sorted(work.changed)[0]
        others = [show(other) for other, _ in sorted(work.changed)[1:]]
        raise SourceChangedError(", ".join([show(path), *others[:20]]), fields)
    if work.empty:
        raise EmptyError(f"{', '.join(work.empty)}: an empty directory")
    problems = work.problems + thin_bundles(work.bundles)
    if not options.allow_pointers:
        problems += [
            f"{show(path)}: an LFS pointer or one of git-annex stands in for the payload; run `git lfs pull` "
            "or `git annex get`, or record it as a pointer with --allow-pointers"
            for path in work.pointers
        ]
    if work.mismatches:
        raise PinMismatchError(work.mismatches + problems)
    if problems:
        raise IncompleteSourceError(sorted(problems))


def _require(work: Work, made: Sequence[Entry], required: Sequence[str]) -> None:
    absent = []
    for pattern in required:
        excluder = Excluder([pattern])
        hit = any(_fits(excluder, entry.role.encode()) for entry in made)
        for entry in made:
            if hit or entry.tree is None:
                continue
            for path, _ in merkle.walk(work.known.fetch, bytes.fromhex(entry.tree), entry.role.encode()):
                directory, name = os.path.split(path)
                if excluder.rule(directory, name):
                    hit = True
                    break
        if not hit:
            absent.append(f"--require {pattern}: nothing in the packet matches")
    if absent:
        raise PinMismatchError(absent)


def _fits(excluder: Excluder, role: bytes) -> bool:
    """Say whether a role, or something above it, fits."""
    while role:
        directory, name = os.path.split(role)
        if excluder.rule(directory, name):
            return True
        role = directory
    return False


def _evidence(work: Work, made: Sequence[Entry], plan: _Plan) -> None:
    """Refuse claims and scope rules that rest on what is not in the packet."""
    packet = Packet(entries=tuple(made))
    resting = [(f"claim {claim.name!r}", claim.evidence) for claim in plan.claims]
    if plan.scope is not None:
        resting += [(f"the scope rule of {rule.claim}", rule.evidence) for rule in plan.scope.rules]
    absent = []
    for what, places in resting:
        for place in places:
            if any(place == entry.role for entry in made):
                continue
            try:
                find_member(work.known.fetch, packet, show(place))
            except NotFoundError:
                absent.append(f"{what} rests on {place}, which is not in the packet")
    if absent:
        raise PinMismatchError(absent)


def _observe(work: Work, plan: _Plan, packet: RawId, options: SealOptions) -> Observation:
    return Observation(
        packet=packet.hex(),
        taken_ns=str(time.time_ns()),
        tool=options.tool,
        variables={key: show(value) for key, value in sorted(plan.variables.items())},
        sources={s.role: show(s.path) for s in plan.sources if s.path is not None},
        excluded=tuple(f"{show(path)} ({rule})" for path, rule in work.excluded[:1000]),
        notes=tuple(work.notes),
    )
