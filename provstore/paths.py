"""Safe names and paths, byte-exact; how they are written in records and shown to people.

A name is bytes: one part of a path as the file system gave it. A path is names joined by ``/``. Nothing
here touches a file system.
"""

import itertools
import re
from collections.abc import Iterable

from provstore.errors import UnsafePathError

MAX_NAME_BYTES = 4096
"""Longest name that a record may hold; file systems allow 255."""

MAX_PATH_BYTES = 1 << 20
"""Longest path; deeper than PATH_MAX, since the walk uses directory descriptors."""

MAX_ROLE_BYTES = 4096
"""Longest role or name of a packet: what a system takes as one path."""

_SAFE_NAME = re.compile(rb"(?!\.{1,2}\Z)[^/\0]+")
_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\\]")


def check_name(name: bytes, where: str = "name") -> bytes:
    """Return ``name`` if it can be one part of a stored path.

    Raises:
        UnsafePathError: empty, ``.``, ``..``, holds ``/`` or NUL, or too long.

    Example:
        >>> check_name(b"run.log")
        b'run.log'
    """
    if _SAFE_NAME.fullmatch(name) is None or len(name) > MAX_NAME_BYTES:
        raise UnsafePathError(where, f"unsafe name {show(name[:200])!r}")
    return name


def check_path(path: bytes, where: str = "path") -> bytes:
    """Return ``path`` if it is relative and every part of it is a safe name.

    Raises:
        UnsafePathError: see :func:`check_name`; also an absolute or empty path.

    Example:
        >>> check_path(b"weights/target")
        b'weights/target'
    """
    if len(path) > MAX_PATH_BYTES:
        raise UnsafePathError(where, f"path of {len(path)} bytes is longer than {MAX_PATH_BYTES}")
    for name in path.split(b"/"):
        check_name(name, where)
    return path


def check_role(role: str, where: str = "role") -> str:
    """Return ``role`` if it is a safe path in printable UTF-8.

    Raises:
        UnsafePathError: an unsafe path, a control character or a lone surrogate.

    Example:
        >>> check_role("runtime/native/_C.abi3.so")
        'runtime/native/_C.abi3.so'
    """
    try:
        raw = role.encode()
    except UnicodeEncodeError:
        raise UnsafePathError(where, f"role {role!r} is not valid Unicode") from None
    if len(raw) > MAX_ROLE_BYTES:
        raise UnsafePathError(where, f"role of {len(raw)} bytes is longer than {MAX_ROLE_BYTES}")
    check_path(raw, where)
    if _UNSHOWABLE.search(role):
        raise UnsafePathError(where, f"role {show(role.encode())!r} has a character that cannot be shown")
    return role


def first_below(roles: Iterable[str]) -> str | None:
    """Return a role that lies below another one, or None.

    Example:
        >>> first_below(["a/b", "a.c", "a"])
        'a/b'
    """
    # In the order of their parts, what lies below a role follows it at once.
    ordered = sorted(roles, key=lambda role: role.split("/"))
    for above, role in itertools.pairwise(ordered):
        if role.startswith(above + "/"):
            return role
    return None


def join(*parts: bytes) -> bytes:
    """Join path parts with ``/``, leaving out empty ones.

    Example:
        >>> join(b"", b"a", b"b")
        b'a/b'
    """
    return b"/".join(part for part in parts if part)


def show(path: bytes | str) -> str:
    r"""Return a form of ``path`` that is safe on a terminal and reversible by :func:`unshow`.

    Valid UTF-8 stays as it is; other bytes, control and direction characters, and the backslash itself
    become ``\xNN`` escapes of their bytes.

    Example:
        >>> print(show(b"a\xffb"), show("tab\there"))
        a\xffb tab\x09here
    """
    raw = path if isinstance(path, bytes) else _encoded(path)
    text = raw.decode("utf-8", "surrogateescape")
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    parts = []
    for char in text:
        if _UNSHOWABLE.match(char) or "\udc80" <= char <= "\udcff":
            parts += [f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape")]
        else:
            parts.append(char)
    return "".join(parts)


def _encoded(text: str) -> bytes:
    """Return the bytes of a text; surrogates that stand for no byte, as JSON can state them, get some."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def unshow(text: str) -> bytes:
    r"""Return the bytes that :func:`show` made ``text`` of.

    Example:
        >>> unshow(r"a\xffb")
        b'a\xffb'
    """
    raw = text.encode("utf-8", "surrogateescape")
    return re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), raw)


def name_fields(name: bytes) -> tuple[str | None, str | None]:
    r"""Return ``(name, name_hex)`` as records write them: exactly one is given.

    Example:
        >>> name_fields(b"ok"), name_fields(b"\xff")
        (('ok', None), (None, 'ff'))
    """
    try:
        return name.decode(), None
    except UnicodeDecodeError:
        return None, name.hex()


def name_bytes(name: str | None, name_hex: str | None, where: str = "name") -> bytes:
    r"""Return the bytes of a name as records write it.

    Raises:
        UnsafePathError: both or neither given, hex for a valid UTF-8 name, or a name that is not safe.

    Example:
        >>> name_bytes(None, "ff")
        b'\xff'
    """
    if name_hex is not None and name is not None:
        raise UnsafePathError(where, "exactly one of name and name_hex is needed")
    if name is not None:
        try:
            return check_name(name.encode(), where)
        except UnicodeEncodeError:
            raise UnsafePathError(where, f"name {name!r} is not valid Unicode") from None
    if name_hex is None:
        raise UnsafePathError(where, "exactly one of name and name_hex is needed")
    raw = hex_bytes(name_hex, where)
    if name_fields(raw)[1] is None:
        raise UnsafePathError(where, f"name_hex {name_hex} is valid UTF-8 and must be written as name")
    return check_name(raw, where)


def hex_bytes(text: str, where: str) -> bytes:
    """Decode lower-case hex strictly.

    Raises:
        UnsafePathError: other characters or an odd length.
    """
    if len(text) % 2 or not re.fullmatch(r"[0-9a-f]*", text):
        raise UnsafePathError(where, f"bad hex {text[:80]!r}")
    return bytes.fromhex(text)
