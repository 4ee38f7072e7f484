"""Small trees, hand-made packets and views of reports, for the tests of verbs and files."""

import json
import os
import pickle
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from provstore import merkle, records
from provstore.errors import ProvError
from provstore.files.walk import Listing, Walker
from provstore.ids import RawId, digests, record_id, to_raw
from provstore.records.packet import Entry, Packet
from provstore.records.tree import TreeEntry
from provstore.reports import Check, Listed, VerifyReport
from provstore.store import objects
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.protocol import Reader, Store
from provstore.verbs.listing import ls
from provstore.verbs.sealing import SealOptions, seal_paths, seal_spec

T = TypeVar("T")

NOBODY = 65534

STORES = ("memory", "lmdb")

SPEC = 'format = "provstore/packet-spec/v1"\nname = "run"\n'


def open_store_of(kind: str, place: Path) -> MemoryStore | LmdbStore:
    """Return a new store of one of the :data:`STORES`."""
    return MemoryStore() if kind == "memory" else LmdbStore.create(os.fspath(place / "store"))


def plant(root: Path, files: Mapping[str | bytes, str | bytes | None]) -> Path:
    """Make files below a directory: ``->x`` is a link to x, ``+xtext`` an executable, None a directory."""
    for name, content in files.items():
        path = Path(os.fsdecode(os.path.join(os.fsencode(root), os.fsencode(name))))
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        elif isinstance(content, str) and content.startswith("->"):
            path.symlink_to(content[2:])
        elif isinstance(content, str) and content.startswith("+x"):
            path.write_text(content[2:])
            path.chmod(0o755)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def settle(root: Path) -> None:
    """Wait until the files below a directory are old enough for the stat cache to trust them."""
    newest = max(os.lstat(os.path.join(d, n)).st_ctime_ns for d, _, names in os.walk(root) for n in names)
    probe = root.parent / "clock"
    while True:
        probe.write_bytes(b"x")
        if os.stat(probe).st_mtime_ns > newest + 200_000_000:
            return


def seal(store: Store, *paths: str | bytes | os.PathLike[str], **options: Any) -> RawId:
    """Seal paths and return the packet's id."""
    name = options.pop("name", None)
    return to_raw(seal_paths(store, list(paths), name=name, options=SealOptions(**options)).packet)


def seal_text(store: Store, place: Path, text: str, **options: Any) -> RawId:
    """Write a spec into a directory, seal it, and return the packet's id."""
    path = place / "spec.toml"
    path.write_text(text if text.startswith("format") else SPEC + text)
    variables = options.pop("variables", None)
    report = seal_spec(store, path, variables=variables, options=SealOptions(**options))
    return to_raw(report.packet)


def listed(reader: Reader, packet: RawId) -> dict[str, Listed]:
    """Return the members of a packet by path."""
    return {member.path: member for member in ls(reader, packet)}


def packet_of(reader: Reader, packet: RawId) -> Packet:
    return objects.packet(reader, packet)


def findings(report: VerifyReport) -> dict[str, str]:
    """Return ``role/path`` and code of all that is neither a pass nor not applicable."""
    found = {}
    for check in report.checks:
        if check.outcome not in ("PASS", "NOT-APPLICABLE"):
            found["/".join(part for part in (check.role, check.path) if part)] = check.code
    return found


def failures(report: VerifyReport) -> list[Check]:
    return [check for check in report.checks if check.outcome == "FAIL"]


def facts_of(reader: Reader, entry: Entry) -> dict[tuple[str, str], Any]:
    """Return the facts of an entry by path and key."""
    found: dict[tuple[str, str], Any] = {}
    for id in entry.facts:
        record = records.decode(objects.record(reader, to_raw(id)))
        found |= {(fact.path, fact.key): fact.value for fact in getattr(record, "facts", ())}
    return found


def put_json(store: Store, kind: str, value: Any) -> RawId:
    """Store a hand-made record, whatever it says, under the id its bytes have."""
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    id = record_id(kind, data)
    with store.stage() as stage:
        stage.add_record(id, data)
        stage.commit()
    return id


def put_object(store: Store, data: bytes) -> RawId:
    found = digests(data)
    with store.stage() as stage:
        stage.add_object(found, data)
        stage.commit()
    return found.blake3


def file_node(data: bytes, name: str = "x", **changes: Any) -> TreeEntry:
    found = digests(data)
    fields: dict[str, Any] = {
        "kind": "file",
        "name": name,
        "blake3": found.blake3.hex(),
        "sha256": found.sha256.hex(),
        "size_bytes": len(data),
    }
    return TreeEntry(**{**fields, **changes})


def put_packet(store: Store, members: Sequence[tuple[bytes, TreeEntry]], **entry: Any) -> RawId:
    """Store a packet of one tree, hand-made, with a ref ``made``; objects are the caller's business."""
    nodes = merkle.build_tree(members)
    files = [node for _, node in members if node.kind in ("file", "executable")]
    fields: dict[str, Any] = {
        "role": "",
        "kind": "evidence",
        "tree": nodes[-1][0].hex(),
        "files": len(files),
        "size_bytes": sum(node.size_bytes or 0 for node in files),
    }
    packet_id, data = records.encode(Packet(entries=(Entry(**{**fields, **entry}),)))
    with store.stage() as stage:
        for id, node in nodes:
            stage.add_record(id, node)
        stage.add_record(packet_id, data)
        stage.set_ref("made", packet_id)
        stage.commit()
    return packet_id


def snapshot(root: str | bytes | os.PathLike[str]) -> dict[bytes, tuple[str, bytes]]:
    """Return what lies below a directory: type and content by path."""
    base = os.fsencode(root)
    found: dict[bytes, tuple[str, bytes]] = {}
    for directory, names, files in os.walk(base):
        for name in names + files:
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, base)
            if os.path.islink(path):
                found[relative] = ("symlink", os.readlink(path))
            elif os.path.isdir(path):
                if not os.listdir(path):
                    found[relative] = ("directory", b"")
            else:
                with open(path, "rb") as file:
                    kind = "executable" if os.stat(path).st_mode & 0o100 else "file"
                    found[relative] = (kind, file.read())
    return found


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail instead of waiting for ever."""

    def stop(*_: object) -> None:
        raise AssertionError(f"hangs: not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def open_to_all() -> Iterator[Path]:
    """Give a directory that another user can enter and write."""
    with tempfile.TemporaryDirectory(prefix="prov-open-") as place:
        os.chmod(place, 0o777)
        yield Path(place)


def as_nobody(work: Callable[[], T]) -> T:
    """Run something as a user without rights, in a child; its result must be picklable."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            try:
                answer: tuple[bool, Any] = (True, work())
            except (ProvError, OSError, AssertionError, KeyError, ValueError, TypeError) as error:
                answer = (False, f"{type(error).__name__}: {error}")
            with os.fdopen(into, "wb") as sink:
                pickle.dump(answer, sink)
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as source:
        data = source.read()
    os.waitpid(child, 0)
    assert data, "the child died"
    good, value = pickle.loads(data)
    assert good, value
    result: T = value
    return result


def git(folder: Path, *arguments: str) -> str:
    """Run the real git without anybody's settings."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": os.fspath(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "LC_ALL": "C",
    }
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    full = ["git", "-C", os.fspath(folder), *who, *arguments]
    return subprocess.run(full, check=True, env=env, capture_output=True, text=True).stdout.strip()


def after_walk(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen between the walk of a small tree and the reading of its files."""
    listings = Walker.listings

    def then(self: Walker) -> Iterator[tuple[bytes, bytes, Listing | None]]:
        yield from listings(self)
        act()

    monkeypatch.setattr(Walker, "listings", then)
