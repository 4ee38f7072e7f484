"""Reading recipes: TOML to structs, refused with its line for whatever would not run as it says."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from provstore import libraries
from provstore.errors import MalformedError, NewerFormatError, RecipeError
from provstore.host.secrets import secret_value, secret_variable
from provstore.ids import to_raw
from provstore.paths import check_role, first_below
from provstore.runs.places import Path, Places
from provstore.runs.recipe import FORMAT, RESERVED, Recipe, Variable
from provstore.runs.words import VARIABLE, program_problem, word_problem

MAX_RECIPE_BYTES: Final = 1 << 20
MAX_ITEMS: Final = 20_000
MAX_LINE_DOTS: Final = 100
"""Most dots in a key: reading a dotted key takes the square of their number."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CAPTURE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_BELOW: Final = re.compile(r"(?!\.\.?(?:/|$))[^/\0]+(?:/(?!\.\.?(?:/|$))[^/\0]+)*")
_DEVICE: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")
_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class LoadedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe with the places of its lines.

    Attributes:
        recipe: what it says, variables not filled in.
        places: lines, for errors that come later.
        where: what it is called in errors.
        data: its bytes.
    """

    recipe: Recipe
    places: Places
    where: str
    data: bytes


def load_recipe(data: bytes, where: str) -> LoadedRecipe:
    """Parse and check a recipe.

    Args:
        data: the TOML text.
        where: what to call it in errors.

    Raises:
        RecipeError: anything that could not be run, or would not run what it says, with its line.
        NewerFormatError: another format.
    """
    text, raw = _parse(data, where)
    places = Places(text, where)
    try:
        recipe = msgspec.convert(raw, Recipe)
    except msgspec.ValidationError as error:
        raise RecipeError(places.named(str(error), _key_of(raw, str(error))), str(error)) from error
    check = _Check(recipe, places)
    check.all()
    return LoadedRecipe(recipe=recipe, places=places, where=where, data=data)


def is_recipe(data: bytes) -> bool:
    """Say whether bytes look like a recipe of any version."""
    head = data[: 64 << 10]
    return re.search(rb'(?m)^[ \t]*+format[ \t]*+=[ \t]*+["\']provstore/recipe/', head) is not None


def _parse(data: bytes, where: str) -> tuple[str, dict[str, Any]]:
    if len(data) > MAX_RECIPE_BYTES:
        raise RecipeError(where, f"{len(data)} bytes is larger than any recipe ({MAX_RECIPE_BYTES})")
    for number, row in enumerate(data.split(b"\n"), 1):
        if row.partition(b"=")[0].count(b".") > MAX_LINE_DOTS:
            raise RecipeError(f"{where}:{number}", f"more than {MAX_LINE_DOTS} dots in a key; break the line")
    try:
        text = data.decode()
        raw = libraries.tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise RecipeError(where, f"not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:  # also of a number with too many digits
        line = re.search(r"at line (\d+)", str(error))
        raise RecipeError(f"{where}:{line[1]}" if line else where, f"no TOML: {error}") from error
    found = raw.get("format")
    if found != FORMAT:
        if isinstance(found, str):
            raise NewerFormatError(where, found)
        raise RecipeError(where, f'needs format = "{FORMAT}"')
    return text, raw


def _key_of(raw: dict[str, Any], message: str) -> str:
    """Return the key of a table with free keys that a message is about, which the decoder does not name.

    Half of the keys are left out at a time, and whichever half has the error is looked into.
    """
    path = re.search(r"at `\$\.([a-z.]+)\[\.\.\.\]", message)
    top, _, inner = (path[1] if path else "").partition(".")
    table = raw.get(top)
    table = table.get(inner) if inner and isinstance(table, dict) else table
    if not isinstance(table, dict):
        return ""
    keys = list(table)
    while len(keys) > 1:
        half = {key: table[key] for key in keys[: len(keys) // 2]}
        tried = {**raw, top: {**raw[top], inner: half} if inner else half}
        keys = keys[: len(half)] if _fails(tried, message) else keys[len(half) :]
    return keys[0] if keys else ""


def _fails(raw: dict[str, Any], message: str) -> bool:
    try:
        msgspec.convert(raw, Recipe)
    except msgspec.ValidationError as error:
        return str(error) == message
    return False


def texts(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every text inside a value, with the keys and positions that lead to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts(item, (*path, key))
    elif isinstance(value, Sequence):
        for at, item in enumerate(value):
            yield from texts(item, (*path, at))


class _Check:
    """Everything that a schema cannot say."""

    def __init__(self, recipe: Recipe, places: Places) -> None:
        self._recipe = recipe
        self._places = places

    def all(self) -> None:
        recipe = self._recipe
        if not _NAME.fullmatch(recipe.name):
            raise self._error(("name",), "a name is letters, digits and . _ + -, at most 100")
        self._variables()
        self._command(("command",), recipe.command.argv)
        for at, capture in enumerate(recipe.capture):
            self._command(("capture", at), capture.argv)
        self._texts()
        if recipe.command.limit_s < 1:
            raise self._error(("command", "limit_s"), "a command needs a second at least")
        self._environment()
        self._mode()
        self._captures()
        self._stop()
        self._pins()
        self._host()
        self._outputs()

    def _error(self, path: Path, reason: str, holding: str = "") -> RecipeError:
        return RecipeError(self._places.at(path, holding), reason)

    def _variables(self) -> None:
        for name, variable in self._recipe.variable.items():
            path = ("variable", name)
            if not _IDENTIFIER.fullmatch(name) or name in RESERVED:
                raise self._error(
                    path, f"{name!r} can be no variable; {', '.join(RESERVED)} are always there"
                )
            if (variable.type == "choice") != bool(variable.choices):
                raise self._error(path, f"variable {name}: choices belong to type choice, which needs some")
            bounded = variable.minimum is not None or variable.maximum is not None
            if bounded and variable.type != "integer":
                raise self._error(path, f"variable {name}: only an integer has bounds")
            if variable.default is not None:
                problem = value_problem(variable, variable.default)
                if problem:
                    raise self._error((*path, "default"), f"variable {name}: {problem}")

    def _texts(self) -> None:
        """Refuse unknown variables, secrets, and characters that no argument or path can have."""
        known = {*self._recipe.variable, *RESERVED}
        for count, (path, text) in enumerate(texts(msgspec.to_builtins(self._recipe))):
            if count > MAX_ITEMS:
                raise self._error((), f"more than {MAX_ITEMS} texts")
            if "\0" in text:
                raise self._error(path, "a text with a NUL byte can be no argument, path or value")
            for name in VARIABLE.findall(text):
                if name not in known:
                    raise self._error(path, f"no variable is called {name!r}", f"{{{name}}}")
            looks = secret_value(text)
            if looks:
                raise self._error(path, f"holds {looks}; a recipe is sealed with every run", text)
            if path[0] == "variable" and VARIABLE.search(text) and path[-1] == "default":
                raise self._error(path, "a default is a value; it cannot stand on another variable", text)

    def _command(self, path: Path, argv: Sequence[str]) -> None:
        if not argv:
            raise self._error((*path, "argv"), "argv is empty; it begins with an absolute program")
        typed = self._recipe.variable
        problem = program_problem(argv[0], {name: variable.type for name, variable in typed.items()})
        if problem:
            raise self._error((*path, "argv"), problem, argv[0])
        for word in argv[1:]:
            problem = word_problem(word)
            if problem:
                raise self._error((*path, "argv"), problem, word)

    def _environment(self) -> None:
        env = self._recipe.environment
        for part in ("set", "private"):
            for name, value in getattr(env, part).items():
                path: Path = ("environment", part, name)
                if not _IDENTIFIER.fullmatch(name):
                    raise self._error(path, f"{name!r} is no name of a variable of the environment")
                reason = secret_variable(name, value)
                if reason:
                    raise self._error(path, f"{name} would be a secret ({reason}); a recipe is sealed")
                if part == "private" and not _BELOW.fullmatch(value):
                    raise self._error(path, f"{name}: a private directory is a relative path without ..")
        names = [*env.set, *env.private, *env.inherit]
        for before, name in itertools.pairwise(sorted(names)):
            if before == name:
                raise self._error(("environment", "private", name), f"{name} is set in two ways")
        for at, name in enumerate(env.inherit):
            if not _IDENTIFIER.fullmatch(name) or secret_variable(name, "unknown value"):
                raise self._error(("environment", "inherit", at), f"{name!r} cannot be inherited", name)
        for at, pattern in enumerate(env.forbidden):
            if not re.fullmatch(r"[A-Za-z0-9_*?]+", pattern) or set(pattern) <= set("*?"):
                reason = f"{pattern!r} is no pattern of names that are forbidden"
                raise self._error(("environment", "forbidden", at), reason, pattern)

    def _mode(self) -> None:
        recipe = self._recipe
        if recipe.mode == "batch":
            for name in ("service", "suite"):
                if getattr(recipe, name) is not None:
                    raise self._error((name,), f"a batch command has no {name}")
            return
        if recipe.service is None or recipe.suite is None:
            raise self._error(("mode",), "a service needs [service] and [suite]")
        service, suite = recipe.service, recipe.suite
        port = str(service.port)
        if not VARIABLE.fullmatch(port) and not (port.isdecimal() and 0 < int(port) < 65536):
            raise self._error(("service", "port"), f"{port!r} is no port and no {{variable}}")
        for name in ("health", "metrics"):
            if getattr(service, name) and not getattr(service, name).startswith("/"):
                raise self._error(("service", name), f"{name} is a path on the service; it begins with /")
        for name in ("health_interval_s", "health_polls"):
            if getattr(service, name) < 1:
                raise self._error(("service", name), f"{name} is 1 or more")
        for name in ("prompts", "max_tokens"):
            if getattr(suite, name) < 1:
                raise self._error(("suite", name), f"{name} is 1 or more: a suite of nothing proves nothing")
        self._digest(("suite", "sha256"), suite.sha256)

    def _captures(self) -> None:
        seen: set[str] = set()
        for at, capture in enumerate(self._recipe.capture):
            path: Path = ("capture", at)
            if not _CAPTURE.fullmatch(capture.name) or capture.name in seen:
                raise self._error((*path, "name"), f"{capture.name!r} is no name of its own for a capture")
            seen.add(capture.name)
            if capture.seconds < 1:
                raise self._error((*path, "seconds"), "a capture command needs a second at least")
        idle = self._recipe.idle
        if idle is None:
            return
        if idle.capture and idle.capture not in seen:
            raise self._error(("idle", "capture"), f"no capture is called {idle.capture!r}")
        if idle.snapshots < 1 or idle.interval_s < 0 or idle.minimum_s < 0:
            raise self._error(("idle",), "needs one snapshot at least, and times that are not negative")
        if idle.minimum_s > idle.snapshots * max(idle.interval_s, 1) * 10:
            raise self._error(("idle", "minimum_s"), "so few snapshots cannot cover that time")

    def _stop(self) -> None:
        signals = self._recipe.stop.signals
        if not signals or signals[-1].signal != "KILL":
            raise self._error(("stop", "signals"), "the last signal is KILL, or a run may never end")
        if any(step.wait_s < 1 for step in signals):
            raise self._error(("stop", "signals"), "each signal is waited for a second at least")

    def _digest(self, path: Path, digest: str | None) -> None:
        if digest is not None:
            try:
                to_raw(digest, str(path[-1]))
            except MalformedError as error:
                raise self._error(path, error.reason) from error

    def _pins(self) -> None:
        recipe = self._recipe
        for at, pin in enumerate(recipe.pin):
            self._digest(("pin", at, "sha256"), pin.sha256)
        for at, source in enumerate(recipe.source):
            if not _COMMIT.fullmatch(source.commit):
                reason = f"{source.commit!r} is no full commit id; a branch, a tag or a short id can move"
                raise self._error(("source", at, "commit"), reason)
        for at, model in enumerate(recipe.model):
            self._digest(("model", at, "manifest_sha256"), model.manifest_sha256)
        for at, packages in enumerate(recipe.packages):
            if not packages.versions:
                raise self._error(("packages", at), "names no version, so nothing is held to it")
        for name in ("pin", "source", "model", "packages"):
            for at, item in enumerate(getattr(recipe, name)):
                path = item.environment if name == "packages" else item.path
                if not (path.startswith("/") or VARIABLE.match(path)):
                    raise self._error((name, at), f"{path!r} is no absolute path")
                self._role((name, at, "role"), item.role)
        roles = [
            item.role
            for items in (recipe.pin, recipe.source, recipe.model, recipe.packages)
            for item in items
        ]
        self._apart(roles, "pin")

    def _role(self, path: Path, role: str) -> None:
        try:
            check_role(role)
        except MalformedError as error:
            raise self._error(path, error.reason) from error

    def _apart(self, roles: Sequence[str], section: str) -> None:
        for before, role in itertools.pairwise(sorted(roles)):
            if before == role:
                raise self._error((section,), f"role {role!r} is there twice")
        below = first_below(roles)
        if below is not None:
            raise self._error((section,), f"role {below!r} lies below another role")

    def _host(self) -> None:
        for at, device in enumerate(self._recipe.host.device):
            if not _ADDRESS.fullmatch(device.address):
                reason = f"{device.address!r} is no PCI address such as 0000:23:00.0"
                raise self._error(("host", "device", at, "address"), reason)
            if not _DEVICE.fullmatch(device.id):
                reason = f"{device.id!r} is no vendor:device in hex such as 8086:e223"
                raise self._error(("host", "device", at, "id"), reason)
        for at, mount in enumerate(self._recipe.host.mount):
            if not (mount.device or mount.type):
                raise self._error(("host", "mount", at), "states neither device nor type")

    def _outputs(self) -> None:
        for at, output in enumerate(self._recipe.output):
            self._role(("output", at, "role"), output.role)
            if not _BELOW.fullmatch(output.path):
                reason = f"{output.path!r} is no path below the run's own directory"
                raise self._error(("output", at, "path"), reason)
        self._apart([output.role for output in self._recipe.output], "output")


def value_problem(variable: Variable, value: str | int) -> str:
    """Return why a value is none for a variable, or nothing.

    Example:
        >>> value_problem(Variable(type="port"), "70000"), value_problem(Variable(type="port"), 8080)
        ("'70000' is no port from 1 to 65535", '')
    """
    text = str(value)
    if "\0" in text or "\n" in text or isinstance(value, bool):
        return "a value is one line of text, or a whole number"
    if VARIABLE.search(text):
        return f"{text!r} holds another variable; a value is taken as it is"
    if variable.type == "choice":
        return "" if text in variable.choices else f"{text!r} is none of {', '.join(variable.choices)}"
    if variable.type in ("integer", "port"):
        if not re.fullmatch(r"-?[0-9]{1,15}", text):
            return f"{text!r} is no whole number"
        least, most = (1, 65535) if variable.type == "port" else (variable.minimum, variable.maximum)
        low, high = least is not None and int(text) < least, most is not None and int(text) > most
        if variable.type == "port" and (low or high):
            return f"{text!r} is no port from 1 to 65535"
        return f"{text} is not from {least} to {most}" if low or high else ""
    if variable.type in ("path", "directory", "file"):
        safe = text.startswith("/") and ".." not in text.split("/")
        return "" if safe else f"{text!r} is no absolute path without .."
    return ""
