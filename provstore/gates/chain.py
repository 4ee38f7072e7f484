"""The gate about the ledger itself: a chain from its first entry to the one that the packet names."""

from typing import ClassVar

from provstore.evidence.jsonreader import resolve
from provstore.gates.evidence import Evidence
from provstore.gates.extracts import JsonReading
from provstore.gates.findings import Findings, said
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement, UsedFact


class Chain(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="ledger"):
    """The sealed ledger is unbroken, keeps the rules of permission, and ends where the packet says it ended.

    Attributes:
        ledger: extractor of the exported ledger.
    """

    ledger: str

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"ledger": ("ledger",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "ledger"
kind = "ledger"
role = "ledger.jsonl"

[[gate]]
name = "ledger"
kind = "ledger"
ledger = "ledger"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare the head of the chain with the packet's."""
        source = evidence.one(self.ledger, out)
        if source is None or not isinstance(source.reading, JsonReading):
            return out.done("")
        out.readings(source.place, source.object, source.findings)
        head = resolve(source.reading.tree, "/head")
        fact = UsedFact(place=source.place, key="ledger.head", value=said(str(head)), object=source.object)
        if evidence.ledger is None:
            out.unknown("head-absent", "the packet names no entry of a ledger", facts=(fact,))
        elif head != evidence.ledger:
            out.fail("other-head", "the packet was sealed at another entry than the ledger ends with",
                     expected=evidence.ledger, found=str(head), facts=(fact,))  # fmt: skip
        entries = resolve(source.reading.tree, "/entries")
        return out.done(f"{entries} entries, unbroken, up to the one that the packet names", (fact,))
