"""Extractors of a policy: which member of a packet is read, by which reader, under which name."""

import fnmatch
import re
from collections.abc import Callable
from typing import ClassVar, Final

import msgspec

from provstore.evidence.bench import read_bench
from provstore.evidence.documents import add_facts
from provstore.evidence.finding import Extraction, ReaderResult
from provstore.evidence.idle import SnapshotShape, read_idle
from provstore.evidence.jsonreader import ABSENT, Absent, Value, read
from provstore.evidence.keyvalue import (
    read_cleanup,
    read_environment,
    read_identity,
    read_idle_summary,
    read_status,
)
from provstore.evidence.ledger import read_ledger
from provstore.evidence.lines import text_lines
from provstore.evidence.locks import read_lock, read_verification
from provstore.evidence.oracle import read_oracle
from provstore.evidence.prometheus import read_prometheus
from provstore.evidence.serverlog import LinePattern

NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")
"""Name of an extractor."""

_FREEZE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;#]+)(?:\s*[;#].*)?")


class JsonReading(ReaderResult, frozen=True, kw_only=True):
    """Any JSON document, with its value as a tree."""

    tree: Value | Absent


class Extract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """One extractor.

    Attributes:
        name: how gates call it.
        role: place of the member (``role/path``), or a pattern in which ``*`` fits within one part of a path.
        parent: it lies in a parent of the packet, not in the packet itself.
    """

    name: str
    role: str
    parent: bool = False

    PREFIX: ClassVar[str] = ""
    """First part of the keys of its facts."""

    VERSION: ClassVar[int] = 1
    """Version of the extractor; another version may find other facts."""

    GROUPS: ClassVar[tuple[str, ...] | None] = None
    """Keys that it can give; None when the file decides."""

    @property
    def kind(self) -> str:
        """Name of its kind."""
        return str(self.__struct_config__.tag)

    @property
    def prefix(self) -> str:
        """First part of the keys of its facts."""
        return self.PREFIX

    def fits(self, place: str) -> bool:
        """Say whether the extractor is about a member.

        Example:
            >>> Status(name="s", role="run/*.txt").fits("run/status.txt")
            True
            >>> Status(name="s", role="run/*.txt").fits("run/deep/status.txt")
            False
        """
        return place == self.role or (
            "*" in self.role
            and place.count("/") == self.role.count("/")
            and all(map(fnmatch.fnmatchcase, place.split("/"), self.role.split("/")))
        )

    def reason_to_refuse(self) -> str:
        """Return why it cannot be used as it is written, or nothing."""
        return ""

    def read(self, data: bytes) -> ReaderResult:
        """Read a member."""
        return READERS[self.kind](data)


class Json(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="json"):
    """Any JSON document. Facts: JSON pointers, or member names joined by dots without array places."""

    PREFIX: ClassVar[str] = "document"


class Bench(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="bench"):
    """A benchmark with one row a request. Facts as for ``json``; rows for gates that count them."""

    PREFIX: ClassVar[str] = "bench"


class Oracle(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="oracle"):
    """Correct output, one row a prompt: token ids, digests of texts, or both."""

    PREFIX: ClassVar[str] = "oracle"


class Identity(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="identity"):
    """``key=value`` lines, then ``digest  path`` lines. Facts: the keys."""

    PREFIX: ClassVar[str] = "identity"


class Variables(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="environment"):
    """``KEY=value`` lines of an environment. Facts: the variables."""

    PREFIX: ClassVar[str] = "env"


class Status(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="status"):
    """One ``status=WORD`` line. Facts: ``status``."""

    PREFIX: ClassVar[str] = "status"
    GROUPS: ClassVar[tuple[str, ...] | None] = ("status", "#lines")


class Codes(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cleanup"):
    """``name=integer`` lines of exit codes. Facts: the names."""

    PREFIX: ClassVar[str] = "cleanup"


class Summary(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="idle-summary"):
    """``PHASE name=integer ...`` lines. Facts: ``phase`` and the names."""

    PREFIX: ClassVar[str] = "idle_summary"


class Lines(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="lines"):
    """Lines of a log that hold a marker. Facts: the named groups, and ``#lines`` and ``#matches``.

    Attributes:
        marker: text that a line must hold.
        pattern: expression with named groups that is searched in such a line; a line that it does not fit is
            a finding.
        integers: groups that are integers.
    """

    marker: str
    pattern: str = ""
    integers: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """First part of the keys of its facts."""
        return f"log.{self.name}"

    def line_pattern(self) -> LinePattern:
        """Return what the log reader takes.

        Raises:
            MalformedError: a bad marker or expression.
        """
        return LinePattern(name=self.name, marker=self.marker, pattern=self.pattern, integers=self.integers)


class Metrics(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="metrics"):
    """One scrape in the Prometheus text format. Facts: name and labels of each series."""

    PREFIX: ClassVar[str] = "prometheus"


class Idle(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="idle"):
    """A snapshot of the devices with the raw output of the tool. Facts as for ``json``.

    Attributes:
        shape: where the snapshot keeps what; the defaults fit output of ``xpu-smi ps -j``.
    """

    shape: SnapshotShape = SnapshotShape()

    PREFIX: ClassVar[str] = "idle"

    def read(self, data: bytes) -> ReaderResult:
        """Read a snapshot."""
        return read_idle(data, self.shape)


class Lock(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="lock"):
    """A runtime lock: pinned files, packages, sources. Facts as for ``json``."""

    PREFIX: ClassVar[str] = "runtime_lock"


class Loaded(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="loaded"):
    """What was really loaded, and from where. Facts as for ``json``."""

    PREFIX: ClassVar[str] = "runtime_verification"


class Freeze(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="freeze"):
    """``name==version`` lines of installed packages. Facts: the names."""

    PREFIX: ClassVar[str] = "package"


class Ledger(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="ledger"):
    """An exported ledger, followed entry by entry; a broken chain or rule is a finding.

    Facts as for ``json``: ``/attempts``, ``/authorizations``, ``/head``, ``/entries``.
    """

    PREFIX: ClassVar[str] = "ledger"


class EntryFacts(Extract, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="entry"):
    """What the packet itself states of a member or entry, whether or not its bytes are here.

    Facts: ``sha256``, ``blake3``, ``size_bytes``, ``custody``, ``commit``, ``revision``, and every fact that
    an inspector found or a spec declared.
    """

    PREFIX: ClassVar[str] = "entry"


EXTRACTS: Final[dict[str, type[Extract]]] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        Json,
        Bench,
        Oracle,
        Identity,
        Variables,
        Status,
        Codes,
        Summary,
        Lines,
        Metrics,
        Idle,
        Lock,
        Loaded,
        Freeze,
        Ledger,
        EntryFacts,
    )
}
"""Every kind of extractor, by name."""


def read_json(data: bytes) -> JsonReading:
    """Read any JSON document.

    Example:
        >>> read_json(b'{"a": 0.0}').value("document.a")
        '0.0'
    """
    document = read(data)
    out = Extraction()
    out.add(document.findings)
    if document.value is not ABSENT:
        add_facts(document.value, Json.PREFIX, "", out)
    return JsonReading(facts=tuple(out.facts), findings=out.findings(), tree=document.value)


def read_freeze(data: bytes) -> ReaderResult:
    r"""Read a list of installed packages; lines of editable or direct installs give no fact.

    Example:
        >>> [(f.key, f.value) for f in read_freeze(b"# made by pip\ntorch==2.12.0+xpu\n-e git+x\n").facts]
        [('package.torch', '2.12.0+xpu')]
    """
    out = Extraction()
    for number, line in text_lines(data, out):
        match = _FREEZE.fullmatch(line)
        if match:
            out.fact(f"package.{match[1]}", match[2], f"line {number}")
    return out.result()


def read_chain(data: bytes) -> JsonReading:
    """Read an exported ledger.

    Example:
        >>> read_chain(b"").findings[0].code
        'empty'
    """
    found = read_ledger(data)
    return JsonReading(facts=found.facts, findings=found.findings, tree=found.tree)


READERS: Final[dict[str, Callable[[bytes], ReaderResult]]] = {
    "json": read_json,
    "bench": read_bench,
    "oracle": read_oracle,
    "identity": read_identity,
    "environment": read_environment,
    "status": read_status,
    "cleanup": read_cleanup,
    "idle-summary": read_idle_summary,
    "metrics": read_prometheus,
    "lock": read_lock,
    "loaded": read_verification,
    "freeze": read_freeze,
    "ledger": read_chain,
}
"""Reader of each kind that reads a whole member; logs are streamed, and entries are no bytes."""


def keys_of(extract: Extract) -> set[str] | None:
    """Return the keys that an extractor can give; None when the file decides."""
    if isinstance(extract, Lines):
        return {*extract.line_pattern().compiled().groupindex, "#lines", "#matches"}
    return None if extract.GROUPS is None else set(extract.GROUPS)
