"""``prov verify`` and ``prov prove``."""

import os
from typing import Annotated, NoReturn

import typer

from provstore.cli import options
from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.console import Console
from provstore.cli.options import Json, Only, Output, Packet, Policy, Quiet, Store, notes
from provstore.errors import UsageError

commands = room()


@commands.command(
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
    name: options.Verified = None,
    file: options.ProofFile = None,
    against: options.Against = None,
    only: Only = None,
    at: options.At = None,
    checksums: options.Checksums = None,
    policy: Policy = None,
    algorithm: options.Algorithm = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Recompute every claim from the bytes; report all findings.

    Absent is never equal and never a pass. A policy judges facts, metrics and claims: the one that is
    named, else those that the packet carries; its verdict is kept beside the earlier ones. No network and no
    option of the seal is needed.
    """
    from provstore.report.verdicts import verify_lines

    out = console(ctx, store, as_json, quiet)
    proof = None if checksums else _proof_file(out, name, file)
    if checksums is not None:
        from provstore.verbs.checksumming import CheckSpool, spool_checksums

        _refuse("--checksums", {"X": name, "--only": only, "--at": at, "--policy": policy})
        if algorithm not in (None, "sha256", "blake3"):
            raise UsageError(f"--algorithm {algorithm!r} is unknown; known are sha256, blake3")
        with CheckSpool() as spool:
            report = spool_checksums(spool, checksums, against=against or ".", algorithm=algorithm)
            out.answer(report, verify_lines(report, spool), checks=spool)
    elif proof is not None:
        from provstore.files.hashing import read_file
        from provstore.verbs.proving import MAX_PROOF_BYTES, verify_proof

        _refuse("a proof", {"--only": only, "--at": at, "--algorithm": algorithm, "--policy": policy})
        report = verify_proof(read_file(proof, MAX_PROOF_BYTES), proof, against=against)
    else:
        from provstore.cli.policies import verify_packet

        _refuse("a packet", {"--algorithm": algorithm, "--at": against and at})
        _refuse("--policy", {"--only": policy and only, "--against": policy and against})
        report = verify_packet(out, name or "", against=against, only=only, at=at or (), policy=policy)
    out.answer(report, verify_lines(report))


def _refuse(what: str, given: dict[str, object]) -> None:
    """Refuse options that would have no effect; silence would look like a check."""
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise UsageError(f"{', '.join(wrong)} does not go with {what}")


def _proof_file(out: Console, name: str | None, file: str | None) -> str | None:
    """Return the proof file that is meant, or None when a packet is; a ref is one, whatever lies there.

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
    from provstore.cli.opening import any_store
    from provstore.files.hashing import read_file

    if read_file(name, 0) != b"{":
        return None
    with any_store(out, name) as store:
        return None if store is not None and store.ref(name) is not None else name


@commands.command(epilog=notes("prov prove run-7 evidence/status.txt -o status.proof"))
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
