"""The root of all errors, and those that any layer can raise."""

from collections.abc import Iterable, Sequence
from typing import ClassVar


def listed(items: Iterable[str], limit: int = 20) -> str:
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
        super().__init__(f"{name!r} fits {len(matches)} ids:{listed(matches)}")
        self.name = name
        self.matches = tuple(matches)


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
