"""One entry of a packet: its bytes brought into the stage, its pins held against them, its facts taken."""

import os
from typing import Final, NamedTuple, cast

from provstore import merkle
from provstore.errors import SpecError, UsageError
from provstore.files.checklist import CheckList
from provstore.files.checksums import ChecksumLine, parse_checksums
from provstore.files.hashing import SMALL_BYTES, read_file
from provstore.files.ingest import ingest
from provstore.files.ingest_file import ingest_file
from provstore.files.inspect_hub import revisions_of, snapshot_of, unfinished
from provstore.files.outcome import Ingested, Options
from provstore.files.progress import Meter
from provstore.files.standins import is_partial_name
from provstore.ids import Buffer, RawId, digests
from provstore.paths import join, show
from provstore.records.packet import KINDS, Custody, Entry, Kind, Origin, Pin
from provstore.store.objects import Records
from provstore.store.protocol import Reader, Stage
from provstore.verbs import pins
from provstore.verbs.declaring import declare
from provstore.verbs.inspecting import Inspection
from provstore.verbs.members import MAX_FILES, MAX_OTHERS
from provstore.verbs.spec import EntrySpec

IMPLIED_EXCLUDES: Final[dict[str, tuple[str, ...]]] = {
    "source-tree": (".git",),
    "model": (".cache", "*.lock"),
    "python-env": ("__pycache__",),
}
"""What a kind leaves out by its nature: history, download bookkeeping, caches. Recorded in the packet."""

EMPTY_TREE: Final = merkle.build([])[-1][0]
"""Id of a directory without members."""

FOLLOWED: Final = frozenset({"model"})
"""Kinds whose symlinks always stand for their targets, as in the cache layout of a Hub client."""


class Source(NamedTuple):
    """Where one entry comes from.

    Attributes:
        role: name inside the packet; empty for a plain directory.
        kind: kind of the entry.
        path: absolute path, or None for a declared entry.
        spec: what a packet spec says of it, if there is one.
        manifest: absolute path of its checksum file.
        place: where the spec says so, for errors.
    """

    role: str
    kind: Kind
    path: bytes | None
    spec: EntrySpec | None = None
    manifest: bytes | None = None
    place: str = ""


class Work:
    """What the entries of one seal share, and what they found wrong.

    Args:
        store: the store behind the stage.
        stage: receives everything.
        known: records of both.
        meter: is told of progress.
        options: how directories are read, before an entry's own wishes.
        holes: unreadable members will be recorded, so the rest of their entry is looked at all the same.
    """

    def __init__(
        self,
        store: Reader,
        stage: Stage,
        known: Records,
        meter: Meter,
        options: Options,
        *,
        holes: bool = False,
    ) -> None:
        self.store = store
        self.holes = holes
        self.stage = stage
        self.known = known
        self.meter = meter
        self.options = options
        self.inspection = Inspection(stage, known, store.cached)
        self.excluded: list[tuple[bytes, str]] = []
        self.unreadable: list[tuple[bytes, str]] = []
        self.changed: list[tuple[bytes, tuple[str, ...]]] = []
        self.pointers: list[bytes] = []
        self.bundles: list[bytes] = []
        self.empty: list[str] = []
        self.problems: list[str] = []
        self.mismatches: list[str] = []
        self.notes: list[str] = []
        self.bytes_read = 0

    def take(self, role: str, ingested: Ingested) -> None:
        """Take over what one ingest found, with paths that begin at the role."""
        prefix = role.encode()

        def place(path: bytes) -> bytes:
            return prefix if ingested.file is not None and prefix else join(prefix, path)

        self.excluded += [(place(path), rule) for path, rule in ingested.excluded]
        self.unreadable += [(place(path), reason) for path, reason in ingested.unreadable]
        self.changed += [(place(path), fields) for path, fields in ingested.changed]
        self.pointers += [place(path) for path in ingested.pointers]
        self.notes += [f"{show(place(path))}: a prefix of a growing file" for path in ingested.growing]
        self.bytes_read += ingested.bytes_read


def known_kind(kind: str) -> Kind:
    """Return ``kind`` if it is one.

    Raises:
        UsageError: it is not.
    """
    if kind not in KINDS:
        raise UsageError(f"kind {kind!r} is unknown; known are {', '.join(KINDS)}")
    return cast(Kind, kind)


def from_spec(spec: EntrySpec, base: bytes, where: str) -> Source:
    """Return the source that a spec's entry describes, with paths made absolute."""

    def absolute(path: str | None) -> bytes | None:
        return None if path is None else os.path.normpath(os.path.join(base, os.fsencode(path)))

    return Source(
        spec.role,
        spec.kind,
        absolute(spec.path),
        spec,
        absolute(spec.manifest),
        f"{where}: entry {spec.role!r}",
    )


def seal_entry(work: Work, source: Source, *, exclude: tuple[str, ...]) -> Entry:
    """Bring one entry into the stage and return its record form; problems are noted in ``work``."""
    if source.path is None:
        return _declared(work, source)
    spec = source.spec
    excludes = tuple(
        sorted({*exclude, *IMPLIED_EXCLUDES.get(source.kind, ()), *(spec.exclude if spec else ())})
    )
    follow = work.options.settings.follow_symlinks or bool(spec and spec.follow_symlinks)
    follow = follow or source.kind in FOLLOWED
    keep = work.options.keep if spec is None else spec.keep == "held"
    settings = work.options.settings._replace(
        follow_symlinks=follow, git=source.kind == "source-tree", keep=keep
    )
    options = work.options._replace(exclude=excludes, keep=keep, settings=settings)
    if os.path.islink(source.path) and not follow:
        raise UsageError(
            f"{source.place or show(source.path)} names a symlink, {show(source.path)}; "
            "name what it points to, or have links followed"
        )
    is_directory = os.path.isdir(source.path)
    path = source.path
    if is_directory and source.kind == "model":
        path = snapshot_of(path, spec.revision if spec else None)
        source = source._replace(path=path)
    run = ingest if is_directory else ingest_file
    ingested = run(work.stage, work.store, work.known, path, options, work.meter)
    work.take(source.role, ingested)
    if ingested.changed or (ingested.unreadable and not work.holes):
        return _entry(source, ingested, (), (), excludes, follow)
    root = path if is_directory else os.path.dirname(path)
    work.bundles += [os.path.join(root, path) for path in ingested.bundles]
    _refuse_too_many(source.role or show(path), ingested)
    if ingested.tree == EMPTY_TREE:
        work.empty.append(source.role or show(path))
    held = _pins(work, source, ingested)
    inspected = work.inspection.entry(source.kind, path, ingested)
    work.problems += inspected.problems
    work.notes += inspected.notes
    if source.kind == "model":
        work.problems += _partial(ingested, work)
        work.problems += unfinished(path) if is_directory else []
    if spec is not None and spec.commit is not None:
        held += (Pin(kind="commit", value=spec.commit),)
        if inspected.commit != spec.commit:
            work.mismatches.append(
                f"{source.role}: expected commit {spec.commit}, found {inspected.commit or 'none'}"
            )
    return _entry(source, ingested, held, inspected.facts, excludes if is_directory else (), follow)


def _refuse_too_many(name: str, ingested: Ingested) -> None:
    """Refuse what no reader would unfold; see :func:`provstore.verbs.members.most_members`."""
    if ingested.files > MAX_FILES:
        raise UsageError(
            f"{name}: {ingested.files} files, over {MAX_FILES} an entry; seal its parts as entries"
        )
    others = ingested.members - ingested.files
    if others > MAX_OTHERS:
        raise UsageError(
            f"{name}: {others} directories and links, over {MAX_OTHERS} an entry; make entries of its parts"
        )


def _partial(ingested: Ingested, work: Work) -> list[str]:
    if ingested.tree is None:
        return []
    problems = []
    for path, _ in merkle.walk(work.known.fetch, ingested.tree):
        reason = is_partial_name(path)
        if reason is not None:
            problems.append(f"{show(path)}: {reason}")
    return problems


def _entry(
    source: Source,
    ingested: Ingested,
    held: tuple[Pin, ...],
    facts: tuple[str, ...],
    excludes: tuple[str, ...],
    follow: bool,
) -> Entry:
    file = ingested.file
    spec = source.spec
    custody: Custody = "external" if spec is not None and spec.keep == "external" else "held"
    return Entry(
        role=source.role,
        kind=source.kind,
        custody=custody,
        tree=ingested.tree.hex() if ingested.tree is not None else None,
        blake3=file.blake3 if file is not None else None,
        sha256=file.sha256 if file is not None else None,
        executable=file is not None and file.kind == "executable",
        state=file.state if file is not None else None,
        files=ingested.files,
        size_bytes=ingested.size_bytes,
        origins=origins(spec),
        pins=held,
        facts=facts,
        exclude=excludes,
        follow_symlinks=follow,
    )


def origins(spec: EntrySpec | None) -> tuple[Origin, ...]:
    """Return where a spec says the bytes can be had again."""
    if spec is None or not (spec.hub or spec.git or spec.url):
        return ()
    return (
        Origin(
            hub=spec.hub,
            git=spec.git,
            url=spec.url,
            revision=spec.revision or (spec.commit if spec.git else None),
        ),
    )


def _manifest(work: Work, source: Source) -> tuple[list[ChecksumLine], RawId]:
    """Read a checksum file, keep it in the store, and return its lines and id."""
    path = source.manifest or b""
    data = read_file(path, pins.MAX_MANIFEST_BYTES)
    if len(data) > pins.MAX_MANIFEST_BYTES:
        raise SpecError(
            source.place, f"{show(path)} is larger than any manifest ({pins.MAX_MANIFEST_BYTES} bytes)"
        )
    found = digests(data)
    if not work.stage.has_object(found.blake3):
        work.stage.add_object(found, data)
    work.bytes_read += len(data)
    return list(parse_checksums(data, show(path), "sha256")), found.blake3


def _keep_list(work: Work, lines: CheckList) -> None:
    """Keep a long checksum file in the store without holding it in memory."""
    found = lines.digests
    work.bytes_read += found.size_bytes
    if work.stage.has_object(found.blake3):
        return
    if found.size_bytes <= SMALL_BYTES:
        parts: list[Buffer] = []
        lines.copy(parts.append)
        work.stage.add_object(found, b"".join(parts))
        return
    writer = work.stage.blob()
    finished = False
    try:
        lines.copy(writer.write)
        writer.finish(found)
        finished = True
    finally:
        if not finished:
            writer.discard()


def _pins(work: Work, source: Source, ingested: Ingested) -> tuple[Pin, ...]:
    """Hold the pins of a spec against what was read; returns them, mismatches are noted."""
    spec = source.spec
    if spec is None:
        return ()
    held: list[Pin] = []
    work.mismatches += pins.digest_mismatches(source.role, spec.sha256, spec.blake3, ingested.file)
    held += [Pin(kind="sha256", value=spec.sha256)] if spec.sha256 else []
    held += [Pin(kind="blake3", value=spec.blake3)] if spec.blake3 else []
    if source.manifest is not None:
        lines, id = _manifest(work, source)
        if ingested.tree is None:
            raise SpecError(source.place, "a manifest pins a directory, but the path is a file")
        view = pins.view_manifest(lines, spec.prefix, source.manifest, source.path, source.place)
        members = {
            path: entry
            for path, entry in merkle.walk(work.known.fetch, ingested.tree)
            if entry.kind != "directory"
        }
        work.mismatches += pins.manifest_mismatches(source.role, view, members)
        held.append(Pin(kind="manifest", value=id.hex(), prefix=view.prefix))
    if spec.revision:
        found = revisions_of(source.path or b"")
        work.mismatches += [
            f"{source.role}: expected revision {spec.revision}, found {other}"
            for other in sorted(found - {spec.revision})
        ]
        if found:
            held.append(Pin(kind="revision", value=spec.revision))
        else:
            work.notes.append(
                f"{source.role}: nothing beside the files says that they are of {spec.revision}"
            )
    return tuple(held)


def _declared(work: Work, source: Source) -> Entry:
    """Make an entry out of digests that another document states."""
    spec = source.spec
    if spec is None:
        raise SpecError(source.role, "a declared entry needs a spec")
    held: list[Pin] = []
    tree: RawId | None = None
    files, size = 0, spec.size_bytes
    if source.manifest is not None:
        lines = CheckList(source.manifest, "sha256")

        def add(id: RawId, data: bytes) -> None:
            work.stage.add_record(id, data)
            work.known.shelve(id, data)

        tree, files = declare(lines, spec.prefix, source.place, add)
        _keep_list(work, lines)
        held.append(Pin(kind="manifest", value=lines.digests.blake3.hex(), prefix=spec.prefix))
    if spec.sha256 is not None:
        files = 1
    held += [Pin(kind="commit", value=spec.commit)] if spec.commit else []
    held += [Pin(kind="revision", value=spec.revision)] if spec.revision else []
    source_id = tree.hex() if tree is not None else spec.sha256 or spec.commit or ""
    return Entry(
        role=source.role,
        kind=source.kind,
        custody="declared",
        tree=tree.hex() if tree is not None else None,
        blake3=spec.blake3,
        sha256=spec.sha256,
        files=files,
        size_bytes=size,
        origins=origins(spec),
        pins=tuple(held),
        facts=work.inspection.declared(dict(spec.values), source_id),
    )
