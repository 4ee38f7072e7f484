"""Three hundred kills at random moments; ``make torture`` does ten thousand with the same code."""

import random

from killing import memory_disk
from milling import Mill

KILLS = 300


def test_nothing_reported_is_lost_and_nothing_half_done_is_seen() -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    with memory_disk() as place:
        tally = Mill(place, seed).grind(KILLS)
    print(tally)
    assert tally.kills == KILLS
    assert sum(tally.amid.values()) == KILLS
    assert tally.amid.get("seal", 0) > KILLS / 10, "the kills do not hit the work"
    assert tally.amid.get("repair", 0) > KILLS / 50
    assert tally.amid.get("rebuild", 0) > KILLS / 100
    assert tally.kept > KILLS
    assert tally.leftovers > 0
