"""A neutral view of a Git repository: its objects, index and work tree without its configuration.

A repository's ``config`` can name programs for nearly everything: clean filters (which even ``git status``
runs), file system monitors, hooks, text converters, transports for a lazy fetch. Whoever overrides the keys
he knows loses to the next one. So the view is a Git directory of our own: a copy of the index, the
repository's object directory, and a configuration that holds only the line-end settings. Git reads the
repository's own configuration for two things alone: to list it, and to resolve ``HEAD``; neither starts a
program.

What differs from the user's own ``git status``: external filters (LFS) do not run, so a filtered file whose
stat data in the index is stale counts as modified; the user's global configuration and ignore file do not
count; mode bits and symlinks are always compared.
"""

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from provstore.errors import InputOutputError, InspectError
from provstore.files.git_program import GitPlace
from provstore.gitids import ObjectFormat
from provstore.paths import show

_POINTER_LIMIT_BYTES: Final = 1 << 16
_TRUE: Final = frozenset({b"true", b"yes", b"on", b"1"})
_AUTOCRLF: Final = {b"input": b"input", **dict.fromkeys(_TRUE, b"true")}
_EOL: Final = {b"lf": b"lf", b"crlf": b"crlf", b"native": b"native"}
_HEX_ID: Final = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")


class GitDirs(NamedTuple):
    """Where a repository keeps what: its own Git directory, and the one that linked work trees share."""

    git_dir: bytes
    common_dir: bytes


class GitSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken from a repository's configuration, as data.

    Attributes:
        object_format: hash function of its objects.
        autocrlf: value of ``core.autocrlf`` if it is on, else empty.
        eol: value of ``core.eol`` if set, else empty.
        remotes: name and URL of each remote, in order of the configuration; credentials not removed yet.
        partial_clone: objects may have been left out on purpose, to be fetched on demand.
    """

    object_format: ObjectFormat
    autocrlf: bytes = b""
    eol: bytes = b""
    remotes: tuple[tuple[bytes, bytes], ...] = ()
    partial_clone: bool = False


class GitView(msgspec.Struct, frozen=True, kw_only=True):
    """A repository, ready to be asked.

    Attributes:
        place: where to run git; reads the copied index and the repository's objects.
        root: absolute path of the work tree.
        commit: hex id that ``HEAD`` resolves to; ``None`` before the first commit.
        settings: what the configuration says.
        shallow: history was cut off when it was cloned.
    """

    place: GitPlace
    root: bytes
    commit: str | None
    settings: GitSettings
    shallow: bool


@contextlib.contextmanager
def open_view(root: bytes, seconds: float) -> Iterator[GitView]:
    """Give a view of the work tree ``root``; its temporary directory goes away at the end.

    Args:
        root: absolute path of the top of a work tree.
        seconds: time limit of each call of git.

    Raises:
        InspectError: no repository, or a broken one.
        InputOutputError: a file of it cannot be read, or git did not finish in time.
        MissingExtraError: git is not installed.
    """
    dirs = find_git_dir(root)
    with tempfile.TemporaryDirectory(prefix="provstore-git-") as name:
        home = os.path.join(os.fsencode(name), b"home")
        own = os.path.join(os.fsencode(name), b"git")
        os.mkdir(home)
        theirs = GitPlace(git_dir=dirs.git_dir, home=home, seconds=seconds)
        settings = _settings(theirs)
        commit = _head(theirs, dirs)
        make_git_dir(own, settings, commit)
        _copy_state(dirs, own)
        place = GitPlace(
            git_dir=own,
            home=home,
            work_tree=root,
            objects=os.path.join(dirs.common_dir, b"objects"),
            seconds=seconds,
        )
        shallow = os.path.lexists(os.path.join(dirs.common_dir, b"shallow"))
        yield GitView(place=place, root=root, commit=commit, settings=settings, shallow=shallow)


def find_git_dir(root: bytes) -> GitDirs:
    """Return the Git directories of the work tree ``root``, which must be its top.

    Reads ``.git`` as gitrepository-layout describes it: a directory, or a file ``gitdir: PATH`` in linked
    work trees and submodules. Directories above ``root`` are never looked at.

    Raises:
        InspectError: there is no ``.git``, or it is no Git directory.
    """
    where = show(root)
    found = os.path.join(root, b".git")
    if os.path.isfile(found):
        text = _read_small(found, where)
        if not text.startswith(b"gitdir: "):
            raise InspectError(where, ".git is a file but does not say 'gitdir: PATH'")
        found = os.path.normpath(os.path.join(root, text[8:].rstrip(b"\r\n")))
    if not os.path.isdir(found):
        raise InspectError(where, "not the top of a Git work tree: no usable .git here")
    shared = os.path.join(found, b"commondir")
    common = found
    if os.path.lexists(shared):
        common = os.path.normpath(os.path.join(found, _read_small(shared, where).rstrip(b"\r\n")))
    if not os.path.isdir(os.path.join(common, b"objects")):
        raise InspectError(where, ".git names no Git directory: it has no objects")
    return GitDirs(found, common)


def make_git_dir(path: bytes, settings: GitSettings, commit: str | None = None) -> None:
    """Make a Git directory without history, whose configuration is ours.

    Args:
        path: where; must not exist.
        settings: object format and line ends to write into its configuration.
        commit: what its ``HEAD`` says; ``None`` for a branch without a commit.
    """
    for part in (b"", b"objects", b"refs", b"info"):
        os.mkdir(os.path.join(path, part) if part else path)
    sha256 = settings.object_format == "sha256"
    lines = [b"[core]", b"\trepositoryFormatVersion = %d" % sha256, b"\tbare = false", b"\tfileMode = true"]
    lines += [b"\tsymlinks = true", b"\tignoreCase = false", b"\tsafecrlf = false"]
    if settings.autocrlf:
        lines.append(b"\tautocrlf = " + settings.autocrlf)
    if settings.eol:
        lines.append(b"\teol = " + settings.eol)
    if sha256:
        lines += [b"[extensions]", b"\tobjectFormat = sha256"]
    _write(os.path.join(path, b"config"), b"\n".join(lines) + b"\n")
    _write(os.path.join(path, b"HEAD"), f"{commit or 'ref: refs/heads/unborn'}\n".encode())


def is_hex_id(text: bytes) -> bool:
    """Return whether ``text`` is an object id in hex, of either object format.

    Example:
        >>> is_hex_id(b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"), is_hex_id(b"HEAD")
        (True, False)
    """
    return _HEX_ID.fullmatch(text) is not None


def _settings(theirs: GitPlace) -> GitSettings:
    """List the repository's configuration and keep what :class:`GitSettings` names.

    Raises:
        InspectError: git cannot read it, or it names an unknown object format.
    """
    fields = theirs.need("config", "--list", "--includes", "--show-scope", "-z").lines()
    values: list[tuple[bytes, bytes]] = []
    for scope, item in zip(fields[::2], fields[1::2], strict=False):
        if scope != b"command":
            key, equals, value = item.partition(b"\n")
            # A key without a value is a true boolean (git-config, "Values").
            values.append((key, value if equals else b"true"))
    last = dict(values)
    object_format = last.get(b"extensions.objectformat", b"sha1").lower()
    if object_format not in (b"sha1", b"sha256"):
        raise InspectError(show(theirs.git_dir), f"unknown object format {show(object_format)!r}")
    remotes: list[tuple[bytes, bytes]] = []
    partial = b"extensions.partialclone" in last
    for key, value in values:
        if key.startswith(b"remote.") and key.endswith(b".url"):
            remotes.append((key[7:-4], value))
        if key.startswith(b"remote.") and key.endswith(b".promisor"):
            partial = partial or value.lower() in _TRUE
    return GitSettings(
        object_format="sha256" if object_format == b"sha256" else "sha1",
        autocrlf=_AUTOCRLF.get(last.get(b"core.autocrlf", b"").lower(), b""),
        eol=_EOL.get(last.get(b"core.eol", b"").lower(), b""),
        remotes=tuple(remotes),
        partial_clone=partial,
    )


def _head(theirs: GitPlace, dirs: GitDirs) -> str | None:
    """Return the commit that ``HEAD`` names, or ``None`` before the first commit.

    Raises:
        InspectError: ``HEAD`` or its branch is broken, which is not the same as unborn.
    """
    where = show(dirs.git_dir)
    done = theirs.run("rev-parse", "--quiet", "--verify", "HEAD")
    found = done.out.strip()
    if done.code == 0:
        if not is_hex_id(found):
            raise InspectError(where, f"HEAD gives {show(found[:80])!r}, no commit id")
        return found.decode()
    branch = theirs.run("symbolic-ref", "--quiet", "HEAD")
    if done.code != 1 or branch.code != 0:
        raise InspectError(where, f"HEAD cannot be read: {done.reason()}")
    name = branch.out.rstrip(b"\n")
    listed = theirs.need("for-each-ref", "--format=%(objectname)", name)
    file = os.path.join(dirs.common_dir, name)
    if listed.out or listed.err or (os.path.lexists(file) and not os.path.isdir(file)):
        raise InspectError(where, f"branch {show(name)} is broken: it names no commit")
    return None


def _copy_state(dirs: GitDirs, own: bytes) -> None:
    """Copy index, its shared part, exclude and attribute rules into our Git directory."""
    _copy(os.path.join(dirs.git_dir, b"index"), os.path.join(own, b"index"))
    for name in (b"exclude", b"attributes"):
        _copy(os.path.join(dirs.common_dir, b"info", name), os.path.join(own, b"info", name))
    for name in os.listdir(dirs.git_dir):
        if name.startswith(b"sharedindex."):
            _copy(os.path.join(dirs.git_dir, name), os.path.join(own, name))


def _copy(source: bytes, target: bytes) -> None:
    """Copy a regular file with its times, or nothing if there is none.

    Git takes the time of the index file to tell which entries are too fresh for their stat data to be
    trusted; a copy with a later time would hide a change made in the same tick.
    """
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputOutputError(show(source), error.errno or 0, error.strerror or "") from error
    with os.fdopen(descriptor, "rb") as file, open(target, "wb") as copy:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise InspectError(show(source), "is no regular file")
        shutil.copyfileobj(file, copy, 1 << 20)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _read_small(path: bytes, where: str) -> bytes:
    """Return the content of a small pointer file."""
    try:
        with open(path, "rb") as file:
            text = file.read(_POINTER_LIMIT_BYTES + 1)
    except OSError as error:
        raise InputOutputError(show(path), error.errno or 0, error.strerror or "") from error
    if len(text) > _POINTER_LIMIT_BYTES or b"\0" in text:
        raise InspectError(where, f"{show(os.path.basename(path))} holds no path")
    return text


def _write(path: bytes, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
