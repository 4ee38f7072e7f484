"""Properties of the pure layers: canonical bytes, trees over any names, differences, shown names."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from workbench import file_node

from provstore import canon, merkle, records, treediff
from provstore.errors import CanonError, MalformedError
from provstore.ids import RawId, record_id
from provstore.paths import check_name, name_bytes, name_fields, show, unshow
from provstore.records.tree import TreeEntry, TreeLeaf

# Canonical JSON

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-canon.MAX_INTEGER, canon.MAX_INTEGER)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)
documents = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values, max_size=5)


@given(documents)
def test_what_is_encoded_decodes_to_itself(value: dict[str, Any]) -> None:
    data = canon.encode(value)
    assert canon.decode(data, dict[str, Any]) == value
    assert canon.parse(data) == value
    assert json.loads(data) == value
    assert canon.encode(json.loads(data)) == data


@given(documents, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(value: dict[str, Any], chance: Any) -> None:
    items = list(value.items())
    chance.shuffle(items)
    assert canon.encode(dict(items)) == canon.encode(value)
    assert list(json.loads(canon.encode(value))) == sorted(value)


@given(documents, st.data())
def test_a_value_has_one_spelling(value: dict[str, Any], data: st.DataObject) -> None:
    whole = canon.encode(value)
    place = data.draw(st.integers(0, len(whole)))
    for altered in (
        whole[:place]
        + data.draw(st.sampled_from([b" ", b"\n", b"\t", b"0", b"\\u0041", b","]))
        + whole[place:],
        whole[:place] + whole[place + 1 :],
        whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :],
        json.dumps(value, separators=(", ", ":")).encode(),
        whole + b"\n",
        b"\xef\xbb\xbf" + whole,
    ):
        if altered == whole:
            continue
        try:
            other = canon.decode(altered, dict[str, Any])
        except CanonError:
            continue
        assert other != value or repr(other) != repr(value)
        assert canon.encode(other) == altered


@given(st.binary(max_size=60))
@example(b'{"a":1,"a":1}')
@example(b'{"a":1e2}')
@example(b'{"a":-0}')
@example(b'{"a":9007199254740993}')
@example(b'{"a":"\\ud800"}')
@example(b"[" * 50)
def test_any_bytes_are_accepted_as_they_are_or_refused(data: bytes) -> None:
    try:
        value = canon.decode(data, dict[str, Any])
    except CanonError:
        return
    assert canon.encode(value) == data


@given(st.floats() | st.integers(min_value=2**53) | st.integers(max_value=-(2**53)), st.booleans())
def test_numbers_that_are_not_exact_have_no_form(number: float, deep: bool) -> None:
    with pytest.raises(CanonError):
        canon.encode({"a": [{"b": number}] if deep else number})


# Names


@given(st.binary(max_size=40))
def test_a_shown_name_comes_back(raw: bytes) -> None:
    text = show(raw)
    assert unshow(text) == raw
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202a\u202e\u2066\ufeff" for c in text)
    text.encode()


@given(st.text(st.characters(), max_size=20))
def test_any_text_can_be_shown(text: str) -> None:
    shown = show(text)
    shown.encode()
    assert not any(ord(c) < 32 for c in shown)


@given(st.binary(min_size=1, max_size=40))
def test_a_name_has_one_form_in_records(raw: bytes) -> None:
    try:
        check_name(raw)
    except MalformedError:
        with pytest.raises(MalformedError):
            name_bytes(*name_fields(raw))
        return
    assert name_bytes(*name_fields(raw)) == raw
    if name_fields(raw)[1] is None:
        with pytest.raises(MalformedError):
            name_bytes(None, raw.hex())


# Trees

names = st.binary(min_size=1, max_size=12).filter(lambda n: n not in (b".", b"..") and not {47, 0} & set(n))


def node(name: bytes, content: int = 0) -> TreeEntry:
    text, text_hex = name_fields(name)
    return file_node(str(content).encode(), name=text, name_hex=text_hex)  # type: ignore[arg-type]


class Shelf(dict[RawId, bytes]):
    """Records by id; counts what is fetched."""

    fetched = 0

    def add(self, nodes: list[merkle.Node]) -> RawId:
        for id, data in nodes:
            assert record_id(records.kind_of(data), data) == id
            self[id] = data
        return nodes[-1][0]

    def fetch(self, id: RawId) -> bytes:
        self.fetched += 1
        return self[id]


def spread(count: int, salt: int = 0) -> list[bytes]:
    """Return many names, some of which are no UTF-8."""
    return sorted(
        {f"n{n * 7919 % 100_003}-{salt}".encode() + (b"\xff" if n % 5 == 0 else b"") for n in range(count)}
    )


@given(st.sets(names, max_size=30))
def test_small_directories_come_back(found: set[bytes]) -> None:
    shelf = Shelf()
    entries = [node(name) for name in sorted(found)]
    root = shelf.add(merkle.build(entries))
    assert list(merkle.entries_of(shelf.fetch, root)) == entries


@settings(max_examples=8)
@given(st.sampled_from([63, 64, 65, 66, 300, 4095, 4096, 4097, 9000]), st.integers(0, 5))
def test_directories_of_any_size_come_back(count: int, salt: int) -> None:
    shelf = Shelf()
    entries = [node(name) for name in spread(count, salt)]
    nodes = merkle.build(entries)
    root = shelf.add(nodes)
    assert list(merkle.entries_of(shelf.fetch, root)) == entries
    assert len(nodes) == 1 or count > merkle.SPLIT_ABOVE
    assert len(nodes) > 1 or count < 300
    assert max(map(len, shelf.values())) < 2 << 20
    for entry in entries[:: max(1, count // 40)]:
        shelf.fetched = 0
        name = entry.raw_name()
        hit, trail = merkle.find(shelf.fetch, root, name)
        assert hit == entry
        assert len(trail) == shelf.fetched <= 6
        miss, trail = merkle.find(shelf.fetch, root, name + b"!")
        assert miss is None
        chain = {record_id(records.kind_of(data), data): data for data in trail}
        assert merkle.find(chain.__getitem__, root, name + b"!")[0] is None


@settings(max_examples=30)
@given(st.integers(60, 400), st.data())
def test_the_shape_depends_on_the_set_of_names_alone(count: int, data: st.DataObject) -> None:
    found = spread(count)
    drop = data.draw(st.sets(st.sampled_from(found), max_size=20))
    kept = [name for name in found if name not in drop]
    direct, around = merkle.build([node(n) for n in kept]), merkle.build([node(n) for n in kept])
    assert direct == around
    whole = {id for id, _ in merkle.build([node(n) for n in found])}
    if not drop:
        assert {id for id, _ in direct} == whole


@settings(max_examples=40)
@given(st.integers(0, 500), st.data())
def test_a_difference_applied_gives_the_other_side(count: int, data: st.DataObject) -> None:
    found = spread(count)
    before = {name: data.draw(st.integers(0, 3)) for name in found[::7]}
    first = {name: before.get(name, 0) for name in found}
    second = dict(first)
    for name in data.draw(st.sets(st.sampled_from(found), max_size=12)) if found else ():
        second[name] = data.draw(st.integers(1, 9))
    for name in data.draw(st.sets(st.sampled_from(found), max_size=12)) if found else ():
        second.pop(name, None)
    second |= dict.fromkeys(data.draw(st.sets(names, max_size=12)), 5)
    shelf = Shelf()
    a, b = (
        shelf.add(merkle.build([node(name, side[name]) for name in sorted(side)])) for side in (first, second)
    )
    applied = {name: node(name, content) for name, content in first.items()}
    changed = []
    for path, x, y in treediff.diff(shelf.fetch, a, shelf.fetch, b):
        changed.append(path)
        assert applied.get(path) == x
        assert x != y
        if y is None:
            del applied[path]
        else:
            applied[path] = y
    assert applied == {name: node(name, content) for name, content in second.items()}
    assert changed == sorted(changed)
    back = [(path, y, x) for path, x, y in treediff.diff(shelf.fetch, b, shelf.fetch, a)]
    assert back == list(treediff.diff(shelf.fetch, a, shelf.fetch, b))


def test_a_difference_opens_only_what_differs() -> None:
    shelf = Shelf()
    found = spread(20_000)
    a = shelf.add(merkle.build([node(name) for name in found]))
    b = shelf.add(merkle.build([node(name, int(name == found[777])) for name in found]))
    shelf.fetched = 0
    assert [path for path, _, _ in treediff.diff(shelf.fetch, a, shelf.fetch, b)] == [found[777]]
    assert shelf.fetched <= 10


paths = st.lists(names, min_size=1, max_size=4).map(b"/".join)


@given(st.dictionaries(paths, st.integers(0, 3), max_size=20))
def test_nested_trees_come_back(files: dict[bytes, int]) -> None:
    clean = {p: c for p, c in files.items() if not any(q.startswith(p + b"/") for q in files)}
    shelf = Shelf()
    root = shelf.add(merkle.build_tree([(path, node(b"x", content)) for path, content in clean.items()]))
    walked = {path: entry for path, entry in merkle.walk(shelf.fetch, root) if entry.kind != "directory"}
    assert {path: entry.sha256 for path, entry in walked.items()} == {
        path: node(b"x", content).sha256 for path, content in clean.items()
    }
    order = [path.split(b"/") for path, _ in merkle.walk(shelf.fetch, root)]
    assert order == sorted(order)
    for path in clean:
        hit, trail = merkle.find(shelf.fetch, root, path)
        assert hit is not None
        assert hit == walked[path]
        chain = {record_id(records.kind_of(data), data): data for data in trail}
        assert merkle.find(chain.__getitem__, root, path)[0] == hit


@given(st.lists(names, min_size=2, max_size=6))
def test_names_out_of_order_or_twice_are_refused(found: list[bytes]) -> None:
    if found == sorted(set(found)):
        found = found[::-1]
    with pytest.raises(CanonError):
        merkle.build([node(name) for name in found])
    data = canon.encode(TreeLeaf(entries=tuple(node(name) for name in found)))
    with pytest.raises(CanonError):
        merkle.open_node(data)
