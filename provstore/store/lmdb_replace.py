"""What becomes of the old place of an object or record that a stage has replaced."""

from provstore.errors import StoreDamagedError
from provstore.ids import RawId
from provstore.store import blobs, rows
from provstore.store.lmdb_txn import Txn

Old = tuple[str, RawId, bytes, bytes]
"""Database, id, the row as it was, and the row that took its place."""


def retire(txn: Txn, replaced: list[Old]) -> list[str]:
    """Remove frames that lost their last member, look-ups that no longer hold, and marks of checks.

    Returns:
        Blob files, relative to the store, to be removed once the transaction is committed.
    """
    files: list[str] = []
    left: dict[int, int] = {}
    for database, id, old, new in replaced:
        if database == "records" or old[:1] == bytes((rows.INLINE,)):
            place = _place(database, old)
            if place is not None:
                left[place.frame] = max(place.frames(), left.get(place.frame, 1))
        elif rows.is_blob(old):
            txn.delete("checked", id)
            if not rows.is_blob(new) or old[0] != new[0]:
                files.append(blobs.relative_path(id, old[0] == rows.BLOB_FRAMED))
        if database == "objects":
            before, after = rows.sha_row(old[1:33], id), rows.sha_row(new[1:33], id)
            if before != after and len(before) == len(after):
                txn.delete("by_sha256", rows.DUPLICATES_KEY, before)
    for number in left.keys() - _in_use(txn, set(left)):
        for last in range(number, number + left[number]):
            txn.delete("frames", rows.number_key(last))
        txn.delete("checked", rows.number_key(number))
    return files


def _place(database: str, row: bytes) -> rows.Place | None:
    try:
        return rows.record_place(row) if database == "records" else rows.object_place(row)
    except StoreDamagedError:
        return None


def _in_use(txn: Txn, numbers: set[int]) -> set[int]:
    """Return those of some frames that a row still names."""
    used: set[int] = set()
    if numbers:
        for database in ("objects", "records"):
            for _, row in txn.scan(database):
                if row[:1] == bytes((rows.INLINE,)):
                    place = _place(database, row)
                    if place is not None and place.frame in numbers:
                        used.add(place.frame)
    return used
