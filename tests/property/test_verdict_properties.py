"""Properties of verdicts: nothing required can go, no digit can change unseen, order means nothing."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from smallrun import POLICY, digest, dump, files, judged, words

from provstore.evidence.serverlog import scan_log
from provstore.gates.evidence import Evidence, Placed, Source
from provstore.gates.extracts import Lines
from provstore.gates.policy import load_policy
from provstore.gates.verdict import Judged, judge_all

UNSEALED = re.sub(r'\[\[gate\]\]\nname = "seal"(\n.+)+\n', "", POLICY)
UNSEALED = re.sub(r'\[\[gate\]\]\nname = "digests"(\n.+)+\n', "", UNSEALED)
"""The policy with integrity waived: no seal, no digest of the benchmark."""

LOADED = load_policy(UNSEALED.encode(), "smallrun.toml")
WHOLE = files()


def quick(planted: dict[str, bytes]) -> Judged:
    """Judge without a store: the same extractors and gates over the same bytes."""
    sources: dict[str, tuple[Source, ...]] = {}
    for extract in LOADED.extract:
        found = []
        for place, data in sorted(planted.items()):
            if not extract.fits(place):
                continue
            if isinstance(extract, Lines):
                reading = scan_log([data], [extract.line_pattern()])
            else:
                reading = extract.read(data)
            found.append(Source(place, object="0" * 64, reading=reading, prefix=extract.prefix))
        sources[extract.name] = tuple(found)
    members = tuple(
        Placed(place, "file", "0" * 64, digest(data), "held") for place, data in sorted(planted.items())
    )
    return judge_all(LOADED, Evidence(sources=sources, members=members))


def codes(found: Judged) -> dict[str, str]:
    return {gate.gate: " ".join(sorted({j.code for j in gate.judgements})) for gate in found.gates}


GOOD = quick(WHOLE)


def test_the_small_run_passes_as_it_is(tmp_path: Path) -> None:
    assert (GOOD.outcome, judged(tmp_path, WHOLE).verdict.outcome) == ("PASS", "PASS")
    assert 'name = "seal"' not in UNSEALED


@pytest.mark.parametrize("place", sorted(WHOLE))
def test_without_any_one_file_it_never_passes(tmp_path: Path, place: str) -> None:
    left = {name: data for name, data in WHOLE.items() if name != place}
    assert quick(left).outcome != "PASS"
    assert judged(tmp_path, left).verdict.outcome != "PASS"


TEXTS = [place for place in WHOLE if place.endswith((".txt", ".log", ".prom")) or place == "runtime/freeze"]
SPARE_LINES = {
    ("run/environment.txt", "HOME="),  # ignored by the policy
    ("runtime/freeze", "numpy"),  # pinned by nothing
}


def lines() -> Iterator[tuple[str, int, str]]:
    for place in TEXTS:
        for number, line in enumerate(WHOLE[place].decode().splitlines()):
            if not any(place == spare and line.startswith(start) for spare, start in SPARE_LINES):
                yield place, number, line


@pytest.mark.parametrize(("place", "number", "line"), list(lines()))
def test_without_any_one_line_it_never_passes(place: str, number: int, line: str) -> None:
    kept = WHOLE[place].splitlines(keepends=True)
    assert kept[number].decode().rstrip("\n") == line
    assert quick(WHOLE | {place: b"".join(kept[:number] + kept[number + 1 :])}).outcome != "PASS"


SPARE_FIELDS = {
    "run/bench.json": {
        "ttft_s",
        "elapsed_s",
        "post_ttft_s",
        "text",
        "prompt_classes",
        "suite_prompt_count",
        "model",
        "request_extra",
        "count",
        "passed",
        "realistic_final_gate",
        "prompt_sha256s",
        "output_sha256s",
        "request_started_epoch_s",
        "request_ended_epoch_s",
    },
    "oracle/tokens": {"source_sha256"},
    "oracle/text": {"source_sha256"},
    "runtime/lock": {"python_packages", "torch"},
    "docs/record": {"bench_sha256"},
}
"""Fields that no gate of this policy needs; a time of one row among others may go, a package that the lock
no longer pins too."""


SPARE_IN_IDLE = {"row_count"}
"""Stated beside the raw rows, which count themselves."""


def members(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every member and of every object in a list."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from members(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            if isinstance(item, dict):
                yield (*path, at)
                yield from members(item, (*path, at))


def removed(value: Any, path: tuple[Any, ...]) -> Any:
    copy = json.loads(json.dumps(value))
    here = copy
    for part in path[:-1]:
        here = here[part]
    del here[path[-1]]
    return copy


def fields() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for place, data in WHOLE.items():
        if data.startswith(b"{"):
            for path in members(json.loads(data)):
                spare = SPARE_FIELDS.get(place, SPARE_IN_IDLE if place.startswith("run/idle/") else set())
                if not set(map(str, path)) & spare:
                    yield place, path


@pytest.mark.parametrize(("place", "path"), list(fields()), ids=lambda item: str(item))
def test_without_any_one_field_or_row_it_never_passes(place: str, path: tuple[Any, ...]) -> None:
    found = quick(WHOLE | {place: dump(removed(json.loads(WHOLE[place]), path))})
    assert found.outcome != "PASS", (place, path)


# One digit

FREE_TEXT = re.compile(
    r"answer \d|prompt-\d|class-\d|HOME=|numpy|version 0\.1\.dev|pid=|/v1/|elapsed_seconds"
)
FREE_KEYS = {"ttft_s", "elapsed_s", "post_ttft_s", "request_started_epoch_s", "request_ended_epoch_s",
             "suite_prompt_count", "observed_utc", "count", "source_sha256", "prompt_classes", "bench_sha256",
             "text", "prompt_class", "prompt_sha256s", "output_sha256s"}  # fmt: skip


def digits(place: str) -> list[int]:
    return [at for at, byte in enumerate(WHOLE[place]) if 48 <= byte <= 57]


def free(place: str, at: int, digit: str) -> bool:
    """Say whether a digit stands where the policy lets it be anything, or anything near."""
    data = WHOLE[place].decode()
    start, end = data.rfind("\n", 0, at) + 1, data.find("\n", at)
    line = data[start : end if end >= 0 else len(data)]
    if place.endswith(".json") or data.startswith("{"):
        return free_member(json.loads(data), json.loads(data[:at] + digit + data[at + 1 :]))
    timed = re.search(r"\d\d-\d\d \d\d:\d\d:\d\d", line)
    inside = timed is not None and timed.start() <= at - start < timed.end()
    return inside or FREE_TEXT.search(line) is not None or "process_start" in line


def free_member(value: Any, other: Any) -> bool:
    """Say whether two documents differ in what the policy does not bind exactly, or only in digits."""
    path = difference(value, other)
    if path is None or any(key in FREE_KEYS for key in path):
        return True
    # Between the ends of the window, and after it, a timestamp has no effect on the rate.
    return "token_id_offsets_s" in path and path[-1] not in (0, 99)


def difference(a: Any, b: Any, path: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return (*path, *(a.keys() - b.keys()))
        parts: Iterator[Any] = iter(a)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        parts = iter(range(len(a)))
    else:
        return None if a == b else path
    for part in parts:
        found = difference(a[part], b[part], (*path, part))
        if found is not None:
            return found
    return None


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(
    place=st.sampled_from(sorted(p for p in WHOLE if digits(p))),
    where=st.integers(0, 10**6),
    digit=st.integers(0, 9),
)
def test_a_changed_digit_is_noticed_or_free_by_rule(place: str, where: int, digit: int) -> None:
    spots = digits(place)
    at = spots[where % len(spots)]
    data = WHOLE[place]
    if data[at] == 48 + digit:
        return
    changed = data[:at] + str(digit).encode() + data[at + 1 :]
    if quick(WHOLE | {place: changed}).outcome == "PASS":
        assert free(place, at, str(digit)), (place, at, data[max(0, at - 40) : at + 20])


# Order


def shuffled(place: str, seed: int) -> bytes:
    data, chance = WHOLE[place], random.Random(seed)
    if not data.startswith(b"{"):
        rows = data.splitlines(keepends=True)
        chance.shuffle(rows)
        return b"".join(rows)

    def mix(value: Any) -> Any:
        if isinstance(value, dict):
            names = list(value)
            chance.shuffle(names)
            return {name: mix(value[name]) for name in names}
        return [mix(item) for item in value] if isinstance(value, list) else value

    return dump(mix(json.loads(data)))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(place=st.sampled_from(sorted(WHOLE)), seed=st.integers(0, 10**6))
def test_the_order_of_keys_and_lines_has_no_meaning(place: str, seed: int) -> None:
    found = quick(WHOLE | {place: shuffled(place, seed)})
    assert codes(found) == codes(GOOD)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(order=st.permutations([0, 1, 2]), oracle=st.permutations([0, 1, 2]))
def test_the_order_of_rows_has_no_meaning(order: list[int], oracle: list[int]) -> None:
    bench = json.loads(WHOLE["run/bench.json"])
    for name in ("rows", "prompt_sha256s", "output_sha256s"):
        bench[name] = [bench[name][at] for at in order]
    tokens = json.loads(WHOLE["oracle/tokens"])
    tokens["rows"] = [tokens["rows"][at] for at in oracle]
    found = quick(WHOLE | {"run/bench.json": dump(bench), "oracle/tokens": dump(tokens)})
    assert codes(found) == codes(GOOD)
    assert [(m.name, m.value) for m in found.metrics] == [(m.name, m.value) for m in GOOD.metrics]


def test_the_quick_way_and_the_store_say_the_same(tmp_path: Path) -> None:
    broken = WHOLE | {"run/status.txt": b"status=FAIL\n"}
    through = judged(tmp_path, broken, UNSEALED)
    assert words(through) == {"status": "FAIL status"}
    assert codes(quick(broken)) == {
        gate.gate: " ".join(sorted({j.code for j in gate.judgements})) for gate in through.verdict.gates
    }
