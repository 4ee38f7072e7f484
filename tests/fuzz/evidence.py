"""Readers of evidence, the policy loader, and whole verdicts: whatever the bytes, an answer that holds."""

import functools
from collections.abc import Callable, Mapping
from typing import Final

import smallrun

from fuzz import evidence_seeds as seeds
from fuzz.contract import Target
from provstore import records
from provstore.evidence import conventions
from provstore.evidence.bench import read_bench
from provstore.evidence.documents import read_document
from provstore.evidence.finding import ReaderResult
from provstore.evidence.idle import read_idle
from provstore.evidence.keyvalue import (
    read_cleanup,
    read_environment,
    read_identity,
    read_idle_summary,
    read_status,
)
from provstore.evidence.locks import read_lock, read_verification
from provstore.evidence.metrics import recompute
from provstore.evidence.oracle import read_oracle
from provstore.evidence.prometheus import by_label, delta, read_prometheus, samples_of
from provstore.evidence.rows import from_facts, from_log
from provstore.evidence.serverlog import LinePattern, scan_log
from provstore.gates.extracts import read_freeze, read_json
from provstore.gates.policy import load_policy
from provstore.ids import RawId, digests
from provstore.records.facts import Facts
from provstore.records.packet import Entry, Packet
from provstore.store.memory import MemoryStore
from provstore.verbs.explaining import explain
from provstore.verbs.judging import Judging, checks_of, judge

PATTERNS: Final = (
    LinePattern(
        name="rank",
        marker="rank",
        pattern=r"rank TP(?P<tp>\d+) (?P<at>\S+ \S+) .*graphs=(?P<graphs>\d+)",
        integers=("tp", "graphs"),
    ),
    LinePattern(name="post", marker="POST", pattern=r"(?P<what>[^\"]*)\" (?P<status>\d+)$"),
    LinePattern(name="plain", marker="a"),
)


def can_be_shown(text: str) -> bool:
    """No control character reaches a terminal; letters that this Python does not know yet may."""
    return not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in text)


def reading_holds(found: ReaderResult) -> None:
    """Facts can be sealed, and read back as they were; findings can be shown."""
    record = Facts(extractor="fuzz", version=1, source="0" * 64, facts=found.facts)
    _, data = records.encode(record)
    assert records.decode(data) == record
    assert len(found.findings) <= 201
    for finding in found.findings:
        assert can_be_shown(finding.message)
        assert len(finding.message) < 2000
        (finding.location + finding.code).encode()


def reads(*readers: Callable[[bytes], ReaderResult]) -> Callable[[bytes], None]:
    """Return a target that gives its input to readers, each twice: the answer depends on nothing else."""

    def run(data: bytes) -> None:
        for reader in readers:
            found = reader(data)
            reading_holds(found)
            assert reader(data) == found

    return run


def run_bench(data: bytes) -> None:
    """Rows of a benchmark recompute, or say why not; in any order the same."""
    found = read_bench(data)
    reading_holds(found)
    for definition in conventions.SHIPPED:
        value = recompute(definition, found.rows)
        assert (value.value is None) is bool(value.failures)
        assert recompute(definition, found.rows[::-1]).value == value.value
        again = recompute(definition, from_facts(found.facts))
        assert (again.value is None) is bool(again.failures)


def run_log(data: bytes) -> None:
    """A log says the same whole, in two chunks, and byte by byte."""
    whole = scan_log([data], PATTERNS)
    reading_holds(whole)
    half = len(data) // 2
    assert scan_log([data[:half], data[half:]], PATTERNS) == whole
    assert scan_log((data[at : at + 1] for at in range(len(data))), PATTERNS) == whole


def run_prometheus(data: bytes) -> None:
    """Samples come back from facts, no series is there twice, and differences are made or refused."""
    found = read_prometheus(data)
    reading_holds(found)
    series = [sample.series for sample in found.samples]
    assert len(set(series)) == len(series)
    finite = [(s.series, s.text, s.labels) for s in found.samples if s.value - s.value == 0.0]
    assert [(s.series, s.text, s.labels) for s in samples_of(found.facts)] == finite
    for sample in found.samples[:20]:
        grown = delta(found.samples, found.samples, sample.name)
        assert (grown.value is None) is bool(grown.findings)
        assert not grown.value
        for name, _ in sample.labels:
            by_label(found.samples, sample.name, name)


def run_stamps(data: bytes) -> None:
    found = from_log(data, "offsets")
    assert bool(found.rows) is not bool(found.findings)


def packet_of(files: Mapping[str, bytes]) -> tuple[MemoryStore, RawId]:
    """Return a packet with one entry for each file."""
    store = MemoryStore()
    entries = []
    with store.stage() as stage:
        for role, data in sorted(files.items()):
            found = digests(data)
            if not stage.has_object(found.blake3):
                stage.add_object(found, data)
            content, sha256 = found.blake3.hex(), found.sha256.hex()
            size = len(data)
            entries.append(
                Entry(role=role, kind="evidence", files=1, size_bytes=size, blake3=content, sha256=sha256)
            )
        packet, record = records.encode(Packet(entries=tuple(entries), name="fuzz"))
        stage.add_record(packet, record)
        stage.commit()
    return store, packet


def verdict_holds(store: MemoryStore, packet: RawId, policy: bytes) -> Judging:
    """The verdict is a record, no better than its worst required gate, the same again, and explained."""
    found = judge(store, packet, policy)
    verdict = found.verdict
    assert records.decode(records.encode(verdict)[1]) == verdict
    assert judge(store, packet, policy).verdict == verdict
    needed = [gate.outcome for gate in verdict.gates if gate.required]
    if verdict.outcome == "PASS":
        assert "PASS" in needed
        assert set(needed) <= {"PASS", "NOT-APPLICABLE"}
    assert all(gate.judgements for gate in verdict.gates)
    for check in checks_of(verdict, found.roles):
        assert can_be_shown(check.message or "")
    for gate in verdict.gates[:3]:
        explain(store, packet, policy, gate.gate)
    return found


@functools.cache
def _small_run() -> tuple[MemoryStore, RawId]:
    return packet_of(seeds.small_files())


def run_policy(data: bytes) -> None:
    """A policy is refused with its place, or judges the small run."""
    loaded = load_policy(data, "p.toml")
    assert loaded.gate
    verdict_holds(*_small_run(), data)


def run_judge(data: bytes) -> None:
    """One file of the small run is the input: its first byte says which."""
    files = seeds.small_files()
    places = sorted(files)
    place = places[data[0] % len(places)] if data else places[0]
    changed = files[place] != data[1:]
    found = verdict_holds(*packet_of({**files, place: data[1:]}), seeds.TINY_POLICY)
    if not changed:
        assert found.verdict.outcome == "PASS", smallrun.words(found)


def _document(data: bytes) -> ReaderResult:
    return read_document(data, "record")


TARGETS: Final[dict[str, Target]] = {
    "evidence-bench": Target(run_bench, seeds.benches),
    "evidence-documents": Target(reads(_document, read_json), seeds.documents),
    "evidence-environment": Target(reads(read_environment), seeds.pairs),
    "evidence-freeze": Target(reads(read_freeze), seeds.freezes),
    "evidence-identity": Target(
        reads(read_identity, read_status, read_cleanup, read_idle_summary), seeds.pairs
    ),
    "evidence-idle": Target(reads(read_idle), seeds.snapshots),
    "evidence-locks": Target(reads(read_lock, read_verification), seeds.locks),
    "evidence-log": Target(run_log, seeds.logs),
    "evidence-oracle": Target(reads(read_oracle), seeds.benches),
    "evidence-prometheus": Target(run_prometheus, seeds.scrapes),
    "evidence-stamps": Target(run_stamps, seeds.stamps, 1024),
    "judge": Target(run_judge, seeds.judged_files, 8192),
    "policy": Target(run_policy, seeds.policies, 16_384),
}
"""Everything that makes a verdict, by name."""
