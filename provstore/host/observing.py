"""What the processes of a service are and really loaded: read once, at a moment that the caller chose."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from provstore.errors import ProcessError
from provstore.host.ldcache import Cached, parse_cache
from provstore.host.loader import Found, Key, Object, Search, Setting, levels_of
from provstore.host.mapped import Mapped, Seen, key_of
from provstore.host.maps import Mapping, names_twice
from provstore.host.processes import Environment, Raw, family, read_process, shown_environment
from provstore.host.secrets import USUAL
from provstore.host.sheet import Sheet
from provstore.paths import show, unshow
from provstore.reports.hosted import (
    CaptureFinding,
    CaptureReport,
    Loaded,
    MappedFile,
    OtherMapping,
    ProcessSeen,
)

_CACHE: Final = "/etc/ld.so.cache"
_STATES: Final = {"deleted": "deleted-mapping", "replaced": "replaced-mapping", "unreadable": "not-read"}

_Finder = Callable[[str], Key | None]


def capture_processes(pid: int, patterns: Sequence[str] = USUAL) -> CaptureReport:
    """Look at a process and all its children.

    Args:
        pid: the process.
        patterns: variables of the environment that may be captured, as globs; of all others only the names
            are kept, and allowed ones that look like secrets are withheld.

    Raises:
        ProcessError: it is not there, or nothing of it can be read.
    """
    taken = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sheet, mapped, findings = Sheet(), Mapped(), list[CaptureFinding]()
    flags = next(
        (line for line in (sheet.read("/proc/cpuinfo").value or "").splitlines() if line.startswith("flags")),
        "",
    )
    levels = levels_of(flags.partition(":")[2])
    processes = []
    for stat in family(pid):
        raw = read_process(stat)
        if raw.maps is None and raw.program is None and raw.variables is None and stat.pid == pid:
            raise ProcessError(pid, "; ".join(raw.unknown) or "nothing of it can be read")
        processes.append(_process(raw, mapped, levels, patterns, findings))
    files = mapped.files()
    libraries, digests = _by_name(files)
    return CaptureReport(
        pid=pid,
        taken=taken,
        processes=tuple(processes),
        files=files,
        findings=tuple(sorted(findings, key=lambda f: (f.pid, f.code, f.path))),
        mapped_libraries=libraries,
        sha256=digests,
    )


def _process(
    raw: Raw, mapped: Mapped, levels: tuple[str, ...], patterns: Sequence[str], findings: list[CaptureFinding]
) -> ProcessSeen:
    pid = raw.stat.pid
    objects: list[Seen] = []
    others: list[OtherMapping] = []
    for mapping in raw.maps or ():
        seen = mapped.look(pid, mapping) if mapping.kind in ("file", "shm") else None
        if seen is None:
            others.append(_other(mapping))
        elif seen.key not in {one.key for one in objects}:
            objects.append(seen)
    environment = shown_environment(raw.variables or {}, patterns)
    loaded = _loaded(raw, objects, levels, mapped.prefix(pid))
    _note(raw, objects, loaded, environment, findings)
    return ProcessSeen(
        pid=pid,
        parent=raw.stat.parent,
        name=raw.stat.name,
        started_ticks=raw.stat.started_ticks,
        argv=raw.argv,
        program=None if raw.program is None else show(raw.program),
        directory=None if raw.directory is None else show(raw.directory),
        environment=environment.shown,
        withheld=environment.withheld,
        not_allowed=environment.not_allowed,
        loaded=loaded,
        other=tuple(others),
        unknown=raw.unknown,
    )


def _other(mapping: Mapping) -> OtherMapping:
    kind = "data" if mapping.kind == "file" else mapping.kind
    return OtherMapping(kind=kind, path=show(mapping.path), bytes=mapping.bytes, deleted=mapping.deleted)


def _loaded(raw: Raw, objects: Sequence[Seen], levels: tuple[str, ...], prefix: str) -> tuple[Loaded, ...]:
    """Say of each shared object why it is there."""
    known = {one.key: one.object for one in objects if one.object is not None}
    where = _finder(prefix)
    program = None if raw.program is None else where(raw.program)
    if program not in known:
        program = None
    interpreter = next((one.key for one in objects if _is_interpreter(one)), None)
    search = Search(_setting(raw, known, program, levels), known, where)
    reason = ""
    if program is None:
        reason = "its program cannot be read, so the search order is not known"
    elif interpreter is None:
        reason = "its program has no interpreter of the GNU loader"
    else:
        search.start(program, interpreter)
    opened: set[Key] = set()
    for one in objects if not reason else ():
        if one.key in known and one.key not in search.found and one.key not in (program, interpreter):
            opened.add(one.key)
    # An object that another opened one needs was not opened itself, whatever its address is.
    needed = {name for key in opened for name in known[key].needed}
    for key in sorted(opened, key=lambda key: _names(known[key]) & needed != set()):
        if key not in search.found:
            search.opened(key)
    return tuple(_why(one, search, program, interpreter, reason, where) for one in objects)


def _names(object: Object) -> set[str]:
    return {object.soname or "", os.path.basename(object.path)}


def _is_interpreter(one: Seen) -> bool:
    return one.object is not None and os.path.basename(one.object.soname or "").startswith("ld-linux")


def _why(
    one: Seen, search: Search, program: Key | None, interpreter: Key | None, reason: str, where: _Finder
) -> Loaded:
    path = one.file.path
    if one.key == program:
        return Loaded(path=path, why="program")
    if one.key == interpreter:
        return Loaded(path=path, why="interpreter")
    if reason or one.object is None:
        return Loaded(path=path, why="unknown", reason=reason or one.file.reason or "it is no ELF file")
    found = search.found.get(one.key)
    if found is None:
        text = "nothing that was loaded before needs it"
        return Loaded(path=path, why="dlopen", reason=text)
    return _searched(path, found, one.key, where)


def _searched(path: str, found: Found, key: Key, where: _Finder) -> Loaded:
    preloaded = found.by == "LD_PRELOAD"
    return Loaded(
        path=path,
        why="preload" if preloaded else "needed",
        by=found.by,
        through=found.through,
        expected=None if found.path is None else show(os.path.normpath(found.path)),
        agrees=None if found.path is None else where(found.path) == key,
        shadowed=tuple(show(os.path.normpath(other)) for other in found.shadowed),
        reason=found.reason,
    )


def _finder(prefix: str) -> _Finder:
    cache: dict[str, Key | None] = {}

    def where(path: str) -> Key | None:
        if path not in cache:
            cache[path] = key_of(prefix + path)
        return cache[path]

    return where


def _setting(raw: Raw, known: dict[Key, Object], program: Key | None, levels: tuple[str, ...]) -> Setting:
    variables = raw.variables
    machine = known[program].machine if program is not None else ""
    return Setting(
        library_path=None if variables is None else variables.get("LD_LIBRARY_PATH", ""),
        preload=None if variables is None else variables.get("LD_PRELOAD", ""),
        directory=raw.directory,
        cache=_cache(machine),
        levels=levels if machine == "EM_X86_64" else (),
    )


def _cache(machine: str) -> dict[str, list[Cached]] | None:
    try:
        with open(_CACHE, "rb") as file:
            return parse_cache(file.read(), machine)
    except OSError:
        return None


def _note(
    raw: Raw,
    objects: Sequence[Seen],
    loaded: Sequence[Loaded],
    environment: Environment,
    findings: list[CaptureFinding],
) -> None:
    pid = raw.stat.pid

    def note(code: str, path: str, message: str) -> None:
        findings.append(CaptureFinding(code=code, pid=pid, path=path, message=message))

    for one in objects:
        if one.file.state in _STATES:
            note(_STATES[one.file.state], one.file.path, one.file.reason)
    pairs = [
        (one.file.soname or os.path.basename(one.file.path), f"{one.file.path} (inode {one.file.inode})")
        for one in objects
    ]
    for name, paths in names_twice(pairs).items():
        note("soname-twice", name, f"loaded {len(paths)} times: {', '.join(paths)}")
    for one_loaded in loaded:
        if one_loaded.agrees is False:
            note(
                "origin-differs",
                one_loaded.path,
                f"the search order leads to {one_loaded.expected} through {one_loaded.through}",
            )
        if one_loaded.shadowed and one_loaded.agrees:
            others = ", ".join(one_loaded.shadowed)
            note("shadowed", one_loaded.path, f"{one_loaded.through} came before {others}")
    for name in environment.withheld:
        note("secret-withheld", name, "looks like a secret; its value is not kept")
    for text in raw.unknown:
        note("not-read", raw.stat.name, text)
    if raw.ended:
        note("changed-meanwhile", raw.stat.name, "it ended while it was looked at")


def _by_name(files: Sequence[MappedFile]) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return paths by the file name of what was loaded, and digests by path, as policies read them."""
    names: dict[str, set[str]] = {}
    digests: dict[str, str] = {}
    for file in files:
        mark = " (deleted)" if file.state == "deleted" else ""
        name = os.path.basename(unshow(file.path)).decode("utf-8", "surrogateescape")
        names.setdefault(show(name), set()).add(file.path + mark)
        if file.sha256 is not None:
            digests[file.path] = file.sha256
    kept = {name: tuple(sorted(paths)) for name, paths in sorted(names.items())}
    return kept, dict(sorted(digests.items()))


def observation_of(report: CaptureReport, pid: int) -> CaptureReport:
    """Return what one process of a capture loaded, for policies that ask each process."""
    process = next(one for one in report.processes if one.pid == pid)
    paths = {one.path for one in process.loaded}
    files = tuple(file for file in report.files if file.path in paths)
    libraries, digests = _by_name(files)
    return msgspec.structs.replace(
        report, pid=pid, processes=(process,), files=files, mapped_libraries=libraries, sha256=digests,
        findings=tuple(one for one in report.findings if one.pid == pid),
    )  # fmt: skip
