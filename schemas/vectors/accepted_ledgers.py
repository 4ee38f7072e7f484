"""Vectors of ledgers: whole chains with what they add up to. ``make.py`` writes them."""

from reference import Json, canonical, record_id

POLICY = "5" * 64
CANDIDATE = {"engine": "a1", "model": "m1"}


def chain(*abouts: Json) -> list[str]:
    """Return the canonical texts of entries that follow each other; ``#N`` stands for the id of entry N."""
    ids: list[str] = []
    texts: list[str] = []
    for number, about in enumerate(abouts, 1):
        named = {key: ids[int(value[1:]) - 1] if is_place(value) else value for key, value in about.items()}
        entry: Json = {
            "format": "provstore/ledger-entry/v1",
            "sequence": number,
            "taken_ns": str(1785560400_000000000 + number * 60_000000000),
            "tool": "reference",
            "about": named,
        }
        if ids:
            entry["previous"] = ids[-1]
        data = canonical(entry)
        ids.append(record_id("ledger-entry", data))
        texts.append(data.decode())
    return texts


def is_place(value: object) -> bool:
    """Say whether a value stands for the id of an entry."""
    return isinstance(value, str) and value.startswith("#")


def permit(**more: object) -> Json:
    """Return an authorization."""
    return {
        "kind": "authorization",
        "line": "decode",
        "policy": POLICY,
        "candidate": CANDIDATE,
        "suites": 1,
        "given_by": "ann",
        **more,
    }


def start(authorization: str, **more: object) -> Json:
    """Return an attempt."""
    return {
        "kind": "attempt",
        "line": "decode",
        "candidate": CANDIDATE,
        "authorization": authorization,
        **more,
    }


def steps(attempt: str, *states: str, **last: object) -> list[Json]:
    """Return steps; the last one says more."""
    found: list[Json] = [{"kind": "step", "attempt": attempt, "state": state} for state in states]
    found[-1] |= last
    return found


SUITE = ("preflight-passed", "service-up", "first-request", "suite-complete")


def ending(attempt: str, disposition: str, **more: object) -> Json:
    """Return how an attempt ended."""
    return {"kind": "disposition", "attempt": attempt, "disposition": disposition, **more}


def three_starts(**authorization: object) -> list[Json]:
    """Return a start that failed in construction, one that was rejected, and one that counts."""
    return [
        permit(),
        start("#1"),
        *steps("#2", "preflight-passed"),
        ending("#2", "construction-failure", reason="a name was there twice"),
        start("#1"),
        *steps("#5", *SUITE, requests=13, score="125.06865574449961"),
        ending("#5", "diagnostic-rejected", reason="one marker instead of four"),
        permit(**authorization),
        start("#11"),
        *steps("#12", *SUITE, requests=13, score="125.4619731637751"),
        *steps("#12", "judged", "sealed"),
        ending("#12", "valid"),
    ]


def ledgers() -> Json:
    """Ledgers, and the codes of what is wrong with them."""
    cited = {"cites": "#5", "reason": "the marker had local-rank scope"}
    good = chain(*three_starts(**cited))
    cases = [
        ("one authorization", chain(permit()), []),
        ("three starts, one of which counts", good, []),
        ("killed after its first request", chain(permit(), start("#1"), *steps("#2", *SUITE[:3])), []),
        ("an entry was left out", good[:8] + good[9:], ["chain-broken"]),
        ("a visible score that nobody cites", chain(*three_starts()), ["uncited-start"]),
        ("a start that nothing permits", chain(start("7" * 64)), ["unauthorized-start"]),
        (
            "another candidate than was authorized",
            chain(permit(), start("#1", candidate={"engine": "b2", "model": "m1"})),
            ["unauthorized-start"],
        ),
        (
            "a second valid score",
            chain(
                *three_starts(**cited),
                start("#11", cites="#12", reason="once more"),
                *steps("#20", *SUITE, "judged", "sealed"),
                ending("#20", "valid"),
            ),
            ["authorization-used-up", "authorization-used-up", "second-valid-score"],
        ),
        ("a state out of order", chain(permit(), start("#1"), *steps("#2", "service-up")), ["out-of-order"]),
    ]
    return {
        "what": "ledgers, one canonical entry a line; the id of the last; codes of what must be found wrong",
        "cases": [
            {
                "name": name,
                "lines": lines,
                "head": record_id("ledger-entry", lines[-1].encode()),
                "codes": codes,
            }
            for name, lines, codes in cases
        ],
    }
