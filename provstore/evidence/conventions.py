"""The metric definitions that are shipped, by name.

They are data like any other; a policy may bring its own. Field names are those of benchmark rows as
``provstore.evidence.bench`` reads them, and of counter rows as ``provstore.evidence.prometheus`` sums them; a
name that begins with ``/`` is a JSON pointer inside the row.
"""

from collections.abc import Iterable
from typing import Final

from provstore.errors import NotFoundError
from provstore.evidence.metrics import Definition, Window

OFFSETS: Final = "token_id_offsets_s"
"""Row field with one timestamp for each token id, in seconds since the request began."""

_FIRST_HUNDRED: Final = Window(first=0, last=99)

SHIPPED: Final = (
    Definition(
        name="legacy-inclusive-events",
        unit="tok/s",
        numerator="events",
        timing=OFFSETS,
        window=_FIRST_HUNDRED,
    ),
    Definition(
        name="conventional-intervals",
        unit="tok/s",
        numerator="intervals",
        timing=OFFSETS,
        window=_FIRST_HUNDRED,
    ),
    Definition(
        name="class-balanced-intervals",
        unit="tok/s",
        numerator="intervals",
        timing=OFFSETS,
        window=_FIRST_HUNDRED,
        aggregation="class-balanced-median",
    ),
    Definition(
        name="full-after-first-token", unit="tok/s", numerator=("completion_tokens",), per="post_ttft_s"
    ),
    Definition(name="wall", unit="tok/s", numerator=("completion_tokens",), per="elapsed_s"),
    Definition(
        name="engine-rate-mean",
        unit="tok/s",
        numerator=("/timings/predicted_per_second",),
        aggregation="mean",
    ),
    Definition(name="ttft-median", unit="ms", numerator=("ttft_s",), scale=1000),
    Definition(
        name="draft-acceptance",
        unit="1",
        numerator=("accepted_tokens",),
        per="draft_tokens",
        aggregation="single",
    ),
    Definition(
        name="tokens-per-verification",
        unit="tok",
        numerator=("drafts", "accepted_tokens"),
        per="drafts",
        aggregation="single",
    ),
)
"""Every shipped definition.

``engine-rate-mean`` reads the rate that a llama.cpp server reports with each response; the last two take the
one row of speculative-decoding counters, where every verification yields one token of the target beside the
accepted ones.
"""

ALIASES: Final = {
    "events": "legacy-inclusive-events",
    "legacy": "legacy-inclusive-events",
    "legacy-inclusive": "legacy-inclusive-events",
    "intervals": "conventional-intervals",
    "conventional": "conventional-intervals",
    "class-balanced": "class-balanced-intervals",
    "ttft": "ttft-median",
}
"""Short names that a person may type; a value always states the full one."""


def find(name: str, definitions: Iterable[Definition] = SHIPPED) -> Definition:
    """Return the definition with this name or alias.

    Raises:
        NotFoundError: there is none.

    Example:
        >>> find("intervals").formula()
        'median over rows of 99 / (token_id_offsets_s[99] - token_id_offsets_s[0])'
    """
    by_name = {definition.name: definition for definition in definitions}
    found = by_name.get(name) or by_name.get(ALIASES.get(name, ""))
    if found is None:
        raise NotFoundError(name, f"no metric convention of this name; known: {', '.join(by_name)}")
    return found
