"""Names as bytes: shown safely, and back again exactly."""

import os
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from provstore.errors import UnsafePathError
from provstore.paths import check_name, check_path, check_role, join, name_bytes, name_fields, show, unshow

DIRECTION = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}
"""Characters with the property Bidi_Control of the Unicode Character Database."""

RAW = st.binary(max_size=40) | st.text(max_size=20).map(lambda t: t.encode("utf-8", "surrogatepass"))
NAMES = st.binary(min_size=1, max_size=30).filter(lambda n: n not in (b".", b"..") and not {47, 0} & set(n))


def dangerous(char: str) -> bool:
    """Say whether a terminal may act on a character, or show text in another order or on another line."""
    return unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or ord(char) in DIRECTION


@given(RAW)
@example(b"bad\x1b[2J\x1b[32mPASS\x1b[0m")
@example(b"\x1b]52;c;aGk=\x07")
@example("\x9b2J".encode())
@example(b"a\\x41")
@example(b"\\")
@example(b"\\\\x5c\\")
@example("\u202egnp.exe".encode())
@example("\u061c".encode())
@example(b"\xed\xa0\x80")
@example(b"\xf0\x9f\x98")
@example(b"\r\nPASS")
def test_shown_names_come_back_and_hold_nothing_that_a_terminal_acts_on(raw: bytes) -> None:
    text = show(raw)
    assert unshow(text) == raw
    assert [char for char in text if dangerous(char)] == []
    text.encode()


@given(RAW, RAW)
def test_two_names_are_never_shown_alike(a: bytes, b: bytes) -> None:
    assert (show(a) == show(b)) == (a == b)


@given(RAW)
def test_text_from_the_system_is_shown_as_its_bytes_are(raw: bytes) -> None:
    assert show(os.fsdecode(raw)) == show(raw)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="\\"), max_size=20))
def test_what_is_harmless_is_shown_as_it_is(text: str) -> None:
    assert show(text) == text
    assert show(text.encode()) == text


@pytest.mark.parametrize(
    "point", [p for p in range(0x110000) if not 0xD800 <= p < 0xE000 and dangerous(chr(p))]
)
def test_every_dangerous_character_is_escaped(point: int) -> None:
    raw = chr(point).encode()
    assert show(raw).isascii()
    assert unshow(show(raw)) == raw
    with pytest.raises(UnsafePathError):
        check_role(f"a{chr(point)}b")


@given(NAMES)
def test_names_are_written_in_exactly_one_way(name: bytes) -> None:
    text, text_hex = name_fields(name)
    assert (text is None) != (text_hex is None)
    assert name_bytes(text, text_hex) == name
    if text is not None:
        with pytest.raises(UnsafePathError):
            name_bytes(None, name.hex())
    with pytest.raises(UnsafePathError):
        name_bytes(None, name.hex() + "0")
    with pytest.raises(UnsafePathError):
        name_bytes(text or "x", text_hex or "ff")


@given(st.lists(NAMES, min_size=1, max_size=6))
def test_safe_names_join_to_safe_paths(names: list[bytes]) -> None:
    path = join(*names)
    assert check_path(path) == path
    assert path.split(b"/") == names
    assert not os.path.isabs(path)
    assert os.path.normpath(os.path.join(b"/base", path)).startswith(b"/base/")


UNSAFE: list[Any] = [b"", b".", b"..", b"/", b"a/b", b"\0", b"a\0", b"x" * 4097]


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_names_are_refused_anywhere_in_a_path(name: bytes) -> None:
    with pytest.raises(UnsafePathError):
        check_name(name)
    if name != b"a/b":
        for path in (name, b"a/" + name, name + b"/b", b"a/" + name + b"/b"):
            with pytest.raises(UnsafePathError):
                check_path(path)


@given(st.text(max_size=12))
@example("../x")
@example("/abs")
@example("a//b")
@example("a/./b")
@example("a/")
@example("a\nb")
@example("a\\b")
@example("\ud800")
def test_a_role_is_a_safe_path_that_is_shown_as_it_is(role: str) -> None:
    try:
        check_role(role)
    except UnsafePathError:
        return
    assert show(role) == role
    assert unshow(role) == role.encode()
    assert ".." not in role.split("/")
    assert not role.startswith("/")
