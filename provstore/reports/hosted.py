"""Results of looking at a host and at processes: every value with its source, or unknown with a reason."""

from typing import Literal

import msgspec

from provstore.reports.base import Report

Value = str | int | bool

HOST_FORMAT = "provstore-host-v1"
PROCESSES_FORMAT = "provstore-processes-v1"


class HostFact(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that was looked for on a host.

    Attributes:
        key: its name, such as ``kernel.release``; units stand at its end.
        value: what was found; null is unknown, never zero and never a pass.
        source: the file, the system call or the command that says so, as paths of that host.
        reason: why the value is unknown; empty when it is known.
    """

    key: str
    value: Value | None
    source: str
    reason: str = ""


class CommandOutput(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One declared capture command; its raw output is a file beside the report, and an object once sealed.

    Attributes:
        name: what the recipe or the caller calls it.
        argv: the program and its arguments.
        state: ``ended``, ``timeout`` (killed with all that it started), ``too-long`` (it printed more than
            is kept) or ``not-run``.
        exit_code: null when it did not end by itself; negative for the signal that ended it.
        reason: why it was not run, or was stopped.
        seconds: time that it took, as text.
        program_sha256: SHA-256 of the program that ran; null when it could not be read.
        stdout: file name of its standard output; empty when there is none.
        stdout_sha256: SHA-256 of that.
        stdout_blake3: BLAKE3 of that: its object's id.
        stdout_bytes: size of that.
        stderr: file name of its standard error; empty when it wrote none.
        stderr_sha256: SHA-256 of that.
        stderr_bytes: size of that.
    """

    name: str
    argv: tuple[str, ...]
    state: Literal["ended", "timeout", "too-long", "not-run"]
    exit_code: int | None = None
    reason: str = ""
    seconds: str = ""
    program_sha256: str | None = None
    stdout: str = ""
    stdout_sha256: str | None = None
    stdout_blake3: str | None = None
    stdout_bytes: int = 0
    stderr: str = ""
    stderr_sha256: str | None = None
    stderr_bytes: int = 0


class HostReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host as it was seen at one time.

    Attributes:
        schema: ``provstore-host-v1``.
        root: directory that stood for ``/``; a recorded host has another one.
        taken: UTC time of this machine's clock, RFC 3339.
        facts: sorted by key.
        commands: declared capture commands, in their order.
    """

    root: str
    taken: str
    facts: tuple[HostFact, ...]
    commands: tuple[CommandOutput, ...] = ()
    schema: str = HOST_FORMAT

    def find(self, key: str) -> HostFact | None:
        """Return a fact by its key, or None when nobody looked for it."""
        return next((fact for fact in self.facts if fact.key == key), None)

    def value(self, key: str) -> Value | None:
        """Return the value of a fact; None is unknown."""
        fact = self.find(key)
        return None if fact is None else fact.value


MappedState = Literal["same", "probable", "replaced", "deleted", "unreadable"]
"""How sure it is that the file at the path is what is mapped. ``same``: device and inode are equal.
``probable``: the inode is, and the file system is one that shows another device in maps. Digests are given
for these two alone. ``replaced`` and ``deleted``: the path holds other bytes, or none. ``unreadable``: not
checked."""


class MappedFile(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One shared object or program that some process had mapped.

    Attributes:
        path: shown path, without the kernel's mark for deleted files.
        device: ``major:minor`` as the kernel maps it.
        inode: its inode.
        state: whether the file that lies there now is what is mapped.
        reason: why digests are absent, in words.
        size_bytes: size of the file.
        sha256: of the file; null unless it is what is mapped.
        blake3: the other digest of the same.
        build_id: label that the linker wrote, in hex; it identifies nothing.
        soname: name that it gives itself.
        runpath: its search path, ``$ORIGIN`` kept.
        rpath: its older search path.
        needed: names that it needs.
    """

    path: str
    device: str
    inode: int
    state: MappedState
    reason: str = ""
    size_bytes: int | None = None
    sha256: str | None = None
    blake3: str | None = None
    build_id: str | None = None
    soname: str | None = None
    runpath: str | None = None
    rpath: str | None = None
    needed: tuple[str, ...] = ()


class Loaded(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why one process has one shared object.

    Attributes:
        path: of the file in :attr:`CaptureReport.files`.
        why: ``program``, ``interpreter``, ``preload``, ``needed``, ``dlopen`` or ``unknown``.
        by: path of the object that needs it; empty where none does.
        through: what in the search order led to it: ``RPATH of X``, ``LD_LIBRARY_PATH``, ``RUNPATH of X``,
            ``ld.so.cache``, ``default path``, ``path in DT_NEEDED``; empty where nothing was searched.
        expected: path where the search order leads; null when it cannot be told.
        agrees: what is mapped is what was expected; null when it cannot be told.
        shadowed: other files of that name further down the search order.
        reason: why something of this cannot be told.
    """

    path: str
    why: Literal["program", "interpreter", "preload", "needed", "dlopen", "unknown"]
    by: str = ""
    through: str = ""
    expected: str | None = None
    agrees: bool | None = None
    shadowed: tuple[str, ...] = ()
    reason: str = ""


class OtherMapping(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mappings that are no shared object, by what they are.

    Attributes:
        kind: ``data``, ``memfd``, ``sysv``, ``shm``, ``hugepages``, ``zero`` or ``device``.
        path: shown path or name.
        bytes: of address space, all of its mappings together.
        deleted: the kernel marks it as deleted, which is usual for all kinds but ``data``.
    """

    kind: Literal["data", "memfd", "sysv", "shm", "hugepages", "zero", "device"]
    path: str
    bytes: int
    deleted: bool = False


class ProcessSeen(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One process of a service.

    Attributes:
        pid: its number.
        parent: number of its parent.
        name: what it calls itself.
        started_ticks: start after boot in clock ticks, which with the pid names it for good; as text.
        argv: its arguments; those that look like secrets are withheld.
        program: path of what it runs.
        directory: its working directory.
        environment: variables that the caller allowed, sorted.
        withheld: names of allowed variables that look like secrets.
        not_allowed: names of all other variables.
        loaded: shared objects, in the order of their addresses.
        other: mappings that are none.
        unknown: what could not be read, ``thing: reason``.
    """

    pid: int
    parent: int
    name: str
    started_ticks: str
    argv: tuple[str, ...] = ()
    program: str | None = None
    directory: str | None = None
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    not_allowed: tuple[str, ...] = ()
    loaded: tuple[Loaded, ...] = ()
    other: tuple[OtherMapping, ...] = ()
    unknown: tuple[str, ...] = ()


class CaptureFinding(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that a person should know.

    Attributes:
        code: ``deleted-mapping``, ``replaced-mapping``, ``soname-twice``, ``origin-differs``, ``shadowed``,
            ``secret-withheld``, ``not-read`` or ``changed-meanwhile``.
        pid: process that it is about.
        path: file that it is about, or name of a variable.
        message: in words.
    """

    code: str
    pid: int
    path: str
    message: str


class CaptureReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a process and all its children are, and what they really loaded.

    Attributes:
        schema: ``provstore-processes-v1``.
        pid: the process that was asked about.
        taken: UTC time of this machine's clock, RFC 3339.
        processes: it and its children, parents first.
        files: every shared object that one of them has mapped, sorted by path.
        findings: what a person should know.
        mapped_libraries: file name to the paths that it was mapped from, deleted ones marked, for policies.
        sha256: path to digest, for policies as well.
    """

    pid: int
    taken: str
    processes: tuple[ProcessSeen, ...]
    files: tuple[MappedFile, ...]
    findings: tuple[CaptureFinding, ...]
    mapped_libraries: dict[str, tuple[str, ...]]
    sha256: dict[str, str]
    schema: str = PROCESSES_FORMAT
