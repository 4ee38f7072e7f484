"""Gates about what was really loaded: origins, the loaded set against the pinned set, packages."""

import re
from typing import ClassVar, Final

from provstore.evidence.locks import LockResult, Origin, VerificationResult
from provstore.gates.evidence import Evidence, Source
from provstore.gates.findings import Findings, said
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement, UsedFact

_LOCK_EXTRACTS: Final = """
[[extract]]
name = "lock"
kind = "lock"
role = "runtime/lock"

[[extract]]
name = "loaded"
kind = "loaded"
role = "run/runtime-verification.json"
"""
_DELETED: Final = " (deleted)"
_FREEZE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;#]+)")


def _origins(source: Source) -> tuple[Origin, ...]:
    return source.reading.origins if isinstance(source.reading, VerificationResult) else ()


def _used(source: Source, origin: Origin) -> UsedFact:
    return UsedFact(place=source.place, key=origin.name, value=said(origin.paths), object=source.object,
                    location=origin.location)  # fmt: skip


class Loader(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="loader"):
    """Each library was loaded from exactly one path, the expected one.

    A file with the right digest somewhere else proves nothing. Every observation (helper, each rank) must
    agree.

    Attributes:
        loaded: observations of what was loaded; several when the pattern fits several files.
        origins: name of a module or library, and the path that it must come from.
        lock: pins whose digests tell "same content, other path"; empty to leave that out.
    """

    loaded: str
    origins: dict[str, str]
    lock: str = ""

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"loaded": ("loaded",), "lock": ("lock",)}
    EXAMPLE: ClassVar[str] = (
        _LOCK_EXTRACTS
        + """
[[gate]]
name = "origins"
kind = "loader"
loaded = "loaded"
origins = { "libattn.so" = "/opt/kernels/libattn.so" }
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Compare the paths of every name in every observation."""
        facts: list[UsedFact] = []
        for source in evidence.here(self.loaded, out):
            by_name: dict[str, list[Origin]] = {}
            for origin in _origins(source):
                by_name.setdefault(origin.name, []).append(origin)
            for name, wanted in self.origins.items():
                facts += [_used(source, origin) for origin in by_name.get(name, [])]
                self._name(source, (name, wanted), by_name.get(name, []), evidence, out)
        return out.done(f"{len(self.origins)} names, each from its one path", facts)

    def _name(
        self,
        source: Source,
        pair: tuple[str, str],
        found: list[Origin],
        evidence: Evidence,
        out: Findings,
    ) -> None:
        name, wanted = pair
        paths = sorted({path for origin in found for path in origin.paths})
        more: dict[str, object] = {"expected": wanted, "found": ", ".join(paths) or "nothing",
                                   "facts": [_used(source, origin) for origin in found]}  # fmt: skip
        if not paths:
            out.fail("not-loaded", f"{source.place}: {name} is pinned and was not loaded", **more)
        elif any(path.endswith(_DELETED) for path in paths):
            out.fail("deleted-mapping", f"{source.place}: {name} was replaced while it was loaded", **more)
        elif len(paths) > 1:
            out.fail(
                "loader-origin-multiple", f"{source.place}: {name} was loaded from {len(paths)} paths", **more
            )
        elif paths != [wanted]:
            note = self._note(name, found, evidence)
            out.fail("loader-origin", f"{source.place}: {name} was loaded from {paths[0]}{note}", **more)

    def _note(self, name: str, found: list[Origin], evidence: Evidence) -> str:
        """Say that the content is the pinned one although the path is not, where a digest tells."""
        pinned: set[str] = set()
        for source in evidence.sources.get(self.lock, ()):
            if isinstance(source.reading, LockResult):
                pinned |= {pin.sha256 for pin in source.reading.pins if name in (pin.name, pin.path)}
        observed: set[str] = set()
        for source in evidence.sources.get(self.loaded, ()):
            for key in ("sha256", "sha256s", "digests"):
                for path in {path for origin in found for path in origin.paths} | {name}:
                    pointer = f"/{key}/{path.replace('~', '~0').replace('/', '~1')}"
                    observed |= {str(fact.value) for fact in source.select(pointer)}
        return " (same content, other path)" if pinned & observed else ""

    def idle_reason(self) -> str:
        """Say whether no name is expected."""
        return "" if self.origins else "it expects no origin"


class Unpinned(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="loaded-pinned"):
    """Everything that was loaded is pinned: loaded minus pinned is empty.

    Attributes:
        loaded: observations of what was loaded.
        lock: the pins; a name, module or file name of a pin counts.
        ignored: names that need no pin, such as libraries of the system.
    """

    loaded: str
    lock: str
    ignored: tuple[str, ...] = ()

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"loaded": ("loaded",), "lock": ("lock",)}
    EXAMPLE: ClassVar[str] = (
        _LOCK_EXTRACTS
        + """
[[gate]]
name = "nothing unpinned"
kind = "loaded-pinned"
loaded = "loaded"
lock = "lock"
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Subtract the names of pins from the names that were loaded."""
        lock = evidence.one(self.lock, out)
        sources = evidence.here(self.loaded, out)
        if lock is None or not isinstance(lock.reading, LockResult):
            return out.done("")
        pinned: set[str] = set(self.ignored)
        for pin in lock.reading.pins:
            pinned |= {pin.name, pin.name.rpartition("/")[2], (pin.path or pin.name).rpartition("/")[2]}
        count = 0
        strange: dict[str, UsedFact] = {}
        for source in sources:
            for origin in _origins(source):
                count += 1
                if origin.name not in pinned:
                    strange.setdefault(origin.name, _used(source, origin))
        if sources and not count:
            out.unknown("no-origins", "nothing states what was loaded")
        if strange:
            out.fail("unpinned-loaded", f"{len(strange)} loaded and not pinned: {', '.join(sorted(strange))}",
                     expected="none", found=len(strange), facts=list(strange.values()))  # fmt: skip
        return out.done(f"{count} loaded, all of them pinned")


class PinnedMembers(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="pinned-members"):
    """The files that a lock pins are those of the packet, each with its digest, also where only declared.

    Attributes:
        lock: the pins.
        groups: first parts of the pins' locations that count.
        role: place below which the files lie, by their file name.
        complete: no other file may lie there.
    """

    lock: str
    groups: tuple[str, ...]
    role: str
    complete: bool = True

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"lock": ("lock",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "lock"
kind = "lock"
role = "runtime/lock"

[[gate]]
name = "native files"
kind = "pinned-members"
lock = "lock"
groups = ["native_modules", "mapped_kernel_libraries"]
role = "runtime/native"
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look up each pin by file name, then each file."""
        lock = evidence.one(self.lock, out)
        if lock is None:
            return out.done("")
        pins = lock.reading.pins if isinstance(lock.reading, LockResult) else ()
        wanted = [pin for pin in pins if pin.group in self.groups]
        members = {m.place: m for m in evidence.members if m.place.startswith(self.role + "/")}
        files = {place: m for place, m in members.items() if m.kind != "directory"}
        if not wanted:
            out.unknown("no-pins", f"{lock.place} pins nothing in {', '.join(self.groups)}")
        facts: list[UsedFact] = []
        for pin in wanted:
            place = f"{self.role}/{(pin.path or pin.name).rpartition('/')[2]}"
            fact = UsedFact(place=lock.place, key=pin.name, value=said(pin.sha256), object=lock.object,
                            location=pin.location)  # fmt: skip
            facts.append(fact)
            member = files.pop(place, None)
            if member is None or member.sha256 is None:
                out.unknown("evidence-absent", f"{place} is pinned, no member of the packet", expected=place,
                            facts=(fact,))  # fmt: skip
            elif member.sha256 != pin.sha256:
                out.fail("pin-differs", f"{place} is not the pinned file", expected=pin.sha256,
                         found=member.sha256, facts=(fact,))  # fmt: skip
        for place in sorted(files) if self.complete else ():
            out.fail("unpinned-member", f"{place} is in the packet and not pinned", found=place)
        return out.done(f"{len(wanted)} pinned files", facts)

    def idle_reason(self) -> str:
        """Say whether no group is named."""
        return "" if self.groups else "it names no group of pins"


class Packages(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="packages"):
    """Package versions are the pinned ones.

    Attributes:
        observed: list of installed packages (``name==version`` lines), or an observation of them.
        lock: a runtime lock with pinned versions; empty when ``versions`` has them all.
        versions: further packages and versions.
    """

    observed: str
    lock: str = ""
    versions: dict[str, str] = {}  # noqa: RUF012

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"observed": ("freeze", "loaded"), "lock": ("lock",)}
    EXAMPLE: ClassVar[str] = """
[[extract]]
name = "freeze"
kind = "freeze"
role = "runtime/pip-freeze"

[[gate]]
name = "packages"
kind = "packages"
observed = "freeze"
versions = { torch = "2.12.0" }
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look up each pinned package."""
        sources = evidence.here(self.observed, out)
        wanted = dict(self.versions)
        if self.lock:
            lock = evidence.one(self.lock, out)
            if lock is not None and isinstance(lock.reading, LockResult):
                wanted |= lock.reading.packages
            elif lock is not None:
                out.unknown("no-pins", f"{lock.place} pins no package")
        facts: list[UsedFact] = []
        for source in sources:
            found = observed_packages(source)
            if not found:
                out.unknown("packages-absent", f"{source.place} lists no package")
                continue
            for name, version in wanted.items():
                there = found.get(canonical(name))
                if there is None:
                    out.unknown("package-absent", f"{source.place} does not list {name}", expected=version)
                    continue
                facts.append(there)
                if there.value != said(version):
                    out.fail(
                        "package-version",
                        f"{name} is {there.value}",
                        expected=version,
                        found=there.value,
                        facts=(there,),
                    )
        return out.done(f"{len(wanted)} packages have their versions", facts)

    def idle_reason(self) -> str:
        """Say whether no package is pinned."""
        return "" if self.lock or self.versions else "it pins no package"


def observed_packages(source: Source) -> dict[str, UsedFact]:
    """Return the version of each package that a source lists, by canonical name."""
    if isinstance(source.reading, VerificationResult):
        return {
            canonical(name): UsedFact(place=source.place, key=name, value=said(version), object=source.object,
                                      location=f"/package_versions/{name}")
            for name, version in source.reading.packages.items()
        }  # fmt: skip
    return {
        canonical(fact.key.partition(".")[2]): UsedFact(
            place=source.place,
            key=fact.key,
            value=said(fact.value),
            object=source.object,
            location=fact.location,
        )
        for fact in source.facts
    }


def canonical(name: str) -> str:
    """Return the normalised name of a Python package (PEP 503).

    Example:
        >>> canonical("Typing_Extensions")
        'typing-extensions'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def freeze_pair(line: str) -> tuple[str, str] | None:
    """Return name and version of a ``name==version`` line; None for any other.

    Example:
        >>> freeze_pair("torch==2.12.0+xpu"), freeze_pair("-e git+https://host/x")
        (('torch', '2.12.0+xpu'), None)
    """
    match = _FREEZE.match(line)
    return (match[1], match[2]) if match else None
