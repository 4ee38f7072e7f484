"""What a rule is: a code, a sentence, the documents it is for, and a function that finds violations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from provstore.errors import NotFoundError
from provstore.evidence.finding import Finding
from provstore.evidence.jsonreader import ABSENT, Absent, Limits, Value, kind, read
from provstore.graph.rules.places import Place, shown
from provstore.reports.checked import FindingSeverity

ABSENT_EVIDENCE: Final = "evidence-absent"
"""Code of a finding that says a rule could not look, since a file is not at hand."""

ANY: Final = "*"
"""Stands for every format, also for a document of none."""

CITED: Final = Limits(bytes=16 << 20)
"""Bounds of a document that is read because another one cites it."""


Made = TypeVar("Made")


class Files(Protocol):
    """Files of one repository by their paths: below a directory, or in a store."""

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """Return the bytes of a file; None when there is none, or it is longer than the limit."""

    def has(self, path: str) -> bool:
        """Say whether there is a file."""

    def escapes(self, path: str) -> bool:
        """Say whether a path leads out of the repository through a link."""

    def names(self, folder: str, name: str) -> list[str]:
        """Return the paths ``FOLDER/*/NAME`` that are there, sorted."""

    @property
    def whole(self) -> bool:
        """True if a file that is not here is nowhere in the repository; else it may only be absent here."""


class Document(NamedTuple):
    """One document as rules see it.

    Attributes:
        path: its path in the repository.
        format: what it was recognised as; see :mod:`provstore.graph.rules.formats`.
        value: what was read.
        findings: of the reading.
    """

    path: str
    format: str
    value: Value | Absent
    findings: tuple[Finding, ...] = ()

    @property
    def root(self) -> Place:
        """The whole document."""
        return Place("", self.value)


class Violation(NamedTuple):
    """What a rule found.

    Attributes:
        pointer: JSON pointer of where.
        message: one sentence.
        expected: what the rule asks for.
        found: what is there.
        code: when it is not the rule's own.
        severity: when it is not the rule's own.
        claim: what is left out may not stand as a headline (``INELIGIBLE``).
    """

    pointer: str
    message: str
    expected: str = ""
    found: str = ""
    code: str = ""
    severity: FindingSeverity | None = None
    claim: bool = False


class Context:
    """What a rule may look at beside its document.

    Args:
        documents: the documents under check, by path.
        files: other files of the repository.
        trusted: owners of repositories whose pinned campaigns are acceptance evidence, beside the one that a
            recipe names as its own source.
    """

    def __init__(self, documents: Mapping[str, Document], files: Files, trusted: Sequence[str] = ()) -> None:
        self.documents = documents
        self.files = files
        self.trusted = trusted
        self._cited: dict[str, Document | None] = {}
        self._kept: dict[tuple[int, object], object] = {}

    def has(self, path: str) -> bool:
        """Say whether a file is at hand."""
        return path in self.documents or self.files.has(path)

    def cited(self, path: str) -> Document | None:
        """Return a JSON document that another one cites; None when it is not at hand or is no JSON.

        Cited documents are read once for one check.
        """
        if path in self.documents:
            return self.documents[path]
        if path not in self._cited:
            data = self.files.read(path, CITED.bytes)
            value: Value | Absent = ABSENT if data is None else read(data, CITED).value
            good = isinstance(value, dict | list)
            self._cited[path] = Document(path, "", value) if good else None
        return self._cited[path]

    def kept(self, document: Document, make: Callable[[Document], Made]) -> Made:
        """Return what a class makes of a document, the same for every rule of one check."""
        key = (id(document.value), make)
        if key not in self._kept:
            self._kept[key] = make(document)
        return self._kept[key]  # type: ignore[return-value]

    def of_format(self, *formats: str) -> Iterator[Document]:
        """Yield the documents under check that have one of these formats, by path."""
        for path in sorted(self.documents):
            if self.documents[path].format in formats:
                yield self.documents[path]

    def only(self, format: str, id: str) -> Document | None:
        """Return the document under check with a format and an id; None when there is none."""
        return next((d for d in self.of_format(format) if d.root.at("id").value == id), None)


Check = Callable[[Document, Context], Iterator[Violation]]
"""Looks at one document and yields what is wrong; never raises because of what the document says."""


class Rule(NamedTuple):
    """One rule.

    Attributes:
        code: stable name.
        numbers: its numbers in the field's list of rules; none for what that list calls a hole.
        severity: of its findings.
        formats: of the documents it applies to; :data:`ANY` for all.
        sentence: what it asks for.
        check: see :data:`Check`.
    """

    code: str
    numbers: tuple[int, ...]
    severity: FindingSeverity
    formats: tuple[str, ...]
    sentence: str
    check: Check

    def applies(self, format: str) -> bool:
        """Say whether the rule is for documents of a format."""
        return format in self.formats or ANY in self.formats


def rule(
    code: str, *numbers: int, on: str | tuple[str, ...], severity: FindingSeverity = "error"
) -> Callable[[Check], Rule]:
    """Make a rule of a function; the sentence is its docstring.

    Args:
        code: stable name.
        numbers: its numbers in the field's list.
        on: formats that it applies to.
        severity: of its findings.
    """

    def made(check: Check) -> Rule:
        sentence = " ".join((check.__doc__ or "").split())
        return Rule(code, numbers, severity, (on,) if isinstance(on, str) else on, sentence, check)

    return made


def bad(place: Place, message: str, expected: str = "", code: str = "") -> Violation:
    """Return a violation at a place that shows what is there."""
    return Violation(place.pointer, message, expected, shown(place.value), code)


def missing_evidence(place: Place, path: str, why: str = "", *, claim: bool = False) -> Violation:
    """Return what to say where a file would have to be looked into and is not at hand."""
    message = f"{path} is not at hand" + (f": {why}" if why else "")
    return Violation(
        place.pointer, message[:400], path[:160], "absent", ABSENT_EVIDENCE, "unknown", claim=claim
    )


def by_code(rules: tuple[Rule, ...], code: str) -> Rule:
    """Return the rule with a code.

    Raises:
        NotFoundError: there is none.
    """
    for found in rules:
        if found.code == code:
            return found
    raise NotFoundError(code, "no rule has this code")


def wrong_kind(place: Place, wanted: str) -> Violation:
    """Return a violation that says what kind of value a place must have."""
    return Violation(place.pointer, f"must be {wanted}, is {kind(place.value)}", wanted, shown(place.value))
