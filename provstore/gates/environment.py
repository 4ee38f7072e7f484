"""The gate about variables: pinned, forbidden, ignored, related, and everything else against a reference."""

import fnmatch
from typing import Any, ClassVar, Literal

import msgspec

from provstore.evidence.finding import quoted
from provstore.gates.evidence import Evidence, Found, Source
from provstore.gates.findings import Findings, said
from provstore.gates.kinds import Gate
from provstore.records.facts import Fact
from provstore.records.verdict import Judgement, UsedFact


class Relation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule about variables that has no fixed value.

    Attributes:
        rule: ``equal``: all keys have one value. ``first-entry-ends``: the first part of a list that is
            separated by colons ends with ``value``. ``one-of``: the value is one of ``values``.
        keys: the variables.
        value: text of the rule.
        values: texts of the rule.
    """

    rule: Literal["equal", "first-entry-ends", "one-of"]
    keys: tuple[str, ...]
    value: str = ""
    values: tuple[str, ...] = ()

    def broken(self, stated: list[str]) -> bool:
        """Say whether the values break the rule."""
        if self.rule == "equal":
            return len(set(stated)) > 1
        if self.rule == "first-entry-ends":
            return any(not text.split(":")[0].endswith(self.value) for text in stated)
        return any(text not in self.values for text in stated)


class Environment(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="environment"):
    """Variables are what they must be, and every other one is accounted for.

    Keys fall into: pinned (one value), switches that work by presence (whatever their value, also ``0``),
    forbidden, related, ignored, and the rest. The rest is compared with a reference environment where there
    is one, with run paths folded; without one it is reported as not judged.

    Attributes:
        variables: the environment that the service had.
        pinned: variable and value.
        present: variables that count by being set, and must be.
        forbidden: patterns of variables that must not be set at all, whatever their value.
        related: rules without fixed values.
        ignored: patterns of variables that may have any value, such as private paths.
        reference: extractor of an environment that the rest is compared with.
        folded: texts that stand for a private path, with what they are replaced by on both sides.
        drift: what a difference of the rest means.
    """

    variables: str
    pinned: dict[str, str] = msgspec.field(default_factory=dict)
    present: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    related: tuple[Relation, ...] = ()
    ignored: tuple[str, ...] = ()
    reference: str = ""
    folded: dict[str, str] = msgspec.field(default_factory=dict)
    drift: Literal["WARN", "FAIL", "INELIGIBLE"] = "WARN"

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {
        "variables": ("environment",),
        "reference": ("environment", "entry"),
    }
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "environment"
kind = "environment"
role = "run/environment.txt"

[[gate]]
name = "environment"
kind = "environment"
variables = "environment"
pinned = { LANG = "C", OMP_NUM_THREADS = "1" }
forbidden = ["*_DIAGNOSTIC", "HTTP_PROXY"]
ignored = ["HOME", "*_CACHE_DIR"]
related = [
  { rule = "equal", keys = ["KVS_IFACE", "TCP_IFACE"] },
  { rule = "first-entry-ends", keys = ["LD_LIBRARY_PATH"], value = "/kernels" },
]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Judge every variable once."""
        source = evidence.one(self.variables, out)
        if source is None:
            return out.done("")
        out.readings(source.place, source.object, source.findings)
        stated = {fact.key.removeprefix(source.prefix + "."): fact for fact in source.facts}
        rest = dict(stated)
        for key, wanted in self.pinned.items():
            self._pinned(source, key, wanted, rest.pop(key, None), out)
        for key in self.present:
            if rest.pop(key, None) is None:
                out.fail("presence-absent", f"{key} is not set; it counts by being set", expected=key)
        related = self._related(source, stated, rest, out)
        ignored = [key for key in rest if _any(key, self.ignored)]
        for key in [key for key in rest if _any(key, self.forbidden)]:
            fact = Found(source, rest.pop(key)).used()
            out.fail(
                "forbidden-present", f"{key} is set to {fact.value}; by being set it counts", facts=(fact,)
            )
        for key in ignored:
            rest.pop(key, None)
        self._rest(source, rest, evidence, out)
        tally = f"{len(self.pinned) + len(self.present)} pinned, {related} related, {len(ignored)} ignored"
        facts = tuple(Found(source, stated[key]).used() for key in self.pinned if key in stated)
        return out.done(f"{len(stated)} variables: {tally}, {len(rest)} others", facts)

    def _pinned(self, source: Source, key: str, wanted: str, fact: Fact | None, out: Findings) -> None:
        if fact is None:
            out.fail("pinned-absent", f"{key} is not set", expected=wanted)
            return
        if fact.value != wanted:
            used = Found(source, fact).used()
            out.fail("pinned-differs", f"{key} is {used.value}", expected=said(wanted), found=used.value,
                     facts=(used,))  # fmt: skip

    def _related(self, source: Source, stated: dict[str, Fact], rest: dict[str, Fact], out: Findings) -> int:
        count = 0
        for relation in self.related:
            absent = [key for key in relation.keys if key not in stated]
            for key in absent:
                out.fail("related-absent", f"{key} is not set", expected=relation.rule)
            values = [str(stated[key].value) for key in relation.keys if key in stated]
            facts = tuple(Found(source, stated[key]).used() for key in relation.keys if key in stated)
            if not absent and relation.broken(values):
                said_values = ", ".join(f"{fact.key}={fact.value}" for fact in facts)
                out.fail(
                    "relation-broken",
                    f"{relation.rule}: {said_values}",
                    expected=relation.value or relation.rule,
                    found=said_values,
                    facts=facts,
                )
            for key in relation.keys:
                count += rest.pop(key, None) is not None
        return count

    def _rest(self, source: Source, rest: dict[str, Fact], evidence: Evidence, out: Findings) -> None:
        """Compare what no rule is about with the reference; without one, report it."""
        facts = tuple(Found(source, fact).used() for fact in rest.values())
        if not self.reference:
            if rest:
                names = ", ".join(sorted(rest))
                out.warn(
                    "not-judged", f"{len(rest)} variables have no rule and no reference: {names}", facts=facts
                )
            return
        base = evidence.one(self.reference, out)
        if base is None:
            return
        wanted = {fact.key.partition(".")[2] or fact.key: fact for fact in base.facts if "#" not in fact.key}
        if base.prefix == "entry":
            wanted = {fact.key.removeprefix("entry."): fact for fact in base.facts}
        ruled = {*self.pinned, *self.present, *(key for r in self.related for key in r.keys)}
        for key in sorted(rest.keys() | wanted.keys()):
            if key in ruled or _any(key, self.ignored) or _any(key, self.forbidden):
                continue
            self._drift(key, (source, rest.get(key)), (base, wanted.get(key)), out)

    def _drift(
        self, key: str, here: tuple[Source, Fact | None], there: tuple[Source, Fact | None], out: Findings
    ) -> None:
        values = [None if fact is None else self._fold(fact.value) for _, fact in (here, there)]
        if values[0] == values[1]:
            return
        facts: tuple[UsedFact, ...] = tuple(
            Found(source, fact).used() for source, fact in (here, there) if fact is not None
        )
        words = ["not set" if value is None else quoted(str(value)) for value in values]
        out.add(self.drift, "environment-drift", f"{key} is {words[0]}, in the reference {words[1]}",
                expected=words[1], found=words[0], facts=facts)  # fmt: skip

    def _fold(self, value: Any) -> str:
        text = str(value)
        for private, name in self.folded.items():
            text = text.replace(private, name)
        return text

    def idle_reason(self) -> str:
        """Say whether no rule could be broken."""
        ruled = self.pinned or self.present or self.forbidden or self.related
        if any(not relation.keys for relation in self.related):
            return "a relation names no variable"
        if any(r.rule == "equal" and len(set(r.keys)) < 2 for r in self.related):
            return "variables that must be equal are at least two"
        if any(r.rule == "one-of" and not r.values for r in self.related):
            return "a relation allows no value"
        if self.reference == self.variables:
            return "its reference is the environment itself"
        if any(not private for private in self.folded):
            return "an empty text cannot be folded"
        return "" if ruled or (self.reference and self.drift != "WARN") else "no rule of it could fail"


def _any(key: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)
