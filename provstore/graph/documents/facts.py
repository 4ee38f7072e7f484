"""Facts of documents: everything they say, losslessly, and what differs between two versions."""

from typing import NamedTuple

from provstore.evidence.documents import add_facts
from provstore.evidence.finding import Extraction, ReaderResult
from provstore.evidence.jsonreader import ABSENT
from provstore.graph.documents.reading import Reading
from provstore.records.facts import Fact


class FactDifference(NamedTuple):
    """A fact that two versions state differently; None where one of them does not state it."""

    location: str
    key: str
    before: str | None
    after: str | None


def facts_of(form: str, reading: Reading) -> ReaderResult:
    """Return the facts of a document and every finding about its bytes.

    Keys begin with the name of the format; numbers with a fraction are their source text.
    """
    if reading.value is ABSENT or reading.facts:
        return ReaderResult(facts=reading.facts, findings=reading.findings)
    out = Extraction()
    out.add(reading.findings)
    add_facts(reading.value, form, "", out)
    return out.result()


def differences(before: tuple[Fact, ...], after: tuple[Fact, ...]) -> tuple[FactDifference, ...]:
    """Return what differs, in the order of the later version; what is gone comes last.

    Example:
        >>> old = Fact(key="a", value="1.10", decimal=True, location="/a")
        >>> differences((old,), (Fact(key="a", value=1, location="/a"),))
        (FactDifference(location='/a', key='a', before='1.10', after='1'),)
    """
    sides = [{(fact.location, fact.key): fact for fact in facts} for facts in (before, after)]
    found = []
    for place in dict.fromkeys((*sides[1], *sides[0])):
        old, new = sides[0].get(place), sides[1].get(place)
        if old is None or new is None or _differ(old, new):
            found.append(FactDifference(*place, _text(old), _text(new)))
    return tuple(found)


def _differ(old: Fact, new: Fact) -> bool:
    """Say whether two facts state two things; 1 and True are equal in Python and two things here."""
    return (old.value, old.decimal, type(old.value)) != (new.value, new.decimal, type(new.value))


def _text(fact: Fact | None) -> str | None:
    if fact is None:
        return None
    if isinstance(fact.value, tuple):
        return ", ".join(map(str, fact.value))
    if fact.value is None:
        return "null"
    return str(fact.value).lower() if isinstance(fact.value, bool) else str(fact.value)
