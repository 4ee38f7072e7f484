"""What a Git work tree is made of: commit, changes, untracked and ignored files, submodules, pointers.

The repository may be hostile: see :mod:`provstore.files.git_view` for how none of its configuration gets to
run anything, and what that changes in the answers. Nothing is written to it, and no network is used.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from provstore.errors import InspectError
from provstore.files.git_program import TIME_LIMIT_SECONDS
from provstore.files.git_state import (
    GitChange,
    GitRemote,
    GitState,
    LfsFile,
    PayloadState,
    Submodule,
    SubmoduleState,
    TrackedFile,
    filtered,
    git_facts,
    levels,
    tracked,
)
from provstore.files.git_urls import public_url
from provstore.files.git_view import GitView, is_hex_id, open_view
from provstore.files.standins import LFS_MAX_BYTES, LfsPointer, lfs_pointer
from provstore.paths import check_path, join, show

__all__ = [
    "Conversion",
    "GitState",
    "conversions",
    "filtered",
    "git_facts",
    "inspect_git",
    "tracked",
]

Conversion = Literal["built-in", "line-ends", "lfs", "unexplained"]
"""Why bytes are not the recorded blob: line ends, ``ident`` or encoding, as ``.gitattributes`` or
``core.autocrlf`` say; CR LF for LF, though the repository does not say so (a setting of whoever committed);
the payload of an LFS pointer; or nothing that could be confirmed, so that the file counts as changed."""

_MAX_DEPTH: Final = 16
"""Deepest nesting of submodules that is followed."""

_ARGUMENTS_PER_CALL: Final = 200


def inspect_git(root: str | bytes, seconds: float = TIME_LIMIT_SECONDS) -> GitState:
    """Return the state of the Git work tree whose top is ``root``, submodules included.

    Args:
        root: the top of a work tree; a directory inside one is refused, since its parent's commit does not
            describe it.
        seconds: time limit of each call of git.

    Raises:
        InspectError: not the top of a work tree, or a repository that git cannot read: broken HEAD, missing
            commit or tree, unknown format, submodules nested too deep.
        UnsafePathError: the index holds a path that leads out of the work tree.
        InputOutputError: a file cannot be read, or git did not finish in time.
        MissingExtraError: git is not installed.
    """
    return _inspect(os.path.abspath(os.fsencode(root)), seconds, depth=0)


def conversions(
    root: str | bytes,
    state: GitState,
    paths: Iterable[bytes],
    sha256: Mapping[bytes, bytes],
    seconds: float = TIME_LIMIT_SECONDS,
) -> dict[bytes, Conversion]:
    """Say for each path why its bytes are not the recorded blob.

    Git applies its own conversions, and no external filter, to the file as it lies there.

    Args:
        root: top of the work tree.
        state: its state.
        paths: what :func:`filtered` returned, and changed paths that only a filter may have changed (a
            checkout with LFS payloads that was copied, so that Git had to compare contents). Paths whose
            plain bytes are the recorded blob do not belong here.
        sha256: raw SHA-256 of the bytes at paths that hold an LFS payload; without it, such a path stays
            unexplained.
        seconds: time limit of each call of git.

    Raises:
        InspectError: git cannot read a file or the repository.
        InputOutputError: git did not finish in time.
        MissingExtraError: git is not installed.
    """
    top = os.path.abspath(os.fsencode(root))
    wanted = frozenset(paths)
    found: dict[bytes, Conversion] = dict.fromkeys(sorted(wanted), "unexplained")
    for prefix, level in levels(state):
        here = [file for file in level.tracked if join(prefix, file.path) in wanted]
        payloads = {file.path: file.pointer.sha256 for file in level.lfs}
        for file in here:
            path = join(prefix, file.path)
            if file.path in payloads and sha256.get(path, b"").hex() == payloads[file.path]:
                found[path] = "lfs"
        # Git would follow a symlink here, and built-in conversions never touch one.
        plain = [file for file in here if file.mode != "120000" and _is_file(join(top, prefix, file.path))]
        if plain:
            with open_view(join(top, prefix), seconds) as view:
                for file in _converted(view, plain, "-c", "core.autocrlf=input"):
                    found[join(prefix, file.path)] = "line-ends"
                for file in _converted(view, plain):
                    found[join(prefix, file.path)] = "built-in"
    return found


def _converted(view: GitView, files: Sequence[TrackedFile], *options: str) -> Iterator[TrackedFile]:
    """Give those of the files that Git's built-in conversions turn into their recorded blob."""
    for start in range(0, len(files), _ARGUMENTS_PER_CALL):
        part = files[start : start + _ARGUMENTS_PER_CALL]
        ids = view.place.need(*options, "hash-object", "--", *(file.path for file in part)).out.split()
        if len(ids) != len(part):
            raise InspectError(show(view.root), f"git hashed {len(ids)} of {len(part)} files")
        yield from (file for file, id in zip(part, ids, strict=True) if id.decode() == file.id)


def _inspect(root: bytes, seconds: float, depth: int) -> GitState:
    """Return the state of one work tree and, below it, of its submodules."""
    if depth > _MAX_DEPTH:
        raise InspectError(show(root), f"submodules are nested deeper than {_MAX_DEPTH}")
    with open_view(root, seconds) as view:
        tree = _tree(view)
        files, assume_unchanged, skip_worktree = _index(view)
        _unhide(view, (*assume_unchanged, *skip_worktree))
        blobs = [file for file in files if file.mode != "160000"]
        missing, pointers = _blobs(view, blobs)
        dirty, untracked = _changes(view)
        return GitState(
            commit=view.commit,
            tree=tree,
            object_format=view.settings.object_format,
            dirty=dirty,
            untracked=untracked,
            ignored=_ignored(view),
            submodules=tuple(_submodule(root, f, seconds, depth) for f in files if f.mode == "160000"),
            lfs=tuple(LfsFile(path, pointer, _payload(root, path, pointer)) for path, pointer in pointers),
            remotes=tuple(GitRemote(name, public_url(url)) for name, url in view.settings.remotes),
            shallow=view.shallow,
            partial_clone=view.settings.partial_clone,
            missing_blobs=missing,
            assume_unchanged=assume_unchanged,
            skip_worktree=skip_worktree,
            tracked=files,
        )


def _tree(view: GitView) -> str | None:
    """Return the hex tree of HEAD.

    Raises:
        InspectError: HEAD names a commit that is not in the repository.
    """
    if view.commit is None:
        return None
    done = view.place.run("rev-parse", "--quiet", "--verify", f"{view.commit}^{{tree}}")
    found = done.out.strip()
    if done.code != 0 or not is_hex_id(found):
        raise InspectError(show(view.root), f"HEAD names {view.commit}, which the repository does not hold")
    return found.decode()


def _index(view: GitView) -> tuple[tuple[TrackedFile, ...], tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the entries of the index without conflict, and the paths in it that Git does not look at."""
    files: list[TrackedFile] = []
    assume_unchanged: list[bytes] = []
    skip_worktree: list[bytes] = []
    for line in view.place.need("ls-files", "--stage", "-v", "-z").lines():
        head, _, path = line.partition(b"\t")
        # Git checks the paths that it adds, not those that it finds in an index.
        check_path(path, f"index of {show(view.root)}")
        tag, mode, id, stage = head.split(b" ")
        # git-ls-files: a lower-case tag is "assume unchanged", S or s "skip work tree".
        if tag.islower():
            assume_unchanged.append(path)
        if tag in (b"S", b"s"):
            skip_worktree.append(path)
        if stage == b"0":
            files.append(TrackedFile(path, mode.decode(), id.decode()))
    return tuple(sorted(files)), tuple(sorted(assume_unchanged)), tuple(sorted(skip_worktree))


def _unhide(view: GitView, paths: Sequence[bytes]) -> None:
    """Make Git look, in our copy of the index, at those of the hidden paths that are there."""
    present = [path for path in paths if os.path.lexists(join(view.root, path))]
    if present:
        listed = b"".join(path + b"\0" for path in present)
        for option in ("--no-assume-unchanged", "--no-skip-worktree"):
            view.place.need("update-index", option, "-z", "--stdin", stdin=listed)


def _blobs(
    view: GitView, files: Sequence[TrackedFile]
) -> tuple[tuple[bytes, ...], tuple[tuple[bytes, LfsPointer], ...]]:
    """Return the paths whose blob is not there, and those whose blob is an LFS pointer."""
    ids = list(dict.fromkeys(file.id for file in files))
    small: list[str] = []
    absent: set[str] = set()
    # Order and number of the answers are those of the questions.
    answers = view.place.need(
        "cat-file",
        "--batch-check=%(objecttype) %(objectsize)",
        stdin="".join(f"{id}\n" for id in ids).encode(),
    )
    for id, line in zip(ids, answers.out.splitlines(), strict=True):
        kind, _, size = line.partition(b" ")
        if kind != b"blob":
            absent.add(id)
        elif int(size) < LFS_MAX_BYTES:
            small.append(id)
    pointers = dict(_pointers(view, small))
    missing = tuple(file.path for file in files if file.id in absent)
    return missing, tuple((file.path, pointers[file.id]) for file in files if file.id in pointers)


def _pointers(view: GitView, ids: Sequence[str]) -> Iterator[tuple[str, LfsPointer]]:
    """Give id and meaning of those of these small blobs that are LFS pointers."""
    out = view.place.need(
        "cat-file", "--batch=%(objectsize)", stdin="".join(f"{id}\n" for id in ids).encode()
    ).out
    offset = 0
    for id in ids:
        end = out.index(b"\n", offset)
        size = int(out[offset:end])
        pointer = lfs_pointer(out[end + 1 : end + 1 + size])
        offset = end + size + 2
        if pointer is not None:
            yield id, pointer


def _payload(root: bytes, path: bytes, pointer: LfsPointer) -> PayloadState:
    """Say what lies in the work tree at the path of a pointer."""
    try:
        descriptor = os.open(join(root, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return "absent"
    except OSError:
        return "other"
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return "other"
        if found.st_size < LFS_MAX_BYTES and lfs_pointer(file.read(LFS_MAX_BYTES)) == pointer:
            return "pointer"
    return "payload" if found.st_size == pointer.size_bytes else "other"


def _changes(view: GitView) -> tuple[tuple[GitChange, ...], tuple[bytes, ...]]:
    """Return what differs between HEAD, index and work tree, and the untracked paths.

    Submodules count by the commit that is checked out; looking into one would start a git that obeys its
    configuration.
    """
    changes: list[GitChange] = []
    untracked: list[bytes] = []
    done = view.place.need(
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignored=no",
        "--no-renames",
        "--ignore-submodules=dirty",
    )
    for line in done.lines():
        kind, _, rest = line.partition(b" ")
        if kind == b"?":
            untracked.append(rest)
        elif kind in (b"1", b"u"):
            # git-status, porcelain version 2: the path is the 9th field, or of an unmerged entry the 11th.
            fields = rest.split(b" ", 7 if kind == b"1" else 9)
            changes.append(GitChange(fields[0].decode(), fields[-1]))
        else:
            raise InspectError(show(view.root), f"git status printed an unknown line {show(line[:80])}")
    return tuple(sorted(changes, key=lambda change: change.path)), tuple(sorted(untracked))


def _ignored(view: GitView) -> tuple[bytes, ...]:
    """Return the ignored paths that are there; a directory of only such files as one."""
    done = view.place.need(
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=normal",
        "--ignored=traditional",
        "--no-renames",
        "--ignore-submodules=all",
    )
    return tuple(sorted(line[2:] for line in done.lines() if line.startswith(b"! ")))


def _submodule(root: bytes, file: TrackedFile, seconds: float, depth: int) -> Submodule:
    """Return one submodule, looked into if it is checked out."""
    path = join(root, file.path)
    if not os.path.lexists(join(path, b".git")) or os.path.realpath(path) != join(
        os.path.realpath(root), file.path
    ):
        return Submodule(path=file.path, recorded=file.id, checked_out=None, state="absent", inner=None)
    inner = _inspect(path, seconds, depth + 1)
    dirty = not inner.clean
    state: SubmoduleState = "dirty" if dirty else "clean"
    if inner.commit != file.id:
        state = "moved+dirty" if dirty else "moved"
    return Submodule(path=file.path, recorded=file.id, checked_out=inner.commit, state=state, inner=inner)


def _is_file(path: bytes) -> bool:
    """Return whether a regular file lies at ``path``, no symlink."""
    return os.path.isfile(path) and not os.path.islink(path)
