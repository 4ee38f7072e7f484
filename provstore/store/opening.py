"""Opening stores: directories, packs, the nearest one; profiles from files."""

import os
from typing import Final

import msgspec

from provstore import libraries
from provstore.errors import NotAStoreError, SpecError
from provstore.paths import show
from provstore.store import data_file
from provstore.store.lmdb_rebuild import Rebuilt, Told, rebuild
from provstore.store.lmdb_store import LmdbStore
from provstore.store.pack import PackStore
from provstore.store.profile import DEFAULT, StoreProfile
from provstore.store.protocol import Reader, Store
from provstore.store.system import is_directory, refused

STORE_NAME: Final = ".prov"
"""Name of the directory of a store that belongs to the directory it lies in."""

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def open_store(
    path: AnyPath,
    *,
    create: bool = False,
    writable: bool = True,
    profile: StoreProfile | None = None,
    thorough: bool = False,
) -> Store:
    """Open a store directory, or the ``.prov`` inside ``path``.

    Args:
        path: the store, or a directory that has one.
        create: make the store if it is not there.
        writable: whether anything will be written.
        profile: sizes, limits and waiting; None for the defaults.
        thorough: look at every page of the index first, however large it is.

    Raises:
        NotAStoreError: there is no store.
        NewerFormatError: it was made by a newer release.
        StoreDamagedError: its index cannot be read.
        ReadOnlyError: ``writable``, and it cannot be written.
        InputOutputError: the system refused.
    """
    place = _store_directory(os.fsdecode(path))
    if create and writable and not _has_index(place):
        return LmdbStore.create(place, profile=profile or DEFAULT)
    return LmdbStore.open(place, writable=writable, profile=profile or DEFAULT, thorough=thorough)


def init_store(path: AnyPath, *, profile: StoreProfile | None = None) -> Store:
    """Make a store at ``path`` and open it for writing; one that is there already is opened.

    Raises:
        NotAStoreError: the directory holds something else.
        StoreFullError, InputOutputError: the system refused.
    """
    return LmdbStore.create(os.fsdecode(path), profile=profile or DEFAULT)


def index_bytes(path: AnyPath) -> int:
    """Return the length of the index file of a store, or of that in the ``.prov`` inside; 0 without one."""
    place = os.fsdecode(path)
    for directory in (place, os.path.join(place, STORE_NAME)):
        try:
            return os.stat(os.path.join(directory, "data.mdb")).st_size
        except (OSError, ValueError):
            continue
    return 0


def check_index(path: AnyPath) -> None:
    """Look at every page of the index of a store that this process has not open, by reading alone.

    Raises:
        NotAStoreError, StoreDamagedError, InputOutputError: see :func:`open_store`.
    """
    data_file.check(_store_directory(os.fsdecode(path)), thorough=True)


def rebuild_store(path: AnyPath, told: Told, *, profile: StoreProfile | None = None) -> Rebuilt:
    """Make a new index for a store, or for the ``.prov`` inside ``path``, from its blob files alone.

    Raises:
        NotAStoreError, UsageError, StoreBusyError, StoreFullError, InputOutputError: see
            :func:`provstore.store.lmdb_rebuild.rebuild`.
    """
    place = os.fsdecode(path)
    inner = os.path.join(place, STORE_NAME)
    if not os.path.lexists(os.path.join(place, "blobs")) and os.path.lexists(os.path.join(inner, "blobs")):
        place = inner
    return rebuild(place, told, profile or DEFAULT)


def open_pack(path: AnyPath) -> PackStore:
    """Open a pack file for reading in place.

    Raises:
        PackError: it is no pack, or its index is cut or altered.
        NewerFormatError: it was made by a newer release.
        InputOutputError: the system refused.
    """
    return PackStore(os.fsdecode(path))


def open_reader(path: AnyPath) -> Reader:
    """Open whatever ``path`` is for reading: a store, a directory with a ``.prov``, or a pack file.

    Raises:
        NotAStoreError, PackError, NewerFormatError, StoreDamagedError, InputOutputError: see
            :func:`open_store` and :func:`open_pack`.
    """
    place = os.fsdecode(path)
    try:
        if os.path.lexists(place) and not is_directory(place):
            return PackStore(place)
    except OSError as error:
        raise refused(error, show(place)) from error
    return open_store(place, writable=False)


def find_store(start: AnyPath) -> str | None:
    """Return the path of the nearest ``.prov`` with an index in ``start`` or above it, or None.

    One that this user may not look into counts as found, so that opening it is refused: another store must
    not silently take its place.
    """
    directory = os.path.abspath(os.fsdecode(start))
    while True:
        place = os.path.join(directory, STORE_NAME)
        try:
            found = _has_index(place)
        except OSError:
            found = os.path.lexists(place)
        if found:
            return place
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def load_profile(path: AnyPath) -> StoreProfile:
    """Read a store profile from a TOML file.

    Raises:
        SpecError: it is no TOML, or has an unknown or wrong setting.
        InputOutputError: the system refused to read it.
    """
    place = os.fsdecode(path)
    try:
        with open(place, "rb") as file:
            return msgspec.convert(libraries.tomllib.load(file), StoreProfile)
    except OSError as error:
        raise refused(error, show(place)) from error
    except (ValueError, RecursionError) as error:  # also of a number with too many digits
        raise SpecError(show(place), str(error)) from error


def _has_index(place: str) -> bool:
    """Say whether an index is there; raises OSError where the system does not let us see."""
    try:
        os.lstat(os.path.join(place, "data.mdb"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return True


def _store_directory(place: str) -> str:
    inner = os.path.join(place, STORE_NAME)
    try:
        if not _has_index(place) and _has_index(inner):
            return inner
        if os.path.lexists(place) and not is_directory(place):
            raise NotAStoreError(show(place), "it is a file, not a store directory")
    except OSError as error:
        raise refused(error, show(error.filename or place)) from error
    return place
