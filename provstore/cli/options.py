"""Options and arguments that several commands share, or that a command has many of; the form of help."""

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from provstore.errors import UsageError

Store = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="PATH", help="Store to use; else PROVSTORE, the nearest .prov, or yours."
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout; `prov schema` prints its schema.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no progress on stderr.")]
Packet = Annotated[
    str, typer.Argument(metavar="X", help="Ref, id, id prefix of 8 or more digits, or a pack file.")
]
Only = Annotated[
    str | None,
    typer.Option("--only", metavar="GLOB", help="Only members whose ROLE/PATH fits; none is an error."),
]
Policy = Annotated[
    str | None,
    typer.Option("--policy", metavar="P", help="Policy file, or role of a policy in the packet."),
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="File to write; it must not exist.")
]

# prov seal

Sealed = Annotated[
    list[str], typer.Argument(metavar="PATH", help="A packet spec (TOML), or files and directories.")
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="REF", help="Ref to move; else the spec's or the directory's name."),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="GLOB", help="Leave out what fits; repeatable.")
]
Variables = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Value for {NAME} in a spec; repeatable."),
]
Require = Annotated[
    list[str] | None,
    typer.Option("--require", metavar="ROLE", help="Fail unless it is there; repeatable."),
]
Kind = Annotated[str, typer.Option("--kind", help="What it is evidence of.")]
Git = Annotated[bool, typer.Option("--git", help="Same as --kind source-tree.")]
Elf = Annotated[bool, typer.Option("--elf", help="Same as --kind native.")]
Hf = Annotated[bool, typer.Option("--hf", help="Same as --kind model.")]
FollowSymlinks = Annotated[
    bool, typer.Option("--follow-symlinks", help="Seal what links point to; noted in the packet.")
]
AllowUnreadable = Annotated[
    bool, typer.Option("--allow-unreadable", help="Record unreadable files as holes.")
]
AllowGrowing = Annotated[
    bool, typer.Option("--allow-growing", help="Seal the beginning of a file that grows, marked so.")
]
AllowPointers = Annotated[
    bool, typer.Option("--allow-pointers", help="Seal LFS pointers that stand for payloads, marked so.")
]
Special = Annotated[
    str,
    typer.Option("--special", metavar="refuse", help="FIFOs, sockets, devices: they have no bytes to seal."),
]
Ledger = Annotated[
    bool, typer.Option("--ledger", help="Name the newest entry of the store's ledger in the packet.")
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Read every byte, also of files that did not change since.")
]

# prov verify

Verified = Annotated[
    str | None, typer.Argument(metavar="X", help="Ref, id, id prefix, pack file or proof file.")
]
ProofFile = Annotated[
    str | None, typer.Argument(metavar="FILE", help="After the word `proof`: the proof file.")
]
Against = Annotated[
    str | None,
    typer.Option("--against", metavar="DIR", help="Hold this directory to it; for a proof, this file."),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="PATH", help="Where bytes that are kept outside lie now; repeatable."),
]
Checksums = Annotated[
    str | None,
    typer.Option("--checksums", metavar="FILE", help="Check a GNU, BSD or b3sum checksum file."),
]
Algorithm = Annotated[
    str | None,
    typer.Option("--algorithm", metavar="sha256|blake3", help="Of checksum lines that name none."),
]

# prov authorize

JudgedBy = Annotated[
    str, typer.Option("--policy", metavar="FILE", help="Policy that the run is to be judged by.")
]
Candidate = Annotated[
    list[str],
    typer.Option("--candidate", metavar="NAME=VALUE", help="What identifies it; @FILE for a digest."),
]
Documents = Annotated[
    list[str] | None,
    typer.Option("--document", metavar="ROLE=FILE", help="What it rests on, such as a plan; kept."),
]
Suites = Annotated[
    int, typer.Option("--suites", metavar="N", min=1, help="Scored suites that are permitted.")
]
Line = Annotated[
    str | None, typer.Option("--line", metavar="NAME", help="What is tried for; else the policy's name.")
]
GivenBy = Annotated[
    str | None, typer.Option("--by", metavar="WHO", help="Who gives it; else the user who runs this.")
]
Cites = Annotated[
    str | None,
    typer.Option("--cites", metavar="ATTEMPT", help="Earlier attempt whose score was seen, or #N."),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why there is to be another attempt.")
]

# prov fsck

Fraction = Annotated[
    str | None, typer.Option("--fraction", metavar="5%", help="Re-read a random part of everything.")
]
Sample = Annotated[
    int | None, typer.Option("--sample", metavar="N", min=1, help="Re-read N things chosen at random.")
]
Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="20m", help="Re-read for a time, what was checked longest ago first."),
]
Repair = Annotated[bool, typer.Option("--repair", help="Put good bytes in the place of damaged ones.")]
Sources = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="PATH", help="Store, pack, directory or file to repair from; repeatable."),
]
Rebuild = Annotated[bool, typer.Option("--rebuild-index", help="Make a lost index anew from the blob files.")]

MEANINGS: Final = {
    0: "everything required holds",
    1: "looked, and the answer is no",
    2: "wrong usage or malformed input",
    3: "could not decide: something required is absent",
    10: "and up: see `docs/errors.md`, one code for each kind of error",
}
"""What the exit codes mean in general."""


def notes(*examples: str, **codes: str) -> str:
    """Return the end of a command's help: examples, then its exit codes.

    Args:
        examples: command lines.
        codes: ``exit_1="packets differ"`` and the like, where the general meaning can be said better; an
            empty text for a code that the command never has.
    """
    own = {int(name.removeprefix("exit_")): text for name, text in codes.items()}
    meanings = {code: own.get(code, text) for code, text in MEANINGS.items() if own.get(code, text)}
    shown = ["\b", "Examples:" if len(examples) > 1 else "Example:", *(f"  {line}" for line in examples)]
    lines = ["\b", "Exit codes:", *(f"  {code:<3} {text}" for code, text in meanings.items())]
    return "\n".join([*shown, "", *lines])


def parse_variables(given: Sequence[str]) -> dict[str, str]:
    """Return the values that ``--set NAME=VALUE`` options give.

    Raises:
        UsageError: one has another form, or a name is given twice.
    """
    values = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not name or not equals:
            raise UsageError(f"--set {item!r} is not of the form NAME=VALUE")
        if name in values:
            raise UsageError(f"--set {name} is given twice")
        values[name] = value
    return values
