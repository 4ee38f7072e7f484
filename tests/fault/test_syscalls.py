"""Every system call of a seal fails once, in each way it can: a clear error or success, and no half state.

Of the calls that come often every other case is taken; ``make torture`` takes all.
"""

import random

from faulting import OPS, bench, cases
from killing import memory_disk

OFTEN = 12


def test_whatever_call_fails_the_store_stays_whole_and_the_next_seal_works() -> None:
    answers: dict[str, int] = {}
    with memory_disk() as place, bench(place) as workbench:
        counts = workbench.counts()
        assert [op for op in OPS if not counts[op]] == ["syncfs"]
        assert min(counts["write"], counts["pwrite"], counts["fsync"], counts["open"]) > 4
        chosen = [case for case in cases(counts) if counts[case.op] < OFTEN or random.random() < 0.5]
        for case in chosen:
            answer = workbench.check(case)
            answers[answer] = answers.get(answer, 0) + 1
    assert sum(answers.values()) > 200
    assert min(answers[code] for code in ("sealed", "io", "store-full", "source-unreadable")) > 10


def test_a_failing_syncfs_fails_the_seal() -> None:
    """Above sixteen blob files one ``syncfs`` waits for all of them."""
    with memory_disk() as place, bench(place) as workbench:
        workbench.many_blobs()
        counts = workbench.counts()
        assert counts["syncfs"] >= 1
        answers = {case.kind: workbench.check(case) for case in cases(counts) if case.op == "syncfs"}
    assert answers == {"ENOSPC": "store-full", "EIO": "io", "EINTR": "sealed"}
