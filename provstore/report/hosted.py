"""Captures of hosts and processes as text."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from provstore.report.text import amount, columns, count, indented, short
from provstore.reports.hosted import CaptureReport, CommandOutput, HostFact, HostReport, Loaded, ProcessSeen

_LONG: Final = 100


def host_lines(report: HostReport) -> Iterator[str]:
    """Yield the facts of a host by their first word, then its commands; what is unknown says why.

    Example:
        >>> fact = HostFact(key="cpu.logical", value=2, source="/proc/cpuinfo")
        >>> print(*host_lines(HostReport(root="/", taken="2026-01-01T00:00:00Z", facts=(fact,))), sep="|")
        host / at 2026-01-01T00:00:00Z: 1 value, 0 unknown|cpu|  logical  2  /proc/cpuinfo
    """
    unknown = sum(fact.value is None for fact in report.facts)
    known = count(len(report.facts) - unknown, "value")
    yield f"host {report.root} at {report.taken}: {known}, {unknown} unknown"
    for group, facts in groupby(report.facts, key=lambda fact: fact.key.partition(".")[0]):
        yield group
        yield from indented(columns([_row(fact) for fact in facts]))
    if report.commands:
        yield "commands"
        yield from indented(columns([_command(command) for command in report.commands]))


def _row(fact: HostFact) -> tuple[str, str, str]:
    name = fact.key.partition(".")[2] or fact.key
    if fact.value is None:
        return name, "unknown", f"{fact.source}: {fact.reason}"
    text = str(fact.value).lower() if isinstance(fact.value, bool) else str(fact.value)
    return name, text if len(text) <= _LONG else f"{text[:_LONG]} ...", fact.source


def _command(command: CommandOutput) -> tuple[str, ...]:
    ended = f"exit {command.exit_code}" if command.state == "ended" else command.state
    told = f"{amount(command.stdout_bytes)} {short(command.stdout_blake3)}" if command.stdout else ""
    return command.name, ended, told, command.reason or " ".join(command.argv)


def capture_lines(report: CaptureReport) -> Iterator[str]:
    """Yield each process with what it loaded and why, then what a person should know."""
    noun = count(len(report.processes), "process", "processes")
    yield f"process {report.pid} at {report.taken}: {noun}, {count(len(report.files), 'mapped object')}"
    digests = {file.path: (file.sha256, file.state) for file in report.files}
    for process in report.processes:
        yield from _process(process, digests)
    if report.findings:
        yield "findings"
        rows = [(f.code, str(f.pid), f.path, f.message) for f in report.findings]
        yield from indented(columns(rows))


def _process(process: ProcessSeen, digests: Mapping[str, tuple[str | None, str]]) -> Iterator[str]:
    yield f"{process.pid} {process.name}: {' '.join(process.argv)}"
    rows = []
    for one in process.loaded:
        digest, state = digests.get(one.path, (None, "unreadable"))
        rows.append((short(digest) if digest else state, one.path, _why(one)))
    yield from indented(columns(rows))
    names = count(len(process.environment), "variable")
    yield f"  {names} kept, {len(process.withheld)} withheld, {len(process.not_allowed)} not allowed"
    yield from indented(f"unknown: {text}" for text in process.unknown)


def _why(one: Loaded) -> str:
    words: list[str] = [one.why]
    if one.through:
        words.append(f"by {one.through}")
    if one.agrees is False:
        words.append(f"(expected {one.expected})")
    if one.agrees is None and one.why in ("needed", "preload", "unknown"):
        words.append(f"(not checked: {one.reason})")
    if one.shadowed:
        words.append(f"(before {', '.join(one.shadowed)})")
    return " ".join(words)
