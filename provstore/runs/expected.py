"""What a recipe needs of a host's devices, disks and bytes, one comparison each."""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from provstore.files.inspect_python import normalise
from provstore.ids import to_raw
from provstore.runs.filling import Filled
from provstore.runs.recipe import ModelPin, Recipe, Scalar

Test = Literal[
    "equal",
    "known",
    "file",
    "false",
    "free",
    "not-running",
    "devices",
    "listing",
    "command",
    "manifest",
    "suite",
]

_RESTORE: Final = "restore the file with this digest"
_SLOT: Final = "put the card into its slot, or bind its driver"


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


def of_host(recipe: Recipe) -> Iterator[Expected]:
    """Yield what the machine must be."""
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


def of_program(recipe: Recipe) -> Iterator[Expected]:
    """Yield that the program is there, where no pin says which it is."""
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


def of_variables(filled: Filled) -> Iterator[Expected]:
    """Yield that directories and files which variables name are there."""
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


def of_pins(recipe: Recipe) -> Iterator[Expected]:
    """Yield the digests of single files."""
    for one in recipe.pin:
        yield of_digest(one.role, one.path, one.sha256)


def of_digest(role: str, path: str, sha256: str) -> Expected:
    """Return the comparison of one file with a digest."""
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


def of_sources(recipe: Recipe) -> Iterator[Expected]:
    """Yield commits and states of source trees."""
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


def of_packages(recipe: Recipe) -> Iterator[Expected]:
    """Yield versions of packages."""
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


def of_model(filled: Filled, model: ModelPin) -> Iterator[Expected]:
    """Yield the files of one model, and that there are no others."""
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
        yield msgspec.structs.replace(of_digest(f"{model.role}/{name}", path, digest), remedy=fetch)
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
