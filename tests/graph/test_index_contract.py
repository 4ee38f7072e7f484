"""What every graph index does, on the one in memory and the one on disk."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.errors import NotFoundError
from provstore.graph.index import OWN, Edge, Index, Statement, Unit
from provstore.graph.memory import MemoryIndex
from provstore.graph.nodes import Node
from provstore.graph.relations import Relation
from provstore.graph.statements import Lineup, Statements
from provstore.store.graph_index import GraphIndex, make_graph, open_graph
from provstore.store.graph_rows import stamp

A, B, C = "a" * 64, "b" * 64, "c" * 64
STAMP = stamp("test")
PACKET, TREE, OBJECT = Node("packet", A), Node("tree", B), Node("object", C)

HOLDS = Relation(PACKET, "holds", TREE, A, "logs")
CONTAINS = Relation(TREE, "contains", OBJECT, B)
JUDGES = Relation(Node("verdict", C), "judges", PACKET, C, "policy", "FAIL")

MakeIndex = Callable[[], Index]


@pytest.fixture(params=["memory", "lmdb"])
def make_index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeIndex]:
    made: list[Index] = []

    def make() -> Index:
        if request.param == "memory":
            made.append(MemoryIndex())
        else:
            made.append(make_graph(os.fspath(tmp_path / f"store{len(made)}"), STAMP))
        return made[-1]

    yield make
    for index in made:
        if isinstance(index, GraphIndex):
            index.check()
        index.close()
        index.close()


def number(index: Index, node: Node) -> int:
    found = index.number(node)
    assert found is not None, node
    return found


def said(index: Index, node: Node, *, back: bool = False) -> list[tuple[str, str, Statement]]:
    """Return the edges of a node with what they lead to."""
    edges = index.into(number(index, node)) if back else index.out(number(index, node))
    return [(edge.kind, str(index.node(edge.node)), index.statement(edge.statement)) for edge in edges]


def test_relations_are_found_from_both_ends(make_index: MakeIndex) -> None:
    index = make_index()
    index.add([Unit(B, [CONTAINS]), Unit(A, [HOLDS]), Unit(C, [JUDGES])])
    assert said(index, PACKET) == [("holds", f"tree:{B}", Statement(A, "logs", ""))]
    assert said(index, TREE, back=True) == [("holds", f"packet:{A}", Statement(A, "logs", ""))]
    assert said(index, PACKET, back=True) == [("judges", f"verdict:{C}", Statement(C, "policy", "FAIL"))]
    assert said(index, OBJECT) == []
    assert index.sizes() == (4, 3)


def test_what_a_record_states_of_itself_as_a_whole_is_not_kept_again(make_index: MakeIndex) -> None:
    index = make_index()
    index.add([Unit(B, [CONTAINS])])
    (edge,) = index.out(number(index, TREE))
    assert edge == Edge("contains", number(index, OBJECT), OWN)
    assert index.statement(OWN) == Statement("", "", "")


def test_nothing_is_known_of_what_was_never_said(make_index: MakeIndex) -> None:
    index = make_index()
    assert index.number(PACKET) is None
    assert index.sizes() == (0, 0)
    assert list(index.nodes("packet")) == []
    assert list(index.stated()) == []
    assert index.noted() == b""
    assert not index.knows(A)
    for missing in (0, 1, 99):
        with pytest.raises(NotFoundError):
            index.node(missing)
    index.add([Unit(A, [HOLDS])])
    assert index.number(Node("object", A)) is None
    assert [*index.out(99), *index.into(99)] == []
    assert list(index.edges([99])) == []


def test_a_unit_is_taken_in_once(make_index: MakeIndex) -> None:
    index = make_index()
    index.add([Unit(A, [HOLDS]), Unit(A, [HOLDS, JUDGES])])
    index.add([Unit(A, [JUDGES])])
    assert index.sizes() == (2, 1)
    assert index.units() == {A}
    assert index.knows(A)


def test_an_edge_that_is_stated_twice_in_one_unit_is_one(make_index: MakeIndex) -> None:
    index = make_index()
    other = HOLDS._replace(location="other")
    index.add([Unit(A, iter([HOLDS, other, HOLDS]))])
    assert [s.location for _, _, s in said(index, PACKET)] == ["logs", "other"]


def test_all_or_nothing(make_index: MakeIndex) -> None:
    def broken() -> Iterator[Relation]:
        yield JUDGES
        raise KeyError("the source of a unit breaks")

    index = make_index()
    with pytest.raises(KeyError):
        index.add([Unit(A, [HOLDS]), Unit(C, broken())], b"note")
    assert index.sizes() == (0, 0)
    assert index.noted() == b""


def test_edges_come_by_kind_and_number_and_can_be_picked(make_index: MakeIndex) -> None:
    index = make_index()
    targets = [Node("object", f"{n:064x}") for n in (3, 1, 2)]
    relations = [Relation(PACKET, "pins", node, A, "r") for node in targets]
    relations += [Relation(PACKET, "holds", node, A, "r") for node in reversed(targets)]
    index.add([Unit(A, relations)])
    here = number(index, PACKET)
    edges = list(index.out(here))
    assert [edge.kind for edge in edges] == ["holds"] * 3 + ["pins"] * 3
    numbers = sorted(number(index, node) for node in targets)
    assert [edge.node for edge in edges] == numbers * 2
    assert [edge.node for edge in index.out(here, frozenset(("pins",)))] == numbers
    assert list(index.out(here, frozenset(("cites",)))) == []
    both = list(index.edges(numbers, back=True, kinds=frozenset(("holds",))))
    assert both == [(n, Edge("holds", here, edges[0].statement)) for n in numbers]
    assert (index.degrees([here]), index.degrees([here], back=True)) == ([6], [0])
    assert index.degrees([*numbers, 99], back=True) == [2, 2, 2, 0]
    assert list(index.neighbours(numbers, back=True)) == [(n, here) for n in numbers for _ in range(2)]
    assert [other for _, other in index.neighbours([here])] == numbers * 2
    assert index.nodes_at(reversed(numbers)) == [index.node(n) for n in reversed(numbers)]


def test_more_edges_than_one_reading_takes(make_index: MakeIndex) -> None:
    index = make_index()
    relations = [Relation(TREE, "contains", Node("object", f"{n:064x}"), B) for n in range(9000)]
    index.add([Unit(B, relations), Unit(A, [HOLDS])])
    found = [edge.node for edge in index.out(number(index, TREE))]
    assert len(found) == len(set(found)) == 9000
    assert found == sorted(found)
    assert [edge.node for _, edge in index.edges([number(index, TREE)])] == found
    assert len(list(index.nodes("object"))) == 9000
    asked = [number(index, node) for _, node in index.nodes("object")]
    assert len(list(index.edges(asked, back=True))) == 9000


def test_nodes_are_listed_by_key_whatever_their_length(make_index: MakeIndex) -> None:
    index = make_index()
    keys = ["a", "b" * 479, "b" * 480, "b" * 481 + "x", "b" * 481 + "y", "é", "z" * 5000, "\ud800"]
    relations = [Relation(PACKET, "names", Node("url", key), A, "r") for key in reversed(keys)]
    index.add([Unit(A, relations)])
    assert {node.key for _, node in index.nodes("url")} == set(keys)
    assert [node.key for _, node in index.nodes("url", "b" * 481)] in (
        ["b" * 481 + "x", "b" * 481 + "y"],
        ["b" * 481 + "y", "b" * 481 + "x"],
    )
    assert [node.key for _, node in index.nodes("url", "a")] == ["a"]
    for key in keys:
        found = number(index, Node("url", key))
        assert index.node(found) == Node("url", key)
    assert index.number(Node("url", "b" * 481 + "z")) is None


def test_ids_that_differ_in_case_alone_are_two_nodes(make_index: MakeIndex) -> None:
    index = make_index()
    for key in ("Run-1", "run-1"):
        index.add([Unit(A if key[0] == "R" else B, [Relation(PACKET, "cites", Node("record", key), A)])])
    assert number(index, Node("record", "Run-1")) != number(index, Node("record", "run-1"))


def test_what_documents_state_is_kept_whole(make_index: MakeIndex) -> None:
    index = make_index()
    first = Statements(
        subject="f", subject_kind="family", lineups=(Lineup(key="f/p", kind="x", selectors={}),)
    )
    second = Statements(subject="g", subject_kind="family")
    index.add([Unit(A, [HOLDS], [(C, first), (B, second)])], b"note")
    index.add([Unit(B, [CONTAINS], [(C, second), (B, second)])])
    assert list(index.stated()) == [(B, second), (C, first), (C, second)]
    assert index.stated_by(C) == first
    assert index.stated_by(A) is None
    assert index.noted() == b"note"


NODES = st.builds(Node, st.sampled_from(("object", "tree", "packet", "record")), st.sampled_from("abcdefgh"))
RELATIONS = st.builds(
    Relation,
    NODES,
    st.sampled_from(("holds", "contains", "pins", "cites")),
    NODES,
    st.sampled_from((A, B)),
    st.sampled_from(("", "x")),
)


@given(batches=st.lists(st.lists(st.lists(RELATIONS, max_size=8), max_size=4), max_size=4))
def test_disk_and_memory_answer_alike(
    batches: list[list[list[Relation]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    memory = MemoryIndex()
    disk = make_graph(os.fspath(tmp_path_factory.mktemp("store")), STAMP)
    try:
        for at, batch in enumerate(batches):
            units = [Unit(f"{at:032x}{n:032x}", relations) for n, relations in enumerate(batch)]
            memory.add(units)
            disk.add(units)
        disk.check()
        assert disk.sizes() == memory.sizes()
        for kind in ("object", "tree", "packet", "record"):
            assert list(disk.nodes(kind)) == list(memory.nodes(kind))
        for n in range(1, memory.sizes()[0] + 1):
            assert list(disk.out(n)) == list(memory.out(n))
            assert list(disk.into(n)) == list(memory.into(n))
            for edge in memory.out(n):
                assert disk.statement(edge.statement) == memory.statement(edge.statement)
        everything = list(range(1, memory.sizes()[0] + 1))
        assert list(disk.edges(everything)) == list(memory.edges(everything))
    finally:
        disk.close()


def test_another_stamp_or_no_file_is_no_index(tmp_path: Path) -> None:
    place = os.fspath(tmp_path)
    assert open_graph(place, STAMP, writable=False) is None
    make_graph(place, STAMP).close()
    assert open_graph(place, stamp("other"), writable=False) is None
    found = open_graph(place, STAMP, writable=False)
    assert found is not None
    found.close()
