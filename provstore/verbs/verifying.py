"""Verifying: is every byte that a packet stands for still what was sealed, and is every reference there?

Everything is looked at and everything found is reported. Passes are summed up per entry; whatever is not
a pass is reported one by one.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from provstore.errors import (
    FrameError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    PackError,
)
from provstore.files.checksums import parse_checksums
from provstore.files.progress import Meter, Reporter
from provstore.ids import Digests, RawId, to_raw
from provstore.paths import show
from provstore.records.packet import Entry
from provstore.reports import Check, Missing, VerifyReport, worst
from provstore.reports.base import count
from provstore.store import objects
from provstore.store.pack import PackStore
from provstore.store.protocol import Reader
from provstore.verbs import pins
from provstore.verbs.members import Member, Only, missing_of, most_members, single, too_many, unfold
from provstore.verbs.rehashing import Rehashing, Seen, helpers_for

Path = str | bytes | os.PathLike[str]

_BROKEN = (IntegrityError, NotFoundError, MalformedError)


_GROUP_MEMBERS: Final = 1 << 16
"""Members that are known at a time, unless one entry has more: what all cores work on together."""

_Unfolded = tuple[Entry, list[Member], list[Check]]
"""An entry, its members, and what was found about its trees."""


class _Verification:
    def __init__(
        self, reader: Reader, packet_id: RawId, only: Only, at: Sequence[bytes], meter: Meter
    ) -> None:
        self.reader = reader
        self.packet_id = packet_id
        self.fetch = objects.fetcher(reader)
        self.only = only
        self.at = at
        self.meter = meter
        self.checks: list[Check] = []
        self.missing: list[Missing] = []
        self.seen: dict[RawId, Seen] = {}
        self.counted: set[str] = set()
        self.bytes_checked = 0
        self.objects_checked = 0

    def run(self) -> VerifyReport:
        try:
            packet = objects.packet(self.reader, self.packet_id)
        except (IntegrityError, MalformedError) as error:
            self.fail("integrity", error.code, message=error.message)
            return self.report()
        self.checks.append(Check(check="integrity", outcome="PASS", code="ok", message="packet record"))
        self.pack_file()
        helpers = helpers_for(packet.entries)
        with Rehashing(self.reader, self.at, helpers, self.meter) as self.bulk:
            for group in self.groups(packet.entries):
                self.look(group)
                for entry, members, found in group:
                    self.checks += found
                    self.entry(entry, members, before=len(self.checks) - len(found))
        self.only.require_hits()
        if not self.objects_checked:
            self.checks.append(
                Check(
                    check="integrity",
                    outcome="UNKNOWN",
                    code="nothing-checked",
                    message="no byte of any member was here to be checked",
                )
            )
        return self.report()

    def pack_file(self) -> None:
        """Hold a pack file to the hash at its end: an index can be altered where no object needs it."""
        if isinstance(self.reader, PackStore) and self.only.pattern is None:
            try:
                self.reader.check()
            except PackError as error:
                self.fail("integrity", error.code, message=error.message)

    def report(self) -> VerifyReport:
        return VerifyReport(
            packet=self.packet_id.hex(),
            outcome=worst(tuple(self.checks)),
            checks=tuple(self.checks),
            missing=tuple(self.missing),
            objects_checked=self.objects_checked,
            bytes_checked=self.bytes_checked,
        )

    def fail(
        self, check: str, code: str, role: str = "", path: str = "", message: str = "", **found: str
    ) -> None:
        self.checks.append(
            Check(
                check=check,
                outcome="FAIL",
                code=code,
                role=role,
                path=path,
                expected=found.get("expected"),
                found=found.get("found"),
                message=message,
            )
        )

    # Entries

    def groups(self, entries: Sequence[Entry]) -> Iterator[list[_Unfolded]]:
        """Yield entries with their members and what was found about their trees, so many that it pays."""
        group: list[_Unfolded] = []
        size = 0
        for entry in entries:
            first = len(self.checks)
            members: list[Member] = []
            if entry.tree is not None:
                members = self.tree(entry)
            elif (alone := single(entry)) is not None:
                members = [Member(entry, b"", alone)]
                self.want(members)
            # What is said of an entry is said in one go, when all of it is known.
            found, self.checks[first:] = self.checks[first:], []
            group.append((entry, members, found))
            size += len(members)
            if size >= _GROUP_MEMBERS:
                yield group
                group, size = [], 0
        yield group

    def look(self, group: Sequence[_Unfolded]) -> None:
        """Wait for what is re-hashed in bulk, and look at every other object of the group by itself."""
        self.bulk.finish()
        alone: dict[RawId, Member] = {}
        whole, everything = self.bulk.whole, self.only.pattern is None
        for entry, members, _ in group:
            for member in members if entry.custody != "declared" else ():
                id = member.node.blake3
                if id is not None and id not in whole and (everything or self.only.picks(member.place())):
                    alone.setdefault(to_raw(id), member)
        self.seen.update(self.bulk.look([item for item in alone.items() if item[0] not in self.seen]))

    def want(self, members: Sequence[Member]) -> None:
        """Have the contents of those members that are asked for re-hashed in bulk."""
        if members and members[0].entry.custody != "declared":
            picked = (
                members if self.only.pattern is None else [m for m in members if self.only.picks(m.place())]
            )
            self.bulk.want([member.node for member in picked])

    def entry(self, entry: Entry, members: list[Member], before: int) -> None:
        objects_before = self.objects_checked
        files, size, picked = 0, 0, 0
        everything = self.only.pattern is None
        whole = self.bulk.whole if entry.custody != "declared" else {}
        for member in members:
            node = member.node
            is_file = node.kind == "file" or node.kind == "executable"
            if is_file:
                files += node.state != "unreadable"
                size += node.size_bytes or 0
            if not everything and not self.only(member.place()):
                continue
            picked += 1
            if not is_file:
                continue
            id = node.blake3
            stated = whole.get(id) if id is not None and node.state is None else None
            if id is not None and stated == (node.sha256, node.size_bytes):
                self.count(id, stated[1])
            else:
                self.member(member)
        if picked or everything:
            fine = all(check.outcome != "FAIL" for check in self.checks[before:])
            self.totals(entry, files, size, whole=fine)
            self.attached(entry, members, whole=fine)
        checked = self.objects_checked - objects_before
        if len(self.checks) == before and (picked or everything) and (checked or members):
            words = f"{count(picked, 'member')}, {count(checked, 'object')} re-hashed here"
            self.checks.append(
                Check(check="integrity", outcome="PASS", code="ok", role=entry.role, message=words)
            )

    def tree(self, entry: Entry) -> list[Member]:
        """Return the members of a directory entry; damaged and absent records are reported and left out."""
        found: list[Member] = []
        todo = [(b"", to_raw(entry.tree or ""))] if most_members(entry) else []
        if not todo:
            self.fail("integrity", "wrong-totals", entry.role, message=too_many(entry))
        while todo:
            path, tree = todo.pop()
            try:
                names, nodes, rebuilt = unfold(self.fetch, tree)
            except _BROKEN as error:
                code = "missing-record" if isinstance(error, NotFoundError) else error.code
                self.fail("integrity", code, entry.role, show(path), error.message, expected=tree.hex())
                continue
            if rebuilt != tree:
                self.fail(
                    "integrity",
                    "tree-shape",
                    entry.role,
                    show(path),
                    "the directory is not split where its names say",
                    expected=rebuilt.hex(),
                    found=tree.hex(),
                )
            base = path + b"/" if path else b""
            new = [Member(entry, base + name, node) for name, node in zip(names, nodes, strict=True)]
            below = [
                (member.path, to_raw(member.node.tree)) for member in new if member.node.tree is not None
            ]
            found += new
            self.want(new)
            if len(found) > most_members(entry):
                self.fail("integrity", "wrong-totals", entry.role, message=too_many(entry))
                return []
            todo.extend(reversed(below))
        return found

    def totals(self, entry: Entry, files: int, size: int, *, whole: bool) -> None:
        if whole and entry.files != files and (entry.tree or single(entry)):
            self.fail(
                "integrity",
                "wrong-totals",
                entry.role,
                expected=f"{entry.files} files",
                found=f"{files} files",
                message="the packet states another number of files than its tree has",
            )
        if whole and entry.custody != "declared" and entry.size_bytes not in (None, size):
            self.fail(
                "integrity",
                "wrong-totals",
                entry.role,
                expected=f"{entry.size_bytes} bytes",
                found=f"{size} bytes",
                message="the packet states another size than its tree has",
            )

    def attached(self, entry: Entry, members: list[Member], *, whole: bool) -> None:
        """Check facts records and manifest pins."""
        for id in entry.facts:
            try:
                self.fetch(to_raw(id))
            except _BROKEN as error:
                code = "missing-record" if isinstance(error, NotFoundError) else error.code
                self.fail("integrity", code, entry.role, message=f"facts: {error.message}", expected=id)
        for pin in entry.pins:
            if pin.kind != "manifest":
                continue
            try:
                data = objects.read(self.reader, to_raw(pin.value), pins.MAX_MANIFEST_BYTES)
                lines = list(parse_checksums(data, f"manifest of {entry.role}", "sha256"))
                view = pins.view_manifest(lines, pin.prefix, b"/", None, entry.role)
            except NotHeldError:
                self.unknown(
                    "closure", "not-held", entry.role, "", "the manifest it was pinned by is not here"
                )
                continue
            except (*_BROKEN, FrameError) as error:
                self.fail("integrity", error.code, entry.role, message=f"manifest: {error.message}")
                continue
            if whole:
                nodes = {m.path: m.node for m in members if m.node.kind != "directory"}
                # The manifest may lie inside the directory that it lists, where it cannot list itself.
                nodes = {
                    path: node
                    for path, node in nodes.items()
                    if node.blake3 != pin.value or path in view.lines
                }
                for line in pins.manifest_mismatches(entry.role, view, nodes):
                    self.fail("pin", "pin-mismatch", entry.role, message=line)

    # Members

    def unknown(self, check: str, code: str, role: str, path: str, message: str) -> None:
        self.checks.append(
            Check(check=check, outcome="UNKNOWN", code=code, role=role, path=path, message=message)
        )

    def member(self, member: Member) -> None:
        node, role, path = member.node, member.entry.role, show(member.path)
        if node.state == "unreadable":
            self.unknown("closure", "unreadable", role, path, "could not be read when it was sealed")
            return
        if member.entry.custody == "declared" or node.blake3 is None:
            self.missing.append(missing_of(member))
            if not any(c.role == role and c.code == "declared-not-seen" for c in self.checks):
                self.checks.append(
                    Check(
                        check="closure",
                        outcome="NOT-APPLICABLE",
                        code="declared-not-seen",
                        role=role,
                        message="known by digests from another document alone; never seen here",
                    )
                )
            return
        seen = self.object(to_raw(node.blake3), member)
        if seen.problem is not None:
            outcome, code, message = seen.problem
            if outcome == "FAIL":
                self.fail("integrity", code, role, path, message, expected=node.blake3)
            else:
                self.unknown("closure", code, role, path, message)
                self.missing.append(missing_of(member))
        elif seen.digests is not None:
            self.stated(member, seen.digests)
        if node.state == "pointer":
            self.unknown("closure", "pointer", role, path, "an LFS pointer stands in for the payload")
        elif node.state == "prefix":
            self.checks.append(
                Check(
                    check="integrity",
                    outcome="WARN",
                    code="prefix",
                    role=role,
                    path=path,
                    message=f"the first {node.size_bytes} bytes of a file that was growing",
                )
            )

    def stated(self, member: Member, found: Digests) -> None:
        node = member.node
        if node.sha256 != found.sha256.hex() or node.size_bytes != found.size_bytes:
            self.fail(
                "integrity",
                "digest-mismatch",
                member.entry.role,
                show(member.path),
                "the packet states another SHA-256 or size for these bytes",
                expected=f"sha256:{node.sha256} ({node.size_bytes} bytes)",
                found=f"sha256:{found.sha256.hex()} ({found.size_bytes} bytes)",
            )

    def object(self, id: RawId, member: Member) -> Seen:
        stated = self.bulk.whole.get(id.hex())
        if stated is not None:
            seen = Seen(Digests(id, bytes.fromhex(stated[0]), stated[1]), None)
        else:
            seen = self.seen[id]
        if seen.digests is not None:
            self.count(id.hex(), seen.digests.size_bytes)
        return seen

    def count(self, id: str, size_bytes: int) -> None:
        """Count an object that was re-hashed, once."""
        if id not in self.counted:
            self.counted.add(id)
            self.objects_checked += 1
            self.bytes_checked += size_bytes


def verify(
    reader: Reader,
    packet: RawId,
    *,
    only: str | None = None,
    at: Sequence[Path] = (),
    progress: Reporter | None = None,
) -> VerifyReport:
    """Check the integrity and the closure of a packet.

    Args:
        reader: store or pack that holds the packet.
        packet: its id.
        only: pattern over ``role/path``; without one, everything.
        at: directories where external members may lie.
        progress: is told how far it is.

    Returns:
        Everything that was found; the packet's outcome is never better than its worst check.

    Raises:
        NotFoundError: there is no such packet.
        EmptyError: ``only`` matches nothing.
    """
    places = [os.path.abspath(os.fsencode(place)) for place in at]
    return _Verification(reader, packet, Only(only), places, Meter(progress)).run()
