"""Labels of coverage cells, rendered from numbers; a stored label is only ever compared with them."""

from typing import Final

from provstore.evidence.jsonreader import Absent, Value
from provstore.graph.rules.family import METRICS
from provstore.graph.rules.places import Place, double

PREFIXES: Final = {
    "decode_tok_s": "D",
    "aggregate_tok_s": "A",
    "prefill_tok_s": "P",
    "ttft_ms": "T",
    "mean_acceptance_length": "A",
    "draft_acceptance_rate": "AR",
    "effective_tokens_per_verification": "EV",
}
"""What a number in a label begins with, by metric."""

SEPARATOR: Final = " · "


def rounded(number: float, digits: int = 2) -> str:
    """Return a number as labels show it: whole from 1,000 on, else with at most two digits of fraction.

    Example:
        >>> rounded(7331.793132902693), rounded(80.24333572713317), rounded(153.6043924981438), rounded(4.0)
        ('7,332', '80.24', '153.6', '4')
        >>> rounded(0.0047430830039525695)
        '0'
    """
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    if number == int(number):
        return str(int(number))
    return f"{number:.{digits}f}".rstrip("0").rstrip(".")


def label_of(point: Place) -> str:
    """Return the label that the metrics of a point give; empty when it has none.

    Example:
        >>> from provstore.evidence.jsonreader import Number
        >>> label_of(Place("", {"ttft_ms": 564, "decode_tok_s": Number("80.243", 80.243)}))
        'D80.24 · T564'
    """
    return SEPARATOR.join(_parts(point).values())


def lost(point: Place) -> list[str]:
    """Return the metrics whose numbers a label shows as zero although they are not.

    Example:
        >>> from provstore.evidence.jsonreader import Number
        >>> lost(Place("", {"draft_acceptance_rate": Number("0.0047", 0.0047)}))
        ['draft_acceptance_rate']
    """
    zero = {f"{prefix}{sign}0" for prefix in PREFIXES.values() for sign in ("", "-")}
    return [name for name, part in _parts(point).items() if part in zero and _value(point, name)]


def _parts(point: Place) -> dict[str, str]:
    found: dict[str, str] = {}
    for metric in METRICS:
        number = double(point.at(metric).value)
        if number is not None:
            found[metric] = PREFIXES[metric] + rounded(number)
    return found


def _value(point: Place, metric: str) -> float:
    value: Value | Absent = point.at(metric).value
    return double(value) or 0.0
