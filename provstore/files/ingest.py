"""A directory or file into a stage: walked, compared with the stat cache, read once, built into a tree.

Nothing here decides what is good enough to seal: stand-ins, holes and growing files are reported with the
tree, and the verb refuses or records them.
"""

import stat
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from provstore import canon, merkle
from provstore.errors import SourceUnreadableError, SweptError
from provstore.files import hashing, pool
from provstore.files.encoding import encoded_directory, encoded_file, encoded_hole, encoded_symlink
from provstore.files.hashing import Hashed, Job
from provstore.files.outcome import Ingested, Options
from provstore.files.plans import Plan
from provstore.files.progress import Meter
from provstore.files.remembering import Memory
from provstore.files.root import ROW, Root, Row
from provstore.files.threads import on_threads
from provstore.files.walk import Listing, Walker, refuse_inside
from provstore.ids import RawId
from provstore.paths import join, show
from provstore.records.tree import TreeEntry
from provstore.store.objects import Records
from provstore.store.protocol import BlobWriter, Location, Reader, Stage


class Ingest:
    """One directory or file on its way into a stage."""

    def __init__(self, stage: Stage, reader: Reader, known: Records, options: Options, meter: Meter) -> None:
        self.stage = stage
        self.reader = reader
        self.known = known
        self.options = options
        self.meter = meter
        self.result = Ingested(None, None, 0, 0, 0, [], [], [], [], [], [], {}, 0)
        self.files = 0
        self.members = 0
        self.size_bytes = 0
        self.bytes_read = 0
        self._uses_cache = options.use_cache
        self.memory = Memory(reader, options)
        self._plans: dict[bytes, Plan] = {}
        self._awaited: dict[bytes, tuple[Plan, int]] = {}
        self._large: list[Job] = []
        self._root_tree: RawId | None = None
        self._promised: dict[bytes, bytes] = {}
        self._left: list[tuple[bytes, bytes]] = []
        self.lock = threading.Lock()

    # Directories

    def directory(self, path: bytes) -> Ingested:
        """Walk, read what the cache does not vouch for, build each tree as soon as all below it is known."""
        options = self.options
        with Root(path) as root:
            walker = Walker(
                root,
                options.exclude,
                options.skip,
                follow_symlinks=options.settings.follow_symlinks,
                remember=self.memory.recall if self._uses_cache else None,
            )
            self.memory.begin(root, walker.partly)
            self.read(root, self._batches(root, walker))
            for found, reason in walker.unreadable:
                if not found:
                    raise SourceUnreadableError([(show(root.path), reason)])
        tree = self._root_tree
        if tree is None or not self.stage.has_record(tree):
            raise SweptError((tree or b"").hex())
        if self._uses_cache:
            self.stage.add_cached(self.memory.changes())
        self.result.excluded.extend(sorted(walker.excluded))
        self.result.unreadable.extend(sorted(walker.unreadable))
        return self.finished(tree, None)

    def finished(self, tree: RawId | None, file: TreeEntry | None) -> Ingested:
        """Return the result with the counts of what was done."""
        return self.result._replace(
            tree=tree,
            file=file,
            files=self.files,
            members=self.members,
            size_bytes=self.size_bytes,
            bytes_read=self.bytes_read,
        )

    def _is_held(self, blake3: str) -> bool:
        return not self.options.keep or self.stage.has_object(bytes.fromhex(blake3))

    def _batches(self, root: Root, walker: Walker) -> Iterator[list[Job]]:
        """Yield what has to be read, in batches, while the walk goes on."""
        batch: list[Job] = []
        size = files = total = 0
        for path, own, listing in walker.listings():
            if listing is None:
                self._lost(root, path)
                continue
            self.members += len(listing.names)
            plan = Plan(listing, own, self.memory.take(), self.known.fetch, self._is_held)
            self._plans[path] = plan
            # Held open until all its files are on their way: results come in while batches are yielded.
            plan.waiting += 1
            base = path + b"/" if path else b""
            for index, row in plan.jobs():
                job = base + listing.names[index], row
                self._awaited[job[0]] = plan, index
                plan.waiting += 1
                length = int.from_bytes(row[16:24], "little")
                files += 1
                total += length
                if length > hashing.SMALL_BYTES:
                    self._large.append(job)
                    continue
                batch.append(job)
                size += length
                if len(batch) >= hashing.BATCH_FILES or size >= hashing.BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
            plan.waiting -= 1
            self._settle(root, plan)
        self.meter.files_total, self.meter.bytes_total = files, total
        if batch:
            yield batch

    def _lost(self, root: Root, path: bytes) -> None:
        """Tell the directory above that one of its directories could not be listed."""
        if path:
            self._settle(root, self._told(path, None))

    def _told(self, path: bytes, tree: RawId | None) -> Plan:
        """Give a directory's tree to the one above it, and return that."""
        directory, _, name = path.rpartition(b"/")
        above = self._plans[directory]
        above.trees[bisect_left(above.listing.names, name)] = tree
        above.waiting -= 1
        return above

    def _settle(self, root: Root, plan: Plan) -> None:
        """Build the tree of a directory if everything in it is known, and then those above it."""
        while not plan.waiting:
            path = plan.listing.path
            del self._plans[path]
            tree = plan.unchanged() if self._uses_cache else None
            if tree is None:
                tree = self._build(root, plan)
            elif plan.before is not None:
                self.files += plan.before.files
                self.size_bytes += plan.before.size_bytes
                self._recall_git(plan)
            if not path:
                self._root_tree = tree
                return
            plan = self._told(path, tree)

    def _build(self, root: Root, plan: Plan) -> RawId:
        names = plan.listing.names
        self._recall_git(plan)
        results, modes = plan.results, plan.modes()
        entries = [
            encoded_file(name, done)
            if (done := results.get(index)) is not None and done.blake3
            else (stat.S_ISREG(modes[index]) and done is None and plan.reused(name))
            or self.entry(root, plan, index)
            for index, name in enumerate(names)
        ]
        for below in plan.trees.values():
            if below is not None and not self.stage.has_record(below):
                raise SweptError(below.hex())
        nodes = merkle.build_encoded(names, entries)
        for id, data in nodes:
            self.stage.add_record(id, data)
            self.known.new[id] = data
        tree = nodes[-1][0]
        files, size_bytes = self._own_files(plan)
        self.files += files
        self.size_bytes += size_bytes
        if self._uses_cache:
            self.memory.note(plan, tree, (files, size_bytes), self.result.git_ids)
        return tree

    def _recall_git(self, plan: Plan) -> None:
        """Take the Git blob ids of files that were not read from what is remembered of them."""
        for index, name in enumerate(plan.listing.names if self.options.settings.git else ()):
            id = plan.git_id(name)
            if index not in plan.results and any(id):
                self.result.git_ids[join(plan.listing.path, name)] = id

    def _own_files(self, plan: Plan) -> tuple[int, int]:
        """Return number and size of the files of one directory, leaving out those that could not be read."""
        files = size_bytes = 0
        for index, (_, _, size, _, _, mode) in enumerate(ROW.iter_unpack(plan.listing.rows)):
            if stat.S_ISREG(mode):
                done = plan.results.get(index)
                if done is None:
                    files += 1
                    size_bytes += size
                elif done.blake3:
                    files += 1
                    size_bytes += done.size_bytes
        return files, size_bytes

    def entry(self, root: Root, plan: Plan, index: int) -> bytes:
        """Return the canonical bytes of the tree entry of one name of a directory."""
        name = plan.listing.names[index]
        done = plan.results.get(index)
        if done is not None and done.blake3:
            return encoded_file(name, done)
        mode = ROW.unpack_from(plan.listing.rows, index * ROW.size)[5]
        if stat.S_ISDIR(mode):
            tree = plan.trees.get(index)
            return encoded_directory(name, tree) if tree is not None else encoded_hole(name)
        if stat.S_ISLNK(mode):
            return self._symlink(root, join(plan.listing.path, name), name)
        reused = plan.reused(name) if done is None else None
        return reused if reused is not None else encoded_hole(name)

    def _symlink(self, root: Root, path: bytes, name: bytes) -> bytes:
        try:
            return encoded_symlink(name, root.readlink(path))
        except OSError as error:
            self.result.unreadable.append((path, error.strerror or str(error)))
            return encoded_hole(name)

    def single(self, root: Root, listing: Listing) -> tuple[TreeEntry, Hashed | None]:
        """Read the one member of a listing; returns its entry, and its digests if it is a file."""
        plan = Plan(listing, b"", None, self.known.fetch, self._is_held)
        jobs = [(join(listing.path, listing.names[index]), row) for index, row in plan.jobs()]
        # One more than there are members, so that no tree is built for the directory around it.
        plan.waiting += len(jobs) + 1
        self._awaited.update((path, (plan, 0)) for path, _ in jobs)
        self._large = [job for job in jobs if ROW.unpack(job[1])[2] > hashing.SMALL_BYTES]
        self.read(root, iter([jobs] if jobs and not self._large else []))
        self.files, self.size_bytes = self._own_files(plan)
        entry = canon.decode(self.entry(root, plan, 0), TreeEntry, "tree entry", bounded=True)
        return entry, plan.results.get(0)

    # Reading

    def read(self, root: Root, batches: Iterator[list[Job]]) -> None:
        """Read and hash files, small ones in batches, then the large ones that came up, on threads."""
        settings = self.options.settings
        for packed in pool.run(root, batches, settings, self._wanted, self.options.workers):
            for data, group in packed.frames:
                self.stage.add_frame(data, [packed.results[i].digests() for i in group])
            for (path, _), done in zip(packed.jobs, packed.results, strict=True):
                self._note(root, path, done)
            if packed.jobs:
                done_bytes = sum([done.size_bytes for done in packed.results])
                self.meter.add(done_bytes, len(packed.jobs), packed.jobs[-1][0])
        self._check_promises()
        self._read_large(root)

    def _wanted(self, jobs: Sequence[Job], results: Sequence[Hashed]) -> list[int]:
        """Pick each content that is neither held nor in another batch that is on its way, once a batch."""
        picked: list[int] = []
        if not self.options.keep:
            return picked
        batch = jobs[0][0]
        seen: set[bytes] = set()
        for index, done in enumerate(results):
            id = done.blake3
            if not id or id in seen or self.stage.has_object(id):
                continue
            if self._promised.setdefault(id, batch) != batch:
                self._left.append((jobs[index][0], id))
                continue
            seen.add(id)
            picked.append(index)
        return picked

    def _check_promises(self) -> None:
        """Refuse what was left to a batch whose worker died and whose files were other ones afterwards."""
        for path, id in self._left:
            if not self.stage.has_object(id):
                self.result.changed.append((path, ("content of a copy",)))
        self._promised.clear()
        self._left.clear()

    def _note(self, root: Root, path: bytes, done: Hashed) -> None:
        """Take over the result of one file, and build what was waiting for it."""
        plan, index = self._awaited.pop(path)
        plan.results[index] = done
        if done.flags or done.git or not done.blake3 or not self.options.keep:
            self._take(root, path, done)
        else:
            self.bytes_read += done.size_bytes
        plan.waiting -= 1
        if not plan.waiting:
            self._settle(root, plan)

    def _take(self, root: Root, path: bytes, done: Hashed) -> None:
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

    def _external(self, root: Root, path: bytes, done: Hashed) -> None:
        place = Location(join(root.path.rstrip(b"/"), path), Row._make(ROW.unpack(done.row)).signature())
        self.stage.add_external(done.digests(), place)

    def _read_large(self, root: Root) -> None:
        """Read the large files that came up, the largest first."""

        def read_one(job: Job) -> None:
            self._one_large(root, job)

        on_threads(sorted(self._large, key=lambda job: -ROW.unpack(job[1])[2]), read_one)

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
            self._note(root, job[0], done)
            self.meter.add(0, 1, job[0])


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
