"""The ledger of a store: what was permitted, what was started, how far it came; kept for ever.

Each entry is one durable commit of its own, made before what it announces is done: after a kill at any
moment the ledger says how far the attempt came. Two writers never follow the same entry.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from provstore import records
from provstore.errors import (
    IntegrityError,
    LedgerMovedError,
    NotFoundError,
    NotPermittedError,
    StoreDamagedError,
)
from provstore.evidence.book import RULE_OF, Book, Objection
from provstore.ids import RawId, digests, to_raw
from provstore.records.ledger import (
    About,
    Attempt,
    Authorization,
    Disposition,
    LedgerEntry,
    Rules,
    Step,
)
from provstore.store import objects
from provstore.store.protocol import Reader, Stage, Store

TRIES: Final = 20
"""How often an entry is tried again when another writer came first."""

DEFAULT_RULES: Final = Rules()


class Noted(NamedTuple):
    """An entry that is in the ledger, durably.

    Attributes:
        id: hex id of the entry; it names the authorization or attempt that it is about from now on.
        entry: what it says.
        book: the ledger with it.
    """

    id: str
    entry: LedgerEntry
    book: Book


class Wrong(NamedTuple):
    """Something in a ledger that is not as it must be.

    Attributes:
        sequence: position of the entry, from 1.
        id: hex id of the entry.
        objection: what is wrong.
    """

    sequence: int
    id: str
    objection: Objection


def entry_of(reader: Reader, id: RawId) -> LedgerEntry:
    """Return one entry of a ledger.

    Raises:
        IntegrityError, NotFoundError: it is damaged or not here.
    """
    found = records.decode(objects.record(reader, id), id.hex())
    if not isinstance(found, LedgerEntry):
        raise IntegrityError(id.hex(), "a record that is no entry of a ledger")
    return found


def follow(reader: Reader) -> tuple[Book, list[Wrong]]:
    """Read a whole ledger from its first entry on.

    Returns:
        What it adds up to, and everything in it that is wrong: a broken chain, a state out of order, a second
        valid score, a start that nobody permitted.

    Raises:
        StoreDamagedError: the index of the ledger is damaged.
        IntegrityError, NotFoundError: an entry is damaged or gone.
    """
    book = Book()
    wrong = []
    for number, id in enumerate(reader.ledger(), 1):
        found = book.take(id.hex(), entry_of(reader, id))
        wrong += [Wrong(number, id.hex(), objection) for objection in found]
    return book, wrong


def head(reader: Reader) -> str | None:
    """Return the hex id of the newest entry, for the packet of a run; None for an empty ledger."""
    ids = reader.ledger()
    return ids[-1].hex() if ids else None


def note(
    store: Store,
    about: About,
    documents: Iterable[bytes] = (),
    *,
    tool: str = "provstore",
    rules: Rules = DEFAULT_RULES,
) -> Noted:
    """Add an entry to the ledger; when this returns, it is durable.

    Rules of permission that are broken and that the authorization lets pass are put into the entry's
    ``ineligible``, whatever it says there.

    Args:
        store: the store.
        about: what is noted.
        documents: bytes of objects that the entry names and that may not be in the store yet.
        tool: name and version of the program.
        rules: what follows for an attempt without an authorization that exists.

    Raises:
        NotPermittedError: the entry must not be; nothing was noted.
        NotFoundError: it names an object or record that is not here.
        StoreDamagedError: the ledger is damaged, so nothing can follow it.
        StoreFullError, ReadOnlyError, LedgerMovedError: see the store.
    """
    files = [(digests(data), data) for data in documents]
    for attempt in range(1, TRIES + 1):
        book, wrong = follow(store)
        if wrong:
            first = wrong[0]
            reason = f"entry {first.sequence}: {first.objection.message}; nothing can follow it"
            raise StoreDamagedError(f"{store.where}: ledger", reason)
        settled = _settled(book, about, rules)
        entry = LedgerEntry(
            sequence=book.sequence + 1,
            taken_ns=str(max(time.time_ns(), book.last_ns + 1)),
            tool=tool,
            about=settled,
            previous=book.head,
        )
        id, data = records.encode(entry)
        with store.stage() as stage:
            for found, content in files:
                if not stage.has_object(found.blake3):
                    stage.add_object(found, content)
            _require_named(stage, settled)
            stage.add_record(id, data)
            stage.append_ledger(id, None if book.head is None else to_raw(book.head))
            try:
                stage.commit()
            except LedgerMovedError:
                if attempt == TRIES:
                    raise
                continue
        book.take(id.hex(), entry)
        return Noted(id.hex(), entry, book)
    raise LedgerMovedError("the newest entry", "another one")


def _settled(book: Book, about: About, rules: Rules) -> About:
    """Return what is to be noted, with the rules that it breaks and that are let pass.

    Raises:
        NotPermittedError: something speaks against it.
    """
    binding = book.rules_for(about) or rules
    against = book.objections(about)
    passed = [
        found
        for found in against
        if found.code in RULE_OF and getattr(binding, RULE_OF[found.code]) == "ineligible"
    ]
    refused = [found for found in against if found not in passed]
    if refused:
        raise NotPermittedError([(found.code, found.message) for found in refused])
    if isinstance(about, Authorization):
        return about
    settled: About = msgspec.structs.replace(
        about, ineligible=tuple(dict.fromkeys(found.code for found in passed))
    )
    if passed and isinstance(settled, Disposition) and settled.disposition == "valid":
        raise NotPermittedError([(found.code, found.message) for found in passed])
    return settled


def _require_named(stage: Stage, about: About) -> None:
    named: Sequence[str] = ()
    if isinstance(about, Authorization):
        named = (about.policy, *about.documents.values())
    elif isinstance(about, Attempt):
        named = tuple(about.documents.values())
    for id in named:
        if not stage.has_object(to_raw(id)):
            raise NotFoundError(id, "a ledger entry names it, and the store does not hold it")
    for record in (about.packet, about.verdict) if isinstance(about, Step) else ():
        if record is not None and not stage.has_record(to_raw(record)):
            raise NotFoundError(record, "a ledger entry names it, and the store has no such record")
