"""Does a store of a million objects still open, look up and walk at once? (P9)."""

import random
from contextlib import closing
from pathlib import Path
from typing import Final

import data
import packets
from measure import Case, CommandFailedError, Sample, alternate, call
from rows import Finding, Goal, Row, row
from setting import ENTRIES, Setting

import provstore
from provstore.graph.nodes import Node
from provstore.graph.questions import walking
from provstore.ids import Digests, RawId
from provstore.store import objects
from provstore.verbs.closing import Closure
from provstore.verbs.refreshing import refresh

RELATIONS: Final = 5
"""Packets that hold each object, and so relations for each object."""

PACKET: Final = 1000
"""Files of a packet."""

LOOKUPS: Final = 20_000
USES: Final = 200
REPEATS: Final = 5
BATCH: Final = 100_000

OPEN: Final = "open"
LOOKUP: Final = "lookup"
FIRST: Final = "lookup, first touch of its page"
BY_SHA256: Final = "lookup by SHA-256 prefix"
CLOSURE: Final = "closure of a packet"
USED_BY: Final = "used-by of an object"

P9_OPEN: Final = Goal("open", 1.0, "ms", bound="mapping the index and opening its databases")
P9_LOOKUP: Final = Goal("lookup of an object", 5.0, "us", bound="one read transaction, and Python around it")
P9_CLOSURE: Final = Goal(
    f"closure of a packet of {PACKET} entries",
    10.0,
    "ms",
    bound="decoding and checking each record",
)
P9_USED_BY: Final = Goal(
    "used-by of an object", 1.0, "ms", bound="one look at the index for each of the four levels above a file"
)


def many_objects(setting: Setting) -> Row:
    """Measure P9: a store of 10^6 objects in packets of 1,000, each object in five of them."""
    count = max(PACKET, int(ENTRIES * setting.fraction) // PACKET * PACKET)
    store = setting.fresh("store")
    setting.say(f"making a store of {count} objects")
    ids, packet_ids = _make(store, count)
    setting.say("making the index of its graph")
    with closing(provstore.open_store(store)) as target:
        refresh(target).graph.close()
    chance = random.Random(data.SEED)
    timings = alternate(_cases(store, ids, packet_ids, chance), setting.rounds * REPEATS, setting.say)
    findings = [
        Finding(P9_OPEN, timings.time(OPEN, 1e3)),
        Finding(P9_LOOKUP, timings.time(LOOKUP, 1e6)),
        Finding(P9_CLOSURE, timings.time(CLOSURE, 1e3)),
        Finding(P9_USED_BY, timings.time(USED_BY, 1e3)),
    ]
    size = (store / "data.mdb").stat().st_size
    facts = {"objects": count, "relations": len(packet_ids) * PACKET, "index bytes/object": size / count}
    notes = (
        "made through the library; ids in random order, each packet walked for the first time in its reader",
        "one lookup is the mean of 20,000 random ones in a row; the goal is for pages already mapped",
    )
    return row("P9", "a store of a million objects", timings, findings, facts, notes)


def _make(store: Path, count: int) -> tuple[list[Digests], list[RawId]]:
    known: list[Digests] = []
    made: list[RawId] = []
    with closing(provstore.init_store(store)) as target:
        for first in range(0, count, BATCH):
            with target.stage() as stage:
                known += packets.add_objects(stage, first, min(BATCH, count - first))
                stage.commit()
        for turn in range(RELATIONS):
            with target.stage() as stage:
                for first in range(0, count, PACKET):
                    # Another stride in each turn, so that no two packets hold the same objects.
                    stride = (1, 7, 11, 13, 17)[turn]
                    tree = packets.add_nested(stage, PACKET, lambda n: known[(first + n) * stride % count])  # noqa: B023
                    made.append(packets.add_packet(stage, f"packet-{turn}-{first}", tree, PACKET))
                stage.commit()
    return known, made


def _cases(store: Path, ids: list[Digests], made: list[RawId], chance: random.Random) -> list[Case]:
    def open_once() -> None:
        provstore.open_store(store, writable=False).close()

    def lookup(warm: bool) -> Sample:
        wanted = [found.blake3 for found in chance.choices(ids, k=LOOKUPS)]
        with closing(provstore.open_store(store, writable=False)) as reader:
            info = reader.info

            def run() -> None:
                for id in wanted:
                    if info(id) is None:
                        raise CommandFailedError("an object is not in the store")

            if warm:
                run()
            sample = call(run)
        return sample._replace(seconds=sample.seconds / LOOKUPS, cpu_seconds=sample.cpu_seconds / LOOKUPS)

    def by_sha256(_: int) -> Sample:
        prefix = chance.choice(ids).sha256.hex()[:16]
        with closing(provstore.open_store(store, writable=False)) as reader:
            return call(lambda: reader.match("sha256", prefix))

    def closure(_: int) -> Sample:
        packet = chance.choice(made)
        with closing(provstore.open_store(store, writable=False)) as reader:

            def run() -> None:
                found = Closure(objects.fetcher(reader))
                for _ in found.packet(packet):
                    pass
                if len(found.objects) != PACKET:
                    raise CommandFailedError(f"a closure has {len(found.objects)} objects, not {PACKET}")

            return call(run)

    def used_by(_: int) -> Sample:
        wanted = [Node("object", found.sha256.hex()) for found in chance.choices(ids, k=USES)]
        with (
            closing(provstore.open_store(store, writable=False)) as reader,
            closing(refresh(reader).graph) as graph,
        ):

            def run() -> None:
                for node in wanted:
                    number = graph.number(node)
                    packets_of = number is not None and [
                        use for use in walking.uses(graph, number) if use.node.kind == "packet"
                    ]
                    if not packets_of:
                        raise CommandFailedError("an object is in no packet")

            sample = call(run)
        return sample._replace(seconds=sample.seconds / USES, cpu_seconds=sample.cpu_seconds / USES)

    return [
        Case(OPEN, lambda _: call(open_once, 20)),
        Case(LOOKUP, lambda _: lookup(warm=True)),
        Case(FIRST, lambda _: lookup(warm=False)),
        Case(BY_SHA256, by_sha256),
        Case(CLOSURE, closure),
        Case(USED_BY, used_by),
    ]
