"""Results of scope questions, coverage matrices and the life of claims."""

from typing import Literal

from provstore.reports.base import Report

Value = str | int | bool


class ScopeGap(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One dimension in which two places are not known to agree; null is a value that is not stated.

    Attributes:
        dimension: its name.
        here: the packet's value.
        there: the value asked about.
        stated_by: hex id of the packet or document that states the packet's value.
        location: where in there.
    """

    dimension: str
    here: Value | None
    there: Value | None
    stated_by: str = ""
    location: str = ""


class ScopeClosure(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A region, stated to be settled or empty, that the asked place lies in."""

    state: str
    reason: str
    selectors: dict[str, tuple[Value, ...]]
    stated_by: str
    location: str


class ScopePoint(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The measured point that is nearest to the asked place.

    Attributes:
        measurement: its node.
        state: what its source calls it.
        values: ``metric = value unit`` texts, numbers as their source prints them.
        differing: dimensions that differ from the asked place, as ``name: value``.
        unstated: dimensions of the asked place that it does not state.
    """

    measurement: str
    state: str
    values: tuple[str, ...]
    differing: tuple[str, ...]
    unstated: tuple[str, ...]


class ScopeProse(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sentence of a family about what transfers; it decides nothing."""

    direction: Literal["transfers", "does-not-transfer"]
    text: str
    stated_by: str
    location: str


class ScopeAnswer(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether one kind of claim of a packet carries to another context.

    Attributes:
        claim: kind of claim.
        of: the packet's claim that is meant, where it has some of this kind.
        answer: ``transfers``, ``does-not-transfer`` or ``unknown``.
        rule: what decided: a rule of the packet or one of the library.
        because: one sentence.
        stated_by: hex id of the packet that states the rule; empty for a rule of the library.
        gaps: dimensions that differ or are not known.
        free: dimensions that were asked about and that the rule does not need.
        assumed: dimensions that were not asked about and are taken to be as they are here.
        closures: what is stated about the asked place.
        nearest: the nearest measured point.
        would_change: evidence that would change the answer.
        prose: sentences of the families that describe the packet.
        notes: what else should be known, such as documents that contradict each other about the packet.
    """

    claim: str
    of: str
    answer: Literal["transfers", "does-not-transfer", "unknown"]
    rule: str
    because: str
    stated_by: str = ""
    gaps: tuple[ScopeGap, ...] = ()
    free: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    closures: tuple[ScopeClosure, ...] = ()
    nearest: ScopePoint | None = None
    would_change: tuple[str, ...] = ()
    prose: tuple[ScopeProse, ...] = ()
    notes: tuple[str, ...] = ()


class CoverageCell(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cell of a coverage matrix, derived.

    Attributes:
        row: value of the row axis.
        column: value of the column axis.
        state: one of the states of cells; ``missing`` is unknown, not zero.
        values: ``metric = value unit`` texts.
        cites: node of the measurement or estimate.
        reason: why it is what it is, in words of a document.
        stated: state that the document wrote into the cell; null when it has no such cell.
        agrees: the document says what the data says.
    """

    row: Value
    column: Value
    state: str
    values: tuple[str, ...]
    cites: str
    reason: str
    stated: str | None
    agrees: bool


class CoverageReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One coverage matrix.

    Attributes:
        view: its node.
        label: its title.
        row_key: selector of the rows.
        column_key: selector of the columns.
        fixed: selectors that hold for every cell.
        cells: row by row.
        counts: how many cells have each state.
        disagreements: cells whose document says otherwise.
        stated_by: hex id of the document.
    """

    view: str
    label: str
    row_key: str
    column_key: str
    fixed: dict[str, Value]
    cells: tuple[CoverageCell, ...]
    counts: dict[str, int]
    disagreements: int
    stated_by: str


class ClaimLife(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of one claim, derived from verdicts and relations.

    Attributes:
        packet: hex id.
        name: a ref of the packet, empty for none.
        claim: name of the claim.
        value: source text.
        unit: its unit.
        convention: how it was counted.
        state: submitted, reproducing, confirmed, adjusted, refuted, stale or withdrawn.
        because: every sign, the deciding ones first.
    """

    packet: str
    name: str
    claim: str
    value: str
    unit: str
    convention: str
    state: str
    because: tuple[str, ...]
