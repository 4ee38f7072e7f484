"""``prov verify`` and ``prov prove``."""

import os
from contextlib import ExitStack
from typing import Annotated, NoReturn

import typer

from provstore.cli.app import app, console
from provstore.cli.options import Json, Only, Output, Packet, Policy, Quiet, Store, notes
from provstore.errors import UsageError


@app.command(
    epilog=notes(
        "prov verify run-7",
        "prov verify run-7.pack --only 'evidence/*'",
        "prov verify run-7 --policy policy.toml",
        "prov verify run-7 --against run/",
        "prov verify --checksums SHA256SUMS --against run/",
        "prov verify proof status.proof",
        exit_0="verdict PASS",
        exit_1="verdict FAIL",
        exit_3="verdict INCOMPLETE: something required could not be looked at",
    )
)
def verify(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="X", help="Ref, id, id prefix, pack file or proof file.")
    ] = None,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="After the word `proof`: the proof file.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="DIR", help="Hold this directory to it; for a proof, this file."),
    ] = None,
    only: Only = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="PATH", help="Where bytes that are kept outside lie now; repeatable."),
    ] = None,
    checksums: Annotated[
        str | None,
        typer.Option("--checksums", metavar="FILE", help="Check a GNU, BSD or b3sum checksum file."),
    ] = None,
    policy: Policy = None,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", metavar="sha256|blake3", help="Of checksum lines that name none."),
    ] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Recompute every claim from the bytes; report all findings.

    Absent is never equal and never a pass. A policy judges facts, metrics and claims: the one that is
    named, else those that the packet carries; its verdict is kept beside the earlier ones. No network and no
    option of the seal is needed.
    """
    from provstore.cli.meter import ProgressMeter
    from provstore.cli.opening import packet_of
    from provstore.cli.policies import judge_by, keep_verdicts
    from provstore.files.hashing import read_file
    from provstore.report.verdicts import verify_lines
    from provstore.reports import Check
    from provstore.verbs import comparing, judging, proving, verifying

    out = console(ctx, store, as_json, quiet)
    proof = None if checksums else _proof_file(name, file)
    judgings: list[judging.Judging] = []
    unusable: tuple[Check, ...] = ()
    with ProgressMeter("verify", quiet=out.quiet) as meter, ExitStack() as opened:
        if checksums is not None:
            _refuse("--checksums", {"X": name, "--only": only, "--at": at, "--policy": policy})
            if algorithm not in (None, "sha256", "blake3"):
                raise UsageError(f"--algorithm {algorithm!r} is unknown; known are sha256, blake3")
            place = against or "."
            report = comparing.verify_checksums(checksums, against=place, algorithm=algorithm)
        elif proof is not None:
            _refuse("a proof", {"--only": only, "--at": at, "--algorithm": algorithm, "--policy": policy})
            data = read_file(proof, proving.MAX_PROOF_BYTES)
            report = proving.verify_proof(data, proof, against=against)
        else:
            _refuse("a packet", {"--algorithm": algorithm, "--at": against and at})
            _refuse("--policy", {"--only": policy and only, "--against": policy and against})
            reader, packet, _ = opened.enter_context(packet_of(out, name or ""))
            if against is not None:
                report = comparing.verify_against(reader, packet, against, only=only, progress=meter.reporter)
            else:
                report = verifying.verify(
                    reader, packet, only=only, at=tuple(at or ()), progress=meter.reporter
                )
            if only is not None or against is not None:
                report = judging.set_aside(reader, packet, report)
            else:
                judgings, unusable = judge_by(reader, packet, policy, at or ())
                report = report if judgings or unusable else judging.unjudged(reader, packet, report)
    ids = keep_verdicts(out, packet, judgings) if judgings else []
    report = judging.judged(report, judgings, ids, unusable) if judgings or unusable else report
    out.answer(report, verify_lines(report))


def _refuse(what: str, given: dict[str, object]) -> None:
    """Refuse options that would have no effect; silence would look like a check."""
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise UsageError(f"{', '.join(wrong)} does not go with {what}")


def _proof_file(name: str | None, file: str | None) -> str | None:
    """Return the proof file that is meant, or None when a packet is.

    Raises:
        UsageError: nothing to verify, or one argument too many.
    """
    if name is None:
        raise UsageError("nothing to verify: name a packet, a pack, a proof or --checksums FILE")
    if file is not None:
        if name != "proof":
            raise UsageError(f"one packet at a time: {name!r} and {file!r} were given")
        return file
    if not os.path.isfile(name):
        return None
    from provstore.files.hashing import read_file

    return name if read_file(name, 0) == b"{" else None


@app.command(epilog=notes("prov prove run-7 evidence/status.txt -o status.proof"))
def prove(
    ctx: typer.Context,
    name: Packet,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="ROLE/PATH of the member, as `prov ls` shows it.")
    ],
    output: Output,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Write a small proof that a member belongs to a packet.

    It checks anywhere with `prov verify FILE`, without a store.
    """
    from provstore.cli.opening import packet_of
    from provstore.report.summaries import prove_lines
    from provstore.verbs.proving import prove

    out = console(ctx, store, as_json, quiet)
    with packet_of(out, name) as (reader, packet, _):
        report = prove(reader, packet, path, output)
    out.answer(report, prove_lines(report))
