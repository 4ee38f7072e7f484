"""Write test vectors that are not there yet. What is there is never written again: vectors are append-only.

    python schemas/vectors/make.py            # writes missing files and their rows in INDEX.json
    python schemas/vectors/make.py --check    # compares, writes nothing; exit code 1 if a file would differ

Expected values come from ``reference.py``, which shares no code with the library. A new set of vectors is a
new function and a new file name here; to add cases to an old set, add a file beside it.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import accepted_ledgers
import accepted_records
import accepted_trees
import rejected_records
import rejected_text
from reference import Json

FOLDER: Final = Path(__file__).parent
INDEX: Final = FOLDER / "INDEX.json"

SETS: Final[dict[str, Callable[[], Json]]] = {
    "objects.json": accepted_records.objects,
    "records.json": accepted_records.records,
    "trees.json": accepted_trees.trees,
    "splits.json": accepted_trees.splits,
    "packets.json": accepted_trees.packets,
    "git.json": accepted_trees.git,
    "ledgers.json": accepted_ledgers.ledgers,
    "proofs.json": accepted_trees.proofs,
    "checksums.json": rejected_text.checksums,
    "paths.json": rejected_text.paths,
    "bad/records.json": rejected_records.records,
    "bad/packets.json": rejected_records.packets,
    "bad/specs.json": rejected_text.specs,
    "bad/digests.json": rejected_text.digests,
    "bad/frames.json": rejected_text.frames,
}


def text_of(document: Json) -> bytes:
    """Return the bytes of a vector file: plain ASCII, so that no editor changes what they say."""
    return (json.dumps(document, indent=1, ensure_ascii=True) + "\n").encode()


def main(arguments: list[str]) -> int:
    """Write what is missing, or compare; return the exit code."""
    index: dict[str, Any] = json.loads(INDEX.read_bytes()) if INDEX.exists() else {}
    differing = []
    for name, make in SETS.items():
        path, data = FOLDER / name, text_of(make())
        if path.exists():
            differing += [] if path.read_bytes() == data else [name]
        elif "--check" in arguments:
            differing.append(name)
        else:
            with path.open("xb") as file:
                file.write(data)
        index.setdefault(name, hashlib.sha256(path.read_bytes() if path.exists() else data).hexdigest())
    for name in differing:
        print(f"{name}: what is there differs from what would be made; it was left alone", file=sys.stderr)
    if "--check" not in arguments:
        INDEX.write_bytes(text_of(dict(sorted(index.items()))))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
