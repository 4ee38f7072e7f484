"""Hex prefixes of digests as byte bounds."""

import re
from typing import Final

_HEX: Final = re.compile(r"[0-9a-f]{0,64}")


def bounds(prefix: str) -> tuple[bytes, bytes] | None:
    """Return the lowest 32 bytes that begin with the digits, and the highest; None for no hex.

    Example:
        >>> low, high = bounds("abc")
        >>> low[:2].hex(), high[:2].hex(), bounds("xyz")
        ('abc0', 'abcf', None)
    """
    if not _HEX.fullmatch(prefix):
        return None
    return bytes.fromhex(prefix.ljust(64, "0")), bytes.fromhex(prefix.ljust(64, "f"))
