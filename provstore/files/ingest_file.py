"""One file that was named by its own path, into a stage."""

import os
import stat

from provstore.errors import SourceUnreadableError, SpecialFileError
from provstore.files import stat_cache
from provstore.files.hashing import PLAIN, Hashed
from provstore.files.ingest import Ingest
from provstore.files.outcome import Ingested, Options
from provstore.files.progress import Meter
from provstore.files.root import Root, pack_row, type_name
from provstore.files.walk import Listing, refuse_inside
from provstore.paths import show
from provstore.records.tree import TreeEntry
from provstore.store.objects import Records
from provstore.store.protocol import Reader, Stage


def ingest_file(
    stage: Stage, reader: Reader, known: Records, path: bytes, options: Options, meter: Meter
) -> Ingested:
    """Bring one file into a stage; its entry carries the file's own name.

    Args:
        stage: receives the object and what the stat cache remembers.
        reader: the store behind the stage.
        known: sees records of both.
        path: the file.
        options: see :class:`~provstore.files.outcome.Options`; exclusion does not apply.
        meter: is told of progress.

    Raises:
        SpecialFileError: a FIFO, socket or device.
        SourceUnreadableError: it cannot be looked at.
        UsageError: it lies in a store.
    """
    one = Ingest(stage, reader, known, options, meter)
    follow = options.settings.follow_symlinks
    if follow or not os.path.islink(path):
        refuse_inside(path, options.skip)
    directory, name = os.path.split(os.path.abspath(path))
    looked_ns = stat_cache.now_ns()
    with Root(directory) as root:
        try:
            status = os.stat(path) if follow else root.lstat(name)
        except OSError as error:
            raise SourceUnreadableError([(show(path), error.strerror or str(error))]) from error
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            raise SpecialFileError([(show(path), type_name(status.st_mode))])
        listing = Listing(b"", [name], pack_row(status))
        key = one.memory.key(root.path, name)
        entry = _remembered(one, key, listing.rows)
        if entry is None:
            entry, done = one.single(root, listing)
            if options.use_cache and done is not None:
                _remember(one, key, listing, looked_ns, entry, done)
        elif stat.S_ISREG(status.st_mode):
            one.files, one.size_bytes = 1, entry.size_bytes or 0
    return one.finished(None, entry)


def _remembered(one: Ingest, key: bytes, row: bytes) -> TreeEntry | None:
    """Return the entry of an unchanged file whose bytes, or place, the store still has."""
    if not one.options.use_cache or one.options.settings.git:
        return None
    entry = stat_cache.decode_file(one.reader.cached(key), row)
    if entry is None or entry.blake3 is None:
        return None
    id = bytes.fromhex(entry.blake3)
    there = one.stage.has_object(id) if one.options.keep else one.reader.info(id) is not None
    return entry if there else None


def _remember(
    one: Ingest, key: bytes, listing: Listing, looked_ns: int, entry: TreeEntry, done: Hashed
) -> None:
    whole = done.flags == PLAIN and done.blake3 and done.row == listing.rows
    if whole and stat_cache.trusted_rows(listing.rows, looked_ns) == listing.rows:
        one.stage.add_cached({key: stat_cache.encode_file(listing.rows, entry)})
