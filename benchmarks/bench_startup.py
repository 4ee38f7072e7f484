"""How long until the first line of work: import and command. (P11)."""

from typing import Final

from measure import Case, Command, alternate, timed
from rows import Goal, Row, against, row
from setting import Setting

REPEATS: Final = 5
"""Start-up is short and noisy, so it has so many rounds for each one of the others."""

BARE: Final = "python -c pass"
LIBRARIES: Final = "import msgspec, lmdb, blake3, zstandard"
TYPER: Final = "import typer"
IMPORT: Final = "import provstore"
LOADED: Final = "import provstore, seal and verify loaded"

P11_IMPORT: Final = Goal(f"{IMPORT} / {LIBRARIES}", 1.2)
P11_AIM: Final = Goal(f"{IMPORT} / bare interpreter", 1.5)
P11_LOADED: Final = Goal(f"{LOADED} / {LIBRARIES}", 1.2, bound="our own modules, about a hundred")
P11_VERSION: Final = Goal(f"prov --version / {TYPER}", 1.3, bound="imports")
P11_HELP: Final = Goal(f"prov --help / {TYPER}", 1.3, bound="imports, and a declaration of every command")
P11_SEAL_HELP: Final = Goal(f"prov seal --help / {TYPER}", 1.3, bound="imports")


def start_up(setting: Setting) -> Row:
    """Measure P11: fresh processes that do nothing else."""

    def bare(*arguments: str) -> Command:
        # `prov` adds --quiet, which --version and --help do not need.
        command = setting.prov(*arguments)
        return command._replace(argv=command.argv[:-1])

    commands = {
        BARE: setting.python("pass"),
        LIBRARIES: setting.python(LIBRARIES),
        TYPER: setting.python(TYPER),
        IMPORT: setting.python(IMPORT),
        LOADED: setting.python("import provstore; provstore.seal, provstore.verify, provstore.open_store"),
        "prov --version": bare("--version"),
        "prov --help": bare("--help"),
        "prov seal --help": bare("seal", "--help"),
    }
    for tool, option in (("git", "--version"), ("restic", "version"), ("borg", "--version")):
        if setting.has(tool):
            commands[f"{tool} {option}"] = setting.command(tool, option)
    cases = [_case(name, command) for name, command in commands.items()]
    # Once for nothing: byte code of ours is compiled, files come into the cache.
    alternate(cases, 1, setting.say)
    timings = alternate(cases, setting.rounds * REPEATS, setting.say)
    findings = [
        against(P11_IMPORT, timings, IMPORT, LIBRARIES),
        against(P11_AIM, timings, IMPORT, BARE),
        against(P11_LOADED, timings, LOADED, LIBRARIES),
        against(P11_VERSION, timings, "prov --version", TYPER),
        against(P11_HELP, timings, "prov --help", TYPER),
        against(P11_SEAL_HELP, timings, "prov seal --help", TYPER),
    ]
    notes = (
        "`import provstore` loads a name on its first use, so the third line is the one that shows the cost",
    )
    return row("P11", "start-up", timings, findings, notes=notes)


def _case(name: str, command: Command) -> Case:
    return Case(name, lambda _: timed(command))
