"""Options and arguments that several commands share, and the form of a command's help."""

from typing import Annotated, Final

import typer

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
