"""How fast is a tree of small files verified, from the store and where it lies? (P5)."""

from typing import Final

from measure import Case, alternate, timed
from peers import B3SUM_LIST, SHA256SUM_LIST, Peer, make_peers
from rows import Goal, Row, against, row
from setting import Setting

AGAINST: Final = "prov verify --against"
STORE: Final = "prov verify"

P5_TREE: Final = Goal(
    "verify the tree against its packet / b3sum --check",
    0.65,
    bound="listing, stat, open and two digests of every file: about 30 us in Python, over all cores",
)
P5_STORE: Final = Goal(
    "verify from the store / b3sum --check",
    1.0,
    bound="unpacking and two digests on all cores; the records are walked on one",
)
P5_RESTIC: Final = Goal("verify from the store / restic check --read-data", 0.25, bound="the same")


def verify_tree(setting: Setting) -> Row:
    """Measure P5: verify W2 in full."""
    tree, store = setting.sources.path, setting.fresh("store")
    timed(setting.prov("seal", tree, "--name", "tree", "--store", store))
    peers = make_peers(setting, tree)
    for peer in peers:
        timed(peer.add())
    cases = [
        Case(AGAINST, lambda _: timed(setting.prov("verify", "tree", "--against", tree, "--store", store))),
        Case(STORE, lambda _: timed(setting.prov("verify", "tree", "--store", store))),
    ]
    for tool, text in (("b3sum", B3SUM_LIST), ("sha256sum", SHA256SUM_LIST)):
        if setting.has(tool):
            cases.append(_list_case(setting, tool, text))
    cases += [_check_case(peer) for peer in peers]
    timings = alternate(cases, setting.rounds, setting.say)
    findings = [
        against(P5_TREE, timings, AGAINST, "b3sum --check"),
        against(P5_STORE, timings, STORE, "b3sum --check"),
        against(P5_RESTIC, timings, STORE, "restic check"),
    ]
    facts = {
        f"{case} us/file": timings.time(case, 1e6 / setting.sources.files).median for case in timings.samples
    }
    return row("P5", "verify a tree of sources (W2), all bytes", timings, findings, facts)


def _list_case(setting: Setting, tool: str, text: str) -> Case:
    tree, listed = setting.sources.path, setting.fresh("list")
    timed(setting.shell(text, listed, cwd=tree))
    return Case(f"{tool} --check", lambda _: timed(setting.command(tool, "--check", listed, cwd=tree)))


def _check_case(peer: Peer) -> Case:
    return Case(f"{peer.name} check", lambda _: timed(peer.check()))
