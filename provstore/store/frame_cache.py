"""The last unpacked frames of an open store or pack."""

from typing import Final

CACHE_BYTES: Final = 8 << 20
"""Plain bytes that are kept for the next members."""


class FrameCache:
    """Unpacked frames by number or position, the latest ones.

    Numbers are never used twice, so nothing goes stale; without a lock, so that no fork can leave it held.

    Example:
        >>> cache = FrameCache(limit_bytes=4)
        >>> cache.add(1, b"abc")
        >>> cache.add(2, b"de")
        >>> cache.get(1), cache.get(2)
        (None, b'de')
    """

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._frames: dict[int, bytes] = {}

    def get(self, number: int) -> bytes | None:
        """Return a frame if it is here."""
        return self._frames.get(number)

    def add(self, number: int, plain: bytes) -> None:
        """Keep a frame; older ones go."""
        kept = self._frames
        total = len(plain) + sum(map(len, list(kept.values())))
        for oldest in list(kept):
            if total <= self._limit_bytes:
                break
            total -= len(kept.pop(oldest, b""))
        kept[number] = plain
