"""Make the specimen packs that are not there yet. One that is there is never written again.

    python stores/packs/make.py            # writes missing packs and their part of index.toml
    python stores/packs/make.py --check    # says which packs would be made otherwise today; writes nothing

The good ones come from ``sound.py``, the others from ``damaged.py``. ``--check`` may name packs when another
version of Zstandard is installed than the one that the index states: stored forms are not part of any id.
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import damaged
import sound
import zstandard

from provstore.ids import RawId

FOLDER: Final = Path(__file__).parent
INDEX: Final = FOLDER / "index.toml"


class Specimen(NamedTuple):
    """One pack to be made.

    Attributes:
        make: returns the bytes of the pack and the packet that it is about.
        shows: what a reader learns from it.
        outcome: verdict of ``prov verify``, or ``error`` when it cannot even look.
        code: of the worst check, or of the error.
        root: what picks the packet when the pack holds several.
    """

    make: Callable[[], tuple[bytes, RawId]]
    shows: str
    outcome: str
    code: str
    root: str = ""


SPECIMENS: Final = {
    "hello": Specimen(sound.hello, "one file in a plain directory", "PASS", "ok"),
    "unicode-and-hostile-names": Specimen(
        lambda: sound.sealed(sound.hostile, "hostile"),
        "names that are not UTF-8, hold line feeds, escape sequences, direction marks, leading dashes",
        "PASS",
        "ok",
    ),
    "executable-symlink-emptydir": Specimen(
        lambda: sound.sealed(sound.shapes, "shapes"),
        "an executable, links that dangle and loop, an empty directory",
        "PASS",
        "ok",
    ),
    "big-directory": Specimen(
        lambda: sound.sealed(sound.many, "big"), "5,000 names, split by their hashes", "PASS", "ok"
    ),
    "large-object": Specimen(
        lambda: sound.sealed(lambda root: sound.write(root / "zeros", bytes(5 << 20)), "large"),
        "5 MiB of zeros, in frames of their own",
        "PASS",
        "ok",
    ),
    "declared-and-external": Specimen(
        sound.spec_pack,
        "bytes that are held, that are elsewhere, and that nobody here has seen",
        "INCOMPLETE",
        "not-held",
    ),
    "parents": Specimen(
        sound.parents, "three generations of one packet, all in one pack", "PASS", "ok", ":third"
    ),
    "flipped-blob": Specimen(damaged.flipped_blob, "one byte of the content differs", "FAIL", "damaged"),
    "flipped-record": Specimen(damaged.flipped_record, "a tree with another name in it", "FAIL", "damaged"),
    "missing-blob": Specimen(
        damaged.missing_blob, "the content is not there at all", "FAIL", "missing-object"
    ),
    "path-escape-name": Specimen(
        damaged.escaping_name, "a tree with a member called ..", "FAIL", "unsafe-path"
    ),
    "path-escape-role": Specimen(damaged.escaping_role, "a packet with the role ../x", "FAIL", "unsafe-path"),
    "duplicate-role": Specimen(
        damaged.duplicate_role, "a packet with one role twice", "FAIL", "not-canonical"
    ),
    "wrong-shape": Specimen(
        damaged.wrong_shape, "one file under an index that should not be there", "FAIL", "tree-shape"
    ),
    "lying-index-sha256": Specimen(
        damaged.lying_sha256, "the index states another SHA-256 than the content has", "FAIL", "damaged"
    ),
    "lying-index-size": Specimen(damaged.lying_size, "the index states a terabyte", "FAIL", "damaged"),
    "oversized-frame": Specimen(damaged.oversized_frame, "a frame that states 4 GiB", "FAIL", "damaged"),
    "newer-format": Specimen(damaged.newer_format, "a pack of a format to come", "error", "newer-format"),
    "cut-short": Specimen(damaged.cut_short, "a download that did not finish", "error", "bad-pack"),
}

HEAD: Final = """\
# What `prov verify` must say of each pack, for ever. Written by make.py; rows are only added.
#
# verify: what to give to the command, below this folder. outcome: the verdict, or "error" when it could not
# look. code: that of a check with this outcome, or of the error. zstd: the version of Zstandard that made it.
"""


def row_of(name: str, specimen: Specimen, data: bytes, packet: RawId) -> str:
    """Return the part of the index that describes one pack."""
    rows = {
        "name": name,
        "file": f"v1/{name}.pack",
        "verify": f"v1/{name}.pack{specimen.root}",
        "packet": packet.hex(),
        "shows": specimen.shows,
        "outcome": specimen.outcome,
        "code": specimen.code,
        "sha256": hashlib.sha256(data).hexdigest(),
        "zstd": ".".join(map(str, zstandard.ZSTD_VERSION)),
    }
    return "\n[[pack]]\n" + "".join(f'{key} = "{value}"\n' for key, value in rows.items())


def main(arguments: list[str]) -> int:
    """Write what is missing, or compare; return the exit code."""
    differing = []
    for name, specimen in SPECIMENS.items():
        path = FOLDER / "v1" / f"{name}.pack"
        data, packet = specimen.make()
        if path.exists():
            differing += [] if path.read_bytes() == data else [name]
        elif "--check" in arguments:
            differing.append(name)
        else:
            with path.open("xb") as file:
                file.write(data)
            text = INDEX.read_text() if INDEX.exists() else HEAD
            INDEX.write_text(text + row_of(name, specimen, data, packet))
    for name in differing:
        print(f"{name}: the pack that is there differs from what would be made; left alone", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
