"""What the figures were measured on, without its name or any path of it."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

from setting import Setting

PEERS: Final = {
    "b3sum": ("b3sum", "--version"),
    "sha256sum": ("sha256sum", "--version"),
    "git": ("git", "--version"),
    "restic": ("restic", "version"),
    "borg": ("borg", "--version"),
    "tar": ("tar", "--version"),
    "zstd": ("zstd", "--version"),
    "jq": ("jq", "--version"),
}
"""Peers and what prints their version."""

HASH_INSTRUCTIONS: Final = frozenset({"sha_ni", "sha2", "avx2", "avx512f", "avx512vl", "asimd"})
"""Which of these a processor has decides how far BLAKE3 and SHA-256 are apart."""

LIBRARIES: Final = ("provstore", "blake3", "lmdb", "msgspec", "zstandard", "typer")


def kind() -> str:
    """Return the kind of machine, for the name of a result file."""
    return f"{platform.system()}-{platform.machine()}-{os.cpu_count()}cpu".lower()


def described(setting: Setting) -> dict[str, str]:
    """Return processor, memory, file system, kernel and versions."""
    found = {
        "processor": _processor("model name"),
        "instructions": " ".join(sorted(HASH_INSTRUCTIONS & set(_processor("flags", "Features").split()))),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "file system": _file_system(setting.options.work),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    found |= {name: version(name) for name in LIBRARIES}
    found |= {name: _version(command) if setting.has(name) else "absent" for name, command in PEERS.items()}
    return found


def absent(setting: Setting) -> list[str]:
    """Return the peers that are not installed or not wanted."""
    return [name for name in PEERS if not setting.has(name)]


def _processor(*names: str) -> str:
    """Return what the system says of the first processor under one of the names."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(names):
                    return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _file_system(place: Path) -> str:
    """Return the type of the file system that a directory is on."""
    path = os.path.realpath(place)
    best = ("", "unknown")
    try:
        with open("/proc/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                _, mount, kind_of, *_ = line.split()
                inside = path == mount or path.startswith(mount.rstrip("/") + "/")
                if inside and len(mount) >= len(best[0]):
                    best = (mount, kind_of)
    except OSError:
        pass
    return best[1]


def _version(command: tuple[str, ...]) -> str:
    if shutil.which(command[0]) is None:
        return "absent"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).splitlines()
    words = lines[0].split() if lines else []
    numbers = [word.strip("v,*()") for word in words if any(c.isdigit() for c in word) and "." in word]
    return numbers[0] if numbers else "unknown"
