"""Questions on small graphs of every bad shape: cycles, dangling ends, equal ids, pages, names."""

import json
import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from prov_run import Prov
from workbench import plant, seal, seal_text

from provstore.errors import AmbiguousError, NotFoundError, UsageError
from provstore.graph.index import Unit
from provstore.graph.memory import MemoryIndex
from provstore.graph.nodes import Node
from provstore.graph.questions import walking
from provstore.graph.questions.stating import Condition, condition
from provstore.graph.relations import Relation, RelationKind
from provstore.ids import digests
from provstore.records.verdict import GateOutcome, Judgement, Verdict
from provstore.reports.asked import UseRow
from provstore.store.memory import MemoryStore
from provstore.verbs import closures, querying, surveying, unpinned
from provstore.verbs.asking import Asked, node_of
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.importing import import_documents
from provstore.verbs.keeping import keep

HEX = "ab" * 32


def graph(*edges: tuple[str, RelationKind, str]) -> MemoryIndex:
    """Return an index of edges between nodes that are written ``kind:key``."""
    index = MemoryIndex()
    relations = [Relation(node(a), kind, node(b), HEX, f"line {n}") for n, (a, kind, b) in enumerate(edges)]
    index.add([Unit(HEX, relations)])
    return index


def node(text: str) -> Node:
    kind, _, key = text.partition(":")
    return Node(kind, key)  # type: ignore[arg-type]


def number(index: MemoryIndex, text: str) -> int:
    found = index.number(node(text))
    assert found is not None
    return found


def asked_of(index: MemoryIndex) -> Asked:
    return Asked(MemoryStore(), index)


CYCLE: tuple[tuple[str, RelationKind, str], ...] = (
    ("note:a", "supersedes", "note:b"),
    ("note:b", "supersedes", "note:c"),
    ("note:c", "supersedes", "note:a"),
    ("note:plan", "cites", "note:a"),
)


def test_a_cycle_of_supersession_ends_every_question() -> None:
    index = graph(*CYCLE)
    found = [str(use.node) for use in walking.uses(index, number(index, "note:a"))]
    assert found == ["note:c", "note:plan", "note:b"]
    assert walking.path(index, number(index, "note:a"), number(index, "note:a")) == []
    there = walking.path(index, number(index, "note:a"), number(index, "note:c"))
    assert there is not None
    assert [str(step.target) for step in there] == ["note:b", "note:c"]
    rows = querying.stale(asked_of(index)).rows
    assert {row.on for row in rows} == {"note:a", "note:b", "note:c"}
    assert {row.node for row in rows if row.on == "note:a"} == {"note:a", "note:plan"}


def test_nothing_connects_what_is_apart() -> None:
    index = graph(("note:a", "cites", "note:b"), ("note:c", "cites", "note:d"))
    report = querying.why(asked_of(index), "note:a", "note:d")
    assert (report.connected, report.direction, report.steps) == (False, None, ())


def test_a_way_along_the_relations_wins_over_a_shorter_one_against_them() -> None:
    index = graph(
        ("note:a", "cites", "note:m"),
        ("note:m", "cites", "note:n"),
        ("note:n", "cites", "note:b"),
        ("note:x", "cites", "note:a"),
        ("note:x", "cites", "note:b"),
    )
    forward = querying.why(asked_of(index), "note:a", "note:b")
    assert (forward.direction, len(forward.steps)) == ("forward", 3)
    backward = querying.why(asked_of(index), "note:b", "note:a")
    assert (backward.direction, len(backward.steps)) == ("backward", 3)
    assert backward.steps == forward.steps[::-1]
    assert querying.why(asked_of(index), "note:m", "note:x").direction == "backward"


def test_shortest_ways_are_as_short_as_those_of_a_plain_search() -> None:
    chance = random.Random(7)
    for _ in range(60):
        names = [f"note:{n}" for n in range(12)]
        edges = {(chance.choice(names), chance.choice(names)) for _ in range(chance.randrange(4, 24))}
        index = graph(*((a, "cites", b) for a, b in edges if a != b), ("note:0", "cites", "note:1"))
        links = {(a, b) for a, b in edges if a != b} | {("note:0", "note:1")}
        known = [text for text in names if index.number(node(text)) is not None]
        a, b = chance.choice(known), chance.choice(known)
        for both in (False, True):
            found = walking.path(index, number(index, a), number(index, b), both=both)
            assert (None if found is None else len(found)) == plain(links, a, b, both=both)
            here = a
            for step in found or ():
                assert here in (str(step.source), str(step.target))
                here = str(step.target) if here == str(step.source) else str(step.source)
            assert found is None or here == b


def plain(links: set[tuple[str, str]], a: str, b: str, *, both: bool) -> int | None:
    level, seen, length = {a}, {a}, 0
    while level:
        if b in level:
            return length
        level = {y for x, y in links if x in level} | ({x for x, y in links if y in level} if both else set())
        level -= seen
        seen |= level
        length += 1
    return None


def test_a_dangling_citation_is_shown_as_what_it_is() -> None:
    index = graph(("record:r", "cites", "path:lab:gone.json"))
    report = querying.uses(asked_of(index), "path:lab:gone.json")
    assert [row.node for row in report.rows] == ["record:r"]
    assert list(index.out(number(index, "path:lab:gone.json"))) == []


def test_an_id_in_two_families_must_be_said_in_full() -> None:
    index = graph(
        ("measurement:f/run", "belongs-to", "family:f"),
        ("measurement:g/run", "belongs-to", "family:g"),
        ("measurement:g/only", "belongs-to", "family:g"),
    )
    with pytest.raises(AmbiguousError) as caught:
        node_of(asked_of(index), "measurement:run")
    assert set(caught.value.matches) == {"measurement:f/run", "measurement:g/run"}
    assert node_of(asked_of(index), "measurement:only") == node("measurement:g/only")
    assert node_of(asked_of(index), "measurement:f/run") == node("measurement:f/run")


def test_ids_that_collide_when_case_is_folded_stay_apart() -> None:
    index = graph(("record:Run-1", "cites", "url:a"), ("record:run-1", "cites", "url:b"))
    assert node_of(asked_of(index), "record:Run-1") == node("record:Run-1")
    assert node_of(asked_of(index), "run-1") == node("record:run-1")
    with pytest.raises(NotFoundError):
        node_of(asked_of(index), "record:RUN-1")


def test_a_name_of_two_kinds_is_ambiguous() -> None:
    index = graph(("record:x", "cites", "family:x"))
    with pytest.raises(AmbiguousError):
        node_of(asked_of(index), "x")


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_together_are_the_whole_answer(limit: int) -> None:
    index = graph(*((f"note:{n % 7}", "cites", f"record:{n}") for n in range(20)), *_into("record:hub", 9))
    whole = querying.uses(asked_of(index), "record:hub")
    assert whole.kinds == {"note": 9}
    rows: list[UseRow] = []
    after = None
    while True:
        page = querying.uses(asked_of(index), "record:hub", limit=limit, after=after)
        rows += page.rows
        after = page.next
        if after is None:
            break
        assert len(page.rows) == limit
        assert page.kinds is None
    assert tuple(rows) == whole.rows
    assert [row.node for row in rows] == sorted(row.node for row in rows)


def _into(target: str, count: int) -> Iterator[tuple[str, RelationKind, str]]:
    for n in range(count):
        yield f"note:into-{n}", "cites", target


def test_a_page_behind_a_row_that_is_not_there_is_refused() -> None:
    index = graph(*_into("record:hub", 3))
    with pytest.raises(UsageError, match="no such row"):
        querying.uses(asked_of(index), "record:hub", after="note:other")
    with pytest.raises(UsageError, match="at least one row"):
        querying.uses(asked_of(index), "record:hub", limit=0)


def test_uses_of_one_kind_alone() -> None:
    index = graph(("record:r", "seals", "object:o"), ("note:n", "cites", "record:r"))
    rows = querying.uses(asked_of(index), "object:o", kind="note").rows
    assert [(row.node, row.distance) for row in rows] == [("note:n", 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cards=2", Condition("cards", "=", 2)),
        ("kv = bf16", Condition("kv", "=", "bf16")),
        ("a!=b=c", Condition("a", "!=", "b=c")),
        ("rate>=1e3", Condition("rate", ">=", "1e3")),
    ],
)
def test_conditions_are_read(text: str, expected: Condition) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize("text", ["", "cards", "=2", "cards=", "cards>many", "cards<true"])
def test_malformed_conditions_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        condition(text)


def family(name: str, value: str, *, state: str = "lab-measured") -> str:
    return json.dumps(
        {
            "format": "neural-download-model-family-v1",
            "id": name,
            "run_measurements": [
                {
                    "id": "run-1",
                    "state": state,
                    "cards": 4,
                    "metrics": {"decode_tok_s": [float(value)]},
                    "evidence": ["notes/a.json"],
                }
            ],
        }
    )


def note(id: str, kind: str, *targets: str) -> str:
    return json.dumps(
        {
            "format": "provstore/note/v1",
            "id": id,
            "date": "2026-08-01",
            "author": "a",
            "kind": kind,
            "target": list(targets),
            "reason": "the clock was wrong",
        }
    )


def imported(store: MemoryStore, place: Path, files: Mapping[str | bytes, str | bytes | None]) -> None:
    plant(place / "lab", files)
    import_documents(store, [place / "lab"], ImportOptions(root=os.fspath(place / "lab")))


def test_a_document_that_was_imported_again_no_longer_states_what_it_did(tmp_path: Path) -> None:
    store = MemoryStore()
    imported(store, tmp_path, {"f.json": family("f", "10.5")})
    imported(store, tmp_path, {"f.json": family("f", "11.5")})
    with querying.asking(store) as asked:
        rows = surveying.select(asked, ["metric=decode_tok_s"]).rows
        assert [row.value for row in rows] == ["11.5"]
        both = [statements for _, statements in surveying.stated(asked, superseded=True)]
        assert len(both) == 2
        superseded = [row for row in querying.stale(asked).rows if row.why == "superseded"]
        assert superseded[0].reason == "imported again, changed"
        assert superseded[0].on.startswith("packet:")


def test_what_rests_on_a_withdrawn_note_is_found_at_any_distance(tmp_path: Path) -> None:
    store = MemoryStore()
    withdrawal = note("n", "withdraws", "measurement:f/run-1")
    imported(store, tmp_path, {"f.json": family("f", "10.5"), "n.json": withdrawal})
    with querying.asking(store) as asked:
        (row,) = (row for row in querying.stale(asked).rows if row.distance == 0)
        assert (row.node, row.why, row.reason) == ("measurement:f/run-1", "withdrawn", "the clock was wrong")
        assert row.by is not None
        assert row.by.source == "note:n"


def test_a_claim_falls_with_its_packet(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "log").write_text("x")
    claim = '[[claim]]\nname = "rate"\nvalue = "1"\nunit = "tok/s"\nmetric = "m"\nconvention = "c"\n'
    packet = seal_text(
        store, tmp_path, f'[[entry]]\nrole = "log"\nkind = "evidence"\npath = "{tmp_path}/log"\n' + claim
    )
    verdict = Verdict(
        packet=packet.hex(),
        policy=digests(b"p").blake3.hex(),
        policy_name="strict",
        policy_version="1",
        policy_date="2026-01-01",
        tool="t",
        outcome="FAIL",
        gates=(
            GateOutcome(
                gate="tokens",
                kind="exact",
                outcome="FAIL",
                required=True,
                judgements=(Judgement(outcome="FAIL", code="token-mismatch", message="differs"),),
            ),
        ),
    )
    keep(store, verdict, b"p")
    with querying.asking(store) as asked:
        rows = querying.stale(asked).rows
        assert {(row.node, row.why) for row in rows} == {
            (f"packet:{packet.hex()}", "failed"),
            (f"claim:{packet.hex()}/rate", "failed"),
        }
        assert rows[0].gates == ("tokens: token-mismatch",)
        assert [row.node for row in querying.stale(asked, kind="claim").rows] == [
            f"claim:{packet.hex()}/rate"
        ]


def test_names_are_found_in_every_form(tmp_path: Path) -> None:
    store = MemoryStore()
    plant(tmp_path / "run", {"logs/a.txt": "text", "b.txt": "more"})
    packet = seal(store, tmp_path / "run", name="runs/one")
    found = digests(b"text")
    expected = Node("object", found.sha256.hex())
    with querying.asking(store) as asked:
        for name in (
            f"sha256:{found.sha256.hex()}",
            f"blake3:{found.blake3.hex()}",
            found.blake3.hex(),
            found.blake3.hex()[:12],
            found.sha256.hex()[:12],
            f"object:{found.sha256.hex()[:12]}",
            "runs/one/logs/a.txt",
            f"{packet.hex()[:10]}/logs/a.txt",
            os.fspath(tmp_path / "run/logs/a.txt"),
        ):
            assert node_of(asked, name) == expected, name
        assert node_of(asked, "runs/one") == node_of(asked, packet.hex()) == Node("packet", packet.hex())
        assert node_of(asked, "runs/one/logs").kind == "tree"
        for name in ("runs/one/none", "runs/two", "sha256:" + "0" * 64, "record:none", "", "x:y"):
            with pytest.raises(NotFoundError):
                node_of(asked, name)


def test_a_member_of_a_directory_is_shown_with_its_name(tmp_path: Path) -> None:
    store = MemoryStore()
    plant(tmp_path / "run", {"logs/a.txt": "text", "logs/copy.txt": "text"})
    seal(store, tmp_path / "run", name="run")
    with querying.asking(store) as asked:
        steps = querying.why(asked, "run", "run/logs/a.txt").steps
        assert [step.location for step in steps] == ["", "logs", "a.txt, copy.txt"]
        assert [step.relation for step in steps] == ["holds", "contains", "contains"]


LOADED = '{"mapped_libraries": {"a.so": ["/opt/a.so"], "b.so": ["/opt/b.so", "/old/b.so"]}}'


def loaded_packet(tmp_path: Path, pins: str) -> tuple[MemoryStore, bytes]:
    store = MemoryStore()
    plant(tmp_path, {"run/runtime-verification.json": LOADED, "lock.json": pins})
    packet = seal_text(
        store,
        tmp_path,
        f'[[entry]]\nrole = "run"\nkind = "evidence"\npath = "{tmp_path}/run"\n'
        f'[[entry]]\nrole = "lock"\nkind = "runtime-lock"\npath = "{tmp_path}/lock.json"\n',
    )
    return store, packet


def test_what_was_loaded_and_is_not_pinned(tmp_path: Path) -> None:
    pin = f'{{"libs": [{{"path": "a.so", "sha256": "{HEX}"}}]}}'
    store, packet = loaded_packet(tmp_path, pin)
    report = unpinned.unpinned(store, packet)
    assert (report.outcome, report.loaded) == ("FAIL", 3)
    assert [row.path for row in report.rows] == ["/old/b.so", "/opt/b.so"]
    assert report.rows[0].location == "/mapped_libraries/b.so"


def test_all_that_was_loaded_is_pinned(tmp_path: Path) -> None:
    pin = f'{{"libs": [{{"path": "a.so", "sha256": "{HEX}"}}, {{"name": "b.so", "sha256": "{HEX}"}}]}}'
    store, packet = loaded_packet(tmp_path, pin)
    report = unpinned.unpinned(store, packet)
    assert (report.outcome, report.rows) == ("PASS", ())


def test_a_closure_counts_what_is_here_and_what_is_not(tmp_path: Path) -> None:
    store = MemoryStore()
    plant(tmp_path, {"log": "x" * 10})
    packet = seal_text(
        store,
        tmp_path,
        f'[[entry]]\nrole = "log"\nkind = "benchmark-log"\npath = "{tmp_path}/log"\n'
        f'[[entry]]\nrole = "lib"\nkind = "native"\nkeep = "declared"\nsha256 = "{HEX}"\n',
    )
    report = closures.closure(store, packet)
    roles = {role.role: role for role in report.roles}
    assert (roles["log"].held, roles["log"].missing, roles["log"].held_bytes) == (1, 0, 10)
    assert (roles["lib"].held, roles["lib"].missing, roles["lib"].unsized) == (0, 1, 1)
    levels = {level.level: level for level in report.levels}
    assert levels["audit"].absent == ("oracle",)
    assert levels["audit"].outcome == "INCOMPLETE"
    assert levels["artifact-exact"].missing == ("lib",)
    assert [role.role for role in closures.closure(store, packet, missing=True).roles] == ["lib"]


def test_the_command_answers_as_text_and_as_json(prov: Prov, tmp_path: Path) -> None:
    plant(tmp_path / "run", {"logs/a.txt": "text"})
    assert prov("seal", tmp_path / "run").code == 0
    text = prov("query", "uses", "run/logs/a.txt")
    assert text.code == 0
    assert b"contains" in text.out
    document = json.loads(prov("query", "uses", "run/logs/a.txt", "--json").out)
    assert [row["kind"] for row in document["rows"]] == ["tree", "tree", "packet"]
    assert document["next"] is None
    assert prov("query", "unpinned", "run").code == 3
    assert prov("query", "why", "run", "run/logs/a.txt").code == 0
    page = json.loads(prov("query", "uses", "run/logs/a.txt", "--limit", "1", "--json").out)
    more = prov("query", "uses", "run/logs/a.txt", "--after", page["next"], "--json")
    assert len(json.loads(more.out)["rows"]) == 2


def test_a_pack_is_asked_like_a_store(prov: Prov, tmp_path: Path) -> None:
    plant(tmp_path / "run", {"logs/a.txt": "text"})
    assert prov("seal", tmp_path / "run").code == 0
    inside = json.loads(prov("query", "uses", "run/logs/a.txt", "--json").out)
    assert prov("pack", "run", "-o", "run.pack").code == 0
    packed = json.loads(prov("query", "uses", "run/logs/a.txt", "--json", "--store", "run.pack").out)
    assert packed == inside
    assert prov("query", "stale", "--store", "run.pack").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("uses",),
        ("uses", "a", "b"),
        ("stale", "x"),
        ("why", "a"),
        ("closure", "run", "--where", "a=1"),
        ("uses", "run", "--missing"),
        ("select", "--where", "x"),
        ("closure", "run", "--after", "x"),
    ],
)
def test_wrong_questions_are_refused(arguments: tuple[str, ...], prov: Prov, tmp_path: Path) -> None:
    plant(tmp_path / "run", {"a": "text"})
    assert prov("seal", tmp_path / "run").code == 0
    assert prov("query", *arguments).code == 2
