"""A directory or file into a stage: walked, compared with the stat cache, read once, built into a tree.

Nothing here decides what is good enough to seal: stand-ins, holes and growing files are reported with the
tree, and the verb refuses or records them.
"""

import os
import queue
import stat
import threading
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from provstore import merkle
from provstore.errors import ProvError
from provstore.files import hashing, pool, stat_cache
from provstore.files.hashing import Hashed, Job
from provstore.files.plans import Before, Plan
from provstore.files.progress import Meter
from provstore.files.walk import ROW, UNREADABLE, Listing, Root, Row, refuse_inside, walk
from provstore.ids import RawId
from provstore.paths import join, name_fields
from provstore.records.tree import MemberState, TreeEntry
from provstore.store.objects import Records
from provstore.store.protocol import BlobWriter, Location, Reader, Stage

Kept = tuple[bytes, TreeEntry]
"""Path below the root and its entry."""


class Options(NamedTuple):
    """How a directory becomes a tree.

    Attributes:
        exclude: patterns that are left out.
        skip: device and inode of directories never entered.
        keep: store the bytes; otherwise only note where they are.
        use_cache: trust the stat cache for unchanged files.
        workers: processes for small files; None to decide by their number.
        settings: how files are read.
    """

    exclude: tuple[str, ...] = ()
    skip: frozenset[tuple[int, int]] = frozenset()
    keep: bool = True
    use_cache: bool = True
    workers: int | None = None
    settings: hashing.Settings = hashing.Settings()


class Ingested(NamedTuple):
    """What came of it.

    Attributes:
        tree: id of the tree record of a directory; None for a file.
        file: the entry of a file; None for a directory.
        files: number of files.
        size_bytes: sum of their sizes.
        excluded: path and rule of what was left out.
        unreadable: path and reason of holes.
        changed: path and stat fields of files that did not hold still.
        pointers: paths of LFS pointers.
        bundles: paths of Git bundles.
        growing: paths of which a prefix was taken.
        git_ids: Git blob id by path, where asked for.
        bytes_read: bytes read from files.
    """

    tree: RawId | None
    file: TreeEntry | None
    files: int
    size_bytes: int
    excluded: list[tuple[bytes, str]]
    unreadable: list[tuple[bytes, str]]
    changed: list[tuple[bytes, tuple[str, ...]]]
    pointers: list[bytes]
    bundles: list[bytes]
    growing: list[bytes]
    git_ids: dict[bytes, bytes]
    bytes_read: int


class Ingest:
    """One directory or file on its way into a stage."""

    def __init__(self, stage: Stage, reader: Reader, known: Records, options: Options, meter: Meter) -> None:
        self.stage = stage
        self.reader = reader
        self.known = known
        self.options = options
        self.meter = meter
        self.result = Ingested(None, None, 0, 0, [], [], [], [], [], [], {}, 0)
        self.files = 0
        self.size_bytes = 0
        self.bytes_read = 0
        self.done: dict[bytes, Hashed] = {}
        self.lock = threading.Lock()

    # Directories

    def directory(self, path: bytes) -> Ingested:
        """Walk, read what the cache does not vouch for, build trees from below."""
        walked_ns = stat_cache.now_ns()
        with Root(path) as root:
            found = walk(
                root,
                self.options.exclude,
                self.options.skip,
                follow_symlinks=self.options.settings.follow_symlinks,
            )
            plans = [Plan(listing, self._remembered(root, listing)) for listing in found.listings]
            jobs = [job for plan in plans for job in plan.jobs()]
            self.meter.files_total = len(jobs)
            self.meter.bytes_total = sum(ROW.unpack(row)[2] for _, row in jobs)
            self.read(root, jobs)
            tree = self._build(root, plans, walked_ns)
        self.result.excluded.extend(found.excluded)
        self.result.unreadable.extend(found.unreadable)
        return self.finished(tree, None)

    def finished(self, tree: RawId | None, file: TreeEntry | None) -> Ingested:
        """Return the result with the counts of what was done."""
        return self.result._replace(
            tree=tree,
            file=file,
            files=self.files,
            size_bytes=self.size_bytes,
            bytes_read=self.bytes_read,
        )

    def cache_key(self, root: Root, path: bytes) -> bytes:
        """Return the key of what the stat cache remembers of a path under these options."""
        options = repr((self.options.exclude, self.options.keep, tuple(self.options.settings))).encode()
        return stat_cache.key(root.path, path, options)

    def _remembered(self, root: Root, listing: Listing) -> Before | None:
        if not self.options.use_cache or self.options.settings.git:
            return None
        value = stat_cache.decode(self.reader.cached(self.cache_key(root, listing.path)))
        if value is None or not self.stage.has_record(value.tree):
            return None
        return Before(value, self.known.fetch)

    def _build(self, root: Root, plans: list[Plan], walked_ns: int) -> RawId:
        trees: dict[bytes, RawId] = {}
        cached: dict[bytes, bytes | None] = {}
        for plan in reversed(plans):
            path = plan.listing.path
            tree = plan.unchanged(trees)
            if tree is None:
                entries = [self.entry(root, plan, index, trees) for index in range(len(plan.listing.names))]
                nodes = merkle.build(entries)
                for id, data in nodes:
                    self._record(id, data)
                tree = nodes[-1][0]
            self._finish_directory(plan, tree, trees)
            if self.options.use_cache and not (plan.same and plan.before and plan.before.value.tree == tree):
                remembered = stat_cache.Remembered(
                    stat_cache.names_digest(plan.listing.names),
                    tree,
                    self._cacheable(plan.listing, walked_ns),
                )
                cached[self.cache_key(root, path)] = stat_cache.encode(remembered)
        self.stage.add_cached(cached)
        return trees[b""]

    def _finish_directory(self, plan: Plan, tree: RawId, trees: dict[bytes, RawId]) -> None:
        """Count the files of a directory, and keep only its own tree in hand."""
        path = plan.listing.path
        for name, row in plan.listing.members():
            if stat.S_ISDIR(row.mode):
                trees.pop(join(path, name), None)
            elif stat.S_ISREG(row.mode):
                self.count(row, self.done.get(join(path, name)))
        trees[path] = tree

    def count(self, row: Row, done: Hashed | None) -> None:
        """Count one regular file, unless reading it failed."""
        if done is None or done.blake3:
            self.files += 1
            self.size_bytes += row.size_bytes if done is None else done.size_bytes

    def _cacheable(self, listing: Listing, walked_ns: int) -> bytes:
        """Return the rows to remember: blank for what must be read again next time."""
        rows = bytearray(stat_cache.trusted_rows(listing, walked_ns))
        for index, name in enumerate(listing.names):
            done = self.done.get(join(listing.path, name))
            if done is not None:
                place = slice(index * ROW.size, (index + 1) * ROW.size)
                if done.flags or not done.blake3 or done.row != listing.rows[place]:
                    rows[place] = bytes(ROW.size)
        return bytes(rows)

    def _record(self, id: RawId, data: bytes) -> None:
        if not self.stage.has_record(id):
            self.stage.add_record(id, data)
        self.known.new[id] = data

    def entry(self, root: Root, plan: Plan, index: int, trees: dict[bytes, RawId]) -> TreeEntry:
        """Return the tree entry of one name of a directory."""
        name = plan.listing.names[index]
        path = join(plan.listing.path, name)
        row = plan.listing.row(index)
        text, text_hex = name_fields(name)
        if stat.S_ISDIR(row.mode):
            tree = trees.get(path)
            if tree is None:
                return TreeEntry(kind="file", name=text, name_hex=text_hex, state="unreadable")
            return TreeEntry(kind="directory", name=text, name_hex=text_hex, tree=tree.hex())
        if stat.S_ISLNK(row.mode):
            return self._symlink(root, path, text, text_hex)
        reused = plan.reused.get(name)
        if reused is not None:
            return reused
        done = self.done.get(path)
        if row.mode == UNREADABLE or done is None or not done.blake3:
            return TreeEntry(kind="file", name=text, name_hex=text_hex, state="unreadable")
        return file_entry(done, row.mode, text, text_hex)

    def _symlink(self, root: Root, path: bytes, text: str | None, text_hex: str | None) -> TreeEntry:
        try:
            target, target_hex = name_fields(root.readlink(path))
        except OSError as error:
            self.result.unreadable.append((path, error.strerror or str(error)))
            return TreeEntry(kind="file", name=text, name_hex=text_hex, state="unreadable")
        return TreeEntry(kind="symlink", name=text, name_hex=text_hex, target=target, target_hex=target_hex)

    # Reading

    def read(self, root: Root, jobs: Sequence[Job]) -> None:
        """Read and hash files, small ones in batches, large ones on threads."""
        small = [job for job in jobs if ROW.unpack(job[1])[2] <= hashing.SMALL_BYTES]
        large = [job for job in jobs if ROW.unpack(job[1])[2] > hashing.SMALL_BYTES]
        large.sort(key=lambda job: -ROW.unpack(job[1])[2])
        workers = self.options.workers
        if workers is None:
            workers = pool.default_workers(len(small))
        for packed in pool.run(root, _batches(small), self.options.settings, self._wanted, workers):
            for (path, row), done in zip(packed.jobs, packed.results, strict=True):
                self._note(root, path, row, done)
            for data, group in packed.frames:
                self.stage.add_frame(data, [packed.results[i].digests() for i in group])
        self._read_large(root, large)

    def _wanted(self, jobs: Sequence[Job], results: Sequence[Hashed]) -> list[int]:
        """Pick each content that is neither in the store nor in the stage, nor earlier in the batch."""
        picked: list[int] = []
        seen: set[bytes] = set()
        for index, done in enumerate(results):
            if done.blake3 and done.blake3 not in seen and not self.stage.has_object(done.blake3):
                seen.add(done.blake3)
                picked.append(index)
        return picked if self.options.keep else []

    def _note(self, root: Root, path: bytes, row: bytes, done: Hashed) -> None:
        """Take over the result of one file."""
        self.done[path] = done
        if not done.blake3:
            if done.changed:
                self.result.changed.append((path, done.changed))
            else:
                self.result.unreadable.append((path, done.reason))
            return
        self.bytes_read += done.size_bytes
        if done.git:
            self.result.git_ids[path] = done.git
            self.stage.add_git(done.git, done.blake3)
        if done.flags & hashing.LFS_POINTER:
            self.result.pointers.append(path)
        if done.flags & hashing.GIT_BUNDLE:
            self.result.bundles.append(path)
        if done.flags & hashing.PREFIX:
            self.result.growing.append(path)
        if not self.options.keep:
            self._external(root, path, done)
        if ROW.unpack(row)[2] <= hashing.SMALL_BYTES:
            self.meter.add(done.size_bytes, 1, path)

    def _external(self, root: Root, path: bytes, done: Hashed) -> None:
        place = Location(join(root.path.rstrip(b"/"), path), Row._make(ROW.unpack(done.row)).signature())
        self.stage.add_external(done.digests(), place)

    def _read_large(self, root: Root, jobs: Sequence[Job]) -> None:
        """Stream large files on one thread a core; each blob goes to a file of its own."""
        todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            todo.put(job)
        failures: list[ProvError | OSError] = []

        def work() -> None:
            while not failures:
                try:
                    job = todo.get_nowait()
                except queue.Empty:
                    return
                try:
                    self._one_large(root, job)
                except (ProvError, OSError) as error:
                    failures.append(error)

        count = min(len(jobs), os.cpu_count() or 1)
        threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _one_large(self, root: Root, job: Job) -> None:
        writer: BlobWriter | None = None
        if self.options.keep:
            with self.lock:
                writer = self.stage.blob()

        def told(size_bytes: int) -> None:
            with self.lock:
                self.meter.add(size_bytes, 0, job[0])

        write = writer.write if writer is not None else None
        finished = False
        try:
            done = hashing.hash_large(root, job, self.options.settings, write, told)
            with self.lock:
                if writer is not None and done.blake3 and not self.stage.has_object(done.blake3):
                    writer.finish(done.digests())
                    finished = True
        finally:
            if writer is not None and not finished:
                writer.discard()
        with self.lock:
            self._note(root, job[0], job[1], done)
            self.meter.add(0, 1, job[0])


def _batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += ROW.unpack(job[1])[2]
        if len(batch) >= hashing.BATCH_FILES or size >= hashing.BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


_STATES: Final[dict[int, MemberState]] = {hashing.LFS_POINTER: "pointer", hashing.PREFIX: "prefix"}


def file_entry(done: Hashed, mode: int, name: str | None, name_hex: str | None) -> TreeEntry:
    """Return the tree entry of a file that was read."""
    state = next((text for flag, text in _STATES.items() if done.flags & flag), None)
    return TreeEntry(
        kind="executable" if mode & stat.S_IXUSR else "file",
        name=name,
        name_hex=name_hex,
        blake3=done.blake3.hex(),
        sha256=done.sha256.hex(),
        size_bytes=done.size_bytes,
        state=state,
    )


def ingest(
    stage: Stage, reader: Reader, known: Records, path: bytes, options: Options, meter: Meter
) -> Ingested:
    """Bring one directory into a stage.

    Args:
        stage: receives objects, records and cache values.
        reader: the store behind the stage.
        known: sees records of both.
        path: the directory.
        options: see :class:`Options`.
        meter: is told of progress.

    Raises:
        SpecialFileError: FIFOs, sockets or devices.
        SourceUnreadableError: the directory itself cannot be listed.
        UsageError: it lies in a store.
    """
    refuse_inside(path, options.skip)
    return Ingest(stage, reader, known, options, meter).directory(path)
