"""What stands between a recipe and a run on one host: a pure comparison, all of it in one table."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal

from provstore.ids import digests
from provstore.reports.base import Verdict
from provstore.reports.hosted import CommandOutput, HostReport
from provstore.reports.prepared import Blocker, PreflightReport
from provstore.runs.expected import Expected
from provstore.runs.expecting import expectations, ignored
from provstore.runs.filling import Filled
from provstore.store.protocol import Reader

State = Literal["differs", "absent", "unknown"]
Problem = tuple[State, str] | None

_ABSENT: Final = ("not there",)
_SHOWN: Final = 5
_NOT_SAID: Final = "not said"
_KINDS: Final = {str: "text", int: "a number", bool: "a truth value"}
_NAMES: Final = "running.name."


class Seen:
    """A host's facts by key, and the outputs of its commands.

    Args:
        host: the host.
        outputs: raw outputs by file name.
        filled: the recipe, for its manifests.
    """

    def __init__(self, host: HostReport, outputs: Mapping[str, bytes], filled: Filled) -> None:
        self.facts = {fact.key: fact for fact in host.facts}
        self.commands: dict[str, CommandOutput] = {one.name: one for one in host.commands}
        self.outputs = outputs
        self.parameters = {} if filled.recipe.suite is None else filled.recipe.suite.parameters
        self.suite, self.suite_problem = filled.suite, filled.suite_problem
        self.manifests = dict(filled.manifests)
        if filled.policy is not None:
            self.manifests[filled.policy.path] = filled.policy

    def problem(self, expected: Expected) -> Problem:
        """Return why a comparison does not hold, or None."""
        if expected.test == "command":
            return self._command(expected)
        if expected.test == "manifest":
            return self._manifest(expected)
        if expected.test == "suite":
            return self._suite(expected)
        fact = self.facts.get(expected.key)
        if fact is None:
            return self._nowhere(expected.key)
        if fact.value is None:
            return (
                ("absent", "not there") if fact.reason in _ABSENT else ("unknown", f"unknown: {fact.reason}")
            )
        found = fact.value
        if expected.test == "known":
            return None
        if expected.test == "free":
            return ("differs", "somebody listens") if str(expected.value) in str(found).split() else None
        if expected.test == "not-running":
            return self._running(str(expected.value))
        if expected.test == "devices":
            return self._devices(expected)
        if expected.test == "listing":
            return _listing(expected, str(found))
        same = type(found) is type(expected.value) and found == expected.value
        if expected.test in ("file", "false"):
            same = found is (expected.test == "file")
            if same:
                return None
            return ("absent", "not there") if expected.test == "file" else ("differs", "something is there")
        if same:
            return None
        other = f" as {_KINDS[type(found)]}" if _text(found) == _text(expected.value) else ""
        return "differs", f"{_text(found)}{other}"

    def _nowhere(self, key: str) -> Problem:
        """Say of what a host has no fact whether it is not there, or nobody looked."""
        group, _, rest = key.partition(".")
        if group == "pci" and self._known("pci.devices"):
            return "absent", "no device at this address"
        if group == "net" and self._known("net.interfaces"):
            return "absent", "no such interface"
        place, _, _ = rest.rpartition(".package.")
        if group == "environment":
            whole = self.facts.get(f"environment.{place}.packages")
            if whole is None:
                return "absent", "not installed"
            return ("absent" if whole.reason in _ABSENT else "unknown"), whole.reason
        return "unknown", "unknown: nobody looked for it"

    def _known(self, key: str) -> bool:
        fact = self.facts.get(key)
        return fact is not None and fact.value is not None

    def _running(self, pattern: str) -> Problem:
        names = [key.removeprefix(_NAMES) for key in self.facts if key.startswith(_NAMES)]
        fitting = sorted(name for name in names if fnmatchcase(name, pattern))
        return ("differs", f"runs: {', '.join(fitting[:_SHOWN])}") if fitting else None

    def _devices(self, expected: Expected) -> Problem:
        count = self.facts["gpu.count"].value
        found = []
        for number in range(count if isinstance(count, int) else 0):
            parts = [self.facts.get(f"gpu.{number}.{name}") for name in ("address", "vendor_device")]
            found.append(" ".join(str(part.value) for part in parts if part is not None))
        return None if sorted(found) == sorted(expected.items) else ("differs", ", ".join(found) or "none")

    def _command(self, expected: Expected) -> Problem:
        one = self.commands.get(expected.key)
        if one is None:
            return "unknown", "unknown: it was not run"
        if one.state == "not-run":
            gone = one.reason.endswith("not there")
            return ("absent" if gone else "unknown"), one.reason
        if one.state != "ended" or one.exit_code != 0:
            return "differs", one.reason or f"exit {one.exit_code}"
        data = self.outputs.get(one.stdout, b"").decode("utf-8", "replace")
        missing = [text for text in expected.items if text not in data]
        return ("differs", f"its output has no {missing[0]!r}") if missing else None

    def _suite(self, expected: Expected) -> Problem:
        suite = self.suite
        if suite is None:
            return "differs", self.suite_problem
        group, _, name = expected.key.partition(".")
        if group == "parameters":
            found, wanted = suite.parameters.get(name, _NOT_SAID), self.parameters[name]
            same = found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
        else:
            stated = {"endpoint": suite.endpoint, "prompts": len(suite.prompt),
                      "max_tokens": suite.max_tokens, "seed": suite.seed}  # fmt: skip
            found = stated[expected.key]
            same = found == expected.value
        return None if same else ("differs", _NOT_SAID if found is None else str(found))

    def _manifest(self, expected: Expected) -> Problem:
        manifest = self.manifests[expected.key]
        if manifest.problem:
            return ("absent" if manifest.problem in _ABSENT else "differs"), manifest.problem
        pinned = str(expected.value).removeprefix("sha256:")
        if len(pinned) == 64 and manifest.sha256 != pinned:
            return "differs", str(manifest.sha256)
        return None


def _listing(expected: Expected, found: str) -> Problem:
    names = {name for name in found.split("//") if name and not ignored(name, expected.ignored)}
    wanted = set(expected.items)
    extra, missing = sorted(names - wanted), sorted(wanted - names)
    if missing:
        return "absent", f"{len(missing)} files are not there: {', '.join(missing[:_SHOWN])}"
    return ("differs", f"further files: {', '.join(extra[:_SHOWN])}") if extra else None


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def preflight(
    filled: Filled,
    host: HostReport,
    outputs: Mapping[str, bytes],
    reader: Reader | None,
    data: bytes,
) -> PreflightReport:
    """Compare a recipe with a host; nothing is looked at but what is given.

    Args:
        filled: the recipe with its variables.
        host: what was seen of the host.
        outputs: raw outputs of its commands by file name.
        reader: a store, to say which absent bytes it holds; None for none.
        data: the recipe's bytes, for its digest.
    """
    seen = Seen(host, outputs, filled)
    here = host.root == "/"  # the text of a suite on a recorded host cannot be read, only its digest
    needed = tuple(one for one in expectations(filled) if here or one.test != "suite")
    blockers = tuple(_blockers(seen, needed, reader))
    states = {one.state for one in blockers}
    outcome: Verdict = "FAIL" if states & {"differs", "absent"} else "INCOMPLETE" if states else "PASS"
    return PreflightReport(
        recipe=filled.recipe.name,
        sha256=digests(data).sha256.hex(),
        host=host.root,
        outcome=outcome,
        checked=len(needed),
        blockers=blockers,
        variables=filled.variables,
    )


def _blockers(seen: Seen, needed: tuple[Expected, ...], reader: Reader | None) -> Iterator[Blocker]:
    missing: set[tuple[str, str]] = set()
    for expected in needed:
        problem = seen.problem(expected)
        if problem is None:
            continue
        state, found = problem
        if state == "absent" and (expected.role, expected.where) in missing:
            continue  # one line says that it is not there
        if state == "absent":
            missing.add((expected.role, expected.where))
        items = ", ".join(expected.items) if expected.test == "devices" else ""
        yield Blocker(
            role=expected.role,
            expected=items or _said(expected),
            found=found,
            where=expected.where,
            remedy=_remedy(expected, reader),
            state=state,
        )


def _said(expected: Expected) -> str:
    words = {"free": "nobody listens", "not-running": f"nothing called {expected.value} runs",
             "listing": f"exactly {expected.value} files", "false": "not there"}  # fmt: skip
    return words.get(expected.test, _text(expected.value))


def _remedy(expected: Expected, reader: Reader | None) -> str:
    if expected.digest and reader is not None:
        for id in reader.match("sha256", expected.digest):
            info = reader.info(id)
            if info is not None and info.placement != "external":
                return f"the store holds it: prov cat sha256:{expected.digest} > {expected.where}"
    return expected.remedy
