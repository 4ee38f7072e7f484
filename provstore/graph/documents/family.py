"""Reader of model families (``neural-download-model-family-v1``)."""

from collections.abc import Iterator
from typing import Final, Literal

from provstore.evidence.jsonreader import Value, child
from provstore.graph.documents import naming
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.family_shape import COLUMN_AXIS, FORMAT, ROW_AXIS, SHAPE, UNITS
from provstore.graph.documents.values import is_sha256, number, part, parts, scalars, selectors, text, texts
from provstore.graph.nodes import Node, NodeKind
from provstore.graph.places import equal
from provstore.graph.statements import (
    Cell,
    Closure,
    Coverage,
    Estimate,
    Lineup,
    Measurement,
    Sample,
    Scalar,
    ScopeSentence,
    Understood,
)

_SELECTORS: Final = (
    "revision",
    "artifact_id",
    "variant",
    "quantization",
    "runtime",
    "runtime_family",
    "model_revision",
    "profile_id",
    "measurement_class",
    "promotion_status",
)
_PACKET_SELECTORS: Final = (
    "revision",
    "draft_revision",
    "artifact_id",
    "variant",
    "quantization",
    "runtime",
    "cards",
    "tp",
)
_TO_NODES: Final[dict[str, NodeKind]] = {
    "revision": "revision",
    "artifact_id": "artifact",
    "packet": "family-packet",
}
"""Selectors whose values are ids of things in the same family."""


def is_family(value: Value) -> bool:
    """Say whether a document is a family."""
    return isinstance(value, dict) and value.get("format") == FORMAT


def read_family(value: Value, source: Source) -> Understood:
    """Return what a family states; whatever has another type than the format says is passed over."""
    draft = Draft(source, "family")
    draft.covered(value, SHAPE)
    document = value if isinstance(value, dict) else {}
    return _Reading(draft, document).run()


class _Reading:
    """One reading of one family."""

    def __init__(self, draft: Draft, document: dict[str, Value]) -> None:
        self.draft = draft
        self.document = document
        self.family = draft.subject("family", text(document, "id"))

    def run(self) -> Understood:
        self.lineage()
        for place, item in parts(self.document, "packets"):
            self.packet(item, place)
        for group in ("run_measurements", "series_measurements"):
            for place, item in parts(self.document, group):
                self.measurement(item, place)
        for place, item in parts(self.document, "featured_results"):
            self.cites(self.family, item, "measurement_id", "measurement", place)
        for place, item in parts(self.document, "views"):
            self.view(item, place)
        for place, item in parts(self.document, "coverage_views"):
            self.coverage(item, place)
        for place, item in parts(self.document, "coverage_contracts"):
            self.contract(item, place)
        for index, (place, item) in enumerate(parts(self.document, "family_closures")):
            self.closure(item, place, text(item, "id") or f"closure-{index}")
        for place, item in parts(self.document, "estimates"):
            self.estimate(item, place)
        self.prose()
        return self.draft.finish(self.family)

    def own(self, kind: NodeKind, id: str, place: str) -> Node:
        """Return the node of a part of the family, tied to it."""
        node = Node(kind, f"{self.family.key}/{id}")
        self.draft.relate(node, "belongs-to", self.family, place)
        return node

    def evidence(self, node: Node, item: dict[str, Value], place: str) -> tuple[str, ...]:
        """Tie a node to the files that it names as its evidence; return their keys."""
        return self.draft.cite(node, "evidenced-by", item.get("evidence"), child(place, "evidence"))

    def known(self, kind: NodeKind, id: str) -> Node:
        """Return the node that an id refers to in this family, declared or not."""
        return Node(kind, f"{self.family.key}/{id}")

    def lineage(self) -> None:
        for group in ("weight_revisions", "model_variants"):
            for place, item in parts(self.document, group):
                node = self.own("revision", text(item, "id") or place, place)
                self.draft.relate(self.family, "has-revision", node, place)
                hub = self.stored(node, item, place)
                if hub is not None:
                    self.draft.relate(self.family, "has-revision", hub, child(place, "revision"))
                for below, artifact in parts(item, "quantized_artifacts", place):
                    made = self.own("artifact", text(artifact, "id") or below, below)
                    self.draft.relate(node, "has-artifact", made, below)
                    self.stored(made, artifact, below)
        for place, item in parts(self.document, "auxiliary_artifacts"):
            node = self.own("artifact", text(item, "id") or place, place)
            self.draft.relate(self.family, "has-auxiliary", node, place)
            hub = self.stored(node, item, place)
            if hub is not None:
                self.draft.relate(self.family, "has-auxiliary", hub, child(place, "revision"))

    def stored(self, node: Node, item: dict[str, Value], place: str) -> Node | None:
        """Tie weights to their Hub revision, manifest, evidence and grades; return the Hub revision."""
        hub = self.draft.hub(text(item, "repository"), text(item, "revision"), child(place, "revision"))
        if hub is not None:
            self.draft.relate(node, "pins", hub, child(place, "revision"))
        self.draft.cite(node, "has-payload", item.get("model_manifest"), child(place, "model_manifest"))
        self.evidence(node, item, place)
        self.grades(node, item, place)
        return hub

    def grades(self, node: Node, item: dict[str, Value], place: str) -> None:
        for name in part(item, "grades"):
            found = part(part(item, "grades"), name)
            below = child(child(place, "grades"), name)
            grade = Node("grade", f"{node.key}:{name}")
            self.draft.relate(grade, "belongs-to", node, below, text(found, "grade"))
            self.draft.cite(grade, "evidenced-by", found.get("evidence"), child(below, "evidence"))

    def cites(self, node: Node, item: dict[str, Value], name: str, kind: NodeKind, place: str) -> str:
        """Tie a node to the part of the family that a member names; return its key, or the empty text."""
        id = text(item, name)
        if not id:
            return ""
        target = self.known(kind, id)
        self.draft.relate(node, "cites", target, child(place, name))
        return target.key

    def packet(self, item: dict[str, Value], place: str) -> None:
        id = text(item, "id") or place
        node = self.own("family-packet", id, place)
        for name, kind in (
            ("revision", "revision"),
            ("draft_revision", "artifact"),
            ("artifact_id", "artifact"),
        ):
            if text(item, name):
                target = self.known("revision" if kind == "revision" else "artifact", text(item, name))
                self.draft.relate(node, "pins", target, child(place, name))
        self.draft.cite(node, "described-by", item.get("manifest"), child(place, "manifest"))
        self.evidence(node, item, place)
        self.grades(node, item, place)
        featured, below = part(item, "featured_metric"), child(place, "featured_metric")
        self.cites(node, featured, "measurement_id", "measurement", below)
        self.draft.cite(node, "evidenced-by", featured.get("evidence"), child(below, "evidence"))
        if id == text(self.document, "primary_packet_id"):
            self.draft.relate(self.family, "names", node, "/primary_packet_id", "primary packet")
        self.draft.lineups.append(
            Lineup(
                key=node.key,
                kind=node.kind,
                selectors={"packet": id, **selectors(item, *_PACKET_SELECTORS)},
                status=text(item, "status"),
                location=place,
            )
        )

    def measurement(self, item: dict[str, Value], place: str) -> None:
        node = self.own("measurement", text(item, "id") or place, place)
        for name in ("revision", "artifact_id"):
            if text(item, name):
                self.draft.relate(
                    node, "about", self.known(_TO_NODES[name], text(item, name)), child(place, name)
                )
        stated = _agreed(
            selectors(item, *_SELECTORS),
            *(selectors(part(item, group)) for group in ("config", "identity", "runtime_identity")),
        )
        said = [text(item, name) for name in ("quality_scope", "quality")]
        said += [text(note, "label") for _, note in parts(item, "sample_annotations")]
        self.draft.measurements.append(
            Measurement(
                key=node.key,
                state=text(item, "state"),
                selectors=stated,
                samples=tuple(_samples(item, place)),
                axis=text(item, "axis"),
                workload=text(item, "workload"),
                said=tuple(filter(None, said)),
                evidence=self.draft.cite(
                    node, "evidenced-by", item.get("evidence"), child(place, "evidence")
                ),
                location=place,
            )
        )

    def view(self, item: dict[str, Value], place: str) -> None:
        node = self.own("view", text(item, "id") or place, place)
        for below, series in parts(item, "series", place):
            for index, id in enumerate(texts(series.get("measurement_ids"))):
                target = self.known("measurement", id)
                self.draft.relate(node, "plots", target, f"{below}/measurement_ids/{index}")

    def coverage(self, item: dict[str, Value], place: str) -> None:
        node = self.own("coverage", text(item, "id") or place, place)
        self.evidence(node, item, place)
        rows, columns = scalars(item.get("rows")), scalars(item.get("columns"))
        names = {f"{_key(row)}:{_key(column)}": (row, column) for row in rows for column in columns}
        cells = []
        for name, cell in part(item, "cells").items():
            if isinstance(cell, dict):
                row, column = names.get(name) or _split(name)
                below = child(child(place, "cells"), name)
                cells.append(self.cell(node, cell, row, column, below))
        self.draft.coverage.append(
            Coverage(
                key=node.key,
                label=text(item, "label"),
                row_key=text(part(item, "row_axis"), "key") or ROW_AXIS,
                column_key=text(part(item, "column_axis"), "key") or COLUMN_AXIS,
                rows=rows,
                columns=columns,
                fixed=selectors(part(item, "fixed_selectors")),
                cells=tuple(cells),
                location=place,
            )
        )

    def cell(self, view: Node, cell: dict[str, Value], row: Scalar, column: Scalar, place: str) -> Cell:
        self.draft.cite(view, "evidenced-by", cell.get("evidence"), child(place, "evidence"))
        return Cell(
            row=row,
            column=column,
            state=text(cell, "state"),
            label=text(cell, "label"),
            measurement=self.cites(view, cell, "evidence_id", "measurement", place),
            estimate=self.cites(view, cell, "estimate_id", "estimate", place),
            packet=self.cites(view, cell, "packet_id", "family-packet", place),
            point_x=number(cell.get("point_x")),
            selectors=selectors(part(cell, "selectors")),
            reason=text(cell, "reason"),
            location=place,
        )

    def contract(self, item: dict[str, Value], place: str) -> None:
        """Tie a contract to what its rules cite; its cells are expanded by those who ask for them."""
        node = self.own("coverage", text(item, "id") or place, place)
        for below, rule in parts(item, "rules", place):
            self.draft.cite(node, "evidenced-by", rule.get("evidence"), child(below, "evidence"))
            self.cites(node, rule, "evidence_id", "measurement", below)
            self.cites(node, rule, "estimate_id", "estimate", below)
            self.cites(node, rule, "packet_id", "family-packet", below)

    def closure(self, item: dict[str, Value], place: str, id: str) -> None:
        node = self.own("closure", id, place)
        chosen = {name: scalars(value) for name, value in part(item, "selectors").items()}
        for name, values in chosen.items():
            for value in values if name in _TO_NODES else ():
                target = self.known(_TO_NODES[name], str(value))
                self.draft.relate(node, "about", target, child(child(place, "selectors"), name))
        self.draft.closures.append(
            Closure(
                key=node.key,
                selectors={name: values for name, values in chosen.items() if values},
                state=text(item, "state"),
                reason=text(item, "reason"),
                evidence=self.draft.cite(
                    node, "evidenced-by", item.get("evidence"), child(place, "evidence")
                ),
                location=place,
            )
        )

    def estimate(self, item: dict[str, Value], place: str) -> None:
        node = self.own("estimate", text(item, "id") or place, place)
        basis = texts(item.get("basis_measurement_ids"))
        for index, id in enumerate(basis):
            target = self.known("measurement", id)
            self.draft.relate(node, "based-on", target, f"{place}/basis_measurement_ids/{index}")
        for id in texts(item.get("supersedes")):
            target = self.known("estimate", id)
            self.draft.relate(node, "supersedes", target, child(place, "supersedes"), "a later estimate")
        snapshot = part(item, "engine").get("snapshot_sha256")
        if isinstance(snapshot, str) and is_sha256(snapshot):
            self.draft.relate(
                node, "uses", Node("object", snapshot), child(place, "engine") + "/snapshot_sha256"
            )
        self.draft.cite(node, "evidenced-by", item.get("record"), child(place, "record"))
        bounds = part(item, "interval") or item
        self.draft.estimates.append(
            Estimate(
                key=node.key,
                selectors=selectors(part(item, "selectors")),
                metric=text(item, "metric"),
                value=number(item.get("value")) or "",
                low=number(bounds.get("low")) or "",
                high=number(bounds.get("high")) or "",
                based_on=tuple(self.known("measurement", id).key for id in basis),
                location=place,
            )
        )

    def prose(self) -> None:
        """Take what the family says as a whole: dimensions, sentences of scope, evidence."""
        for name, value in part(self.document, "dimensions").items():
            self.draft.dimensions[name] = scalars(value)
        self.sentences("transfers", "transfers")
        self.sentences("does-not-transfer", "does_not_transfer")
        for name in ("architecture", "transfer_scope"):
            value = part(self.document, name).get("evidence")
            self.draft.cite(self.family, "evidenced-by", value, f"/{name}/evidence")
        for name in part(self.document, "model_signals"):
            value = part(part(self.document, "model_signals"), name).get("evidence")
            place = child("/model_signals", name)
            self.draft.cite(self.family, "evidenced-by", value, child(place, "evidence"))

    def sentences(self, direction: Literal["transfers", "does-not-transfer"], name: str) -> None:
        place = f"/transfer_scope/{name}"
        for index, sentence in enumerate(texts(part(self.document, "transfer_scope").get(name))):
            self.draft.scope.append(
                ScopeSentence(direction=direction, text=sentence, location=f"{place}/{index}")
            )


def _samples(item: dict[str, Value], place: str) -> Iterator[Sample]:
    """Yield the numbers of a measurement: samples of runs, points of a series, other named figures."""
    for metric, value in part(item, "metrics").items():
        below = child(child(place, "metrics"), metric)
        for index, found in enumerate(value if isinstance(value, list) else ()):
            if (shown := number(found)) is not None:
                unit = UNITS.get(metric, "")
                yield Sample(metric=metric, value=shown, unit=unit, index=index, location=f"{below}/{index}")
    for below, point in parts(item, "points", place):
        x = number(point.get("x"))
        for metric, found in point.items():
            if metric != "x" and (shown := number(found)) is not None:
                unit, where = UNITS.get(metric, ""), child(below, metric)
                yield Sample(metric=metric, value=shown, unit=unit, point_x=x, location=where)
    for name, found in part(item, "distribution").items():
        if (shown := number(found)) is not None:
            unit, where = naming.unit(name), child(child(place, "distribution"), name)
            yield Sample(metric=name, value=shown, unit=unit, location=where)


def _key(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _split(name: str) -> tuple[Scalar, Scalar]:
    row, _, column = name.rpartition(":")
    return row, column


def _agreed(*groups: dict[str, Scalar]) -> dict[str, Scalar]:
    """Return the dimensions that one measurement states; one that it gives two values is unknown."""
    found: dict[str, Scalar] = {}
    disputed: set[str] = set()
    for group in groups:
        disputed |= {name for name, value in group.items() if not equal(found.get(name, value), value)}
        found = group | found
    return {name: value for name, value in found.items() if name not in disputed}
