"""One host as facts: what it is, and what was asked of it: files, source trees, packages, ports, commands."""

import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from provstore.errors import HostError, InspectError, ProvError
from provstore.files import inspectors
from provstore.files.hashing import hash_file
from provstore.host.commands import CaptureCommand, Captured, run_command, with_output
from provstore.host.devices import look_at_devices
from provstore.host.recorded import FILE, Recorded, read_recorded
from provstore.host.sheet import Sheet, reason_of
from provstore.host.system import listening_ports, look_at_mount, look_at_system, mounts
from provstore.host.toolchains import look_at_toolchains
from provstore.paths import show
from provstore.reports.hosted import CommandOutput, HostReport

MAX_PROCESSES: Final = 100_000
MAX_LISTED: Final = 100_000


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a host beside what it is.

    Attributes:
        files: absolute paths whose digests are wanted.
        sources: absolute paths of source trees.
        environments: absolute paths of Python environments.
        mounts: absolute paths whose file system is wanted.
        directories: absolute paths that somebody wants to be directories.
        listings: absolute paths of directories whose files are wanted.
        absent: absolute paths that somebody wants to be free.
        processes: names of running programs are wanted.
        ports: ports that are listened on are wanted.
        commands: capture commands.
    """

    files: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    listings: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    processes: bool = False
    ports: bool = False
    commands: tuple[CaptureCommand, ...] = ()


NOTHING: Final = Wanted()


class HostCapture(NamedTuple):
    """A host's report, and the raw outputs that it tells the digests of, by file name."""

    report: HostReport
    outputs: dict[str, bytes]


def capture_host(root: str = "/", wanted: Wanted = NOTHING) -> HostCapture:
    """Look at a host.

    Args:
        root: directory that stands for ``/``: this machine, or a recorded host.
        wanted: what is asked beside what the host is.

    Raises:
        HostError: the root is no directory, or what it states beside its files has no known form.
    """
    if not os.path.isdir(root):
        raise HostError(show(root), "is no directory")
    sheet = Sheet(root)
    recorded = read_recorded(sheet)
    look_at_system(sheet)
    look_at_devices(sheet)
    look_at_toolchains(sheet)
    table = mounts(sheet) if wanted.mounts else None
    for path in wanted.mounts:
        look_at_mount(sheet, path, table)
    for path in wanted.files:
        _file(sheet, path, recorded)
    for path in wanted.directories:
        stated = (*recorded.files, *recorded.sources, *recorded.packages)
        known = any(f"{name}/".startswith(f"{path}/") for name in stated)
        sheet.add(f"directory.{path}.there", known or os.path.isdir(sheet.place(path)), "stat(2)")
    for path in wanted.listings:
        _listing(sheet, path, recorded)
    for path in wanted.absent:
        sheet.add(f"path.{path}", os.path.lexists(sheet.place(path)), "lstat(2)")
    for path in wanted.sources:
        _source(sheet, path, recorded)
    for path in wanted.environments:
        _environment(sheet, path, recorded)
    if wanted.ports:
        listening_ports(sheet)
    if wanted.processes:
        _processes(sheet)
    captured = [_command(sheet, command, recorded) for command in wanted.commands]
    taken = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    report = HostReport(
        root=show(sheet.root),
        taken=taken,
        facts=sheet.facts(),
        commands=tuple(one.output for one in captured),
    )
    return HostCapture(report, outputs_of(captured))


def outputs_of(captured: Sequence[Captured]) -> dict[str, bytes]:
    """Return the raw outputs of commands by file name."""
    found: dict[str, bytes] = {}
    for one in captured:
        if one.output.stdout:
            found[one.output.stdout] = one.stdout
        if one.output.stderr:
            found[one.output.stderr] = one.stderr
    return found


def _file(sheet: Sheet, path: str, recorded: Recorded) -> None:
    key = f"file.{path}"
    if path in recorded.files:
        sheet.add(f"{key}.sha256", recorded.files[path], FILE)
        sheet.add(f"{key}.there", True, FILE)
        return
    try:
        real = os.path.realpath(sheet.place(path))
        found = hash_file(sheet.place(path))
    except OSError as error:
        sheet.unknown(f"{key}.sha256", path, reason_of(error))
        sheet.add(f"{key}.there", os.path.exists(sheet.place(path)), "stat(2)")
        return
    sheet.add(f"{key}.there", True, path)
    sheet.add(f"{key}.sha256", found.sha256.hex(), path)
    sheet.add(f"{key}.size_bytes", found.size_bytes, path)
    if real != path and not sheet.recorded:
        sheet.add(f"{key}.leads_to", real, "realpath(3)")


def _listing(sheet: Sheet, path: str, recorded: Recorded) -> None:
    """Note the regular files below a directory, joined by ``//``, which no path can hold."""
    known = [name[len(path) + 1 :] for name in recorded.files if name.startswith(f"{path}/")]
    top = sheet.place(path)
    if not known and not os.path.isdir(top):
        sheet.unknown(f"listing.{path}", path, "not there")
        return
    problems: list[OSError] = []
    for place, below, names in os.walk(top, onerror=problems.append):
        below.sort()
        known += [os.path.relpath(os.path.join(place, name), top) for name in names]
        if len(known) > MAX_LISTED:
            sheet.unknown(f"listing.{path}", path, f"more than {MAX_LISTED} files")
            return
    if problems and not recorded.files:
        sheet.unknown(f"listing.{path}", path, reason_of(problems[0]))
        return
    sheet.add(f"listing.{path}", "//".join(sorted(set(known))), path)


def _source(sheet: Sheet, path: str, recorded: Recorded) -> None:
    key = f"source.{path}"
    stated = recorded.sources.get(path)
    if stated is not None:
        sheet.add(f"{key}.commit", stated.commit, FILE)
        sheet.add(f"{key}.clean", stated.clean, FILE)
        return
    try:
        state = inspectors.inspect_git(os.fsencode(sheet.place(path)))
    except ProvError as error:
        reason = "not there" if not os.path.isdir(sheet.place(path)) else error.message
        for name in ("commit", "clean"):
            sheet.unknown(f"{key}.{name}", path, reason)
        return
    if state.commit is None:
        sheet.unknown(f"{key}.commit", path, "nothing is committed")
    else:
        sheet.add(f"{key}.commit", state.commit, path)
    sheet.add(f"{key}.clean", state.clean, path)
    changed = [show(change.path) for change in state.dirty] + [show(name) for name in state.untracked]
    if changed:
        sheet.add(f"{key}.changed", " ".join(changed[:20]), path)


def _environment(sheet: Sheet, path: str, recorded: Recorded) -> None:
    key = f"environment.{path}"
    stated = recorded.packages.get(path)
    if stated is not None:
        for name, version in stated.items():
            sheet.add(f"{key}.package.{name}", version, FILE)
        return
    try:
        facts = inspectors.inspect_python_env(os.fsencode(sheet.place(path)))
    except InspectError as error:
        sheet.unknown(f"{key}.packages", path, error.reason)
        return
    except ProvError:
        sheet.unknown(f"{key}.packages", path, "not there" if not sheet.there(path) else "cannot be read")
        return
    for fact in facts:
        name = fact.key.removeprefix("python.")
        said = " ".join(map(str, fact.value)) if isinstance(fact.value, tuple) else fact.value
        if isinstance(said, str | int | bool):
            sheet.add(f"{key}.{name}", said, f"{path}/{fact.path}")


def _processes(sheet: Sheet) -> None:
    """Note the names of everything that runs, as programs call themselves."""
    pids = [name for name in sheet.names("/proc") if re.fullmatch(r"[0-9]+", name)]
    if not pids:
        sheet.unknown("running.processes", "/proc", "no process is listed")
        return
    running: Counter[str] = Counter()
    for pid in pids[:MAX_PROCESSES]:
        words = (sheet.read(f"/proc/{pid}/cmdline").value or "").split("\0")
        own = sheet.read(f"/proc/{pid}/comm").value or ""
        running.update({show(own), show(os.path.basename(words[0].split(" ")[0]))} - {""})
    sheet.add("running.processes", len(pids), "/proc")
    for name, number in running.items():
        sheet.add(f"running.name.{name}", number, "/proc/*/comm, /proc/*/cmdline")


def _command(sheet: Sheet, command: CaptureCommand, recorded: Recorded) -> Captured:
    if not sheet.recorded:
        return run_command(command)
    shown = tuple(show(word) for word in command.argv)
    stated = recorded.commands.get(command.name)
    if stated is None:
        reason = "nothing is run for a recorded host, and it holds no output of this name"
        return Captured(CommandOutput(name=command.name, argv=shown, state="not-run", reason=reason))
    output = CommandOutput(name=command.name, argv=shown, state="ended", exit_code=stated.exit_code)
    return with_output(output, stated.stdout.encode(), b"")
