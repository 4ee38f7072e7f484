"""Every way to fail, each with a stable code, an exit code, typed fields and a remedy.

A verdict ("the packet does not match") is a value, see :mod:`provstore.reports`. An error means that a
verb could not look, or was asked for something malformed. Exit code 2 is malformed input or usage; 10 and
up name one class each. ``docs/errors.md`` is generated from this module.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar


def _listed(items: Iterable[str], limit: int = 20) -> str:
    """Join lines for a message, all of them up to ``limit``, then say how many more there are."""
    lines = list(items)
    more = [f"... and {len(lines) - limit} more"] if len(lines) > limit else []
    return "".join(f"\n  {line}" for line in lines[:limit] + more)


class ProvError(Exception):
    """Root of all errors raised by provstore.

    Attributes:
        code: stable machine-readable name of the way to fail.
        exit_code: what the ``prov`` command exits with.
        remedy: what a person can do about it.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 70
    remedy: ClassVar[str] = "Report this as a defect, with the command that led to it."

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UsageError(ProvError):
    """The call itself is wrong: an option that does not apply, a missing argument."""

    code = "usage"
    exit_code = 2
    remedy = "Run the command with -h for its arguments and an example."


class IncomparableError(UsageError):
    """Two values that must not be compared, ranked or converted: other conventions, units, or no value.

    Attributes:
        left: convention of the first value.
        right: convention of the second.
    """

    code = "incomparable"
    remedy = "Recompute both from their rows under one convention, or compare a converted, derived value."

    def __init__(self, left: str, right: str, reason: str) -> None:
        super().__init__(f"{left} and {right}: {reason}")
        self.left = left
        self.right = right


class MalformedError(ProvError):
    """Input bytes do not have the form they claim to have.

    Attributes:
        where: what was read (path, role or record kind) and, where known, the position in it.
    """

    code = "malformed"
    exit_code = 2
    remedy = "Compare the input with schemas/README.md; nothing was written."

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


class CanonError(MalformedError):
    """A record is not in canonical form: its bytes differ from their own re-encoding."""

    code = "not-canonical"


class DuplicateKeyError(CanonError):
    """A JSON object states one key twice."""

    code = "duplicate-key"


class FloatError(CanonError):
    """A record holds a number that is not an integer in the exact range, or NaN or Infinity."""

    code = "float-in-record"


class TrailingBytesError(CanonError):
    """Blanks or other bytes follow or surround the JSON value."""

    code = "trailing-bytes"


class UnknownFieldError(CanonError):
    """A record has a field that its format does not define."""

    code = "unknown-field"


class DepthError(CanonError):
    """JSON nested deeper than any record of ours."""

    code = "too-deep"


class NewerFormatError(MalformedError):
    """The input names a format version that this release does not know.

    Attributes:
        found: the format that the input names.
    """

    code = "newer-format"
    remedy = "It was made by a newer version of provstore, or is no file of ours: upgrade provstore."

    def __init__(self, where: str, found: str) -> None:
        super().__init__(where, f"format {found!r} is unknown here; it may be made by a newer version")
        self.found = found


class DigestError(MalformedError):
    """Text that should be a digest is not: algorithm, length or characters are wrong."""

    code = "bad-digest"
    remedy = "Write blake3:<64 hex>, sha256:<64 hex> or git:<40 hex>, in lower case."


class UnsafePathError(MalformedError):
    """A path that could leave its root: absolute, empty part, ``.``, ``..``, NUL, or too long."""

    code = "unsafe-path"
    remedy = "Use a relative path with / between its parts."


class SpecError(MalformedError):
    """A packet spec says something that cannot be sealed."""

    code = "bad-spec"
    remedy = "Correct the named line of the spec; `prov schema packet-spec` prints its schema."


class ChecksumFileError(MalformedError):
    """A checksum file has a line in no known form, or an unknown escape.

    Attributes:
        line: number of the first bad line, from 1.
    """

    code = "bad-checksum-line"

    def __init__(self, where: str, line: int, reason: str) -> None:
        super().__init__(f"{where}:{line}", reason)
        self.line = line


class FrameError(MalformedError):
    """A stored frame is cut short, oversized, or does not unpack to what it states."""

    code = "bad-frame"
    remedy = "Run `prov fsck` to see what it damages, and `prov fsck --repair` with another copy."


class PackError(MalformedError):
    """A pack file is cut short, altered or not a pack."""

    code = "bad-pack"
    remedy = "Fetch the pack again; a whole one verifies with `prov verify FILE`."


class ProofError(MalformedError):
    """An inclusion proof file is not one."""

    code = "bad-proof"


class InspectError(MalformedError):
    """A file is not what its kind requires: no ELF, no safetensors header, no Git tree."""

    code = "not-inspectable"
    remedy = "Choose another kind for this entry in the spec, or replace the file."


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


class NotFoundError(ProvError):
    """No ref, id, pack or path has this name.

    Attributes:
        name: what was asked for.
    """

    code = "not-found"
    exit_code = 11
    remedy = "`prov log` lists refs; an id prefix needs 8 or more hex digits of an id in this store."

    def __init__(self, name: str, looked: str) -> None:
        super().__init__(f"{name!r} not found: {looked}")
        self.name = name


class AmbiguousError(ProvError):
    """A hex prefix fits several ids.

    Attributes:
        name: the prefix.
        matches: full ids that it fits.
    """

    code = "ambiguous"
    exit_code = 12
    remedy = "Give more digits."

    def __init__(self, name: str, matches: Sequence[str]) -> None:
        super().__init__(f"{name!r} fits {len(matches)} ids:{_listed(matches)}")
        self.name = name
        self.matches = tuple(matches)


class SourceChangedError(ProvError):
    """A file changed while it was read; nothing of it is in the store.

    Attributes:
        path: shown form of the file's path.
        changed: names of the stat fields that differ.
    """

    code = "source-changed"
    exit_code = 13
    remedy = "Seal again when nothing writes to it; for a growing log, --allow-growing seals a stated prefix."

    def __init__(self, path: str, changed: Sequence[str]) -> None:
        super().__init__(f"{path}: changed while read ({', '.join(changed)})")
        self.path = path
        self.changed = tuple(changed)


class SourceUnreadableError(ProvError):
    """Paths that could not be read, or vanished during the walk.

    Attributes:
        failures: shown path and reason of each.
    """

    code = "source-unreadable"
    exit_code = 14
    remedy = "Give read permission, exclude the paths, or record the holes with --allow-unreadable."

    def __init__(self, failures: Sequence[tuple[str, str]]) -> None:
        lines = _listed(f"{path}: {reason}" for path, reason in failures)
        super().__init__(f"{len(failures)} path(s) cannot be read:{lines}")
        self.failures = tuple(failures)


class SpecialFileError(ProvError):
    """A FIFO, socket or device lies in the tree.

    Attributes:
        found: shown path and type of each.
    """

    code = "special-file"
    exit_code = 15
    remedy = "Exclude it with --exclude; it has no bytes that could be sealed."

    def __init__(self, found: Sequence[tuple[str, str]]) -> None:
        lines = _listed(f"{path}: {kind}" for path, kind in found)
        super().__init__(f"{len(found)} path(s) are no files, links or directories:{lines}")
        self.found = tuple(found)


class PinMismatchError(ProvError):
    """Pins of a spec do not hold; all mismatches are listed.

    Attributes:
        mismatches: one line each: role, path, expected and found.
    """

    code = "pin-mismatch"
    exit_code = 16
    remedy = "Restore the pinned bytes, or correct the pin if the new bytes are what you mean to seal."

    def __init__(self, mismatches: Sequence[str]) -> None:
        super().__init__(f"{len(mismatches)} pin(s) do not hold:{_listed(mismatches, 200)}")
        self.mismatches = tuple(mismatches)


class EmptyError(ProvError):
    """Nothing to seal, check or match: never a success.

    Attributes:
        what: what was empty.
    """

    code = "empty"
    exit_code = 17
    remedy = "Name something that exists; checking zero things proves nothing."

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: 0 members checked")
        self.what = what


class IncompleteSourceError(ProvError):
    """Files that stand in for others: LFS pointers, partial downloads, thin bundles, absent shards.

    Attributes:
        problems: one line each, with the path.
    """

    code = "incomplete-source"
    exit_code = 18
    remedy = "Fetch the payload the named files stand for, then seal again."

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{len(problems)} part(s) of the source are not there:{_listed(problems)}")
        self.problems = tuple(problems)


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

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is read-only")
        self.path = path


class StoreDamagedError(ProvError):
    """The index of a store cannot be read.

    Attributes:
        path: the store.
    """

    code = "store-damaged"
    exit_code = 23
    remedy = "Keep a copy of the directory, then restore from a pack or another store."

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: the index is damaged: {reason}")
        self.path = path


class TargetError(ProvError):
    """The target of a restore or export exists and is not empty, or cannot be written.

    Attributes:
        path: the target.
    """

    code = "bad-target"
    exit_code = 24
    remedy = "Name a new or empty directory, or a file that does not exist yet."

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
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


class MissingExtraError(ProvError):
    """An optional dependency or outside program is not installed.

    Attributes:
        name: what is missing.
    """

    code = "missing-extra"
    exit_code = 26

    def __init__(self, name: str, install: str) -> None:
        super().__init__(f"{name} is needed for this: {install}")
        self.name = name

    remedy = "Install what the message names."


class InputOutputError(ProvError):
    """The operating system refused a read or write.

    Attributes:
        path: what was being read or written.
        errno: number of the system error.
    """

    code = "io"
    exit_code = 27
    remedy = "See the system error; nothing half-written was published."

    def __init__(self, path: str, errno: int, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.errno = errno


class SelfTestError(ProvError):
    """A hash function of this installation gives wrong known answers.

    Attributes:
        name: which one.
    """

    code = "self-test"
    exit_code = 28
    remedy = "Do not trust this installation; reinstall blake3 and Python."

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} does not give its known answers")
        self.name = name


class RefConflictError(ProvError):
    """A ref moved between reading and writing it.

    Attributes:
        name: the ref.
    """

    code = "ref-conflict"
    exit_code = 29
    remedy = "Look at `prov log NAME`, then repeat."

    def __init__(self, name: str, expected: str, found: str) -> None:
        super().__init__(f"ref {name!r}: expected {expected}, found {found}")
        self.name = name


def catalogue() -> list[type[ProvError]]:
    """Return every error class, sorted by exit code, then code.

    Example:
        >>> [c.code for c in catalogue() if c.exit_code == 10]
        ['damaged']
    """
    found: list[type[ProvError]] = []
    todo: list[type[ProvError]] = [ProvError]
    while todo:
        cls = todo.pop()
        found.append(cls)
        todo.extend(cls.__subclasses__())
    return sorted(found, key=lambda c: (c.exit_code, c.code))
