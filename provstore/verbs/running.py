"""Preparing a run: a recipe from its file, the host that it is to run on, and what stands between them."""

import os
from collections.abc import Mapping
from typing import Final

from provstore.errors import RecipeError
from provstore.files.hashing import read_file
from provstore.host.capture import capture_host
from provstore.paths import show
from provstore.reports.prepared import PreflightReport
from provstore.runs.expecting import wanted
from provstore.runs.filling import fill
from provstore.runs.preflight import preflight
from provstore.runs.reading import MAX_RECIPE_BYTES, load_recipe
from provstore.store.protocol import Reader

NO_RUN: Final = "/run/provstore-preflight"
"""Stands for a run's own directory where none is made."""


def prepare(
    path: str, values: Mapping[str, str], *, reader: Reader | None = None, root: str = "/"
) -> PreflightReport:
    """Compare a recipe with a host and start nothing.

    Args:
        path: the recipe's file.
        values: values of its variables.
        reader: a store, to say which absent bytes it holds.
        root: directory that stands for ``/``: this machine, or a recorded host.

    Raises:
        RecipeError: the recipe says something that cannot be run, or a value is none for its variable.
        HostError: the root is no host.
        InputOutputError: the recipe cannot be read.
    """
    data = read_file(path, MAX_RECIPE_BYTES)
    if not data:
        raise RecipeError(show(path), "is empty")
    loaded = load_recipe(data, show(path))
    home = os.path.dirname(os.path.abspath(path))
    filled = fill(loaded, values, run=NO_RUN, home=home)
    captured = capture_host(root, wanted(filled))
    return preflight(filled, captured.report, captured.outputs, reader, data)
