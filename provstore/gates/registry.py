"""The one table of gate kinds; the reference page is made from it."""

from typing import Final

from provstore.gates.attempts import Attempts, Authorized
from provstore.gates.attribution import Attribution, Selectors
from provstore.gates.chain import Chain
from provstore.gates.composite import Eligible, Parts, Resolves
from provstore.gates.conservation import Conservation
from provstore.gates.counters import CounterMetric
from provstore.gates.environment import Environment
from provstore.gates.exactness import Exact, Texts, Tokens, Zero
from provstore.gates.frozen import Frozen
from provstore.gates.identity import Consistent, Digests, Equal, References, Version
from provstore.gates.kinds import Gate
from provstore.gates.loader import Loader, Packages, PinnedMembers, Unpinned
from provstore.gates.measure import Flat, Floor, Metric
from provstore.gates.operation import Cleanup, Idle, IdleSummary, Status
from provstore.gates.sealing import Readings, Seal
from provstore.gates.structure import Topology, Treatment
from provstore.gates.timeline import Timeline
from provstore.gates.workload import Follows, Workload

INTRODUCTION: Final = """
A gate is one rule of a policy (see [policy.md](policy.md)). Its outcome is the worst of its findings: `FAIL`,
`INELIGIBLE` (the evidence is fine, the claim is not allowed), `UNKNOWN` (evidence absent: never a pass and
never a negative result), `WARN` (accepted, reported), `PASS`, `NOT-APPLICABLE`. Every gate has a `name`, may
be `required = false`, and may say in `rule` why the policy asks for it.
"""
"""What all kinds share, for the reference page."""

FAMILIES: Final[dict[str, tuple[type[Gate], ...]]] = {
    "Identity": (Equal, Consistent, Digests, Version, References, Eligible),
    "Seal and readings": (Seal, Readings),
    "Output": (Tokens, Texts, Exact, Zero, Follows),
    "Workload": (Workload,),
    "Structure and treatment": (Topology, Treatment, Attribution, Selectors),
    "Environment and runtime": (Environment, Loader, Unpinned, PinnedMembers, Packages),
    "Operation": (Idle, IdleSummary, Cleanup, Status, Timeline),
    "Numbers": (Metric, CounterMetric, Floor, Conservation, Flat),
    "Permission": (Attempts, Chain, Authorized, Frozen),
    "Documents": (Parts, Resolves),
}
"""Kinds of gate by family."""

GATES: Final[dict[str, type[Gate]]] = {
    str(kind.__struct_config__.tag): kind for family in FAMILIES.values() for kind in family
}
"""Every kind of gate, by name."""
