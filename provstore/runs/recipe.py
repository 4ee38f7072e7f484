"""Recipes: how a run is made, as data (format ``provstore/recipe/v1``)."""

from typing import Final, Literal

import msgspec

from provstore.records.packet import Kind

FORMAT: Final = "provstore/recipe/v1"

Scalar = str | int | bool
Type = Literal["text", "integer", "port", "path", "directory", "file", "choice"]
When = Literal["preflight", "idle", "before", "after"]

RESERVED: Final = ("run", "recipe")
"""Variables that are always there: the fresh private directory of a run, and the recipe's own directory."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything in a recipe."""


class Variable(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[variable.NAME]``; ``{NAME}`` stands for its value in every text of the recipe.

    Attributes:
        type: ``text`` is one line; ``port`` 1 to 65535; ``path``, ``directory`` and ``file`` are absolute and
            have no ``..``; a directory or file must be there before a run.
        default: its value unless another is given; a variable without one must be given.
        about: what it is.
        choices: values of a ``choice``.
        minimum: least integer.
        maximum: greatest integer.
    """

    type: Type
    default: str | int | None = None
    about: str = ""
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None


class Command(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[command]``: what is started.

    Attributes:
        argv: absolute path of the program and its arguments, one text each; no shell ever sees them.
        directory: where it is started.
        limit_s: how long a batch command may take.
    """

    argv: tuple[str, ...]
    directory: str = "{run}"
    limit_s: int = 86_400


class Environment(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[environment]``: it begins empty, and has what is named here and nothing else.

    Attributes:
        set: name to value; an empty value is set, not absent.
        private: name to a directory below the run's own, made fresh for it.
        inherit: names that are taken over from whoever starts the run, if they are set there.
        forbidden: patterns of names; what fits one and is not named here must be in no process of the run.
    """

    set: dict[str, str] = {}
    private: dict[str, str] = {}
    inherit: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


class Service(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[service]``: how the command is spoken to.

    Attributes:
        host: address that it listens on.
        port: its port, a number or a variable; nobody else may listen there.
        health: path that answers 200 when it is ready.
        health_interval_s: time between two polls.
        health_polls: number of polls.
        metrics: path of its counters; empty for none.
        processes: patterns of names of processes that must not run before the start nor after the stop.
        absent: paths that must not exist before the start nor after the stop.
    """

    port: str | int
    host: str = "127.0.0.1"
    health: str = "/health"
    health_interval_s: int = 5
    health_polls: int = 180
    metrics: str = ""
    processes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class SuiteUse(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[suite]``: what is asked of the service, once, and what the suite must say for it to be that.

    Attributes:
        path: the suite's file (``provstore/suite/v1``).
        model: name of the model in requests.
        prompts: how many prompts it has.
        max_tokens: its cap of an answer.
        endpoint: ``chat`` or ``completions``.
        seed: its seed.
        parameters: members of each request that it must have.
        sha256: digest that its file must have.
    """

    path: str
    model: str
    prompts: int
    max_tokens: int
    endpoint: Literal["chat", "completions"] = "chat"
    seed: int | None = None
    parameters: dict[str, Scalar | float | dict[str, Scalar | float]] = {}
    sha256: str | None = None


class Capture(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[capture]]``: a command whose raw output is kept.

    Attributes:
        name: short name; its output is kept under it.
        argv: absolute path of the program and its arguments.
        when: ``preflight``, ``idle`` (once a snapshot), ``before`` the start, ``after`` the stop.
        seconds: how long it may take.
        required: a run does not start unless it ends with exit code 0.
        holds: texts that its output must have.
    """

    name: str
    argv: tuple[str, ...]
    when: tuple[When, ...] = ("preflight",)
    seconds: int = 30
    required: bool = True
    holds: tuple[str, ...] = ()


class Idle(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[idle]``: the host does nothing else before the start and after the stop.

    Attributes:
        capture: name of the capture that is one snapshot; empty for snapshots of load and processes alone.
        snapshots: how many.
        interval_s: time between two.
        minimum_s: least time that they cover together.
        processes: patterns of names that may run on the devices meanwhile, such as the observer itself.
    """

    capture: str = ""
    snapshots: int
    interval_s: int
    minimum_s: int = 0
    processes: tuple[str, ...] = ()


class StopSignal(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step of a stop: a signal, and how long its effect is waited for."""

    signal: Literal["INT", "TERM", "QUIT", "KILL"]
    wait_s: int


class Stop(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[stop]``: how a run is ended; the last signal is KILL."""

    signals: tuple[StopSignal, ...] = (
        StopSignal(signal="INT", wait_s=30),
        StopSignal(signal="TERM", wait_s=15),
        StopSignal(signal="KILL", wait_s=10),
    )


class Device(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[host.device]]``: a PCI device that must be there, as ``vendor:device`` in hex."""

    address: str
    id: str
    driver: str = ""


class Mount(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[host.mount]]``: the file system that a path must lie on."""

    path: str
    device: str = ""
    type: str = ""


class Host(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[host]``: what the machine must be.

    Attributes:
        facts: value by the key that ``prov host`` shows.
        device: PCI devices, all that compute; another one of the same classes is a difference too.
        mount: file systems.
        interfaces: network interfaces that must be up.
    """

    facts: dict[str, Scalar] = {}
    device: tuple[Device, ...] = ()
    mount: tuple[Mount, ...] = ()
    interfaces: tuple[str, ...] = ()


class FilePin(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[pin]]``: a file whose bytes are fixed."""

    role: str
    path: str
    sha256: str


class SourcePin(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[source]]``: a source tree at a commit, without changes."""

    role: str
    path: str
    commit: str


class ModelPin(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[model]]``: a directory that holds exactly the files of a manifest.

    Attributes:
        role: its name in the packet.
        path: the directory.
        manifest: checksum file that lists its files.
        prefix: part of the manifest's names that stands for the directory.
        manifest_sha256: digest that the manifest must have.
        exclude: names below the directory that do not count, such as ``.cache``.
    """

    role: str
    path: str
    manifest: str
    prefix: str = ""
    manifest_sha256: str | None = None
    exclude: tuple[str, ...] = ()


class Packages(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[packages]]``: versions that a Python environment must have."""

    role: str
    environment: str
    versions: dict[str, str]


class Output(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[output]]``: a role that the run's packet must have.

    Attributes:
        role: its name in the packet.
        kind: what it is evidence of.
        path: file or directory below the run's own that becomes it.
    """

    role: str
    kind: Kind
    path: str


class Recipe(Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole recipe.

    Attributes:
        format: ``provstore/recipe/v1``.
        name: name of what is run.
        mode: ``service`` is started, asked and stopped; ``batch`` ends by itself.
        command: what is started.
        about: what it is for.
        variable: what can be set.
        environment: of the command.
        service: how it is spoken to.
        suite: what it is asked.
        capture: commands whose output is kept.
        idle: how the host is seen to be idle.
        stop: how it is ended.
        host: what the machine must be.
        pin: files with fixed bytes.
        source: source trees at their commits.
        model: directories of weights.
        packages: versions of packages.
        output: roles that the packet must have.
        policy: file of the policy that judges the run.
    """

    format: str
    name: str
    mode: Literal["service", "batch"]
    command: Command
    about: str = ""
    variable: dict[str, Variable] = {}
    environment: Environment = Environment()
    service: Service | None = None
    suite: SuiteUse | None = None
    capture: tuple[Capture, ...] = ()
    idle: Idle | None = None
    stop: Stop = Stop()
    host: Host = Host()
    pin: tuple[FilePin, ...] = ()
    source: tuple[SourcePin, ...] = ()
    model: tuple[ModelPin, ...] = ()
    packages: tuple[Packages, ...] = ()
    output: tuple[Output, ...] = ()
    policy: str = ""
