"""What a command's ``X`` stands for: a packet in a store, or the packet of a pack file."""

import os
import stat
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

from provstore.errors import AmbiguousError, NotFoundError, ProvError
from provstore.ids import RawId
from provstore.paths import show
from provstore.store.opening import open_pack
from provstore.store.protocol import Reader
from provstore.store.resolving import resolve_packet


class Located(NamedTuple):
    """A packet and where it can be read. Use it as a context manager.

    Attributes:
        reader: store or pack.
        packet: id of the packet.
        owned: the reader was opened for this and is closed with it.
    """

    reader: Reader
    packet: RawId
    owned: bool

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.owned:
            self.reader.close()


def locate(name: str, store: Reader | None) -> Located:
    """Find a packet by ref, id, prefix, or the path of a pack file.

    ``FILE:NAME`` picks one of several packets of a pack.

    Args:
        name: what a person gave.
        store: where to look first, if there is one.

    Raises:
        NotFoundError, AmbiguousError: nothing fits, or too much.
        PackError: the file is no whole pack.
    """
    problem: ProvError | None = None
    if store is not None:
        try:
            return Located(store, resolve_packet(store, name), False)
        except NotFoundError as error:
            problem = error
    path, _, inner = name, "", ""
    if not _is_file(path):
        path, _, inner = name.rpartition(":")
    if _is_file(path):
        return _in_pack(path, inner)
    if problem is not None:
        raise problem
    raise NotFoundError(show(name), "no store here, and no pack file of this name")


def _is_file(path: str) -> bool:
    with suppress(OSError, ValueError):
        return bool(path) and stat.S_ISREG(os.stat(path).st_mode)
    return False


def _in_pack(path: str, inner: str) -> Located:
    pack = open_pack(path)
    found: RawId | None = None
    try:
        if inner:
            found = resolve_packet(pack, inner)
        else:
            roots = sorted({id for _, id in pack.roots()})
            if len(roots) != 1:
                raise AmbiguousError(show(path), [id.hex() for id in roots])
            found = roots[0]
        return Located(pack, found, True)
    finally:
        if found is None:
            pack.close()
