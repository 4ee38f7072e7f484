"""Where good bytes can be had again: the store itself, files that were sealed, other stores, directories."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from provstore import records
from provstore.errors import (
    InputOutputError,
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    StoreDamagedError,
    UsageError,
)
from provstore.files.hashing import SMALL_BYTES, hash_file
from provstore.files.walk import refuse_inside
from provstore.ids import Buffer, Digests, RawId, TwinHasher
from provstore.paths import show
from provstore.store import objects
from provstore.store.opening import AnyPath, open_reader
from provstore.store.pack_format import MAGIC
from provstore.store.protocol import Reader, Stage, Store

OWN_FRAME: Final = "what is left of its own frames"
OWN_BYTES: Final = "its own bytes; what the index said of them was wrong"

REFUSALS: Final = (
    IntegrityError,
    MalformedError,
    NotFoundError,
    NotHeldError,
    StoreDamagedError,
    InputOutputError,
)
"""What a source raises that does not have the bytes, or not whole."""

_CHUNK_BYTES: Final = 1 << 20

_Feed = Callable[[Callable[[Buffer], object]], Digests]
"""Gives all bytes of an object to a function and returns their digests; raises what ``REFUSALS`` lists."""


class Supply:
    """Sources of good bytes in the order in which they are asked; whatever they give is hashed.

    Attributes:
        readers: other stores and packs.
    """

    def __init__(self, store: Store, readers: Sequence[Reader], trees: Sequence[bytes]) -> None:
        self.readers = list(readers)
        self._store = store
        self._skip = store.directory_ids().union(*(reader.directory_ids() for reader in readers))
        self._files = _Files(trees, self._skip)

    def object(self, stage: Stage, id: RawId) -> str | None:
        """Add an object to a stage and return where its bytes came from; None when nobody has them."""
        for source, feed in self._feeds(id):
            size = self._size(id)
            try:
                if _put(stage, id, size, feed):
                    return source
            except REFUSALS:
                continue
        return None

    def _size(self, id: RawId) -> int | None:
        """Return the size that the index states; None if it states none that can be read."""
        with contextlib.suppress(StoreDamagedError):
            info = self._store.info(id)
            return None if info is None else info.size_bytes
        return None

    def _feeds(self, id: RawId) -> Iterator[tuple[str, _Feed]]:
        store = self._store
        yield OWN_FRAME, lambda write: objects.salvage(store, id, write)
        yield OWN_BYTES, lambda write: objects.recount(store, id, write)
        for path in self._locations(id):
            yield show(path), _feed_file(path)
        for reader in self.readers:
            yield reader.where, _feed_reader(reader, id)
        found = self._files.find(id, self._size(id))
        if found is not None:
            yield show(found), _feed_file(found)

    def _locations(self, id: RawId) -> Iterator[bytes]:
        """Yield places outside any store of ours where the object was seen."""
        with contextlib.suppress(StoreDamagedError, UsageError):
            for location in self._store.locations(id):
                refuse_inside(location.path, self._skip)
                yield location.path

    def record(self, stage: Stage, id: RawId) -> tuple[str, bytes] | None:
        """Add a record to a stage; return where it came from and its bytes, or None."""
        with contextlib.suppress(*REFUSALS):
            data = objects.salvaged_record(self._store, id)
            if data is not None:
                records.decode(data, id.hex())
                stage.add_record(id, data)
                return OWN_FRAME, data
        for reader in self.readers:
            with contextlib.suppress(*REFUSALS):
                data = objects.record(reader, id)
                records.decode(data, id.hex())
                stage.add_record(id, data)
                return reader.where, data
        return None


def _put(stage: Stage, id: RawId, size_bytes: int | None, feed: _Feed) -> bool:
    """Give the bytes of a feed to a stage; nothing is added unless they hash to the id."""
    if size_bytes is not None and size_bytes <= SMALL_BYTES:
        parts: list[bytes] = []
        found = feed(lambda part: parts.append(bytes(part)))
        if found.blake3 == id:
            stage.add_object(found, b"".join(parts))
        return found.blake3 == id
    writer = stage.blob()
    finished = False
    try:
        found = feed(writer.write)
        if found.blake3 == id:
            writer.finish(found)
            finished = True
    finally:
        if not finished:
            writer.discard()
    return finished


def _feed_reader(reader: Reader, id: RawId) -> _Feed:
    return lambda write: objects.copy(reader, id, write)


def _feed_file(path: bytes) -> _Feed:
    def feed(write: Callable[[Buffer], object]) -> Digests:
        twin = TwinHasher()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with open(descriptor, "rb", buffering=0) as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise NotFoundError(show(path), "it is no regular file any more")
                while chunk := file.read(_CHUNK_BYTES):
                    twin.update(chunk)
                    write(chunk)
        except OSError as error:
            raise InputOutputError(show(path), error.errno or 0, error.strerror or str(error)) from error
        return twin.digests()

    return feed


class _Files:
    """The regular files below some directories, found by content; each is hashed once, if its size fits."""

    def __init__(self, trees: Sequence[bytes], skip: frozenset[tuple[int, int]]) -> None:
        self._trees = trees
        self._skip = skip
        self._unread: dict[int, list[bytes]] | None = None
        self._known: dict[RawId, bytes] = {}

    def find(self, id: RawId, size_bytes: int | None) -> bytes | None:
        """Return the path of a file with these bytes; without a size all files are read."""
        if self._unread is None:
            self._unread = {}
            for root in self._trees:
                for path, size in self._walk(root):
                    self._unread.setdefault(size, []).append(path)
        for size in list(self._unread) if size_bytes is None else [size_bytes]:
            for path in self._unread.pop(size, ()):
                with contextlib.suppress(OSError):
                    self._known.setdefault(hash_file(path).blake3, path)
        return self._known.get(id)

    def _walk(self, root: bytes) -> Iterator[tuple[bytes, int]]:
        if not os.path.isdir(root):
            yield root, os.stat(root).st_size
            return
        todo = [root]
        while todo:
            directory = todo.pop()
            with contextlib.suppress(OSError):
                here = os.stat(directory)
                if (here.st_dev, here.st_ino) in self._skip:
                    continue
                with os.scandir(directory) as entries:
                    for entry in sorted(entries, key=lambda entry: entry.name):
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
                        elif entry.is_file(follow_symlinks=False):
                            yield entry.path, entry.stat(follow_symlinks=False).st_size


@contextlib.contextmanager
def supply(store: Store, sources: Sequence[AnyPath]) -> Iterator[Supply]:
    """Open sources: stores, packs, directories, files; closed with the block.

    Raises:
        UsageError: a source is the store itself.
        InputOutputError: a source is not there.
        PackError, StoreDamagedError, NewerFormatError: a pack or store cannot be opened.
    """
    with contextlib.ExitStack() as opened:
        readers: list[Reader] = []
        trees: list[bytes] = []
        for source in sources:
            path = os.path.abspath(os.fsencode(source))
            try:
                kind = os.stat(path).st_mode
                packed = stat.S_ISREG(kind) and _begins(path, MAGIC)
            except OSError as error:
                raise InputOutputError(show(path), error.errno or 0, error.strerror or str(error)) from error
            whole = os.path.lexists(os.path.join(path, b"data.mdb"))
            if packed or whole or os.path.lexists(os.path.join(path, b".prov", b"data.mdb")):
                reader = open_reader(path)
                opened.callback(reader.close)
                if reader.directory_ids() & store.directory_ids():
                    if whole:
                        raise UsageError(f"{show(path)} is the store that is to be repaired")
                else:
                    readers.append(reader)
            if not packed and not whole:
                trees.append(path)
        yield Supply(store, readers, trees)


def _begins(path: bytes, magic: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic
