"""Git bundles: what one claims to hold, and whether it can be restored where nothing else is.

``git bundle verify`` in the repository that made a bundle finds every prerequisite at home, and it never
reads the pack. So a bundle is unpacked here into an empty repository, and the history of each of its refs is
walked to the end (gitformat-bundle, git-bundle).
"""

import contextlib
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple

import msgspec

from provstore import libraries
from provstore.errors import InputOutputError, InspectError
from provstore.files.git_program import TIME_LIMIT_SECONDS, GitPlace
from provstore.files.git_view import GitSettings, make_git_dir
from provstore.gitids import ID_BYTES, ObjectFormat
from provstore.paths import show
from provstore.records.facts import Fact

MAX_HEADER_BYTES: Final = 64 << 20
"""Longest header that is read: some 600,000 refs."""

_MAX_LINE_BYTES: Final = 1 << 20
_MAGIC: Final = re.compile(rb"# v([0-9]{1,9}) git bundle\n")
_PREREQUISITE: Final = re.compile(rb"-([0-9a-f]+)(?: (.*))?", re.DOTALL)
_REF: Final = re.compile(rb"([0-9a-f]+) (.+)", re.DOTALL)
_MISSING: Final = re.compile(rb"^missing (commit|tree|blob|tag) ([0-9a-f]+)$", re.MULTILINE)
_PACK_HEAD_BYTES: Final = 12
_CHUNK_BYTES: Final = 1 << 20


class BundleRef(NamedTuple):
    """A ref that a bundle carries: its raw name and hex id."""

    name: bytes
    id: str


class Prerequisite(NamedTuple):
    """A commit that the receiver must have already: hex id and, where stated, its subject."""

    id: str
    comment: bytes


class BundleHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The text before the pack.

    Attributes:
        version: 2 or 3.
        object_format: hash function of the objects.
        filter: what was left out on purpose, such as ``blob:none``; empty for nothing.
        prerequisites: commits that are needed and not in it.
        refs: what it offers.
        size_bytes: length of the header; the pack follows.
    """

    version: int
    object_format: ObjectFormat
    filter: bytes
    prerequisites: tuple[Prerequisite, ...]
    refs: tuple[BundleRef, ...]
    size_bytes: int


def is_bundle(head: bytes) -> bool:
    r"""Return whether a file that begins with these bytes (20 suffice) claims to be a Git bundle.

    Example:
        >>> is_bundle(b"# v2 git bundle\n"), is_bundle(b"# v2 git bundles\n")
        (True, False)
    """
    return _MAGIC.match(head) is not None


def bundle_header(path: str | bytes) -> BundleHeader:
    """Read the header of a bundle.

    Raises:
        InspectError: no bundle, an unknown version or capability, or a header that is cut or malformed.
        InputOutputError: the file cannot be read.
    """
    with _opened(path) as file:
        return _header(file, show(_absolute(path)))


def bundle_facts(path: str | bytes) -> tuple[Fact, ...]:
    """Return what the header of a bundle states; nothing of it is checked against the pack.

    Raises:
        InspectError: see :func:`bundle_header`.
        InputOutputError: the file cannot be read.
    """
    header = bundle_header(path)
    facts = [
        Fact(key="bundle.version", value=header.version),
        Fact(key="bundle.object_format", value=header.object_format),
        Fact(key="bundle.ref", value=tuple(f"{ref.id} {show(ref.name)}" for ref in header.refs)),
        Fact(key="bundle.head", value=tuple(sorted({ref.id for ref in header.refs}))),
        Fact(key="bundle.prerequisite", value=tuple(item.id for item in header.prerequisites)),
    ]
    if header.filter:
        facts.append(Fact(key="bundle.filter", value=show(header.filter)))
    return tuple(facts)


def bundle_problems(
    path: str | bytes,
    bases: Sequence[str | bytes] = (),
    seconds: float = TIME_LIMIT_SECONDS,
    scratch: str | None = None,
) -> tuple[str, ...]:
    """Return why a bundle cannot be restored from these files alone; nothing means that it can.

    Args:
        path: the bundle.
        bases: other bundles at hand, such as the members of the same packet; they may provide its
            prerequisites, in any order. Each of them needs a call of its own to be checked itself.
        seconds: time limit of each call of git.
        scratch: where to unpack; needs room for the packs of all bundles given. The system's
            temporary directory if not given.

    Returns:
        One line each: every prerequisite commit that is nowhere, a pack that is cut or altered, objects that
        the history of its refs lacks; with what to do about it.

    Raises:
        InspectError: a file is no bundle at all.
        InputOutputError: a file cannot be read, or git did not finish in time.
        MissingExtraError: git is not installed.
    """
    with _opened(path) as file:
        header = _header(file, show(_absolute(path)))
        damage = _pack_damage(file, header)
    name = show(os.path.basename(_absolute(path)))
    again = "make it again: " + _remedy(name, header)
    problems = [f"{name}: {damage}; copy it again, or {again}"] if damage else []
    if not header.refs:
        problems.append(f"{name}: names no refs, so nothing can be restored from it; {again}")
    if header.filter:
        problems.append(
            f"{name}: made with --filter={show(header.filter)}, which left objects out; "
            f"in a clone that holds everything, {again}"
        )
    with _empty_repository(header.object_format, seconds, scratch) as place:
        _add_bases(place, header.object_format, bases)
        absent = _absent(place, [item.id for item in header.prerequisites])
        for item in header.prerequisites:
            if item.id in absent:
                subject = f" ({show(item.comment)})" if item.comment else ""
                problems.append(
                    f"{name}: needs commit {item.id}{subject}, which no bundle here holds; {again}"
                )
        if not problems:
            problems += [f"{name}: {text}; {again}" for text in _restored(place, path, header)]
    return tuple(problems)


def _restored(place: GitPlace, path: str | bytes, header: BundleHeader) -> Iterator[str]:
    """Unpack a bundle whose prerequisites are there, and give what it turns out to lack."""
    for verb in ("verify", "unbundle"):
        done = place.run("bundle", verb, _absolute(path))
        if done.code != 0:
            yield f"git bundle {verb} refuses it: {done.reason()}"
            return
    tips = list(dict.fromkeys(ref.id for ref in header.refs))
    absent = _absent(place, tips)
    for ref in header.refs:
        if ref.id in absent:
            yield f"ref {show(ref.name)} names {ref.id}, which is not in it"
    if absent:
        return
    done = place.run("fsck", "--connectivity-only", "--no-dangling", "--no-reflogs", "--no-progress", *tips)
    if done.code == 0:
        return
    lacks = [(kind.decode(), id.decode()) for kind, id in _MISSING.findall(done.out)]
    if not lacks:
        yield f"git fsck finds it broken: {done.reason()}"
    yield from (f"lacks commit {id} (made in a shallow clone?)" for kind, id in lacks if kind == "commit")
    for kind in ("tag", "tree", "blob"):
        ids = sorted(id for found, id in lacks if found == kind)
        if ids:
            yield f"lacks {len(ids)} {kind}(s), {ids[0]} the first (made in a partial clone?)"


def _add_bases(place: GitPlace, object_format: ObjectFormat, bases: Sequence[str | bytes]) -> None:
    """Unpack what other bundles provide, those first that need nothing; ones that do not fit are left out."""
    waiting = [(base, bundle_header(base)) for base in bases]
    waiting = [(base, header) for base, header in waiting if header.object_format == object_format]
    number = 0
    while waiting:
        later = []
        for base, header in waiting:
            if place.run("bundle", "verify", _absolute(base)).code != 0:
                later.append((base, header))
                continue
            if place.run("bundle", "unbundle", _absolute(base)).code != 0:
                continue
            # `git bundle verify` wants prerequisites that a ref reaches, not only objects that are there.
            for id in sorted(
                {ref.id for ref in header.refs} - _absent(place, [ref.id for ref in header.refs])
            ):
                place.need("update-ref", f"refs/bases/{number}", id)
                number += 1
        if len(later) == len(waiting):
            return
        waiting = later


def _absent(place: GitPlace, ids: Sequence[str]) -> set[str]:
    """Return those of the hex ids whose objects are not in the repository."""
    answers = place.need(
        "cat-file", "--batch-check=%(objecttype)", stdin="".join(f"{id}\n" for id in ids).encode()
    )
    lines = answers.out.splitlines()
    return {id for id, line in zip(ids, lines, strict=True) if line.endswith(b" missing")}


@contextlib.contextmanager
def _empty_repository(object_format: ObjectFormat, seconds: float, scratch: str | None) -> Iterator[GitPlace]:
    """Give an empty repository that goes away at the end."""
    with tempfile.TemporaryDirectory(prefix="provstore-bundle-", dir=scratch) as name:
        top = os.path.abspath(os.fsencode(name))
        home = os.path.join(top, b"home")
        git_dir = os.path.join(top, b"git")
        os.mkdir(home)
        make_git_dir(git_dir, GitSettings(object_format=object_format))
        yield GitPlace(git_dir=git_dir, home=home, seconds=seconds)


def _remedy(name: str, header: BundleHeader) -> str:
    """Return the command that makes a bundle of the same refs which needs nothing else."""
    refs = " ".join(shlex.quote(show(ref.name)) for ref in header.refs[:20]) or "--all"
    return f"git bundle create {shlex.quote(name)} {refs if len(header.refs) <= 20 else '--all'}"


def _absolute(path: str | bytes) -> bytes:
    return os.path.abspath(os.fsencode(path))


@contextlib.contextmanager
def _opened(path: str | bytes) -> Iterator[BinaryIO]:
    """Open a regular file for reading.

    Raises:
        InspectError: no regular file.
        InputOutputError: it cannot be opened or read.
    """
    where = show(os.fsencode(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InspectError(where, "is no regular file")
            yield file
    except OSError as error:
        raise InputOutputError(where, error.errno or 0, error.strerror or "") from error


def _header(file: BinaryIO, where: str) -> BundleHeader:
    """Parse the header; leaves the file at the pack."""
    magic = _MAGIC.fullmatch(file.readline(64))
    if magic is None:
        raise InspectError(where, "is no Git bundle")
    version = int(magic[1])
    if version not in (2, 3):
        raise InspectError(where, f"bundle version {version} is unknown; 2 and 3 are known")
    object_format: ObjectFormat = "sha1"
    left_out = b""
    prerequisites: list[Prerequisite] = []
    refs: list[BundleRef] = []
    while True:
        line = file.readline(_MAX_LINE_BYTES)
        if not line.endswith(b"\n") or file.tell() > MAX_HEADER_BYTES:
            raise InspectError(where, "the header is cut short or too long")
        line = line[:-1]
        if not line:
            break
        if line.startswith(b"@") and version == 3 and not prerequisites and not refs:
            key, _, value = line[1:].partition(b"=")
            if key == b"object-format" and value in (b"sha1", b"sha256"):
                object_format = "sha256" if value == b"sha256" else "sha1"
            elif key == b"filter":
                left_out = value
            else:
                raise InspectError(where, f"unknown bundle capability {show(line[:80])}")
        elif line.startswith(b"-") and not refs:
            id, comment = _line(_PREREQUISITE, line, object_format, where)
            prerequisites.append(Prerequisite(id, comment))
        else:
            id, name = _line(_REF, line, object_format, where)
            refs.append(BundleRef(name, id))
    return BundleHeader(
        version=version,
        object_format=object_format,
        filter=left_out,
        prerequisites=tuple(prerequisites),
        refs=tuple(refs),
        size_bytes=file.tell(),
    )


def _line(
    pattern: re.Pattern[bytes], line: bytes, object_format: ObjectFormat, where: str
) -> tuple[str, bytes]:
    """Return id and text of a header line.

    Raises:
        InspectError: it has another form, or an id of another length.
    """
    found = pattern.fullmatch(line)
    if found is None or len(found[1]) != 2 * ID_BYTES[object_format]:
        raise InspectError(where, f"malformed header line {show(line[:120])!r}")
    return found[1].decode(), found[2] or b""


def _pack_damage(file: BinaryIO, header: BundleHeader) -> str:
    """Return what is wrong with the pack as bytes, or nothing: its last bytes are the hash of all before.

    Needs no prerequisites, so that a thin bundle which is also cut is called both.
    """
    length = ID_BYTES[header.object_format]
    left = os.fstat(file.fileno()).st_size - header.size_bytes - length
    if left < _PACK_HEAD_BYTES:
        return f"the pack is cut short: {max(left + length, 0)} bytes of it are left"
    hasher = libraries.hashlib.new(header.object_format, usedforsecurity=False)
    head = file.read(_PACK_HEAD_BYTES)
    hasher.update(head)
    left -= len(head)
    if head[:4] != b"PACK" or int.from_bytes(head[4:8], "big") not in (2, 3):
        return "no Git pack follows its header"
    while left > 0 and (chunk := file.read(min(left, _CHUNK_BYTES))):
        hasher.update(chunk)
        left -= len(chunk)
    if left or hasher.digest() != file.read(length):
        return "the pack is cut short or altered: its checksum does not hold"
    return ""
