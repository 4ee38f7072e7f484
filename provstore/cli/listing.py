"""``prov ls``, ``prov cat``, ``prov show`` and ``prov log``."""

from collections.abc import Iterator
from typing import Annotated, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.console import Buffer, Console, write_bytes
from provstore.cli.options import Json, Packet, Quiet, Store, notes

commands = room()

NO_VERDICT = {"exit_1": "", "exit_3": ""}


@commands.command(epilog=notes("prov ls run-7", "prov ls run-7 evidence/logs --json", **NO_VERDICT))
def ls(
    ctx: typer.Context,
    name: Packet,
    path: Annotated[str, typer.Argument(metavar="PATH", help="Only what lies at or below ROLE/PATH.")] = "",
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """List the members of a packet: type, bytes, BLAKE3, path."""
    from provstore.cli.opening import packet_of
    from provstore.report.listings import ls_lines
    from provstore.verbs.listing import ls

    out = console(ctx, store, as_json, quiet)
    with packet_of(out, name) as (reader, packet, _):
        members = ls(reader, packet, path)
        out.answer(list(members) if out.json else None, ls_lines(members))


@commands.command(
    epilog=notes(
        "prov cat run-7 evidence/status.txt",
        "prov cat sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
        exit_0="every byte given was checked",
        **NO_VERDICT,
    )
)
def cat(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="X", help="A packet, as for ls; without PATH the digest of an object.")
    ],
    path: Annotated[str | None, typer.Argument(metavar="PATH", help="ROLE/PATH of the member.")] = None,
    store: Store = None,
) -> NoReturn:
    """Write the checked bytes of a member to stdout.

    Without PATH the one argument is the digest of an object.
    """
    out = console(ctx, store, as_json=False, quiet=False)
    for chunk in _chunks(out, name, path):
        if not write_bytes(chunk):
            break
    raise typer.Exit


def _chunks(out: Console, name: str, path: str | None) -> Iterator[Buffer]:
    from provstore.cli.opening import packet_of, reading_store
    from provstore.verbs.listing import cat, cat_object

    if path is None:
        with reading_store(out) as near:
            yield from cat_object(near, name)
    else:
        with packet_of(out, name) as (reader, packet, _):
            yield from cat(reader, packet, path)


@commands.command(epilog=notes("prov show run-7", "prov show run-7 --verdicts", **NO_VERDICT))
def show(
    ctx: typer.Context,
    name: Packet,
    verdicts: Annotated[
        bool, typer.Option("--verdicts", help="Also every verdict that was kept, of all policies.")
    ] = False,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Show the card of a packet.

    Entries with totals, pins, origins and facts; claims; parents; with --verdicts what policies said.
    """
    from provstore.cli.opening import packet_of
    from provstore.report.cards import show_lines
    from provstore.verbs.listing import show_packet

    out = console(ctx, store, as_json, quiet)
    with packet_of(out, name) as (reader, packet, _):
        report = show_packet(reader, packet, verdicts=verdicts)
    out.answer(report, show_lines(report))


@commands.command(epilog=notes("prov log", "prov log run-7", **NO_VERDICT))
def log(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="REF", help="One ref; else all.")] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Show what refs have named, the oldest first."""
    from provstore.cli.opening import reading_store
    from provstore.report.listings import log_lines
    from provstore.verbs.listing import log

    out = console(ctx, store, as_json, quiet)
    with reading_store(out) as near:
        steps = log(near, name)
    out.answer(steps, log_lines(steps))
