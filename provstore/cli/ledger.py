"""``prov authorize`` and ``prov ledger``."""

import os
import pwd
from typing import Annotated, Any, NoReturn, get_args

import typer

from provstore import __version__
from provstore.cli import options
from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.console import Console, write_bytes
from provstore.cli.options import Json, Quiet, Store, notes
from provstore.errors import UsageError

commands = room()


@commands.command(
    epilog=notes(
        "prov authorize --policy policy.toml --candidate engine=COMMIT --candidate recipe=@run.toml",
        "prov authorize --policy policy.toml --candidate engine=COMMIT --cites '#2' --reason 'no marker'",
        exit_0="it is in the ledger, durably",
        exit_1="",
        exit_3="",
    )
)
def authorize(
    ctx: typer.Context,
    policy: options.JudgedBy,
    candidate: options.Candidate,
    document: options.Documents = None,
    suites: options.Suites = 1,
    line: options.Line = None,
    given_by: options.GivenBy = None,
    cites: options.Cites = None,
    reason: options.Reason = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Permit scored suites of one candidate, before the run.

    Stdout has the id of the authorization and nothing else. It cannot be taken back or changed.
    """
    from provstore.cli.opening import writing_store
    from provstore.files.hashing import read_file
    from provstore.gates.policy import MAX_POLICY_BYTES
    from provstore.report.attempts import authorize_lines, authorize_summary
    from provstore.verbs.ledgering import authorize

    out = console(ctx, store, as_json, quiet)
    parts, documents = _candidate(candidate)
    for role, path in _pairs(document or (), "--document ROLE=FILE"):
        if role in documents:
            raise UsageError(f"--document {role}: it is there twice")
        documents[role] = read_file(path, MAX_POLICY_BYTES * 16)
    about = {
        "candidate": parts,
        "suites": suites,
        "given_by": given_by or _user(),
        "line": line,
        "cites": cites,
        "reason": reason,
    }
    data = read_file(policy, MAX_POLICY_BYTES)
    with writing_store(out) as near:
        report = authorize(near, data, policy, about, documents, tool=f"prov {__version__}")
    out.note(authorize_summary(report))
    out.answer(report, authorize_lines(report))


def _pairs(texts: list[str] | tuple[()], form: str) -> list[tuple[str, str]]:
    found = [text.partition("=") for text in texts]
    if any(not name or not value for name, _, value in found):
        raise UsageError(f"write {form}")
    return [(name, value) for name, _, value in found]


def _candidate(texts: list[str]) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the parts of a candidate, and the files among them."""
    from provstore.files.hashing import read_file
    from provstore.gates.policy import MAX_POLICY_BYTES
    from provstore.ids import digests

    parts: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for name, value in _pairs(texts, "--candidate NAME=VALUE"):
        if name in parts:
            raise UsageError(f"--candidate {name}: it is there twice")
        if value.startswith("@"):
            files[name] = read_file(value[1:], MAX_POLICY_BYTES * 16)
            value = f"blake3:{digests(files[name]).blake3.hex()}"
        parts[name] = value
    return parts, files


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


@commands.command(
    epilog=notes(
        "prov ledger",
        "prov ledger list --line decode",
        "prov ledger verify run-7 run-8",
        "prov ledger verify ledger.jsonl",
        "prov ledger export -o ledger.jsonl",
        "prov ledger close '#3' --as infrastructure-invalid --reason 'power cut'",
        exit_0="it is unbroken and has every entry that packets name",
        exit_1="an entry is missing, forged, or breaks a rule",
        exit_3="it is empty, or a named packet names no entry",
    )
)
def ledger(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="list, verify, export or close.")] = "list",
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="X", help="For verify: packets or an exported file. For close: an attempt."),
    ] = None,
    line: Annotated[
        str | None, typer.Option("--line", metavar="NAME", help="For list: only what is of this line.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="For export: file to write; it must not exist."),
    ] = None,
    ending: Annotated[
        str | None, typer.Option("--as", metavar="ENDING", help="For close: how the attempt ended.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="For close: why it ended so.")
    ] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Show, check and export what was permitted and what was tried.

    Every attempt stays, also one that failed, was killed or was rejected; what says nothing of its end was
    left open. `close` ends such a one, never as valid.
    """
    out = console(ctx, store, as_json, quiet)
    typed = {"--line": line, "--output": output, "--as": ending, "--reason": reason}
    allowed = {"list": ("--line",), "verify": (), "export": ("--output",), "close": ("--as", "--reason")}
    if action not in allowed:
        raise UsageError(f"prov ledger can {', '.join(allowed)}, not {action!r}")
    for name, value in typed.items():
        if value is not None and name not in allowed[action]:
            raise UsageError(f"{name} does not go with prov ledger {action}")
    if names and action in ("list", "export"):
        raise UsageError(f"prov ledger {action} takes no name")
    if action == "verify":
        _verify(out, names or [])
    if action == "export":
        _export(out, output)
    if action == "close":
        _close(out, names or [], ending, reason)
    _list(out, line)


def _list(out: Console, line: str | None) -> NoReturn:
    from provstore.cli.opening import reading_store
    from provstore.report.attempts import ledger_lines
    from provstore.verbs.ledgering import list_ledger

    with reading_store(out) as near:
        report = list_ledger(near, line)
    out.answer(report, ledger_lines(report))


def _verify(out: Console, names: list[str]) -> NoReturn:
    from provstore.cli.opening import reading_store
    from provstore.evidence.lines import MAX_TEXT_BYTES
    from provstore.files.hashing import read_file
    from provstore.report.attempts import check_lines
    from provstore.verbs.ledgering import check_file, check_ledger, headed
    from provstore.verbs.locating import locate

    if len(names) == 1 and _is_exported(names[0]):
        checked = check_file(read_file(names[0], MAX_TEXT_BYTES), names[0])
        out.answer(checked, check_lines(checked))
    with reading_store(out) as near:
        packets = None
        if names:
            packets = []
            for name in names:
                with locate(name, near) as found:
                    packets.append(headed(name, found.reader, found.packet))
        report = check_ledger(near, packets)
    out.answer(report, check_lines(report))


def _is_exported(name: str) -> bool:
    """Say whether a name is a file with entries of a ledger, and not a pack."""
    if not os.path.isfile(name):
        return False
    with open(name, "rb") as file:
        return file.read(1) != b"p"


def _export(out: Console, output: str | None) -> NoReturn:
    from provstore.cli.opening import reading_store
    from provstore.files.publishing import write_new
    from provstore.ids import digests
    from provstore.paths import show
    from provstore.report.attempts import export_lines
    from provstore.reports.attempted import LedgerExportReport
    from provstore.verbs.ledgering import check_file, export_ledger

    with reading_store(out) as near:
        data = export_ledger(near)
    if output is None:
        if out.json:
            raise UsageError("prov ledger export writes entries to stdout; --json needs -o FILE")
        write_bytes(data)
        raise typer.Exit
    write_new(os.fsencode(output), data)
    found = check_file(data, output)
    report = LedgerExportReport(
        path=show(output), head=found.head, entries=found.entries, blake3=digests(data).blake3.hex()
    )
    out.answer(report, export_lines(report))


def _close(out: Console, names: list[str], ending: str | None, reason: str | None) -> NoReturn:
    from provstore.cli.opening import mending_store
    from provstore.records.ledger import Ending
    from provstore.report.attempts import close_lines
    from provstore.verbs.ledgering import close_attempt

    known: tuple[Any, ...] = get_args(Ending)
    if len(names) != 1 or ending is None or reason is None:
        raise UsageError("prov ledger close needs one attempt, --as ENDING and --reason TEXT")
    if ending not in known:
        raise UsageError(f"--as takes {', '.join(known)}, not {ending!r}")
    with mending_store(out) as near:
        report = close_attempt(near, names[0], ending, reason, tool=f"prov {__version__}")  # type: ignore[arg-type]
    out.answer(report, close_lines(report))
