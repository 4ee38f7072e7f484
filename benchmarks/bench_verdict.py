"""How long does a verdict take, beside shell checks of the same statements? (P13)."""

import os
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from measure import Case, Command, alternate, call, timed
from rows import Finding, Goal, Row, inverse, row
from setting import Setting

import provstore
from provstore.ids import to_raw
from provstore.verbs.judging import judge
from provstore.verbs.sealing import seal_spec

ROOT: Final = Path(__file__).resolve().parent.parent

REPEATS: Final = 5
"""Calls inside this process are short and noisy: so many rounds for each round of the commands."""

INSIDE: Final = "judge (in process)"
COMMAND: Final = "prov verify --policy"
LAB: Final = "sha256sum, jq, python3"

P13: Final = Goal("verdict in process, all gates", 60, "ms", bound="reading JSON, Python for each fact")
P13_LAB: Final = Goal(f"{LAB} / verdict in process", 20, at_least=True, bound="the same")

_EVERY_RUN: Final = r"""
cd "$1"
sha256sum --check --quiet --strict "$2"
jq -e '[.rows[].cached_tokens] | all(. == 0 and type == "number")' "$3" >/dev/null
jq -en --slurpfile a "$3" --slurpfile b "$4" \
  '[$a[0].rows[] | [.prompt_index, .token_ids]] == [$b[0].rows[] | [.prompt_index, .token_ids]]' >/dev/null
jq -en --slurpfile a "$3" --slurpfile b "$5" \
  '[$a[0].rows[] | [.prompt_index, .sha256]] == [$b[0].rows[] | [.prompt_index, .sha256]]' >/dev/null
python3 -c '
import json, statistics, sys
rows = json.load(open(sys.argv[1]))["rows"]
last, count, want, tolerance = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5].split("."), float(sys.argv[6])
stated = json.load(open(sys.argv[2]))
for name in want: stated = stated[name]
rate = statistics.median(count / (r["token_id_offsets_s"][last] - r["token_id_offsets_s"][0]) for r in rows)
sys.exit(abs(rate - stated) > tolerance)
' "$3" "$6" "$7" "$8" "$9" "${10}"
test "$(jq -r "${11}" "$6")" = "$(sha256sum < "$3" | cut -d' ' -f1)"
grep -qx "status=${12}" "${13}"
"""
"""Seal, cached tokens, tokens and texts against the oracles, the rate, the record's digest, the status."""

_SMALL: Final = r"""
test "$(grep -c 'rank [0-9] ready: 12 graphs' evidence/server.log)" = 2
grep -qx '3 requests, 3 finished, 0 aborted' evidence/server.log
for line in LANG=C.UTF-8 TZ=UTC; do grep -Fqx "$line" environment.txt; done
"""

_LAGUNA: Final = r"""
cd record-run
for marker in 'Captured audited breakable cudagraph' 'Replayed audited breakable cudagraph' \
  'FP8 W8A16 draft projections'; do test "$(grep -c "$marker" server.log)" = 4; done
test "$(grep -c '"POST /v1/chat/completions' server.log)" = 13
python3 -c '
import sys, tomllib
gates = tomllib.load(open(sys.argv[1], "rb"))["gate"]
(pinned,) = [gate["pinned"] for gate in gates if gate["name"] == "environment"]
here = dict(line.rstrip("\n").split("=", 1) for line in open("service-environment.txt"))
sys.exit(any(here.get(key) != value for key, value in pinned.items()))
' "${14}"
for file in idle-interval/*.json pre-idle.json post-idle.json failure-post-idle.json; do
  jq -e '.status == "passed" and .idle.device_ids == [0, 1, 2, 3]' "$file" >/dev/null
  test "$(jq -r .raw_capture.stdout_sha256 "$file")" = \
    "$(jq -r .raw_capture.stdout_base64 "$file" | base64 -d | sha256sum | cut -d' ' -f1)"
done
python3 -c '
import json
from collections import Counter
def read(path):
    found = Counter()
    for line in open(path):
        if not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            found[series.partition("{")[0]] += float(value)
    return found
before, after = read("metrics-before-suite.prom"), read("metrics-after-suite.prom")
rows = json.load(open("bench.json"))["rows"]
for counter, field in (("vllm:prompt_tokens_total", "prompt_tokens"),
                       ("vllm:generation_tokens_total", "completion_tokens")):
    assert after[counter] - before[counter] == sum(row[field] for row in rows)
assert after["vllm:spec_decode_num_draft_tokens_total"] == 11 * after["vllm:spec_decode_num_drafts_total"]
'
for file in cleanup-status.txt; do test "$(grep -c '=0$' "$file")" = 4; done
"""


class Workload(NamedTuple):
    """A packet with its policy, and the lab's way to check what it states.

    Attributes:
        title: what it is, for the notes.
        spec: what is sealed.
        policy: what judges it.
        variables: values for the spec's paths.
        checks: shell text.
        values: its arguments, from ``$1``.
    """

    title: str
    spec: Path
    policy: Path
    variables: dict[str, str]
    checks: str
    values: tuple[str, ...]


def verdict(setting: Setting) -> Row:
    """Measure P13: the verdict of a packet under a policy, every gate."""
    work = _workload()
    place = setting.fresh("store")
    with closing(provstore.init_store(place)) as store:
        packet = to_raw(seal_spec(store, work.spec, variables=work.variables).packet)
    policy = work.policy.read_bytes()
    command = setting.prov("verify", packet.hex(), "--policy", work.policy, "--store", place)
    # Once for nothing: byte code is compiled, files come into the cache, the verdict is kept.
    timed(command)
    with closing(provstore.open_store(place, writable=False)) as reader:
        found = judge(reader, packet, policy).verdict
        cases = [Case(INSIDE, lambda _: call(lambda: judge(reader, packet, policy)))]
        inside = alternate(cases, setting.rounds * REPEATS, setting.say)
    outside = [Case(COMMAND, lambda _: timed(command))]
    if setting.has("jq") and setting.has("sha256sum"):
        checks = _checks(setting, work)
        outside.append(Case(LAB, lambda _: timed(checks)))
    timings = alternate(outside, setting.rounds, setting.say)
    # One median of many short calls stands for the call in every round.
    calls = sorted(inside.samples[INSIDE])
    timings.samples[INSIDE] = [calls[len(calls) // 2]] * setting.rounds
    findings = [
        Finding(P13, inside.time(INSIDE, 1e3)),
        inverse(P13_LAB, timings, INSIDE, LAB),
    ]
    timings.samples[INSIDE] = inside.samples[INSIDE]
    notes = (
        f"packet: {work.title}; verdict {found.outcome}, {len(found.gates)} gates",
        "the command also verifies every byte of the packet and starts an interpreter",
        "the shell checks the main statements alone: no line, no finding, no types, no timeline, no lock",
    )
    return row("P13", "verdict of a packet", timings, findings, {"gates": len(found.gates)}, notes)


def _checks(setting: Setting, work: Workload) -> Command:
    return setting.command("/bin/bash", "-euc", "set -o pipefail\n" + work.checks, "bash", *work.values)


def _workload() -> Workload:
    corpus = Path(os.environ.get("PROVSTORE_CORPUS") or ROOT.parent / "shared" / "corpus")
    lab = corpus / "b70-lab"
    examples = ROOT / "examples" / "laguna-s-2.1"
    if not lab.is_dir():
        return _small()
    home = lab / "repro" / "laguna-s-2.1-int4-b70-102tps-20260726"
    record = lab / "data" / "laguna-s-2.1-width12-dflash-fp8-record-20260726.json"
    policy = examples / "policy-2026-07.toml"
    values = (
        *(home / "evidence", home / "evidence" / "record-run.sha256", "record-run/bench.json"),
        *(home / "teacher-token-oracle-v1.json", home / "teacher-text-sha256-v1.json", record, "99", "99"),
        *("metric_accounting.conventional_interval_value_tok_s", "1e-9", ".sha256.bench", "PASS"),
        *("record-run/status.txt", policy),
    )
    spec = examples / "packet-102.toml"
    variables = {"corpus": os.fspath(lab)}
    checks = _EVERY_RUN + _LAGUNA
    return Workload("the sealed run of 102 tok/s", spec, policy, variables, checks, _text(values))


def _small() -> Workload:
    run = ROOT / "examples" / "small-run" / "run-1"
    values = (
        *(run, "evidence.sha256", "evidence/bench.json", "tokens-oracle.json", "tokens-oracle.json"),
        *("record.json", "7", "7", "decode.tokens_per_s", "0.00005", ".sha256.bench", "PASS"),
        *("evidence/status.txt",),
    )
    policy = run.parent / "policy.toml"
    checks = _EVERY_RUN + _SMALL
    return Workload("the small run of the examples", run / "packet.toml", policy, {}, checks, _text(values))


def _text(values: tuple[str | Path, ...]) -> tuple[str, ...]:
    return tuple(os.fspath(value) for value in values)
