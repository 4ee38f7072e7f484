"""Seeded mutations of known inputs, for where no coverage guides: ``python -m fuzz.mutate TARGET SEED COUNT``.

Every input runs in this process under a limit of address space, and each under a limit of processor time. Each
finding is printed as one line of JSON with the input in hex; the exit code is 1 when there was one.
"""

import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fuzz.contract import MAX_INPUT_SECONDS, Target, TooSlowError, hold, limit_memory, place_of, within
from fuzz.targets import TARGETS

FOUND: Final = Path(__file__).parent / "found"

_TOKENS: Final = (
    *(b'"', b"\\", b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b",", b":", b"null", b"-0", b"1e999"),
    *(
        b"9007199254740993",
        b"\0",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\xef\xbb\xbf",
        b"..",
        b"../",
        b"/",
        b"@0",
        b"#0",
    ),
    *(b"\x1b[2J", "\u202e".encode(), b"  ", b" = ", b"[[entry]]\n", b"0" * 64, b"a" * 300, b"(" * 50),
    *(bytes(8), b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x28\xb5\x2f\xfd"),
)


def found_in(name: str) -> list[bytes]:
    """Return the inputs that were found in a target once."""
    return [path.read_bytes() for path in sorted(FOUND.joinpath(name).glob("*"))]


def mutated(random_: random.Random, corpus: Sequence[bytes], max_bytes: int) -> bytes:
    """Return one input with a few changes, or a splice of two."""
    data = bytearray(random_.choice(corpus))
    if random_.random() < 0.15:
        other = random_.choice(corpus)
        data = data[: random_.randint(0, len(data))] + bytearray(other[random_.randint(0, len(other)) :])
    for _ in range(random_.choice((1, 1, 1, 2, 3, 5, 8))):
        _change(random_, data)
    return bytes(data[:max_bytes])


def _change(random_: random.Random, data: bytearray) -> None:
    at = random_.randint(0, len(data))
    length = random_.choice((1, 1, 2, 4, 8, 32))
    kind = random_.randrange(8)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << random_.randrange(8)
    elif kind == 1 and at < len(data):
        data[at] = random_.randrange(256)
    elif kind == 2:
        del data[at : at + length]
    elif kind == 3:
        data[at:at] = data[at : at + length] * random_.choice((1, 2, 50))
    elif kind == 4:
        data[at:at] = random_.choice(_TOKENS)
    elif kind == 5:
        data[at : at + length] = random_.choice(_TOKENS)
    elif kind == 6:
        number = random_.choice((0, 1, 127, 128, 255, 256, 65535, 1 << 24, (1 << 31) - 1, (1 << 32) - 1))
        data[at : at + 4] = number.to_bytes(4, random_.choice(("little", "big")))
    elif len(data) > 1:
        other = random_.randrange(len(data))
        part = data[other : other + length]
        data[at : at + len(part)] = part


def inputs(name: str, target: Target, seed: int, count: int) -> Iterator[bytes]:
    """Yield what was found before, the seeds, and so many mutations of both; the same for the same seed."""
    corpus = found_in(name) + target.seeds()
    yield from corpus
    random_ = random.Random(f"{name} {seed}")
    small = [data for data in corpus if len(data) <= target.max_bytes] or [b""]
    for _ in range(count):
        yield mutated(random_, small, target.max_bytes)


def findings(target: Target, tried: Iterator[bytes]) -> Iterator[tuple[str, bytes]]:
    """Run inputs; yield the place and the input of every broken promise."""
    for data in tried:
        try:
            with within(MAX_INPUT_SECONDS):
                hold(target, data)
        except TooSlowError as error:
            yield place_of(error), data
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what we look for)
            yield place_of(error), data


def main(arguments: Sequence[str]) -> int:
    """Run one target; return 1 if a promise was broken."""
    name, seed, count = arguments[0], int(arguments[1]), int(arguments[2])
    target = TARGETS[name]
    seen: dict[str, bytes] = {}
    tried = list(inputs(name, target, seed, count))
    limit_memory()
    for place, data in findings(target, iter(tried)):
        if place not in seen or len(data) < len(seen[place]):
            seen[place] = data
    for place, data in seen.items():
        sys.stdout.write(json.dumps({"place": place, "input_hex": data.hex()}) + "\n")
    sys.stdout.write(json.dumps({"target": name, "inputs": len(tried), "findings": len(seen)}) + "\n")
    return int(bool(seen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
