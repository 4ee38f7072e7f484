"""The status of a registry's recipe, worked out from what is stated.

A recipe is validated when every requirement holds: an executable launch, a full commit of the model, a
pinned artifact, at least one sweep that is acceptance evidence, no option that turns graphs off, and a
launch that is complete. A requirement that could not be looked at leaves the status open. A stored status
is only ever compared with this one.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from provstore.evidence.jsonreader import ABSENT, Absent, Value
from provstore.graph.rules.places import COMMIT, Place, shown, walk
from provstore.reports.base import count

EXECUTABLE: Final = ("docker", "docker-compose", "compose", "script", "host")
"""Kinds of launch that something can be started with."""

IMPORTED: Final = ("localmaxxing", "mlxfast")
"""Sources whose recipes are observations that were taken over; they can never be validated."""

FORBIDDEN: Final = ("--enforce-eager", "disable-cuda-graph", "disable-prefill-cuda-graph")
"""Options that turn captured graphs off."""

_DIGEST: Final = re.compile(r"@sha256:[0-9a-f]{64}$")
_IN_PATH: Final = re.compile(r"(?:^|/)[0-9a-f]{40}/")
_OWNER: Final = re.compile(r"https://github\.com/(?P<owner>[^/\s]+)/(?P<name>[^/\s]+)")
_PINNED: Final = re.compile(
    r"https://github\.com/(?P<owner>[^/\s]+)/[^/\s]+/(?:blob|tree|raw|commit)/(?P<commit>[0-9a-f]{40})\b"
)


class Requirement(NamedTuple):
    """One requirement of a validated recipe.

    Attributes:
        name: stable name, such as ``acceptance``.
        state: whether it holds; ``unknown`` when what it needs is not at hand.
        words: what holds it up, or what is missing.
        location: JSON pointer in the recipe.
    """

    name: str
    state: Literal["held", "missing", "unknown"]
    words: str
    location: str


class Standing(NamedTuple):
    """What follows for a recipe.

    Attributes:
        status: ``validated`` when all requirements hold, ``candidate`` when one is missing, and ``unknown``
            when none is missing and one could not be looked at.
        requirements: every one that applies.
    """

    status: Literal["validated", "candidate", "unknown"]
    requirements: tuple[Requirement, ...]

    def of(self, state: str) -> tuple[Requirement, ...]:
        """Return the requirements with a state."""
        return tuple(one for one in self.requirements if one.state == state)


def standing(
    recipe: Value | Absent,
    instance: Value | Absent,
    sweeps: Sequence[Value | Absent],
    trusted: frozenset[str] | None = None,
) -> Standing:
    """Work out the status of a recipe.

    Args:
        recipe: the recipe.
        instance: the model instance that it names; absent when it is not at hand.
        sweeps: a value for each sweep that it names; absent for one that is not at hand.
        trusted: owners of repositories whose campaigns count, in lower case; None for the one that the recipe
            itself names as its source.

    Example:
        >>> reference = {"recipe_source": "localmaxxing", "launch": {"kind": "reference"}}
        >>> found = standing(reference, {"revision": "a" * 40}, [{"accepted_at": None}])
        >>> found.status, [one.name for one in found.of("missing")]
        ('candidate', ['source', 'launch-kind', 'acceptance'])
    """
    place = Place("", recipe)
    found = [
        _source(place),
        _launch_kind(place),
        _revision(place, instance),
        *_artifact(place),
        _acceptance(place, sweeps, trusted),
        _graphs(place),
        *_complete(place),
    ]
    states = {one.state for one in found}
    status: Literal["validated", "candidate", "unknown"] = "validated"
    if "missing" in states:
        status = "candidate"
    elif "unknown" in states:
        status = "unknown"
    return Standing(status, tuple(found))


def _said(name: str, holds: bool, place: Place, words: str, lacks: str) -> Requirement:
    return Requirement(name, "held" if holds else "missing", words if holds else lacks, place.pointer)


def _source(recipe: Place) -> Requirement:
    source = recipe.at("recipe_source")
    lacks = f"taken over from {shown(source.value)}: an observation, no recipe of its own"
    return _said("source", source.value not in IMPORTED, source, f"source {shown(source.value)}", lacks)


def _launch_kind(recipe: Place) -> Requirement:
    kind = recipe.at("launch", "kind")
    words = f"launch kind {shown(kind.value)}"
    return _said("launch-kind", kind.value in EXECUTABLE, kind, words, f"{words} is not executable")


def _revision(recipe: Place, instance: Value | Absent) -> Requirement:
    place = recipe.at("model_instance_id")
    if instance is ABSENT:
        return Requirement("revision", "unknown", f"{shown(place.value)} is not at hand", place.pointer)
    revision = Place("", instance).at("revision")
    lacks = f"revision {shown(revision.value)} is no full commit"
    held = COMMIT.fullmatch(revision.text) is not None
    return _said("revision", held, place, f"model at {revision.text}", lacks)


def _artifact(recipe: Place) -> list[Requirement]:
    launch, kind = recipe.at("launch"), recipe.at("launch", "kind").value
    if kind in ("docker", "docker-compose", "compose"):
        image = launch.at("image")
        held = _DIGEST.search(image.text) is not None
        return [
            _said("image", held, image, f"image {shown(image.value)}", "the image is not pinned to a digest")
        ]
    if kind == "script":
        file = launch.at("script", "file")
        held = _IN_PATH.search(file.text) is not None
        return [
            _said("script", held, file, f"script {shown(file.value)}", "the script is not pinned to a commit")
        ]
    return []


def _acceptance(
    recipe: Place, sweeps: Sequence[Value | Absent], trusted: frozenset[str] | None
) -> Requirement:
    place = recipe.at("speed_sweep_ids")
    owners = (
        trusted if trusted is not None else frozenset((recipe.at("recipe_source").text.casefold(),)) - {""}
    )
    for sweep in sweeps:
        words = acceptance(sweep, owners)
        if words:
            return Requirement("acceptance", "held", words, place.pointer)
    away = sum(1 for sweep in sweeps if sweep is ABSENT)
    if away:
        return Requirement("acceptance", "unknown", f"{count(away, 'sweep')} not at hand", place.pointer)
    lacks = (
        f"of {count(len(sweeps), 'sweep')} none is an acceptance run or a pinned campaign of its own source"
    )
    return Requirement("acceptance", "missing", lacks, place.pointer)


def acceptance(sweep: Value | Absent, owners: frozenset[str]) -> str:
    """Return why a sweep is acceptance evidence; empty when it is none.

    An acceptance run counts that states when it was accepted, and a campaign that is pinned to a commit of a
    repository of a trusted owner, by its members or by its address.
    """
    place = Place("", sweep)
    source = place.at("source")
    if source.at("kind").value == "acceptance-run":
        return f"acceptance run of {place.at('accepted_at').text}" if place.at("accepted_at").said else ""
    repository, commit = _OWNER.match(source.at("repository").text), source.at("commit").text
    if repository and COMMIT.fullmatch(commit) and repository["owner"].casefold() in owners:
        return f"campaign at commit {commit} of {repository['owner']}/{repository['name']}"
    pinned = _PINNED.match(source.at("url").text)
    if pinned and pinned["owner"].casefold() in owners:
        when = "" if place.at("accepted_at").said else ", not marked as accepted"
        return f"campaign at commit {pinned['commit']} of {pinned['owner']}{when}"
    return ""


def _graphs(recipe: Place) -> Requirement:
    launch = recipe.at("launch")
    for name, place in walk(launch):
        for option in FORBIDDEN:
            if option in place.text.casefold() or option in name.casefold():
                return Requirement("graphs", "missing", f"the launch says {option}", place.pointer)
    return Requirement("graphs", "held", "no option turns graphs off", launch.pointer)


def _complete(recipe: Place) -> list[Requirement]:
    launch, kind = recipe.at("launch"), recipe.at("launch", "kind").value
    if kind not in ("docker", "host"):
        return []
    lacks = []
    starts = [launch.at(name) for name in ("entrypoint", "arguments")]
    if kind == "docker" and not any(place.said or place.elements() for place in starts):
        lacks.append("entrypoint or arguments")
    ports = ("host_port", "container_port") if kind == "docker" else ("container_port",)
    lacks += [name for name in ports if type(launch.at(name).value) is not int]
    lacks += [] if launch.at("accelerator_backend").said else ["accelerator_backend"]
    lacks += [] if recipe.at("serving", "max_context_tokens").given else ["serving.max_context_tokens"]
    words = f"{kind} launch is complete"
    return [_said("complete", not lacks, launch, words, f"{kind} launch lacks {', '.join(lacks)}")]
