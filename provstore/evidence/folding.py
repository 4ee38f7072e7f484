"""Folding of private paths: where a run, an environment or a cache happens to lie is no difference of it.

A path is folded by replacing everything up to the first directory that is such a place, so that what lies
below it is still compared. Text that is no absolute path is never touched, and a home directory is not
folded: sources lie in it.
"""

import re
from collections.abc import Mapping
from typing import Final

_SEPARATORS: Final = re.compile(r"([:;,=\s]+)")

_MARKS: Final = (
    (re.compile(r"runs", re.ASCII), "{run}", True),
    (re.compile(r"runs?[-_.].+", re.ASCII | re.DOTALL), "{run}", False),
    (re.compile(r"\.?venvs|virtualenvs|envs", re.ASCII), "{venv}", True),
    (re.compile(r"\.?venv|.+[-_.]venv", re.ASCII | re.DOTALL), "{venv}", False),
    (re.compile(r"\.?caches?|.+[-_]cache", re.ASCII | re.DOTALL), "{cache}", False),
)
"""Name of a directory, what stands for it, and whether the directory below it belongs to the place."""

_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*( ?(UTC|[+-]\d\d:?\d\d))?|\d\d-\d\d \d\d:\d\d:\d\d"
)

_PASSING: Final = re.compile(
    r"(^|[./_])(p?pid|process_id|(request|response)_id(_first|_last)?|timestamp)$|epoch"
)


def fold(text: str, folded: Mapping[str, str] | None = None) -> str:
    """Return a value with its private paths replaced by what they are.

    Args:
        text: one value; lists are parted by colons, commas or blanks.
        folded: texts that a policy folds, with what they are replaced by.

    Example:
        >>> fold("/data/runs/A1/private-cache/hf"), fold("HOME=/home/x/.cache/hf")
        ('{run}/private-cache/hf', 'HOME={cache}/hf')
        >>> fold("/opt/a/lib:/srv/.venvs/v1/lib"), fold("/home/x/src/engine"), fold("runs/A1")
        ('/opt/a/lib:{venv}/lib', '/home/x/src/engine', 'runs/A1')
    """
    for private, name in (folded or {}).items():
        text = text.replace(private, name) if private else text
    if "/" not in text:
        return text
    return "".join(_path(part) for part in _SEPARATORS.split(text))


def _path(part: str) -> str:
    if not part.startswith("/"):
        return part
    names = part.split("/")
    if names[1] == "tmp" and len(names) > 2:
        return "/".join(["{tmp}", *names[3:]])
    for at, name in enumerate(names[1:], 1):
        for mark, stands, with_next in _MARKS:
            if mark.fullmatch(name):
                return "/".join([stands, *names[at + 1 + with_next :]])
    return part


def passing(key: str, before: str, after: str) -> bool:
    """Say whether a value only tells when a run was, or what number a process had: it is new in every run.

    Example:
        >>> passing("document.pid", "1", "2"), passing("x", "2026-07-26T21:50:00Z", "2026-07-27T01:00:00Z")
        (True, True)
        >>> passing("x", "2026-07-26", "2026-07-27")
        False
    """
    if _PASSING.search(key):
        return True
    return _TIME.fullmatch(before) is not None and _TIME.fullmatch(after) is not None
