"""What does the first seal of a tree of small files cost in time and in room? (P2, P8)."""

import os
from contextlib import closing
from pathlib import Path
from typing import Final

import lmdb
from measure import Case, Sample, Spread, alternate, timed
from peers import B3SUM_LIST, SHA256SUM_LIST, Borg, Git, Restic
from rows import Finding, Goal, Row, against, row
from setting import Setting

import provstore
from provstore.store import rows as index_rows

BOUND: Final = "reading, two digests, zstd, and one Python object a file for its entry in a record"

SEAL: Final = "prov seal (held)"

P2_B3SUM: Final = Goal("first seal / b3sum list", 2.1, bound=BOUND)
P2_RESTIC: Final = Goal("first seal / restic backup", 0.40, bound=BOUND)
P2_GIT: Final = Goal("first seal / git add and commit", 0.19, bound=BOUND)

P8_STORED: Final = Goal("store / input", 0.17, bound="zstd level 3 in frames of 1 MiB, and the index")
P8_INDEX: Final = Goal(
    "index / file",
    200,
    "B",
    bound="two digests are 64 bytes that do not compress, in the record and in the row of each object",
)
P8_FILES: Final = Goal("files created", 10, "files")


def first_seal(setting: Setting) -> Row:
    """Measure P2: seal W2 into a new store, beside lists of digests and other stores."""
    tree = setting.sources.path

    def ours(_: int) -> Sample:
        return timed(setting.prov("seal", tree, "--name", "tree", "--store", setting.fresh("store")))

    def piped(name: str, text: str) -> Case:
        return Case(name, lambda _: timed(setting.shell(text, setting.fresh("out"), cwd=tree)))

    def stored(kind: type[Git] | type[Restic] | type[Borg], name: str) -> Case:
        def run(_: int) -> Sample:
            peer = kind(setting, tree, setting.fresh(name.split()[0]))
            peer.make()
            return timed(peer.add())

        return Case(name, run)

    cases = [Case(SEAL, ours)]
    if setting.has("b3sum"):
        cases.append(piped("b3sum list", B3SUM_LIST))
    if setting.has("sha256sum"):
        cases.append(piped("sha256sum list", SHA256SUM_LIST))
    if setting.has("tar") and setting.has("zstd"):
        cases.append(piped("tar | zstd -3 -T2", "tar -cf - . | zstd -q -3 -T2 -o $1"))
    for kind, name in ((Restic, "restic backup"), (Borg, "borg create"), (Git, "git add and commit")):
        if setting.has(name.split()[0]):
            cases.append(stored(kind, name))
    timings = alternate(cases, setting.rounds, setting.say)
    findings = [
        against(P2_B3SUM, timings, SEAL, "b3sum list"),
        against(P2_RESTIC, timings, SEAL, "restic backup"),
        against(P2_GIT, timings, SEAL, "git add and commit"),
    ]
    notes = ("ours waits for the disk before it returns; git's loose objects, tar and the lists do not",)
    files = setting.sources.files
    facts = {f"{case} us/file": timings.time(case, 1e6 / files).median for case in timings.samples}
    return row("P2", "first seal of a tree of sources (W2), contents held", timings, findings, facts, notes)


def store_size(setting: Setting) -> Row:
    """Measure P8: what a store of W2 takes up after its first seal."""
    place = setting.fresh("store")
    tree = setting.sources

    def once(_: int) -> Sample:
        return timed(setting.prov("seal", tree.path, "--name", "tree", "--store", place))

    timings = alternate([Case(SEAL, once)], 1, setting.say)
    files = [path for path in place.rglob("*") if path.is_file()]
    on_disk = sum(os.stat(path).st_blocks * 512 for path in files)
    contents = _content_bytes(place)
    index = on_disk - contents
    databases = _databases(place)
    cache = databases.get("stat_cache", 0)
    facts = {
        "input bytes": tree.size_bytes,
        "store bytes on disk": on_disk,
        "contents, compressed bytes": contents,
        "index bytes": index,
        "index without its stat cache, bytes/file": (index - cache) / tree.files,
        **{f"index database {name} bytes": size for name, size in databases.items()},
    }
    with closing(provstore.open_store(place, writable=False)) as store:
        facts["objects"] = store.stats().objects
        facts["records"] = store.stats().records
    findings = [
        Finding(P8_STORED, _one(on_disk / tree.size_bytes)),
        Finding(P8_INDEX, _one(index / tree.files)),
        Finding(P8_FILES, _one(len(files))),
    ]
    notes = (
        "index: everything on disk but the compressed contents; records, stat cache and look-ups are in it",
        "counted on one store: sizes do not vary",
    )
    return row("P8", "room that a store of W2 takes", timings, findings, facts, notes)


def _one(value: float) -> Spread:
    return Spread(value, value, value)


def _content_bytes(place: Path) -> int:
    """Return the stored bytes of contents: the frames that hold objects, and blob files."""
    total = 0
    with lmdb.open(os.fspath(place), readonly=True, max_dbs=32, create=False) as env:
        objects, frames = env.open_db(b"objects", create=False), env.open_db(b"frames", create=False)
        with env.begin() as txn:
            numbers = set()
            for _, found in txn.cursor(objects):
                if index_rows.is_blob(found):
                    total += index_rows.blob_stored_bytes(found)
                elif index_rows.object_info(found).placement == "inline":
                    numbers.add(index_rows.object_place(found).frame)
            for number in numbers:
                total += len(txn.get(index_rows.number_key(number), db=frames) or b"")
    return total


def _databases(place: Path) -> dict[str, int]:
    """Return the bytes of the pages of each database of the index."""
    sizes: dict[str, int] = {}
    with lmdb.open(os.fspath(place), readonly=True, max_dbs=32, create=False) as env, env.begin() as txn:
        names = [bytes(name) for name, _ in txn.cursor()]
        for name in names:
            stat = txn.stat(env.open_db(name, txn, create=False))
            pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
            sizes[name.decode("ascii", "replace")] = pages * stat["psize"]
    return sizes
