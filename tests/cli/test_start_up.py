"""What a command loads before it works: modules are counted, not milliseconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from prov_run import Prov

from provstore.cli.commands import ROOMS, declarations, declared

HEAVY = {"pydantic", "rich", "click", "msgspec", "lmdb", "zstandard", "blake3", "elftools", "huggingface_hub"}

COMMANDS = sorted(name for names in ROOMS.values() for name in names)

LOADED = """
import json, sys
from provstore.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded(*arguments: str | Path, code: int = 0) -> set[str]:
    """Run a command in a process of its own and return the modules that are loaded at its end."""
    argv = [sys.executable, "-c", LOADED, *(os.fspath(argument) for argument in arguments)]
    run = subprocess.run(argv, capture_output=True, text=True, check=True)
    ended, modules = json.loads(run.stderr.splitlines()[-1])
    assert ended == code, run.stderr
    return set(modules)


def test_a_module_declares_the_commands_that_are_looked_for_in_it() -> None:
    for module, names in ROOMS.items():
        made = [
            info.name or getattr(info.callback, "__name__", "")
            for info in declared(module).registered_commands
        ]
        assert made == list(names)
    assert len(list(declarations())) == len(COMMANDS) == len(set(COMMANDS))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_loads_its_declaration_and_no_library(command: str) -> None:
    modules = loaded(command, "--help")
    assert modules & HEAVY == set()
    others = {f"provstore.cli.{room}" for room, names in ROOMS.items() if command not in names}
    assert modules & others == set()
    assert not any(
        name.startswith(("provstore.verbs", "provstore.store", "provstore.files")) for name in modules
    )


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_answers_without_a_command_loads_no_library(option: str) -> None:
    modules = loaded(option)
    assert modules & HEAVY == set()
    if option == "--version":
        assert modules & {f"provstore.cli.{room}" for room in ROOMS} == set()


def test_words_need_no_conversion_and_numbers_are_converted(prov: Prov, tree: Path) -> None:
    assert prov("seal", tree).code == 0
    assert "pydantic" not in loaded("ls", "t")
    assert "pydantic" not in loaded("fsck")
    assert "pydantic" in loaded("fsck", "--sample", "1")
    for wrong in ("x", "0", "1.5", ""):
        assert prov("fsck", "--sample", wrong).code == 2
    assert prov("gc", "--grace", "-1").code == 2
    assert prov("fsck", "--sample", "1").code == 0


INSPECTORS = {
    f"provstore.files.inspect_{kind}" for kind in ("bundle", "elf", "git", "python", "safetensors", "text")
}
JUDGING = ("provstore.gates", "provstore.evidence")
RARE = {
    "elftools",
    "email",
    "prometheus_client",
    "regex",
    "http",
    "ssl",
    "pydantic",
    "rich",
    "secrets",
    "random",
}


def test_an_unchanged_directory_is_sealed_without_inspectors(prov: Prov, tree: Path) -> None:
    assert prov("seal", tree).code == 0
    modules = loaded("seal", tree)
    assert modules & (INSPECTORS | RARE) == set()
    assert modules & {"tomllib", "ctypes"} == set()
    assert not any(name.startswith(JUDGING) for name in modules)


def test_an_entry_loads_the_inspector_of_its_kind_alone(prov: Prov, place: Path) -> None:
    place.joinpath("lib").mkdir()
    place.joinpath("lib/libx.so").write_bytes(Path(sys.executable).resolve().read_bytes())
    modules = loaded("seal", "--kind", "native", place / "lib")
    assert modules & INSPECTORS == {"provstore.files.inspect_elf"}
    assert "elftools" in modules


@pytest.mark.parametrize(
    "arguments",
    ["verify t", "diff t t", "ls t", "cat t a.txt", "show t", "log", "stats", "prove t a.txt -o p"],
)
def test_what_reads_a_packet_loads_neither_inspectors_nor_gates(
    prov: Prov, place: Path, arguments: str
) -> None:
    place.joinpath("t").mkdir()
    place.joinpath("t/a.txt").write_text("a")
    assert prov("seal", "t").code == 0
    modules = loaded(*arguments.split())
    assert modules & (INSPECTORS | RARE | {"tomllib"}) == set()
    late = (
        "provstore.gates",
        "provstore.verbs.sealing",
        "provstore.verbs.gathering",
        "provstore.verbs.attributing",
    )
    assert not any(name.startswith(late) for name in modules)


def test_a_policy_loads_the_gates_and_not_the_readers_of_other_formats(
    prov: Prov, tree: Path, place: Path
) -> None:
    assert prov("seal", tree).code == 0
    place.joinpath("p.toml").write_text(
        'format = "provstore/policy/v1"\nname = "p"\nversion = "1"\ndate = "2026-07-26"\n'
        '[[gate]]\nname = "readings"\nkind = "readings"\n'
    )
    modules = loaded("verify", "t", "--policy", "p.toml", code=3)  # it requires nothing, so nothing passes
    assert "provstore.gates.policy" in modules
    assert modules & (INSPECTORS | {"prometheus_client", "regex", "elftools"}) == set()
