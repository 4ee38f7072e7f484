"""The databases of an index, and a transaction over them: typed, by name, nothing more."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import lmdb

from provstore.store.rows import DUPLICATES_KEY

DATABASES: Final[dict[str, bool]] = {
    "objects": False,
    "records": False,
    "frames": False,
    "by_sha256": True,
    "by_git": True,
    "refs": False,
    "ref_log": False,
    "locations": False,
    "stat_cache": False,
    "verdicts": False,
    "checked": False,
    "ledger": False,
    "settings": False,
}
"""Name of each database, and whether its keys have sorted duplicates of one width."""


LEDGER: Final = "ledger"
"""A store of format 1 may lack this one: it has no entries."""


class Form(NamedTuple):
    """What an environment is made of.

    Attributes:
        databases: its databases, as :data:`DATABASES`.
        folders: directories beside ``data.mdb`` that who writes it also writes to.
    """

    databases: Mapping[str, bool]
    folders: tuple[str, ...] = ()


STORE_FORM: Final = Form(DATABASES, ("tmp",))
"""The index of a store."""

Databases = dict[str, Any]
"""Open handles by name; before the first write there are none."""


class Txn:
    """One transaction, alive only inside :meth:`Env.read` or :meth:`Env.write`.

    A database that does not exist reads as an empty one.
    """

    __slots__ = ("_databases", "_txn")

    def __init__(self, txn: "lmdb.Transaction[bytes]", databases: Databases) -> None:
        self._txn = txn
        self._databases = databases

    def id(self) -> int:
        """Return the number of the transaction; of a reading one, that of the last commit it sees."""
        return int(self._txn.id())

    def get(self, database: str, key: bytes) -> bytes | None:
        """Return a value or None."""
        handle = self._databases.get(database)
        return None if handle is None else self._txn.get(key, db=handle)

    def get_many(self, database: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values that are there; fastest when the keys are sorted."""
        handle = self._databases.get(database)
        return {} if handle is None else dict(self._txn.cursor(handle).getmulti(keys))

    def put(self, database: str, key: bytes, value: bytes) -> None:
        """Set a value."""
        self._txn.put(key, value, db=self._databases[database])

    def put_sorted(self, database: str, items: Sequence[tuple[bytes, bytes]]) -> None:
        """Set many values, sorted by key; pages are filled whole where all come after the last key."""
        if items:
            cursor = self._txn.cursor(self._databases[database])
            append = not cursor.last() or cursor.key() < items[0][0]
            cursor.putmulti(items, append=append)

    def put_duplicates(self, database: str, values: Sequence[bytes]) -> None:
        """Add sorted values under the one key of a look-up database."""
        if values:
            cursor = self._txn.cursor(self._databases[database])
            append = not cursor.last() or cursor.value() < values[0]
            cursor.putmulti([(DUPLICATES_KEY, value) for value in values], append=append)

    def delete(self, database: str, key: bytes, value: bytes = b"") -> bool:
        """Remove a key, or one duplicate of it; return whether it was there."""
        handle = self._databases.get(database)
        return handle is not None and self._txn.delete(key, value, db=handle)

    def clear(self, database: str) -> None:
        """Remove everything from a database."""
        handle = self._databases.get(database)
        if handle is not None:
            self._txn.drop(handle, delete=False)

    def scan(self, database: str, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values from ``start`` on; must end inside the transaction."""
        handle = self._databases.get(database)
        if handle is None:
            return
        cursor = self._txn.cursor(handle)
        if cursor.set_range(start) if start else cursor.first():
            yield from cursor.iternext()

    def scan_back(self, database: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values from the last to the first; must end inside the transaction."""
        handle = self._databases.get(database)
        if handle is None:
            return
        cursor = self._txn.cursor(handle)
        if cursor.last():
            yield from cursor.iterprev()

    def last_key(self, database: str) -> bytes | None:
        """Return the highest key, or None for an empty database."""
        handle = self._databases.get(database)
        if handle is None:
            return None
        cursor = self._txn.cursor(handle)
        return cursor.key() if cursor.last() else None

    def scan_duplicates(self, database: str, start: bytes) -> Iterator[bytes]:
        """Yield the values of a look-up database from ``start`` on; must end inside the transaction."""
        handle = self._databases.get(database)
        if handle is None:
            return
        cursor = self._txn.cursor(handle)
        if cursor.set_range_dup(DUPLICATES_KEY, start):
            yield from cursor.iternext_dup()

    def put_pairs(self, database: str, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Add sorted pairs to a database with duplicates; a pair that is there already stays."""
        if pairs:
            cursor = self._txn.cursor(self._databases[database])
            append = not cursor.last() or (cursor.key(), cursor.value()) < pairs[0]
            cursor.putmulti(pairs, append=append)

    def get_pairs(self, database: str, keys: Sequence[bytes], width: int) -> bytes:
        """Return all pairs of some keys, joined: each key and one of its duplicates of ``width`` bytes."""
        handle = self._databases.get(database)
        if handle is None or not keys:
            return b""
        return bytes(
            self._txn.cursor(handle).getmulti(keys, dupdata=True, dupfixed_bytes=width, keyfixed=True)
        )

    def count_pairs(self, database: str, keys: Sequence[bytes]) -> list[int]:
        """Return how many pairs each of some keys has."""
        handle = self._databases.get(database)
        if handle is None:
            return [0] * len(keys)
        cursor = self._txn.cursor(handle)
        return [cursor.count() if cursor.set_key(key) else 0 for key in keys]

    def scan_pairs(self, database: str, key: bytes, start: bytes = b"") -> Iterator[bytes]:
        """Yield the duplicates of a key from ``start`` on; must end inside the transaction."""
        handle = self._databases.get(database)
        if handle is None:
            return
        cursor = self._txn.cursor(handle)
        if cursor.set_range_dup(key, start) if start else cursor.set_key(key):
            yield from cursor.iternext_dup()

    def entries(self, database: str) -> int:
        """Return the number of values of a database."""
        handle = self._databases.get(database)
        return 0 if handle is None else self._txn.stat(handle)["entries"]

    def pages(self) -> dict[str, int]:
        """Return the bytes of the pages of each database."""
        found = {}
        for name, handle in self._databases.items():
            stat = self._txn.stat(handle)
            found[name] = stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])
        return found
