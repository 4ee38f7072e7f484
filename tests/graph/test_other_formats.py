"""What the readers of every other format make of small documents."""

import base64
import json
from typing import Any

import pytest

from graph import documents_of_ours as ours
from graph.documents_of_ours import COMMIT, PAGE, REVISION, dumped
from graph.test_family_and_record import edges
from provstore.graph.documents.reading import FORMATS, read_any, understand
from provstore.graph.statements import Understood

ME = "path:lab:doc"


def understood(document: Any, form: str) -> Understood:
    data = document if isinstance(document, bytes) else dumped(document)
    found = understand(data, "lab", "doc")
    assert found is not None
    assert found.format == form
    assert {edge.stated_by for edge in found.relations} == {found.relations[0].stated_by}
    return found


def test_a_package() -> None:
    found = understood(ours.package(), "package")
    assert found.not_understood == ()
    assert edges(found) >= {
        f"{ME} states package:fam-packet ",
        "package:fam-packet guided-by path:lab:repro/fam/README.md /guide",
        "package:fam-packet needs path:lab:data/record.json /dependencies/1",
        "package:fam-packet needs path:lab:patches/engine.bundle /project_patches/items/0",
        f"package:fam-packet pins hub-revision:org/fam@{REVISION} /model/revision",
        "package:fam-packet has-payload path:lab:manifests/fam.sha256 /model/manifest",
        f"package:fam-packet built-from commit:{COMMIT} /runtime/revision",
        f"package:fam-packet pins object:{'d' * 64} /runtime/image",
        "measurement:fam-packet/featured evidenced-by path:lab:data/record.json "
        "/library/featured_metric/evidence",
    }
    headline, profile = found.statements.measurements
    assert (headline.samples[0].value, headline.samples[0].unit) == ("99.99", "tok/s")
    assert [(sample.point_x, sample.value) for sample in profile.samples] == [("1", "2.5"), ("2", "2.0")]
    assert found.statements.lineups[0].selectors["cards"] == 2


def test_a_recipe_and_its_observation() -> None:
    found = understood(ours.recipe(), "recipe")
    assert found.not_understood == ()
    assert edges(found) >= {
        "recipe:rec has-sweep sweep:rec-sweep /speed_sweep_ids/0",
        "recipe:rec about model-instance:inst /model_instance_id",
        "recipe:rec about hardware:card /hardware_id",
        f"recipe:rec pins object:{'d' * 64} /launch/container/digest",
        "recipe:rec evidenced-by url:https://x.org/a /provenance/sources/0/url",
    }
    assert found.statements.lineups[0].selectors == {
        "hardware": "card",
        "model_instance": "inst",
        "cards": 2,
        "engine": "engine",
        "runtime": "1",
        "graph": "full",
        "tp": 2,
        "configured_max_context_tokens": 4096,
        "chat": True,
    }
    board = understood(ours.recipe("reference"), "recipe")
    assert "recipe:rec observed-at leaderboard-run:run-before /launch/run_id" in edges(board)


def test_both_spellings_of_the_list_of_sweeps() -> None:
    document = ours.recipe()
    document["speed_sweeps_ids"] = document.pop("speed_sweep_ids")
    found = understood(document, "recipe")
    assert found.not_understood == ()
    assert "recipe:rec has-sweep sweep:rec-sweep /speed_sweeps_ids/0" in edges(found)


def test_the_context_of_a_leaderboard_is_what_was_configured() -> None:
    told = understood(ours.sweep("leaderboard"), "sweep")
    assert edges(told) >= {
        "sweep:rec-sweep about recipe:rec /recipe_id",
        "sweep:rec-sweep observed-at leaderboard-run:run-before /source/url",
        "measurement:rec-sweep/0 observed-at leaderboard-run:run-before /rows/0",
    }
    row = told.statements.measurements[0]
    assert row.selectors == {"recipe_id": "rec", "output_tokens": 128, "configured_max_context_tokens": 4096}
    assert [(sample.metric, sample.value, sample.unit) for sample in row.samples] == [
        ("decode_tok_s", "50.5", "tok/s"),
        ("ttft_ms_p50", "12.25", "ms"),
    ]
    assert (row.state, row.convention) == ("observed", "")
    own = understood(ours.sweep(), "sweep").statements.measurements[0]
    assert own.selectors["context_tokens"] == 4096


def test_instances_and_hardware() -> None:
    found = understood(ours.instance(), "model-instance")
    assert f"model-instance:inst pins hub-revision:org/fam@{REVISION} /revision" in edges(found)
    assert found.statements.lineups[0].selectors["weights_precision"] == "int4"
    card = understood(ours.hardware(), "hardware")
    assert "hardware:card evidenced-by url:https://x.org/card /sources/0/url" in edges(card)
    assert card.statements.lineups[0].selectors["vram_gb"] == 32


def test_a_page_states_what_a_recipe_states_with_its_lines() -> None:
    found = understood(PAGE.encode(), "recipe-page")
    assert found.not_understood == ("line 24",)
    assert edges(found) >= {
        "recipe:rec has-sweep sweep:rec-sweep line 39",
        "recipe:rec about hardware:card line 31",
        "recipe:rec observed-at leaderboard-run:run-before line 52",
        "sweep:rec-sweep observed-at leaderboard-run:run-before ",
        "measurement:rec-sweep/0 observed-at leaderboard-run:run-before line 28",
        "recipe:rec evidenced-by url:https://board.org/en/runs/run-before line 59",
    }
    row = found.statements.measurements[0]
    assert [(sample.metric, sample.value, sample.location) for sample in row.samples] == [
        ("decode_tok_s", "50.5", "line 28"),
        ("ttft_ms_p50", "1012.3", "line 28"),
    ]
    assert row.selectors["configured_max_context_tokens"] == 4096
    lineup = found.statements.lineups[0]
    assert (lineup.status, lineup.selectors["cards"], lineup.selectors.get("chat")) == ("candidate", 2, None)


def test_a_page_that_says_two_things_of_one_field_has_a_line_left() -> None:
    twice = PAGE.replace("- status\n- candidate", "- status\n- validated")
    assert understood(twice.encode(), "recipe-page").not_understood == ("line 24", "line 41")


def test_a_queue_and_its_receipt() -> None:
    queue = [
        {
            "label": "one",
            "payload": {
                "hfId": "org/fam",
                "modelRevision": REVISION,
                "contextLength": 4096,
                "promptTokens": 112,
                "tokSOut": 101.0,
                "ttftMs": 12.50,
                "hardware": {"gpuCount": 2},
                "engineFlags": {
                    "engineCommit": COMMIT,
                    "moduleSha256": "e" * 64,
                    "priorApprovedRecordId": "run-before",
                    "benchmarkJson": "/data/runs/one/bench.json",
                    "kvCacheDtype": "bf16",
                    "odd": {"a": 1},
                },
            },
        }
    ]
    found = understood(queue, "queue")
    assert found.not_understood == ("/0/payload/engineFlags/odd",)
    assert edges(found) >= {
        "queue:lab:doc compares-to leaderboard-run:run-before /0/payload/engineFlags/priorApprovedRecordId",
        f"queue:lab:doc built-from commit:{COMMIT} /0/payload/engineFlags/engineCommit",
        f"queue:lab:doc pins object:{'e' * 64} /0/payload/engineFlags/moduleSha256",
        f"queue:lab:doc pins hub-revision:org/fam@{REVISION} /0/payload/modelRevision",
        "queue:lab:doc evidenced-by path:lab:/data/runs/one/bench.json /0/payload/engineFlags/benchmarkJson",
    }
    chosen = found.statements.measurements[0].selectors
    assert (chosen["configured_max_context_tokens"], chosen["prompt_tokens"], chosen["cards"]) == (
        4096,
        112,
        2,
    )
    receipt = {
        "schema": "receipt-v1",
        "endpoint": "https://board.org/api",
        "http_status": 201,
        "response": {"id": "run-own", "status": "APPROVED"},
        "payload_path": "data/queue.json",
        "public_verification": {"id": "run-own", "tok_s_out": 101.0, "gpu_count": 2},
    }
    answered = understood(receipt, "receipt")
    assert edges(answered) >= {
        "receipt:lab:doc answers path:lab:data/queue.json /payload_path",
        "receipt:lab:doc observed-at leaderboard-run:run-own /response/id",
        "measurement:lab:doc/public observed-at leaderboard-run:run-own /public_verification/id",
    }


def test_manifests_of_files() -> None:
    lines = f"{'a' * 64}  run/bench.json\n{'b' * 64}  run/log.txt\n".encode()
    found = understand(lines, "lab", "evidence/run.sha256")
    assert found is not None
    manifest = str(found.subject)
    assert manifest.startswith("object:")
    assert edges(found) >= {
        f"{manifest} contains object:{'a' * 64} line 1",
        f"path:lab:evidence/run sealed-by {manifest} ",
        f"path:lab:evidence/run/log.txt is-file object:{'b' * 64} line 2",
        f"path:lab:evidence/run.sha256 states {manifest} ",
    }
    model = understand(lines, "lab", "weights.sha256")
    assert model is not None
    assert not any("sealed-by" in edge for edge in edges(model))
    tagged = understand(f"BLAKE3 (a) = {'c' * 64}\n".encode(), "lab", "x")
    assert tagged is not None
    assert any(f"contains object:blake3:{'c' * 64} line 1" in edge for edge in edges(tagged))
    assert understand(b"deadbeef not a manifest\n", "lab", "x") is None


def test_locks_oracles_and_identities() -> None:
    lock = {
        "schema": "lock-v1",
        "host": {"os": "Linux", "tool_sha256": "f" * 64},
        "source": {"engine": {"commit": COMMIT, "bundle": "patches/engine.bundle"}},
        "native_modules": [
            {"module": "m", "path": "m.so", "sha256": "a" * 64, "observed_build_source_commit": COMMIT}
        ],
        "python_packages": {"torch": "2.0", "observed_full_freeze": "freeze.txt"},
    }
    found = understood(lock, "runtime-lock")
    assert edges(found) >= {
        f"lock:lab:doc pins object:{'a' * 64} /native_modules/0",
        f"object:{'a' * 64} built-from commit:{COMMIT} /native_modules/0",
        f"lock:lab:doc built-from commit:{COMMIT} /source/engine/commit",
        "lock:lab:doc restores-from path:lab:patches/engine.bundle /source/engine/bundle",
        f"lock:lab:doc pins object:{'f' * 64} /host/tool_sha256",
        "lock:lab:doc names path:lab:freeze.txt /python_packages/observed_full_freeze",
    }
    oracle = understood({"schema": "o", "source_sha256": "d" * 64, "rows": [{"prompt_id": "p"}]}, "oracle")
    assert f"{oracle.subject} derived-from object:{'d' * 64} /source_sha256" in edges(oracle)
    compared = understood({"teacher": "/a/bench.json", "all_exact": True, "candidates": []}, "exactness")
    assert f"{compared.subject} compares path:lab:/a/bench.json /teacher" in edges(compared)
    text = (
        f"schema=leg-v1\nengine_commit={COMMIT}\nsuite_sha256={'a' * 64}\nmodel_manifest_sha256={'b' * 64}\n"
        f"{'c' * 64}  /opt/tools/run.sh\n"
    )
    identity = understood(text.encode(), "identity")
    me = str(identity.subject)
    assert edges(identity) >= {
        f"{me} built-from commit:{COMMIT} line 2",
        f"{me} judged-against object:{'a' * 64} line 3",
        f"{me} binds object:{'b' * 64} line 4",
        f"{me} uses object:{'c' * 64} line 5",
    }
    seen = understood(
        {"engine_origin": "/v/e.py", "mapped_libraries": {"x.so": ["/v/x.so"]}}, "runtime-verification"
    )
    assert f"{seen.subject} observed path:lab:/v/x.so /mapped_libraries/x.so" in edges(seen)


def test_attestations() -> None:
    promotion = {
        "schema": "neural.download.promotion-attestation.v1",
        "performance_evidence": {"path": "data/suite.json", "sha256": "a" * 64},
        "identity": {"model_revision": REVISION, "runtime_revision": COMMIT, "optimization_identity": "x"},
        "gates": {"no_quality_loss": True},
        "quality_evidence": [{"path": "data/q.json", "sha256": "b" * 64, "supports": ["no_quality_loss"]}],
    }
    found = understood(promotion, "promotion-attestation")
    assert edges(found) >= {
        "attestation:lab:doc binds path:lab:data/suite.json /performance_evidence/path",
        f"attestation:lab:doc binds object:{'b' * 64} /quality_evidence/0/sha256",
        f"attestation:lab:doc about commit:{REVISION} /identity/model_revision",
    }
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "bench.json", "digest": {"sha256": "c" * 64}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "resolvedDependencies": [{"uri": "git+https://x", "digest": {"gitCommit": COMMIT}}]
            }
        },
    }
    bare = understood(statement, "in-toto")
    wanted = {
        f"attestation:lab:doc binds object:{'c' * 64} /subject/0/digest/sha256",
        f"attestation:lab:doc uses commit:{COMMIT} "
        "/predicate/buildDefinition/resolvedDependencies/0/digest/gitCommit",
    }
    assert edges(bare) >= wanted
    payload = base64.b64encode(json.dumps({**statement, "odd": 1}).encode()).decode()
    envelope = {
        "payloadType": "application/vnd.in-toto+json",
        "payload": payload,
        "signatures": [{"sig": "x"}],
    }
    signed = understood(envelope, "in-toto")
    assert edges(signed) >= wanted
    assert signed.not_understood == ("/payload/odd",)
    for broken in ("!!!", base64.b64encode(b"[1").decode(), base64.b64encode(b"{}").decode()):
        assert understood({**envelope, "payload": broken}, "in-toto").not_understood == ("/payload",)


def test_lanes_and_guides() -> None:
    lanes = {
        "format": "neural-download-coverage-registry-v1",
        "lanes": [
            {
                "id": "l",
                "disposition": "family",
                "family_id": "fam",
                "artifacts": [{"kind": "repro", "path": "r.md"}],
            },
            {"id": "x", "disposition": "excluded", "reason": "an index", "artifacts": []},
        ],
    }
    found = understood(lanes, "coverage-registry")
    assert "path:lab:r.md belongs-to family:fam /lanes/0/artifacts/0/path" in edges(found)
    guides = {
        "format": "b70-reproduction-guide-catalog-v1",
        "guides": [
            {"id": "g", "guide": "r.md", "classification": "lab-replay", "dependency_links": ["p.patch"]}
        ],
    }
    told = understood(guides, "guide-catalog")
    assert edges(told) >= {
        "guide:g described-by path:lab:r.md /guides/0/guide",
        "guide:g needs path:lab:p.patch /guides/0/dependency_links/0",
    }


def test_a_note_undoes_with_its_reason() -> None:
    found = understood(ours.note(), "note")
    assert found.not_understood == ("/target/3",)
    told = {(str(e.source), e.kind, str(e.target), e.reason) for e in found.relations}
    assert told >= {
        ("note:note-1", "withdraws", "measurement:fam/fam-run", "the suite was cut"),
        ("note:note-1", "withdraws", f"object:{'b' * 64}", "the suite was cut"),
        ("note:note-1", "withdraws", "path:lab:notes/plan.md", "the suite was cut"),
        ("note:note-1", "corrects", "family:fam", "/packets/0/quantization: the suite was cut"),
        ("note:note-1", "evidenced-by", "path:lab:notes/why.md", ""),
    }
    by = {
        **ours.note(),
        "kind": "supersedes",
        "target": "measurement:fam/fam-run",
        "by": "measurement:fam/new",
    }
    assert "measurement:fam/new supersedes measurement:fam/fam-run /target" in edges(understood(by, "note"))
    assert "/kind" in understood({**ours.note(), "kind": "forgets"}, "note").not_understood


def test_prose_names_and_counts_but_is_not_believed() -> None:
    prose = (
        "A guide\nRun tools/run.sh; 101.5 tok/s by the legacy convention, see caaaaaaaaaaaaaaaaaaaaaaaa.\n"
    )
    found = understood(prose.encode(), "guide")
    assert edges(found) >= {
        f"{ME} names path:lab:tools/run.sh line 2",
        f"{ME} names leaderboard-run:c{'a' * 24} line 2",
        f"measurement:lab:doc/0 observed-at leaderboard-run:c{'a' * 24} line 2",
    }
    rate = found.statements.measurements[0]
    assert (rate.convention, rate.samples[0].value) == ("", "101.5")
    assert understand(b"INFO 101.5 tok/s from tools/run.sh\n", "lab", "server.log") is None


DOCUMENTS = {
    "package": ours.package,
    "recipe": ours.recipe,
    "sweep": ours.sweep,
    "model-instance": ours.instance,
    "hardware": ours.hardware,
    "note": ours.note,
}


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("wrong", [None, 7, "text", [], {}, [[]], [None], [{}], {"a": {"b": []}}], ids=repr)
def test_everything_of_a_wrong_type_still_reads(form: str, wrong: Any) -> None:
    told_by = {"format", "schema_version"}
    for name in DOCUMENTS[form]().keys() - told_by:
        found = read_any(dumped({**DOCUMENTS[form](), name: wrong}), "lab", "doc").understood
        assert found is not None
        assert found.format == form


def test_every_format_has_a_test_here() -> None:
    told = {name for name, _, _ in FORMATS}
    assert told == {
        *("family", "record", "package", "note", "coverage-registry", "guide-catalog", "recipe", "sweep"),
        *(
            "model-instance",
            "hardware",
            "promotion-attestation",
            "in-toto",
            "queue",
            "receipt",
            "runtime-lock",
        ),
        *("oracle", "exactness", "runtime-verification", "recipe-page", "identity", "checksums", "guide"),
    }
