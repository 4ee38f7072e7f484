"""``prov restore``, ``prov pack``, ``prov unpack`` and ``prov export``."""

from contextlib import ExitStack
from typing import Annotated, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.console import Console, write_bytes, write_document
from provstore.cli.options import Json, Only, Output, Packet, Quiet, Store, notes
from provstore.errors import UsageError

commands = room()


@commands.command(
    epilog=notes(
        "prov restore run-7 out/",
        exit_0="every member was written",
        exit_1="",
        exit_3="members whose bytes are not here were not written",
    )
)
def restore(
    ctx: typer.Context,
    name: Packet,
    target: Annotated[str, typer.Argument(metavar="DIR", help="A new or empty directory.")],
    only: Only = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Write the members of a packet below a new directory.

    Every byte is checked before its file gets its name, and no symlink is ever followed.
    """
    from provstore.cli.meter import ProgressMeter
    from provstore.cli.opening import packet_of
    from provstore.report.summaries import restore_lines
    from provstore.verbs.restoring import restore

    out = console(ctx, store, as_json, quiet)
    with packet_of(out, name) as (reader, packet, _), ProgressMeter("restore", quiet=out.quiet) as meter:
        report = restore(reader, packet, target, only=only, progress=meter.reporter)
    out.answer(report, restore_lines(report))


@commands.command(
    epilog=notes(
        "prov pack run-7 -o run-7.pack",
        "prov pack run-6 run-7 -o both.pack --without 'weights/*'",
        exit_1="",
        exit_3="",
    )
)
def pack(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="X", help="Packets, as for verify.")],
    output: Output,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="GLOB", help="Only bytes of these roles; repeatable."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="GLOB", help="No bytes of these roles; repeatable."),
    ] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Write packets and their bytes into one portable file.

    Equal content gives equal bytes. What is left out stays listed with its digests.
    """
    from provstore.cli.opening import packet_of, ref_of
    from provstore.report.summaries import pack_lines
    from provstore.verbs.packing import pack

    out = console(ctx, store, as_json, quiet)
    with ExitStack() as opened:
        places = [opened.enter_context(packet_of(out, name)) for name in names]
        found = [(ref_of(name, place), place) for name, place in zip(names, places, strict=True)]
        report = pack(found, output, only=tuple(only or ()), without=tuple(without or ()))
    out.answer(report, pack_lines(report))


@commands.command(
    epilog=notes("prov unpack run-7.pack", "prov unpack theirs.pack --no-refs", exit_1="", exit_3="")
)
def unpack(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A pack file.")],
    no_refs: Annotated[
        bool, typer.Option("--no-refs", help="Leave the pack's names; its packets go by their ids.")
    ] = False,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Bring the packets of a pack file into the store.

    Everything is checked on the way in; packets keep the names they had, where nothing else has them.
    """
    from provstore.cli.opening import writing_store
    from provstore.report.summaries import unpack_lines
    from provstore.verbs.unpacking import unpack

    out = console(ctx, store, as_json, quiet)
    with writing_store(out) as target:
        report = unpack(target, file, refs=not no_refs)
    out.answer(report, unpack_lines(report))


@commands.command(
    epilog=notes(
        "prov export run-7 --format sha256sum > SHA256SUMS",
        "prov export run-7 --format git-tree",
        "prov export family example-family -o example-family.json",
        exit_0="everything the format can hold was written; stderr names the rest",
        exit_1="",
        exit_3="members without a digest of the format's kind are not in it",
    )
)
def export(
    ctx: typer.Context,
    name: Packet,
    document: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Its ref or id, if X is family, package or recipe."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="sha256sum|b3sum|git-tree|family|package|recipe",
            help="Form of the lines, or of the document.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="New file to write instead of stdout."),
    ] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Write a packet's members in a form other tools read, or a document as it should be by now.

    A document that was imported comes back byte for byte, but for what notes in the store correct, what
    follows from that, and the status of a recipe; stderr names every value that differs.
    """
    from provstore.cli.opening import packet_of
    from provstore.report.exits import exit_code
    from provstore.verbs.exporting import FORMATS, export, write_export
    from provstore.verbs.generating import FORMATS as DOCUMENTS

    out = console(ctx, store, as_json, quiet)
    if document is not None:
        name, form = document, _one_form(name, form)
    if form is None:
        raise UsageError("--format is needed: it says in which form to write")
    if form in DOCUMENTS:
        _export_document(out, name, form, output)
    if form not in FORMATS:
        raise UsageError(f"format {form!r} is unknown; known are {', '.join((*FORMATS, *DOCUMENTS))}")
    with packet_of(out, name) as (reader, packet, _):
        data, report = export(reader, packet, form)
    if output is not None:
        write_export(data, output)
    elif not out.json:
        write_bytes(data)
    if out.json:
        write_document(report)
    for line in report.left_out:
        Console().note(line)
    raise typer.Exit(exit_code(report))


def _export_document(out: Console, name: str, form: str, output: str | None) -> NoReturn:
    """Write a document back and end."""
    from provstore.cli.opening import reading_store
    from provstore.report.imports import generate_lines
    from provstore.verbs.exporting import write_export
    from provstore.verbs.generating import generate

    with reading_store(out) as reader:
        data, report = generate(reader, name, form)
    if output is not None:
        write_export(data, output)
    elif not out.json:
        write_bytes(data)
    if out.json:
        write_document(report)
    for line in generate_lines(report):
        out.note(line)
    raise typer.Exit


def _one_form(first: str, form: str | None) -> str:
    """Return the form of ``prov export FORM NAME``."""
    if form is not None and form != first:
        raise UsageError(f"{first!r} stands where a form is expected, and --format {form} says another")
    return first
