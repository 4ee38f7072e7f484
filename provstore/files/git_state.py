"""What was found in a Git work tree, as values: the state, its facts, and its comparison with real bytes.

Pure: :mod:`provstore.files.inspect_git` fills these structs.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from provstore.files.standins import LfsPointer
from provstore.gitids import ObjectFormat
from provstore.paths import join, show
from provstore.records.facts import Fact, FactValue

PayloadState = Literal["pointer", "payload", "absent", "other"]
"""What lies in the work tree at the path of a committed LFS pointer: the pointer itself, a file of the size
that it names (its digest is the caller's to compare), nothing, or something else."""

SubmoduleState = Literal["absent", "clean", "moved", "dirty", "moved+dirty"]
"""Not checked out; as recorded; another commit checked out; changed files, hidden files or untracked files
in it; both."""


class GitChange(NamedTuple):
    """A path that differs between HEAD, index and work tree.

    Attributes:
        code: ``XY`` of git-status, porcelain version 2: X index against HEAD, Y work tree against index,
            ``.`` for no difference, ``M`` content or mode, ``T`` type, ``A`` added, ``D`` deleted, ``U``
            unmerged.
        path: relative to the top of the work tree.
    """

    code: str
    path: bytes


class TrackedFile(NamedTuple):
    """One path of the index, without conflict.

    Attributes:
        path: relative to the top of the work tree.
        mode: ``100644``, ``100755``, ``120000`` or ``160000``.
        id: hex id of the blob, or of the submodule's commit.
    """

    path: bytes
    mode: str
    id: str


class LfsFile(NamedTuple):
    """A committed LFS pointer, and what its path holds in the work tree."""

    path: bytes
    pointer: LfsPointer
    state: PayloadState


class GitRemote(NamedTuple):
    """A remote and its URL as it may be shown: without credentials and paths of this host."""

    name: bytes
    url: str


class Submodule(msgspec.Struct, frozen=True, kw_only=True):
    """A submodule.

    Attributes:
        path: relative to the top of the work tree that holds it.
        recorded: hex commit in the index of that work tree.
        checked_out: hex commit that its own HEAD names, where it is checked out and has one.
        state: see :data:`SubmoduleState`.
        inner: its own state, where it is checked out.
    """

    path: bytes
    recorded: str
    checked_out: str | None
    state: SubmoduleState
    inner: "GitState | None"


class GitState(msgspec.Struct, frozen=True, kw_only=True):
    """State of one work tree at one time.

    Attributes:
        commit: hex commit of HEAD (40 or 64 digits); ``None`` before the first commit.
        tree: hex tree of that commit; ``None`` with it.
        object_format: hash function of the repository.
        dirty: staged and unstaged changes, by path.
        untracked: paths that Git does not know and no rule ignores; a trailing ``/`` marks a nested
            repository, whose files Git does not look at.
        ignored: paths present but ignored; a directory of only such files stands for them, with a
            trailing ``/``.
        submodules: all of them, checked out or not.
        lfs: committed LFS pointers.
        remotes: in order of the configuration.
        shallow: history was cut off when it was cloned.
        partial_clone: objects may have been left out on purpose.
        missing_blobs: paths whose recorded blob is not in the repository.
        assume_unchanged: paths that Git was told not to look at.
        skip_worktree: paths left out of a sparse checkout, or marked so to hide a change.
        tracked: the index, by path.
    """

    commit: str | None
    tree: str | None
    object_format: ObjectFormat
    dirty: tuple[GitChange, ...] = ()
    untracked: tuple[bytes, ...] = ()
    ignored: tuple[bytes, ...] = ()
    submodules: tuple[Submodule, ...] = ()
    lfs: tuple[LfsFile, ...] = ()
    remotes: tuple[GitRemote, ...] = ()
    shallow: bool = False
    partial_clone: bool = False
    missing_blobs: tuple[bytes, ...] = ()
    assume_unchanged: tuple[bytes, ...] = ()
    skip_worktree: tuple[bytes, ...] = ()
    tracked: tuple[TrackedFile, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether the work tree, as far as Git looks, is exactly HEAD and nothing else but ignored files."""
        return (
            self.commit is not None
            and not self.dirty
            and not self.untracked
            and not self.skip_worktree
            and all(submodule.state == "clean" for submodule in self.submodules)
        )


def levels(state: GitState, prefix: bytes = b"") -> Iterator[tuple[bytes, GitState]]:
    """Give the state and that of every checked-out submodule, each with its path below the top."""
    yield prefix, state
    for submodule in state.submodules:
        if submodule.inner is not None:
            yield from levels(submodule.inner, join(prefix, submodule.path))


def tracked(state: GitState) -> dict[bytes, tuple[str, str]]:
    """Return mode and hex id of each path in the index; a submodule is one path of mode ``160000``.

    For a clean state without filtered files, a tree made by :func:`provstore.gitids.tree_id` of the bytes at
    exactly these paths has the id ``state.tree``.
    """
    return {file.path: (file.mode, file.id) for file in state.tracked}


def filtered(state: GitState, blob_ids: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    """Return the paths whose bytes are not the recorded blob although Git calls them unchanged.

    Mostly a filter: line ends, LFS. It may also be a change that stale or forged stat data hides;
    :func:`provstore.files.inspect_git.conversions` tells these apart.

    Args:
        state: of the work tree.
        blob_ids: raw id of the plain bytes of each path (:func:`provstore.gitids.blob_id` in the format of
            the state; of a symlink's text), below the top, files of submodules included. Paths that are not
            in it are not compared.

    Returns:
        Paths below the top, sorted.

    Example:
        >>> from provstore.gitids import blob_id
        >>> file = TrackedFile(b"f", "100644", blob_id(b"a").hex())
        >>> state = GitState(commit=None, tree=None, object_format="sha1", tracked=(file,))
        >>> filtered(state, {b"f": blob_id(b"b")})
        (b'f',)
    """
    found = []
    for prefix, level in levels(state):
        changed = {change.path for change in level.dirty if change.code[1] != "."}
        for file in level.tracked:
            path = join(prefix, file.path)
            if path in blob_ids and file.path not in changed and blob_ids[path].hex() != file.id:
                found.append(path)
    return tuple(sorted(found))


def git_facts(state: GitState) -> tuple[Fact, ...]:
    """Return the facts of a state and, under their paths, of the submodules in it.

    Lists are stated also when empty: somebody looked and found none. ``git.commit`` and ``git.tree`` are left
    out before the first commit, where ``git.unborn`` is true. No path of the host is in any of them.

    Example:
        >>> state = GitState(commit=None, tree=None, object_format="sha1")
        >>> [fact.key for fact in git_facts(state)][:3]
        ['git.object_format', 'git.unborn', 'git.clean']
    """
    facts: list[Fact] = []
    for prefix, level in sorted(levels(state), key=lambda pair: pair[0]):
        facts += [Fact(key=f"git.{key}", value=value, path=show(prefix)) for key, value in _values(level)]
    return tuple(facts)


def _values(state: GitState) -> Iterator[tuple[str, FactValue]]:
    """Give key and value of each fact of one level."""
    if state.commit is not None:
        yield "commit", state.commit
        yield "tree", state.tree
    yield "object_format", state.object_format
    yield "unborn", state.commit is None
    yield "clean", state.clean
    yield "dirty", tuple(f"{change.code} {show(change.path)}" for change in state.dirty)
    yield "untracked", _shown(state.untracked)
    yield "ignored", _shown(state.ignored)
    yield "submodule", tuple(_submodule_line(submodule) for submodule in state.submodules)
    yield "lfs_pointer", tuple(_lfs_line(file) for file in state.lfs)
    yield "remote", tuple(f"{show(remote.name)} {remote.url}" for remote in state.remotes)
    yield "shallow", state.shallow
    yield "partial_clone", state.partial_clone
    yield "missing_blob", _shown(state.missing_blobs)
    yield "assume_unchanged", _shown(state.assume_unchanged)
    yield "skip_worktree", _shown(state.skip_worktree)


def _shown(paths: tuple[bytes, ...]) -> tuple[str, ...]:
    return tuple(show(path) for path in paths)


def _submodule_line(submodule: Submodule) -> str:
    checked_out = submodule.checked_out or "-"
    return f"{submodule.state} {submodule.recorded} {checked_out} {show(submodule.path)}"


def _lfs_line(file: LfsFile) -> str:
    return f"{file.state} sha256:{file.pointer.sha256} {file.pointer.size_bytes} {show(file.path)}"
