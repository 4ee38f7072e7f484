"""Frozen results of the verbs; their JSON form is what ``--json`` prints.

Digests are 64 hex digits. Paths are in the shown form of :func:`provstore.paths.show`: reversible, and
without control characters.
"""

from provstore.reports.base import Outcome, Report, Verdict
from provstore.reports.checked import CheckedDocument, CheckFinding, CheckReport
from provstore.reports.compared import (
    DiffReport,
    FactChange,
    KeptFact,
    LayerState,
    MemberChange,
    MetricChange,
    RowsChange,
    Side,
    TokenChange,
    UnknownPart,
)
from provstore.reports.judged import (
    Explained,
    ExplainedFact,
    ExplainReport,
    MetricsReport,
    RowShown,
    ShownVerdict,
)
from provstore.reports.looked import Listed, RefStep, ShownClaim, ShownEntry, ShowReport, StatsReport
from provstore.reports.sealed import (
    EntrySummary,
    Excluded,
    PackReport,
    ProveReport,
    RestoreReport,
    SealReport,
    UnpackReport,
)
from provstore.reports.verified import (
    Check,
    Damage,
    Doctored,
    DoctorReport,
    FsckReport,
    GcReport,
    Metric,
    Missing,
    Repaired,
    VerifyReport,
    worst,
)

__all__ = [
    "Check",
    "CheckFinding",
    "CheckReport",
    "CheckedDocument",
    "Damage",
    "DiffReport",
    "DoctorReport",
    "Doctored",
    "EntrySummary",
    "Excluded",
    "ExplainReport",
    "Explained",
    "ExplainedFact",
    "FactChange",
    "FsckReport",
    "GcReport",
    "KeptFact",
    "LayerState",
    "Listed",
    "MemberChange",
    "Metric",
    "MetricChange",
    "MetricsReport",
    "Missing",
    "Outcome",
    "PackReport",
    "ProveReport",
    "RefStep",
    "Repaired",
    "Report",
    "RestoreReport",
    "RowShown",
    "RowsChange",
    "SealReport",
    "ShowReport",
    "ShownClaim",
    "ShownEntry",
    "ShownVerdict",
    "Side",
    "StatsReport",
    "TokenChange",
    "UnknownPart",
    "UnpackReport",
    "Verdict",
    "VerifyReport",
    "worst",
]
