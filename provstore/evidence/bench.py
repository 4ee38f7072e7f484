"""Benchmark files: run identity, gates as a program stored them, summaries, and one row a request.

The file has no version of its own. Two shapes are known: the earlier one knows only rates over inclusive
events; the later one adds interval rates, prompt classes and a list of promotion failures. A stored boolean
such as ``passed`` is a fact about what a program said; nothing here believes it.
"""

import re
from collections import Counter
from typing import Final, Literal

from provstore import libraries
from provstore.evidence import rows as rows_module
from provstore.evidence.documents import Field, add_facts, check_fields
from provstore.evidence.finding import Extraction, ReaderResult
from provstore.evidence.jsonreader import (
    ABSENT,
    DEFAULT_LIMITS,
    Absent,
    Limits,
    Spoiled,
    Value,
    kind,
    read,
    resolve,
)
from provstore.evidence.rows import Row

Shape = Literal["events", "intervals", "unknown"]
"""``events``: the earlier shape; ``intervals``: the later one; ``unknown``: no benchmark file."""

HEX_64: Final = re.compile(r"[0-9a-f]{64}")
"""A SHA-256 as this field writes it."""

ROW_FIELDS: Final = (
    Field("prompt_index", ("integer",), required=True),
    Field("prompt_id", ("string",), required=True),
    Field("prompt_class", ("string", "null")),
    Field("prompt_sha256", ("string",), required=True),
    Field("prompt_tokens", ("integer", "null")),
    Field("completion_tokens", ("integer", "null"), required=True),
    Field("cached_tokens", ("integer", "null"), required=True),
    Field("token_ids", ("integers", "null")),
    Field("token_id_offsets_s", ("numbers", "null")),
    Field("chunk_offsets_s", ("numbers", "null")),
    Field("chunk_count", ("integer",)),
    Field("stream_token_id_count", ("integer",)),
    Field("ttft_s", ("decimal", "integer", "null")),
    Field("elapsed_s", ("decimal", "integer", "null")),
    Field("post_ttft_s", ("decimal", "integer", "null")),
    Field("request_started_epoch_s", ("decimal", "integer", "null")),
    Field("first_text_epoch_s", ("decimal", "integer", "null")),
    Field("request_ended_epoch_s", ("decimal", "integer", "null")),
    Field("request_id", ("string", "null")),
    Field("finish_reasons", ("strings", "null", "array")),
    Field("usage", ("object", "null")),
    Field("sha256", ("string",), required=True),
    Field("text", ("string", "null")),
)
"""What the format says about the fields of a row."""

IDENTITY_FIELDS: Final = (
    Field("prompt_count", ("integer",), required=True),
    Field("suite_prompt_count", ("integer",)),
    Field("max_tokens", ("integer",), required=True),
    Field("seed", ("integer", "null"), required=True),
    Field("model", ("string",), required=True),
    Field("created_at_utc", ("string",)),
    Field("prompt_classes", ("strings", "null")),
    Field("selected_prompt_ids", ("strings", "null")),
    Field("return_token_ids", ("boolean",)),
    Field("require_natural_eos", ("boolean", "null")),
    Field("allow_screening", ("boolean",)),
    Field("request_extra", ("object", "null")),
)
"""What the format says about the identity of the run."""

TOP_FIELDS: Final = (
    Field("run_identity", ("object",), required=True),
    Field("realistic_final_gate", ("object",)),
    Field("fresh_response_validity", ("object",)),
    Field("summary", ("object",), required=True),
    Field("rows", ("array",), required=True),
    Field("prompt_sha256s", ("strings",)),
    Field("output_sha256s", ("strings",)),
    Field("metric_accounting", ("object",)),
)
"""What the format says about the top of the file."""

COPIES: Final = (
    ("/prompt_sha256s", "prompt_sha256"),
    ("/output_sha256s", "sha256"),
    ("/realistic_final_gate/cached_tokens", "cached_tokens"),
    ("/realistic_final_gate/chunk_counts", "chunk_count"),
    ("/realistic_final_gate/stream_token_id_counts", "stream_token_id_count"),
    ("/realistic_final_gate/finish_reasons", "finish_reasons"),
    ("/fresh_response_validity/cached_tokens", "cached_tokens"),
)
"""Lists that repeat a field of every row."""

USAGE: Final = (
    ("/usage/prompt_tokens", "prompt_tokens"),
    ("/usage/completion_tokens", "completion_tokens"),
    ("/usage/prompt_tokens_details/cached_tokens", "cached_tokens"),
)
"""Fields of a row that the server's usage report states as well."""


class BenchResult(ReaderResult, frozen=True, kw_only=True):
    """A benchmark file.

    Attributes:
        shape: which shape the file has.
        rows: its rows, in the order of the file.
        document: the whole file as typed values.
    """

    shape: Shape
    rows: tuple[Row, ...]
    document: Value | Absent


def read_bench(data: bytes, limits: Limits = DEFAULT_LIMITS) -> BenchResult:
    """Read a benchmark file.

    Args:
        data: the file.
        limits: bounds of what is read.

    Returns:
        Facts whose keys begin with ``bench.``, rows for :func:`provstore.evidence.metrics.recompute`, and
        findings: wrong types, absent fields, copies that differ from the rows, texts that differ from their
        hash.

    Example:
        >>> found = read_bench(b'{"rows": [{"cached_tokens": false}], "run_identity": {}, "summary": {}}')
        >>> found.fact("bench.rows.cached_tokens").value
        False
        >>> [f.code for f in found.findings if f.location == "/rows/0/cached_tokens"]
        ['wrong-type']
    """
    document = read(data, limits)
    out = Extraction()
    out.add(document.findings)
    top = document.value
    found: tuple[Row, ...] = ()
    if top is not ABSENT:
        add_facts(top, "bench", "", out)
        check_fields(top, TOP_FIELDS, "", out)
        check_fields(resolve(top, "/run_identity"), IDENTITY_FIELDS, "/run_identity", out)
        listed = rows_module.at(top)
        out.add(tuple(f for f in listed.findings if f.location != "/rows"))
        found = listed.rows
        for row in found:
            _check_row(row, out)
        _check_copies(top, found, out)
    return BenchResult(
        facts=tuple(out.facts), findings=out.findings(), shape=_shape(top), rows=found, document=top
    )


def _shape(top: Value | Absent) -> Shape:
    if not isinstance(top, dict) or not isinstance(top.get("rows"), list):
        return "unknown"
    signs = ("/run_identity/prompt_classes", "/realistic_final_gate/metric_intervals")
    return "intervals" if any(resolve(top, sign) is not ABSENT for sign in signs) else "events"


def _check_row(row: Row, out: Extraction) -> None:
    check_fields(dict(row.fields), ROW_FIELDS, row.location, out)
    for name in ("prompt_sha256", "sha256"):
        digest = row.get(name)
        if isinstance(digest, str) and not HEX_64.fullmatch(digest):
            out.finding("bad-digest", row.where(name), "must be 64 lower-case hex digits")
    ids, offsets = row.get("token_ids"), row.get("token_id_offsets_s")
    if isinstance(ids, list) and isinstance(offsets, list) and len(ids) != len(offsets):
        message = f"{len(ids)} token ids and {len(offsets)} timestamps"
        out.finding("row-inconsistent", row.where("token_id_offsets_s"), message)
    for count, listed in (("completion_tokens", ids), ("stream_token_id_count", ids)):
        stated = row.get(count)
        if type(stated) is int and isinstance(listed, list) and stated != len(listed):
            # Some engines count an end token that they do not stream, so this alone is no contradiction.
            message = f"states {stated}, the row lists {len(listed)} token ids"
            out.finding("count-differs", row.where(count), message, "warning")
    for pointer, name in USAGE:
        reported, stated = row.get(pointer), row.get(name)
        if reported is not ABSENT and stated is not ABSENT and not same(reported, stated):
            message = f"the usage report says {_say(reported)}, the row says {_say(stated)}"
            out.finding("row-inconsistent", row.where(name), message)
    text, digest = row.get("text"), row.get("sha256")
    if isinstance(text, str) and isinstance(digest, str):
        found = libraries.sha256(text.encode()).hexdigest()
        if found != digest:
            out.finding("text-hash", row.where("text"), f"hashes to {found}, the row states another digest")


def _check_copies(top: Value, found: tuple[Row, ...], out: Extraction) -> None:
    for pointer, name in COPIES:
        listed = resolve(top, pointer)
        if not isinstance(listed, list):
            continue
        if len(listed) != len(found):
            out.finding("copy-differs", pointer, f"{len(listed)} values for {len(found)} rows")
        for index, (item, row) in enumerate(zip(listed, found, strict=False)):
            if not same(item, row.get(name)):
                out.finding("copy-differs", f"{pointer}/{index}", f"is not what {row.where(name)} states")
    stated = resolve(top, "/run_identity/prompt_count")
    if type(stated) is int and stated != len(found):
        out.finding("row-count", "/rows", f"{len(found)} rows; run_identity states {stated} prompts")
    repeated = Counter(row.get("prompt_index") for row in found if type(row.get("prompt_index")) is int)
    for number, times in repeated.items():
        if times > 1:
            out.finding("duplicate-row", "/rows", f"prompt_index {number} occurs {times} times")


def same(left: Value | Absent, right: Value | Absent) -> bool:
    """Say whether two values are equal in type and value; nothing spoiled or absent equals anything.

    Example:
        >>> same(0, 0), same(0, False), same(ABSENT, ABSENT), same([1, None], [1, None])
        (True, False, False, True)
    """
    if type(left) is not type(right) or isinstance(left, Spoiled | Absent):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def _say(value: Value | Absent) -> str:
    return str(value) if type(value) is int else kind(value)
