"""A new index out of the blob files alone, when ``data.mdb`` is lost or damaged."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from provstore.errors import NotAStoreError, ProvError, StoreDamagedError, UsageError
from provstore.ids import Digests, RawId, TwinHasher
from provstore.paths import show
from provstore.store import blobs, frame, rows, writer_lock
from provstore.store.lmdb_env import Env
from provstore.store.lmdb_registry import acquire, release
from provstore.store.lmdb_store import LmdbStore, initialise
from provstore.store.lmdb_sweep import REBUILD_SUFFIX
from provstore.store.lmdb_txn import Txn
from provstore.store.profile import DEFAULT, StoreProfile
from provstore.store.steps import reached
from provstore.store.system import refused, sync_paths

_BATCH: Final = 10_000


class Rebuilt(NamedTuple):
    """What came of a rebuild.

    Attributes:
        objects: files that are in the new index.
        size_bytes: plain bytes of them.
        damaged: id and reason of files that are not, since their bytes are not what their names say.
        kept_as: name of the old index inside the store, or None when there was none.
    """

    objects: int
    size_bytes: int
    damaged: list[tuple[RawId, str]]
    kept_as: str | None


Told = Callable[[int, RawId], None]
"""Is given the size and id of each file that was read."""


def rebuild(path: str, told: Told, profile: StoreProfile = DEFAULT) -> Rebuilt:
    """Hash every blob file and put a new index in the place of one that cannot be read.

    The old index stays beside it under a dated name. Nobody else may have the store open.

    Args:
        path: the store.
        told: is told of each file.
        profile: sizes and waiting.

    Raises:
        NotAStoreError: there are no blob files.
        UsageError: the index is there and can be read; a rebuild would forget what only it holds.
        StoreBusyError: another process writes.
        StoreFullError, InputOutputError: the system refused; the store is as it was.
    """
    shown = show(path)
    if not os.path.isdir(os.path.join(path, "blobs")):
        raise NotAStoreError(shown, "there is no directory of blob files in it")
    _refuse_readable(path, profile)
    tmp = os.path.join(path, "tmp")
    try:
        os.makedirs(tmp, exist_ok=True)
        with writer_lock.held(tmp, shown, profile.wait_s):
            place = blobs.temporary_path(path, REBUILD_SUFFIX)
            os.mkdir(place)
            try:
                found = _write(place, path, told, profile)
                reached("rebuild-written")
                kept_as = _exchange(path, place)
            finally:
                shutil.rmtree(place, ignore_errors=True)
            reached("rebuild-finished")
    except OSError as error:
        raise refused(error, shown) from error
    return found._replace(kept_as=kept_as)


def _refuse_readable(path: str, profile: StoreProfile) -> None:
    """Raise UsageError unless something of the index cannot be read."""
    with contextlib.suppress(NotAStoreError, StoreDamagedError), contextlib.ExitStack() as opened:
        store = LmdbStore.open(path, writable=False, profile=profile, thorough=True)
        opened.callback(store.close)
        read = sum(1 for _ in store.units()) + sum(1 for _ in store.objects()) + len(store.refs())
        read += len(store.ref_log())
        raise UsageError(
            f"{show(path)}: its index can be read ({read} rows and frames); `prov fsck --repair` mends what "
            "is damaged without forgetting the rest. To rebuild all the same, move data.mdb away"
        )


def _write(place: str, path: str, told: Told, profile: StoreProfile) -> Rebuilt:
    """Make an index of all blob files in a directory of its own."""
    damaged: list[tuple[RawId, str]] = []
    count = size = 0
    env = acquire(place, profile, writable=True, create=True)
    try:
        env.write(lambda txn: initialise(txn, show(path)))
        batch: dict[RawId, bytes] = {}
        last = b""
        for object_id, framed in _files(path):
            if object_id == last:
                continue  # the other form of a file that is whole
            try:
                digests, stored = _hash(path, object_id, framed)
            except ProvError as error:
                damaged.append((object_id, error.message))
                continue
            told(digests.size_bytes, object_id)
            if digests.blake3 != object_id:
                damaged.append((object_id, f"its file holds bytes that give {digests.blake3.hex()}"))
                continue
            batch[object_id] = rows.blob_row(digests.sha256, digests.size_bytes, stored, framed)
            last = object_id
            count += 1
            size += digests.size_bytes
            if len(batch) >= _BATCH:
                _put(env, batch)
                batch = {}
        _put(env, batch)
        stamp = rows.number_key(time.time_ns())
        env.write(lambda txn: txn.put("settings", b"rebuilt_ns", stamp))
    finally:
        release(env)
    return Rebuilt(count, size, damaged, None)


def _put(env: Env, batch: dict[RawId, bytes]) -> None:
    def work(txn: Txn) -> None:
        txn.put_sorted("objects", sorted(batch.items()))
        txn.put_duplicates("by_sha256", sorted(rows.sha_row(row[1:33], key) for key, row in batch.items()))

    env.write(work)


def _files(path: str) -> Iterator[tuple[RawId, bool]]:
    """Yield id and form of each blob file in the order of ids; of two forms of one object both."""
    for name in sorted(os.listdir(os.path.join(path, "blobs"))):
        directory = os.path.join("blobs", name)
        if os.path.isdir(os.path.join(path, directory)):
            for file in sorted(os.listdir(os.path.join(path, directory))):
                parsed = blobs.parse_path(os.path.join(directory, file))
                if parsed is not None:
                    yield parsed


def _hash(path: str, object_id: RawId, framed: bool) -> tuple[Digests, int]:
    """Return the digests of the plain bytes of a blob file, and its length.

    Raises:
        FrameError: a frame of it is malformed.
        InputOutputError: the system refused.
    """
    place = os.path.join(path, blobs.relative_path(object_id, framed))
    twin = TwinHasher()
    try:
        number = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(number, "rb") as file:
            if framed:
                # A frame that is damaged may still give the right bytes; the hash decides, `fsck` names it.
                for plain in frame.read_frames(file, where=f"blob {object_id.hex()}", salvaging=True):
                    twin.update(plain)
            else:
                while chunk := file.read(blobs.CHUNK_BYTES):
                    twin.update(chunk)
            return twin.digests(), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise refused(error, show(place)) from error


def _exchange(path: str, place: str) -> str | None:
    """Give the new index the name of the old one, which stays under a dated name."""
    old = os.path.join(path, "data.mdb")
    kept_as = None
    if os.path.lexists(old):
        kept_as = time.strftime("data.mdb-%Y%m%dT%H%M%SZ", time.gmtime())
        while os.path.lexists(os.path.join(path, kept_as)):
            kept_as += "x"
        try:
            os.link(old, os.path.join(path, kept_as))
        except OSError:  # a file system without hard links
            os.rename(old, os.path.join(path, kept_as))
    reached("rebuild-kept")
    # What it says of readers belongs to the old index; whoever opens the new one makes it again.
    blobs.remove_quietly(os.path.join(path, "lock.mdb"))
    os.rename(os.path.join(place, "data.mdb"), old)
    reached("rebuild-renamed")
    sync_paths([path], path)
    return kept_as
