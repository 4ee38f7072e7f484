"""Names that are loaded when they are first used: the one way to import late.

A module that offers such names has a stub beside it (``.pyi``), whose imports say the same to type checkers
and to the test of layers.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from provstore.errors import InputOutputError


def names(room: str, places: Mapping[str, tuple[str, str]]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a module that loads its names on first use (PEP 562).

    Args:
        room: name of the module that offers the names.
        places: name -> the module that it comes from and its name there; without that name the module itself.

    The function that is returned raises InputOutputError when the system refuses to read the module.
    """

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        home, at_home = places[name]
        try:
            module = import_module(home)
        except OSError as error:  # too many open files, a disk that fails: as for any other file
            raise InputOutputError(home, error.errno or 0, error.strerror or str(error)) from error
        value: object = getattr(module, at_home) if at_home else module
        setattr(sys.modules[room], name, value)
        return value

    return load


def placed(homes: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, str]]:
    """Return where each name comes from, given the names of each module."""
    return {name: (home, name) for home, names in homes.items() for name in names}
