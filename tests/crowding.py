"""Sealers, readers, fsck, gc and pack on one store at once, for as long as told."""

import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from killing import PROFILE, Say, child, left_in, sound, tree, whole_pack
from workbench import plant

from provstore.errors import NotFoundError, StoreBusyError
from provstore.ids import to_raw
from provstore.store.lmdb_store import LmdbStore
from provstore.verbs.checking import fsck
from provstore.verbs.collecting import gc
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack
from provstore.verbs.sealing import SealOptions, seal_paths
from provstore.verbs.verifying import verify

KEPT = 4
"""Refs that a sealer keeps; older ones it drops, so that gc has work."""


class Crowd(NamedTuple):
    """What a crowd did.

    Attributes:
        turns: finished turns by kind of work.
        index_bytes: size of ``data.mdb`` at each quarter of the time.
        seconds: time taken.
    """

    turns: dict[str, int]
    index_bytes: list[int]
    seconds: float


class Place(NamedTuple):
    """Where a crowd works, and until when (by the monotonic clock)."""

    folder: Path
    until: float

    def open(self, writable: bool = True) -> LmdbStore:
        return LmdbStore.open(os.fspath(self.folder / "store"), writable=writable, profile=PROFILE)


def _sealer(place: Place, name: str, say: Say) -> None:
    source = tree(place.folder / name, name)
    last: list[tuple[str, str]] = []
    number = 0
    with place.open() as store:
        assert isinstance(store, LmdbStore)
        while time.monotonic() < place.until:
            number += 1
            plant(source, {"turn": f"{name} {number}", "raw.bin": random.randbytes(30_000)})
            ref = f"{name}-{number}"
            packet = seal_paths(store, [source], name=ref, options=SealOptions(workers=0)).packet
            last.append((ref, packet))
            assert store.ref(ref) == to_raw(packet)
            if len(last) > KEPT:
                ref, packet = last.pop(0)
                with store.stage() as stage:
                    stage.set_ref(ref, None, expected=to_raw(packet))
                    stage.commit()
            say("turn sealer")
    for ref, packet in last:
        say(f"ref {ref} {packet}")


def _reader(place: Place, name: str, say: Say) -> None:
    with place.open(writable=False) as store:
        while time.monotonic() < place.until:
            refs = store.refs()
            if refs:
                ref, packet = random.choice(refs)
                try:
                    assert verify(store, packet).outcome == "PASS"
                except (NotFoundError, AssertionError):
                    # A ref that was dropped and swept amid the look; one that is still there must be whole.
                    assert store.ref(ref) != packet, f"{ref} is not whole"
            say("turn reader")


def _checker(place: Place, name: str, say: Say) -> None:
    while time.monotonic() < place.until:
        with place.open(writable=False) as store:
            before = dict(store.refs())
            report = fsck(store)
            after = dict(store.refs())
            steady = {id.hex() for ref, id in before.items() if after.get(ref) == id}
            wrong = [damage for damage in report.damaged if damage.packet in steady]
            assert wrong == [], wrong
        say("turn fsck")


def _collector(place: Place, name: str, say: Say) -> None:
    while time.monotonic() < place.until:
        with place.open() as store:
            try:
                gc(store, delete=True, grace_s=0, now_ns=time.time_ns() - 30_000_000_000)
            except StoreBusyError:
                # Sealers that never pause commit between each look and its sweep; gc says so and can be
                # run again. Counted, so that the figures show how often.
                say("turn gc-busy")
            else:
                say("turn gc")
        time.sleep(0.05)


def _packer(place: Place, name: str, say: Say) -> None:
    target = place.folder / f"{name}.pack"
    while time.monotonic() < place.until:
        with place.open(writable=False) as store:
            refs = store.refs()
            if not refs:
                continue
            ref, packet = random.choice(refs)
            target.unlink(missing_ok=True)
            try:
                pack([(ref, Located(store, packet, False))], target)
            except NotFoundError:
                assert store.ref(ref) != packet, f"{ref} is not whole"
                continue
        whole_pack(target, packet.hex())
        say("turn pack")


WORK: dict[str, Callable[[Place, str, Say], None]] = {
    "sealer": _sealer,
    "reader": _reader,
    "fsck": _checker,
    "gc": _collector,
    "pack": _packer,
}


def crowd(folder: Path, seconds: float, sealers: int = 2, readers: int = 8) -> Crowd:
    """Let a crowd work on a new store, and check everything at the end."""
    began = time.monotonic()
    LmdbStore.create(os.fspath(folder / "store"), profile=PROFILE).close()
    place = Place(folder, began + seconds)
    names = [f"sealer{i}" for i in range(sealers)] + [f"reader{i}" for i in range(readers)]
    sizes: list[int] = []
    with ExitStack() as stack:
        waiting = []
        for name in (*names, "fsck", "gc", "pack"):
            work = WORK[name.rstrip("0123456789")]
            entered = stack.enter_context(child(lambda say, n=name, w=work: w(place, n, say)))  # type: ignore[misc]
            waiting.append((name, entered[1]))
        for quarter in range(1, 5):
            time.sleep(max(0.0, began + seconds * quarter / 4 - time.monotonic()))
            sizes.append(os.stat(folder / "store" / "data.mdb").st_size)
        turns: dict[str, int] = {}
        promised: dict[str, str] = {}
        for name, wait in waiting:
            ended = wait()
            assert ended.signal == 0, (name, ended)
            for line in ended.said:
                kind, *words = line.split()
                assert kind in ("turn", "ref"), (name, line)
                if kind == "turn":
                    turns[words[0]] = turns.get(words[0], 0) + 1
                else:
                    promised[words[0]] = words[1]
    assert sound(folder / "store", promised) == promised
    with place.open() as store:
        gc(store, delete=True, grace_s=0)
        assert store.stats().readers <= 1
    assert left_in(folder / "store") == ([], [], [])
    sound(folder / "store", promised)
    return Crowd(turns, sizes, time.monotonic() - began)
