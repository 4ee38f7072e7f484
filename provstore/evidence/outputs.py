"""What two runs put out: benchmarks and oracles held against each other, prompt by prompt."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, Literal

from provstore.evidence.bench import COPIES, BenchResult, same
from provstore.evidence.comparing import difference
from provstore.evidence.contrasting import Contrast, alike, by_pointer, plain, text_of
from provstore.evidence.folding import passing
from provstore.evidence.jsonreader import ABSENT, Absent, Value
from provstore.evidence.metrics import Definition, MetricValue, recompute
from provstore.evidence.oracle import OracleResult
from provstore.evidence.recognising import Layer
from provstore.evidence.rows import Row
from provstore.reports import MetricChange, RowsChange

COUNTS: Final = (
    "completion_tokens",
    "cached_tokens",
    "chunk_count",
    "stream_token_id_count",
    "finish_reasons",
    "usage",
)
"""Row fields that count events or say how an output ended."""

INPUTS: Final = ("prompt_sha256", "prompt_class", "prompt_tokens")
"""Row fields that say what was asked."""

_NAMES_OF_ROWS: Final = ("prompt_id", "prompt_index")

_OUTPUTS: Final = ("token_ids", "sha256", "text", "text_preview")

_DERIVED: Final = ("/rows/", "/summary", *(pointer for pointer, _ in COPIES))


def contrast_bench(
    out: Contrast, a: BenchResult, b: BenchResult, definitions: Iterable[Definition], names: Mapping[str, str]
) -> None:
    """Compare two benchmarks: inputs, outputs, counts, metrics under each convention, and what else moved.

    Args:
        out: receives what differs.
        a: the first one.
        b: the second one.
        definitions: the conventions to recompute.
        names: name of the claim about each convention.
    """
    first, second = _by_name(a.rows, b.rows)
    stored = _others(out, a, b)
    if not a.rows or not b.rows:
        out.cannot("a side has no rows")
        return
    if first.keys() != second.keys():
        missing = ", ".join(plain(str(key)) for key in list(first.keys() ^ second.keys())[:3])
        out.change("prompts", str(len(first)), f"{len(second)}, others: {missing}", "identity")
        out.cannot("the rows are of other prompts, so metrics are not compared")
    both = [(str(key), first[key], second[key]) for key in first if key in second]
    for prompt, x, y in both:
        for field in INPUTS:
            out.values(f"{field}.{prompt}", x.get(field), y.get(field), "identity")
        out.token_lists(prompt, _ints(x.get("token_ids")), _ints(y.get("token_ids")))
        text = "text" if x.get("sha256") is ABSENT and y.get("sha256") is ABSENT else "sha256"
        out.values(f"text.{prompt}", x.get(text), y.get(text), "result")
        for field in COUNTS:
            out.values(f"{field}.{prompt}", x.get(field), y.get(field), "result")
    _other_fields(out, both)
    moved = bool(out.rows) or first.keys() != second.keys()
    if first.keys() == second.keys():
        values = [[side[key] for key in first] for side in (first, second)]
        for definition in definitions:
            moved |= _metric(out, definition, values, names)
    if stored and moved:
        out.notes.append(
            f"{out.place}: {len(stored)} stored summary values differ too; they are recomputed here"
        )
    for key, before, after in stored if not moved else ():
        out.change(key, before, after, "result")


def contrast_oracles(out: Contrast, a: OracleResult, b: OracleResult) -> None:
    """Compare two oracles prompt by prompt: tokens where both have them, else texts."""
    sides = [
        {str(row.prompt_id if row.prompt_id is not None else row.prompt_index): row for row in side.rows}
        for side in (a, b)
    ]
    if not a.rows or not b.rows:
        out.cannot("a side has no rows")
    for prompt in dict.fromkeys((*sides[0], *sides[1])):
        x, y = sides[0].get(prompt), sides[1].get(prompt)
        if x is None or y is None:
            out.change(f"prompt.{prompt}", None if x is None else "stated", None if y is None else "stated")
            continue
        out.values(
            f"prompt_sha256.{prompt}", _or_absent(x.prompt_sha256), _or_absent(y.prompt_sha256), out.layer
        )
        out.values(f"text.{prompt}", _or_absent(x.text_sha256), _or_absent(y.text_sha256), out.layer)
        if x.token_ids or y.token_ids:
            out.token_lists(prompt, x.token_ids, y.token_ids)


def _by_name(a: Sequence[Row], b: Sequence[Row]) -> tuple[dict[Hashable, Row], dict[Hashable, Row]]:
    """Return both sides' rows by the first field that names each row of both, else by position."""
    for field in _NAMES_OF_ROWS:
        sides = []
        for rows in (a, b):
            named: dict[Hashable, Row] = {}
            for row in rows:
                name = row.get(field)
                if isinstance(name, str) or type(name) is int:
                    named[name] = row
            sides.append(named)
        if len(sides[0]) == len(a) and len(sides[1]) == len(b):
            return sides[0], sides[1]
    return dict(enumerate(a)), dict(enumerate(b))


def _others(out: Contrast, a: BenchResult, b: BenchResult) -> list[tuple[str, str | None, str | None]]:
    """Compare what stands outside the rows; returns stored summary values, which follow from rows."""
    sides = [by_pointer(side) for side in (a, b)]
    stored = []
    for pointer in dict.fromkeys((*sides[0], *sides[1])):
        x, y = sides[0].get(pointer), sides[1].get(pointer)
        if x is not None and y is not None and alike(x, y):
            continue
        texts = [None if fact is None else text_of(fact) for fact in (x, y)]
        if pointer.startswith("/summary"):
            stored.append((pointer, texts[0], texts[1]))
        elif not pointer.startswith(_DERIVED):
            out.change(pointer, texts[0], texts[1], _bench_layer(pointer, texts))
    return stored


def _bench_layer(pointer: str, texts: list[str | None]) -> Layer:
    if not pointer.startswith("/run_identity/") or pointer.startswith("/run_identity/created"):
        return "result"
    where = any(text is not None and "://" in text for text in texts)
    return "environment" if where else "identity"


def _other_fields(out: Contrast, both: Sequence[tuple[str, Row, Row]]) -> None:
    """Count the rows in which a field differs that nothing else compares; times of day are left out."""
    told = {*INPUTS, *COUNTS, *_OUTPUTS, *_NAMES_OF_ROWS}
    fields = dict.fromkeys(name for _, x, y in both for name in (*x.fields, *y.fields) if name not in told)
    for field in fields:
        if passing(field, "", ""):
            continue
        differing = sum(not same(x.get(field), y.get(field)) for _, x, y in both)
        if differing:
            out.rows.append(
                RowsChange(role=out.role, path=out.path, field=plain(field), rows=differing, of=len(both))
            )


def _metric(
    out: Contrast, definition: Definition, sides: Sequence[Sequence[Row]], names: Mapping[str, str]
) -> bool:
    """Add one metric that a side has; returns whether it or one of its rows differs."""
    first, second = (recompute(definition, rows) for rows in sides)
    if first.value is None and second.value is None:
        return False
    if first.value is None or second.value is None:
        which = "first" if first.value is None else "second"
        failures = (first if first.value is None else second).failures
        why = failures[0].code if failures else "no value"
        out.cannot(f"{definition.name} cannot be recomputed on the {which} side ({why})")
        return True
    changed = sum(x.value != y.value for x, y in zip(first.rows, second.rows, strict=True))
    out.metrics.append(
        metric_change(out, "recomputed", names.get(definition.name, ""), first, second, changed)
    )
    return bool(changed)


def metric_change(
    out: Contrast,
    basis: Literal["recomputed", "claim"],
    name: str,
    first: MetricValue,
    second: MetricValue,
    changed: int = 0,
) -> MetricChange:
    """Return both values of one metric with their difference.

    Raises:
        IncomparableError: other conventions or units, or one has no value.
    """
    off = difference(first, second)
    return MetricChange(
        basis=basis,
        role=out.role,
        path=out.path,
        name=name,
        convention=first.convention,
        unit=first.unit,
        from_=first.text,
        to=second.text,
        delta=repr(off.delta),
        percent=None if off.percent is None else repr(off.percent),
        rows=len(first.rows),
        rows_changed=changed,
    )


def _ints(value: Value | Absent) -> list[int] | None:
    if isinstance(value, list) and all(type(item) is int for item in value):
        return [item for item in value if isinstance(item, int)]
    return None


def _or_absent(value: str | None) -> str | Absent:
    return ABSENT if value is None else value
