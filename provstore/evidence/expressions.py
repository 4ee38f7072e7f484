"""Regular expressions that come from a policy: searched with a limit of time.

A policy may come with a packet from anybody, and an expression can take time that grows with any power of a
line's length. The engine here stops when its time is up; no other module knows it.
"""

from typing import Any, Final

from provstore import libraries
from provstore.errors import MalformedError

SEARCH_S: Final = 2.0
"""Processor seconds that one expression may take for all of a file."""


def engine_errors() -> tuple[type[Exception], ...]:
    """Return what the engine raises for an expression that is none."""
    return (libraries.regex.error, RecursionError, OverflowError, UnicodeEncodeError)


def compiled(pattern: str | bytes, where: str) -> Any:
    r"""Return an expression whose ``search`` takes a ``timeout`` in seconds and then raises TimeoutError.

    Raises:
        MalformedError: it is no regular expression.

    Example:
        >>> compiled(r"rank (?P<rank>\d+)", "policy").search("rank 3", timeout=1)["rank"]
        '3'
    """
    try:
        return libraries.regex.compile(pattern)
    except engine_errors() as error:
        raise MalformedError(where, f"no regular expression: {error}") from error


def search(pattern: str, text: str, where: str) -> Any | None:
    """Search once; None also when the time is up.

    Raises:
        MalformedError: it is no regular expression.
    """
    try:
        return compiled(pattern, where).search(text, timeout=SEARCH_S)
    except TimeoutError:
        return None
