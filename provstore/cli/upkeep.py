"""``prov fsck``, ``prov gc``, ``prov stats`` and ``prov doctor``."""

import re
from contextlib import ExitStack
from typing import Annotated, NoReturn

import typer

from provstore.cli import options
from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.options import Json, Quiet, Store, notes
from provstore.errors import UsageError
from provstore.paths import show

commands = room()


@commands.command(
    epilog=notes(
        "prov fsck",
        "prov fsck --fraction 5%",
        "prov fsck --budget 20m",
        "prov fsck --repair --from /mnt/other/.prov --from run-7.pack",
        exit_0="nothing that was looked at is damaged, or no longer",
        exit_1="something is damaged; all of it is named",
        exit_3="",
    )
)
def fsck(
    ctx: typer.Context,
    fraction: options.Fraction = None,
    sample: options.Sample = None,
    budget: options.Budget = None,
    repair: options.Repair = False,
    sources: options.Sources = None,
    rebuild: options.Rebuild = False,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Re-read a store, name all damage, and repair it.

    Each damaged thing is listed with every packet and role that it touches. Only --budget, --repair and
    --rebuild-index write to the store.
    """
    from provstore.cli.meter import ProgressMeter
    from provstore.cli.opening import mending_store, reading_store, wrecked_store
    from provstore.cli.watching import watch
    from provstore.report.verdicts import fsck_lines
    from provstore.verbs import checking, repairing

    out = console(ctx, store, as_json, quiet)
    ways = {
        "--fraction": fraction,
        "--sample": sample,
        "--budget": budget,
        "--repair": repair or None,
        "--rebuild-index": rebuild or None,
    }
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} do not go together")
    if sources and not repair:
        raise UsageError("--from says where to repair from; it needs --repair")
    part = None if fraction is None else parse_fraction(fraction)
    budget_s = None if budget is None else parse_duration(budget)
    with ProgressMeter("fsck", quiet=out.quiet) as meter, ExitStack() as opened:
        if rebuild:
            report = repairing.rebuild_index(wrecked_store(out), progress=meter.reporter)
        elif repair:
            for source in sources or ():
                watch(source)
            near = opened.enter_context(mending_store(out))
            report = repairing.repair(near, sources or (), progress=meter.reporter)
        elif budget_s is not None:
            near = opened.enter_context(mending_store(out))
            report = checking.fsck_for(near, budget_s, progress=meter.reporter)
        else:
            near = opened.enter_context(reading_store(out, thorough=True))
            report = checking.fsck(near, sample=sample, fraction=part, progress=meter.reporter)
    out.answer(report, fsck_lines(report))


def parse_fraction(text: str) -> float:
    """Return the part of all that ``5%`` or ``0.05`` stands for.

    Raises:
        UsageError: anything else, or a part outside of 0 to 100 %.

    Example:
        >>> parse_fraction("5%"), parse_fraction("0.5")
        (0.05, 0.5)
    """
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(%?)", text)
    value = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < value <= 1:
        raise UsageError(f"{show(text)!r} is no part of all: write 5% or 0.05, at most 100%")
    return value


def parse_duration(text: str) -> float:
    """Return the seconds that ``20m``, ``1h30m``, ``90s`` or ``90`` stand for.

    Raises:
        UsageError: anything else, or no time at all.

    Example:
        >>> parse_duration("20m"), parse_duration("1h30m"), parse_duration("90")
        (1200.0, 5400.0, 90.0)
    """
    found = re.fullmatch(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)s?)?", text)
    parts = [float(part or 0) for part in found.groups()] if found else [0.0, 0.0, 0.0]
    seconds = parts[0] * 3600 + parts[1] * 60 + parts[2]
    if not seconds > 0:
        raise UsageError(f"{show(text)!r} is no time: write 20m, 1h30m or 90s")
    return seconds


@commands.command(epilog=notes("prov gc", "prov gc --delete", exit_1="", exit_3=""))
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
    from provstore.verbs.collecting import GRACE_S, gc

    out = console(ctx, store, as_json, quiet)
    with sweeping_store(out, delete) as near:
        report = gc(near, delete=delete, grace_s=GRACE_S if grace_s is None else grace_s)
    out.answer(report, gc_lines(report))


@commands.command(epilog=notes("prov stats", exit_1="", exit_3=""))
def stats(ctx: typer.Context, store: Store = None, as_json: Json = False, quiet: Quiet = False) -> NoReturn:
    """Show how much is in a store and what it takes up."""
    from provstore.cli.opening import reading_store
    from provstore.report.listings import stats_lines
    from provstore.verbs.listing import stats

    out = console(ctx, store, as_json, quiet)
    with reading_store(out) as near:
        report = stats(near)
    out.answer(report, stats_lines(report))


commands.command("stat", hidden=True)(stats)


@commands.command(
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
    from provstore.cli.watching import watch
    from provstore.report.verdicts import doctor_lines
    from provstore.verbs.doctoring import doctor

    out = console(ctx, store, as_json, quiet)
    path = readable_store(out)
    if path is not None:
        watch(path)
    report = doctor(path)
    out.answer(report, doctor_lines(report))
