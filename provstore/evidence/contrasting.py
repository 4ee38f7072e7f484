"""Two readings of one kind of evidence, held against each other: facts, tokens, counts, metrics.

Nothing here reads a store, and nothing that one side does not state equals anything.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from provstore.evidence.bench import same
from provstore.evidence.finding import ReaderResult
from provstore.evidence.folding import fold, passing
from provstore.evidence.jsonreader import ABSENT, Absent, Number, Value
from provstore.evidence.recognising import Layer
from provstore.paths import show
from provstore.records.facts import Fact
from provstore.reports import FactChange, MetricChange, RowsChange, TokenChange, UnknownPart

MAX_SHOWN: Final = 4000
"""Characters of a value that a report keeps; longer ones are compared whole and shown cut."""


class Contrast:
    """Collects what differs between both readings of one member.

    Args:
        role: entry of the member.
        path: its path below the entry.
        layer: where its differences belong.
        reader: name of its reader.
        folded: texts that a policy folds, with what they are replaced by.

    Example:
        >>> found = Contrast("env", "", "environment", "environment")
        >>> found.facts({"A": Fact(key="A", value="0")}, {"A": Fact(key="A", value="1")})
        >>> [(change.key, change.from_, change.to) for _, change in found.changes]
        [('A', '0', '1')]
    """

    def __init__(
        self, role: str, path: str, layer: Layer, reader: str, folded: Mapping[str, str] | None = None
    ) -> None:
        self.role = role
        self.path = path
        self.layer: Layer = layer
        self.reader = reader
        self.changes: list[tuple[Layer, FactChange]] = []
        self.folded: list[FactChange] = []
        self.tokens: list[TokenChange] = []
        self.metrics: list[MetricChange] = []
        self.rows: list[RowsChange] = []
        self.unknown: list[UnknownPart] = []
        self.notes: list[str] = []
        self._private = dict(folded or {})

    @property
    def place(self) -> str:
        """Shown path of the member."""
        return "/".join(part for part in (self.role, self.path) if part)

    def cannot(self, reason: str, layer: Layer | None = None) -> None:
        """Say that something about the member is unknown."""
        part = UnknownPart(
            layer=layer or self.layer, role=self.role, path=self.path, reader=self.reader, reason=reason
        )
        if part not in self.unknown:
            self.unknown.append(part)

    def change(self, key: str, before: str | None, after: str | None, layer: Layer | None = None) -> None:
        """Add a difference, unless it is one of private paths or, outside identity, of times alone."""
        layer = layer or self.layer
        found = FactChange(role=self.role, path=self.path, key=plain(key), from_=cut(before), to=cut(after))
        if before is not None and after is not None and self.private(layer, key, before, after):
            self.folded.append(found)
        else:
            self.changes.append((layer, found))

    def private(self, layer: Layer, key: str, before: str, after: str) -> bool:
        """Say whether two values differ only in private paths or, outside identity, in when the run was."""
        if fold(before, self._private) == fold(after, self._private):
            return before != after
        return layer != "identity" and passing(key, before, after)

    def facts(
        self,
        before: Mapping[str, Fact],
        after: Mapping[str, Fact],
        layer_of: Callable[[str, Fact], Layer] | None = None,
    ) -> None:
        """Compare facts by key: type and value; a key that one side lacks differs."""
        for key in dict.fromkeys((*before, *after)):
            x, y = before.get(key), after.get(key)
            if x is not None and y is not None and alike(x, y):
                continue
            texts = [None if fact is None else text_of(fact) for fact in (x, y)]
            if texts[0] == texts[1]:
                texts = [None if fact is None else f"{text_of(fact)} ({_type(fact)})" for fact in (x, y)]
            stated = x if x is not None else y
            layer = layer_of(key, stated) if layer_of is not None and stated is not None else None
            self.change(key, texts[0], texts[1], layer)

    def values(self, key: str, before: Value | Absent, after: Value | Absent, layer: Layer) -> bool:
        """Compare one field of a row; returns whether it differs. What no side states is no difference."""
        if (before is ABSENT and after is ABSENT) or same(before, after):
            return False
        self.change(key, value_text(before), value_text(after), layer)
        return True

    def token_lists(self, prompt: str, before: Sequence[int] | None, after: Sequence[int] | None) -> None:
        """Compare two outputs token by token; lists that are absent or empty are unknown, never equal."""
        if not before or not after:
            which = "the second side" if before else "the first side" if after else "neither side"
            self.cannot(f"{which} states token ids for each prompt" if which[0] == "n" else
                        f"{which} states no token ids for a prompt")  # fmt: skip
            return
        if list(before) == list(after):
            return
        shorter = min(len(before), len(after))
        index = next((at for at in range(shorter) if before[at] != after[at]), shorter)
        self.tokens.append(
            TokenChange(
                layer=self.layer,
                role=self.role,
                path=self.path,
                prompt=plain(prompt),
                index=index,
                from_=before[index] if index < len(before) else None,
                to=after[index] if index < len(after) else None,
                from_length=len(before),
                to_length=len(after),
            )
        )


def keyed(facts: Iterable[Fact]) -> dict[str, Fact]:
    """Return facts by key; one that is stated again gets a number, digest lines go by their folded path.

    Example:
        >>> list(keyed([Fact(key="n", value=1), Fact(key="n", value=2)]))
        ['n', 'n[2]']
    """
    found: dict[str, Fact] = {}
    for fact in facts:
        key = fact.key
        if key == "identity#file" and isinstance(fact.value, tuple):
            key = f"file.{fold(str(fact.value[1]))}"
            fact = Fact(key=key, value=fact.value[0], location=fact.location)
        name, count = key, 1
        while name in found:
            count += 1
            name = f"{key}[{count}]"
        found[name] = fact
    return found


def by_pointer(reading: ReaderResult) -> dict[str, Fact]:
    """Return the facts of a document by JSON pointer; of objects and arrays only the empty ones."""
    return {
        fact.location or "/": fact for fact in reading.facts if "#" not in fact.key or fact.value in ((), 0)
    }


# Texts


def text_of(fact: Fact) -> str:
    """Return what a fact states, for people; null and booleans as JSON writes them."""
    if isinstance(fact.value, tuple):
        return ", ".join(map(str, fact.value))
    if fact.value is None:
        return "null"
    return str(fact.value).lower() if isinstance(fact.value, bool) else str(fact.value)


def _type(fact: Fact) -> str:
    return "decimal" if fact.decimal else type(fact.value).__name__


def alike(x: Fact, y: Fact) -> bool:
    """Say whether two facts state the same: one type, one text."""
    return (type(x.value), x.value, x.decimal) == (type(y.value), y.value, y.decimal)


def value_text(value: Value | Absent) -> str | None:
    """Return a value of a document for people; None when nothing is there."""
    if value is ABSENT:
        return None
    if isinstance(value, Number):
        return value.text
    if isinstance(value, list):
        return ", ".join(value_text(item) or "" for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {value_text(item)}" for key, item in value.items())
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def plain(text: str) -> str:
    """Return foreign text without control characters."""
    return show(text.encode("utf-8", "surrogatepass"))


def cut(text: str | None) -> str | None:
    """Return foreign text as a report keeps it."""
    if text is None:
        return None
    shown = plain(text)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}... ({len(shown)} characters)"
