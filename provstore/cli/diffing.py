"""``prov diff``."""

from typing import Annotated, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.options import Json, Quiet, Store, notes

commands = room()

Side = Annotated[str, typer.Argument(help="Ref, id, id prefix, pack file or directory.")]


@commands.command(
    epilog=notes(
        "prov diff run-6 run-7",
        "prov diff run-7.pack run/",
        exit_0="nothing differs",
        exit_1="something differs",
        exit_3="",
    )
)
def diff(
    ctx: typer.Context,
    a: Side,
    b: Side,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Show what changed from A to B, where it belongs (inputs, environment, result), and what stayed."""
    from provstore.cli.opening import any_store
    from provstore.report.changes import diff_lines
    from provstore.verbs.diffing import diff, side
    from provstore.verbs.layering import attributable

    out = console(ctx, store, as_json, quiet)
    with any_store(out, a, b) as near, side(a, near) as first, side(b, near) as second:
        report = diff(first, second)
        if attributable(first, second, report):
            from provstore.verbs.attributing import attribute

            report = attribute(first, second, report)
    out.answer(report, diff_lines(report))
