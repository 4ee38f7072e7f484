"""``prov query``."""

from contextlib import ExitStack
from typing import Annotated, Any, Final, NoReturn

import typer

from provstore.cli.app import console
from provstore.cli.commands import room
from provstore.cli.console import Console
from provstore.cli.options import Json, Quiet, Store, notes
from provstore.errors import UsageError
from provstore.paths import show

commands = room()

QUESTIONS: Final = {
    "uses": ("ID",),
    "pins": ("FILE",),
    "why": ("A", "B"),
    "shared": ("A", "B"),
    "closure": ("PACKET",),
    "unpinned": ("PACKET",),
    "stale": (),
    "convention": ("C",),
    "timeline": ("NAME",),
    "select": (),
    "coverage": ("FAMILY",),
    "claims": (),
}
"""Name of each question and what it is asked of."""

PAGE: Final = 200
"""Rows of a page, unless asked otherwise."""

_PAGED: Final = ("uses", "pins", "shared", "stale", "convention", "timeline", "select")


@commands.command(
    epilog=notes(
        "prov query uses sha256:126da37b23e5eff6840dd256c90164e3a282469e5fafa27830530e63ff36bce2",
        "prov query closure run-7 --missing",
        "prov query why run-7/weights/draft run-7/record",
        "prov query select --where 'cards>=2' --where kv=bfloat16",
        exit_0="answered",
        exit_1="why: nothing connects them; unpinned: something loaded is not pinned",
        exit_3="unpinned: nobody saw what was loaded",
    )
)
def query(
    ctx: typer.Context,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help=f"One of {', '.join(QUESTIONS)}; see docs/queries.md.")
    ],
    about: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="X", help="Ref, digest, prefix, file, PACKET/ROLE or KIND:KEY; two for why and shared."
        ),
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="closure: only roles that lack bytes.")] = False,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="uses, stale: only nodes of this kind.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="NAME=VALUE", help="select: also !=, <, <=, >, >=; repeatable, all must hold."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Rows of a page.")] = PAGE,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ROW", help="Go on behind this row of the page before.")
    ] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> NoReturn:
    """Ask what has to do with what: who uses it, what is missing, why, what is shared, what is stale.

    The index of the graph is brought up to date first. `--store` may be a pack file.
    """
    from provstore.report.answers import answer_lines

    out = console(ctx, store, as_json, quiet)
    given = about or []
    _check(question, given, {"--missing": missing, "--kind": kind, "--where": where, "--after": after})
    own: dict[str, Any] = {"limit": limit, "after": after} if question in _PAGED else {}
    if question in ("uses", "stale"):
        own["kind"] = kind
    with ExitStack() as opened:
        report = _answer(out, opened, question, given, where or [], missing, own)
    out.answer(report, answer_lines(report))


_OF: Final = {
    "--missing": ("closure",),
    "--kind": ("uses", "stale"),
    "--where": ("select",),
    "--after": _PAGED,
}


def _check(question: str, given: list[str], options: dict[str, Any]) -> None:
    if question not in QUESTIONS:
        raise UsageError(f"{show(question)!r} is no question; there are {', '.join(QUESTIONS)}")
    wanted = QUESTIONS[question]
    one_of_all = question == "claims" and len(given) == 1
    if len(given) != len(wanted) and not one_of_all:
        asked = " ".join(wanted) or "nothing more"
        raise UsageError(f"`prov query {question}` takes {asked}; {len(given)} given")
    for name, value in options.items():
        if value and question not in _OF[name]:
            raise UsageError(f"{name} goes with {', '.join(_OF[name])}, not with {question}")


def _answer(
    out: Console,
    opened: ExitStack,
    question: str,
    given: list[str],
    where: list[str],
    missing: bool,
    own: dict[str, Any],
) -> object:
    from provstore.cli.opening import packet_of, reading_any
    from provstore.store.resolving import resolve_packet
    from provstore.verbs import closures, covering, querying, surveying, unpinned

    if question in ("closure", "unpinned"):
        reader, packet, _ = opened.enter_context(packet_of(out, given[0]))
        if question == "unpinned":
            return unpinned.unpinned(reader, packet)
        return closures.closure(reader, packet, missing=missing)
    reader = opened.enter_context(reading_any(out))
    asked = opened.enter_context(querying.asking(reader))
    if question == "coverage":
        return tuple(covering.coverage(asked.reader, asked.graph, given[0]))
    if question == "claims":
        only = resolve_packet(reader, given[0]) if given else None
        return tuple(covering.claims(asked.reader, asked.graph, only))
    if question == "select":
        return surveying.select(asked, where, **own)
    home = surveying if question in ("convention", "timeline") else querying
    return getattr(home, question)(asked, *given, **own)
