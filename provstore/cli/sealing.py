"""``prov init`` and ``prov seal``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from provstore import __version__
from provstore.cli import options
from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.console import write_document, write_lines
from provstore.cli.options import Json, Quiet, Store, notes, parse_variables
from provstore.errors import UsageError

commands = room()


@commands.command(epilog=notes("prov init", "prov init /data/evidence.prov"))
def init(
    ctx: typer.Context,
    path: Annotated[str | None, typer.Argument(metavar="PATH", help="The store's own directory.")] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Make a store.

    At PATH, or where --store or PROVSTORE say, else at ./.prov.
    """
    from provstore.cli.opening import named_store, new_store
    from provstore.report.listings import stats_lines
    from provstore.verbs.listing import stats

    out = console(ctx, store, as_json, quiet)
    made = new_store(path or named_store(out) or ".prov")
    report = stats(made)
    made.close()
    out.answer(report, stats_lines(report))


@commands.command(
    epilog=notes(
        "prov seal run/ --name run-7 --exclude '*.tmp'",
        "prov seal packet.toml --set models=/data/models",
        exit_0="sealed: durable, and named by the printed id",
        exit_1="",
        exit_3="",
    )
)
def seal(
    ctx: typer.Context,
    paths: options.Sealed,
    name: options.Name = None,
    exclude: options.Exclude = None,
    variables: options.Variables = None,
    require: options.Require = None,
    kind: options.Kind = "evidence",
    git: options.Git = False,
    elf: options.Elf = False,
    hf: options.Hf = False,
    follow_symlinks: options.FollowSymlinks = False,
    allow_unreadable: options.AllowUnreadable = False,
    allow_growing: options.AllowGrowing = False,
    allow_pointers: options.AllowPointers = False,
    special: options.Special = "refuse",
    ledger: options.Ledger = False,
    no_cache: options.NoCache = False,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Hash and store every byte once; print the packet's id.

    The id goes to stdout, the summary to stderr. A seal is all or nothing.
    """
    from provstore.cli.meter import ProgressMeter
    from provstore.cli.opening import writing_store
    from provstore.report.summaries import seal_lines
    from provstore.verbs.sealing import SealOptions, seal_paths, seal_spec

    out = console(ctx, store, as_json, quiet)
    _refuse_special(special)
    values = parse_variables(variables or [])
    settings = SealOptions(
        exclude=tuple(exclude or ()),
        follow_symlinks=follow_symlinks,
        allow_unreadable=allow_unreadable,
        allow_growing=allow_growing,
        allow_pointers=allow_pointers,
        kind=_kind(kind, git=git, elf=elf, hf=hf),
        require=tuple(require or ()),
        use_cache=not no_cache,
        tool=f"provstore {__version__}",
        ledger=ledger,
    )
    with writing_store(out) as target, ProgressMeter("seal", quiet=out.quiet) as meter:
        if _is_spec(paths):
            report = seal_spec(
                target, paths[0], name=name, variables=values, options=settings, progress=meter.reporter
            )
        else:
            report = seal_paths(target, paths, name=name, options=settings, progress=meter.reporter)
    for line in seal_lines(report):
        out.note(line)
    if out.json:
        write_document(report)
    else:
        write_lines([report.packet])
    raise typer.Exit


def _is_spec(paths: Sequence[str]) -> bool:
    """Say whether the one path is a packet spec; a broken one still is, and never sealed as a file."""
    from provstore.files.hashing import read_file
    from provstore.verbs.spec import HEAD_BYTES, is_spec

    if len(paths) != 1 or not paths[0].endswith(".toml") or not Path(paths[0]).is_file():
        return False
    return is_spec(read_file(paths[0], HEAD_BYTES))


def _kind(kind: str, *, git: bool, elf: bool, hf: bool) -> str:
    from provstore.records.packet import KINDS

    short = [name for name, wanted in (("source-tree", git), ("native", elf), ("model", hf)) if wanted]
    if len(short) > 1 or (short and kind not in ("evidence", short[0])):
        raise UsageError("--kind, --git, --elf and --hf exclude each other")
    if kind not in KINDS:
        raise UsageError(f"--kind {kind!r} is unknown; known are {', '.join(KINDS)}")
    return short[0] if short else kind


def _refuse_special(special: str) -> None:
    if special != "refuse":
        raise UsageError(f"--special {special!r}: such paths have no bytes; leave them out with --exclude")
