"""The only encoder and the only strict decoder of records: canonical JSON.

Canonical means UTF-8, keys in code-point order, no blanks, integers only with magnitude below 2**53, no
duplicate keys. The decoder accepts exactly the bytes that re-encode to themselves, so a record has one
spelling and its id covers its meaning.
"""

import re
from math import isfinite
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from provstore import libraries
from provstore.errors import (
    CanonError,
    DepthError,
    DuplicateKeyError,
    FloatError,
    MalformedError,
    NewerFormatError,
    TrailingBytesError,
    UnknownFieldError,
)

MAX_DEPTH: Final = 64
"""Deepest nesting of any JSON that we read."""

MAX_RECORD_BYTES: Final = 64 << 20
"""Largest record that is decoded."""

MAX_PARSED_BYTES: Final = 16 << 20
"""Most bytes that are parsed into plain values, unless the caller needs more: 4 s and 500 MB at worst."""

MAX_INTEGER: Final = (1 << 53) - 1
"""Largest magnitude of an integer in a record: exact in every JSON implementation (RFC 8259, section 6)."""

_ENCODER: Final = msgspec.json.Encoder(order="sorted")

T = TypeVar("T")


def encode(record: object, *, bounded: bool = False) -> bytes:
    """Return the canonical bytes of a record.

    Args:
        record: a struct or plain values.
        bounded: it holds no float, and its integers were checked to be within :data:`MAX_INTEGER`.

    Raises:
        CanonError: a float, an integer out of range, or text that is not valid Unicode.

    Example:
        >>> encode({"b": 1, "a": ["x"]})
        b'{"a":["x"],"b":1}'
    """
    try:
        data = _ENCODER.encode(record)
    except UnicodeEncodeError as error:
        raise CanonError("record", f"text is not valid Unicode: {error.reason}") from error
    if bounded:
        return data
    if b"null" in data or _may_hold_bad_number(data):
        _check_numbers(msgspec.to_builtins(record))
    return data


def decode(data: bytes, kind: type[T], where: str = "record", *, bounded: bool = False) -> T:
    """Decode canonical bytes into the struct (or tagged union) ``kind``.

    Args:
        data: the bytes.
        kind: what they should be.
        where: what to call them in errors.
        bounded: the types of ``kind`` admit no float and no integer beyond :data:`MAX_INTEGER`, so that
            numbers need no look of their own.

    Raises:
        CanonError: or the subclass that names what is not canonical.
        NewerFormatError: the ``format`` field names a version that is not known here.

    Example:
        >>> decode(b'{"a":1}', dict[str, int])
        {'a': 1}
    """
    if len(data) > MAX_RECORD_BYTES:
        raise CanonError(where, f"{len(data)} bytes is larger than any record ({MAX_RECORD_BYTES})")
    try:
        record: T = _decoder(kind).decode(data)
        same = _ENCODER.encode(record) == data
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        _refuse(data, where, str(error))
    if not same:
        _refuse(data, where, "bytes differ from their own re-encoding")
    if not bounded and _may_hold_bad_number(data):
        parse(data, where, limit_bytes=MAX_RECORD_BYTES)
    return record


_DECODERS: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the one decoder for ``kind``; making one costs more than decoding a small record."""
    if kind not in _DECODERS:
        _DECODERS[kind] = msgspec.json.Decoder(kind)
    return _DECODERS[kind]


class NumberText(str):
    """A number with a fraction, an exponent or too many digits for exactness, as its source text."""

    __slots__ = ()


def parse_exact(data: bytes, where: str = "JSON") -> Any:
    """Parse any JSON strictly; numbers that no integer holds exactly keep their source text.

    Raises:
        CanonError: or a subclass, as :func:`parse` does, but floats are fine here.

    Example:
        >>> parse_exact(b"[201.77322600011393, 7]")
        ['201.77322600011393', 7]
    """
    return parse(data, where, floats=True)


def parse(
    data: bytes, where: str = "JSON", *, floats: bool = False, limit_bytes: int = MAX_PARSED_BYTES
) -> Any:
    """Parse any JSON strictly into plain values, for bytes that are no record of ours.

    Args:
        data: UTF-8 JSON text; blanks between tokens are allowed, other bytes after the value are not.
        where: what to name in an error.
        floats: give finite numbers that are not exact integers as :class:`NumberText`.
        limit_bytes: longer text is refused; values take up to twenty times its size in memory.

    Raises:
        DuplicateKeyError, FloatError, DepthError, TrailingBytesError, CanonError: as their names say.

    Example:
        >>> parse(b'{"a": 1}')
        {'a': 1}
    """
    if len(data) > limit_bytes:
        raise CanonError(
            where, f"{len(data)} bytes of JSON are more than the {limit_bytes} that are read here"
        )
    _check_depth(data, where)

    decoder = _strict_decoder(data, where, floats)
    try:
        text = data.decode()
        value, end = decoder.raw_decode(text, len(text) - len(text.lstrip(" \t\r\n")))
    except UnicodeDecodeError as error:
        raise CanonError(where, f"not UTF-8 at byte {error.start}") from error
    except libraries.json.JSONDecodeError as error:
        raise CanonError(
            where, f"no JSON at line {error.lineno} column {error.colno}: {error.msg}"
        ) from error
    if text[end:].strip(" \t\r\n"):
        raise TrailingBytesError(where, f"other text follows the JSON value at character {end}")
    return value


def _strict_decoder(data: bytes, where: str, floats: bool) -> "libraries.json.JSONDecoder":
    """Return a decoder that refuses repeated keys, and numbers as :func:`parse` says."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            seen: set[str] = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            at = data.rfind(libraries.json.dumps(twice, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            raise DuplicateKeyError(where, f"key {twice[:80]!r} is stated twice (second at byte {at})")
        return found

    def constant(text: str) -> NoReturn:
        raise FloatError(where, f"{text} is not a number")

    def number(text: str) -> NumberText:
        if not floats:
            raise FloatError(where, f"{text[:40]} is not an integer")
        if float(text) in (float("inf"), float("-inf")):
            raise FloatError(where, f"{text[:40]} is larger than any double")
        return NumberText(text)

    def integer(text: str) -> int | NumberText:
        if len(text) > 17 or not -MAX_INTEGER <= int(text) <= MAX_INTEGER:
            if floats:
                return NumberText(text)
            raise FloatError(where, f"integer {text[:40]} is beyond 2**53")
        if text == "-0":
            raise FloatError(where, "-0 has no canonical form")
        return int(text)

    return libraries.json.JSONDecoder(
        object_pairs_hook=pairs, parse_constant=constant, parse_float=number, parse_int=integer
    )


def format_of(data: bytes) -> str | None:
    """Return the ``format`` that a record's bytes name, or None.

    Example:
        >>> format_of(b'{"format":"provstore/tree/v1"}')
        'provstore/tree/v1'
    """
    try:
        return msgspec.json.decode(data, type=_Named).format
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


class _Named(msgspec.Struct):
    format: str


def _may_hold_bad_number(data: bytes) -> bool:
    """Say cheaply whether a number outside the exact range, or a float, could be in ``data``."""
    return _SUSPECT.search(data) is not None


# A number begins after one of `[:,` or with the text; without that, a long run of digits and dots inside a
# string would be looked at again from each of its characters.
_SUSPECT: Final = re.compile(rb"(?:[\[:,]|\A)-?+(?:[0-9]{16,}+|[0-9]++(?=[.eE])[0-9eE+.-]++)(?:[,}\]]|\Z)")

# A string that does not end takes the rest, so that no part of it is looked at twice.
_BRACKET_OR_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


def _check_numbers(value: Any) -> None:
    """Refuse a float, and an integer that not every JSON implementation holds exactly."""
    if isinstance(value, float):
        what = f"{value} has" if isfinite(value) else "NaN and Infinity have"
        raise FloatError("record", f"{what} no canonical form")
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise FloatError("record", f"integer {value} is beyond 2**53")
    if isinstance(value, dict):
        for item in value.values():
            _check_numbers(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_numbers(item)


def _check_depth(data: bytes, where: str) -> None:
    depth = 0
    for token in _BRACKET_OR_STRING.finditer(data):
        char = token[0]
        if char in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise DepthError(where, f"nested deeper than {MAX_DEPTH} at byte {token.start()}")
        elif char in (b"]", b"}"):
            depth -= 1


def _refuse(data: bytes, where: str, reason: str) -> NoReturn:
    """Raise the error that names best what keeps ``data`` from being canonical."""
    if len(data) <= MAX_PARSED_BYTES:
        parse(data, where)
    found = format_of(data) if "format" in reason else None
    if found is not None:
        raise NewerFormatError(where, found)
    if data != data.strip():
        raise TrailingBytesError(where, "blanks before or after the record")
    if "unknown field" in reason:
        raise UnknownFieldError(where, reason)
    raise CanonError(where, reason)


def require_format(data: bytes, expected: str, where: str) -> None:
    """Check that a document names the format ``expected``.

    Raises:
        NewerFormatError: it names another version or another format.
        MalformedError: it names none.
    """
    found = format_of(data)
    if found is None:
        raise MalformedError(where, f"no format field; expected {expected!r}")
    if found != expected:
        raise NewerFormatError(where, found)
