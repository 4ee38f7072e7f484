"""The evidence that gates look at: what extractors read, where it lies, and what is not here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from provstore.evidence.finding import Finding, ReaderResult
from provstore.evidence.jsonreader import Number
from provstore.evidence.metrics import Definition
from provstore.gates.findings import Findings, used
from provstore.records.facts import Fact
from provstore.records.packet import Claim
from provstore.records.verdict import UsedFact

REFERENCE: Final = re.compile(r"([a-z][a-z0-9-]*):(.+)", re.DOTALL)
"""How a policy names a fact: the extractor's name, a colon, and a key or a JSON pointer."""


class Found(NamedTuple):
    """A fact and the source that states it."""

    source: "Source"
    fact: Fact

    def used(self) -> UsedFact:
        """Return its mention for a judgement."""
        return used(self.source.place, self.source.object, self.fact)


class Source:
    """One member of the packet as one extractor read it.

    Attributes:
        place: shown path, ``role/path``.
        object: hex id of its bytes; empty when they are unknown here or the packet itself states the facts.
        absent: why its bytes could not be read; empty when they were.
        facts: what it states.
        findings: what the reader could not take as stated.
        reading: the reader's own result, for gates that need more than facts; None when absent.
        prefix: first part of the keys of its facts.
    """

    __slots__ = ("_keys", "_places", "absent", "facts", "findings", "object", "place", "prefix", "reading")

    def __init__(
        self,
        place: str,
        *,
        object: str = "",
        absent: str = "",
        reading: ReaderResult | None = None,
        prefix: str = "",
    ) -> None:
        self.place = place
        self.object = object
        self.absent = absent
        self.reading = reading
        self.facts: tuple[Fact, ...] = reading.facts if reading else ()
        self.findings: tuple[Finding, ...] = reading.findings if reading else ()
        self.prefix = prefix
        self._keys: dict[str, list[Fact]] | None = None
        self._places: dict[str, list[Fact]] | None = None

    def select(self, selector: str) -> list[Fact]:
        """Return the facts that a key below the prefix, or a JSON pointer, names; in the source's order."""
        if self._keys is None or self._places is None:
            self._keys, self._places = {}, {}
            for fact in self.facts:
                self._keys.setdefault(fact.key, []).append(fact)
                if "#" not in fact.key:
                    self._places.setdefault(fact.location, []).append(fact)
        if selector.startswith("/"):
            return self._places.get(selector, [])
        joined = self.prefix + selector if selector.startswith("#") else f"{self.prefix}.{selector}"
        return self._keys.get(joined, [])


class Placed(NamedTuple):
    """One member of the packet, as its manifest states it.

    Attributes:
        place: shown path, ``role/path``.
        kind: ``file``, ``executable``, ``symlink`` or ``directory``.
        blake3: hex id of the content.
        sha256: hex SHA-256 of the content.
        custody: where the bytes are.
    """

    place: str
    kind: str
    blake3: str | None
    sha256: str | None
    custody: str


class Listed(NamedTuple):
    """One line of a checksum manifest: name below the entry, digest and line."""

    name: str
    algorithm: str
    digest: str
    line: int


class Manifest(NamedTuple):
    """A checksum manifest that an entry was pinned by.

    Attributes:
        object: hex id of its bytes.
        sha256: hex SHA-256 of its bytes; empty when they are not here.
        lines: what it lists for the entry.
        problem: why it could not be read; empty when it was.
    """

    object: str
    sha256: str
    lines: tuple[Listed, ...]
    problem: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that the gates of one policy may look at.

    Attributes:
        sources: what each extractor read, by its name; several when its pattern fits several members.
        wanted: the pattern that each extractor looked for.
        members: every member of the packet.
        manifests: manifest of each entry that was pinned by one, by role.
        claims: what the packet says that it stands for.
        definitions: metric definitions of the policy, then the shipped ones.
        ledger: hex id of the ledger's entry that the packet names.
    """

    sources: Mapping[str, tuple[Source, ...]]
    wanted: Mapping[str, str] = {}
    members: tuple[Placed, ...] = ()
    manifests: Mapping[str, tuple[Manifest, ...]] = {}
    claims: tuple[Claim, ...] = ()
    definitions: tuple[Definition, ...] = ()
    ledger: str | None = None

    def here(self, name: str, out: Findings) -> list[Source]:
        """Return the sources of an extractor that could be read; say for each other one that it is absent."""
        found = self.sources.get(name, ())
        if not found:
            wanted = self.wanted.get(name, name)
            out.unknown("evidence-absent", f"no member of the packet is {wanted}", expected=wanted)
        for source in found:
            if source.absent:
                out.unknown("evidence-absent", f"{source.place}: {source.absent}", expected=source.place)
        return [source for source in found if not source.absent]

    def one(self, name: str, out: Findings) -> Source | None:
        """Return the only source of an extractor; say why there is none."""
        found = self.here(name, out)
        if len(found) > 1:
            places = ", ".join(source.place for source in found[:4])
            out.fail("evidence-ambiguous", f"{len(found)} members where one is expected: {places}")
            return None
        return found[0] if found and len(self.sources.get(name, ())) == 1 else None

    def find(self, reference: str, out: Findings) -> list[Found]:
        """Return every fact that a reference names; says what is absent."""
        name, selector = split(reference)
        sources = self.here(name, out)
        found = [Found(source, fact) for source in sources for fact in source.select(selector)]
        if sources and not found:
            spoiled = [f for source in sources for f in source.findings if f.location == selector]
            more = f" ({spoiled[0].code}: {spoiled[0].message})" if spoiled else ""
            places = ", ".join(source.place for source in sources[:3])
            out.unknown("fact-absent", f"{places} does not state {selector}{more}", expected=reference)
        return found

    def only(self, reference: str, out: Findings) -> Found | None:
        """Return the one fact that a reference names; several with one value count as one."""
        found = self.find(reference, out)
        if not found:
            return None
        first = found[0]
        if any(not alike(first.fact, other.fact) for other in found[1:]):
            stated = sorted({other.used().value for other in found})
            out.fail("fact-ambiguous", f"{reference} is stated as {', '.join(stated[:4])}",
                     facts=tuple(item.used() for item in found))  # fmt: skip
            return None
        return first


def split(reference: str) -> tuple[str, str]:
    """Return the extractor and the selector of a reference.

    Example:
        >>> split("record:/metric/value"), split("env:LD_PRELOAD"), split("bench")
        (('record', '/metric/value'), ('env', 'LD_PRELOAD'), ('bench', ''))
    """
    match = REFERENCE.fullmatch(reference)
    return (match[1], match[2]) if match else (reference, "")


def alike(first: Fact, second: Fact) -> bool:
    """Say whether two facts state the same: one type, one value; decimals by their double.

    Example:
        >>> alike(Fact(key="a", value="1.50", decimal=True), Fact(key="b", value="1.5", decimal=True))
        True
        >>> alike(Fact(key="a", value=0), Fact(key="b", value=False))
        False
    """
    if first.decimal != second.decimal or type(first.value) is not type(second.value):
        return False
    if first.decimal and isinstance(first.value, str) and isinstance(second.value, str):
        return float(first.value) == float(second.value)
    if isinstance(first.value, tuple) and isinstance(second.value, tuple):
        types = [[type(item) for item in side] for side in (first.value, second.value)]
        return first.value == second.value and types[0] == types[1]
    return first.value == second.value


def fits(fact: Fact, wanted: object) -> bool:
    """Say whether a fact has the type and value that a policy writes.

    Example:
        >>> [fits(Fact(key="k", value=value), 0) for value in (0, False, "0", None)]
        [True, False, False, False]
        >>> fits(Fact(key="k", value="0.90", decimal=True), Number("0.9", 0.9))
        True
    """
    if isinstance(wanted, Number):
        return fact.decimal and isinstance(fact.value, str) and float(fact.value) == wanted.double
    if isinstance(wanted, list | tuple):
        return alike(fact, Fact(key="", value=tuple(wanted)))
    if isinstance(wanted, str | int | None):
        return alike(fact, Fact(key="", value=wanted))
    return False


def shown(wanted: object) -> str:
    """Return what a policy writes, as JSON would."""
    if isinstance(wanted, Number):
        return wanted.text
    return msgspec.json.encode(wanted).decode()


def uses(found: Iterable[Found]) -> tuple[UsedFact, ...]:
    """Return the mentions of several facts."""
    return tuple(item.used() for item in found)


def number(fact: Fact) -> int | float | None:
    """Return the number that a fact states, or None when it states none.

    Example:
        >>> number(Fact(key="k", value=3)), number(Fact(key="k", value="0.5", decimal=True))
        (3, 0.5)
        >>> number(Fact(key="k", value=True)) is None and number(Fact(key="k", value="3")) is None
        True
    """
    if fact.decimal and isinstance(fact.value, str):
        return float(fact.value)
    return fact.value if type(fact.value) is int else None


def texts(found: Sequence[Found]) -> list[str]:
    """Return the values that are text."""
    return [item.fact.value for item in found if isinstance(item.fact.value, str) and not item.fact.decimal]
