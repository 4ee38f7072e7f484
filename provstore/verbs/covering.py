"""Coverage matrices and the life of claims, derived from what the store holds."""

from collections import Counter
from collections.abc import Iterator, Mapping

from provstore.errors import NotFoundError
from provstore.graph.claims import Judged, Signs, Successor, life
from provstore.graph.coverage import Found, Sources, matrix
from provstore.graph.index import Index
from provstore.graph.nodes import Node
from provstore.graph.statements import Coverage, Statements
from provstore.ids import RawId, to_raw
from provstore.records.packet import Claim
from provstore.records.verdict import GateOutcome
from provstore.reports.scoped import ClaimLife, CoverageCell, CoverageReport
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.scoping import values
from provstore.verbs.standing import Documents, below, newest_verdicts, stand


def coverage(reader: Reader, index: Index, name: str) -> Iterator[CoverageReport]:
    """Yield the coverage matrices of a family, every cell derived from data.

    Args:
        reader: the store or pack.
        index: its graph, up to date.
        name: id of a family, or ``FAMILY/VIEW`` for one of its matrices.

    Raises:
        NotFoundError: no document describes such a family, or it has no such view.
    """
    family, slash, view = name.partition("/")
    found = Documents(reader, index).about(Node("family", family))
    if not found:
        raise NotFoundError(name, "no document here describes a family of this name; import it first")
    made = 0
    for id, statements in found:
        for one in statements.coverage:
            if not slash or one.key == f"{family}/{view}":
                made += 1
                yield _report(id, one, statements)
    if slash and not made:
        keys = ", ".join(sorted(c.key for _, s in found for c in s.coverage)) or "none"
        raise NotFoundError(name, f"the family has no such coverage view; it has {keys}")


def _report(id: str, view: Coverage, statements: Statements) -> CoverageReport:
    sources = Sources(statements.measurements, statements.estimates, statements.closures)
    cells = tuple(_cell(found) for found in matrix(view, sources))
    return CoverageReport(
        view=str(Node("coverage", view.key)),
        label=view.label,
        row_key=view.row_key,
        column_key=view.column_key,
        fixed=view.fixed,
        cells=cells,
        counts=dict(sorted(Counter(cell.state for cell in cells).items())),
        disagreements=sum(not cell.agrees for cell in cells),
        stated_by=id,
    )


def _cell(found: Found) -> CoverageCell:
    kind = "estimate" if found.state == "estimated" else "measurement"
    return CoverageCell(
        row=found.row,
        column=found.column,
        state=found.state,
        values=values(found.samples),
        cites=f"{kind}:{found.cites}" if found.cites else "",
        reason=found.reason,
        stated=None if found.stated is None else found.stated.state,
        agrees=found.agrees,
    )


def claims(reader: Reader, index: Index, packet: RawId | None = None) -> Iterator[ClaimLife]:
    """Yield the state of every claim of a packet, or of all packets that refs name, sorted by ref.

    Raises:
        NotFoundError, IntegrityError: a record that decides is not here, or damaged.
    """
    named = {id: name for name, id in reversed(reader.refs())}
    wanted: Mapping[RawId, str] = named if packet is None else {packet: named.get(packet, "")}
    for id, name in sorted(wanted.items(), key=lambda item: (item[1], item[0])):
        found = objects.packet(reader, id)
        if not found.claims:
            continue
        undone = stand(reader, index, Node("packet", id.hex())).undone
        successors = tuple(_successors(reader, index, id))
        for claim in found.claims:
            signs = Signs(
                judged=tuple(_judged(reader, id, claim)),
                successors=successors,
                undone=tuple(one for one in undone if one.relation != "failed"),
                rests_on_undone=tuple(below(index, [Node("claim", f"{id.hex()}/{claim.name}")])),
            )
            state = life(signs)
            yield ClaimLife(
                packet=id.hex(),
                name=name,
                claim=claim.name,
                value=claim.value,
                unit=claim.unit,
                convention=claim.convention,
                state=state.state,
                because=state.because,
            )


def _judged(reader: Reader, packet: RawId, claim: Claim) -> Iterator[Judged]:
    for id, verdict in newest_verdicts(reader, packet):
        for gate in verdict.gates:
            if gate.kind == "claim" and gate.gate == f"claim: {claim.name}":
                reason = _first_fault(gate)
                yield Judged(id, verdict.policy_name, gate.outcome, verdict.outcome, reason)


def _first_fault(gate: GateOutcome) -> str:
    return next((j.message for j in gate.judgements if j.outcome not in ("PASS", "NOT-APPLICABLE")), "")


def _successors(reader: Reader, index: Index, packet: RawId) -> Iterator[Successor]:
    number = index.number(Node("packet", packet.hex()))
    for edge in index.into(number, frozenset({"has-parent"})) if number is not None else ():
        child = index.node(edge.node).key
        outcomes = [verdict.outcome for _, verdict in newest_verdicts(reader, to_raw(child))]
        worst = next((word for word in ("FAIL", "INCOMPLETE", "PASS") if word in outcomes), "")
        yield Successor(child, worst)
