"""``prov host`` and ``prov capture``."""

from typing import Annotated, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.options import Json, Quiet, Store, notes
from provstore.errors import UsageError

commands = room()

Directory = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="DIR", help="Write it into this new or empty directory as well."),
]
Root = Annotated[
    str, typer.Option("--root", metavar="DIR", help="Directory that stands for /: a recorded host.")
]
Command = Annotated[
    list[str] | None,
    typer.Option("--command", metavar="NAME='PROGRAM ...'", help="Run it and keep its output; repeatable."),
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", min=0.1, help="How long each command may take; 30.")
]
Files = Annotated[
    list[str] | None, typer.Option("--file", metavar="PATH", help="A file to digest; repeatable.")
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="PATH", help="A source tree: its commit and state; repeatable."),
]
Environments = Annotated[
    list[str] | None,
    typer.Option("--environment", metavar="PATH", help="A Python environment; repeatable."),
]
Mounts = Annotated[
    list[str] | None,
    typer.Option("--mount", metavar="PATH", help="A path whose file system matters; repeatable."),
]


@commands.command(
    epilog=notes(
        "prov host",
        "prov host --json",
        "prov host --command 'pci=/usr/bin/lspci -nn' -o host",
        "prov host --mount /data --environment /opt/engine/venv",
        exit_1="",
        exit_3="",
    )
)
def host(
    ctx: typer.Context,
    root: Root = "/",
    command: Command = None,
    seconds: Seconds = None,
    file: Files = None,
    source: Sources = None,
    environment: Environments = None,
    mount: Mounts = None,
    output: Directory = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Show what this machine is, each value with its source.

    System, processors, memory, clocks, networks, PCI devices, accelerators and their drivers, toolchains.
    What cannot be read is unknown, with the reason. Nothing is guessed, and no tool is run but those named.
    """
    from provstore.host.capture import Wanted, capture_host
    from provstore.host.commands import LIMIT_S, CaptureCommand
    from provstore.report.hosted import host_lines
    from provstore.verbs.capturing import write_host

    out = console(ctx, store, as_json, quiet)
    limit_s = LIMIT_S if seconds is None else seconds
    asked = [CaptureCommand(name=n, argv=argv, seconds=limit_s) for n, argv in map(_command, command or ())]
    if len({one.name for one in asked}) < len(asked):
        raise UsageError("two commands have one name")
    wanted = Wanted(
        files=_absolute(file),
        sources=_absolute(source),
        environments=_absolute(environment),
        mounts=_absolute(mount),
        ports=True,
        commands=tuple(asked),
    )
    report, outputs = capture_host(root, wanted)
    if output is not None:
        for path in write_host(output, report, outputs):
            out.note(f"wrote {path}")
    out.answer(report, host_lines(report))


def _absolute(paths: list[str] | None) -> tuple[str, ...]:
    for path in paths or ():
        if not path.startswith("/"):
            raise UsageError(f"{path!r} is no absolute path")
    return tuple(paths or ())


def _command(text: str) -> tuple[str, tuple[str, ...]]:
    import re
    import shlex

    name, equals, line = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise UsageError(f"{text!r} is no command: write NAME='/absolute/program argument ...'")
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"command {name}: {error}") from error
    if not words or not words[0].startswith("/"):
        raise UsageError(f"command {name}: its program is no absolute path, so PATH would choose it")
    return name, words


@commands.command(
    epilog=notes(
        "prov capture --pid 4711",
        "prov capture --pid 4711 --env 'MYENGINE_*' -o captured --json",
        exit_1="",
        exit_3="",
    )
)
def capture(
    ctx: typer.Context,
    pid: Annotated[
        int, typer.Option("--pid", metavar="PID", min=1, help="The process; its children come along.")
    ],
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="GLOB", help="Variables to keep beside the usual ones; repeatable."),
    ] = None,
    output: Directory = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Show what a process and its children are and really loaded.

    Arguments, environment (allowed names only, secrets withheld), working directory, and each mapped shared
    object with its digests, build id, and why it is there: what the loader's search order leads to, against
    what is mapped.
    """
    from provstore.host.observing import capture_processes
    from provstore.host.secrets import USUAL
    from provstore.report.hosted import capture_lines
    from provstore.verbs.capturing import write_processes

    out = console(ctx, store, as_json, quiet)
    report = capture_processes(pid, (*USUAL, *(env or ())))
    if output is not None:
        for path in write_processes(output, report):
            out.note(f"wrote {path}")
    out.answer(report, capture_lines(report))
