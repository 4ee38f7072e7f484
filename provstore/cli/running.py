"""``prov run``."""

import os
from typing import Annotated, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.options import Json, Quiet, Store, Variables, notes, parse_variables
from provstore.errors import UsageError

commands = room()


@commands.command(
    epilog=notes(
        "prov run recipe.toml --preflight",
        "prov run recipe.toml --preflight --set models=/data/models --json",
        exit_0="nothing stands in the way",
        exit_1="something differs or is absent; all of it is listed",
        exit_3="nothing is known to differ, and something could not be looked at",
    )
)
def run(
    ctx: typer.Context,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe (TOML).")],
    preflight: Annotated[
        bool, typer.Option("--preflight", help="Compare it with this host and start nothing.")
    ] = False,
    variables: Variables = None,
    root: Annotated[
        str, typer.Option("--root", metavar="DIR", help="Directory that stands for /: a recorded host.")
    ] = "/",
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Compare a recipe with a host: all that stands between it and a run, in one table.

    The recipe is checked first; nothing of it ever passes through a shell. Files that it pins are read whole,
    declared commands are run, and nothing is started.
    """
    from provstore.cli.opening import any_store
    from provstore.report.prepared import preflight_lines
    from provstore.verbs.running import prepare

    out = console(ctx, store, as_json, quiet)
    if not preflight:
        raise UsageError("prov run takes --preflight: recipes are compared with a host, and not started")
    with any_store(out, recipe) as near:
        report = prepare(os.fspath(recipe), parse_variables(variables or []), reader=near, root=root)
    out.answer(report, preflight_lines(report))
