"""What a recipe needs of a host, one comparison each; and what must be looked at to make them."""

import itertools
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from provstore.host.capture import Wanted
from provstore.host.commands import CaptureCommand
from provstore.runs import expected
from provstore.runs.expected import Expected
from provstore.runs.filling import Filled
from provstore.runs.recipe import Recipe, Scalar
from provstore.runs.suite import FORMAT as SUITE_FORMAT

_PORT: Final = "stop who listens there, or set another port"
_OTHERS: Final = "stop it: two engines on one host measure each other"


def expectations(filled: Filled) -> tuple[Expected, ...]:
    """Return every comparison of a preflight, in the order that a person would make them."""
    recipe = filled.recipe
    return tuple(
        itertools.chain(
            expected.of_host(recipe),
            expected.of_program(recipe),
            expected.of_variables(filled),
            expected.of_pins(recipe),
            expected.of_sources(recipe),
            expected.of_packages(recipe),
            *(expected.of_model(filled, model) for model in recipe.model),
            _service(recipe),
            _suite(filled),
            _asked(filled),
            _captures(recipe),
            _policy(recipe),
        )
    )


def wanted(filled: Filled, when: str = "preflight") -> Wanted:
    """Return what must be looked at on a host to compare it with a recipe."""
    recipe = filled.recipe
    needed = expectations(filled)
    files = {one.where for one in needed if one.key.startswith("file.")}
    return Wanted(
        files=tuple(sorted(files)),
        directories=tuple(sorted({one.where for one in needed if one.key.startswith("directory.")})),
        sources=tuple(sorted({one.where for one in needed if one.key.startswith("source.")})),
        environments=tuple(sorted({one.environment for one in recipe.packages})),
        mounts=tuple(sorted({one.path for one in recipe.host.mount})),
        listings=tuple(sorted({one.path for one in recipe.model})),
        absent=() if recipe.service is None else recipe.service.absent,
        processes=recipe.service is not None,
        ports=recipe.service is not None,
        commands=tuple(
            CaptureCommand(name=one.name, argv=one.argv, seconds=one.seconds, required=one.required)
            for one in recipe.capture
            if when in one.when
        ),
    )


def _service(recipe: Recipe) -> Iterator[Expected]:
    service = recipe.service
    if service is None:
        return
    yield Expected(
        role="service/port",
        test="free",
        key="net.listening",
        value=str(service.port),
        where=f"{service.host}:{service.port}",
        remedy=_PORT,
    )
    for pattern in service.processes:
        yield Expected(
            role="service/processes",
            test="not-running",
            key="running.processes",
            value=pattern,
            where="/proc",
            remedy=_OTHERS,
        )
    for path in service.absent:
        yield Expected(
            role="service/absent",
            test="false",
            key=f"path.{path}",
            value=False,
            where=path,
            remedy="an earlier run left it; remove it when nothing uses it",
        )


def _suite(filled: Filled) -> Iterator[Expected]:
    suite = filled.recipe.suite
    if suite is None:
        return
    if suite.sha256 is not None:
        yield expected.of_digest("suite", suite.path, suite.sha256)
    else:
        yield Expected(
            role="suite",
            test="known",
            key=f"file.{suite.path}.sha256",
            value="a suite",
            where=suite.path,
            remedy="give the file with the prompts",
        )


def _asked(filled: Filled) -> Iterator[Expected]:
    """Yield what a suite that is here must say: what the recipe says of it."""
    suite = filled.recipe.suite
    if suite is None or filled.suite_problem == "not there":  # which is said of its file
        return
    if filled.suite is None:
        yield Expected(
            role="suite/format",
            test="suite",
            key="format",
            value=SUITE_FORMAT,
            where=suite.path,
            remedy="write the prompts in the form that can be asked",
        )
        return
    stated: dict[str, Scalar] = {
        "endpoint": suite.endpoint,
        "prompts": suite.prompts,
        "max_tokens": suite.max_tokens,
    }
    if suite.seed is not None:
        stated["seed"] = suite.seed
    stated |= {f"parameters.{name}": str(value) for name, value in suite.parameters.items()}
    for name, value in stated.items():
        yield Expected(
            role=f"suite/{name}",
            test="suite",
            key=name,
            value=value,
            where=suite.path,
            remedy="let suite and recipe say the same",
        )


def _captures(recipe: Recipe) -> Iterator[Expected]:
    for one in recipe.capture:
        if one.required and "preflight" in one.when:
            yield Expected(
                role=f"capture/{one.name}",
                test="command",
                key=one.name,
                value="exit 0",
                where=" ".join(one.argv),
                remedy="install the tool, or see why it fails",
                items=one.holds,
            )
        elif one.required:
            yield Expected(
                role=f"capture/{one.name}",
                test="known",
                key=f"file.{one.argv[0]}.sha256",
                value="a program",
                where=one.argv[0],
                remedy="install the tool",
            )


def _policy(recipe: Recipe) -> Iterator[Expected]:
    if recipe.policy:
        yield Expected(
            role="policy",
            test="manifest",
            key=recipe.policy,
            value="a policy",
            where=recipe.policy,
            remedy="give the policy that judges the run",
        )


def ignored(name: str, patterns: tuple[str, ...]) -> bool:
    """Say whether a name below a directory does not count.

    Example:
        >>> ignored(".cache/x/y", (".cache",)), ignored("model.safetensors", (".cache",))
        (True, False)
    """
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*") for pattern in patterns)
