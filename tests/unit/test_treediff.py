"""Comparing trees: what is decoded, names that look like borders, and records that nobody vouches for."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from provstore import canon, merkle, treediff
from provstore.errors import CanonError, ProvError
from provstore.ids import RawId, digests, record_id
from provstore.merkle import Node
from provstore.records.tree import TreeEntry

HOSTILE_NAMES = ["},{", '},{"', '},{"blake3":"', "a},{", "}]", '"', "\\", "x,", "entries", "é},{"]


def file(name: str, content: str = "") -> TreeEntry:
    found = digests((content or name).encode())
    return TreeEntry(
        kind="file",
        name=name,
        blake3=found.blake3.hex(),
        sha256=found.sha256.hex(),
        size_bytes=found.size_bytes,
    )


def shelf(*groups: Sequence[Node]) -> dict[RawId, bytes]:
    return {id: data for nodes in groups for id, data in nodes}


def directory(names: Sequence[str], changed: Sequence[str] = ()) -> list[Node]:
    entries = [file(name, "other" if name in changed else "") for name in names]
    return merkle.build(sorted(entries, key=lambda entry: entry.raw_name()))


@pytest.mark.parametrize("changed", [*itertools.combinations(HOSTILE_NAMES, 1), tuple(HOSTILE_NAMES[:4])])
@pytest.mark.parametrize("more", [0, 300])
def test_names_that_look_like_borders_are_names(changed: tuple[str, ...], more: int) -> None:
    names = HOSTILE_NAMES + [f"f{number}" for number in range(more)]
    a, b = directory(names), directory(names, changed)
    found = list(treediff.diff(shelf(a).__getitem__, a[-1][0], shelf(b).__getitem__, b[-1][0], vouched=True))
    assert [path.decode() for path, _, _ in found] == sorted(changed, key=str.encode)
    assert found == list(treediff.diff(shelf(a).__getitem__, a[-1][0], shelf(b).__getitem__, b[-1][0]))


@pytest.mark.parametrize("size", [60, 3000, 60_000])
def test_what_both_sides_share_is_not_decoded(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    names = [f"f{number:06}" for number in range(size)]
    changed = names[7 :: size // 5]
    a, b = directory(names), directory(names, changed)
    decoded: list[int] = []
    take_apart = canon.decode

    def count(data: bytes, *rest: Any, **named: Any) -> Any:
        decoded.append(len(data))
        return take_apart(data, *rest, **named)

    monkeypatch.setattr(canon, "decode", count)
    found = list(treediff.diff(shelf(a).__getitem__, a[-1][0], shelf(b).__getitem__, b[-1][0], vouched=True))
    assert len(found) == len(changed)
    # At most five levels, each with one entry or child a side.
    assert len(decoded) <= 2 * 5 * len(changed)
    assert max(decoded) < 400


def leaf(*entries: bytes) -> Node:
    data = b'{"entries":[%s],"format":"provstore/tree/v1"}' % b",".join(entries)
    return record_id("tree", data), data


@pytest.mark.parametrize(
    "spoiled",
    [
        b'{"kind":"file","name":"a","size_bytes":7}',
        b'{"kind":"file" ,"name":"a"}',
        b'{"kind":"file","name":"a/b"}',
    ],
)
def test_what_nobody_vouches_for_is_looked_at_as_a_whole(spoiled: bytes) -> None:
    """A pack's records are a stranger's: a bad entry is refused although both sides have it."""
    x, y = canon.encode(file("x", "1")), canon.encode(file("x", "2"))
    a, b = leaf(spoiled, x), leaf(spoiled, y)
    with pytest.raises(ProvError):
        list(treediff.diff(shelf([a]).__getitem__, a[0], shelf([b]).__getitem__, b[0]))


@pytest.mark.parametrize("vouched", [False, True])
def test_what_differs_is_always_checked(vouched: bool) -> None:
    good = canon.encode(file("a"))
    bad = canon.encode(file("x")).replace(b'"size_bytes":1', b'"size_bytes":01')
    a, b = leaf(good, canon.encode(file("x"))), leaf(good, bad)
    with pytest.raises(ProvError):
        list(treediff.diff(shelf([a]).__getitem__, a[0], shelf([b]).__getitem__, b[0], vouched=vouched))


@pytest.mark.parametrize("vouched", [False, True])
def test_a_part_that_stands_in_another_place_is_refused(vouched: bool) -> None:
    names = [f"f{number:06}" for number in range(3000)]
    a, b = directory(names), directory(names, names[100:101])
    there = shelf(b)
    changed = next(id for id, data in b if id not in shelf(a) and b'"entries":[{"blake3"' in data)
    elsewhere = next(id for id, data in a if b'"entries":[{"blake3"' in data and b"f002" in data)
    there[changed] = shelf(a)[elsewhere]
    with pytest.raises(CanonError):
        list(treediff.diff(shelf(a).__getitem__, a[-1][0], there.__getitem__, b[-1][0], vouched=vouched))
