"""What can be wrong with a store, or with an object that was asked of one."""

from collections.abc import Sequence

from provstore.errors.base import ProvError, listed


class IntegrityError(ProvError):
    """Stored bytes do not hash to their id. Damaged bytes are never returned.

    Attributes:
        id: hex of the object or record that was asked for.
        found: hex of what its bytes hash to, or a reason.
    """

    code = "damaged"
    exit_code = 10
    remedy = "Run `prov fsck` to see every packet it touches, and `prov fsck --repair` with another copy."

    def __init__(self, id: str, found: str) -> None:
        super().__init__(f"object {id} is damaged: its bytes give {found}")
        self.id = id
        self.found = found


class NotAStoreError(ProvError):
    """The path holds no store, or its index is no index of ours.

    Attributes:
        path: where the store was looked for.
    """

    code = "not-a-store"
    exit_code = 19
    remedy = "`prov init PATH` makes a store; --store or PROVSTORE chooses another."

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class StoreFullError(ProvError):
    """The disk or the index map is full; the store is unchanged.

    Attributes:
        path: the store.
    """

    code = "store-full"
    exit_code = 20
    remedy = "Free space or move the store; what was reported as sealed before is still there."

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: no room left ({reason}); the store is unchanged")
        self.path = path


class StoreBusyError(ProvError):
    """Another process holds the store for writing and did not finish in time.

    Attributes:
        path: the store.
        holder: who holds it, where known.
    """

    code = "store-busy"
    exit_code = 21
    remedy = "Wait for the named process, or raise the time limit."

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{path}: held for writing by {holder}")
        self.path = path
        self.holder = holder


class ReadOnlyError(ProvError):
    """A write was asked of a store that is open for reading only.

    Attributes:
        path: the store or pack.
    """

    code = "read-only"
    exit_code = 22
    remedy = "Choose a store you may write to with --store."

    def __init__(self, path: str, reason: str = "") -> None:
        super().__init__(f"{path} is read-only" + (f" ({reason})" if reason else ""))
        self.path = path


class StoreDamagedError(ProvError):
    """The index of a store cannot be read.

    Attributes:
        path: the store.
    """

    code = "store-damaged"
    exit_code = 23
    remedy = (
        "Keep a copy of the directory. If the index cannot be opened, `prov fsck --rebuild-index` makes one "
        "of the large objects, and `prov fsck --repair --from` brings packets back from a pack or a store."
    )

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: the index is damaged: {reason}")
        self.path = path


class NotHeldError(ProvError):
    """The bytes of an object are not in this store: external, declared or left out of the pack.

    Attributes:
        id: hex digest.
        custody: where its bytes are said to be.
    """

    code = "not-held"
    exit_code = 25
    remedy = "`prov show` names the origins; fetch the bytes there, or use a store that holds them."

    def __init__(self, id: str, custody: str) -> None:
        super().__init__(f"object {id} is not held here ({custody})")
        self.id = id
        self.custody = custody


class RefConflictError(ProvError):
    """A ref moved between reading and writing it.

    Attributes:
        name: the ref.
    """

    code = "ref-conflict"
    exit_code = 29
    remedy = (
        "Look at `prov log NAME`; --name gives another name, `prov unpack --no-refs` leaves the pack's names."
    )

    def __init__(self, name: str, expected: str, found: str) -> None:
        super().__init__(f"ref {name!r}: expected {expected}, found {found}")
        self.name = name


class NotPermittedError(ProvError):
    """The ledger does not permit this: a start, a request, a second valid score; nothing was noted.

    Attributes:
        objections: code and reason of each thing that speaks against it.
    """

    code = "not-permitted"
    exit_code = 32
    remedy = (
        "`prov ledger` shows what was permitted and tried; `prov authorize` permits another attempt, citing "
        "the one whose score was seen and a reason."
    )

    def __init__(self, objections: Sequence[tuple[str, str]]) -> None:
        lines = listed(f"{code}: {reason}" for code, reason in objections)
        super().__init__(f"the ledger does not permit it:{lines}")
        self.objections = tuple(objections)


class LedgerMovedError(ProvError):
    """The ledger got another entry between reading and writing it; the store is unchanged.

    Attributes:
        expected: hex id of the entry that was the newest, or ``no entry``.
        found: hex id of the one that is.
    """

    code = "ledger-moved"
    exit_code = 31
    remedy = "Do it again: what is permitted may be another thing now."

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"the ledger's newest entry is {found}, not {expected}")
        self.expected = expected
        self.found = found


class SweptError(ProvError):
    """Garbage collection removed something that an unfinished seal relied on; the store is unchanged.

    Attributes:
        id: hex of the first object or record that is gone.
    """

    code = "swept"
    exit_code = 30
    remedy = "Seal again; a grace period longer than the longest seal avoids it."

    def __init__(self, id: str) -> None:
        super().__init__(f"{id} was removed by gc while it was being referred to")
        self.id = id
