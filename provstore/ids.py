"""Digests and ids: plain BLAKE3 for objects, derive-key BLAKE3 for records, their text forms.

Inside the library an id is 32 raw bytes; records, reports and people see 64 lower-case hex digits.
"""

import re
from typing import Final, Literal, NamedTuple

from blake3 import blake3

from provstore import libraries
from provstore.errors import DigestError, SelfTestError

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes that can be hashed without a copy."""

RawId = bytes
"""32 bytes: the BLAKE3 of an object, or the derive-key BLAKE3 of a record."""

Algorithm = Literal["blake3", "sha256", "git"]

_HEX_LENGTH: Final = {"blake3": 64, "sha256": 64, "git": 40}
_HEX: Final = re.compile(r"[0-9a-f]+")

MIN_PREFIX_HEX: Final = 8
"""Shortest hex prefix that a person may give for an id."""

RECORD_KINDS: Final = ("tree", "tree-index", "packet", "facts", "observation", "verdict", "ledger-entry")
"""Kinds of record; each has its own hash domain, so no file and no other record can pose as one."""

_DOMAINS: Final = {kind: blake3(derive_key_context=f"provstore 2026 {kind} v1") for kind in RECORD_KINDS}


class Digests(NamedTuple):
    """Both digests of some bytes, raw, and their number."""

    blake3: bytes
    sha256: bytes
    size_bytes: int


class Digest(NamedTuple):
    """A parsed digest: algorithm and raw bytes."""

    algorithm: Algorithm
    raw: bytes

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.raw.hex()}"


def object_id(data: Buffer) -> RawId:
    """Return the id of an object: plain BLAKE3-256 of exactly these bytes (BLAKE3 paper, section 2).

    Example:
        >>> object_id(b"").hex()[:16]
        'af1349b9f5f9a1a6'
    """
    return blake3(data).digest()


def record_id(kind: str, data: Buffer) -> RawId:
    """Return the id of a record: BLAKE3 in derive-key mode under the context of its kind.

    Args:
        kind: one of :data:`RECORD_KINDS`.
        data: canonical bytes of the record.

    Example:
        >>> record_id("tree", b"{}") != record_id("packet", b"{}") != object_id(b"{}")
        True
    """
    hasher = _DOMAINS[kind].copy()
    hasher.update(data)
    return hasher.digest()


def digests(data: Buffer) -> Digests:
    """Return BLAKE3, SHA-256 and size of bytes in memory.

    Example:
        >>> digests(b"x").sha256.hex()[:16]
        '2d711642b726b044'
    """
    view = memoryview(data)
    return Digests(blake3(view).digest(), libraries.sha256(view).digest(), view.nbytes)


class TwinHasher:
    """BLAKE3 and SHA-256 of one stream of bytes, each byte seen once.

    Example:
        >>> twin = TwinHasher()
        >>> twin.update(b"x")
        >>> twin.digests() == digests(b"x")
        True
    """

    __slots__ = ("_blake3", "_sha256", "size_bytes")

    def __init__(self) -> None:
        self._blake3 = blake3()
        self._sha256 = libraries.sha256()
        self.size_bytes = 0

    def update(self, data: Buffer) -> None:
        """Feed the next bytes to both hashes."""
        view = memoryview(data)
        self._blake3.update(view)
        self._sha256.update(view)
        self.size_bytes += view.nbytes

    def digests(self) -> Digests:
        """Return the digests of all bytes fed so far."""
        return Digests(self._blake3.digest(), self._sha256.digest(), self.size_bytes)


def to_raw(text: str, where: str = "id") -> RawId:
    """Return the 32 raw bytes of 64 lower-case hex digits.

    Raises:
        DigestError: any other text.

    Example:
        >>> len(to_raw("ab" * 32))
        32
    """
    if len(text) != 64 or not _HEX.fullmatch(text):
        raise DigestError(where, f"{text[:80]!r} is not 64 lower-case hex digits")
    return bytes.fromhex(text)


def parse_digest(text: str, where: str = "digest") -> Digest:
    """Parse ``blake3:<64 hex>``, ``sha256:<64 hex>`` or ``git:<40 hex>``.

    Raises:
        DigestError: unknown algorithm, wrong length, upper case, anything else.

    Example:
        >>> str(parse_digest("git:" + "0" * 40))[:8]
        'git:0000'
    """
    name, colon, digits = text.partition(":")
    for algorithm in ("blake3", "sha256", "git"):
        if colon and name == algorithm:
            if len(digits) != _HEX_LENGTH[algorithm] or not _HEX.fullmatch(digits):
                raise DigestError(
                    where, f"{text[:80]!r} needs {_HEX_LENGTH[algorithm]} lower-case hex digits"
                )
            return Digest(algorithm, bytes.fromhex(digits))
    raise DigestError(where, f"{text[:80]!r} names no digest; known are blake3:, sha256: and git:")


def is_prefix(text: str) -> bool:
    """Return whether ``text`` can be a bare hex prefix of an id: 8 to 64 lower-case hex digits.

    Example:
        >>> is_prefix("deadbeef"), is_prefix("run")
        (True, False)
    """
    return MIN_PREFIX_HEX <= len(text) <= 64 and _HEX.fullmatch(text) is not None


def self_test() -> None:
    """Check both hash functions against known answers (1,048,577 bytes of i mod 251, and the empty string).

    Raises:
        SelfTestError: a hash function is wrong on this machine.
    """
    data = (bytes(range(251)) * 4178)[:1048577]
    found = digests(data)
    if found.blake3.hex() != "2f053cd7472cf0cd2f9adaf45c1180255b91b9a865404a63671a0ee5f792ed33":
        raise SelfTestError("BLAKE3")
    if found.sha256.hex() != "5769f52bc3eef28afa39c6fc68cadb7d0bd69812ae3a3d71452f519ec3c7aa56":
        raise SelfTestError("SHA-256")
    if object_id(b"").hex() != "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262":
        raise SelfTestError("BLAKE3")
