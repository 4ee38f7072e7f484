"""Formats that rules know, told by what a document says about itself, else by its members."""

from typing import Final

from provstore.evidence.jsonreader import Absent, Value

FAMILY: Final = "neural-download-model-family-v1"
PACKAGE: Final = "b70-model-package-v1"
PACKAGE_CATALOG: Final = "b70-model-package-catalog-v1"
GUIDES: Final = "b70-reproduction-guide-catalog-v1"
LANES: Final = "neural-download-coverage-registry-v1"
ATTESTATION: Final = "neural.download.promotion-attestation.v1"
REGISTRY: Final = "local-ai-registry/v1"
NOTE: Final = "provstore/note/v1"
RECIPE: Final = f"{REGISTRY} recipe"
SWEEP: Final = f"{REGISTRY} speed-sweep"
INSTANCE: Final = f"{REGISTRY} model-instance"
HARDWARE: Final = f"{REGISTRY} hardware"
PAGE: Final = f"{REGISTRY} page"
CLAIM: Final = "claim"
PUBLICATION: Final = "neural.download.recipe-publication.v1"
COMPOSED: Final = "composed-result"
RECORD: Final = "record"
QUEUE: Final = "queue"
RECEIPT: Final = "receipt"

_SELF_NAMED: Final = frozenset(
    (FAMILY, PACKAGE, PACKAGE_CATALOG, GUIDES, LANES, ATTESTATION, PUBLICATION, NOTE)
)

_REGISTRY_PARTS: Final = (
    (RECIPE, {"model_instance_id", "launch"}),
    (SWEEP, {"rows", "recipe_id"}),
    (INSTANCE, {"weights", "repository"}),
    (HARDWARE, {"memory", "vendor"}),
)

_BY_MEMBERS: Final = (
    (FAMILY, {"weight_revisions", "run_measurements"}),
    (CLAIM, {"claimed", "recipe", "history"}),
    (COMPOSED, {"artifacts", "correctness"}),
    (RECEIPT, {"http_status", "response"}),
    (RECORD, {"metric_accounting", "record"}),
    (RECORD, {"record", "evidence_sha256"}),
)


def format_of(value: Value | Absent) -> str:
    """Return the format of a document, empty when it is none of these.

    Example:
        >>> format_of({"format": "b70-model-package-v1"}), format_of({"a": 1})
        ('b70-model-package-v1', '')
        >>> format_of({"schema_version": "local-ai-registry/v1", "rows": [], "recipe_id": "r"})
        'local-ai-registry/v1 speed-sweep'
    """
    if isinstance(value, list):
        first = value[0] if value else None
        return QUEUE if isinstance(first, dict) and "payload" in first else ""
    if not isinstance(value, dict):
        return ""
    for name in ("format", "schema", "schema_version"):
        said = value.get(name)
        if isinstance(said, str) and said in _SELF_NAMED:
            return said
    members = set(value)
    if value.get("schema_version") == REGISTRY:
        return next((name for name, wanted in _REGISTRY_PARTS if wanted <= members), "")
    return next((name for name, wanted in _BY_MEMBERS if wanted <= members), "")
