"""Strict JSON (RFC 8259) into typed values that keep the source text of numbers.

Python's C scanner does the work: its hooks keep the text of every number with a fraction or exponent, see
duplicate keys, NaN and Infinity, and cost about as much as a plain ``json.loads`` (``benchmarks/readers.py``
has figures). msgspec decodes faster and is no choice here: it keeps the last of two equal keys, and a
double instead of the digits that were printed. Depth and size are bounded by a scan over the brackets
before anything is built, in passes that each run in C.
"""

import json
import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, TypeAlias, Union

import msgspec

from provstore.canon import MAX_DEPTH
from provstore.evidence.finding import Extraction, Finding, quoted


class Absent(Enum):
    """The type of :data:`ABSENT`: nothing is there, which is neither null nor zero nor empty."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""No such member or element."""


class Number(msgspec.Struct, frozen=True, gc=False):
    """A JSON number with a fraction or an exponent, or a minus zero.

    Attributes:
        text: as the source prints it.
        double: the IEEE double nearest to it, always finite.

    Example:
        >>> Number("1.10", 1.1) == Number("1.1", 1.1)
        False
    """

    text: str
    double: float


class Spoiled(msgspec.Struct, frozen=True, gc=False):
    """Stands where the source has no usable value; a finding says why.

    Attributes:
        code: ``duplicate-key``, ``non-finite``, ``number-too-long`` or ``bad-unicode``.
        text: what the source has there, shortened.
    """

    code: str
    text: str


Value: TypeAlias = Union[bool, int, str, Number, Spoiled, "list[Value]", "dict[str, Value]", None]
"""What a JSON text is read into."""

KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    str: "string",
    Number: "decimal",
    Spoiled: "spoiled",
    list: "array",
    dict: "object",
    Absent: "absent",
}
"""Names of the types of a value."""

MAX_DIGITS: Final = 4000
"""Longest integer that is read; Python refuses to convert longer ones."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is read into memory; beyond them there is a finding and no value.

    Attributes:
        bytes: largest document.
        depth: deepest nesting.
        containers: most arrays and objects together.
        values: most commas between values.
    """

    bytes: int = 64 << 20
    depth: int = MAX_DEPTH
    containers: int = 500_000
    values: int = 4_000_000


DEFAULT_LIMITS: Final = Limits()


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One JSON text, read.

    Attributes:
        value: its value, or :data:`ABSENT` when it is no JSON or beyond the limits.
        findings: what is wrong with it, each with a JSON pointer or a line.
    """

    value: Value | Absent
    findings: tuple[Finding, ...]


def kind(value: Value | Absent) -> str:
    """Return the name of a value's type; see :data:`KINDS`.

    Example:
        >>> [kind(v) for v in (False, 0, Number("0.0", 0.0), "0", None, ABSENT)]
        ['boolean', 'integer', 'decimal', 'string', 'null', 'absent']
    """
    return KINDS[type(value)]


def child(pointer: str, token: str | int) -> str:
    """Return the pointer of a member or element below ``pointer`` (RFC 6901, section 3).

    Example:
        >>> child(child("/rows", 3), "a/b~")
        '/rows/3/a~1b~0'
    """
    if isinstance(token, int):
        return f"{pointer}/{token}"
    if "~" in token or "/" in token:
        token = token.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{token}"


def resolve(value: Value | Absent, pointer: str) -> Value | Absent:
    """Return what lies at a JSON pointer, or :data:`ABSENT`.

    Example:
        >>> resolve({"rows": [{"n": None}]}, "/rows/0/n") is None
        True
        >>> resolve({"rows": []}, "/rows/0")
        <Absent.ABSENT: 'absent'>
    """
    if not pointer:
        return value
    if not pointer.startswith("/"):
        return ABSENT
    here = value
    for raw in pointer[1:].split("/"):
        token = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict):
            here = here.get(token, ABSENT)
        elif isinstance(here, list) and _INDEX.fullmatch(token) and int(token) < len(here):
            here = here[int(token)]
        else:
            return ABSENT
    return here


def read(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Document:
    """Read one JSON text.

    Args:
        data: UTF-8 text; blanks may surround the value.
        limits: bounds; see :class:`Limits`.

    Returns:
        The value and findings; never raises because of ``data``.

    Example:
        >>> read(b'{"v": 102.97143559613157}').value
        {'v': Number(text='102.97143559613157', double=102.97143559613157)}
        >>> [(f.code, f.location) for f in read(b'{"a": {"x": 1, "x": 1}}').findings]
        [('duplicate-key', '/a/x')]
    """
    out = Extraction()
    if data.startswith(b"\xef\xbb\xbf"):
        out.finding("byte-order-mark", "line 1", "JSON text must not begin with a byte order mark")
        data = data[3:]
    if _over_limits(data, limits, out):
        return Document(value=ABSENT, findings=out.findings())
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        out.finding("not-utf8", f"line {line}", f"byte {error.start} is not valid UTF-8")
        return Document(value=ABSENT, findings=out.findings())
    value = _Scan(exact=_may_hold_minus_zero(data)).run(text, out)
    if value is ABSENT:
        return Document(value=ABSENT, findings=out.findings())
    if b"\\ud" in data or b"\\uD" in data:
        value = _without_lone_surrogates(value, "", out)
    return Document(value=value, findings=out.findings())


class _Scan:
    """One run of the C scanner with hooks; remembers whether a walk for spoiled values is needed."""

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact
        self.spoiled = False

    def run(self, text: str, out: Extraction) -> Value | Absent:
        decoder = json.JSONDecoder(
            object_pairs_hook=self.members,
            parse_constant=self.constant,
            parse_float=self.decimal,
            parse_int=self.integer if self.exact else None,
        )
        try:
            value, end = decoder.raw_decode(text, _BLANKS.match(text).end())  # type: ignore[union-attr]
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}"
            out.finding("not-json", place, f"no JSON at column {error.colno}: {error.msg}")
            return ABSENT
        except ValueError:
            if self.exact:
                raise
            return _Scan(exact=True).run(text, out)
        except RecursionError:
            out.finding("too-deep", "", "nested deeper than the reader can follow")
            return ABSENT
        end = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
        if end != len(text):
            line = text.count("\n", 0, end) + 1
            out.finding("trailing-text", f"line {line}", f"{quoted(text[end : end + 40])} follows the value")
            return ABSENT
        if self.spoiled:
            for pointer, found in spoiled_values(value):
                place = pointer.encode("utf-8", "backslashreplace").decode()
                out.finding(found.code, place, f"{_REASONS[found.code]}: {quoted(found.text)}")
        return value  # type: ignore[no-any-return]

    def members(self, items: list[tuple[str, Value]]) -> dict[str, Value]:
        found = dict(items)
        if len(found) != len(items):
            self.spoiled = True
            seen: set[str] = set()
            for key, _ in items:
                if key in seen:
                    found[key] = Spoiled("duplicate-key", key)
                seen.add(key)
        return found

    def constant(self, text: str) -> Spoiled:
        self.spoiled = True
        return Spoiled("non-finite", text)

    def decimal(self, text: str) -> Number | Spoiled:
        double = float(text)
        if double - double != 0.0:
            self.spoiled = True
            return Spoiled("non-finite", text[:80])
        return Number(text, double)

    def integer(self, text: str) -> int | Number | Spoiled:
        if text == "-0":
            return Number(text, -0.0)
        if len(text) > MAX_DIGITS:
            self.spoiled = True
            return Spoiled("number-too-long", text[:80])
        return int(text)


def spoiled_values(value: Value | Absent) -> Iterator[tuple[str, Spoiled]]:
    """Yield every spoiled value with its pointer, in the order of the document.

    Example:
        >>> [pointer for pointer, _ in spoiled_values(read(b'[1, NaN]').value)]
        ['/1']
    """
    todo: list[tuple[str, Value | Absent]] = [("", value)]
    while todo:
        pointer, here = todo.pop()
        if isinstance(here, Spoiled):
            yield pointer, here
        elif isinstance(here, dict):
            todo += [(child(pointer, key), item) for key, item in reversed(here.items())]
        elif isinstance(here, list):
            last = len(here) - 1
            todo += [
                (child(pointer, last - back), item)
                for back, item in enumerate(reversed(here))
                if isinstance(item, _LOOK_INTO)
            ]


def _may_hold_minus_zero(data: bytes) -> bool:
    """Say whether ``-0`` may stand in ``data`` as an integer; only then is each integer's text looked at."""
    at = data.find(b"-0")
    while at >= 0 and data[at + 2 : at + 3] not in _AFTER_NUMBER:
        at = data.find(b"-0", at + 2)
    return at >= 0


def _over_limits(data: bytes, limits: Limits, out: Extraction) -> bool:
    """Say whether the document is beyond a limit, adding the finding; builds nothing but brackets."""
    if len(data) > limits.bytes:
        out.finding("too-large", "", f"{len(data)} bytes; the limit is {limits.bytes}")
        return True
    plain = _ESCAPE.sub(b"", data)
    marks = _STRING.sub(b"", plain.translate(_ONE_BRACKET, _NO_MARK))
    commas = marks.count(b",")
    containers = marks.count(b"[")
    if commas > limits.values or containers > limits.containers:
        what = f"{containers} containers and {commas} commas"
        out.finding("too-many-values", "", f"{what}; limits {limits.containers} and {limits.values}")
        return True
    brackets = marks.translate(None, b",")
    for _ in range(limits.depth):
        shorter = brackets.replace(b"[]", b"")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    if brackets.count(b"[]") == 0 and brackets.count(b"[") <= limits.depth:
        return False
    out.finding("too-deep", _deep_place(data, limits.depth), f"nested deeper than {limits.depth}")
    return True


def _deep_place(data: bytes, limit: int) -> str:
    depth = 0
    for token in _TOKEN.finditer(data):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth > limit:
                return f"line {data.count(10, 0, token.start()) + 1}"
        elif token[0] in (b"]", b"}"):
            depth -= 1
    return ""


def _without_lone_surrogates(value: Value | Absent, pointer: str, out: Extraction) -> Value:
    """Return ``value`` with strings that are no Unicode text spoiled; depth is bounded by the limits."""
    if isinstance(value, str):
        if _encodes(value):
            return value
        out.finding("bad-unicode", pointer, f"{_REASONS['bad-unicode']}: {quoted(value)}")
        return Spoiled("bad-unicode", ascii(value[:80]))
    if isinstance(value, list):
        return [_without_lone_surrogates(item, child(pointer, at), out) for at, item in enumerate(value)]
    if isinstance(value, dict):
        kept: dict[str, Value] = {}
        for key, item in value.items():
            if _encodes(key):
                kept[key] = _without_lone_surrogates(item, child(pointer, key), out)
            else:
                out.finding("bad-unicode", pointer, f"member left out, its name is no text: {quoted(key)}")
        return kept
    return None if isinstance(value, Absent) else value


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_AFTER_NUMBER: Final = (b"", b" ", b"\t", b"\r", b"\n", b",", b"]", b"}")
_LOOK_INTO: Final = (dict, list, Spoiled)
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_ESCAPE: Final = re.compile(rb"\\.", re.DOTALL)
_STRING: Final = re.compile(rb'"[^"]*"')
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_ONE_BRACKET: Final = bytes.maketrans(b"{}", b"[]")
_NO_MARK: Final = bytes(byte for byte in range(256) if byte not in b'"[]{},')
_REASONS: Final = {
    "duplicate-key": "one key is stated twice, so it has no value",
    "non-finite": "not a finite number",
    "number-too-long": f"integer of more than {MAX_DIGITS} digits",
    "bad-unicode": "a surrogate without its partner is no text",
}
