"""The command ``prov`` before any command of its own: version, options for all, settings."""

from typing import Annotated

import typer

from provstore import __version__
from provstore.cli.commands import Commands
from provstore.cli.console import Console, write_lines
from provstore.cli.options import Json, Quiet, Store, notes
from provstore.errors import UsageError

app = typer.Typer(
    name="prov",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=notes("prov init", "prov seal run/", "prov verify run"),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        write_lines([f"prov {__version__}"])
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Seal, verify and compare the bytes behind a benchmark claim.

    A packet is a sealed manifest; its id covers every byte and every statement in it.
    """
    ctx.obj = Console(store, as_json, quiet)


def console(ctx: typer.Context, store: str | None, as_json: bool, quiet: bool) -> Console:
    """Return the console of one command: options given before it and after it, together.

    Raises:
        UsageError: an argument is empty, as an unset shell variable leaves it; as a path it would mean the
            working directory.
    """
    for level in filter(None, (ctx.parent, ctx)):
        for name, value in level.params.items():
            source = level.get_parameter_source(name)
            typed = source is not None and source.name != "DEFAULT"
            if typed and (value == "" or (isinstance(value, list | tuple) and "" in value)):
                raise UsageError(f"{name.replace('_', ' ')}: an empty value was given")
    before: Console = ctx.obj
    return before.with_options(store, as_json, quiet)
