"""How fast does a packet become one file, and come out of it? (P12)."""

from pathlib import Path
from typing import Final

from measure import Case, CommandFailedError, Sample, alternate, timed
from rows import Goal, Row, against, row
from setting import Setting

PACK: Final = "prov pack"
UNPACK: Final = "prov unpack"
TAR: Final = "tar | zstd -3 -T2"
UNTAR: Final = "zstd -d | tar x"

P12_PACK: Final = Goal(
    f"pack / {TAR}",
    1.2,
    bound="start and imports, then one Python look-up and check for each object on the main thread",
)
P12_UNPACK: Final = Goal(
    f"unpack / {UNTAR}",
    1.2,
    bound="start and imports, then decoding the records and putting rows into the index",
)


def pack_tree(setting: Setting) -> Row:
    """Measure P12: pack and unpack W2; the packs of all rounds must be the same bytes, and verify."""
    tree, store = setting.sources.path, setting.fresh("store")
    timed(setting.prov("seal", tree, "--name", "tree", "--store", store))
    packs: list[Path] = []
    tarred = setting.fresh("tree.tar.zst")

    def pack(_: int) -> Sample:
        packs.append(setting.fresh("tree.pack"))
        return timed(setting.prov("pack", "tree", "-o", packs[-1], "--store", store))

    def tar(_: int) -> Sample:
        return timed(setting.shell("tar -cf - . | zstd -q -f -3 -T2 -o $1", tarred, cwd=tree))

    def unpack(_: int) -> Sample:
        return timed(setting.prov("unpack", packs[0], "--store", setting.fresh("store")))

    def untar(_: int) -> Sample:
        folder = setting.fresh("out")
        folder.mkdir()
        return timed(setting.shell("zstd -q -d -c $1 | tar -xf -", tarred, cwd=folder))

    def restore(_: int) -> Sample:
        return timed(setting.prov("restore", "tree", setting.fresh("out"), "--store", store))

    cases = [Case(PACK, pack), Case(UNPACK, unpack), Case("prov restore", restore)]
    pack(0)
    if setting.has("tar") and setting.has("zstd"):
        tar(0)
        cases += [Case(TAR, tar), Case(UNTAR, untar)]
    timings = alternate(cases, setting.rounds, setting.say)
    if len({path.read_bytes() for path in packs}) != 1:
        raise CommandFailedError("prov pack made different bytes of one packet")
    timed(setting.prov("verify", packs[0]))
    findings = [against(P12_PACK, timings, PACK, TAR), against(P12_UNPACK, timings, UNPACK, UNTAR)]
    facts = {"pack bytes": packs[0].stat().st_size, "input bytes": setting.sources.size_bytes}
    if tarred.exists():
        facts["tar.zst bytes"] = tarred.stat().st_size
    notes = (
        "all packs had the same bytes and verified",
        "unpacking puts the packet into a store and waits for the disk; `restore` writes its files out",
    )
    return row("P12", "pack and unpack a tree of sources (W2)", timings, findings, facts, notes)
