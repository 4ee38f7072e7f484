"""The ledger in the index: ids of its entries by number, and beside them how many there are and the newest.

What an entry says is the business of ``provstore.evidence.book``; here is only that none goes missing.
"""

from typing import Final

from provstore.errors import LedgerMovedError, StoreDamagedError
from provstore.ids import RawId
from provstore.store import rows
from provstore.store.chained import Append
from provstore.store.lmdb_txn import LEDGER, Txn

_HEAD_KEY: Final = b"ledger_head"
_NUMBER_BYTES: Final = 8


def head(txn: Txn) -> tuple[int, RawId | None]:
    """Return how many entries there are, and the newest.

    Raises:
        StoreDamagedError: what the settings say is damaged, or not what the ledger holds.
    """
    stored = txn.get("settings", _HEAD_KEY)
    count, newest = 0, None
    if stored is not None:
        value = rows.unchecked("settings", _HEAD_KEY, stored)
        count, newest = int.from_bytes(value[:_NUMBER_BYTES], "big"), value[_NUMBER_BYTES:]
    last = txn.last_key(LEDGER)
    if txn.entries(LEDGER) != count or last != (rows.number_key(count) if count else None):
        raise StoreDamagedError(LEDGER, f"it has {txn.entries(LEDGER)} entries, not {count}")
    return count, newest


def entries(txn: Txn) -> list[RawId]:
    """Return the ids of all entries, oldest first.

    Raises:
        StoreDamagedError: one is damaged or missing.
    """
    count, newest = head(txn)
    found = []
    for number, (key, stored) in enumerate(txn.scan(LEDGER), 1):
        if key != rows.number_key(number):
            raise StoreDamagedError(LEDGER, f"entry {number} is missing")
        found.append(rows.unchecked(LEDGER, key, stored))
    if len(found) != count or (found[-1] if found else None) != newest:
        raise StoreDamagedError(LEDGER, "its newest entry is not the one that the settings name")
    return found


def check(txn: Txn, wanted: Append) -> None:
    """Raise LedgerMovedError unless the newest entry is the one that a new one is to follow."""
    _, newest = head(txn)
    if newest != wanted.after:
        raise LedgerMovedError(_said(wanted.after), _said(newest))


def append(txn: Txn, wanted: Append) -> None:
    """Add an entry; from the first on, the store has the format that knows of a ledger."""
    count, _ = head(txn)
    key = rows.number_key(count + 1)
    txn.put(LEDGER, key, rows.checked(key, wanted.id))
    value = key + wanted.id
    txn.put("settings", _HEAD_KEY, rows.checked(_HEAD_KEY, value))
    txn.put("settings", b"format", str(rows.LEDGER_FORMAT).encode())


def _said(id: RawId | None) -> str:
    return "no entry" if id is None else id.hex()
