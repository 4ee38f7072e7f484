"""Derived views of a raw benchmark object: objects of their own that name the bytes they were made from."""

from collections.abc import Sequence
from typing import Final

import msgspec

from provstore.errors import MalformedError
from provstore.evidence.bench import read_bench
from provstore.evidence.conventions import find
from provstore.evidence.metrics import recompute
from provstore.ids import digests

FORMAT: Final = "provstore/bench-view/v1"


class ViewMetric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number under one convention; ``value`` is null where the rows give none, with the reasons."""

    convention: str
    unit: str
    formula: str
    value: str | None
    rows: int
    reasons: tuple[str, ...] = ()


class View(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="format", tag=FORMAT
):
    """Numbers that were recomputed from the rows of a raw benchmark object.

    Attributes:
        source_blake3: hex id of the raw object.
        source_sha256: its SHA-256.
        tool: name and version of the program.
        metrics: one for each convention.
    """

    source_blake3: str
    source_sha256: str
    tool: str
    metrics: tuple[ViewMetric, ...]


def view_of(raw: bytes, conventions: Sequence[str], *, tool: str = "provstore") -> View:
    """Recompute numbers from a raw benchmark object, which stays as it is.

    Raises:
        MalformedError: it is no whole benchmark object.
    """
    read = read_bench(raw)
    errors = [finding for finding in read.findings if finding.severity == "error"]
    if errors:
        raise MalformedError("raw benchmark object", f"{errors[0].location}: {errors[0].message}")
    found = digests(raw)
    metrics = []
    for name in conventions:
        definition = find(name)
        value = recompute(definition, read.rows)
        metrics.append(
            ViewMetric(
                convention=name,
                unit=definition.unit,
                formula=definition.formula(),
                value=None if value.value is None else repr(value.value),
                rows=len(read.rows),
                reasons=tuple(str(reason) for reason in value.failures),
            )
        )
    return View(
        source_blake3=found.blake3.hex(),
        source_sha256=found.sha256.hex(),
        tool=tool,
        metrics=tuple(metrics),
    )
