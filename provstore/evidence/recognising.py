"""What a member of a packet is evidence of, told by the kind of its entry and by its name, before it is read.

It decides where a difference belongs and which reader could say more about it. A policy that names the
member knows better and is asked first.
"""

import re
from typing import Final, Literal, NamedTuple

Layer = Literal["identity", "environment", "result"]
"""What ran, where it ran, and what came out."""

LAYERS: Final[tuple[Layer, ...]] = ("identity", "environment", "result")


class Recognised(NamedTuple):
    """How a member can be compared.

    Attributes:
        layer: where its differences belong.
        reader: name of its reader, as policies call it; ``log`` for lines, empty when only its bytes count.
    """

    layer: Layer
    reader: str = ""


_KINDS: Final = {
    "benchmark-log": Recognised("result", "bench"),
    "server-log": Recognised("result", "log"),
    "metrics": Recognised("result", "metrics"),
    "record": Recognised("result", "json"),
    "receipt": Recognised("result", "json"),
    "environment": Recognised("environment", "environment"),
    "host": Recognised("environment", "json"),
    "idle": Recognised("environment", "json"),
    "identity": Recognised("identity", "identity"),
    "runtime-lock": Recognised("identity", "lock"),
    "python-env": Recognised("identity", "freeze"),
    "oracle": Recognised("identity", "oracle"),
    "suite": Recognised("identity", "json"),
    "recipe": Recognised("identity", "json"),
    "policy": Recognised("identity"),
    "source-tree": Recognised("identity"),
    "native": Recognised("identity"),
    "model": Recognised("identity"),
}

_NAMES: Final = tuple(
    (re.compile(pattern), found)
    for pattern, found in (
        (r"\.prom$", Recognised("result", "metrics")),
        (r"\.log$|log[^/]*\.txt$", Recognised("result", "log")),
        (r"idle[^/]*(/[^/]*)?\.json$", Recognised("environment", "json")),
        (r"(verification|loaded|origins)[^/]*\.json$", Recognised("environment", "loaded")),
        (r"(host|hardware|environment|env)[^/]*\.json$", Recognised("environment", "json")),
        (r"lock[^/]*\.json$|(^|/)lock$", Recognised("identity", "lock")),
        (r"oracle[^/]*\.json$|(^|/)oracles?(/[^/.]+)?$", Recognised("identity", "oracle")),
        (r"bench[^/]*\.json$", Recognised("result", "bench")),
        (r"\.json$", Recognised("result", "json")),
        (r"(freeze|requirements)[^/]*\.txt$|(^|/)(pip-)?freeze$", Recognised("identity", "freeze")),
        (r"idle[^/]*(/[^/]*)?\.txt$", Recognised("environment", "idle-summary")),
        (r"(^|[-_./])env(ironment)?[^/]*\.txt$|\.env$", Recognised("environment", "environment")),
        (r"identity[^/]*\.txt$", Recognised("identity", "identity")),
        (r"(status|cleanup)[^/]*\.txt$", Recognised("result", "status")),
    )
)

_ANY: Final = re.compile("|".join(pattern.pattern for pattern, _ in _NAMES))
"""Whether a name says anything at all: most names of big trees say nothing."""

_BY_READER: Final[dict[str, Layer]] = {
    "bench": "result",
    "status": "result",
    "cleanup": "result",
    "metrics": "result",
    "lines": "result",
    "environment": "environment",
    "idle": "environment",
    "idle-summary": "environment",
    "loaded": "environment",
    "oracle": "identity",
    "identity": "identity",
    "lock": "identity",
    "freeze": "identity",
}


def recognise(kind: str, place: str) -> Recognised | None:
    """Return what a member is, or None when neither its kind nor its name says.

    Args:
        kind: kind of its entry.
        place: its shown path.

    Example:
        >>> recognise("evidence", "run/metrics-after.prom")
        Recognised(layer='result', reader='metrics')
        >>> recognise("runtime-lock", "lock").layer, recognise("evidence", "run/notes.md")
        ('identity', None)
    """
    found = _KINDS.get(kind)
    if found is not None or kind == "file":
        return found
    name = place.lower()
    if not _ANY.search(name):
        return None
    return next((found for pattern, found in _NAMES if pattern.search(name)), None)


def as_named(extractor: str, otherwise: Recognised | None) -> Recognised:
    """Return what a member is that a policy reads with an extractor of this kind.

    Example:
        >>> as_named("loaded", None)
        Recognised(layer='environment', reader='loaded')
    """
    default: Layer = otherwise.layer if otherwise is not None else "result"
    return Recognised(_BY_READER.get(extractor, default), "log" if extractor == "lines" else extractor)
