"""Questions about a lab's real packets and documents, answered from what was sealed and imported."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from provstore.graph.nodes import Node
from provstore.reports.asked import AskedStep
from provstore.store.memory import MemoryStore
from provstore.verbs import closures, querying, surveying, unpinned
from provstore.verbs.asking import Asked, node_of
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.importing import import_documents
from provstore.verbs.sealing import seal_spec

SPECS = Path(__file__).resolve().parents[2] / "examples" / "laguna-s-2.1"
P102 = "laguna-s-2.1-int4-b70-102tps-20260726"
P125 = "laguna-s-2.1-int4-b70-125tps-20260731"
RECEIPT = "cms2ccv2d00lps201rej94pjy"
PAGE_RUN = "cmrzrd4tf001ipa013xpx4kid"


@pytest.fixture(scope="module")
def asked(corpus: Path) -> Iterator[Asked]:
    store = MemoryStore()
    lab = corpus / "b70-lab"
    for name in ("102", "125", "long-context"):
        seal_spec(store, SPECS / f"packet-{name}.toml", variables={"corpus": str(lab)})
    import_documents(store, [lab], ImportOptions(root=str(lab)))
    with querying.asking(store) as found:
        yield found


def packet(asked: Asked, name: str) -> bytes:
    found = asked.reader.ref(name)
    assert found is not None
    return found


def test_what_the_102_and_the_125_packets_share(asked: Asked) -> None:
    report = querying.shared(asked, P102, P125)
    roles = {row.here for row in report.rows if row.here == row.there}
    natives = {role for role in roles if role.startswith("runtime/native/")}
    assert natives == {
        f"runtime/native/{name}"
        for name in (
            "_moe_C.abi3.so",
            "_vllm_fa2_C.abi3.so",
            "_xpu_C.abi3.so",
            "libattn_kernels_xe_2.so",
            "libgdn_attn_kernels_xe_2.so",
            "libgrouped_gemm_xe_default.so",
            "libmhc_kernels_xe_2.so",
            "libmqa_logits_kernels_xe_2.so",
            "xpumem_allocator.abi3.so",
        )
    }
    assert {"oracle/tokens", "oracle/text", "weights/target", "weights/draft"} <= roles
    assert report.kinds["hub-revision"] == 2
    assert report.kinds["tree"] == 2
    assert report.next is None
    # The two libraries that were built anew, and the engine.
    assert not {"runtime/native/_C.abi3.so", "runtime/native/libgrouped_gemm_xe_2.so", "source/vllm"} & roles


def test_which_objects_the_manifest_of_the_draft_model_pins(asked: Asked, corpus: Path) -> None:
    manifest = corpus / "b70-lab/repro" / P102 / "manifests/model-release-files.sha256"
    lines = manifest.read_text().splitlines()
    draft = {line[:64] for line in lines if line[66:].startswith("dflash-int4/")}
    tree = node_of(asked, f"{P102}/weights/draft")
    number = asked.graph.number(tree)
    assert number is not None
    contained = {asked.graph.node(e.node).key for e in asked.graph.out(number, frozenset(("contains",)))}
    assert contained == draft
    assert len(draft) == 5
    sealed = [asked.graph.node(e.node) for e in asked.graph.out(number, frozenset(("sealed-by",)))]
    assert set(sealed) == {node_of(asked, str(manifest))}
    listed = asked.graph.number(sealed[0])
    assert listed is not None
    pinned = {asked.graph.node(edge.node).key for edge in asked.graph.out(listed)}
    assert {line[:64] for line in lines} <= pinned


def test_which_claims_use_the_legacy_convention(asked: Asked) -> None:
    rows = surveying.convention(asked, "legacy-inclusive-events").rows
    claims = {(row.node, row.value) for row in rows if row.node.startswith("claim:")}
    assert claims == {(f"claim:{packet(asked, P102).hex()}/decode-as-submitted", "102.97143559613157")}
    assert "102.97143559613157" in {row.value for row in rows if row.node.startswith("measurement:")}
    assert "94.92003934159611" in {row.value for row in rows}
    assert len({(row.stated_by, row.location) for row in rows}) == len(rows)
    conventional = surveying.convention(asked, "conventional-intervals").rows
    assert not {node for node, _ in claims} & {row.node for row in conventional}
    assert surveying.convention(asked, "no-such-convention").rows == ()


@pytest.mark.parametrize(("name", "audit"), [(P102, "PASS"), (P125, "INCOMPLETE")])
def test_what_is_missing_for_a_replay(name: str, audit: str, asked: Asked) -> None:
    report = closures.closure(asked.reader, packet(asked, name), missing=True)
    levels = {level.level: level for level in report.levels}
    assert levels["audit"].outcome == audit
    exact = levels["host-exact"]
    assert exact.outcome == "INCOMPLETE"
    assert len([role for role in exact.missing if role.startswith("runtime/native/")]) == 11
    assert {"weights/target", "weights/draft", "source/vllm"} <= set(exact.missing)
    assert set(exact.absent) == {"python-env", "suite", "recipe", "host"}
    assert len(exact.without_origin) == 11  # the natives: nobody says where they can be had
    assert exact.unsized == 27 + 5 + 11 + 5
    assert exact.fetch_bytes == 0  # the manifest has no sizes: unknown is not zero, and is counted apart
    roles = {role.role: role for role in report.roles}
    assert roles["weights/draft"].missing == 5
    assert roles["weights/draft"].origins[0].startswith("hub:poolside/Laguna-S-2.1-DFlash-INT4@5e07c246")
    assert roles["source/vllm"].origins[0].startswith("git commit ")
    if audit == "INCOMPLETE":
        assert set(levels["audit"].missing) == {
            f"evidence/record-run/{name}"
            for name in (
                "bench.json",
                "exactness-vs-q1.json",
                "identity.txt",
                "runtime-verification.json",
                "server.log",
            )
        }


def test_nobody_saw_what_was_loaded(asked: Asked) -> None:
    first = unpinned.unpinned(asked.reader, packet(asked, P102))
    assert (first.outcome, first.loaded, first.observations, first.absent) == ("INCOMPLETE", 0, (), ())
    second = unpinned.unpinned(asked.reader, packet(asked, P125))
    assert second.outcome == "INCOMPLETE"
    assert second.absent == ("evidence/record-run/runtime-verification.json",)


def test_who_pins_a_shared_verifier_and_an_oracle(asked: Asked, corpus: Path) -> None:
    identity = corpus / "b70-lab/repro" / P102 / "evidence/record-run/identity.txt"
    line = next(line for line in identity.read_text().splitlines() if line.endswith("compare_exact_runs.py"))
    report = querying.pins(asked, f"sha256:{line[:64]}")
    named = {name for row in report.rows for name in row.names}
    assert P102 in named
    assert P125 not in named
    row = next(row for row in report.rows if P102 in row.names)
    assert (row.step.relation, row.via) == ("uses", str(node_of(asked, str(identity))))
    assert row.step.location.startswith("line ")
    oracle = corpus / "b70-lab/repro" / P102 / "teacher-token-oracle-v1.json"
    both = {name for row in querying.pins(asked, str(oracle)).rows for name in row.names}
    assert {P102, P125} <= both


def holding(steps: tuple[AskedStep, ...]) -> list[str]:
    return [step.relation for step in steps]


def test_why_the_draft_model_has_to_do_with_the_record(asked: Asked) -> None:
    near = querying.why(asked, f"{P102}/weights/draft", f"{P102}/record")
    assert near.connected
    assert near.direction == "mixed"
    assert all(step.stated_by for step in near.steps)
    ends = {near.steps[0].source, near.steps[0].target}, {near.steps[-1].source, near.steps[-1].target}
    assert near.a in ends[0]
    assert near.b in ends[1]
    far = querying.why(asked, f"{P102}/weights/draft", f"leaderboard-run:{RECEIPT}")
    assert far.connected
    assert {"sealed-by", "seals"} <= set(holding(far.steps))
    again = querying.why(asked, f"{P102}/weights/draft", f"leaderboard-run:{RECEIPT}")
    assert again == far


def test_the_page_and_the_record_are_joined_by_the_run_id(asked: Asked) -> None:
    rows = querying.uses(asked, f"leaderboard-run:{PAGE_RUN}").rows
    assert any(row.kind == "record" and row.step.relation == "compares-to" for row in rows)


def test_what_was_not_exact_is_shown_with_what_rests_on_it(asked: Asked) -> None:
    rows = querying.stale(asked).rows
    screened = "measurement:laguna-s/laguna-s-tp4-dflash11-long-context-screen"
    assert {row.why for row in rows if row.on == screened} == {"not-exact"}
    assert "coverage:laguna-s/laguna-context-by-tp" in {row.node for row in rows if row.on == screened}
    assert not any(row.node.startswith("claim:") for row in rows)


def test_the_same_id_in_two_families_is_two_nodes(asked: Asked) -> None:
    packets = [node.key for _, node in asked.graph.nodes("family-packet")]
    assert all("/" in key for key in packets)
    found = node_of(asked, "family-packet:laguna-s-2.1-int4-b70-125tps-20260731")
    assert found == Node("family-packet", "laguna-s/laguna-s-2.1-int4-b70-125tps-20260731")


def test_places_are_selected_by_dimensions(asked: Asked) -> None:
    four = surveying.select(asked, ["cards=4", "revision=laguna-s-2.1-int4-4bbfc28"]).rows
    subjects = {row.subject for row in four}
    assert "family:laguna-s" in subjects
    assert {subject.partition(":")[0] for subject in subjects} <= {"family", "packet"}
    assert surveying.select(asked, ["cards=4", "cards>4"]).rows == ()
    fast = surveying.select(asked, ["metric=decode_tok_s", "value>125", "cards>=4"]).rows
    assert {row.value for row in fast} >= {"125.4619731637751", "153.6043924981438"}
    assert surveying.select(asked, ["no-such-dimension!=1"]).rows == ()


def test_the_timeline_keeps_conventions_apart(asked: Asked) -> None:
    rows = surveying.timeline(asked, "laguna").rows
    claims = {(row.when, row.value[:6]) for row in rows if row.node.startswith("claim:")}
    assert {("2026-07-26", "101.94"), ("2026-07-26", "102.97")} <= claims
    groups = [(row.metric, row.unit, row.convention) for row in rows]
    assert groups == sorted(groups)
    assert {"conventional-intervals", "legacy-inclusive-events", ""} <= {row.convention for row in rows}
    assert all(row.best is None for row in rows if not row.when or not row.unit.endswith("/s"))


def test_the_number_of_a_page_is_told_by_the_record_that_it_came_from(corpus: Path) -> None:
    store = MemoryStore()
    lab, registry = corpus / "b70-lab", corpus / "local-ai-registry"
    import_documents(store, [lab / "data"], ImportOptions(root=str(lab)))
    import_documents(store, [registry], ImportOptions(root=str(registry)))
    page = next(path for path in (corpus.parent / "seeds").iterdir() if path.name.startswith("002_"))
    import_documents(store, [page])
    with querying.asking(store) as asked:
        rows = surveying.convention(asked, "legacy-inclusive-events").rows
        told = {row.value: row.told for row in rows if row.told}
        assert {"94.9", "94.92003934159611"} <= told.keys()
        assert all(f"leaderboard run {PAGE_RUN}" in told[value] for value in ("94.9", "94.92003934159611"))
        (place,) = {row.selectors.get("configured_max_context_tokens") for row in rows if row.value == "94.9"}
        assert place == 8192
        assert not any("prompt_tokens" in row.selectors for row in rows if row.value == "94.9")
