"""``prov schema``."""

import sys
from typing import Annotated, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.console import write_bytes
from provstore.cli.options import Json, Quiet, Store, notes
from provstore.errors import UsageError

commands = room()


@commands.command(
    epilog=notes(
        "prov schema",
        "prov schema packet-spec",
        "prov schema check record.json",
        exit_1="",
        exit_2="not strict JSON, or not what its format says",
        exit_3="",
    )
)
def schema(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A schema, or the word `check`; without it all names."),
    ] = None,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="After `check`: a JSON file, or - for stdin.")
    ] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Print a JSON Schema, or check a JSON document strictly.

    There is one schema for each record, for each command's --json, and for the packet spec.
    """
    from provstore.report import schemas

    out = console(ctx, store, as_json, quiet)
    if name == "check":
        report = schemas.check_document(_document(file), file or "")
        out.answer(report, schemas.check_lines(report))
    if file is not None:
        raise UsageError(f"only `prov schema check` takes a file, not `prov schema {name}`")
    if name is None:
        out.answer(sorted(schemas.DOCUMENTS), sorted(schemas.DOCUMENTS))
    write_bytes(schemas.schema_text(name).encode())
    raise typer.Exit


def _document(file: str | None) -> bytes:
    from provstore.canon import MAX_PARSED_BYTES
    from provstore.files.hashing import read_file

    if file is None:
        raise UsageError("prov schema check needs a FILE, or - for stdin")
    if file == "-" and sys.stdin is None:
        raise UsageError("prov schema check - reads stdin, which is closed")
    if file == "-":
        return sys.stdin.buffer.read(MAX_PARSED_BYTES + 1)
    return read_file(file, MAX_PARSED_BYTES)
