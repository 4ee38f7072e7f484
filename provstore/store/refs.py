"""Moving refs: what is asked, whether it may be, and the step it adds to the history."""

import time
from collections.abc import Callable
from typing import NamedTuple

from provstore import ids
from provstore.errors import RefConflictError, UsageError
from provstore.ids import RawId
from provstore.paths import show
from provstore.store.protocol import AnyRef, RefChange
from provstore.store.rows import MAX_REF_BYTES


class RefMove(NamedTuple):
    """A ref to be moved at commit; fields as in ``Stage.set_ref``."""

    name: str
    id: RawId | None
    expected: RawId | AnyRef | None
    observation: RawId | None


def check_ref_name(name: str) -> str:
    """Return ``name`` if a store can keep it: 1 to 480 bytes of UTF-8 that nobody can take for an id.

    Raises:
        UsageError: empty, too long, no valid Unicode, a digest, or hex digits that could begin an id.

    Example:
        >>> check_ref_name("runs/2026-07-26")
        'runs/2026-07-26'
    """
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= MAX_REF_BYTES:
        raise UsageError(
            f"{show(name[:80])!r} cannot name a ref: it takes 1 to {MAX_REF_BYTES} bytes of UTF-8"
        )
    if ids.is_prefix(name) or name.startswith(("blake3:", "sha256:", "git:")):
        raise UsageError(
            f"{show(name[:80])!r} cannot name a ref: it reads as an id; give another with --name"
        )
    return name


def _text(id: RawId | None) -> str:
    return "nothing" if id is None else id.hex()


def check_moves(moves: list[RefMove], current: Callable[[str], RawId | None]) -> None:
    """Check what moves expect of refs against what the refs name now.

    Raises:
        RefConflictError: a ref names another packet than expected.
    """
    pending: dict[str, RawId | None] = {}
    for move in moves:
        found = pending[move.name] if move.name in pending else current(move.name)
        if not isinstance(move.expected, AnyRef) and move.expected != found:
            raise RefConflictError(move.name, _text(move.expected), _text(found))
        pending[move.name] = move.id


def change_of(move: RefMove, previous: RawId | None, last: RefChange | None) -> RefChange | None:
    """Return the step that a move adds to the log, or None when it changes nothing that is worth one.

    Args:
        move: the move.
        previous: what the ref names now.
        last: the latest step of the whole log; time never goes back behind it.
    """
    if move.id is None and previous is None:
        return None
    taken_ns = time.time_ns()
    if last is not None:
        taken_ns = max(taken_ns, last.taken_ns + 1)
    sequence = 1 if last is None else last.sequence + 1
    return RefChange(sequence, move.name, move.id, previous, taken_ns, move.observation)
