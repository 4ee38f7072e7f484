"""Which files an import looks at, and what each is called in the store."""

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from provstore.errors import NotFoundError, UsageError
from provstore.files.hashing import read_file
from provstore.files.walk import refuse_inside
from provstore.graph.documents.reading import MAX_DOCUMENT_BYTES
from provstore.paths import check_role, show
from provstore.store.protocol import Reader

WITHOUT_ROOT: Final = "documents"
"""Repository of files that are imported without a root."""


class ImportOptions(NamedTuple):
    """Choices of one import.

    Attributes:
        root: directory that roles are relative to; None for each directory given, or each file's own name.
        repository: name before the roles; None for the root's own name.
        tool: name and version that observations state.
    """

    root: str | bytes | os.PathLike[str] | None = None
    repository: str | None = None
    tool: str = "provstore"


class DocumentFile(NamedTuple):
    """One file that may be a document.

    Attributes:
        path: absolute.
        repository: name of the collection it belongs to.
        role: its path in there, shown.
        given: it was named by itself, not found below a directory.
    """

    path: bytes
    repository: str
    role: str
    given: bool

    @property
    def name(self) -> str:
        """Ref that names its packet."""
        return f"{self.repository}/{self.role}"


def chosen_files(
    store: Reader | None, paths: Sequence[str | bytes | os.PathLike[str]], options: ImportOptions
) -> list[DocumentFile]:
    """Return the files to look at, by name; each name once. A store that is given is not entered."""
    if not paths:
        raise UsageError("nothing to import: name files or directories")
    found: dict[str, DocumentFile] = {}
    skip: frozenset[tuple[int, int]] = frozenset() if store is None else store.directory_ids()
    for path in paths:
        raw = os.path.abspath(os.fsencode(path))
        if not os.path.lexists(raw):
            raise NotFoundError(show(raw), "no such file or directory")
        refuse_inside(raw, skip)
        for file in _below(raw, skip, options):
            other = found.setdefault(check_role(file.name, show(file.path)), file)
            if other.path != file.path:
                both = f"{show(other.path)} and {show(file.path)}"
                raise UsageError(f"{both} would both be {file.name!r}; import them with --root or --as")
    return [found[name] for name in sorted(found)]


def _below(raw: bytes, skip: frozenset[tuple[int, int]], options: ImportOptions) -> Iterator[DocumentFile]:
    directory = os.path.isdir(raw)
    base = None if options.root is None else os.path.abspath(os.fsencode(options.root))
    if base is None and directory:
        base = raw
    repository = options.repository
    if repository is None:
        repository = WITHOUT_ROOT if base is None else show(os.path.basename(base) or b"root")
    if not directory:
        yield DocumentFile(raw, repository, _role(raw, base), True)
        return
    for path in _walk(raw, skip):
        yield DocumentFile(path, repository, _role(path, base), False)


def _role(path: bytes, base: bytes | None) -> str:
    if base is None:
        return show(os.path.basename(path))
    relative = os.path.relpath(path, base)
    if relative.split(b"/", 1)[0] == b"..":
        raise UsageError(f"{show(path)} does not lie below the root {show(base)}")
    return show(relative)


def _walk(base: bytes, skip: frozenset[tuple[int, int]]) -> Iterator[bytes]:
    """Yield regular files below a directory, sorted; links are not followed, stores not entered."""
    todo = [base]
    while todo:
        here = todo.pop()
        with os.scandir(here) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        below = []
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode) and (status.st_dev, status.st_ino) not in skip:
                below.append(entry.path)
            elif stat.S_ISREG(status.st_mode):
                yield entry.path
        todo += reversed(below)


def read_whole(file: DocumentFile) -> bytes | None:
    """Return the bytes of a file, or None when it is larger than any document."""
    if os.path.getsize(file.path) > MAX_DOCUMENT_BYTES:
        return None
    data = read_file(file.path, MAX_DOCUMENT_BYTES)
    return data if len(data) <= MAX_DOCUMENT_BYTES else None
