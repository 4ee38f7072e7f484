"""What documents state beside relations: measured points, estimates, closures, coverage, scope.

Readers of documents make these, questions and rules read them. A number is the text that its source prints.
"""

from typing import Literal

import msgspec

from provstore.graph.nodes import Node
from provstore.graph.relations import Relation

Scalar = str | int | bool
"""A selector's value; a number with a fraction is its source text."""

State = Literal[
    "lab-measured",
    "lab-screened",
    "community-measured",
    "estimated",
    "closed",
    "quarantined",
    "unsupported",
    "missing",
]
"""State of a measurement or of a cell; ``missing`` is unknown, not zero."""

ClaimKind = Literal["performance", "exactness", "method", "treatment", "accounting"]
"""What kind of statement is asked about: a number, equal output, a way of working, the effect of a change, or
a way of counting."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number.

    Attributes:
        metric: name of the metric.
        value: source text.
        unit: its unit, empty when the metric is unknown here.
        index: position in the list of samples of a run.
        point_x: source text of the place on the axis of a series.
        location: JSON pointer.
    """

    metric: str
    value: str
    unit: str = ""
    index: int | None = None
    point_x: str | None = None
    location: str = ""


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Samples for one exact configuration and workload.

    Attributes:
        key: key of its ``measurement`` node.
        state: what its source calls it; empty when it says nothing.
        selectors: dimensions of the configuration, by name: of the top level and of ``config``.
        samples: numbers, in the order of the source.
        axis: selector that the points of a series differ in.
        workload: the source's words.
        convention: name of the convention of counting, where a structured field or a verdict says so; empty
            when only prose does.
        said: the source's prose about quality and accounting.
        evidence: keys of the nodes of the files it cites.
        location: JSON pointer.
    """

    key: str
    state: str
    selectors: dict[str, Scalar]
    samples: tuple[Sample, ...]
    axis: str = ""
    workload: str = ""
    convention: str = ""
    said: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    location: str = ""


class Closure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A region of the space that is settled or known to be empty.

    Attributes:
        key: key of its ``closure`` node.
        selectors: dimension to the values that it covers.
        state: what the region is, such as ``missing``.
        reason: the source's words.
        evidence: keys of the nodes of the files it cites.
        location: JSON pointer.
    """

    key: str
    selectors: dict[str, tuple[Scalar, ...]]
    state: str
    reason: str
    evidence: tuple[str, ...] = ()
    location: str = ""


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One cell of a coverage matrix as its source writes it.

    Attributes:
        row: value of the row axis.
        column: value of the column axis.
        state: see :data:`State`.
        label: the label that the source wrote; never taken for the value.
        measurement: key of the measurement it cites, empty for none.
        estimate: key of the estimate it cites, empty for none.
        packet: key of the family packet it cites, empty for none.
        point_x: source text of the point of a series it cites.
        selectors: selectors of its own.
        reason: the source's words.
        location: JSON pointer.
    """

    row: Scalar
    column: Scalar
    state: str
    label: str = ""
    measurement: str = ""
    estimate: str = ""
    packet: str = ""
    point_x: str | None = None
    selectors: dict[str, Scalar] = {}
    reason: str = ""
    location: str = ""


class Coverage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A matrix over two selectors with everything else fixed.

    Attributes:
        key: key of its ``coverage`` node.
        label: the source's title.
        row_key: selector of the rows.
        column_key: selector of the columns.
        rows: values of the rows, in order.
        columns: values of the columns, in order.
        fixed: selectors that hold for every cell.
        cells: in the order of the source.
        location: JSON pointer.
    """

    key: str
    label: str
    row_key: str
    column_key: str
    rows: tuple[Scalar, ...]
    columns: tuple[Scalar, ...]
    fixed: dict[str, Scalar]
    cells: tuple[Cell, ...]
    location: str = ""


class Estimate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A number that was computed, not measured; it never answers for a measurement.

    Attributes:
        key: key of its ``estimate`` node.
        selectors: dimensions it was made for.
        metric: name of the metric.
        value: source text.
        low: source text of the lower bound.
        high: source text of the upper bound.
        based_on: keys of the measurements it rests on.
        location: JSON pointer.
    """

    key: str
    selectors: dict[str, Scalar]
    metric: str
    value: str
    low: str = ""
    high: str = ""
    based_on: tuple[str, ...] = ()
    location: str = ""


class ScopeSentence(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Prose of a family about what transfers; shown beside an answer, never the ground of one.

    Attributes:
        direction: which list it stands in.
        text: its words.
        location: JSON pointer.
    """

    direction: Literal["transfers", "does-not-transfer"]
    text: str
    location: str = ""


class Lineup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A packet as a family, package or recipe describes it: its own place in the space.

    Attributes:
        key: key of its node.
        kind: kind of its node, such as ``family-packet``.
        selectors: dimensions that are stated for it, ``revision``, ``cards`` and so on.
        status: the source's word.
        location: JSON pointer.
    """

    key: str
    kind: str
    selectors: dict[str, Scalar]
    status: str = ""
    location: str = ""


class Statements(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that one document states.

    Attributes:
        subject: key of the node that the document is about.
        subject_kind: kind of that node.
        lineups, measurements, estimates, closures, coverage, scope: see their classes.
        dimensions: axes of the space that the document declares, with their values.
        date: when it was, in the source's words; empty when it does not say.
    """

    subject: str
    subject_kind: str
    lineups: tuple[Lineup, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    estimates: tuple[Estimate, ...] = ()
    closures: tuple[Closure, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    scope: tuple[ScopeSentence, ...] = ()
    dimensions: dict[str, tuple[Scalar, ...]] = {}
    date: str = ""


class Understood(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader of documents made of one document.

    Attributes:
        format: name of the format, as ``prov import`` prints it, such as ``family``.
        subject: what the document is about.
        relations: edges it states.
        statements: everything else that later questions need.
        not_understood: JSON pointers, or lines, of members that no field of the format covers.
    """

    format: str
    subject: Node
    relations: tuple[Relation, ...]
    statements: Statements
    not_understood: tuple[str, ...] = ()
