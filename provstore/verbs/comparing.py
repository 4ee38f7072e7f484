"""Holding a directory, or the files that a checksum list names, to what was sealed or listed."""

import os
import stat
from collections.abc import Iterator

from provstore import merkle, treediff
from provstore.errors import IntegrityError, MalformedError, NotFoundError
from provstore.files import hashing
from provstore.files.ingest import ingest
from provstore.files.ingest_file import ingest_file
from provstore.files.outcome import Ingested, Options
from provstore.files.progress import Meter, Reporter
from provstore.files.root import Root, type_name
from provstore.files.walk import walk
from provstore.ids import RawId, to_raw
from provstore.paths import join, show
from provstore.records.packet import Entry
from provstore.records.tree import TreeEntry
from provstore.reports import Check, VerifyReport, worst
from provstore.store import objects
from provstore.store.memory import MemoryStore
from provstore.store.objects import Records
from provstore.store.protocol import Reader
from provstore.verbs.holding import Held, hold
from provstore.verbs.members import Only, entry_members, mode_text, node_text, single

Path = str | bytes | os.PathLike[str]


class _Comparison:
    """A packet against a directory."""

    def __init__(self, reader: Reader, packet_id: RawId, base: bytes, only: Only, meter: Meter) -> None:
        self.reader = reader
        self.fetch = objects.fetcher(reader)
        self.packet_id = packet_id
        self.packet = objects.packet(reader, packet_id)
        self.base = base
        self.only = only
        self.meter = meter
        self.checks: list[Check] = []
        self.files = 0
        self.bytes = 0

    def run(self) -> VerifyReport:
        for entry in self.packet.entries:
            self.entry(entry)
        if any(entry.role for entry in self.packet.entries) and self.only.pattern is None:
            self.strangers()
        self.only.require_hits()
        return VerifyReport(
            packet=self.packet_id.hex(),
            outcome=worst(tuple(self.checks)),
            checks=tuple(self.checks),
            objects_checked=self.files,
            bytes_checked=self.bytes,
        )

    def entry(self, entry: Entry) -> None:
        if entry.tree is None and single(entry) is None:
            return
        place = join(self.base, entry.role.encode())
        if not os.path.lexists(place):
            self.absent(entry)
            return
        status = os.stat(place) if entry.follow_symlinks else os.lstat(place)
        if self.special(entry, status.st_mode):
            return
        before = len(self.checks)
        held = self.held(entry, place) if stat.S_ISDIR(status.st_mode) else None
        files = held.files if held is not None else self.ingested(entry, place, status.st_mode)
        if len(self.checks) == before and (self.only.pattern is None or self.only.hits):
            self.checks.append(
                Check(
                    check="against",
                    outcome="PASS",
                    code="ok",
                    role=entry.role,
                    message=f"{files} files are as sealed",
                )
            )

    def held(self, entry: Entry, place: bytes) -> Held | None:
        """Compare a directory on all cores; None, and nothing said, where that cannot be done."""
        if entry.tree is None or entry.follow_symlinks:
            return None
        skip = self.reader.directory_ids()
        try:
            found = hold(self.fetch, entry, to_raw(entry.tree), place, skip, self.meter)
        except (IntegrityError, MalformedError, NotFoundError):
            # A record of the sealed tree is damaged. It may be of a part that is equal, which the ids show.
            return None
        self.unfit(entry, found)
        self.count_hits(entry)
        for path, a, b in found.changes:
            if self.only(join(entry.role.encode(), path)):
                self.differs(entry, path, a, b)
            if a is not None and a.kind == "directory":
                self.gone(entry, path, a)
        self.files += found.files
        self.bytes += found.bytes_read
        return found

    def gone(self, entry: Entry, base: bytes, directory: TreeEntry) -> None:
        """Report each member of a directory that is not there as one."""
        for path, node in merkle.walk(self.fetch, to_raw(directory.tree or ""), base):
            if self.only(join(entry.role.encode(), path)):
                self.differs(entry, path, node, None)

    def count_hits(self, entry: Entry) -> None:
        """Let a pattern that fits sealed members count as one that fits something."""
        if self.only.pattern is not None:
            for member in entry_members(self.fetch, entry):
                self.only(member.place())

    def ingested(self, entry: Entry, place: bytes, mode: int) -> int:
        """Compare by building a tree of what is there; returns the number of its files."""
        memory = MemoryStore()
        settings = hashing.Settings(follow_symlinks=entry.follow_symlinks, keep=False)
        options = Options(
            exclude=entry.exclude,
            skip=self.reader.directory_ids(),
            keep=False,
            use_cache=False,
            settings=settings,
        )
        with memory.stage() as stage:
            known = Records(memory)
            run = ingest if stat.S_ISDIR(mode) else ingest_file
            found = run(stage, memory, known, place, options, self.meter)
            self.files += found.files
            self.bytes += found.bytes_read
            self.unfit(entry, found)
            self.members(entry, found, known)
        return found.files

    def special(self, entry: Entry, mode: int) -> bool:
        """Report a FIFO, socket or device in the place of an entry."""
        plain = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
        if not plain and self.only(entry.role.encode()):
            expected = "directory" if entry.tree else "file"
            self.fail("type", entry, b"", (expected, type_name(mode)))
        return not plain

    def absent(self, entry: Entry) -> None:
        for member in entry_members(self.fetch, entry):
            if member.node.kind != "directory" and self.only(member.place()):
                self.differs(entry, member.path, member.node, None)

    def unfit(self, entry: Entry, found: Ingested | Held) -> None:
        for path, reason in found.unreadable:
            self.unknown("unreadable", entry, path, reason)
        for path, fields in found.changed:
            self.unknown("source-changed", entry, path, f"changed while read: {', '.join(fields)}")

    def members(self, entry: Entry, found: Ingested, known: Records) -> None:
        if entry.tree is None or found.tree is None:
            sealed = single(entry)
            if sealed is None or found.file is None:
                self.fail(
                    "type",
                    entry,
                    b"",
                    (
                        "directory" if entry.tree else "file",
                        "directory" if found.tree else node_text(found.file),
                    ),
                )
            elif self.only(entry.role.encode()):
                self.differs(entry, b"", sealed, found.file)
            return
        self.count_hits(entry)
        for path, a, b in treediff.diff(self.fetch, to_raw(entry.tree), known.fetch, found.tree):
            for inner, x, y in self.opened(path, a, b, known):
                if self.only(join(entry.role.encode(), inner)):
                    self.differs(entry, inner, x, y)

    def opened(
        self, path: bytes, a: TreeEntry | None, b: TreeEntry | None, known: Records
    ) -> Iterator[treediff.Change]:
        """Yield a change, and for a directory that one side lacks, each member below it."""
        yield path, a, b
        for entry, fetch in ((a, self.fetch), (b, known.fetch)):
            if entry is not None and entry.kind == "directory":
                for inner, node in merkle.walk(fetch, to_raw(entry.tree or ""), path):
                    yield (inner, node, None) if entry is a else (inner, None, node)

    def differs(self, entry: Entry, path: bytes, a: TreeEntry | None, b: TreeEntry | None) -> None:
        if a is None or b is None:
            node = a or b
            if node is None:
                return
            if b is None and entry.custody == "declared":
                self.unknown(
                    "missing", entry, path, "declared, and not here either: nobody has seen its bytes"
                )
            else:
                self.fail("missing" if b is None else "extra", entry, path, (node_text(a), node_text(b)))
            return
        if a.kind != b.kind:
            plain = {"file", "executable"}
            if not {a.kind, b.kind} <= plain:
                self.fail("type", entry, path, (node_text(a), node_text(b)))
                return
            if a.blake3 is not None:
                self.fail("mode", entry, path, (mode_text(a), mode_text(b)))
        if b.state == "unreadable":
            return
        same = a.blake3 == b.blake3 if a.blake3 is not None else a.sha256 == b.sha256
        if a.kind == "symlink" and a.raw_target() != b.raw_target():
            self.fail("changed", entry, path, (node_text(a), node_text(b)))
        elif a.kind not in ("symlink", "directory") and not same:
            where = self.first_difference(entry, path, a)
            self.fail("changed", entry, path, (node_text(a), node_text(b)), where)

    def first_difference(self, entry: Entry, path: bytes, a: TreeEntry) -> str | None:
        """Return the offset of the first differing byte, where both sides can be read."""
        info = self.reader.info(to_raw(a.blake3)) if a.blake3 else None
        if info is None or info.placement == "external" or info.size_bytes > (64 << 20):
            return None
        try:
            sealed = objects.read(self.reader, to_raw(a.blake3 or ""))
            with open(join(self.base, entry.role.encode(), path), "rb") as file:
                here = file.read(len(sealed) + 1)
        except (OSError, IntegrityError, MalformedError, NotFoundError):
            # What the store holds is verify's business; here it only helps to point.
            return None
        length = min(len(sealed), len(here))
        offset = next(
            (i for i in range(0, length, 4096) if sealed[i : i + 4096] != here[i : i + 4096]), length
        )
        while offset < length and sealed[offset] == here[offset]:
            offset += 1
        return f"byte {offset}"

    def fail(
        self,
        code: str,
        entry: Entry,
        path: bytes,
        sides: tuple[str | None, str | None],
        location: str | None = None,
    ) -> None:
        expected, found = sides
        self.checks.append(
            Check(
                check="against",
                outcome="FAIL",
                code=code,
                role=entry.role,
                path=show(path),
                expected=expected,
                found=found,
                location=location,
            )
        )

    def unknown(self, code: str, entry: Entry, path: bytes, message: str) -> None:
        self.checks.append(
            Check(
                check="against",
                outcome="UNKNOWN",
                code=code,
                role=entry.role,
                path=show(path),
                message=message,
            )
        )

    def strangers(self) -> None:
        """Report what lies in the directory outside of every role."""
        roles = [entry.role.encode() for entry in self.packet.entries]
        with Root(self.base) as root:
            for listing in walk(root, (), self.reader.directory_ids()).listings:
                for name, row in listing.members():
                    path = join(listing.path, name)
                    inside = any(path == role or path.startswith(role + b"/") for role in roles)
                    above = any(role.startswith(path + b"/") for role in roles) and stat.S_ISDIR(row.mode)
                    if not inside and not above:
                        self.checks.append(
                            Check(
                                check="against",
                                outcome="FAIL",
                                code="extra",
                                path=show(path),
                                found="present",
                                message="belongs to no entry of the packet",
                            )
                        )


def verify_against(
    reader: Reader,
    packet: RawId,
    directory: Path,
    *,
    only: str | None = None,
    progress: Reporter | None = None,
) -> VerifyReport:
    """Hold a directory to a packet: missing, extra, changed, type, mode.

    What the packet records about links and exclusions decides how the directory is read.

    Args:
        reader: store or pack that holds the packet.
        packet: its id.
        directory: laid out as :func:`~provstore.verbs.restoring.restore` writes it.
        only: pattern over ``role/path``.
        progress: is told how far it is.

    Raises:
        NotFoundError: there is no such packet or directory.
        EmptyError: ``only`` matches nothing.
    """
    base = os.path.abspath(os.fsencode(directory))
    if not os.path.isdir(base):
        raise NotFoundError(show(base), "no such directory")
    return _Comparison(reader, packet, base, Only(only), Meter(progress)).run()
