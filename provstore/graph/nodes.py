"""Nodes of the graph: whatever a relation can start from or lead to."""

from typing import Final, Literal, NamedTuple, get_args

from provstore.errors import UsageError

NodeKind = Literal[
    "object",
    "tree",
    "packet",
    "verdict",
    "path",
    "commit",
    "hub-revision",
    "family",
    "revision",
    "artifact",
    "family-packet",
    "measurement",
    "estimate",
    "view",
    "coverage",
    "closure",
    "grade",
    "package",
    "guide",
    "recipe",
    "sweep",
    "model-instance",
    "hardware",
    "leaderboard-run",
    "record",
    "queue",
    "receipt",
    "lock",
    "attestation",
    "claim",
    "note",
    "host",
    "url",
]
"""What a node is. Keys, by kind:

- ``object``: 64 hex digits of the SHA-256, the one digest that every document of the field knows; an object
  that is known by its BLAKE3 alone is ``blake3:`` and 64 hex digits
- ``tree``, ``packet``, ``verdict``: the hex id of the record
- ``path``: ``REPOSITORY:PATH``, a file that documents of one repository cite
- ``commit``: 40 or 64 hex digits
- ``hub-revision``: ``OWNER/NAME@REVISION``
- ``family``, ``package``, ``recipe``, ``sweep``, ``model-instance``, ``hardware``, ``leaderboard-run``,
  ``record``, ``queue``, ``receipt``, ``lock``, ``attestation``, ``note``, ``guide``: the id that the document
  gives itself, or its path node's key where it gives none
- ``revision``, ``artifact``, ``family-packet``, ``measurement``, ``estimate``, ``view``, ``coverage``,
  ``closure``, ``grade``: ``FAMILY/ID``, since the same id may stand in two families
- ``claim``: ``PACKET/NAME``
- ``host``: a name that an observation gives
- ``url``: the address
"""

KINDS: Final[tuple[str, ...]] = get_args(NodeKind)


class Node(NamedTuple):
    """One thing that relations speak of.

    Attributes:
        kind: see :data:`NodeKind`.
        key: what it is known by among its kind.
    """

    kind: NodeKind
    key: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"


def node_named(text: str) -> Node | None:
    """Return the node that ``KIND:KEY`` names, or None when the text has another form.

    Example:
        >>> node_named("run-7") is None, node_named("family:f")
        (True, Node(kind='family', key='f'))
    """
    for kind in get_args(NodeKind):
        if text.startswith(f"{kind}:") and len(text) > len(kind) + 1:
            return Node(kind, text[len(kind) + 1 :])
    return None


def parse_node(text: str) -> Node:
    """Return the node that ``KIND:KEY`` names.

    Raises:
        UsageError: no such kind, or no key.

    Example:
        >>> parse_node("measurement:family-a/run-1")
        Node(kind='measurement', key='family-a/run-1')
    """
    found = node_named(text)
    if found is not None:
        return found
    raise UsageError(f"{text[:80]!r} names no node; write KIND:KEY with a kind of {', '.join(KINDS)}")
