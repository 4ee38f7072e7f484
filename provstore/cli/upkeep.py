"""``prov fsck``, ``prov gc``, ``prov stats`` and ``prov doctor``."""

from typing import Annotated, NoReturn

import typer

from provstore.cli.app import app, console
from provstore.cli.options import Json, Quiet, Store, notes


@app.command(
    epilog=notes("prov fsck", exit_0="the store is whole", exit_1="something is damaged; all of it is named")
)
def fsck(ctx: typer.Context, store: Store = None, as_json: Json = False, quiet: Quiet = False) -> NoReturn:
    """Re-read the whole store and name all damage.

    Each damaged thing is listed with every packet and role that it touches.
    """
    from provstore.cli.meter import ProgressMeter
    from provstore.cli.opening import reading_store
    from provstore.report.verdicts import fsck_lines
    from provstore.verbs.sweeping import fsck

    out = console(ctx, store, as_json, quiet)
    with reading_store(out) as near, ProgressMeter("fsck", quiet=out.quiet) as meter:
        report = fsck(near, progress=meter.reporter)
    out.answer(report, fsck_lines(report))


@app.command(epilog=notes("prov gc", "prov gc --delete", exit_1="", exit_3=""))
def gc(
    ctx: typer.Context,
    delete: Annotated[bool, typer.Option("--delete", help="Remove it; without this only report.")] = False,
    grace_s: Annotated[
        int | None, typer.Option("--grace", metavar="SECONDS", min=0, help="Spare what is younger.")
    ] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Find what no ref reaches, and remove it if told to."""
    from provstore.cli.opening import sweeping_store
    from provstore.report.summaries import gc_lines
    from provstore.verbs.sweeping import GRACE_S, gc

    out = console(ctx, store, as_json, quiet)
    with sweeping_store(out, delete) as near:
        report = gc(near, delete=delete, grace_s=GRACE_S if grace_s is None else grace_s)
    out.answer(report, gc_lines(report))


@app.command(epilog=notes("prov stats", exit_1="", exit_3=""))
def stats(ctx: typer.Context, store: Store = None, as_json: Json = False, quiet: Quiet = False) -> NoReturn:
    """Show how much is in a store and what it takes up."""
    from provstore.cli.opening import reading_store
    from provstore.report.listings import stats_lines
    from provstore.verbs.listing import stats

    out = console(ctx, store, as_json, quiet)
    with reading_store(out) as near:
        report = stats(near)
    out.answer(report, stats_lines(report))


app.command("stat", hidden=True)(stats)


@app.command(
    epilog=notes(
        "prov doctor",
        exit_0="all is well",
        exit_1="something is broken",
        exit_3="something could not be tried",
    )
)
def doctor(ctx: typer.Context, store: Store = None, as_json: Json = False, quiet: Quiet = False) -> NoReturn:
    """Check this installation and its store.

    Hash functions against known answers, libraries, file system, index.
    """
    from provstore.cli.opening import readable_store
    from provstore.report.verdicts import doctor_lines
    from provstore.verbs.doctoring import doctor

    out = console(ctx, store, as_json, quiet)
    report = doctor(readable_store(out))
    out.answer(report, doctor_lines(report))
