"""What a gate found: judgements, the facts behind them, and the worst of several outcomes."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from provstore.evidence.finding import Finding
from provstore.records.facts import Fact, FactValue
from provstore.records.verdict import GateWord, Judgement, MetricOutcome, UsedFact

MAX_USED: Final = 256
"""Facts that one judgement keeps."""

MAX_VALUE: Final = 240
"""Characters of a value that is kept; the fact itself has all of it."""

MAX_MESSAGE: Final = 4000
"""Characters of a message that are kept."""

MAX_JUDGEMENTS: Final = 400
"""Judgements that one gate keeps; one more then says how many there were."""

_ORDER: Final[tuple[GateWord, ...]] = ("FAIL", "INELIGIBLE", "UNKNOWN", "WARN", "PASS", "NOT-APPLICABLE")


def worst_of(outcomes: Iterable[GateWord]) -> GateWord:
    """Return the worst outcome; of none, ``UNKNOWN``, since nothing was looked at.

    Example:
        >>> worst_of(["PASS", "WARN"]), worst_of(["UNKNOWN", "FAIL"]), worst_of([])
        ('WARN', 'FAIL', 'UNKNOWN')
    """
    found = set(outcomes)
    return next((outcome for outcome in _ORDER if outcome in found), "UNKNOWN")


def said(value: FactValue, *, decimal: bool = False) -> str:
    """Return a value as JSON writes it, so that ``0``, ``"0"``, ``false`` and ``null`` look different.

    Example:
        >>> said(0), said("0"), said(False), said(None), said("0.0", decimal=True)
        ('0', '"0"', 'false', 'null', '0.0')
    """
    if decimal:
        text = f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
    else:
        text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def plain(text: str) -> str:
    r"""Return text that is safe to print and short enough to keep: what is not printable is escaped.

    Example:
        >>> plain("a\x1b[2J")
        'a\\x1b[2J'
    """
    text = text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def used(place: str, object: str, fact: Fact) -> UsedFact:
    """Return the mention of a fact in a judgement."""
    return UsedFact(
        place=place,
        key=fact.key,
        value=said(fact.value, decimal=fact.decimal),
        object=object,
        location=fact.location,
    )


class Findings:
    """Collects judgements, and the numbers that were recomputed, while a gate works.

    Example:
        >>> out = Findings()
        >>> out.fail("below-floor", "96.8 is lower", expected="96.84", found="96.8")
        >>> [judgement.code for judgement in out.done("all fine")]
        ['below-floor']
        >>> [judgement.outcome for judgement in Findings().done("all fine")]
        ['PASS']
    """

    def __init__(self) -> None:
        self.all: list[Judgement] = []
        self.metrics: list[MetricOutcome] = []
        self._met = 0
        self._said: set[tuple[str, str]] = set()

    def add(self, outcome: GateWord, code: str, message: str, **more: object) -> None:
        """Add a judgement, once; ``expected``, ``found`` and ``facts`` may be given."""
        if (code, message) in self._said:
            return
        self._said.add((code, message))
        self._met += 1
        if len(self.all) >= MAX_JUDGEMENTS:
            return
        expected, found = more.get("expected"), more.get("found")
        facts = more.get("facts", ())
        self.all.append(
            Judgement(
                outcome=outcome,
                code=code,
                message=plain(message),
                expected=None if expected is None else plain(str(expected)),
                found=None if found is None else plain(str(found)),
                facts=tuple(facts)[:MAX_USED] if isinstance(facts, tuple | list) else (),
            )
        )

    def fail(self, code: str, message: str, **more: object) -> None:
        """Add a failure."""
        self.add("FAIL", code, message, **more)

    def unknown(self, code: str, message: str, **more: object) -> None:
        """Add what could not be decided."""
        self.add("UNKNOWN", code, message, **more)

    def warn(self, code: str, message: str, **more: object) -> None:
        """Add what is accepted and reported."""
        self.add("WARN", code, message, **more)

    def readings(self, place: str, object: str, findings: Sequence[Finding]) -> None:
        """Add what a reader could not take as stated: errors fail, what is not said is unknown."""
        for finding in findings:
            if finding.severity == "warning":
                continue
            outcome: GateWord = "FAIL" if finding.severity == "error" else "UNKNOWN"
            fact = UsedFact(place=place, key="#finding", value=said(finding.code), object=object,
                            location=finding.location)  # fmt: skip
            at = f" at {finding.location}" if finding.location else ""
            self.add(outcome, finding.code, f"{place}{at}: {finding.message}", facts=(fact,))

    @property
    def decided(self) -> bool:
        """True when something already keeps the gate from passing."""
        return any(judgement.outcome in ("FAIL", "UNKNOWN", "INELIGIBLE") for judgement in self.all)

    def done(self, message: str, facts: Sequence[UsedFact] = ()) -> list[Judgement]:
        """Return everything; when nothing was found, a pass that says what was seen."""
        if self._met > MAX_JUDGEMENTS:
            worst = worst_of(judgement.outcome for judgement in self.all)
            more = f"{self._met} findings in all, the first {MAX_JUDGEMENTS} are listed"
            self.all.append(Judgement(outcome=worst, code="more-findings", message=more))
        if not self.all:
            held = Judgement(outcome="PASS", code="ok", message=plain(message), facts=tuple(facts)[:MAX_USED])
            self.all.append(held)
        return self.all
