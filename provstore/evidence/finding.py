"""What a reader hands back: facts, and findings about everything that it could not take as a fact.

A reader never raises because of the bytes it reads and never drops a part of them in silence: what is not
a fact is a finding, with the line or the JSON pointer (RFC 6901) where it was met.
"""

from typing import Final, Literal

import msgspec

from provstore.paths import show
from provstore.records.facts import Fact, FactValue

Severity = Literal["error", "unknown", "warning"]
"""``error``: malformed or contradicting itself; ``unknown``: not said; ``warning``: odd but usable."""

MAX_FINDINGS: Final = 200
"""Findings kept of one reading; one more then states how many were met in all."""

MAX_SHOWN: Final = 120
"""Characters of foreign text that a message quotes."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that a reader or a recomputation could not take as stated.

    Attributes:
        code: stable name of the kind of finding, such as ``duplicate-key``.
        severity: see :data:`Severity`.
        location: ``line 12``, a JSON pointer, or empty for the whole input.
        message: one sentence for people; foreign text in it is escaped and shortened.
    """

    code: str
    severity: Severity
    location: str
    message: str


class ReaderResult(msgspec.Struct, frozen=True, kw_only=True):
    """Facts and findings of one reading, each in the order of the input.

    Attributes:
        facts: what the input states.
        findings: what is wrong with it or missing from it.

    Example:
        >>> out = Extraction()
        >>> out.fact("status.status", "PASS", "line 1")
        >>> out.result().value("status.status")
        'PASS'
    """

    facts: tuple[Fact, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def sound(self) -> bool:
        """True if no finding is an error; it does not say that anything was found."""
        return all(finding.severity != "error" for finding in self.findings)

    def all(self, key: str) -> tuple[Fact, ...]:
        """Return every fact with this key, in the order of the input."""
        return tuple(fact for fact in self.facts if fact.key == key)

    def fact(self, key: str, location: str | None = None) -> Fact | None:
        """Return the only fact with this key (and location), or None when there is none or more than one."""
        found = [f for f in self.facts if f.key == key and (location is None or f.location == location)]
        return found[0] if len(found) == 1 else None

    def value(self, key: str, location: str | None = None) -> FactValue:
        """Return the value of :meth:`fact`; None also when there is no such fact, so ask that first."""
        found = self.fact(key, location)
        return None if found is None else found.value


class Extraction:
    """Collects facts and findings while a reader works.

    Args:
        limit: findings to keep.

    Example:
        >>> out = Extraction()
        >>> out.finding("malformed-line", "line 3", "no = in it")
        >>> [finding.code for finding in out.result().findings]
        ['malformed-line']
    """

    def __init__(self, limit: int = MAX_FINDINGS) -> None:
        self.facts: list[Fact] = []
        self._findings: list[Finding] = []
        self._limit = limit
        self._met = 0

    def fact(self, key: str, value: FactValue, location: str = "", *, decimal: bool = False) -> None:
        """Add a fact."""
        self.facts.append(Fact(key=key, value=value, decimal=decimal, location=location))

    def finding(self, code: str, location: str, message: str, severity: Severity = "error") -> None:
        """Add a finding; beyond the limit it is only counted."""
        self._met += 1
        if len(self._findings) < self._limit:
            self._findings.append(Finding(code=code, severity=severity, location=location, message=message))

    def add(self, findings: tuple[Finding, ...]) -> None:
        """Add findings that another reading made."""
        for finding in findings:
            self.finding(finding.code, finding.location, finding.message, finding.severity)

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings so far, with one more for those beyond the limit."""
        kept = tuple(self._findings)
        if self._met > self._limit:
            more = f"{self._met} findings in all, the first {self._limit} are listed"
            kept += (Finding(code="more-findings", severity="error", location="", message=more),)
        return kept

    def result(self) -> ReaderResult:
        """Return what was collected."""
        return ReaderResult(facts=tuple(self.facts), findings=self.findings())


def quoted(text: str | bytes, limit: int = MAX_SHOWN) -> str:
    r"""Return foreign text safe for a message: escaped, shortened, in quotes.

    Example:
        >>> quoted(b"a\x1b[2J")
        "'a\\x1b[2J'"
    """
    shown = show(_encodable(text[: limit + 1]))
    return f"'{shown[:limit]}…'" if len(shown) > limit else f"'{shown}'"


def _encodable(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
