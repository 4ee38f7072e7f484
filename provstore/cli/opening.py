"""Which store a command uses: ``--store``, the environment, the nearest ``.prov``, the user's own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from provstore.cli.console import Console
from provstore.cli.watching import watch
from provstore.errors import NotAStoreError, UsageError
from provstore.paths import show
from provstore.store.opening import STORE_NAME, find_store, init_store, open_pack, open_store
from provstore.store.profile import StoreProfile
from provstore.store.protocol import Reader, Store
from provstore.verbs.locating import Located, locate

STORE_VARIABLES: Final = ("PROVSTORE", "PROV_STORE")
"""Environment variables that name a store; the first that is set counts."""

MAP_VARIABLE: Final = "PROV_MAP_SIZE"
"""First size of the index map in bytes, for tests of its growth."""


def chosen_store(out: Console) -> str | None:
    """Return the path of the store that was named or lies nearest, or None when there is none of these."""
    named = named_store(out)
    if named is not None:
        return named
    found = find_store(Path.cwd())
    return None if found is None else os.fspath(found)


def named_store(out: Console) -> str | None:
    """Return the path of the store that an option or the environment names, or None."""
    if out.store is not None:
        return out.store
    return next((os.environ[name] for name in STORE_VARIABLES if os.environ.get(name)), None)


def own_store() -> str:
    """Return the path of the user's own store, which need not exist."""
    from platformdirs import user_data_path

    return os.fspath(user_data_path("provstore") / "store")


@contextmanager
def writing_store(out: Console) -> Iterator[Store]:
    """Open the chosen store for writing; one that is not there yet is made, with a note."""
    path = chosen_store(out) or own_store()
    if _is_vacant(path):
        store = new_store(path)
        out.note(f"made a new store at {show(path)}")
    else:
        watch(path)
        store = open_store(path, profile=profile())
    try:
        yield store
    finally:
        store.close()


@contextmanager
def reading_store(out: Console, *, thorough: bool = False) -> Iterator[Store]:
    """Open the chosen store for reading; thoroughly where its index may be damaged.

    Raises:
        NotAStoreError: there is none.
    """
    path = _required(out)
    watch(path)
    store = open_store(path, writable=False, profile=profile(), thorough=thorough)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def existing_store(out: Console) -> Iterator[Store | None]:
    """Open the chosen store for reading if there is one; the user's own is not looked for."""
    if chosen_store(out) is None:
        yield None
        return
    with reading_store(out) as store:
        yield store


@contextmanager
def reading_any(out: Console) -> Iterator[Reader]:
    """Open the chosen store for reading; what was chosen may be a pack file.

    Raises:
        NotAStoreError: there is none.
    """
    path = _required(out)
    if not os.path.isfile(path):
        with reading_store(out) as store:
            yield store
        return
    pack = open_pack(path)
    try:
        yield pack
    finally:
        pack.close()


@contextmanager
def sweeping_store(out: Console, delete: bool) -> Iterator[Store]:
    """Open a store that is there, for writing only if something is to be removed."""
    path = _required(out)
    watch(path)
    store = open_store(path, writable=delete, profile=profile())
    try:
        yield store
    finally:
        store.close()


@contextmanager
def mending_store(out: Console) -> Iterator[Store]:
    """Open a store that is there for writing."""
    with sweeping_store(out, delete=True) as store:
        yield store


def wrecked_store(out: Console) -> str:
    """Return the path of a store that may have lost its index: the one that is named, or the nearest.

    Raises:
        NotAStoreError: none is named, and no ``.prov`` lies nearby.
    """
    named = named_store(out)
    if named is not None:
        return named
    for directory in (Path.cwd(), *Path.cwd().parents):
        if directory.joinpath(STORE_NAME, "blobs").is_dir():
            return os.fspath(directory / STORE_NAME)
    raise NotAStoreError(
        show(os.fspath(Path.cwd())), "no store is named, and no .prov with blobs lies nearby"
    )


@contextmanager
def any_store(out: Console, *names: str) -> Iterator[Store | None]:
    """Open the chosen store for reading, or none where there is none: a name may be a pack or a directory."""
    path = readable_store(out)
    if path is None or (not os.path.exists(path) and all(os.path.exists(name) for name in names)):
        yield None
        return
    with reading_store(out) as store:
        yield store


@contextmanager
def packet_of(out: Console, name: str) -> Iterator[Located]:
    """Find a packet in the chosen store or in a pack file, and close what was opened for it."""
    with any_store(out, name) as store, locate(name, store) as found:
        yield found


def ref_of(name: str, place: Located) -> str:
    """Return what a packet is called in a new pack: a ref, never the digits or the path that were typed."""
    if place.reader.ref(name) is not None:
        return name
    own = place.reader.refs() if place.owned else []
    return next((ref for ref, packet in own if packet == place.packet), "")


def new_store(path: str) -> Store:
    """Make a store, with the directories above it."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    return init_store(path, profile=profile())


def profile() -> StoreProfile | None:
    """Return the store profile that the environment asks for, or None for the usual one.

    Raises:
        UsageError: the variable is no number of bytes.
    """
    text = os.environ.get(MAP_VARIABLE)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) < 1 << 47:  # 47 bits of addresses
        raise UsageError(f"{MAP_VARIABLE}={show(text)} is no number of bytes")
    return StoreProfile(map_size_bytes=int(text))


def _required(out: Console) -> str:
    path = readable_store(out)
    if path is None:
        raise NotAStoreError(show(own_store()), "no store is named, none lies nearby, and you have none yet")
    return path


def readable_store(out: Console) -> str | None:
    """Return the path of the store that a reading command uses, or None when there is none at all."""
    path = chosen_store(out)
    return path if path is not None else next(filter(os.path.exists, [own_store()]), None)


def _is_vacant(path: str) -> bool:
    """Say whether nothing is at ``path``, or an empty directory."""
    return not os.path.lexists(path) or (os.path.isdir(path) and not os.listdir(path))
