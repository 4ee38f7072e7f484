"""What a packet needs and what of it is not here, role by role and for each kind of replay."""

from collections.abc import Iterator
from typing import Final, Literal

from provstore.errors import FrameError, IntegrityError, MalformedError, NotFoundError, StoreDamagedError
from provstore.ids import RawId, to_raw
from provstore.paths import show
from provstore.records.packet import Entry, Kind
from provstore.records.tree import TreeEntry
from provstore.reports.asked import ClosureReport, LevelNeed, RoleNeed
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.members import entry_members, origin_text

Level = Literal["audit", "host-exact", "artifact-exact", "source-equivalent"]

_STATED: Final[frozenset[Kind]] = frozenset(
    ("oracle", "suite", "runtime-lock", "recipe", "environment", "policy")
)

LEVELS: Final[dict[Level, frozenset[Kind]]] = {
    "audit": frozenset(
        (
            "evidence",
            "benchmark-log",
            "server-log",
            "metrics",
            "identity",
            "environment",
            "idle",
            "oracle",
            "suite",
            "runtime-lock",
            "record",
            "receipt",
            "document",
            "policy",
            "host",
        )
    ),
    "host-exact": _STATED | {"source-tree", "native", "python-env", "model", "host"},
    "artifact-exact": _STATED | {"source-tree", "native", "python-env", "model"},
    "source-equivalent": _STATED | {"source-tree", "model"},
}
"""Kinds of evidence whose bytes a replay reads: the stored run alone; the run again on the host it was made
on; the same bytes on another host; sources built anew, which proves nothing about bytes."""

NEEDED: Final[dict[Level, tuple[Kind, ...]]] = {
    "audit": ("benchmark-log", "oracle"),
    "host-exact": ("source-tree", "native", "python-env", "model", "suite", "recipe", "runtime-lock", "host"),
    "artifact-exact": ("source-tree", "native", "python-env", "model", "suite", "recipe", "runtime-lock"),
    "source-equivalent": ("source-tree", "model", "suite", "recipe", "runtime-lock"),
}
"""Kinds without which such a replay cannot even begin; ``evidence`` may hold any of the first two."""

_PLACES: Final = 4
_INSIDE_EVIDENCE: Final = frozenset[Kind](("benchmark-log", "oracle"))
_BROKEN: Final = (FrameError, IntegrityError, MalformedError, NotFoundError, StoreDamagedError)


def closure(reader: Reader, packet: RawId, *, missing: bool = False) -> ClosureReport:
    """Return what a packet needs, what of it is here, and what is to be fetched from where.

    Held are bytes in this store or pack. What is kept outside or only declared is not, even where its place
    is known; the report names the place.

    Args:
        reader: store or pack.
        packet: id of the packet.
        missing: leave out roles of which every byte is here.
    """
    found = objects.packet(reader, packet)
    look = _Look(reader)
    roles = [look.entry(entry) for entry in found.entries]
    kinds = {entry.kind for entry in found.entries}
    return ClosureReport(
        packet=packet.hex(),
        levels=tuple(_level(level, roles, kinds) for level in LEVELS),
        roles=tuple(role for role in roles if role.missing or not missing),
        records=tuple(look.broken),
    )


def _level(level: Level, roles: list[RoleNeed], kinds: set[Kind]) -> LevelNeed:
    lacking = [role for role in roles if level in role.levels and role.missing]
    absent = [
        kind
        for kind in NEEDED[level]
        if kind not in kinds and not (kind in _INSIDE_EVIDENCE and "evidence" in kinds)
    ]
    return LevelNeed(
        level=level,
        outcome="INCOMPLETE" if lacking or absent else "PASS",
        missing=tuple(role.role for role in lacking),
        absent=tuple(absent),
        fetch_bytes=sum(role.fetch_bytes for role in lacking),
        unsized=sum(role.unsized for role in lacking),
        without_origin=tuple(role.role for role in lacking if not role.origins and not role.places),
    )


class _Look:
    """Looks at the members of entries."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._fetch = objects.fetcher(reader)
        self.broken: list[str] = []

    def entry(self, entry: Entry) -> RoleNeed:
        """Return what is here of one entry and what is not."""
        places: dict[str, None] = {}
        files = held = held_bytes = fetch_bytes = unsized = 0
        for node in self._members(entry):
            files += 1
            raw = to_raw(node.blake3) if node.blake3 is not None and node.state is None else None
            info = None if raw is None else self._reader.info(raw)
            if info is not None and info.placement != "external":
                held += 1
                held_bytes += info.size_bytes
                continue
            if raw is not None and info is not None and len(places) < _PLACES:
                places.update(dict.fromkeys(show(found.path) for found in self._reader.locations(raw)))
            size = node.size_bytes if node.size_bytes is not None or info is None else info.size_bytes
            fetch_bytes += size or 0
            unsized += size is None
        # A directory of which only a commit or a revision is known has files that nobody listed.
        bare = not files and entry.tree is None and bool(entry.pins or entry.origins)
        return RoleNeed(
            role=entry.role,
            kind=entry.kind,
            custody=entry.custody,
            files=files,
            held=held,
            missing=files - held + bare,
            held_bytes=held_bytes,
            fetch_bytes=fetch_bytes,
            unsized=unsized + bare,
            origins=tuple(dict.fromkeys(_origins(entry))),
            places=tuple(places)[:_PLACES],
            levels=tuple(level for level, kinds in LEVELS.items() if entry.kind in kinds),
        )

    def _members(self, entry: Entry) -> Iterator[TreeEntry]:
        try:
            for member in entry_members(self._fetch, entry):
                if member.node.kind in ("file", "executable"):
                    yield member.node
        except _BROKEN as error:
            self.broken.append(f"{entry.role}: {error.message}")


def _origins(entry: Entry) -> Iterator[str]:
    yield from map(origin_text, entry.origins)
    for pin in entry.pins:
        if pin.kind == "commit":
            yield f"git commit {pin.value}"
