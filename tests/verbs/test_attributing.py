"""Attributing: identity, environment and result of a difference, and what nobody can know."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from smallrun import POLICY, bench, dump, environment, files, log, prom, row
from workbench import plant, seal

from provstore.ids import RawId
from provstore.report.changes import diff_lines
from provstore.reports import DiffReport, FactChange
from provstore.store.memory import MemoryStore
from provstore.verbs.attributing import diff
from provstore.verbs.diffing import side
from provstore.verbs.layering import primary
from provstore.verbs.sealing import SealOptions, seal_spec

HEAD = 'format = "provstore/packet-spec/v1"\n'
CLAIM = (
    '[[claim]]\nname = "decode"\nvalue = "{0}"\nunit = "tok/s"\nmetric = "m"\n'
    'convention = "{1}"\nevidence = ["run/bench.json"]\n'
)
MINUS = "\N{MINUS SIGN}"


def put(store: MemoryStore, place: Path, name: str, planted: Mapping[str, bytes], extra: str = "") -> None:
    """Seal files as a packet with one entry for each first part of their places."""
    root = place / name
    for at, data in planted.items():
        (root / at).parent.mkdir(parents=True, exist_ok=True)
        (root / at).write_bytes(data)
    text = f'{HEAD}name = "{name}"\n'
    for role in sorted({at.partition("/")[0] for at in planted}):
        kind = "policy" if role == "policy" else "evidence"
        text += f'[[entry]]\nrole = "{role}"\nkind = "{kind}"\npath = "{role}"\n'
    (root / "spec.toml").write_text(text + extra)
    seal_spec(store, root / "spec.toml", options=SealOptions(use_cache=False))


def compared(
    place: Path,
    changes: Mapping[str, bytes | None],
    extra: tuple[str, str] = ("", ""),
    more: Mapping[str, bytes] | None = None,
) -> DiffReport:
    """Compare the small run with a copy of itself in which some files are others, or gone."""
    first = {**files(), **(more or {})}
    second = {at: data for at, data in {**first, **changes}.items() if data is not None}
    store = MemoryStore()
    put(store, place, "a", first, extra[0])
    put(store, place, "b", second, extra[1])
    with side("a", store) as x, side("b", store) as y:
        return diff(x, y)


def state(report: DiffReport) -> dict[str, str]:
    return {found.layer: found.state for found in report.layers}


def said(facts: tuple[FactChange, ...]) -> list[tuple[str, str | None, str | None]]:
    return [(fact.key, fact.from_, fact.to) for fact in facts]


def slower() -> list[dict[str, Any]]:
    return [row(0), row(1, step=0.025), row(2, step=0.04)]


IDENTITY = {"run/identity.txt": files()["run/identity.txt"].replace(b"146", b"147")}
ENVIRONMENT = {"run/environment.txt": environment({"ENGINE_FP8": "0", "NEW": "", "TCP_IFACE": None}).encode()}
RESULT = {"run/bench.json": dump(bench(slower()))}

SLOWER = f"result {MINUS}20.0 % (decode, conventional-intervals)"

CUBE = {
    (False, False, False): "nothing differs: 20 members and 5 entries are equal",
    (True, False, False): "inputs differ in 1, environment identical, result identical",
    (False, True, False): "inputs identical, environment differs in 3, result identical",
    (True, True, False): "inputs differ in 1, environment differs in 3, result identical",
    (False, False, True): f"inputs identical, environment identical, {SLOWER}",
    (True, False, True): f"inputs differ in 1, environment identical, {SLOWER}",
    (False, True, True): f"inputs identical, environment differs in 3, {SLOWER}",
    (True, True, True): f"inputs differ in 1, environment differs in 3, {SLOWER}",
}
"""The sentence of each cell: do identity, environment and result differ?"""


@pytest.mark.parametrize("cell", list(itertools.product((False, True), repeat=3)))
def test_each_cell_of_the_cube_has_its_sentence(tmp_path: Path, cell: tuple[bool, bool, bool]) -> None:
    changes: dict[str, bytes | None] = {}
    for differs, layer in zip(cell, (IDENTITY, ENVIRONMENT, RESULT), strict=True):
        changes |= layer if differs else {}
    claim = CLAIM.format("50", "conventional-intervals")
    report = compared(tmp_path, changes, (claim, claim))
    assert report.sentence == CUBE[cell]
    assert next(iter(diff_lines(report))) == CUBE[cell]
    assert report.same == (not any(cell))
    if any(cell):
        names = {layer for layer, found in state(report).items() if found == "differs"}
        assert names == {n for n, d in zip(("identity", "environment", "result"), cell, strict=True) if d}


def test_variables_differ_by_value_and_by_presence(tmp_path: Path) -> None:
    report = compared(tmp_path, ENVIRONMENT)
    assert said(report.environment) == [
        ("env.ENGINE_FP8", "1", "0"),
        ("env.TCP_IFACE", "eth1", None),
        ("env.NEW", None, ""),
    ]


def test_private_paths_count_as_equal_and_are_said(tmp_path: Path) -> None:
    other = {"run/environment.txt": environment({"HOME": "/runs/b/home"}).encode()}
    report = compared(tmp_path, other)
    assert report.sentence == "inputs identical, environment equal in every fact, result identical"
    assert said(report.folded) == [("env.HOME", "/runs/a/home", "/runs/b/home")]
    assert not report.same
    assert any("private paths" in line for line in diff_lines(report))


def test_a_path_below_a_private_one_still_counts(tmp_path: Path) -> None:
    report = compared(tmp_path, {"run/environment.txt": environment({"HOME": "/runs/b/other"}).encode()})
    assert said(report.environment) == [("env.HOME", "/runs/a/home", "/runs/b/other")]
    assert report.folded == ()


def test_the_first_different_token_of_each_prompt(tmp_path: Path) -> None:
    rows = [row(0), row(1, step=0.02), row(2, step=0.04)]
    rows[1]["token_ids"][7] = 9
    rows[1]["token_ids"][8] = 9
    rows[2]["token_ids"] = [*rows[2]["token_ids"], 5]
    report = compared(tmp_path, {"run/bench.json": dump(bench(rows))})
    found = [(t.prompt, t.index, t.from_, t.to, t.from_length, t.to_length) for t in report.tokens]
    assert found == [("prompt-1", 7, 1007, 9, 120, 120), ("prompt-2", 120, None, 5, 120, 121)]
    assert report.sentence.endswith("tokens differ in 2 prompts")
    assert any("contradicts itself (row-inconsistent" in note for note in report.notes)
    assert all(metric.rows_changed == 0 for metric in report.metrics)


def test_absent_token_lists_are_unknown_never_equal(tmp_path: Path) -> None:
    rows = [{**item, "token_ids": []} for item in (row(0), row(1), row(2))]
    one, other = ({"run/bench.json": dump(bench(rows, summary={"x": x}))} for x in (1, 2))
    report = compared(tmp_path, other, more=one)
    assert report.tokens == ()
    assert [part.reason for part in report.unknown] == ["neither side states token ids for each prompt"]
    assert said(report.result) == [("/summary/x", "1", "2")]


def test_metrics_of_each_convention_with_delta_and_percent(tmp_path: Path) -> None:
    report = compared(tmp_path, RESULT)
    found = {m.convention: m for m in report.metrics}
    assert found["conventional-intervals"].percent is not None
    assert float(found["conventional-intervals"].percent) == pytest.approx(-20.0)
    assert float(found["legacy-inclusive-events"].from_) == pytest.approx(100 / 99 * 50)
    assert float(found["conventional-intervals"].delta) == pytest.approx(-10.0)
    assert {m.rows_changed for m in report.metrics if "intervals" in m.convention} == {1}
    assert found["ttft-median"].delta == "0.0"
    assert len(found) == len(report.metrics)


def test_a_row_that_moved_without_its_median_is_no_equality(tmp_path: Path) -> None:
    rows = [row(0), row(1, step=0.02), row(2, step=0.05)]
    report = compared(tmp_path, {"run/bench.json": dump(bench(rows))})
    assert report.sentence.endswith("result ±0 % (conventional-intervals; 1 of 3 rows moved)")
    assert state(report)["result"] == "differs"


def test_a_stamp_behind_the_window_still_counts(tmp_path: Path) -> None:
    rows = [row(0), row(1, step=0.02), row(2, step=0.04)]
    rows[2]["token_id_offsets_s"][110] = 99.5
    report = compared(tmp_path, {"run/bench.json": dump(bench(rows))})
    assert [(r.field, r.rows, r.of) for r in report.rows] == [("token_id_offsets_s", 1, 3)]
    assert state(report)["result"] == "differs"


def test_rows_of_other_prompts_have_no_common_metric(tmp_path: Path) -> None:
    report = compared(tmp_path, {"run/bench.json": dump(bench([row(0), row(1), row(3)]))})
    assert report.metrics == ()
    assert [part.reason for part in report.unknown] == [
        "the rows are of other prompts, so metrics are not compared"
    ]
    assert "result unknown" in report.sentence


def test_claims_of_two_conventions_are_never_compared(tmp_path: Path) -> None:
    texts = CLAIM.format("103", "legacy-inclusive-events"), CLAIM.format("102", "conventional-intervals")
    report = compared(tmp_path, {}, texts)
    assert report.metrics == ()
    assert primary(report.metrics) is None
    assert [key for key, _, _ in said(report.result)] == ["claim.decode"]
    assert any("are not compared" in note for note in report.notes)


def test_a_claim_that_moved_alone_is_a_difference_of_the_result(tmp_path: Path) -> None:
    texts = CLAIM.format("100", "conventional-intervals"), CLAIM.format("110", "conventional-intervals")
    report = compared(tmp_path, {}, texts)
    assert report.sentence == (
        "inputs identical, environment identical, result differs in 1, "
        "claimed +10.0 % (decode, conventional-intervals)"
    )


def test_counters_by_how_much_they_grew(tmp_path: Path) -> None:
    shifted = {
        "run/before.prom": prom(100, 0, 0, 0, [0, 0, 0]).encode(),
        "run/after.prom": prom(133, 361, 3, 40, [20, 12, 5]).encode(),
    }
    report = compared(tmp_path, shifted)
    assert said(report.result) == [('delta.eng:generation_tokens_total{m="t"}', "360", "361")]


def test_a_counter_that_was_reset_has_no_growth(tmp_path: Path) -> None:
    report = compared(tmp_path, {"run/before.prom": prom(50, 0, 0, 0, [0, 0, 0]).encode()})
    assert said(report.result) == [('delta.eng:prompt_tokens_total{m="t"}', "33", "33 after a reset")]


def test_logs_are_compared_by_facts(tmp_path: Path) -> None:
    reordered = "\n".join(reversed(log().splitlines())) + "\n"
    report = compared(tmp_path, {"run/server.log": reordered.encode()})
    assert state(report)["result"] == "same"
    assert report.result == ()
    assert report.sentence.endswith("result equal in every fact")


def test_a_policy_in_the_packet_says_what_to_look_for_in_a_log(tmp_path: Path) -> None:
    changed = log().replace("graphs=146", "graphs=98", 1).replace("21:47:39", "22:00:01").encode()
    policy = {"policy": POLICY.encode()}
    plain = compared(tmp_path / "x", {"run/server.log": changed})
    assert plain.result == ()
    report = compared(tmp_path / "y", {"run/server.log": changed}, more=policy)
    assert said(report.result) == [("log.captured.graphs", "2 x 146", "146, 98")]
    assert [key for key, _, _ in said(report.folded)] == ["log.captured.at"]


def test_documents_are_compared_by_pointer(tmp_path: Path) -> None:
    other = {**json.loads(files()["docs/record"]), "graphs": "146", "exact": None}
    report = compared(
        tmp_path, {"run/extra.json": dump(other)}, more={"run/extra.json": files()["docs/record"]}
    )
    assert said(report.result) == [
        ("json/exact", "3/3", "null"),
        ("json/graphs", "146 (int)", "146 (str)"),
    ]


def test_locks_differ_in_identity_and_their_host_in_environment(tmp_path: Path) -> None:
    lock = {**json.loads(files()["runtime/lock"]), "host": {"kernel": "6.1"}}
    after = json.loads(json.dumps(lock).replace("2.12.0", "2.13.0").replace("6.1", "6.2"))
    report = compared(tmp_path, {"runtime/lock": dump(after)}, more={"runtime/lock": dump(lock)})
    assert said(report.identity) == [("json/python_packages/torch", "2.12.0", "2.13.0")]
    assert said(report.environment) == [("json/host/kernel", "6.1", "6.2")]


def test_loader_origins_are_environment(tmp_path: Path) -> None:
    loaded = {"mapped_libraries": {"libk.so": ["/opt/other/libk.so"]}}
    report = compared(tmp_path, {"run/loaded.json": dump(loaded)})
    assert state(report)["environment"] == "differs"
    assert said(report.environment)[0][1:] == ("/opt/kernels/libk.so", "/opt/other/libk.so")


@pytest.mark.parametrize(
    ("place", "layer"),
    [("run/environment.txt", "environment"), ("run/bench.json", "result"), ("runtime/lock", "identity")],
)
def test_what_one_side_lacks_is_unknown(tmp_path: Path, place: str, layer: str) -> None:
    report = compared(tmp_path, {place: None})
    assert state(report)[layer] == "unknown"
    assert [part.reason for part in report.unknown] == ["absent on the second side"]
    assert any(place in note and "unknown" in note for note in report.notes)


@pytest.mark.parametrize("data", [b"{", b'{"rows": [], "rows": []}', b"\xff"])
def test_malformed_evidence_is_unknown(tmp_path: Path, data: bytes) -> None:
    report = compared(tmp_path, {"run/bench.json": data})
    assert state(report)["result"] == "unknown"
    assert any("malformed on the second side" in part.reason for part in report.unknown)


def test_facts_of_an_inspector_are_listed_once(tmp_path: Path) -> None:
    store = MemoryStore()
    for name, value in (("a", "0"), ("b", "1")):
        place = tmp_path / name
        plant(
            place,
            {
                "env.txt": f"X={value}\nHOME=/runs/{name}/h\n",
                "bench.json": dump(bench(slower()[: 2 + int(value)])),
            },
        )
        text = f'{HEAD}name = "{name}"\n'
        text += '[[entry]]\nrole = "env"\nkind = "environment"\npath = "env.txt"\n'
        text += '[[entry]]\nrole = "bench"\nkind = "benchmark-log"\npath = "bench.json"\n'
        (place / "spec.toml").write_text(text)
        seal_spec(store, place / "spec.toml", options=SealOptions(use_cache=False))
    with side("a", store) as x, side("b", store) as y:
        report = diff(x, y)
    assert said(report.environment) == [("env.X", "0", "1")]
    assert said(report.folded) == [("env.HOME", "/runs/a/h", "/runs/b/h")]
    every = [*report.identity, *report.environment, *report.result]
    assert not any(fact.role == "bench" and fact.key.startswith("json/") for fact in every)
    assert len({(fact.role, fact.path, fact.key) for fact in every}) == len(every)


def test_a_benchmark_of_another_shape_is_compared_as_a_document_once(tmp_path: Path) -> None:
    store = MemoryStore()
    for name, value in (("a", 1), ("b", 2)):
        plant(tmp_path / name, {"bench.json": json.dumps({"runs": [{"id": "x", "n": value}]})})
        text = (
            f'{HEAD}name = "{name}"\n[[entry]]\nrole = "bench"\nkind = "benchmark-log"\npath = "bench.json"\n'
        )
        (tmp_path / name / "spec.toml").write_text(text)
        seal_spec(store, tmp_path / name / "spec.toml", options=SealOptions(use_cache=False))
    with side("a", store) as x, side("b", store) as y:
        report = diff(x, y)
    assert said(report.result) == [("json/runs/x/n", "1", "2")]
    assert report.sentence == "no inputs stated, no environment stated, result differs in 1"


def test_plain_directories_are_read_where_they_lie(tmp_path: Path) -> None:
    for name, changes in (("a", {}), ("b", ENVIRONMENT)):
        for at, data in {**files(), **changes}.items():
            (tmp_path / name / at).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / at).write_bytes(data)
    with side(str(tmp_path / "a"), None) as x, side(str(tmp_path / "b"), None) as y:
        report = diff(x, y)
    assert report.sentence == "inputs identical, environment differs in 3, result identical"


class Counting:
    """A store that counts the objects that are asked for."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.asked: list[RawId] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def chunks(self, object_id: RawId) -> Any:
        self.asked.append(object_id)
        return self.store.chunks(object_id)


def test_only_evidence_that_differs_is_read(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {f"d{n % 30}/f{n}.json": f'{{"n": {n}}}' for n in range(900)})
    store = MemoryStore()
    seal(store, tree, name="a")
    (tree / "d7/f7.json").write_text('{"n": 8}')
    (tree / "d8/code.py").write_text("x = 1\n")
    seal(store, tree, name="b")
    with side("a", store) as x, side("b", store) as y:
        counting: Any = Counting(store)
        report = diff(x._replace(reader=counting), y._replace(reader=counting))
    assert said(report.result) == [("json/n", "7", "8")]
    assert len(counting.asked) == 2


def test_two_trees_of_code_read_nothing(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {f"d{n % 30}/f{n}.py": str(n) for n in range(300)})
    store = MemoryStore()
    seal(store, tree, name="a")
    (tree / "d7/f7.py").write_text("changed")
    seal(store, tree, name="b")
    with side("a", store) as x, side("b", store) as y:
        counting: Any = Counting(store)
        report = diff(x._replace(reader=counting), y._replace(reader=counting))
    assert counting.asked == []
    assert report.sentence.startswith("1 changed")
    assert report.layers == ()
