"""Damage that is planted in a store for a repair to find, sources for it, and what must hold in between."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from killing import PROFILE, copied

from provstore.errors import NotAStoreError, StoreDamagedError
from provstore.store import blobs
from provstore.store.lmdb_store import LmdbStore
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import reach
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack
from provstore.verbs.repairing import rebuild_index, repair

SOURCES = ("store", "pack", "directory")


class Damage(NamedTuple):
    """One way to damage a store.

    Attributes:
        ids: hex ids of all that it damages.
        plant: does it.
    """

    ids: set[str]
    plant: Callable[[], None]


def opened(path: Path, *, writable: bool = True) -> LmdbStore:
    return LmdbStore.open(os.fspath(path), writable=writable, profile=PROFILE)


def source_of(kind: str, store: Path, place: Path) -> Path:
    """Make a source of good bytes out of a whole store, before it is damaged.

    A directory is the one that was sealed last: it has the large files that all packets share.
    """
    if kind == "store":
        return copied(store, place / "donor")
    if kind == "directory":
        return place / "tree"
    target = place / "donor.pack"
    target.unlink(missing_ok=True)
    with opened(store, writable=False) as near:
        pack([(name, Located(near, id, False)) for name, id in near.refs()], target)
    return target


def damage_for(kind: str, store: Path, shared: str, chance: random.Random) -> Damage | None:
    """Choose damage that a source of this kind can make good; None where there is nothing to damage.

    Args:
        kind: of the source.
        store: the store.
        shared: hex id of a blob that the directory has.
        chance: chooses.
    """
    choices = list(_damages(store, kind, shared, chance))
    if kind != "store":  # packs and directories have nothing that no ref needs
        with opened(store, writable=False) as near:
            needed = {id.hex() for id in reach(near, [id for _, id in near.refs()], [])[0].objects}
        choices = [damage for damage in choices if damage.ids <= needed]
    return chance.choice(choices) if choices else None


def _damages(store: Path, kind: str, shared: str, chance: random.Random) -> Iterator[Damage]:
    with opened(store, writable=False) as near:
        wanted = {id for id, info in near.objects() if info.placement == "blob"}
        units = list(near.units())
        records = list(near.records())
    for id in sorted(wanted):
        if kind == "directory" and id.hex() != shared:
            continue
        for framed in (False, True):
            file = store / blobs.relative_path(id, framed)
            if file.exists():
                change = chance.choice((_flip, _cut, _lose))
                yield Damage({id.hex()}, lambda file=file, change=change: change(file))  # type: ignore[misc]
    for unit in units if kind != "directory" else ():
        # Packs have no observations, so records are damaged only where a store can give all of them.
        if len(unit.key) == 8 and (kind == "store" or not unit.records):
            members = {id.hex() for id in (*unit.objects, *unit.records)}
            at = chance.random()
            yield Damage(members, lambda key=unit.key, at=at: _spoil_frame(store, key, at))  # type: ignore[misc]
    if kind == "store" and records:
        id = chance.choice(records)
        yield Damage({id.hex()}, lambda: _lose_row(store, id))


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _lose(file: Path) -> None:
    file.unlink()


def _spoil_frame(store: Path, key: bytes, at: float) -> None:
    with opened(store) as near:
        packed = bytearray(near._env.get("frames", key) or b"")
        packed[int(at * len(packed))] ^= 0x10
        near._env.write(lambda txn: txn.put("frames", key, bytes(packed)))


def _lose_row(store: Path, id: bytes) -> None:
    with opened(store) as near:
        near._env.write(lambda txn: txn.delete("records", id))


def spoil_index(store: Path, chance: random.Random) -> None:
    """Make the index one that cannot be opened."""
    index = store / "data.mdb"
    how = chance.randrange(3)
    if how == 0:
        index.unlink()
    elif how == 1:
        index.write_bytes(chance.randbytes(9000))
    else:
        os.truncate(index, 10_000)


def mend(store: Path, source: Path, planted: set[str]) -> None:
    """Check that a repair that was killed left nothing worse than what was planted, and do it to the end."""
    with opened(store) as near:
        worse = {damage.id for damage in fsck(near).damaged} - planted
        assert not worse, f"damaged by a repair: {worse}"
        left = repair(near, [source]).damaged
        assert left == (), left


def is_readable(store: Path) -> bool:
    """Say whether a store can be opened."""
    try:
        opened(store, writable=False).close()
    except (NotAStoreError, StoreDamagedError):
        return False
    return True


def restore_index(store: Path, source: Path, promised: dict[str, str]) -> None:
    """Do a rebuild that was killed to the end, and bring packets back from a copy of the store."""
    if not is_readable(store):
        assert rebuild_index(store).damaged == ()
    with opened(store) as near:
        found = {name: id.hex() for name, id in near.refs()}
        assert found.items() <= promised.items(), "a rebuild shows packets that were not there"
        left = repair(near, [source]).damaged
        assert left == (), left
    for old in store.glob("data.mdb-*"):
        old.unlink()
