"""Relations: typed edges of the graph, each with the object or record that states it."""

from typing import Final, Literal, NamedTuple, get_args

from provstore.graph.nodes import Node

RelationKind = Literal[
    "contains",
    "holds",
    "has-parent",
    "judges",
    "has-revision",
    "has-auxiliary",
    "has-artifact",
    "has-payload",
    "pins",
    "described-by",
    "guided-by",
    "needs",
    "evidenced-by",
    "plots",
    "cites",
    "based-on",
    "supersedes",
    "corrects",
    "withdraws",
    "quarantines",
    "compares-to",
    "measured-by",
    "seals",
    "built-from",
    "restores-from",
    "submitted-as",
    "answers",
    "sealed-by",
    "uses",
    "judged-against",
    "binds",
    "observed",
    "loaded",
    "derived-from",
    "compares",
    "checks",
    "authorized-by",
    "follows",
    "has-sweep",
    "about",
    "observed-at",
    "is-receipt-of",
    "is-file",
    "states",
    "belongs-to",
    "names",
]
"""What one node has to do with another. Beyond the words of the field: ``contains`` (tree, member), ``holds``
(packet, member of an entry), ``has-parent`` (packet, packet), ``judges`` (verdict, packet), ``is-file``
(path, object that lies there), ``states`` (document, thing it describes), ``belongs-to`` (part, whole),
``loaded`` (observation, object that was mapped), ``names`` (mention without more)."""

KINDS: Final[tuple[str, ...]] = get_args(RelationKind)

UNDOING: Final[frozenset[RelationKind]] = frozenset({"supersedes", "corrects", "withdraws", "quarantines"})
"""Relations after which the node that they lead to no longer stands as it was; each has a reason."""


class Relation(NamedTuple):
    """One edge.

    Attributes:
        source: node that it starts from.
        kind: see :data:`RelationKind`.
        target: node that it leads to.
        stated_by: hex id (BLAKE3) of the object or record that states it.
        location: JSON pointer (RFC 6901), ``line 12``, a role or a name in there; empty for the whole.
        reason: the statement's words, for a relation that has some; shortened nowhere.
    """

    source: Node
    kind: RelationKind
    target: Node
    stated_by: str
    location: str = ""
    reason: str = ""
