"""The real packets of the corpus: sealed, verified, packed, tampered with, compared."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from workbench import failures, findings, listed, packet_of

from provstore.errors import PinMismatchError, ProvError
from provstore.ids import RawId, to_raw
from provstore.reports import DiffReport
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.verbs.checking import fsck
from provstore.verbs.diffing import diff, side
from provstore.verbs.locating import locate
from provstore.verbs.packing import pack
from provstore.verbs.restoring import restore
from provstore.verbs.sealing import seal_spec
from provstore.verbs.unpacking import unpack
from provstore.verbs.verifying import verify

SPECS = Path(__file__).resolve().parents[2] / "examples/laguna-s-2.1"
RUN = "repro/laguna-s-2.1-int4-b70-102tps-20260726/evidence/record-run"


@pytest.fixture(scope="module")
def lab(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the lab's files that tests may change and put back."""
    place = tmp_path_factory.mktemp("lab")
    shutil.copytree(corpus / "b70-lab", place / "lab", symlinks=True)
    for path in (place / "lab").rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)
    return place / "lab"


@pytest.fixture(scope="module")
def store(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LmdbStore]:
    with LmdbStore.create(os.fspath(tmp_path_factory.mktemp("sealed") / "store")) as made:
        for number in ("102", "125"):
            seal_spec(made, SPECS / f"packet-{number}.toml", variables={"corpus": os.fspath(lab)})
        yield made


@pytest.fixture(scope="module")
def packet(store: LmdbStore) -> RawId:
    return locate("laguna-s-2.1-int4-b70-102tps-20260726", store).packet


def test_the_packet_holds_what_the_issue_lists(store: LmdbStore, packet: RawId) -> None:
    entries = {entry.role: entry for entry in packet_of(store, packet).entries}
    assert entries["evidence/record-run"].files == 39
    assert entries["evidence/record-run"].pins[0].kind == "manifest"
    weights = [entries[f"weights/{name}"] for name in ("target", "draft")]
    assert sum(entry.files for entry in weights) == 32
    assert {entry.custody for entry in weights} == {"declared"}
    for role in ("runtime/lock", "oracle/tokens", "oracle/text", "runtime/pip-freeze", "record"):
        assert entries[role].custody == "held"
    assert entries["submission/receipt"].blake3
    assert [claim.value for claim in packet_of(store, packet).claims] == [
        "101.94172124017027",
        "102.97143559613157",
    ]


def test_it_verifies_and_says_what_nobody_saw(store: LmdbStore, packet: RawId) -> None:
    report = verify(store, packet)
    assert report.outcome == "PASS"
    assert findings(report) == {}
    assert report.objects_checked >= 39
    unseen = {missing.role for missing in report.missing}
    assert {"weights/target", "weights/draft", "runtime/native/_C.abi3.so"} <= unseen
    assert not any(role.startswith("evidence") for role in unseen)
    assert fsck(store).damaged == ()


def test_sealing_again_gives_the_same_packet(store: LmdbStore, packet: RawId, lab: Path) -> None:
    spec = SPECS / "packet-102.toml"
    for target in (store, MemoryStore()):
        report = seal_spec(target, spec, variables={"corpus": os.fspath(lab)})
        assert report.packet == packet.hex()


def test_the_pack_is_enough_without_the_corpus(store: LmdbStore, packet: RawId, tmp_path: Path) -> None:
    name = "laguna-s-2.1-int4-b70-102tps-20260726"
    made = pack([(name, locate(name, store))], tmp_path / "102.pack")
    with locate(os.fspath(tmp_path / "102.pack"), None) as located:
        assert located.packet == packet
        report = verify(located.reader, packet)
        assert (report.outcome, findings(report)) == ("PASS", {})
        restore(located.reader, packet, tmp_path / "out", only="evidence/*")
    assert len([path for path in (tmp_path / "out").rglob("*") if path.is_file()]) == 39
    other = MemoryStore()
    unpack(other, tmp_path / "102.pack")
    assert verify(other, packet).outcome == "PASS"
    assert made.left_out == 0


def test_a_flipped_byte_anywhere_is_named(store: LmdbStore, packet: RawId) -> None:
    memory = MemoryStore()
    here = {path: m for path, m in listed(store, packet).items() if path.startswith("evidence/")}
    copy_into(memory, store, packet)
    chance = random.Random(102)
    assert verify(memory, packet).outcome == "PASS"
    for path, member in chance.sample(sorted(here.items()), 8):
        id = to_raw(member.blake3 or "")
        whole = memory._content.data[id]
        if not whole:
            continue
        flipped = bytearray(whole)
        flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        memory._content.data[id] = bytes(flipped)
        report = verify(memory, packet, only=path)
        assert report.outcome == "FAIL"
        assert path in findings(report)
        memory._content.data[id] = whole


def copy_into(memory: MemoryStore, store: LmdbStore, packet: RawId) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        pack([("x", locate(packet.hex(), store))], Path(place) / "x.pack")
        unpack(memory, Path(place) / "x.pack")


def test_a_flipped_byte_on_disk_fails_the_seal_and_names_the_file(lab: Path) -> None:
    path = lab / RUN / "bench.json"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    path.write_bytes(flipped)
    try:
        with pytest.raises(PinMismatchError) as raised:
            seal_spec(MemoryStore(), SPECS / "packet-102.toml", variables={"corpus": os.fspath(lab)})
    finally:
        path.write_bytes(whole)
    (line,) = raised.value.mismatches
    assert line.startswith("evidence/record-run/bench.json: changed")


def test_without_status_txt_there_is_no_seal(lab: Path, tmp_path: Path) -> None:
    (lab / RUN / "status.txt").rename(tmp_path / "status.txt")
    store = MemoryStore()
    try:
        with pytest.raises(PinMismatchError) as raised:
            seal_spec(store, SPECS / "packet-102.toml", variables={"corpus": os.fspath(lab)})
    finally:
        (tmp_path / "status.txt").rename(lab / RUN / "status.txt")
    (line,) = raised.value.mismatches
    assert line.startswith("evidence/record-run/status.txt: missing")
    assert store.refs() == []


def test_a_status_txt_without_its_line_end_is_no_status_txt(lab: Path) -> None:
    path = lab / RUN / "status.txt"
    whole = path.read_bytes()
    path.write_bytes(whole.rstrip(b"\n"))
    try:
        with pytest.raises(PinMismatchError, match=r"status\.txt: changed"):
            seal_spec(MemoryStore(), SPECS / "packet-102.toml", variables={"corpus": os.fspath(lab)})
    finally:
        path.write_bytes(whole)


def test_notes_txt_is_one_file_too_many(lab: Path) -> None:
    (lab / RUN / "notes.txt").write_text("n")
    try:
        with pytest.raises(PinMismatchError) as raised:
            seal_spec(MemoryStore(), SPECS / "packet-102.toml", variables={"corpus": os.fspath(lab)})
    finally:
        (lab / RUN / "notes.txt").unlink()
    (line,) = raised.value.mismatches
    assert line.startswith("evidence/record-run/notes.txt: extra")


def test_the_other_packet_says_that_its_evidence_was_never_seen(store: LmdbStore) -> None:
    packet = locate("laguna-s-2.1-int4-b70-125tps-20260731", store).packet
    report = verify(store, packet)
    assert report.outcome in ("PASS", "INCOMPLETE")
    assert failures(report) == []
    unseen = {missing.role for missing in report.missing}
    assert {f"evidence/record-run/{name}" for name in ("bench.json", "server.log")} <= unseen
    for role in ("evidence/record-run/bench.json",):
        assert verify(store, packet, only=role).outcome == "INCOMPLETE"


@pytest.fixture(scope="module")
def difference(store: LmdbStore) -> DiffReport:
    names = "laguna-s-2.1-int4-b70-102tps-20260726", "laguna-s-2.1-int4-b70-125tps-20260731"
    with side(names[0], store) as a, side(names[1], store) as b:
        return diff(a, b)


def test_the_diff_names_the_native_modules_that_changed_and_those_that_stayed(difference: DiffReport) -> None:
    changed = {change.role for change in difference.changed if change.role.startswith("runtime/native/")}
    assert changed == {"runtime/native/_C.abi3.so", "runtime/native/libgrouped_gemm_xe_2.so"}
    kept = {role for role in difference.kept_roles if role.startswith("runtime/native/")}
    assert len(kept) == 9
    assert "runtime/native/_moe_C.abi3.so" in kept
    assert {"weights/target", "weights/draft", "oracle/tokens", "oracle/text"} <= set(difference.kept_roles)


def test_the_diff_names_the_commits_that_changed_and_those_that_stayed(difference: DiffReport) -> None:
    commits = {c.role: (c.from_, c.to) for c in difference.identity if c.key == "commit"}
    assert commits == {
        "source/vllm": (
            "e596ef1543466ae1a05e5bb8091f58872e2b18ba",
            "1a7f61feffbc61b21b73f812d231c7426386ccdc",
        ),
        "source/kernel-record-tree": (
            "6f9dd3c3a7b1b677a992ca4f431a968408f9c816",
            "99886d783372e621941228250091dc8ebdc1595d",
        ),
    }
    kept = {role for role in difference.kept_roles if role.startswith("source/")}
    assert kept == {
        "source/attention-runtime-tree",
        "source/native-base-tree",
        "source/xpumem-source-tree",
    }


def test_the_diff_names_the_selectors(difference: DiffReport) -> None:
    selectors = {c.key: (c.from_, c.to) for c in difference.environment if c.role == "environment/selectors"}
    assert selectors["VLLM_XPU_LAGUNA_M8_QKNORM_ROPE"] == ("0", "1")
    assert selectors["VLLM_XPU_LAGUNA_DECODE_GRF128"] == (None, "1")
    # What the second packet does not state is not equal to anything.
    assert selectors["VLLM_XPU_LAGUNA_EXACT_MAX_M"] == ("12", None)


def test_the_diff_keeps_conventions_apart(difference: DiffReport) -> None:
    claims = {c.key: (c.from_, c.to) for c in difference.result if c.key.startswith("claim.")}
    assert claims["claim.decode"] == (
        "101.94172124017027 tok/s (conventional-intervals)",
        "125.4619731637751 tok/s (conventional-intervals)",
    )
    assert claims["claim.decode-as-submitted"][1] is None
    assert not difference.same


def test_a_packet_without_its_corpus_cannot_be_sealed(tmp_path: Path) -> None:
    with pytest.raises(ProvError):
        seal_spec(MemoryStore(), SPECS / "packet-102.toml", variables={"corpus": os.fspath(tmp_path)})
