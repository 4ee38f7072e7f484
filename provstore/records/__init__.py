"""Frozen structs of everything that is hashed, one module per kind of record.

Rules that hold for each struct here: frozen, keyword-only, unknown fields refused, a ``format`` that names
kind and version, no floats, sizes and times with their unit in the name. Optional fields are left out when
they hold their default, so a later field never changes the id of an earlier record.
"""

from typing import Final

from provstore import canon
from provstore.errors import NewerFormatError
from provstore.ids import RawId, record_id
from provstore.records.facts import Facts
from provstore.records.ledger import LedgerEntry
from provstore.records.observation import Observation
from provstore.records.packet import Packet
from provstore.records.tree import TreeIndex, TreeLeaf
from provstore.records.verdict import Verdict

Record = TreeLeaf | TreeIndex | Packet | Facts | Observation | Verdict | LedgerEntry

FORMATS: Final[dict[str, tuple[str, type[Record]]]] = {
    "provstore/tree/v1": ("tree", TreeLeaf),
    "provstore/tree-index/v1": ("tree-index", TreeIndex),
    "provstore/packet/v1": ("packet", Packet),
    "provstore/facts/v1": ("facts", Facts),
    "provstore/observation/v1": ("observation", Observation),
    "provstore/verdict/v1": ("verdict", Verdict),
    "provstore/ledger-entry/v1": ("ledger-entry", LedgerEntry),
}
"""Format name of each record, the hash domain of its id, and its struct."""

_KINDS: Final = {struct: kind for kind, struct in FORMATS.values()}


def encode(record: Record) -> tuple[RawId, bytes]:
    """Return the id and the canonical bytes of a record.

    Raises:
        CanonError: a value that has no canonical form.
    """
    data = canon.encode(record, bounded=isinstance(record, TreeLeaf | TreeIndex))
    return record_id(_KINDS[type(record)], data), data


def kind_of(data: bytes, where: str = "record") -> str:
    """Return the kind of record that ``data`` says it is.

    Raises:
        NewerFormatError: it names no format of ours.
    """
    found = canon.format_of(data)
    if found not in FORMATS:
        raise NewerFormatError(where, str(found))
    return FORMATS[found][0]


def decode(data: bytes, where: str = "record") -> Record:
    """Decode canonical bytes into the struct that their ``format`` names.

    Raises:
        NewerFormatError: a format that this release does not know.
        CanonError: bytes that are not canonical.
    """
    return canon.decode(data, Record, where, bounded=True)  # type: ignore[arg-type]
