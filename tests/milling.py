"""Kills at random moments: a child that seals, drops, collects, packs, unpacks, checks and repairs.

Before a repair the child plants damage: a flipped bit, a cut or lost file, a lost row, a damaged frame.
Before a rebuild it spoils ``data.mdb``. Good bytes come from a copy of the store, packs, and a directory.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from killing import (
    PROFILE,
    Ended,
    Say,
    child,
    collect,
    copied,
    drop_ref,
    left_in,
    seal_into,
    small_batches,
    sound,
    tree,
    whole_pack,
)
from workbench import plant
from wrecking import SOURCES, damage_for, mend, restore_index, source_of, spoil_index

from provstore.ids import object_id, to_raw
from provstore.store.lmdb_store import LmdbStore
from provstore.verbs.checking import fsck
from provstore.verbs.locating import Located
from provstore.verbs.packing import pack
from provstore.verbs.repairing import rebuild_index, repair
from provstore.verbs.unpacking import unpack

VERBS = ("seal", "seal", "seal", "unpack", "pack", "gc", "drop", "fsck", "repair", "repair", "rebuild")

PACKS = 3
MOST_REFS = 8
LONGEST_S = 0.16
"""Longest time that a child runs; one round of its work takes about a third of it."""


class Tally(NamedTuple):
    """What a number of kills hit.

    Attributes:
        kills: children killed.
        amid: verb that was running, and how often.
        kept: reported results that were found whole afterwards.
        seen: unreported commits that were found whole.
        leftovers: kills that left files or frames for ``gc``.
        seconds: time taken.
    """

    kills: int
    amid: dict[str, int]
    kept: int
    seen: int
    leftovers: int
    seconds: float


class Mill:
    """One store that survives its writers, and the account of what they reported."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place = place
        self.store = place / "store"
        self.random = random.Random(seed)
        self.promised: dict[str, str] = {}
        self.packs: dict[str, str] = {}
        self.round = 0
        self.amid: dict[str, int] = {}
        self.kept = self.seen = self.leftovers = 0
        LmdbStore.create(os.fspath(self.store), profile=PROFILE).close()
        empty = copied(self.store, place / "empty")
        tree(place / "tree", "first")
        self.shared = object_id((place / "tree" / "log.txt").read_bytes()).hex()
        for number in range(PACKS):
            mark = f"pack{number}"
            other = copied(empty, place / mark)
            packet = seal_into(other, tree(place / f"{mark}-tree", mark), mark)
            _pack(other, place / f"{mark}.pack", mark, packet)
            self.packs[mark] = packet

    # -- the child ---------------------------------------------------------------------------------

    def _work(self, seed: int) -> Callable[[Say], None]:
        def work(say: Say) -> None:
            small_batches()
            chance = random.Random(seed)
            held = dict(self.promised)
            for number in range(1000):
                self._turn(say, chance, held, f"{self.round}.{number}")

        return work

    def _turn(self, say: Say, chance: random.Random, held: dict[str, str], mark: str) -> None:
        verb = chance.choice(VERBS)
        if len(held) > MOST_REFS:
            verb = "drop"
        name = chance.choice(sorted(held)) if held else ""
        if verb == "seal":
            name = f"run-{mark}"
            plant(self.place / "tree", {"mark": mark, "raw.bin": mark.encode() + chance.randbytes(30_000)})
            say(f"begin seal {name}")
            held[name] = seal_into(self.store, self.place / "tree", name)
            say(f"done seal {name} {held[name]}")
        elif verb == "unpack":
            mark = chance.choice(sorted(self.packs))
            say(f"begin unpack {mark}")
            with LmdbStore.open(os.fspath(self.store), profile=PROFILE) as store:
                assert isinstance(store, LmdbStore)
                unpack(store, self.place / f"{mark}.pack")
            held[mark] = self.packs[mark]
            say(f"done unpack {mark} {held[mark]}")
        elif verb == "pack" and name:
            output = self.place / f"out-{mark}.pack"
            say(f"begin pack {output.name} {held[name]}")
            _pack(self.store, output, name, held[name])
            say(f"done pack {output.name} {held[name]}")
        elif verb == "drop" and name:
            say(f"begin drop {name}")
            drop_ref(self.store, name)
            del held[name]
            say(f"done drop {name}")
        elif verb == "repair" and held:
            self._repair(say, chance)
        elif verb == "rebuild" and held:
            source_of("store", self.store, self.place)
            say("begin rebuild")
            spoil_index(self.store, chance)
            rebuild_index(self.store)
            restore_index(self.store, self.place / "donor", held)
            say("done rebuild")
        elif verb == "gc":
            say("begin gc")
            collect(self.store)
            say("done gc")
        elif verb == "fsck":
            say("begin fsck")
            with LmdbStore.open(os.fspath(self.store), profile=PROFILE) as store:
                assert fsck(store).damaged == ()
            say("done fsck")

    def _repair(self, say: Say, chance: random.Random) -> None:
        kind = chance.choice(SOURCES)
        source = source_of(kind, self.store, self.place)
        damage = damage_for(kind, self.store, self.shared, chance)
        if damage is None:
            return
        say(f"begin repair {source} {' '.join(sorted(damage.ids))}")
        damage.plant()
        with LmdbStore.open(os.fspath(self.store), profile=PROFILE) as store:
            left = repair(store, [source]).damaged
            assert left == (), left
        say("done repair")

    # -- the parent --------------------------------------------------------------------------------

    def kill_once(self) -> None:
        """Let a child work, kill it at a random moment, and check the store against its account."""
        self.round += 1
        with child(self._work(self.random.getrandbits(32))) as (pid, wait):
            time.sleep(self.random.random() * LONGEST_S)
            os.kill(pid, signal.SIGKILL)
            ended = wait()
        assert ended.signal == signal.SIGKILL, ended
        maybe = self._account(ended)
        self.leftovers += left_in(self.store) != ([], [], [])
        found = sound(self.store, self.promised, maybe)
        self.kept += len(found)
        self.seen += sum(name in found and name not in self.promised for name in maybe)
        self.promised = found
        self._check_packs()
        if self.round % 10 == 0:
            collect(self.store)
            assert left_in(self.store) == ([], [], [])
            sound(self.store, self.promised)

    def _account(self, ended: Ended) -> frozenset[str]:
        """Take down what the child reported; return the refs of what it was about to do."""
        begun: list[str] = []
        for line in ended.said:
            state, *words = line.split()
            assert state in ("begin", "done"), line
            if state == "begin":
                begun = words
                continue
            begun = []
            if words[0] in ("seal", "unpack"):
                self.promised[words[1]] = words[2]
            elif words[0] == "drop":
                self.promised.pop(words[1])
            elif words[0] == "pack":
                whole_pack(self.place / words[1], words[2])
        verb = begun[0] if begun else "between"
        self.amid[verb] = self.amid.get(verb, 0) + 1
        if verb == "repair":
            mend(self.store, Path(begun[1]), set(begun[2:]))
        if verb == "rebuild":
            restore_index(self.store, self.place / "donor", self.promised)
        if verb == "pack" and self.place.joinpath(begun[1]).exists():
            whole_pack(self.place / begun[1], begun[2])
        return frozenset(begun[1:2]) if verb in ("seal", "unpack", "drop") else frozenset()

    def _check_packs(self) -> None:
        old = self.store.glob("data.mdb-*")
        for path in (*self.place.glob("out-*.pack"), *self.place.glob(".pack-*"), *old):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def grind(self, kills: int) -> Tally:
        """Kill so many children."""
        began = time.monotonic()
        for _ in range(kills):
            self.kill_once()
        return Tally(kills, self.amid, self.kept, self.seen, self.leftovers, time.monotonic() - began)


def _pack(path: Path, output: Path, name: str, packet: str) -> None:
    with LmdbStore.open(os.fspath(path), writable=False) as store:
        pack([(name, Located(store, to_raw(packet), False))], output)
