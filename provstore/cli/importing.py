"""``prov import``."""

from typing import Annotated, NoReturn

import typer

from provstore import __version__
from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.options import Json, Quiet, Store, notes

commands = room()


@commands.command(
    name="import",
    epilog=notes(
        "prov import families/example.json --root .",
        "prov import lab/ registry/ --json",
        "prov import families/ --root . --check",
        exit_0="imported; what is odd about a document is told and does not hinder",
        exit_1="with --check: a rule does not hold",
        exit_3="with --check: a rule could not look",
    ),
)
def import_(
    ctx: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Documents, or directories whose documents are all imported."),
    ],
    root: Annotated[
        str | None,
        typer.Option("--root", metavar="DIR", help="Directory that paths in the documents are relative to."),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Name of the collection; else that of the root."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Hold the documents to the rules of their formats; write nothing.")
    ] = False,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Bring documents of the field into the store, losslessly.

    Each becomes a packet named NAME/PATH, its format told by its content. One that changed becomes a new
    version whose parent is the old one. With --check every finding of every rule is listed instead: files
    that documents cite are looked for below the root, then among what was imported; what is found nowhere
    leaves a rule undecided.
    """
    from provstore.cli.opening import existing_store, writing_store
    from provstore.report.imports import import_lines
    from provstore.verbs.document_files import ImportOptions
    from provstore.verbs.importing import import_documents

    out = console(ctx, store, as_json, quiet)
    options = ImportOptions(root=root, repository=repository, tool=f"provstore {__version__}")
    if check:
        from provstore.report.rulings import check_lines
        from provstore.verbs.ruling import check_documents

        with existing_store(out) as reader:
            checked = check_documents(paths, options, reader)
        out.answer(checked, check_lines(checked))
    with writing_store(out) as target:
        report = import_documents(target, paths, options)
    out.answer(report, import_lines(report))
