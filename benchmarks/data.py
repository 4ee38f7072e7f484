"""The bytes that are measured: a model, a tree of sources, logs. Made once, kept, the same on every machine.

The tree is of real sources: wheels of big packages, fetched by name with pip and unpacked, never installed
or run. Where the index cannot be reached a seeded tree of the same sizes takes its place, and the results
say so.
"""

import itertools
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from blake3 import blake3

PACKAGES: Final = (
    "ansible==12.3.0",
    "django==5.2.19",
    "mypy==2.4.1",
    "pylint==4.1.4",
    "sphinx==9.0.4",
    "sympy==1.14.0",
    "transformers==5.24.0",
)
"""Pinned, and only wheels without compiled parts, so that the tree is the same everywhere."""

SEED: Final = 20261130
SHARDS: Final = 4
SHARD_BYTES: Final = 512 << 20
LOG_BYTES: Final = 300 << 20
FETCH_TIMEOUT_S: Final = 600

_TREE_FILES: Final = 37_402
_FILES_PER_FOLDER: Final = 4.5
_DUPLICATES: Final = 0.05
_SIZES: Final = (
    (0.0, 0),
    (0.04, 1),
    (0.13, 256),
    (0.22, 1024),
    (0.55, 4096),
    (0.83, 16_384),
    (0.977, 65_536),
    (0.998, 262_144),
    (1.0, 1_048_576),
)
"""Share of files of at most so many bytes, in trees of sources."""


Writer = Callable[[bytes], object]
Chance = Callable[[], float]


class Tree(NamedTuple):
    """A directory of files.

    Attributes:
        path: where it is.
        made_of: what it was made from, for the results.
        files: number of files.
        size_bytes: sum of their sizes.
    """

    path: Path
    made_of: str
    files: int
    size_bytes: int


def files_of(root: Path) -> Iterator[Path]:
    """Yield every regular file below a directory, in a fixed order."""
    for base, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(base, name)
            if path.is_file() and not path.is_symlink():
                yield path


def described(path: Path, made_of: str) -> Tree:
    """Read every file of a tree, which also warms the cache, and return what it is."""
    count = size = 0
    for file in files_of(path):
        with open(file, "rb", buffering=0) as source:
            while part := source.read(1 << 20):
                size += len(part)
        count += 1
    return Tree(path, made_of, count, size)


def model(place: Path, scale: float) -> Tree:
    """Return a model of four safetensors files of random bytes, of 512 MiB each at scale 1."""
    size = max(64 << 10, int(SHARD_BYTES * scale))
    if not place.is_dir():
        part = _partial(place)
        for number in range(SHARDS):
            header = _safetensors_header(size)
            with open(part / f"model-{number + 1}-of-{SHARDS}.safetensors", "wb") as file:
                file.write(header)
                _random_bytes(file.write, f"{SEED} shard {number}", size - len(header))
        part.rename(place)
    return described(place, f"{SHARDS} files of {size / 2**20:g} MiB of random bytes")


def _safetensors_header(size: int) -> bytes:
    """Return length and header of a file of ``size`` bytes that holds one tensor of bytes."""
    room = 128
    data = size - 8 - room
    text = f'{{"weight":{{"dtype":"U8","shape":[{data}],"data_offsets":[0,{data}]}}}}'
    return room.to_bytes(8, "little") + text.ljust(room).encode()


def _random_bytes(write: Writer, name: str, count: int) -> None:
    stream = blake3(name.encode())
    for start in range(0, count, 1 << 20):
        write(stream.digest(min(1 << 20, count - start), seek=start))


def sources(place: Path, fraction: float, downloads: Path, *, synthetic: bool) -> Tree:
    """Return the tree of sources: unpacked packages, or a synthetic tree where they cannot be had.

    Args:
        place: directory for it; the two forms get names of their own.
        fraction: part of its files to take, evenly spread.
        downloads: where fetched packages are kept.
        synthetic: do not try to fetch anything.
    """
    reason = "as asked for"
    real = place.with_name(place.name + "-packages")
    if not synthetic:
        try:
            if not real.is_dir():
                _unpack(_fetch(downloads), real, fraction)
            return described(real, "wheels of " + ", ".join(PACKAGES))
        except (OSError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
            reason = f"the packages could not be fetched ({type(error).__name__})"
    made = place.with_name(place.name + "-synthetic")
    if not made.is_dir():
        _synthesize(made, max(60, round(_TREE_FILES * fraction)))
    return described(made, f"a synthetic tree, seed {SEED}, {reason}")


def _fetch(downloads: Path) -> list[Path]:
    """Return the wheels, fetched with pip unless they are there."""
    downloads.mkdir(parents=True, exist_ok=True)
    found = sorted(downloads.glob("*.whl"))
    if len(found) == len(PACKAGES):
        return found
    options = ("--quiet", "--no-deps", "--only-binary=:all:", "--platform=any", "--python-version=3.11")
    patience = ("--retries=1", "--timeout=30", "--disable-pip-version-check")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            *options,
            *patience,
            "--dest",
            os.fspath(downloads),
            *PACKAGES,
        ],
        check=True,
        timeout=FETCH_TIMEOUT_S,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return sorted(downloads.glob("*.whl"))


def _unpack(wheels: list[Path], place: Path, fraction: float) -> None:
    part = _partial(place)
    taken = itertools.count()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for member in sorted(archive.namelist()):
                if not member.endswith("/") and _chosen(next(taken), fraction):
                    archive.extract(member, part / wheel.name.split("-")[0])
    part.rename(place)


def _chosen(number: int, fraction: float) -> bool:
    """Take every so many-th file."""
    return int((number + 1) * fraction) > int(number * fraction)


def _synthesize(place: Path, files: int) -> None:
    chance = random.Random(SEED)
    words = [_word(chance) for _ in range(4000)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    part = _partial(place)
    folders = [part]
    before: list[bytes] = [b"shared\n"]
    for number in range(files):
        if len(folders) < files / _FILES_PER_FOLDER and chance.random() < 1 / _FILES_PER_FOLDER:
            folders.append(chance.choice(folders[-40:]) / f"{words[number % len(words)]}{len(folders)}")
            folders[-1].mkdir(parents=True)
        data = chance.choice(before) if chance.random() < _DUPLICATES else _text(chance, words, weights)
        if len(before) < 200:
            before.append(data)
        (chance.choice(folders[-20:]) / f"{chance.choice(words)}_{number}.py").write_bytes(data)
    part.rename(place)


def _word(chance: random.Random) -> str:
    return "".join(chance.choice("aeiourstlnmcdpbgfhvk") for _ in range(chance.randint(2, 11)))


def _text(chance: random.Random, words: list[str], weights: list[float]) -> bytes:
    """Return one file: lines of frequent and rare words, as long as a quantile of real sizes says."""
    at = chance.random()
    above = next(i for i, (share, _) in enumerate(_SIZES) if share >= at and i)
    (low, small), (high, large) = _SIZES[above - 1], _SIZES[above]
    size = round(small + (large - small) * ((at - low) / (high - low)) ** 1.5)
    lines: list[str] = []
    length = 0
    while length < size:
        line = "    " * chance.randint(0, 4) + " ".join(chance.choices(words, cum_weights=weights, k=7))
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines).encode()[:size]


def logs(place: Path, scale: float) -> Tree:
    """Return logs with random figures, 300 MiB at scale 1: lines of a benchmark and of a server."""
    if not place.is_dir():
        part = _partial(place)
        for name, line in (("bench.jsonl", _json_line), ("server.log", _server_line)):
            chance = random.Random(f"{SEED} {name}")
            left = max(4096, int(LOG_BYTES * scale / 2))
            with open(part / name, "w", encoding="ascii", newline="\n") as file:
                for number in itertools.count():
                    left -= file.write(line(number, chance.random))
                    if left <= 0:
                        break
        part.rename(place)
    return described(place, f"benchmark JSON lines and server lines, seed {SEED}")


def _json_line(number: int, chance: Chance) -> str:
    return (
        f'{{"step":{number},"request":"r-{int(chance() * 1e9):09d}","ttft_s":{chance():.6f},'
        f'"tokens":{int(chance() * 4096)},"decode_tps":{100 + chance() * 30:.4f},"ok":true}}\n'
    )


def _server_line(number: int, chance: Chance) -> str:
    clock = f"{number // 36000 % 24:02d}:{number // 600 % 60:02d}:{number // 10 % 60:02d}.{number % 10}"
    place = f"engine.py:{200 + int(chance() * 9)}"
    return (
        f"INFO {clock} {place}] throughput: prompt {chance() * 4000:.1f} tokens/s, "
        f"generation {chance() * 130:.1f} tokens/s, running {int(chance() * 8)}, "
        f"cache usage {chance() * 100:.1f}%\n"
    )


def edit(tree: Path, token: str, count: int) -> None:
    """Append a line to ``count`` files that lie evenly over a tree."""
    everything = list(files_of(tree))
    step = max(1, len(everything) // count)
    for path in everything[step // 2 :: step][:count]:
        with open(path, "a", encoding="ascii") as file:
            file.write(f"\n# {token}\n")


def _partial(place: Path) -> Path:
    """Return a new empty directory beside ``place``, to be renamed when it is whole."""
    part = place.with_name(f"{place.name}.{os.getpid()}.partial")
    part.mkdir(parents=True)
    return part
