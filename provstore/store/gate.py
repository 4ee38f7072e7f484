"""A gate: many may be inside, or one alone. Keeps resizing and forking away from open transactions."""

import contextlib
import threading
import time
from collections.abc import Iterator


class Gate:
    """Counts who is inside; :meth:`alone` lets nobody in and waits until all are out.

    Example:
        >>> gate = Gate()
        >>> gate.enter()
        >>> gate.leave()
        >>> with gate.alone():
        ...     pass
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._shut = 0
        self._alone = threading.Lock()

    def enter(self) -> None:
        """Go in; waits while somebody is alone."""
        with self._changed:
            while self._shut:
                self._changed.wait()
            self._inside += 1

    def leave(self) -> None:
        """Go out."""
        with self._changed:
            self._inside -= 1
            if self._shut:
                self._changed.notify_all()

    def shut(self, wait_s: float | None = None) -> bool:
        """Let nobody in any more and wait for those inside; return whether all are out."""
        deadline = None if wait_s is None else time.monotonic() + wait_s
        with self._changed:
            self._shut += 1
            while self._inside:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def open(self) -> None:
        """Undo one :meth:`shut`."""
        with self._changed:
            self._shut -= 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one inside while the block runs. Not to be called from inside."""
        with self._alone:
            self.shut()
            try:
                yield
            finally:
                self.open()
