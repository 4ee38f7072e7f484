"""Recipes with their variables filled in, and the manifests that they name read."""

import errno
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from provstore.errors import InputOutputError, ProvError, RecipeError
from provstore.files.checksums import parse_checksums
from provstore.files.hashing import read_file
from provstore.gates.policy import MAX_POLICY_BYTES, load_policy
from provstore.ids import digests
from provstore.paths import show
from provstore.runs.places import Path
from provstore.runs.reading import LoadedRecipe, value_problem
from provstore.runs.recipe import Recipe
from provstore.runs.suite import MAX_SUITE_BYTES, Suite, load_suite
from provstore.runs.words import VARIABLE, filled_program_problem

MANIFEST_LIMIT_BYTES: Final = 64 << 20


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A checksum file that a recipe names; either its lines, or why they are not known.

    Attributes:
        path: where it was looked for.
        files: hex SHA-256 by path.
        sha256: digest of the file itself.
        problem: why it could not be used.
    """

    path: str
    files: dict[str, str] = {}
    sha256: str | None = None
    problem: str = ""


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe as it is run.

    Attributes:
        recipe: no text of it has a variable any more.
        variables: name and value of each, as text; ``run`` and ``recipe`` among them.
        manifests: by path.
        policy: the policy's file, without lines; None when the recipe names none.
        suite: the suite, where its file is here and can be asked.
        suite_problem: why it is not.
    """

    recipe: Recipe
    variables: dict[str, str]
    manifests: dict[str, Manifest]
    policy: Manifest | None = None
    suite: Suite | None = None
    suite_problem: str = ""


def fill(loaded: LoadedRecipe, values: Mapping[str, str], *, run: str, home: str) -> Filled:
    """Fill in the variables of a recipe.

    Args:
        loaded: the recipe.
        values: values that were given.
        run: the fresh private directory of the run.
        home: the recipe's own directory.

    Raises:
        RecipeError: a value for no variable, one of another type, a variable without any, or a program that
            is a shell once its name is known.
    """
    recipe, where = loaded.recipe, loaded.where
    for name in values:
        if name not in recipe.variable:
            known = ", ".join(recipe.variable) or "none"
            raise RecipeError(where, f"no variable is called {name!r}; there are {known}")
    used = {"run": run, "recipe": home}
    for name, variable in recipe.variable.items():
        value = values.get(name, variable.default)
        place = loaded.places.at(("variable", name))
        if value is None:
            raise RecipeError(place, f"variable {name} has no value; give --set {name}=...")
        problem = value_problem(variable, value)
        if problem:
            raise RecipeError(place, f"variable {name}: {problem}")
        used[name] = str(value)
    filled = msgspec.convert(_put(msgspec.to_builtins(recipe), used, ()), Recipe)
    _check(filled, loaded)
    suite, problem = _suite(filled)
    return Filled(
        recipe=filled,
        variables=used,
        manifests=_manifests(filled),
        policy=_policy(filled.policy),
        suite=suite,
        suite_problem=problem,
    )


def _put(value: Any, used: Mapping[str, str], path: Path) -> Any:
    """Replace variables in every text but those that declare them."""
    if path == ("variable",):
        return value
    if isinstance(value, str):
        return VARIABLE.sub(lambda match: used[match[1]], value)
    if isinstance(value, dict):
        return {key: _put(item, used, (*path, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_put(item, used, (*path, at)) for at, item in enumerate(value)]
    return value


def _check(recipe: Recipe, loaded: LoadedRecipe) -> None:
    commands: list[tuple[Path, tuple[str, ...]]] = [(("command", "argv"), recipe.command.argv)]
    commands += [(("capture", at, "argv"), one.argv) for at, one in enumerate(recipe.capture)]
    for path, argv in commands:
        problem = filled_program_problem(argv[0])
        if problem:
            raise RecipeError(loaded.places.at(path), problem)
    if recipe.service is not None:
        port = str(recipe.service.port)
        if not (port.isdecimal() and 0 < int(port) < 65536):
            raise RecipeError(loaded.places.at(("service", "port")), f"{port!r} is no port")
    for path, text in _absolute(recipe):
        if text and (not text.startswith("/") or ".." in text.split("/")):
            raise RecipeError(loaded.places.at(path), f"{text!r} is no absolute path without ..")


def _absolute(recipe: Recipe) -> Iterator[tuple[Path, str]]:
    """Yield every path of a host that a recipe names."""
    yield ("policy",), recipe.policy
    yield ("command", "directory"), recipe.command.directory
    if recipe.suite is not None:
        yield ("suite", "path"), recipe.suite.path
    yield from ((("pin", at, "path"), one.path) for at, one in enumerate(recipe.pin))
    yield from ((("source", at, "path"), one.path) for at, one in enumerate(recipe.source))
    for at, model in enumerate(recipe.model):
        yield ("model", at, "path"), model.path
        yield ("model", at, "manifest"), model.manifest
    for at, packages in enumerate(recipe.packages):
        yield ("packages", at, "environment"), packages.environment
    yield from ((("host", "mount", at, "path"), one.path) for at, one in enumerate(recipe.host.mount))
    if recipe.service is not None:
        yield from ((("service", "absent"), path) for path in recipe.service.absent)


def _manifests(recipe: Recipe) -> dict[str, Manifest]:
    return {path: _manifest(path) for path in sorted({model.manifest for model in recipe.model})}


def _suite(recipe: Recipe) -> tuple[Suite | None, str]:
    if recipe.suite is None:
        return None, ""
    try:
        data = read_file(recipe.suite.path, MAX_SUITE_BYTES)
        return load_suite(data, show(recipe.suite.path)), ""
    except InputOutputError as error:
        return None, "not there" if error.errno == errno.ENOENT else error.message
    except ProvError as error:
        return None, error.message


def _policy(path: str) -> Manifest | None:
    if not path:
        return None
    if not os.path.lexists(path):
        return Manifest(path=path, problem="not there")
    try:
        data = read_file(path, MAX_POLICY_BYTES)
        load_policy(data, show(path))
    except ProvError as error:
        return Manifest(path=path, problem=error.message)
    return Manifest(path=path, sha256=digests(data).sha256.hex())


def _manifest(path: str) -> Manifest:
    if not os.path.lexists(path):
        return Manifest(path=path, problem="not there")
    try:
        data = read_file(path, MANIFEST_LIMIT_BYTES)
        lines = parse_checksums(data, show(path), "sha256")
    except ProvError as error:
        return Manifest(path=path, problem=error.message)
    files = {show(line.name): line.digest.raw.hex() for line in lines if line.digest.algorithm == "sha256"}
    return Manifest(path=path, files=files, sha256=digests(data).sha256.hex())
