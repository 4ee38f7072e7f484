"""Which paths a walk leaves out."""

import fnmatch
import os
import re
from collections.abc import Iterable

from provstore.paths import join


class Excluder:
    """Decides which paths are left out.

    A pattern without ``/`` is held against each name, one with ``/`` against the whole relative path;
    ``*`` also matches ``/``. Everything below an excluded directory is out as well.

    Example:
        >>> Excluder(["*.tmp", "a/b"]).rule(b"x", b"c.tmp")
        '*.tmp'
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names: list[tuple[str, re.Pattern[bytes]]] = []
        self._paths: list[tuple[str, re.Pattern[bytes]]] = []
        for pattern in patterns:
            stripped = os.fsencode(pattern.strip("/"))
            compiled = re.compile(fnmatch.translate(stripped.decode("latin-1")).encode("latin-1"))
            (self._paths if b"/" in stripped else self._names).append((pattern, compiled))

    def rule(self, directory: bytes, name: bytes) -> str | None:
        """Return the pattern that leaves ``name`` in ``directory`` out, or None."""
        for pattern, compiled in self._names:
            if compiled.match(name):
                return pattern
        if self._paths:
            path = join(directory, name)
            for pattern, compiled in self._paths:
                if compiled.match(path):
                    return pattern
        return None
