"""The stat cache of one ingest: what is known of directories before, and what is noted of them after."""

from collections.abc import Container, Mapping

from provstore.files import stat_cache
from provstore.files.outcome import Options
from provstore.files.plans import Plan
from provstore.files.root import ROW, Root
from provstore.files.walk import Known
from provstore.ids import RawId
from provstore.paths import join
from provstore.store.protocol import Reader


class Memory:
    """Recalls directories for a walk and notes what the seal made of them.

    Args:
        reader: the store behind the stage.
        options: those that shape a tree are part of every key.

    Attributes:
        cached: values to set in the stat cache.
        walked_ns: wall clock before the walk began.
    """

    def __init__(self, reader: Reader, options: Options) -> None:
        self.cached: dict[bytes, bytes | None] = {}
        self.walked_ns = stat_cache.now_ns()
        self._reader = reader
        self._git = options.settings.git
        self._options = repr((options.exclude, options.keep, tuple(options.settings))).encode()
        self._known: dict[bytes, stat_cache.Remembered | None] = {}
        self._root = b""
        self._partly: Container[bytes] = ()

    def begin(self, root: Root, partly: Container[bytes]) -> None:
        """Say where the walk begins, and which set will hold directories of which something is left out."""
        self._root = root.path
        self._partly = partly

    def key(self, root: bytes, path: bytes) -> bytes:
        """Return the key of what is remembered of a path under these options."""
        return stat_cache.key(root, path, self._options)

    def recall(self, paths: list[bytes]) -> list[Known | None]:
        """Return what is remembered of directories; :meth:`take` gives all of it later."""
        values = self._reader.cached_many([self.key(self._root, path) for path in paths])
        found: list[Known | None] = []
        for path, value in zip(paths, values, strict=True):
            known = stat_cache.decode(value)
            self._known[path] = known
            found.append(known and Known(known.own, known.names, known.rows, known.directories))
        return found

    def take(self, path: bytes) -> stat_cache.Remembered | None:
        """Return what was recalled of a directory, once."""
        return self._known.pop(path, None)

    def note(
        self, plan: Plan, tree: RawId, own_files: tuple[int, int], git_ids: Mapping[bytes, bytes]
    ) -> None:
        """Remember a directory.

        Args:
            plan: as it was read.
            tree: its tree.
            own_files: number and size of its own files.
            git_ids: Git blob ids by path, where they were asked for.
        """
        path, names = plan.listing.path, plan.listing.names
        ids = [git_ids.get(join(path, name)) or bytes(20) for name in names] if self._git else []
        remembered = stat_cache.Remembered(
            tree,
            self._own(plan),
            b"/".join(names),
            self._rows(plan),
            b"".join([plan.trees.get(index) or bytes(32) for index in plan.directories]),
            plan.directories,
            *own_files,
            b"".join(ids),
        )
        self.cached[self.key(self._root, path)] = stat_cache.encode(remembered)

    def _own(self, plan: Plan) -> bytes:
        """Return the row that vouches for a listing: none, where what is left out must be told each time."""
        if plan.listing.path in self._partly:
            return bytes(ROW.size)
        return stat_cache.trusted_rows(plan.own, self.walked_ns)

    def _rows(self, plan: Plan) -> bytes:
        """Return the rows to remember: blank for what must be read again next time."""
        rows = stat_cache.trusted_rows(plan.listing.rows, self.walked_ns)
        size = ROW.size
        fresh = [
            index
            for index, done in plan.results.items()
            if done.flags
            or not done.blake3
            or done.row != plan.listing.rows[index * size : (index + 1) * size]
        ]
        if not fresh:
            return rows
        kept = bytearray(rows)
        for index in fresh:
            kept[index * size : (index + 1) * size] = bytes(size)
        return bytes(kept)
