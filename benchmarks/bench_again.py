"""What does it cost to seal again when nothing, or little, has changed? (P3, P4)."""

import uuid
from typing import Final

import data
from measure import Case, Timings, alternate, timed
from peers import Git, Peer, make_peers
from rows import Finding, Goal, Row, against, inverse, row
from setting import Setting

EDITED: Final = 20
"""Files that change between two seals."""

AGAIN: Final = "prov seal again"
AGAIN_MODEL: Final = "prov seal again, W1"
CHANGED: Final = "prov seal, 20 files changed"

P3_GIT: Final = Goal(
    "seal again, nothing changed / git status",
    1.3,
    bound="the start of the interpreter with its imports, then one stat a file through Python",
)
P3_MODEL: Final = Goal(
    "seal W1 again", 70, "ms", bound="start of the interpreter and imports, most of them typer's"
)
P4_GIT: Final = Goal(
    "seal, 20 files changed / git add and commit", 1.0, bound="the same, and one transaction on disk"
)
P4_RESTIC: Final = Goal("restic backup / seal, 20 files changed", 8.0, at_least=True, bound="the same")


def unchanged(setting: Setting) -> Row:
    """Measure P3: seal W2 and W1 again, nothing changed, beside tools that keep the state of files."""
    tree, store, models = setting.sources.path, setting.fresh("store"), setting.fresh("models")
    again = setting.prov("seal", tree, "--name", "tree", "--store", store)
    again_model = setting.prov("seal", setting.model_spec, "--store", models)
    peers = make_peers(setting, tree)
    cases = [Case(AGAIN, lambda _: timed(again)), Case(AGAIN_MODEL, lambda _: timed(again_model))]
    cases += [_add_case(peer, "again") for peer in peers]
    cases += [_status_case(peer) for peer in peers if isinstance(peer, Git)]
    # The first time of each case takes everything in; it is no part of the measurement.
    alternate([*cases[:2], *[_add_case(peer, "") for peer in peers]], 1, setting.say)
    timings = alternate(cases, setting.rounds, setting.say)
    findings = [
        against(P3_GIT, timings, AGAIN, "git status"),
        Finding(P3_MODEL, timings.time(AGAIN_MODEL, 1000)),
    ]
    facts = {"prov seal again us/file": timings.time(AGAIN, 1e6 / setting.sources.files).median}
    return row("P3", "seal again, nothing changed", timings, findings, facts)


def few_changed(setting: Setting) -> Row:
    """Measure P4: change 20 files of W2 in each round, and let every tool take in the same change."""
    tree, store = setting.sources.path, setting.fresh("store")
    seal = setting.prov("seal", tree, "--name", "tree", "--store", store)
    peers = make_peers(setting, tree)
    cases = [Case(CHANGED, lambda _: timed(seal)), *[_add_case(peer, "20 files changed") for peer in peers]]
    alternate(cases, 1, setting.say)
    names = [case.name for case in cases]
    timings = Timings(names)
    for number in range(setting.rounds):
        data.edit(tree, uuid.uuid4().hex, EDITED)
        turn = alternate(cases[number % len(cases) :] + cases[: number % len(cases)], 1, setting.say)
        for name in names:
            timings.samples[name] += turn.samples[name]
    findings = [
        against(P4_GIT, timings, CHANGED, "git, 20 files changed"),
        inverse(P4_RESTIC, timings, CHANGED, "restic, 20 files changed"),
    ]
    return row("P4", "seal again, 20 files changed (W2)", timings, findings)


def _add_case(peer: Peer, when: str) -> Case:
    return Case(f"{peer.name}, {when}" if when else peer.name, lambda _: timed(peer.add()))


def _status_case(git: Git) -> Case:
    return Case("git status", lambda _: timed(git.status()))
