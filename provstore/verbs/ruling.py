"""Holding documents to the rules of their formats before they are imported; nothing is written."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from provstore.errors import InputOutputError, IntegrityError, NotFoundError, NotHeldError, UsageError
from provstore.evidence.finding import Finding
from provstore.evidence.jsonreader import ABSENT
from provstore.files.hashing import read_file
from provstore.graph.documents.page import is_page
from provstore.graph.documents.reading import MAX_DOCUMENT_BYTES
from provstore.graph.rules.checking import check, document_of
from provstore.graph.rules.rule import Document, Files
from provstore.paths import show
from provstore.reports.checked import CheckReport
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.document_files import DocumentFile, ImportOptions, chosen_files, read_whole

MAX_NAMES: Final = 100_000
"""Folders that are looked into for files of one name."""


class Nowhere:
    """No files at all: a document that is checked without a root and without a store."""

    whole = False

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """Return None."""
        return None

    def has(self, path: str) -> bool:
        """Return False."""
        return False

    def escapes(self, path: str) -> bool:
        """Return False."""
        return False

    def names(self, folder: str, name: str) -> list[str]:
        """Return nothing."""
        return []


class Below:
    """Files below a directory; a link that leads out of it leads nowhere.

    Args:
        root: the directory.
        whole: a file that is not in there is nowhere; None for what ``.git`` in it says.
    """

    def __init__(self, root: str | bytes | os.PathLike[str], *, whole: bool | None = None) -> None:
        self.root = os.path.realpath(os.fsencode(root))
        self.whole = os.path.lexists(os.path.join(self.root, b".git")) if whole is None else whole

    def _real(self, path: str) -> bytes | None:
        """Return the file that a path leads to, or None when that is no regular file below the root."""
        try:
            real = os.path.realpath(os.path.join(self.root, os.fsencode(path)))
            inside = real.startswith(self.root + b"/") and stat.S_ISREG(os.stat(real).st_mode)
        except (OSError, ValueError):
            return None
        return real if inside else None

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """Return the bytes of a file; None when there is none, or it cannot be read."""
        real = self._real(path)
        if real is None:
            return None
        try:
            data = read_file(real, limit_bytes)
        except InputOutputError:
            return None
        return data if len(data) <= limit_bytes else None

    def has(self, path: str) -> bool:
        """Say whether there is a file."""
        return self._real(path) is not None

    def escapes(self, path: str) -> bool:
        """Say whether a path leads out of the directory through a link."""
        try:
            real = os.path.realpath(os.path.join(self.root, os.fsencode(path)))
        except (OSError, ValueError):
            return False
        return not real.startswith(self.root + b"/") and real != self.root

    def names(self, folder: str, name: str) -> list[str]:
        """Return the paths ``FOLDER/*/NAME`` that are there, sorted."""
        base = os.path.join(self.root, os.fsencode(folder))
        try:
            with os.scandir(base) as scan:
                below = sorted(
                    os.fsdecode(entry.name) for _, entry in zip(range(MAX_NAMES), scan, strict=False)
                )
        except OSError:
            return []
        return [path for path in (f"{folder}/{one}/{name}" for one in below) if self.has(path)]


class Imported:
    """Files of one repository that were imported into a store.

    Args:
        reader: the store.
        repository: name in front of the paths.
    """

    whole = False

    def __init__(self, reader: Reader, repository: str) -> None:
        self.reader = reader
        self.repository = repository

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """Return the bytes of a document, or None when none of that name has its bytes here."""
        packet = self.reader.ref(f"{self.repository}/{path}")
        if packet is None:
            return None
        try:
            entries = objects.packet(self.reader, packet).entries
            if len(entries) != 1 or entries[0].blake3 is None:
                return None
            id = bytes.fromhex(entries[0].blake3)
            info = self.reader.info(id)
            if info is None or info.size_bytes > limit_bytes:
                return None
            return objects.read(self.reader, id, limit_bytes, info)
        except (IntegrityError, NotFoundError, NotHeldError):
            return None

    def has(self, path: str) -> bool:
        """Say whether something of that name was imported."""
        return self.reader.ref(f"{self.repository}/{path}") is not None

    def escapes(self, path: str) -> bool:
        """Return False: a store has no links."""
        return False

    def names(self, folder: str, name: str) -> list[str]:
        """Return the paths ``FOLDER/*/NAME`` that were imported, sorted."""
        head = f"{self.repository}/"
        paths = [
            ref.removeprefix(head) for ref, _ in self.reader.refs() if ref.startswith(f"{head}{folder}/")
        ]
        depth = folder.count("/") + 2
        return [path for path in paths if path.count("/") == depth and path.endswith(f"/{name}")]


class Both:
    """Files of a directory, and behind it those of a store.

    Args:
        first: looked at first.
        second: looked at for what the first does not have.
    """

    def __init__(self, first: Files, second: Files) -> None:
        self.first = first
        self.second = second

    @property
    def whole(self) -> bool:
        """True if one of them is."""
        return self.first.whole or self.second.whole

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """Return the bytes of a file of either."""
        data = self.first.read(path, limit_bytes)
        return self.second.read(path, limit_bytes) if data is None and not self.first.has(path) else data

    def has(self, path: str) -> bool:
        """Say whether either has it."""
        return self.first.has(path) or self.second.has(path)

    def escapes(self, path: str) -> bool:
        """Say whether a path leads out of the first."""
        return self.first.escapes(path)

    def names(self, folder: str, name: str) -> list[str]:
        """Return the paths that either has, sorted."""
        return sorted({*self.first.names(folder, name), *self.second.names(folder, name)})


def check_documents(
    paths: Sequence[str | bytes | os.PathLike[str]],
    options: ImportOptions | None = None,
    reader: Reader | None = None,
    trusted: Sequence[str] = (),
) -> CheckReport:
    """Hold documents to the rules of their formats and return every finding.

    A directory stands for every file below it that a rule is for; the others are listed. Documents that are
    checked together see each other.

    Args:
        paths: files and directories; at least one.
        options: as for an import; files that documents cite are looked for below the root.
        reader: a store with more of the repository, or None.
        trusted: see :class:`~provstore.graph.rules.rule.Context`.

    Raises:
        UsageError: a file lies outside the root, or two files would have one name.
        NotFoundError: there is no such file.
    """
    options = options or ImportOptions()
    chosen = chosen_files(reader, paths, options)
    documents: list[Document] = []
    not_checked: list[str] = []
    for file in chosen:
        document = _document(file)
        if document is not None and (document.format or file.given):
            documents.append(document)
        else:
            not_checked.append(file.role)
    if len({document.path for document in documents}) != len(documents):
        raise UsageError("two documents have one path; check them with one --root")
    report = check(documents, _files(paths, options, reader, chosen), trusted)
    return CheckReport(
        outcome=report.outcome,
        documents=report.documents,
        findings=report.findings,
        not_checked=tuple(not_checked),
        left_out=report.left_out,
    )


def _document(file: DocumentFile) -> Document | None:
    """Return a file as a document; None for one that was not named and is too long or no JSON."""
    data = read_whole(file)
    if data is None:
        message = f"longer than {MAX_DOCUMENT_BYTES} bytes"
        finding = Finding(code="too-large", severity="error", location="", message=message)
        return Document(file.role, "", ABSENT, (finding,)) if file.given else None
    if not file.given and data.lstrip()[:1] not in (b"{", b"[") and not is_page(data):
        return None
    return document_of(file.role, data)


def _files(
    paths: Sequence[str | bytes | os.PathLike[str]],
    options: ImportOptions,
    reader: Reader | None,
    chosen: Sequence[DocumentFile],
) -> Files:
    """Return where files that documents cite are looked for."""
    root = options.root
    if root is None and len(paths) == 1 and Path(show(os.fsencode(paths[0]))).is_dir():
        root = paths[0]
    near: Files = Nowhere() if root is None else Below(root)
    repositories = {file.repository for file in chosen}
    if reader is None or len(repositories) != 1:
        return near
    return Both(near, Imported(reader, repositories.pop()))
