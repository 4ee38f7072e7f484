"""Does the time to compare two packets depend on what changed, or on how big they are? (P7)."""

import uuid
from contextlib import closing
from pathlib import Path
from typing import Final

import data
import packets
from bench_again import EDITED
from measure import Case, CommandFailedError, Sample, Timings, alternate, call, timed
from peers import make_peers
from rows import Finding, Goal, Row, against, row
from setting import Setting

import provstore

REPEATS: Final = 5
"""Calls inside this process are short and noisy: so many rounds for each round of the commands."""

BOUND: Final = "unpacking the frames that hold the records on the changed paths, and hashing these"

COMMAND: Final = "prov diff (W2)"
SIZE: Final = 100_000
UNSEEN: Final = "this scale has no packet of that size"


def compare(setting: Setting) -> Row:
    """Measure P7: packets with 20 changed files, by size and shape, and the command beside others on W2."""
    sizes = setting.sizes()
    store = setting.fresh("store")
    for size in sizes:
        _make(store, size)
    cases = [_call_case(store, shape, size) for size in sizes for shape in ("nested", "flat")]
    alternate(cases, 1, setting.say)
    inside = alternate(cases, setting.rounds * REPEATS, setting.say)
    commands = _commands(setting, store, sizes[-1])
    findings = _findings(inside, sizes)
    goal = Goal(
        "command on W2 / restic diff", 0.1, bound="start of the interpreter, imports and opening the store"
    )
    findings.append(against(goal, commands, COMMAND, "restic diff (W2)"))
    both = Timings([])
    both.samples = {**inside.samples, **commands.samples}
    notes = (
        "in process: from an open store with nothing cached to the report; records made through the library",
        "nested: 30 files in a folder, 30 folders in a folder; flat: all in one folder",
        f"every comparison finds {EDITED} changed files",
    )
    return row("P7", "compare two packets, 20 files changed", both, findings, notes=notes)


def _make(store: Path, size: int) -> None:
    step = size // EDITED
    edited = frozenset(range(step // 2, size, step))
    with closing(provstore.init_store(store)) as target, target.stage() as stage:
        for version, digests in (("a", packets.made_up), ("b", packets.changed(edited, 10**9))):
            for shape, add in (("nested", packets.add_nested), ("flat", packets.add_flat)):
                tree = add(stage, size, digests)
                packets.add_packet(stage, f"{version}-{shape}-{size}", tree, size)
        stage.commit()


def _call_case(store: Path, shape: str, size: int) -> Case:
    name = f"diff {shape} {size}"

    def run(_: int) -> Sample:
        with closing(provstore.open_store(store, writable=False)) as reader:

            def compare_once() -> None:
                with (
                    provstore.side(f"a-{shape}-{size}", reader) as first,
                    provstore.side(f"b-{shape}-{size}", reader) as second,
                ):
                    report = provstore.diff(first, second)
                if len(report.changed) != EDITED:
                    raise CommandFailedError(f"{name} found {len(report.changed)} changes, not {EDITED}")

            return call(compare_once)

    return Case(name, run)


def _findings(inside: Timings, sizes: list[int]) -> list[Finding]:
    found = []
    for shape in ("nested", "flat"):
        goal = Goal(f"{SIZE} entries, {shape}, in process", 3, "ms", bound=BOUND)
        name = f"diff {shape} {SIZE}"
        if SIZE in sizes:
            found.append(Finding(goal, inside.time(name, 1000)))
        else:
            found.append(Finding(goal, None, UNSEEN))
        for small, large in ((10_000, SIZE), (SIZE, 1_000_000)):
            goal = Goal(f"{shape}, {large} entries / {small}", 2.0, bound=BOUND)
            if large in sizes:
                found.append(against(goal, inside, f"diff {shape} {large}", f"diff {shape} {small}"))
            else:
                found.append(Finding(goal, None, UNSEEN))
    return found


def _commands(setting: Setting, big: Path, size: int) -> Timings:
    """Time the command on W2 beside the peers' own, and on a big packet."""
    tree, store = setting.sources.path, setting.fresh("store")
    peers = make_peers(setting, tree)
    for version in ("a", "b"):
        if version == "b":
            data.edit(tree, uuid.uuid4().hex, EDITED)
        timed(setting.prov("seal", tree, "--name", version, "--store", store))
        for peer in peers:
            timed(peer.add())
    differs = (0, 1)
    ours = setting.prov("diff", "a", "b", "--store", store, codes=differs)
    large = setting.prov("diff", f"a-nested-{size}", f"b-nested-{size}", "--store", big, codes=differs)
    commands = {COMMAND: ours, f"prov diff (nested {size})": large}
    commands |= {f"{peer.name} diff (W2)": peer.compare() for peer in peers}
    cases = [Case(name, lambda _, command=command: timed(command)) for name, command in commands.items()]  # type: ignore[misc]
    return alternate(cases, setting.rounds, setting.say)
