"""Files that processes have mapped: opened once each, and digested only if they are what is mapped.

``/proc/PID/map_files`` can be opened by a privileged process alone, so the path is opened and its device and
inode are compared with those in maps. Where they differ the path holds other bytes now, and no digest is
given. Some file systems show another device in maps than to ``stat``; there an equal inode is probable only.
"""

import contextlib
import os
import stat
from typing import Final, NamedTuple

from provstore.errors import InspectError
from provstore.files import inspectors
from provstore.host.loader import Key, Object
from provstore.host.maps import Mapping, device_number
from provstore.host.sheet import reason_of
from provstore.ids import Digests, TwinHasher
from provstore.paths import show
from provstore.records.facts import Fact
from provstore.reports.hosted import MappedFile, MappedState

_CHUNK: Final = 1 << 20


class Seen(NamedTuple):
    """A mapped file and what it says of itself.

    Attributes:
        key: device and inode by which search paths find it.
        file: the report of it.
        object: what the loader needs to know; None when it is no ELF file or cannot be read.
    """

    key: Key
    file: MappedFile
    object: Object | None


class Mapped:
    """All files that the processes of one capture have mapped, each looked at once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, int, bytes, bool], Seen | None] = {}
        self._prefixes: dict[int, str] = {}

    def prefix(self, pid: int) -> str:
        """Return what stands before the paths of a process that sees other mounts than we do."""
        if pid not in self._prefixes:
            self._prefixes[pid] = _prefix(pid)
        return self._prefixes[pid]

    def look(self, pid: int, mapping: Mapping) -> Seen | None:
        """Return a shared object or program; None for a file that is neither."""
        prefix = self.prefix(pid)
        key = (prefix, mapping.device, mapping.inode, mapping.path, mapping.deleted)
        if key not in self._seen or (self._seen[key] is None and mapping.executable):
            self._seen[key] = _look(prefix, mapping)
        return self._seen[key]

    def files(self) -> tuple[MappedFile, ...]:
        """Return the reports of all of them, by path."""
        found = {
            (one.file.path, one.file.device, one.file.inode): one.file for one in self._seen.values() if one
        }
        return tuple(found[key] for key in sorted(found))


def _prefix(pid: int) -> str:
    try:
        same = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
        root = os.readlink(f"/proc/{pid}/root")
    except OSError:
        return ""
    return "" if same and root == "/" else f"/proc/{pid}/root"


def key_of(path: str) -> Key | None:
    """Return device and inode of a regular file, or None."""
    with contextlib.suppress(OSError, ValueError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode):
            return found.st_dev, found.st_ino
    return None


def _look(prefix: str, mapping: Mapping) -> Seen | None:
    own = (os.makedev(*device_number(mapping.device)), mapping.inode)
    literal = mapping.path + b" (deleted)"
    if mapping.deleted and key_matches(os.fsencode(prefix) + literal, own):
        mapping = mapping._replace(path=literal, deleted=False)  # it is really called so
    report = MappedFile(
        path=show(mapping.path), device=mapping.device, inode=mapping.inode, state="unreadable"
    )
    try:
        descriptor = os.open(os.fsencode(prefix) + mapping.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if not mapping.executable and not mapping.deleted:
            return None
        gone = mapping.deleted or isinstance(error, FileNotFoundError)
        reason = "was unlinked while mapped, and nothing is there now" if gone else reason_of(error)
        return (
            _without(report, own, "deleted" if gone else "unreadable", reason) if mapping.executable else None
        )
    with open(descriptor, "rb", buffering=0):
        before = os.fstat(descriptor)
        there = (before.st_dev, before.st_ino)
        state, reason = _state(mapping, own, there)
        if state in ("replaced", "deleted"):
            return _without(report, own, state, reason) if mapping.executable else None
        if not stat.S_ISREG(before.st_mode) or not (mapping.executable or _is_elf(descriptor)):
            return None
        digests = _digests(descriptor)
        after = os.fstat(descriptor)
        if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
            return _without(report, own, "unreadable", "changed while it was read")
        facts = _facts(descriptor, report.path)
        return _told(report, there, state, reason, digests, facts)


def key_matches(path: bytes, key: Key) -> bool:
    """Say whether a path leads to the file of a key."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return (found.st_dev, found.st_ino) == key


def _state(mapping: Mapping, own: Key, there: Key) -> tuple[MappedState, str]:
    if mapping.deleted:
        if there == own:
            return "same", ""  # another link of it was put back
        return "deleted", "was unlinked while mapped; the path holds another file now"
    if there == own:
        return "same", ""
    if there[1] == own[1]:
        return "probable", "the inode is equal, the device is not, as on overlay file systems"
    return "replaced", "the path leads to another file than the one that is mapped"


def _without(report: MappedFile, key: Key, state: MappedState, reason: str) -> Seen:
    return Seen(key, _changed(report, state=state, reason=reason), None)


def _changed(report: MappedFile, **values: object) -> MappedFile:
    kept = {name: getattr(report, name) for name in report.__struct_fields__}
    return MappedFile(**(kept | values))


def _is_elf(descriptor: int) -> bool:
    return inspectors.is_elf(os.pread(descriptor, 4, 0))


def _digests(descriptor: int) -> Digests:
    twin, at = TwinHasher(), 0
    while data := os.pread(descriptor, _CHUNK, at):
        twin.update(data)
        at += len(data)
    return twin.digests()


def _facts(descriptor: int, path: str) -> dict[str, Fact]:
    if not _is_elf(descriptor):
        return {}
    with open(os.dup(descriptor), "rb") as stream:
        try:
            return {fact.key: fact for fact in inspectors.inspect_elf(stream, path)}
        except InspectError:
            return {}


def _told(
    report: MappedFile, key: Key, state: MappedState, reason: str, digests: Digests, facts: dict[str, Fact]
) -> Seen:
    def text(name: str) -> str | None:
        fact = facts.get(f"elf.{name}")
        return fact.value if fact is not None and isinstance(fact.value, str) else None

    needed = facts["elf.needed"].value if "elf.needed" in facts else ()
    names = needed if isinstance(needed, tuple) else ()
    told = _changed(
        report, state=state, reason=reason, size_bytes=digests.size_bytes, sha256=digests.sha256.hex(),
        blake3=digests.blake3.hex(), build_id=text("build_id"), soname=text("soname"),
        runpath=text("runpath"), rpath=text("rpath"), needed=names,
    )  # fmt: skip
    if "elf.machine" not in facts:
        return Seen(key, told, None)
    object = Object(
        path=report.path, soname=text("soname"), needed=tuple(str(name) for name in names),
        rpath=text("rpath") or "", runpath=text("runpath") or "", machine=text("machine") or "",
    )  # fmt: skip
    return Seen(key, told, object)
