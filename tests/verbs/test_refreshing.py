"""The graph index of a store: no more work than what is new, and made anew when in doubt."""

import multiprocessing
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from workbench import NOBODY, plant, seal, seal_text

from provstore.errors import StoreDamagedError, StoreFullError, UsageError
from provstore.graph.index import Index, Unit
from provstore.graph.nodes import Node
from provstore.graph.relations import Relation
from provstore.graph.statements import Statements, Understood
from provstore.ids import RawId, digests
from provstore.records.verdict import Verdict
from provstore.store import graph_index
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.store.opening import open_pack, open_store
from provstore.verbs import refreshing
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import gc
from provstore.verbs.keeping import keep
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack
from provstore.verbs.relating import Work
from provstore.verbs.repairing import repair

OPENED: list[Any] = []


def refresh(*given: Any, **named: Any) -> refreshing.Refreshed:
    """Refresh an index that is closed after the test."""
    found = refreshing.refresh(*given, **named)
    OPENED.append(found.graph)
    return found


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    for opened in OPENED:
        opened.close()
    OPENED.clear()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    with LmdbStore.create(os.fspath(tmp_path / "s")) as made:
        yield made


def known(index: Index, kind: Any) -> set[str]:
    return {node.key for _, node in index.nodes(kind)}


def edges(index: Index, node: Node, *, back: bool = False) -> set[tuple[str, str]]:
    number = index.number(node)
    assert number is not None
    found = index.into(number) if back else index.out(number)
    return {(edge.kind, str(index.node(edge.node))) for edge in found}


def object_node(data: bytes) -> Node:
    return Node("object", digests(data).sha256.hex())


def run_of(place: Path, name: str, shared: str = "same") -> Path:
    return plant(place / name, {"logs/a.txt": name, "lib/shared.txt": shared})


def test_nothing_new_reads_nothing_but_the_moment(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "a"))
    first = refresh(store)
    assert first.work.packets == 1
    assert first.work.rebuilt
    first.graph.close()

    class Watched:
        """Passes on nothing but the moment."""

        def __init__(self) -> None:
            self.asked: list[str] = []

        def __getattr__(self, name: str) -> Any:
            self.asked.append(name)
            assert name in ("moment", "graph_home"), name
            return getattr(store, name)

    watched: Any = Watched()
    again = refresh(watched)
    assert again.work == Work()
    assert not again.work.anything()
    assert sorted(watched.asked) == ["graph_home", "moment"]
    assert again.graph.sizes() == (6, 5)  # packet, root, two directories, two files
    again.graph.close()


def test_only_what_is_new_is_read(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "a"))
    refresh(store).graph.close()
    second = seal(store, run_of(tmp_path, "b"))
    found = refresh(store)
    # Its root and logs/; lib/ is the same tree as before.
    assert found.work == Work(packets=1, trees=2)
    assert edges(found.graph, object_node(b"same"), back=True) == {
        ("contains", f"tree:{next(iter(trees_with(found.graph, b'same')))}")
    }
    assert second.hex() in known(found.graph, "packet")
    found.graph.close()


def trees_with(index: Index, data: bytes) -> set[str]:
    return {text.partition(":")[2] for _, text in edges(index, object_node(data), back=True)}


def test_on_disk_and_in_memory_are_the_same(store: LmdbStore, tmp_path: Path) -> None:
    memory = MemoryStore()
    for name in "ab":
        run_of(tmp_path, name)
        for one in (store, memory):
            seal(one, tmp_path / name)
    on_disk, in_memory = refresh(store), refresh(memory)
    assert on_disk.work.in_memory == ""
    assert in_memory.work.in_memory
    assert on_disk.graph.sizes() == in_memory.graph.sizes()
    for kind in ("packet", "tree", "object"):
        assert known(on_disk.graph, kind) == known(in_memory.graph, kind)
        for key in known(on_disk.graph, kind):
            node = Node(kind, key)
            assert edges(on_disk.graph, node) == edges(in_memory.graph, node)
    on_disk.graph.close()


def test_packets_that_refs_named_stay_known_and_swept_ones_go(store: LmdbStore, tmp_path: Path) -> None:
    run_of(tmp_path, "run")
    first = seal(store, tmp_path / "run", name="run")
    (tmp_path / "run/logs/a.txt").write_text("changed")
    second = seal(store, tmp_path / "run", name="run")
    found = refresh(store)
    assert known(found.graph, "packet") == {first.hex(), second.hex()}
    found.graph.close()
    gc(store, delete=True, grace_s=0)
    swept = refresh(store)
    assert swept.work.rebuilt == "something that it knows is no longer in the store"
    assert known(swept.graph, "packet") == {second.hex()}
    assert swept.graph.number(object_node(b"run")) is None
    swept.graph.close()
    with store.stage() as stage:
        stage.set_ref("other", second)
        stage.commit()
    again = refresh(store)
    assert again.work == Work()  # a ref moved; there is nothing to read
    again.graph.close()


def test_a_sweep_of_other_things_keeps_the_index(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "run"))
    refresh(store).graph.close()
    with store.stage() as stage:
        stage.add_object(digests(b"nobody's"), b"nobody's")
        stage.commit()
    assert gc(store, delete=True, grace_s=0).objects == 1
    found = refresh(store)
    assert found.work == Work()
    found.graph.close()


@pytest.mark.parametrize("harm", ["gone", "cut", "other", "empty", "flipped"])
def test_a_damaged_index_is_made_anew(harm: str, store: LmdbStore, tmp_path: Path) -> None:
    packet = seal(store, run_of(tmp_path, "run"))
    refresh(store).graph.close()
    data = tmp_path / "s/graph/data.mdb"
    whole = data.read_bytes()
    if harm == "gone":
        shutil.rmtree(tmp_path / "s/graph")
    elif harm == "cut":
        data.write_bytes(whole[: len(whole) // 2])
    elif harm == "other":
        data.write_bytes(b"no index at all")
    elif harm == "empty":
        data.write_bytes(b"")
    else:
        data.write_bytes(whole[:16] + bytes((whole[16] ^ 255,)) + whole[17:])
    found = refresh(store)
    assert found.work.rebuilt
    assert found.work.packets == 1
    assert known(found.graph, "packet") == {packet.hex()}
    found.graph.close()


def test_other_readers_make_it_anew(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "run"))
    refresh(store, readers="family 1")
    assert refresh(store, readers="family 1").work == Work()
    assert refresh(store, readers="family 2").work.rebuilt


def test_the_index_of_another_store_is_not_used(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "run"))
    refresh(store).graph.close()
    with LmdbStore.create(os.fspath(tmp_path / "t")) as other:
        seal(other, run_of(tmp_path, "x"))
        shutil.copytree(tmp_path / "s/graph", tmp_path / "t/graph")
        found = refresh(other)
        assert found.work.rebuilt == "it is of another store"
        assert found.graph.number(object_node(b"x")) is not None
        assert found.graph.number(object_node(b"run")) is None
        found.graph.close()


def test_a_store_that_was_put_back_to_an_earlier_time(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "a"))
    earlier = (tmp_path / "s/data.mdb").read_bytes()
    seal(store, run_of(tmp_path, "b"))
    refresh(store).graph.close()
    store.close()
    (tmp_path / "s/data.mdb").write_bytes(earlier)
    with LmdbStore.open(os.fspath(tmp_path / "s")) as back:
        found = refresh(back)
        assert found.work.rebuilt == "the store is older than it"
        assert found.graph.number(object_node(b"b")) is None
        found.graph.close()


@pytest.mark.parametrize("later", [1, 2, 3, 70])
def test_a_store_that_was_put_back_and_went_on(later: int, store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "a"))
    refresh(store).graph.close()
    earlier = (tmp_path / "s/data.mdb").read_bytes()
    seal(store, run_of(tmp_path, "lost"))
    refresh(store).graph.close()
    store.close()
    (tmp_path / "s/data.mdb").write_bytes(earlier)
    with LmdbStore.open(os.fspath(tmp_path / "s")) as back:
        for number in range(later):
            with back.stage() as stage:
                stage.add_object(digests(b"%d" % number), b"%d" % number)
                stage.commit()
        found = refresh(back)
        assert found.work.rebuilt
        assert found.graph.number(object_node(b"a")) is not None
        assert found.graph.number(object_node(b"lost")) is None
        found.graph.close()


def test_many_commits_later_the_index_is_still_brought_up_to_date(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "a"))
    refresh(store).graph.close()
    for number in range(70):
        with store.stage() as stage:
            stage.add_object(digests(b"%d" % number), b"%d" % number)
            stage.commit()
    found = refresh(store)
    assert not found.work.rebuilt
    assert found.graph.number(object_node(b"a")) is not None
    found.graph.close()


def test_a_store_that_cannot_be_written_is_answered_from_memory(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "run"))
    store.close()
    expected: Any = multiprocessing.get_context("fork").Queue()

    def look() -> None:
        if os.getuid() == 0:
            os.chmod(tmp_path, 0o755)
            for parent in tmp_path.parents:
                if parent.stat().st_uid == os.getuid() and parent != Path("/"):
                    os.chmod(parent, parent.stat().st_mode | 0o055)
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        with open_store(tmp_path / "s", writable=False) as reader:  # type: ignore[attr-defined]
            found = refresh(reader)
            expected.put((found.work.in_memory, found.graph.sizes(), found.work.packets))

    os.chmod(tmp_path / "s", 0o555)
    child = multiprocessing.get_context("fork").Process(target=look)
    child.start()
    child.join(60)
    os.chmod(tmp_path / "s", 0o755)
    assert child.exitcode == 0
    why, sizes, packets = expected.get(timeout=10)
    assert "cannot be written" in why
    assert sizes == (6, 5)
    assert packets == 1
    assert not (tmp_path / "s/graph").exists()


def test_an_index_that_is_up_to_date_is_read_where_nothing_can_be_written(
    store: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(store, run_of(tmp_path, "run"))
    refresh(store).graph.close()
    monkeypatch.setattr(graph_index, "writable_place", lambda store: "nobody may")
    assert refresh(store).work == Work()
    seal(store, run_of(tmp_path, "more"))
    found = refresh(store)
    assert found.work.in_memory == "nobody may"
    assert found.work.packets == 2


def test_a_pack_is_answered_from_memory(store: LmdbStore, tmp_path: Path) -> None:
    packet = seal(store, run_of(tmp_path, "run"), name="run")
    pack([("run", Located(store, packet, False))], os.fspath(tmp_path / "p.pack"))
    with open_pack(tmp_path / "p.pack") as reader:
        found = refresh(reader)
        assert found.work.in_memory
        assert known(found.graph, "packet") == {packet.hex()}
        assert found.graph.sizes() == (6, 5)


def test_a_verdict_is_taken_in_when_it_is_kept(store: LmdbStore, tmp_path: Path) -> None:
    packet = seal(store, run_of(tmp_path, "run"))
    refresh(store).graph.close()
    verdict = keep(store, verdict_of(packet), b"policy")
    found = refresh(store)
    assert found.work == Work(verdicts=1)
    assert edges(found.graph, Node("packet", packet.hex()), back=True) == {
        ("judges", f"verdict:{verdict.hex()}")
    }
    number = found.graph.number(Node("verdict", verdict.hex()))
    assert number is not None
    reasons = [found.graph.statement(edge.statement).reason for edge in found.graph.out(number)]
    assert sorted(reasons) == ["", "FAIL"]
    found.graph.close()


def verdict_of(packet: RawId) -> Verdict:
    return Verdict(
        packet=packet.hex(),
        policy=digests(b"policy").blake3.hex(),
        policy_name="p",
        policy_version="1",
        policy_date="2026-01-01",
        tool="t",
        outcome="FAIL",
        gates=(),
    )


LOCK = '{{"native": [{{"path": "a.so", "sha256": "{0}"}}]}}'


def test_a_lock_an_identity_and_a_manifest_name_objects(store: LmdbStore, tmp_path: Path) -> None:
    pinned = digests(b"library").sha256.hex()
    script = digests(b"script").sha256.hex()
    run = plant(tmp_path / "run", {"identity.txt": f"x=1\n{script}  /opt/run.sh\n", "log.txt": "fine\n"})
    lock = tmp_path / "lock.json"
    lock.write_text(LOCK.format(pinned))
    sums = "".join(f"{digests(path.read_bytes()).sha256.hex()}  {path.name}\n" for path in run.iterdir())
    (tmp_path / "run.sha256").write_text(sums)
    seal_text(
        store,
        tmp_path,
        f"""
[[entry]]
role = "run"
kind = "evidence"
path = "{run}"
manifest = "{tmp_path}/run.sha256"

[[entry]]
role = "lock"
kind = "runtime-lock"
path = "{lock}"
""",
    )
    found = refresh(store)
    lock_node = object_node(lock.read_bytes())
    assert edges(found.graph, lock_node) == {("pins", f"object:{pinned}")}
    assert edges(found.graph, object_node((run / "identity.txt").read_bytes())) == {
        ("uses", f"object:{script}")
    }
    manifest = object_node(sums.encode())
    assert {text for kind, text in edges(found.graph, manifest)} == {
        str(object_node(path.read_bytes())) for path in run.iterdir()
    }
    assert ("sealed-by", str(manifest)) in {
        pair for tree in known(found.graph, "tree") for pair in edges(found.graph, Node("tree", tree))
    }
    found.graph.close()


def test_documents_go_through_the_reader_that_is_given(store: LmdbStore, tmp_path: Path) -> None:
    (tmp_path / "doc.json").write_text("{}")
    packet = seal_text(
        store, tmp_path, f'[[entry]]\nrole = "a/doc"\nkind = "document"\npath = "{tmp_path}/doc.json"\n'
    )
    given: list[tuple[bytes, str, str, str]] = []

    def understand(*document: Any) -> Understood:
        given.append(document)
        about = Node("family", "f")
        return Understood(
            format="f",
            subject=about,
            relations=(),
            statements=Statements(subject="f", subject_kind="family"),
        )

    found = refresh(store, understand)
    id = digests(b"{}").blake3.hex()
    assert given == [(b"{}", "run", "a/doc", id)]
    assert found.graph.stated_by(id) == Statements(subject="f", subject_kind="family")
    assert edges(found.graph, Node("path", "run:a/doc")) == {("is-file", str(object_node(b"{}")))}
    assert packet.hex() in known(found.graph, "packet")
    found.graph.close()


def test_what_is_damaged_is_said_and_the_rest_is_taken_in(tmp_path: Path) -> None:
    store = MemoryStore()
    first = seal(store, run_of(tmp_path, "a"))
    second = seal(store, run_of(tmp_path, "b"))
    store._content.records[first] = b"{}"
    found = refresh(store)
    assert [id for id, _ in found.work.unread] == [first.hex()]
    assert known(found.graph, "packet") == {second.hex()}


def test_a_walk_never_opens_the_index_and_its_directory_cannot_be_sealed(
    store: LmdbStore, tmp_path: Path
) -> None:
    seal(store, run_of(tmp_path, "run"))
    found = refresh(store)
    assert len(store.directory_ids()) == 2
    with pytest.raises(UsageError, match="store itself"):
        seal(store, tmp_path / "s/graph")
    packet = seal(store, tmp_path, name="all")
    again = refresh(store)
    assert not [key for key in known(again.graph, "object") if key == _sha(tmp_path / "s/graph/data.mdb")]
    assert packet.hex() in known(again.graph, "packet")
    assert found.graph.sizes()[0] > 0  # still readable
    found.graph.close()
    again.graph.close()


def _sha(path: Path) -> str:
    return digests(path.read_bytes()).sha256.hex()


def _reader(path: str, out: Any, ready: Any, go: Any) -> None:
    with open_store(path, writable=False) as store:  # type: ignore[attr-defined]
        first = refreshing.refresh(store)
        ready.set()
        go.wait(60)
        sizes = first.graph.sizes()
        second = refreshing.refresh(store)
        out.put((sizes[0] > 0, second.graph.sizes()))
        first.graph.close()
        second.graph.close()


def test_it_is_read_while_another_process_writes_it(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "a"))
    refresh(store).graph.close()
    spawn = multiprocessing.get_context("spawn")
    out, ready, go = spawn.Queue(), spawn.Event(), spawn.Event()
    child = spawn.Process(target=_reader, args=(os.fspath(tmp_path / "s"), out, ready, go))
    child.start()
    assert ready.wait(60)
    seal(store, run_of(tmp_path, "b"))
    mine = refresh(store)
    assert mine.work.packets == 1
    go.set()
    child.join(60)
    assert out.get(timeout=10) == (True, mine.graph.sizes())
    mine.graph.close()


def test_a_fork_in_the_middle_keeps_both_sides_whole(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "a"))
    found = refresh(store)
    sizes = found.graph.sizes()
    child = os.fork()
    if child == 0:
        ok = found.graph.sizes() == sizes
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert found.graph.sizes() == sizes
    found.graph.close()


def test_an_index_that_is_a_byte_off_is_found_by_its_check(store: LmdbStore, tmp_path: Path) -> None:
    seal(store, run_of(tmp_path, "a"))
    refresh(store).graph.close()
    path = tmp_path / "s/graph/data.mdb"
    data = path.read_bytes()
    key = bytes.fromhex(object_node(b"same").key)
    at = data.rindex(key)
    path.write_bytes(data[:at] + b"0" * 8 + data[at + 8 :])
    index = graph_index.open_graph(os.fspath(tmp_path / "s"), None, writable=False)
    assert index is not None
    with pytest.raises(StoreDamagedError, match=r"rows|as it was written|found by its key"):
        index.check()
    index.close()
    found = refresh(store)  # a small index is held against its sums whenever it is opened
    assert found.work.rebuilt
    assert found.graph.number(object_node(b"same")) is not None
    found.graph.close()


@pytest.mark.parametrize("table", ["nodes", "statements", "documents"])
def test_a_changed_row_of_a_large_index_is_refused_when_it_is_read(
    table: str, store: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_index, "_SMALL_ROWS", 0)
    source = {"nodes": b"a/logs/a.txt", "statements": b"a place in it", "documents": b"101.94172124017027"}
    where = os.fspath(tmp_path / "s")
    made = graph_index.make_graph(where, b"stamp")
    speaks = Node("measurement", "x/" + source["nodes"].decode())
    relation = Relation(speaks, "cites", Node("path", "p"), "ab" * 32, source["statements"].decode())
    said = Statements(subject="x", subject_kind="family", date=source["documents"].decode())
    made.add([Unit("cd" * 32, [relation], [("ab" * 32, said)])])
    made.close()
    path = tmp_path / "s/graph/data.mdb"
    data = path.read_bytes()
    text = source[table]
    path.write_bytes(data.replace(text, text[:-1] + bytes((text[-1] ^ 1,))))
    index = graph_index.open_graph(where, b"stamp", writable=False)
    assert index is not None
    with pytest.raises(StoreDamagedError, match="as it was written"):
        [list(index.stated()), index.nodes_at((1, 2)), index.statement(1)]
    index.close()


def test_fsck_says_whether_the_index_is_whole_and_repair_removes_one_that_is_not(
    store: LmdbStore, tmp_path: Path
) -> None:
    seal(store, run_of(tmp_path, "a"))
    assert fsck(store).graph == "absent"
    refresh(store).graph.close()
    assert fsck(store).graph == "whole"
    assert fsck(store, sample=1).graph is None
    seal(store, run_of(tmp_path, "b"))
    assert repair(store).graph == "whole"  # it lags behind, and that is no damage
    path = tmp_path / "s/graph/data.mdb"
    data = path.read_bytes()
    at = data.rindex(bytes.fromhex(object_node(b"same").key))
    path.write_bytes(data[:at] + b"0" * 8 + data[at + 8 :])
    report = fsck(store)
    assert (report.graph, report.damaged) == ("damaged", ())
    assert repair(store).graph == "removed"
    found = refresh(store)
    assert found.work.rebuilt
    found.graph.close()
    assert fsck(store).graph == "whole"


def test_a_kill_between_two_commits_leaves_what_the_next_refresh_finishes(
    store: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        seal(store, run_of(tmp_path, name))
    monkeypatch.setattr("provstore.verbs.relating.BATCH", 1)
    whole = graph_index.GraphIndex.add
    left = [7]

    def add(self: graph_index.GraphIndex, units: Any, note: bytes | None = None) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        whole(self, units, note)

    monkeypatch.setattr(graph_index.GraphIndex, "add", add)
    with pytest.raises(KeyboardInterrupt):
        refresh(store)
    found = refresh(store)
    assert found.work.rebuilt == ""
    assert 0 < found.work.packets < 3
    assert found.graph.sizes() == refresh(_copy(tmp_path)).graph.sizes()
    found.graph.close()


def _copy(tmp_path: Path) -> LmdbStore:
    shutil.copytree(tmp_path / "s", tmp_path / "copy", ignore=shutil.ignore_patterns("graph", "lock.mdb"))
    OPENED.append(LmdbStore.open(os.fspath(tmp_path / "copy")))
    return OPENED[-1]  # type: ignore[no-any-return]


def test_a_full_disk_is_no_reason_not_to_answer(
    store: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(store, run_of(tmp_path, "a"))

    def full(*_: Any, **__: Any) -> graph_index.GraphIndex:
        raise StoreFullError("graph", "the disk is full")

    monkeypatch.setattr(graph_index, "make_graph", full)
    found = refresh(store)
    assert "no room" in found.work.in_memory
    assert found.graph.sizes() == (6, 5)
