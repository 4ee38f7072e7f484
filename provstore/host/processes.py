"""A process and its children, as ``/proc`` shows them to whoever may look; what it refuses is said."""

import os
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from provstore.errors import ProcessError
from provstore.host.maps import Mapping, parse_maps
from provstore.host.secrets import allowed, secret_variable, shown_arguments
from provstore.host.sheet import reason_of
from provstore.paths import show

MAX_CHILDREN: Final = 4096

_STAT: Final = re.compile(rb"([0-9]+) \((.*)\) (\S) ([0-9]+) (.*)", re.DOTALL)
_START_FIELD: Final = 17
"""Index of the start time behind the parent's number: field 22 of ``proc(5)``."""


class Stat(NamedTuple):
    """What the kernel says of a process."""

    pid: int
    name: str
    state: str
    parent: int
    started_ticks: str

    @property
    def ended(self) -> bool:
        """Whether it has ended and only waits for its parent."""
        return self.state in ("Z", "X")


class Raw(NamedTuple):
    """What could be read of one process.

    Attributes:
        stat: what it is.
        argv: its arguments, secrets withheld.
        program: path of what it runs; None when it cannot be read.
        directory: its working directory.
        variables: its whole environment, for working out where it looks; never shown as it is.
        maps: what it has mapped; None when it cannot be read.
        unknown: what could not be read.
        ended: it was not the same process any more when all was read.
    """

    stat: Stat
    argv: tuple[str, ...]
    program: str | None
    directory: str | None
    variables: dict[str, str] | None
    maps: list[Mapping] | None
    unknown: tuple[str, ...]
    ended: bool


class Environment(NamedTuple):
    """An environment as it may be shown."""

    shown: dict[str, str]
    withheld: tuple[str, ...]
    not_allowed: tuple[str, ...]


def stat_of(pid: int) -> Stat | None:
    """Return what the kernel says of a process, or None when there is none of this number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            match = _STAT.fullmatch(file.read().strip())
    except OSError:
        return None
    if match is None:
        return None
    fields = match[5].split()
    if len(fields) <= _START_FIELD:
        return None
    return Stat(
        int(match[1]), show(match[2]), match[3].decode(), int(match[4]), fields[_START_FIELD].decode()
    )


def family(pid: int) -> list[Stat]:
    """Return a process and all its children, parents first.

    Raises:
        ProcessError: there is no such process, or it has ended.
    """
    top = stat_of(pid)
    if top is None:
        raise ProcessError(pid, "is not there")
    if top.ended:
        raise ProcessError(pid, "has ended, and waits for its parent")
    below: dict[int, list[Stat]] = {}
    for name in os.listdir("/proc"):
        one = stat_of(int(name)) if name.isdigit() else None
        if one is not None:
            below.setdefault(one.parent, []).append(one)
    found, at = [top], 0
    while at < len(found) and len(found) < MAX_CHILDREN:
        found += sorted(below.get(found[at].pid, []))
        at += 1
    return found


def read_process(stat: Stat) -> Raw:
    """Read what may be read of a process."""
    unknown: list[str] = []
    place = f"/proc/{stat.pid}"

    def bytes_of(name: str) -> bytes | None:
        try:
            with open(f"{place}/{name}", "rb") as file:
                return file.read()
        except OSError as error:
            unknown.append(f"{name}: {reason_of(error)}")
            return None

    def link_of(name: str) -> str | None:
        try:
            return os.readlink(f"{place}/{name}")
        except OSError as error:
            unknown.append(f"{name}: {reason_of(error)}")
            return None

    line = bytes_of("cmdline") or b""
    environ, maps = bytes_of("environ"), bytes_of("maps")
    program, directory = link_of("exe"), link_of("cwd")
    if maps == b"":
        unknown.append("maps: it has no memory, as a process that has ended")
    again = stat_of(stat.pid)
    words = [word.decode("utf-8", "surrogateescape") for word in line.removesuffix(b"\0").split(b"\0")]
    return Raw(
        stat=stat,
        argv=tuple(show(word) for word in shown_arguments(words)) if line else (),
        program=program,
        directory=directory,
        variables=None if environ is None else _variables(environ),
        maps=parse_maps(maps) if maps else None,
        unknown=tuple(unknown),
        ended=again is None or again.started_ticks != stat.started_ticks,
    )


def _variables(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in data.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals and name:
            text = name.decode("utf-8", "surrogateescape")
            found.setdefault(text, value.decode("utf-8", "surrogateescape"))
    return found


def shown_environment(variables: dict[str, str], patterns: Sequence[str]) -> Environment:
    """Return what may be shown of an environment: allowed variables, without those that look like secrets."""
    shown: dict[str, str] = {}
    withheld, others = [], []
    for name in sorted(variables):
        if not allowed(name, patterns):
            others.append(show(name))
        elif secret_variable(name, variables[name]):
            withheld.append(show(name))
        else:
            shown[show(name)] = show(variables[name])
    return Environment(shown, tuple(withheld), tuple(others))
