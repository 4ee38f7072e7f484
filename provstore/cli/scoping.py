"""``prov scope``."""

from typing import Annotated, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.options import Json, Quiet, Store, notes
from provstore.errors import UsageError

commands = room()


@commands.command(
    epilog=notes(
        "prov scope run-7 --where cards=2 --where kv=fp8",
        "prov scope run-7 --to run-8",
        "prov scope run-7 --this-host --claim performance",
        "prov scope measurement:family-a/run-1 --where cards=2",
        exit_0="every kind of claim that was asked about carries over",
        exit_1="some kind of claim does not",
        exit_3="nothing speaks against it, and of some kind it is not known",
    )
)
def scope(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="X", help="Ref, id, id prefix, pack file, or KIND:KEY of the graph.")
    ],
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="NAME=VALUE", help="The context, by dimension; repeatable."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="B", help="The context is where this stands.")
    ] = None,
    this_host: Annotated[
        bool, typer.Option("--this-host", help="The context is this machine: its own dimensions host.*.")
    ] = False,
    claim: Annotated[
        list[str] | None,
        typer.Option("--claim", metavar="KIND", help="Only this kind of claim; repeatable."),
    ] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Say whether the claims of a packet carry to another context.

    Rules over dimensions decide: those of the packet, else those of the library. What nobody states is
    unknown, and what was not asked about is taken to be as it is here. Prose of a family is shown and decides
    nothing.
    """
    from provstore.cli.graph import graph_of
    from provstore.graph.places import context
    from provstore.graph.scope import claim_kinds
    from provstore.host.dimensions import host_dimensions
    from provstore.report.scoped import scope_lines
    from provstore.verbs.scoping import scope
    from provstore.verbs.standing import subject

    out = console(ctx, store, as_json, quiet)
    asked = context(where or [])
    if this_host:
        asked = {**host_dimensions(), **asked}
    kinds = claim_kinds(claim or [])
    if to is not None and this_host:
        raise UsageError("--to and --this-host name two contexts")
    with graph_of(out, name) as (reader, graph, node):
        other = None if to is None else subject(reader, to)
        answers = scope(reader, graph, node, asked, to=other, kinds=kinds)
    shown = [f"{key}={value}" for key, value in asked.items()]
    place = ", ".join([*shown, *([] if to is None else [f"where {to} stands"])])
    out.answer(answers, scope_lines(name, place, answers))
