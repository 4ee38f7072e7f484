"""Facts of an entry by its kind: which inspector looks at what, once per content and version."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple

from blake3 import blake3

from provstore import gitids, merkle, records
from provstore.errors import InspectError, SourceChangedError
from provstore.files import inspectors
from provstore.files.inspect_hub import blob_problem
from provstore.files.outcome import Ingested
from provstore.files.root import Root
from provstore.ids import RawId
from provstore.paths import show
from provstore.records.facts import Fact, Facts
from provstore.records.tree import TreeEntry
from provstore.store.objects import Records
from provstore.store.protocol import Stage

VERSIONS: Final = {"elf": 1, "git": 1, "python": 1, "safetensors": 1, "text": 1, "declared": 1}
"""Version of each extractor; another version makes another facts record."""


class Inspected(NamedTuple):
    """What the inspectors of one entry found.

    Attributes:
        facts: hex ids of facts records.
        problems: stand-ins and holes that make the entry incomplete.
        commit: commit of a source tree, hex, if it has one.
        notes: remarks for the seal report.
    """

    facts: tuple[str, ...]
    problems: tuple[str, ...] = ()
    commit: str | None = None
    notes: tuple[str, ...] = ()


class Inspection:
    """The inspectors of one seal, with what they write to.

    Args:
        stage: receives facts records.
        known: gives tree records of the store and the stage.
        cached: gives values of the stat cache.
    """

    def __init__(self, stage: Stage, known: Records, cached: Callable[[bytes], bytes | None]) -> None:
        self._stage = stage
        self._known = known
        self._cached = cached

    def entry(self, kind: str, path: bytes, ingested: Ingested) -> Inspected:
        """Inspect what lies at ``path`` and was ingested just now."""
        if ingested.tree is None:
            return self._file(kind, path, ingested)
        if kind == "source-tree":
            return self._source_tree(path, ingested)
        found: tuple[str, ...] = ()
        problems: tuple[str, ...] = ()
        if kind == "native":
            found = self._facts("elf", ingested.tree, lambda tree: self._elf(path, tree))
        elif kind == "model":
            problems = self._model_problems(path, ingested.tree)
            found = self._facts("safetensors", ingested.tree, lambda tree: self._safetensors(path, tree))
        elif kind == "python-env":
            inspect = inspectors.inspect_python_env
            found = self._facts("python", ingested.tree, lambda tree: inspect(path), path)
            found += self._facts("elf", ingested.tree, lambda tree: self._elf(path, tree, needed=False))
        return Inspected(found, problems)

    def declared(self, values: dict[str, str | int | bool], source: str) -> tuple[str, ...]:
        """Return the facts record of values that a spec states."""
        facts = tuple(Fact(key=key, value=values[key]) for key in sorted(values))
        return (self._put("declared", source, facts),) if facts else ()

    def _facts(
        self, extractor: str, source: RawId, extract: Callable[[RawId], Iterable[Fact]], place: bytes = b""
    ) -> tuple[str, ...]:
        """Return the id of the facts record of one extractor, made only if there is none for this content.

        ``place`` is where it lies, for an extractor whose facts depend on that as well.
        """
        key = blake3(f"facts {extractor} {VERSIONS[extractor]} ".encode() + source + place).digest(16)
        id = self._cached(key)
        if id is not None and (not id or self._stage.has_record(id)):
            return (id.hex(),) if id else ()
        facts = tuple(extract(source))
        made = self._put(extractor, source.hex(), facts) if facts else ""
        self._stage.add_cached({key: bytes.fromhex(made)})
        return (made,) if made else ()

    def _put(self, extractor: str, source: str, facts: tuple[Fact, ...]) -> str:
        id, data = records.encode(
            Facts(extractor=extractor, version=VERSIONS[extractor], source=source, facts=facts)
        )
        if not self._stage.has_record(id):
            self._stage.add_record(id, data)
        return id.hex()

    def _file(self, kind: str, path: bytes, ingested: Ingested) -> Inspected:
        entry = ingested.file
        if entry is None or entry.blake3 is None or entry.state is not None:
            return Inspected(())
        source = bytes.fromhex(entry.blake3)
        if kind in ("native", "model"):
            directory, name = os.path.split(os.path.abspath(path))
            with Root(directory) as root:
                if kind == "native":
                    extract = self._elf_facts(root, name, entry, needed=True)
                elif name.endswith(b".safetensors"):
                    extract = self._safetensors_facts(root, name, entry)
                else:
                    return Inspected(())
                facts = [replace_path(fact, "") for fact in extract]
            return Inspected(
                self._facts("elf" if kind == "native" else "safetensors", source, lambda _: facts)
            )
        if (entry.size_bytes or 0) > (4 << 20) or kind in ("benchmark-log", "server-log", "metrics", "file"):
            return Inspected(())
        return Inspected(self._facts("text", source, lambda _: self._text_facts(kind, path, entry)))

    def _text_facts(self, kind: str, path: bytes, entry: TreeEntry) -> tuple[Fact, ...]:
        return inspectors.text_facts(kind, self._whole(path, entry), show(path))

    def _whole(self, path: bytes, entry: TreeEntry) -> bytes:
        with open(path, "rb") as file:
            data = file.read()
        if blake3(data).hexdigest() != entry.blake3:
            raise SourceChangedError(show(path), ["content"])
        return data

    def _files(self, tree: RawId) -> Iterator[tuple[bytes, TreeEntry]]:
        for path, entry in merkle.walk(self._known.fetch, tree):
            if entry.kind in ("file", "executable") and entry.blake3 is not None:
                yield path, entry

    def _elf(self, base: bytes, tree: RawId, *, needed: bool = True) -> list[Fact]:
        facts: list[Fact] = []
        with Root(base) as root:
            for path, entry in self._files(tree):
                facts += self._elf_facts(root, path, entry, needed=False)
        if needed and not facts:
            raise InspectError(show(base), "kind native, but no file below it is an ELF object")
        return facts

    def _elf_facts(self, root: Root, path: bytes, entry: TreeEntry, *, needed: bool) -> list[Fact]:
        with _opened(root, path) as file:
            if not inspectors.is_elf(file.read(16)):
                if needed:
                    raise InspectError(show(path), "kind native, but it is no ELF object")
                return []
            file.seek(0)
            return list(inspectors.inspect_elf(file, show(path)))

    def _safetensors(self, base: bytes, tree: RawId) -> list[Fact]:
        facts: list[Fact] = []
        with Root(base) as root:
            for path, entry in self._files(tree):
                if path.endswith(b".safetensors") and entry.state is None:
                    facts += self._safetensors_facts(root, path, entry)
        return facts

    def _safetensors_facts(self, root: Root, path: bytes, entry: TreeEntry) -> list[Fact]:
        with _opened(root, path) as file:
            return list(inspectors.inspect_safetensors(file, show(path), entry.size_bytes or 0))

    def _model_problems(self, base: bytes, tree: RawId) -> tuple[str, ...]:
        """Name shards that an index lists and nobody has, and blobs that are not what they are called."""
        files = dict(self._files(tree))
        names = files.keys()
        blobs = [
            blob_problem(base, path, entry.sha256 or "", entry.size_bytes or 0)
            for path, entry in files.items()
        ]
        problems = [problem for problem in blobs if problem is not None]
        for path in sorted(names):
            if path.endswith(b".safetensors.index.json"):
                with Root(base) as root, _opened(root, path) as file:
                    shards = inspectors.index_shards(file.read(inspectors.MAX_INDEX_BYTES + 1), show(path))
                folder = os.path.dirname(path)
                absent = [s for s in shards if os.path.join(folder, s.encode()) not in names]
                problems += [f"{show(path)}: lists {show(shard)}, which is not there" for shard in absent]
        return tuple(problems)

    def _source_tree(self, path: bytes, ingested: Ingested) -> Inspected:
        state = inspectors.inspect_git(path)
        differing = (
            set(inspectors.filtered(state, ingested.git_ids)) if state.object_format == "sha1" else set()
        )
        differing |= {change.path for change in state.dirty} & {file.path for file in state.tracked}
        sha256 = self._payloads(ingested.tree) if state.lfs else {}
        notes = []
        for place, why in inspectors.conversions(path, state, sorted(differing), sha256).items():
            if why != "unexplained":
                notes.append(f"{show(place)}: work tree differs from blob by {_FILTERS[why]}")
            elif not any(change.path == place for change in state.dirty):
                notes.append(f"{show(place)}: differs from its blob, though Git's stat data says it does not")
        facts = self._sealed_tree(state, ingested) + inspectors.git_facts(state)
        made = self._put("git", ingested.tree.hex() if ingested.tree else "", facts) if facts else ""
        return Inspected((made,) if made else (), (), state.commit, tuple(notes))

    def _sealed_tree(self, state: "inspectors.GitState", ingested: Ingested) -> tuple[Fact, ...]:
        """Return the Git tree id of the tracked paths as they were sealed, computed without Git."""
        if ingested.tree is None or state.object_format != "sha1":
            return ()
        index = inspectors.tracked(state)
        files: dict[bytes, tuple[gitids.Mode, bytes]] = {
            path: ("160000", bytes.fromhex(id)) for path, (mode, id) in index.items() if mode == "160000"
        }
        for path, entry in merkle.walk(self._known.fetch, ingested.tree):
            if path not in index or entry.kind == "directory":
                continue
            if entry.kind == "symlink":
                files[path] = ("120000", gitids.blob_id(entry.raw_target()))
            elif path in ingested.git_ids:
                mode: gitids.Mode = "100755" if entry.kind == "executable" else "100644"
                files[path] = (mode, ingested.git_ids[path])
        return (Fact(key="git.sealed_tree", value=gitids.root_tree_id(files).hex()),)

    def _payloads(self, tree: RawId | None) -> dict[bytes, bytes]:
        if tree is None:
            return {}
        return {path: bytes.fromhex(entry.sha256 or "") for path, entry in self._files(tree)}


_FILTERS: Final = {
    "line-ends": "eol filter",
    "built-in": "a filter that its attributes ask for",
    "lfs": "the LFS filter",
}


def _opened(root: Root, path: bytes) -> BinaryIO:
    return os.fdopen(root.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")


def replace_path(fact: Fact, path: str) -> Fact:
    """Return a fact with another path."""
    return Fact(key=fact.key, value=fact.value, decimal=fact.decimal, path=path, location=fact.location)


def thin_bundles(bundles: Sequence[bytes]) -> list[str]:
    """Return a line for each thing that Git bundles need and that none of them holds."""
    problems: list[str] = []
    for path in bundles:
        others = [other for other in bundles if other != path]
        try:
            problems += inspectors.bundle_problems(path, others)
        except InspectError as error:
            problems.append(
                f"{error.message}; copy the bundle again, or make it anew with `git bundle create`"
            )
    return problems
