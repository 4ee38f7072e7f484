"""Runtime locks (what an environment must be) and runtime verifications (what was really loaded).

A pin is any object of a lock that holds a ``sha256``, wherever it stands, so a lock with further sections
needs no change here. An origin is a path from which a module or library was really loaded; that a file with
the right digest lies somewhere else proves nothing about it.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from provstore.evidence.bench import HEX_64
from provstore.evidence.documents import add_facts
from provstore.evidence.finding import Extraction, ReaderResult, quoted
from provstore.evidence.jsonreader import (
    ABSENT,
    DEFAULT_LIMITS,
    Absent,
    Limits,
    Value,
    child,
    kind,
    read,
    resolve,
)

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_ABBREVIATED: Final = re.compile(r"[0-9a-f]{4,39}")
_VERSION: Final = re.compile(r"[0-9]+!?[0-9A-Za-z.+_-]*")
_NAMES: Final = ("module", "name", "path", "path_template", "observed_path")
_PATHS: Final = ("path", "path_template", "observed_path")
_COMMITS: Final = ("observed_build_source_commit", "commit", "source_commit")


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One file that a lock pins.

    Attributes:
        group: first part of its location, such as ``native_modules``.
        name: module name, or the path when it has none.
        path: path or path template; None when only a name is given.
        sha256: its digest.
        commit: commit it is said to be built from; None when not said.
        location: JSON pointer of the object.
    """

    group: str
    name: str
    path: str | None
    sha256: str
    commit: str | None
    location: str


class LockResult(ReaderResult, frozen=True, kw_only=True):
    """A runtime lock.

    Attributes:
        pins: pinned files, in the order of the lock.
        packages: version of each pinned package.
        sources: commit of each source tree.
    """

    pins: tuple[Pin, ...]
    packages: dict[str, str]
    sources: dict[str, str]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """From where something was loaded.

    Attributes:
        group: first part of its location, such as ``module_origins``.
        name: the module or library.
        paths: every path that it was loaded from, sorted; more than one is a contradiction by itself.
        location: JSON pointer.
    """

    group: str
    name: str
    paths: tuple[str, ...]
    location: str


class VerificationResult(ReaderResult, frozen=True, kw_only=True):
    """A runtime verification.

    Attributes:
        status: what the program said of itself; None when it says nothing.
        origins: every origin, in the order of the file.
        packages: version of each package that was seen.
    """

    status: str | None
    origins: tuple[Origin, ...]
    packages: dict[str, str]


def read_lock(data: bytes, limits: Limits = DEFAULT_LIMITS) -> LockResult:
    """Read a runtime lock.

    Returns:
        Facts whose keys begin with ``runtime_lock.``, pins, packages, sources, and findings: ``bad-digest``,
        ``abbreviated-reference``, ``mutable-reference``, ``no-pins``, ``duplicate-pin``.

    Example:
        >>> digest = "ab" * 32
        >>> lock = read_lock(f'{{"libs": [{{"path": "a.so", "sha256": "{digest}"}}]}}'.encode())
        >>> lock.pins[0].group, lock.pins[0].name
        ('libs', 'a.so')
    """
    document = read(data, limits)
    out = Extraction()
    out.add(document.findings)
    if document.value is not ABSENT:
        add_facts(document.value, "runtime_lock", "", out)
    pins: list[Pin] = []
    for pointer, item in _objects(document.value):
        _check_references(item, pointer, out)
        pin = _pin(item, pointer, out)
        if pin is not None:
            pins.append(pin)
    if not pins and document.value is not ABSENT:
        out.finding("no-pins", "", "the lock pins no file", "unknown")
    seen: dict[tuple[str, str], Pin] = {}
    for pin in pins:
        first = seen.setdefault((pin.group, pin.path or pin.name), pin)
        if first is not pin:
            out.finding(
                "duplicate-pin", pin.location, f"{quoted(pin.name)} is pinned at {first.location} too"
            )
    return LockResult(
        facts=tuple(out.facts),
        findings=out.findings(),
        pins=tuple(pins),
        packages=_versions(document.value, "/python_packages"),
        sources=_commits(document.value),
    )


def read_verification(data: bytes, limits: Limits = DEFAULT_LIMITS) -> VerificationResult:
    """Read a runtime verification.

    Members named ``*_origin`` hold one path; members named ``*_origins`` and ``mapped_*`` hold an object from
    name to a path or a list of paths.

    Returns:
        Facts whose keys begin with ``runtime_verification.``, origins, packages, and findings:
        ``wrong-type``, ``relative-origin``, ``deleted-mapping``, ``no-origins``.

    Example:
        >>> text = b'{"engine_origin": "/a/e.py", "mapped_libraries": {"x.so": ["/b", "/a"]}}'
        >>> [(origin.name, origin.paths) for origin in read_verification(text).origins]
        [('engine', ('/a/e.py',)), ('x.so', ('/a', '/b'))]
    """
    document = read(data, limits)
    out = Extraction()
    out.add(document.findings)
    origins: list[Origin] = []
    top = document.value
    if top is not ABSENT:
        add_facts(top, "runtime_verification", "", out)
    for key, value in top.items() if isinstance(top, dict) else ():
        if key.endswith("_origin"):
            origins += _origin(key, key.removesuffix("_origin"), value, child("", key), out)
        elif key.endswith("_origins") or key.startswith("mapped_"):
            if not isinstance(value, dict):
                out.finding("wrong-type", child("", key), f"must be an object of paths, is {kind(value)}")
                continue
            for name, item in value.items():
                origins += _origin(key, name, item, child(child("", key), name), out)
    if not origins and top is not ABSENT:
        out.finding("no-origins", "", "the verification states no origin", "unknown")
    status = resolve(top, "/status")
    return VerificationResult(
        facts=tuple(out.facts),
        findings=out.findings(),
        status=status if isinstance(status, str) else None,
        origins=tuple(origins),
        packages=_versions(top, "/package_versions"),
    )


def _objects(value: Value | Absent) -> Iterator[tuple[str, dict[str, Value]]]:
    todo: list[tuple[str, Value | Absent]] = [("", value)]
    while todo:
        pointer, here = todo.pop()
        if isinstance(here, dict):
            yield pointer, here
            todo += [(child(pointer, key), item) for key, item in reversed(here.items())]
        elif isinstance(here, list):
            todo += [(f"{pointer}/{at}", item) for at, item in reversed(list(enumerate(here)))]


def _pin(item: dict[str, Value], pointer: str, out: Extraction) -> Pin | None:
    digest = item.get("sha256", ABSENT)
    if digest is ABSENT:
        return None
    if not isinstance(digest, str) or not HEX_64.fullmatch(digest):
        out.finding("bad-digest", child(pointer, "sha256"), "must be 64 lower-case hex digits")
        return None
    name = _first(item, _NAMES)
    if name is None:
        out.finding("absent", pointer, "a digest without the name or path of a file", "unknown")
        return None
    return Pin(
        group=pointer.split("/")[1] if pointer else "",
        name=name,
        path=_first(item, _PATHS),
        sha256=digest,
        commit=_first(item, _COMMITS),
        location=pointer,
    )


def _first(item: dict[str, Value], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = item.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def _check_references(item: dict[str, Value], pointer: str, out: Extraction) -> None:
    """Add findings for commits that are short or can move, and for other digests of a wrong form."""
    for name in _COMMITS:
        commit = item.get(name)
        if isinstance(commit, str) and not _COMMIT.fullmatch(commit):
            short = _ABBREVIATED.fullmatch(commit) is not None
            code = "abbreviated-reference" if short else "mutable-reference"
            message = f"{quoted(commit)} is no commit of 40 hex digits"
            out.finding(code, child(pointer, name), message, "warning" if short else "error")
    for name, value in item.items():
        if name.endswith("_sha256") and not (isinstance(value, str) and HEX_64.fullmatch(value)):
            out.finding("bad-digest", child(pointer, name), "must be 64 lower-case hex digits")


def _versions(top: Value | Absent, pointer: str) -> dict[str, str]:
    """Return the members that are versions; locks keep file names and remarks among them."""
    found = resolve(top, pointer)
    items = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in items if isinstance(value, str) and _VERSION.fullmatch(value)}


def _commits(top: Value | Absent) -> dict[str, str]:
    found = resolve(top, "/source")
    trees = found.items() if isinstance(found, dict) else ()
    commits = {name: resolve(tree, "/commit") for name, tree in trees}
    return {name: commit for name, commit in commits.items() if isinstance(commit, str)}


def _origin(group: str, name: str, value: Value, pointer: str, out: Extraction) -> list[Origin]:
    listed = value if isinstance(value, list) else [value]
    paths = sorted({item for item in listed if isinstance(item, str) and item})
    if not paths or any(not isinstance(item, str) for item in listed):
        out.finding("wrong-type", pointer, f"must be a path or a list of paths, is {kind(value)}")
        return []
    for path in paths:
        if not path.startswith("/"):
            out.finding("relative-origin", pointer, f"{quoted(path)} is not absolute")
        if path.endswith(" (deleted)"):
            out.finding("deleted-mapping", pointer, f"{quoted(path)} was replaced while it was mapped")
    return [Origin(group=group, name=name, paths=tuple(paths), location=pointer)]
