"""Gates about credit: nothing is attributed to what no log line proves, no variable goes unread unsaid."""

from typing import ClassVar

from provstore.gates.evidence import Evidence, Found, fits, split, uses
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.gates.structure import lines_of
from provstore.records.verdict import Judgement, UsedFact


class Attribution(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="attribution"):
    """No claim credits something that nothing in the log proves.

    Attributes:
        subject: what is credited, for people.
        lines: extractor of the lines that prove it.
        phrases: texts that credit it, looked for in claims, without regard to case.
        claimed: facts that credit it when they are true.
        minimum: fewest lines that prove it.
    """

    subject: str
    lines: str
    phrases: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    minimum: int = 1

    FACTS: ClassVar[tuple[str, ...]] = ("claimed",)
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"lines": ("lines",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "head"
kind = "lines"
role = "run/server.log"
marker = "prepared draft head"

[[gate]]
name = "draft head"
kind = "attribution"
subject = "the FP8 draft head"
lines = "head"
phrases = ["draft head"]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look for credit, then for proof."""
        credits: list[tuple[str, tuple[UsedFact, ...]]] = []
        for claim in evidence.claims:
            text = " ".join((claim.name, claim.metric, claim.samples or "")).casefold()
            if any(phrase.casefold() in text for phrase in self.phrases):
                fact = UsedFact(place="claim", key=claim.name, value=claim.metric[:200])
                credits.append((f"claim {claim.name}", (fact,)))
        for reference in self.claimed:
            found = evidence.only(reference, out)
            if found is not None and not fits(found.fact, False):
                credits.append((reference, (found.used(),)))
        if not credits and not out.decided:
            out.add("NOT-APPLICABLE", "not-claimed", f"nothing credits {self.subject}")
            return out.all
        source = evidence.one(self.lines, out)
        proof = lines_of(source) if source else []
        for place, facts in credits:
            if source is not None and len(proof) < self.minimum:
                out.fail(
                    "attribution-unproven",
                    f"{place} credits {self.subject}; {len(proof)} lines prove it",
                    expected=self.minimum,
                    found=len(proof),
                    facts=facts,
                )
        return out.done(f"{len(proof)} lines prove {self.subject}")

    def idle_reason(self) -> str:
        """Say whether nothing could credit it, or nothing is asked as proof."""
        if self.minimum < 1:
            return "it asks for no line as proof"
        return "" if self.phrases or self.claimed else "it names no phrase and no fact that credits it"


class Selectors(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="selectors"):
    """Variables that are set and that the engine reports as unknown have no proven reader; a warning.

    Attributes:
        environment: the variables.
        unknown: facts that name the unknown variables.
    """

    environment: str
    unknown: str

    ADVISORY: ClassVar[bool] = True
    FACTS: ClassVar[tuple[str, ...]] = ("unknown",)
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"environment": ("environment",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "environment"
kind = "environment"
role = "run/environment.txt"

[[extract]]
name = "unread"
kind = "lines"
role = "run/server.log"
marker = "unknown environment variable"
pattern = 'variable (?P<key>[A-Z0-9_]+)'

[[gate]]
name = "selectors"
kind = "selectors"
environment = "environment"
unknown = "unread:key"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look up each variable that the log calls unknown."""
        source = evidence.one(self.environment, out)
        name, selector = split(self.unknown)
        log = evidence.one(name, out)
        if source is None or log is None:
            return out.done("")
        found = [Found(log, fact) for fact in log.select(selector)]
        unread = {str(item.fact.value): item for item in found if isinstance(item.fact.value, str)}
        facts: list[UsedFact] = []
        named: list[str] = []
        for key, item in unread.items():
            for fact in source.select(key):
                setting = Found(source, fact).used()
                facts += [setting, item.used()]
                named.append(f"{key}={setting.value}")
        if named:
            said = f"{len(named)} variables are set and the engine does not know them: {', '.join(named)}"
            out.warn("selector-without-reader", said, expected=0, found=len(named), facts=facts)
        return out.done(f"{len(found)} variables are reported as unknown", uses(found))
