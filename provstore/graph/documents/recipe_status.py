"""The status that the facts of a registry recipe give it, and what is missing for the next one.

A status is derived, never typed: ``validated`` needs every requirement to be seen to hold. What is not
stated, or stands in a document that is not here, does not hold.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from provstore.evidence.jsonreader import Value
from provstore.graph.documents.registry_shape import EXECUTABLE, LEADERBOARDS, SWEEP_LISTS
from provstore.graph.documents.values import HEX_40, is_commit, number, part, parts, text, texts

_PINNED: Final = re.compile(r"@sha256:[0-9a-f]{64}$")
_COMMIT_IN_URL: Final = re.compile(
    r"https://[^/]+/([^/]+)/[^/]+/(?:blob|tree|raw|commit)/([0-9a-f]{40})(?:/|$)"
)
_EAGER: Final = ("--enforce-eager", "--disable-cuda-graph", "enforce_eager=true", "--no-cuda-graph")
_NO_GRAPHS: Final = ("eager", "none", "off", "disabled")
_DOCKER_MEMBERS: Final = ("image", "arguments", "host_port", "container_port", "accelerator_backend")


class Requirement(NamedTuple):
    """One requirement of a validated recipe.

    Attributes:
        name: what is required.
        holds: it was seen to hold.
        because: what shows that, or what is missing.
        here: False if it does not hold because a document that could show it is not here.
    """

    name: str
    holds: bool
    because: str
    here: bool = True


class DerivedStatus(NamedTuple):
    """What the facts of a recipe make it.

    Attributes:
        status: ``validated`` only if every requirement holds.
        stated: what the recipe says.
        requirements: all of them, in a fixed order.
    """

    status: Literal["candidate", "validated"]
    stated: str
    requirements: tuple[Requirement, ...]

    @property
    def supported_by(self) -> tuple[str, ...]:
        """Requirements that hold, with what shows that."""
        return tuple(f"{item.name}: {item.because}" for item in self.requirements if item.holds)

    @property
    def missing(self) -> tuple[str, ...]:
        """Requirements that do not hold, with what is missing."""
        return tuple(f"{item.name}: {item.because}" for item in self.requirements if not item.holds)


class Parts(NamedTuple):
    """The documents that a recipe refers to, as far as they are here.

    Attributes:
        instance: its model instance.
        hardware: its hardware.
        sweeps: its speed sweeps.
    """

    instance: dict[str, Value] | None = None
    hardware: dict[str, Value] | None = None
    sweeps: Sequence[dict[str, Value]] = ()


def derive_status(recipe: dict[str, Value], known: Parts, trusted: Sequence[str] = ()) -> DerivedStatus:
    """Return the status that a recipe has by its facts.

    Args:
        recipe: the recipe.
        known: what it refers to.
        trusted: owners of repositories whose pinned campaigns count as acceptance; the recipe's own source
            always does.
    """
    requirements = tuple(_requirements(recipe, known, trusted))
    holds = all(item.holds for item in requirements)
    return DerivedStatus("validated" if holds else "candidate", text(recipe, "status"), requirements)


def _requirements(recipe: dict[str, Value], known: Parts, trusted: Sequence[str]) -> Iterator[Requirement]:
    source = text(recipe, "recipe_source")
    board = source in LEADERBOARDS
    told = (
        f"{source} is a leaderboard: its runs are observations"
        if board
        else f"the source is {source or 'not said'}"
    )
    yield Requirement("a source that can promise a launch", bool(source) and not board, told)
    yield _launch(part(recipe, "launch"))
    yield _revision(text(recipe, "model_instance_id"), known.instance)
    yield _runtime(part(recipe, "launch"))
    yield _arguments(part(recipe, "launch"))
    yield _hardware(recipe, known.hardware)
    yield _speed(recipe, known.sweeps, (*trusted, source))
    yield _graphs(recipe)


def _launch(launch: dict[str, Value]) -> Requirement:
    kind = text(launch, "kind")
    absent = [name for name in _DOCKER_MEMBERS if launch.get(name) is None] if kind == "docker" else []
    if absent:
        return Requirement("an executable launch", False, f"a docker launch without {', '.join(absent)}")
    return Requirement(
        "an executable launch", kind in EXECUTABLE, f"the kind of launch is {kind or 'not said'}"
    )


def _revision(id: str, instance: dict[str, Value] | None) -> Requirement:
    name = "an exact revision of the weights"
    if instance is None:
        return Requirement(name, False, f"the model instance {id or '(not named)'} is not here", not id)
    revision = text(instance, "revision")
    exact = HEX_40.fullmatch(revision) is not None
    return Requirement(name, exact, f"{text(instance, 'repository')} at {revision or 'no revision'}")


def _runtime(launch: dict[str, Value]) -> Requirement:
    name, image = "a pinned runtime", text(launch, "image") or text(part(launch, "container"), "image")
    if text(launch, "kind") == "docker":
        return Requirement(name, _PINNED.search(image) is not None, f"the image is {image or 'not said'}")
    if is_commit(launch.get("commit")):
        return Requirement(name, True, f"pinned by commit {text(launch, 'commit')}")
    found = _COMMIT_IN_URL.match(text(launch, "url"))
    return Requirement(
        name, found is not None, f"pinned by commit {found[2]}" if found else "no digest and no commit"
    )


def _arguments(launch: dict[str, Value]) -> Requirement:
    found = launch.get("arguments")
    listed = isinstance(found, list) and all(isinstance(item, str) for item in found)
    told = f"{len(found)} arguments" if listed and isinstance(found, list) else "no list of arguments"
    return Requirement("arguments, one by one", listed, told)


def _hardware(recipe: dict[str, Value], hardware: dict[str, Value] | None) -> Requirement:
    name, id = "hardware that fits the launch", text(recipe, "hardware_id")
    if hardware is None:
        return Requirement(name, False, f"the hardware {id or '(not named)'} is not here", not id)
    needs = text(part(recipe, "launch"), "accelerator_backend")
    has = text(hardware, "accelerator_backend")
    return Requirement(
        name, bool(needs) and needs == has, f"the launch is for {needs or 'nothing said'}, {id} is {has}"
    )


def _speed(
    recipe: dict[str, Value], sweeps: Sequence[dict[str, Value]], trusted: Sequence[str]
) -> Requirement:
    """Say whether a sweep of this very recipe was accepted, or comes from a campaign pinned to a commit."""
    name = "a measured speed of this recipe, accepted or pinned to a commit"
    wanted = [id for group in SWEEP_LISTS for id in texts(recipe.get(group))]
    why = "no sweep is named" if not wanted else "no sweep that is named is here"
    for sweep in sweeps:
        id = text(sweep, "id")
        if id not in wanted:
            continue
        if text(sweep, "recipe_id") != text(recipe, "id"):
            why = f"{id} is of {text(sweep, 'recipe_id') or 'no recipe'}"
        elif not any(_is_measured(row) for _, row in parts(sweep, "rows")):
            why = f"{id} has no row that is measured and has a rate"
        else:
            basis = _basis(sweep, trusted)
            if basis:
                return Requirement(name, True, f"{id}: {basis}")
            why = f"{id} is neither accepted nor pinned to a commit of a trusted owner"
    here = {text(sweep, "id") for sweep in sweeps}
    return Requirement(name, False, why, all(id in here for id in wanted))


def _is_measured(row: dict[str, Value]) -> bool:
    rates = ("decode_tok_s", "prefill_tok_s")
    return text(row, "status") == "measured" and any(number(row.get(name)) is not None for name in rates)


def _basis(sweep: dict[str, Value], trusted: Sequence[str]) -> str:
    if text(sweep, "accepted_at"):
        return f"accepted at {text(sweep, 'accepted_at')}"
    source = part(sweep, "source")
    found = _COMMIT_IN_URL.match(text(source, "url"))
    owners = {owner.casefold() for owner in trusted if owner}
    if found and found[1].casefold() in owners:
        return f"pinned to commit {found[2]} of {found[1]}"
    return ""


def _graphs(recipe: dict[str, Value]) -> Requirement:
    name = "no eager mode and no switched-off graphs"
    mode = text(part(recipe, "engine"), "graph_mode")
    launch = part(recipe, "launch")
    words = [*texts(launch.get("arguments")), *(f"{k}={v}" for k, v in part(launch, "environment").items())]
    eager = [word for word in words if any(flag in word.lower() for flag in _EAGER)]
    if eager:
        return Requirement(name, False, f"the launch says {eager[0]}")
    if not mode:
        return Requirement(name, False, "the graph mode is not said")
    return Requirement(name, mode.lower() not in _NO_GRAPHS, f"the graph mode is {mode}")
