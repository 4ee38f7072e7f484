"""An error as text for people and as a document for programs."""

from collections.abc import Iterator

import msgspec

from provstore.errors import ProvError


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong; further fields are those of the error's class, under their own names.

    Attributes:
        code: stable name of the way to fail; the error reference lists them.
        message: what happened, where, what was expected and found.
        remedy: what a person can do about it.
        exit_code: what the command exits with.
        notes: what else there is to know, such as what was done before; absent when there is nothing.
    """

    code: str
    message: str
    remedy: str
    exit_code: int
    notes: tuple[str, ...] = ()


class ErrorDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``--json`` prints when a command could not look.

    Attributes:
        error: what went wrong.
    """

    error: ErrorDetail


def error_document(error: ProvError) -> dict[str, dict[str, object]]:
    """Return the document of an error: its four common fields, and those of its class.

    Example:
        >>> from provstore.errors import NotFoundError
        >>> error_document(NotFoundError("run", "no such ref"))["error"]["name"]
        'run'
    """
    notes = {"notes": _notes(error)} if _notes(error) else {}
    own = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    common = {
        "code": error.code,
        "message": error.message,
        "remedy": error.remedy,
        "exit_code": error.exit_code,
    }
    return {"error": common | notes | {name: value for name, value in own.items() if name not in common}}


def error_lines(error: ProvError) -> Iterator[str]:
    """Yield the text of an error: the message, what else there is to know, then what to do.

    Example:
        >>> from provstore.errors import ReadOnlyError
        >>> print(*error_lines(ReadOnlyError("/mnt/store")), sep=" | ")
        error [read-only]: /mnt/store is read-only |   Choose a store you may write to with --store.
    """
    yield from f"error [{error.code}]: {error.message}".splitlines()
    for note in _notes(error):
        yield f"  {note}"
    yield f"  {error.remedy}"


def _notes(error: ProvError) -> list[str]:
    return getattr(error, "__notes__", [])
