"""A small registry, made anew each time, and what questions about it print; makes ``queries.md``."""

import contextlib
import io
import json
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from provstore import cli

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples" / "small-run"


INTRODUCTION: Final = """
`prov query QUESTION` asks what has to do with what. Answers come from an index of the graph that is derived
from packets, verdicts and imported documents, kept beside the store, and brought up to date before every
question; a pack, and a store that cannot be written, are asked in memory. What is asked about is a ref, a
digest or 8 or more digits of one, the path of a file (for its bytes), `PACKET/ROLE` with a path below it,
or any node as `KIND:KEY`; where the part before the slash of a key says which family it is of, it may be
left out as long as one family alone has such an id.

Each row names what states it: the id of an object or record, and the place in there. Answers are sorted, so
they come in the same order each time; `--limit N` cuts a page, and `--after ROW` goes on behind the row
that its last line names. `--json` prints one document (`prov schema query-uses` and so on). The functions
are `provstore.asking(store)`, a context, and in it `provstore.uses(asked, "run-7/record")`, `pins`, `why`,
`shared`, `stale`, `convention`, `timeline` and `select`; `closure` and `unpinned` take the store itself.

What follows is printed by a small registry: the two runs of `examples/small-run`, a packet that saw what it
loaded, and four documents: a family, two records and a note.
"""


class Question(NamedTuple):
    """One question of the page.

    Attributes:
        name: its name.
        about: what it answers.
        commands: what is run.
    """

    name: str
    about: str
    commands: tuple[str, ...]


QUESTIONS: Final = (
    Question(
        "uses",
        "Who refers to this object, packet, commit or anything else, directly or through others: "
        "nearest first, then by kind and key, each with the relation to the next thing on the way and "
        "with what states it. `--kind` keeps one kind.",
        (
            "prov query uses small-run-1/oracle/tokens --kind packet",
            "prov query uses small-run-1/runtime/lock",
        ),
    ),
    Question(
        "pins",
        "Before a shared file is edited: which packets hold or pin its bytes, and through what. A file "
        "on disk stands for its bytes as they are now.",
        ("prov query pins tokens-oracle.json",),
    ),
    Question(
        "closure",
        "What a packet needs, role by role and for each kind of replay, and what of it is not here; "
        "with `--missing` only roles that lack bytes, with where they can be had. `audit` reads the "
        "stored run; `host-exact` runs it again on the host it was made on; `artifact-exact` runs the "
        "same bytes elsewhere; `source-equivalent` builds the sources anew and proves nothing about "
        "bytes. Bytes that are kept outside count as not here, with the place where they were seen. A "
        "size that nobody stated is counted, never taken for zero; a kind of evidence that the packet "
        "names nothing of is said to be absent.",
        ("prov query closure small-run-1 --missing",),
    ),
    Question(
        "why",
        "A shortest way between two things, each relation with what states it. A way along the "
        "relations as they are stated is preferred, then one against them, then one that goes both "
        "ways; nothing connects them: exit code 1.",
        (
            "prov query why small-run-1 small-run-2/weights/target",
            "prov query why note:clock record:lab:november.json",
        ),
    ),
    Question(
        "shared",
        "What two packets both hold, pin, or come from. A directory that both have stands for its members.",
        ("prov query shared small-run-1 small-run-2",),
    ),
    Question(
        "unpinned",
        "What a run was seen to load, minus what its locks and its native and Python members pin. "
        "Nobody looked: exit code 3; something is not pinned: exit code 1.",
        (
            "prov query unpinned small-run-1",
            "prov query unpinned loaded",
        ),
    ),
    Question(
        "stale",
        "What rests on something that was superseded, corrected, withdrawn or quarantined by a "
        "document, on a packet that a kept verdict fails (and none under the same policy passes), or on "
        "a run that was never exact. What fell comes first, then everything that rests on it; `--kind "
        "claim` keeps claims.",
        ("prov query stale",),
    ),
    Question(
        "convention",
        "Numbers that are counted in a convention, as far as a claim or a field of a document says so; "
        "prose does not count.",
        (
            "prov query convention seven-intervals",
            "prov query convention legacy-inclusive-events",
        ),
    ),
    Question(
        "timeline",
        "Numbers over time, by metric, unit and convention, which are never held against each other. "
        "`best` is greater than everything earlier of the same workload and place. NAME is a metric, or "
        "the beginning of a ref or of a part of a document's name.",
        ("prov query timeline decode_tok_s",),
    ),
    Question(
        "select",
        "Packets and measurements by their dimensions, and by `metric`, `value`, `unit`, `convention`, "
        "`state`, `kind`, `subject`. Operators are `=`, `!=`, `<`, `<=`, `>`, `>=`; what is not stated "
        "fulfils none.",
        (
            "prov query select --where 'cards>=2' --where metric=decode_tok_s",
            "prov query select --where context=4096",
        ),
    ),
    Question(
        "coverage",
        "The coverage matrices of a family, every cell found from measurements, estimates and closures; "
        "where the document wrote something else into a cell, `!` says so. A view that fixes no selectors "
        "takes only what its cells cite. `FAMILY/VIEW` is one matrix.",
        ("prov query coverage small",),
    ),
    Question(
        "claims",
        "The state that each claim is in, of one packet or of all that refs name: submitted, reproducing, "
        "confirmed, adjusted, refuted, stale or withdrawn. It follows from kept verdicts, from packets that "
        "continue this one, and from what documents take back; nobody types it.",
        ("prov query claims", "prov query claims small-run-1"),
    ),
)
"""Every question, in the order of the page."""

FAMILY: Final = {
    "format": "neural-download-model-family-v1",
    "id": "small",
    "run_measurements": [
        {
            "id": "two-cards",
            "state": "lab-measured",
            "config": {"cards": 2},
            "metrics": {"decode_tok_s": [10.5]},
            "evidence": ["november.json"],
        }
    ],
    "series_measurements": [
        {
            "id": "by-context",
            "state": "lab-screened",
            "config": {"cards": 2},
            "axis": "context",
            "points": [{"x": 1024, "decode_tok_s": 9.5}, {"x": 4096, "decode_tok_s": 4.25}],
        }
    ],
    "coverage_views": [
        {
            "id": "contexts",
            "label": "contexts",
            "row_axis": {"key": "context", "label": "context"},
            "column_axis": {"key": "cards", "label": "cards"},
            "rows": [4096],
            "columns": [2],
            "fixed_selectors": {},
            "cells": {"4096:2": {"state": "lab-screened", "evidence_id": "by-context", "point_x": 4096}},
        }
    ],
}

RECORDS: Final = {
    "november.json": {
        "schema": "small-record-v1",
        "date": "2026-11-03",
        "record": {"value_tok_s": 10.5},
        "metric_accounting": {
            "published_convention": "legacy-inclusive-events",
            "published_value_tok_s": 10.6,
            "timestamped_events": 106,
            "inter_token_intervals": 105,
            "conventional_interval_value_tok_s": 10.5,
        },
    },
    "october.json": {
        "schema": "small-record-v1",
        "date": "2026-10-01",
        "record": {"value_tok_s": 10},
        "metric_accounting": {
            "published_convention": "legacy-inclusive-events",
            "published_value_tok_s": 11,
            "timestamped_events": 11,
            "inter_token_intervals": 10,
            "conventional_interval_value_tok_s": 10,
        },
    },
}

NOTE: Final = {
    "format": "provstore/note/v1",
    "id": "clock",
    "date": "2026-12-01",
    "author": "an engineer",
    "kind": "withdraws",
    "target": ["measurement:small/two-cards"],
    "reason": "the clock of the host was set during the run",
    "evidence": ["november.json"],
}

LOADED: Final = {"mapped_libraries": {"engine.so": ["/opt/engine.so"], "codec.so": ["/usr/lib/codec.so"]}}

LOADED_SPEC: Final = """
format = "provstore/packet-spec/v1"
name = "loaded"

[[entry]]
role = "run"
kind = "evidence"
path = "run"

[[entry]]
role = "lock"
kind = "runtime-lock"
path = "lock.json"
"""


def answers() -> dict[str, str]:
    """Run every command of the page in a registry of its own; return what each prints."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            _registry(Path(place))
            return {command: _run(command) for question in QUESTIONS for command in question.commands}
        finally:
            os.chdir(before)


def _registry(place: Path) -> None:
    lab = place / "lab"
    plain = {"small.json": FAMILY, "clock.json": NOTE, **RECORDS}
    lab.mkdir()
    for name, document in plain.items():
        (lab / name).write_text(json.dumps(document, indent=2))
    (place / "tokens-oracle.json").write_bytes((EXAMPLES / "run-1/tokens-oracle.json").read_bytes())
    (place / "run").mkdir()
    (place / "run/runtime-verification.json").write_text(json.dumps(LOADED))
    (place / "lock.json").write_text(json.dumps({"files": [{"path": "engine.so", "sha256": "0" * 64}]}))
    (place / "loaded.toml").write_text(LOADED_SPEC)
    _run("prov init .prov")
    for run in ("run-1", "run-2"):
        _run(f"prov seal {EXAMPLES}/{run}/packet.toml")
    _run("prov seal loaded.toml")
    _run("prov import lab --root lab")


def _run(command: str) -> str:
    """Run one command in this process and return its output; an exit code other than 0 is shown."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main(shlex.split(command)[1:])
    if code not in (0, 1, 3):
        raise SystemExit(f"{command} ends with exit code {code}")
    text = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    return text if code == 0 else f"{text}[exit code {code}]\n"


def page_lines() -> Iterator[str]:
    """Yield the page below its title."""
    found = answers()
    for question in QUESTIONS:
        yield from ["", f"## {question.name}", "", question.about]
        for command in question.commands:
            yield from ["", "```console", f"$ {command}", *found[command].splitlines(), "```"]
