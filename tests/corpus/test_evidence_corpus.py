"""Known answers from the sealed packet of the corpus; its markers and names are data of this test."""

from itertools import pairwise
from pathlib import Path

import pytest

from provstore.evidence import conventions
from provstore.evidence.aggregation import mean, percentile
from provstore.evidence.bench import BenchResult, read_bench
from provstore.evidence.comparing import compare, conventions_giving
from provstore.evidence.documents import read_document
from provstore.evidence.finding import ReaderResult
from provstore.evidence.idle import read_idle
from provstore.evidence.jsonreader import Number, resolve
from provstore.evidence.keyvalue import (
    read_cleanup,
    read_environment,
    read_identity,
    read_idle_summary,
    read_status,
)
from provstore.evidence.locks import read_lock
from provstore.evidence.metrics import recompute
from provstore.evidence.oracle import read_oracle
from provstore.evidence.prometheus import (
    PrometheusResult,
    by_label,
    delta,
    read_prometheus,
    samples_of,
    total,
)
from provstore.evidence.rows import Row, from_facts
from provstore.evidence.serverlog import LinePattern, scan_log

PACKET = "b70-lab/repro/laguna-s-2.1-int4-b70-102tps-20260726"
RANK = r"Worker_TP(?P<tp>\d+)_EP(?P<ep>\d+)"
SHAPE = r"graphs=(?P<graphs>\d+), eager_breaks=(?P<breaks>\d+)\)"
PATTERNS = (
    LinePattern(
        name="captured",
        marker="Captured audited breakable cudagraph",
        pattern=f"{RANK} .*{SHAPE}",
        integers=("tp", "ep", "graphs", "breaks"),
    ),
    LinePattern(
        name="replayed",
        marker="Replayed audited breakable cudagraph",
        pattern=f"{RANK} .*{SHAPE}",
        integers=("tp", "ep", "graphs", "breaks"),
    ),
    LinePattern(
        name="treated",
        marker="FP8 W8A16 draft projections",
        pattern=f"{RANK} .*count=(?P<count>\\d+)",
        integers=("tp", "ep", "count"),
    ),
    LinePattern(name="unknown", marker="Unknown vLLM environment variable", pattern=r": (?P<key>[A-Z0-9_]+)"),
    LinePattern(
        name="post",
        marker='"POST /v1/chat/completions',
        pattern=r'HTTP/1.1" (?P<status>\d+)',
        integers=("status",),
    ),
)


@pytest.fixture(scope="module")
def packet(corpus: Path) -> Path:
    return corpus / PACKET


@pytest.fixture(scope="module")
def run(packet: Path) -> Path:
    return packet / "evidence" / "record-run"


@pytest.fixture(scope="module")
def bench(run: Path) -> BenchResult:
    return read_bench((run / "bench.json").read_bytes())


@pytest.fixture(scope="module")
def scrapes(run: Path) -> list[PrometheusResult]:
    names = ("metrics-before-suite.prom", "metrics-after-suite.prom")
    return [read_prometheus((run / name).read_bytes()) for name in names]


def test_the_sealed_bench_is_sound(bench: BenchResult) -> None:
    assert (bench.findings, bench.shape, len(bench.rows)) == ((), "events", 13)
    assert bench.value("bench.run_identity.max_tokens") == 512
    assert [fact.value for fact in bench.all("bench.rows.cached_tokens")] == [0] * 13
    assert bench.fact("bench.rows.prompt_class") is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("legacy-inclusive-events", "102.97143559613157"),
        ("conventional-intervals", "101.94172124017027"),
        ("full-after-first-token", "134.79088555311446"),
        ("wall", "52.76762062661338"),
        ("ttft-median", "5758.738295000512"),
    ],
)
def test_both_headline_rates_and_the_stored_medians(bench: BenchResult, name: str, text: str) -> None:
    value = recompute(conventions.find(name), bench.rows)
    assert value.text == text
    assert compare(text, name, value).code == "bit-equal"
    assert recompute(conventions.find(name), from_facts(bench.facts)).text == text


def test_a_right_number_under_a_wrong_name(bench: BenchResult) -> None:
    named = conventions_giving("102.97143559613157", bench.rows, conventions.SHIPPED)
    assert named == ("legacy-inclusive-events",)


def test_the_first_row(bench: BenchResult) -> None:
    offsets = resolve(bench.document, "/rows/0/token_id_offsets_s")
    assert isinstance(offsets, list)
    ends = [item.text for item in (offsets[0], offsets[99]) if isinstance(item, Number)]
    assert ends == ["10.328412583003228", "22.82249498800229"]
    values = {
        name: recompute(conventions.find(name), bench.rows).rows[0].value for name in ("legacy", "intervals")
    }
    assert values == {"legacy": 8.003789054567829, "intervals": 7.923751164022152}
    assert (
        bench.value("bench.rows.tok_s_1_100_after_ttft", "/rows/0/tok_s_1_100_after_ttft")
        == "8.003789054567829"
    )


def test_stored_row_rates_are_the_recomputed_ones(bench: BenchResult) -> None:
    stored = [fact.value for fact in bench.all("bench.rows.tok_s_1_100_after_ttft")]
    legacy = recompute(conventions.find("legacy"), bench.rows)
    assert stored == [repr(row.value) for row in legacy.rows]


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ("tok_s_1_100_after_ttft", "legacy"),
        ("tok_s_after_ttft_full", "full-after-first-token"),
        ("tok_s_wall_full", "wall"),
        ("ttft_ms", "ttft"),
    ],
)
def test_stored_means_and_percentiles_name_their_method(bench: BenchResult, stored: str, name: str) -> None:
    rows = recompute(conventions.find(name), bench.rows).rows
    values = [row.value for row in rows if row.value is not None]
    assert bench.value(f"bench.summary.{stored}.p10") == repr(percentile(values, "10", "linear"))
    assert bench.value(f"bench.summary.{stored}.mean") == repr(mean(values))


def test_classes_are_not_invented(bench: BenchResult) -> None:
    value = recompute(conventions.find("class-balanced"), bench.rows)
    assert value.value is None
    assert {failure.code for failure in value.failures} == {"class-absent"}


def test_counters_agree_with_the_rows(bench: BenchResult, scrapes: list[PrometheusResult]) -> None:
    before, after = (scrape.samples for scrape in scrapes)
    assert [scrape.findings for scrape in scrapes] == [(), ()]

    def grown(name: str) -> int | None:
        return delta(before, after, f"vllm:{name}").value

    def rows(name: str) -> int:
        return sum(value for value in (row.get(name) for row in bench.rows) if isinstance(value, int))

    assert grown("prompt_tokens_total") == rows("prompt_tokens") == 2364
    assert grown("generation_tokens_total") == rows("completion_tokens") == 6354
    assert grown("request_success_total") == len(bench.rows) == 13
    assert total(before, "vllm:prompt_tokens_total").value == 0
    reasons = by_label(after, "vllm:request_success_total", "finished_reason")
    assert {name: found.value for name, found in reasons.items() if found.value} == {"length": 11, "stop": 2}
    assert grown("spec_decode_num_drafts_total") == 1609
    assert grown("spec_decode_num_draft_tokens_total") == 1609 * 11 == 17699
    assert grown("spec_decode_num_accepted_tokens_total") == 4747
    places = by_label(after, "vllm:spec_decode_num_accepted_tokens_per_pos_total", "position")
    accepted = [found.value for found in places.values()]
    assert accepted == [1171, 847, 631, 497, 397, 328, 248, 204, 172, 140, 112]
    assert grown("prefix_cache_hits_total") == grown("prompt_tokens_cached_total") == 0
    started = [[s.text for s in side if s.name == "process_start_time_seconds"] for side in (before, after)]
    assert started[0] == started[1] == ["1.78510229657e+09"]


def test_speculation_metrics_from_counters(scrapes: list[PrometheusResult]) -> None:
    names = {"drafts": "drafts", "draft_tokens": "draft_tokens", "accepted_tokens": "accepted_tokens"}
    before, after = (scrape.samples for scrape in scrapes)
    fields = {
        name: delta(before, after, f"vllm:spec_decode_num_{counter}_total").value
        for name, counter in names.items()
    }
    row = [Row(location="", fields=fields)]
    assert recompute(conventions.find("draft-acceptance"), row).text == "0.26820724334708174"
    assert recompute(conventions.find("tokens-per-verification"), row).text == "3.950279676817899"


def test_scrapes_survive_as_facts(scrapes: list[PrometheusResult]) -> None:
    for scrape in scrapes:
        assert [s.series for s in samples_of(scrape.facts)] == [s.series for s in scrape.samples]


def test_all_idle_snapshots_are_idle_again(run: Path) -> None:
    paths = sorted((run / "idle-interval").glob("*.json"))
    others = [run / name for name in ("pre-idle.json", "post-idle.json", "failure-post-idle.json")]
    assert (len(paths), len(others)) == (26, 3)
    for path in [*paths, *others]:
        found = read_idle(path.read_bytes())
        assert (found.findings, found.idle, found.devices, len(found.rows)) == ((), True, (0, 1, 2, 3), 4)


def test_text_files(run: Path) -> None:
    environment = read_environment((run / "service-environment.txt").read_bytes())
    assert (len(environment.facts), environment.findings) == (85, ())
    assert environment.value("env.LD_PRELOAD") == ""
    identity = read_identity((run / "identity.txt").read_bytes())
    assert (len(identity.facts), len(identity.all("identity#file")), identity.findings) == (48, 8, ())
    assert identity.value("identity.expected_num_graphs") == "146"
    assert read_status((run / "status.txt").read_bytes()).value("status.status") == "PASS"
    cleanup = read_cleanup((run / "cleanup-status.txt").read_bytes())
    assert [fact.value for fact in cleanup.facts] == [0, 0, 0, 0, 4]
    summary = read_idle_summary((run / "idle-interval" / "summary.txt").read_bytes())
    assert [fact.value for fact in summary.all("idle_summary.snapshots")] == [13, 13]
    assert [fact.value for fact in summary.all("idle_summary.elapsed_seconds")] == [73, 73]


def ranks(found: ReaderResult, name: str) -> list[tuple[object, object]]:
    pairs = zip(found.all(f"log.{name}.tp"), found.all(f"log.{name}.ep"), strict=True)
    return sorted((tp.value, ep.value) for tp, ep in pairs)


@pytest.mark.parametrize("size", [1, 97, 4096, 1 << 20])
def test_log_markers_whatever_the_chunks(run: Path, size: int) -> None:
    data = (run / "server.log").read_bytes()
    edges = [*range(0, len(data), size), len(data)]
    found = scan_log((data[first:last] for first, last in pairwise(edges)), PATTERNS)
    assert found.findings == ()
    for name in ("captured", "replayed", "treated"):
        assert found.value(f"log.{name}#lines") == found.value(f"log.{name}#matches") == 4
        assert ranks(found, name) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    for name in ("captured", "replayed"):
        assert {fact.value for fact in found.all(f"log.{name}.graphs")} == {146}
        assert {fact.value for fact in found.all(f"log.{name}.breaks")} == {145}
    assert [fact.value for fact in found.all("log.treated.count")] == [31] * 4
    assert [fact.location for fact in found.all("log.treated")] == [
        f"line {at}" for at in (120, 121, 122, 123)
    ]
    assert found.value("log.unknown#matches") == found.value("log.post#matches") == 13
    assert {fact.value for fact in found.all("log.post.status")} == {200}
    assert (found.value("log#lines"), found.value("log#bytes")) == (286, 51637)


def test_oracles_agree_with_the_bench(packet: Path, bench: BenchResult) -> None:
    tokens = read_oracle((packet / "teacher-token-oracle-v1.json").read_bytes())
    texts = read_oracle((packet / "teacher-text-sha256-v1.json").read_bytes())
    assert (tokens.findings, texts.findings) == ((), ())
    assert (tokens.has_tokens, tokens.has_texts, texts.has_texts, texts.has_tokens) == (
        True,
        False,
        True,
        False,
    )
    assert tokens.source_sha256 == texts.source_sha256 is not None
    lengths = [len(row.token_ids or ()) for row in tokens.rows]
    assert sorted(lengths) == [296, 426, *[512] * 11]
    for row, token, text in zip(bench.rows, tokens.rows, texts.rows, strict=True):
        assert row.get("token_ids") == list(token.token_ids or ())
        assert row.get("sha256") == text.text_sha256
        assert row.get("prompt_sha256") == token.prompt_sha256
        assert row.get("prompt_index") == token.prompt_index == text.prompt_index


def test_locks(packet: Path, corpus: Path) -> None:
    other = corpus / "b70-lab/experiments/laguna-s-2.1-xpu-b70/tools/runtime-lock-shared-elementwise-m12.json"
    for path in (packet / "manifests" / "runtime-lock.json", other):
        found = read_lock(path.read_bytes())
        assert found.findings == ()
        counts = {
            group: sum(pin.group == group for pin in found.pins) for group in {p.group for p in found.pins}
        }
        assert counts == {
            "native_modules": 4,
            "mapped_kernel_libraries": 6,
            "external_native_module": 1,
            "runtime_files": 5,
        }
        assert (len(found.packages), len(found.sources)) == (6, 5)


def test_record_queue_and_receipt_as_facts(corpus: Path) -> None:
    data = corpus / "b70-lab" / "data"
    record = read_document(
        (data / "laguna-s-2.1-width12-dflash-fp8-record-20260726.json").read_bytes(), "record"
    )
    published = record.fact("record.metric_accounting.published_value_tok_s")
    assert published is not None
    assert (published.value, published.decimal) == ("102.97143559613157", True)
    receipt = read_document(next((data / "localmaxxing-responses").iterdir()).read_bytes(), "receipt")
    assert receipt.value("receipt.public_verification.tok_s_out") == "102.9714355961316"
    assert receipt.value("receipt.http_status") == 201
    queue = read_document(next(data.glob("*.queue.json")).read_bytes(), "queue")
    assert queue.value("queue#length") == 1


def test_every_json_file_of_the_corpus_reads(corpus: Path) -> None:
    paths = sorted(corpus.rglob("*.json"))
    assert len(paths) > 50
    for path in paths:
        found = read_document(path.read_bytes(), "document")
        assert found.findings == ()
        assert found.facts
