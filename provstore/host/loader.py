"""Where the GNU loader looks for shared objects, worked out again: the expected origin of each.

The order, from ``ld.so(8)`` and glibc's ``elf/dl-load.c``: a name with a slash is a path. Else what is loaded
already under that name; DT_RPATH of the object and of those that loaded it, each only if it has no
DT_RUNPATH, and none of them if the object itself has one; LD_LIBRARY_PATH; DT_RUNPATH of the object, for
its own needs alone; the cache; the default directories. In each directory subdirectories for capable
processors come first. What is opened later by dlopen is known only by being mapped: its own needs are
followed in the same way.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from provstore.host.ldcache import Cached

LEVELS: Final = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
"""Subdirectories of ``glibc-hwcaps``, the most capable first."""

_V2: Final = frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3: Final = _V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
_V4: Final = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_TOKEN: Final = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")
_TRIPLETS: Final = {"EM_X86_64": "x86_64-linux-gnu", "EM_AARCH64": "aarch64-linux-gnu"}
_PLATFORMS: Final = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}

Key = tuple[int, int]
"""What names a file for good on one host: device and inode."""


class Object(NamedTuple):
    """What a shared object says of itself.

    Attributes:
        path: where it is mapped from.
        soname: its own name, or None.
        needed: names that it needs.
        rpath: DT_RPATH, empty for none.
        runpath: DT_RUNPATH, empty for none.
        machine: as ``elf.machine`` names it.
    """

    path: str
    soname: str | None
    needed: tuple[str, ...]
    rpath: str
    runpath: str
    machine: str


class Setting(NamedTuple):
    """What decides where a process looks.

    Attributes:
        library_path: LD_LIBRARY_PATH; None when it cannot be read.
        preload: LD_PRELOAD; None when it cannot be read.
        directory: its working directory, for relative search paths; None when unknown.
        cache: names in the cache; None when it cannot be read.
        levels: capable subdirectories that this processor may use.
    """

    library_path: str | None
    preload: str | None
    directory: str | None
    cache: Mapping[str, Sequence[Cached]] | None
    levels: tuple[str, ...] = ()


class Found(NamedTuple):
    """What the search for one name gives.

    Attributes:
        by: path of the object that needs it; empty for what is asked for from outside.
        name: the name that is needed.
        path: where the search ends; None when nothing is found, or it cannot be told.
        through: what in the order led there.
        shadowed: further files of that name, later in the order.
        reason: why it cannot be told.
    """

    by: str
    name: str
    path: str | None
    through: str = ""
    shadowed: tuple[str, ...] = ()
    reason: str = ""


def levels_of(flags: str) -> tuple[str, ...]:
    """Return the capable subdirectories that a processor with these flags may use.

    Example:
        >>> levels_of("cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3")
        ('x86-64-v2',)
    """
    have = set(flags.split())
    return tuple(name for name, need in zip(LEVELS, (_V4, _V3, _V2), strict=True) if need <= have)


class Search:
    """The search of one process, over what it has mapped.

    Args:
        setting: what decides where it looks.
        objects: what is mapped, by key.
        key_of: key of a path as that process sees it; None when nothing is there.
    """

    def __init__(
        self, setting: Setting, objects: Mapping[Key, Object], key_of: Callable[[str], Key | None]
    ) -> None:
        self._setting = setting
        self._objects = objects
        self._key_of = key_of
        self._parents: dict[Key, Key | None] = {}
        self._names: dict[str, Key] = {}
        self.found: dict[Key, Found] = {}

    def start(self, program: Key, interpreter: Key | None) -> None:
        """Follow the needs of the program, after what is preloaded."""
        self._admit(program, None)
        if interpreter is not None:
            self._admit(interpreter, None)
        queue: deque[Key] = deque([program])
        for name in re.split(r"[\s:]+", self._setting.preload or ""):
            if name:
                found = self._look(program, name)._replace(by="LD_PRELOAD")
                self._take(found, program, queue)
        self._follow(queue)

    def opened(self, key: Key) -> None:
        """Follow the needs of something that was opened while the process ran."""
        self._admit(key, None)
        self._follow(deque([key]))

    def _follow(self, queue: deque[Key]) -> None:
        while queue:
            key = queue.popleft()
            for name in self._objects[key].needed:
                if name not in self._names:
                    self._take(self._look(key, name), key, queue)

    def _take(self, found: Found, parent: Key, queue: deque[Key]) -> None:
        key = None if found.path is None else self._key_of(found.path)
        if key is None or key not in self._objects:
            key = self._mapped_as(found.name)  # from elsewhere: its needs are followed from there
            if key is None:
                return
        self._names.setdefault(found.name, key)
        if key not in self._parents:
            self.found.setdefault(key, found)
            self._admit(key, parent)
            queue.append(key)

    def _admit(self, key: Key, parent: Key | None) -> None:
        self._parents[key] = parent
        known = self._objects[key]
        self._names.setdefault(known.soname or os.path.basename(known.path), key)

    def _mapped_as(self, name: str) -> Key | None:
        base = os.path.basename(name)
        for key, known in self._objects.items():
            if base in (known.soname, os.path.basename(known.path)):
                return key
        return None

    def _look(self, key: Key, name: str) -> Found:
        known = self._objects[key]
        if "/" in name:
            path = os.path.join(self._setting.directory or "/", self._expanded(known, name)[0])
            return Found(known.path, name, path, "path in DT_NEEDED")
        hits: list[tuple[str, str]] = []
        unsure = ""
        for through, directories in self._order(key):
            if directories is None:
                unsure = unsure or f"{through} cannot be read"
                continue
            for path in self._candidates(directories, name, through):
                at = self._key_of(path)
                if at is not None and at not in {self._key_of(seen) for _, seen in hits}:
                    hits.append((through, path))
        if not hits:
            return Found(known.path, name, None, reason=unsure or "nothing in the search order has it")
        (through, path), rest = hits[0], tuple(path for _, path in hits[1:])
        later = unsure and not through.startswith("RPATH")
        return Found(known.path, name, None if later else path, through, rest, unsure if later else "")

    def _order(self, key: Key) -> list[tuple[str, list[str] | None]]:
        known = self._objects[key]
        order: list[tuple[str, list[str] | None]] = []
        if not known.runpath:
            at: Key | None = key
            while at is not None:
                above = self._objects[at]
                if above.rpath and not above.runpath:
                    order.append((f"RPATH of {above.path}", self._paths(above, above.rpath)))
                at = self._parents.get(at)
        if self._setting.library_path is None:
            order.append(("LD_LIBRARY_PATH", None))
        elif self._setting.library_path:
            order.append(("LD_LIBRARY_PATH", self._paths(known, self._setting.library_path, ";:")))
        if known.runpath:
            order.append((f"RUNPATH of {known.path}", self._paths(known, known.runpath)))
        order.append(("ld.so.cache", None if self._setting.cache is None else []))
        triplet = _TRIPLETS.get(known.machine, "")
        default = [f"{top}/{triplet}" for top in ("/lib", "/usr/lib") if triplet]
        order.append(("default path", [*default, "/lib64", "/usr/lib64", "/lib", "/usr/lib"]))
        return order

    def _paths(self, known: Object, text: str, marks: str = ":") -> list[str]:
        found = []
        for part in re.split(f"[{marks}]", text):
            for path in self._expanded(known, part or "."):
                found.append(os.path.join(self._setting.directory or "/", path))
        return found

    def _expanded(self, known: Object, text: str) -> list[str]:
        """Return a search path with ``$ORIGIN`` and the like put in; ``$LIB`` stands for several."""
        libraries = ("lib64", f"lib/{_TRIPLETS.get(known.machine, '')}", "lib") if "LIB" in text else ("",)

        def put(library: str) -> str:
            values = {"ORIGIN": os.path.dirname(known.path), "LIB": library,
                      "PLATFORM": _PLATFORMS.get(known.machine, "")}  # fmt: skip
            return _TOKEN.sub(lambda match: values[match[1] or match[2]], text)

        return list(dict.fromkeys(put(library) for library in libraries))

    def _candidates(self, directories: Sequence[str], name: str, through: str) -> list[str]:
        if through == "ld.so.cache":
            cached = (self._setting.cache or {}).get(name, ())
            special = [one.path for one in cached if one.special and self._is_mapped(one.path)]
            return [*special, *(one.path for one in cached if not one.special)]
        found = []
        for directory in directories:
            found += [f"{directory}/glibc-hwcaps/{level}/{name}" for level in self._setting.levels]
            found.append(f"{directory}/{name}")
        return found

    def _is_mapped(self, path: str) -> bool:
        key = self._key_of(path)
        return key is not None and key in self._objects
