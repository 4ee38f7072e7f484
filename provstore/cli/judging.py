"""``prov explain`` and ``prov metrics``."""

from itertools import chain
from typing import Annotated, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.options import Json, Packet, Policy, Quiet, Store, notes

commands = room()


@commands.command(
    epilog=notes(
        "prov explain run-7 tokens --policy policy.toml",
        "prov explain run-7 'claim: decode' --policy policy.toml --json",
        exit_0="the gate holds, or is not required",
        exit_1="the gate is required and fails",
        exit_3="the gate is required and could not be decided",
    )
)
def explain(
    ctx: typer.Context,
    name: Packet,
    gate: Annotated[str, typer.Argument(metavar="GATE", help="Name of the gate, or `claim: NAME`.")],
    policy: Policy = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Show why a gate says what it says: rule, facts, file, line.

    Without --policy the packet's own policies count, else the one of its latest kept verdict. Where several
    have the gate, the worst comes first and counts.
    """
    from provstore.cli.opening import packet_of
    from provstore.cli.policies import policies_of
    from provstore.report.judged import explain_lines
    from provstore.verbs.explaining import explain_each, latest_policy

    out = console(ctx, store, as_json, quiet)
    with packet_of(out, name) as (reader, packet, _):
        found = policies_of(reader, packet, policy) or latest_policy(reader, packet)
        reports = explain_each(reader, packet, found, gate)
    if len(reports) > 1:
        others = ", ".join(f"{report.found} under {report.policy[:12]}" for report in reports[1:])
        out.note(
            f"{len(reports)} policies have this gate; worst first, under {reports[0].policy[:12]}; {others}"
        )
    out.answer(reports[0], chain.from_iterable(map(explain_lines, reports)))


@commands.command(
    epilog=notes(
        "prov metrics bench.json --convention conventional-intervals",
        "prov metrics timestamps.log --convention legacy --json",
        exit_0="the file gives a value",
        exit_1="the file contradicts the convention: a short window, a span of zero",
        exit_3="something that the convention needs is not stated",
    )
)
def metrics(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Benchmark JSON, or a log with one timestamp in seconds a line."),
    ],
    convention: Annotated[
        str, typer.Option("--convention", metavar="C", help="Name of a shipped definition.")
    ] = "conventional-intervals",
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Recompute a number from a raw benchmark under a named convention.

    Values of two conventions are never compared; one bad row leaves no value.
    """
    from provstore.files.hashing import read_file
    from provstore.report.judged import metrics_lines
    from provstore.verbs import measuring

    out = console(ctx, store, as_json, quiet)
    definition = measuring.convention(convention)
    report = measuring.measure(read_file(file, measuring.MAX_FILE_BYTES), file, definition)
    out.answer(report, metrics_lines(report))
