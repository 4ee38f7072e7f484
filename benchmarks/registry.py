"""A registry of many packets and families with the sharing of real ones, made through the library.

Each packet has a model and a runtime that others have too, evidence of its own in which some files are
everybody's (a suite, an oracle, a harness), a commit, a claim and sometimes a parent and a verdict. Contents
are nowhere: relations read none.
"""

import json
import os
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import data
import packets

import provstore
from provstore import records
from provstore.ids import Digests, RawId
from provstore.records.packet import Claim, Entry, Packet, Pin, Scope
from provstore.records.verdict import Verdict
from provstore.store.protocol import Stage
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.importing import import_documents

MODEL_FILES: Final = 32
RUNTIME_FILES: Final = 120
PACKETS_A_MODEL: Final = 20
PACKETS_A_RUNTIME: Final = 50
COMMON: Final = 2000
"""Files that any evidence may hold; the first ones are in most packets, the last ones in few."""

COMMON_PART: Final = 0.2
BATCH: Final = 250

_EVIDENCE: Final = 1 << 40
_RUNTIMES: Final = 1 << 41
_MODELS: Final = 1 << 42


class Size(NamedTuple):
    """How large a registry is.

    Attributes:
        packets: packets.
        families: family documents.
        files: files of the evidence of each packet.
    """

    packets: int
    families: int
    files: int


WHOLE: Final = Size(10_000, 1_000, 470)
"""Gives 5 million relations."""


class Registry(NamedTuple):
    """What was made.

    Attributes:
        store: its place.
        packets: ids, in the order in which they were made.
        documents: folder of the family documents.
    """

    store: Path
    packets: list[RawId]
    documents: Path


def scaled(fraction: float) -> Size:
    """Return a part of the whole registry."""
    return Size(max(20, int(WHOLE.packets * fraction)), max(2, int(WHOLE.families * fraction)), WHOLE.files)


def make(place: Path, size: Size) -> Registry:
    """Make a registry in an empty folder."""
    chance = random.Random(data.SEED)
    store = place / "store"
    made: list[RawId] = []
    with closing(provstore.init_store(store)) as target:
        for first in range(0, size.packets, BATCH):
            with target.stage() as stage:
                for number in range(first, min(first + BATCH, size.packets)):
                    made.append(_packet(stage, number, size, made, chance))
                stage.commit()
        documents = _families(place / "documents", size, chance)
        import_documents(target, [documents], ImportOptions(root=os.fspath(documents)))
    return Registry(store, made, documents)


def _packet(stage: Stage, number: int, size: Size, made: list[RawId], chance: random.Random) -> RawId:
    model, runtime = number // PACKETS_A_MODEL, number // PACKETS_A_RUNTIME
    evidence = list(_evidence(number, size.files, chance))
    entries = (
        _entry(stage, "evidence/run", size.files, evidence),
        _entry(stage, "runtime", RUNTIME_FILES, _block(_RUNTIMES, runtime, RUNTIME_FILES)),
        Entry(
            role="source",
            kind="source-tree",
            custody="declared",
            files=0,
            pins=(Pin(kind="commit", value=f"{runtime:040x}"),),
        ),
        _entry(stage, "weights", MODEL_FILES, _block(_MODELS, model, MODEL_FILES)),
    )
    claim = Claim(
        name="decode",
        value=f"{100 + number % 977 / 8}",
        unit="tok/s",
        metric="decode_tok_s",
        convention=("conventional-intervals", "legacy-inclusive-events")[number % 10 == 0],
        evidence=("evidence/run",),
    )
    parents = (made[chance.randrange(len(made))].hex(),) if made and chance.random() < 0.1 else ()
    scope = Scope(
        at={"cards": 2 ** (number % 4), "context": 1024 << (number % 5)},
        described_as=(f"measurement:family-{number % size.families}/run-{number % 10}",),
    )
    packet, encoded = records.encode(
        Packet(name=f"packet-{number:06d}", entries=entries, claims=(claim,), parents=parents, scope=scope)
    )
    stage.add_record(packet, encoded)
    stage.set_ref(f"packet-{number:06d}", packet)
    if number % 5 == 0:
        _verdict(stage, packet, evidence[0], number)
    return packet


def _entry(stage: Stage, role: str, files: int, contents: list[Digests]) -> Entry:
    tree = packets.add_nested(stage, files, contents.__getitem__)
    return Entry(role=role, kind="file", files=files, tree=tree.hex())


def _block(base: int, number: int, files: int) -> list[Digests]:
    return [packets.made_up(base + number * files + file) for file in range(files)]


def _evidence(number: int, files: int, chance: random.Random) -> Iterator[Digests]:
    for file in range(files):
        if chance.random() < COMMON_PART:
            # Few files are in almost every packet, most in some: the square of an even chance.
            yield packets.made_up(int(COMMON * chance.random() ** 2))
        else:
            yield packets.made_up(_EVIDENCE + number * files + file)


def _verdict(stage: Stage, packet: RawId, used: Digests, number: int) -> None:
    verdict, encoded = records.encode(
        Verdict(
            packet=packet.hex(),
            policy=used.blake3.hex(),
            policy_name="made-up",
            policy_version="1",
            policy_date="2026-01-01",
            tool="benchmarks",
            outcome="PASS" if number % 3 else "FAIL",
            gates=(),
        )
    )
    stage.add_record(verdict, encoded)
    stage.add_verdict(packet, verdict)


def _families(folder: Path, size: Size, chance: random.Random) -> Path:
    folder.mkdir()
    for number in range(size.families):
        runs = [
            {
                "id": f"run-{run}",
                "state": "lab-measured",
                "config": {"cards": 2 ** (run % 4), "context": 1024 << (run % 5)},
                "metrics": {"decode_tok_s": [round(chance.uniform(5, 200), 6)]},
                "evidence": [f"records/{number}-{run}.json"],
            }
            for run in range(10)
        ]
        family = {
            "format": "neural-download-model-family-v1",
            "id": f"family-{number}",
            "run_measurements": runs,
            "family_closures": [{"selectors": {"cards": [16]}, "state": "missing", "reason": "made up"}],
        }
        folder.joinpath(f"family-{number:05d}.json").write_text(json.dumps(family), encoding="utf-8")
    return folder


def tree_bytes(store: Path) -> Iterator[bytes]:
    """Yield the bytes of every record of a store, for the time that bare decoding takes."""
    with closing(provstore.open_store(store, writable=False)) as reader:
        for id in reader.records():
            found = reader.record(id)
            if found is not None:
                yield found
