r"""Python environments: which packages are installed, of which version, and where they came from.

What is read are the metadata files that installers leave in a site directory, with bounds, and never through
a symbolic link, so that each fact comes from bytes that a seal of the directory holds. Nothing is imported.

Keys, with ``<name>`` normalised as PEP 503 says, so that it holds no dot:

=================================== =================================================================
``python.version``                  version in ``pyvenv.cfg``; its other lines are about one host
``python.package.<name>``           version of a distribution
``python.installer.<name>``         who installed it: ``pip``, ``uv``, ``conda``
``python.direct_url.<name>``        where it came from when not from an index (PEP 610)
``python.vcs.<name>``               ``git`` and others, with ``python.vcs_commit.<name>`` (full id) and
                                    ``python.requested_revision.<name>`` (a branch, tag or short id)
``python.archive_digest.<name>``    ``sha256:…`` that the installer wrote down for the archive
``python.subdirectory.<name>``      part of the source that was installed
``python.editable.<name>``          True: its code is run from where ``python.editable_origin`` says
``python.editable_origin``          a place of code outside the site directory
``python.duplicate.<name>``         places that each state this name, two or more
``python.contradiction.<name>``     version and ``direct_url.json`` name different commits
``python.problem``                  metadata that could not be used, and why
=================================== =================================================================

An origin that lies below the root is given relative to it (so facts can change when an environment moves into
or out of such a place). Any other is given as stated, scheme and path, also when it is a path of one host:
that the code is not in the environment is the very thing to know. Of all other URLs
:func:`provstore.files.git_urls.public_url` takes out what may be secret.

Sources: the Core metadata, "Recording installed projects", Direct URL (PEP 610) and PEP 660 specifications of
the PyPA; ``site`` of CPython for ``.pth`` files; setuptools for the names of its editable finders.
"""

import ast
import errno
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterator
from email.parser import BytesHeaderParser
from typing import Final
from urllib.parse import unquote_to_bytes

from provstore.canon import parse
from provstore.errors import InputOutputError, InspectError, MalformedError
from provstore.files.git_urls import public_url
from provstore.files.python_origins import contradiction, direct_url_fields, requirement_url
from provstore.paths import join, show
from provstore.records.facts import Fact, FactValue

EXTRACTOR: Final = "python"
VERSION: Final = 1

MAX_METADATA_BYTES: Final = 1 << 20
"""How much of a metadata file is read; the fields come first, a long description after them."""

MAX_FREEZE_BYTES: Final = 4 << 20
"""Longest list of packages that is read."""

_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION: Final = r"[A-Za-z0-9][A-Za-z0-9.!+_-]*"
_MAPPING: Final = re.compile(rb"^MAPPING(?:: [^=\n]*)? = (\{[^\n]*\})$", re.MULTILINE)


def normalise(name: str) -> str:
    """Return a project's name as PEP 503 compares names.

    Example:
        >>> normalise("Flash_Attn.v2")
        'flash-attn-v2'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def inspect_python_env(root: bytes) -> tuple[Fact, ...]:
    """Return what a virtual environment or a site directory says is installed.

    Args:
        root: a directory with ``lib/python*/site-packages`` (or ``dist-packages``, or ``Lib/site-packages``),
            or one that holds metadata directories itself.

    Returns:
        Facts as the module lists them, sorted by path, which is relative to ``root``.

    Raises:
        InspectError: neither ``pyvenv.cfg`` nor any metadata is there.
        InputOutputError: a directory or file cannot be read.
    """
    root = root or b"."
    sites = list(_site_directories(root))
    facts = list(_pyvenv(root))
    for site in sites:
        facts += _Site(root, site).facts()
    if not facts:
        raise InspectError(
            show(root), "no pyvenv.cfg and no installed distribution, so no Python environment"
        )
    return tuple(sorted(facts, key=lambda fact: fact.path))


def _site_directories(root: bytes) -> Iterator[bytes]:
    """Yield the site directories below ``root``, by name; links such as ``lib64`` are passed over."""
    if any(name.endswith((b".dist-info", b".egg-info", b".egg-link")) for name, _ in _names(root, b"")):
        yield b""
    for library, kind in _names(root, b""):
        if kind != "directory" or library not in (b"lib", b"Lib"):
            continue
        for name, below in _names(root, library):
            if below == "directory" and name == b"site-packages":
                yield join(library, name)
            if below == "directory" and name.startswith((b"python", b"pypy")):
                for site, what in _names(root, join(library, name)):
                    if what == "directory" and site in (b"site-packages", b"dist-packages"):
                        yield join(library, name, site)


def _names(root: bytes, path: bytes) -> list[tuple[bytes, str]]:
    """Return names in a directory, sorted, each with ``directory``, ``file`` or ``other``."""
    found = []
    try:
        with os.scandir(join(root, path)) as entries:
            for entry in entries:
                kind = "directory" if entry.is_dir(follow_symlinks=False) else "other"
                found.append((entry.name, "file" if entry.is_file(follow_symlinks=False) else kind))
    except OSError as error:
        raise InputOutputError(show(join(root, path)), error.errno or 0, str(error.strerror)) from error
    return sorted(found)


def _read(root: bytes, path: bytes) -> bytes | None:
    """Return the beginning of a file, or None if no regular file is there; no link is followed to it."""
    try:
        descriptor = os.open(join(root, path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data = b""
            while len(data) < MAX_METADATA_BYTES and (
                part := os.read(descriptor, MAX_METADATA_BYTES - len(data))
            ):
                data += part
            return data
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            return None
        raise InputOutputError(show(join(root, path)), error.errno or 0, str(error.strerror)) from error


def _pyvenv(root: bytes) -> Iterator[Fact]:
    """Yield the interpreter's version; uv and virtualenv write it as ``version_info``."""
    data = _read(root, b"pyvenv.cfg") or b""
    for number, line in enumerate(data.splitlines(), start=1):
        key, equals, value = line.partition(b"=")
        if equals and key.strip().lower() in (b"version", b"version_info"):
            text = show(value.strip())
            yield Fact(key="python.version", value=text, path="pyvenv.cfg", location=f"line {number}")
            return


class _Site:
    """One site directory on its way to facts."""

    def __init__(self, root: bytes, site: bytes) -> None:
        self._root = root
        self._absolute = os.path.abspath(root)
        self._site = site
        self._facts: list[Fact] = []
        self._places: dict[str, list[str]] = defaultdict(list)

    def facts(self) -> list[Fact]:
        for name, kind in _names(self._root, self._site):
            path = join(self._site, name)
            if name.endswith(b".dist-info"):
                self._distribution(path, b"METADATA", kind)
            elif name.endswith(b".egg-info"):
                self._distribution(path, b"PKG-INFO" if kind == "directory" else b"", kind)
            elif name.endswith(b".egg") and kind == "directory":
                self._distribution(path, b"EGG-INFO/PKG-INFO", kind)
            elif name.endswith(b".egg-link"):
                self._egg_link(path, name.removesuffix(b".egg-link"))
            elif name.endswith(b".pth"):
                self._path_file(path)
            elif name.startswith(b"__editable__") and name.endswith(b"_finder.py"):
                self._finder(path)
        for package, places in self._places.items():
            if len(places) > 1:
                self._facts.append(Fact(key=f"python.duplicate.{package}", value=tuple(places)))
        return self._facts

    def _add(self, key: str, value: FactValue, path: bytes, line: int = 0) -> None:
        where = f"line {line}" if line else ""
        self._facts.append(Fact(key=f"python.{key}", value=value, path=show(path), location=where))

    def _problem(self, path: bytes, reason: str) -> None:
        self._add("problem", reason, path)

    def _distribution(self, path: bytes, metadata: bytes, kind: str) -> None:
        if kind == "other":
            self._problem(path, "neither file nor directory, so not read")
            return
        data = _read(self._root, join(path, metadata))
        if data is None:
            self._problem(
                path, f"no {show(metadata)} as a plain file; an installation was interrupted or linked"
            )
            return
        head = re.split(rb"\r?\n\r?\n", data.removeprefix(b"\xef\xbb\xbf"), maxsplit=1)[0]
        fields = BytesHeaderParser().parsebytes(head)
        name, version = (str(fields.get(field, "")).strip() for field in ("Name", "Version"))
        several = [field for field in ("Name", "Version") if len(fields.get_all(field, [])) > 1]
        if several or not re.fullmatch(_NAME, name) or not re.fullmatch(r"[!-~]{1,200}", version):
            found = f"states name '{show(name[:200])}' and version '{show(version[:200])}'"
            self._problem(join(path, metadata), f"states {several[0]} twice" if several else found)
            return
        package = normalise(name)
        if os.path.basename(path).startswith(b"~"):
            self._problem(path, f"left of {package} {version} by an interrupted installation")
            return
        self._places[package].append(show(path))
        line = next(
            (n for n, text in enumerate(head.splitlines(), 1) if text.lower().startswith(b"version:")), 0
        )
        self._add(f"package.{package}", version, join(path, metadata), line)
        if kind == "directory":
            installer = (_read(self._root, join(path, b"INSTALLER")) or b"").strip().split(b"\n")[0]
            if installer:
                self._add(f"installer.{package}", show(installer), join(path, b"INSTALLER"))
            self._direct_url(join(path, b"direct_url.json"), package, version)

    def _direct_url(self, path: bytes, package: str, version: str) -> None:
        data = _read(self._root, path)
        if data is None:
            return
        try:
            stated = direct_url_fields(parse(data, show(path)), show(path))
        except MalformedError as error:
            self._problem(path, error.reason)
            return
        origin = self._relative(stated.pop("url"))
        if stated.pop("editable", None):
            self._add(f"editable.{package}", True, path)
            self._add("editable_origin", origin, path)
        else:
            self._add(f"direct_url.{package}", origin, path)
        for key, value in stated.items():
            self._add(f"{key}.{package}", show(value), path)
        reason = contradiction(version, stated.get("vcs_commit", ""))
        if reason is not None:
            self._add(f"contradiction.{package}", reason, path)

    def _egg_link(self, path: bytes, name: bytes) -> None:
        lines = (_read(self._root, path) or b"").splitlines()
        package = normalise(show(name))
        if not lines or not lines[0].strip() or not re.fullmatch(_NAME, show(name)):
            self._problem(path, "states no directory, or no package in its name")
            return
        self._places[package].append(show(path))
        self._add(f"editable.{package}", True, path)
        self._add("editable_origin", self._relative_path(lines[0].strip()), path, 1)

    def _path_file(self, path: bytes) -> None:
        """Read a ``.pth`` file: each line that is neither comment nor code names a directory for the path."""
        data = _read(self._root, path)
        if data is None:
            self._problem(path, "no plain file, so not read")
            return
        for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
            text = line.rstrip()
            if not text or text.startswith((b"#", b"import ", b"import\t")):
                continue
            place = self._below(text)
            if place is None or not (place + b"/").startswith(self._site and self._site + b"/"):
                self._add("editable_origin", self._relative_path(text), path, number)

    def _finder(self, path: bytes) -> None:
        """Read the table of a setuptools finder, which maps import names to places."""
        match = _MAPPING.search(_read(self._root, path) or b"")
        try:
            mapping = ast.literal_eval(match[1].decode()) if match else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            mapping = None
        if not isinstance(mapping, dict) or not all(isinstance(place, str) for place in mapping.values()):
            self._problem(path, "the finder has no MAPPING of names to places")
            return
        for place in sorted(set(mapping.values())):
            self._add("editable_origin", self._relative_path(place.encode(errors="backslashreplace")), path)

    def _relative(self, url: str) -> str:
        """Return a ``file:`` URL relative to the root if it lies below, any other as it may be shown."""
        if not url.lower().startswith("file:"):
            return public_url(url.encode(errors="backslashreplace"))
        path = unquote_to_bytes(re.sub(r"(?i)^file:(?://(?:localhost)?(?=/))?", "", url))
        relative = self._relative_path(path) if path.startswith(b"/") else ""
        return show(url) if not relative or relative == show(path) else relative

    def _relative_path(self, path: bytes) -> str:
        """Return a path of the host relative to the root if it lies below, else as stated."""
        place = self._below(path)
        return show(path) if place is None else show(place)

    def _below(self, path: bytes) -> bytes | None:
        """Return a path as seen from the root, or None if it leads out of it."""
        place = os.path.normpath(os.path.join(self._absolute, self._site, path))
        for base in (self._absolute, os.path.realpath(self._absolute)):
            if place == base or place.startswith(os.path.join(base, b"")):
                return os.path.relpath(place, base)
        return None


def parse_freeze(data: bytes, where: str) -> tuple[Fact, ...]:
    r"""Return what ``pip freeze`` (or ``uv pip freeze``) printed, under the keys that the module lists.

    Known lines: ``name==version``, ``name===version``, ``name @ URL``, ``-e URL`` or ``-e PATH`` with the
    name in ``#egg=`` or in the comment that pip writes above, comments, empty lines, and options such as
    ``--index-url``, which state no package and are passed over.

    Args:
        data: the whole text, UTF-8, or UTF-16 with its byte order mark, as PowerShell writes it.
        where: what to name in an error.

    Returns:
        Facts in the order of the lines, each with its line; then ``python.duplicate.<name>``.

    Raises:
        InspectError: another line, with its number, bytes in another encoding, or no package at all.

    Example:
        >>> [(f.key, f.value) for f in parse_freeze(b"Flash_Attn==2.8.3\n", "freeze.txt")]
        [('python.package.flash-attn', '2.8.3')]
    """
    if len(data) > MAX_FREEZE_BYTES:
        raise InspectError(
            where, f"{len(data)} bytes are more than any list of packages ({MAX_FREEZE_BYTES})"
        )
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InspectError(where, f"not UTF-8 at byte {error.start}") from error
    facts: list[Fact] = []
    places: dict[str, list[str]] = defaultdict(list)
    comment = ""
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if line.startswith("-e ") or not line.startswith(("#", "-")):
            package, stated = _freeze_line(line, comment, where, number) if line else ("", {})
            if package:
                places[package].append(f"line {number}")
            facts += [Fact(key=f"python.{k}", value=v, location=f"line {number}") for k, v in stated.items()]
        comment = line if line.startswith("#") else ""
    if not facts:
        raise InspectError(where, "lists no package")
    twice = {name: found for name, found in places.items() if len(found) > 1}
    facts += [Fact(key=f"python.duplicate.{name}", value=tuple(twice[name])) for name in sorted(twice)]
    return tuple(facts)


def _freeze_line(line: str, comment: str, where: str, number: int) -> tuple[str, dict[str, FactValue]]:
    """Return the package of a line, if it names one, and what the line states."""
    if pinned := re.fullmatch(rf"({_NAME})(?:\[[^\]]*\])?===?({_VERSION})", line):
        package = normalise(pinned[1])
        return package, {f"package.{package}": pinned[2]}
    if direct := re.fullmatch(rf"({_NAME})(?:\[[^\]]*\])? @ (\S+)", line):
        package = normalise(direct[1])
        origin, more = requirement_url(direct[2])
        return package, {f"direct_url.{package}": origin, **{f"{k}.{package}": v for k, v in more.items()}}
    if editable := re.fullmatch(r"-e (\S.*)", line):
        above = re.fullmatch(rf"# Editable .*\(({_NAME})(?:==({_VERSION}))?\)", comment)
        egg = re.search(rf"[#&]egg=({_NAME})", editable[1])
        named = egg or above
        origin, more = requirement_url(editable[1])
        if "vcs" in more:
            revision = more.get("vcs_commit", more.get("requested_revision"))
            origin = f"{more['vcs']}+{origin}" + (f"@{revision}" if revision else "")
        if not named:
            return "", {"editable_origin": origin}
        package = normalise(named[1])
        stated: dict[str, FactValue] = {f"editable.{package}": True, "editable_origin": origin}
        if above and above[2] and normalise(above[1]) == package:
            stated[f"package.{package}"] = above[2]
        return package, {**stated, **{f"{k}.{package}": v for k, v in more.items()}}
    # What follows a scheme may hold a password, so it is not shown.
    shown = show(line.partition("://")[0][:80])
    raise InspectError(where, f"line {number} is none that pip freeze writes: {shown}")
