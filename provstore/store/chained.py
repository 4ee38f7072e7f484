"""What stores promise about the ledger: entries are added one at a time, each after the one before."""

from typing import NamedTuple, Protocol

from provstore.errors import UsageError
from provstore.ids import RawId


class Append(NamedTuple):
    """One entry that is to become the newest.

    Attributes:
        id: the record of the entry.
        after: the entry that must be the newest then; None for the first.
    """

    id: RawId
    after: RawId | None


class HasLedger(Protocol):
    """The part of a reader that knows the ledger."""

    def ledger(self) -> list[RawId]:
        """Return the ids of the ledger's entries, oldest first."""


class TakesEntries(Protocol):
    """The part of a stage that adds to the ledger."""

    def append_ledger(self, entry_id: RawId, after: RawId | None) -> None:
        """Make a record the newest entry of the ledger at commit, if ``after`` is the newest then.

        A stage appends one entry. When it is not so any more, the commit raises LedgerMovedError and the
        store is unchanged.
        """


def require_single(before: Append | None) -> None:
    """Raise UsageError when a stage has an entry already."""
    if before is not None:
        raise UsageError("a stage appends one entry to the ledger")
