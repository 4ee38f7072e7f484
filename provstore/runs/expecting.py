"""What a recipe needs of a host, one comparison each; and what must be looked at to make them."""

import itertools
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

from provstore.files.inspect_python import normalise
from provstore.host.capture import Wanted
from provstore.host.commands import CaptureCommand
from provstore.ids import to_raw
from provstore.runs.filling import Filled
from provstore.runs.recipe import ModelPin, Recipe, Scalar

Test = Literal[
    "equal", "known", "file", "false", "free", "not-running", "devices", "listing", "command", "manifest"
]

_RESTORE: Final = "restore the file with this digest"
_SLOT: Final = "put the card into its slot, or bind its driver"
_PORT: Final = "stop who listens there, or set another port"
_OTHERS: Final = "stop it: two engines on one host measure each other"


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison.

    Attributes:
        role: what of the recipe needs it.
        test: how it is compared: ``equal`` to the fact's value; the fact is ``known``; ``file`` of a type is
            there; the fact is ``false``; a port is ``free``; no process fits a pattern; the set of
            ``devices``; a ``listing`` of files; a ``command`` ended well; a ``manifest`` could be read.
        key: key of the fact, or name of the command.
        value: what is expected.
        where: path or name for people.
        remedy: what to do when it does not hold.
        digest: hex SHA-256 that a store may hold the bytes of; empty for none.
        items: parts of what is expected, where it has several.
        ignored: patterns of names that do not count.
    """

    role: str
    test: Test
    key: str
    value: Scalar
    where: str
    remedy: str
    digest: str = ""
    items: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def expectations(filled: Filled) -> tuple[Expected, ...]:
    """Return every comparison of a preflight, in the order that a person would make them."""
    recipe = filled.recipe
    return tuple(
        itertools.chain(
            _host(recipe),
            _program(recipe),
            _variables(filled),
            _pins(recipe),
            _sources(recipe),
            _packages(recipe),
            *(_model(filled, model) for model in recipe.model),
            _service(recipe),
            _suite(recipe),
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


def _host(recipe: Recipe) -> Iterator[Expected]:
    for key, value in recipe.host.facts.items():
        yield Expected(
            role=f"host/{key}",
            test="equal",
            key=key,
            value=value,
            where=key,
            remedy="run on a host that has it, or make a recipe for this one",
        )
    devices = recipe.host.device
    if devices:
        addresses = tuple(f"{one.address} {one.id}" for one in devices)
        yield Expected(
            role="host/devices",
            test="devices",
            key="gpu.count",
            value=len(devices),
            where="/sys/bus/pci/devices",
            remedy="the recipe is for exactly these cards",
            items=addresses,
        )
    for one in devices:
        place = f"/sys/bus/pci/devices/{one.address}"
        vendor, _, device = one.id.partition(":")
        for name, value in (("vendor", vendor), ("device", device), ("driver", one.driver)):
            if value:
                key = f"pci.{one.address}.{name}"
                yield Expected(
                    role=f"host/device/{one.address}",
                    test="equal",
                    key=key,
                    value=value,
                    where=place,
                    remedy=_SLOT,
                )
    for mount in recipe.host.mount:
        for name, value in (("device", mount.device), ("type", mount.type)):
            if value:
                yield Expected(
                    role="host/mount",
                    test="equal",
                    key=f"mount.{mount.path}.{name}",
                    value=value,
                    where=mount.path,
                    remedy="mount the disk that the recipe names",
                )
    for name in recipe.host.interfaces:
        yield Expected(
            role="host/network",
            test="equal",
            key=f"net.{name}.state",
            value="up",
            where=f"/sys/class/net/{name}",
            remedy="bring the interface up, or set its name",
        )


def _program(recipe: Recipe) -> Iterator[Expected]:
    path = recipe.command.argv[0]
    if path not in {one.path for one in recipe.pin}:
        yield Expected(
            role="command/program",
            test="known",
            key=f"file.{path}.sha256",
            value="a program",
            where=path,
            remedy="install it, or set the variable that leads to it",
        )


def _variables(filled: Filled) -> Iterator[Expected]:
    for name, variable in filled.recipe.variable.items():
        path = filled.variables[name]
        kind = "directory" if variable.type == "directory" else "file"
        if variable.type in ("directory", "file"):
            yield Expected(
                role=f"variable/{name}",
                test="file",
                key=f"{kind}.{path}.there",
                value=kind,
                where=path,
                remedy=f"give another with --set {name}=...",
            )


def _pins(recipe: Recipe) -> Iterator[Expected]:
    for one in recipe.pin:
        yield _digest(one.role, one.path, one.sha256)


def _digest(role: str, path: str, sha256: str) -> Expected:
    digest = to_raw(sha256, role).hex()
    return Expected(
        role=role,
        test="equal",
        key=f"file.{path}.sha256",
        value=digest,
        where=path,
        remedy=_RESTORE,
        digest=digest,
    )


def _sources(recipe: Recipe) -> Iterator[Expected]:
    for one in recipe.source:
        key = f"source.{one.path}"
        yield Expected(
            role=one.role,
            test="equal",
            key=f"{key}.commit",
            value=one.commit,
            where=one.path,
            remedy="check the commit out",
        )
        yield Expected(
            role=one.role,
            test="equal",
            key=f"{key}.clean",
            value=True,
            where=one.path,
            remedy="put changes and files that Git does not know away",
        )


def _packages(recipe: Recipe) -> Iterator[Expected]:
    for one in recipe.packages:
        for name, version in one.versions.items():
            key = f"environment.{one.environment}.package.{normalise(name)}"
            yield Expected(
                role=f"{one.role}/{name}",
                test="equal",
                key=key,
                value=version,
                where=one.environment,
                remedy="install exactly this version",
            )


def _model(filled: Filled, model: ModelPin) -> Iterator[Expected]:
    manifest = filled.manifests[model.manifest]
    fetch = "fetch it at its revision"
    yield Expected(
        role=f"{model.role}/manifest",
        test="manifest",
        key=model.manifest,
        value=model.manifest_sha256 or "a list of its files",
        where=model.manifest,
        remedy="give the manifest that the model was released with",
    )
    if manifest.problem:
        return
    members = {
        name.removeprefix(model.prefix): digest
        for name, digest in manifest.files.items()
        if name.startswith(model.prefix)
    }
    for name, digest in members.items():
        path = f"{model.path}/{name}"
        yield msgspec.structs.replace(_digest(f"{model.role}/{name}", path, digest), remedy=fetch)
    yield Expected(
        role=model.role,
        test="listing",
        key=f"listing.{model.path}",
        value=len(members),
        where=model.path,
        remedy=fetch,
        items=tuple(sorted(members)),
        ignored=model.exclude,
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


def _suite(recipe: Recipe) -> Iterator[Expected]:
    suite = recipe.suite
    if suite is None:
        return
    if suite.sha256 is not None:
        yield _digest("suite", suite.path, suite.sha256)
    else:
        yield Expected(
            role="suite",
            test="known",
            key=f"file.{suite.path}.sha256",
            value="a suite",
            where=suite.path,
            remedy="give the file with the prompts",
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
