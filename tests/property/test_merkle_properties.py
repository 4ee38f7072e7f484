"""Merkle trees: their shape depends on names alone, and everything computed on them equals the naive way."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

import pytest
from blake3 import blake3
from hypothesis import example, given, settings
from hypothesis import strategies as st

from provstore import merkle, records, treediff
from provstore.errors import CanonError, MalformedError, ProvError
from provstore.ids import RawId, digests
from provstore.merkle import MAX_NODE_ENTRIES, SPLIT_ABOVE, SPLIT_BITS, Node
from provstore.paths import name_fields
from provstore.records.tree import TreeEntry, TreeIndex, TreeLeaf

Tree = dict[bytes, "TreeEntry | Tree"]
"""A directory as nested dictionaries: what every test compares with."""

NAMES = st.binary(min_size=1, max_size=8).filter(lambda n: n not in (b".", b"..") and not {47, 0} & set(n))
SIZES = [
    0,
    1,
    2,
    SPLIT_ABOVE - 1,
    SPLIT_ABOVE,
    SPLIT_ABOVE + 1,
    500,
    MAX_NODE_ENTRIES,
    MAX_NODE_ENTRIES + 1,
    5000,
]


def entry(name: bytes, content: object = b"") -> TreeEntry:
    text, text_hex = name_fields(name)
    found = digests(repr(content).encode())
    return TreeEntry(
        kind="file",
        name=text,
        name_hex=text_hex,
        blake3=found.blake3.hex(),
        sha256=found.sha256.hex(),
        size_bytes=found.size_bytes,
    )


def entries(
    names: Iterable[bytes], content: Callable[[bytes], object] = lambda name: name
) -> list[TreeEntry]:
    return [entry(name, content(name)) for name in sorted(names)]


@cache
def many(size: int, seed: int = 0) -> frozenset[bytes]:
    """Return so many names, every seventh of which is no text."""
    dice = random.Random(seed)
    found: set[bytes] = set()
    while len(found) < size:
        found.add(b"%x" % dice.getrandbits(60) + (b"\xff\xfe" if len(found) % 7 == 0 else b""))
    return frozenset(found)


class Shelf:
    """Records by id, which counts what is taken from it."""

    def __init__(self, *groups: Sequence[Node]) -> None:
        self.held = {id: data for nodes in groups for id, data in nodes}
        self.taken: list[RawId] = []

    def __call__(self, id: RawId) -> bytes:
        self.taken.append(id)
        return self.held[id]


def leaves(tree: Tree, prefix: bytes = b"") -> list[tuple[bytes, TreeEntry]]:
    """Return what :func:`merkle.build_tree` takes for a tree."""
    found = []
    for name, value in tree.items():
        path = prefix + b"/" + name if prefix else name
        if isinstance(value, dict):
            found.append((path, TreeEntry(kind="directory", name="x", tree="0" * 64)))
            found += leaves(value, path)
        else:
            found.append((path, value))
    return found


def root(nodes: Sequence[Node]) -> RawId:
    return nodes[-1][0]


TREES: st.SearchStrategy[Tree] = st.recursive(
    st.dictionaries(NAMES, NAMES.map(entry), max_size=6),
    lambda inner: st.dictionaries(NAMES, NAMES.map(entry) | inner, max_size=5),
    max_leaves=12,
)


# Building


@pytest.mark.parametrize("size", SIZES)
def test_entries_go_in_and_come_out(size: int) -> None:
    given_ = entries(many(size))
    nodes = merkle.build(given_)
    shelf = Shelf(nodes)
    assert list(merkle.entries_of(shelf, root(nodes))) == given_
    assert [path for path, _ in merkle.walk(shelf, root(nodes), b"d")] == [
        b"d/" + n for n in sorted(many(size))
    ]
    assert (len(nodes) == 1) == (size <= SPLIT_ABOVE)
    assert len({id for id, _ in nodes}) == len(nodes)


@pytest.mark.parametrize("size", SIZES)
def test_every_node_is_reached_once_and_none_else(size: int) -> None:
    nodes = merkle.build(entries(many(size)))
    shelf = Shelf(nodes)
    seen: set[RawId] = set()
    assert sorted(merkle.node_ids(shelf, root(nodes), seen)) == sorted(id for id, _ in nodes)
    assert list(merkle.node_ids(shelf, root(nodes), seen)) == []
    assert seen == {id for id, _ in nodes}


@pytest.mark.parametrize("size", SIZES)
def test_a_leaf_ends_where_its_last_name_says(size: int) -> None:
    """Computed here from the rule alone, not from the code."""
    names = sorted(many(size))
    nodes = merkle.build(entries(names))
    found = [
        record for record in map(records.decode, (data for _, data in nodes)) if isinstance(record, TreeLeaf)
    ]
    expected: list[list[bytes]] = [[]]
    for name in names:
        expected[-1].append(name)
        low = int.from_bytes(blake3(name).digest(8), "little")
        if size > SPLIT_ABOVE and (low % (1 << SPLIT_BITS) == 0 or len(expected[-1]) == MAX_NODE_ENTRIES):
            expected.append([])
    if not expected[-1] and len(expected) > 1:
        expected.pop()
    assert [[e.raw_name() for e in leaf.entries] for leaf in found] == expected


def test_names_that_were_chosen_to_defy_the_split_do_not_make_a_node_without_bound() -> None:
    names: list[bytes] = []
    number = 0
    while len(names) < 2 * MAX_NODE_ENTRIES + 10:
        name = b"%d" % number
        if blake3(name).digest(1)[0] % (1 << SPLIT_BITS):
            names.append(name)
        number += 1
    nodes = merkle.build(entries(names))
    shelf = Shelf(nodes)
    assert [e.raw_name() for e in merkle.entries_of(shelf, root(nodes))] == sorted(names)
    for _, data in nodes:
        record = records.decode(data)
        assert isinstance(record, TreeLeaf | TreeIndex)
        count = len(record.entries) if isinstance(record, TreeLeaf) else len(record.children)
        assert 0 < count <= MAX_NODE_ENTRIES


def shape(nodes: Sequence[Node], shelf: Shelf) -> list[list[int]]:
    """Return the numbers of names below each node of each level."""
    found: list[list[int]] = []
    level = [root(nodes)]
    while level:
        below: list[RawId] = []
        counts = []
        for id in level:
            record = records.decode(shelf(id))
            if isinstance(record, TreeIndex):
                counts.append(sum(child.entries for child in record.children))
                below += [bytes.fromhex(child.tree) for child in record.children]
            elif isinstance(record, TreeLeaf):
                counts.append(len(record.entries))
        found.append(counts)
        level = below
    return found


@pytest.mark.parametrize("size", SIZES)
def test_the_shape_depends_on_names_alone(size: int) -> None:
    names = many(size)
    one, two = merkle.build(entries(names)), merkle.build(entries(names, lambda name: b"other " + name))
    assert shape(one, Shelf(one)) == shape(two, Shelf(two))
    assert sum(shape(one, Shelf(one))[0]) == size


@given(st.sets(NAMES, max_size=150), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(names: set[bytes], dice: random.Random) -> None:
    members = [(name, entry(name, name)) for name in names]
    first = merkle.build_tree(members)
    dice.shuffle(members)
    assert merkle.build_tree(members) == first == merkle.build(entries(names))


@pytest.mark.parametrize("size", [SPLIT_ABOVE, SPLIT_ABOVE + 1, 900])
def test_history_does_not_matter(size: int) -> None:
    """A directory that grew beyond the split and shrank again is what it was."""
    names = set(many(size))
    before = merkle.build(entries(names))
    grown = merkle.build(entries(names | many(300, 1)))
    assert root(grown) != root(before)
    assert merkle.build(entries((names | many(300, 1)) - (many(300, 1) - names))) == before


def test_names_out_of_order_or_twice_or_unsafe_are_refused() -> None:
    a, b = entry(b"a"), entry(b"b")
    for wrong in ([b, a], [a, a], [a, b, b]):
        with pytest.raises(CanonError):
            merkle.build(wrong)
    for name in ("", ".", "..", "a/b", "a\0"):
        with pytest.raises(MalformedError):
            merkle.build([TreeEntry(kind="directory", name=name, tree="0" * 64)])
    with pytest.raises(CanonError):
        merkle.build_tree([(b"a", a), (b"a/b", b)])
    with pytest.raises(CanonError):
        merkle.build_tree([(b"a/b", b), (b"a", a)])
    with pytest.raises(CanonError):
        merkle.build_tree([(b"a", a), (b"a", b)])


# Looking up


@pytest.mark.parametrize("size", SIZES)
def test_every_name_is_found_and_no_other(size: int) -> None:
    names = sorted(many(size))
    nodes = merkle.build(entries(names))
    shelf = Shelf(nodes)
    dice = random.Random(3)
    for name in dice.sample(names, min(len(names), 60)):
        found, trail = merkle.find(shelf, root(nodes), name)
        assert found == entry(name, name)
        assert proven(trail, root(nodes))
    for name in (
        b"!",
        b"~~",
        b"zz",
        b"\xff\xff",
        *(n + b"x" for n in names[:5]),
        *(n[:-1] for n in names[:5]),
    ):
        found, trail = merkle.find(shelf, root(nodes), name)
        assert (found is not None) == (name in many(size))
        assert proven(trail, root(nodes))


def proven(trail: Sequence[bytes], top: RawId) -> bool:
    """Say whether each record is named by the one before it, and the first is the top."""
    ids = [records.encode(records.decode(data))[0] for data in trail]
    named = all(id.hex().encode() in data for data, id in zip(trail, ids[1:], strict=False))
    return ids[0] == top and named


@given(TREES)
@settings(max_examples=60)
def test_walking_and_finding_in_nested_trees(tree: Tree) -> None:
    nodes = merkle.build_tree(leaves(tree))
    shelf = Shelf(nodes)
    expected = flat(tree)
    walked = dict(merkle.walk(shelf, root(nodes)))
    assert {path: e.kind for path, e in walked.items()} == {
        path: "directory" if isinstance(value, dict) else "file" for path, value in expected.items()
    }
    paths = list(walked)
    for path in paths:
        assert merkle.find(shelf, root(nodes), path)[0] == walked[path]
        parent = path.rpartition(b"/")[0]
        assert not parent or paths.index(parent) < paths.index(path)
        if walked[path].kind == "file":
            assert merkle.find(shelf, root(nodes), path + b"/x")[0] is None
    assert sorted(paths, key=lambda path: path.split(b"/")) == paths
    reached = set(merkle.node_ids(shelf, root(nodes), set()))
    assert reached == {id for id, _ in nodes}


def flat(tree: Tree, prefix: bytes = b"") -> dict[bytes, "TreeEntry | Tree"]:
    found: dict[bytes, TreeEntry | Tree] = {}
    for name, value in tree.items():
        path = prefix + b"/" + name if prefix else name
        found[path] = value
        if isinstance(value, dict):
            found |= flat(value, path)
    return found


# Comparing

Naive = dict[bytes, tuple["TreeEntry | None", "TreeEntry | None"]]


def naive(
    a: Tree, b: Tree, named: Callable[[bytes, "TreeEntry | Tree", str], TreeEntry], prefix: bytes = b""
) -> Naive:
    """Compare dictionaries: a directory that both have is entered, one that a side lacks is one change."""
    found: Naive = {}
    for name in a.keys() | b.keys():
        x, y = a.get(name), b.get(name)
        path = prefix + b"/" + name if prefix else name
        if isinstance(x, dict) and isinstance(y, dict):
            found |= naive(x, y, named, path)
        elif x is None or y is None or isinstance(x, dict) or isinstance(y, dict) or not same(x, y):
            found[path] = (
                None if x is None else named(path, x, "a"),
                None if y is None else named(path, y, "b"),
            )
    return found


def same(x: TreeEntry, y: TreeEntry) -> bool:
    return (x.kind, x.blake3) == (y.kind, y.blake3)


def compared(a: Tree, b: Tree) -> None:
    """Check that a difference of trees is that of dictionaries, in the order of paths, and leads to b."""
    nodes_a, nodes_b = merkle.build_tree(leaves(a)), merkle.build_tree(leaves(b))
    shelf_a, shelf_b = Shelf(nodes_a), Shelf(nodes_b)
    walked = {"a": dict(merkle.walk(shelf_a, root(nodes_a))), "b": dict(merkle.walk(shelf_b, root(nodes_b)))}
    changes = list(treediff.diff(shelf_a, root(nodes_a), shelf_b, root(nodes_b)))
    paths = [path for path, _, _ in changes]
    assert len(paths) == len(set(paths))
    assert paths == sorted(paths, key=lambda path: path.split(b"/"))
    assert {path: (x, y) for path, x, y in changes} == naive(a, b, lambda path, _, side: walked[side][path])
    assert (root(nodes_a) == root(nodes_b)) == (not changes)
    applied = merkle.build_tree(apply(a, flat(b), paths))
    assert root(applied) == root(nodes_b)
    back = {path: (y, x) for path, x, y in changes}
    assert {p: (x, y) for p, x, y in treediff.diff(shelf_b, root(nodes_b), shelf_a, root(nodes_a))} == back
    assert list(treediff.diff(shelf_a, root(nodes_a), shelf_b, root(nodes_b), vouched=True)) == changes


def apply(
    a: Tree, b: Mapping[bytes, "TreeEntry | Tree"], changed: Sequence[bytes]
) -> list[tuple[bytes, TreeEntry]]:
    """Return the members of ``a`` after the changes, taking what is new from ``b``."""
    gone = tuple(changed)
    members = [
        (path, node)
        for path, node in leaves(a)
        if not any(path == other or path.startswith(other + b"/") for other in gone)
    ]
    for path in gone:
        value = b.get(path)
        if isinstance(value, dict):
            members.append((path, TreeEntry(kind="directory", name="x", tree="0" * 64)))
            members += leaves(value, path)
        elif value is not None:
            members.append((path, value))
    return members


@given(TREES, TREES)
@example({b"d": {}}, {})
@example({b"d": {}}, {b"d": entry(b"d")})
@example({b"d": {b"f": entry(b"f")}}, {b"d": {}})
@example({b"a": entry(b"1"), b"a.b": {b"c": entry(b"c")}}, {b"a": {b"c": entry(b"c")}, b"a.b": entry(b"2")})
@settings(max_examples=100)
def test_differences_are_those_of_dictionaries(a: Tree, b: Tree) -> None:
    compared(a, b)
    compared(a, a)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("other", [0, 1, SPLIT_ABOVE, SPLIT_ABOVE + 1, 300])
def test_differences_of_big_directories(size: int, other: int) -> None:
    """A part of the names leaves, others come, a part changes; also across the size of one leaf."""
    dice = random.Random(size * 1000 + other)
    names = sorted(many(size))
    gone = set(dice.sample(names, min(len(names), other // 2)))
    changed = set(dice.sample(names, min(len(names), other // 3)))
    a: Tree = {name: entry(name, name) for name in names}
    b: Tree = {name: entry(name, b"new" if name in changed else name) for name in names if name not in gone}
    b |= {name: entry(name, name) for name in many(other, 9)}
    compared({b"d": a, b"x": entry(b"x")}, {b"d": b, b"x": entry(b"x")})


@pytest.mark.parametrize("change", ["content", "added", "removed"])
def test_one_change_among_many_fetches_and_writes_little(change: str) -> None:
    names = sorted(many(20_000, 5))
    tree = {name: entry(name, name) for name in names}
    before = merkle.build([tree[name] for name in names])
    victim = names[12_345]
    if change == "content":
        tree[victim] = entry(victim, b"new")
    elif change == "removed":
        del tree[victim]
    else:
        tree[victim + b"0"] = entry(victim + b"0")
    after = merkle.build([tree[name] for name in sorted(tree)])
    a, b = Shelf(before), Shelf(after)
    (found,) = treediff.diff(a, root(before), b, root(after))
    assert found[0] in (victim, victim + b"0")
    levels = len(shape(after, Shelf(after)))
    assert levels >= 3
    assert len(a.taken) + len(b.taken) <= 2 * levels + 6
    written = {id for id, _ in after} - {id for id, _ in before}
    assert len(written) <= 2 * levels
    assert len(before) > 500


def test_equal_directories_are_not_looked_into() -> None:
    big = {name: entry(name, name) for name in many(5000)}
    a = merkle.build_tree(leaves({b"same": big, b"other": {b"f": entry(b"f", 1)}}))  # type: ignore[dict-item]
    b = merkle.build_tree(leaves({b"same": big, b"other": {b"f": entry(b"f", 2)}}))  # type: ignore[dict-item]
    shelf_a, shelf_b = Shelf(a), Shelf(b)
    assert [path for path, _, _ in treediff.diff(shelf_a, root(a), shelf_b, root(b))] == [b"other/f"]
    assert len(shelf_a.taken) == len(shelf_b.taken) == 2
    assert list(treediff.diff(shelf_a, root(a), shelf_a, root(a))) == []
    assert len(shelf_a.taken) == 2


def test_a_directory_as_deep_as_one_likes() -> None:
    path = b"/".join([b"d"] * 5000)
    nodes = merkle.build_tree([(path + b"/f", entry(b"f"))])
    shelf = Shelf(nodes)
    assert len(list(merkle.walk(shelf, root(nodes)))) == 5001
    assert merkle.find(shelf, root(nodes), path + b"/f")[0] == entry(b"f")
    other = merkle.build_tree([(path + b"/f", entry(b"f", 2))])
    assert [p for p, _, _ in treediff.diff(shelf, root(nodes), Shelf(other), root(other))] == [path + b"/f"]


# Records that lie


@given(st.data())
@settings(max_examples=150)
def test_a_foreign_record_in_the_place_of_a_node_never_ends_in_a_crash(draw: st.DataObject) -> None:
    """The ids are checked elsewhere; here the structure itself must hold against chosen records."""
    nodes = merkle.build(entries(many(300)))
    victim = draw.draw(st.sampled_from([id for id, _ in nodes]))
    other = draw.draw(
        st.sampled_from([data for _, data in nodes])
        | st.sampled_from([data for _, data in merkle.build(entries(many(70, 2)))])
        | st.binary(max_size=40)
    )
    shelf = Shelf(nodes)
    shelf.held[victim] = other
    if shelf.held[victim] == dict(nodes)[victim]:
        return

    def bounded(id: RawId) -> bytes:
        assert len(shelf.taken) < 5000, "goes in circles"
        if id not in shelf.held:
            raise MalformedError(id.hex(), "no such record")
        return shelf(id)

    for work in (
        lambda: list(merkle.entries_of(bounded, root(nodes))),
        lambda: list(merkle.walk(bounded, root(nodes))),
        lambda: merkle.find(bounded, root(nodes), b"abc"),
        lambda: list(treediff.diff(bounded, root(nodes), Shelf(nodes), root(nodes))),
        lambda: list(merkle.node_ids(bounded, root(nodes), set())),
    ):
        shelf.taken.clear()
        try:
            work()
        except ProvError:
            continue
