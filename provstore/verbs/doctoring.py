"""The health of an installation and of a store."""

import importlib.metadata
import os
import platform
import shutil

from provstore import ids
from provstore.errors import ProvError
from provstore.paths import show
from provstore.reports import Doctored, DoctorReport, Outcome, Verdict
from provstore.store.opening import open_store

_LIBRARIES = ("blake3", "lmdb", "msgspec", "zstandard", "typer", "pyelftools", "platformdirs")

_EXTRAS = {"huggingface_hub": "models from the Hub: pip install 'provstore[hub]'"}

_PROGRAMS = {"git": "source trees and bundles"}

_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph", "9p", "fuse.sshfs", "afs"})


def doctor(store_path: str | None = None) -> DoctorReport:
    """Look at library versions, hash functions, outside programs and a store; change nothing.

    Args:
        store_path: the store to look at, or None.
    """
    checks = [_line("python", "PASS", f"{platform.python_version()} on {platform.system()}"), _self_test()]
    checks += [_library(name) for name in _LIBRARIES]
    for name, use in _EXTRAS.items():
        version = _version(name)
        checks.append(
            _line(f"extra {name}", "PASS" if version else "NOT-APPLICABLE", version or f"absent; {use}")
        )
    for name, use in _PROGRAMS.items():
        found = shutil.which(name)
        checks.append(
            _line(f"program {name}", "PASS" if found else "WARN", found or f"absent; needed for {use}")
        )
    if store_path is not None:
        checks += _store(store_path)
    outcomes = {check.outcome for check in checks}
    verdict: Verdict = "FAIL" if "FAIL" in outcomes else "INCOMPLETE" if "UNKNOWN" in outcomes else "PASS"
    return DoctorReport(outcome=verdict, checks=tuple(checks))


def _line(name: str, outcome: Outcome, found: str) -> Doctored:
    return Doctored(name=name, outcome=outcome, found=found)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _library(name: str) -> Doctored:
    version = _version(name)
    return _line(name, "PASS" if version else "FAIL", version or "not installed")


def _self_test() -> Doctored:
    try:
        ids.self_test()
    except ProvError as error:
        return _line("hash self-test", "FAIL", error.message)
    return _line("hash self-test", "PASS", "BLAKE3 and SHA-256 give their known answers")


def _store(path: str) -> list[Doctored]:
    checks = []
    kind = filesystem_type(path)
    if kind is None:
        checks.append(_line("filesystem", "UNKNOWN", "its type cannot be told here"))
    elif kind in _NETWORK:
        text = f"{kind}: locks may not hold between hosts; keep the index on a local disk"
        checks.append(_line("filesystem", "WARN", text))
    else:
        checks.append(_line("filesystem", "PASS", kind))
    try:
        store = open_store(path, writable=False)
    except ProvError as error:
        return [*checks, _line("store", "FAIL", f"{error.code}: {error.message}")]
    try:
        found = store.stats()
    finally:
        store.close()
    text = f"{store.where}: {found.objects} objects, {found.records} records, {found.refs} refs"
    checks.append(_line("store", "PASS", text))
    if found.stale_readers:
        checks.append(_line("readers", "WARN", f"{found.stale_readers} of dead processes were cleared"))
    return checks


def filesystem_type(path: str) -> str | None:
    """Return the type of the file system that a path lies on, as the kernel's mount table names it."""
    best: tuple[int, str] | None = None
    target = os.path.realpath(path)
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                fields = line.split()
                if len(fields) < 3:
                    continue
                point = fields[1].replace("\\040", " ")
                if target == point or target.startswith(point.rstrip("/") + "/"):
                    best = max(best or (0, ""), (len(point), fields[2]))
    except OSError:
        return None
    return show(best[1]) if best is not None else None
