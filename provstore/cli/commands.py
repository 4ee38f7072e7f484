"""The commands of ``prov``: each is imported when it is asked for, and words are taken as they are.

typer converts every value of a command line through pydantic, which takes longer to import than a small
packet takes to seal. A word that becomes a ``str`` needs no conversion, nor does an option that is not given.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, Final, get_type_hints

from typer import Typer
from typer.core import TyperGroup
from typer.main import get_group
from typer.models import CommandInfo

ROOMS: Final = {
    "diffing": ("diff",),
    "host": ("host", "capture"),
    "importing": ("import",),
    "judging": ("explain", "metrics"),
    "ledger": ("authorize", "ledger"),
    "listing": ("ls", "cat", "show", "log"),
    "moving": ("restore", "pack", "unpack", "export"),
    "querying": ("query",),
    "running": ("run",),
    "schemas": ("schema",),
    "scoping": ("scope",),
    "sealing": ("init", "seal"),
    "upkeep": ("fsck", "gc", "stats", "stat", "doctor"),
    "verifying": ("verify", "prove"),
}
"""Modules beside this one, each with its own ``commands``, and their names in the order of the help."""

_HOMES: Final = {name: module for module, names in ROOMS.items() for name in names}

_WORDS: Final = (str, str | None, list[str], list[str] | None)
"""Types whose values are on the command line already."""


class Commands(TyperGroup):
    """The commands of ``prov``, of which only those are there that were asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before the name of the command."""
        _take_words(self, ctx)  # not when it is made: typer adds options of its own after that
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is to run."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _take_words(command, ctx)
        return name, command, rest

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None; for a name that is none all are loaded, to find one that is like it."""
        for module in [_HOMES[cmd_name]] if cmd_name in _HOMES else ROOMS:
            if ROOMS[module][0] not in self.commands:
                self.commands.update(get_group(declared(module)).commands)
        return self.commands.get(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(_HOMES)


def room() -> Typer:
    """Return what the commands of a module are declared with."""
    return Typer(rich_markup_mode=None)


def declared(module: str) -> Typer:
    """Import a module of commands and return what they are declared with."""
    found: Typer = import_module(f"provstore.cli.{module}").commands
    return found


def declarations() -> Iterator[CommandInfo]:
    """Yield the declaration of every command, as help lists them."""
    for module in ROOMS:
        yield from declared(module).registered_commands


def _take_words(command: Any, ctx: Any) -> None:
    """Let the parameters of a command, that for its help as well, convert only what needs it."""
    hints = get_type_hints(command.callback)
    for param in command.get_params(ctx):
        if "process_value" not in vars(param):
            words = hints.get(param.name) in _WORDS
            param.process_value = partial(_value, param, param.process_value, words)


def _value(param: Any, convert: Callable[..., Any], words: bool, ctx: Any, value: Any) -> Any:
    """Return the value of a parameter; typer converts and refuses, where there is anything to do."""
    many = param.multiple or param.nargs != 1
    absent = value is None or (many and not value)
    if param.required if absent else not words:
        return convert(ctx, value)
    kept = () if many and value is None else value
    return kept if param.callback is None else param.callback(ctx, param, kept)
